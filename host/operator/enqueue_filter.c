/* Decides which changes wake a key, and when: echoes of its own writes, keys that wake themselves,
 * fights. It counts how often the runs of a key change each field, and pauses a key that changes
 * one too often. */
#include "operator/enqueue_filter.h"

#include "base/clock.h"
#include "base/list.h"
#include "kube/object_diff.h"

/* ---- how often the runs of one key change each field ---- */

#define FREE_CHANGES 20
#define FREE_RETURNS 3                    /* changes back in a fight over two values */
#define SELF_NS      (6 * ML_NS_PER_S)    /* one change is forgotten: ten a minute */
#define EXPLAINED_NS (240 * ML_NS_PER_MS) /* a twenty-fifth of that */
#define FIGHT_NS     (30 * ML_NS_PER_S)   /* two a minute */
#define KEPT_NS      (60 * ML_NS_PER_S)   /* a field is known this long, with nothing counted */
#define CONFLICT_NS  SELF_NS              /* the same, when only somebody else changed it */
#define QUIET_NS     (60 * ML_NS_PER_S)   /* after a pause: the next one is the first again */
#define RESTLESS_NS  (10 * ML_NS_PER_S)   /* a key that changes a field three times in this time */

#define PAUSE_FIRST_NS ML_NS_PER_S
#define PAUSE_MAX_NS   (1000 * ML_NS_PER_S)

#define FIELD_RATES_MAX   16 /* fields of one key; the one with the lowest rate makes room */
#define COMMON_RATES_MAX  16 /* fields of one controller; the one changed longest ago makes room */
#define COMMON_VALUES_MAX 64 /* values of one of these that are remembered, as hashes */

/* One field of one object. All hashes; `field` 0: whether the object exists. */
struct field_ref {
    uint64_t object, field, value;
    bool is_list;
};

struct field_rate {
    struct field_ref ref;
    int64_t self_empty_ns, fight_empty_ns, return_empty_ns; /* when the buckets are empty */
    int64_t self_ns[2]; /* the last two changes that nothing explains; the later one first */
    int64_t kept_until_ns;
    int64_t changed_ns; /* by a run; 0: never */
    int64_t pause_ns;   /* 0: it is not slowed */
    bool own;           /* of the object that is reconciled */
    bool explained, in_conflict, counted_this_run;
    bool fights;                /* a conflict was counted */
    bool soft;                  /* each change was explained: the pause does not grow */
    uint64_t other, last_other; /* the values of the conflict, and of the one before; 0: none */
    char *author;               /* of the conflict */
    uint64_t conflict_rv;
    char *other_side; /* of the fight */
};

/* All zero: no field was changed. */
struct field_rates {
    struct field_rate *list;
    size_t len;
    bool counted_this_run;   /* among those of other keys (struct common_rates) */
    int64_t paused_until_ns; /* no run begins before; monotonic */
};

/* The same field of all objects of a kind, as the runs of all keys of a controller change it. */
struct common_rates {
    struct common_rate {
        uint64_t field;
        int64_t empty_ns, changed_ns;
        uint64_t values[COMMON_VALUES_MAX];
        size_t next_value;
    } list[COMMON_RATES_MAX];
};

/* Why a run changed a field. Another client's change of the same field counts before all of these.
 */
enum field_cause {
    FIELD_CAUSE_SELF,  /* the run asks to be called again at once */
    FIELD_CAUSE_OTHER, /* it is the status that it returned, or an object came or went */
    FIELD_CAUSE_NOTED, /* what field_rates_explain noted since the last change, or nothing */
};

/* A change by a run. */
struct field_change {
    struct field_ref ref;
    uint64_t common; /* a hash of the kind and the field */
    enum field_cause cause;
    bool own;     /* of the object that is reconciled */
    bool is_wish; /* two values of it in turn are a fight: nothing is asked and answered with it */
    bool by_edit; /* somebody's edit ended the last pause; the next one is not longer */
};

/* The verdict on one more change. */
struct field_verdict {
    bool slowed;
    bool fight;
    const char *other_side; /* of a fight; NULL: not known. Valid until the next call */
    uint64_t other_side_rv; /* the version that it wrote last */
};

