/* Values that the host makes for scripts: userdata that a script can neither forge nor change,
 * moonloop.null, numbers that are kept as text, the `err` of a call that failed. Also access to
 * fields of tables and tostring, as in lauxlib.h. */
#include "script/internal.h"

const char script_kind_key, script_controller_key, script_index_key, script_failure_key;
static const char numbers_key, null_address;

ML_RAISES void script_hide_metatable(lua_State *L)
{
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
}

ML_RAISES void script_register_metatable(lua_State *L, const char *key)
{
    script_hide_metatable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

bool script_has_metatable(lua_State *L, int index, const char *key)
{
    if (!lua_getmetatable(L, index))
        return false;
    lua_rawgetp(L, LUA_REGISTRYINDEX, key);
    bool has = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return has;
}

void *script_to_userdata(lua_State *L, int index, const char *key)
{
    if (lua_type(L, index) != LUA_TUSERDATA || !script_has_metatable(L, index, key))
        return NULL;
    return lua_touserdata(L, index);
}

ML_RAISES void *script_push_userdata(lua_State *L, size_t size, const char *key)
{
    void *userdata = lua_newuserdatauv(L, size, 0);
    lua_rawgetp(L, LUA_REGISTRYINDEX, key);
    lua_setmetatable(L, -2);
    return userdata;
}

ML_RAISES int script_push_field(lua_State *L, int index, const char *field)
{
    index = lua_absindex(L, index);
    lua_pushstring(L, field);
    return lua_rawget(L, index);
}

ML_RAISES void script_move_fields(lua_State *L, int to, const char *const *fields)
{
    to = lua_absindex(L, to);
    for (; *fields; fields++) {
        lua_getfield(L, -1, *fields);
        lua_setfield(L, to, *fields);
    }
    lua_pop(L, 1);
}

/* [-0, +1] As the stock tostring, but without addresses. */
ML_RAISES const char *script_tolstring(lua_State *L, int index, size_t *len)
{
    index = lua_absindex(L, index);
    if (luaL_getmetafield(L, index, "__tostring") != LUA_TNIL) {
        lua_pushvalue(L, index);
        lua_call(L, 1, 1);
        if (!lua_isstring(L, -1))
            luaL_error(L, "'__tostring' must return a string");
        return lua_tolstring(L, -1, len);
    }
    switch (lua_type(L, index)) {
    case LUA_TNUMBER:
    case LUA_TSTRING:
    case LUA_TNIL:
    case LUA_TBOOLEAN:
        return luaL_tolstring(L, index, len);
    default:
        lua_pushstring(L, script_is_null(L, index) ? "null" : luaL_typename(L, index));
        return lua_tolstring(L, -1, len);
    }
}

/* ---- null, and numbers kept as text ---- */

/* Metamethods of the numbers that are kept as text. A script cannot make one. */
ML_RAISES static int number_tostring(lua_State *L)
{
    struct ml_str text;
    if (!script_number_text(L, 1, &text))
        return luaL_error(L, "not a number kept as text");
    lua_pushlstring(L, text.ptr, text.len);
    return 1;
}

ML_RAISES static int number_equal(lua_State *L)
{
    struct ml_str a, b;
    lua_pushboolean(L, script_number_text(L, 1, &a) && script_number_text(L, 2, &b) &&
                           ml_str_eq(a, b));
    return 1;
}

ML_RAISES void script_numbers_open(lua_State *L)
{
    static const luaL_Reg metamethods[] = {
        {"__tostring", number_tostring}, {"__eq", number_equal}, {NULL, NULL}};
    luaL_newlib(L, metamethods);
    script_register_metatable(L, &numbers_key);
}

bool script_number_text(lua_State *L, int index, struct ml_str *out)
{
    const char *text = script_to_userdata(L, index, &numbers_key);
    if (text)
        *out = (struct ml_str){text, lua_rawlen(L, index)};
    return text != NULL;
}

ML_RAISES void script_push_number_text(lua_State *L, struct ml_str text)
{
    memcpy(script_push_userdata(L, text.len, &numbers_key), text.ptr, text.len);
}

ML_RAISES void script_push_null(lua_State *L)
{
    lua_pushlightuserdata(L, (void *)&null_address);
}

bool script_is_null(lua_State *L, int index)
{
    return lua_islightuserdata(L, index) && lua_touserdata(L, index) == &null_address;
}

/* ---- errors ---- */

const struct script_failure *script_to_failure(lua_State *L, int index)
{
    return script_to_userdata(L, index, &script_failure_key);
}

ML_RAISES const struct script_failure *script_push_failure(lua_State *L, const struct ml_err *err,
                                                           const char *what)
{
    const char *kind = ml_err_name(err->kind), *colon = *what ? ": " : "";
    size_t message_at = strlen(what) + strlen(colon) + strlen(kind) + strlen(": ");
    size_t size = message_at + strlen(err->message) + 1;
    struct script_failure *failure = script_push_userdata(L, sizeof(*failure) + size,
                                                          &script_failure_key);
    failure->kind = err->kind;
    failure->http = err->http;
    failure->message_at = message_at;
    snprintf(failure->text, size, "%s%s%s: %s", what, colon, kind, err->message);
    return failure;
}
