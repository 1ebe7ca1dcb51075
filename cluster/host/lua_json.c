/* host.json for the server's Lua, and its values. An object is a plain table; an array carries a
 * shared, empty metatable as its mark; null is a light userdata. */
#include <math.h>

#include "cluster/host/server_lua_internal.h"

#define DEPTH_MAX      10000 /* the API server's own limit */
#define GATHERED_MAX   64    /* values of a level on the stack; even: keys and values */
#define DUPLICATES_MAX 100   /* sigs.k8s.io/json stops counting there too */

static const char null_address, mark_key;

static void push_null(lua_State *L)
{
    lua_pushlightuserdata(L, (void *)&null_address);
}

static bool is_null(lua_State *L, int index)
{
    return lua_touserdata(L, index) == &null_address;
}

static void mark_array(lua_State *L, int index)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &mark_key);
    lua_setmetatable(L, index);
}

static bool is_marked_array(lua_State *L, int index)
{
    if (!lua_getmetatable(L, index))
        return false;
    bool marked = lua_topointer(L, -1) == server_lua_of(L)->array_mark;
    lua_pop(L, 1);
    return marked;
}

/* A table: marked, or t[1] ~= nil. */
static bool is_array(lua_State *L, int index)
{
    if (is_marked_array(L, index))
        return true;
    bool has_first = lua_rawgeti(L, index, 1) != LUA_TNIL;
    lua_pop(L, 1);
    return has_first;
}

static size_t count_keys(lua_State *L, int index)
{
    size_t count = 0;
    index = lua_absindex(L, index);
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
        count++;
    return count;
}

/* ---- JSON text to Lua tables ----
 *
 * Without recursion: the open levels are in an array, their keys and values on the Lua stack. They
 * move into the level's table when the level ends, so that the table is created in its final size,
 * or earlier when there are many. Nothing here raises: the stack is checked for room, and the
 * process ends when memory runs out. */

struct level {
    int table;         /* its index on the stack, nil until the first flush; its values follow */
    lua_Integer moved; /* elements of an array in the table */
    uint64_t key_bits; /* a bit for each key of an object; some share one */
    bool is_object;
};

struct decoder {
    lua_State *L;
    struct ml_json_reader reader;
    struct level *levels;
    size_t depth, capacity;
    int mark;       /* stack index of the metatable of arrays */
    int duplicates; /* stack index of their list; 0: not wanted */
    lua_Integer duplicate_count;
    const char *problem; /* an error of ours, not of the reader; NULL: none */
};

static bool decoder_open_level(struct decoder *decoder, bool object)
{
    if (!lua_checkstack(decoder->L, GATHERED_MAX + LUA_MINSTACK)) {
        decoder->problem = "nested too deep";
        return false;
    }
    decoder->levels = ml_grow(decoder->levels, &decoder->capacity, decoder->depth,
                              sizeof *decoder->levels);
    lua_pushnil(decoder->L);
    decoder->levels[decoder->depth++] = (struct level){.table = lua_gettop(decoder->L),
                                                       .is_object = object};
    return true;
}

/* Moves the level's values from the stack into its table. */
static void decoder_flush_level(struct decoder *decoder, struct level *level)
{
    lua_State *L = decoder->L;
    int table = level->table, count = lua_gettop(L) - table;
    if (lua_isnil(L, table)) {
        lua_createtable(L, level->is_object ? 0 : count, level->is_object ? count / 2 : 0);
        lua_replace(L, table);
    }
    if (level->is_object) {
        for (int i = 1; i < count; i += 2) { /* of duplicate keys the last counts */
            lua_pushvalue(L, table + i);
            lua_pushvalue(L, table + i + 1);
            lua_rawset(L, table);
        }
        lua_settop(L, table);
    } else {
        for (int i = count; i > 0; i--)
            lua_rawseti(L, table, level->moved + i);
        level->moved += count;
    }
}

static void decoder_close_level(struct decoder *decoder)
{
    struct level *level = &decoder->levels[--decoder->depth];
    decoder_flush_level(decoder, level);
    if (!level->is_object) {
        lua_pushvalue(decoder->L, decoder->mark);
        lua_setmetatable(decoder->L, level->table);
    }
}

/* The level already has the key that is on top of the stack. */
static bool level_has_key(lua_State *L, const struct level *level)
{
    int top = lua_gettop(L);
    for (int i = level->table + 1; i < top; i += 2)
        if (lua_rawequal(L, i, top))
            return true;
    if (lua_isnil(L, level->table))
        return false;
    lua_pushvalue(L, top);
    bool has = lua_rawget(L, level->table) != LUA_TNIL;
    lua_pop(L, 1);
    return has;
}

