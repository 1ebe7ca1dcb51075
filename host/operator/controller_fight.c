/* Keys that are slowed (enqueue_filter.h): finds the other side, which changes the same field, and
 * reports both. */
#include "operator/controller_internal.h"

#include "codec/json.h"
#include "state/writer.h"

#define LOOKUPS_MAX       16 /* at a time; with more, the other side stays unnamed */
#define LOOKUP_TIMEOUT_MS 10000

/* The other side of a fight is no run of this process. Half of the pause later, when this
 * controller has left the field alone for a while, the object is read from the server: its
 * managedFields name the one that wrote the field last. (The cache has none.) */
struct lookup {
    struct ml_controller *controller;
    char *key, *fields;
    const struct ml_kind *kind;
    char *ns, *name, *field; /* of the object that both change */
    struct ml_timer timer;
    struct ml_client_call *call;
    struct ml_list node;
};

static bool is_self(const struct ml_controller *self, const struct ml_author *author)
{
    return strcmp(author->controller, self->name) == 0;
}

static const char *name_author(struct ml_controller *self, const struct ml_author *author)
{
    ml_buf_clear(&self->author);
    if (is_self(self, author))
        ml_buf_printf(&self->author, "the same controller for %s %s",
                      ml_revision_kind(self->current)->kind, author->key);
    else
        ml_buf_printf(&self->author, "controller %s", author->controller);
    return ml_buf_cstr(&self->author);
}

const char *controller_author_of(void *context, struct ml_str key, const struct ml_change *change,
                                 bool *own)
{
    struct ml_controller *self = context;
    const struct ml_authors *authors = self->services->authors;
    const struct ml_author *author = change->new ? ml_authors_of(authors,
                                                                 ml_informer_kind(change->informer),
                                                                 ml_object_rv_number(change->new))
                                                 : ml_authors_of_deletion(
                                                       authors, ml_object_uid(change->old));
    if (!author)
        return NULL;
    *own = is_self(self, author) && ml_str_is(key, author->key);
    return name_author(self, author);
}

/* ---- telling ---- */

static void record_slowed(struct ml_controller *self, struct ml_str key, const char *reason,
                          const char *note)
{
    const struct ml_object *object = self->current ? controller_object(self, key) : NULL;
    if (object)
        ml_object_warning(self->services, self->name, ml_revision_kind(self->current), object,
                          reason, note);
}

/* `other` NULL: there is no other side. */
static void tell_slowed(struct ml_controller *self, struct ml_str key, const char *fields,
                        const char *other)
{
    ML_AUTO_FREE char *note =
        other ? ml_asprintf("controller %s and %s change the same field in turn: %s; controller %s "
                            "is slowed down",
                            self->name, other, fields, self->name)
              : ml_asprintf("each run changes what brings the next one: %s; it is slowed down",
                            fields);
    struct ml_repeat *repeat = &ml_keys_failures(&self->keys, key)->slowed;
    if (ml_repeat_failed(repeat, ml_str_of(note), ml_clock_monotonic(self->services->clock)))
        ml_warn(self->services->log, self->name,
                other ? "somebody else changes the same field in turn; slowing this controller down"
                      : "script wakes itself; slowing it down",
                CONTROLLER_KEY_FIELDS(self, key), ML_S(other ? "other" : "", other),
                ML_S("changes", fields),
                ML_REPEAT_FIELDS(repeat, ml_enqueue_filter_pause(self->filter, key)));
    record_slowed(self, key, other ? "ControllersFight" : "SelfTriggered", note);
}

/* ---- the other side ---- */

static void lookup_end(struct lookup *lookup, const char *other)
{
    struct ml_controller *self = lookup->controller;
    ml_list_remove(&lookup->node);
    if (other && self->current)
        tell_slowed(self, ml_str_of(lookup->key), lookup->fields, other);
    ml_timer_stop(&lookup->timer);
    if (lookup->call)
        ml_client_cancel(lookup->call);
    free(lookup->key);
    free(lookup->fields);
    free(lookup->ns);
    free(lookup->name);
    free(lookup->field);
    free(lookup);
}

void controller_forget_lookups(struct ml_controller *self, struct ml_str key)
{
    ml_list_each_entry (struct lookup, lookup, &self->lookups)
        if (ml_str_is(key, lookup->key))
            lookup_end(lookup, NULL);
}

void controller_cancel_lookups(struct ml_controller *self)
{
    ml_list_each_entry (struct lookup, lookup, &self->lookups)
        lookup_end(lookup, NULL);
}

/* Takes the next key off a field's name: "metadata.annotations[example.com/at]". */
static struct ml_str next_key(struct ml_str *field)
{
    if (field->len == 0 || field->ptr[0] != '[') {
        size_t len = 0;
        while (len < field->len && field->ptr[len] != '.' && field->ptr[len] != '[')
            len++;
        struct ml_str key = {field->ptr, len};
        bool dot = len < field->len && field->ptr[len] == '.';
        *field = (struct ml_str){field->ptr + len + dot, field->len - len - dot};
        return key;
    }
    struct ml_str rest = {field->ptr + 1, field->len - 1};
    struct ml_str key = ml_str_cut(&rest, ']');
    if (rest.len > 0 && rest.ptr[0] == '.')
        rest = (struct ml_str){rest.ptr + 1, rest.len - 1};
    *field = rest;
    return key;
}

