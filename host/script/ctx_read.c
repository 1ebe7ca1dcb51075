/* ctx.get and ctx.list: from the cache for kinds that are watched, by a request for the others. The
 * options of ctx.list select objects in the cache, or become selectors of the request. */
#include "codec/json_members.h"
#include "kube/selector.h"
#include "script/ctx.h"
#include "script/ctx_calls.h"
#include "script/index.h"

/* A label, or a field by its path: "spec.nodeName". */
struct list_term {
    struct ml_str key, value;
};

struct list_filter {
    struct ml_str ns; /* empty: all namespaces */
    bool owned;
    const struct list_term *labels,
        *fields; /* userdata on the stack, with what holds the strings */
    size_t label_count, field_count;
    const struct script_index *index; /* NULL: none */
    struct ml_str key;                /* of the index */
};

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
    struct ml_err err = ML_ERR_INIT;
    if (!name.ptr)
        luaL_error(L, GET_CALL ": expected %s, got %s",
                   index == 2 ? "the name of an object" : "the name of a namespace",
                   luaL_typename(L, index));
    if (ml_name_check(name, &err) < 0)
        luaL_error(L, GET_CALL ": %s %s", index == 2 ? "the name" : "the namespace", err.message);
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

ML_RAISES static int get_by_request(lua_State *L, const struct ctx_kind *kind, struct ml_str ns,
                                    struct ml_str name)
{
    struct ml_run *run = ctx_may_wait(L, GET_CALL);
    const struct ml_client_request request = {
        .verb = ML_VERB_GET, .kind = kind->kind, .ns = ns, .name = name};
    run_read(run, &request);
    return lua_yieldk(L, 0, 0, ctx_answered);
}

ML_RAISES int ctx_get_live(lua_State *L)
{
    ctx_count_read(L);
    struct ctx_kind kind = check_kind(L, 1, GET_CALL);
    struct ml_str name = check_get_name(L, 2);
    struct ml_str ns = ctx_namespace(L, GET_CALL, kind.kind, check_get_name(L, 3));
    char key[CTX_KEY_MAX];
    ctx_write_key(ns, name, key);
    ctx_note_request(script_thread_of(L)->run, "get", &kind, key);
    return get_by_request(L, &kind, ns, name);
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
    return get_by_request(L, &kind, ns, name);
}

ML_RAISES static int ctx_get(lua_State *L)
{
    ctx_count_read(L);
    return get_now(L, LUA_OK, 0);
}

/* ---- the options of ctx.list ---- */

/* [-0, +0] Raises with a part of the key, which may be long. */
ML_RAISES static int refuse_term(lua_State *L, const char *problem, struct ml_str key)
{
    lua_pushlstring(L, key.ptr, ML_MIN(key.len, (size_t)64));
    return luaL_error(L, LIST_CALL ": %s '%s'", problem, lua_tostring(L, -1));
}

ML_RAISES static void check_label(lua_State *L, const struct list_term *label)
{
    if (!label->key.ptr || !label->value.ptr)
        luaL_error(L, LIST_CALL ": labels: expected a table of strings");
    if (!ml_label_valid(label->key, label->value))
        refuse_term(L, "labels: no object can have this label", label->key);
}

/* "spec.nodeName": names, with dots between them. */
static bool is_field_path(struct ml_str path)
{
    bool is_name_empty = true;
    for (size_t i = 0; i < path.len; i++) {
        if (path.ptr[i] == '.' && is_name_empty)
            return false;
        is_name_empty = path.ptr[i] == '.';
        if (path.ptr[i] == '\0' || path.ptr[i] == '[' || path.ptr[i] == '=' || path.ptr[i] == ',')
            return false;
    }
    return !is_name_empty && path.len <= SCRIPT_FIELD_PATH_MAX;
}

ML_RAISES static void check_field(lua_State *L, const struct list_term *field)
{
    if (!field->key.ptr || !field->value.ptr)
        luaL_error(L, LIST_CALL ": fields: expected a table from paths to strings, as in "
                                "{ [\"spec.nodeName\"] = \"n1\" }");
    if (!is_field_path(field->key))
        refuse_term(L, "fields: expected the path of a field, as in \"spec.nodeName\", got",
                    field->key);
}

/* [-0, +2] Checks the terms in the table on top. Pushes an array of the sorted keys followed by
 * their values, and a userdata with slices of these, which it returns. */
