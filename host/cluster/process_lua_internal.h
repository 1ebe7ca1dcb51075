/* L5 script, private. What process.c and its parts share. */
#pragma once

#include "cluster/host.h"
#include "cluster/process_lua.h"

/* The library that the module was opened with; each function has it as its upvalue. */
static inline const struct ml_process_library *process_library(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(1));
}

/* process_check.c, process_files.c, process_machine.c */
extern const luaL_Reg process_checks[];
extern const luaL_Reg process_files[];
extern const luaL_Reg process_machines[];
void process_open_checks(lua_State *L);
