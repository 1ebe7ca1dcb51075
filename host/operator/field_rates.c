/* Counts how often the runs of a key change each field, and pauses a key that changes one too often
 * (field_rates.h). */
#include "operator/field_rates.h"

#include "base/clock.h"

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

struct field_rate {
    struct field_ref ref;
    int64_t self_empty_ns, fight_empty_ns, return_empty_ns; /* when the buckets are empty */
    int64_t self_ns[2]; /* the last two changes that nothing explains; the later one first */
    int64_t kept_until_ns;
    int64_t changed_ns; /* by a run; 0: never */
    int64_t pause_ns;   /* 0: it is not slowed */
    bool own;           /* of the object that is reconciled */
    bool explained, in_conflict, counted;
    bool fights;                /* a conflict was counted */
    bool soft;                  /* each change was explained: the pause does not grow */
    uint64_t other, last_other; /* the values of the conflict, and of the one before; 0: none */
    char *author;               /* of the conflict */
    uint64_t conflict_rv;
    char *other_side; /* of the fight */
};

static void rate_fini(struct field_rate *rate)
{
    free(ml_take(&rate->author));
    free(ml_take(&rate->other_side));
}

void field_rates_fini(struct field_rates *rates)
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

void field_rates_begin_run(struct field_rates *rates, bool due)
{
    rates->counted = false;
    for (size_t i = 0; i < rates->len; i++) {
        rates->list[i].counted = false;
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

void field_rates_explain(struct field_rates *rates, uint64_t object, const uint64_t owners[2],
                         bool is_edit)
{
    for (size_t i = 0; i < rates->len; i++)
        if (!is_result_of(&rates->list[i], object, owners, is_edit))
            rates->list[i].explained = true;
}

void field_rates_conflict(struct field_rates *rates, struct field_ref ref, const char *author,
                          uint64_t rv, int64_t now_ns)
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

bool field_rates_fill(int64_t *empty_ns, int64_t cost_ns, int64_t size_ns, int64_t now_ns)
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
    if (!is_new || !is_restless || rates->counted)
        return false;
    rates->counted = true;
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

struct field_verdict field_rates_count(struct field_rates *rates, struct common_rates *common,
                                       const struct field_change *change, int64_t now_ns)
{
    struct field_verdict verdict = {false, false, NULL, 0};
    int64_t cost_ns = change->cause == FIELD_CAUSE_OTHER ? 1 : SELF_NS;
    struct field_rate *rate = rate_get(rates, change->ref, cost_ns, now_ns);
    if (!rate || rate->counted)
        return verdict;
    forget_after_peace(rate, now_ns);
    bool conflict = is_conflict(rate, change->ref);
    bool full = conflict || is_unexplained(rate, change);
    bool over = conflict ? fill_fight(rate, change, now_ns) : fill_self(rate, full, now_ns);
    if (full && !conflict)
        over |= fill_common(common, rates, rate, change, now_ns);
    if (conflict)
        note_other_side(rate);
    rate->counted = true;
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

bool field_rates_know_object(const struct field_rates *rates, uint64_t object)
{
    for (size_t i = 0; i < rates->len; i++)
        if (rates->list[i].ref.object == object)
            return true;
    return false;
}

bool field_rates_is_slowed(const struct field_rates *rates, struct field_ref ref)
{
    const struct field_rate *rate = rate_find(rates, ref);
    return rate && rate->pause_ns > 0;
}

void field_rates_expire(struct field_rates *rates, int64_t now_ns)
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
