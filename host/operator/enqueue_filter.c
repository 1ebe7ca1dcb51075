/* Decides which changes wake a key, and when: echoes of its own writes, keys that wake themselves,
 * fights. */
#include "operator/enqueue_filter.h"

#include "base/list.h"
#include "kube/object_diff.h"
#include "operator/field_rates.h"

#define HELD_MAX 16 /* the last changes of one run; after more the key wakes, whoever made them */

#define ASKS_BACK_NS ML_NS_PER_S /* sooner than this a run asks to be called again */

#define HOT_NS        (10 * ML_NS_PER_MS) /* sooner than this is at once */
#define HOT_FREE_RUNS 100u                /* steps that a script may take one after the other */
#define HOT_DOUBLINGS 7u
#define HOT_PAUSE_MAX ML_NS_PER_S

#define EDIT_NS    (6 * ML_NS_PER_S) /* of edits that break into pauses ten a minute are forgotten */
#define FREE_EDITS 20
#define FIELDS_MAX 8 /* of one change that are counted */

#define PARTS_OF_EDITS (ML_PART_SPEC | ML_PART_LABELS | ML_PART_ANNOTATIONS)

/* The filter's part of a key's record; freed as soon as it has nothing to keep. */
struct ml_key_pace {
    struct ml_key *key;
    struct ml_change *held; /* up to HELD_MAX, with a reference to each object */
    uint8_t held_count;
    bool overflow; /* there were more */
    bool under_way;
    bool asks_back;  /* this run, or the last one, wants to be called again at once */
    uint32_t hot;    /* runs in a row that asked to be called again at once */
    bool is_hot;     /* this one did */
    bool by_edit;    /* somebody's edit ended a pause; until what was slowed changes again */
    bool slowed;     /* this run was, and a verdict says so */
    int64_t due_ns;  /* when the run that was asked for is due; 0: none was */
    int64_t edit_ns; /* the bucket of edits, as in field_rates_fill */
    struct field_rates rates;
    struct ml_list node; /* in `rated`, while it has rates */
};

struct ml_enqueue_filter {
    struct ml_loop *loop;
    struct ml_enqueue_filter_questions questions;
    void *context;
    struct ml_expectations *expectations;
    struct ml_keys *keys;
    size_t len;           /* keys with a part */
    struct ml_list rated; /* entries with rates; those looked at longest ago come first */
    struct common_rates common;
};

static struct ml_key_pace *entry_find(const struct ml_enqueue_filter *self, struct ml_str key)
{
    const struct ml_key *record = ml_keys_find(self->keys, key);
    return record ? record->pace : NULL;
}

static struct ml_key_pace *entry_get(struct ml_enqueue_filter *self, struct ml_str key)
{
    struct ml_key_pace *entry = entry_find(self, key);
    if (entry)
        return entry;
    entry = ml_new(struct ml_key_pace);
    ml_list_init(&entry->node);
    entry->key = ml_keys_ref(self->keys, key);
    entry->key->pace = entry;
    self->len++;
    return entry;
}

static void drop_held(struct ml_key_pace *entry)
{
    for (size_t i = 0; entry->held && i < entry->held_count; i++)
        ml_change_unref(&entry->held[i]);
    free(ml_take(&entry->held));
    entry->held_count = 0;
    entry->overflow = false;
}

static void entry_free(struct ml_enqueue_filter *self, struct ml_key_pace *entry)
{
    drop_held(entry);
    ml_list_remove(&entry->node);
    field_rates_fini(&entry->rates);
    entry->key->pace = NULL;
    ml_key_unref(entry->key);
    self->len--;
    free(entry);
}

static void entry_settle(struct ml_enqueue_filter *self, struct ml_key_pace *entry)
{
    if (entry->rates.len > 0 && ml_list_empty(&entry->node))
        ml_list_push(&self->rated, &entry->node);
    if (!entry->under_way && !entry->asks_back && entry->rates.len == 0 && entry->hot == 0)
        entry_free(self, entry);
}

static int64_t now_of(const struct ml_enqueue_filter *self)
{
    return ml_clock_monotonic(ml_loop_clock(self->loop));
}

/* Forgets the rates of up to `count` keys that have had none for long. */
static void expire_rates(struct ml_enqueue_filter *self, size_t count)
{
    int64_t now_ns = now_of(self);
    while (count-- > 0 && !ml_list_empty(&self->rated)) {
        struct ml_key_pace *entry = ml_container_of(ml_list_shift(&self->rated), struct ml_key_pace,
                                                    node);
        field_rates_expire(&entry->rates, now_ns);
        entry_settle(self, entry);
    }
}

