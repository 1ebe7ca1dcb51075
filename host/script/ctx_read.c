/* ctx.get and ctx.list: from the cache for kinds that are watched, by a request for the others. */
#include "codec/json_members.h"
#include "kube/selector.h"
#include "script/ctx.h"
#include "script/ctx_calls.h"

ML_RAISES static struct ctx_kind check_kind(lua_State *L, int index, const char *call)
{
    const struct ml_script_kind *kind = script_to_kind(L, index);
    if (!kind)
        luaL_error(L, "%s: expected a kind of moonloop.kind(apiVersion, kind), got a %s", call,
                   luaL_typename(L, index));
    return ctx_kind_of(L, &kind->gvk);
}

ML_RAISES static struct ml_str check_get_name(lua_State *L, int index)
{
    struct ml_str name = script_str(L, index);
    if (!name.ptr || !ml_name_valid(name))
        luaL_error(L, GET_CALL ": expected %s, got %s",
                   index == 2 ? "the name of an object" : "the name of a namespace",
                   name.ptr ? "one that no object can have" : luaL_typename(L, index));
    return name;
}

ML_RAISES static int get_from_cache(lua_State *L, const struct ctx_kind *kind, const char *key)
{
    struct ml_object *object = ctx_cached(kind, key);
    read_node node = reads_object(script_reads_now(L), kind->index, ml_str_of(key), object);
    if (object) {
        script_push_object(L, object, node);
        return 1;
    }
    struct ml_err err = ML_ERR_INIT;
    ml_err_set(&err, ML_ENOT_FOUND, "%s %s not found", kind->kind->kind, key);
    err.http = 404;
    return ctx_fail(L, &err);
}

ML_RAISES static int get_now(lua_State *L, int status ML_UNUSED, lua_KContext context ML_UNUSED)
{
    struct ctx_kind kind = check_kind(L, 1, GET_CALL);
    struct ml_str name = check_get_name(L, 2), given = {NULL, 0};
    if (!lua_isnoneornil(L, 3))
        given = check_get_name(L, 3);
    struct ml_str ns = ctx_namespace(L, GET_CALL, kind.kind, given);
    struct ml_run *run = script_thread_of(L)->run;
    char key[CTX_KEY_MAX];
    ctx_write_key(ns, name, key);
    ctx_note_request(run, "get", &kind, key);
    if (ctx_must_wait(L, GET_CALL, &kind))
        return lua_yieldk(L, 0, 0, get_now);
    if (kind.informer)
        return get_from_cache(L, &kind, key);
    run = ctx_may_wait(L, GET_CALL);
    const struct ml_client_request request = {
        .verb = ML_VERB_GET, .kind = kind.kind, .ns = ns, .name = name};
    run_read(run, &request);
    return lua_yieldk(L, 0, 0, ctx_answered);
}

ML_RAISES static int ctx_get(lua_State *L)
{
    ctx_count_read(L);
    return get_now(L, LUA_OK, 0);
}

struct label {
    struct ml_str key, value;
};

struct filter {
    struct ml_str ns; /* empty: all namespaces */
    bool owned;
    const struct label *labels; /* a userdata on the stack; the array below it holds the strings */
    size_t label_count;
};

/* Checks the label whose key is below the top and whose value is on top. */
ML_RAISES static struct label check_label(lua_State *L)
{
    struct label label = {script_str(L, -2), script_str(L, -1)};
    if (!label.key.ptr || !label.value.ptr)
        luaL_error(L, LIST_CALL ": labels: expected a table of strings");
    if (!ml_label_valid(label.key, label.value)) {
        lua_pushlstring(L, label.key.ptr, ML_MIN(label.key.len, (size_t)64));
        luaL_error(L, LIST_CALL ": labels: no object can have this label '%s'",
                   lua_tostring(L, -1));
    }
    return label;
}

/* [-0, +2] Checks the labels in the table on top. Pushes an array of the sorted keys followed by
 * their values, and a userdata with slices of these. */
ML_RAISES static void check_labels(lua_State *L, struct filter *filter)
{
    int given = lua_gettop(L), held = given + 1;
    lazy_complete(L, given);
    script_push_keys(L, given);
    size_t count = (size_t)lua_rawlen(L, held);
    if (count > SCRIPT_FILTER_LABELS_MAX)
        luaL_error(L, LIST_CALL ": labels: at most %d", SCRIPT_FILTER_LABELS_MAX);
    struct label *labels = lua_newuserdatauv(L, (count + 1) * sizeof(*labels), 0);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, held, (lua_Integer)i + 1);
        lua_pushvalue(L, -1);
        lua_rawget(L, given);
        labels[i] = check_label(L);
        lua_rawseti(L, held, (lua_Integer)(count + i + 1));
        lua_pop(L, 1);
    }
    filter->labels = labels;
    filter->label_count = count;
}

