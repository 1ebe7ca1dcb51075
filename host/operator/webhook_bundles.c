/* Writes the authority into configurations and definitions, in one round of requests after the
 * other. */
#include "operator/webhook_bundles.h"

#include "base/repeat.h"
#include "codec/base64.h"
#include "codec/json.h"
#include "codec/json_diff.h"
#include "operator/webhook_manifests.h"

#define ROUND_NS   (60 * ML_NS_PER_S)
#define AGAIN_NS   (5 * ML_NS_PER_S) /* something is missing, or could not be written */
#define CHANGED_NS ML_NS_PER_S       /* between two rounds that changes bring: others write, too */
#define PLACES_MAX 300               /* three of each controller */

/* An object in which a bundle stands. */
struct place {
    const struct ml_kind *kind;
    char *name;    /* of the object */
    char *webhook; /* its name in a configuration; NULL: the conversion of a definition */
    struct ml_object_watch *watch; /* or NULL */
};

struct ml_webhook_bundles {
    struct ml_webhook_bundles_opts opts;
    char *bundle; /* base64; NULL: not known yet */
    struct place places[PLACES_MAX];
    size_t place_count, at;
    int64_t round_ns; /* monotonic: when the last round began */
    bool again;       /* a place has changed since */
    bool is_writing;  /* the call under way is a write */
    bool begins_anew; /* when that has its answer */
    bool is_incomplete;
    struct ml_client_call *call;
    struct ml_timer round;
    struct ml_repeats troubles; /* by the name of the object */
};

static const struct place *current_place(const struct ml_webhook_bundles *self)
{
    return &self->places[self->at];
}

static void drop_places(struct place *places, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ml_object_watch_free(places[i].watch);
        free(places[i].name);
        free(places[i].webhook);
    }
}

/* A change is looked at now, but once a second at most: somebody else may answer each of our
 * writes with one of his own. */
static void on_place_changed(void *context)
{
    struct ml_webhook_bundles *self = context;
    int64_t now_ns = ml_clock_monotonic(ml_loop_clock(self->opts.loop));
    self->again = true;
    if (!self->call)
        ml_timer_start(&self->round, ML_MAX(0, self->round_ns + CHANGED_NS - now_ns));
}

/* Takes over the watch that the last round had for the object. */
static void watch_place(struct ml_webhook_bundles *self, struct place *place, struct place *before,
                        size_t before_count)
{
    for (size_t i = 0; i < before_count; i++)
        if (before[i].kind == place->kind && strcmp(before[i].name, place->name) == 0)
            place->watch = ml_take(&before[i].watch);
    if (!place->watch && self->opts.informers)
        place->watch = ml_object_watch_new(self->opts.informers, place->kind, ML_STR(""),
                                           ml_str_of(place->name), on_place_changed, self);
}

static void add_place(struct ml_webhook_bundles *self, const struct ml_kind *kind, char *name,
                      char *webhook)
{
    if (self->place_count < PLACES_MAX) {
        self->places[self->place_count++] = (struct place){kind, name, webhook, NULL};
        return;
    }
    free(name);
    free(webhook);
}

static void add_places(struct ml_webhook_bundles *self, const struct ml_webhook_target *target)
{
    const struct ml_declaration *declaration = ml_script_declaration(target->script);
    const struct ml_script_webhooks *has = &declaration->webhooks;
    if (has->defaults)
        add_place(self, &ml_kind_mutating, ml_webhook_configuration_name(declaration),
                  ml_webhook_full_name("default", declaration));
    if (has->validates)
        add_place(self, &ml_kind_validating, ml_webhook_configuration_name(declaration),
                  ml_webhook_full_name("validate", declaration));
    if (has->version_count > 0 && target->kind)
        add_place(self, &ml_kind_crd,
                  ml_asprintf("%s.%s", target->kind->plural, target->kind->group), NULL);
    self->is_incomplete = self->is_incomplete || (has->version_count > 0 && !target->kind);
}

static void read_place(struct ml_webhook_bundles *self);

static void next_place(struct ml_webhook_bundles *self)
{
    if (self->begins_anew)
        ml_timer_start(&self->round, 0);
    else if (++self->at < self->place_count)
        read_place(self);
    else
        ml_timer_start(&self->round, self->again           ? CHANGED_NS
                                     : self->is_incomplete ? AGAIN_NS
                                                           : ROUND_NS);
}

