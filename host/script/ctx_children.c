/* The primitives by which moonloop/children.lua carries out the children that reconcile returned:
 * the identity of each, the owned objects that are not among them, deleting one to make it again,
 * the inventory of those that cannot be owned. ctx_write.c has the applies. All of them check as
 * ctx does, whatever the library says. */
#include "kube/object.h"
#include "script/ctx_calls.h"
#include "script/ctx_target.h"

#define CALL "children"

#define STRAYS_MAX    64 /* objects that one call lists: a run has no more writes */
#define INVENTORY_MAX ((size_t)192 * 1024) /* bytes; all annotations may have 256 KiB */

/* ---- before the first write ---- */

/* The library can only find the children of a kind that the script watches in full. */
ML_RAISES static void check_child_kind(lua_State *L, const struct write_target *target)
{
    if (!target->owned)
        luaL_error(L, "%s: %s is not in owns; children are of the kinds in owns", target->call,
                   target->kind.kind->kind);
    if (target->kind.selection->fields.len > 0)
        luaL_error(L,
                   "%s: this script watches the objects of %s with the fields '%s' only, and "
                   "would lose sight of this one; children need a kind without fields",
                   target->call, target->kind.kind->kind, target->kind.selection->fields.ptr);
}

/* child_id(child, label): checks the object, and returns its identity among the children, its name
 * for messages, "Pod default/x", and, if the reconciled object cannot own it, its entry in the
 * inventory, "v1 Pod other/x". */
ML_RAISES static int child_id(lua_State *L)
{
    struct write_target target;
    ctx_may_wait(L, CALL);
    lua_settop(L, 2);
    ctx_check_object(L, luaL_checkstring(L, 2), &target);
    check_child_kind(L, &target);
    target.tracked = ctx_is_tracked(L, &target);
    ctx_complete_object(L, &target);
    const struct ml_kind *kind = target.kind.kind;
    lua_pushfstring(L, "%d %s", (int)target.kind.index, target.key);
    lua_pushfstring(L, "%s %s", kind->kind, target.key);
    if (target.tracked)
        lua_pushfstring(L, "%s %s %s", kind->api_version, kind->kind, target.key);
    return target.tracked ? 3 : 2;
}

/* True: the caller has to yield, as some cache does not show yet what this run wrote. */
ML_RAISES static bool must_wait_for_owned(lua_State *L)
{
    const struct ml_declaration *declaration = &script_of(L)->declaration;
    for (size_t i = 0; i < declaration->kind_count; i++) {
        if (declaration->kinds[i].use != ML_USE_OWNS)
            continue;
        struct ctx_kind kind = ctx_kind_of(L, &declaration->kinds[i].gvk);
        if (ctx_must_wait(L, CALL, &kind))
            return true;
    }
    return false;
}

/* await_owned(): returns when the caches show what the run wrote of all owned kinds. */
ML_RAISES static int await_owned_now(lua_State *L, int status ML_UNUSED,
                                     lua_KContext context ML_UNUSED)
{
    return must_wait_for_owned(L) ? lua_yieldk(L, 0, 0, await_owned_now) : 0;
}

ML_RAISES static int await_owned(lua_State *L)
{
    ctx_may_wait(L, CALL);
    return await_owned_now(L, LUA_OK, 0);
}

/* may_write(): has the run a write left? */
ML_RAISES static int may_write(lua_State *L)
{
    const struct ml_run *run = ctx_may_wait(L, CALL);
    lua_pushboolean(L, run->writes < run->thread.script->limits.writes_max);
    return 1;
}

/* ---- owned objects that are not children any more ---- */

static int compare_descending(const void *a, const void *b)
{
    return ml_str_cmp(ml_object_key(*(struct ml_object *const *)b),
                      ml_object_key(*(struct ml_object *const *)a));
}

/* A Secret of ctx.once goes with its owner alone: its values survive a run that does
 * not call it. */
