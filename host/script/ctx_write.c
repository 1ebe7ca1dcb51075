/* ctx.create, ensure, apply, patch and delete. Each checks its object, adds the namespace and the
 * owner reference, sends the request and yields; the continuation that the yield names handles the
 * answer. */
#include "codec/json_diff.h"
#include "script/ctx_calls.h"
#include "script/ctx_target.h"

/* ---- metadata.generateName ----
 *
 * Of ctx.ensure and ctx.create. A server that makes the name makes another one each time that a
 * request is repeated. Here it follows from the owner's uid, the kind, the namespace, the
 * generateName and the number of its uses in the run: the next try of a reconcile comes to the same
 * name, whatever happened to the reply. */

#define SUFFIX_LEN    10 /* characters: 2e14 names */
#define GENERATED_MAX 63 /* as the API server's own generated names */

/* How often a run has used a generateName. */
struct generated {
    size_t uses;
    char key[];
};

/* Counts the uses of the text on top, from 1. */
ML_RAISES static size_t count_use(lua_State *L)
{
    struct ml_run *run = script_thread_of(L)->run;
    struct ml_str key = script_check_str(L, -1);
    struct generated *generated = ml_map_get(&run->generated, key);
    if (generated)
        return ++generated->uses;
    size_t bytes = sizeof(*generated) + key.len + 2 * sizeof(struct ml_map_slot);
    script_charge(L, bytes);
    run->charged += bytes;
    generated = ml_alloc(sizeof(*generated) + key.len);
    generated->uses = 1;
    memcpy(generated->key, key.ptr, key.len);
    ml_map_put(&run->generated, (struct ml_str){generated->key, key.len}, generated);
    return 1;
}

/* The alphabet of the API server's generated names: without vowels, as these make words, and
 * without 0, 1 and 3. */
static void write_suffix(uint64_t hash, char out[SUFFIX_LEN + 1])
{
    static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";
    hash ^= hash >> 32; /* the last bytes of a text reach few of the upper bits */
    hash *= UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 29;
    for (int i = 0; i < SUFFIX_LEN; i++, hash /= sizeof(alphabet) - 1)
        out[i] = alphabet[hash % (sizeof(alphabet) - 1)];
    out[SUFFIX_LEN] = '\0';
}

/* [-0, +1] A field of the table at `index` as text, "" when it is none. */
ML_RAISES static void push_text(lua_State *L, int index, const char *field)
{
    if (script_push_field(L, index, field) == LUA_TSTRING)
        return;
    lua_pop(L, 1);
    lua_pushliteral(L, "");
}

/* [-0, +1] The name for the object whose metadata are at `metadata`. */
ML_RAISES static void push_name(lua_State *L, int metadata, struct ml_str prefix)
{
    static const char *const fields[] = {"apiVersion", "kind"};
    struct ml_str uid = ml_object_uid(script_thread_of(L)->object);
    char suffix[SUFFIX_LEN + 1];
    int first = lua_gettop(L) + 1;
    lua_pushlstring(L, uid.ptr, uid.len);
    for (size_t i = 0; i < ML_COUNT(fields); i++) {
        lua_pushliteral(L, "\n");
        push_text(L, 1, fields[i]);
    }
    lua_pushliteral(L, "\n");
    push_text(L, metadata, "namespace");
    lua_pushliteral(L, "\n");
    lua_pushlstring(L, prefix.ptr, prefix.len);
    lua_concat(L, lua_gettop(L) - first + 1);
    size_t use = count_use(L);
    lua_pushfstring(L, "\n%d", (int)use);
    lua_concat(L, 2);
    write_suffix(ml_str_hash(script_check_str(L, -1)), suffix);
    lua_pop(L, 1);
    lua_pushlstring(L, prefix.ptr, ML_MIN(prefix.len, (size_t)(GENERATED_MAX - SUFFIX_LEN)));
    lua_pushstring(L, suffix);
    lua_concat(L, 2);
}

/* [-0, +1] metadata.generateName of the object at index 1, if its metadata, which are on top, ask
 * for a name. False: they do not, and nothing was pushed. */
ML_RAISES static bool push_prefix(lua_State *L)
{
    int metadata = lua_gettop(L);
    lazy_complete(L, metadata);
    push_text(L, metadata, "name");
    bool has_name = script_str(L, -1).len > 0;
    lua_pop(L, 1);
    push_text(L, metadata, "generateName");
    if (!has_name && script_str(L, -1).len > 0)
        return true;
    lua_pop(L, 1);
    return false;
}