static void fail_place(struct ml_webhook_bundles *self, const struct ml_err *err)
{
    const struct place *place = current_place(self);
    ML_AUTO_FREE char *key = ml_asprintf("%s %s", place->kind->kind, place->name);
    struct ml_repeat *repeat = ml_repeats_get(&self->troubles, ml_str_of(key));
    self->is_incomplete = true;
    if (ml_repeat_failed(repeat, ml_str_of(err->message),
                         ml_clock_monotonic(ml_loop_clock(self->opts.loop))))
        ml_warn(
            self->opts.log, "host",
            err->kind == ML_ENOT_FOUND
                ? "webhooks of a script are not registered; apply what moonloop manifests prints"
                : "caBundle cannot be written",
            ML_S("kind", place->kind->kind), ML_S("name", place->name), ML_ERR_FIELDS(err),
            ML_REPEAT_FIELDS(repeat, AGAIN_NS));
    next_place(self);
}

static void on_written(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_webhook_bundles *self = context;
    const struct place *place = current_place(self);
    (void)body;
    self->call = NULL;
    self->is_writing = false;
    if (err) {
        fail_place(self, err);
        return;
    }
    ml_info(self->opts.log, "host", "caBundle was written", ML_S("kind", place->kind->kind),
            ML_S("name", place->name));
    next_place(self);
}

/* ---- what has to change ---- */

/* Appends the webhooks with our bundle in the one of our name. False: nothing has to change. */
static bool change_webhooks(const struct ml_webhook_bundles *self, struct ml_str webhooks,
                            struct ml_json_writer *writer)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ML_AUTO_FREE char *patch = ml_asprintf("{\"clientConfig\":{\"caBundle\":\"%s\"}}",
                                           self->bundle);
    struct ml_err err;
    bool changed = false;
    ml_json_reader_init(&reader, webhooks, 0);
    ml_json_begin_array(writer);
    if (ml_json_next(&reader) == ML_JSON_ARRAY)
        for (struct ml_str each; (each = ml_json_skip(&reader)).len;) {
            ML_AUTO(ml_buf_fini) struct ml_buf merged = ML_BUF_INIT;
            ML_AUTO_FREE char *name = ml_json_find_string(each, "name", NULL);
            ML_AUTO_FREE char *is = ml_json_find_string(each, "clientConfig", "caBundle", NULL);
            bool is_ours = name && strcmp(name, current_place(self)->webhook) == 0 &&
                           (!is || strcmp(is, self->bundle) != 0) &&
                           ml_json_merge(each, ml_str_of(patch), &merged, &err) == 0;
            ml_json_raw(writer, is_ours ? ml_buf_str(&merged) : each);
            changed = changed || is_ours;
        }
    ml_json_end_array(writer);
    return changed;
}

/* Of a definition: whether its conversion calls a webhook, with another bundle. */
static bool change_conversion(const struct ml_webhook_bundles *self, struct ml_str object,
                              struct ml_json_writer *writer)
{
    ML_AUTO_FREE char *is = ml_json_find_string(object, "spec", "conversion", "webhook",
                                                "clientConfig", "caBundle", NULL);
    ML_AUTO_FREE char *value = ml_asprintf(
        "{\"conversion\":{\"webhook\":{\"clientConfig\":{\"caBundle\":\"%s\"}}}}", self->bundle);
    ml_json_put_raw(writer, "spec", ml_str_of(value));
    return !is || strcmp(is, self->bundle) != 0;
}

/* The path in its clientConfig that calls us, or is it somebody else's? */
static bool is_registered(const struct place *place, struct ml_str object)
{
    struct ml_str raw;
    return place->webhook
               ? ml_json_find(object, &raw, "webhooks", NULL)
               : ml_json_find(object, &raw, "spec", "conversion", "webhook", "clientConfig", NULL);
}

