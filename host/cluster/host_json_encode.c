/* Lua tables to JSON text, without recursion. The keys of an object are sorted bytewise: its
 * members are pushed on the Lua stack, and slices with their stack indices are sorted. No Lua code
 * runs meanwhile, metamethods are not called, and nothing raises. Called by host_json.c and
 * trusted.c. */
#include <math.h>
#include <stdio.h>

#include "cluster/trusted_internal.h"

#define DEPTH_MAX     10000 /* as decode */
#define MEMBERS_KEPT  1000  /* values of an object on the stack, which has an end */
#define MEMBERS_SORT  12    /* up to so many, insertion sort is fastest */
#define PATH_TEXT_MAX 200   /* bytes of a message */
#define DIGITS_MAX    17    /* of a double, so that it reads back the same */

struct json_member {
    struct ml_str key;
    int value; /* its index on the stack; 0: it is looked up in the table */
};

struct json_level {
    int table;
    int top; /* of the stack, without the values of a member */
    bool object;
    size_t first, next, end;  /* members of an object, in the encoder's array */
    lua_Integer index, count; /* elements of an array: the current one, and all */
};

struct encoding {
    lua_State *L;
    struct host_encoder *encoder;
    struct ml_json_writer writer;
    const char *problem;
};

void host_encoder_fini(struct host_encoder *encoder)
{
    ml_buf_fini(&encoder->out);
    free(encoder->members);
    free(encoder->levels);
}

static int compare_members(const void *a, const void *b)
{
    return ml_str_cmp(((const struct json_member *)a)->key, ((const struct json_member *)b)->key);
}

static void sort_members(struct json_member *members, size_t count)
{
    if (count > MEMBERS_SORT) {
        qsort(members, count, sizeof *members, compare_members);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        struct json_member member = members[i];
        size_t place = i;
        for (; place > 0 && compare_members(&members[place - 1], &member) > 0; place--)
            members[place] = members[place - 1];
        members[place] = member;
    }
}

static bool refuse_value(struct encoding *encoding, const char *problem)
{
    encoding->problem = problem;
    return false;
}

/* Leaves keys and values of the table on the stack, the first MEMBERS_KEPT of them. The table holds
 * the other keys as well. */
static bool encode_open_object(struct encoding *encoding, struct json_level *level)
{
    lua_State *L = encoding->L;
    struct host_encoder *encoder = encoding->encoder;
    level->first = level->next = encoder->member_count;
    lua_pushnil(L);
    while (lua_next(L, level->table)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            return refuse_value(encoding, "an object with a key that is no string");
        if (!lua_checkstack(L, LUA_MINSTACK))
            return refuse_value(encoding, "too large to be encoded");
        encoder->members = ml_grow(encoder->members, &encoder->member_capacity,
                                   encoder->member_count, sizeof(struct json_member));
        struct json_member *member = &encoder->members[encoder->member_count++];
        member->key.ptr = lua_tolstring(L, -2, &member->key.len);
        bool kept = encoder->member_count - level->first <= MEMBERS_KEPT;
        member->value = kept ? lua_gettop(L) : 0;
        if (kept)
            lua_pushvalue(L, -2);
        else
            lua_pop(L, 1);
    }
    level->end = encoder->member_count;
    if (level->end > level->first)
        sort_members(encoder->members + level->first, level->end - level->first);
    ml_json_begin_object(&encoding->writer);
    return true;
}

static bool encode_open_array(struct encoding *encoding, struct json_level *level)
{
    lua_State *L = encoding->L;
    level->index = 0;
    level->count = (lua_Integer)lua_rawlen(L, level->table);
    if (host_count_keys(L, level->table) != (size_t)level->count)
        return refuse_value(encoding, "an array with holes, or with keys that are no index");
    ml_json_begin_array(&encoding->writer);
    return true;
}

/* The table on top of the stack or at `index`. */
static bool encode_open_table(struct encoding *encoding, int index)
{
    struct host_encoder *encoder = encoding->encoder;
    if (encoder->depth == DEPTH_MAX)
        return refuse_value(encoding, "nested too deep, or a table that contains itself");
    if (!lua_checkstack(encoding->L, LUA_MINSTACK))
        return refuse_value(encoding, "too large to be encoded");
    bool object = !host_is_array(encoding->L, index);
    encoder->levels = ml_grow(encoder->levels, &encoder->level_capacity, encoder->depth,
                              sizeof(struct json_level));
    struct json_level *level = &encoder->levels[encoder->depth++];
    level->table = index;
    level->object = object;
    bool opened = object ? encode_open_object(encoding, level) : encode_open_array(encoding, level);
    level->top = lua_gettop(encoding->L);
    return opened;
}

/* The shortest digits that read back the same, as d.ddde±dd. Returns where the 'e' stands. */
static char *format_shortest_digits(double value, char *text, size_t size)
{
    int digits = 1;
    do
        snprintf(text, size, "%.*e", digits - 1, value);
    while (digits++ < DIGITS_MAX && strtod(text, NULL) != value);
    return strchr(text, 'e');
}

/* As Go's encoding/json writes a float64: those digits, padded with zeros; with an exponent only
 * below 1e-6 and from 1e21 on. */