static bool is_once(struct ml_script *script, size_t kind, const struct ml_object *object)
{
    const struct ml_gvk *gvk = &script->declaration.kinds[kind].gvk;
    if (!ctx_is_secret(gvk))
        return false;
    ml_buf_clear(&script->opened);
    ml_object_json(object, &script->opened);
    return ctx_is_once(gvk, ml_buf_str(&script->opened));
}

/* [-0, +1] A userdata with pointers to the objects of the kind that the reconciled object controls
 * and no call of the run wants, the last by key first. They are borrowed: nothing changes the store
 * before the caller is done with them. */
ML_RAISES static struct ml_object **push_strays(lua_State *L, const struct ml_store *store,
                                                size_t kind, size_t *out_count)
{
    const struct ml_run *run = script_thread_of(L)->run;
    struct ml_str owner = ml_object_uid(run->thread.object);
    struct ml_object *object;
    size_t count = 0, cursor = 0;
    while (ml_store_next_owned(store, owner, &cursor))
        count++;
    struct ml_object **found = lua_newuserdatauv(L, (count + 1) * sizeof(*found), 0);
    count = cursor = 0;
    while ((object = ml_store_next_owned(store, owner, &cursor))) {
        script_cpu_check(L);
        if (!ml_object_deleting(object) && !children_is_wanted(run, kind, ml_object_key(object)) &&
            !is_once(run->thread.script, kind, object))
            found[count++] = object;
    }
    script_sort(L, found, count, sizeof(*found), compare_descending);
    *out_count = count;
    return found;
}

/* Adds the strays of one kind to the list on top. False: there are more than it may have. */
ML_RAISES static bool add_strays(lua_State *L, size_t kind)
{
    struct ml_script *script = script_of(L);
    int list = lua_gettop(L);
    lua_Integer listed = (lua_Integer)lua_rawlen(L, list);
    size_t count;
    reads_list(script_reads_now(L), kind, ML_STR(""), true);
    struct ml_object **found = push_strays(L, ml_informer_store(script->binding.informers[kind]),
                                           kind, &count);
    bool fits = count <= (size_t)(STRAYS_MAX - listed);
    for (size_t i = 0; i < count && listed < STRAYS_MAX; i++) {
        script_cpu_check(L);
        ml_buf_clear(&script->opened);
        ml_object_json(found[i], &script->opened);
        script_push_lazy(L, ml_buf_str(&script->opened), 0);
        lua_rawseti(L, list, ++listed);
    }
    lua_settop(L, list);
    return fits;
}

ML_RAISES static int strays_now(lua_State *L, int status ML_UNUSED, lua_KContext context ML_UNUSED)
{
    const struct ml_declaration *declaration = &script_of(L)->declaration;
    bool all = true;
    lua_settop(L, 0);
    if (must_wait_for_owned(L))
        return lua_yieldk(L, 0, 0, strays_now);
    lua_newtable(L);
    for (size_t i = declaration->kind_count; i-- > 0;)
        if (declaration->kinds[i].use == ML_USE_OWNS)
            all = add_strays(L, i) && all;
    lua_pushboolean(L, all);
    return 2;
}

/* strays(): the objects of the owned kinds that the reconciled object controls, and that this run
 * neither returned as children nor got by ctx.ensure, create or apply, in the order in which they
 * are to be deleted: the last kind of owns first, then the last by namespace and name. And whether
 * these are all. */
ML_RAISES static int strays(lua_State *L)
{
    ctx_may_wait(L, CALL);
    return strays_now(L, LUA_OK, 0);
}

/* ---- marks ----
 *
 * An object is marked by its metatable, so that the mark goes with it. */

/* To be made again. The address is a key there: in one that marks to true, in one of key_order.c to
 * its copy that marks. In the registry: the metatable that marks an object without one. */
static const char recreate_key;

/* Maps that are exactly what the script says: a key of a metatable that the object has for itself,
 * to the list of their paths. */
static const char exact_key;

/* [-0, +1] */
ML_RAISES static void push_plain_mark(lua_State *L)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &recreate_key) == LUA_TTABLE)
        return;
    lua_pop(L, 1);
    lua_createtable(L, 0, 2);
    lua_pushboolean(L, 1);
    lua_rawsetp(L, -2, &recreate_key);
    script_hide_metatable(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &recreate_key);
}

