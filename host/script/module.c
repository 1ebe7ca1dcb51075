/* require: modules of the embedded library, and the files that came with the script; and names that
 * a script uses and that do not exist. A file is source text, runs once per state, and can be
 * required only while the script loads: all code of a script is known before it first runs.
 *
 * The library runs in an environment of its own: what each script needs, before any file of it; the
 * other modules when they are required, so that only scripts that use them pay. require gives
 * a script copies of the library's tables, so a script cannot replace a function that the library
 * calls. */
#include <ctype.h>
#include <moonloop_lua.h>

#include "script/environment.h"
#include "script/library.h"
#include "script/objects.h"

#define SOURCE_PIECE 128  /* bytes that the compiler gets at a time */
#define SHOWN_MAX    64   /* bytes of a local variable that is suggested */
#define LOCALS_MAX   8192 /* bytes of all their names; the rest is not suggested */

/* Registry keys of tables from module names to values. In `loaded`, which is the script's, false
 * means that the file is being loaded. */
static const char loaded_key, library_key, environment_key, host_key;

/* ---- the embedded library ---- */

/* [-0, +1] The table in the registry under `key`, made on first use. */
ML_RAISES static void push_registered(lua_State *L, const char *key)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, key) == LUA_TTABLE)
        return;
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

/* The module of the embedded library, or NULL. */
static const struct script_library *find_embedded(const char *name)
{
    for (const struct script_library *module = script_library; module->name; module++)
        if (strcmp(module->name, name) == 0)
            return module;
    return NULL;
}

/* [-0, +1] Runs a module of the library in the library's environment. */
ML_RAISES static void run_library_module(lua_State *L, const struct script_library *module)
{
    lua_pushfstring(L, "@%s", module->file);
    if (luaL_loadbufferx(L, (const char *)module->code, (size_t)(module->end - module->code),
                         lua_tostring(L, -1), "b") != LUA_OK)
        lua_error(L);
    lua_remove(L, -2);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &environment_key);
    lua_setupvalue(L, -2, 1);
    lua_pushstring(L, module->name);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &host_key);
    lua_call(L, 2, 1);
}

ML_RAISES void script_push_library(lua_State *L, const char *name)
{
    push_registered(L, &library_key);
    if (lua_getfield(L, -1, name) == LUA_TNIL) {
        const struct script_library *module = find_embedded(name);
        if (!module)
            luaL_error(L, "the library has no module %s for scripts", name);
        lua_pop(L, 1);
        run_library_module(L, module);
        lua_pushvalue(L, -1);
        lua_setfield(L, -3, name);
    }
    lua_remove(L, -2);
}

ML_RAISES void script_open_library(lua_State *L)
{
    lua_rawsetp(L, LUA_REGISTRYINDEX, &host_key);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &environment_key);
    script_push_library(L, "moonloop");
    script_push_library(L, "moonloop.result");
    lua_pop(L, 2);
}

/* host.require, by which modules of the library require each other. */
ML_RAISES int script_library_require(lua_State *L)
{
    script_push_library(L, luaL_checkstring(L, 1));
    return 1;
}

/* ---- functions and fields that do not exist ----
 *
 * Functions of ctx and of the library, fields of a kind or an error, options of ctx.list.
 * moonloop/fields.lua has the names that there are, moonloop/names.lua says which one was probably
 * meant. */

/* [-0, +1] A list of moonloop/fields.lua: names with spaces between them. NULL: there is none. */
ML_RAISES static const char *push_known(lua_State *L, const char *list)
{
    script_push_library(L, "moonloop.fields");
    lua_getfield(L, -1, list);
    lua_remove(L, -2);
    return lua_tostring(L, -1);
}

/* [-0, +1] The message of a function of moonloop/names.lua for (what, the value at `key`, known
 * names). */
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

/* ---- variables that do not exist ----
 *
 * Misspelt, a forgotten `local`, or a function of Lua that scripts lack. A file with one is refused
 * before it runs, even where the code is never called.
 *
 * Another way to a name of the environment (_ENV[name], a table of one's own called _ENV) is an
 * error when it runs: sandbox.c. */

