/* ctx.create, ensure, apply, patch and delete. Each checks its object, adds the namespace and the
 * owner reference, sends the request and yields; the continuation that the yield names handles the
 * answer. */
#include "base/map.h"
#include "codec/json_diff.h"
#include "codec/json_members.h"
#include "kube/selector.h"
#include "script/ctx.h"
#include "script/ctx_calls.h"

#define APPLIED_MAX 10000 /* objects of one script; when it is full, all are forgotten */

/* The object that a script wants to write. The slices point into script->outgoing. */
struct write_target {
    const char *call; /* "ctx.create(object)", for messages */
    struct ctx_kind kind;
    struct ml_str ns, name, uid, rv; /* uid, rv: empty when the object has none */
    bool owned;                      /* the reconciled object becomes its controller */
};

/* The text between the quotes when `raw` is a string without escapes; else empty. */
static struct ml_str plain_string(struct ml_str raw)
{
    if (raw.len < 2 || raw.ptr[0] != '"' || memchr(raw.ptr, '\\', raw.len))
        return (struct ml_str){"", 0};
    return (struct ml_str){raw.ptr + 1, raw.len - 2};
}

struct ml_str ctx_plain_string(struct ml_str json, const char *first, ...)
{
    va_list keys;
    struct ml_str raw = json;
    va_start(keys, first);
    bool found = true;
    for (const char *key = first; key && found; key = va_arg(keys, const char *))
        found = ml_json_find(raw, &raw, key, NULL);
    va_end(keys);
    return plain_string(found ? raw : (struct ml_str){"", 0});
}

/* Iterates over the owner references of an object. */
struct reference_walk {
    struct ml_json_reader reader;
    bool open;
};

static void references_begin(struct reference_walk *walk, struct ml_str json)
{
    struct ml_str list = {"", 0};
    ml_json_find(json, &list, "metadata", "ownerReferences", NULL);
    ml_json_reader_init(&walk->reader, list, 0);
    walk->open = list.len > 0 && ml_json_next(&walk->reader) == ML_JSON_ARRAY;
}

static bool references_next(struct reference_walk *walk, struct ml_str *out_reference)
{
    if (!walk->open)
        return false;
    *out_reference = ml_json_skip(&walk->reader);
    walk->open = out_reference->len > 0;
    return walk->open;
}

static void references_end(struct reference_walk *walk)
{
    ml_json_reader_fini(&walk->reader);
}

static struct ml_str controller_of(struct ml_str json, char *out_text, size_t size)
{
    ML_AUTO(references_end) struct reference_walk walk;
    struct ml_str reference, controller;
    references_begin(&walk, json);
    while (references_next(&walk, &reference)) {
        if (!ml_json_find(reference, &controller, "controller", NULL) ||
            !ml_str_is(controller, "true"))
            continue;
        struct ml_str kind = ctx_plain_string(reference, "kind", NULL);
        struct ml_str name = ctx_plain_string(reference, "name", NULL);
        snprintf(out_text, size, ML_STR_FMT " " ML_STR_FMT, ML_STR_ARG(kind), ML_STR_ARG(name));
        return ctx_plain_string(reference, "uid", NULL);
    }
    snprintf(out_text, size, "nothing");
    return (struct ml_str){"", 0};
}

static size_t count_references(struct ml_str json)
{
    ML_AUTO(references_end) struct reference_walk walk;
    struct ml_str reference;
    size_t count = 0;
    references_begin(&walk, json);
    while (references_next(&walk, &reference))
        count++;
    return count;
}

/* A namespaced object can own objects of its own namespace only. */
ML_RAISES
static void check_owner_namespace(lua_State *L, const struct write_target *target)
{
    const struct ml_object *owner = script_thread_of(L)->object;
    const struct ml_kind *owner_kind = script_of(L)->binding.kinds[0];
    struct ml_str owner_ns = ml_object_namespace(owner);
    if (owner_ns.len == 0 || ml_str_eq(owner_ns, target->ns))
        return;
    lua_pushlstring(L, target->ns.ptr, target->ns.len);
    lua_pushlstring(L, owner_ns.ptr, owner_ns.len);
    luaL_error(L,
               "%s: a %s in namespace '%s' cannot be owned by a %s in namespace '%s'; to write "
               "it without an owner, declare the kind in uses",
               target->call, target->kind.kind->kind, lua_tostring(L, -2), owner_kind->kind,
               lua_tostring(L, -1));
}

