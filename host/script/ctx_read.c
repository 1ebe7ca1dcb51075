/* ctx.get and ctx.list: from the cache for kinds that are watched, by a request for the others. */
#include "codec/json_members.h"
#include "script/ctx.h"
#include "script/ctx_calls.h"
#include "script/list_filter.h"

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
