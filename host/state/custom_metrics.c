/* Counts the values that scripts set by ctx.metric, in series that go with their objects, within
 * the limits of the header. script/metric.c makes the notes. */
#include "state/custom_metrics.h"

#include <math.h>
#include <stdio.h>

#define BYTES_MAX ((size_t)4 * 1024 * 1024) /* of one controller */

struct note {
    const struct ml_custom_metric *metric;
    char *labels; /* tier="gold",name="x" */
    double value;
    bool names_object; /* one of the labels has the object's name */
};

struct ml_custom_notes {
    struct note *items;
    size_t len, capacity;
};

struct series {
    struct family *family;
    struct ml_list node;
    double value; /* histogram: the sum */
    double carry; /* a gauge that sums: what rounding has lost, as in Neumaier's sum */
    uint64_t count;
    uint64_t *hits; /* histogram: per bucket, not cumulative */
    size_t links;   /* objects that it goes with */
    char labels[];
};

struct family {
    struct ml_custom_metrics *owner;
    struct ml_list node;
    struct ml_custom_metric declared; /* with strings of its own */
    char *full_name;
    struct ml_metrics_member member;
    struct ml_map by_labels;
    struct ml_list series;
    bool reported_limit; /* it has too many series */
    uint64_t set_by;     /* the number of the last record that set it */
};

struct link {
    struct series *series;
    double part; /* of the object, in a gauge that sums */
    bool fresh;  /* set by the run that is being recorded */
};

/* The series that go with an object: a part of its key's record. */
struct ml_key_series {
    struct ml_key *key;
    struct link *links;
    size_t len, capacity;
};

struct ml_custom_metrics {
    struct ml_services *services;
    const char *controller;
    struct ml_budget budget;
    struct ml_list families;
    struct ml_keys *keys;
    struct ml_metric *dropped;
    uint64_t records; /* so far */
};

const char *ml_custom_type_name(enum ml_custom_type type)
{
    static const char *const names[] = {[ML_CUSTOM_COUNTER] = "counter",
                                        [ML_CUSTOM_GAUGE] = "gauge",
                                        [ML_CUSTOM_HISTOGRAM] = "histogram"};
    return names[type];
}

/* ---- notes ---- */

struct ml_custom_notes *ml_custom_notes_new(void)
{
    return ml_new(struct ml_custom_notes);
}

void ml_custom_notes_free(struct ml_custom_notes *notes)
{
    if (!notes)
        return;
    for (size_t i = 0; i < notes->len; i++)
        free(notes->items[i].labels);
    free(notes->items);
    free(notes);
}

size_t ml_custom_notes_add(struct ml_custom_notes *notes, const struct ml_custom_metric *metric,
                           const struct ml_str *values, struct ml_str object, double value)
{
    ML_AUTO(ml_buf_fini) struct ml_buf labels = ML_BUF_INIT;
    struct note note = {.metric = metric, .value = value};
    for (size_t i = 0; i < metric->label_count; i++) {
        ml_buf_puts(&labels, i ? "," : "");
        ml_metrics_label(&labels, metric->labels[i], values[i]);
        note.names_object = note.names_object || ml_str_eq(values[i], object);
    }
    size_t bytes = sizeof note + labels.len + 1;
    note.labels = labels.len ? ml_buf_take(&labels) : ml_strdup("");
    notes->items = ml_grow(notes->items, &notes->capacity, notes->len, sizeof *notes->items);
    notes->items[notes->len++] = note;
    return bytes;
}

size_t ml_custom_notes_len(const struct ml_custom_notes *notes)
{
    return notes ? notes->len : 0;
}

/* ---- series ---- */

static size_t series_bytes(const struct family *family, size_t labels_len)
{
    return sizeof(struct series) + labels_len + 1 +
           family->declared.bucket_count * sizeof(uint64_t) + 2 * sizeof(struct ml_map_slot);
}

static void series_free(struct series *series)
{
    struct family *family = series->family;
    ml_budget_give(&family->owner->budget, series_bytes(family, strlen(series->labels)));
    ml_map_remove(&family->by_labels, ml_str_of(series->labels));
    ml_list_remove(&series->node);
    free(series->hits);
    free(series);
}