/* Fields of an object; each is empty when it is absent. */
struct object_names {
    struct ml_str api_version, kind, name, ns, uid, rv;
    bool has_ns; /* also when `ns` is empty because the string has escapes */
};

static struct ml_str plain_member(const struct ml_json_members *members, const char *key)
{
    const struct ml_json_member *member = ml_json_members_find(members, ml_str_of(key));
    return plain_string(member ? member->value : (struct ml_str){"", 0});
}

/* "" and null mean that the host chooses the namespace, as for kubectl. */
static bool is_namespace_given(const struct ml_json_member *member)
{
    return member && !ml_str_is(member->value, "\"\"") && !ml_str_is(member->value, "null");
}

static struct object_names read_object_names(struct ml_str json)
{
    ML_AUTO(ml_json_members_fini) struct ml_json_members object = {0}, metadata = {0};
    struct ml_err err;
    const struct ml_json_member *member = NULL;
    if (ml_json_members_read(&object, json, 0, &err))
        member = ml_json_members_find(&object, ML_STR("metadata"));
    bool has_metadata = member && ml_json_members_read(&metadata, member->value, 0, &err);
    struct object_names names = {.api_version = plain_member(&object, "apiVersion"),
                                 .kind = plain_member(&object, "kind")};
    names.name = names.ns = names.uid = names.rv = (struct ml_str){"", 0};
    if (!has_metadata)
        return names;
    names.name = plain_member(&metadata, "name");
    names.ns = plain_member(&metadata, "namespace");
    names.has_ns = is_namespace_given(ml_json_members_find(&metadata, ML_STR("namespace")));
    names.uid = plain_member(&metadata, "uid");
    names.rv = plain_member(&metadata, "resourceVersion");
    return names;
}

ML_RAISES
static void check_object(lua_State *L, const char *call, struct write_target *target)
{
    struct ml_buf *out = &script_of(L)->outgoing;
    if (!lua_istable(L, 1))
        luaL_error(L, "%s: expected an object as in a manifest, got a %s", call,
                   luaL_typename(L, 1));
    script_encode(L, 1, "", out);
    struct object_names names = read_object_names(ml_buf_str(out));
    struct ml_gvk gvk;
    script_cpu_check(L);
    if (!ml_gvk_parse(names.api_version, names.kind, &gvk))
        luaL_error(L, "%s: the object needs apiVersion and kind, as in a manifest", call);
    target->call = call;
    target->kind = ctx_kind_of(L, &gvk);
    target->name = names.name;
    if (!ml_name_valid(target->name))
        luaL_error(L, "%s: the object needs a metadata.name that a URL can have", call);
    if (names.has_ns && !ml_name_valid(names.ns))
        luaL_error(L, "%s: metadata.namespace is no name", call);
    target->ns = ctx_namespace(L, call, target->kind.kind, names.ns);
    target->uid = names.uid;
    target->rv = names.rv;
    target->owned = target->kind.use == ML_USE_OWNS;
}

/* An object that the label selector of the watch leaves out would never show in the cache: the
 * script would create it again and again. */
ML_RAISES
static void check_watched_labels(lua_State *L, const struct write_target *target)
{
    struct ml_str labels = {"", 0}, missed;
    ml_json_find(ml_buf_str(&script_of(L)->outgoing), &labels, "metadata", "labels", NULL);
    if (ml_label_selector_matches(target->kind.selection->labels, labels, &missed))
        return;
    lua_pushlstring(L, missed.ptr, missed.len);
    luaL_error(L,
               "%s: this script watches the objects of %s with the labels '%s' only, and would "
               "never see this one: '%s' does not hold for its metadata.labels",
               target->call, target->kind.kind->kind, target->kind.selection->labels.ptr,
               lua_tostring(L, -1));
}

