/* L6 operator. One version of a controller script on its way to work: its kinds are looked up, what
 * it watches is synced, and only then is it ready to take over. Later, the changes that
 * concern it come out as keys.
 *
 *   new ── start ──> resolving ──> syncing ──> ready ── live ──> live ── retire ──> retired */
#pragma once

#include "base/repeat.h"
#include "operator/enqueue_filter.h"
#include "script/script.h"

struct ml_revision;

#define ML_REVISION_RETRY_NS (2 * ML_NS_PER_S)

struct ml_revision_handler {
    /* Everything it watches is in the cache. Once, later from the loop. */
    void (*ready)(void *context, struct ml_revision *revision);
    /* A kind cannot be had yet; it is asked for again after ML_REVISION_RETRY_NS. Told when
     * `repeat` says that it is to be logged. */
    void (*waiting)(void *context, struct ml_revision *revision, const struct ml_script_kind *kind,
                    const struct ml_err *err, const struct ml_repeat *repeat);
    /* Once live: this change concerns this key of the reconciled kind. */
    void (*enqueue)(void *context, struct ml_revision *revision, struct ml_str key,
                    const struct ml_change *change);
    /* Once live: the object of this key is gone. */
    void (*gone)(void *context, struct ml_revision *revision, struct ml_str key);
    /* Once live: changes concern keys that nobody knows, so it may be any. */
    void (*concerns_all)(void *context, struct ml_revision *revision);
    /* Once live: the reconciled kind can be watched again. */
    void (*mended)(void *context, struct ml_revision *revision);
    /* Once live: a watch function, or one of `when`, failed at a change of `object`. What
     * `when` should have judged counts. */
    void (*function_failed)(void *context, struct ml_revision *revision, const struct ml_kind *kind,
                            struct ml_object *object, const struct ml_err *err);
};

/* Takes over the caller's reference to `script`, which is a controller. The result has one
 * reference; each run takes its own, so that an old version ends with its last run. `number`
 * counts the versions of the controller, for the log. */
struct ml_revision *ml_revision_new(struct ml_cluster *cluster, struct ml_script *script,
                                    int64_t number, const struct ml_revision_handler *handler,
                                    void *context);
void ml_revision_start(struct ml_revision *revision);

/* From now on it tells changes; `expectations` is where its writes are remembered, `payer` pays for
 * what its code takes of the CPU. Both outlive it. */
void ml_revision_live(struct ml_revision *revision, struct ml_expectations *expectations,
                      struct ml_payer *payer);

/* Tells nothing more, and asks for nothing more. Runs under way may finish. */
void ml_revision_retire(struct ml_revision *revision);
struct ml_revision *ml_revision_ref(struct ml_revision *revision);
void ml_revision_unref(struct ml_revision *revision); /* NULL is fine */

struct ml_script *ml_revision_script(const struct ml_revision *revision); /* borrowed */
const struct ml_declaration *ml_revision_declaration(const struct ml_revision *revision);
int64_t ml_revision_number(const struct ml_revision *revision);
bool ml_revision_is_ready(const struct ml_revision *revision);

/* Of the reconciled kind; from ready on. */
const struct ml_kind *ml_revision_kind(const struct ml_revision *revision);
struct ml_informer *ml_revision_informer(const struct ml_revision *revision);
/* Of all declared kinds, in their order; NULL for ML_USE_TOUCHES. */
struct ml_informer *const *ml_revision_informers(const struct ml_revision *revision);
/* The first declared kind with this informer, which one of them has. */
size_t ml_revision_kind_index(const struct ml_revision *revision,
                              const struct ml_informer *informer);

/* From ready on: appends a line for each kind whose cache cannot be kept up, for want of a right
 * or of the kind itself. True when there is none. */
bool ml_revision_sees(const struct ml_revision *revision, struct ml_buf *why);
