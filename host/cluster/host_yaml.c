/* host.yaml: YAML by way of JSON (codec/yaml.h). */
#include "codec/yaml.h"
#include "cluster/host.h"

#define YAML_JSON_MAX ((size_t)64 * 1024 * 1024)

/* [+1] The list of the documents, each of which ends a line of `lines`. */
static int decode_lines(lua_State *L, struct ml_str lines, struct ml_err *err)
{
    int list = lua_gettop(L) + 1;
    lua_newtable(L);
    host_mark_array(L, list);
    for (lua_Integer count = 1; lines.len > 0; count++) {
        struct ml_str line = ml_str_cut(&lines, '\n');
        int r = host_decode(L, line, false, err);
        if (r < 0)
            return r;
        lua_rawseti(L, list, count);
    }
    return 0;
}

/* decode(text) -> list of values | nil, message */
ML_RAISES
static int yaml_decode(lua_State *L)
{
    struct ml_str text;
    text.ptr = luaL_checklstring(L, 1, &text.len);
    struct ml_buf json;
    ml_buf_init(&json, YAML_JSON_MAX);
    struct ml_err err;
    int r = ml_yaml_to_json(text, YAML_JSON_MAX, &json, &err);
    if (r == 0)
        r = decode_lines(L, ml_buf_str(&json), &err);
    ml_buf_fini(&json);
    if (r == 0)
        return 1;
    lua_pushnil(L);
    lua_pushstring(L, err.message);
    return 2;
}

int host_open_yaml(lua_State *L)
{
    static const luaL_Reg functions[] = {{"decode", yaml_decode}, {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