/* The path of the key on top, as upstream's strict decoder names it: "spec.containers[0].name". The
 * index of an element is the count of elements before it. */
static void decoder_note_duplicate_key(struct decoder *decoder)
{
    lua_State *L = decoder->L;
    struct ml_buf path = ML_BUF_INIT;
    for (size_t i = 0; i < decoder->depth; i++) {
        const struct level *level = &decoder->levels[i];
        int next = i + 1 < decoder->depth ? level[1].table : lua_gettop(L) + 1;
        if (level->is_object) {
            size_t len;
            const char *key = lua_tolstring(L, next - 1, &len);
            ml_buf_puts(&path, path.len ? "." : "");
            ml_buf_append(&path, key, len);
        } else {
            ml_buf_printf(&path, "[%lld]", (long long)level->moved + next - level->table - 1);
        }
    }
    lua_pushlstring(L, path.ptr, path.len);
    ml_buf_fini(&path);
    lua_rawseti(L, decoder->duplicates, ++decoder->duplicate_count);
}

static void decoder_check_key(struct decoder *decoder)
{
    struct level *level = &decoder->levels[decoder->depth - 1];
    struct ml_str key = decoder->reader.text;
    /* Length, first and last byte tell most keys of an object apart. */
    uint64_t hash = key.len == 0 ? 0
                                 : key.len * 31 + (unsigned char)key.ptr[0] * 7 +
                                       (unsigned char)key.ptr[key.len - 1];
    uint64_t bit = UINT64_C(1) << (hash % 64);
    if (ML_UNLIKELY((level->key_bits & bit) && decoder->duplicate_count < DUPLICATES_MAX &&
                    level_has_key(decoder->L, level)))
        decoder_note_duplicate_key(decoder);
    level->key_bits |= bit;
}

/* A number beyond int64; upstream keeps it as a double. */
static bool decoder_push_number(struct decoder *decoder)
{
    ML_AUTO_FREE char *text = ml_str_dup(decoder->reader.text);
    double value = strtod(text, NULL);
    if (!isfinite(value)) {
        decoder->problem = "a number that is too large";
        return false;
    }
    lua_pushnumber(decoder->L, value);
    return true;
}

/* Pushes the token's value. False: the end of the text, or an error. */
static bool decoder_push_token(struct decoder *decoder, enum ml_json_token token)
{
    lua_State *L = decoder->L;
    const struct ml_json_reader *reader = &decoder->reader;
    switch (token) {
    case ML_JSON_STRING:
    case ML_JSON_KEY:
        lua_pushlstring(L, reader->text.ptr, reader->text.len);
        if (token == ML_JSON_KEY && decoder->duplicates)
            decoder_check_key(decoder);
        return true;
    case ML_JSON_OBJECT:
    case ML_JSON_ARRAY:
        return decoder_open_level(decoder, token == ML_JSON_OBJECT);
    case ML_JSON_OBJECT_END:
    case ML_JSON_ARRAY_END:
        decoder_close_level(decoder);
        return true;
    case ML_JSON_INT:
        lua_pushinteger(L, reader->integer);
        return true;
    case ML_JSON_REAL:
        lua_pushnumber(L, reader->real);
        return true;
    case ML_JSON_NUMBER:
        return decoder_push_number(decoder);
    case ML_JSON_TRUE:
    case ML_JSON_FALSE:
        lua_pushboolean(L, token == ML_JSON_TRUE);
        return true;
    case ML_JSON_NULL:
        push_null(L);
        return true;
    case ML_JSON_END:
    case ML_JSON_ERROR:
        return false;
    }
    ML_UNREACHABLE();
}

static void decoder_run(struct decoder *decoder)
{
    while (decoder_push_token(decoder, ml_json_next(&decoder->reader))) {
        if (decoder->depth == 0)
            continue;
        struct level *level = &decoder->levels[decoder->depth - 1];
        int count = lua_gettop(decoder->L) - level->table;
        if (ML_UNLIKELY(count >= GATHERED_MAX))
            decoder_flush_level(decoder, level);
    }
}

static int decoder_fini(struct decoder *decoder, struct ml_err *err)
{
    int r = 0;
    if (decoder->problem)
        r = ml_err_set(err, ML_EINVALID, "%s", decoder->problem);
    else if (decoder->reader.token == ML_JSON_ERROR)
        r = ml_json_error(&decoder->reader, err);
    ml_json_reader_fini(&decoder->reader);
    free(decoder->levels);
    return r;
}

