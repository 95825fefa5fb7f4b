/* On which file systems a history may lie. SQLite's write-ahead log needs memory shared by all its processes,
 * which hosts of a network file system do not have: two writers there damage the file. Any thread. */
#pragma once

/* The name of the network file system that `path` (or the nearest directory above it that exists) lies on;
 * NULL: a local one, or not known. FUSE counts as local: its file systems cannot be told apart by number, and
 * most are. */
const char *occ_filesystem_network(const char *path);