static void report_dropped(struct family *family)
{
    struct ml_custom_metrics *self = family->owner;
    ml_metric_add(self->dropped, 1);
    if (family->reported_limit)
        return;
    family->reported_limit = true;
    ml_warn(self->services->log, self->controller,
            "a metric of the script has too many series; further ones are left out",
            ML_S("controller", self->controller), ML_S("metric", family->declared.name),
            ML_I("series", (int64_t)family->by_labels.len), ML_I("max", ML_CUSTOM_SERIES_MAX));
}

/* NULL: it does not fit. */
static struct series *series_get(struct family *family, const char *labels)
{
    struct ml_custom_metrics *self = family->owner;
    ML_AUTO_FREE char *all = ml_asprintf("controller=\"%s\"%s%s", self->controller,
                                         *labels ? "," : "", labels);
    size_t len = strlen(all);
    struct series *series = ml_map_get(&family->by_labels, ml_str_of(all));
    if (series)
        return series;
    if (family->by_labels.len >= ML_CUSTOM_SERIES_MAX ||
        !ml_budget_take(&self->budget, series_bytes(family, len))) {
        report_dropped(family);
        return NULL;
    }
    series = ml_zalloc(sizeof *series + len + 1);
    memcpy(series->labels, all, len + 1);
    series->family = family;
    series->hits = ml_zalloc((family->declared.bucket_count + 1) * sizeof *series->hits);
    ml_map_put(&family->by_labels, ml_str_of(series->labels), series);
    ml_list_push(&family->series, &series->node);
    return series;
}

static void series_record(struct series *series, double value)
{
    const struct ml_custom_metric *declared = &series->family->declared;
    if (declared->type == ML_CUSTOM_GAUGE) {
        series->value = value;
        return;
    }
    series->value += value;
    series->count++;
    for (size_t i = 0; i < declared->bucket_count; i++) {
        if (value <= declared->buckets[i]) {
            series->hits[i]++;
            return;
        }
    }
}

static void series_add(struct series *series, double part)
{
    double old = series->value, sum = old + part;
    series->carry += fabs(old) >= fabs(part) ? old - sum + part : part - sum + old;
    series->value = sum;
}

static void write_family(void *context, struct ml_buf *out)
{
    const struct family *family = context;
    const struct ml_custom_metric *declared = &family->declared;
    ml_list_each_entry (struct series, series, &family->series) {
        if (declared->type == ML_CUSTOM_HISTOGRAM)
            ml_metrics_histogram_write(
                out, &(struct ml_metrics_histogram_view){.name = family->full_name,
                                                         .labels = series->labels,
                                                         .buckets = declared->buckets,
                                                         .hits = series->hits,
                                                         .bucket_count = declared->bucket_count,
                                                         .sum = series->value,
                                                         .count = series->count});
        else
            ml_metrics_sample_write(out, family->full_name, "", series->labels,
                                    series->value + series->carry);
    }
}

/* ---- links ---- */

static void unlink_series(const struct link *link)
{
    struct series *series = link->series;
    if (series->family->declared.sums)
        series_add(series, -link->part);
    if (--series->links == 0)
        series_free(series);
}

static struct ml_key_series *holder_find(const struct ml_custom_metrics *self, struct ml_str key)
{
    const struct ml_key *record = ml_keys_find(self->keys, key);
    return record ? record->series : NULL;
}

static struct ml_key_series *holder_get(struct ml_custom_metrics *self, struct ml_str key)
{
    struct ml_key_series *holder = holder_find(self, key);
    if (holder || !ml_budget_take(&self->budget, sizeof *holder))
        return holder;
    holder = ml_new(struct ml_key_series);
    holder->key = ml_keys_ref(self->keys, key);
    holder->key->series = holder;
    return holder;
}

static void holder_free(struct ml_custom_metrics *self, struct ml_key_series *holder)
{
    ml_budget_give(&self->budget, sizeof *holder + holder->capacity * sizeof *holder->links);
    holder->key->series = NULL;
    ml_key_unref(holder->key);
    free(holder->links);
    free(holder);
}

static bool holder_reserve(struct ml_custom_metrics *self, struct ml_key_series *holder)
{
    if (holder->len < holder->capacity)
        return true;
    size_t more = holder->capacity ? holder->capacity : 2;
    if (!ml_budget_take(&self->budget, more * sizeof *holder->links))
        return false;
    holder->capacity += more;
    holder->links = ml_realloc(holder->links, holder->capacity * sizeof *holder->links);
    return true;
}

