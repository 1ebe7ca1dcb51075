/* Judges a plan by its numbers, and a revision on trial by what its runs do. */
#include "operator/guard.h"

#define GROUPS_MAX 12 /* that are told */

/* The changes of one verb to one kind. */
struct group {
    size_t count;
    struct ml_plan_change first;
};

/* The numbers of a plan. */
struct counted {
    size_t objects, tried;
    size_t deletes, fails, unknown, endless;
    struct ml_plan_change deleted; /* the first one */
    struct ml_plan_note failed, unanswered, endlessly;
    struct group groups[GROUPS_MAX];
    size_t group_count, ungrouped;
};

static void count_in_group(struct counted *counted, const struct ml_plan_change *change)
{
    size_t i = 0;
    while (i < counted->group_count && (counted->groups[i].first.verb != change->verb ||
                                        counted->groups[i].first.kind != change->kind))
        i++;
    if (i == GROUPS_MAX) {
        counted->ungrouped++;
        return;
    }
    if (i == counted->group_count)
        counted->groups[counted->group_count++].first = *change;
    counted->groups[i].count++;
}

/* Returns how many there are; `first` has the first one. */
static size_t count_notes(const struct ml_plan *plan, enum ml_plan_notes which,
                          struct ml_plan_note *first)
{
    struct ml_plan_note note;
    size_t count = 0;
    for (; ml_plan_note(plan, which, count, &note); count++)
        if (count == 0)
            *first = note;
    return count;
}

static struct counted count(const struct ml_plan *plan)
{
    struct counted counted = {0};
    struct ml_plan_change change;
    size_t cursor = 0;
    counted.objects = ml_plan_objects(plan, &counted.tried);
    while (ml_plan_next_change(plan, &cursor, &change)) {
        count_in_group(&counted, &change);
        if (change.verb == ML_PLAN_DELETE && counted.deletes++ == 0)
            counted.deleted = change;
    }
    counted.fails = count_notes(plan, ML_PLAN_FAILS, &counted.failed);
    counted.unknown = count_notes(plan, ML_PLAN_UNKNOWN, &counted.unanswered);
    counted.endless = count_notes(plan, ML_PLAN_ENDLESS, &counted.endlessly);
    return counted;
}

static int first_set(int declared, int otherwise)
{
    return declared >= 0 ? declared : otherwise;
}

struct ml_rollout ml_guard_rollout(const struct ml_declaration *runs, enum ml_rollout_mode source,
                                   const struct ml_guard_opts *opts)
{
    static const struct ml_rollout says_nothing = {ML_ROLLOUT_UNSET, -1, -1, -1, -1};
    const struct ml_rollout *own = runs ? &runs->rollout : &says_nothing, *all = &opts->rollout;
    struct ml_rollout rollout = {
        .mode = own->mode ? own->mode
                : source  ? source
                          : all->mode,
        .max_deletes = first_set(own->max_deletes, all->max_deletes),
        .max_deletes_percent = first_set(own->max_deletes_percent, all->max_deletes_percent),
        .max_failures_percent = first_set(own->max_failures_percent, all->max_failures_percent),
        .settle_seconds = first_set(own->settle_seconds, all->settle_seconds),
    };
    if (all->mode == ML_ROLLOUT_UNSET)
        rollout.mode = ML_ROLLOUT_IMMEDIATE;
    return rollout;
}

/* Is it more than so many in a hundred? */
static bool exceeds(size_t part, size_t whole, int percent)
{
    return part * 100 > whole * (size_t)percent;
}

/* Of a sample: as many as there would be of all. */
static size_t of_all(const struct counted *counted, size_t number)
{
    return counted->tried > 0 ? number * counted->objects / counted->tried : number;
}

/* "a.lua: revision 3f2a91bc", and of a sample its size. */
static void begin_words(const struct ml_plan *plan, const struct counted *counted,
                        struct ml_buf *words)
{
    const struct ml_declaration *declaration = ml_plan_declaration(plan);
    ml_buf_printf(words, "%s: revision %s ", declaration->file, declaration->revision);
    if (counted->tried < counted->objects)
        ml_buf_printf(words, "(tried for %zu of %zu objects) ", counted->tried, counted->objects);
}