/* ---- what a change is about ---- */

static uint64_t object_hash(struct ml_str kind, struct ml_str ns, struct ml_str name)
{
    return (ml_hash(kind) * 31 + ml_hash(ns)) * 31 + ml_hash(name);
}

static struct ml_str kind_of(const struct ml_change *change)
{
    return ml_str_of(ml_informer_kind(change->informer)->kind);
}

static uint64_t hash_of_change(const struct ml_change *change)
{
    const struct ml_object *object = ml_change_object(change);
    return object_hash(kind_of(change), ml_object_namespace(object), ml_object_name(object));
}

/* The object that `owner` belongs to in its turn, where the name tells it: a ReplicaSet is named
 * after its Deployment, a Job after its CronJob. */
static uint64_t hash_of_grandowner(const struct ml_owner *owner, struct ml_str ns)
{
    static const char *const pairs[][2] = {{"ReplicaSet", "Deployment"}, {"Job", "CronJob"}};
    struct ml_str name = owner->name;
    while (name.len > 0 && name.ptr[name.len - 1] != '-')
        name.len--;
    if (name.len < 2)
        return 0;
    name.len--;
    for (size_t i = 0; i < ML_COUNT(pairs); i++)
        if (ml_str_is(owner->kind, pairs[i][0]))
            return object_hash(ml_str_of(pairs[i][1]), ns, name);
    return 0;
}

static void hash_owners(const struct ml_change *change, uint64_t out[2])
{
    const struct ml_object *object = ml_change_object(change);
    struct ml_str ns = ml_object_namespace(object);
    struct ml_owner owner;
    out[0] = out[1] = 0;
    if (!ml_object_controller(object, &owner))
        return;
    out[0] = object_hash(owner.kind, ns, owner.name);
    out[1] = hash_of_grandowner(&owner, ns);
}

/* The state of a walk over the fields of one change. */
struct visit {
    struct ml_enqueue_filter *self;
    struct ml_key_pace *entry;
    const struct ml_change *change;
    uint64_t object;
    size_t fields;
    const char *author; /* of somebody else's change; NULL: not known */
    bool is_edit;       /* by somebody else, in a field that is not slowed */
    struct field_verdict verdict;
    struct ml_buf slowed; /* as the fields of ml_slowed */
    struct ml_buf first;
};

static void visit_fini(struct visit *visit)
{
    ml_buf_fini(&visit->slowed);
    ml_buf_fini(&visit->first);
}

static struct field_ref ref_of(const struct visit *visit, const struct ml_field_change *field)
{
    return (struct field_ref){visit->object, field ? ml_hash(field->name) : 0,
                              field ? field->value : 0, field && field->is_list};
}

typedef void visit_field(void *visit, const struct ml_field_change *field);

/* `field` NULL: the object came or went. Returns the parts that differ. */
static unsigned visit_change(struct visit *visit, visit_field *each)
{
    const struct ml_change *change = visit->change;
    visit->object = hash_of_change(change);
    if (change->old && change->new)
        return ml_object_diff_each(change->old, change->new, each, visit);
    each(visit, NULL);
    return ML_PART_ALL;
}

static bool is_echo(struct ml_enqueue_filter *self, struct ml_str key,
                    const struct ml_change *change)
{
    return change->new &&ml_expectations_is_echo(self->expectations, key, change->informer,
                                                 ml_object_rv_number(change->new));
}

/* `parts`: those that differ. */
static bool is_status_only(const struct ml_change *change, unsigned parts)
{
    return change->reconciled && change->old && change->new &&
           (parts & ~(unsigned)(ML_PART_STATUS | ML_PART_GENERATION)) == 0;
}

/* ---- changes by others ---- */

static void note_conflict(void *context, const struct ml_field_change *field)
{
    struct visit *visit = context;
    struct field_ref ref = ref_of(visit, field);
    if (visit->fields++ >= FIELDS_MAX)
        return;
    if (field && (field->part & PARTS_OF_EDITS) &&
        !field_rates_is_slowed(&visit->entry->rates, ref))
        visit->is_edit = true;
    field_rates_conflict(&visit->entry->rates, ref, visit->author,
                         ml_object_rv_number(ml_change_object(visit->change)), now_of(visit->self));
}

