#include "operator/live_read.h"

#include "codec/json.h"

struct ml_live_read {
    struct ml_client *client;
    struct ml_client_call *call;
    char *key;
    char *uid;
    ml_live_read_done *done;
    void *context;
};

static void live_read_free(struct ml_live_read *live_read)
{
    free(live_read->key);
    free(live_read->uid);
    free(live_read);
}

/* What is wrong with what was found; 0: nothing. */
static int judge(const struct ml_live_read *live_read, struct ml_str found, struct ml_err *err)
{
    ML_AUTO_FREE char *uid = ml_json_find_string(found, "metadata", "uid", NULL);
    struct ml_str leaving;
    if (!uid || strcmp(uid, live_read->uid) != 0)
        return ml_err_set(err, ML_ECONFLICT, "%s is another one by now", live_read->key);
    if (ml_json_find(found, &leaving, "metadata", "deletionTimestamp", NULL))
        return ml_err_set(err, ML_ECONFLICT, "%s is being deleted", live_read->key);
    return 0;
}

static void on_answer(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_live_read *live_read = context;
    ml_live_read_done *done = live_read->done;
    void *done_context = live_read->context;
    struct ml_err verdict = err ? *err : ML_ERR_INIT;
    if (!err)
        judge(live_read, body, &verdict);
    else if (err->kind == ML_ENOT_FOUND)
        ml_err_set(&verdict, ML_ECONFLICT, "%s is gone", live_read->key);
    live_read_free(live_read);
    done(done_context, verdict.kind ? &verdict : NULL);
}

struct ml_live_read *ml_live_read_start(struct ml_client *client, const struct ml_kind *kind,
                                        const struct ml_object *object, ml_live_read_done *done,
                                        void *context)
{
    struct ml_live_read *live_read = ml_new(struct ml_live_read);
    const struct ml_client_request request = {
        .verb = ML_VERB_GET,
        .kind = kind,
        .ns = ml_object_namespace(object),
        .name = ml_object_name(object),
    };
    live_read->client = client;
    live_read->key = ml_str_dup(ml_object_key(object));
    live_read->uid = ml_str_dup(ml_object_uid(object));
    live_read->done = done;
    live_read->context = context;
    live_read->call = ml_client_send(client, &request, on_answer, live_read);
    return live_read;
}

void ml_live_read_cancel(struct ml_live_read *live_read)
{
    if (!live_read)
        return;
    ml_client_cancel(live_read->call);
    live_read_free(live_read);
}
