/* Objects of the API server whose fields are decoded when a script touches them: most scripts read
 * a few of a hundred. json_decode.c makes such a table instead of decoding an object, ctx.c and its
 * siblings hand it to the script.
 *
 * A *pending* table has the fields that were touched, decoded, and under two keys that no script
 * can name the *source*, a copy of the object's text, and the number of the table's part of it.
 * Metamethods decode the field that is missing. Scripts cannot tell it from a plain table: what
 * Lua asks metamethods for goes through them, and what looks past metamethods (pairs, rawget, the
 * table library, the encoder) completes the table first, which makes it a plain one for good.
 *
 * An array is decoded when it is touched, but for the objects in it. So is an object in which a key
 * occurs twice or is escaped, or that has more than MEMBERS_MAX: a field is looked for one by one.
 *
 * An error may end any of this between two fields: memory runs out, the deadline expires. The table
 * is then still right, as each field is noted as taken after it has got its place. */
#include "script/reads.h"

#define MEMBERS_MAX 62

/* One for each object and array of the text. */
struct level {
    uint64_t taken : MEMBERS_MAX; /* members that the text does not stand for any more: they are in
                                     the table, or the script has replaced or removed them */
    uint64_t changed : 1;         /* the script has assigned to a field */
    uint32_t begin;
    read_node place;
};

struct lazy_source {
    uint64_t recorder; /* the number of the one that its places belong to */
    struct ml_json_spans spans;
    struct level *levels;
};

/* A pending table, taken apart. */
struct pending {
    struct lazy_source *source; /* held by the table */
    struct level *level;
    size_t span;
    enum shape_root root;
};

/* Their addresses are keys: in a pending table, in its metatable, in the registry. */
static const char source_key, span_key, root_key, metatable_keys[SHAPE_ROOTS];

/* ---- the text ---- */

/* [-0, +1] A source with a copy of the text. */
ML_RAISES static struct lazy_source *push_source(lua_State *L, struct ml_str json)
{
    struct ml_json_spans *spans = &script_of(L)->spans;
    spans->len = 0;
    ml_json_spans_read(spans, json);
    script_charge_work(L);
    size_t levels_size = spans->len * sizeof(struct level);
    size_t items_size = spans->len * sizeof(struct ml_json_span);
    struct lazy_source *source = lua_newuserdatauv(
        L, sizeof(*source) + levels_size + items_size + json.len, 0);
    char *at = (char *)(source + 1);
    source->recorder = script_reads_number(script_reads_now(L));
    source->levels = memset(at, 0, levels_size);
    source->spans = (struct ml_json_spans){.items = (void *)(at + levels_size), .len = spans->len};
    if (items_size > 0)
        memcpy(source->spans.items, spans->items, items_size);
    source->spans.text = memcpy(at + levels_size + items_size, json.ptr, json.len);
    return source;
}

/* The script's reader, at the first token of the text or of a part of it. */
static struct ml_json_reader *open_reader(lua_State *L, const struct lazy_source *source,
                                          struct ml_str text, size_t span)
{
    struct ml_json_reader *reader = &script_of(L)->reader;
    ml_json_reader_fini(reader);
    ml_json_reader_init(reader, text, 0);
    ml_json_reader_use(reader, &source->spans, span);
    ml_json_next(reader);
    return reader;
}

static struct ml_json_reader *open_pending(lua_State *L, const struct pending *pending)
{
    const struct ml_json_spans *spans = &pending->source->spans;
    uint32_t begin = pending->level->begin, end = spans->items[pending->span].end;
    return open_reader(L, pending->source, (struct ml_str){spans->text + begin, end - begin},
                       pending->span);
}

/* Is `key` among the `count` keys? `marks` has a bit for each that is, to compare few. */
static bool is_repeated(const struct ml_str *keys, size_t count, struct ml_str key, uint64_t *marks)
{
    size_t sum = key.len > 0 ? key.len + 7 * (size_t)key.ptr[0] + 31 * (size_t)key.ptr[key.len - 1]
                             : 0;
    uint64_t mark = UINT64_C(1) << (sum % 64);
    bool is_marked = (*marks & mark) != 0;
    *marks |= mark;
    for (size_t i = 0; is_marked && i < count; i++)
        if (ml_str_eq(keys[i], key))
            return true;
    return false;
}

