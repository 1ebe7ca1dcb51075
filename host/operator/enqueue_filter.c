/* Which changes wake a key, and when: echoes of its own writes, and keys that wake themselves.
 * controller.c brings changes; controller_work.c takes the keys that wake, and says which run. */
#include "operator/enqueue_filter.h"

#include "base/map.h"
#include "kube/object_diff.h"
#include "operator/streak.h"

#define HELD_MAX 16 /* changes of one run; with more of them the key wakes, whoever made them */

#define ASKS_BACK_NS ML_NS_PER_S /* sooner than this a run asks to be called again */

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
    bool asks_back;       /* this run, or the last one, wants to be called again at once */
    bool counted;         /* it was found to wake itself */
    bool judged;          /* it was found not to */
    uint32_t hot;         /* runs in a row that asked to be called again at once */
    bool is_hot;          /* this one did */
    struct streak streak; /* of runs that were counted */
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

static void entry_free(struct ml_enqueue_filter *self, struct entry *entry)
{
    ml_map_remove(&self->entries, key_of(entry));
    drop_held(entry);
    streak_end(&entry->streak);
    streak_end_contest(&entry->streak);
    free(entry);
}

static void entry_settle(struct ml_enqueue_filter *self, struct entry *entry)
{
    if (!entry->under_way && !entry->asks_back && entry->streak.runs == 0 && entry->hot == 0 &&
        !entry->streak.contested)
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

/* "ConfigMap d/a: data.time" */
static void describe_change(const struct ml_change *change, struct ml_buf *out)
{
    ml_buf_printf(out, "%s " ML_STR_FMT ": ", ml_informer_kind(change->informer)->kind,
                  ML_STR_ARG(ml_object_key(change->new)));
    ml_object_diff(change->old, change->new, out);
}

/* How long a change by somebody else waits: not at all, unless it is the turn of a rival. */
static int64_t pause_of_rival(struct ml_enqueue_filter *self, struct ml_str key,
                              const struct ml_change *change)
{
    static const struct streak none = {0};
    if (!self->handler.rival || !change->old || !change->new)
        return 0;
    const struct entry *entry = ml_map_get(&self->entries, key);
    const struct streak *streak = entry ? &entry->streak : &none;
    const char *author = self->handler.rival(self->context, change);
    if (!author && !streak->rival)
        return 0;
    ML_AUTO(ml_buf_fini) struct ml_buf fields = ML_BUF_INIT;
    describe_change(change, &fields);
    if (!streak_is_contest(streak, author, ml_buf_str(&fields)))
        return 0;
    return streak_contest(&entry_get(self, key)->streak, author, ml_buf_str(&fields));
}

/* `entry` NULL: nothing is known about the key. Making and deleting objects one after the other is
 * how many scripts go about their work: only a change of something that stays counts, and only the
 * first of each run. */
static int64_t pause_of_echo(struct ml_enqueue_filter *self, struct ml_str key, struct entry *entry,
                             const struct ml_change *change)
{
    if (change->old && change->new && !(entry && entry->counted)) {
        ML_AUTO(ml_buf_fini) struct ml_buf fields = ML_BUF_INIT;
        describe_change(change, &fields);
        entry = entry_get(self, key);
        entry->counted = true;
        const struct streak *streak = &entry->streak;
        if (streak_count(&entry->streak, ml_buf_str(&fields),
                         ml_clock_monotonic(ml_loop_clock(self->loop))))
            self->handler.slowed(self->context, key_of(entry), streak->fields, streak->rival,
                                 streak->pause_ns);
    }
    return entry ? entry->streak.pause_ns : 0;
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

/* The echo of a returned status counts in a streak when the run asks to be called again, or when
 * another controller had just changed the same fields. */
static void count_status(struct ml_enqueue_filter *self, struct ml_str key, struct entry *entry,
                         const struct ml_change *change)
{
    ML_AUTO(ml_buf_fini) struct ml_buf fields = ML_BUF_INIT;
    if (!entry)
        return;
    if (entry->streak.contested)
        describe_change(change, &fields);
    if (entry->asks_back || streak_is_contested(&entry->streak, ml_buf_str(&fields)))
        (void)pause_of_echo(self, key, entry, change);
}

/* After how long a change wakes the key. `entry` as in pause_of_echo. */
static int64_t delay_of_change(struct ml_enqueue_filter *self, struct ml_str key,
                               struct entry *entry, const struct ml_change *change)
{
    if (!is_echo(self, key, change)) {
        bool matters = self->handler.matters(self->context, key, change, false);
        return matters ? pause_of_rival(self, key, change) : DELAY_SKIPPED;
    }
    if (!is_status_only(change))
        return pause_of_echo(self, key, entry, change);
    self->handler.matters(self->context, key, change, true);
    count_status(self, key, entry, change);
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
    if (!entry->counted && !entry->judged)
        streak_pass_idle(&entry->streak);
    entry->under_way = true;
    entry->asks_back = entry->counted = entry->judged = entry->is_hot = false;
    entry->streak.contest_is_new = false;
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
    entry->asks_back = delay_ns < ASKS_BACK_NS;
    int64_t hot_ns = pause_of_hot(self, entry, delay_ns);
    return ML_MAX(delay_ns, ML_MAX(entry->streak.pause_ns, hot_ns));
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
        entry->judged = !entry->counted;
        if (entry->judged)
            streak_pass_idle(&entry->streak);
        if (!entry->streak.contest_is_new)
            streak_end_contest(&entry->streak);
    }
    entry_settle(self, entry);
}

void ml_enqueue_filter_gone(struct ml_enqueue_filter *self, struct ml_str key)
{
    struct entry *entry = ml_map_get(&self->entries, key);
    if (!entry)
        return;
    drop_held(entry);
    streak_end(&entry->streak);
    streak_end_contest(&entry->streak);
    entry->hot = 0;
    entry->asks_back = false;
    entry_settle(self, entry);
}

void ml_enqueue_filter_reset_backoff(struct ml_enqueue_filter *self)
{
    ml_map_each (&self->entries, cursor, value) {
        struct entry *entry = value;
        streak_end(&entry->streak);
        streak_end_contest(&entry->streak);
        entry->hot = 0;
        entry_settle(self, entry);
    }
}

size_t ml_enqueue_filter_len(const struct ml_enqueue_filter *self)
{
    return self->entries.len;
}
