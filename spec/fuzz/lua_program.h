/* Programs for the sandbox: a grammar of Lua and the signatures of the script API, with hostile
 * values where values go. Most of them compile, declare a controller and reconcile. */
#pragma once

#include "base/buf.h"
#include "choices.h"

/* Appends a script that returns a controller of At which owns and watches Pods. */
void lua_program_write(struct choices *choices, struct ml_buf *out);