/* Can the members of object `span` be taken one by one? Their keys are then as in the text. */
static bool is_simple(const struct lazy_source *source, struct ml_str raw, size_t span,
                      enum shape_root root)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    struct ml_str keys[MEMBERS_MAX];
    uint64_t marks = 0;
    ml_json_reader_init(&reader, raw, 0);
    ml_json_reader_use(&reader, &source->spans, span);
    ml_json_next(&reader);
    for (size_t count = 0; ml_json_next(&reader) == ML_JSON_KEY; count++) {
        bool is_left_out = root == SHAPE_METADATA && ml_str_is(reader.text, "managedFields");
        if (count == MEMBERS_MAX || is_left_out || reader.text.ptr == reader.unescaped.ptr ||
            is_repeated(keys, count, reader.text, &marks))
            return false;
        keys[count] = reader.text;
        ml_json_skip(&reader);
    }
    return true;
}

/* Moves the reader behind the key `name`. Returns its place, or -1: there is none. */
static int seek_member(struct ml_json_reader *reader, struct ml_str name)
{
    for (int place = 0; ml_json_next(reader) == ML_JSON_KEY; place++) {
        if (ml_str_eq(reader->text, name))
            return place;
        ml_json_skip(reader);
    }
    return -1;
}

/* ---- pending tables ---- */

ML_RAISES bool lazy_push_table(const struct script_decoder *decoder, enum shape_root root,
                               read_node place)
{
    lua_State *L = decoder->L;
    struct lazy_source *source = decoder->source;
    size_t span;
    struct ml_str raw = ml_json_opened(decoder->reader, &span);
    if (!is_simple(source, raw, span, root))
        return false;
    ml_json_leave(decoder->reader);
    source->levels[span] = (struct level){.begin = (uint32_t)(raw.ptr - source->spans.text),
                                          .place = place};
    lua_createtable(L, 0, 4);
    lua_pushvalue(L, decoder->held);
    lua_rawsetp(L, -2, &source_key);
    lua_pushinteger(L, (lua_Integer)span);
    lua_rawsetp(L, -2, &span_key);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &metatable_keys[root]);
    lua_setmetatable(L, -2);
    return true;
}

/* Takes the table at the absolute `index` apart. False: it has no source. */
static bool open_table(lua_State *L, int index, enum shape_root root, struct pending *out)
{
    bool is_pending = lua_rawgetp(L, index, &source_key) == LUA_TUSERDATA;
    lua_rawgetp(L, index, &span_key);
    if (is_pending) {
        out->source = lua_touserdata(L, -2);
        out->span = (size_t)lua_tointeger(L, -1);
        out->level = &out->source->levels[out->span];
        out->root = root;
    }
    lua_pop(L, 2);
    return is_pending;
}

/* False: the value at the absolute `index` is no pending table. */
static bool find_pending(lua_State *L, int index, struct pending *out)
{
    if (lua_type(L, index) != LUA_TTABLE || !lua_getmetatable(L, index))
        return false;
    bool is_pending = lua_rawgetp(L, -1, &root_key) == LUA_TNUMBER;
    enum shape_root root = (enum shape_root)lua_tointeger(L, -1);
    lua_pop(L, 2);
    return is_pending && open_table(L, index, root, out);
}

/* The table that a metamethod is called for. Raises when it is called with another value. */
ML_RAISES static struct pending check_pending(lua_State *L)
{
    struct pending pending = {.source = NULL};
    enum shape_root root = (enum shape_root)lua_tointeger(L, lua_upvalueindex(1));
    if (lua_type(L, 1) != LUA_TTABLE || !open_table(L, 1, root, &pending))
        luaL_error(L, "expected an object of the API server");
    return pending;
}

bool lazy_is_pending(lua_State *L, int index)
{
    struct pending pending;
    return find_pending(L, lua_absindex(L, index), &pending);
}

/* __index of pending tables; the upvalue is the shape root. */
ML_RAISES static int decode_missing_field(lua_State *L)
{
    lua_settop(L, 2);
    struct pending pending = check_pending(L);
    struct ml_str name = script_str(L, 2);
    script_cpu_check(L);
    if (!name.ptr)
        return shape_push_absent(L, pending.root);
    struct ml_json_reader *reader = open_pending(L, &pending);
    int member = seek_member(reader, name);
    uint64_t bit = member < 0 ? 0 : UINT64_C(1) << member;
    if (pending.level->taken & bit) /* the script has removed it */
        return shape_push_absent(L, pending.root);
    struct script_reads *reads = script_reads_of(L, pending.source->recorder);
    read_node place = reads_field(reads, pending.level->place, name);
    if (member < 0)
        return shape_push_absent(L, pending.root);
    lua_rawgetp(L, 1, &source_key);
    const struct script_decoder decoder = {L, reader, pending.source, lua_gettop(L), reads};
    lua_pushvalue(L, 2);
    ml_json_next(reader);
    script_decode_value(&decoder, script_root_below(pending.root, name), place);
    lua_pushvalue(L, -1);
    lua_insert(L, -3);
    lua_rawset(L, 1);
    pending.level->taken |= bit;
    return 1;
}