static void write_reference(struct ml_json_writer *writer, const struct ml_script *script,
                            const struct ml_object *owner)
{
    const struct ml_kind *kind = script->binding.kinds[0];
    ml_json_begin_object(writer);
    ml_json_put_string(writer, "apiVersion", ml_str_of(kind->api_version));
    ml_json_put_string(writer, "kind", ml_str_of(kind->kind));
    ml_json_put_string(writer, "name", ml_object_name(owner));
    ml_json_put_string(writer, "uid", ml_object_uid(owner));
    ml_json_put_bool(writer, "controller", true);
    ml_json_put_bool(writer, "blockOwnerDeletion", true);
    ml_json_end_object(writer);
}

/* Writes the object's own references, then ours. */
static void write_references(struct ml_json_writer *writer, const struct ml_script *script,
                             const struct ml_object *owner, struct ml_str json)
{
    ML_AUTO(references_end) struct reference_walk walk;
    struct ml_str reference;
    ml_json_key(writer, ML_STR("ownerReferences"));
    ml_json_begin_array(writer);
    references_begin(&walk, json);
    while (references_next(&walk, &reference))
        ml_json_raw(writer, reference);
    write_reference(writer, script, owner);
    ml_json_end_array(writer);
}

ML_RAISES
static void complete_object(lua_State *L, const struct write_target *target)
{
    struct ml_script *script = script_of(L);
    const struct ml_object *owner = script_thread_of(L)->object;
    struct ml_str json = ml_buf_str(&script->outgoing);
    char other[ML_ERR_REASON_MAX * 4];
    bool has_ours = false;
    if (count_references(json) > SCRIPT_OWNERS_MAX)
        luaL_error(L, "%s: metadata.ownerReferences: at most %d", target->call, SCRIPT_OWNERS_MAX);
    check_watched_labels(L, target);
    script_cpu_check(L);
    if (target->owned) {
        check_owner_namespace(L, target);
        struct ml_str uid = controller_of(json, other, sizeof(other));
        has_ours = ml_str_eq(uid, ml_object_uid(owner));
        if (uid.len > 0 && !has_ours)
            luaL_error(L, "%s: the object already has another controller, %s", target->call, other);
    }
    struct ml_json_writer writer;
    ml_buf_clear(&script->overlay);
    ml_json_writer_init(&writer, &script->overlay);
    ml_json_begin_object(&writer);
    ml_json_key(&writer, ML_STR("metadata"));
    ml_json_begin_object(&writer);
    if (target->ns.len > 0)
        ml_json_put_string(&writer, "namespace", target->ns);
    if (target->owned && !has_ours)
        write_references(&writer, script, owner, json);
    ml_json_end_object(&writer);
    ml_json_end_object(&writer);
    ml_buf_clear(&script->body);
    struct ml_err err = ML_ERR_INIT;
    if (ml_json_merge(json, ml_buf_str(&script->overlay), &script->body, &err) < 0)
        luaL_error(L, "%s: %s", target->call, err.message);
}

static void note_request(struct ml_run *run, const char *verb, const struct write_target *target)
{
    ctx_note_request(run, verb, &target->kind, target->ns, target->name);
}

/* What was written has to be looked at again whatever somebody changes of it. Changes of what the
 * cache does not have in full, or perhaps not at all, are not known. */
static void note_written(struct ml_run *run, const struct write_target *target)
{
    const struct ml_selection *selection = target->kind.selection;
    if (!target->kind.informer || selection->metadata_only || selection->fields.len > 0) {
        reads_give_up(run->reads, "it writes what is not watched in full");
        return;
    }
    const struct ml_object *object = ctx_cached(&target->kind, target->ns, target->name);
    reads_whole(run->reads,
                ctx_note_read(run->reads, &target->kind, target->ns, target->name, object));
}

