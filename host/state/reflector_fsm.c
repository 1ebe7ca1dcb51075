/* The decisions of a reflector, as pure functions: the step after the end of a LIST or WATCH, when
 * a list is older than the known version, and how long it waits after a failure. */
#include "state/reflector_fsm.h"

#include "kube/client.h"
#include "kube/object.h"

#define RESTORED_NS      (3 * ML_NS_PER_S)
#define BACKOFF_MAX_NS   (30 * ML_NS_PER_S)
#define BACKOFF_RESET_NS (120 * ML_NS_PER_S)
#define ORDINARY_NS      (800 * ML_NS_PER_MS)
#define GONE_NS          (100 * ML_NS_PER_MS)
#define BRISK_NS         (1 * ML_NS_PER_S)    /* and up to as much again, at random */
#define BRISK_FOR_NS     (60 * ML_NS_PER_S)   /* what a server that starts needs at most */
#define REFUSED_NS       (10 * ML_NS_PER_S)   /* then: a person has to mend it */
#define RETURN_NS        (200 * ML_NS_PER_MS) /* all kinds come back within this */

const char *reflector_end_name(enum reflector_end end)
{
    static const char *const names[] = {
#define REFLECTOR_END_NAME(name, text) [name] = text,
        REFLECTOR_ENDS(REFLECTOR_END_NAME)
#undef REFLECTOR_END_NAME
    };
    return names[end];
}

static const struct reflector_step watch = {.watch = true};

static struct reflector_step step_after_wait(struct reflector_step step)
{
    step.wait = true;
    return step;
}

/* A limit together with a version asks for exactly that version, so only lists at any are paged. */
static struct reflector_step list_step(bool any_version, bool streams)
{
    return (struct reflector_step){
        .stream = streams,
        .any_version = any_version,
        .paged = any_version && !streams,
    };
}

struct reflector_step reflector_first(bool streams)
{
    return list_step(true, streams);
}

/* The step after a streaming list that did not complete. If the server cannot stream, a plain list
 * follows at once. */
static struct reflector_step step_after_stream(const struct reflector_step *last,
                                               enum reflector_end end)
{
    const struct reflector_step again = list_step(true, true);
    if (end == WATCH_GONE) /* tried once at any version, as for a list */
        return last->any_version ? step_after_wait(again) : again;
    if (end == LIST_BEHIND)
        return step_after_wait(again);
    if (end == WATCH_YOUNG)
        return *last;
    if (end == WATCH_THROTTLED || end == WATCH_ENDED || end == WATCH_HASTY || end == WATCH_SHORT)
        return step_after_wait(*last);
    return list_step(last->any_version, false);
}

static struct reflector_step step_after_list(const struct reflector_step *last,
                                             enum reflector_end end, bool streams)
{
    const struct reflector_step again = list_step(true, false);
    /* Tried once at any version; if that is "gone" too, wait, so as not to loop. */
    if (end == LIST_GONE)
        return last->any_version ? step_after_wait(again) : again;
    if (end == LIST_PAGE_GONE) /* in one piece no token can expire */
        return (struct reflector_step){.any_version = true};
    return step_after_wait(list_step(last->any_version || end == LIST_BEHIND, streams));
}

static struct reflector_step step_after_watch(enum reflector_end end, bool streams)
{
    if (end == WATCH_ENDED)
        return watch;
    if (end == WATCH_SILENT || end == WATCH_YOUNG)
        return list_step(false, streams);
    if (end ==
        WATCH_DOUBTED) /* an older version must not be asked for: it may be another history */
        return list_step(true, streams);
    if (end == WATCH_HASTY || end == WATCH_THROTTLED)
        return step_after_wait(watch);
    /* Also for "gone": the server tells every client at the same moment, and they must not all list
     * at once. */
    return step_after_wait(list_step(false, streams));
}

struct reflector_step reflector_next(const struct reflector_step *last, enum reflector_end end,
                                     bool streams)
{
    if (end == LIST_COMPLETE)
        return watch;
    if (last->stream)
        return step_after_stream(last, end);
    return last->watch ? step_after_watch(end, streams) : step_after_list(last, end, streams);
}

/* ---- epochs ---- */

void reflector_epoch_fini(struct reflector_epoch *epoch)
{
    free(epoch->shown);
    *epoch = (struct reflector_epoch){0};
}

enum reflector_age reflector_epoch_check(struct reflector_epoch *epoch, const char *known,
                                         const char *shown, int64_t now_ns)
{
    if (!known || !ml_rv_older(ml_str_of(shown), ml_str_of(known))) {
        reflector_epoch_fini(epoch);
        return AGE_CURRENT;
    }
    if (!epoch->shown) {
        epoch->shown = ml_strdup(shown);
        epoch->since_ns = now_ns;
        return AGE_BEHIND;
    }
    if (now_ns - epoch->since_ns < RESTORED_NS)
        return AGE_BEHIND;
    reflector_epoch_fini(epoch);
    return AGE_RESTORED;
}

