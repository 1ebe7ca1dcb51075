/* Which changes wake a key, and when: echoes of its own writes, and keys that wake themselves.
 * controller.c brings changes; controller_work.c takes the keys that wake, and says which run. */
#include "operator/enqueue_filter.h"

#include "base/map.h"
#include "kube/object_diff.h"

#define HELD_MAX 16 /* changes of one run; with more of them the key wakes, whoever made them */

#define FREE_RUNS       20u
#define SOON_NS         (60 * ML_NS_PER_S) /* 20 runs in more time than this are no loop */
#define PAUSE_FIRST_NS  ML_NS_PER_S
#define PAUSE_MAX_NS    (1000 * ML_NS_PER_S)
#define PAUSE_DOUBLINGS 10u /* the pause has reached its maximum */

#define HOT_NS        (10 * ML_NS_PER_MS) /* sooner than this is at once */
#define HOT_FREE_RUNS 100u                /* steps that a script may take one after the other */
#define HOT_DOUBLINGS 7u
#define HOT_PAUSE_MAX ML_NS_PER_S

/* All that is known about a key; freed as soon as it says nothing. */
struct entry {
    struct ml_change *held; /* up to HELD_MAX, with a reference to each object */
    uint8_t held_count;
    bool overflow; /* there were more */
    bool under_way;
    bool asks_back;  /* this run, or the last one, wants to be called again at once */
    bool counted;    /* it was found to wake itself */
    uint32_t streak; /* of such runs */
    uint32_t hot;    /* runs in a row that asked to be called again at once */
    bool is_hot;     /* this one did */
    int64_t began_ns, last_ns;
    int64_t pause_ns; /* what it comes to */
    char *fields;     /* what each run of the streak changes */
    size_t key_len;
    char key[];
};

struct ml_enqueue_filter {
    struct ml_loop *loop;
    struct ml_enqueue_filter_handler handler;
    void *context;
    struct ml_expectations *expectations;
    struct ml_map entries; /* key -> entry */
};

static struct ml_str key_of(const struct entry *entry)
{
    return (struct ml_str){entry->key, entry->key_len};
}

static struct entry *entry_get(struct ml_enqueue_filter *self, struct ml_str key)
{
    struct entry *entry = ml_map_get(&self->entries, key);
    if (entry)
        return entry;
    entry = ml_zalloc(sizeof *entry + key.len);
    memcpy(entry->key, key.ptr, key.len);
    entry->key_len = key.len;
    ml_map_put(&self->entries, key_of(entry), entry);
    return entry;
}

struct ml_change ml_change_ref(const struct ml_change *change)
{
    if (change->old)
        ml_object_ref(change->old);
    if (change->new)
        ml_object_ref(change->new);
    return *change;
}

void ml_change_unref(const struct ml_change *copy)
{
    ml_object_unref(copy->old);
    ml_object_unref(copy->new);
}

static void drop_held(struct entry *entry)
{
    for (size_t i = 0; i < entry->held_count; i++)
        ml_change_unref(&entry->held[i]);
    free(ml_take(&entry->held));
    entry->held_count = 0;
    entry->overflow = false;
}

static void end_streak(struct entry *entry)
{
    free(ml_take(&entry->fields));
    entry->streak = 0;
    entry->pause_ns = 0;
}

static void entry_free(struct ml_enqueue_filter *self, struct entry *entry)
{
    ml_map_remove(&self->entries, key_of(entry));
    drop_held(entry);
    end_streak(entry);
    free(entry);
}

static void entry_settle(struct ml_enqueue_filter *self, struct entry *entry)
{
    if (!entry->under_way && !entry->asks_back && entry->streak == 0 && entry->hot == 0)
        entry_free(self, entry);
}

static bool is_echo(struct ml_enqueue_filter *self, struct ml_str key,
                    const struct ml_change *change)
{
    return change->new &&ml_expectations_is_echo(self->expectations, key, change->informer,
                                                 ml_object_rv_number(change->new));
}

static bool is_status_only(const struct ml_change *change)
{
    if (!change->reconciled || !change->old || !change->new)
        return false;
    return (ml_object_diff(change->old, change->new, NULL) &
            ~(unsigned)(ML_PART_STATUS | ML_PART_GENERATION)) == 0;
}