static bool write_patch(const struct ml_webhook_bundles *self, struct ml_str object,
                        struct ml_buf *out)
{
    const struct place *place = current_place(self);
    struct ml_json_writer writer;
    struct ml_str rv = ML_STR("\"\""), webhooks = ML_STR("[]");
    bool changed;
    (void)ml_json_find(object, &rv, "metadata", "resourceVersion", NULL);
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    ml_json_key(&writer, ML_STR("metadata"));
    ml_json_begin_object(&writer);
    ml_json_put_raw(&writer, "resourceVersion", rv);
    ml_json_end_object(&writer);
    if (place->webhook) {
        (void)ml_json_find(object, &webhooks, "webhooks", NULL);
        ml_json_key(&writer, ML_STR("webhooks"));
        changed = change_webhooks(self, webhooks, &writer);
    } else {
        changed = change_conversion(self, object, &writer);
    }
    ml_json_end_object(&writer);
    return changed;
}

/* ---- a round ---- */

static void use_place(struct ml_webhook_bundles *self, struct ml_str object)
{
    ML_AUTO(ml_buf_fini) struct ml_buf patch = ML_BUF_INIT;
    const struct place *place = current_place(self);
    struct ml_err err;
    if (!is_registered(place, object)) {
        ml_err_set(&err, ML_ENOT_FOUND, "%s %s calls no webhook", place->kind->kind, place->name);
        fail_place(self, &err);
        return;
    }
    if (!write_patch(self, object, &patch)) {
        next_place(self);
        return;
    }
    const struct ml_client_request request = {
        .verb = ML_VERB_PATCH_MERGE,
        .kind = place->kind,
        .name = ml_str_of(place->name),
        .field_manager = "moonloop",
        .body = ml_buf_str(&patch),
    };
    self->is_writing = true;
    self->call = ml_client_send(self->opts.client, &request, on_written, self);
}

static void on_read(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_webhook_bundles *self = context;
    self->call = NULL;
    if (err)
        fail_place(self, err);
    else
        use_place(self, body);
}

static void read_place(struct ml_webhook_bundles *self)
{
    const struct place *place = current_place(self);
    const struct ml_client_request request = {
        .verb = ML_VERB_GET, .kind = place->kind, .name = ml_str_of(place->name)};
    self->call = ml_client_send(self->opts.client, &request, on_read, self);
}

static void on_round(void *context)
{
    struct ml_webhook_bundles *self = context;
    struct place before[PLACES_MAX];
    size_t before_count = self->place_count, cursor = 0;
    struct ml_webhook_target target;
    memcpy(before, self->places, before_count * sizeof *before);
    self->place_count = self->at = 0;
    self->is_incomplete = self->again = self->begins_anew = false;
    self->round_ns = ml_clock_monotonic(ml_loop_clock(self->opts.loop));
    if (self->bundle && self->opts.may_write(self->opts.context))
        while (self->opts.next(self->opts.context, &cursor, &target))
            add_places(self, &target);
    for (size_t i = 0; i < self->place_count; i++)
        watch_place(self, &self->places[i], before, before_count);
    drop_places(before, before_count);
    if (self->place_count > 0)
        read_place(self);
    else
        ml_timer_start(&self->round, AGAIN_NS);
}

/* ---- life ---- */

struct ml_webhook_bundles *ml_webhook_bundles_new(const struct ml_webhook_bundles_opts *opts)
{
    struct ml_webhook_bundles *self = ml_new(struct ml_webhook_bundles);
    self->opts = *opts;
    ml_timer_init(&self->round, opts->loop, on_round, self);
    return self;
}

void ml_webhook_bundles_free(struct ml_webhook_bundles *self)
{
    if (!self)
        return;
    if (self->call)
        ml_client_cancel(self->call);
    ml_timer_stop(&self->round);
    drop_places(self->places, self->place_count);
    ml_repeats_clear(&self->troubles);
    free(self->bundle);
    free(self);
}

void ml_webhook_bundles_set(struct ml_webhook_bundles *self, const char *ca_pem)
{
    ML_AUTO(ml_buf_fini) struct ml_buf encoded = ML_BUF_INIT;
    ml_base64_encode(ml_str_of(ca_pem), &encoded);
    if (self->bundle && strcmp(self->bundle, ml_buf_cstr(&encoded)) == 0)
        return;
    free(self->bundle);
    self->bundle = ml_buf_take(&encoded);
    ml_webhook_bundles_again(self);
}

void ml_webhook_bundles_again(struct ml_webhook_bundles *self)
{
    if (self->is_writing) { /* cancelled, it may be done all the same, and nobody told */
        self->begins_anew = true;
        return;
    }
    if (self->call)
        ml_client_cancel(ml_take(&self->call));
    ml_timer_start(&self->round, 0);
}