/* If the object at stack index 1 has a generateName and no name, replaces it by a copy with a name
 * that the next try has as well. */
ML_RAISES static void generate_name(lua_State *L, const char *call)
{
    int top = lua_gettop(L);
    ctx_may_wait(L, call);
    if (!lua_istable(L, 1))
        return;
    lazy_complete(L, 1);
    if (script_push_field(L, 1, "metadata") != LUA_TTABLE || !push_prefix(L)) {
        lua_settop(L, top);
        return;
    }
    script_push_copy(L, 1, SCRIPT_COPY_MAX);
    script_push_copy(L, top + 1, SCRIPT_COPY_MAX);
    push_name(L, top + 1, script_str(L, top + 2)); /* behind the metadata and the prefix */
    lua_setfield(L, -2, "name");
    lua_setfield(L, -2, "metadata");
    lua_replace(L, 1);
    lua_settop(L, top);
}

/* ---- ensure and create ---- */

ML_RAISES static void send_create(lua_State *L, const struct write_target *target)
{
    const struct ml_client_request request = {.verb = ML_VERB_CREATE,
                                              .body = ml_buf_str(&script_of(L)->body)};
    ctx_send_write(L, "create", target, request, true);
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
    if (!run_failed_with(run, ML_EALREADY_EXISTS))
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
    if (run_failed_with(run, ML_ENOT_FOUND) && context == 1) {
        ctx_complete_object(L, &target);
        send_create(L, &target);
        return lua_yieldk(L, 0, 0, ensure_created);
    }
    if (run_failed_with(run, ML_ENOT_FOUND)) { /* create said AlreadyExists, now it is gone */
        ml_err_set(run_make_err(run), ML_ECONFLICT, "%s: it was deleted meanwhile", run->what);
        run->abandoned = true; /* ends the reconcile, which no script can catch */
        return lua_yield(L, 0);
    }
    if (run->err)
        return ctx_fail(L, run->err);
    return claim_answered(L, &target);
}

ML_RAISES static int adopt_found(lua_State *L, int status ML_UNUSED, lua_KContext context ML_UNUSED)
{
    struct ml_run *run = script_thread_of(L)->run;
    struct write_target target;
    if (run->err)
        return ctx_fail(L, run->err);
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
    generate_name(L, ENSURE_CALL);
    return ensure_now(L, LUA_OK, 0);
}

ML_RAISES static int ctx_create(lua_State *L)
{
    struct write_target target;
    ctx_may_wait(L, CREATE_CALL);
    lua_settop(L, 1);
    generate_name(L, CREATE_CALL);
    ctx_check_object(L, CREATE_CALL, &target);
    ctx_complete_object(L, &target);
    children_note_made(L, &target.kind, target.key);
    send_create(L, &target);
    return lua_yieldk(L, 0, 0, ctx_write_answered);
}

/* ---- ctx.apply ----
 *
 * Also the applies of the children that reconcile returned. Sent only when the object or the given
 * fields have changed since the last time. */

#define APPLIED_MAX 10000 /* objects of one script; when it is full, all are forgotten */

static char *applied_key(const struct write_target *target)
{
    const struct ml_kind *kind = target->kind.kind;
    return ml_asprintf("%s %s %s", kind->api_version, kind->kind, target->key);
}

static void remember_apply(struct ml_script *script, const struct write_target *target,
                           uint64_t hash, struct ml_str rv)
{
    ML_AUTO_FREE char *key = applied_key(target);
    struct script_applied *applied = ml_map_get(&script->applied, ml_str_of(key));
    if (rv.len >= sizeof(applied->rv))
        return;
    if (!applied) {
        if (script->applied.len >= APPLIED_MAX)
            script_forget_applied(script);
        size_t size = strlen(key) + 1;
        applied = ml_zalloc(sizeof(*applied) + size);
        memcpy(applied->key, key, size);
        bool fits = ml_budget_take(&script->memory, script_applied_bytes(applied));
        if (!fits) { /* then it is sent again */
            free(applied);
            script_forget_applied(script);
            return;
        }
        ml_map_put(&script->applied, ml_str_of(applied->key), applied);
    }
    applied->hash = hash;
    memcpy(applied->rv, rv.ptr, rv.len);
    applied->rv[rv.len] = '\0';
}

/* The cached object, in full or in part, when applying changes nothing, else NULL. By the rules of
 * server-side apply nothing changes when the body is the one that was applied last, and the cache
 * shows the resourceVersion that this apply was answered with. Anything else is sent: only the
 * server knows whether a field that is left out now was ours to remove. */