ML_RAISES static struct list_term *check_terms(lua_State *L, const char *what, size_t max,
                                               void (*check)(lua_State *, const struct list_term *),
                                               size_t *out_count)
{
    int given = lua_gettop(L), held = given + 1;
    lazy_complete(L, given);
    script_push_keys(L, given);
    size_t count = (size_t)lua_rawlen(L, held);
    if (count > max)
        luaL_error(L, LIST_CALL ": %s: at most %d", what, (int)max);
    struct list_term *terms = lua_newuserdatauv(L, (count + 1) * sizeof(*terms), 0);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, held, (lua_Integer)i + 1);
        lua_pushvalue(L, -1);
        lua_rawget(L, given);
        terms[i] = (struct list_term){script_str(L, -2), script_str(L, -1)};
        check(L, &terms[i]);
        lua_rawseti(L, held, (lua_Integer)(count + i + 1));
        lua_pop(L, 1);
    }
    *out_count = count;
    return terms;
}

/* [-0, +1 or more] The table that the option has; false: it has none. */
ML_RAISES static bool push_table_option(lua_State *L, const char *option)
{
    int type = script_push_field(L, 2, option);
    if (type != LUA_TNIL && type != LUA_TTABLE)
        luaL_error(L, LIST_CALL ": %s: expected a table", option);
    return type == LUA_TTABLE;
}

/* A cache of metadata has no other fields. */
ML_RAISES static void check_cached_fields(lua_State *L, const struct ctx_kind *kind,
                                          const struct list_filter *filter)
{
    for (size_t i = 0; i < filter->field_count; i++)
        if (kind->selection->metadata_only &&
            memcmp(filter->fields[i].key.ptr, "metadata.",
                   ML_MIN(filter->fields[i].key.len, strlen("metadata."))) != 0)
            refuse_term(L, "fields: this kind is watched with metadata_only, which leaves out",
                        filter->fields[i].key);
}

/* [-0, +2] */
ML_RAISES static void check_index(lua_State *L, const struct ctx_kind *kind,
                                  struct list_filter *filter)
{
    bool is_given = script_push_field(L, 2, "index") != LUA_TNIL;
    bool has_key = script_push_field(L, 2, "key") != LUA_TNIL;
    if (!is_given && !has_key)
        return;
    filter->index = script_to_index(L, -2);
    filter->key = script_str(L, -1);
    if (!filter->key.ptr && (has_key || filter->index))
        luaL_error(L, LIST_CALL ": key: expected the string to look up in the index");
    if (!filter->index)
        luaL_error(L, LIST_CALL ": index: expected an index of moonloop.index, got %s",
                   luaL_typename(L, -2));
    const struct ml_gvk *gvk = &script_of(L)->kinds[kind->index].gvk;
    if (!script_is_same_kind(gvk, &filter->index->gvk))
        luaL_error(L, LIST_CALL ": index: it is one of %s, not of %s", filter->index->gvk.kind.ptr,
                   gvk->kind.ptr);
    if (filter->index->overflowed)
        luaL_error(L,
                   LIST_CALL ": index: the index of %s needs more memory than the script has "
                             "(--script-memory)",
                   gvk->kind.ptr);
}

/* [-0, +several] Checks the options at stack index 2. The filter points to values on the stack. */
ML_RAISES static struct list_filter list_filter_check(lua_State *L, const struct ctx_kind *kind)
{
    struct list_filter filter = {.labels = NULL};
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
    if (push_table_option(L, "labels"))
        filter.labels = check_terms(L, "labels", SCRIPT_FILTER_LABELS_MAX, check_label,
                                    &filter.label_count);
    if (push_table_option(L, "fields"))
        filter.fields = check_terms(L, "fields", SCRIPT_FILTER_FIELDS_MAX, check_field,
                                    &filter.field_count);
    if (kind->informer)
        check_cached_fields(L, kind, &filter);
    check_index(L, kind, &filter);
    if (!ml_str_is(given, "*"))
        filter.ns = ctx_namespace(L, LIST_CALL, kind->kind, given);
    return filter;
}

/* ---- which cached objects they select ---- */

static bool labels_match(const struct list_filter *filter, struct ml_str json)
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
        const struct list_term *want = &filter->labels[i];
        const struct ml_json_member *label = ml_json_members_find(&labels, want->key);
        ml_buf_clear(&value);
        if (!label || !ml_json_to_string(label->value, &value) ||
            !ml_str_eq(ml_buf_str(&value), want->value))
            return false;
    }
    return true;
}

/* The value at the path as text: a string unchanged, a number or boolean as in JSON, nothing as the
 * empty text. False: it is an object or an array. The same as the server's selectable fields of a
 * CRD (apiextensions-apiserver, pkg/registry/customresource/strategy.go). */