/* The link from the object to the series, which goes with it from now on. NULL: there is no memory
 * to note that. */
static struct link *link_get(struct ml_custom_metrics *self, struct ml_str key,
                             struct series *series)
{
    struct ml_key_series *holder = holder_get(self, key);
    for (size_t i = 0; holder && i < holder->len; i++)
        if (holder->links[i].series == series)
            return &holder->links[i];
    if (!holder || !holder_reserve(self, holder))
        return NULL;
    series->links++;
    holder->links[holder->len] = (struct link){.series = series};
    return &holder->links[holder->len++];
}

/* Without memory for its link the series stays. */
static void link_series(struct ml_custom_metrics *self, struct ml_str key, struct series *series)
{
    struct link *link = link_get(self, key, series);
    if (link)
        link->fresh = true;
    else
        series->links++;
}

/* Without memory for its link the part is left out: it could not be taken back. */
static void record_part(struct ml_custom_metrics *self, struct ml_str key, struct series *series,
                        double part)
{
    struct link *link = link_get(self, key, series);
    if (!link) {
        report_dropped(series->family);
        if (series->links == 0)
            series_free(series);
        return;
    }
    series_add(series, -link->part);
    series_add(series, part);
    link->part = part;
    link->fresh = true;
}

/* ---- families ---- */

static void metric_fini(struct ml_custom_metric *metric)
{
    free(metric->name);
    free(metric->help);
    for (size_t i = 0; i < metric->label_count; i++)
        free(metric->labels[i]);
}

static bool is_same_metric(const struct ml_custom_metric *a, const struct ml_custom_metric *b)
{
    if (strcmp(a->name, b->name) != 0 || a->type != b->type || a->sums != b->sums ||
        a->label_count != b->label_count || a->bucket_count != b->bucket_count)
        return false;
    for (size_t i = 0; i < a->label_count; i++)
        if (strcmp(a->labels[i], b->labels[i]) != 0)
            return false;
    return memcmp(a->buckets, b->buckets, a->bucket_count * sizeof *a->buckets) == 0;
}

static void family_new(struct ml_custom_metrics *self, const struct ml_custom_metric *metric)
{
    struct family *family = ml_new(struct family);
    family->owner = self;
    family->declared = *metric;
    family->declared.name = ml_strdup(metric->name);
    family->declared.help = ml_strdup(metric->help);
    for (size_t i = 0; i < metric->label_count; i++)
        family->declared.labels[i] = ml_strdup(metric->labels[i]);
    family->full_name = ml_asprintf(ML_CUSTOM_PREFIX "%s", metric->name);
    ml_list_init(&family->series);
    ml_list_push(&self->families, &family->node);
    family->member = (struct ml_metrics_member){.write = write_family, .context = family};
    if (!ml_metrics_join(self->services->metrics, &family->member, family->full_name,
                         ml_custom_type_name(metric->type), metric->help))
        ml_error(self->services->log, self->controller,
                 "another controller has a metric of this name and another type; it is not "
                 "exported: give it another name",
                 ML_S("controller", self->controller), ML_S("metric", metric->name),
                 ML_S("type", ml_custom_type_name(metric->type)));
    /* Its one series is there at 0 from the start: increase() sees the first event. */
    bool begins_at_0 = metric->type != ML_CUSTOM_GAUGE || metric->sums;
    struct series *series = begins_at_0 && metric->label_count == 0 ? series_get(family, "") : NULL;
    if (series)
        series->links++; /* of the family: it stays without an object */
}

/* Takes the links to series of this family out of all objects. */
static void forget_links(struct ml_custom_metrics *self, const struct family *family)
{
    ml_keys_each(self->keys, key)
    {
        struct ml_key_series *holder = key->series;
        size_t kept = 0;
        if (!holder)
            continue;
        for (size_t i = 0; i < holder->len; i++)
            if (holder->links[i].series->family != family)
                holder->links[kept++] = holder->links[i];
        holder->len = kept;
    }
}