static struct ml_object *find_unchanged(struct ml_script *script, const struct write_target *target,
                                        uint64_t hash)
{
    ML_AUTO_FREE char *key = applied_key(target);
    const struct script_applied *applied = ml_map_get(&script->applied, ml_str_of(key));
    struct ml_object *object = ctx_cached(&target->kind, target->key);
    if (!applied || !object || applied->hash != hash ||
        !ml_str_is(ml_object_rv(object), applied->rv))
        return NULL;
    return object;
}

/* ---- one apply ----
 *
 * ctx.apply(object [, options]) and apply_child(child, label) go the same way: to the object in the
 * cache, or to the server's where the cache cannot tell whose it is; then the apply, guarded by
 * what was found; and, when its answer shows fields of this controller that its applies do not
 * manage yet, these are joined and it is sent again. */

static bool is_child(lua_State *L)
{
    return lua_type(L, 2) == LUA_TSTRING;
}

ML_RAISES static struct write_target check_applied(lua_State *L)
{
    struct write_target target;
    bool child = is_child(L);
    ctx_check_object(L, child ? lua_tostring(L, 2) : APPLY_CALL, &target);
    if (child)
        target.tracked = ctx_is_tracked(L, &target);
    else
        ctx_read_write_options(L, &target);
    return target;
}

ML_RAISES static int child_is(lua_State *L, const char *state)
{
    lua_pushstring(L, state);
    return 1;
}

/* A refused child takes no write of the run: the children behind it get theirs in this run. The
 * refusal of one that may be made again is logged when it is not (recreate_child). */
ML_RAISES static int fail_apply(lua_State *L)
{
    struct ml_run *run = script_thread_of(L)->run;
    run->writes -= is_child(L);
    if (is_child(L) && lua_toboolean(L, 3) && run->err->kind == ML_EINVALID)
        return ctx_fail(L, run->err);
    return ctx_refuse_write(L, run->err);
}

/* Has the run one for this child? An apply without one raises. */
static bool has_write_left(lua_State *L)
{
    const struct ml_run *run = script_thread_of(L)->run;
    return !is_child(L) || run->writes < run->thread.script->limits.writes_max;
}

/* `hash`: of the body that was sent, without guards: what changes nothing is the same with any. */
ML_RAISES static int apply_accepted(lua_State *L, int status, lua_KContext hash)
{
    struct ml_run *run = script_thread_of(L)->run;
    struct write_target target = check_applied(L);
    remember_apply(run->thread.script, &target, (uint64_t)hash,
                   ctx_plain_field(ctx_json_field(run->body, "metadata"), "resourceVersion"));
    if (!is_child(L))
        return ctx_write_answered(L, status, hash);
    ctx_accept_write(run);
    return child_is(L, "applied");
}

/* The answer to the patch of moonloop.exact. If somebody else was faster, a new run sees what the
 * object is by then. */
ML_RAISES static int keys_removed(lua_State *L, int status, lua_KContext hash)
{
    struct ml_run *run = script_thread_of(L)->run;
    if (run_failed_with(run, ML_ECONFLICT)) {
        ml_err_wrap(run->err, "%s", run->what);
        run->abandoned = true;
        return lua_yield(L, 0);
    }
    return run->err ? fail_apply(L) : apply_accepted(L, status, hash);
}

ML_RAISES static int finish_apply(lua_State *L, int status, lua_KContext hash)
{
    struct ml_script *script = script_of(L);
    if (script_thread_of(L)->run->err)
        return fail_apply(L);
    struct write_target target = check_applied(L);
    if (!exact_make_patch(L, &target))
        return apply_accepted(L, status, hash);
    if (!has_write_left(L))
        return child_is(L, "full");
    const struct ml_client_request request = {.verb = ML_VERB_PATCH_MERGE,
                                              .body = ml_buf_str(&script->body)};
    ctx_send_write(L, "remove keys of others from", &target, request, false);
    return lua_yieldk(L, 0, hash, keys_removed);
}

ML_RAISES static void send_apply(lua_State *L, const struct write_target *target)
{
    ctx_complete_object(L, target);
    const struct ml_client_request request = {
        .verb = ML_VERB_APPLY, .body = ml_buf_str(&script_of(L)->body), .force = true};
    ctx_send_write(L, "apply", target, request, false);
}

