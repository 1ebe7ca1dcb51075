/* Keys whose cached object may be stale, and the one read of the server before such a key runs.
 * Called by controller.c, which adds them, and controller_work.c, which begins keys. */
#include "operator/stale_keys.h"

#include "codec/json.h"

struct doubt {
    uint64_t rv; /* the cache's that a write met another than; 0: a child has gone */
    bool is_checked;
    char key[];
};

void ml_stale_keys_fini(struct ml_stale_keys *stale_keys)
{
    ml_map_each (&stale_keys->keys, cursor, doubt)
        free(doubt);
    ml_map_fini(&stale_keys->keys);
}

static void stale_keys_put(struct ml_stale_keys *stale_keys, struct ml_str key, uint64_t rv)
{
    struct doubt *doubt = ml_map_get(&stale_keys->keys, key);
    if (!doubt) {
        doubt = ml_zalloc(sizeof *doubt + key.len);
        doubt->rv = rv;
        memcpy(doubt->key, key.ptr, key.len);
        ml_map_put(&stale_keys->keys, (struct ml_str){doubt->key, key.len}, doubt);
    } else if (doubt->rv != 0) {
        doubt->rv = rv;
    }
    doubt->is_checked = false;
}

static uint64_t object_version(const struct ml_object *object)
{
    return ml_rv_parse(ml_object_rv(object));
}

void ml_stale_keys_child_deleted(struct ml_stale_keys *stale_keys, struct ml_str key)
{
    stale_keys_put(stale_keys, key, 0);
}

void ml_stale_keys_add(struct ml_stale_keys *stale_keys, const struct ml_object *object)
{
    stale_keys_put(stale_keys, ml_object_key(object), object_version(object));
}

bool ml_stale_keys_has(const struct ml_stale_keys *stale_keys, const struct ml_object *object)
{
    const struct doubt *doubt = ml_map_get(&stale_keys->keys, ml_object_key(object));
    return doubt && (doubt->rv == 0 || doubt->rv == object_version(object));
}

void ml_stale_keys_checked(struct ml_stale_keys *stale_keys, struct ml_str key)
{
    struct doubt *doubt = ml_map_get(&stale_keys->keys, key);
    if (doubt)
        doubt->is_checked = true;
}

void ml_stale_keys_reconciled(struct ml_stale_keys *stale_keys, struct ml_str key)
{
    const struct doubt *doubt = ml_map_get(&stale_keys->keys, key);
    if (doubt && (doubt->is_checked || doubt->rv != 0))
        ml_stale_keys_drop(stale_keys, key);
}

void ml_stale_keys_drop(struct ml_stale_keys *stale_keys, struct ml_str key)
{
    free(ml_map_remove(&stale_keys->keys, key));
}

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
static int check_live_object(const struct ml_live_read *live_read, struct ml_str found,
                             struct ml_err *err)
{
    ML_AUTO_FREE char *uid = ml_json_find_string(found, "metadata", "uid", NULL);
    struct ml_str leaving;
    if (!uid || strcmp(uid, live_read->uid) != 0)
        return ml_err_set(err, ML_ECONFLICT, "%s is another one by now", live_read->key);
    if (ml_json_find(found, &leaving, "metadata", "deletionTimestamp", NULL))
        return ml_err_set(err, ML_ECONFLICT, "%s is being deleted", live_read->key);
    return 0;
}

static void on_live_answer(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_live_read *live_read = context;
    ml_live_read_done *done = live_read->done;
    void *done_context = live_read->context;
    struct ml_err verdict = err ? *err : ML_ERR_INIT;
    if (!err)
        check_live_object(live_read, body, &verdict);
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
    live_read->call = ml_client_send(client, &request, on_live_answer, live_read);
    return live_read;
}

void ml_live_read_cancel(struct ml_live_read *live_read)
{
    if (!live_read)
        return;
    ml_client_cancel(live_read->call);
    live_read_free(live_read);
}
