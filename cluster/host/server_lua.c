/* The server's Lua: how its state is opened and finds modules, functions of Lua called from C (JSON
 * in, JSON out), and functions of C given to Lua. */
#include "cluster/host/server_lua.h"

#include <lualib.h>

#include "cluster/host/server_lua_internal.h"
#include "net/tls.h"
#include "script/library.h"

static void *allocate(void *context, void *ptr, size_t osize, size_t nsize)
{
    (void)context, (void)osize;
    if (nsize == 0) {
        free(ptr);
        return NULL;
    }
    return ml_realloc(ptr, nsize);
}

/* In tests these names stand for modules of cluster/testing/: the scripts' own need the
 * sandbox. */
static const char *name_in_tests(const char *name)
{
    static const char *const others[][2] = {
        {"moonloop.testing", "cluster.testing"},
        {"moonloop", "cluster.testing.moonloop"},
        {"moonloop.base64", "cluster.testing.base64"},
        {"moonloop.crypto", "cluster.testing.crypto"},
        {"moonloop.yaml", "cluster.testing.yaml"},
        {"moonloop.zones", "cluster.zones"},
        {"cjson", "cluster.testing.cjson"},
    };
    for (size_t i = 0; i < ML_COUNT(others); i++)
        if (strcmp(name, others[i][0]) == 0)
            return others[i][1];
    return name;
}

/* cluster/ and lua/moonloop/, together. */
static const struct script_library *find_embedded_module(const char *name)
{
    static const struct script_library *const libraries[] = {cluster_library, script_library,
                                                             analysis_library};
    name = name_in_tests(name);
    for (size_t i = 0; i < ML_COUNT(libraries); i++)
        for (const struct script_library *module = libraries[i]; module->name; module++)
            if (strcmp(module->name, name) == 0)
                return module;
    return NULL;
}

/* The searcher of embedded modules: a loader and the file's name, or why there is none. */
ML_RAISES static int search_embedded_module(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    const struct script_library *module = find_embedded_module(name);
    if (!module) {
        lua_pushfstring(L, "no embedded module '%s'", name);
        return 1;
    }
    lua_pushfstring(L, "@%s", module->file);
    if (luaL_loadbufferx(L, (const char *)module->code, (size_t)(module->end - module->code),
                         lua_tostring(L, -1), "b") != LUA_OK)
        return lua_error(L);
    lua_pushstring(L, module->file);
    return 2;
}

/* Inserts it before the searcher of files (the second, after package.preload) or after it. */
static void add_embedded_searcher(lua_State *L, bool files_first)
{
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "searchers");
    lua_Integer place = files_first ? (lua_Integer)lua_rawlen(L, -1) + 1 : 2;
    for (lua_Integer i = (lua_Integer)lua_rawlen(L, -1); i >= place; i--) {
        lua_rawgeti(L, -1, i);
        lua_rawseti(L, -2, i + 1);
    }
    lua_pushcfunction(L, search_embedded_module);
    lua_rawseti(L, -2, place);
    lua_pop(L, 2);
}

ML_RAISES static int open_host_module(lua_State *L)
{
    lua_newtable(L);
    binding_open_json(L);
    lua_setfield(L, -2, "json");
    binding_open_yaml(L);
    lua_setfield(L, -2, "yaml");
    binding_open_regex(L);
    lua_setfield(L, -2, "regex");
    binding_open_file(L);
    lua_setfield(L, -2, "file");
    binding_open_x509(L);
    lua_setfield(L, -2, "x509");
    binding_open_stream(L);
    lua_setfield(L, -2, "stream");
    binding_add_misc(L);
    binding_add_timers(L);
    return 1;
}

ML_RAISES static int open_state(lua_State *L)
{
    luaL_openlibs(L);
    add_embedded_searcher(L, server_lua_of(L)->options.files_first);
    luaL_requiref(L, "cluster.host", open_host_module, 0);
    return 0;
}

struct ml_server_lua *ml_server_lua_new(const struct ml_server_lua_options *options)
{
    struct ml_server_lua *lua = ml_new(struct ml_server_lua);
    lua->options = *options;
    if (!options->clock)
        lua->options.clock = ml_clock_real();
    if (!options->random) {
        ml_random_init_real(&lua->random);
        lua->options.random = &lua->random;
    }
    ml_buf_init(&lua->traceback, 0);
    ml_buf_init(&lua->work, BINDING_JSON_MAX);
    ml_buf_init(&lua->encoder.out, BINDING_JSON_MAX);
    lua->L = lua_newstate(allocate, NULL);
    ml_assert(lua->L != NULL);
    if (options->garbage_percent)
        lua_gc(lua->L, LUA_GCINC, options->garbage_percent, 0, 0);
    lua->running = lua->L;
    *(struct ml_server_lua **)lua_getextraspace(lua->L) = lua;
    lua_pushcfunction(lua->L, open_state);
    int r = binding_call(lua, 0, 0);
    ml_assert(r == 0);
    return lua;
}

