/* The environment of scripts, an allow-list: no io, os, debug, coroutine, load, print,
 * collectgarbage. Reading or setting a global that does not exist raises, so that a misspelt name
 * is found at once. Also loads a script into it. */
#include <lualib.h>

#include "codec/crypto.h"
#include "script/environment.h"
#include "script/objects.h"
#include "script/reads.h"

ML_RAISES static int base_tostring(lua_State *L)
{
    luaL_checkany(L, 1);
    script_tolstring(L, 1, NULL);
    return 1;
}

/* Passes on what must end the whole run: the deadline and the memory limit. */
ML_RAISES static int pcall_done(lua_State *L, int status, lua_KContext context ML_UNUSED)
{
    if (status == LUA_OK || status == LUA_YIELD)
        return lua_gettop(L);
    script_cpu_check(L);
    if (status == LUA_ERRMEM)
        return lua_error(L);
    lua_pushboolean(L, 0);
    lua_insert(L, -2);
    return 2;
}

ML_RAISES static int base_pcall(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_pushboolean(L, 1);
    lua_insert(L, 1);
    int status = lua_pcallk(L, lua_gettop(L) - 2, LUA_MULTRET, 0, 0, pcall_done);
    return pcall_done(L, status, 0);
}

/* Refuses __gc, as a finalizer would run outside any deadline (one that is added later has no
 * effect: Lua marks objects for finalization only here), and __mode, as the collector would change
 * a weak table while C reads it. false, which getmetatable gives for a protected metatable, is no
 * metatable, so that `setmetatable(copy, getmetatable(object))` makes the copy a plain table. */
ML_RAISES static int base_setmetatable(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    if (lua_isboolean(L, 2) && !lua_toboolean(L, 2)) {
        lua_pushnil(L);
        lua_replace(L, 2);
    }
    luaL_argexpected(L, lua_isnil(L, 2) || lua_istable(L, 2), 2, "nil or table");
    if (luaL_getmetafield(L, 1, "__metatable") != LUA_TNIL)
        return luaL_error(L, "setmetatable: the metatable of this table is protected");
    if (lua_istable(L, 2)) { /* Lua looks into a metatable without asking metamethods */
        lazy_complete(L, 2);
        if (script_push_field(L, 2, "__gc") != LUA_TNIL)
            return luaL_error(L, "setmetatable: __gc is not available");
        if (script_push_field(L, 2, "__mode") != LUA_TNIL)
            return luaL_error(L, "setmetatable: __mode is not available: no table is weak here");
    }
    lua_settop(L, 2);
    lua_setmetatable(L, 1);
    return 1;
}

ML_RAISES static int base_getmetatable(lua_State *L)
{
    luaL_checkany(L, 1);
    if (!lua_getmetatable(L, 1)) {
        lua_pushnil(L);
        return 1;
    }
    luaL_getmetafield(L, 1, "__metatable"); /* pushes nothing when there is none */
    return 1;
}

ML_RAISES static int base_rawget(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkany(L, 2);
    lua_settop(L, 2);
    lazy_complete(L, 1);
    lua_rawget(L, 1);
    return 1;
}

ML_RAISES static int base_rawset(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkany(L, 2);
    luaL_checkany(L, 3);
    lua_settop(L, 3);
    lazy_complete(L, 1);
    lua_rawset(L, 1);
    return 1;
}

ML_RAISES static int global_missing(lua_State *L)
{
    return luaL_error(L, "there is no variable '%s' here", script_tolstring(L, 2, NULL));
}

ML_RAISES static int global_set(lua_State *L)
{
    return luaL_error(L, "a script sets no globals: write 'local %s = …'",
                      script_tolstring(L, 2, NULL));
}