/* __newindex of pending tables. */
ML_RAISES static int assign_missing_field(lua_State *L)
{
    struct pending pending = check_pending(L);
    struct ml_str name = script_str(L, 2);
    int member = -1;
    script_cpu_check(L);
    if (lua_isnil(L, 2))
        return luaL_error(L, "table index is nil"); /* as Lua says it, with the place */
    if (lua_type(L, 2) == LUA_TNUMBER && !lua_rawequal(L, 2, 2))
        return luaL_error(L, "table index is NaN");
    if (name.ptr)
        member = seek_member(open_pending(L, &pending), name);
    lua_settop(L, 3);
    lua_rawset(L, 1);
    pending.level->changed = 1;
    if (member >= 0)
        pending.level->taken |= UINT64_C(1) << member;
    return 0;
}

/* With the table at `object`, and above it its source and a node of its shape: decodes the members
 * that are not taken. */
ML_RAISES static void decode_missing_fields(const struct script_decoder *decoder,
                                            const struct pending *pending, int object)
{
    lua_State *L = decoder->L;
    struct ml_json_reader *reader = decoder->reader;
    int node = lua_gettop(L);
    for (size_t member = 0; ml_json_next(reader) == ML_JSON_KEY; member++) {
        struct ml_str name = reader->text; /* in the source: it is not escaped */
        uint64_t bit = UINT64_C(1) << member;
        script_cpu_check(L);
        lua_pushlstring(L, name.ptr, name.len);
        lua_pushvalue(L, -1);
        shape_step(L, node, member);
        lua_pop(L, 1);
        if (pending->level->taken & bit) {
            ml_json_skip(reader);
            lua_pop(L, 1);
            continue;
        }
        ml_json_next(reader);
        script_decode_member(decoder, script_root_below(pending->root, name), pending->level->place,
                             name);
        lua_rawset(L, object);
        pending->level->taken |= bit;
    }
}

ML_RAISES void lazy_complete(lua_State *L, int index)
{
    struct pending pending;
    index = lua_absindex(L, index);
    if (!find_pending(L, index, &pending))
        return;
    luaL_checkstack(L, 12, NULL);
    shape_trim(L);
    struct script_reads *reads = script_reads_of(L, pending.source->recorder);
    reads_keys(reads, pending.level->place);
    lua_rawgetp(L, index, &source_key);
    const struct script_decoder decoder = {L, open_pending(L, &pending), pending.source,
                                           lua_gettop(L), reads};
    shape_begin(L, pending.root);
    decode_missing_fields(&decoder, &pending, index);
    shape_end(L, index, pending.root); /* from here on nothing raises */
    lua_pushnil(L);
    lua_rawsetp(L, index, &source_key);
    lua_pushnil(L);
    lua_rawsetp(L, index, &span_key);
    lua_pop(L, 1);
}

ML_RAISES void lazy_check_table(lua_State *L, int index)
{
    luaL_checktype(L, index, LUA_TTABLE);
    lazy_complete(L, index);
}

bool lazy_untouched(lua_State *L, int index, struct lazy_text *out)
{
    struct pending pending;
    if (!find_pending(L, lua_absindex(L, index), &pending) || pending.level->taken ||
        pending.level->changed)
        return false;
    reads_whole(script_reads_of(L, pending.source->recorder), pending.level->place);
    *out = (struct lazy_text){open_pending(L, &pending), pending.source, pending.root};
    return true;
}

bool lazy_is_simple(const struct lazy_text *text, enum shape_root root)
{
    size_t span;
    struct ml_str raw = ml_json_opened(text->reader, &span);
    return is_simple(text->source, raw, span, root);
}

ML_RAISES void script_push_lazy(lua_State *L, struct ml_str json, read_node place)
{
    shape_trim(L);
    struct lazy_source *source = push_source(L, json);
    const struct script_decoder decoder = {
        L, open_reader(L, source, (struct ml_str){source->spans.text, json.len}, 0), source,
        lua_gettop(L), script_reads_now(L)};
    script_decode_value(&decoder, SHAPE_OBJECT, place);
    lua_remove(L, decoder.held);
}

/* Registers the metatable of pending tables of each root. */
ML_RAISES void lazy_open(lua_State *L)
{
    static const luaL_Reg metamethods[] = {
        {"__index", decode_missing_field}, {"__newindex", assign_missing_field}, {NULL, NULL}};
    for (int root = 0; root < SHAPE_ROOTS; root++) {
        lua_newtable(L);
        lua_pushinteger(L, root);
        luaL_setfuncs(L, metamethods, 1);
        lua_pushinteger(L, root);
        lua_rawsetp(L, -2, &root_key);
        script_register_metatable(L, &metatable_keys[root]);
    }
}
