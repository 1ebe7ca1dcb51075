/* Compiles the Lua files that cmake/embed.cmake puts into the binary: `compile ROOT OUTPUT FILE…`
 * reads ROOT/FILE, and writes OUTPUT/FILE, whose folder exists. Only the Lua that this program is
 * linked with can load the output. */
#include <lauxlib.h>
#include <lua.h>
#include <stdio.h>
#include <stdlib.h>

static int write_piece(lua_State *L, const void *bytes, size_t len, void *file)
{
    (void)L;
    return fwrite(bytes, 1, len, file) != len;
}

/* Keeps the line numbers, which messages name. */
static int compile_file(lua_State *L, const char *root, const char *output, const char *name)
{
    const char *from = lua_pushfstring(L, "%s/%s", root, name);
    const char *to = lua_pushfstring(L, "%s/%s", output, name);
    luaL_Buffer text;
    char piece[4096];
    size_t len;
    FILE *in = fopen(from, "r");
    if (!in) {
        perror(from);
        return 1;
    }
    luaL_buffinit(L, &text);
    while ((len = fread(piece, 1, sizeof piece, in)) > 0)
        luaL_addlstring(&text, piece, len);
    fclose(in);
    luaL_pushresult(&text);
    const char *source = lua_tolstring(L, -1, &len);
    if (luaL_loadbufferx(L, source, len, lua_pushfstring(L, "@%s", name), "t") != LUA_OK) {
        fprintf(stderr, "%s\n", lua_tostring(L, -1));
        return 1;
    }
    FILE *out = fopen(to, "w");
    if (!out || lua_dump(L, write_piece, out, 0) != 0 || fclose(out) != 0) {
        perror(to);
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    lua_State *L = luaL_newstate();
    int failed = argc < 3;
    lua_gc(L, LUA_GCSTOP);
    for (int i = 3; i < argc && !failed; i++) {
        failed = compile_file(L, argv[1], argv[2], argv[i]);
        lua_settop(L, 0);
    }
    lua_close(L);
    return failed;
}