/* random(), random(m), random(m, n) by the host's generator, so that a seed replays a run. */
ML_RAISES static int math_random(lua_State *L)
{
    struct ml_random *random = &script_of(L)->random;
    lua_Integer low = 1, high;
    reads_give_up(script_reads_now(L), "it draws random numbers");
    if (lua_gettop(L) == 0) {
        lua_pushnumber(L, (double)(ml_random_u64(random) >> 11) * 0x1p-53);
        return 1;
    }
    if (lua_gettop(L) >= 2)
        low = luaL_checkinteger(L, 1);
    high = luaL_checkinteger(L, lua_gettop(L) >= 2 ? 2 : 1);
    luaL_argcheck(L, low <= high, lua_gettop(L) >= 2 ? 2 : 1, "interval is empty");
    uint64_t span = (uint64_t)high - (uint64_t)low, mask = span, draw;
    for (int shift = 1; shift < 64; shift *= 2)
        mask |= mask >> shift;
    do /* draws beyond the span are discarded: all numbers are equally likely */
        draw = ml_random_u64(random) & mask;
    while (draw > span);
    lua_pushinteger(L, (lua_Integer)((uint64_t)low + draw));
    return 1;
}

ML_RAISES static int open_math(lua_State *L)
{
    lua_pushcfunction(L, luaopen_math);
    lua_call(L, 0, 1);
    lua_pushnil(L);
    lua_setfield(L, -2, "randomseed");
    lua_pushcfunction(L, math_random);
    lua_setfield(L, -2, "random");
    return 1;
}

/* [-0, +0] Copies the harmless functions of the stock base library, which luaopen_base puts into
 * the state's own globals. */
ML_RAISES static void open_base(lua_State *L, int environment)
{
    static const char *const stock[] = {"assert", "error",    "ipairs", "rawequal", "rawlen",
                                        "select", "tonumber", "type",   "_VERSION", NULL};
    static const luaL_Reg own[] = {
        {"getmetatable", base_getmetatable},
        {"next", script_next},
        {"pairs", script_pairs},
        {"pcall", base_pcall},
        {"rawget", base_rawget},
        {"rawset", base_rawset},
        {"require", script_require},
        {"setmetatable", base_setmetatable},
        {"tostring", base_tostring},
        {NULL, NULL},
    };
    lua_pushcfunction(L, luaopen_base);
    lua_call(L, 0, 1);
    script_move_fields(L, environment, stock);
    lua_pushvalue(L, environment);
    luaL_setfuncs(L, own, 0);
    lua_pop(L, 1);
}

/* [-0, +1] A new environment with its own library tables, so that a script's changes to its tables
 * do not reach the embedded library. */
ML_RAISES static void push_environment(lua_State *L)
{
    static const luaL_Reg libraries[] = {{"math", open_math},
                                         {"string", script_open_string},
                                         {"table", script_open_table},
                                         {"utf8", luaopen_utf8},
                                         {NULL, NULL}};
    lua_newtable(L);
    int environment = lua_gettop(L);
    open_base(L, environment);
    for (const luaL_Reg *library = libraries; library->name; library++) {
        lua_pushcfunction(L, library->func);
        lua_call(L, 0, 1);
        lua_setfield(L, environment, library->name);
    }
    static const luaL_Reg guards[] = {
        {"__index", global_missing}, {"__newindex", global_set}, {NULL, NULL}};
    luaL_newlib(L, guards);
    script_hide_metatable(L);
    lua_setmetatable(L, environment);
}

ML_RAISES static void open_sandbox(lua_State *L)
{
    key_order_open(L);
    lazy_open(L);
    script_numbers_open(L);
    push_environment(L); /* the library's, whose modules require each other there */
    lua_pushcfunction(L, script_library_require);
    lua_setfield(L, -2, "require");
    push_environment(L); /* the script's */
    script_open_string_methods(L);
    lua_rawseti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS); /* what chunks get as _ENV */
    script_push_host(L);
    script_open_library(L);
}

/* ---- loading ---- */