static void encode_real(struct encoding *encoding, double value)
{
    char text[32], plain[64];
    double magnitude = fabs(value);
    char *exponent = format_shortest_digits(magnitude, text, sizeof text);
    int power = atoi(exponent + 1);
    const char *sign = signbit(value) ? "-" : "";
    *exponent = '\0';
    if (magnitude != 0 && (magnitude < 1e-6 || magnitude >= 1e21)) {
        snprintf(plain, sizeof plain, "%s%se%+d", sign, text, power);
        ml_json_raw(&encoding->writer, ml_str_of(plain));
        return;
    }
    int count = 1; /* of digits, without the point */
    for (char *c = text + 2; c < exponent; c++)
        text[count++] = *c;
    text[count] = '\0';
    if (power < 0)
        snprintf(plain, sizeof plain, "%s0.%.*d%s", sign, -power - 1, 0, text);
    else if (power >= count - 1)
        snprintf(plain, sizeof plain, "%s%s%.*d", sign, text, power - count + 1, 0);
    else
        snprintf(plain, sizeof plain, "%s%.*s.%s", sign, power + 1, text, text + power + 1);
    ml_json_raw(&encoding->writer, ml_str_of(plain));
}

static bool encode_number(struct encoding *encoding, int index)
{
    if (lua_isinteger(encoding->L, index)) {
        ml_json_int(&encoding->writer, lua_tointeger(encoding->L, index));
        return true;
    }
    double value = lua_tonumber(encoding->L, index);
    if (!isfinite(value))
        return refuse_value(encoding, "a number that is infinite or not a number");
    encode_real(encoding, value);
    return true;
}

static bool encode_value(struct encoding *encoding, int index)
{
    lua_State *L = encoding->L;
    struct ml_str text;
    switch (lua_type(L, index)) {
    case LUA_TTABLE:
        return encode_open_table(encoding, index);
    case LUA_TSTRING:
        text.ptr = lua_tolstring(L, index, &text.len);
        ml_json_string(&encoding->writer, text);
        return true;
    case LUA_TNUMBER:
        return encode_number(encoding, index);
    case LUA_TBOOLEAN:
        ml_json_bool(&encoding->writer, lua_toboolean(L, index));
        return true;
    case LUA_TLIGHTUSERDATA:
        if (host_is_null(L, index)) {
            ml_json_null(&encoding->writer);
            return true;
        }
        break;
    default:
        break;
    }
    return refuse_value(encoding, lua_isfunction(L, index) ? "a function" : "no value of JSON");
}

/* Encodes the next value of the innermost level, or its end. */
static bool encode_next(struct encoding *encoding)
{
    lua_State *L = encoding->L;
    struct host_encoder *encoder = encoding->encoder;
    struct json_level *level = &encoder->levels[encoder->depth - 1];
    lua_settop(L, level->top);
    if (level->object && level->next < level->end) {
        const struct json_member *member = &encoder->members[level->next++];
        ml_json_key(&encoding->writer, member->key);
        if (member->value)
            return encode_value(encoding, member->value);
        lua_pushlstring(L, member->key.ptr, member->key.len);
        lua_rawget(L, level->table);
        return encode_value(encoding, level->top + 1);
    }
    if (!level->object && level->index < level->count) {
        lua_rawgeti(L, level->table, ++level->index);
        return encode_value(encoding, level->top + 1);
    }
    if (level->object) {
        ml_json_end_object(&encoding->writer);
        encoder->member_count = level->first;
    } else {
        ml_json_end_array(&encoding->writer);
    }
    encoder->depth--;
    return true;
}

/* "spec.ports[1].name", the path of the current value, cut when it is very long. */
static void append_value_path(const struct host_encoder *encoder, struct ml_buf *out)
{
    for (size_t i = 0; i < encoder->depth && out->len < PATH_TEXT_MAX; i++) {
        const struct json_level *level = &encoder->levels[i];
        if (!level->object && level->index > 0) {
            ml_buf_printf(out, "[%lld]", (long long)level->index - 1);
        } else if (level->object && level->next > level->first) {
            struct ml_str key = encoder->members[level->next - 1].key;
            ml_buf_printf(out, "%s" ML_STR_FMT, out->len ? "." : "", ML_STR_ARG(key));
        }
    }
}

static int fail_encoding(struct encoding *encoding, struct ml_err *err)
{
    struct ml_buf path = ML_BUF_INIT;
    append_value_path(encoding->encoder, &path);
    int r = ml_err_set(err, ML_EINVALID, "%s%s%s", ml_buf_cstr(&path), path.len ? ": " : "",
                       encoding->problem);
    ml_buf_fini(&path);
    return r;
}

int host_encode(lua_State *L, int index, struct ml_err *err)
{
    struct encoding encoding = {.L = L, .encoder = &host_of(L)->encoder};
    struct host_encoder *encoder = encoding.encoder;
    int top = lua_gettop(L);
    encoder->member_count = encoder->depth = 0;
    ml_buf_clear(&encoder->out);
    ml_json_writer_init(&encoding.writer, &encoder->out);
    bool good = encode_value(&encoding, lua_absindex(L, index));
    while (good && encoder->depth > 0)
        good = encode_next(&encoding);
    lua_settop(L, top);
    if (good && encoder->out.failed)
        good = refuse_value(&encoding, "larger than 512 MiB as JSON");
    return good ? 0 : fail_encoding(&encoding, err);
}
