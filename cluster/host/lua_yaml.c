/* host.yaml for the server's Lua: YAML by way of JSON, as kubectl and kube-apiserver read it
 * (codec/yaml.h). */
#include "cluster/host/server_lua_internal.h"
#include "codec/yaml.h"

#define JSON_MAX ((size_t)64 * 1024 * 1024) /* of what one call reads */

/* [+1] An empty array. */
static int push_list(lua_State *L, struct ml_err *err)
{
    return binding_decode_json(L, ML_STR("[]"), false, err);
}

/* [+1] The list of the documents, one a line of `lines`. */
static int decode_lines(lua_State *L, struct ml_str lines, struct ml_err *err)
{
    int r = push_list(L, err);
    int list = lua_gettop(L);
    for (lua_Integer count = 1; r == 0 && lines.len > 0; count++) {
        r = binding_decode_json(L, ml_str_cut(&lines, '\n'), false, err);
        if (r == 0)
            lua_rawseti(L, list, count);
    }
    return r;
}

/* decode(text) -> list of values | nil, message */
ML_RAISES static int yaml_decode(lua_State *L)
{
    struct ml_str text = binding_check_str(L, 1);
    struct ml_buf json;
    ml_buf_init(&json, JSON_MAX);
    struct ml_err err;
    int r = ml_yaml_to_json(text, JSON_MAX, &json, &err);
    if (r == 0)
        r = decode_lines(L, ml_buf_str(&json), &err);
    ml_buf_fini(&json);
    return r == 0 ? 1 : binding_push_error(L, err.message);
}

/* [+1] { line =, value = } or { line =, wrong = } for what the stream gave. */
static void push_document(lua_State *L, const struct ml_yaml_stream *stream, int result,
                          struct ml_str json, struct ml_err *err)
{
    lua_createtable(L, 0, 2);
    lua_pushinteger(L, (lua_Integer)stream->line);
    lua_setfield(L, -2, "line");
    bool good = result > 0 && binding_decode_json(L, json, false, err) == 0;
    if (!good)
        lua_pushstring(L, err->message);
    lua_setfield(L, -2, good ? "value" : "wrong");
}

/* documents(text) -> list of { line =, value = } and { line =, wrong = } */
ML_RAISES static int yaml_documents(lua_State *L)
{
    struct ml_str text = binding_check_str(L, 1);
    struct ml_yaml_stream stream;
    struct ml_buf json;
    struct ml_err err;
    ml_buf_init(&json, JSON_MAX);
    ml_yaml_stream_init(&stream, text);
    lua_newtable(L);
    for (lua_Integer count = 1;; count++) {
        int r = ml_yaml_stream_next(&stream, JSON_MAX, &json, &err);
        if (r == 0)
            break;
        push_document(L, &stream, r, ml_buf_str(&json), &err);
        lua_rawseti(L, -2, count);
        ml_buf_clear(&json);
    }
    ml_buf_fini(&json);
    return 1;
}

/* to_json(text, strict) -> json of the first document, duplicates | nil, message */
ML_RAISES static int yaml_to_json(lua_State *L)
{
    struct ml_str text = binding_check_str(L, 1);
    bool strict = lua_toboolean(L, 2);
    struct ml_buf json, duplicates = ML_BUF_INIT;
    struct ml_err err;
    ml_buf_init(&json, JSON_MAX);
    int r = ml_yaml_document(text, JSON_MAX, &json, strict ? &duplicates : NULL, &err);
    if (r == 0) {
        lua_pushlstring(L, json.ptr, json.len);
        lua_pushlstring(L, duplicates.len ? duplicates.ptr : "", duplicates.len);
    }
    ml_buf_fini(&json);
    ml_buf_fini(&duplicates);
    return r == 0 ? 2 : binding_push_error(L, err.message);
}

/* encode(value) -> text; raises for what JSON or YAML cannot hold */
ML_RAISES static int yaml_encode(lua_State *L)
{
    struct ml_server_lua *lua = server_lua_of(L);
    struct ml_err err;
    luaL_checkany(L, 1);
    ml_buf_clear(&lua->work);
    if (binding_encode_json(L, 1, &err) < 0 ||
        ml_yaml_write(ml_buf_str(&lua->encoder.out), ML_YAML_SENTENCES, NULL, &lua->work, &err) < 0)
        return luaL_error(L, "yaml.encode: %s", err.message);
    lua_pushlstring(L, lua->work.ptr, lua->work.len);
    return 1;
}

int binding_open_yaml(lua_State *L)
{
    static const luaL_Reg functions[] = {{"decode", yaml_decode},
                                         {"documents", yaml_documents},
                                         {"encode", yaml_encode},
                                         {"to_json", yaml_to_json},
                                         {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
