#include "operator/recheck.h"

#include "codec/json.h"

struct ml_recheck {
    struct ml_client *client;
    struct ml_client_call *call;
    char *key;
    char *uid;
    ml_recheck_done *done;
    void *context;
};

static void recheck_free(struct ml_recheck *recheck)
{
    free(recheck->key);
    free(recheck->uid);
    free(recheck);
}

/* What is wrong with what was found; 0: nothing. */
static int judge(const struct ml_recheck *recheck, struct ml_str found, struct ml_err *err)
{
    ML_AUTO_FREE char *uid = ml_json_find_string(found, "metadata", "uid", NULL);
    struct ml_str leaving;
    if (!uid || strcmp(uid, recheck->uid) != 0)
        return ml_err_set(err, ML_ECONFLICT, "%s is another one by now", recheck->key);
    if (ml_json_find(found, &leaving, "metadata", "deletionTimestamp", NULL))
        return ml_err_set(err, ML_ECONFLICT, "%s is being deleted", recheck->key);
    return 0;
}

static void on_answer(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_recheck *recheck = context;
    ml_recheck_done *done = recheck->done;
    void *done_context = recheck->context;
    struct ml_err verdict = err ? *err : ML_ERR_INIT;
    if (!err)
        judge(recheck, body, &verdict);
    else if (err->kind == ML_ENOT_FOUND)
        ml_err_set(&verdict, ML_ECONFLICT, "%s is gone", recheck->key);
    recheck_free(recheck);
    done(done_context, verdict.kind ? &verdict : NULL);
}

struct ml_recheck *ml_recheck_start(struct ml_client *client, const struct ml_kind *kind,
                                    const struct ml_object *object, ml_recheck_done *done,
                                    void *context)
{
    struct ml_recheck *recheck = ml_new(struct ml_recheck);
    const struct ml_client_request request = {
        .verb = ML_VERB_GET,
        .kind = kind,
        .ns = ml_object_namespace(object),
        .name = ml_object_name(object),
    };
    recheck->client = client;
    recheck->key = ml_str_dup(ml_object_key(object));
    recheck->uid = ml_str_dup(ml_object_uid(object));
    recheck->done = done;
    recheck->context = context;
    recheck->call = ml_client_send(client, &request, on_answer, recheck);
    return recheck;
}

void ml_recheck_cancel(struct ml_recheck *recheck)
{
    if (!recheck)
        return;
    ml_client_cancel(recheck->call);
    recheck_free(recheck);
}
