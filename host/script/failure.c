#include "script/failure.h"

#include <stdio.h>

static const char failure_key;

const struct script_failure *script_to_failure(lua_State *L, int index)
{
    if (lua_type(L, index) != LUA_TUSERDATA || !lua_getmetatable(L, index))
        return NULL;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &failure_key);
    bool is = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return is ? lua_touserdata(L, index) : NULL;
}

ML_RAISES
static int failure_index(lua_State *L)
{
    const struct script_failure *failure = script_to_failure(L, 1);
    const char *field = lua_tostring(L, 2);
    if (failure && field && strcmp(field, "kind") == 0)
        lua_pushstring(L, ml_err_name(failure->kind));
    else if (failure && field && strcmp(field, "code") == 0)
        lua_pushinteger(L, failure->http);
    else if (failure && field && strcmp(field, "message") == 0)
        lua_pushstring(L, failure->message);
    else
        return luaL_error(L, "an error has the fields kind, code and message");
    return 1;
}

ML_RAISES
static int failure_tostring(lua_State *L)
{
    const struct script_failure *failure = script_to_failure(L, 1);
    lua_pushstring(L, failure ? failure->text : "error");
    return 1;
}

ML_RAISES
static int failure_concat(lua_State *L)
{
    script_tolstring(L, 1, NULL);
    script_tolstring(L, 2, NULL);
    lua_concat(L, 2);
    return 1;
}

ML_RAISES
const struct script_failure *script_push_failure(lua_State *L, const struct ml_err *err,
                                                 const char *what)
{
    struct script_failure *failure = lua_newuserdatauv(L, sizeof(*failure), 0);
    failure->kind = err->kind;
    failure->http = err->http;
    snprintf(failure->message, sizeof(failure->message), "%s", err->message);
    snprintf(failure->text, sizeof(failure->text), "%s%s%s: %s", what, *what ? ": " : "",
             ml_err_name(err->kind), err->message);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &failure_key);
    lua_setmetatable(L, -2);
    return failure;
}

ML_RAISES
void script_open_failures(lua_State *L)
{
    static const luaL_Reg methods[] = {{"__index", failure_index},
                                       {"__tostring", failure_tostring},
                                       {"__concat", failure_concat},
                                       {NULL, NULL}};
    luaL_newlib(L, methods);
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_rawsetp(L, LUA_REGISTRYINDEX, &failure_key);
}