static void rate_fini(struct field_rate *rate)
{
    free(ml_take(&rate->author));
    free(ml_take(&rate->other_side));
}

static void field_rates_fini(struct field_rates *rates)
{
    for (size_t i = 0; i < rates->len; i++)
        rate_fini(&rates->list[i]);
    free(ml_take(&rates->list));
    rates->len = 0;
    rates->paused_until_ns = 0;
}

static struct field_rate *rate_find(const struct field_rates *rates, struct field_ref ref)
{
    for (size_t i = 0; i < rates->len; i++)
        if (rates->list[i].ref.object == ref.object && rates->list[i].ref.field == ref.field)
            return &rates->list[i];
    return NULL;
}

static int64_t rate_debt(const struct field_rate *rate, int64_t now_ns)
{
    return rate->pause_ns > 0 ? INT64_MAX
                              : ML_MAX(rate->self_empty_ns, rate->fight_empty_ns) - now_ns;
}

/* A free place for one that will count `cost_ns`; NULL: all others count more. */
static struct field_rate *rate_make_room(struct field_rates *rates, int64_t cost_ns, int64_t now_ns)
{
    if (rates->len < FIELD_RATES_MAX) {
        rates->list = ml_realloc(rates->list, (rates->len + 1) * sizeof *rates->list);
        return &rates->list[rates->len++];
    }
    struct field_rate *least = rates->list;
    for (size_t i = 1; i < rates->len; i++)
        if (rate_debt(&rates->list[i], now_ns) < rate_debt(least, now_ns))
            least = &rates->list[i];
    if (rate_debt(least, now_ns) >= cost_ns)
        return NULL;
    rate_fini(least);
    return least;
}

static struct field_rate *rate_get(struct field_rates *rates, struct field_ref ref, int64_t cost_ns,
                                   int64_t now_ns)
{
    struct field_rate *rate = rate_find(rates, ref);
    if (rate)
        return rate;
    rate = rate_make_room(rates, cost_ns, now_ns);
    if (rate)
        *rate = (struct field_rate){.ref = ref};
    return rate;
}

/* A run begins. `due`: it comes at the time that the script asked for, which explains what it
 * changes. */
static void field_rates_begin_run(struct field_rates *rates, bool due)
{
    rates->counted_this_run = false;
    for (size_t i = 0; i < rates->len; i++) {
        rates->list[i].counted_this_run = false;
        rates->list[i].explained |= due;
    }
}

/* In a loop through the controller of a Deployment, its status and its pods change with it: that
 * explains nothing. */
static bool is_result_of(const struct field_rate *rate, uint64_t object, const uint64_t owners[2],
                         bool is_edit)
{
    if (rate->ref.object == object)
        return !(rate->own && is_edit);
    return !rate->own && (rate->ref.object == owners[0] || rate->ref.object == owners[1]);
}

/* Somebody else changed an object: `object`, which belongs to `owners`. That explains what the next
 * run changes in other objects that do not own it. */
static void field_rates_explain(struct field_rates *rates, uint64_t object,
                                const uint64_t owners[2], bool is_edit)
{
    for (size_t i = 0; i < rates->len; i++)
        if (!is_result_of(&rates->list[i], object, owners, is_edit))
            rates->list[i].explained = true;
}

/* Somebody else, `author` (NULL: not known; copied), changed this field, at version `rv`. */
static void field_rates_conflict(struct field_rates *rates, struct field_ref ref,
                                 const char *author, uint64_t rv, int64_t now_ns)
{
    struct field_rate *rate = rate_get(rates, ref, 1, now_ns);
    if (!rate)
        return;
    rate->in_conflict = true;
    rate->other = ref.value;
    rate->conflict_rv = rv;
    rate->kept_until_ns = ML_MAX(rate->kept_until_ns, now_ns + CONFLICT_NS);
    if (!author)
        return;
    free(rate->author);
    rate->author = ml_strdup(author);
}

