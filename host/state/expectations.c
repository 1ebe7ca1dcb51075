/* The writes of each key's run: waits for the cache to show them, knows their echoes, and reads
 * objects that the cache may show too late. */
#include "state/expectations.h"

#include "codec/json.h"

#define READ_DELAY_FIRST_NS (10 * ML_NS_PER_S)
#define READ_DELAY_MAX_NS   (300 * ML_NS_PER_S)

/* One write of a key's last run. It waits until the cache shows it, and reads the object when the
 * watch lags; of the writes of one object only the newest waits. */
struct own_write {
    struct own_write *next;
    struct ml_key_writes *entry;
    struct ml_informer *informer; /* only compared once the wait is over */
    char *ns, *name;
    uint64_t rv;
    bool returned; /* its echo came; or the cache was that far before the answer */

    struct ml_seen_wait seen; /* all zero: it does not wait */
    struct ml_timer read_timer;
    int64_t read_delay_ns;
    struct ml_client_call *reading; /* NULL: not asking */
};

enum staleness { NOT_STALE, STALE_AFTER_CONFLICT, STALE_AFTER_CHILD };

/* The part of a key's record. */
struct ml_key_writes {
    struct ml_expectations *owner;
    struct ml_key *key;
    struct own_write *writes;
    bool gone;                    /* its object is, or the key: no echo is waited for */
    bool under_way;               /* no write is forgotten: its echo may be held meanwhile */
    ml_expectations_ready *ready; /* of who waits; NULL: nobody does */
    void *context;
    const struct ml_informer *awaited; /* whose cache; NULL: all, it is the queue that waits */
    struct ml_task check;              /* entry_check, off the stack of others */
    enum staleness stale;
    bool verified;     /* the server has shown it since */
    uint64_t stale_rv; /* after a conflict: the cache's version that the write did not meet */
};

struct ml_expectations {
    struct ml_loop *loop;
    struct ml_client *client;
    struct ml_keys *keys;
    size_t len; /* keys with a part */
    char *controller;
    struct ml_metric *skips;
    struct ml_metric *waiting;
};

/* ---- one write ---- */

static bool write_is_shown(const struct own_write *write)
{
    return ml_seen_wait_over(&write->seen);
}

static bool written_object_is_cached(const struct own_write *write)
{
    ML_AUTO_FREE char *key = *write->ns ? ml_asprintf("%s/%s", write->ns, write->name)
                                        : ml_strdup(write->name);
    return ml_store_get(ml_informer_store(write->informer), ml_str_of(key)) != NULL;
}

static bool answer_shows_write(const struct own_write *write, struct ml_str body,
                               const struct ml_err *err)
{
    if (err)
        return err->kind == ML_ENOT_FOUND && !written_object_is_cached(write);
    ML_AUTO_FREE char *version = ml_json_find_string(body, "metadata", "resourceVersion", NULL);
    uint64_t rv = version ? ml_rv_parse(ml_str_of(version)) : 0;
    return rv != ML_RV_OPAQUE && rv >= write->rv;
}

static void write_arm_read(struct own_write *write)
{
    ml_timer_start(&write->read_timer, write->read_delay_ns);
    write->read_delay_ns = ML_MIN(2 * write->read_delay_ns, READ_DELAY_MAX_NS);
}

static void write_on_read(void *context, struct ml_str body, const struct ml_err *err)
{
    struct own_write *write = context;
    struct ml_key_writes *entry = write->entry;
    write->reading = NULL;
    if (write_is_shown(write)) /* the watch was faster, or the informer ended */
        return;
    if (!answer_shows_write(write, body, err)) {
        write_arm_read(write);
        return;
    }
    ml_seen_wait_cancel(&write->seen);
    ml_task_defer(&entry->check, entry->owner->loop);
    /* Comes last: a listener that is notified of the change may drop the write. */
    if (!err)
        ml_informer_learn(write->informer, body);
}

static void write_on_read_due(void *context)
{
    struct own_write *write = context;
    if (write_is_shown(write))
        return;
    const struct ml_client_request request = {
        .verb = ML_VERB_GET,
        .kind = ml_informer_kind(write->informer),
        .ns = ml_str_of(write->ns),
        .name = ml_str_of(write->name),
        .yields = true,
    };
    write->reading = ml_client_send(write->entry->owner->client, &request, write_on_read, write);
}

static void entry_check(void *entry);

static void write_begin_wait(struct own_write *write)
{
    write->read_delay_ns = READ_DELAY_FIRST_NS;
    ml_timer_init(&write->read_timer, write->entry->owner->loop, write_on_read_due, write);
    ml_seen_wait_start(&write->seen, write->informer, ml_str_of(write->ns), write->rv, entry_check,
                       write->entry);
    write_arm_read(write);
}