ML_RAISES static struct filter check_filter(lua_State *L, const struct ctx_kind *kind)
{
    struct filter filter = {.labels = NULL};
    lua_settop(L, 2);
    if (lua_isnil(L, 2)) {
        lua_newtable(L);
        lua_replace(L, 2);
    }
    if (!lua_istable(L, 2))
        luaL_error(L, LIST_CALL ": expected a table of options");
    lazy_complete(L, 2);
    script_check_fields(L, LIST_CALL, "list", 2);
    script_push_field(L, 2, "namespace");
    struct ml_str given = script_str(L, -1);
    if (!given.ptr && !lua_isnil(L, -1))
        luaL_error(L, LIST_CALL ": namespace: expected a string");
    script_push_field(L, 2, "owned");
    filter.owned = lua_toboolean(L, -1);
    int type = script_push_field(L, 2, "labels");
    if (type != LUA_TNIL && type != LUA_TTABLE)
        luaL_error(L, LIST_CALL ": labels: expected a table");
    if (type == LUA_TTABLE)
        check_labels(L, &filter);
    if (!ml_str_is(given, "*"))
        filter.ns = ctx_namespace(L, LIST_CALL, kind->kind, given);
    return filter;
}

static int compare_objects(const void *a, const void *b)
{
    return ml_str_cmp(ml_object_key(*(struct ml_object *const *)a),
                      ml_object_key(*(struct ml_object *const *)b));
}

/* Does the object have all labels of the filter? */
static bool object_labels_match(const struct filter *filter, struct ml_str json)
{
    ML_AUTO(ml_json_members_fini) struct ml_json_members labels = {0};
    ML_AUTO(ml_buf_fini) struct ml_buf value = ML_BUF_INIT;
    struct ml_str raw;
    struct ml_err err;
    if (filter->label_count == 0)
        return true;
    if (!ml_json_find(json, &raw, "metadata", "labels", NULL) ||
        !ml_json_members_read(&labels, raw, 0, &err))
        return false;
    for (size_t i = 0; i < filter->label_count; i++) {
        const struct label *want = &filter->labels[i];
        const struct ml_json_member *label = ml_json_members_find(&labels, want->key);
        ml_buf_clear(&value);
        if (!label || !ml_json_to_string(label->value, &value) ||
            !ml_str_eq(ml_buf_str(&value), want->value))
            return false;
    }
    return true;
}

/* [-0, +1] A userdata with pointers to the objects that may match. They are borrowed: nothing
 * changes the store before this call returns. */
ML_RAISES static struct ml_object **push_candidates(lua_State *L, const struct ctx_kind *kind,
                                                    const struct filter *filter, size_t *out_count)
{
    const struct ml_store *store = ml_informer_store(kind->informer);
    struct ml_str owner = ml_object_uid(script_thread_of(L)->object);
    struct ml_object **found = lua_newuserdatauv(
        L, (ml_store_len(store) + 1) * sizeof(struct ml_object *), 0);
    size_t count = 0, cursor = 0;
    struct ml_object *object;
    while ((object = filter->owned ? ml_store_next_owned(store, owner, &cursor)
                                   : ml_store_next(store, &cursor))) {
        script_cpu_check(L);
        if (filter->ns.len == 0 || ml_str_eq(ml_object_namespace(object), filter->ns))
            found[count++] = object;
    }
    script_sort(L, found, count, sizeof(*found), compare_objects);
    *out_count = count;
    return found;
}

/* The members of the list; a filter by labels looks at these labels of each. */
static read_node note_list_read(struct script_reads *reads, const struct ctx_kind *kind,
                                const struct filter *filter)
{
    read_node members = reads_list(reads, kind->index, filter->ns, filter->owned);
    for (size_t i = 0; i < filter->label_count; i++) {
        read_node metadata = reads_field(reads, members, ML_STR("metadata"));
        read_node labels = reads_field(reads, metadata, ML_STR("labels"));
        reads_field(reads, labels, filter->labels[i].key);
    }
    return members;
}

ML_RAISES static int list_from_cache(lua_State *L, const struct ctx_kind *kind,
                                     const struct filter *filter)
{
    struct ml_buf *opened = &script_of(L)->opened;
    size_t count;
    struct ml_object **found = push_candidates(L, kind, filter, &count);
    struct script_reads *reads = script_reads_now(L);
    read_node members = note_list_read(reads, kind, filter);
    lua_Integer listed = 0;
    lua_newtable(L);
    for (size_t i = 0; i < count; i++) {
        script_cpu_check(L);
        ml_buf_clear(opened);
        ml_object_json(found[i], opened);
        if (!object_labels_match(filter, ml_buf_str(opened)))
            continue;
        script_push_lazy(L, ml_buf_str(opened), members);
        lua_rawseti(L, -2, ++listed);
    }
    shape_mark_array(L, -1);
    return 1;
}

