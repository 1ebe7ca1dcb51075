/* Names in the text of a script that are no variables: misspelt, a forgotten `local`, or a function
 * of Lua that scripts do not have. A file with one is refused before it runs, whether the code is
 * ever called or not. Called by module.c for each file of a script.
 *
 * What a name of the environment is reached by otherwise (_ENV[name], a table of one's own called
 * _ENV) is an error when it runs: sandbox.c. */
#include <ctype.h>
#include <moonloop_lua.h>

#include "script/internal.h"

#define SHOWN_MAX 64 /* bytes of a local variable that is suggested */
#define LOCALS_MAX                                                                                 \
    ((size_t)8 * 1024) /* bytes of all their names; further ones are not suggested                 \
                        */

struct check {
    lua_State *L;
    int environment; /* stack slot */
    const char *file;
    size_t len; /* of the names below */
    char locals[LOCALS_MAX];
};

/* For names.lua: one string with spaces between the names. Those in parentheses are Lua's own. */
static void add_local(void *context, const char *name)
{
    struct check *check = context;
    size_t len = strlen(name);
    if (len > SHOWN_MAX || !(isalpha((unsigned char)name[0]) || name[0] == '_') ||
        check->len + len + 2 > sizeof(check->locals))
        return;
    memcpy(check->locals + check->len, name, len);
    check->locals[check->len + len] = ' ';
    check->len += len + 1;
}

/* Raises "cnat.lua:12: there is no variable 'nmes' here; did you mean 'names'?" */
ML_RAISES static void refuse_name(struct check *check, const struct moonloop_lua_use *use)
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
    struct check *check = context;
    lua_State *L = check->L;
    script_cpu_check(L);
    lua_pushlstring(L, use->name, use->len);
    if (lua_rawget(L, check->environment) == LUA_TNIL)
        refuse_name(check, use);
    lua_pop(L, 1);
}

ML_RAISES void script_check_globals(lua_State *L, const char *file)
{
    struct check check = {.L = L, .file = file};
    int chunk = lua_gettop(L);
    luaL_checkstack(L, 8, NULL);
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
    check.environment = lua_gettop(L);
    moonloop_lua_globals(L, chunk, check_use, &check);
    lua_settop(L, chunk);
}