static void write_end_wait(struct own_write *write)
{
    ml_seen_wait_cancel(&write->seen);
    ml_timer_stop(&write->read_timer);
    if (write->reading)
        ml_client_cancel(ml_take(&write->reading));
}

/* Frees the write that `at` points at. */
static void write_drop(struct own_write **at)
{
    struct own_write *write = *at;
    *at = write->next;
    write_end_wait(write);
    free(write->ns);
    free(write->name);
    free(write);
}

/* ---- one key ---- */

static struct ml_key_writes *entry_find(const struct ml_expectations *self, struct ml_str key)
{
    const struct ml_key *record = ml_keys_find(self->keys, key);
    return record ? record->writes : NULL;
}

static struct ml_key_writes *entry_get(struct ml_expectations *self, struct ml_str key)
{
    struct ml_key_writes *entry = entry_find(self, key);
    if (entry)
        return entry;
    entry = ml_new(struct ml_key_writes);
    entry->owner = self;
    entry->key = ml_keys_ref(self->keys, key);
    entry->key->writes = entry;
    self->len++;
    ml_task_init(&entry->check, entry_check, entry);
    return entry;
}

static void entry_drop_writes(struct ml_key_writes *entry)
{
    while (entry->writes)
        write_drop(&entry->writes);
}

static void entry_forget_waiter(struct ml_key_writes *entry)
{
    if (entry->ready && !entry->awaited)
        ml_metric_add(entry->owner->waiting, -1);
    entry->ready = NULL;
}

static void entry_free(struct ml_key_writes *entry)
{
    entry_forget_waiter(entry);
    entry_drop_writes(entry);
    ml_task_cancel(&entry->check);
    entry->owner->len--;
    entry->key->writes = NULL;
    ml_key_unref(entry->key);
    free(entry);
}

/* Drops the writes that are complete, and frees the entry when it is empty. */
static void entry_settle(struct ml_key_writes *entry)
{
    if (entry->under_way)
        return;
    for (struct own_write **at = &entry->writes; *at;) {
        if (((*at)->returned || entry->gone) && write_is_shown(*at))
            write_drop(at);
        else
            at = &(*at)->next;
    }
    if (!entry->writes && !entry->ready && entry->stale == NOT_STALE)
        entry_free(entry);
}

/* Do the caches show what was written to the kind of `informer`? NULL: to any kind. */
static bool entry_is_shown(const struct ml_key_writes *entry, const struct ml_informer *informer)
{
    for (const struct own_write *write = entry->writes; write; write = write->next)
        if ((!informer || write->informer == informer) && !write_is_shown(write))
            return false;
    return true;
}

/* Something was shown: ends the waits that are over, and calls who waits for that. */
static void entry_check(void *context)
{
    struct ml_key_writes *entry = context;
    for (struct own_write *write = entry->writes; write; write = write->next)
        if (write_is_shown(write))
            write_end_wait(write);
    ml_expectations_ready *ready = entry->ready;
    void *ready_context = entry->context;
    if (!ready || !entry_is_shown(entry, entry->awaited)) {
        entry_settle(entry);
        return;
    }
    ML_AUTO_FREE char *key = ml_str_dup(ml_key_str(entry->key));
    entry_forget_waiter(entry);
    entry_settle(entry);
    ready(ready_context, ml_str_of(key));
}

static void entry_set_waiter(struct ml_key_writes *entry, const struct ml_informer *informer,
                             ml_expectations_ready *ready, void *context)
{
    entry->awaited = informer;
    entry->ready = ready;
    entry->context = context;
}

/* ---- a run, from its beginning to its end ---- */

bool ml_expectations_satisfied(struct ml_expectations *self, struct ml_str key,
                               ml_expectations_ready *ready, void *context)
{
    struct ml_key_writes *entry = entry_get(self, key);
    if (entry_is_shown(entry, NULL)) {
        entry_forget_waiter(entry);
        entry_drop_writes(entry); /* what did not come back is part of something newer that did */
        entry->under_way = true;
        entry->gone = false;
        return true;
    }
    if (!entry->ready) {
        ml_metric_add(self->skips, 1);
        ml_metric_add(self->waiting, 1);
    }
    entry_set_waiter(entry, NULL, ready, context);
    return false;
}

/* The write of ns/name that the cache does not show yet, or NULL. */
static struct own_write *entry_find_unshown(const struct ml_key_writes *entry,
                                            const struct ml_informer *informer, struct ml_str ns,
                                            struct ml_str name)
{
    for (struct own_write *write = entry->writes; write; write = write->next)
        if (write->informer == informer && !write_is_shown(write) && ml_str_is(ns, write->ns) &&
            ml_str_is(name, write->name))
            return write;
    return NULL;
}

