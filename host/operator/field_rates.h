/* L6 operator. How often the runs of one key change each field, to find scripts that wake
 * themselves and fights over a field. Part of an entry of enqueue_filter.c, whose header has the
 * rule. */
#pragma once

#include "base/str.h"

#define FIELD_RATES_MAX   16 /* fields of one key; the one with the lowest rate makes room */
#define COMMON_RATES_MAX  16 /* fields of one controller; the one changed longest ago makes room */
#define COMMON_VALUES_MAX 64 /* values of one of these that are remembered, as hashes */

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
    bool counted;            /* this run, among those of other keys (struct common_rates) */
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

void field_rates_fini(struct field_rates *rates);

/* A run begins. `due`: it comes at the time that the script asked for, which explains what it
 * changes. */
void field_rates_begin_run(struct field_rates *rates, bool due);

/* Somebody else changed an object: `object`, which belongs to `owners`. That explains what the next
 * run changes in other objects that do not own it. */
void field_rates_explain(struct field_rates *rates, uint64_t object, const uint64_t owners[2],
                         bool is_edit);

/* Somebody else, `author` (NULL: not known; copied), changed this field, at version `rv`. */
void field_rates_conflict(struct field_rates *rates, struct field_ref ref, const char *author,
                          uint64_t rv, int64_t now_ns);

/* A run changed a field. Only the first change of each run counts. `common`: of the controller. */
struct field_verdict field_rates_count(struct field_rates *rates, struct common_rates *common,
                                       const struct field_change *change, int64_t now_ns);

bool field_rates_know_object(const struct field_rates *rates, uint64_t object);
bool field_rates_is_slowed(const struct field_rates *rates, struct field_ref ref);

/* Forgets what is long ago. */
void field_rates_expire(struct field_rates *rates, int64_t now_ns);

/* A leaky bucket, empty at `*empty_ns`: adds `cost_ns`; true: it holds more than `size_ns`. */
bool field_rates_fill(int64_t *empty_ns, int64_t cost_ns, int64_t size_ns, int64_t now_ns);
