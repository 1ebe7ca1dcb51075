/* host.json for the host's own Lua, and its values. An object is a plain table; an
 * array carries a shared, empty metatable as its mark; null is a light userdata. Encoding a table
 * is in host_json_encode.c. */
#include <math.h>

#include "cluster/trusted_internal.h"

#define DEPTH_MAX      10000 /* the API server's own limit */
#define GATHERED_MAX   64    /* values of a level on the stack; even: keys and values */
#define DUPLICATES_MAX 100   /* sigs.k8s.io/json stops counting there too */

static const char null_address, mark_key;

static void push_null(lua_State *L)
{
    lua_pushlightuserdata(L, (void *)&null_address);
}

bool host_is_null(lua_State *L, int index)
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
    bool marked = lua_topointer(L, -1) == host_of(L)->array_mark;
    lua_pop(L, 1);
    return marked;
}

bool host_is_array(lua_State *L, int index)
{
    if (is_marked_array(L, index))
        return true;
    bool has_first = lua_rawgeti(L, index, 1) != LUA_TNIL;
    lua_pop(L, 1);
    return has_first;
}

size_t host_count_keys(lua_State *L, int index)
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
    uint64_t seen;     /* a bit for each key of an object; some share one */
    bool object;
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
                                                       .object = object};
    return true;
}

/* Moves the level's values from the stack into its table. */
static void decoder_flush_level(struct decoder *decoder, struct level *level)
{
    lua_State *L = decoder->L;
    int table = level->table, count = lua_gettop(L) - table;
    if (lua_isnil(L, table)) {
        lua_createtable(L, level->object ? 0 : count, level->object ? count / 2 : 0);
        lua_replace(L, table);
    }
    if (level->object) {
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
    if (!level->object) {
        lua_pushvalue(decoder->L, decoder->mark);
        lua_setmetatable(decoder->L, level->table);
    }
}

/* Whether the level already has the key that is on top of the stack. */
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

/* The path of the key on top, as upstream's strict decoder names it: "spec.containers[0].name".
 * The index of an element is the count of those before it. */
static void decoder_note_duplicate_key(struct decoder *decoder)
{
    lua_State *L = decoder->L;
    struct ml_buf path = ML_BUF_INIT;
    for (size_t i = 0; i < decoder->depth; i++) {
        const struct level *level = &decoder->levels[i];
        int next = i + 1 < decoder->depth ? level[1].table : lua_gettop(L) + 1;
        if (level->object) {
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
    if (ML_UNLIKELY((level->seen & bit) && decoder->duplicate_count < DUPLICATES_MAX &&
                    level_has_key(decoder->L, level)))
        decoder_note_duplicate_key(decoder);
    level->seen |= bit;
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

int host_decode(lua_State *L, struct ml_str text, bool duplicates, struct ml_err *err)
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

/* ---- host.json ---- */

/* decode(text) -> value | nil, message */
ML_RAISES static int json_decode(lua_State *L)
{
    struct ml_str text = host_check_str(L, 1);
    struct ml_err err;
    return host_decode(L, text, false, &err) < 0 ? host_push_error(L, err.message) : 1;
}

/* decode_strict(text) -> value, duplicates | nil, message */
ML_RAISES static int json_decode_strict(lua_State *L)
{
    struct ml_str text = host_check_str(L, 1);
    struct ml_err err;
    return host_decode(L, text, true, &err) < 0 ? host_push_error(L, err.message) : 2;
}

/* encode(value) -> text; raises for what JSON cannot hold */
ML_RAISES static int json_encode(lua_State *L)
{
    luaL_checkany(L, 1);
    struct ml_err err;
    if (host_encode(L, 1, &err) < 0)
        return luaL_error(L, "json.encode: %s", err.message);
    const struct ml_buf *out = &host_of(L)->encoder.out;
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
    lua_pushboolean(L, lua_istable(L, 1) && host_is_array(L, 1));
    return 1;
}

/* [+1] An empty table with room for what the one at `index` has, and with its mark. */
static void push_empty_copy(lua_State *L, int index)
{
    index = lua_absindex(L, index);
    lua_Unsigned elements = lua_rawlen(L, index);
    size_t members = elements == 0 ? host_count_keys(L, index) : 0;
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
    if (!lua_istable(L, a) || !lua_istable(L, b) || host_is_array(L, a) != host_is_array(L, b) ||
        host_count_keys(L, a) != host_count_keys(L, b))
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

int host_open_json(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"decode", json_decode},     {"decode_strict", json_decode_strict},
        {"encode", json_encode},     {"array", json_array},
        {"is_array", json_is_array}, {"copy", json_copy},
        {"equal", json_equal},       {NULL, NULL}};
    lua_newtable(L);
    host_of(L)->array_mark = lua_topointer(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &mark_key);
    luaL_newlib(L, functions);
    push_null(L);
    lua_setfield(L, -2, "null");
    return 1;
}
