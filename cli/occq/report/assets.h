/* The page's style and script, from report.css, svg.css and report.js (cmake/embed.cmake), and the base64
 * text of their SHA-256 for the page's content security policy. */
#pragma once

extern const char report_style[], report_style_sha256[], report_script[], report_script_sha256[];
