/* ctx.create, ensure, patch and delete. Each checks its object, adds the namespace and the owner
 * reference, sends the request and yields; the continuation that the yield names handles the
 * answer. ctx_apply.c has ctx.apply. */
#include "codec/json_diff.h"
#include "kube/selector.h"
#include "script/ctx_calls.h"
#include "script/ctx_target.h"

/* An apply that is to make an object says that it has this version: no object has it. */
#define VERSION_OF_NOTHING "1"

struct ml_str ctx_json_field(struct ml_str object, const char *field)
{
    struct ml_str raw = {"", 0};
    ml_json_find(object, &raw, field, NULL);
    return raw;
}

struct ml_str ctx_plain_field(struct ml_str object, const char *field)
{
    struct ml_str raw = ctx_json_field(object, field);
    if (raw.len < 2 || raw.ptr[0] != '"' || memchr(raw.ptr, '\\', raw.len))
        return (struct ml_str){"", 0};
    return (struct ml_str){raw.ptr + 1, raw.len - 2};
}

size_t ctx_read_owners(struct ml_str metadata, struct ml_owner *out)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    struct ml_str reference;
    size_t count = 0;
    *out = (struct ml_owner){.uid = {"", 0}};
    ml_json_reader_init(&reader, ctx_json_field(metadata, "ownerReferences"), 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return 0;
    for (; (reference = ml_json_skip(&reader)).len > 0; count++)
        if (!out->kind.ptr && ml_str_is(ctx_json_field(reference, "controller"), "true"))
            *out = (struct ml_owner){.kind = ctx_plain_field(reference, "kind"),
                                     .name = ctx_plain_field(reference, "name"),
                                     .uid = ctx_plain_field(reference, "uid")};
    return count;
}

const char *ctx_owner_text(const struct ml_owner *owner, char out[OWNER_TEXT_MAX])
{
    if (!owner->kind.ptr)
        return "nothing";
    snprintf(out, OWNER_TEXT_MAX, ML_STR_FMT " " ML_STR_FMT, ML_STR_ARG(owner->kind),
             ML_STR_ARG(owner->name));
    return out;
}

/* A namespaced object can own objects of its own namespace only. */
ML_RAISES static void check_owner_namespace(lua_State *L, const struct write_target *target)
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

/* Encodes the stringData of the Secret in script->outgoing. Returns its metadata. */
ML_RAISES static struct ml_str encode_strings(lua_State *L, struct ml_str metadata)
{
    struct ml_script *script = script_of(L);
    ml_buf_clear(&script->body);
    if (!secret_encode_strings(ml_buf_str(&script->outgoing), &script->body))
        return metadata;
    const struct ml_buf encoded = script->body;
    script->body = script->outgoing;
    script->outgoing = encoded;
    script_cpu_check(L);
    return ctx_json_field(ml_buf_str(&script->outgoing), "metadata");
}

/* `name`: that of the metadata, or empty if it has none that is a plain text. */
ML_RAISES static void check_name(lua_State *L, const char *call, struct ml_str metadata,
                                 struct ml_str name)
{
    struct ml_err err = ML_ERR_INIT;
    if (ml_name_check(name, &err) == 0)
        return;
    bool is_given = name.len == 0 && ctx_json_field(metadata, "name").len > 0;
    bool generates = name.len == 0 && ctx_json_field(metadata, "generateName").len > 0;
    luaL_error(L, "%s: metadata.name %s%s", call, is_given ? "is no text" : err.message,
               generates ? "; a generateName is for ctx.ensure and ctx.create" : "");
}