int binding_decode_json(lua_State *L, struct ml_str text, bool duplicates, struct ml_err *err)
{
    int top = lua_gettop(L);
    struct decoder decoder = {.L = L};
    ml_json_reader_init(&decoder.reader, text, DEPTH_MAX);
    if (duplicates) {
        lua_newtable(L);
        decoder.duplicates = top + 1;
    }
    lua_rawgetp(L, LUA_REGISTRYINDEX, &mark_key);
    decoder.mark = lua_gettop(L);
    decoder_run(&decoder);
    int r = decoder_fini(&decoder, err);
    if (r < 0) {
        lua_settop(L, top);
        return r;
    }
    lua_remove(L, decoder.mark);
    if (duplicates)
        lua_insert(L, top + 1); /* the value first, then the list */
    return 0;
}

/* ---- Lua tables to JSON text ----
 *
 * Without recursion. The keys of an object are sorted bytewise: its members are pushed on the Lua
 * stack, and slices with their stack indices are sorted. No Lua code runs meanwhile, metamethods
 * are not called, and nothing raises. */

#define MEMBERS_KEPT  1000 /* values of an object on the stack, which has an end */
#define MEMBERS_SORT  12   /* up to so many, insertion sort is fastest */
#define PATH_TEXT_MAX 200  /* bytes of a message */

struct json_member {
    struct ml_str key;
    int value; /* its index on the stack; 0: it is looked up in the table */
};

struct json_level {
    int table;
    int top; /* of the stack, without the values of a member */
    bool is_object;
    size_t first, next, end;  /* members of an object, in the encoder's array */
    lua_Integer index, count; /* elements of an array: the current one, and all */
};

struct encoding {
    lua_State *L;
    struct json_encoder *encoder;
    struct ml_json_writer writer;
    const char *problem;
};

void binding_encoder_fini(struct json_encoder *encoder)
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
    struct json_encoder *encoder = encoding->encoder;
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
    if (count_keys(L, level->table) != (size_t)level->count)
        return refuse_value(encoding, "an array with holes, or with keys that are no index");
    ml_json_begin_array(&encoding->writer);
    return true;
}