/* [-1, +1] For the metatable of key_order.c the one that marks as well. */
ML_RAISES static void push_ordering_mark(lua_State *L)
{
    int ordering = lua_gettop(L);
    if (lua_rawgetp(L, ordering, &recreate_key) != LUA_TTABLE) {
        lua_settop(L, ordering);
        lua_createtable(L, 0, 5);
        for (lua_pushnil(L); lua_next(L, ordering);) {
            lua_pushvalue(L, -2);
            lua_insert(L, -2);
            lua_rawset(L, ordering + 1);
        }
        lua_pushboolean(L, 1);
        lua_rawsetp(L, ordering + 1, &recreate_key);
        lua_pushvalue(L, ordering + 1);
        lua_rawsetp(L, ordering, &recreate_key);
    }
    lua_remove(L, ordering);
}

static bool is_marked(lua_State *L, int index)
{
    if (!lua_getmetatable(L, index))
        return false;
    bool is = lua_rawgetp(L, -1, &recreate_key) == LUA_TBOOLEAN;
    lua_pop(L, 2);
    return is;
}

static bool has_key_order(lua_State *L, int index)
{
    bool has = key_order_keys(L, index);
    lua_pop(L, has);
    return has;
}

/* mark_recreate(object): marks the table, and returns it; or nil and why not. */
ML_RAISES static int mark_recreate(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    lazy_complete(L, 1);
    if (is_marked(L, 1))
        return 1;
    if (children_push_exact(L, 1)) {
        lua_getmetatable(L, 1);
        lua_pushboolean(L, 1);
        lua_rawsetp(L, -2, &recreate_key);
        lua_settop(L, 1);
        return 1;
    }
    if (!lua_getmetatable(L, 1))
        push_plain_mark(L);
    else if (has_key_order(L, 1))
        push_ordering_mark(L);
    else
        return script_push_refusal(L,
                                   script_is_array(L, 1) ? "a list" : "a table with a metatable");
    lua_setmetatable(L, 1);
    return 1;
}

ML_RAISES bool children_push_exact(lua_State *L, int index)
{
    if (!lua_getmetatable(L, index))
        return false;
    bool has = lua_rawgetp(L, -1, &exact_key) == LUA_TTABLE;
    lua_remove(L, -2);
    lua_pop(L, !has);
    return has;
}

/* exact_paths(object): the list that mark_exact was given, or nil. */
ML_RAISES static int exact_paths(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    return children_push_exact(L, 1);
}

/* [-0, +1] A metatable that is the object's own, with what the one before had. False, and nothing
 * was pushed: that is the script's. */
ML_RAISES static bool push_own_metatable(lua_State *L, int object)
{
    lua_newtable(L);
    int own = lua_gettop(L);
    if (!lua_getmetatable(L, object)) {
        script_hide_metatable(L);
        return true;
    }
    if (!is_marked(L, object) && !has_key_order(L, object)) {
        lua_settop(L, own - 1);
        return false;
    }
    for (lua_pushnil(L); lua_next(L, own + 1);) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, own);
    }
    lua_settop(L, own);
    return true;
}

/* mark_exact(object, paths): marks the table; moonloop/init.lua has checked and sorted the paths.
 * True, or nil and why not. */
ML_RAISES static int mark_exact(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    lazy_complete(L, 1);
    if (children_push_exact(L, 1))
        lua_getmetatable(L, 1);
    else if (!push_own_metatable(L, 1))
        return script_push_refusal(L,
                                   script_is_array(L, 1) ? "a list" : "a table with a metatable");
    lua_pushvalue(L, 2);
    lua_rawsetp(L, -2, &exact_key);
    lua_setmetatable(L, 1);
    lua_pushboolean(L, 1);
    return 1;
}

ML_RAISES static int is_recreate(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_pushboolean(L, is_marked(L, 1));
    return 1;
}

/* The child is not made again: logs first that the server refused to change it, "why" at index 3.
 */