/* The runs of a streak come one soon after the other. */
static bool streak_goes_on(const struct entry *entry, struct ml_str fields, int64_t now)
{
    if (!entry->fields || !ml_str_is(fields, entry->fields) ||
        now - entry->last_ns > entry->pause_ns + SOON_NS)
        return false;
    return entry->streak != FREE_RUNS || now - entry->began_ns <= SOON_NS;
}

/* One more run that changed these fields, or the first one. */
static void count_self_wake(struct ml_enqueue_filter *self, struct entry *entry,
                            struct ml_str fields)
{
    int64_t now = ml_clock_monotonic(ml_loop_clock(self->loop));
    if (!streak_goes_on(entry, fields, now)) {
        end_streak(entry);
        entry->fields = ml_str_dup(fields);
        entry->began_ns = now;
    }
    entry->counted = true;
    entry->last_ns = now;
    if (++entry->streak <= FREE_RUNS)
        return;
    uint32_t doublings = ML_MIN(entry->streak - FREE_RUNS - 1, PAUSE_DOUBLINGS);
    entry->pause_ns = ML_MIN(PAUSE_FIRST_NS << doublings, PAUSE_MAX_NS);
    self->handler.slowed(self->context, key_of(entry), entry->fields, entry->pause_ns);
}

/* `entry` NULL: nothing is known about the key. Making and deleting objects one after the other is
 * how many scripts go about their work: only a change of something that stays counts, and only the
 * first of each run. */
static int64_t pause_of_echo(struct ml_enqueue_filter *self, struct ml_str key, struct entry *entry,
                             const struct ml_change *change)
{
    if (change->old && change->new && !(entry && entry->counted)) {
        ML_AUTO(ml_buf_fini) struct ml_buf fields = ML_BUF_INIT;
        ml_buf_printf(&fields, "%s " ML_STR_FMT ": ", ml_informer_kind(change->informer)->kind,
                      ML_STR_ARG(ml_object_key(change->new)));
        ml_object_diff(change->old, change->new, &fields);
        entry = entry_get(self, key);
        count_self_wake(self, entry, ml_buf_str(&fields));
    }
    return entry ? entry->pause_ns : 0;
}

static void hold_change(struct entry *entry, const struct ml_change *change)
{
    if (entry->held_count == HELD_MAX) {
        entry->overflow = true;
        return;
    }
    size_t size = (entry->held_count + 1u) * sizeof *entry->held;
    entry->held = ml_realloc(entry->held, size);
    entry->held[entry->held_count++] = ml_change_ref(change);
}

#define DELAY_NEVER   (-1) /* it is the status that the run returned */
#define DELAY_SKIPPED (-2) /* it does not matter */

/* After how long a change wakes the key. `entry` as in pause_of_echo. */
static int64_t delay_of_change(struct ml_enqueue_filter *self, struct ml_str key,
                               struct entry *entry, const struct ml_change *change)
{
    if (!is_echo(self, key, change))
        return self->handler.matters(self->context, key, change, false) ? 0 : DELAY_SKIPPED;
    if (!is_status_only(change))
        return pause_of_echo(self, key, entry, change);
    self->handler.matters(self->context, key, change, true);
    if (entry && entry->asks_back)
        (void)pause_of_echo(self, key, entry, change);
    return DELAY_NEVER;
}

/* Wakes the key for the first of these changes that does. When those that do not do not matter, it
 * wakes all the same if others may have passed by; the last of them is then what is named. */
static void wake_by_changes(struct ml_enqueue_filter *self, struct ml_str key, struct entry *entry,
                            const struct ml_change *changes, size_t count, bool overflow)
{
    const struct ml_change *first = NULL, *skipped = NULL;
    int64_t first_ns = overflow ? 0 : INT64_MAX;
    for (size_t i = 0; i < count; i++) {
        int64_t delay_ns = delay_of_change(self, key, entry, &changes[i]);
        if (delay_ns == DELAY_SKIPPED)
            skipped = &changes[i];
        if (delay_ns < 0 || delay_ns >= first_ns)
            continue;
        first_ns = delay_ns;
        first = &changes[i];
    }
    if (first_ns < INT64_MAX)
        self->handler.wake(self->context, key, first, first_ns);
    else if (skipped && self->handler.uncertain(self->context, key))
        self->handler.wake(self->context, key, skipped, 0);
}

