/* L4 state. The reflector's decisions, as a pure function: the end of the last LIST or WATCH
 * decides the next step. The rules are client-go's (tools/cache/reflector.go), without the quirks
 * that only cost requests. */
#pragma once

#include "base/clock.h"
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
    X(WATCH_SHORT, "short")   /* within a second and without an event: something is wrong */       \
    X(WATCH_SILENT, "silent") /* for long not even a bookmark came: a server that was restored to  \
                                 an earlier state says nothing to a version it has not reached */  \
    X(WATCH_BEHIND, "behind") /* a bookmark older than what is known */                            \
    X(WATCH_GONE, "gone")     /* 410: our version was compacted away */                            \
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

/* Decides what to do with a consistent list that is older than the known version. A server that is
 * behind shows an old state for a while; it must not be applied, or scripts would see the past. A
 * server that was restored from a backup stays at the old state and continues from there: a new
 * epoch, in which versions begin lower. */
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
 * list. RESTORED: the server has been older for 30 s and moves on from there, or for 10 minutes
 * and stands still. */
enum reflector_age reflector_epoch_check(struct reflector_epoch *epoch, const char *known,
                                         const char *shown, int64_t now_ns);
void reflector_epoch_fini(struct reflector_epoch *epoch);

/* ---- delays ---- */

/* Growing delays between failures: 800 ms doubling to 30 s, each drawn from once to twice that
 * (client-go's reflector); back to the start after two minutes without a failure (kube-rs), and
 * whenever its owner zeroes it, because what had failed works. */
struct ml_backoff {
    int64_t delay_ns; /* of the next failure, before jitter; 0: the first */
    int64_t last_ns;  /* when the last delay ended, monotonic */
};

/* How long to wait after one more failure. */
int64_t ml_backoff_next(struct ml_backoff *backoff, struct ml_random *random, int64_t now_ns);