ML_RAISES static int fail_recreation(lua_State *L)
{
    struct ml_run *run = script_thread_of(L)->run;
    struct ml_err refusal = ML_ERR_INIT;
    char what[sizeof run->what];
    ml_err_set(&refusal, ML_EINVALID, "%s", luaL_checkstring(L, 3));
    memcpy(what, run->what, sizeof what);
    snprintf(run->what, sizeof run->what, "apply%s", strchr(what, ' '));
    ctx_refuse_write(L, &refusal);
    memcpy(run->what, what, sizeof what);
    lua_settop(L, 3);
    return ctx_refuse_write(L, run->err);
}

ML_RAISES static int old_deleted(lua_State *L, int status ML_UNUSED, lua_KContext context ML_UNUSED)
{
    struct ml_run *run = script_thread_of(L)->run;
    if (run->err && run->err->kind != ML_ENOT_FOUND)
        return fail_recreation(L);
    ctx_accept_write(run);
    lua_pushliteral(L, "deleted");
    return 1;
}

/* The object that is to go, or NULL: it is gone or going. One that nobody controls was claimed
 * before the server refused to change it. */
static const struct ml_object *find_old(const struct ml_run *run, const struct write_target *target)
{
    const struct ml_object *object = ctx_cached(&target->kind, target->key);
    bool stays = object && !ml_object_deleting(object) && !ctx_is_anothers(run, target, object);
    return stays ? object : NULL;
}

/* The answer to a create that stores nothing: AlreadyExists says that the object is good, and only
 * the change was refused. */
ML_RAISES static int new_checked(lua_State *L, int status ML_UNUSED, lua_KContext context ML_UNUSED)
{
    struct ml_run *run = script_thread_of(L)->run;
    struct write_target target;
    if (run->err && run->err->kind != ML_EALREADY_EXISTS)
        return fail_recreation(L);
    ctx_check_object(L, luaL_checkstring(L, 2), &target);
    target.tracked = ctx_is_tracked(L, &target);
    const struct ml_object *old = run->err ? find_old(run, &target) : NULL;
    bool has_write = run->writes < run->thread.script->limits.writes_max;
    if (!old || !has_write) {
        lua_pushstring(L, old ? "full" : "leaving");
        return 1;
    }
    target.why = lua_pushfstring(L, "made again, as the server refuses the change: %s",
                                 luaL_checkstring(L, 3));
    struct ml_str uid = ml_object_uid(old), rv = ml_object_rv(old);
    const char *version = lua_pushlstring(L, rv.ptr, rv.len);
    const struct ml_client_request request = {
        .verb = ML_VERB_DELETE,
        .uid = lua_pushlstring(L, uid.ptr, uid.len),
        .resource_version = ctx_controls(run, &target, old) ? NULL : version,
        .foreground = true};
    ctx_send_write(L, "delete", &target, request, false);
    return lua_yieldk(L, 0, 0, old_deleted);
}

/* recreate_child(child, label, why): the server refused to change the object, because of `why`.
 * Deletes it, with what it owns first, if one like the child could be made. "deleted"; "leaving":
 * it is gone or going; "full": the run has no write left. Or nil and the error. */
ML_RAISES static int recreate_child(lua_State *L)
{
    struct ml_run *run = ctx_may_wait(L, CALL);
    struct write_target target;
    lua_settop(L, 3);
    luaL_checkstring(L, 3);
    ctx_check_object(L, luaL_checkstring(L, 2), &target);
    check_child_kind(L, &target);
    target.tracked = ctx_is_tracked(L, &target);
    ctx_complete_object(L, &target);
    script_charge_work(L);
    ctx_note_request(run, "create", &target.kind, target.key);
    const struct ml_client_request request = {.verb = ML_VERB_CREATE,
                                              .kind = target.kind.kind,
                                              .ns = target.ns,
                                              .name = target.name,
                                              .body = ml_buf_str(&run->thread.script->body),
                                              .field_manager = run->thread.script->field_manager,
                                              .dry_run = true};
    run_read(run, &request);
    return lua_yieldk(L, 0, 0, new_checked);
}

