/* L0 base. Counters, gauges and histograms, written in the Prometheus text format 0.0.4.
 * Never label by object name: a family holds at most ML_METRICS_SERIES_MAX label
 * combinations; further ones share one series whose labels are all "other". */
#pragma once

#include "base/buf.h"
#include "base/list.h"

#define ML_METRICS_SERIES_MAX 512
#define ML_METRICS_LABELS_MAX 4

struct ml_metrics;
struct ml_metric_family;
struct ml_metric; /* one series; lives as long as the registry */

struct ml_metrics *ml_metrics_new(void);
void ml_metrics_free(struct ml_metrics *metrics);

/* Registers a family, or returns the one that has the name already (whose help, labels and
 * buckets stay). `labels` ends with NULL; NULL itself means none. All strings are borrowed
 * for good (literals). `buckets` are upper bounds, ascending, without +Inf. */
struct ml_metric_family *ml_metrics_counter(struct ml_metrics *metrics, const char *name,
                                            const char *help, const char *const *labels);
struct ml_metric_family *ml_metrics_gauge(struct ml_metrics *metrics, const char *name,
                                          const char *help, const char *const *labels);
struct ml_metric_family *ml_metrics_histogram(struct ml_metrics *metrics, const char *name,
                                              const char *help, const char *const *labels,
                                              const double *buckets, size_t bucket_count);

/* The series for these label values (copied; as many as the family has labels, then NULL),
 * created at 0 when new. Look it up once and keep it. */
struct ml_metric *ml_metric_with(struct ml_metric_family *family, const char *const *values);

#define ml_metric_labels(...)  ((const char *const[]){__VA_ARGS__, NULL})
#define ml_metric_only(family) ml_metric_with((family), (const char *const[]){NULL})

void ml_metric_add(struct ml_metric *metric, double delta);     /* counter, gauge */
void ml_metric_set(struct ml_metric *metric, double value);     /* gauge */
void ml_metric_observe(struct ml_metric *metric, double value); /* histogram */
double ml_metric_value(const struct ml_metric *metric);         /* a histogram's sum */

/* Embed it: `collect` runs before each write, to set gauges from the current state. */
struct ml_metrics_collector {
    void (*collect)(void *context);
    void *context;
    struct ml_list node; /* private */
};

void ml_metrics_on_collect(struct ml_metrics *metrics, struct ml_metrics_collector *collector);
void ml_metrics_collector_remove(struct ml_metrics_collector *collector);
void ml_metrics_write(struct ml_metrics *metrics, struct ml_buf *out);