/* Adds apiVersion and kind, which a list has once for all items. */
ML_RAISES static void complete_list_item(lua_State *L, const struct ml_kind *kind)
{
    const char *const fields[][2] = {{"apiVersion", kind->api_version}, {"kind", kind->kind}};
    for (size_t i = 0; i < ML_COUNT(fields); i++) {
        bool is_there = script_push_field(L, -1, fields[i][0]) != LUA_TNIL;
        lua_pop(L, 1);
        if (is_there)
            continue;
        lua_pushstring(L, fields[i][0]);
        lua_pushstring(L, fields[i][1]);
        lua_rawset(L, -3);
    }
}

/* Does the object on top have the object with this uid as its controller? */
ML_RAISES static bool is_item_owned(lua_State *L, struct ml_str uid)
{
    int top = lua_gettop(L);
    bool owned = false;
    lua_getfield(L, -1, "metadata");
    if (lua_istable(L, -1) && lua_getfield(L, -1, "ownerReferences") == LUA_TTABLE)
        for (lua_Integer i = 1; !owned && lua_rawgeti(L, top + 2, i) == LUA_TTABLE; i++) {
            script_cpu_check(L);
            lua_getfield(L, -1, "controller");
            lua_getfield(L, -2, "uid");
            const char *text = lua_tostring(L, -1);
            owned = lua_toboolean(L, -2) && text && ml_str_is(uid, text);
            lua_pop(L, 3);
        }
    lua_settop(L, top);
    return owned;
}

ML_RAISES static int list_answered(lua_State *L, int status ML_UNUSED, lua_KContext owned)
{
    struct ml_run *run = script_thread_of(L)->run;
    struct ml_str items = {NULL, 0};
    if (run->err.kind)
        return ctx_fail(L, &run->err);
    struct ctx_kind kind = check_kind(L, 1, LIST_CALL);
    lua_newtable(L);
    shape_mark_array(L, -1);
    if (!ml_json_find(run->body, &items, "items", NULL) || items.ptr[0] != '[')
        return 1;
    int result = lua_gettop(L);
    lua_Integer listed = 0;
    script_push_json(L, items, SHAPE_ITEMS);
    for (lua_Integer i = 1; lua_rawgeti(L, result + 1, i) == LUA_TTABLE; i++) {
        script_cpu_check(L);
        complete_list_item(L, kind.kind);
        if (!owned || is_item_owned(L, ml_object_uid(run->thread.object)))
            lua_rawseti(L, result, ++listed);
        else
            lua_pop(L, 1);
    }
    lua_settop(L, result);
    return 1;
}

/* Writes the URL of the list into script->overlay. */
ML_RAISES static const char *list_path(lua_State *L, const struct ctx_kind *kind,
                                       const struct filter *filter)
{
    struct ml_buf *path = &script_of(L)->overlay, *selector = &script_of(L)->body;
    ml_buf_clear(path);
    ml_buf_clear(selector);
    ml_kind_path(kind->kind, filter->ns, ML_STR(""), ML_STR(""), path);
    for (size_t i = 0; i < filter->label_count; i++)
        ml_buf_printf(selector, "%s" ML_STR_FMT "=" ML_STR_FMT, i > 0 ? "," : "",
                      ML_STR_ARG(filter->labels[i].key), ML_STR_ARG(filter->labels[i].value));
    if (selector->len > 0)
        ml_url_query(path, "labelSelector", ml_buf_str(selector));
    if (path->len > SCRIPT_URL_MAX)
        luaL_error(L, LIST_CALL ": the request's URL would have %d bytes; at most %d",
                   (int)path->len, SCRIPT_URL_MAX);
    return ml_buf_cstr(path);
}

ML_RAISES static int list_now(lua_State *L, int status ML_UNUSED, lua_KContext context ML_UNUSED)
{
    struct ctx_kind kind = check_kind(L, 1, LIST_CALL);
    struct filter filter = check_filter(L, &kind);
    struct ml_run *run = script_thread_of(L)->run;
    if (run)
        snprintf(run->what, sizeof(run->what), "list %s", kind.kind->kind);
    if (ctx_must_wait(L, LIST_CALL, &kind))
        return lua_yieldk(L, 0, 0, list_now);
    if (kind.informer)
        return list_from_cache(L, &kind, &filter);
    run = ctx_may_wait(L, LIST_CALL);
    const struct ml_client_request request = {.verb = ML_VERB_GET,
                                              .path = list_path(L, &kind, &filter)};
    run_read(run, &request);
    return lua_yieldk(L, 0, filter.owned, list_answered);
}

ML_RAISES static int ctx_list(lua_State *L)
{
    ctx_count_read(L);
    return list_now(L, LUA_OK, 0);
}

const luaL_Reg script_ctx_read[] = {{"get", ctx_get}, {"list", ctx_list}, {NULL, NULL}};
