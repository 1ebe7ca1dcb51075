/* The indexes of a script (index.h): moonloop.index makes one, the operator reports changes and
 * calls for work, ctx.list looks objects up.
 *
 * An index knows each object of its kind that the cache reported, also those without keys. An
 * object that is new or has changed is pending until the function has run for it; until then it has
 * the keys of its former version. */
#include "script/index.h"
#include "script/objects.h"

#define WORK_NS (5 * ML_NS_PER_MS) /* of CPU time, in one piece */

/* One object of the kind. */
struct entry {
    struct ml_object *object; /* the version that was reported last; holds a reference */
    struct posting **keys;
    size_t key_count;
    struct ml_list pending; /* in index->pending, while is_pending */
    bool is_pending;
};

/* The objects of one key. */
struct posting {
    struct ml_set members; /* of entries */
    size_t key_len;
    char key[];
};

/* Memory for an entry, with its places in sets: an estimate. */
#define ENTRY_BYTES   (sizeof(struct entry) + 24)
#define MEMBER_BYTES  (sizeof(struct posting *) + 24)
#define POSTING_BYTES (sizeof(struct posting) + 128)

static struct ml_str entry_key(const void *value)
{
    return ml_object_key(((const struct entry *)value)->object);
}

static struct ml_str posting_key(const void *value)
{
    const struct posting *posting = value;
    return (struct ml_str){posting->key, posting->key_len};
}

/* ---- memory ---- */

static void index_give(struct ml_script *script, struct script_index *index, size_t bytes)
{
    ml_budget_give(&script->memory, bytes);
    index->charged -= bytes;
}

static bool index_charge(struct ml_script *script, struct script_index *index, size_t bytes)
{
    if (!ml_budget_take(&script->memory, bytes))
        return false;
    index->charged += bytes;
    return true;
}

static void entry_settle(struct ml_script *script, struct entry *entry)
{
    if (!entry->is_pending)
        return;
    ml_list_remove(&entry->pending);
    entry->is_pending = false;
    script->index_pending--;
}

static void index_clear(struct ml_script *script, struct script_index *index)
{
    ml_set_each (&index->entries, i, value) {
        struct entry *entry = value;
        entry_settle(script, entry);
        ml_object_unref(entry->object);
        free(entry->keys);
        free(entry);
    }
    ml_set_each (&index->postings, j, value) {
        struct posting *posting = value;
        ml_set_fini(&posting->members);
        free(posting);
    }
    ml_set_fini(&index->entries);
    ml_set_fini(&index->postings);
    index_give(script, index, index->charged);
}

static void report_failed(struct ml_script *script, const struct script_index *index,
                          struct ml_object *object, const struct ml_err *err)
{
    size_t kind = 0;
    while (kind < script->declaration.kind_count &&
           !script_is_same_kind(&script->kinds[kind].gvk, &index->gvk))
        kind++;
    if (script->index_failed)
        script->index_failed(script->index_context, kind, object, err);
}

/* It holds nothing from now on: a part of an index would answer lookups wrongly. */
static void index_overflow(struct ml_script *script, struct script_index *index,
                           struct ml_object *object)
{
    struct ml_err err = ML_ERR_INIT;
    ml_object_ref(object);
    script_out_of_memory(script, &err);
    ml_err_wrap(&err, "%s: moonloop.index holds nothing any more", index->place);
    index->overflowed = true;
    index_clear(script, index);
    report_failed(script, index, object, &err);
    ml_object_unref(object);
}

/* An index without objects. The caller has charged the script for it. */
static void make_index(struct ml_script *script, const struct ml_gvk *gvk, int function_ref,
                       const char *place)
{
    struct script_index *index = ml_new(struct script_index);
    index->charged = sizeof(*index); /* the caller has charged the script for it */
    index->gvk = *gvk;
    index->function_ref = function_ref;
    index->entries.key = entry_key;
    index->postings.key = posting_key;
    ml_list_init(&index->pending);
    index->reads = script_reads_new_of_any(script);
    snprintf(index->place, sizeof(index->place), "%s", place);
    script->indexes[script->index_count++] = index;
}

void script_indexes_free(struct ml_script *script)
{
    for (size_t i = 0; i < script->index_count; i++) {
        struct script_index *index = script->indexes[i];
        index_clear(script, index);
        script_reads_free(index->reads);
        free(index);
    }
    script->index_count = 0;
}