/* A leaky bucket, empty at `*empty_ns`: adds `cost_ns`; true: it holds more than `size_ns`. */
static bool field_rates_fill(int64_t *empty_ns, int64_t cost_ns, int64_t size_ns, int64_t now_ns)
{
    *empty_ns = ML_MAX(*empty_ns, now_ns) + cost_ns;
    return *empty_ns - now_ns > size_ns;
}

/* Two that merge their parts into one list, as conditions, do not fight: each leaves the other's
 * part alone. They do when a list is as this run's last change left it. */
static bool is_conflict(const struct field_rate *rate, struct field_ref ref)
{
    if (!rate->in_conflict)
        return false;
    return !ref.is_list || (rate->changed_ns != 0 && rate->ref.value == ref.value);
}

/* The pause is over, and then there was peace: as if nothing had been. The other side is slowed,
 * too: its pause adds to this one's, and may be the next longer one. */
static void forget_after_peace(struct field_rate *rate, int64_t now_ns)
{
    int64_t pause_ns = rate->fights ? 3 * rate->pause_ns : rate->pause_ns;
    if (rate->pause_ns == 0 || now_ns - rate->changed_ns <= pause_ns + QUIET_NS)
        return;
    rate->pause_ns = rate->self_empty_ns = rate->fight_empty_ns = rate->return_empty_ns = 0;
    rate->fights = false;
    free(ml_take(&rate->other_side));
}

/* `over`: it has been changed too often. True: it is slowed, for `pause_ns`. */
static bool rate_slow(struct field_rate *rate, bool over, bool full, bool by_edit)
{
    if (rate->pause_ns == 0) {
        rate->soft = !full;
        rate->pause_ns = over ? PAUSE_FIRST_NS : 0;
    } else if (full) {
        rate->soft = false;
        rate->pause_ns = by_edit ? rate->pause_ns : ML_MIN(2 * rate->pause_ns, PAUSE_MAX_NS);
    } else if (rate->soft && !over) {
        rate->pause_ns = 0;
    }
    return rate->pause_ns > 0;
}

static void note_other_side(struct field_rate *rate)
{
    rate->fights = true;
    if (!rate->author)
        return;
    free(rate->other_side);
    rate->other_side = ml_take(&rate->author);
}

/* The same two values in turn. */
static bool is_return(const struct field_rate *rate, const struct field_change *change)
{
    return change->is_wish && rate->changed_ns != 0 && rate->ref.value == change->ref.value &&
           rate->last_other == rate->other;
}

static bool fill_fight(struct field_rate *rate, const struct field_change *change, int64_t now_ns)
{
    bool over = field_rates_fill(&rate->fight_empty_ns, FIGHT_NS, FREE_CHANGES * FIGHT_NS, now_ns);
    if (is_return(rate, change))
        over |= field_rates_fill(&rate->return_empty_ns, FIGHT_NS, FREE_RETURNS * FIGHT_NS, now_ns);
    rate->last_other = rate->other;
    return over;
}

/* The place of the field, or of the one that was changed longest ago. */
static struct common_rate *common_rate_get(struct common_rates *common, uint64_t field,
                                           int64_t now_ns)
{
    struct common_rate *oldest = common->list;
    for (size_t i = 0; i < ML_COUNT(common->list); i++) {
        struct common_rate *rate = &common->list[i];
        if (rate->field == field)
            return rate;
        if (rate->changed_ns < oldest->changed_ns)
            oldest = rate;
    }
    *oldest = (struct common_rate){.field = field, .changed_ns = now_ns};
    return oldest;
}

/* False: a run of this or another key has just written it. */
static bool common_rate_add_value(struct common_rate *rate, uint64_t value)
{
    for (size_t i = 0; i < ML_COUNT(rate->values); i++)
        if (rate->values[i] == value)
            return false;
    rate->values[rate->next_value] = value;
    rate->next_value = (rate->next_value + 1) % ML_COUNT(rate->values);
    return true;
}

/* One of many keys that do the same, each too slowly to be found alone: a step of a rollout is the
 * same value for all of them, a version or a hash is another one each time. */
