/* Lua to JSON: statuses, objects to write, log fields, cjson.encode. Calls no metamethods, so no
 * code of the script runs. Keys of an object that came from JSON keep their order, keys added later
 * follow sorted, and keys of other tables are sorted: the same table gives the same text in every
 * process. */
#include <math.h>

#include "script/internal.h"

#define PATH_SHOWN 12 /* steps of a path in a message */
#define TOO_LARGE  "the whole is larger than 3 MiB as JSON"
#define EITHER     "a table is a list or an object; this one has both indexes and string keys"

/* One step of the path to the current value, for messages. */
struct step {
    struct ml_str key; /* ptr NULL: an index; the stack holds the string below its value */
    lua_Integer index;
};

struct encoder {
    lua_State *L;
    struct ml_json_writer writer;
    struct ml_buf *out;
    const char *root;
    struct step path[ML_JSON_DEPTH_MAX];
    size_t depth;
};

struct survey {
    size_t strings;  /* keys that are strings */
    size_t integers; /* keys that are integers in 1 … length */
    lua_Integer length;
    int other; /* the type of a key that is neither, or LUA_TNONE */
};

ML_RAISES static void encode_value(struct encoder *encoder, int index);

ML_RAISES static void raise_at_path(struct encoder *encoder, const char *why)
{
    lua_State *L = encoder->L;
    luaL_Buffer text;
    luaL_where(L, 1);
    const struct script_thread *thread = script_thread_of(L);
    if (lua_rawlen(L, -1) == 0) /* the function has returned: no line of the script is running */
        lua_pushfstring(L, "%s:%d: ", thread->script->declaration.file,
                        thread->result_line ? thread->result_line
                                            : script_run_line(thread->script, thread->run));
    luaL_buffinit(L, &text);
    luaL_addstring(&text, encoder->root);
    size_t shown = ML_MIN(encoder->depth, (size_t)PATH_SHOWN);
    for (size_t i = 0; i < shown; i++) {
        const struct step *step = &encoder->path[i];
        if (step->key.ptr) {
            luaL_addstring(&text, i > 0 || *encoder->root ? "." : "");
            luaL_addlstring(&text, step->key.ptr, ML_MIN(step->key.len, (size_t)64));
        } else {
            lua_pushfstring(L, "[%I]", step->index);
            luaL_addvalue(&text);
        }
    }
    luaL_addstring(&text, encoder->depth > shown ? "…" : "");
    luaL_addstring(&text, encoder->depth > 0 || *encoder->root ? ": " : "");
    luaL_addstring(&text, why);
    luaL_pushresult(&text);
    lua_concat(L, 2);
    lua_error(L);
}

ML_RAISES static void enter_step(struct encoder *encoder, struct step step)
{
    if (encoder->depth == ML_JSON_DEPTH_MAX - 1)
        raise_at_path(encoder, "nested too deep, or a table that contains itself");
    encoder->path[encoder->depth++] = step;
}

ML_RAISES static void survey_keys(lua_State *L, int index, struct survey *survey)
{
    *survey = (struct survey){.length = (lua_Integer)lua_rawlen(L, index), .other = LUA_TNONE};
    lua_pushnil(L);
    while (lua_next(L, index)) {
        script_cpu_check(L);
        lua_pop(L, 1);
        lua_Integer key = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : 0;
        if (lua_type(L, -1) == LUA_TSTRING)
            survey->strings++;
        else if (key >= 1 && key <= survey->length)
            survey->integers++;
        else
            survey->other = lua_type(L, -1);
    }
}