/* A field of the first change of a group; the others are counted. */
struct told_field {
    struct ml_buf *words;
    size_t count;
};

static void tell_field(void *context, struct ml_str field, struct ml_str from, struct ml_str to)
{
    struct told_field *told = context;
    if (told->count++ > 0)
        return;
    ml_buf_puts(told->words, ": ");
    ml_plan_append_difference(told->words, field, from, to);
}

/* "change 75 Service (the first: default/s02: spec.type: "ClusterIP" → nothing)" */
static void append_group(struct ml_buf *words, const struct group *group)
{
    const struct ml_plan_change *first = &group->first;
    struct told_field told = {words, 0};
    ml_buf_printf(words, "%s %zu %s (the first: " ML_STR_FMT "%s%s", ml_plan_verbs[first->verb],
                  group->count, first->kind->kind, ML_STR_ARG(first->key), first->why ? ": " : "",
                  first->why ? first->why : "");
    if (first->verb == ML_PLAN_CHANGE)
        ml_plan_differences(first, tell_field, &told);
    if (told.count > 1)
        ml_buf_printf(words, " and %zu more fields", told.count - 1);
    ml_buf_puts(words, ")");
}

/* The worst first. */
static void append_changes(struct ml_buf *words, const struct counted *counted)
{
    static const enum ml_plan_verb order[] = {ML_PLAN_DELETE, ML_PLAN_CHANGE, ML_PLAN_CREATE};
    const char *before = "would ";
    if (counted->group_count == 0)
        ml_buf_puts(words, "would change nothing that is known");
    for (size_t i = 0; i < ML_COUNT(order); i++)
        for (size_t k = 0; k < counted->group_count; k++) {
            if (counted->groups[k].first.verb != order[i])
                continue;
            ml_buf_puts(words, before);
            append_group(words, &counted->groups[k]);
            before = ", ";
        }
    if (counted->ungrouped > 0)
        ml_buf_printf(words, ", and %zu more changes", counted->ungrouped);
}

static void append_notes(struct ml_buf *words, const char *what, size_t count, size_t tried,
                         const struct ml_plan_note *first)
{
    if (count > 0)
        ml_buf_printf(words, "; %s for %zu of %zu objects (the first: %s: %s)", what, count, tried,
                      first->key, first->text);
}

/* Is it certain that the revision does what the one before does? */
static bool changes_nothing(const struct counted *counted)
{
    return counted->group_count == 0 && counted->fails == 0 && counted->unknown == 0 &&
           counted->tried == counted->objects;
}

static enum ml_guard_verdict hold(const struct ml_plan *plan, struct ml_buf *words,
                                  struct ml_err *err)
{
    ml_buf_printf(words,
                  "; edit the script, or let it go by the annotation " ML_APPROVE_ANNOTATION ": %s",
                  ml_plan_declaration(plan)->revision);
    ml_err_set(err, ML_ESCRIPT, "%s", ml_buf_cstr(words));
    return ML_GUARD_HOLDS;
}

