/* ctx.list: the objects of a kind, sorted by key. From the cache for kinds that are watched, by
 * one request for the others. */
#include "script/ctx.h"

#define LIST_CALL "ctx.list(Kind [, { namespace =, labels =, owned = }])"

struct filter {
    struct ml_str ns; /* empty: all */
    bool owned;
    int labels; /* stack index of a table, or 0 */
};

/* A label's value at the stack's top: a plain string. */
ML_RAISES
static struct ml_str check_label(lua_State *L)
{
    if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING)
        ctx_misuse(L, LIST_CALL, "labels: expected a table of strings");
    struct ml_str value;
    value.ptr = lua_tolstring(L, -1, &value.len);
    return value;
}

ML_RAISES
static void check_fields(lua_State *L)
{
    lua_pushnil(L);
    while (lua_next(L, 2)) {
        lua_pop(L, 1);
        const char *key = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
        if (strcmp(key, "namespace") && strcmp(key, "labels") && strcmp(key, "owned"))
            luaL_error(L, LIST_CALL ": unknown field '%s'", script_tolstring(L, -1, NULL));
    }
}

ML_RAISES
static struct filter check_filter(lua_State *L, const struct ctx_kind *kind)
{
    struct filter filter = {.labels = 0};
    struct ml_str given = {NULL, 0};
    lua_settop(L, 2);
    if (lua_isnil(L, 2)) {
        lua_newtable(L);
        lua_replace(L, 2);
    }
    if (!lua_istable(L, 2))
        ctx_misuse(L, LIST_CALL, "expected a table of options");
    check_fields(L);
    if (lua_getfield(L, 2, "namespace") == LUA_TSTRING)
        given.ptr = lua_tolstring(L, -1, &given.len);
    else if (!lua_isnil(L, -1))
        ctx_misuse(L, LIST_CALL, "namespace: expected a string");
    lua_getfield(L, 2, "owned");
    filter.owned = lua_toboolean(L, -1);
    int type = lua_getfield(L, 2, "labels");
    if (type != LUA_TNIL && type != LUA_TTABLE)
        ctx_misuse(L, LIST_CALL, "labels: expected a table");
    if (type == LUA_TTABLE)
        filter.labels = lua_gettop(L);
    if (!ml_str_is(given, "*"))
        filter.ns = ctx_namespace(L, LIST_CALL, kind->kind, given);
    return filter;
}

static int compare_objects(const void *a, const void *b)
{
    return ml_str_cmp(ml_object_key(*(struct ml_object *const *)a),
                      ml_object_key(*(struct ml_object *const *)b));
}

/* Do the labels of the opened object have all that the filter asks for? */
ML_RAISES
static bool labels_match(lua_State *L, const struct filter *filter, struct ml_str json)
{
    if (!filter->labels)
        return true;
    struct ml_buf *label = &script_of(L)->overlay;
    bool match = true;
    lua_pushnil(L);
    while (lua_next(L, filter->labels)) {
        struct ml_str want = check_label(L), raw;
        ml_buf_clear(label);
        match = match &&
                ml_json_find(json, &raw, "metadata", "labels", lua_tostring(L, -2), NULL) &&
                ml_json_to_string(raw, label) && ml_str_eq(ml_buf_str(label), want);
        lua_pop(L, 1);
    }
    return match;
}

/* [-0, +1] A userdata with pointers to what may match; borrowed, as nothing changes the store
 * before this call returns. */
ML_RAISES
static struct ml_object **push_candidates(lua_State *L, const struct ctx_kind *kind,
                                          const struct filter *filter, size_t *out_count)
{
    const struct ml_store *store = ml_informer_store(kind->informer);
    struct ml_str owner = ml_object_uid(script_thread_of(L)->object);
    struct ml_object **found = lua_newuserdatauv(
        L, (ml_store_len(store) + 1) * sizeof(struct ml_object *), 0);
    size_t count = 0, cursor = 0;
    struct ml_object *owned = NULL, *object;
    while ((object = filter->owned ? ml_store_next_owned(store, owner, &owned)
                                   : ml_store_next(store, &cursor)))
        if (filter->ns.len == 0 || ml_str_eq(ml_object_namespace(object), filter->ns))
            found[count++] = object;
    qsort(found, count, sizeof(*found), compare_objects);
    *out_count = count;
    return found;
}

ML_RAISES
static int list_cached(lua_State *L, const struct ctx_kind *kind, const struct filter *filter)
{
    struct ml_buf *opened = &script_of(L)->opened;
    size_t count;
    struct ml_object **found = push_candidates(L, kind, filter, &count);
    lua_Integer listed = 0;
    lua_newtable(L);
    for (size_t i = 0; i < count; i++) {
        script_cpu_check(L);
        ml_buf_clear(opened);
        ml_object_json(found[i], opened);
        if (!labels_match(L, filter, ml_buf_str(opened)))
            continue;
        script_push_json(L, ml_buf_str(opened), true);
        lua_rawseti(L, -2, ++listed);
    }
    shape_mark_array(L, -1);
    return 1;
}