/* ---- the keys of an entry ---- */

static void posting_leave(struct ml_script *script, struct script_index *index,
                          struct posting *posting, const struct entry *entry)
{
    ml_set_remove(&posting->members, entry_key(entry));
    index_give(script, index, MEMBER_BYTES);
    if (posting->members.len > 0)
        return;
    ml_set_remove(&index->postings, posting_key(posting));
    index_give(script, index, POSTING_BYTES + posting->key_len);
    ml_set_fini(&posting->members);
    free(posting);
}

static void entry_drop_keys(struct ml_script *script, struct script_index *index,
                            struct entry *entry)
{
    for (size_t i = 0; i < entry->key_count; i++)
        posting_leave(script, index, entry->keys[i], entry);
    free(ml_take(&entry->keys));
    entry->key_count = 0;
}

/* The posting of the key, which may be new; NULL: there is no memory left. */
static struct posting *posting_of(struct ml_script *script, struct script_index *index,
                                  struct ml_str key)
{
    struct posting *posting = ml_set_get(&index->postings, key);
    if (posting)
        return posting;
    if (!index_charge(script, index, POSTING_BYTES + key.len))
        return NULL;
    posting = ml_zalloc(sizeof *posting + key.len);
    posting->members.key = entry_key;
    posting->key_len = key.len;
    memcpy(posting->key, key.ptr, key.len);
    ml_set_put(&index->postings, posting);
    return posting;
}

static bool entry_has_key(const struct entry *entry, const struct posting *posting)
{
    for (size_t i = 0; i < entry->key_count; i++)
        if (entry->keys[i] == posting)
            return true;
    return false;
}

/* Room for it is there. False: there is no memory left. */
static bool entry_join(struct ml_script *script, struct script_index *index, struct entry *entry,
                       struct ml_str key)
{
    struct posting *posting = posting_of(script, index, key);
    if (!posting)
        return false;
    if (entry_has_key(entry, posting))
        return true;
    ml_set_put(&posting->members, entry);
    entry->keys[entry->key_count++] = posting;
    index->charged += MEMBER_BYTES;
    ml_budget_force(&script->memory, MEMBER_BYTES); /* at most 64 of them */
    return true;
}

/* ---- the function of an index ---- */

/* The keys that the function returned; they stand in script->outgoing, one after the other. */
struct index_keys {
    size_t count;
    uint16_t lens[SCRIPT_INDEX_KEYS_MAX];
};

struct index_call {
    const struct script_index *index;
    struct ml_object *object;
    struct index_keys *keys;
};

ML_RAISES static int refuse_keys(lua_State *L, const struct index_call *call, const char *problem)
{
    return luaL_error(L,
                      "%s: the function of moonloop.index has to return a list of strings, or one, "
                      "or nothing: %s",
                      call->index->place, problem);
}

/* [-1, +0] The key on top. */
ML_RAISES static void add_key(lua_State *L, struct index_call *call)
{
    struct ml_buf *keys = &script_of(L)->outgoing;
    struct ml_str key = script_str(L, -1);
    if (!key.ptr) {
        lua_pushfstring(L, "got a %s", luaL_typename(L, -1));
        refuse_keys(L, call, lua_tostring(L, -1));
    }
    if (key.len > SCRIPT_INDEX_KEY_MAX)
        refuse_keys(L, call, "a key has at most 253 bytes");
    ml_buf_append_str(keys, key);
    call->keys->lens[call->keys->count++] = (uint16_t)key.len;
    lua_pop(L, 1);
}

/* [-1, +0] The list on top. */
ML_RAISES static void add_keys(lua_State *L, struct index_call *call)
{
    int list = lua_gettop(L);
    lazy_complete(L, list);
    lua_Integer count = (lua_Integer)lua_rawlen(L, list);
    if (count > SCRIPT_INDEX_KEYS_MAX)
        refuse_keys(L, call, "an object has at most 64 keys");
    lua_pushnil(L);
    for (lua_Integer seen = 0; lua_next(L, list); seen++) {
        if (seen == count || !lua_isinteger(L, -2))
            refuse_keys(L, call, "this is no list");
        lua_pop(L, 1);
    }
    for (lua_Integer i = 1; i <= count; i++) {
        script_cpu_check(L);
        lua_rawgeti(L, list, i);
        add_key(L, call);
    }
    lua_pop(L, 1);
}

