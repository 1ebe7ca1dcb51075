#include "cluster/process_options.h"

#include "cluster/network_lua.h"

#define WORDS_MAX  100000
#define MOUNTS_MAX 1000
#define ID_MAX     INT64_C(4294967294) /* the one above stands for none */

/* [+1] Pushes a userdata with the strings of options[name] as a list that ends with NULL; the
 * strings belong to the table. */
ML_RAISES static const char *const *check_string_list(lua_State *L, const char *name)
{
    lua_getfield(L, 1, name);
    luaL_argcheck(L, lua_istable(L, -1), 1, name);
    lua_Unsigned count = lua_rawlen(L, -1);
    luaL_argcheck(L, count <= WORDS_MAX, 1, name);
    const char **words = lua_newuserdatauv(L, ((size_t)count + 1) * sizeof(*words), 0);
    for (lua_Unsigned i = 0; i < count; i++) {
        lua_rawgeti(L, -2, (lua_Integer)i + 1);
        if (lua_type(L, -1) != LUA_TSTRING || strlen(lua_tostring(L, -1)) != lua_rawlen(L, -1))
            luaL_error(L, "process.start: %s[%d] is no string without NUL", name, (int)i + 1);
        words[i] = lua_tostring(L, -1); /* the table keeps it */
        lua_pop(L, 1);
    }
    words[count] = NULL;
    lua_remove(L, -2);
    return words;
}

/* A string without NUL of the table on top; NULL when it is missing and may be. */
ML_RAISES static const char *check_text_field(lua_State *L, const char *name, bool may_miss)
{
    int type = lua_getfield(L, -1, name);
    const char *text = type == LUA_TSTRING ? lua_tostring(L, -1) : NULL; /* the table keeps it */
    bool is_good = text ? strlen(text) == lua_rawlen(L, -1) : may_miss && type == LUA_TNIL;
    if (!is_good)
        luaL_error(L, "process.start: %s is no string without NUL", name);
    lua_pop(L, 1);
    return text;
}

ML_RAISES static bool check_bool_field(lua_State *L, const char *name)
{
    lua_getfield(L, -1, name);
    bool value = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return value;
}

ML_RAISES static uint32_t check_id_field(lua_State *L, const char *name)
{
    lua_getfield(L, -1, name);
    lua_Integer id = lua_tointeger(L, -1);
    if (!lua_isinteger(L, -1) || id < 0 || id > ID_MAX)
        luaL_error(L, "process.start: %s is no number of a user or group", name);
    lua_pop(L, 1);
    return (uint32_t)id;
}

/* [+1] Pushes a userdata with the mounts of the table on top. */
ML_RAISES static void check_mounts(lua_State *L, struct ml_process_container *container)
{
    int given = lua_gettop(L) + 1;
    if (lua_getfield(L, -1, "mounts") != LUA_TTABLE)
        luaL_error(L, "process.start: mounts is no list");
    lua_Unsigned count = lua_rawlen(L, given);
    luaL_argcheck(L, count <= MOUNTS_MAX, 1, "too many mounts");
    struct ml_process_mount *mounts = lua_newuserdatauv(L, ((size_t)count + 1) * sizeof(*mounts),
                                                        0);
    for (lua_Unsigned i = 0; i < count; i++) {
        luaL_argcheck(L, lua_rawgeti(L, given, (lua_Integer)i + 1) == LUA_TTABLE, 1, "mounts");
        mounts[i].source = check_text_field(L, "source", true);
        mounts[i].subpath = check_text_field(L, "subpath", true);
        mounts[i].target = check_text_field(L, "target", false);
        mounts[i].read_only = check_bool_field(L, "read_only");
        lua_pop(L, 1);
    }
    container->mounts = mounts;
    container->mount_count = (size_t)count;
    lua_remove(L, given);
}

/* [+3] The container of the options, if there is one. */
ML_RAISES static void check_container(lua_State *L, struct ml_process_opts *opts)
{
    int type = lua_getfield(L, 1, "container");
    luaL_argcheck(L, type == LUA_TTABLE || type == LUA_TNIL, 1, "container");
    if (type == LUA_TNIL)
        return;
    struct ml_process_container *container = lua_newuserdatauv(L, sizeof *container, 0);
    lua_insert(L, -2);
    *container = (struct ml_process_container){
        .root = check_text_field(L, "root", false),
        .hostname = check_text_field(L, "hostname", false),
        .user = check_id_field(L, "user"),
        .group = check_id_field(L, "group"),
        .read_only = check_bool_field(L, "read_only"),
    };
    check_mounts(L, container);
    opts->container = container;
}

/* A number of the table on top; 0 when it is missing. */
ML_RAISES static uint16_t check_size_field(lua_State *L, const char *name)
{
    lua_getfield(L, -1, name);
    lua_Integer size = luaL_optinteger(L, -1, 0);
    if (size < 0 || size > UINT16_MAX)
        luaL_error(L, "process.start: terminal.%s is not 0 to 65535", name);
    lua_pop(L, 1);
    return (uint16_t)size;
}

bool process_check_terminal(lua_State *L, struct ml_process_terminal *terminal)
{
    int type = lua_getfield(L, 1, "terminal");
    luaL_argcheck(L, type == LUA_TTABLE || type == LUA_TNIL, 1, "terminal");
    if (type == LUA_TTABLE) {
        terminal->rows = check_size_field(L, "rows");
        terminal->columns = check_size_field(L, "columns");
    }
    lua_pop(L, 1);
    return type == LUA_TTABLE;
}

void process_check_options(lua_State *L, struct ml_process_opts *opts)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    opts->argv = check_string_list(L, "argv");
    opts->env = check_string_list(L, "env");
    luaL_argcheck(L, opts->argv[0], 1, "argv is empty");
    lua_getfield(L, 1, "directory");
    opts->directory = luaL_optstring(L, -1, NULL);
    lua_getfield(L, 1, "count_max");
    lua_Integer count = luaL_optinteger(L, -1, 0);
    luaL_argcheck(L, count >= 0 && count < UINT32_MAX, 1, "count_max");
    opts->count_max = (uint32_t)count;
    lua_getfield(L, 1, "input");
    opts->has_input = lua_toboolean(L, -1);
    check_container(L, opts);
    int type = lua_getfield(L, 1, "network");
    opts->network = network_lua_pod(L, -1);
    opts->has_network = opts->network >= 0;
    luaL_argcheck(L, type == LUA_TNIL || (opts->has_network && opts->container), 1, "network");
    lua_pop(L, 1);
}
