/* Names that a script uses and that do not exist: functions of ctx and of the library, fields of a
 * kind or an error, options of ctx.list. moonloop/fields.lua has the names that there are,
 * moonloop/names.lua says which one was probably meant. */
#include "script/internal.h"

/* [-0, +1] A list of moonloop/fields.lua: names with spaces between them. NULL: there is none. */
ML_RAISES static const char *push_known(lua_State *L, const char *list)
{
    script_push_library(L, "moonloop.fields");
    lua_getfield(L, -1, list);
    lua_remove(L, -2);
    return lua_tostring(L, -1);
}

/* [-0, +1] What a function of moonloop/names.lua says of (what, the value at `key`, known names).
 */
ML_RAISES static const char *push_problem(lua_State *L, const char *function, const char *what,
                                          int key, const char *list)
{
    script_push_library(L, "moonloop.names");
    lua_getfield(L, -1, function);
    lua_remove(L, -2);
    lua_pushstring(L, what);
    lua_pushvalue(L, key);
    push_known(L, list);
    lua_call(L, 3, 1);
    return lua_tostring(L, -1);
}

ML_RAISES ML_NORETURN void script_missing_field(lua_State *L, const char *what, const char *list,
                                                int index)
{
    lua_pushvalue(L, index); /* nil when there is none */
    luaL_error(L, "%s", push_problem(L, "missing", what, lua_gettop(L), list));
    ML_UNREACHABLE();
}

static bool is_known(const char *known, struct ml_str name)
{
    for (const char *at = known; *at; at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");
        if (ml_str_eq((struct ml_str){at, len}, name))
            return true;
        at += len;
    }
    return false;
}

ML_RAISES void script_check_fields(lua_State *L, const char *call, const char *list, int index)
{
    const char *known = push_known(L, list);
    lua_pushnil(L);
    while (lua_next(L, index)) {
        script_cpu_check(L);
        lua_pop(L, 1);
        struct ml_str name = script_str(L, -1);
        if (!name.ptr || !is_known(known, name))
            luaL_error(L, "%s", push_problem(L, "unknown_field", call, lua_gettop(L), list));
    }
    lua_pop(L, 1);
}

/* The upvalue: the name of the table, and of its list. */
ML_RAISES static int index_missing(lua_State *L)
{
    const char *name = lua_tostring(L, lua_upvalueindex(1));
    script_missing_field(L, name, name, 2);
}

ML_RAISES void script_guard_fields(lua_State *L, const char *name)
{
    bool is_listed = push_known(L, name) != NULL;
    lua_pop(L, 1);
    if (!is_listed)
        return;
    lua_createtable(L, 0, 2);
    lua_pushstring(L, name);
    lua_pushcclosure(L, index_missing, 1);
    lua_setfield(L, -2, "__index");
    script_hide_metatable(L);
    lua_setmetatable(L, -2);
}
