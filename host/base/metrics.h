/* L0 base. Counters, gauges and histograms, written in the Prometheus text format 0.0.4.
 * Never label by object name: a family holds at most ML_METRICS_SERIES_MAX label
 * combinations; further ones share one series whose labels are all "other". */
#pragma once

#include "base/buf.h"
#include "base/list.h"

#define ML_METRICS_SERIES_MAX 2048
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

/* A group of series that somebody else keeps, as those of scripts, which come and go: `write` adds
 * them to `out`. Embed it and set the first two. Members of one name stand under one heading. */
struct ml_metrics_member {
    void (*write)(void *context, struct ml_buf *out);
    void *context;
    struct ml_list node;              /* private */
    struct ml_metrics_shared *shared; /* private; NULL: joined nothing */
};

/* `type` is Prometheus's word for it, a literal. Name and help are copied; the first help counts.
 * False, with nothing done: a member of that name has another type, or the host has the name. */
ML_NODISCARD bool ml_metrics_join(struct ml_metrics *metrics, struct ml_metrics_member *member,
                                  const char *name, const char *type, const char *help);
void ml_metrics_leave(struct ml_metrics *metrics, struct ml_metrics_member *member);

/* For `write`: a label with its value escaped, NAME="value"; a line; and all lines of a histogram.
 * `labels` as they stand between the braces. */
void ml_metrics_label(struct ml_buf *out, const char *name, struct ml_str value);
void ml_metrics_sample_write(struct ml_buf *out, const char *name, const char *suffix,
                             const char *labels, double value);
struct ml_metrics_histogram_view {
    const char *name, *labels;
    const double *buckets; /* upper bounds, ascending, without +Inf */
    const uint64_t *hits;  /* per bucket, not cumulative */
    size_t bucket_count;
    double sum;
    uint64_t count;
};
void ml_metrics_histogram_write(struct ml_buf *out, const struct ml_metrics_histogram_view *view);

void ml_metrics_on_collect(struct ml_metrics *metrics, struct ml_metrics_collector *collector);
void ml_metrics_collector_remove(struct ml_metrics_collector *collector);
void ml_metrics_write(struct ml_metrics *metrics, struct ml_buf *out);