/* Runs in script_protect. */
ML_RAISES static int index_main(lua_State *L)
{
    struct index_call *call = lua_touserdata(L, 1);
    struct ml_buf *keys = &script_of(L)->outgoing;
    lua_rawgeti(L, LUA_REGISTRYINDEX, call->index->function_ref);
    script_push_object(L, call->object, reads_self(script_reads_now(L)));
    lua_call(L, 1, 1);
    ml_buf_clear(keys);
    if (lua_isnil(L, -1))
        return 0;
    if (lua_istable(L, -1))
        add_keys(L, call);
    else
        add_key(L, call);
    script_charge_work(L);
    return 0;
}

/* Calls the function with the object. 0, or ML_ESCRIPT with "file:line: message". */
ML_NODISCARD static int call_index(struct ml_script *script, const struct script_index *index,
                                   struct ml_object *object, struct index_keys *out,
                                   struct ml_err *err)
{
    struct index_call call = {.index = index, .object = object, .keys = out};
    out->count = 0;
    script->thread.object = object;
    script->thread.reads = script->thread.log_lines = 0;
    script->index_reads = index->reads;
    int r = script_protect(script, index_main, &call,
                           script->limits.run_cpu_ns / ML_SCRIPT_WHEN_SHARE, err);
    script->index_reads = NULL;
    script->thread.object = NULL;
    return r;
}

/* ---- the work ---- */

/* Gives the entry these keys. False: there is no memory left. */
static bool entry_take_keys(struct ml_script *script, struct script_index *index,
                            struct entry *entry, const struct index_keys *keys)
{
    const char *at = script->outgoing.ptr;
    bool is_same = keys->count == entry->key_count;
    for (size_t i = 0; is_same && i < keys->count; at += keys->lens[i++])
        is_same = ml_str_eq(posting_key(entry->keys[i]), (struct ml_str){at, keys->lens[i]});
    if (is_same)
        return true;
    entry_drop_keys(script, index, entry);
    if (keys->count == 0)
        return true;
    entry->keys = ml_alloc(keys->count * sizeof(*entry->keys));
    at = script->outgoing.ptr;
    for (size_t i = 0; i < keys->count; at += keys->lens[i++])
        if (!entry_join(script, index, entry, (struct ml_str){at, keys->lens[i]}))
            return false;
    return true;
}

static void index_entry(struct ml_script *script, struct script_index *index, struct entry *entry)
{
    struct ml_object *object = ml_object_ref(entry->object);
    struct index_keys keys;
    struct ml_err err = ML_ERR_INIT;
    entry_settle(script, entry);
    int r = call_index(script, index, object, &keys, &err);
    if (r < 0 && script->limit_hit == ML_LIMIT_MEMORY) {
        index_overflow(script, index, object);
    } else if (r < 0) {
        entry_drop_keys(script, index, entry);
        report_failed(script, index, object, &err);
    } else if (!entry_take_keys(script, index, entry, &keys)) {
        index_overflow(script, index, object);
    }
    ml_object_unref(object);
}

bool ml_script_index_work(struct ml_script *script)
{
    int64_t left_ns = WORK_NS;
    for (size_t i = 0; i < script->index_count; i++) {
        struct script_index *index = script->indexes[i];
        while (!ml_list_empty(&index->pending)) {
            if (left_ns <= 0)
                return false;
            index_entry(script, index, ml_container_of(index->pending.next, struct entry, pending));
            left_ns -= script->cpu_used_ns;
        }
    }
    script_release_work(script, SCRIPT_WORK_KEPT);
    return true;
}

bool ml_script_index_pending(const struct ml_script *script)
{
    return script->index_pending > 0;
}

/* ---- changes ---- */

static void index_remove(struct ml_script *script, struct script_index *index,
                         struct ml_object *object)
{
    struct entry *entry = ml_set_get(&index->entries, ml_object_key(object));
    if (!entry)
        return;
    entry_drop_keys(script, index, entry);
    entry_settle(script, entry);
    ml_set_remove(&index->entries, entry_key(entry));
    index_give(script, index, ENTRY_BYTES);
    ml_object_unref(entry->object);
    free(entry);
}

/* The entry of the object, which may be new; NULL: there is no memory left. */
static struct entry *entry_of(struct ml_script *script, struct script_index *index,
                              struct ml_object *object)
{
    struct entry *entry = ml_set_get(&index->entries, ml_object_key(object));
    if (entry)
        return entry;
    if (!index_charge(script, index, ENTRY_BYTES))
        return NULL;
    entry = ml_new(struct entry);
    entry->object = ml_object_ref(object);
    ml_set_put(&index->entries, entry);
    return entry;
}