/* Runs in script_protect: opens the sandbox and runs the file. */
ML_RAISES static int load_main(lua_State *L)
{
    const struct ml_script_file *file = lua_touserdata(L, 1);
    open_sandbox(L);
#ifdef MOONLOOP_GC_STRESS
    script_of(L)->stress.on = true;
#endif
    script_load_file(L, file);
    if (script_is_controller(L, -1)) {
        script_declare(L, lua_gettop(L));
        script_find_outliving_state(
            L); /* with wakes = "all" as well, so that both modes run alike */
        return 0;
    }
    if (!lua_istable(L, -1))
        return luaL_error(L,
                          "%s:1: the file returns %s%s; a script returns "
                          "moonloop.controller{ … }, a module a table",
                          script_of(L)->declaration.file, lua_isnil(L, -1) ? "" : "a ",
                          lua_isnil(L, -1) ? "nothing" : luaL_typename(L, -1));
    return 0;
}

/* The line of the last call of moonloop.controller, or 1. `return f{…}` is a tail call, so Lua does
 * not know the line of the caller when f raises. */
static int controller_line(struct ml_str text)
{
    int found = 1, line = 1;
    for (struct ml_str rest = text; rest.ptr; line++) {
        struct ml_str one = ml_str_cut(&rest, '\n');
        if (one.len > 0 && memmem(one.ptr, one.len, ".controller", strlen(".controller")))
            found = line;
    }
    return found;
}

static void add_file_place(const struct ml_script_file *file, struct ml_err *err)
{
    if (script_has_place(err->message))
        return;
    bool is_declaration = strncmp(err->message, "moonloop.controller", 19) == 0;
    ml_err_wrap(err, ML_STR_FMT ":%d", ML_STR_ARG(file->name),
                is_declaration ? controller_line(file->text) : 1);
}

static int compare_files(const void *a, const void *b)
{
    return ml_str_cmp((*(const struct ml_script_file *const *)a)->name,
                      (*(const struct ml_script_file *const *)b)->name);
}

/* Names the revision by the files that were loaded. */
static void name_revision(struct ml_script *script, const struct ml_script_files *files)
{
    ML_AUTO_FREE const struct ml_script_file **loaded = ml_zalloc(files->count * sizeof *loaded);
    ML_AUTO(ml_buf_fini) struct ml_buf texts = ML_BUF_INIT;
    unsigned char digest[ML_SHA256_LEN];
    size_t count = 0;
    for (size_t i = 0; i < files->count; i++)
        if (ml_script_loaded_file(script, files->files[i].name))
            loaded[count++] = &files->files[i];
    qsort(loaded, count, sizeof(const struct ml_script_file *), compare_files);
    for (size_t i = 0; i < count; i++) {
        ml_buf_append_str(&texts, loaded[i]->name);
        ml_buf_append(&texts, "", 1);
        ml_buf_append_str(&texts, loaded[i]->text);
        ml_buf_append(&texts, "", 1);
    }
    ml_sha256(ml_buf_str(&texts), digest);
    for (size_t i = 0; i < ML_REVISION_LEN / 2; i++)
        snprintf(script->declaration.revision + 2 * i, 3, "%02x", digest[i]);
}

int ml_script_load(struct ml_services *services, const struct ml_script_limits *limits,
                   const struct ml_script_files *files, size_t entry, struct ml_script **out,
                   struct ml_err *err)
{
    ml_assert(entry < files->count);
    const struct ml_script_file *file = &files->files[entry];
    struct ml_script *script = script_new(services, limits);
    script->files = files;
    script->declaration.file = ml_str_dup(file->name);
    int r;
    if (script->L)
        r = script_protect(script, load_main, (void *)file, script->limits.load_cpu_ns, err);
    else
        r = ml_err_set(err, ML_ESCRIPT, "the memory limit is too small for any script");
    script->files = NULL;
    script->binding.cpu_account = script->limits.load_account = NULL;
    if (r < 0) {
        add_file_place(file, err);
        script_free(script);
        return r;
    }
    name_revision(script, files);
    *out = script;
    return 0;
}