ML_RAISES static int fields_joined(lua_State *L, int status ML_UNUSED, lua_KContext hash)
{
    struct ml_run *run = script_thread_of(L)->run;
    if (run->err)
        return fail_apply(L);
    struct write_target target = check_applied(L);
    target.guard_uid = ctx_plain_field(ctx_json_field(run->body, "metadata"), "uid");
    run->writes--; /* it was counted when it was sent first */
    send_apply(L, &target);
    return lua_yieldk(L, 0, hash, finish_apply);
}

ML_RAISES static int apply_answered(lua_State *L, int status, lua_KContext hash)
{
    if (script_thread_of(L)->run->err)
        return fail_apply(L);
    struct write_target target = check_applied(L);
    if (ctx_send_joined_fields(L, &target))
        return lua_yieldk(L, 0, hash, fields_joined);
    return finish_apply(L, status, hash);
}

/* The target is claimed: writes it, if the run has a write left. */
ML_RAISES static int apply_claimed(lua_State *L, const struct write_target *target, uint64_t hash)
{
    if (!has_write_left(L))
        return child_is(L, "full");
    send_apply(L, target);
    return lua_yieldk(L, 0, (lua_KContext)hash, apply_answered);
}

/* The answer to a GET of the object. */
ML_RAISES static int object_found(lua_State *L, int status ML_UNUSED, lua_KContext hash)
{
    struct ml_run *run = script_thread_of(L)->run;
    struct write_target target = check_applied(L);
    if (run->err && run->err->kind != ML_ENOT_FOUND)
        return ctx_fail(L, run->err);
    target.guard_absent = run_failed_with(run, ML_ENOT_FOUND);
    if (!target.guard_absent && ctx_claim_answer(L, &target) == CLAIM_REFUSED)
        return 2;
    if (is_child(L) && !target.guard_absent &&
        ctx_json_field(ctx_json_field(run->body, "metadata"), "deletionTimestamp").len > 0) {
        ml_err_set(run_make_err(run), ML_EALREADY_EXISTS, "%s %s is being deleted",
                   target.kind.kind->kind, target.key);
        return ctx_fail(L, run->err); /* perhaps no watch tells when it is gone */
    }
    return apply_claimed(L, &target, (uint64_t)hash);
}

ML_RAISES static int ask_server(lua_State *L, const struct write_target *target, uint64_t hash)
{
    ctx_send_get(script_thread_of(L)->run, target);
    return lua_yieldk(L, 0, (lua_KContext)hash, object_found);
}

/* `object`: the cached one, or NULL. */
ML_RAISES static int claim_and_apply(lua_State *L, struct write_target *target,
                                     const struct ml_object *object, uint64_t hash)
{
    const struct ml_selection *selection = target->kind.selection;
    if (!object && target->owned && (selection->labels.len > 0 || selection->fields.len > 0))
        return ask_server(L, target, hash); /* the watch may leave it out */
    target->guard_absent = !object && target->owned;
    switch (object ? ctx_claim_cached(L, target, object) : CLAIM_WRITE) {
    case CLAIM_REFUSED:
        ctx_note_written(script_thread_of(L)->run, target);
        return 2;
    case CLAIM_ASK_SERVER:
        return ask_server(L, target, hash);
    case CLAIM_WRITE:
    case CLAIM_ADOPT:
        break;
    }
    return apply_claimed(L, target, hash);
}

ML_RAISES static uint64_t hash_of_body(lua_State *L, const struct write_target *target)
{
    ctx_complete_object(L, target);
    return ml_hash(ml_buf_str(&script_of(L)->body));
}

ML_RAISES static int apply_now(lua_State *L, int status ML_UNUSED, lua_KContext context ML_UNUSED)
{
    struct ml_run *run = ctx_may_wait(L, APPLY_CALL);
    struct write_target target = check_applied(L);
    /* An object that this run has made is absent in the cache until the watch has shown it. */
    if (target.owned && children_is_wanted(run, target.kind.index, ml_str_of(target.key)) &&
        ctx_must_wait(L, APPLY_CALL, &target.kind))
        return lua_yieldk(L, 0, 0, apply_now);
    uint64_t hash = hash_of_body(L, &target);
    struct ml_object *object = find_unchanged(run->thread.script, &target, hash);
    if (object && !target.kind.selection->metadata_only) { /* apply returns the whole object */
        ctx_note_written(run, &target);
        script_push_object(L, object, 0);
        return 1;
    }
    return claim_and_apply(L, &target, ctx_cached(&target.kind, target.key), hash);
}