static bool field_text(struct ml_str json, struct ml_str path, struct ml_buf *out)
{
    char name[SCRIPT_FIELD_PATH_MAX + 1];
    ml_buf_clear(out);
    for (struct ml_str rest = path; rest.ptr;) {
        struct ml_str one = ml_str_cut(&rest, '.');
        memcpy(name, one.ptr, one.len);
        name[one.len] = '\0';
        if (json.len > 0 && json.ptr[0] == '[') /* ml_json_find would take "0" for an element */
            return false;
        if (!ml_json_find(json, &json, name, NULL))
            return true;
    }
    if (json.len == 0 || json.ptr[0] == '{' || json.ptr[0] == '[')
        return false;
    if (!ml_json_to_string(json, out) && !ml_str_is(json, "null"))
        ml_buf_append_str(out, json);
    return true;
}

static bool fields_match(const struct list_filter *filter, struct ml_str json)
{
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    for (size_t i = 0; i < filter->field_count; i++)
        if (!field_text(json, filter->fields[i].key, &text) ||
            !ml_str_eq(ml_buf_str(&text), filter->fields[i].value))
            return false;
    return true;
}

/* Does the object have all labels and fields? */
static bool list_filter_matches(const struct list_filter *filter, struct ml_str json)
{
    return labels_match(filter, json) && fields_match(filter, json);
}

/* A lookup reads the set of objects, and of each the fields that decide whether it matches. Returns
 * the node of the members. */
static read_node list_filter_note_reads(struct script_reads *reads, const struct ctx_kind *kind,
                                        const struct list_filter *filter)
{
    read_node members = reads_list(reads, kind->index, filter->ns, filter->owned);
    for (size_t i = 0; i < filter->label_count; i++) {
        read_node metadata = reads_field(reads, members, ML_STR("metadata"));
        read_node labels = reads_field(reads, metadata, ML_STR("labels"));
        reads_field(reads, labels, filter->labels[i].key);
    }
    for (size_t i = 0; i < filter->field_count; i++) {
        read_node node = members;
        for (struct ml_str rest = filter->fields[i].key; rest.ptr;)
            node = reads_field(reads, node, ml_str_cut(&rest, '.'));
    }
    if (filter->index)
        reads_copy_self(reads, members, filter->index->reads);
    return members;
}

/* ---- the selectors of a request ---- */

static void add_label_selector(const struct list_filter *filter, struct ml_buf *selector)
{
    for (size_t i = 0; i < filter->label_count; i++)
        ml_buf_printf(selector, "%s" ML_STR_FMT "=" ML_STR_FMT, i > 0 ? "," : "",
                      ML_STR_ARG(filter->labels[i].key), ML_STR_ARG(filter->labels[i].value));
}

/* Escaped as apimachinery's fields.EscapeValue does. */
static void add_field_selector(const struct list_filter *filter, struct ml_buf *selector)
{
    for (size_t i = 0; i < filter->field_count; i++) {
        struct ml_str value = filter->fields[i].value;
        ml_buf_printf(selector, "%s" ML_STR_FMT "=", i > 0 ? "," : "",
                      ML_STR_ARG(filter->fields[i].key));
        for (size_t j = 0; j < value.len; j++) {
            if (memchr("\\,=", value.ptr[j], 3))
                ml_buf_putc(selector, '\\');
            ml_buf_putc(selector, value.ptr[j]);
        }
    }
}

/* The URL of the request, in script->overlay. Raises when it is too long. */
ML_RAISES static const char *list_filter_path(lua_State *L, const struct ctx_kind *kind,
                                              const struct list_filter *filter)
{
    struct ml_buf *path = &script_of(L)->overlay, *selector = &script_of(L)->body;
    ml_buf_clear(path);
    ml_kind_path(kind->kind, filter->ns, ML_STR(""), ML_STR(""), path);
    ml_buf_clear(selector);
    add_label_selector(filter, selector);
    if (selector->len > 0)
        ml_url_query(path, "labelSelector", ml_buf_str(selector));
    ml_buf_clear(selector);
    add_field_selector(filter, selector);
    if (selector->len > 0)
        ml_url_query(path, "fieldSelector", ml_buf_str(selector));
    if (path->len > SCRIPT_URL_MAX)
        luaL_error(L, LIST_CALL ": the request's URL would have %d bytes; at most %d",
                   (int)path->len, SCRIPT_URL_MAX);
    return ml_buf_cstr(path);
}

/* ---- ctx.list ---- */

static int compare_objects(const void *a, const void *b)
{
    return ml_str_cmp(ml_object_key(*(struct ml_object *const *)a),
                      ml_object_key(*(struct ml_object *const *)b));
}