static bool fill_common(struct common_rates *common, struct field_rates *rates,
                        struct field_rate *rate, const struct field_change *change, int64_t now_ns)
{
    struct common_rate *all = common_rate_get(common, change->common, now_ns);
    bool is_new = common_rate_add_value(all, change->ref.value);
    bool is_restless = rate->self_ns[1] != 0 && now_ns - rate->self_ns[1] <= RESTLESS_NS;
    rate->self_ns[1] = rate->self_ns[0];
    rate->self_ns[0] = now_ns;
    all->changed_ns = now_ns;
    if (!is_new || !is_restless || rates->counted_this_run)
        return false;
    rates->counted_this_run = true;
    return field_rates_fill(&all->empty_ns, SELF_NS, FREE_CHANGES * SELF_NS, now_ns);
}

static bool fill_self(struct field_rate *rate, bool full, int64_t now_ns)
{
    return field_rates_fill(&rate->self_empty_ns, full ? SELF_NS : EXPLAINED_NS,
                            FREE_CHANGES * SELF_NS, now_ns);
}

static bool is_unexplained(const struct field_rate *rate, const struct field_change *change)
{
    return change->cause == FIELD_CAUSE_SELF ||
           (change->cause == FIELD_CAUSE_NOTED && !rate->explained);
}

/* A run changed a field. Only the first change of each run counts. `common`: of the controller. */
static struct field_verdict field_rates_count(struct field_rates *rates,
                                              struct common_rates *common,
                                              const struct field_change *change, int64_t now_ns)
{
    struct field_verdict verdict = {false, false, NULL, 0};
    int64_t cost_ns = change->cause == FIELD_CAUSE_OTHER ? 1 : SELF_NS;
    struct field_rate *rate = rate_get(rates, change->ref, cost_ns, now_ns);
    if (!rate || rate->counted_this_run)
        return verdict;
    forget_after_peace(rate, now_ns);
    bool conflict = is_conflict(rate, change->ref);
    bool full = conflict || is_unexplained(rate, change);
    bool over = conflict ? fill_fight(rate, change, now_ns) : fill_self(rate, full, now_ns);
    if (full && !conflict)
        over |= fill_common(common, rates, rate, change, now_ns);
    if (conflict)
        note_other_side(rate);
    rate->counted_this_run = true;
    rate->in_conflict = rate->explained = false;
    rate->own = change->own;
    rate->ref = change->ref;
    rate->changed_ns = now_ns;
    if (change->cause != FIELD_CAUSE_OTHER)
        rate->kept_until_ns = now_ns + KEPT_NS;
    verdict.slowed = rate_slow(rate, over, full, change->by_edit);
    verdict.fight = rate->fights;
    verdict.other_side = rate->other_side;
    verdict.other_side_rv = rate->conflict_rv;
    if (verdict.slowed)
        rates->paused_until_ns = ML_MAX(rates->paused_until_ns, now_ns + rate->pause_ns);
    return verdict;
}

static bool field_rates_know_object(const struct field_rates *rates, uint64_t object)
{
    for (size_t i = 0; i < rates->len; i++)
        if (rates->list[i].ref.object == object)
            return true;
    return false;
}

static bool field_rates_is_slowed(const struct field_rates *rates, struct field_ref ref)
{
    const struct field_rate *rate = rate_find(rates, ref);
    return rate && rate->pause_ns > 0;
}

/* Forgets what is long ago. */
static void field_rates_expire(struct field_rates *rates, int64_t now_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < rates->len; i++) {
        struct field_rate *rate = &rates->list[i];
        forget_after_peace(rate, now_ns);
        if (rate->kept_until_ns > now_ns || rate_debt(rate, now_ns) > 0)
            rates->list[kept++] = *rate;
        else
            rate_fini(rate);
    }
    rates->len = kept;
    if (kept == 0)
        field_rates_fini(rates);
}

/* ---- a key ---- */

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
    struct ml_enqueue_filter_opts opts;
    size_t len;           /* keys with a part */
    struct ml_list rated; /* entries with rates; those looked at longest ago come first */
    struct common_rates common;
};

