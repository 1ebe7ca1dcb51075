/* L6 operator. Inside of a generation: generation.c has its way to work and to its end,
 * generation_change.c says which keys a change concerns. Private to these. */
#pragma once

#include "operator/generation.h"

struct watched_kind {
    struct ml_generation *generation;
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

struct ml_generation {
    uint32_t refs;
    struct ml_gate *gate;   /* once live */
    struct ml_payer *payer; /* likewise */
    struct ml_list unmapped;
    size_t unmapped_count;
    bool concerns_all; /* there were too many of those */
    struct ml_turn map_turn;
    struct ml_cluster *cluster;
    struct ml_script *script;
    const struct ml_declaration *declaration;
    const struct ml_generation_handler *handler;
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

/* generation_change.c: the listener of a watched kind, which is its context. */
void generation_change_init(struct ml_generation *generation);
void generation_change_fini(struct ml_generation *generation); /* changes that wait are dropped */
void generation_on_change(void *watched, struct ml_informer *informer, struct ml_object *old,
                          struct ml_object *new);
