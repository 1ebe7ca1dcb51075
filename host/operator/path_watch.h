/* L6 operator. Notifies when a file, or an entry of a folder, may have changed. The folder is
 * watched, not the file: editors replace a file, and the kubelet replaces the link ..data, by
 * renaming a new one over it. Where the path or an entry of its folder leads over links, each link
 * and the file at the end are watched in the same way, at most 512 in all. */
#pragma once

#include "net/loop.h"

struct ml_path_watch;

/* `changed` is called once from the loop, then after each change that has settled. It returns
 * whether it could read the path; if not, or if the folder does not exist, it is called again every
 * second. It must not free the watch. */
struct ml_path_watch *ml_path_watch_new(struct ml_loop *loop, const char *path,
                                        bool (*changed)(void *context), void *context);
void ml_path_watch_free(struct ml_path_watch *watch); /* NULL is fine */