enum ml_guard_verdict ml_guard_judge(const struct ml_plan *plan, const struct ml_rollout *limits,
                                     struct ml_err *err)
{
    const struct counted counted = count(plan);
    size_t owned = ml_plan_owned(plan);
    ML_AUTO(ml_buf_fini) struct ml_buf words = ML_BUF_INIT;
    begin_words(plan, &counted, &words);
    if (counted.tried >= ML_GUARD_FAILS_OF &&
        exceeds(counted.fails, counted.tried, limits->max_failures_percent)) {
        ml_buf_printf(&words,
                      "fails for %zu of %zu objects, for which the running one does not; the "
                      "first: %s: %s",
                      counted.fails, counted.tried, counted.failed.key, counted.failed.text);
        ml_err_set(err, ML_ESCRIPT, "%s", ml_buf_cstr(&words));
        return ML_GUARD_REFUSES;
    }
    if (of_all(&counted, counted.deletes) > (size_t)limits->max_deletes &&
        exceeds(counted.deletes, owned, limits->max_deletes_percent)) {
        const struct ml_plan_change *first = &counted.deleted;
        ml_buf_printf(
            &words, "would delete %zu objects (its own have %zu); the first: %s " ML_STR_FMT "%s%s",
            counted.deletes, owned, first->kind->kind, ML_STR_ARG(first->key),
            first->why ? ": " : "", first->why ? first->why : "");
        return hold(plan, &words, err);
    }
    if (counted.endless > 0) {
        ml_buf_printf(&words,
                      "would write without end for %zu of %zu objects: each run changes what the "
                      "one before has made; the first: %s",
                      counted.endless, counted.tried, counted.endlessly.key);
        return hold(plan, &words, err);
    }
    if (limits->mode == ML_ROLLOUT_PLAN && !changes_nothing(&counted)) {
        append_changes(&words, &counted);
        append_notes(&words, "fails", counted.fails, counted.tried, &counted.failed);
        append_notes(&words, "is not known", counted.unknown, counted.tried, &counted.unanswered);
        return hold(plan, &words, err);
    }
    return ML_GUARD_PASSES;
}

/* ---- the brake ---- */

struct ml_brake ml_brake_of(const struct ml_plan *plan, const struct ml_rollout *limits)
{
    size_t tried, objects = ml_plan_objects(plan, &tried), owned = ml_plan_owned(plan);
    return (struct ml_brake){
        .limits = *limits,
        .objects = objects,
        .owned = tried > 0 ? owned * objects / tried : owned,
    };
}

void ml_brake_stop(const struct ml_brake *brake, const char *why, struct ml_err *err)
{
    const struct ml_declaration *declaration = brake->declaration;
    ml_err_set(err, ML_ESCRIPT,
               "%s: revision %s was stopped, when it worked for %zu of %zu objects: %s; edit the "
               "script, or let it go by the annotation " ML_APPROVE_ANNOTATION ": %s",
               declaration->file, declaration->revision, brake->tried, brake->objects, why,
               declaration->revision);
}

/* As many as the revision before would have deleted in these runs, rounded up. */
static size_t expected_deletes(const struct ml_brake *brake)
{
    size_t runs = brake->runs_before;
    return runs > 0 ? (brake->deletes_before * brake->runs + runs - 1) / runs : 0;
}

bool ml_brake_lets_delete(const struct ml_brake *brake, struct ml_err *err)
{
    size_t deletes = brake->deletes + 1, expected = expected_deletes(brake);
    size_t excess = deletes > expected ? deletes - expected : 0;
    size_t projected = brake->tried > 0 ? excess * brake->objects / brake->tried : excess;
    if (projected <= (size_t)brake->limits.max_deletes ||
        !exceeds(projected, brake->owned, brake->limits.max_deletes_percent))
        return true;
    ML_AUTO_FREE char *why = ml_asprintf(
        "it was about to delete object number %zu of %zu that its own had", deletes, brake->owned);
    ml_brake_stop(brake, why, err);
    return false;
}

bool ml_brake_lets_fail(const struct ml_brake *brake, struct ml_str key, const char *why,
                        struct ml_err *err)
{
    bool is_canary = brake->limits.mode == ML_ROLLOUT_CANARY;
    if (brake->fails == 0 ||
        (!is_canary && (brake->tried < ML_GUARD_FAILS_OF ||
                        !exceeds(brake->fails, brake->tried, brake->limits.max_failures_percent))))
        return true;
    ML_AUTO_FREE char *words = ml_asprintf(
        "it fails for %zu of them, for which the version before did not; the last: " ML_STR_FMT
        ": %s",
        brake->fails, ML_STR_ARG(key), why);
    ml_brake_stop(brake, words, err);
    return false;
}