ML_RAISES void ctx_check_object(lua_State *L, const char *call, struct write_target *target)
{
    struct ml_buf *out = &script_of(L)->outgoing;
    struct ml_gvk gvk;
    struct ml_err err = ML_ERR_INIT;
    if (!lua_istable(L, 1))
        luaL_error(L, "%s: expected an object as in a manifest, got a %s", call,
                   luaL_typename(L, 1));
    script_encode(L, 1, "", out);
    struct ml_str json = ml_buf_str(out), metadata = ctx_json_field(json, "metadata");
    struct ml_str api_version = ctx_plain_field(json, "apiVersion"),
                  kind = ctx_plain_field(json, "kind");
    script_cpu_check(L);
    if (!ml_gvk_parse(api_version, kind, &gvk))
        luaL_error(L, "%s: the object needs apiVersion and kind, as in a manifest", call);
    const struct ctx_kind found = ctx_kind_of(L, &gvk);
    if (ctx_is_secret(&gvk))
        metadata = encode_strings(L, metadata);
    *target = (struct write_target){.call = call, .kind = found, .metadata = metadata};
    target->name = ctx_plain_field(metadata, "name");
    check_name(L, call, metadata, target->name);
    struct ml_str ns = ctx_plain_field(metadata, "namespace"),
                  raw = ctx_json_field(metadata, "namespace");
    /* "" and null mean that the host chooses the namespace, as for kubectl. */
    bool has_ns = raw.len > 0 && !ml_str_is(raw, "\"\"") && !ml_str_is(raw, "null");
    if (has_ns && ml_name_check(ns, &err) < 0)
        luaL_error(L, "%s: metadata.namespace %s", call, err.message);
    target->ns = ctx_namespace(L, call, target->kind.kind, ns);
    ctx_write_key(target->ns, target->name, target->key);
    target->uid = ctx_plain_field(metadata, "uid");
    target->rv = ctx_plain_field(metadata, "resourceVersion");
    target->owned = target->kind.use == ML_USE_OWNS;
    target->adopt = script_of(L)->kinds[target->kind.index].adopts;
}

ML_RAISES void ctx_read_write_options(lua_State *L, struct write_target *target)
{
    if (lua_isnoneornil(L, 2))
        return;
    if (!lua_istable(L, 2))
        luaL_error(L, "%s: expected options as in { adopt = true }, got a %s", target->call,
                   luaL_typename(L, 2));
    script_check_fields(L, target->call, "write", 2);
    int type = script_push_field(L, 2, "adopt");
    if (type != LUA_TNIL && type != LUA_TBOOLEAN)
        luaL_error(L, "%s: adopt: expected true or false, got a %s", target->call,
                   lua_typename(L, type));
    target->adopt = target->adopt || lua_toboolean(L, -1);
    lua_pop(L, 1);
}

/* An object that the label selector of the watch leaves out would never show in the cache: the
 * script would create it again and again. */
ML_RAISES static void check_watched_labels(lua_State *L, const struct write_target *target)
{
    struct ml_str labels = ctx_json_field(target->metadata, "labels"), missed;
    if (ml_label_selector_matches(target->kind.selection->labels, labels, &missed))
        return;
    lua_pushlstring(L, missed.ptr, missed.len);
    luaL_error(L,
               "%s: this script watches the objects of %s with the labels '%s' only, and would "
               "never see this one: '%s' does not hold for its metadata.labels",
               target->call, target->kind.kind->kind, target->kind.selection->labels.ptr,
               lua_tostring(L, -1));
}

void ctx_write_references(struct ml_json_writer *writer, const struct ml_script *script,
                          const struct ml_object *owner, struct ml_str metadata)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    const struct ml_kind *kind = script->binding.kinds[0];
    struct ml_str reference;
    ml_json_reader_init(&reader, ctx_json_field(metadata, "ownerReferences"), 0);
    ml_json_key(writer, ML_STR("ownerReferences"));
    ml_json_begin_array(writer);
    if (ml_json_next(&reader) == ML_JSON_ARRAY)
        while ((reference = ml_json_skip(&reader)).len > 0)
            ml_json_raw(writer, reference);
    ml_json_begin_object(writer);
    ml_json_put_string(writer, "apiVersion", ml_str_of(kind->api_version));
    ml_json_put_string(writer, "kind", ml_str_of(kind->kind));
    ml_json_put_string(writer, "name", ml_object_name(owner));
    ml_json_put_string(writer, "uid", ml_object_uid(owner));
    ml_json_put_bool(writer, "controller", true);
    ml_json_put_bool(writer, "blockOwnerDeletion", true);
    ml_json_end_object(writer);
    ml_json_end_array(writer);
}

/* Writes `json` with `patch` merged over it into script->body. */
ML_RAISES static void merge_into_body(lua_State *L, const char *call, const struct ml_buf *json,
                                      const struct ml_buf *patch)
{
    struct ml_buf *body = &script_of(L)->body;
    struct ml_err err = ML_ERR_INIT;
    ml_buf_clear(body);
    if (ml_json_merge(ml_buf_str(json), ml_buf_str(patch), body, &err) < 0)
        luaL_error(L, "%s: %s", call, err.message);
}

/* What the server is to check before an apply. */
static void write_guards(struct ml_json_writer *writer, const struct write_target *target)
{
    if (target->guard_uid.len > 0)
        ml_json_put_string(writer, "uid", target->guard_uid);
    if (target->guard_absent)
        ml_json_put_string(writer, "resourceVersion", ML_STR(VERSION_OF_NOTHING));
    else if (target->guard_rv.len > 0)
        ml_json_put_string(writer, "resourceVersion", target->guard_rv);
}

