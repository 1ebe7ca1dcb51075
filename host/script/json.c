/* JSON to Lua and Lua to JSON: how API objects, answers and cjson.decode become tables, and tables
 * become statuses, objects to write, log fields.
 *
 * To Lua: integers stay integers, objects keep their key order (key_order.c), arrays are marked,
 * null is moonloop.null, and a number that fits neither an integer nor a float is kept as its text.
 * Objects of the API server are decoded only as far as a script touches them: most scripts read a
 * few of a hundred fields.
 *
 * A *pending* table has the fields that were touched, decoded, and under two keys that no script
 * can name the *source*, a copy of the object's text, and the number of the table's part of it.
 * Metamethods decode the field that is missing. Scripts cannot tell it from a plain table:
 * Lua's own accesses go through metamethods, and functions that look past metamethods (pairs,
 * rawget, the table library, the encoder) complete the table first, which makes it a plain one for
 * good.
 *
 * An array is decoded when it is touched, but for the objects in it. So is an object in which a key
 * occurs twice or is escaped, or that has more than MEMBERS_MAX: a field is looked for one by one.
 *
 * An error may end any of this between two fields: memory runs out, the deadline expires. The table
 * is then still right, as each field is noted as taken after it has got its place.
 *
 * To JSON: metamethods are not called, so no code of the script runs. Keys of an object that came
 * from JSON keep their order, keys added later follow sorted, and keys of other tables are sorted:
 * the same table gives the same text in every process. */
#include <math.h>

#include "script/objects.h"
#include "script/reads.h"

#define CHECKED_AT_ONCE ((size_t)256 * 1024) /* bytes; the deadline is not looked at meanwhile */
#define MEMBERS_MAX     62

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
    enum object_root root;
};

struct decoder {
    lua_State *L;
    struct ml_json_reader *reader; /* the script's, so that a Lua error cannot leak it */
    struct lazy_source *source;    /* NULL: all of the text is decoded */
    int held;                      /* the stack slot of that source */
    struct script_reads *reads;    /* records what it reads; NULL: nowhere */
};

/* Their addresses are keys: in a pending table, in its metatable, in the registry. */
static const char source_key, span_key, root_key, metatable_keys[ROOT_COUNT];

