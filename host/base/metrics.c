/* Called by every part of the host that counts; written out by operator/endpoints.c. */
#include "base/metrics.h"

#include "base/map.h"

#include <math.h>
#include <stdio.h>

enum family_type { FAMILY_COUNTER, FAMILY_GAUGE, FAMILY_HISTOGRAM };

struct ml_metric {
    struct ml_metric_family *family;
    struct ml_metric *next;
    char *labels;    /* as written between the braces; also the key in `by_labels` */
    double value;    /* histogram: the sum */
    uint64_t count;  /* histogram only */
    uint64_t hits[]; /* histogram: per bucket, not cumulative */
};

struct ml_metric_family {
    struct ml_metric_family *next;
    const char *name;
    const char *help;
    enum family_type type;
    const char *labels[ML_METRICS_LABELS_MAX];
    size_t label_count;
    const double *buckets;
    size_t bucket_count;
    struct ml_map by_labels;
    struct ml_metric *first, **last; /* in order of creation */
};

struct ml_metrics {
    struct ml_map by_name;
    struct ml_metric_family *first, **last;
    struct ml_list collectors;
};

struct ml_metrics *ml_metrics_new(void)
{
    struct ml_metrics *metrics = ml_new(struct ml_metrics);
    metrics->last = &metrics->first;
    ml_list_init(&metrics->collectors);
    return metrics;
}

static void family_free(struct ml_metric_family *family)
{
    for (struct ml_metric *metric = family->first, *next; metric; metric = next) {
        next = metric->next;
        free(metric->labels);
        free(metric);
    }
    ml_map_fini(&family->by_labels);
    free(family);
}

void ml_metrics_free(struct ml_metrics *metrics)
{
    if (!metrics)
        return;
    for (struct ml_metric_family *family = metrics->first, *next; family; family = next) {
        next = family->next;
        family_free(family);
    }
    ml_map_fini(&metrics->by_name);
    free(metrics);
}

static struct ml_metric_family *family_get(struct ml_metrics *metrics, enum family_type type,
                                           const char *name, const char *help,
                                           const char *const *labels)
{
    struct ml_metric_family *family = ml_map_get(&metrics->by_name, ml_str_of(name));
    if (family) {
        ml_assert(family->type == type);
        return family;
    }
    family = ml_new(struct ml_metric_family);
    family->name = name;
    family->help = help;
    family->type = type;
    family->last = &family->first;
    for (; labels && labels[family->label_count]; family->label_count++) {
        ml_assert(family->label_count < ML_METRICS_LABELS_MAX);
        family->labels[family->label_count] = labels[family->label_count];
    }
    ml_map_put(&metrics->by_name, ml_str_of(name), family);
    *metrics->last = family;
    metrics->last = &family->next;
    return family;
}

struct ml_metric_family *ml_metrics_counter(struct ml_metrics *metrics, const char *name,
                                            const char *help, const char *const *labels)
{
    return family_get(metrics, FAMILY_COUNTER, name, help, labels);
}

struct ml_metric_family *ml_metrics_gauge(struct ml_metrics *metrics, const char *name,
                                          const char *help, const char *const *labels)
{
    return family_get(metrics, FAMILY_GAUGE, name, help, labels);
}

struct ml_metric_family *ml_metrics_histogram(struct ml_metrics *metrics, const char *name,
                                              const char *help, const char *const *labels,
                                              const double *buckets, size_t bucket_count)
{
    struct ml_metric_family *family = family_get(metrics, FAMILY_HISTOGRAM, name, help, labels);
    family->buckets = buckets;
    family->bucket_count = bucket_count;
    return family;
}

/* Piece by piece, not byte by byte: each request looks its series up by this text. */
static void append_label_value(struct ml_buf *out, const char *value)
{
    for (;;) {
        size_t plain = strcspn(value, "\\\"\n");
        ml_buf_append(out, value, plain);
        value += plain;
        if (!*value)
            return;
        ml_buf_putc(out, '\\');
        ml_buf_putc(out, *value == '\n' ? 'n' : *value);
        value++;
    }
}