/* Steps through the cached objects among which the matching ones are. */
static struct ml_object *next_candidate(lua_State *L, const struct ml_store *store,
                                        const struct list_filter *filter, size_t *cursor)
{
    struct ml_object *object = NULL;
    if (filter->owned && !filter->index)
        return ml_store_next_owned(store, script_thread_uid(script_thread_of(L)), cursor);
    if (!filter->index)
        return ml_store_next(store, cursor);
    do {
        object = script_index_next(filter->index, filter->key, cursor);
    } while (object && !ml_store_get(store, ml_object_key(object)));
    return object ? ml_store_get(store, ml_object_key(object)) : NULL;
}

static bool is_candidate(lua_State *L, const struct list_filter *filter,
                         const struct ml_object *object)
{
    struct ml_owner owner;
    if (filter->ns.len > 0 && !ml_str_eq(ml_object_namespace(object), filter->ns))
        return false;
    return !filter->owned || (ml_object_controller(object, &owner) &&
                              ml_str_eq(owner.uid, script_thread_uid(script_thread_of(L))));
}

/* [-0, +1] A userdata with pointers to the objects that may match. They are borrowed: nothing
 * changes the store before this call returns. */
ML_RAISES static struct ml_object **push_candidates(lua_State *L, const struct ctx_kind *kind,
                                                    const struct list_filter *filter,
                                                    size_t *out_count)
{
    const struct ml_store *store = ml_informer_store(kind->informer);
    size_t room = filter->index ? script_index_len(filter->index, filter->key)
                                : ml_store_len(store);
    struct ml_object **found = lua_newuserdatauv(L, (room + 1) * sizeof(struct ml_object *), 0);
    size_t count = 0, cursor = 0;
    struct ml_object *object;
    while ((object = next_candidate(L, store, filter, &cursor))) {
        script_cpu_check(L);
        if (is_candidate(L, filter, object))
            found[count++] = object;
    }
    script_sort(L, found, count, sizeof(*found), compare_objects);
    *out_count = count;
    return found;
}

ML_RAISES static int list_from_cache(lua_State *L, const struct ctx_kind *kind,
                                     const struct list_filter *filter)
{
    struct ml_buf *opened = &script_of(L)->opened;
    size_t count;
    struct ml_object **found = push_candidates(L, kind, filter, &count);
    struct script_reads *reads = script_reads_now(L);
    read_node members = list_filter_note_reads(reads, kind, filter);
    lua_Integer listed = 0;
    lua_newtable(L);
    for (size_t i = 0; i < count; i++) {
        script_cpu_check(L);
        ml_buf_clear(opened);
        ml_object_json(found[i], opened);
        if (!list_filter_matches(filter, ml_buf_str(opened)))
            continue;
        script_push_lazy(L, ml_buf_str(opened), members);
        lua_rawseti(L, -2, ++listed);
    }
    script_mark_array(L, -1);
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
    if (run->err)
        return ctx_fail(L, run->err);
    struct ctx_kind kind = check_kind(L, 1, LIST_CALL);
    lua_newtable(L);
    script_mark_array(L, -1);
    if (!ml_json_find(run->body, &items, "items", NULL) || items.ptr[0] != '[')
        return 1;
    int result = lua_gettop(L);
    lua_Integer listed = 0;
    script_push_json(L, items, ROOT_ITEMS);
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

ML_RAISES static int list_now(lua_State *L, int status ML_UNUSED, lua_KContext context ML_UNUSED)
{
    struct ctx_kind kind = check_kind(L, 1, LIST_CALL);
    struct list_filter filter = list_filter_check(L, &kind);
    struct ml_run *run = script_thread_of(L)->run;
    if (run)
        snprintf(run->what, sizeof(run->what), "list %s", kind.kind->kind);
    if (ctx_must_wait(L, LIST_CALL, &kind))
        return lua_yieldk(L, 0, 0, list_now);
    if (filter.index && !run && ml_script_index_pending(script_of(L)))
        luaL_error(L, LIST_CALL ": index: it is not complete yet; try again");
    if (filter.index && run && ml_script_index_pending(script_of(L))) {
        run_wait_for_index(ctx_may_wait(L, LIST_CALL));
        return lua_yieldk(L, 0, 0, list_now);
    }
    if (kind.informer)
        return list_from_cache(L, &kind, &filter);
    run = ctx_may_wait(L, LIST_CALL);
    const struct ml_client_request request = {.verb = ML_VERB_GET,
                                              .path = list_filter_path(L, &kind, &filter)};
    run_read(run, &request);
    return lua_yieldk(L, 0, filter.owned, list_answered);
}

ML_RAISES static int ctx_list(lua_State *L)
{
    ctx_count_read(L);
    return list_now(L, LUA_OK, 0);
}

const luaL_Reg script_ctx_read[] = {{"get", ctx_get}, {"list", ctx_list}, {NULL, NULL}};
