/* L6 operator, private to world.c. A file or folder of scripts that is read once, when the operator
 * begins: in virtual time nothing is watched, and the kernel takes milliseconds to end a watch. */
#pragma once

#include "operator/source.h"

struct ml_source *world_source_new(struct ml_loop *loop, const char *path);