static struct ml_key_pace *entry_find(const struct ml_enqueue_filter *self, struct ml_str key)
{
    const struct ml_key *record = ml_keys_find(self->opts.keys, key);
    return record ? record->pace : NULL;
}

static struct ml_key_pace *entry_get(struct ml_enqueue_filter *self, struct ml_str key)
{
    struct ml_key_pace *entry = entry_find(self, key);
    if (entry)
        return entry;
    entry = ml_new(struct ml_key_pace);
    ml_list_init(&entry->node);
    entry->key = ml_keys_ref(self->opts.keys, key);
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
    return ml_clock_monotonic(ml_loop_clock(self->opts.loop));
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
    const char *author; /* of somebody else's change, in words; NULL: not known */
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
    return change->new &&ml_expectations_is_echo(self->opts.expectations, key, change->informer,
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

static const struct ml_author *author_of(const struct ml_enqueue_filter *self,
                                         const struct ml_change *change)
{
    if (!change->new)
        return ml_authors_of_deletion(self->opts.authors, ml_object_uid(change->old));
    return ml_authors_of(self->opts.authors, ml_informer_kind(change->informer),
                         ml_object_rv_number(change->new));
}

static bool is_own_controller(const struct ml_enqueue_filter *self, const struct ml_author *author)
{
    return strcmp(author->controller, self->opts.controller) == 0;
}

/* The caller frees it. NULL for NULL. */
static char *name_author(const struct ml_enqueue_filter *self, const struct ml_revision *revision,
                         const struct ml_author *author)
{
    if (!author)
        return NULL;
    return is_own_controller(self, author)
               ? ml_asprintf("the same controller for %s %s", ml_revision_kind(revision)->kind,
                             author->key)
               : ml_asprintf("controller %s", author->controller);
}

/* Somebody else's change wakes the key. Of children only what its runs have changed, made or
 * deleted can be a fight. */
static void note_change_by_other(struct ml_enqueue_filter *self, const struct ml_revision *revision,
                                 struct ml_str key, const struct ml_change *change,
                                 const struct ml_author *author)
{
    struct ml_key_pace *entry = entry_find(self, key);
    struct visit visit = {.self = self, .change = change};
    uint64_t owners[2];
    bool is_known = entry && field_rates_know_object(&entry->rates, hash_of_change(change));
    bool came_or_went = !change->old || !change->new;
    hash_owners(change, owners);
    if (is_known || (change->reconciled ? !came_or_went : came_or_went)) {
        ML_AUTO_FREE char *name = name_author(self, revision, author);
        visit.author = name;
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

/* The answer to the write of the other side may have come after its change; now it is there. */
static char *name_other_side(const struct visit *visit, const struct ml_revision *revision)
{
    const struct field_verdict *verdict = &visit->verdict;
    if (!verdict->fight)
        return NULL;
    if (verdict->other_side)
        return ml_strdup(verdict->other_side);
    return name_author(visit->self, revision,
                       ml_authors_of(visit->self->opts.authors,
                                     ml_informer_kind(visit->change->informer),
                                     verdict->other_side_rv));
}

static void slow_key(struct visit *visit, const struct ml_revision *revision, struct ml_slowed *out)
{
    struct ml_key_pace *entry = visit->entry;
    *out = (struct ml_slowed){
        .fields = ml_buf_take(&visit->slowed),
        .change = visit->change,
        .field = ml_buf_take(&visit->first),
        .fight = visit->verdict.fight,
        .other_side = name_other_side(visit, revision),
        .pause_ns = entry->rates.paused_until_ns - now_of(visit->self),
    };
    entry->slowed = true;
}

/* Returns the parts that differ. */
static unsigned count_own_change(struct ml_enqueue_filter *self, const struct ml_revision *revision,
                                 struct ml_str key, const struct ml_change *change,
                                 struct ml_slowed *out)
{
    ML_AUTO(visit_fini)
    struct visit visit = {.self = self, .entry = entry_get(self, key), .change = change};
    unsigned parts = visit_change(&visit, count_field);
    if (visit.slowed.len > 0) {
        visit.entry->by_edit = false;
        if (!visit.entry->slowed)
            slow_key(&visit, revision, out);
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

static enum effect judge_change(struct ml_enqueue_filter *self, const struct ml_revision *revision,
                                struct ml_str key, const struct ml_change *change,
                                struct ml_slowed *slowed)
{
    struct ml_read_sets *read_sets = self->opts.read_sets;
    const struct ml_author *author = author_of(self, change);
    bool is_own = is_echo(self, key, change) ||
                  (author && is_own_controller(self, author) && ml_str_is(key, author->key));
    if (!is_own) {
        if (!ml_read_sets_matters(read_sets, revision, key, change, false))
            return SKIPPED;
        note_change_by_other(self, revision, key, change, author);
        return WAKES;
    }
    unsigned parts = count_own_change(self, revision, key, change, slowed);
    if (!is_status_only(change, parts))
        return WAKES;
    (void)ml_read_sets_matters(read_sets, revision, key, change, true);
    return WAKES_NOT;
}

/* The first of these changes that wakes the key is the cause. If none of the changes is relevant,
 * still wake the key when relevant changes may have been missed; the last change is then the
 * cause. */
static struct ml_verdict judge_changes(struct ml_enqueue_filter *self,
                                       const struct ml_revision *revision, struct ml_str key,
                                       const struct ml_change *changes, size_t count, bool overflow)
{
    struct ml_verdict verdict = {.wakes = false};
    const struct ml_change *first = NULL, *skipped = NULL;
    for (size_t i = 0; i < count; i++) {
        enum effect effect = judge_change(self, revision, key, &changes[i], &verdict.slowed);
        if (effect == SKIPPED)
            skipped = &changes[i];
        else if (effect == WAKES && !first)
            first = &changes[i];
    }
    bool is_none_relevant = !overflow && !first && skipped;
    bool missed = is_none_relevant && ml_read_sets_uncertain(self->opts.read_sets, revision, key);
    verdict.skipped = is_none_relevant && !missed;
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

struct ml_enqueue_filter *ml_enqueue_filter_new(const struct ml_enqueue_filter_opts *opts)
{
    struct ml_enqueue_filter *self = ml_new(struct ml_enqueue_filter);
    self->opts = *opts;
    ml_list_init(&self->rated);
    return self;
}

void ml_enqueue_filter_free(struct ml_enqueue_filter *self)
{
    if (!self)
        return;
    ml_keys_each(self->opts.keys, key) if (key->pace) entry_free(self, key->pace);
    free(self);
}

struct ml_verdict ml_enqueue_filter_changed(struct ml_enqueue_filter *self,
                                            const struct ml_revision *revision, struct ml_str key,
                                            const struct ml_change *change)
{
    struct ml_key_pace *entry = entry_find(self, key);
    if (change->child_deleted)
        ml_expectations_child_deleted(self->opts.expectations, key);
    if (!entry || !entry->under_way)
        return judge_changes(self, revision, key, change, 1, false);
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
    if (delay_ns >= HOT_NS || !self->opts.slows_hot_keys)
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

struct ml_verdict ml_enqueue_filter_ended(struct ml_enqueue_filter *self,
                                          const struct ml_revision *revision, struct ml_str key)
{
    struct ml_key_pace *entry = entry_find(self, key);
    ml_assert(entry && entry->under_way);
    struct ml_verdict verdict = judge_changes(self, revision, key, entry->held, entry->held_count,
                                              entry->overflow);
    verdict.held = ml_take(&entry->held);
    verdict.held_count = entry->held_count;
    drop_held(entry);
    entry->under_way = false;
    if (!entry->is_hot)
        entry->hot = 0;
    if (!ml_expectations_echo_pending(self->opts.expectations, key))
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
    ml_keys_each(self->opts.keys, key) if (key->pace) entry_forgive(self, key->pace);
}

size_t ml_enqueue_filter_len(struct ml_enqueue_filter *self)
{
    expire_rates(self, self->len);
    return self->len;
}
