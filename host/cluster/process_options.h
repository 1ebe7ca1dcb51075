/* cluster. The options of process.start in the host's own Lua. */
#pragma once

#include "cluster/process.h"
#include "cluster/trusted_internal.h"

/* Reads the table that is the only argument: argv, env, directory, count_max, container,
 * network, input. Raises for what is wrong. Everything belongs to the table, and to what is pushed
 * for it; callbacks and `beside` are left alone. [+?] */
ML_RAISES void process_check_options(lua_State *L, struct ml_process_opts *opts);
/* The terminal of the options; false when there is none. */
ML_RAISES bool process_check_terminal(lua_State *L, struct ml_process_terminal *terminal);
