/* L4 state. The expectations of one controller about its own writes (the name is client-go's). They
 * hold the writes of each key's run until the cache shows them and their echoes have come back, and
 * answer four questions:
 *
 *   may this key run?                  the queue, before each run      ml_expectations_satisfied
 *   must the server be asked first?    likewise                        ml_expectations_verify
 *   is this change my own write?       the enqueue filter              ml_expectations_is_echo
 *   does the cache show what this run
 *   wrote of this kind?                the run, before it reads on     ml_expectations_shown
 *
 * Read your own writes (KEP-5647, per object): a key does not run before the caches show all that
 * its last run wrote, whatever the kind. No timer ends that wait: no run uses a stale cache. The
 * watch usually brings a write within milliseconds. If it has not after ten seconds, the object is
 * read from the server (a consistent read) and put into the cache; the wait ends when the read
 * version is at least as new as the write. The read is repeated after 20 s, 40 s, and so on, up to
 * every five minutes. All waiters for an object share one such read. An answer NotFound ends the
 * wait only when the cache does not hold the object either.
 *
 * An echo is the change that an own write made. Kind and resourceVersion distinguish it from
 * changes by others. It may come before the answer to the write: so the enqueue filter holds the
 * changes for a key until its run has ended.
 *
 * A cached object may also be stale for two other reasons. First, a child was deleted: caches of
 * two kinds do not show the same moment, so the owner may have been deleted before; to create the
 * child again for a deleted owner would do its work twice. Second, a write met another version than
 * the cache's. Then the server is asked before each run whether this very object exists and, unless
 * the cache knows that, is not being deleted, as long as the cache shows the same version, or until
 * a run was good. Follows client-go's rule before an adoption
 * (kubernetes/pkg/controller/controller_ref_manager.go, RecheckDeletionTimestamp).
 *
 * Names are copied. Informers are borrowed; the end of one ends all waits for it. */
#pragma once

#include "kube/client.h"
#include "state/informer.h"
#include "state/key.h"

struct ml_expectations;

/* `keys` outlive them; they keep a part of each record. */
struct ml_expectations *ml_expectations_new(struct ml_keys *keys, struct ml_loop *loop,
                                            struct ml_client *client, struct ml_metrics *metrics,
                                            const char *controller);
const char *ml_expectations_controller(const struct ml_expectations *expectations); /* its name */
/* `ready` is not called after this. Live reads are canceled first. NULL is fine. */
void ml_expectations_free(struct ml_expectations *expectations);

/* ---- a run, from its beginning to its end ---- */

typedef void ml_expectations_ready(void *context, struct ml_str key);

/* True: the caches show all that `key` wrote, and its next run begins; each true needs one
 * ml_expectations_ended. False: `ready` is called once, from the loop, when the caller
 * should ask again; calls in between have no effect. Counts stale_sync_skips_total. */
bool ml_expectations_satisfied(struct ml_expectations *expectations, struct ml_str key,
                               ml_expectations_ready *ready, void *context);

/* The run wrote ns/name, and the server answered with version `rv`. Ignored: ML_RV_OPAQUE, and
 * `informer` NULL, a kind that is not watched: it is always read from the server. */
void ml_expectations_wrote(struct ml_expectations *expectations, struct ml_str key,
                           struct ml_informer *informer, struct ml_str ns, struct ml_str name,
                           uint64_t rv);

/* True when the cache of `informer` shows all that the run of `key` wrote of its kind. If not,
 * ml_expectations_await calls `ready` once, from the loop, when it does, unless canceled. There
 * is one waiter for a key at a time: its run, or before that the queue. */
bool ml_expectations_shown(const struct ml_expectations *expectations, struct ml_str key,
                           const struct ml_informer *informer);
void ml_expectations_await(struct ml_expectations *expectations, struct ml_str key,
                           const struct ml_informer *informer, ml_expectations_ready *ready,
                           void *context);
/* Do the caches show all that was written for any key? */
bool ml_expectations_all_shown(const struct ml_expectations *expectations);
void ml_expectations_cancel(struct ml_expectations *expectations, struct ml_str key);

/* The run has ended. `good`: the object no longer counts as stale, unless a child was deleted
 * during the run. */
void ml_expectations_ended(struct ml_expectations *expectations, struct ml_str key, bool good);

/* ---- echoes ---- */

/* Is the change of an object of `informer` to version `rv` one that the run of `key` made? May be
 * called several times for one change, in the same round of the loop. */
bool ml_expectations_is_echo(struct ml_expectations *expectations, struct ml_str key,
                             const struct ml_informer *informer, uint64_t rv);
/* May the echo of a write of `key` still come? */
bool ml_expectations_echo_pending(const struct ml_expectations *expectations, struct ml_str key);

/* ---- cached objects that may be stale ---- */

void ml_expectations_child_deleted(struct ml_expectations *expectations, struct ml_str key);
/* A write met another version than that of `object`, which is the cache's. */
void ml_expectations_conflict(struct ml_expectations *expectations, const struct ml_object *object);

struct ml_live_read;

/* `err` NULL: the object is there, with this uid, and is being deleted only if the cache says so.
 * ML_ECONFLICT: it is not; else why the read failed. The read is over when it returns. */
typedef void ml_live_read_done(void *context, const struct ml_err *err);

/* Asks the server about `object`, of `kind`, when it may be stale; `done` comes later, from the
 * loop. NULL: it is not stale, and nothing is asked. */
struct ml_live_read *ml_expectations_verify(struct ml_expectations *expectations,
                                            const struct ml_kind *kind,
                                            const struct ml_object *object, ml_live_read_done *done,
                                            void *context);
void ml_live_read_cancel(struct ml_live_read *live_read); /* `done` is not called; NULL is fine */

/* ---- ends ---- */

/* Forgets the key: its object was deleted, or another replica works on it from now on, and changes
 * for the key are not looked at here any more. Keeps everything about a run under way: it still
 * reads its own writes. After its end, and at once if the key `may_come_back`, only writes that the
 * cache does not show yet are kept, until it does: the next run of that key waits for them. */
void ml_expectations_clear(struct ml_expectations *expectations, struct ml_str key,
                           bool may_come_back);
/* Drops all writes to the kind of an informer that is about to be given back. */
void ml_expectations_drop_informer(struct ml_expectations *expectations,
                                   struct ml_informer *informer);
/* The number of keys with any state. */
size_t ml_expectations_len(const struct ml_expectations *expectations);
