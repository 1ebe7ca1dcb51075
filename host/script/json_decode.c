/* JSON to Lua: how API objects, answers and cjson.decode become tables; objects of the API server
 * only as far as a script touches them (lazy.c). Integers stay integers,
 * objects keep their key order (shape.c), arrays are marked, null is moonloop.null, and a number
 * that fits neither an integer nor a float is kept as its text. */
#include "script/reads.h"

#define CHECKED_AT_ONCE ((size_t)256 * 1024) /* bytes; the deadline is not looked at meanwhile */

static const char numbers_key, null_address;

/* Metamethods of the numbers that are kept as text. A script cannot make one. */
ML_RAISES static int number_tostring(lua_State *L)
{
    struct ml_str text;
    if (!script_number_text(L, 1, &text))
        return luaL_error(L, "not a number kept as text");
    lua_pushlstring(L, text.ptr, text.len);
    return 1;
}

ML_RAISES static int number_equal(lua_State *L)
{
    struct ml_str a, b;
    lua_pushboolean(L, script_number_text(L, 1, &a) && script_number_text(L, 2, &b) &&
                           ml_str_eq(a, b));
    return 1;
}

ML_RAISES void script_numbers_open(lua_State *L)
{
    static const luaL_Reg metamethods[] = {
        {"__tostring", number_tostring}, {"__eq", number_equal}, {NULL, NULL}};
    luaL_newlib(L, metamethods);
    script_register_metatable(L, &numbers_key);
}

bool script_number_text(lua_State *L, int index, struct ml_str *out)
{
    const char *text = script_to_userdata(L, index, &numbers_key);
    if (text)
        *out = (struct ml_str){text, lua_rawlen(L, index)};
    return text != NULL;
}

ML_RAISES void script_push_null(lua_State *L)
{
    lua_pushlightuserdata(L, (void *)&null_address);
}

bool script_is_null(lua_State *L, int index)
{
    return lua_islightuserdata(L, index) && lua_touserdata(L, index) == &null_address;
}

enum shape_root script_root_below(enum shape_root root, struct ml_str key)
{
    return root == SHAPE_OBJECT && ml_str_is(key, "metadata") ? SHAPE_METADATA : SHAPE_PLAIN;
}

/* The members of an object that is decoded at once. What a script reads of it is not noticed any
 * more, so all of it counts as read. */
ML_RAISES static void decode_members(const struct script_decoder *decoder, enum shape_root root,
                                     read_node place)
{
    lua_State *L = decoder->L;
    struct ml_json_reader *reader = decoder->reader;
    int object = lua_gettop(L);
    int node = object + 1;
    shape_begin(L, root);
    reads_keys(decoder->reads, place);
    size_t count = 0;
    while (ml_json_next(reader) == ML_JSON_KEY) {
        if (root == SHAPE_METADATA && ml_str_is(reader->text, "managedFields")) {
            ml_json_skip(reader);
            continue;
        }
        enum shape_root below = script_root_below(root, reader->text);
        lua_pushlstring(L, reader->text.ptr, reader->text.len);
        lua_pushvalue(L, -1);
        bool is_new = lua_rawget(L, object) == LUA_TNIL;
        lua_pop(L, 1);
        if (is_new) { /* the last of duplicate keys wins */
            lua_pushvalue(L, -1);
            shape_step(L, node, count++);
            lua_pop(L, 1);
        }
        ml_json_next(reader);
        script_decode_member(decoder, below, place, script_str(L, -1));
        lua_rawset(L, object);
    }
    shape_end(L, object, root);
}

ML_RAISES static void decode_elements(const struct script_decoder *decoder, enum shape_root root,
                                      read_node place)
{
    lua_State *L = decoder->L;
    struct ml_json_reader *reader = decoder->reader;
    read_node element = reads_element(decoder->reads, place);
    lua_Integer count = 0;
    while (ml_json_next(reader) != ML_JSON_ARRAY_END && reader->token != ML_JSON_ERROR) {
        script_decode_value(decoder, root == SHAPE_ITEMS ? SHAPE_OBJECT : SHAPE_PLAIN, element);
        lua_rawseti(L, -2, ++count);
    }
    shape_mark_array(L, -1);
}

