/* cluster. Paths that may be hostile: opened, made and removed without ever leaving a folder,
 * whatever links are in it. */
#pragma once

#include "base/base.h"

enum process_path_links {
    PROCESS_PATH_BENEATH, /* a link that leads out of the folder is an error (EXDEV) */
    PROCESS_PATH_IN_ROOT, /* the folder is "/" for links, and for ".." */
};

/* An O_PATH descriptor of `path` in the folder `base`, or -1 and errno. Missing folders on the way
 * are made, with mode 0755; the last part is made as a folder, or else as an empty file. */
int process_path_open(int base, const char *path, enum process_path_links links, bool folder);

/* An O_PATH descriptor of the folder `path` below `base`, or -1 and errno. No link is followed
 * (ENOTDIR), and ".." is refused (EXDEV). With `make`, missing folders are made, with mode 0700.
 * An empty path is `base` itself. */
int process_path_folder(int base, const char *path, bool make);

/* The same for the folder that `path` is in; *out_name is its last part, in `path`. */
int process_path_parent(int base, const char *path, bool make, const char **out_name);

/* Removes the entry `name` of the folder `parent`: a folder with all that is in it, however deep,
 * also what its owner may not list or change. Follows no link and enters no other file system
 * (EXDEV). True when it is gone or was never there; else false and errno. */
bool process_path_remove(int parent, const char *name);