/* Does an entry of managedFields have the field? */
static bool entry_has_field(struct ml_str entry, struct ml_str field)
{
    struct ml_str fields;
    if (!ml_json_find(entry, &fields, "fieldsV1", NULL))
        return false;
    while (field.len > 0) {
        struct ml_str key = next_key(&field);
        ML_AUTO_FREE char *name = ml_asprintf("f:" ML_STR_FMT, ML_STR_ARG(key));
        if (!ml_json_find(fields, &fields, name, NULL))
            return false;
    }
    return true;
}

/* The manager of the status that each controller of moonloop writes. */
#define STATUS_MANAGER "moonloop"

/* The manager that wrote the field last, other than `own` and the one of our status; NULL: there is
 * none. */
static char *find_other_manager(struct ml_str object, struct ml_str field, const char *own)
{
    ML_AUTO_FREE char *last = NULL;
    struct ml_str entries;
    char *found = NULL;
    if (!ml_json_find(object, &entries, "metadata", "managedFields", NULL))
        return NULL;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, entries, 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return NULL;
    for (struct ml_str entry; (entry = ml_json_skip(&reader)).len > 0;) {
        ML_AUTO_FREE char *manager = ml_json_find_string(entry, "manager", NULL);
        ML_AUTO_FREE char *time = ml_json_find_string(entry, "time", NULL);
        if (!manager || !time || strcmp(manager, own) == 0 ||
            strcmp(manager, STATUS_MANAGER) == 0 || (last && strcmp(time, last) < 0) ||
            !entry_has_field(entry, field))
            continue;
        free(found);
        found = ml_take(&manager);
        free(last);
        last = ml_take(&time);
    }
    return found;
}

static void on_object_read(void *context, struct ml_str body, const struct ml_err *err)
{
    struct lookup *lookup = context;
    ML_AUTO_FREE char *own = ml_asprintf("moonloop-%s", lookup->controller->name);
    ML_AUTO_FREE char *manager = err ? NULL
                                     : find_other_manager(body, ml_str_of(lookup->field), own);
    ML_AUTO_FREE char *other = manager ? ml_asprintf("field manager %s", manager)
                                       : ml_strdup("another client");
    lookup->call = NULL;
    lookup_end(lookup, other);
}

static void read_object(void *context)
{
    struct lookup *lookup = context;
    const struct ml_client_request request = {
        .verb = ML_VERB_GET,
        .kind = lookup->kind,
        .ns = ml_str_of(lookup->ns),
        .name = ml_str_of(lookup->name),
        .timeout_ms = LOOKUP_TIMEOUT_MS,
    };
    lookup->call = ml_client_send(lookup->controller->services->client, &request, on_object_read,
                                  lookup);
}

static void look_up_other(struct ml_controller *self, struct ml_str key,
                          const struct ml_slowed *slowed)
{
    const struct ml_object *object = slowed->change->new;
    struct lookup *lookup = ml_new(struct lookup);
    lookup->controller = self;
    lookup->key = ml_str_dup(key);
    lookup->fields = ml_strdup(slowed->fields);
    lookup->kind = ml_informer_kind(slowed->change->informer);
    lookup->ns = ml_str_dup(ml_object_namespace(object));
    lookup->name = ml_str_dup(ml_object_name(object));
    lookup->field = ml_strdup(slowed->field);
    ml_list_push(&self->lookups, &lookup->node);
    ml_timer_init(&lookup->timer, self->services->loop, read_object, lookup);
    ml_timer_start(&lookup->timer, slowed->pause_ns / 2);
}

static bool looks_up(const struct ml_controller *self, struct ml_str key)
{
    size_t count = 0;
    ml_list_each_entry (const struct lookup, lookup, &self->lookups)
        if (++count == LOOKUPS_MAX || ml_str_is(key, lookup->key))
            return true;
    return false;
}

/* The answer to the write of the other side may have come after its change; now it is there. */
static const char *name_other_side(struct ml_controller *self, const struct ml_slowed *slowed)
{
    if (slowed->other_side)
        return slowed->other_side;
    const struct ml_author *author = ml_authors_of(
        self->services->authors, ml_informer_kind(slowed->change->informer), slowed->other_side_rv);
    return author ? name_author(self, author) : NULL;
}

void controller_key_slowed(struct ml_controller *self, struct ml_str key,
                           const struct ml_slowed *slowed)
{
    const char *other_side = slowed->fight ? name_other_side(self, slowed) : NULL;
    bool is_unknown = slowed->fight && !other_side;
    ml_metric_add(self->metrics.slowed, 1);
    if (is_unknown && *slowed->field && slowed->change->new && !looks_up(self, key))
        look_up_other(self, key, slowed);
    else
        tell_slowed(self, key, slowed->fields, is_unknown ? "another client" : other_side);
}

void controller_key_hot(struct ml_controller *self, struct ml_str key)
{
    ml_warn(self->services->log, self->name,
            "script asks to be called again at once, again and again; slowing it down",
            CONTROLLER_KEY_FIELDS(self, key));
    ml_metric_add(self->metrics.slowed, 1);
    record_slowed(self, key, "SelfTriggered",
                  "each run asks to be called again at once (requeue_after, requeue_at): "
                  "after 100 of them the next ones wait, up to 1 s");
}
