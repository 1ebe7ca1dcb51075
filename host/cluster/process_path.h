/* cluster. Paths that may be hostile: opened, and made where they are missing, without ever leaving
 * a folder, whatever links are in it. */
#pragma once

#include "base/base.h"

enum process_path_links {
    PROCESS_PATH_BENEATH, /* a link that leads out of the folder is an error (EXDEV) */
    PROCESS_PATH_IN_ROOT, /* the folder is "/" for links, and for ".." */
};

/* An O_PATH descriptor of `path` in the folder `base`, or -1 and errno. What is missing on the way
 * is made, with mode 0755; the last part is made as a folder, or else as an empty file. */
int process_path_open(int base, const char *path, enum process_path_links links, bool folder);