void ml_server_lua_free(struct ml_server_lua *lua)
{
    if (!lua)
        return;
    if (lua->options.loop)
        ml_task_cancel(&lua->deferred);
    lua_close(lua->L);
    ml_tls_authority_free(lua->authority);
    binding_encoder_fini(&lua->encoder);
    ml_buf_fini(&lua->work);
    ml_buf_fini(&lua->traceback);
    free(lua);
}

struct call {
    const char *module;
    const char *function;
    struct ml_str argument;
    struct ml_buf *result; /* NULL: not wanted */
};

/* call -> nothing. Raises every failure. */
ML_RAISES static int run_module_call(lua_State *L)
{
    const struct call *call = lua_touserdata(L, 1);
    struct ml_err err = ML_ERR_INIT;
    lua_getglobal(L, "require");
    lua_pushstring(L, call->module);
    lua_call(L, 1, 1);
    lua_getfield(L, -1, call->function);
    if (call->argument.len == 0)
        lua_pushnil(L);
    else if (binding_decode_json(L, call->argument, false, &err) < 0)
        return luaL_error(L, "%s.%s: argument: %s", call->module, call->function, err.message);
    lua_call(L, 1, 1);
    if (!call->result || lua_isnil(L, -1))
        return 0;
    if (binding_encode_json(L, -1, &err) < 0)
        return luaL_error(L, "%s.%s: result: %s", call->module, call->function, err.message);
    ml_buf_append_str(call->result, ml_buf_str(&server_lua_of(L)->encoder.out));
    return 0;
}

int ml_server_lua_call(struct ml_server_lua *lua, const char *module, const char *function,
                       struct ml_str argument, struct ml_buf *result, struct ml_err *err)
{
    struct call call = {module, function, argument, result};
    lua_State *L = lua->running;
    lua_pushcfunction(L, run_module_call);
    lua_pushlightuserdata(L, &call);
    if (binding_call(lua, 1, 0) == 0)
        return 0;
    return binding_fail(lua, err);
}

struct defined {
    ml_server_lua_function *function;
    void *context;
};

/* [-0, +1] Makes the call; on failure nothing pushed and `err` filled. */
static int call_defined_function(lua_State *L, const struct defined *defined,
                                 struct ml_str argument, struct ml_err *err)
{
    struct ml_server_lua *lua = server_lua_of(L);
    lua_State *before = lua->running;
    struct ml_buf result;
    ml_buf_init(&result, BINDING_JSON_MAX);
    /* The function may run the event loop. Callbacks of the loop then run on the caller's own Lua
     * thread, because the main thread may be suspended in a resume. The calls nest. */
    bool room = lua_checkstack(L, LUA_MINSTACK); /* all entry points count on it */
    ml_assert(room);
    lua->running = L;
    int r = defined->function(defined->context, argument, &result, err);
    lua->running = before;
    if (r == 0 && result.len == 0)
        lua_pushboolean(L, 1);
    else if (r == 0)
        r = binding_decode_json(L, ml_buf_str(&result), false, err);
    ml_buf_fini(&result);
    return r;
}

/* fn(value?) -> value | nil, message */
ML_RAISES static int run_defined_function(lua_State *L)
{
    const struct defined *defined = lua_touserdata(L, lua_upvalueindex(1));
    struct ml_err err = ML_ERR_INIT;
    struct ml_str argument = {NULL, 0};
    lua_settop(L, 1);
    if (!lua_isnil(L, 1)) {
        if (binding_encode_json(L, 1, &err) < 0)
            return luaL_argerror(L, 1, err.message);
        const struct ml_buf *text = &server_lua_of(L)->encoder.out;
        argument.ptr = lua_pushlstring(L, text->ptr, text->len); /* others encode meanwhile */
        argument.len = text->len;
    }
    if (call_defined_function(L, defined, argument, &err) == 0)
        return 1;
    return binding_push_error(L, err.message);
}

void ml_server_lua_define(struct ml_server_lua *lua, const char *module, const char *name,
                          ml_server_lua_function *function, void *context)
{
    lua_State *L = lua->running;
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    luaL_getsubtable(L, -1, module);
    struct defined *defined = lua_newuserdatauv(L, sizeof *defined, 0);
    *defined = (struct defined){function, context};
    lua_pushcclosure(L, run_defined_function, 1);
    lua_setfield(L, -2, name);
    lua_pop(L, 2);
}
