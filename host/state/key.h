/* L4 state. All that one controller knows about one key, in one record: the key's name, and a part
 * for each file that keeps something about it. A part is made and freed by its own file. Each part
 * that exists holds one reference to the record, and the last part to go frees it: an unknown key
 * takes no memory. The functions of those files find their part by the key's name, in the one map
 * of the controller's records. */
#pragma once

#include "base/map.h"
#include "base/repeat.h"

/* The records of one controller. Zeros: none. */
struct ml_keys {
    struct ml_map by_name;
};

/* Failures of a key, for the log. */
struct ml_key_failures {
    struct ml_repeat reconcile;
    struct ml_repeat slowed; /* the key was slowed, because it wakes itself or fights */
    int64_t slowed_ns;       /* the last time; monotonic */
    char slowed_since[16];   /* the revision that ran when that began */
    bool is_of_script; /* the last one of `reconcile`: neither the server's nor the network's */
};

/* How a key fares under a revision on trial (operator/controller.h). */
struct ml_key_trial {
    unsigned number;                   /* of the trial that it takes part in */
    int64_t generation;                /* of its object, at first */
    bool failed_before, slowed_before; /* under the revision before */
    bool begun;                        /* it ran */
    bool ran;                          /* and that came to an end: it will not be otherwise soon */
    bool fails;
    uint8_t failures; /* in a row */
};

/* Why a key was enqueued: for the log and the journal. */
struct ml_cause {
    /* "start", "requeue", "retry", "changes" (too many to name one), or the kind of the object that
     * changed. Lives as long as the process. NULL: not known. */
    const char *what;
    char *object;  /* that changed, and the field: "default/a: status.phase"; NULL: none */
    int64_t at_ns; /* monotonic; of a delayed one, when it is due */
};

struct ml_key {
    struct ml_keys *keys;
    struct ml_key_queued *queued;   /* workqueue.c: its place, delay, priority and backoff */
    struct ml_key_writes *writes;   /* expectations.c: own writes, waits, staleness */
    struct ml_key_pace *pace;       /* enqueue_filter.c: held changes, how often it changes what */
    struct ml_key_reads *reads;     /* read_sets.c: what its last run read */
    struct ml_key_lookups *lookups; /* read_sets.c: the objects that its last run looked for */
    struct ml_key_series *series;   /* custom_metrics.c: the series that go with its object */
    struct ml_key_failures *failures; /* key.c */
    struct ml_key_trial *trial;       /* key.c; NULL: it takes no part in one */
    struct ml_cause cause;            /* key.c: of its next run */
    unsigned refs;
    uint32_t len;
    char bytes[];
};

/* The record of `name`, or NULL. */
struct ml_key *ml_keys_find(const struct ml_keys *keys, struct ml_str name);
/* Returns one more reference to the record of `name`, which is made when there is none. */
struct ml_key *ml_keys_ref(struct ml_keys *keys, struct ml_str name);
void ml_key_unref(struct ml_key *key);              /* the last reference frees the record */
struct ml_str ml_key_str(const struct ml_key *key); /* the record's */
size_t ml_keys_len(const struct ml_keys *keys);
void ml_keys_fini(struct ml_keys *keys); /* when all parts are freed */

/* Steps through all records. The parts of the one just seen may be freed; none may be made. */
#define ml_keys_each(keys, key)                                                                    \
    for (size_t key##_cursor = 0, key##_once = 1; key##_once; key##_once = 0)                      \
        for (struct ml_key * key; (key = ml_map_next(&(keys)->by_name, &key##_cursor, NULL));)

/* The failures of a key, made when there are none; valid until they are forgotten. */
struct ml_key_failures *ml_keys_failures(struct ml_keys *keys, struct ml_str name);
/* A reconcile of the key was good. Returns the failure that this ends: zeros when there was none.
 */
struct ml_repeat ml_keys_reconciled(struct ml_keys *keys, struct ml_str name);
void ml_keys_forget_failures(struct ml_keys *keys, struct ml_str name);
void ml_keys_forget_all_failures(struct ml_keys *keys);
/* Another revision runs: likewise, but since when keys are slowed stays. */
void ml_keys_renew_failures(struct ml_keys *keys);

/* NULL: it takes no part in a trial. */
struct ml_key_trial *ml_keys_find_trial(const struct ml_keys *keys, struct ml_str name);
/* It takes part from now on. */
struct ml_key_trial *ml_keys_trial(struct ml_keys *keys, struct ml_str name);
void ml_keys_forget_trial(struct ml_keys *keys, struct ml_str name);
void ml_keys_forget_all_trials(struct ml_keys *keys);

/* Takes `cause`, which replaces an earlier one; the earlier of the two times stays. */
void ml_keys_set_cause(struct ml_keys *keys, struct ml_str name, struct ml_cause cause);
/* Moves the cause out; without one, its `what` is NULL. */
struct ml_cause ml_keys_take_cause(struct ml_keys *keys, struct ml_str name);
void ml_keys_forget_cause(struct ml_keys *keys, struct ml_str name);
void ml_keys_forget_all_causes(struct ml_keys *keys);
