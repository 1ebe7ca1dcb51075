/* L5 script, private. The environment of scripts and of the library, which sandbox.c puts together,
 * and the readers of a declaration. */
#pragma once

#include "script/internal.h"

/* ---- module.c: require, the embedded library, names that do not exist ---- */

/* [-2, +0] With its environment and above it the table of primitives, which no script gets. */
ML_RAISES void script_open_library(lua_State *L);
/* [-0, +1] A module of the library, its own, not for scripts. */
ML_RAISES void script_push_library(lua_State *L, const char *name);
ML_RAISES int script_library_require(lua_State *L); /* by which its modules require each other */
ML_RAISES int script_require(lua_State *L);
/* [-0, +1] The table from a name to the value that require gives the script. */
ML_RAISES void script_push_loaded(lua_State *L);
ML_RAISES void script_load_file(lua_State *L, const struct ml_script_file *file); /* [-0, +1] */

/* Errors for unknown names, which suggest the one that was probably meant. `list` is a list of
 * moonloop/fields.lua. */

/* Raises "WHAT has no 'gett'; did you mean 'get'?" for the name at `index`. */
ML_RAISES ML_NORETURN void script_missing_field(lua_State *L, const char *what, const char *list,
                                                int index);
/* Raises "CALL: unknown field 'label'; did you mean 'labels'?" for a key of the table in stack
 * slot `index` that is not in the list. Asks no metamethod. */
ML_RAISES void script_check_fields(lua_State *L, const char *call, const char *list, int index);
/* [-0, +0] Makes the table on top raise when something is read that it does not have. Its list has
 * its name; a table without a list stays as it is. */
ML_RAISES void script_guard_fields(lua_State *L, const char *name);

/* ---- tablelib.c and strlib.c; each script_open function pushes a new table ---- */

ML_RAISES int script_open_table(lua_State *L);
ML_RAISES int script_pairs(lua_State *L);
ML_RAISES int script_next(lua_State *L);
#define SCRIPT_COPY_MAX 1000 /* entries of a table that the library reads: options, kinds */
/* [-0, +1] A copy of the table at `index`, without metamethods; raises when it has more entries. */
ML_RAISES void script_push_copy(lua_State *L, int index, int most);
ML_RAISES int script_open_string(lua_State *L);
ML_RAISES void script_open_string_methods(lua_State *L); /* after the last script_open_string */

/* ---- primitives.c ---- */

/* [-0, +0] Adds the primitives of the library to the table on top. */
ML_RAISES void script_add_primitives(lua_State *L);

/* ---- regex.c ---- */

extern const luaL_Reg script_regex[]; /* primitives of moonloop/regex.lua */

/* ---- metric.c and http.c ---- */

/* Each reads its field of the definition at `index` into the declaration. The second raises when
 * the operator's owner has not allowed an origin. */
ML_RAISES void script_declare_metrics(lua_State *L, int index);
ML_RAISES void script_declare_http(lua_State *L, int index);

/* ---- declare.c ---- */

/* [-0, +1] The table of primitives, for script_open_library. */
ML_RAISES void script_push_host(lua_State *L);
/* Reads the controller at `index` into script->declaration. */
ML_RAISES void script_declare(lua_State *L, int index);