static void family_free(struct family *family)
{
    forget_links(family->owner, family);
    ml_metrics_leave(family->owner->services->metrics, &family->member);
    ml_list_each_entry (struct series, series, &family->series)
        series_free(series);
    ml_map_fini(&family->by_labels);
    ml_list_remove(&family->node);
    metric_fini(&family->declared);
    free(family->full_name);
    free(family);
}

static struct family *family_find(const struct ml_custom_metrics *self,
                                  const struct ml_custom_metric *metric)
{
    ml_list_each_entry (struct family, family, &self->families)
        if (is_same_metric(&family->declared, metric))
            return family;
    return NULL;
}

static bool is_declared(const struct family *family, const struct ml_custom_metric *metrics,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is_same_metric(&family->declared, &metrics[i]))
            return true;
    return false;
}

void ml_custom_metrics_declare(struct ml_custom_metrics *self,
                               const struct ml_custom_metric *metrics, size_t count)
{
    ml_list_each_entry (struct family, family, &self->families)
        if (!is_declared(family, metrics, count))
            family_free(family);
    for (size_t i = 0; i < count; i++)
        if (!family_find(self, &metrics[i]))
            family_new(self, &metrics[i]);
}

/* ---- objects ---- */

/* Does the object keep this link after the run that was recorded last? */
static bool keeps_link(const struct ml_custom_metrics *self, const struct link *link)
{
    const struct family *family = link->series->family;
    return link->fresh || family->declared.type != ML_CUSTOM_GAUGE ||
           (family->declared.sums && family->set_by != self->records);
}

static void drop_stale_gauges(struct ml_custom_metrics *self, struct ml_key_series *holder)
{
    size_t kept = 0;
    for (size_t i = 0; i < holder->len; i++) {
        struct link link = holder->links[i];
        if (keeps_link(self, &link))
            holder->links[kept++] = link;
        else
            unlink_series(&link);
    }
    holder->len = kept;
    if (kept == 0)
        holder_free(self, holder);
}

static void record_note(struct ml_custom_metrics *self, struct ml_str key, const struct note *note)
{
    struct family *family = family_find(self, note->metric);
    struct series *series = family ? series_get(family, note->labels) : NULL;
    if (family)
        family->set_by = self->records;
    if (!series)
        return;
    if (family->declared.sums) {
        record_part(self, key, series, note->value);
        return;
    }
    series_record(series, note->value);
    if (family->declared.type == ML_CUSTOM_GAUGE || note->names_object)
        link_series(self, key, series);
}

void ml_custom_metrics_record(struct ml_custom_metrics *self, struct ml_str key,
                              const struct ml_custom_notes *notes)
{
    struct ml_key_series *holder = holder_find(self, key);
    self->records++;
    for (size_t i = 0; holder && i < holder->len; i++)
        holder->links[i].fresh = false;
    for (size_t i = 0; i < ml_custom_notes_len(notes); i++)
        record_note(self, key, &notes->items[i]);
    holder = holder_find(self, key);
    if (holder)
        drop_stale_gauges(self, holder);
}

void ml_custom_metrics_gone(struct ml_custom_metrics *self, struct ml_str key)
{
    struct ml_key_series *holder = holder_find(self, key);
    if (!holder)
        return;
    for (size_t i = 0; i < holder->len; i++)
        unlink_series(&holder->links[i]);
    holder_free(self, holder);
}

/* ---- life ---- */

struct ml_custom_metrics *ml_custom_metrics_new(struct ml_services *services, struct ml_keys *keys,
                                                const char *controller)
{
    struct ml_custom_metrics *self = ml_new(struct ml_custom_metrics);
    self->services = services;
    self->keys = keys;
    self->controller = controller;
    self->budget = (struct ml_budget){.max = BYTES_MAX, .pool = &services->script_memory};
    ml_list_init(&self->families);
    self->dropped = ml_metric_with(
        ml_metrics_counter(services->metrics, "moonloop_custom_series_dropped_total",
                           "Values of scripts' metrics that were left out, as the metric had too "
                           "many series.",
                           ml_metric_labels("controller")),
        ml_metric_labels(controller));
    return self;
}

void ml_custom_metrics_free(struct ml_custom_metrics *self)
{
    if (!self)
        return;
    ml_custom_metrics_declare(self, NULL, 0);
    ml_keys_each(self->keys, key) if (key->series) holder_free(self, key->series);
    ml_assert(self->budget.used == 0);
    free(self);
}
