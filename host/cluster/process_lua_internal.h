/* cluster. What the files behind `require "cluster.process"` share. */
#pragma once

#include "cluster/process_lua.h"
#include "cluster/trusted_internal.h"

/* The library that the module was opened with; each function has it as its upvalue. */
static inline const struct ml_process_library *process_library_of(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(1));
}

/* process_handle_lua.c: process.start and what it returns. Makes the type known to the state. */
void process_handle_open(lua_State *L);
/* process.start, a function of the module */
ML_RAISES int process_handle_start(lua_State *L);

/* process_folder_lua.c: process.open_folder and what it returns. Makes the type known to the
 * state. */
void process_folder_register(lua_State *L);
/* process.open_folder, a function of the module */
ML_RAISES int process_folder_open(lua_State *L);