ML_RAISES void ctx_complete_object(lua_State *L, const struct write_target *target)
{
    struct ml_script *script = script_of(L);
    const struct ml_object *owner = script_thread_of(L)->object;
    struct ml_owner controller;
    char other[OWNER_TEXT_MAX];
    bool has_ours = false;
    if (ctx_read_owners(target->metadata, &controller) > SCRIPT_OWNERS_MAX)
        luaL_error(L, "%s: metadata.ownerReferences: at most %d", target->call, SCRIPT_OWNERS_MAX);
    check_watched_labels(L, target);
    script_cpu_check(L);
    if (target->followed)
        followed_check(L, target);
    if (target->owned && !target->followed) {
        check_owner_namespace(L, target);
        has_ours = ml_str_eq(controller.uid, ml_object_uid(owner));
        if (controller.uid.len > 0 && !has_ours)
            luaL_error(L, "%s: the object already has another controller, %s", target->call,
                       ctx_owner_text(&controller, other));
    }
    struct ml_json_writer writer;
    ml_buf_clear(&script->overlay);
    ml_json_writer_init(&writer, &script->overlay);
    ml_json_begin_object(&writer);
    ml_json_key(&writer, ML_STR("metadata"));
    ml_json_begin_object(&writer);
    if (target->ns.len > 0)
        ml_json_put_string(&writer, "namespace", target->ns);
    if (target->followed)
        followed_write_mark(&writer, script, owner);
    else if (target->owned && !has_ours)
        ctx_write_references(&writer, script, owner, target->metadata);
    write_guards(&writer, target);
    ml_json_end_object(&writer);
    ml_json_end_object(&writer);
    merge_into_body(L, target->call, &script->outgoing, &script->overlay);
    children_note_wanted(L, &target->kind, target->key);
}

/* Changes of what the cache does not have in full, or perhaps not at all, are not known. */
void ctx_note_written(struct ml_run *run, const struct write_target *target)
{
    const struct ml_selection *selection = target->kind.selection;
    if (!target->kind.informer || selection->metadata_only || selection->fields.len > 0) {
        reads_give_up(run->reads, "it writes what is not watched in full");
        return;
    }
    const struct ml_object *object = ctx_cached(&target->kind, target->key);
    reads_whole(run->reads,
                reads_object(run->reads, target->kind.index, ml_str_of(target->key), object));
}

ML_RAISES void ctx_send_write(lua_State *L, const char *verb, const struct write_target *target,
                              struct ml_client_request request, bool wait_for_cache)
{
    struct ml_run *run = script_thread_of(L)->run;
    const struct ml_script *script = run->thread.script;
    size_t writes_max = script->limits.writes_max;
    script_cpu_check(L);
    if (run->writes++ >= writes_max)
        luaL_error(L, "more than %d writes in one reconcile", (int)writes_max);
    script_charge_work(L);
    ctx_note_request(run, verb, &target->kind, target->key);
    ctx_note_written(run, target);
    request.kind = target->kind.kind;
    request.ns = target->ns;
    request.name = target->name;
    if (!request.field_manager)
        request.field_manager = script->field_manager;
    const struct ml_write write = {
        .request = request,
        .expectations = script->binding.expectations,
        .informer = target->kind.informer,
        .key = ml_object_key(run->thread.object),
        .owner_uid = target->owned ? ml_object_uid(run->thread.object) : ML_STR(""),
    };
    if (!run_lacks_finalizer(run)) {
        run_write(run, &write, wait_for_cache);
        return;
    }
    script_charge(L, run_held_bytes(&write));
    run->charged += run_held_bytes(&write);
    run_write_later(run, &write, wait_for_cache);
}

ML_RAISES static void send_create(lua_State *L, const struct write_target *target)
{
    const struct ml_client_request request = {.verb = ML_VERB_CREATE,
                                              .body = ml_buf_str(&script_of(L)->body)};
    ctx_send_write(L, "create", target, request, true);
}

void ctx_send_get(struct ml_run *run, const struct write_target *target)
{
    const struct ml_client_request request = {
        .verb = ML_VERB_GET, .kind = target->kind.kind, .ns = target->ns, .name = target->name};
    ctx_note_request(run, "get", &target->kind, target->key);
    run_read(run, &request);
}

