/* L6 operator. One version of a controller script on its way to work: its kinds are looked up, what
 * it watches is synced, and only then is it ready to take over. Later, the changes that
 * concern it come out as keys.
 *
 *   new ── start ──> resolving ──> syncing ──> ready ── live ──> live ── retire ──> retired */
#pragma once

#include "operator/wakes.h"
#include "script/script.h"

struct ml_generation;

struct ml_generation_handler {
    /* Everything it watches is in the cache. Once. */
    void (*ready)(void *context, struct ml_generation *generation);
    /* A kind cannot be had yet; it is asked for again by itself. Told on each change. */
    void (*waiting)(void *context, struct ml_generation *generation,
                    const struct ml_script_kind *kind, const struct ml_err *err);
    /* Once live: this change concerns this key of the reconciled kind. */
    void (*enqueue)(void *context, struct ml_generation *generation, struct ml_str key,
                    const struct ml_change *change);
    /* Once live: the object of this key is gone. */
    void (*gone)(void *context, struct ml_generation *generation, struct ml_str key);
    /* Once live: changes concern keys that nobody knows, so it may be any. */
    void (*concerns_all)(void *context, struct ml_generation *generation);
    /* Once live: the reconciled kind can be watched again. */
    void (*mended)(void *context, struct ml_generation *generation);
    /* Once live: a watch function, or one of `when`, failed at a change of `object`. What
     * `when` should have judged counts. */
    void (*function_failed)(void *context, struct ml_generation *generation,
                            const struct ml_kind *kind, struct ml_object *object,
                            const struct ml_err *err);
};

/* Takes over the caller's reference to `script`, which is a controller. The result has one
 * reference; each run takes its own, so that an old version ends with its last run. */
struct ml_generation *ml_generation_new(struct ml_cluster *cluster, struct ml_script *script,
                                        const struct ml_generation_handler *handler, void *context);
void ml_generation_start(struct ml_generation *generation);

/* From now on it tells changes; `gate` is where its writes are remembered, `payer` pays for what
 * its code takes of the CPU. Both outlive it. */
void ml_generation_live(struct ml_generation *generation, struct ml_gate *gate,
                        struct ml_payer *payer);

/* Tells nothing more, and asks for nothing more. Runs under way may finish. */
void ml_generation_retire(struct ml_generation *generation);
struct ml_generation *ml_generation_ref(struct ml_generation *generation);
void ml_generation_unref(struct ml_generation *generation); /* NULL is fine */

struct ml_script *ml_generation_script(const struct ml_generation *generation); /* borrowed */
const struct ml_declaration *ml_generation_declaration(const struct ml_generation *generation);
bool ml_generation_is_ready(const struct ml_generation *generation);

/* Of the reconciled kind; from ready on. */
const struct ml_kind *ml_generation_kind(const struct ml_generation *generation);
struct ml_informer *ml_generation_informer(const struct ml_generation *generation);

/* From ready on: appends a line for each kind whose cache cannot be kept up, for want of a right
 * or of the kind itself. True when there is none. */
bool ml_generation_sees(const struct ml_generation *generation, struct ml_buf *why);