ML_RAISES static void encode_array(struct encoder *encoder, int index, const struct survey *survey)
{
    lua_State *L = encoder->L;
    if (survey->strings > 0)
        raise_at_path(encoder, EITHER);
    if (survey->other == LUA_TNUMBER || survey->integers != (size_t)survey->length)
        raise_at_path(encoder, "a list with holes; its indexes go from 1 without a gap");
    if (survey->other != LUA_TNONE)
        raise_at_path(encoder, "only strings, or 1, 2, 3 and so on, can be keys");
    ml_json_begin_array(&encoder->writer);
    for (lua_Integer i = 1; i <= survey->length; i++) {
        enter_step(encoder, (struct step){.index = i});
        lua_rawgeti(L, index, i);
        encode_value(encoder, lua_gettop(L));
        lua_pop(L, 1);
        encoder->depth--;
    }
    ml_json_end_array(&encoder->writer);
}

/* [-1, +0] The member whose key is on top, unless it was removed. */
ML_RAISES static void encode_member(struct encoder *encoder, int index)
{
    lua_State *L = encoder->L;
    struct ml_str key = script_str(L, -1);
    lua_pushvalue(L, -1);
    if (lua_rawget(L, index) != LUA_TNIL) {
        enter_step(encoder, (struct step){.key = key});
        if (key.len > SCRIPT_JSON_MAX)
            raise_at_path(encoder, TOO_LARGE);
        if (!ml_str_is_utf8(key))
            raise_at_path(encoder, "a key that is not UTF-8");
        ml_json_key(&encoder->writer, key);
        encode_value(encoder, lua_gettop(L));
        encoder->depth--;
    }
    lua_pop(L, 2);
}

ML_RAISES static void encode_object(struct encoder *encoder, int index, const struct survey *survey)
{
    lua_State *L = encoder->L;
    if (survey->integers > 0 || survey->other == LUA_TNUMBER)
        raise_at_path(encoder, EITHER);
    if (survey->other != LUA_TNONE)
        raise_at_path(encoder, "only strings can be keys of an object");
    ml_json_begin_object(&encoder->writer);
    script_push_ordered_keys(L, index, survey->strings);
    int keys = lua_gettop(L);
    lua_Integer count = (lua_Integer)lua_rawlen(L, keys);
    for (lua_Integer i = 1; i <= count; i++) {
        script_cpu_check(L);
        lua_rawgeti(L, keys, i);
        encode_member(encoder, index);
    }
    lua_pop(L, 1);
    ml_json_end_object(&encoder->writer);
}

/* Writes the object whose first token is current as it stands in the text. False: it has to be
 * decoded first, as some of it has to be said in another way, or cannot be said. */
ML_RAISES static bool encode_text(struct encoder *encoder, const struct lazy_text *text)
{
    struct ml_json_writer *writer = &encoder->writer;
    struct ml_json_reader *reader = text->reader;
    enum shape_root root = text->root; /* of the value that comes next */
    for (;; ml_json_next(reader)) {
        script_cpu_check(encoder->L);
        if (encoder->depth + reader->depth >= ML_JSON_DEPTH_MAX)
            return false;
        switch (reader->token) {
        case ML_JSON_OBJECT:
            if (!lazy_is_simple(text, root))
                return false;
            ml_json_begin_object(writer);
            break;
        case ML_JSON_OBJECT_END:
            ml_json_end_object(writer);
            break;
        case ML_JSON_ARRAY:
            root = SHAPE_PLAIN;
            ml_json_begin_array(writer);
            break;
        case ML_JSON_ARRAY_END:
            ml_json_end_array(writer);
            break;
        case ML_JSON_KEY:
            root = script_root_below(reader->depth == 1 ? text->root : SHAPE_PLAIN, reader->text);
            ml_json_key(writer, reader->text);
            break;
        case ML_JSON_STRING:
            ml_json_string(writer, reader->text);
            break;
        case ML_JSON_INT:
            ml_json_int(writer, reader->integer);
            break;
        case ML_JSON_REAL:
            ml_json_real(writer, reader->real);
            break;
        case ML_JSON_NUMBER:
            ml_json_raw(writer, reader->text);
            break;
        case ML_JSON_TRUE:
        case ML_JSON_FALSE:
            ml_json_bool(writer, reader->token == ML_JSON_TRUE);
            break;
        case ML_JSON_NULL:
            ml_json_null(writer);
            break;
        case ML_JSON_END:
        case ML_JSON_ERROR:
            return false;
        }
        if (reader->depth == 0 || encoder->out->failed)
            return !encoder->out->failed;
    }
}