void ml_expectations_wrote(struct ml_expectations *self, struct ml_str key,
                           struct ml_informer *informer, struct ml_str ns, struct ml_str name,
                           uint64_t rv)
{
    if (!informer || rv == ML_RV_OPAQUE)
        return;
    struct ml_key_writes *entry = entry_get(self, key);
    struct own_write *older = entry_find_unshown(entry, informer, ns, name);
    struct own_write *write = ml_new(struct own_write);
    write->next = entry->writes;
    write->entry = entry;
    write->informer = informer;
    write->ns = ml_str_dup(ns);
    write->name = ml_str_dup(name);
    write->rv = rv;
    write->returned = ml_informer_seen(informer, ns, rv);
    entry->writes = write;
    /* A list that was begun before this write shows only the earlier ones: a new wait begins. */
    if (!write->returned && (!older || older->rv < rv)) {
        if (older)
            write_end_wait(older);
        write_begin_wait(write);
    }
    entry_settle(entry);
}

bool ml_expectations_shown(const struct ml_expectations *self, struct ml_str key,
                           const struct ml_informer *informer)
{
    const struct ml_key_writes *entry = entry_find(self, key);
    return !entry || entry_is_shown(entry, informer);
}

bool ml_expectations_all_shown(const struct ml_expectations *self)
{
    ml_keys_each(self->keys,
                 key) if (key->writes && !entry_is_shown(key->writes, NULL)) return false;
    return true;
}

void ml_expectations_await(struct ml_expectations *self, struct ml_str key,
                           const struct ml_informer *informer, ml_expectations_ready *ready,
                           void *context)
{
    struct ml_key_writes *entry = entry_find(self, key);
    ml_assert(informer && entry && !entry->ready && !entry_is_shown(entry, informer));
    entry_set_waiter(entry, informer, ready, context);
}

void ml_expectations_cancel(struct ml_expectations *self, struct ml_str key)
{
    struct ml_key_writes *entry = entry_find(self, key);
    if (!entry)
        return;
    entry_forget_waiter(entry);
    entry_settle(entry);
}

void ml_expectations_ended(struct ml_expectations *self, struct ml_str key, bool good)
{
    struct ml_key_writes *entry = entry_find(self, key);
    ml_assert(entry && entry->under_way);
    entry->under_way = false;
    if (good && (entry->verified || entry->stale == STALE_AFTER_CONFLICT))
        entry->stale = NOT_STALE;
    entry_settle(entry);
}

/* ---- echoes ---- */

bool ml_expectations_is_echo(struct ml_expectations *self, struct ml_str key,
                             const struct ml_informer *informer, uint64_t rv)
{
    struct ml_key_writes *entry = entry_find(self, key);
    bool is_echo = false;
    for (struct own_write *write = entry ? entry->writes : NULL; write; write = write->next)
        if (write->informer == informer && write->rv == rv)
            is_echo = write->returned = true;
    return is_echo;
}

bool ml_expectations_echo_pending(const struct ml_expectations *self, struct ml_str key)
{
    const struct ml_key_writes *entry = entry_find(self, key);
    for (const struct own_write *write = entry ? entry->writes : NULL; write; write = write->next)
        if (!write->returned)
            return true;
    return false;
}

/* ---- cached objects that may be stale ---- */

void ml_expectations_child_deleted(struct ml_expectations *self, struct ml_str key)
{
    struct ml_key_writes *entry = entry_get(self, key);
    entry->stale = STALE_AFTER_CHILD;
    entry->verified = false;
}

void ml_expectations_conflict(struct ml_expectations *self, const struct ml_object *object)
{
    struct ml_key_writes *entry = entry_get(self, ml_object_key(object));
    if (entry->stale != STALE_AFTER_CHILD)
        entry->stale = STALE_AFTER_CONFLICT;
    entry->stale_rv = ml_object_rv_number(object);
    entry->verified = false;
}

struct ml_live_read {
    struct ml_expectations *expectations;
    struct ml_client_call *call;
    char *key;
    char *uid;
    bool deleting; /* the cache knows it */
    ml_live_read_done *done;
    void *context;
};

static void live_read_free(struct ml_live_read *live_read)
{
    free(live_read->key);
    free(live_read->uid);
    free(live_read);
}

/* ML_ECONFLICT: what was found is not the object that the cache has, or does not stay. */
static int check_live_object(const struct ml_live_read *live_read, struct ml_str found,
                             struct ml_err *err)
{
    ML_AUTO_FREE char *uid = ml_json_find_string(found, "metadata", "uid", NULL);
    struct ml_str leaving;
    if (!uid || strcmp(uid, live_read->uid) != 0)
        return ml_err_set(err, ML_ECONFLICT, "%s was deleted and recreated (uid changed)",
                          live_read->key);
    if (!live_read->deleting &&
        ml_json_find(found, &leaving, "metadata", "deletionTimestamp", NULL))
        return ml_err_set(err, ML_ECONFLICT, "%s is being deleted", live_read->key);
    return 0;
}