static void index_put(struct ml_script *script, struct script_index *index,
                      struct ml_object *object)
{
    size_t known = index->entries.len;
    struct entry *entry = entry_of(script, index, object);
    if (!entry) {
        index_overflow(script, index, object);
        return;
    }
    if (entry->object == object && index->entries.len == known)
        return; /* another listener of the same cache has reported it */
    struct ml_object *former = entry->object;
    entry->object = ml_object_ref(object);
    ml_object_unref(former);
    if (entry->is_pending)
        return;
    entry->is_pending = true;
    ml_list_push(&index->pending, &entry->pending);
    script->index_pending++;
}

bool ml_script_indexes(const struct ml_script *script, size_t kind)
{
    for (size_t i = 0; i < script->index_count; i++)
        if (script_is_same_kind(&script->indexes[i]->gvk, &script->kinds[kind].gvk))
            return true;
    return false;
}

void ml_script_index_change(struct ml_script *script, size_t kind, struct ml_object *old,
                            struct ml_object *new)
{
    for (size_t i = 0; i < script->index_count; i++) {
        struct script_index *index = script->indexes[i];
        if (index->overflowed || !script_is_same_kind(&index->gvk, &script->kinds[kind].gvk))
            continue;
        if (new)
            index_put(script, index, new);
        else
            index_remove(script, index, old);
    }
}

void ml_script_on_index_failed(struct ml_script *script, ml_script_index_failed *failed,
                               void *context)
{
    script->index_failed = failed;
    script->index_context = context;
}

/* ---- lookups ---- */

size_t script_index_len(const struct script_index *index, struct ml_str key)
{
    const struct posting *posting = ml_set_get(&index->postings, key);
    return posting ? posting->members.len : 0;
}

struct ml_object *script_index_next(const struct script_index *index, struct ml_str key,
                                    size_t *cursor)
{
    const struct posting *posting = ml_set_get(&index->postings, key);
    const struct entry *entry = posting ? ml_set_next(&posting->members, cursor) : NULL;
    return entry ? entry->object : NULL;
}

/* ---- moonloop.index ---- */

ML_RAISES void script_index_open(lua_State *L)
{
    lua_newtable(L);
    script_register_metatable(L, &script_index_key);
}

ML_RAISES int script_index_new(lua_State *L)
{
    struct ml_script *script = script_of(L);
    const struct ml_script_kind *kind = script_to_kind(L, 1);
    if (!kind || lua_type(L, 2) != LUA_TFUNCTION)
        return script_push_refusal(L, "expected a kind and a function");
    if (!script->files)
        return script_push_refusal(
            L, "an index is made while the script loads, at the top of the file");
    if (script->index_count == SCRIPT_INDEXES_MAX)
        return script_push_refusal(L, "more than 8 indexes");
    size_t *number = script_push_userdata(L, sizeof(*number), &script_index_key);
    *number = script->index_count;
    lua_pushvalue(L, 1);
    luaL_ref(L, LUA_REGISTRYINDEX); /* the kind's strings live as long as the state */
    lua_pushvalue(L, 2);
    int function_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushvalue(L, 2);
    lua_Debug place;
    lua_getinfo(L, ">S", &place);
    char text[SCRIPT_INDEX_PLACE_MAX];
    snprintf(text, sizeof(text), "%s:%d", place.short_src, place.linedefined);
    script_charge(L, sizeof(struct script_index));
    make_index(script, &kind->gvk, function_ref, text);
    return 1;
}

ML_RAISES void script_index_check_kinds(lua_State *L)
{
    const struct ml_script *script = script_of(L);
    for (size_t i = 0; i < script->index_count; i++) {
        const struct script_index *index = script->indexes[i];
        bool is_watched = false;
        for (size_t j = 0; j < script->declaration.kind_count; j++)
            is_watched |= script->kinds[j].use != ML_USE_TOUCHES &&
                          script_is_same_kind(&script->kinds[j].gvk, &index->gvk);
        if (!is_watched)
            luaL_error(L,
                       "%s: moonloop.index: %s is not watched, so there is no cache to look it up "
                       "in: add it to owns or watches",
                       index->place, index->gvk.kind.ptr);
    }
}