static void send_write(struct ml_run *run, const struct write_target *target,
                       struct ml_client_request request, bool wait_for_cache)
{
    const struct ml_script *script = run->thread.script;
    note_written(run, target);
    request.kind = target->kind.kind;
    request.ns = target->ns;
    request.name = target->name;
    request.field_manager = script->field_manager;
    const struct ml_write write = {
        .request = request,
        .expectations = script->binding.expectations,
        .informer = target->kind.informer,
        .key = ml_object_key(run->thread.object),
        .owner_uid = target->owned ? ml_object_uid(run->thread.object) : ML_STR(""),
    };
    run_write(run, &write, wait_for_cache);
}

static void send_create(struct ml_run *run, const struct write_target *target)
{
    const struct ml_client_request request = {.verb = ML_VERB_CREATE,
                                              .body = ml_buf_str(&run->thread.script->body)};
    note_request(run, "create", target);
    send_write(run, target, request, true);
}

static void send_get(struct ml_run *run, const struct write_target *target)
{
    const struct ml_client_request request = {
        .verb = ML_VERB_GET, .kind = target->kind.kind, .ns = target->ns, .name = target->name};
    note_request(run, "get", target);
    run_read(run, &request);
}

ML_RAISES
static void count_write(lua_State *L)
{
    struct ml_run *run = script_thread_of(L)->run;
    size_t writes_max = run->thread.script->limits.writes_max;
    script_cpu_check(L);
    if (run->writes++ >= writes_max)
        luaL_error(L, "more than %d writes in one reconcile", (int)writes_max);
    script_charge_work(L);
}

/* The object exists already. [-0, +2] nil and an error when it should have us as controller and
 * does not; returns how many results it pushed. */
ML_RAISES
static int fail_if_foreign(lua_State *L, const struct write_target *target, struct ml_str uid,
                           const char *owner)
{
    struct ml_run *run = script_thread_of(L)->run;
    if (!target->owned || ml_str_eq(uid, ml_object_uid(run->thread.object)))
        return 0;
    char key[2 * 256];
    struct ml_err err = ML_ERR_INIT;
    ml_err_set(&err, ML_EALREADY_EXISTS, "%s %s exists and is controlled by %s",
               target->kind.kind->kind, ctx_key(target->ns, target->name, key).ptr, owner);
    err.http = 409;
    note_request(run, "create", target);
    return ctx_refuse_write(L, &err);
}

/* The object as it was written, or nil and the error. */
ML_RAISES
static int write_answered(lua_State *L, int status, lua_KContext context)
{
    struct ml_run *run = script_thread_of(L)->run;
    if (run->err.kind)
        return ctx_refuse_write(L, &run->err);
    ctx_accept_write(run);
    return ctx_answered(L, status, context);
}

static int ensure_existing(lua_State *L, int status, lua_KContext context);

ML_RAISES
static int ensure_created(lua_State *L, int status ML_UNUSED, lua_KContext context ML_UNUSED)
{
    struct ml_run *run = script_thread_of(L)->run;
    if (run->err.kind != ML_EALREADY_EXISTS)
        return write_answered(L, LUA_OK, 0);
    struct write_target target;
    check_object(L, ENSURE_CALL, &target);
    send_get(run, &target);
    return lua_yieldk(L, 0, 0, ensure_existing);
}

/* Ends the reconcile with an error that no script can catch. To be returned. */
ML_RAISES
static int abandon_run(lua_State *L, const struct ml_err *err)
{
    struct ml_run *run = script_thread_of(L)->run;
    run->err = *err;
    run->abandoned = true;
    return lua_yield(L, 0);
}

/* The answer to a GET of the object. `context` 1: create it when it is missing. */
ML_RAISES
static int ensure_existing(lua_State *L, int status ML_UNUSED, lua_KContext context)
{
    struct ml_run *run = script_thread_of(L)->run;
    struct write_target target;
    check_object(L, ENSURE_CALL, &target);
    if (run->err.kind == ML_ENOT_FOUND && context == 1) {
        count_write(L);
        complete_object(L, &target);
        send_create(run, &target);
        return lua_yieldk(L, 0, 0, ensure_created);
    }
    if (run->err.kind == ML_ENOT_FOUND) { /* create said AlreadyExists, now it is gone */
        struct ml_err err = ML_ERR_INIT;
        ml_err_set(&err, ML_ECONFLICT, "%s: it was deleted meanwhile", run->what);
        return abandon_run(L, &err);
    }
    if (run->err.kind)
        return ctx_fail(L, &run->err);
    char owner[ML_ERR_REASON_MAX * 4];
    struct ml_str uid = controller_of(run->body, owner, sizeof(owner));
    int results = fail_if_foreign(L, &target, uid, owner);
    if (results > 0)
        return results;
    script_push_answer(L, run->body);
    return 1;
}