ML_RAISES void script_decode_value(const struct script_decoder *decoder, enum shape_root root,
                                   read_node place)
{
    lua_State *L = decoder->L;
    struct ml_json_reader *reader = decoder->reader;
    script_cpu_check(L);
    luaL_checkstack(L, 10, "JSON is nested too deep");
    switch (reader->token) {
    case ML_JSON_OBJECT:
        if (decoder->source && lazy_push_table(decoder, root, place))
            break;
        lua_newtable(L);
        decode_members(decoder, root, place);
        break;
    case ML_JSON_ARRAY:
        lua_newtable(L);
        decode_elements(decoder, root, place);
        break;
    case ML_JSON_STRING:
        lua_pushlstring(L, reader->text.ptr, reader->text.len);
        break;
    case ML_JSON_INT:
        lua_pushinteger(L, reader->integer);
        break;
    case ML_JSON_REAL:
        lua_pushnumber(L, reader->real);
        break;
    case ML_JSON_NUMBER:
        memcpy(script_push_userdata(L, reader->text.len, &numbers_key), reader->text.ptr,
               reader->text.len);
        break;
    case ML_JSON_TRUE:
    case ML_JSON_FALSE:
        lua_pushboolean(L, reader->token == ML_JSON_TRUE);
        break;
    case ML_JSON_NULL:
        script_push_null(L);
        break;
    case ML_JSON_END:
    case ML_JSON_ERROR:
    case ML_JSON_KEY:
    case ML_JSON_OBJECT_END:
    case ML_JSON_ARRAY_END:
        lua_pushnil(L); /* invalid JSON: script_push_json raises the reader's error */
        break;
    }
}

ML_RAISES void script_decode_member(const struct script_decoder *decoder, enum shape_root root,
                                    read_node parent, struct ml_str name)
{
    enum ml_json_token token = decoder->reader->token;
    read_node place = 0;
    if (token == ML_JSON_OBJECT || token == ML_JSON_ARRAY)
        place = reads_field(decoder->reads, parent, name);
    script_decode_value(decoder, root, place);
}

ML_RAISES void script_push_json(lua_State *L, struct ml_str json, enum shape_root root)
{
    /* The reader belongs to the script, so that a Lua error cannot leak it: the next call frees it.
     */
    struct ml_json_reader *reader = &script_of(L)->reader;
    const struct script_decoder decoder = {.L = L, .reader = reader};
    script_charge_work(L);
    shape_trim(L);
    ml_json_reader_fini(reader);
    ml_json_reader_init(reader, json, 0);
    ml_json_next(reader);
    script_decode_value(&decoder, root, 0);
    if (reader->token != ML_JSON_ERROR && ml_json_next(reader) == ML_JSON_END)
        return;
    struct ml_err err = ML_ERR_INIT;
    ml_json_error(reader, &err);
    luaL_error(L, "invalid JSON %s", err.message);
}

ML_RAISES void script_push_answer(lua_State *L, struct ml_str json)
{
    struct ml_err err;
    if (json.len <= CHECKED_AT_ONCE && ml_json_check(json, 0, &err) == 0)
        script_push_lazy(L, json, 0);
    else
        script_push_json(L, json, SHAPE_OBJECT);
}

ML_RAISES void script_push_object(lua_State *L, const struct ml_object *object, read_node place)
{
    struct ml_buf *opened = &script_of(L)->opened;
    ml_buf_clear(opened);
    ml_object_json(object, opened);
    script_push_lazy(L, ml_buf_str(opened), place);
    script_release_opened(script_of(L));
}
