/* L4 state. One kind, watched once for the whole process: reflectors (one for each namespace) fill
 * a store, listeners are notified of changes, and waiters are released when the cache shows a
 * write. */
#pragma once

#include "base/heap.h"
#include "base/list.h"
#include "kube/discovery.h"
#include "state/reflector.h"
#include "state/store.h"

/* So many deleted objects are remembered, the last ones, so that a late or repeated event does not
 * bring one back. Servers do not repeat events, so older ones do not matter. */
#define ML_TOMBSTONES_MAX 256

struct informer_scope;
struct ml_informer;
struct ml_informers;

struct ml_informers_opts {
    struct ml_client *client;
    struct ml_loop *loop;
    struct ml_random *random;
    struct ml_log *log; /* list and watch errors, unreadable objects */
    struct ml_metrics *metrics;
    const char *const *namespaces;  /* NULL-terminated, borrowed; NULL or empty: all */
    struct ml_discovery *discovery; /* asked whether a kind that answers 404 no longer exists; NULL:
                                       never assume so */
    bool streams;                   /* lists are asked for as streams (WatchList) */
    /* Of a plan: each informer begins as a copy of the one of this set, which must be synced, and
     * watches nothing. It shows what it is told (ml_informer_learn, ml_informer_forget). NULL: the
     * server is watched. */
    struct ml_informers *copied;
};

/* The informers of a process, one for each kind and selection, shared by reference count. */
struct ml_informers *ml_informers_new(const struct ml_informers_opts *opts);
void ml_informers_free(struct ml_informers *informers);

/* The namespaces that it watches, as in its options; NULL: all. */
const char *const *ml_informers_namespaces(const struct ml_informers *informers);

/* The informer of what is selected of a kind, started by the first caller. Each caller gives it
 * back with ml_informer_put. A cluster-scoped kind is watched as a whole, whatever the namespaces.
 * `selection` is copied; NULL: all of it. */
struct ml_informer *ml_informers_get(struct ml_informers *informers, const struct ml_kind *kind,
                                     const struct ml_selection *selection);
/* One namespace only, or one single object (name non-empty), as an informer of its own. */
struct ml_informer *ml_informers_get_scoped(struct ml_informers *informers,
                                            const struct ml_kind *kind, struct ml_str ns,
                                            struct ml_str name);
/* Calls `changed` from the loop when one object was found, changed or deleted, and once when it is
 * known whether there is one. Its metadata alone is watched, so that no Secret is kept. Needs the
 * rights to list and watch that object. Free it before the informers. */
struct ml_object_watch *ml_object_watch_new(struct ml_informers *informers,
                                            const struct ml_kind *kind, struct ml_str ns,
                                            struct ml_str name, void (*changed)(void *context),
                                            void *context);
void ml_object_watch_free(struct ml_object_watch *watch); /* NULL is fine */
void ml_informer_put(struct ml_informer *informer); /* stops with the last one; NULL is fine */
size_t ml_informer_users(const struct ml_informer *informer); /* references held */

/* Steps through all informers; start with NULL. */
struct ml_informer *ml_informers_next(struct ml_informers *informers, struct ml_informer *informer);

const struct ml_kind *ml_informer_kind(const struct ml_informer *informer);
/* The number of changes that its listeners were notified of, including the current one. */
uint64_t ml_informer_changes(const struct ml_informer *informer);
const struct ml_store *ml_informer_store(const struct ml_informer *informer);
bool ml_informer_synced(const struct ml_informer *informer); /* all first lists are complete */
/* The last error of its reflectors, or NULL when they work. */
const struct ml_err *ml_informer_trouble(const struct ml_informer *informer);
/* True when the list or watch is forbidden (403), the kind does not exist (404), or the server
 * shows an old state. The cache is then out of date. */
bool ml_informer_is_degraded(const struct ml_informer *informer);

/* Embed it; both are called from the loop, after the store has changed. */
struct ml_listener {
    /* old NULL: added; new NULL: deleted (old is its last known state; a tombstone when it
     * was deleted while we were not watching). A changed uid comes as delete, then add. An
     * unchanged resourceVersion is not reported. Borrowed. */
    void (*change)(void *context, struct ml_informer *informer, struct ml_object *old,
                   struct ml_object *new);
    /* Once, when the informer is synced (later, from the loop, also if it already is). */
    void (*synced)(void *context, struct ml_informer *informer);
    /* List and watch work again, and listeners were notified of the missed changes. May be NULL. */
    void (*mended)(void *context, struct ml_informer *informer);
    void *context;
    /* Private. */
    struct ml_list node;
    struct ml_task replay;
    struct ml_informer *informer; /* NULL: does not listen */
    bool caught_up;               /* the replay is over: changes are notified */
};

/* The listener is first notified of all objects in the store, as additions, from the loop. */
void ml_informer_listen(struct ml_informer *informer, struct ml_listener *listener);
void ml_informer_unlisten(struct ml_listener *listener);

/* Puts an object that was read from the server into the store, as if the watch had brought it.
 * Ignores one that cannot be read or is not newer than the cached one. Does not change the version
 * that the watch has reached. */
void ml_informer_learn(struct ml_informer *informer, struct ml_str json);
/* Of a copy: does it have all objects of its kind in that namespace, whole? */
bool ml_informer_has_all(const struct ml_informer *informer, struct ml_str ns);
/* Of a copy: the object was deleted. */
void ml_informer_forget(struct ml_informer *informer, struct ml_str key);

/* True when the cache shows a write in namespace `ns` that the server answered with resourceVersion
 * `rv`: the reflector of that namespace got that far, or listed afterwards. Also true for a version
 * that is not a number, and for a namespace that is not watched. */
bool ml_informer_seen(const struct ml_informer *informer, struct ml_str ns, uint64_t rv);

/* Calls `ready` once, from the loop, as soon as ml_informer_seen is true. Embed it. There is no
 * time-out, on purpose: no run may use a stale cache. A consistent list that was started after the
 * wait ends it too, whatever its version (etcd may have been restored). So does the end of the
 * informer, because its cache is not read any more. */
struct ml_seen_wait {
    /* Private. */
    struct informer_scope *scope;
    struct ml_heap_node node; /* in its scope's waits */
    struct ml_task task;      /* calls `ready` */
};

void ml_seen_wait_start(struct ml_seen_wait *wait, struct ml_informer *informer, struct ml_str ns,
                        uint64_t rv, void (*ready)(void *context), void *context);
void ml_seen_wait_cancel(struct ml_seen_wait *wait); /* fine on a zeroed or finished one */
/* The wait is over: `ready` was called, or is about to be. */
bool ml_seen_wait_over(const struct ml_seen_wait *wait);