ML_RAISES static int ctx_apply(lua_State *L)
{
    lua_settop(L, 2);
    if (is_child(L))
        luaL_error(L, APPLY_CALL ": expected options as in { adopt = true }, got a string");
    return apply_now(L, LUA_OK, 0);
}

/* apply_child(child, label, may_recreate): applies an object of a list of children. "kept": it is
 * as it has to be. "applied". "leaving": it is being deleted, nothing was sent. "full": it has to
 * be written, and the run has no write left. Or nil and the error; AlreadyExists for an object that
 * the reconciled one does not control. `label` begins messages. `may_recreate`: an Invalid is not
 * logged, as recreate_child follows. */
ML_RAISES static int apply_child(lua_State *L)
{
    struct ml_run *run = ctx_may_wait(L, "children");
    lua_settop(L, 3);
    luaL_checkstring(L, 2);
    struct write_target target = check_applied(L);
    uint64_t hash = hash_of_body(L, &target);
    struct ml_object *object = ctx_cached(&target.kind, target.key);
    if (!object ||
        !(ml_object_deleting(object) || find_unchanged(run->thread.script, &target, hash)))
        return claim_and_apply(L, &target, object, hash);
    if (ctx_claim_cached(L, &target, object) == CLAIM_REFUSED)
        return 2;
    ctx_note_written(run, &target);
    return child_is(L, ml_object_deleting(object) ? "leaving" : "kept");
}

/* ---- patch and delete ---- */

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
    struct ml_json_writer writer;
    ml_buf_clear(guard);
    ml_patch_begin(&writer, guard, target->uid, version_of(script_thread_of(L)->run, target));
    ml_json_end_object(&writer);
    ml_json_end_object(&writer);
    ctx_merge_into_body(L, PATCH_CALL, &script->overlay, guard);
}

/* Would the changes in script->overlay leave the object in script->outgoing as it is? Unknown, so
 * false, for an object that was read without its spec. */
ML_RAISES static bool patch_changes_nothing(lua_State *L, const struct write_target *target)
{
    if (target->kind.selection->metadata_only)
        return false;
    struct ml_script *script = script_of(L);
    ctx_merge_into_body(L, PATCH_CALL, &script->outgoing, &script->overlay);
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
        .now_ns = ml_clock_monotonic(script->services->clock),
    };
}

/* Do the changes in script->overlay differ from the object in script->outgoing only in fields that
 * the server drops? */
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
    if (run->err)
        return ctx_refuse_write(L, run->err);
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
    if (run->err && run->err->kind != ML_ENOT_FOUND)
        return ctx_refuse_write(L, run->err);
    ctx_accept_write(run);
    lua_pushboolean(L, 1);
    return 1;
}

/* The object and the reason, for the trace, are at index 1 and 2. */
ML_RAISES static int delete_now(lua_State *L, int status ML_UNUSED, lua_KContext context ML_UNUSED)
{
    struct write_target target;
    struct ml_run *run = ctx_may_wait(L, DELETE_CALL);
    lua_settop(L, 2);
    ctx_check_object(L, DELETE_CALL, &target);
    if (target.uid.len == 0)
        return luaL_error(L, DELETE_CALL
                          ": the object was not read from the server: it has no metadata.uid");
    if (adds_finalizer_to(run, &target))
        return lua_yieldk(L, 0, 0, delete_now);
    target.why = lua_tostring(L, 2);
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

ML_RAISES static int ctx_delete(lua_State *L)
{
    lua_settop(L, 1);
    lua_pushliteral(L, "ctx.delete at ");
    luaL_where(L, 1);
    struct ml_str place = ml_str_of(lua_tostring(L, -1));
    lua_pushlstring(L, place.ptr, place.len - ML_MIN(place.len, strlen(": ")));
    lua_replace(L, -2);
    lua_concat(L, 2);
    return delete_now(L, LUA_OK, 0);
}

/* delete_child(object, why): as ctx.delete; `why` is for the trace of deletions. */
ML_RAISES static int delete_child(lua_State *L)
{
    luaL_checkstring(L, 2);
    return delete_now(L, LUA_OK, 0);
}

const luaL_Reg script_ctx_write[] = {{"apply", ctx_apply},   {"create", ctx_create},
                                     {"delete", ctx_delete}, {"ensure", ctx_ensure},
                                     {"patch", ctx_patch},   {NULL, NULL}};

const luaL_Reg script_child_writes[] = {
    {"apply_child", apply_child}, {"delete_child", delete_child}, {NULL, NULL}};
