/* The state of the host's own Lua: how it is opened, how it finds modules, and how a chunk is run.
 */
#include "cluster/trusted.h"

#include <lualib.h>
#include <stdio.h>

#include "cluster/host.h"
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

/* lua/cluster/ and lua/moonloop/, together. What tests of scripts require stands in the former by
 * the name that scripts know. */
static const struct script_library *find_embedded(const char *name)
{
    static const struct script_library *const libraries[] = {cluster_library, script_library};
    if (strcmp(name, "moonloop.testing") == 0)
        name = "cluster.testing";
    for (size_t i = 0; i < ML_COUNT(libraries); i++)
        for (const struct script_library *module = libraries[i]; module->name; module++)
            if (strcmp(module->name, name) == 0)
                return module;
    return NULL;
}

/* The searcher of embedded modules: a loader and the file's name, or why there is none. */
ML_RAISES
static int search_embedded(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    const struct script_library *module = find_embedded(name);
    if (!module) {
        lua_pushfstring(L, "no embedded module '%s'", name);
        return 1;
    }
    lua_pushfstring(L, "@%s", module->file);
    if (luaL_loadbufferx(L, (const char *)module->text, (size_t)(module->end - module->text),
                         lua_tostring(L, -1), "t") != LUA_OK)
        return lua_error(L);
    lua_pushstring(L, module->file);
    return 2;
}

/* Puts it in front of the searcher of files (the second, behind package.preload) or behind. */
static void add_searcher(lua_State *L, bool files_first)
{
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "searchers");
    lua_Integer place = files_first ? (lua_Integer)lua_rawlen(L, -1) + 1 : 2;
    for (lua_Integer i = (lua_Integer)lua_rawlen(L, -1); i >= place; i--) {
        lua_rawgeti(L, -1, i);
        lua_rawseti(L, -2, i + 1);
    }
    lua_pushcfunction(L, search_embedded);
    lua_rawseti(L, -2, place);
    lua_pop(L, 2);
}

ML_RAISES
static int open_host(lua_State *L)
{
    lua_newtable(L);
    host_open_json(L);
    lua_setfield(L, -2, "json");
    host_open_yaml(L);
    lua_setfield(L, -2, "yaml");
    host_open_regex(L);
    lua_setfield(L, -2, "regex");
    host_open_file(L);
    lua_setfield(L, -2, "file");
    host_add_misc(L);
    host_add_timers(L);
    return 1;
}

ML_RAISES
static int open_state(lua_State *L)
{
    luaL_openlibs(L);
    add_searcher(L, host_of(L)->options.files_first);
    luaL_requiref(L, "cluster.host", open_host, 0);
    return 0;
}

struct ml_trusted *ml_trusted_new(const struct ml_trusted_options *options)
{
    struct ml_trusted *trusted = ml_new(struct ml_trusted);
    trusted->options = *options;
    if (!options->clock)
        trusted->options.clock = ml_clock_real();
    if (!options->random) {
        ml_random_init_real(&trusted->random);
        trusted->options.random = &trusted->random;
    }
    ml_buf_init(&trusted->traceback, 0);
    ml_buf_init(&trusted->work, HOST_JSON_MAX);
    ml_buf_init(&trusted->encoder.out, HOST_JSON_MAX);
    trusted->L = lua_newstate(allocate, NULL);
    ml_assert(trusted->L != NULL);
    if (options->garbage_percent)
        lua_gc(trusted->L, LUA_GCINC, options->garbage_percent, 0, 0);
    trusted->running = trusted->L;
    *(struct ml_trusted **)lua_getextraspace(trusted->L) = trusted;
    lua_pushcfunction(trusted->L, open_state);
    int r = host_call(trusted, 0, 0);
    ml_assert(r == 0);
    return trusted;
}

void ml_trusted_free(struct ml_trusted *trusted)
{
    if (!trusted)
        return;
    if (trusted->options.loop)
        ml_task_cancel(&trusted->deferred);
    lua_close(trusted->L);
    host_regex_fini(trusted);
    host_encoder_fini(&trusted->encoder);
    ml_buf_fini(&trusted->work);
    ml_buf_fini(&trusted->traceback);
    free(trusted);
}

/* [-1, +0] The message of a chunk that does not compile. */
static int fail_to_compile(struct ml_trusted *trusted, struct ml_err *err)
{
    ml_buf_clear(&trusted->traceback);
    ml_buf_puts(&trusted->traceback, lua_tostring(trusted->running, -1));
    lua_pop(trusted->running, 1);
    return host_fail(trusted, err);
}

int ml_trusted_run(struct ml_trusted *trusted, const char *chunk, struct ml_str text,
                   struct ml_err *err)
{
    lua_State *L = trusted->running;
    lua_pushfstring(L, "@%s", chunk);
    int status = luaL_loadbufferx(L, text.ptr, text.len, lua_tostring(L, -1), "t");
    lua_remove(L, -2);
    if (status != LUA_OK)
        return fail_to_compile(trusted, err);
    return host_call(trusted, 0, 0) < 0 ? host_fail(trusted, err) : 0;
}

/* The words of the command line as the global `arg`, the script's at 0. */
static void set_arg(lua_State *L, int argc, char **argv, int script)
{
    lua_createtable(L, argc - script, script + 1);
    for (int i = 0; i < argc; i++) {
        lua_pushstring(L, argv[i]);
        lua_rawseti(L, -2, i - script);
    }
    lua_setglobal(L, "arg");
}

int ml_trusted_run_file(struct ml_trusted *trusted, int argc, char **argv, int script,
                        struct ml_err *err)
{
    lua_State *L = trusted->running;
    set_arg(L, argc, argv, script);
    if (luaL_loadfilex(L, argv[script], "t") != LUA_OK)
        return fail_to_compile(trusted, err);
    for (int i = script + 1; i < argc; i++)
        lua_pushstring(L, argv[i]);
    return host_call(trusted, argc - script - 1, 0) < 0 ? host_fail(trusted, err) : 0;
}