struct globals_check {
    lua_State *L;
    int environment; /* stack slot */
    const char *file;
    size_t len; /* of the names below */
    char locals[LOCALS_MAX];
};

/* For names.lua: one string with spaces between the names. Names in parentheses are Lua's own. */
static void add_local(void *context, const char *name)
{
    struct globals_check *check = context;
    size_t len = strlen(name);
    if (len > SHOWN_MAX || !(isalpha((unsigned char)name[0]) || name[0] == '_') ||
        check->len + len + 2 > sizeof(check->locals))
        return;
    memcpy(check->locals + check->len, name, len);
    check->locals[check->len + len] = ' ';
    check->len += len + 1;
}

/* Raises "cnat.lua:12: there is no variable 'nmes' here; did you mean 'names'?" */
ML_RAISES static void refuse_name(struct globals_check *check, const struct moonloop_lua_use *use)
{
    lua_State *L = check->L;
    moonloop_lua_locals(use, add_local, check);
    script_push_library(L, "moonloop.globals");
    lua_getfield(L, -1, use->is_write ? "written" : "missing");
    lua_pushlstring(L, use->name, use->len);
    lua_pushlstring(L, check->locals, check->len);
    lua_call(L, 2, 1);
    lua_pushfstring(L, "%s:%d: %s", check->file, use->line, lua_tostring(L, -1));
    lua_error(L);
}

ML_RAISES static void check_use(void *context, const struct moonloop_lua_use *use)
{
    struct globals_check *check = context;
    lua_State *L = check->L;
    script_cpu_check(L);
    lua_pushlstring(L, use->name, use->len);
    if (lua_rawget(L, check->environment) == LUA_TNIL)
        refuse_name(check, use);
    lua_pop(L, 1);
}

/* Raises when code of the chunk on top uses a name that the environment does not have. `file`: its
 * name. */
ML_RAISES static void check_globals(lua_State *L, const char *file)
{
    struct globals_check check = {.L = L, .file = file};
    int chunk = lua_gettop(L);
    luaL_checkstack(L, 8, NULL);
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
    check.environment = lua_gettop(L);
    moonloop_lua_globals(L, chunk, check_use, &check);
    lua_settop(L, chunk);
}

static void note_line_that_can_run(void *context, int line)
{
    const struct globals_check *check = context;
    struct ml_coverage *coverage = script_of(check->L)->services->coverage;
    coverage->can_run(coverage, check->file, line);
}

/* Of the chunk on top. */
static void note_lines_that_can_run(lua_State *L, const char *file)
{
    const struct ml_services *services = script_of(L)->services;
    struct globals_check check = {.L = L, .file = file};
    if (services && services->coverage)
        moonloop_lua_lines(L, -1, note_line_that_can_run, &check);
}

/* ---- require ---- */