/* The table on top of the stack or at `index`. */
static bool encode_open_table(struct encoding *encoding, int index)
{
    struct json_encoder *encoder = encoding->encoder;
    if (encoder->depth == DEPTH_MAX)
        return refuse_value(encoding, "nested too deep, or a table that contains itself");
    if (!lua_checkstack(encoding->L, LUA_MINSTACK))
        return refuse_value(encoding, "too large to be encoded");
    bool object = !is_array(encoding->L, index);
    encoder->levels = ml_grow(encoder->levels, &encoder->level_capacity, encoder->depth,
                              sizeof(struct json_level));
    struct json_level *level = &encoder->levels[encoder->depth++];
    level->table = index;
    level->is_object = object;
    bool opened = object ? encode_open_object(encoding, level) : encode_open_array(encoding, level);
    level->top = lua_gettop(encoding->L);
    return opened;
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
    ml_json_raw(&encoding->writer, ML_STR("")); /* with the comma that is due */
    ml_json_go_float64(encoding->writer.out, value);
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
        if (is_null(L, index)) {
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
    struct json_encoder *encoder = encoding->encoder;
    struct json_level *level = &encoder->levels[encoder->depth - 1];
    lua_settop(L, level->top);
    if (level->is_object && level->next < level->end) {
        const struct json_member *member = &encoder->members[level->next++];
        ml_json_key(&encoding->writer, member->key);
        if (member->value)
            return encode_value(encoding, member->value);
        lua_pushlstring(L, member->key.ptr, member->key.len);
        lua_rawget(L, level->table);
        return encode_value(encoding, level->top + 1);
    }
    if (!level->is_object && level->index < level->count) {
        lua_rawgeti(L, level->table, ++level->index);
        return encode_value(encoding, level->top + 1);
    }
    if (level->is_object) {
        ml_json_end_object(&encoding->writer);
        encoder->member_count = level->first;
    } else {
        ml_json_end_array(&encoding->writer);
    }
    encoder->depth--;
    return true;
}

/* "spec.ports[1].name", the path of the current value, cut when it is very long. */
static void append_value_path(const struct json_encoder *encoder, struct ml_buf *out)
{
    for (size_t i = 0; i < encoder->depth && out->len < PATH_TEXT_MAX; i++) {
        const struct json_level *level = &encoder->levels[i];
        if (!level->is_object && level->index > 0) {
            ml_buf_printf(out, "[%lld]", (long long)level->index - 1);
        } else if (level->is_object && level->next > level->first) {
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

int binding_encode_json(lua_State *L, int index, struct ml_err *err)
{
    struct encoding encoding = {.L = L, .encoder = &server_lua_of(L)->encoder};
    struct json_encoder *encoder = encoding.encoder;
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

/* ---- host.json ---- */

/* decode(text) -> value | nil, message */
ML_RAISES static int json_decode(lua_State *L)
{
    struct ml_str text = binding_check_str(L, 1);
    struct ml_err err;
    return binding_decode_json(L, text, false, &err) < 0 ? binding_push_error(L, err.message) : 1;
}

/* decode_strict(text) -> value, duplicates | nil, message */
ML_RAISES static int json_decode_strict(lua_State *L)
{
    struct ml_str text = binding_check_str(L, 1);
    struct ml_err err;
    return binding_decode_json(L, text, true, &err) < 0 ? binding_push_error(L, err.message) : 2;
}

/* encode(value) -> text; raises for what JSON cannot hold */
ML_RAISES static int json_encode(lua_State *L)
{
    luaL_checkany(L, 1);
    struct ml_err err;
    if (binding_encode_json(L, 1, &err) < 0)
        return luaL_error(L, "json.encode: %s", err.message);
    const struct ml_buf *out = &server_lua_of(L)->encoder.out;
    lua_pushlstring(L, out->ptr, out->len);
    return 1;
}

/* array(table?) -> the table, or a new one, marked */
ML_RAISES static int json_array(lua_State *L)
{
    if (lua_isnoneornil(L, 1)) {
        lua_settop(L, 0);
        lua_newtable(L);
    }
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    mark_array(L, 1);
    return 1;
}

ML_RAISES static int json_is_array(lua_State *L)
{
    lua_pushboolean(L, lua_istable(L, 1) && is_array(L, 1));
    return 1;
}

/* [+1] An empty table with room for what the one at `index` has, and with its mark. */
static void push_empty_copy(lua_State *L, int index)
{
    index = lua_absindex(L, index);
    lua_Unsigned elements = lua_rawlen(L, index);
    size_t members = elements == 0 ? count_keys(L, index) : 0;
    lua_createtable(L, (int)elements, (int)members);
    if (lua_getmetatable(L, index))
        lua_setmetatable(L, -2);
}

/* [+1] A deep copy of the table at `index`. */
ML_RAISES static void push_copy(lua_State *L, int index, int depth)
{
    if (depth == DEPTH_MAX || !lua_checkstack(L, LUA_MINSTACK))
        luaL_error(L, "a value nested too deep to be copied");
    push_empty_copy(L, index);
    int copy = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, index);) {
        if (lua_istable(L, -1)) {
            push_copy(L, copy + 2, depth + 1);
            lua_replace(L, copy + 2);
        }
        lua_pushvalue(L, copy + 1); /* the key, which lua_next needs again */
        lua_insert(L, copy + 2);
        lua_rawset(L, copy);
    }
}

/* copy(value) -> a deep copy */
ML_RAISES static int json_copy(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_settop(L, 1);
    if (lua_istable(L, 1))
        push_copy(L, 1, 0);
    return 1;
}

/* Compares the values at two places of the stack. When they differ it may leave more on it. */
ML_RAISES static bool are_equal(lua_State *L, int a, int b, int depth)
{
    if (lua_rawequal(L, a, b))
        return true;
    if (!lua_istable(L, a) || !lua_istable(L, b) || is_array(L, a) != is_array(L, b) ||
        count_keys(L, a) != count_keys(L, b))
        return false;
    if (depth == DEPTH_MAX || !lua_checkstack(L, LUA_MINSTACK))
        luaL_error(L, "values nested too deep to be compared");
    int key = lua_gettop(L) + 1;
    for (lua_pushnil(L); lua_next(L, a); lua_settop(L, key)) {
        lua_pushvalue(L, key);
        lua_rawget(L, b);
        if (!are_equal(L, key + 1, key + 2, depth + 1))
            return false;
    }
    return true;
}

/* equal(a, b) -> deep equality; 1 and 1.0 are equal, an empty array and an empty object not */
ML_RAISES static int json_equal(lua_State *L)
{
    luaL_checkany(L, 2);
    lua_pushboolean(L, are_equal(L, 1, 2, 0));
    return 1;
}

int binding_open_json(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"decode", json_decode},     {"decode_strict", json_decode_strict},
        {"encode", json_encode},     {"array", json_array},
        {"is_array", json_is_array}, {"copy", json_copy},
        {"equal", json_equal},       {NULL, NULL}};
    lua_newtable(L);
    server_lua_of(L)->array_mark = lua_topointer(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &mark_key);
    luaL_newlib(L, functions);
    push_null(L);
    lua_setfield(L, -2, "null");
    return 1;
}