static bool is_leaving(const struct ml_change *change)
{
    return change->old && change->new &&ml_object_deleting(change->new) &&
           !ml_object_deleting(change->old);
}

static void end_pause(struct ml_enqueue_filter *self, struct ml_key_pace *entry)
{
    if (field_rates_fill(&entry->edit_ns, EDIT_NS, FREE_EDITS * EDIT_NS, now_of(self)))
        return;
    entry->rates.paused_until_ns = 0;
    entry->by_edit = true;
}

/* Somebody else's change wakes the key. Of children only what its runs have changed, made or
 * deleted can be a fight. */
static void note_change_by_other(struct ml_enqueue_filter *self, struct ml_str key,
                                 const struct ml_change *change, const char *author)
{
    struct ml_key_pace *entry = entry_find(self, key);
    struct visit visit = {.self = self, .change = change, .author = author};
    uint64_t owners[2];
    bool is_known = entry && field_rates_know_object(&entry->rates, hash_of_change(change));
    bool came_or_went = !change->old || !change->new;
    hash_owners(change, owners);
    if (is_known || (change->reconciled ? !came_or_went : came_or_went)) {
        visit.entry = entry = entry_get(self, key);
        visit_change(&visit, note_conflict);
    }
    if (!entry)
        return;
    bool is_edit = change->reconciled && visit.is_edit;
    field_rates_explain(&entry->rates, hash_of_change(change), owners, is_edit);
    if (change->reconciled && is_leaving(change))
        entry->rates.paused_until_ns = 0;
    else if (is_edit && entry->rates.paused_until_ns > now_of(self))
        end_pause(self, entry);
    entry_settle(self, entry);
}

/* ---- changes by the key's own runs ---- */

/* The spec of a related object, or the status of the own one. The spec of the own one may hold a
 * request, and then its answer: `restart: "yes"` becomes `restart: "done"`. The status of another
 * one reports, and it changes between a write that changes nothing and the answer to that. */
static bool is_wish(const struct ml_change *change, const struct ml_field_change *field)
{
    return field && change->reconciled == (field->part == ML_PART_STATUS);
}

/* Making and deleting objects one after the other is how many scripts go about their work. */
static enum field_cause cause_of_own_change(const struct ml_key_pace *entry,
                                            const struct ml_change *change, unsigned parts)
{
    if (is_status_only(change, parts))
        return entry->asks_back ? FIELD_CAUSE_SELF : FIELD_CAUSE_OTHER;
    return change->old && change->new ? FIELD_CAUSE_NOTED : FIELD_CAUSE_OTHER;
}

static void count_field(void *context, const struct ml_field_change *field)
{
    struct visit *visit = context;
    struct ml_key_pace *entry = visit->entry;
    if (visit->fields++ >= FIELDS_MAX)
        return;
    const struct field_change change = {
        .ref = ref_of(visit, field),
        .common = ml_hash(kind_of(visit->change)) * 31 + (field ? ml_hash(field->name) : 0),
        .cause = cause_of_own_change(entry, visit->change, field ? field->parts : ML_PART_ALL),
        .own = visit->change->reconciled,
        .is_wish = is_wish(visit->change, field),
        .by_edit = entry->by_edit,
    };
    struct field_verdict verdict = field_rates_count(&entry->rates, &visit->self->common, &change,
                                                     now_of(visit->self));
    if (!verdict.slowed)
        return;
    struct ml_str name = field ? field->name : ML_STR("it is made and deleted");
    if (visit->slowed.len > 0) {
        ml_buf_printf(&visit->slowed, ", " ML_STR_FMT, ML_STR_ARG(name));
    } else {
        ml_buf_printf(&visit->slowed, ML_STR_FMT " " ML_STR_FMT ": " ML_STR_FMT,
                      ML_STR_ARG(kind_of(visit->change)),
                      ML_STR_ARG(ml_object_key(ml_change_object(visit->change))), ML_STR_ARG(name));
        ml_buf_append_str(&visit->first, field ? name : ML_STR(""));
    }
    if (!visit->verdict.fight)
        visit->verdict = verdict;
}

static void slow_key(struct visit *visit, struct ml_slowed *out)
{
    struct ml_key_pace *entry = visit->entry;
    *out = (struct ml_slowed){
        .fields = ml_buf_take(&visit->slowed),
        .change = visit->change,
        .field = ml_buf_take(&visit->first),
        .fight = visit->verdict.fight,
        .other_side = visit->verdict.other_side ? ml_strdup(visit->verdict.other_side) : NULL,
        .other_side_rv = visit->verdict.other_side_rv,
        .pause_ns = entry->rates.paused_until_ns - now_of(visit->self),
    };
    entry->slowed = true;
}

