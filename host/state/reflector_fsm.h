/* L4 state. The reflector's decisions, as a pure function: the end of the last LIST or WATCH
 * decides the next step. The rules are client-go's (tools/cache/reflector.go), without the quirks
 * that only cost requests. */
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "base/random.h"
#include "base/str.h"

/* Name in C, name in metrics. */
#define REFLECTOR_ENDS(X)                                                                          \
    X(LIST_COMPLETE, "complete")                                                                   \
    X(LIST_GONE, "gone")           /* first page: 410, or a version the server has not reached */  \
    X(LIST_PAGE_GONE, "page_gone") /* a later page: the continue token expired */                  \
    X(LIST_BEHIND, "behind")       /* complete, but older than what is known: not applied */       \
    X(LIST_FAILED, "list_failed")                                                                  \
    X(STREAM_REFUSED, "stream_refused") /* the server does no streaming lists of this resource */  \
    X(WATCH_ENDED, "ended")             /* normally: time-out, cut, idle */                        \
    X(WATCH_HASTY, "flapping")          /* the same within a second, as several before it */       \
    X(WATCH_YOUNG, "young")   /* within a second and without an event, as the first: a change of   \
                                 a CRD ends each watch of its kind, however young */               \
    X(WATCH_SHORT, "short")   /* the same once more: something is wrong */                         \
    X(WATCH_SILENT, "silent") /* for long not even a bookmark came: a server that was restored to  \
                                 an earlier state is silent to a version that lies ahead of it */  \
    X(WATCH_DOUBTED, "doubted") /* before a watch is resumed: the server may have been restored */ \
    X(WATCH_BEHIND, "behind")   /* a bookmark older than what is known */                          \
    X(WATCH_GONE, "gone")       /* 410: our version was compacted away */                          \
    X(WATCH_THROTTLED, "throttled") /* refused for now: the version is still good */               \
    X(WATCH_FAILED, "failed")

enum reflector_end {
#define REFLECTOR_END(name, text) name,
    REFLECTOR_ENDS(REFLECTOR_END)
#undef REFLECTOR_END
};

const char *reflector_end_name(enum reflector_end end);

struct reflector_step {
    bool watch;       /* else LIST */
    bool stream;      /* LIST as a stream: a watch that begins with the existing objects */
    bool any_version; /* LIST: at the most recent version instead of the last one seen */
    bool paged;       /* LIST: in pages; only legal at the most recent version, since a limit
                         together with a version asks for exactly that version */
    bool wait;        /* after a backoff, or after the server's Retry-After */
};

/* `last` is the step that ended with `end`; `streams`: list as a stream if possible. A reflector
 * that has seen no version always lists with any_version. */
struct reflector_step reflector_next(const struct reflector_step *last, enum reflector_end end,
                                     bool streams);

/* The first step. The most recent version, unlike client-go's "any cached one": after a
 * restart we must not see less than our predecessor wrote. */
struct reflector_step reflector_first(bool streams);

/* ---- epochs ---- */

/* Decides what to do with a consistent list that is older than the known version. A list at the
 * most recent version is a quorum read, so a store that shows an older one was restored from a
 * backup and continues from there: a new epoch, in which versions begin lower. One such answer may
 * come from another server (a load balancer that is set up anew), so a second one has to confirm it
 * (docs/decisions/0027). */
struct reflector_epoch {
    char *shown;      /* the first older version that was shown; NULL: none */
    int64_t since_ns; /* when, monotonic */
};

enum reflector_age {
    AGE_CURRENT,
    AGE_BEHIND,   /* not to be applied */
    AGE_RESTORED, /* to be applied: a new epoch begins */
};

/* `known` is the version up to which everything was reported, or NULL; `shown` that of a complete
 * list at the most recent version. RESTORED: the server has been older for 3 s. */
enum reflector_age reflector_epoch_check(struct reflector_epoch *epoch, const char *known,
                                         const char *shown, int64_t now_ns);
void reflector_epoch_fini(struct reflector_epoch *epoch);

/* ---- delays ---- */

/* Growing delays between failures: `first_ns`, doubling to 30 s, each drawn from once to twice that
 * (client-go's reflector); back to the start after two minutes without a failure (kube-rs), and
 * whenever its owner zeroes it, because what had failed works. */
struct ml_backoff {
    int64_t delay_ns; /* of the next failure, before jitter; 0: the first */
    int64_t last_ns;  /* when the last delay ended, monotonic */
};

/* How long to wait after one more failure. */
int64_t ml_backoff_next(struct ml_backoff *backoff, int64_t first_ns, struct ml_random *random,
                        int64_t now_ns);

/* Why a reflector waits. Each cause has its own backoff: how long the server was away says nothing
 * about a version that was compacted. */
enum reflector_cause {
    CAUSE_GONE,    /* the version is no longer there; a list mends that */
    CAUSE_BEHIND,  /* the server shows an old state */
    CAUSE_REFUSED, /* 401, 403, 404: also what a server that starts answers for a while */
    CAUSE_AWAY,    /* no answer, or a 5xx: the server may be down */
    CAUSE_OTHER,
    REFLECTOR_CAUSES
};

enum reflector_cause reflector_cause_of(enum reflector_end end, const struct ml_err *err);

/* Zeroed: nothing has failed since the watch worked. */
struct reflector_delays {
    struct ml_backoff backoff[REFLECTOR_CAUSES];
    struct ml_backoff after_answer;
    int64_t refused_ns;  /* monotonic: since when it is refused; 0: it is not */
    int64_t starting_ns; /* monotonic: when the server first said with a 5xx to come again; or 0 */
    int64_t answered_ns; /* monotonic: when the server answered somebody again; 0: not yet */
};

/* A list or an event came: an outage is over, and the next one begins anew. How often a version was
 * gone still counts, since a list comes after each. */
void reflector_delays_end_outage(struct reflector_delays *delays);

/* How long to wait before the next step, which `err` made necessary. */
int64_t reflector_delay(struct reflector_delays *delays, enum reflector_end end,
                        const struct ml_err *err, struct ml_random *random, int64_t now_ns);
/* The same when the server was away and now answers somebody: some paths may never work again, so
 * the delay grows, but not in the first minute. */
int64_t reflector_delay_after_answer(struct reflector_delays *delays, struct ml_random *random,
                                     int64_t now_ns);