/* Puts in what a list says once for all its items. */
ML_RAISES
static void complete_item(lua_State *L, const struct ml_kind *kind)
{
    const char *const fields[][2] = {{"apiVersion", kind->api_version}, {"kind", kind->kind}};
    for (size_t i = 0; i < ML_COUNT(fields); i++) {
        lua_pushstring(L, fields[i][0]);
        lua_pushvalue(L, -1);
        bool is_there = lua_rawget(L, -3) != LUA_TNIL;
        lua_pop(L, 1);
        lua_pushstring(L, fields[i][1]);
        if (is_there)
            lua_pop(L, 2);
        else
            lua_rawset(L, -3);
    }
}

/* Is the object on top controlled by the one with this uid? */
ML_RAISES
static bool is_owned(lua_State *L, struct ml_str uid)
{
    int top = lua_gettop(L);
    bool owned = false;
    lua_getfield(L, -1, "metadata");
    if (lua_istable(L, -1) && lua_getfield(L, -1, "ownerReferences") == LUA_TTABLE)
        for (lua_Integer i = 1; !owned && lua_rawgeti(L, top + 2, i) == LUA_TTABLE; i++) {
            lua_getfield(L, -1, "controller");
            lua_getfield(L, -2, "uid");
            const char *text = lua_tostring(L, -1);
            owned = lua_toboolean(L, -2) && text && ml_str_is(uid, text);
            lua_pop(L, 3);
        }
    lua_settop(L, top);
    return owned;
}

ML_RAISES
static int list_answered(lua_State *L, int status ML_UNUSED, lua_KContext owned)
{
    struct ml_run *run = script_thread_of(L)->run;
    struct ml_str items = {NULL, 0};
    if (run->err.kind)
        return ctx_fail(L, &run->err);
    struct ctx_kind kind = ctx_check_kind(L, 1, LIST_CALL);
    lua_newtable(L);
    shape_mark_array(L, -1);
    if (!ml_json_find(run->body, &items, "items", NULL) || items.ptr[0] != '[')
        return 1;
    int result = lua_gettop(L);
    lua_Integer listed = 0;
    script_push_items(L, items);
    for (lua_Integer i = 1; lua_rawgeti(L, result + 1, i) == LUA_TTABLE; i++) {
        complete_item(L, kind.kind);
        if (!owned || is_owned(L, ml_object_uid(run->thread.object)))
            lua_rawseti(L, result, ++listed);
        else
            lua_pop(L, 1);
    }
    lua_settop(L, result);
    return 1;
}

/* The URL of the list into script->overlay. */
ML_RAISES
static const char *list_path(lua_State *L, const struct ctx_kind *kind, const struct filter *filter)
{
    struct ml_buf *path = &script_of(L)->overlay, *selector = &script_of(L)->body;
    ml_buf_clear(path);
    ml_buf_clear(selector);
    ml_kind_path(kind->kind, filter->ns, ML_STR(""), ML_STR(""), path);
    if (filter->labels) {
        script_push_keys(L, filter->labels);
        for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++) {
            lua_pushvalue(L, -1);
            lua_rawget(L, filter->labels);
            struct ml_str value = check_label(L);
            ml_buf_printf(selector, "%s%s=" ML_STR_FMT, i > 1 ? "," : "", lua_tostring(L, -2),
                          ML_STR_ARG(value));
            lua_pop(L, 2);
        }
        lua_pop(L, 2);
        ml_url_query(path, "labelSelector", ml_buf_str(selector));
    }
    return ml_buf_cstr(path);
}

ML_RAISES
static int list_now(lua_State *L, int status ML_UNUSED, lua_KContext context ML_UNUSED)
{
    struct ctx_kind kind = ctx_check_kind(L, 1, LIST_CALL);
    struct filter filter = check_filter(L, &kind);
    struct ml_run *run = script_thread_of(L)->run;
    if (run)
        snprintf(run->what, sizeof(run->what), "list %s", kind.kind->kind);
    if (ctx_must_wait(run, &kind))
        return lua_yieldk(L, 0, 0, list_now);
    if (kind.informer)
        return list_cached(L, &kind, &filter);
    run = ctx_may_wait(L, LIST_CALL);
    const struct ml_client_request request = {.verb = ML_VERB_GET,
                                              .path = list_path(L, &kind, &filter)};
    run_read(run, &request);
    return lua_yieldk(L, 0, filter.owned, list_answered);
}

ML_RAISES
int script_ctx_list(lua_State *L)
{
    ctx_count_read(L);
    return list_now(L, LUA_OK, 0);
}
