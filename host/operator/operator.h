/* L6 operator. An operator on a transport: client, caches, events, scripts. The API
 * server and the time are those of the transport and the loop, so the same struct runs against a
 * cluster, in `moonloop dev`, and in a test's virtual time.
 *
 *   start   starts each script when its caches are synced; reconciles begin with an election once
 *           it is won, in a shard group once the group is joined. A process asks for the Lease, or
 *           joins, when its first script is live: another one may have more to run
 *   stop    in the steps of shutdown.h */
#pragma once

#include "operator/scripts.h"
#include "state/lease.h"

struct ml_operator;

/* For one of several replicas: either the holder of a Lease reconciles (state/election.h), or all
 * share the keys (state/shard.h). Copied; what it points to is borrowed until ml_operator_free. */
struct ml_replica_opts {
    struct ml_transport *transport; /* with its own connection */
    const char *ns, *name;          /* of the Lease, or of the group */
    const char *identity;           /* of this process; new after a restart */
    struct ml_lease_times times;
    bool shares; /* all replicas share the keys; else one leads */
    /* The Lease is lost: no write is sent any more, and the process has to end. Must not free the
     * operator. */
    void (*lost)(void *context, const struct ml_err *err);
    void *context;
};

/* Borrowed until ml_operator_free, except `instance`, which is copied. */
struct ml_operator_opts {
    struct ml_loop *loop;
    struct ml_transport *transport;
    struct ml_random *random;
    struct ml_log *log;
    struct ml_metrics *metrics;
    const char *const *namespaces; /* NULL-terminated; empty: all */
    bool watch_list;               /* lists are requested as streams */
    const char *instance;          /* this process, in Events: "moonloop-HOST-PID" */
    bool virtual_time;             /* the CPU time of scripts has no effect */
    struct ml_script_limits limits;
    struct ml_crash_marker *marker;        /* as ml_scripts_new; NULL: none is kept */
    const struct ml_replica_opts *replica; /* NULL: the only one */
    struct ml_outbound *outbound;          /* of ctx.http; NULL: scripts ask nobody */
    struct ml_guard_opts guard;
    struct ml_checked_texts *checked; /* text_check.h; NULL: each text is analyzed */
    struct ml_coverage *coverage;     /* script/script.h; NULL: nobody asks */
    struct ml_tester *tester;         /* own_tests.h; NULL: tests of scripts are not run */
};

struct ml_operator *ml_operator_new(const struct ml_operator_opts *opts);
/* Cancels what is running; NULL is fine. Free the transport after it. */
void ml_operator_free(struct ml_operator *self);

/* Borrowed. Add its sources before the start. */
struct ml_scripts *ml_operator_scripts(struct ml_operator *self);
void ml_operator_start(struct ml_operator *self);

/* Ends reconciles, sends Events and gives the Lease back, all within `drain_ns`; then calls `done`
 * once, from the loop. A second call ends it in the next round, ml_operator_free at once. */
void ml_operator_stop(struct ml_operator *self, int64_t drain_ns, void (*done)(void *context),
                      void *context);

/* `changed` is called when a version of a script has gone live: the webhooks, and the controllers
 * that answer them, may have changed. NULL: nobody is told. */
void ml_operator_on_live(struct ml_operator *operator, void (*changed)(void *context),
                         void *context);

/* As ml_scripts_ready. */
bool ml_operator_ready(const struct ml_operator *self, struct ml_buf *why);

/* May others rely on this replica: send it webhooks, or end the one that it replaces? Until it has
 * said so once, each of its scripts has to work, but for those whose kind is not installed; from
 * then on nothing that is wrong with a script counts. The replica that leads needs no more than one
 * script: there is no other. Appends what is wrong to `why` in any case
 * (docs/decisions/0028). */
bool ml_operator_serves(struct ml_operator *self, struct ml_buf *why);

/* Does this process write, as the one that leads, or as one that shares the keys, or alone? */
bool ml_operator_leads(const struct ml_operator *self);

struct ml_services *ml_operator_services(struct ml_operator *self);   /* borrowed */
struct ml_client *ml_operator_client(struct ml_operator *self);       /* borrowed */
struct ml_informers *ml_operator_informers(struct ml_operator *self); /* borrowed */