static void live_read_on_answer(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_live_read *live_read = context;
    ml_live_read_done *done = live_read->done;
    void *done_context = live_read->context;
    struct ml_err verdict = err ? *err : ML_ERR_INIT;
    struct ml_key_writes *entry = entry_find(live_read->expectations, ml_str_of(live_read->key));
    if (!err)
        check_live_object(live_read, body, &verdict);
    else if (err->kind == ML_ENOT_FOUND)
        ml_err_set(&verdict, ML_ECONFLICT, "%s was deleted", live_read->key);
    if (!verdict.kind && entry)
        entry->verified = true;
    live_read_free(live_read);
    done(done_context, verdict.kind ? &verdict : NULL);
}

static bool object_is_stale(const struct ml_key_writes *entry, const struct ml_object *object)
{
    return entry->stale == STALE_AFTER_CHILD ||
           (entry->stale == STALE_AFTER_CONFLICT && entry->stale_rv == ml_object_rv_number(object));
}

struct ml_live_read *ml_expectations_verify(struct ml_expectations *self,
                                            const struct ml_kind *kind,
                                            const struct ml_object *object, ml_live_read_done *done,
                                            void *context)
{
    const struct ml_key_writes *entry = entry_find(self, ml_object_key(object));
    if (!entry || !object_is_stale(entry, object))
        return NULL;
    struct ml_live_read *live_read = ml_new(struct ml_live_read);
    const struct ml_client_request request = {
        .verb = ML_VERB_GET,
        .kind = kind,
        .ns = ml_object_namespace(object),
        .name = ml_object_name(object),
    };
    live_read->expectations = self;
    live_read->key = ml_str_dup(ml_object_key(object));
    live_read->uid = ml_str_dup(ml_object_uid(object));
    live_read->deleting = ml_object_deleting(object);
    live_read->done = done;
    live_read->context = context;
    live_read->call = ml_client_send(self->client, &request, live_read_on_answer, live_read);
    return live_read;
}

void ml_live_read_cancel(struct ml_live_read *live_read)
{
    if (!live_read)
        return;
    ml_client_cancel(live_read->call);
    live_read_free(live_read);
}

/* ---- ends ---- */

void ml_expectations_clear(struct ml_expectations *self, struct ml_str key, bool may_come_back)
{
    struct ml_key_writes *entry = entry_find(self, key);
    if (!entry)
        return;
    entry->stale = NOT_STALE;
    entry->gone = true;
    if (!entry->under_way)
        entry_forget_waiter(entry);
    if (!entry->under_way && !may_come_back)
        entry_drop_writes(entry);
    entry_settle(entry);
}

void ml_expectations_drop_informer(struct ml_expectations *self, struct ml_informer *informer)
{
    ml_keys_each(self->keys, key)
    {
        struct ml_key_writes *entry = key->writes;
        if (!entry)
            continue;
        for (struct own_write **at = &entry->writes; *at;) {
            if ((*at)->informer == informer)
                write_drop(at);
            else
                at = &(*at)->next;
        }
        ml_task_defer(&entry->check, self->loop);
    }
}

size_t ml_expectations_len(const struct ml_expectations *self)
{
    return self->len;
}

struct ml_expectations *ml_expectations_new(struct ml_keys *keys, struct ml_loop *loop,
                                            struct ml_client *client, struct ml_metrics *metrics,
                                            const char *controller)
{
    const char *const *labels = ml_metric_labels("controller");
    struct ml_expectations *self = ml_new(struct ml_expectations);
    self->keys = keys;
    self->loop = loop;
    self->client = client;
    self->controller = ml_strdup(controller);
    self->skips = ml_metric_with(
        ml_metrics_counter(metrics, "stale_sync_skips_total",
                           "Reconciles put off because the cache lagged behind own writes.",
                           labels),
        ml_metric_labels(controller));
    self->waiting = ml_metric_with(
        ml_metrics_gauge(metrics, "moonloop_stale_keys",
                         "Keys that wait for the cache to show their own writes.", labels),
        ml_metric_labels(controller));
    return self;
}

void ml_expectations_free(struct ml_expectations *self)
{
    if (!self)
        return;
    ml_keys_each(self->keys, key) if (key->writes) entry_free(key->writes);
    free(self->controller);
    free(self);
}

const char *ml_expectations_controller(const struct ml_expectations *self)
{
    return self->controller;
}