/* Returns the parts that differ. */
static unsigned count_own_change(struct ml_enqueue_filter *self, struct ml_str key,
                                 const struct ml_change *change, struct ml_slowed *out)
{
    ML_AUTO(visit_fini)
    struct visit visit = {.self = self, .entry = entry_get(self, key), .change = change};
    unsigned parts = visit_change(&visit, count_field);
    if (visit.slowed.len > 0) {
        visit.entry->by_edit = false;
        if (!visit.entry->slowed)
            slow_key(&visit, out);
    }
    entry_settle(self, visit.entry);
    return parts;
}

/* The last ones are kept: the first of them may have been answered by the run itself. */
static void hold_change(struct ml_key_pace *entry, const struct ml_change *change)
{
    if (entry->held_count == HELD_MAX) {
        entry->overflow = true;
        ml_change_unref(&entry->held[0]);
        memmove(entry->held, entry->held + 1, (HELD_MAX - 1) * sizeof *entry->held);
        entry->held_count--;
    }
    size_t size = (entry->held_count + 1u) * sizeof *entry->held;
    entry->held = ml_realloc(entry->held, size);
    entry->held[entry->held_count++] = ml_change_ref(change);
}

enum effect {
    WAKES,
    WAKES_NOT, /* it is the status that the run returned */
    SKIPPED,   /* it does not matter */
};

static enum effect judge_change(struct ml_enqueue_filter *self, struct ml_str key,
                                const struct ml_change *change, struct ml_slowed *slowed)
{
    const struct ml_enqueue_filter_questions *ask = &self->questions;
    bool own = false;
    const char *author = ask->author ? ask->author(self->context, key, change, &own) : NULL;
    bool is_own = is_echo(self, key, change) || own;
    if (!is_own) {
        if (!ask->matters(self->context, key, change, false))
            return SKIPPED;
        note_change_by_other(self, key, change, author);
        return WAKES;
    }
    unsigned parts = count_own_change(self, key, change, slowed);
    if (!is_status_only(change, parts))
        return WAKES;
    ask->matters(self->context, key, change, true);
    return WAKES_NOT;
}

/* The first of these changes that wakes the key is the cause. If none of the changes is relevant,
 * still wake the key when relevant changes may have been missed; the last change is then the
 * cause. */
static struct ml_verdict judge_changes(struct ml_enqueue_filter *self, struct ml_str key,
                                       const struct ml_change *changes, size_t count, bool overflow)
{
    struct ml_verdict verdict = {.wakes = false};
    const struct ml_change *first = NULL, *skipped = NULL;
    for (size_t i = 0; i < count; i++) {
        enum effect effect = judge_change(self, key, &changes[i], &verdict.slowed);
        if (effect == SKIPPED)
            skipped = &changes[i];
        else if (effect == WAKES && !first)
            first = &changes[i];
    }
    bool missed = !overflow && !first && skipped && self->questions.uncertain(self->context, key);
    verdict.wakes = overflow || first || missed;
    verdict.cause = overflow ? NULL : first ? first : missed ? skipped : NULL;
    return verdict;
}

void ml_verdict_fini(struct ml_verdict *verdict)
{
    free(verdict->slowed.fields);
    free(verdict->slowed.field);
    free(verdict->slowed.other_side);
    for (size_t i = 0; i < verdict->held_count; i++)
        ml_change_unref(&verdict->held[i]);
    free(verdict->held);
}

struct ml_enqueue_filter *ml_enqueue_filter_new(struct ml_keys *keys, struct ml_loop *loop,
                                                struct ml_expectations *expectations,
                                                const struct ml_enqueue_filter_questions *questions,
                                                void *context)
{
    struct ml_enqueue_filter *self = ml_new(struct ml_enqueue_filter);
    self->keys = keys;
    self->loop = loop;
    self->expectations = expectations;
    self->questions = *questions;
    self->context = context;
    ml_list_init(&self->rated);
    return self;
}

void ml_enqueue_filter_free(struct ml_enqueue_filter *self)
{
    if (!self)
        return;
    ml_keys_each(self->keys, key) if (key->pace) entry_free(self, key->pace);
    free(self);
}

