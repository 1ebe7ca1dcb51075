#include "state/writer.h"

#include "codec/json.h"

struct ml_writer_call {
    struct ml_cluster *cluster;
    const struct ml_kind *kind;
    enum ml_verb verb;
    char *ns;
    char *name;
    char *key;
    char *owner_uid;
    struct ml_gate *gate;
    bool wait_for_cache;
    ml_client_done *done;
    void *context;

    struct ml_client_call *sent;
    struct ml_err lost; /* why the reply of a create did not come, while we look for ourselves */
    struct ml_seen_wait wait;
    struct ml_buf answer; /* kept while the cache catches up */
};

static void call_free(struct ml_writer_call *call)
{
    ml_buf_fini(&call->answer);
    free(call->ns);
    free(call->name);
    free(call->key);
    free(call->owner_uid);
    free(call);
}

static void finish(struct ml_writer_call *call, struct ml_str body, const struct ml_err *err)
{
    call->done(call->context, body, err);
    call_free(call);
}

static void on_shown(void *context)
{
    struct ml_writer_call *call = context;
    finish(call, ml_buf_str(&call->answer), NULL);
}

/* A write that was answered: what the caches have to show before this key runs again. */
static void written(struct ml_writer_call *call, struct ml_str body)
{
    struct ml_informer *informer = ml_informers_find(call->cluster->informers, call->kind);
    ML_AUTO_FREE char *version = ml_json_find_string(body, "metadata", "resourceVersion", NULL);
    uint64_t rv = version && *version ? ml_rv_parse(ml_str_of(version)) : ML_RV_OPAQUE;
    if (call->gate)
        ml_gate_wrote(call->gate, ml_str_of(call->key), informer, ml_str_of(call->ns), rv);
    if (!call->wait_for_cache || !informer || ml_informer_seen(informer, ml_str_of(call->ns), rv)) {
        finish(call, body, NULL);
        return;
    }
    ml_buf_append_str(&call->answer, body);
    ml_seen_wait_start(&call->wait, informer, ml_str_of(call->ns), rv, on_shown, call);
}

static bool has_controller(struct ml_str object, const char *uid)
{
    struct ml_str owners;
    if (!ml_json_find(object, &owners, "metadata", "ownerReferences", NULL))
        return false;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, owners, 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return false;
    for (struct ml_str owner; (owner = ml_json_skip(&reader)).len;) {
        ML_AUTO_FREE char *is = ml_json_find_string(owner, "uid", NULL);
        struct ml_str controls;
        if (is && strcmp(is, uid) == 0 && ml_json_find(owner, &controls, "controller", NULL) &&
            ml_str_is(controls, "true"))
            return true;
    }
    return false;
}

/* Found, and ours: the create whose reply was lost had taken effect. */
static void on_looked(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_writer_call *call = context;
    call->sent = NULL;
    if (!err && (!*call->owner_uid || has_controller(body, call->owner_uid)))
        written(call, body);
    else
        finish(call, ML_STR(""), &call->lost);
}

static bool outcome_unknown(const struct ml_err *err)
{
    return err->kind == ML_ENETWORK || err->kind == ML_ETIMEOUT || err->kind == ML_EUNAVAILABLE;
}

static void look(struct ml_writer_call *call)
{
    const struct ml_client_request request = {
        .verb = ML_VERB_GET,
        .kind = call->kind,
        .ns = ml_str_of(call->ns),
        .name = ml_str_of(call->name),
    };
    call->sent = ml_client_send(call->cluster->client, &request, on_looked, call);
}

static void on_answer(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_writer_call *call = context;
    call->sent = NULL;
    if (!err) {
        written(call, body);
    } else if (call->verb == ML_VERB_CREATE && outcome_unknown(err) && *call->name) {
        call->lost = *err;
        look(call);
    } else {
        finish(call, body, err);
    }
}

struct ml_writer_call *ml_writer_send(struct ml_cluster *cluster, const struct ml_write *write,
                                      ml_client_done *done, void *context)
{
    const struct ml_client_request *request = &write->request;
    struct ml_writer_call *call = ml_new(struct ml_writer_call);
    call->cluster = cluster;
    call->kind = request->kind;
    call->verb = request->verb;
    call->ns = ml_str_dup(request->ns);
    call->name = ml_str_dup(request->name);
    call->key = ml_str_dup(write->key);
    call->owner_uid = ml_str_dup(write->owner_uid);
    call->gate = write->gate;
    call->wait_for_cache = write->wait_for_cache;
    call->done = done;
    call->context = context;
    call->sent = ml_client_send(cluster->client, request, on_answer, call);
    return call;
}

void ml_writer_cancel(struct ml_writer_call *call)
{
    if (!call)
        return;
    if (call->sent)
        ml_client_cancel(call->sent);
    ml_seen_wait_cancel(&call->wait);
    call_free(call);
}