/* `values` NULL: the series for all that is over the limit. */
static char *format_labels(const struct ml_metric_family *family, const char *const *values)
{
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    for (size_t i = 0; i < family->label_count; i++) {
        ml_buf_puts(&text, i ? "," : "");
        ml_buf_puts(&text, family->labels[i]);
        ml_buf_puts(&text, "=\"");
        append_label_value(&text, values ? values[i] : "other");
        ml_buf_putc(&text, '"');
    }
    return ml_buf_take(&text);
}

struct ml_metric *ml_metric_with(struct ml_metric_family *family, const char *const *values)
{
    for (size_t i = 0; i < family->label_count; i++)
        ml_assert(values[i] != NULL);
    ml_assert(values[family->label_count] == NULL);
    char *labels = format_labels(family, values);
    struct ml_metric *metric = ml_map_get(&family->by_labels, ml_str_of(labels));
    if (!metric && family->by_labels.len >= ML_METRICS_SERIES_MAX) {
        free(labels);
        labels = format_labels(family, NULL);
        metric = ml_map_get(&family->by_labels, ml_str_of(labels));
    }
    if (metric) {
        free(labels);
        return metric;
    }
    metric = ml_zalloc(sizeof *metric + family->bucket_count * sizeof metric->hits[0]);
    metric->family = family;
    metric->labels = labels;
    ml_map_put(&family->by_labels, ml_str_of(labels), metric);
    *family->last = metric;
    family->last = &metric->next;
    return metric;
}

void ml_metric_add(struct ml_metric *metric, double delta)
{
    metric->value += delta;
}

void ml_metric_set(struct ml_metric *metric, double value)
{
    metric->value = value;
}

void ml_metric_observe(struct ml_metric *metric, double value)
{
    metric->value += value;
    metric->count++;
    for (size_t i = 0; i < metric->family->bucket_count; i++) {
        if (value <= metric->family->buckets[i]) {
            metric->hits[i]++;
            return;
        }
    }
}

double ml_metric_value(const struct ml_metric *metric)
{
    return metric->value;
}

void ml_metrics_on_collect(struct ml_metrics *metrics, struct ml_metrics_collector *collector)
{
    ml_list_push(&metrics->collectors, &collector->node);
}

void ml_metrics_collector_remove(struct ml_metrics_collector *collector)
{
    if (collector->node.next)
        ml_list_remove(&collector->node);
}

static void write_sample(struct ml_buf *out, const char *name, const char *suffix,
                         const char *labels, double value)
{
    ml_buf_printf(out, "%s%s", name, suffix);
    if (*labels)
        ml_buf_printf(out, "{%s}", labels);
    if (isinf(value))
        ml_buf_puts(out, value > 0 ? " +Inf\n" : " -Inf\n");
    else if (value == floor(value) && fabs(value) < 1e15)
        ml_buf_printf(out, " %.0f\n", value);
    else
        ml_buf_printf(out, " %.17g\n", value);
}

static void write_bucket(struct ml_buf *out, const struct ml_metric *metric, const char *bound,
                         uint64_t total)
{
    ml_buf_printf(out, "%s_bucket{%s%sle=\"%s\"} %llu\n", metric->family->name, metric->labels,
                  *metric->labels ? "," : "", bound, (unsigned long long)total);
}

static void write_histogram(struct ml_buf *out, const struct ml_metric *metric)
{
    const struct ml_metric_family *family = metric->family;
    uint64_t total = 0;
    for (size_t i = 0; i < family->bucket_count; i++) {
        char bound[32];
        snprintf(bound, sizeof bound, "%g", family->buckets[i]);
        total += metric->hits[i];
        write_bucket(out, metric, bound, total);
    }
    write_bucket(out, metric, "+Inf", metric->count);
    write_sample(out, family->name, "_sum", metric->labels, metric->value);
    write_sample(out, family->name, "_count", metric->labels, (double)metric->count);
}

void ml_metrics_write(struct ml_metrics *metrics, struct ml_buf *out)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    ml_list_each_entry (struct ml_metrics_collector, collector, &metrics->collectors)
        collector->collect(collector->context);
    for (const struct ml_metric_family *family = metrics->first; family; family = family->next) {
        ml_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", family->name, family->help, family->name,
                      types[family->type]);
        for (const struct ml_metric *metric = family->first; metric; metric = metric->next) {
            if (family->type == FAMILY_HISTOGRAM)
                write_histogram(out, metric);
            else
                write_sample(out, family->name, "", metric->labels, metric->value);
        }
    }
}