struct ml_verdict ml_enqueue_filter_changed(struct ml_enqueue_filter *self, struct ml_str key,
                                            const struct ml_change *change)
{
    struct ml_key_pace *entry = entry_find(self, key);
    if (change->child_deleted)
        ml_expectations_child_deleted(self->expectations, key);
    if (!entry || !entry->under_way)
        return judge_changes(self, key, change, 1, false);
    hold_change(entry, change);
    return (struct ml_verdict){.wakes = false};
}

void ml_enqueue_filter_begun(struct ml_enqueue_filter *self, struct ml_str key)
{
    expire_rates(self, 2);
    struct ml_key_pace *entry = entry_get(self, key);
    bool due = entry->due_ns != 0 && now_of(self) >= entry->due_ns;
    field_rates_begin_run(&entry->rates, due);
    entry->under_way = true;
    entry->asks_back = entry->is_hot = entry->slowed = false;
    entry->due_ns = 0;
}

int64_t ml_enqueue_filter_pause(const struct ml_enqueue_filter *self, struct ml_str key)
{
    const struct ml_key_pace *entry = entry_find(self, key);
    return entry ? ML_MAX(entry->rates.paused_until_ns - now_of(self), 0) : 0;
}

/* The pause of a run that asks to be called again after `delay_ns`. */
static int64_t pause_of_hot(const struct ml_enqueue_filter *self, struct ml_key_pace *entry,
                            int64_t delay_ns, bool *out_hot)
{
    if (delay_ns >= HOT_NS || !self->questions.slows_hot_keys)
        return 0;
    entry->is_hot = true;
    entry->hot = ML_MIN(entry->hot + 1, HOT_FREE_RUNS + HOT_DOUBLINGS + 1);
    if (entry->hot <= HOT_FREE_RUNS)
        return 0;
    uint32_t doublings = entry->hot - HOT_FREE_RUNS - 1;
    *out_hot = doublings == 0;
    return ML_MIN(HOT_NS << doublings, HOT_PAUSE_MAX);
}

int64_t ml_enqueue_filter_restrain(struct ml_enqueue_filter *self, struct ml_str key,
                                   int64_t delay_ns, bool *out_hot)
{
    struct ml_key_pace *entry = entry_find(self, key);
    ml_assert(entry && entry->under_way);
    *out_hot = false;
    entry->asks_back = delay_ns < ASKS_BACK_NS;
    if (!entry->asks_back && delay_ns < INT64_MAX - now_of(self))
        entry->due_ns = now_of(self) + delay_ns;
    int64_t hot_ns = pause_of_hot(self, entry, delay_ns, out_hot);
    return ML_MAX(delay_ns, hot_ns);
}

struct ml_verdict ml_enqueue_filter_ended(struct ml_enqueue_filter *self, struct ml_str key)
{
    struct ml_key_pace *entry = entry_find(self, key);
    ml_assert(entry && entry->under_way);
    struct ml_verdict verdict = judge_changes(self, key, entry->held, entry->held_count,
                                              entry->overflow);
    verdict.held = ml_take(&entry->held);
    verdict.held_count = entry->held_count;
    drop_held(entry);
    entry->under_way = false;
    if (!entry->is_hot)
        entry->hot = 0;
    if (!ml_expectations_echo_pending(self->expectations, key))
        entry->asks_back = false;
    entry_settle(self, entry);
    return verdict;
}

/* Begins anew. */
static void entry_forgive(struct ml_enqueue_filter *self, struct ml_key_pace *entry)
{
    ml_list_remove(&entry->node);
    field_rates_fini(&entry->rates);
    entry->hot = 0;
    entry->by_edit = false;
    entry->edit_ns = 0;
    entry_settle(self, entry);
}

void ml_enqueue_filter_gone(struct ml_enqueue_filter *self, struct ml_str key)
{
    struct ml_key_pace *entry = entry_find(self, key);
    if (!entry)
        return;
    drop_held(entry);
    entry->asks_back = false;
    entry_forgive(self, entry);
}

void ml_enqueue_filter_reset_backoff(struct ml_enqueue_filter *self)
{
    self->common = (struct common_rates){0};
    ml_keys_each(self->keys, key) if (key->pace) entry_forgive(self, key->pace);
}

size_t ml_enqueue_filter_len(struct ml_enqueue_filter *self)
{
    expire_rates(self, self->len);
    return self->len;
}