/* The cache has the object. */
ML_RAISES
static int ensure_from_cache(lua_State *L, const struct write_target *target,
                             struct ml_object *object)
{
    struct ml_owner owner = {.uid = {"", 0}};
    struct script_reads *reads = script_reads_now(L);
    read_node node = ctx_note_read(reads, &target->kind, target->ns, target->name, object);
    if (target->owned)
        reads_owner(reads, node);
    char text[ML_ERR_REASON_MAX * 4] = "nothing";
    if (ml_object_controller(object, &owner))
        snprintf(text, sizeof(text), ML_STR_FMT " " ML_STR_FMT, ML_STR_ARG(owner.kind),
                 ML_STR_ARG(owner.name));
    int results = fail_if_foreign(L, target, owner.uid, text);
    if (results > 0)
        return results;
    script_push_object(L, object, node);
    return 1;
}

ML_RAISES
static int ensure_now(lua_State *L, int status ML_UNUSED, lua_KContext context ML_UNUSED)
{
    struct ml_run *run = ctx_may_wait(L, ENSURE_CALL);
    struct write_target target;
    check_object(L, ENSURE_CALL, &target);
    note_request(run, "ensure", &target);
    if (ctx_must_wait(L, ENSURE_CALL, &target.kind))
        return lua_yieldk(L, 0, 0, ensure_now);
    complete_object(L, &target); /* first: it refuses a bad object also when one exists */
    struct ml_object *object = ctx_cached(&target.kind, target.ns, target.name);
    bool has_metadata_only = object && target.kind.selection->metadata_only;
    if (!target.kind.informer || has_metadata_only) { /* ensure returns the whole object */
        send_get(run, &target);
        return lua_yieldk(L, 0, 1, ensure_existing);
    }
    if (object)
        return ensure_from_cache(L, &target, object);
    count_write(L);
    send_create(run, &target);
    return lua_yieldk(L, 0, 0, ensure_created);
}

ML_RAISES
static int ctx_ensure(lua_State *L)
{
    ctx_count_read(L);
    lua_settop(L, 1);
    return ensure_now(L, LUA_OK, 0);
}

ML_RAISES
static int ctx_create(lua_State *L)
{
    struct ml_run *run = ctx_may_wait(L, CREATE_CALL);
    struct write_target target;
    lua_settop(L, 1);
    check_object(L, CREATE_CALL, &target);
    complete_object(L, &target);
    count_write(L);
    send_create(run, &target);
    return lua_yieldk(L, 0, 0, write_answered);
}

/* Writes the changes in script->overlay into script->body, with the uid and resourceVersion that
 * the server is to check. */
ML_RAISES
static void guard_patch(lua_State *L, const struct write_target *target)
{
    struct ml_script *script = script_of(L);
    struct ml_buf *guard = &script->opened;
    struct ml_json_writer writer;
    struct ml_err err = ML_ERR_INIT;
    ml_buf_clear(guard);
    ml_json_writer_init(&writer, guard);
    ml_json_begin_object(&writer);
    ml_json_key(&writer, ML_STR("metadata"));
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "uid", target->uid);
    ml_json_put_string(&writer, "resourceVersion", target->rv);
    ml_json_end_object(&writer);
    ml_json_end_object(&writer);
    ml_buf_clear(&script->body);
    if (ml_json_merge(ml_buf_str(&script->overlay), ml_buf_str(guard), &script->body, &err) < 0)
        luaL_error(L, PATCH_CALL ": %s", err.message);
}

