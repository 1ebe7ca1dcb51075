/* Registers metrics, counts, and prints the page that operator/endpoints.c serves. */
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

/* The common part of all members of one name. */
struct ml_metrics_shared {
    struct ml_list node;
    struct ml_list members;
    const char *type;
    char *name, *help;
};

struct ml_metrics {
    struct ml_map by_name;
    struct ml_metric_family *first, **last;
    struct ml_list collectors;
    struct ml_list shared;
};

struct ml_metrics *ml_metrics_new(void)
{
    struct ml_metrics *metrics = ml_new(struct ml_metrics);
    metrics->last = &metrics->first;
    ml_list_init(&metrics->collectors);
    ml_list_init(&metrics->shared);
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
static void append_label_value(struct ml_buf *out, struct ml_str value)
{
    for (size_t at = 0, plain = 0; at < value.len; at += plain + 1) {
        plain = 0;
        while (at + plain < value.len && !strchr("\\\"\n", value.ptr[at + plain]))
            plain++;
        ml_buf_append(out, value.ptr + at, plain);
        if (at + plain == value.len)
            return;
        ml_buf_putc(out, '\\');
        ml_buf_putc(out, value.ptr[at + plain] == '\n' ? 'n' : value.ptr[at + plain]);
    }
}

void ml_metrics_label(struct ml_buf *out, const char *name, struct ml_str value)
{
    ml_buf_puts(out, name);
    ml_buf_puts(out, "=\"");
    append_label_value(out, value);
    ml_buf_putc(out, '"');
}

/* `values` NULL: the series for all that is over the limit. */
static char *format_labels(const struct ml_metric_family *family, const char *const *values)
{
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    for (size_t i = 0; i < family->label_count; i++) {
        ml_buf_puts(&text, i ? "," : "");
        ml_metrics_label(&text, family->labels[i], ml_str_of(values ? values[i] : "other"));
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

bool ml_metrics_join(struct ml_metrics *metrics, struct ml_metrics_member *member, const char *name,
                     const char *type, const char *help)
{
    struct ml_metrics_shared *shared = NULL;
    if (ml_map_get(&metrics->by_name, ml_str_of(name)))
        return false;
    ml_list_each_entry (struct ml_metrics_shared, each, &metrics->shared)
        if (strcmp(each->name, name) == 0)
            shared = each;
    if (shared && strcmp(shared->type, type) != 0)
        return false;
    if (!shared) {
        shared = ml_new(struct ml_metrics_shared);
        shared->type = type;
        shared->name = ml_strdup(name);
        shared->help = ml_strdup(help);
        ml_list_init(&shared->members);
        ml_list_push(&metrics->shared, &shared->node);
    }
    member->shared = shared;
    ml_list_push(&shared->members, &member->node);
    return true;
}

static void shared_free(struct ml_metrics_shared *shared)
{
    ml_list_remove(&shared->node);
    free(shared->name);
    free(shared->help);
    free(shared);
}

void ml_metrics_leave(struct ml_metrics *metrics, struct ml_metrics_member *member)
{
    (void)metrics;
    if (!member->shared)
        return;
    ml_list_remove(&member->node);
    if (ml_list_empty(&member->shared->members))
        shared_free(member->shared);
    member->shared = NULL;
}

void ml_metrics_sample_write(struct ml_buf *out, const char *name, const char *suffix,
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

static void write_bucket(struct ml_buf *out, const struct ml_metrics_histogram_view *view,
                         const char *bound, uint64_t total)
{
    ml_buf_printf(out, "%s_bucket{%s%sle=\"%s\"} %llu\n", view->name, view->labels,
                  *view->labels ? "," : "", bound, (unsigned long long)total);
}

void ml_metrics_histogram_write(struct ml_buf *out, const struct ml_metrics_histogram_view *view)
{
    uint64_t total = 0;
    for (size_t i = 0; i < view->bucket_count; i++) {
        char bound[32];
        snprintf(bound, sizeof bound, "%g", view->buckets[i]);
        total += view->hits[i];
        write_bucket(out, view, bound, total);
    }
    write_bucket(out, view, "+Inf", view->count);
    ml_metrics_sample_write(out, view->name, "_sum", view->labels, view->sum);
    ml_metrics_sample_write(out, view->name, "_count", view->labels, (double)view->count);
}

static void write_heading(struct ml_buf *out, const char *name, const char *help, const char *type)
{
    ml_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_metric(struct ml_buf *out, const struct ml_metric *metric)
{
    const struct ml_metric_family *family = metric->family;
    const struct ml_metrics_histogram_view view = {
        .name = family->name,
        .labels = metric->labels,
        .buckets = family->buckets,
        .hits = metric->hits,
        .bucket_count = family->bucket_count,
        .sum = metric->value,
        .count = metric->count,
    };
    if (family->type == FAMILY_HISTOGRAM)
        ml_metrics_histogram_write(out, &view);
    else
        ml_metrics_sample_write(out, family->name, "", metric->labels, metric->value);
}

void ml_metrics_write(struct ml_metrics *metrics, struct ml_buf *out)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    ml_list_each_entry (struct ml_metrics_collector, collector, &metrics->collectors)
        collector->collect(collector->context);
    for (const struct ml_metric_family *family = metrics->first; family; family = family->next) {
        write_heading(out, family->name, family->help, types[family->type]);
        for (const struct ml_metric *metric = family->first; metric; metric = metric->next)
            write_metric(out, metric);
    }
    ml_list_each_entry (struct ml_metrics_shared, shared, &metrics->shared) {
        write_heading(out, shared->name, shared->help, shared->type);
        ml_list_each_entry (struct ml_metrics_member, member, &shared->members)
            member->write(member->context, out);
    }
}