/* A table that the script has not touched, copied from its text. False, with nothing written: it
 * is none, or has to be decoded. */
ML_RAISES static bool encode_untouched(struct encoder *encoder, int index)
{
    struct lazy_text text;
    if (!lazy_untouched(encoder->L, index, &text))
        return false;
    struct ml_json_writer before = encoder->writer;
    size_t len = encoder->out->len;
    if (encode_text(encoder, &text))
        return true;
    encoder->writer = before;
    encoder->out->len = len;
    encoder->out->failed = false;
    return false;
}

ML_RAISES static void encode_table(struct encoder *encoder, int index)
{
    lua_State *L = encoder->L;
    luaL_checkstack(L, 12, "nested too deep");
    if (encode_untouched(encoder, index))
        return;
    lazy_complete(L, index);
    struct survey survey;
    survey_keys(L, index, &survey);
    bool is_shaped = shape_keys(L, index);
    if (is_shaped)
        lua_pop(L, 1);
    bool is_array = shape_is_array(L, index) ||
                    (!is_shaped && survey.strings == 0 &&
                     (survey.integers > 0 || survey.other == LUA_TNUMBER));
    if (is_array)
        encode_array(encoder, index, &survey);
    else
        encode_object(encoder, index, &survey);
}

ML_RAISES static void encode_number(struct encoder *encoder, int index)
{
    lua_State *L = encoder->L;
    if (lua_isinteger(L, index)) {
        ml_json_int(&encoder->writer, lua_tointeger(L, index));
        return;
    }
    double value = lua_tonumber(L, index);
    if (!isfinite(value))
        raise_at_path(encoder, "a number that is infinite or not a number cannot be stored");
    ml_json_real(&encoder->writer, value);
}

ML_RAISES static void encode_string(struct encoder *encoder, int index)
{
    struct ml_str text = script_str(encoder->L, index);
    if (text.len > SCRIPT_JSON_MAX)
        raise_at_path(encoder, TOO_LARGE);
    if (!ml_str_is_utf8(text))
        raise_at_path(encoder, "a string that is not UTF-8 cannot be stored");
    ml_json_string(&encoder->writer, text);
}

ML_RAISES static void encode_other(struct encoder *encoder, int index)
{
    struct ml_str number;
    if (script_is_null(encoder->L, index))
        ml_json_null(&encoder->writer);
    else if (script_number_text(encoder->L, index, &number))
        ml_json_raw(&encoder->writer, number);
    else if (lua_isfunction(encoder->L, index))
        raise_at_path(encoder, "a function cannot be stored");
    else
        raise_at_path(encoder,
                      "only strings, numbers, booleans, tables and moonloop.null can be stored");
}

ML_RAISES static void encode_value(struct encoder *encoder, int index)
{
    script_cpu_check(encoder->L);
    switch (lua_type(encoder->L, index)) {
    case LUA_TTABLE:
        encode_table(encoder, index);
        break;
    case LUA_TSTRING:
        encode_string(encoder, index);
        break;
    case LUA_TNUMBER:
        encode_number(encoder, index);
        break;
    case LUA_TBOOLEAN:
        ml_json_bool(&encoder->writer, lua_toboolean(encoder->L, index));
        break;
    default:
        encode_other(encoder, index);
        break;
    }
    if (encoder->out->failed)
        raise_at_path(encoder, TOO_LARGE);
}

ML_RAISES void script_encode(lua_State *L, int index, const char *root, struct ml_buf *out)
{
    struct encoder encoder = {.L = L, .out = out, .root = root};
    ml_buf_clear(out);
    out->len_max = SCRIPT_JSON_MAX;
    ml_json_writer_init(&encoder.writer, out);
    encode_value(&encoder, lua_absindex(L, index));
    script_charge_work(L);
}