/* ---- the inventory ----
 *
 * Children that cannot have the reconciled object as an owner reference: in another namespace, or
 * cluster-scoped under a namespaced object. An annotation of the object lists them before they are
 * made, so that none is lost whenever the process ends; the object has the controller's finalizer
 * from the same write on. moonloop/children.lua decides what is listed and deleted. */

#define INVENTORY_NAME_MAX (sizeof(ML_TRACKED_INVENTORY) + 1 + SCRIPT_NAME_MAX)

/* The text of the annotation of a controller of this name. */
static struct ml_str find_inventory(struct ml_str json, const char *controller)
{
    char name[INVENTORY_NAME_MAX];
    snprintf(name, sizeof name, "%s/%s", ML_TRACKED_INVENTORY, controller);
    return ml_tracked_annotation(json, name);
}

/* inventory(): the text of the reconciled object's annotation, with that of each name which the
 * controller had formerly; and whether there is one of these. */
ML_RAISES static int inventory(lua_State *L)
{
    struct ml_script *script = script_of(L);
    const struct ml_declaration *declaration = &script->declaration;
    bool is_former = false;
    luaL_Buffer text;
    ctx_may_wait(L, CALL);
    ml_buf_clear(&script->opened);
    ml_object_json(script_thread_of(L)->object, &script->opened);
    struct ml_str json = ml_buf_str(&script->opened);
    struct ml_str part = find_inventory(json, declaration->name);
    luaL_buffinit(L, &text);
    luaL_addlstring(&text, part.ptr, part.len);
    for (size_t i = 0; declaration->formerly[i]; i++) {
        part = find_inventory(json, declaration->formerly[i]);
        is_former = is_former || part.len > 0;
        luaL_addchar(&text, ',');
        luaL_addlstring(&text, part.ptr, part.len);
    }
    luaL_pushresult(&text);
    lua_pushboolean(L, is_former);
    return 2;
}

/* Of the annotations under way. An empty text removes it. */
static void put_inventory(struct ml_json_writer *writer, const char *controller, struct ml_str text)
{
    char name[INVENTORY_NAME_MAX];
    snprintf(name, sizeof name, "%s/%s", ML_TRACKED_INVENTORY, controller);
    ml_json_key(writer, ml_str_of(name));
    if (text.len > 0)
        ml_json_string(writer, text);
    else
        ml_json_null(writer);
}

/* Writes the whole patch into script->body: guards, the finalizer, and the annotation. Entries of
 * former names go. */
static void make_inventory_patch(struct ml_run *run, struct ml_str text)
{
    struct ml_script *script = run->thread.script;
    const struct ml_declaration *declaration = &script->declaration;
    const struct ml_object *object = run->thread.object;
    struct ml_json_writer writer;
    ml_buf_clear(&script->body);
    ml_patch_begin(&writer, &script->body, ml_object_uid(object),
                   run->version ? ml_str_of(run->version) : ml_object_rv(object));
    ml_finalizers_put(&writer, object, ml_str_of(declaration->finalizer),
                      declaration->former_finalizers, true);
    ml_json_key(&writer, ML_STR("annotations"));
    ml_json_begin_object(&writer);
    put_inventory(&writer, declaration->name, text);
    for (size_t i = 0; declaration->formerly[i]; i++)
        put_inventory(&writer, declaration->formerly[i], ML_STR(""));
    for (int open = 3; open > 0; open--)
        ml_json_end_object(&writer);
}

/* If the object is gone, the run ends with a Conflict, as fail_for_finalizer ends it. */
ML_RAISES static int inventory_written(lua_State *L, int status ML_UNUSED,
                                       lua_KContext context ML_UNUSED)
{
    struct ml_run *run = script_thread_of(L)->run;
    if (run_failed_with(run, ML_ENOT_FOUND)) {
        ml_err_wrap(run->err, "%s", run->what);
        run->err->kind = ML_ECONFLICT;
        run->abandoned = true;
        return lua_yield(L, 0);
    }
    if (run->err)
        return ctx_refuse_write(L, run->err);
    ctx_accept_write(run);
    lua_pushboolean(L, 1);
    return 1;
}