struct ml_enqueue_filter *ml_enqueue_filter_new(struct ml_loop *loop,
                                                struct ml_expectations *expectations,
                                                const struct ml_enqueue_filter_handler *handler,
                                                void *context)
{
    struct ml_enqueue_filter *self = ml_new(struct ml_enqueue_filter);
    self->loop = loop;
    self->expectations = expectations;
    self->handler = *handler;
    self->context = context;
    return self;
}

void ml_enqueue_filter_free(struct ml_enqueue_filter *self)
{
    if (!self)
        return;
    ml_map_each (&self->entries, cursor, entry)
        entry_free(self, entry);
    ml_map_fini(&self->entries);
    free(self);
}

void ml_enqueue_filter_changed(struct ml_enqueue_filter *self, struct ml_str key,
                               const struct ml_change *change)
{
    struct entry *entry = ml_map_get(&self->entries, key);
    if (change->child_deleted)
        ml_expectations_child_deleted(self->expectations, key);
    if (entry && entry->under_way)
        hold_change(entry, change);
    else
        wake_by_changes(self, key, entry, change, 1, false);
}

void ml_enqueue_filter_begun(struct ml_enqueue_filter *self, struct ml_str key)
{
    struct entry *entry = entry_get(self, key);
    if (!entry->counted)
        end_streak(entry);
    entry->under_way = true;
    entry->asks_back = entry->counted = entry->is_hot = false;
}

/* The pause of a run that asks to be called again after `delay_ns`. */
static int64_t pause_of_hot(struct ml_enqueue_filter *self, struct entry *entry, int64_t delay_ns)
{
    if (delay_ns >= HOT_NS || !self->handler.hot)
        return 0;
    entry->is_hot = true;
    entry->hot = ML_MIN(entry->hot + 1, HOT_FREE_RUNS + HOT_DOUBLINGS + 1);
    if (entry->hot <= HOT_FREE_RUNS)
        return 0;
    uint32_t doublings = entry->hot - HOT_FREE_RUNS - 1;
    if (doublings == 0)
        self->handler.hot(self->context, key_of(entry));
    return ML_MIN(HOT_NS << doublings, HOT_PAUSE_MAX);
}

int64_t ml_enqueue_filter_restrain(struct ml_enqueue_filter *self, struct ml_str key,
                                   int64_t delay_ns)
{
    struct entry *entry = ml_map_get(&self->entries, key);
    ml_assert(entry && entry->under_way);
    entry->asks_back = delay_ns < PAUSE_FIRST_NS;
    int64_t hot_ns = pause_of_hot(self, entry, delay_ns);
    return ML_MAX(delay_ns, ML_MAX(entry->pause_ns, hot_ns));
}

void ml_enqueue_filter_ended(struct ml_enqueue_filter *self, struct ml_str key)
{
    struct entry *entry = ml_map_get(&self->entries, key);
    ml_assert(entry && entry->under_way);
    wake_by_changes(self, key, entry, entry->held, entry->held_count, entry->overflow);
    drop_held(entry);
    entry->under_way = false;
    if (!entry->is_hot)
        entry->hot = 0;
    if (!ml_expectations_echo_pending(self->expectations, key)) {
        entry->asks_back = false;
        if (!entry->counted)
            end_streak(entry);
    }
    entry_settle(self, entry);
}

void ml_enqueue_filter_gone(struct ml_enqueue_filter *self, struct ml_str key)
{
    struct entry *entry = ml_map_get(&self->entries, key);
    if (!entry)
        return;
    drop_held(entry);
    end_streak(entry);
    entry->hot = 0;
    entry->asks_back = false;
    entry_settle(self, entry);
}

void ml_enqueue_filter_reset_backoff(struct ml_enqueue_filter *self)
{
    ml_map_each (&self->entries, cursor, value) {
        struct entry *entry = value;
        end_streak(entry);
        entry->hot = 0;
        entry_settle(self, entry);
    }
}

size_t ml_enqueue_filter_len(const struct ml_enqueue_filter *self)
{
    return self->entries.len;
}
