/* L4 state. Inside of the informer. Private to informers.c, which keeps informers by kind and
 * selection, and informer.c. */
#pragma once

#include "base/repeat.h"
#include "state/informer.h"
#include "state/store.h"

/* One reflector and the version it has reached. */
struct informer_scope {
    struct ml_informer *informer;
    char *ns;   /* "": all */
    char *name; /* "": all */
    struct ml_reflector *reflector;
    bool synced;          /* the first list is in */
    uint64_t seen;        /* everything up to this version is in the store */
    struct ml_heap waits; /* struct ml_seen_wait by the version they wait for */
    uint64_t listing;     /* waits with a lower sequence were there when the list was asked for */
    struct ml_err trouble;
    struct ml_repeat repeat; /* of it, for the log */
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
    struct ml_discovery_wait *looking; /* asks whether the kind still exists; NULL: not in doubt */
    struct informer_scope *scopes;
    size_t scope_count;
    size_t unsynced;
    uint64_t changes; /* that listeners were notified of */
    struct ml_list listeners;
    struct ml_list *notifying; /* the listener to be notified next; NULL: none is being notified */
    struct ml_listener *replaying; /* is notified of what the store holds; NULL: none, or it left */
    struct ml_list node;           /* in informers->all, or ->ending */
    struct ml_task end;            /* frees it, off its own stack */
};

/* Features that the server lacks for a kind; kept when the informer ends. */
struct informer_server {
    struct ml_list node;
    const struct ml_kind *kind;
    struct ml_reflector_server server;
};

struct ml_informers {
    struct ml_informers_opts opts;
    char **namespaces; /* owned */
    size_t namespace_count;
    struct ml_list all;
    struct ml_list ending;  /* given back, freed by the next round of the loop */
    struct ml_list servers; /* struct informer_server */
    struct ml_metrics_collector collector;
    struct ml_metric_family *objects, *bytes, *poisoned, *lists, *watch_ends;
};

/* informers.c. */
struct ml_reflector_server *informers_server(struct ml_informers *informers,
                                             const struct ml_kind *kind);

/* informer.c. One user; `namespaces` has a name for each scope ("": all); `name` empty: all
 * objects. Joins the informers and starts. */
struct informer_request {
    const struct ml_kind *kind;
    struct ml_selection selection; /* copied */
    char *const *namespaces;
    size_t scope_count;
    struct ml_str name;
};

struct ml_informer *informer_new(struct ml_informers *informers,
                                 const struct informer_request *request);
void informer_free(struct ml_informer *self);
