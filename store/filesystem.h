/* On which file systems a history may lie. SQLite's write-ahead log needs memory shared by all its processes,
 * which hosts of a network file system do not have: two writers there damage the file. Any thread. */
#pragma once

/* The name of the network file system of `path` (or of the nearest directory above it that exists); NULL: a
 * local or unknown file system. FUSE counts as local: its file systems cannot be distinguished by number, and
 * most are local. */
const char *occ_filesystem_network(const char *path);
