/* ctx.apply: server-side apply, and what need not be applied again. An apply whose text is the one
 * that was applied last, to an object that the cache shows in the very version which that one was
 * answered with, changes nothing by the rules of server-side apply: it is not sent. Anything else
 * is: whether a field that is left out now was ours to remove, only the server knows. */
#include "base/map.h"
#include "script/ctx.h"

#define APPLY_CALL  "ctx.apply(object)"
#define APPLIED_MAX 10000 /* objects of one script; then all are forgotten */

/* What was applied to an object last. */
struct applied {
    uint64_t hash; /* of the text sent */
    char rv[32];   /* of the answer */
    size_t key_len;
    char key[]; /* "v1 Pod default/x" */
};

static size_t bytes_of(const struct applied *applied)
{
    return sizeof(*applied) + applied->key_len + 2 * sizeof(struct ml_map_slot);
}

void ctx_forget_applied(struct ml_script *script)
{
    ml_map_each (&script->applied, cursor, applied) {
        ml_budget_give(&script->memory, bytes_of(applied));
        free(applied);
    }
    ml_map_fini(&script->applied);
}

static char *applied_key(const struct ctx_target *target)
{
    const struct ml_kind *kind = target->kind.kind;
    return ml_asprintf("%s %s " ML_STR_FMT "/" ML_STR_FMT, kind->api_version, kind->kind,
                       ML_STR_ARG(target->ns), ML_STR_ARG(target->name));
}

static void remember(struct ml_script *script, const struct ctx_target *target, uint64_t hash,
                     struct ml_str rv)
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
        if (!ml_budget_take(&script->memory, bytes_of(applied))) { /* it is sent again, then */
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

/* The cached object, when applying changes nothing about it; else NULL. */
static struct ml_object *unchanged(struct ml_script *script, const struct ctx_target *target,
                                   uint64_t hash)
{
    if (target->kind.selection->metadata_only) /* what is given back is the whole object */
        return NULL;
    ML_AUTO_FREE char *key = applied_key(target);
    const struct applied *applied = ml_map_get(&script->applied, ml_str_of(key));
    struct ml_object *object = ctx_cached(&target->kind, target->ns, target->name);
    if (!applied || !object || applied->hash != hash ||
        !ml_str_is(ml_object_rv(object), applied->rv))
        return NULL;
    return object;
}

/* `hash`: of what was sent. */
ML_RAISES
static int apply_answered(lua_State *L, int status, lua_KContext hash)
{
    struct ml_operator *run = script_thread_of(L)->run;
    if (run->err.kind == 0) {
        struct ctx_target target;
        ctx_check_object(L, APPLY_CALL, &target);
        remember(run->thread.script, &target, (uint64_t)hash,
                 ctx_plain(run->body, "metadata", "resourceVersion", NULL));
    }
    return ctx_written(L, status, hash);
}

ML_RAISES
int script_ctx_apply(lua_State *L)
{
    struct ml_operator *run = ctx_may_wait(L, APPLY_CALL);
    struct ctx_target target;
    lua_settop(L, 1);
    ctx_check_object(L, APPLY_CALL, &target);
    ctx_complete(L, &target);
    struct ml_str body = ml_buf_str(&run->thread.script->body);
    uint64_t hash = ml_hash(body);
    struct ml_object *object = unchanged(run->thread.script, &target, hash);
    if (object) {
        script_push_object(L, object);
        return 1;
    }
    ctx_count_write(L);
    const struct ml_client_request request = {.verb = ML_VERB_APPLY, .body = body, .force = true};
    ctx_say(run, "apply", &target.kind, target.ns, target.name);
    ctx_send(run, &target, request, false);
    return lua_yieldk(L, 0, (lua_KContext)hash, apply_answered);
}
