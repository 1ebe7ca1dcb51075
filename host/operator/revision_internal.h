/* L6 operator. Inside of a generation: revision.c has its way to work and to its end,
 * revision_change.c says which keys a change concerns. Private to these. */
#pragma once

#include "operator/revision.h"

struct watched_kind {
    struct ml_revision *revision;
    const struct ml_script_kind *declared;
    struct ml_discovery_wait *resolving;
    struct ml_timer retry;
    struct ml_listener listener;
    struct ml_err last; /* why it cannot be had, as told last */
};

/* A change that the watch function of its kind was not asked about yet. */
struct unmapped {
    struct watched_kind *watched;
    struct ml_object *old, *new; /* a reference to each; one may be NULL */
    struct ml_list node;
};

struct ml_revision {
    uint32_t refs;
    struct ml_expectations *expectations; /* once live */
    struct ml_payer *payer;               /* likewise */
    struct ml_list unmapped;
    size_t unmapped_count;
    bool concerns_all; /* there were too many of those */
    struct ml_turn map_turn;
    struct ml_cluster *cluster;
    struct ml_script *script;
    const struct ml_declaration *declaration;
    const struct ml_revision_handler *handler;
    void *context;

    struct watched_kind *watched; /* one for each declared kind, in its order */
    const struct ml_kind **kinds;
    struct ml_informer **informers;
    size_t unresolved;
    size_t unsynced;
    size_t primary; /* index of the reconciled kind */
    bool ready;
    bool live;
    struct ml_task ready_task;
};

/* revision_change.c: the listener of a watched kind, which is its context. */
void revision_change_init(struct ml_revision *revision);
void revision_change_fini(struct ml_revision *revision); /* changes that wait are dropped */
void revision_on_change(void *watched, struct ml_informer *informer, struct ml_object *old,
                        struct ml_object *new);