/* write_inventory(text): true, or nil and the error. */
ML_RAISES static int write_inventory(lua_State *L)
{
    struct ml_run *run = ctx_may_wait(L, CALL);
    const struct ml_object *object = run->thread.object;
    struct ml_str text = script_check_str(L, 1);
    lua_settop(L, 1);
    if (text.len > INVENTORY_MAX)
        return luaL_error(L,
                          CALL ": the list of those that cannot be owned has %d bytes; at most %d",
                          (int)text.len, (int)INVENTORY_MAX);
    struct write_target target = {
        .call = CALL,
        .kind = ctx_kind_of(L, &run->thread.script->declaration.kinds[0].gvk),
        .ns = ml_object_namespace(object),
        .name = ml_object_name(object),
    };
    ctx_write_key(target.ns, target.name, target.key);
    make_inventory_patch(run, text);
    run->has_finalizer = true; /* by this very write */
    const struct ml_client_request request = {.verb = ML_VERB_PATCH_MERGE,
                                              .body = ml_buf_str(&run->thread.script->body)};
    ctx_send_write(L, "patch", &target, request, false);
    return lua_yieldk(L, 0, 0, inventory_written);
}

/* Finds the owned kind of an entry, "v1 ConfigMap other/x", by group and kind: the script may have
 * gone to another version. NULL; or "unknown": its kind has left owns; or "gone": somebody else has
 * written the text. */
ML_RAISES static const char *find_entry(lua_State *L, struct ml_str entry, struct write_target *out)
{
    const struct ml_declaration *declaration = &script_of(L)->declaration;
    struct ml_gvk gvk;
    struct ml_str api_version = ml_str_cut(&entry, ' '), kind = ml_str_cut(&entry, ' ');
    if (!ml_gvk_parse(api_version, kind, &gvk) || entry.len == 0 || entry.len >= CTX_KEY_MAX)
        return "gone";
    for (size_t i = 0; i < declaration->kind_count; i++) {
        const struct ml_script_kind *declared = &declaration->kinds[i];
        if (declared->use != ML_USE_OWNS || !ml_str_eq(declared->gvk.group, gvk.group) ||
            !ml_str_eq(declared->gvk.kind, gvk.kind))
            continue;
        *out = (struct write_target){
            .call = CALL, .kind = ctx_kind_of(L, &declared->gvk), .owned = true, .tracked = true};
        snprintf(out->key, sizeof out->key, ML_STR_FMT, ML_STR_ARG(entry));
        return NULL;
    }
    return "unknown";
}

/* tracked_child(entry): the object, if it is there and marked as ours; "going": it is being
 * deleted; "gone"; or "unknown": its kind has left owns. */
ML_RAISES static int tracked_child(lua_State *L)
{
    struct ml_run *run = ctx_may_wait(L, CALL);
    struct ml_script *script = run->thread.script;
    struct write_target target;
    const char *none = find_entry(L, script_check_str(L, 1), &target);
    if (none) {
        lua_pushstring(L, none);
        return 1;
    }
    const struct ml_object *object = ctx_cached(&target.kind, target.key);
    reads_object(run->reads, target.kind.index, ml_str_of(target.key), object);
    if (!object || !ctx_controls(run, &target, object)) {
        lua_pushliteral(L, "gone");
    } else if (ml_object_deleting(object)) {
        lua_pushliteral(L, "going");
    } else {
        ml_buf_clear(&script->opened);
        ml_object_json(object, &script->opened);
        script_push_lazy(L, ml_buf_str(&script->opened), 0);
    }
    return 1;
}

const luaL_Reg script_children[] = {{"await_owned", await_owned},
                                    {"child_id", child_id},
                                    {"event", ctx_event},
                                    {"exact_paths", exact_paths},
                                    {"inventory", inventory},
                                    {"is_recreate", is_recreate},
                                    {"mark_exact", mark_exact},
                                    {"mark_recreate", mark_recreate},
                                    {"may_write", may_write},
                                    {"recreate_child", recreate_child},
                                    {"strays", strays},
                                    {"tracked_child", tracked_child},
                                    {"write_inventory", write_inventory},
                                    {NULL, NULL}};