/* Would the changes in script->overlay leave the object in script->outgoing as it is? Unknown, so
 * false, for an object that was read without its spec. */
ML_RAISES
static bool patch_changes_nothing(lua_State *L, const struct write_target *target)
{
    if (target->kind.selection->metadata_only)
        return false;
    struct ml_script *script = script_of(L);
    struct ml_err err = ML_ERR_INIT;
    ml_buf_clear(&script->body);
    if (ml_json_merge(ml_buf_str(&script->outgoing), ml_buf_str(&script->overlay), &script->body,
                      &err) < 0)
        luaL_error(L, PATCH_CALL ": %s", err.message);
    script_cpu_check(L);
    return ml_json_equal(ml_buf_str(&script->outgoing), ml_buf_str(&script->body));
}

/* A JSON merge patch that fails with Conflict when the object has changed since the script read it.
 */
ML_RAISES
static int ctx_patch(lua_State *L)
{
    struct ml_run *run = ctx_may_wait(L, PATCH_CALL);
    struct ml_script *script = script_of(L);
    struct write_target target;
    struct ml_str raw;
    lua_settop(L, 2);
    if (!lua_istable(L, 2))
        return luaL_error(L, PATCH_CALL ": changes: expected a table");
    check_object(L, PATCH_CALL, &target);
    if (target.uid.len == 0 || target.rv.len == 0)
        return luaL_error(L, PATCH_CALL
                          ": the object was not read from the server: it has no metadata.uid and "
                          "resourceVersion");
    script_encode(L, 2, "changes", &script->overlay);
    script_cpu_check(L);
    if (script->overlay.ptr[0] != '{')
        return luaL_error(L, PATCH_CALL ": changes: expected an object, not a list");
    if (target.kind.kind->has_status &&
        ml_json_find(ml_buf_str(&script->overlay), &raw, "status", NULL))
        return luaL_error(L, PATCH_CALL ": changes: status is what reconcile returns");
    if (patch_changes_nothing(L, &target)) {
        lua_settop(L, 1);
        return 1;
    }
    guard_patch(L, &target);
    count_write(L);
    const struct ml_client_request request = {.verb = ML_VERB_PATCH_MERGE,
                                              .body = ml_buf_str(&script->body)};
    note_request(run, "patch", &target);
    send_write(run, &target, request, false);
    return lua_yieldk(L, 0, 0, write_answered);
}

ML_RAISES
static int delete_answered(lua_State *L, int status ML_UNUSED, lua_KContext context ML_UNUSED)
{
    struct ml_run *run = script_thread_of(L)->run;
    if (run->err.kind && run->err.kind != ML_ENOT_FOUND)
        return ctx_refuse_write(L, &run->err);
    ctx_accept_write(run);
    lua_pushboolean(L, 1);
    return 1;
}

ML_RAISES
static int ctx_delete(lua_State *L)
{
    struct ml_run *run = ctx_may_wait(L, DELETE_CALL);
    struct write_target target;
    lua_settop(L, 1);
    check_object(L, DELETE_CALL, &target);
    if (target.uid.len == 0)
        return luaL_error(L, DELETE_CALL
                          ": the object was not read from the server: it has no metadata.uid");
    count_write(L);
    lua_pushlstring(L, target.uid.ptr, target.uid.len);
    lua_pushlstring(L, target.rv.ptr, target.rv.len);
    const struct ml_client_request request = {
        .verb = ML_VERB_DELETE,
        .uid = lua_tostring(L, -2),
        .resource_version = target.rv.len > 0 ? lua_tostring(L, -1) : NULL,
    };
    note_request(run, "delete", &target);
    send_write(run, &target, request, false);
    return lua_yieldk(L, 0, 0, delete_answered);
}

/* The last apply of an object. */
struct applied {
    uint64_t hash; /* of the body that was sent */
    char rv[32];   /* resourceVersion of the answer */
    size_t key_len;
    char key[]; /* "v1 Pod default/x" */
};

static size_t applied_bytes(const struct applied *applied)
{
    return sizeof(*applied) + applied->key_len + 2 * sizeof(struct ml_map_slot);
}