/* ---- delays ---- */

int64_t ml_backoff_next(struct ml_backoff *backoff, int64_t first_ns, struct ml_random *random,
                        int64_t now_ns)
{
    if (backoff->delay_ns == 0 || now_ns - backoff->last_ns > BACKOFF_RESET_NS)
        backoff->delay_ns = first_ns;
    int64_t delay_ns = backoff->delay_ns + ml_random_between(random, 0, backoff->delay_ns);
    backoff->delay_ns = ML_MIN(backoff->delay_ns * 2, BACKOFF_MAX_NS);
    backoff->last_ns = now_ns + delay_ns;
    return delay_ns;
}

enum reflector_cause reflector_cause_of(enum reflector_end end, const struct ml_err *err)
{
    if (end == WATCH_GONE || end == LIST_GONE)
        return CAUSE_GONE;
    if (end == WATCH_BEHIND || end == LIST_BEHIND)
        return CAUSE_BEHIND;
    if (!err)
        return CAUSE_OTHER;
    if (ml_client_unanswered(err) || err->http >= 500)
        return CAUSE_AWAY;
    if (err->kind == ML_ENOT_FOUND || err->kind == ML_EFORBIDDEN || err->kind == ML_EUNAUTHORIZED)
        return CAUSE_REFUSED;
    return CAUSE_OTHER;
}

void reflector_delays_end_outage(struct reflector_delays *delays)
{
    delays->backoff[CAUSE_AWAY] = delays->after_answer = (struct ml_backoff){0};
    delays->refused_ns = delays->starting_ns = delays->answered_ns = 0;
}

static int64_t delay_when_refused(struct reflector_delays *delays, const struct ml_err *err,
                                  struct ml_random *random, int64_t now_ns)
{
    if (delays->refused_ns == 0)
        delays->refused_ns = now_ns;
    /* A request for a kind that does not exist is cheap, and the kind may be made at any moment. */
    bool brisk = err->kind == ML_ENOT_FOUND || now_ns - delays->refused_ns < BRISK_FOR_NS;
    return (brisk ? BRISK_NS : REFUSED_NS) + ml_random_between(random, 0, BRISK_NS);
}

/* The pause that the server asked for. An API server that starts asks for 5 s (genericapiserver's
 * notfound handler: "before all known HTTP paths have been installed") and is ready sooner: a 5xx
 * with a Status, which no intermediary sends, is tried each second or two in the first minute. */
static int64_t delay_that_was_asked(struct reflector_delays *delays, const struct ml_err *err,
                                    struct ml_random *random, int64_t now_ns)
{
    if (err->http >= 500 && err->reason[0]) {
        if (delays->starting_ns == 0)
            delays->starting_ns = now_ns;
        if (now_ns - delays->starting_ns < BRISK_FOR_NS)
            return BRISK_NS + ml_random_between(random, 0, BRISK_NS / 2);
    }
    int64_t asked_ns = ML_MIN(err->retry_after_ms, 60000) * ML_NS_PER_MS;
    asked_ns = ML_MAX(asked_ns, ML_NS_PER_S);
    return asked_ns + ml_random_between(random, 0, asked_ns / 2); /* not all at once */
}

int64_t reflector_delay(struct reflector_delays *delays, enum reflector_end end,
                        const struct ml_err *err, struct ml_random *random, int64_t now_ns)
{
    enum reflector_cause cause = reflector_cause_of(end, err);
    /* A version that is gone after an outage is the first: a server that restarts forgets it. */
    if (cause == CAUSE_AWAY)
        delays->backoff[CAUSE_GONE] = (struct ml_backoff){0};
    if (err && err->retry_after_ms >= 0)
        return delay_that_was_asked(delays, err, random, now_ns);
    if (cause == CAUSE_REFUSED)
        return delay_when_refused(delays, err, random, now_ns);
    if (cause == CAUSE_BEHIND)
        return BRISK_NS + ml_random_between(random, 0, BRISK_NS);
    return ml_backoff_next(&delays->backoff[cause], cause == CAUSE_GONE ? GONE_NS : ORDINARY_NS,
                           random, now_ns);
}

int64_t reflector_delay_after_answer(struct reflector_delays *delays, struct ml_random *random,
                                     int64_t now_ns)
{
    if (delays->answered_ns == 0) {
        delays->answered_ns = now_ns;
        return ml_random_between(random, 0, RETURN_NS);
    }
    if (now_ns - delays->answered_ns < BRISK_FOR_NS)
        return ORDINARY_NS + ml_random_between(random, 0, ORDINARY_NS);
    return ml_backoff_next(&delays->after_answer, ORDINARY_NS, random, now_ns);
}
