/* L4 state. The metrics that the scripts of one controller declare and set: counters, gauges and
 * histograms, exported as moonloop_custom_NAME with the label `controller`.
 *
 * A metric has at most ML_CUSTOM_SERIES_MAX series, and all together take memory from the pool of
 * the scripts; what does not fit is counted in moonloop_custom_series_dropped_total and told once.
 *
 * Series go with objects. A gauge's series is there as long as one object has set it in its last
 * run that ended well. A gauge that sums is the sum of the parts of objects: a run that sets it
 * replaces all parts that its object had in it, a run that does not leaves them, and they go with
 * the object. Of a counter or histogram, a series goes with the object whose name is the
 * value of one of its labels; other series stay. A new version of the script keeps the series of
 * each metric that it declares in the same way. */
#pragma once

#include "state/key.h"
#include "state/services.h"

#define ML_CUSTOM_METRICS_MAX 64 /* of one controller */
#define ML_CUSTOM_SERIES_MAX  1000
#define ML_CUSTOM_LABELS_MAX  8
#define ML_CUSTOM_BUCKETS_MAX 32
#define ML_CUSTOM_PART_MAX    1e300 /* of a gauge that sums, in both directions */
#define ML_CUSTOM_PREFIX      "moonloop_custom_"

enum ml_custom_type { ML_CUSTOM_COUNTER, ML_CUSTOM_GAUGE, ML_CUSTOM_HISTOGRAM };

/* A declaration. The strings belong to whoever made it. */
struct ml_custom_metric {
    char *name, *help; /* a name without the prefix */
    enum ml_custom_type type;
    bool sums; /* a gauge that adds up over the objects */
    char *labels[ML_CUSTOM_LABELS_MAX];
    size_t label_count;
    double buckets[ML_CUSTOM_BUCKETS_MAX]; /* upper bounds, ascending, without +Inf */
    size_t bucket_count;
};

const char *ml_custom_type_name(enum ml_custom_type type); /* "counter" */

/* The values that one run records. They count when the run has ended well, so that a run that is
 * tried again counts once. */
struct ml_custom_notes;
struct ml_custom_notes *ml_custom_notes_new(void);
void ml_custom_notes_free(struct ml_custom_notes *notes); /* NULL is fine */
/* Adds a value. `metric` must outlive the notes. `values`: of its labels, in their order; copied.
 * `object`: the name of the reconciled object. Returns how many bytes it takes. */
size_t ml_custom_notes_add(struct ml_custom_notes *notes, const struct ml_custom_metric *metric,
                           const struct ml_str *values, struct ml_str object, double value);
size_t ml_custom_notes_len(const struct ml_custom_notes *notes); /* NULL: 0 */

struct ml_custom_metrics; /* of one controller */
/* `controller` is borrowed. `keys` outlive them; they keep a part of each record. */
struct ml_custom_metrics *ml_custom_metrics_new(struct ml_services *services, struct ml_keys *keys,
                                                const char *controller);
void ml_custom_metrics_free(struct ml_custom_metrics *self); /* NULL is fine */
/* A version of the script goes live that declares these: copied. */
void ml_custom_metrics_declare(struct ml_custom_metrics *self,
                               const struct ml_custom_metric *metrics, size_t count);
/* A run of the object `key` has ended well; `notes` NULL: it recorded nothing. */
void ml_custom_metrics_record(struct ml_custom_metrics *self, struct ml_str key,
                              const struct ml_custom_notes *notes);
void ml_custom_metrics_gone(struct ml_custom_metrics *self, struct ml_str key);