static bool is_module_name(struct ml_str name)
{
    return name.len > 0 && name.len <= 200 && name.ptr[0] != '.' && !strstr(name.ptr, "..") &&
           strspn(name.ptr, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") ==
               name.len;
}

/* lua_Reader. Gives the compiler small pieces and checks the deadline before each: the compiler
 * itself checks nothing, and for a few bytes it may do work as long as all text before them. */
ML_RAISES static const char *read_source_piece(lua_State *L, void *data, size_t *out_size)
{
    struct ml_str *rest = data;
    const char *piece = rest->ptr;
    script_cpu_check(L);
    *out_size = ML_MIN(rest->len, (size_t)SOURCE_PIECE);
    *rest = (struct ml_str){rest->ptr + *out_size, rest->len - *out_size};
    return *out_size > 0 ? piece : NULL;
}

/* [-0, +1] Compiles the text. */
ML_RAISES static void push_chunk(lua_State *L, const char *chunk_name, struct ml_str text)
{
    if (lua_load(L, read_source_piece, &text, chunk_name, "t") != LUA_OK)
        lua_error(L);
}

ML_RAISES void script_load_file(lua_State *L, const struct ml_script_file *file)
{
    struct ml_script *script = script_of(L);
    lua_pushlstring(L, file->name.ptr, file->name.len);
    const char *name = lua_tostring(L, -1);
    if (file->text.len > ML_SCRIPT_SOURCE_MAX)
        luaL_error(L, "%s:1: larger than 1 MiB", name);
    if (file->text.len > 0 && file->text.ptr[0] == LUA_SIGNATURE[0])
        luaL_error(L, "%s:1: this is bytecode; a script is source text", name);
    size_t size = (script->loaded_count + 1) * sizeof(*script->loaded);
    script->loaded = ml_realloc(script->loaded, size);
    script->loaded[script->loaded_count++] = ml_str_dup(file->name);
    if (file->text.len > 0 && memmem(file->text.ptr, file->text.len, "patch", strlen("patch")))
        script->calls_patch = true;
    lua_pushfstring(L, "@%s", name);
    push_chunk(L, lua_tostring(L, -1), file->text);
    check_globals(L, name);
    note_lines_that_can_run(L, name);
    lua_pushvalue(L, -3);
    lua_call(L, 1, 1);
    lua_replace(L, -3);
    lua_pop(L, 1);
}

ML_RAISES static int cjson_encode(lua_State *L)
{
    luaL_checkany(L, 1);
    struct ml_buf *out = &script_of(L)->outgoing;
    script_encode(L, 1, "", out);
    lua_pushlstring(L, out->ptr, out->len);
    return 1;
}

ML_RAISES static int cjson_decode(lua_State *L)
{
    script_push_json(L, script_check_str(L, 1), ROOT_PLAIN);
    return 1;
}

ML_RAISES static void push_cjson(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"encode", cjson_encode}, {"decode", cjson_decode}, {NULL, NULL}};
    static const char *const shared[] = {"array", "null", NULL};
    luaL_newlib(L, functions);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &host_key);
    script_move_fields(L, -2, shared);
}

/* [-0, +1] A script's own copy of a module of the library. False, and nothing pushed: there is
 * none. */
ML_RAISES static bool push_embedded(lua_State *L, const char *name)
{
    if (strcmp(name, "cjson") == 0) {
        push_cjson(L);
        return true;
    }
    if (!find_embedded(name))
        return false;
    script_push_library(L, name);
    script_push_copy(L, -1, SCRIPT_COPY_MAX);
    lua_remove(L, -2);
    script_guard_fields(L, name);
    return true;
}

/* [-0, +1] */
ML_RAISES static void load_from_set(lua_State *L, const char *name)
{
    const struct ml_script_files *set = script_of(L)->files;
    lua_pushfstring(L, "%s.lua", name);
    struct ml_str file_name = ml_str_of(lua_tostring(L, -1));
    for (size_t i = 0; i < set->count; i++) {
        if (!ml_str_eq(set->files[i].name, file_name))
            continue;
        script_load_file(L, &set->files[i]);
        lua_remove(L, -2);
        return;
    }
    luaL_error(L, "require '%s': there is no %s next to this script", name, file_name.ptr);
}

ML_RAISES void script_push_loaded(lua_State *L)
{
    push_registered(L, &loaded_key);
}

ML_RAISES static void require_name(lua_State *L, const char *name)
{
    push_registered(L, &loaded_key);
    int loaded = lua_gettop(L);
    lua_getfield(L, loaded, name);
    if (lua_isboolean(L, -1) && !lua_toboolean(L, -1))
        luaL_error(L, "require '%s': the file requires itself, by way of others or directly", name);
    if (!lua_isnil(L, -1)) {
        lua_remove(L, loaded);
        return;
    }
    lua_pop(L, 1);
    if (!push_embedded(L, name)) {
        if (!script_of(L)->files)
            luaL_error(L,
                       "require '%s': only while the script loads; put it at the top of the file",
                       name);
        lua_pushboolean(L, 0);
        lua_setfield(L, loaded, name);
        load_from_set(L, name);
    }
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        lua_pushboolean(L, 1);
    }
    lua_pushvalue(L, -1);
    lua_setfield(L, loaded, name);
    lua_remove(L, loaded);
}

ML_RAISES int script_require(lua_State *L)
{
    struct ml_str name = script_check_str(L, 1);
    if (!is_module_name(name))
        return luaL_error(L, "require: a module's name has letters, digits, '_', '-' and single "
                             "dots; it is no path");
    require_name(L, name.ptr);
    return 1;
}
