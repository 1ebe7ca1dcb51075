/* L6 operator. One version of a controller script. First its kinds are looked up and its watches
 * synced; only then is it ready to take over. Once live, it turns changes into keys.
 *
 * The indexes of the script are complete before it is ready, too. Once retired, the revision goes
 * on to keep them up to date, for the runs that still use it.
 *
 *   new ──> resolving ──> syncing ──> ready ── live ──> live ── retire ──> retired */
#pragma once

#include "kube/unkept.h"
#include "operator/change.h"
#include "script/script.h"
#include "state/writer.h"

struct ml_revision;

struct ml_revision_handler {
    /* Everything it watches is in the cache. Once, later from the loop. */
    void (*ready)(void *context, struct ml_revision *revision);
    /* The listener of its informers: passes each change on to ml_revision_changed. */
    void (*change)(void *watched, struct ml_informer *informer, struct ml_object *old,
                   struct ml_object *new);
    /* Once live: a change that waited for its watch function concerns these keys, as in struct
     * ml_affected. */
    void (*mapped)(void *context, struct ml_revision *revision, const struct ml_buf *keys,
                   const struct ml_change *change);
    /* Once live: changes concern keys that nobody knows, so it may be any. */
    void (*concerns_all)(void *context);
    /* Once live: the reconciled kind can be watched again. */
    void (*mended)(void *context);
    /* The function of an index failed at `object`; before it is live as well. */
    void (*index_failed)(void *context, struct ml_revision *revision, const struct ml_kind *kind,
                         struct ml_object *object, const struct ml_err *err);
    /* Once live: a watch function, or one of `when`, failed at a change of `object`. The change
     * counts although `when` gave no verdict. */
    void (*function_failed)(void *context, struct ml_revision *revision, const struct ml_kind *kind,
                            struct ml_object *object, const struct ml_err *err);
    /* Once live, or retired: its run for `owner` is about to delete an object. False, with `err`
     * set: it is not deleted. NULL: each one is. */
    bool (*lets_delete)(void *context, struct ml_revision *revision, const struct ml_object *owner,
                        struct ml_err *err);
};

/* The keys of the reconciled kind that a change concerns. */
struct ml_affected {
    struct ml_change change; /* borrows what ml_revision_changed was called with */
    struct ml_buf keys;      /* each terminated; freed by the caller */
    bool gone;               /* the object of the only key is gone */
    /* For the keys that looked for the object by name: as ml_revision_kind_index; SIZE_MAX: they
     * are told through another kind with the same informer. */
    size_t named_kind;
};

/* For others to read; changed by revision.c alone. */
struct ml_revision {
    struct ml_services *services;
    struct ml_script *script;
    const struct ml_declaration *declaration; /* of the script */
    void *context;                            /* of ml_revision_new */

    /* Of all declared kinds, in their order, the reconciled one first; from ready on. No informer
     * for ML_USE_TOUCHES. */
    const struct ml_kind **kinds;
    struct ml_informer **informers;

    struct ml_expectations *expectations; /* once live */
    struct ml_cpu_account *cpu_account;   /* likewise */

    bool live;
    struct ml_write_check check; /* of all that is written on its behalf */
    bool stopped;                /* nothing is, any more */

    /* For reconcile.c: */
    bool without_condition; /* the server does not take Reconciled */
    struct ml_unkept unkept;

    /* The rest is private. */
    uint32_t refs;
    const struct ml_revision_handler *handler;
    struct watched_kind *watched; /* one for each declared kind */
    size_t unsynced;              /* of those */
    struct ml_task ready_task;
    struct ml_list unmapped;
    size_t unmapped_count;
    bool concerns_all; /* there were too many of those */
    struct ml_slice map_slice;
    struct ml_slice index_slice; /* works off what is pending in the indexes */
};

/* Takes over the caller's reference to `script`, which is a controller, and begins to look up its
 * kinds. The result has one reference; each run takes its own, so that an old version ends with its
 * last run. */
struct ml_revision *ml_revision_new(struct ml_services *services, struct ml_script *script,
                                    const struct ml_revision_handler *handler, void *context);

/* From now on it reports changes. `expectations` hold its writes, `cpu_account` is charged for the
 * CPU time of its code. Both outlive it. */
void ml_revision_live(struct ml_revision *revision, struct ml_expectations *expectations,
                      struct ml_cpu_account *cpu_account);

/* Whose handler is called for the kind. */
struct ml_revision *ml_revision_of(const void *watched);
/* Updates the indexes, and finds the keys that are concerned. False: none, as the change does not
 * count, or the revision is not live. */
ML_NODISCARD bool ml_revision_changed(void *watched, struct ml_informer *informer,
                                      struct ml_object *old, struct ml_object *new,
                                      struct ml_affected *out);

/* For good: its runs write nothing any more, but for requests that are under way. */
void ml_revision_stop(struct ml_revision *revision);
/* Reports and requests nothing any more. Running reconciles may finish. */
void ml_revision_retire(struct ml_revision *revision);
struct ml_revision *ml_revision_ref(struct ml_revision *revision);
void ml_revision_unref(struct ml_revision *revision); /* NULL is fine */

/* Log fields with the script and the version that a line is about. */
#define ML_REVISION_FIELDS(which)                                                                  \
    ML_S("script", (which)->declaration->file), ML_S("revision", (which)->declaration->revision)

/* The reconciled kind and its objects; from ready on. */
static inline const struct ml_kind *ml_revision_kind(const struct ml_revision *revision)
{
    return revision->kinds[0];
}
static inline const struct ml_store *ml_revision_store(const struct ml_revision *revision)
{
    return ml_informer_store(revision->informers[0]);
}
/* The first declared kind with this informer, which one of them has. */
size_t ml_revision_kind_index(const struct ml_revision *revision,
                              const struct ml_informer *informer);

/* Is one of its kinds not installed, so that only its CustomResourceDefinition can help? */
bool ml_revision_misses_kind(const struct ml_revision *revision);

/* Before ready: is each of its kinds in the cache? If not, appends a line for each kind that it
 * waits for, with the server's answer, if that was an error. */
bool ml_revision_is_synced(const struct ml_revision *revision, struct ml_buf *why);
/* From ready on: are its caches kept up to date? If not, appends a line for each kind that cannot
 * be watched, because a right or the kind itself is missing. */
bool ml_revision_stays_synced(const struct ml_revision *revision, struct ml_buf *why);
