/* L4 state. The structs of an informer. Private to informers.c, which holds the informers by kind
 * and selection, and to informer.c. */
#pragma once

#include "base/repeat.h"
#include "state/informer.h"

/* One reflector and the version it has reached. */
struct informer_scope {
    struct ml_informer *informer;
    char *ns;   /* "": all */
    char *name; /* "": all */
    struct ml_reflector *reflector;
    bool synced;          /* the first list is complete */
    uint64_t seen;        /* everything up to this version is in the store */
    struct ml_heap waits; /* struct ml_seen_wait by the version they wait for */
    uint64_t listing;     /* waits with a lower sequence began before the list was requested */
    struct ml_err trouble;
    struct ml_repeat repeat; /* of the trouble, for the log */
};

struct ml_informer {
    struct ml_informers *informers;
    const struct ml_kind *kind;
    struct ml_selection selection; /* strings owned */
    bool shared;                   /* watches all that the process watches; may be found by kind */
    size_t users;
    struct ml_store *store;
    struct tombstones tombstones;
    struct ml_dict *dict;
    struct ml_discovery_wait *looking; /* checks whether the kind still exists; NULL: no check */
    struct informer_scope *scopes;
    size_t scope_count;
    size_t unsynced;
    uint64_t changes; /* that listeners were notified of */
    struct ml_list listeners;
    struct ml_list *notifying; /* the listener to be notified next; NULL: none is being notified */
    struct ml_listener *replaying; /* is notified of the store's objects; NULL: none, or it left */
    struct ml_list node;           /* in informers->all, or ->ending */
    struct ml_task end;            /* frees it, not on its own stack */
};

struct ml_informers {
    struct ml_informers_opts opts;
    size_t namespace_count; /* of opts.namespaces */
    struct ml_list all;
    struct ml_list ending;  /* given back, freed by the next round of the loop */
    struct ml_list servers; /* struct ml_reflector_server; kept when the informer ends */
    struct ml_metrics_collector collector;
    struct ml_metric_family *objects, *bytes, *poisoned, *lists, *watch_ends;
};

/* informers.c. */
struct ml_reflector_server *informers_server(struct ml_informers *informers,
                                             const struct ml_kind *kind);

/* informer.c. One user; `namespaces` has a name for each scope ("": all); `name` empty: all
 * objects. Joins the informers and starts. `selection` is copied. */
struct ml_informer *informer_new(struct ml_informers *informers, const struct ml_kind *kind,
                                 const struct ml_selection *selection,
                                 const char *const *namespaces, size_t scope_count,
                                 struct ml_str name);
void informer_free(void *informer);