ML_RAISES int ctx_write_answered(lua_State *L, int status, lua_KContext context)
{
    struct ml_run *run = script_thread_of(L)->run;
    if (run->err.kind)
        return ctx_refuse_write(L, &run->err);
    ctx_accept_write(run);
    return ctx_answered(L, status, context);
}

static int ensure_existing(lua_State *L, int status, lua_KContext context);

/* The object at stack index 1, with the options behind it. */
ML_RAISES static struct write_target check_ensured(lua_State *L)
{
    struct write_target target;
    ctx_check_object(L, ENSURE_CALL, &target);
    ctx_read_write_options(L, &target);
    return target;
}

ML_RAISES static int ensure_created(lua_State *L, int status ML_UNUSED,
                                    lua_KContext context ML_UNUSED)
{
    struct ml_run *run = script_thread_of(L)->run;
    if (run->err.kind != ML_EALREADY_EXISTS)
        return ctx_write_answered(L, LUA_OK, 0);
    struct write_target target = check_ensured(L);
    ctx_send_get(run, &target);
    return lua_yieldk(L, 0, 0, ensure_existing);
}

/* The answer is an object that may not be ours yet. */
ML_RAISES static int claim_answered(lua_State *L, struct write_target *target)
{
    switch (ctx_claim_answer(L, target)) {
    case CLAIM_REFUSED:
        return 2;
    case CLAIM_ADOPT:
        ctx_send_adoption(L, target);
        return lua_yieldk(L, 0, 0, ctx_write_answered);
    case CLAIM_WRITE:
    case CLAIM_ASK_SERVER:
        break;
    }
    script_push_answer(L, script_thread_of(L)->run->body);
    return 1;
}

/* The answer to a GET of the object. `context` 1: create it when it is missing. */
ML_RAISES static int ensure_existing(lua_State *L, int status ML_UNUSED, lua_KContext context)
{
    struct ml_run *run = script_thread_of(L)->run;
    struct write_target target = check_ensured(L);
    if (run->err.kind == ML_ENOT_FOUND && context == 1) {
        ctx_complete_object(L, &target);
        send_create(L, &target);
        return lua_yieldk(L, 0, 0, ensure_created);
    }
    if (run->err.kind == ML_ENOT_FOUND) { /* create said AlreadyExists, now it is gone */
        ml_err_set(&run->err, ML_ECONFLICT, "%s: it was deleted meanwhile", run->what);
        run->abandoned = true; /* ends the reconcile, which no script can catch */
        return lua_yield(L, 0);
    }
    if (run->err.kind)
        return ctx_fail(L, &run->err);
    return claim_answered(L, &target);
}

ML_RAISES static int adopt_found(lua_State *L, int status ML_UNUSED, lua_KContext context ML_UNUSED)
{
    struct ml_run *run = script_thread_of(L)->run;
    struct write_target target;
    if (run->err.kind)
        return ctx_fail(L, &run->err);
    ctx_check_object(L, ONCE_CALL, &target);
    target.owned = true;
    return claim_answered(L, &target);
}

ML_RAISES int ctx_adopt(lua_State *L)
{
    struct ml_run *run = ctx_may_wait(L, ONCE_CALL);
    struct write_target target;
    lua_settop(L, 1);
    ctx_check_object(L, ONCE_CALL, &target);
    ctx_send_get(run, &target);
    return lua_yieldk(L, 0, 0, adopt_found);
}

/* The cache has the object. */
ML_RAISES static int ensure_from_cache(lua_State *L, struct write_target *target,
                                       struct ml_object *object)
{
    struct script_reads *reads = script_reads_now(L);
    read_node node = reads_object(reads, target->kind.index, ml_str_of(target->key), object);
    if (target->owned)
        reads_owner(reads, node);
    switch (ctx_claim_cached(L, target, object)) {
    case CLAIM_REFUSED:
        return 2;
    case CLAIM_ASK_SERVER:
        ctx_send_get(script_thread_of(L)->run, target);
        return lua_yieldk(L, 0, 1, ensure_existing);
    case CLAIM_WRITE:
    case CLAIM_ADOPT:
        break;
    }
    script_push_object(L, object, node);
    return 1;
}