/* The root of the value of `key` in an object of `root`. */
static enum object_root root_below(enum object_root root, struct ml_str key)
{
    return root == ROOT_OBJECT && ml_str_is(key, "metadata") ? ROOT_METADATA : ROOT_PLAIN;
}

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
                      enum object_root root)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    struct ml_str keys[MEMBERS_MAX];
    uint64_t marks = 0;
    ml_json_reader_init(&reader, raw, 0);
    ml_json_reader_use(&reader, &source->spans, span);
    ml_json_next(&reader);
    for (size_t count = 0; ml_json_next(&reader) == ML_JSON_KEY; count++) {
        bool is_left_out = root == ROOT_METADATA && ml_str_is(reader.text, "managedFields");
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

/* ---- to Lua ---- */

/* [-0, +1] The value whose first token is current. Afterwards its last token is current, or, where
 * it was left for later, its first one. */
ML_RAISES static void decode_value(const struct decoder *decoder, enum object_root root,
                                   read_node place);

/* [-0, +1] With the first token of an object current: a pending table, with the reader past the
 * object. False, with nothing done: this object has to be decoded at once. */
ML_RAISES static bool push_pending(const struct decoder *decoder, enum object_root root,
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

/* [-0, +1] As decode_value, of the field `name` in an object whose keys count as read. */
ML_RAISES static void decode_member(const struct decoder *decoder, enum object_root root,
                                    read_node parent, struct ml_str name)
{
    enum ml_json_token token = decoder->reader->token;
    read_node place = 0;
    if (token == ML_JSON_OBJECT || token == ML_JSON_ARRAY)
        place = reads_field(decoder->reads, parent, name);
    decode_value(decoder, root, place);
}

/* The members of an object that is decoded at once. Later reads of it go unnoticed, so all of it
 * counts as read. */
ML_RAISES static void decode_members(const struct decoder *decoder, enum object_root root,
                                     read_node place)
{
    lua_State *L = decoder->L;
    struct ml_json_reader *reader = decoder->reader;
    int object = lua_gettop(L);
    int node = object + 1;
    key_order_begin(L, root);
    reads_keys(decoder->reads, place);
    size_t count = 0;
    while (ml_json_next(reader) == ML_JSON_KEY) {
        if (root == ROOT_METADATA && ml_str_is(reader->text, "managedFields")) {
            ml_json_skip(reader);
            continue;
        }
        enum object_root below = root_below(root, reader->text);
        lua_pushlstring(L, reader->text.ptr, reader->text.len);
        lua_pushvalue(L, -1);
        bool is_new = lua_rawget(L, object) == LUA_TNIL;
        lua_pop(L, 1);
        if (is_new) { /* the last of duplicate keys wins */
            lua_pushvalue(L, -1);
            key_order_step(L, node, count++);
            lua_pop(L, 1);
        }
        ml_json_next(reader);
        decode_member(decoder, below, place, script_str(L, -1));
        lua_rawset(L, object);
    }
    key_order_end(L, object, root);
}

ML_RAISES static void decode_elements(const struct decoder *decoder, enum object_root root,
                                      read_node place)
{
    lua_State *L = decoder->L;
    struct ml_json_reader *reader = decoder->reader;
    read_node element = reads_element(decoder->reads, place);
    lua_Integer count = 0;
    while (ml_json_next(reader) != ML_JSON_ARRAY_END && reader->token != ML_JSON_ERROR) {
        decode_value(decoder, root == ROOT_ITEMS ? ROOT_OBJECT : ROOT_PLAIN, element);
        lua_rawseti(L, -2, ++count);
    }
    script_mark_array(L, -1);
}

ML_RAISES static void decode_value(const struct decoder *decoder, enum object_root root,
                                   read_node place)
{
    lua_State *L = decoder->L;
    struct ml_json_reader *reader = decoder->reader;
    script_cpu_check(L);
    luaL_checkstack(L, 10, "JSON is nested too deep");
    switch (reader->token) {
    case ML_JSON_OBJECT:
        if (decoder->source && push_pending(decoder, root, place))
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
        script_push_number_text(L, reader->text);
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

/* ---- pending tables ---- */

/* Takes the table at the absolute `index` apart. False: it has no source. */
static bool open_table(lua_State *L, int index, enum object_root root, struct pending *out)
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
    enum object_root root = (enum object_root)lua_tointeger(L, -1);
    lua_pop(L, 2);
    return is_pending && open_table(L, index, root, out);
}

/* The table that a metamethod is called for. Raises when it is called with another value. */
ML_RAISES static struct pending check_pending(lua_State *L)
{
    struct pending pending = {.source = NULL};
    enum object_root root = (enum object_root)lua_tointeger(L, lua_upvalueindex(1));
    if (lua_type(L, 1) != LUA_TTABLE || !open_table(L, 1, root, &pending))
        luaL_error(L, "expected an object of the API server");
    return pending;
}

bool lazy_is_pending(lua_State *L, int index)
{
    struct pending pending;
    return find_pending(L, lua_absindex(L, index), &pending);
}

/* __index of pending tables; the upvalue is the root. */
ML_RAISES static int decode_missing_field(lua_State *L)
{
    lua_settop(L, 2);
    struct pending pending = check_pending(L);
    struct ml_str name = script_str(L, 2);
    script_cpu_check(L);
    if (!name.ptr)
        return script_push_absent(L, pending.root);
    struct ml_json_reader *reader = open_pending(L, &pending);
    int member = seek_member(reader, name);
    uint64_t bit = member < 0 ? 0 : UINT64_C(1) << member;
    if (pending.level->taken & bit) /* the script has removed it */
        return script_push_absent(L, pending.root);
    struct script_reads *reads = script_reads_of(L, pending.source->recorder);
    read_node place = reads_field(reads, pending.level->place, name);
    if (member < 0)
        return script_push_absent(L, pending.root);
    lua_rawgetp(L, 1, &source_key);
    const struct decoder decoder = {L, reader, pending.source, lua_gettop(L), reads};
    lua_pushvalue(L, 2);
    ml_json_next(reader);
    decode_value(&decoder, root_below(pending.root, name), place);
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

/* With the table at `object`, and above it its source and a node of its key order: decodes the
 * members that are not taken. */
ML_RAISES static void decode_missing_fields(const struct decoder *decoder,
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
        key_order_step(L, node, member);
        lua_pop(L, 1);
        if (pending->level->taken & bit) {
            ml_json_skip(reader);
            lua_pop(L, 1);
            continue;
        }
        ml_json_next(reader);
        decode_member(decoder, root_below(pending->root, name), pending->level->place, name);
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
    key_order_trim(L);
    struct script_reads *reads = script_reads_of(L, pending.source->recorder);
    reads_keys(reads, pending.level->place);
    lua_rawgetp(L, index, &source_key);
    const struct decoder decoder = {L, open_pending(L, &pending), pending.source, lua_gettop(L),
                                    reads};
    key_order_begin(L, pending.root);
    decode_missing_fields(&decoder, &pending, index);
    key_order_end(L, index, pending.root); /* from here on nothing raises */
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

/* Registers the metatable of pending tables of each root. */
ML_RAISES void lazy_open(lua_State *L)
{
    static const luaL_Reg metamethods[] = {
        {"__index", decode_missing_field}, {"__newindex", assign_missing_field}, {NULL, NULL}};
    for (int root = 0; root < ROOT_COUNT; root++) {
        lua_newtable(L);
        lua_pushinteger(L, root);
        luaL_setfuncs(L, metamethods, 1);
        lua_pushinteger(L, root);
        lua_rawsetp(L, -2, &root_key);
        script_register_metatable(L, &metatable_keys[root]);
    }
}

ML_RAISES void script_push_lazy(lua_State *L, struct ml_str json, read_node place)
{
    key_order_trim(L);
    struct lazy_source *source = push_source(L, json);
    const struct decoder decoder = {
        L, open_reader(L, source, (struct ml_str){source->spans.text, json.len}, 0), source,
        lua_gettop(L), script_reads_now(L)};
    decode_value(&decoder, ROOT_OBJECT, place);
    lua_remove(L, decoder.held);
}

ML_RAISES void script_push_json(lua_State *L, struct ml_str json, enum object_root root)
{
    /* The reader belongs to the script, so that a Lua error cannot leak it: the next call frees it.
     */
    struct ml_json_reader *reader = &script_of(L)->reader;
    const struct decoder decoder = {.L = L, .reader = reader};
    script_charge_work(L);
    key_order_trim(L);
    ml_json_reader_fini(reader);
    ml_json_reader_init(reader, json, 0);
    ml_json_next(reader);
    decode_value(&decoder, root, 0);
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
        script_push_json(L, json, ROOT_OBJECT);
}

ML_RAISES void script_push_object(lua_State *L, const struct ml_object *object, read_node place)
{
    struct ml_buf *opened = &script_of(L)->opened;
    ml_buf_clear(opened);
    ml_object_json(object, opened);
    script_push_lazy(L, ml_buf_str(opened), place);
    script_release_opened(script_of(L));
}

/* ---- to JSON ---- */

/* The text of a table that is still as it was pushed, with all that is below it. */
struct lazy_text {
    struct ml_json_reader *reader; /* the script's: its first token is current */
    const struct lazy_source *source;
    enum object_root root;
};

/* False: it is not such a table. If true, the whole table counts as read. */
static bool is_untouched(lua_State *L, int index, struct lazy_text *out)
{
    struct pending pending;
    if (!find_pending(L, lua_absindex(L, index), &pending) || pending.level->taken ||
        pending.level->changed)
        return false;
    reads_whole(script_reads_of(L, pending.source->recorder), pending.level->place);
    *out = (struct lazy_text){open_pending(L, &pending), pending.source, pending.root};
    return true;
}

/* Can the members of the object whose first token is current be read from the text one by one: does
 * no key occur twice, and is none left out? */
static bool is_text_simple(const struct lazy_text *text, enum object_root root)
{
    size_t span;
    struct ml_str raw = ml_json_opened(text->reader, &span);
    return is_simple(text->source, raw, span, root);
}

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
    enum object_root root = text->root; /* of the value that comes next */
    for (;; ml_json_next(reader)) {
        script_cpu_check(encoder->L);
        if (encoder->depth + reader->depth >= ML_JSON_DEPTH_MAX)
            return false;
        switch (reader->token) {
        case ML_JSON_OBJECT:
            if (!is_text_simple(text, root))
                return false;
            ml_json_begin_object(writer);
            break;
        case ML_JSON_OBJECT_END:
            ml_json_end_object(writer);
            break;
        case ML_JSON_ARRAY:
            root = ROOT_PLAIN;
            ml_json_begin_array(writer);
            break;
        case ML_JSON_ARRAY_END:
            ml_json_end_array(writer);
            break;
        case ML_JSON_KEY:
            root = root_below(reader->depth == 1 ? text->root : ROOT_PLAIN, reader->text);
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
    if (!is_untouched(encoder->L, index, &text))
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
    bool is_ordered = key_order_keys(L, index);
    if (is_ordered)
        lua_pop(L, 1);
    bool is_array = script_is_array(L, index) ||
                    (!is_ordered && survey.strings == 0 &&
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
