/* L6 operator. How often the runs of one key change each field, to find scripts that wake
 * themselves and fights over a field. Part of an entry of enqueue_filter.c, whose header has the
 * rule. */
#pragma once

#include "base/str.h"

#define FIELD_RATES_MAX 16 /* fields of one key; the one with the lowest rate makes room */

/* One field of one object. All hashes; `field` 0: whether the object exists. */
struct field_ref {
    uint64_t object, field, value;
    bool is_list;
};

struct field_rate;

/* All zero: no field was changed. */
struct field_rates {
    struct field_rate *list;
    size_t len;
    int64_t paused_until_ns; /* no run begins before; monotonic */
};

/* Why a run changed a field. Another client's change of the same field counts before all of these.
 */
enum field_cause {
    FIELD_CAUSE_SELF,  /* the run asks to be called again at once */
    FIELD_CAUSE_OTHER, /* it is the status that it returned, or an object came or went */
    FIELD_CAUSE_NOTED, /* what field_rates_explain noted since the last change, or nothing */
};

/* The verdict on one more change. */
struct field_verdict {
    bool slowed;
    bool fight;
    const char *rival; /* the other side of a fight; NULL: not known. Valid until the next call */
    uint64_t rival_rv; /* the version that it wrote last */
};

void field_rates_fini(struct field_rates *rates);

/* A run begins. `due`: it comes at the time that the script asked for, which explains what it
 * changes. */
void field_rates_begin_run(struct field_rates *rates, bool due);

/* Somebody else changed an object: `object`, which belongs to `owners`. That explains what the next
 * run changes in other objects that do not own it. */
void field_rates_explain(struct field_rates *rates, uint64_t object, const uint64_t owners[2],
                         bool is_edit);

/* Somebody else, `author` (NULL: not known; copied), changed this field, at version `rv`. */
void field_rates_contest(struct field_rates *rates, struct field_ref ref, const char *author,
                         uint64_t rv, int64_t now_ns);

/* A run changed this field. `own`: of the object that is reconciled. `by_edit`: somebody's edit
 * ended the last pause; the next one is not longer. Only the first change of each run counts. */
struct field_verdict field_rates_count(struct field_rates *rates, struct field_ref ref,
                                       enum field_cause cause, bool own, bool by_edit,
                                       int64_t now_ns);

bool field_rates_know_object(const struct field_rates *rates, uint64_t object);
bool field_rates_is_slowed(const struct field_rates *rates, struct field_ref ref);

/* Forgets what is long ago. */
void field_rates_expire(struct field_rates *rates, int64_t now_ns);

/* A leaky bucket, emptied at `*empty_ns`: adds `cost_ns`; true: it holds more than twenty of
 * `full_ns`. */
bool field_rates_fill(int64_t *empty_ns, int64_t cost_ns, int64_t full_ns, int64_t now_ns);
