/* Judges a plan by its numbers. */
#include "operator/guard.h"

/* The numbers of a plan. */
struct counted {
    size_t objects, tried;
    size_t deletes, fails, endless;
    struct ml_plan_change deleted; /* the first one */
    struct ml_plan_note failed, endlessly;
};

static struct counted count(const struct ml_plan *plan)
{
    struct counted counted = {0};
    struct ml_plan_change change;
    struct ml_plan_note note;
    size_t cursor = 0;
    counted.objects = ml_plan_objects(plan, &counted.tried);
    while (ml_plan_next_change(plan, &cursor, &change))
        if (change.verb == ML_PLAN_DELETE && counted.deletes++ == 0)
            counted.deleted = change;
    for (; ml_plan_note(plan, ML_PLAN_FAILS, counted.fails, &note); counted.fails++)
        if (counted.fails == 0)
            counted.failed = note;
    for (; ml_plan_note(plan, ML_PLAN_ENDLESS, counted.endless, &note); counted.endless++)
        if (counted.endless == 0)
            counted.endlessly = note;
    return counted;
}

bool ml_guard_mode_parse(const char *text, enum ml_rollout_mode *out)
{
    bool guarded = strcmp(text, "guarded") == 0;
    if (!guarded && strcmp(text, "immediate") != 0)
        return false;
    *out = guarded ? ML_ROLLOUT_GUARDED : ML_ROLLOUT_IMMEDIATE;
    return true;
}

static int first_set(int declared, int otherwise)
{
    return declared >= 0 ? declared : otherwise;
}

struct ml_rollout ml_guard_rollout(const struct ml_declaration *runs, enum ml_rollout_mode source,
                                   const struct ml_guard_opts *opts)
{
    static const struct ml_rollout says_nothing = {ML_ROLLOUT_UNSET, -1, -1, -1};
    const struct ml_rollout *own = runs ? &runs->rollout : &says_nothing, *all = &opts->rollout;
    struct ml_rollout rollout = {
        .mode = own->mode ? own->mode
                : source  ? source
                          : all->mode,
        .max_deletes = first_set(own->max_deletes, all->max_deletes),
        .max_deletes_percent = first_set(own->max_deletes_percent, all->max_deletes_percent),
        .max_failures_percent = first_set(own->max_failures_percent, all->max_failures_percent),
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
    return ML_GUARD_PASSES;
}