void ctx_forget_applied(struct ml_script *script)
{
    ml_map_each (&script->applied, cursor, applied) {
        ml_budget_give(&script->memory, applied_bytes(applied));
        free(applied);
    }
    ml_map_fini(&script->applied);
}

static char *applied_key(const struct write_target *target)
{
    const struct ml_kind *kind = target->kind.kind;
    return ml_asprintf("%s %s " ML_STR_FMT "/" ML_STR_FMT, kind->api_version, kind->kind,
                       ML_STR_ARG(target->ns), ML_STR_ARG(target->name));
}

static void remember_apply(struct ml_script *script, const struct write_target *target,
                           uint64_t hash, struct ml_str rv)
{
    ML_AUTO_FREE char *key = applied_key(target);
    struct applied *applied = ml_map_get(&script->applied, ml_str_of(key));
    if (rv.len >= sizeof(applied->rv))
        return;
    if (!applied) {
        if (script->applied.len >= APPLIED_MAX)
            ctx_forget_applied(script);
        size_t len = strlen(key);
        applied = ml_zalloc(sizeof(*applied) + len);
        applied->key_len = len;
        if (!ml_budget_take(&script->memory, applied_bytes(applied))) { /* then it is sent again */
            free(applied);
            ctx_forget_applied(script);
            return;
        }
        memcpy(applied->key, key, len);
        ml_map_put(&script->applied, (struct ml_str){applied->key, len}, applied);
    }
    applied->hash = hash;
    memcpy(applied->rv, rv.ptr, rv.len);
    applied->rv[rv.len] = '\0';
}

/* The cached object when applying changes nothing, else NULL. By the rules of server-side apply
 * nothing changes when the body is the one that was applied last, and the cache shows the
 * resourceVersion that this apply was answered with. Anything else is sent: only the server knows
 * whether a field that is left out now was ours to remove. */
static struct ml_object *find_unchanged(struct ml_script *script, const struct write_target *target,
                                        uint64_t hash)
{
    if (target->kind.selection->metadata_only) /* apply returns the whole object */
        return NULL;
    ML_AUTO_FREE char *key = applied_key(target);
    const struct applied *applied = ml_map_get(&script->applied, ml_str_of(key));
    struct ml_object *object = ctx_cached(&target->kind, target->ns, target->name);
    if (!applied || !object || applied->hash != hash ||
        !ml_str_is(ml_object_rv(object), applied->rv))
        return NULL;
    return object;
}

/* `hash`: of the body that was sent. */
ML_RAISES
static int apply_answered(lua_State *L, int status, lua_KContext hash)
{
    struct ml_run *run = script_thread_of(L)->run;
    if (run->err.kind == 0) {
        struct write_target target;
        check_object(L, APPLY_CALL, &target);
        remember_apply(run->thread.script, &target, (uint64_t)hash,
                       ctx_plain_string(run->body, "metadata", "resourceVersion", NULL));
    }
    return write_answered(L, status, hash);
}

ML_RAISES
static int ctx_apply(lua_State *L)
{
    struct ml_run *run = ctx_may_wait(L, APPLY_CALL);
    struct write_target target;
    lua_settop(L, 1);
    check_object(L, APPLY_CALL, &target);
    complete_object(L, &target);
    struct ml_str body = ml_buf_str(&run->thread.script->body);
    uint64_t hash = ml_hash(body);
    struct ml_object *object = find_unchanged(run->thread.script, &target, hash);
    if (object) {
        note_written(run, &target);
        script_push_object(L, object, 0);
        return 1;
    }
    count_write(L);
    const struct ml_client_request request = {.verb = ML_VERB_APPLY, .body = body, .force = true};
    note_request(run, "apply", &target);
    send_write(run, &target, request, false);
    return lua_yieldk(L, 0, (lua_KContext)hash, apply_answered);
}

const luaL_Reg script_ctx_write[] = {{"apply", ctx_apply},   {"create", ctx_create},
                                     {"delete", ctx_delete}, {"ensure", ctx_ensure},
                                     {"patch", ctx_patch},   {NULL, NULL}};