ML_RAISES static int ensure_now(lua_State *L, int status ML_UNUSED, lua_KContext context ML_UNUSED)
{
    struct ml_run *run = ctx_may_wait(L, ENSURE_CALL);
    struct write_target target = check_ensured(L);
    ctx_note_request(run, "ensure", &target.kind, target.key);
    if (ctx_must_wait(L, ENSURE_CALL, &target.kind))
        return lua_yieldk(L, 0, 0, ensure_now);
    ctx_complete_object(L, &target); /* first: it refuses a bad object also when one exists */
    children_note_made(L, &target.kind, target.key);
    struct ml_object *object = ctx_cached(&target.kind, target.key);
    bool has_metadata_only = object && target.kind.selection->metadata_only;
    if (!target.kind.informer || has_metadata_only) { /* ensure returns the whole object */
        ctx_send_get(run, &target);
        return lua_yieldk(L, 0, 1, ensure_existing);
    }
    if (object)
        return ensure_from_cache(L, &target, object);
    send_create(L, &target);
    return lua_yieldk(L, 0, 0, ensure_created);
}

ML_RAISES static int ctx_ensure(lua_State *L)
{
    ctx_count_read(L);
    lua_settop(L, 2);
    ctx_generate_name(L, ENSURE_CALL);
    return ensure_now(L, LUA_OK, 0);
}

ML_RAISES static int ctx_create(lua_State *L)
{
    struct write_target target;
    ctx_may_wait(L, CREATE_CALL);
    lua_settop(L, 1);
    ctx_generate_name(L, CREATE_CALL);
    ctx_check_object(L, CREATE_CALL, &target);
    ctx_complete_object(L, &target);
    children_note_made(L, &target.kind, target.key);
    send_create(L, &target);
    return lua_yieldk(L, 0, 0, ctx_write_answered);
}

/* The version of the object that the script has: as it was read, or, of the reconciled object,
 * since the run has added the finalizer to it. */
static struct ml_str version_of(const struct ml_run *run, const struct write_target *target)
{
    const struct ml_object *own = run->thread.object;
    bool is_own = ml_str_eq(target->uid, ml_object_uid(own)) &&
                  ml_str_eq(target->rv, ml_object_rv(own));
    return is_own && run->version ? ml_str_of(run->version) : target->rv;
}

/* True: the caller has to yield and to begin again, as the finalizer comes first, and with it
 * another version of the object that it is about to write. */
static bool adds_finalizer_to(struct ml_run *run, const struct write_target *target)
{
    if (!ml_str_eq(target->uid, ml_object_uid(run->thread.object)) || !run_lacks_finalizer(run))
        return false;
    run_add_finalizer(run);
    return true;
}

/* Writes the changes in script->overlay into script->body, with the uid and resourceVersion that
 * the server is to check. */
ML_RAISES static void guard_patch(lua_State *L, const struct write_target *target)
{
    struct ml_script *script = script_of(L);
    struct ml_buf *guard = &script->opened;
    struct ml_str rv = version_of(script_thread_of(L)->run, target);
    ml_buf_clear(guard); /* both stand between quotes in the object's JSON: they need no escapes */
    ml_buf_printf(guard, "{\"metadata\":{\"uid\":\"" ML_STR_FMT "\"", ML_STR_ARG(target->uid));
    ml_buf_printf(guard, ",\"resourceVersion\":\"" ML_STR_FMT "\"}}", ML_STR_ARG(rv));
    merge_into_body(L, PATCH_CALL, &script->overlay, guard);
}

/* Would the changes in script->overlay leave the object in script->outgoing as it is? Unknown, so
 * false, for an object that was read without its spec. */
ML_RAISES static bool patch_changes_nothing(lua_State *L, const struct write_target *target)
{
    if (target->kind.selection->metadata_only)
        return false;
    struct ml_script *script = script_of(L);
    merge_into_body(L, PATCH_CALL, &script->outgoing, &script->overlay);
    script_cpu_check(L);
    return ml_json_equal(ml_buf_str(&script->outgoing), ml_buf_str(&script->body));
}

/* The changes in script->overlay, of an object in this state. `root` gets the beginning of their
 * paths. */
static struct ml_unkept_patch unkept_patch(const struct ml_script *script,
                                           const struct write_target *target, struct ml_str kept,
                                           char root[CTX_KEY_MAX])
{
    const struct ml_kind *kind = target->kind.kind;
    snprintf(root, CTX_KEY_MAX, "%s %s", kind->api_version, kind->kind);
    return (struct ml_unkept_patch){
        .root = root,
        .kept = kept,
        .sent = ml_buf_str(&script->overlay),
        .built_in = ml_group_is_built_in(ml_str_of(kind->group)),
        .now_ns = ml_clock_monotonic(script->cluster->clock),
    };
}

/* Do the changes in script->overlay differ from the object in script->outgoing only in what the
 * server does not keep? */
