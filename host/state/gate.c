#include "state/gate.h"

#include "base/map.h"

/* The newest write to one kind in one namespace. */
struct written {
    struct written *next;
    struct ml_informer *informer;
    char *ns;
    uint64_t rv;
};

/* What a key wrote and the caches do not show yet; gone when they do. */
struct entry {
    struct ml_gate *gate;
    struct written *written;
    struct ml_seen_wait wait; /* for the first of `written`, while somebody asked */
    bool waiting;
    void (*ready)(void *context, struct ml_str key);
    void *context;
    size_t key_len;
    char key[];
};

struct ml_gate {
    struct ml_map entries; /* key -> entry */
    struct ml_metric *skips;
    struct ml_metric *waiting;
};

static struct ml_str key_of(const struct entry *entry)
{
    return (struct ml_str){entry->key, entry->key_len};
}

static void written_free(struct written *written)
{
    free(written->ns);
    free(written);
}

static void entry_free(struct entry *entry)
{
    for (struct written *written = entry->written, *next; written; written = next) {
        next = written->next;
        written_free(written);
    }
    if (entry->waiting) {
        ml_seen_wait_cancel(&entry->wait);
        ml_metric_add(entry->gate->waiting, -1);
    }
    ml_map_remove(&entry->gate->entries, key_of(entry));
    free(entry);
}

/* Drops what the caches show by now. */
static void entry_settle(struct entry *entry)
{
    for (struct written **at = &entry->written; *at;) {
        struct written *written = *at;
        if (!ml_informer_seen(written->informer, ml_str_of(written->ns), written->rv)) {
            at = &written->next;
            continue;
        }
        *at = written->next;
        written_free(written);
    }
}

static void wait_on(struct entry *entry);

/* The wait says that the first write shows, by its number or by a list that was begun after
 * it; the others are looked at again. */
static void on_seen(void *context)
{
    struct entry *entry = context;
    struct written *shown = entry->written;
    entry->waiting = false;
    ml_metric_add(entry->gate->waiting, -1);
    entry->written = shown->next;
    written_free(shown);
    entry_settle(entry);
    if (entry->written) {
        wait_on(entry);
        return;
    }
    void (*ready)(void *context, struct ml_str key) = entry->ready;
    void *ready_context = entry->context;
    ML_AUTO_FREE char *key = ml_str_dup(key_of(entry));
    entry_free(entry);
    ready(ready_context, ml_str_of(key));
}

static void wait_on(struct entry *entry)
{
    const struct written *first = entry->written;
    entry->waiting = true;
    ml_metric_add(entry->gate->waiting, 1);
    ml_seen_wait_start(&entry->wait, first->informer, ml_str_of(first->ns), first->rv, on_seen,
                       entry);
}

struct ml_gate *ml_gate_new(struct ml_loop *loop, struct ml_metrics *metrics,
                            const char *controller)
{
    struct ml_gate *gate = ml_new(struct ml_gate);
    (void)loop;
    gate->skips = ml_metric_with(
        ml_metrics_counter(metrics, "stale_sync_skips_total",
                           "Reconciles put off because the cache lagged behind own writes.",
                           ml_metric_labels("controller")),
        ml_metric_labels(controller));
    gate->waiting = ml_metric_with(
        ml_metrics_gauge(metrics, "moonloop_stale_keys",
                         "Keys that wait for the cache to show their own writes.",
                         ml_metric_labels("controller")),
        ml_metric_labels(controller));
    return gate;
}

void ml_gate_free(struct ml_gate *gate)
{
    if (!gate)
        return;
    ml_map_each (&gate->entries, cursor, entry)
        entry_free(entry);
    ml_map_fini(&gate->entries);
    free(gate);
}

static struct entry *entry_get(struct ml_gate *gate, struct ml_str key)
{
    struct entry *entry = ml_map_get(&gate->entries, key);
    if (entry)
        return entry;
    entry = ml_zalloc(sizeof *entry + key.len);
    entry->gate = gate;
    entry->key_len = key.len;
    memcpy(entry->key, key.ptr, key.len);
    ml_map_put(&gate->entries, key_of(entry), entry);
    return entry;
}

void ml_gate_wrote(struct ml_gate *gate, struct ml_str key, struct ml_informer *informer,
                   struct ml_str ns, uint64_t rv)
{
    if (!informer || ml_informer_seen(informer, ns, rv))
        return;
    struct entry *entry = entry_get(gate, key);
    struct written **end = &entry->written;
    for (; *end; end = &(*end)->next) {
        if ((*end)->informer != informer || !ml_str_is(ns, (*end)->ns))
            continue;
        (*end)->rv = ML_MAX((*end)->rv, rv);
        return;
    }
    *end = ml_new(struct written);
    **end = (struct written){.informer = informer, .ns = ml_str_dup(ns), .rv = rv};
}

bool ml_gate_open(struct ml_gate *gate, struct ml_str key,
                  void (*ready)(void *context, struct ml_str key), void *context)
{
    struct entry *entry = ml_map_get(&gate->entries, key);
    if (!entry)
        return true;
    if (!entry->waiting) {
        entry_settle(entry);
        if (!entry->written) {
            entry_free(entry);
            return true;
        }
        ml_metric_add(gate->skips, 1);
        wait_on(entry);
    }
    entry->ready = ready;
    entry->context = context;
    return false;
}

void ml_gate_clear(struct ml_gate *gate, struct ml_str key)
{
    struct entry *entry = ml_map_get(&gate->entries, key);
    if (entry)
        entry_free(entry);
}

static bool waits_on(const struct entry *entry, const struct ml_informer *informer)
{
    for (const struct written *written = entry->written; written; written = written->next)
        if (written->informer == informer)
            return true;
    return false;
}

/* Its keys are set free as a whole: what else they wrote shows in time, and an informer is
 * given back only when a version of a script that no longer watches the kind takes over. */
void ml_gate_drop_informer(struct ml_gate *gate, struct ml_informer *informer)
{
    size_t cursor = 0;
    for (struct entry *entry; (entry = ml_map_next(&gate->entries, &cursor, NULL));) {
        if (!waits_on(entry, informer))
            continue;
        bool waiting = entry->waiting;
        void (*ready)(void *context, struct ml_str key) = entry->ready;
        void *context = entry->context;
        ML_AUTO_FREE char *key = ml_str_dup(key_of(entry));
        entry_free(entry);
        if (waiting)
            ready(context, ml_str_of(key));
    }
}
