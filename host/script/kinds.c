/* What the Lua library builds on: kinds, arrays, controllers. Kinds and controllers are userdata: a
 * script can name them and look at them, but neither make one itself nor change one that was
 * checked. */
#include "script/ctx.h"

struct kind_value {
    struct ml_gvk gvk; /* slices into text */
    int line;
    char text[3 * SCRIPT_GVK_TEXT_MAX];
};

static const char kind_key, controller_key, host_key;

static bool is_made_of(lua_State *L, int index, const char *key)
{
    if (lua_type(L, index) != LUA_TUSERDATA || !lua_getmetatable(L, index))
        return false;
    lua_rawgetp(L, LUA_REGISTRYINDEX, key);
    bool is = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return is;
}

static struct kind_value *to_kind_value(lua_State *L, int index)
{
    return is_made_of(L, index, &kind_key) ? lua_touserdata(L, index) : NULL;
}

const struct ml_gvk *script_to_kind(lua_State *L, int index)
{
    const struct kind_value *value = to_kind_value(L, index);
    return value ? &value->gvk : NULL;
}

int script_kind_line(lua_State *L, int index)
{
    const struct kind_value *value = to_kind_value(L, index);
    return value ? value->line : 0;
}

bool script_is_controller(lua_State *L, int index)
{
    return is_made_of(L, index, &controller_key);
}

ML_RAISES
static void push_api_version(lua_State *L, const struct ml_gvk *gvk)
{
    lua_pushfstring(L, "%s%s%s", gvk->group.ptr, gvk->group.len > 0 ? "/" : "", gvk->version.ptr);
}

ML_RAISES
static int kind_index(lua_State *L)
{
    const struct ml_gvk *gvk = script_to_kind(L, 1);
    const char *field = lua_tostring(L, 2);
    if (gvk && field && strcmp(field, "apiVersion") == 0)
        push_api_version(L, gvk);
    else if (gvk && field && strcmp(field, "kind") == 0)
        lua_pushstring(L, gvk->kind.ptr);
    else
        return luaL_error(L, "a kind has the fields apiVersion and kind");
    return 1;
}

ML_RAISES
static int kind_tostring(lua_State *L)
{
    const struct ml_gvk *gvk = script_to_kind(L, 1);
    if (!gvk)
        return luaL_error(L, "not a kind");
    push_api_version(L, gvk);
    lua_pushfstring(L, "%s/%s", lua_tostring(L, -1), gvk->kind.ptr);
    return 1;
}

static bool same_kind(const struct ml_gvk *a, const struct ml_gvk *b)
{
    return ml_str_eq(a->group, b->group) && ml_str_eq(a->version, b->version) &&
           ml_str_eq(a->kind, b->kind);
}

ML_RAISES
static int kind_equal(lua_State *L)
{
    const struct ml_gvk *a = script_to_kind(L, 1), *b = script_to_kind(L, 2);
    lua_pushboolean(L, a && b && same_kind(a, b));
    return 1;
}

struct ml_str script_put_text(char **at, struct ml_str text)
{
    struct ml_str copy = {*at, text.len};
    memcpy(*at, text.ptr, text.len);
    (*at)[text.len] = '\0';
    *at += text.len + 1;
    return copy;
}

/* moonloop.kind(apiVersion, kind) */
ML_RAISES
static int host_kind(lua_State *L)
{
    struct ml_str api_version = {NULL, 0}, name = {NULL, 0};
    if (lua_type(L, 1) == LUA_TSTRING)
        api_version.ptr = lua_tolstring(L, 1, &api_version.len);
    if (lua_type(L, 2) == LUA_TSTRING)
        name.ptr = lua_tolstring(L, 2, &name.len);
    struct ml_gvk gvk;
    if (!api_version.ptr || !name.ptr || !ml_gvk_parse(api_version, name, &gvk) ||
        ML_MAX(gvk.group.len, ML_MAX(gvk.version.len, gvk.kind.len)) >= SCRIPT_GVK_TEXT_MAX)
        return luaL_error(L, "moonloop.kind(apiVersion, kind): expected an API version and a "
                             "kind, as in moonloop.kind(\"apps/v1\", \"Deployment\")");
    lua_Debug caller;
    int line = 0;
    if (lua_getstack(L, 1, &caller) && lua_getinfo(L, "l", &caller))
        line = caller.currentline;
    struct kind_value *value = lua_newuserdatauv(L, sizeof(*value), 0);
    char *at = value->text;
    value->line = line;
    value->gvk.group = script_put_text(&at, gvk.group);
    value->gvk.version = script_put_text(&at, gvk.version);
    value->gvk.kind = script_put_text(&at, gvk.kind);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &kind_key);
    lua_setmetatable(L, -2);
    return 1;
}

ML_RAISES
static int host_is_kind(lua_State *L)
{
    lua_pushboolean(L, script_to_kind(L, 1) != NULL);
    return 1;
}

/* moonloop.array(list): the same table, marked. */
ML_RAISES
static int host_array(lua_State *L)
{
    if (lua_isnoneornil(L, 1)) {
        lua_settop(L, 0);
        lua_newtable(L);
    }
    if (!lua_istable(L, 1))
        return luaL_error(L, "moonloop.array(list): expected a table, got a %s",
                          luaL_typename(L, 1));
    lua_settop(L, 1);
    if (shape_keys(L, 1))
        return luaL_error(L, "moonloop.array(list): this table is an object");
    shape_mark_array(L, 1);
    return 1;
}

/* The definition that moonloop/init.lua checked, out of the script's reach. */
ML_RAISES
static int host_controller(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_newuserdatauv(L, 0, 1);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &controller_key);
    lua_setmetatable(L, -2);
    return 1;
}

ML_RAISES
static int host_getmetatable(lua_State *L)
{
    if (!lua_getmetatable(L, 1))
        lua_pushnil(L);
    return 1;
}

ML_RAISES
static void open_metatables(lua_State *L)
{
    static const luaL_Reg kind_methods[] = {
        {"__index", kind_index}, {"__tostring", kind_tostring}, {"__eq", kind_equal}, {NULL, NULL}};
    luaL_newlib(L, kind_methods);
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_rawsetp(L, LUA_REGISTRYINDEX, &kind_key);
    lua_newtable(L);
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_rawsetp(L, LUA_REGISTRYINDEX, &controller_key);
}

ML_RAISES
void script_push_host(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"array", host_array},
        {"controller", host_controller},
        {"is_kind", host_is_kind},
        {"getmetatable", host_getmetatable},
        {"kind", host_kind},
        {"require", script_require},
        {NULL, NULL},
    };
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &host_key) == LUA_TTABLE)
        return;
    lua_pop(L, 1);
    open_metatables(L);
    luaL_newlib(L, functions);
    script_push_null(L);
    lua_setfield(L, -2, "null");
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &host_key);
}