ML_RAISES static bool patch_is_not_kept(lua_State *L, const struct write_target *target)
{
    struct ml_script *script = script_of(L);
    char root[CTX_KEY_MAX];
    if (script->unkept.fields.len == 0)
        return false;
    const struct ml_unkept_patch patch = unkept_patch(script, target, ml_buf_str(&script->outgoing),
                                                      root);
    bool is = ml_unkept_covers(&script->unkept, &patch);
    script_cpu_check(L);
    return is;
}

ML_RAISES static int patch_answered(lua_State *L, int status, lua_KContext context)
{
    struct ml_run *run = script_thread_of(L)->run;
    struct ml_script *script = run->thread.script;
    struct write_target target;
    char root[CTX_KEY_MAX];
    if (run->err.kind)
        return ctx_refuse_write(L, &run->err);
    ctx_check_object(L, PATCH_CALL, &target);
    script_encode(L, 2, "changes", &script->overlay);
    const struct ml_unkept_patch patch = unkept_patch(script, &target, run->body, root);
    if (ctx_json_field(run->body, "kind").len > 0)
        ml_unkept_learn(&script->unkept, &patch, NULL);
    script_cpu_check(L);
    return ctx_write_answered(L, status, context);
}

/* A JSON merge patch that fails with Conflict when the object has changed since the script read it.
 */
ML_RAISES static int patch_now(lua_State *L, int status ML_UNUSED, lua_KContext context ML_UNUSED)
{
    struct ml_script *script = script_of(L);
    struct write_target target;
    struct ml_str raw;
    struct ml_run *run = ctx_may_wait(L, PATCH_CALL);
    lua_settop(L, 2);
    if (!lua_istable(L, 2))
        return luaL_error(L, PATCH_CALL ": changes: expected a table");
    ctx_check_object(L, PATCH_CALL, &target);
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
    if (patch_is_not_kept(L, &target) || patch_changes_nothing(L, &target)) {
        lua_settop(L, 1);
        return 1;
    }
    if (adds_finalizer_to(run, &target))
        return lua_yieldk(L, 0, 0, patch_now);
    guard_patch(L, &target);
    const struct ml_client_request request = {.verb = ML_VERB_PATCH_MERGE,
                                              .body = ml_buf_str(&script->body),
                                              .field_manager = script->patch_manager};
    ctx_send_write(L, "patch", &target, request, false);
    return lua_yieldk(L, 0, 0, patch_answered);
}

ML_RAISES static int ctx_patch(lua_State *L)
{
    return patch_now(L, LUA_OK, 0);
}

ML_RAISES static int delete_answered(lua_State *L, int status ML_UNUSED,
                                     lua_KContext context ML_UNUSED)
{
    struct ml_run *run = script_thread_of(L)->run;
    if (run->err.kind && run->err.kind != ML_ENOT_FOUND)
        return ctx_refuse_write(L, &run->err);
    ctx_accept_write(run);
    lua_pushboolean(L, 1);
    return 1;
}

ML_RAISES static int delete_now(lua_State *L, int status ML_UNUSED, lua_KContext context ML_UNUSED)
{
    struct write_target target;
    struct ml_run *run = ctx_may_wait(L, DELETE_CALL);
    lua_settop(L, 1);
    ctx_check_object(L, DELETE_CALL, &target);
    if (target.uid.len == 0)
        return luaL_error(L, DELETE_CALL
                          ": the object was not read from the server: it has no metadata.uid");
    if (adds_finalizer_to(run, &target))
        return lua_yieldk(L, 0, 0, delete_now);
    struct ml_str rv = version_of(run, &target);
    lua_pushlstring(L, target.uid.ptr, target.uid.len);
    lua_pushlstring(L, rv.ptr, rv.len);
    const struct ml_client_request request = {
        .verb = ML_VERB_DELETE,
        .uid = lua_tostring(L, -2),
        .resource_version = rv.len > 0 ? lua_tostring(L, -1) : NULL,
    };
    ctx_send_write(L, "delete", &target, request, false);
    return lua_yieldk(L, 0, 0, delete_answered);
}

ML_RAISES int ctx_delete(lua_State *L)
{
    return delete_now(L, LUA_OK, 0);
}

const luaL_Reg script_ctx_write[] = {{"apply", ctx_apply},   {"create", ctx_create},
                                     {"delete", ctx_delete}, {"ensure", ctx_ensure},
                                     {"patch", ctx_patch},   {NULL, NULL}};
