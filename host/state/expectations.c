/* Holds back the reconcile of a key until the caches show its own writes. writer.c reports
 * writes, operator/controller_work.c asks before each reconcile. */
#include "state/expectations.h"

#include "base/map.h"

/* The newest write of one object, until the cache shows it. */
struct expected_write {
    struct expected_write *next;
    struct expectation *entry;
    struct ml_informer *informer; /* borrowed; its end ends the wait */
    char *ns, *name;
    uint64_t rv;
    struct ml_write_wait wait;
};

/* The expectations of one key: its writes that the caches do not show yet. Freed when they do. */
struct expectation {
    struct ml_expectations *expectations;
    struct expected_write *written;
    void (*ready)(void *context, struct ml_str key); /* NULL: nobody asked */
    void *context;
    struct ml_task freed; /* calls `ready`, off the stack of ml_expectations_drop_informer */
    size_t key_len;
    char key[];
};

struct ml_expectations {
    struct ml_loop *loop;
    struct ml_map entries;           /* key -> entry */
    ml_expectations_write *on_write; /* NULL: nobody */
    void *on_write_context;
    struct ml_metric *skips;
    struct ml_metric *waiting;
};

static struct ml_str expectation_key(const struct expectation *entry)
{
    return (struct ml_str){entry->key, entry->key_len};
}

/* Frees the write that `at` points at. */
static void expected_write_drop(struct expected_write **at)
{
    struct expected_write *written = *at;
    *at = written->next;
    ml_write_wait_cancel(&written->wait);
    free(written->ns);
    free(written->name);
    free(written);
}

static void expectation_free(struct expectation *entry)
{
    while (entry->written)
        expected_write_drop(&entry->written);
    if (entry->ready)
        ml_metric_add(entry->expectations->waiting, -1);
    ml_task_cancel(&entry->freed);
    ml_map_remove(&entry->expectations->entries, expectation_key(entry));
    free(entry);
}

/* Drops the writes that the caches show by now, and those that wait on `gone` (may be NULL). */
static void expectation_settle(struct expectation *entry, const struct ml_informer *gone)
{
    for (struct expected_write **at = &entry->written; *at;) {
        if (ml_write_wait_over(&(*at)->wait) || (*at)->informer == gone)
            expected_write_drop(at);
        else
            at = &(*at)->next;
    }
}

/* The caches show every write of the key: calls `ready` if somebody asked. */
static void expectation_on_satisfied(void *context)
{
    struct expectation *entry = context;
    if (entry->written) /* it wrote again meanwhile */
        return;
    void (*ready)(void *context, struct ml_str key) = entry->ready;
    void *ready_context = entry->context;
    ML_AUTO_FREE char *key = ml_str_dup(expectation_key(entry));
    expectation_free(entry);
    if (ready)
        ready(ready_context, ml_str_of(key));
}

static void expected_write_on_seen(void *context)
{
    struct expectation *entry = ((struct expected_write *)context)->entry;
    expectation_settle(entry, NULL);
    expectation_on_satisfied(entry);
}

struct ml_expectations *ml_expectations_new(struct ml_loop *loop, struct ml_metrics *metrics,
                                            const char *controller)
{
    struct ml_expectations *expectations = ml_new(struct ml_expectations);
    expectations->loop = loop;
    expectations->skips = ml_metric_with(
        ml_metrics_counter(metrics, "stale_sync_skips_total",
                           "Reconciles put off because the cache lagged behind own writes.",
                           ml_metric_labels("controller")),
        ml_metric_labels(controller));
    expectations->waiting = ml_metric_with(
        ml_metrics_gauge(metrics, "moonloop_stale_keys",
                         "Keys that wait for the cache to show their own writes.",
                         ml_metric_labels("controller")),
        ml_metric_labels(controller));
    return expectations;
}

void ml_expectations_free(struct ml_expectations *expectations)
{
    if (!expectations)
        return;
    ml_map_each (&expectations->entries, cursor, entry)
        expectation_free(entry);
    ml_map_fini(&expectations->entries);
    free(expectations);
}

static struct expectation *expectation_get(struct ml_expectations *expectations, struct ml_str key)
{
    struct expectation *entry = ml_map_get(&expectations->entries, key);
    if (entry)
        return entry;
    entry = ml_zalloc(sizeof *entry + key.len);
    entry->expectations = expectations;
    entry->key_len = key.len;
    memcpy(entry->key, key.ptr, key.len);
    ml_task_init(&entry->freed, expectation_on_satisfied, entry);
    ml_map_put(&expectations->entries, expectation_key(entry), entry);
    return entry;
}

static struct expected_write *expected_write_get(struct expectation *entry,
                                                 struct ml_informer *informer, struct ml_str ns,
                                                 struct ml_str name)
{
    for (struct expected_write *written = entry->written; written; written = written->next)
        if (written->informer == informer && ml_str_is(ns, written->ns) &&
            ml_str_is(name, written->name))
            return written;
    struct expected_write *written = ml_new(struct expected_write);
    written->next = entry->written;
    written->entry = entry;
    written->informer = informer;
    written->ns = ml_str_dup(ns);
    written->name = ml_str_dup(name);
    entry->written = written;
    return written;
}

void ml_expectations_wrote(struct ml_expectations *expectations, struct ml_str key,
                           struct ml_informer *informer, struct ml_str ns, struct ml_str name,
                           uint64_t rv)
{
    if (!informer)
        return;
    bool shown = ml_informer_seen(informer, ns, rv);
    if (expectations->on_write)
        expectations->on_write(expectations->on_write_context, key, informer, rv, shown);
    if (shown)
        return;
    struct expectation *entry = expectation_get(expectations, key);
    struct expected_write *written = expected_write_get(entry, informer, ns, name);
    if (rv <= written->rv && !ml_write_wait_over(&written->wait)) /* answered out of order */
        return;
    /* A list that was started before this write shows only the earlier ones: start a new wait. */
    written->rv = rv;
    ml_write_wait_cancel(&written->wait);
    ml_write_wait_start(&written->wait, informer, ns, name, rv, expected_write_on_seen, written);
}

void ml_expectations_on_write(struct ml_expectations *expectations, ml_expectations_write *wrote,
                              void *context)
{
    expectations->on_write = wrote;
    expectations->on_write_context = context;
}

bool ml_expectations_satisfied(struct ml_expectations *expectations, struct ml_str key,
                               void (*ready)(void *context, struct ml_str key), void *context)
{
    struct expectation *entry = ml_map_get(&expectations->entries, key);
    if (!entry)
        return true;
    expectation_settle(entry, NULL);
    if (!entry->written) {
        expectation_free(entry);
        return true;
    }
    if (!entry->ready) {
        ml_metric_add(expectations->skips, 1);
        ml_metric_add(expectations->waiting, 1);
    }
    entry->ready = ready;
    entry->context = context;
    return false;
}

void ml_expectations_clear(struct ml_expectations *expectations, struct ml_str key)
{
    struct expectation *entry = ml_map_get(&expectations->entries, key);
    if (entry)
        expectation_free(entry);
}

void ml_expectations_drop_informer(struct ml_expectations *expectations,
                                   struct ml_informer *informer)
{
    ml_map_each (&expectations->entries, cursor, value) {
        struct expectation *entry = value;
        expectation_settle(entry, informer);
        if (!entry->written)
            ml_task_defer(&entry->freed, expectations->loop);
    }
}
