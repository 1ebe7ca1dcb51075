/* Keys that are slowed: who changes the same field, and the lines and revisions that do it. */
#include "operator/fights.h"

#include "codec/json.h"
#include "kube/managed_fields.h"
#include "operator/reconcile.h"
#include "state/journal.h"

#include <stdio.h>

#define LOOKUPS_MAX       16 /* at a time; with more, the other side stays unnamed */
#define LOOKUP_TIMEOUT_MS 10000

/* A fight that pauses for 1000 s at most is over after a minute of peace: then the next one begins
 * anew. */
#define LASTS_NS (1100 * ML_NS_PER_S)

struct ml_fights {
    struct ml_fights_opts opts;
    struct ml_list lookups;
};

/* A key that is slowed, and the object that is changed too often. Strings live as long as the
 * call that they are passed to. */
struct slowed_key {
    struct ml_str key;
    const char *fields; /* as in struct ml_slowed */
    const struct ml_kind *kind;
    struct ml_str object; /* its key */
};

/* The read of the object that both sides change. */
struct lookup {
    struct ml_fights *fights;
    char *key, *fields, *object;
    const struct ml_kind *kind;
    char *field; /* the one that is looked for among the managed fields */
    struct ml_timer timer;
    struct ml_client_call *call;
    struct ml_list node;
};

/* ---- lines and revisions ---- */

/* A side's last write of the object, as far as the journal has it: else the texts are empty. */
struct side {
    struct ml_str controller, key, place, revision;
};

static bool is_run_of(const struct ml_journal_entry *entry, const struct side *side)
{
    return entry->what == ML_JOURNAL_RUN && side->place.len > 0 && side->revision.len == 0 &&
           ml_str_eq(entry->controller, side->controller) && ml_str_eq(entry->key, side->key);
}

/* Fills the key's own side, and that of another run. The texts are the journal's, until an entry is
 * added. */
static void find_sides(const struct ml_fights *self, const struct slowed_key *slowed,
                       struct side *own, struct side *other)
{
    const struct ml_journal *journal = self->opts.services->journal;
    struct ml_str kind = ml_str_of(slowed->kind->kind);
    struct ml_journal_cursor cursor = {0};
    struct ml_journal_entry entry;
    *own = *other = (struct side){.place = {NULL, 0}};
    while (journal && ml_journal_next(journal, &cursor, &entry)) {
        if (is_run_of(&entry, own))
            own->revision = entry.revision;
        else if (is_run_of(&entry, other))
            other->revision = entry.revision;
        if (entry.what != ML_JOURNAL_WRITE || entry.error.len > 0 || entry.place.len == 0 ||
            !ml_str_eq(entry.kind, kind) || !ml_str_eq(entry.name, slowed->object))
            continue;
        bool is_own = ml_str_is(entry.controller, self->opts.controller) &&
                      ml_str_eq(entry.key, slowed->key);
        *(is_own ? own : other) = (struct side){
            .controller = entry.controller,
            .key = entry.key,
            .place = entry.place,
        };
    }
}

static void append_side(const struct side *side, struct ml_buf *out)
{
    if (side->place.len == 0)
        return;
    ml_buf_printf(out, "%s" ML_STR_FMT, out->len > 0 ? ", " : "", ML_STR_ARG(side->place));
    if (side->revision.len > 0)
        ml_buf_printf(out, " of revision " ML_STR_FMT, ML_STR_ARG(side->revision));
}

/* "ConfigMap d/a: data.time (site.lua:12 of revision 3f2a91bc)". `other` NULL: there is no other
 * side. */
static void append_fields(const struct ml_fights *self, const struct slowed_key *slowed,
                          const char *other, struct ml_buf *out)
{
    ML_AUTO(ml_buf_fini) struct ml_buf lines = ML_BUF_INIT;
    const struct ml_revision *revision = NULL;
    struct side own, second;
    (void)self->opts.object(self->opts.context, slowed->key, &revision);
    find_sides(self, slowed, &own, &second);
    if (own.revision.len == 0 && revision) /* the run that wrote has not ended */
        own.revision = ml_str_of(revision->declaration->revision);
    append_side(&own, &lines);
    ML_AUTO_FREE char *name = ml_asprintf("controller " ML_STR_FMT, ML_STR_ARG(second.controller));
    bool is_same = ml_str_is(second.controller, self->opts.controller);
    if (other &&
        (is_same ? strstr(other, "the same controller") != NULL : strcmp(other, name) == 0))
        append_side(&second, &lines);
    ml_buf_puts(out, slowed->fields);
    if (lines.len > 0)
        ml_buf_printf(out, " (" ML_STR_FMT ")", ML_STR_ARG(ml_buf_str(&lines)));
}

/* ---- telling ---- */

/* Since which revision of this controller has the key been slowed? */
static const char *note_beginning(struct ml_key_failures *failures, const char *revision,
                                  int64_t now_ns)
{
    if (failures->slowed_ns == 0 || now_ns - failures->slowed_ns > LASTS_NS)
        snprintf(failures->slowed_since, sizeof failures->slowed_since, "%s", revision);
    failures->slowed_ns = ML_MAX(now_ns, 1);
    return failures->slowed_since;
}

/* `other` NULL: there is no other side. */
static void tell(struct ml_fights *self, const struct slowed_key *slowed, const char *other)
{
    const struct ml_fights_opts *opts = &self->opts;
    const struct ml_revision *revision = NULL;
    const struct ml_object *object = opts->object(opts->context, slowed->key, &revision);
    ML_AUTO(ml_buf_fini) struct ml_buf note = ML_BUF_INIT, fields = ML_BUF_INIT;
    int64_t now_ns = ml_clock_monotonic(opts->services->clock);
    if (!revision)
        return;
    struct ml_key_failures *failures = ml_keys_failures(opts->keys, slowed->key);
    struct ml_repeat *repeat = &failures->slowed;
    const char *since = note_beginning(failures, revision->declaration->revision, now_ns);
    append_fields(self, slowed, other, &fields);
    if (other)
        ml_buf_printf(&note,
                      "controller %s and %s change the same field in turn: " ML_STR_FMT
                      "; controller %s is slowed down",
                      opts->controller, other, ML_STR_ARG(ml_buf_str(&fields)), opts->controller);
    else
        ml_buf_printf(
            &note, "each run changes what brings the next one: " ML_STR_FMT "; it is slowed down",
            ML_STR_ARG(ml_buf_str(&fields)));
    if (strcmp(since, revision->declaration->revision) != 0)
        ml_buf_printf(&note, "; that began with revision %s", since);
    ML_AUTO_FREE char *same = ml_asprintf("%s %s", other ? other : "", slowed->fields);
    if (ml_repeat_failed(repeat, ml_str_of(same), now_ns)) /* the lines may come later */
        ml_warn(opts->services->log, opts->controller,
                other ? "somebody else changes the same field in turn; slowing this controller down"
                      : "script wakes itself; slowing it down",
                ML_OBJECT_FIELDS(opts->controller, ml_revision_kind(revision)->kind, slowed->key),
                ML_S(other ? "other" : "", other), ML_STR_FIELD("changes", ml_buf_str(&fields)),
                ML_S("since", since),
                ML_REPEAT_FIELDS(repeat, ml_enqueue_filter_pause(opts->filter, slowed->key)));
    if (object)
        ml_object_warning(opts->services, opts->controller, ml_revision_kind(revision), object,
                          other ? "ControllersFight" : "SelfTriggered", ml_buf_cstr(&note));
}

void ml_fights_tell_hot(struct ml_fights *self, struct ml_str key)
{
    const struct ml_fights_opts *opts = &self->opts;
    const struct ml_revision *revision = NULL;
    const struct ml_object *object = opts->object(opts->context, key, &revision);
    if (!revision)
        return;
    ml_warn(opts->services->log, opts->controller,
            "script asks to be called again at once, again and again; slowing it down",
            ML_OBJECT_FIELDS(opts->controller, ml_revision_kind(revision)->kind, key));
    if (object)
        ml_object_warning(opts->services, opts->controller, ml_revision_kind(revision), object,
                          "SelfTriggered",
                          "each run asks to be called again at once (requeue_after, requeue_at): "
                          "after 100 of them the next ones wait, up to 1 s");
}

/* ---- the other side, by its managed fields ---- */

/* `other` NULL: nothing is told. */
static void lookup_end(struct lookup *lookup, const char *other)
{
    const struct slowed_key slowed = {
        .key = ml_str_of(lookup->key),
        .fields = lookup->fields,
        .kind = lookup->kind,
        .object = ml_str_of(lookup->object),
    };
    ml_list_remove(&lookup->node);
    if (other)
        tell(lookup->fights, &slowed, other);
    ml_timer_stop(&lookup->timer);
    if (lookup->call)
        ml_client_cancel(lookup->call);
    free(lookup->key);
    free(lookup->fields);
    free(lookup->object);
    free(lookup->field);
    free(lookup);
}

/* The manager that wrote the field last, other than those of the controller `own` and the one of
 * our status; NULL: there is none. */
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
        if (!manager || !time || ml_str_is(ml_controller_of_manager(manager), own) ||
            strcmp(manager, ML_STATUS_MANAGER) == 0 || (last && strcmp(time, last) < 0) ||
            !ml_managed_entry_has(entry, field))
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
    const char *own = lookup->fights->opts.controller;
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
    struct ml_str object = ml_str_of(lookup->object);
    const struct ml_client_request request = {
        .verb = ML_VERB_GET,
        .kind = lookup->kind,
        .ns = ml_key_namespace(object),
        .name = ml_key_name(object),
        .timeout_ms = LOOKUP_TIMEOUT_MS,
    };
    lookup->call = ml_client_send(lookup->fights->opts.services->client, &request, on_object_read,
                                  lookup);
}

static void look_up_other(struct ml_fights *self, struct ml_str key, const struct ml_slowed *slowed)
{
    struct lookup *lookup = ml_new(struct lookup);
    lookup->fights = self;
    lookup->key = ml_str_dup(key);
    lookup->fields = ml_strdup(slowed->fields);
    lookup->kind = ml_informer_kind(slowed->change->informer);
    lookup->object = ml_str_dup(ml_object_key(slowed->change->new));
    lookup->field = ml_strdup(slowed->field);
    ml_list_push(&self->lookups, &lookup->node);
    ml_timer_init(&lookup->timer, self->opts.services->loop, read_object, lookup);
    ml_timer_start(&lookup->timer, slowed->pause_ns / 2);
}

static bool looks_up(const struct ml_fights *self, struct ml_str key)
{
    size_t count = 0;
    ml_list_each_entry (const struct lookup, lookup, &self->lookups)
        if (++count == LOOKUPS_MAX || ml_str_is(key, lookup->key))
            return true;
    return false;
}

/* ---- the interface ---- */

static struct slowed_key slowed_key_of(struct ml_str key, const struct ml_slowed *slowed)
{
    return (struct slowed_key){
        .key = key,
        .fields = slowed->fields,
        .kind = ml_informer_kind(slowed->change->informer),
        .object = ml_object_key(ml_change_object(slowed->change)),
    };
}

void ml_fights_tell(struct ml_fights *self, struct ml_str key, const struct ml_slowed *slowed)
{
    const struct slowed_key what = slowed_key_of(key, slowed);
    bool is_unknown = slowed->fight && !slowed->other_side;
    if (is_unknown && *slowed->field && slowed->change->new && !looks_up(self, key))
        look_up_other(self, key, slowed);
    else
        tell(self, &what, is_unknown ? "another client" : slowed->other_side);
}

char *ml_fights_describe(const struct ml_fights *self, struct ml_str key,
                         const struct ml_slowed *slowed)
{
    const struct slowed_key what = slowed_key_of(key, slowed);
    struct ml_buf text = ML_BUF_INIT;
    append_fields(self, &what, slowed->other_side, &text);
    return ml_buf_take(&text);
}

void ml_fights_forget(struct ml_fights *self, struct ml_str key)
{
    ml_list_each_entry (struct lookup, lookup, &self->lookups)
        if (ml_str_is(key, lookup->key))
            lookup_end(lookup, NULL);
}

struct ml_fights *ml_fights_new(const struct ml_fights_opts *opts)
{
    struct ml_fights *self = ml_new(struct ml_fights);
    self->opts = *opts;
    ml_list_init(&self->lookups);
    return self;
}

void ml_fights_free(struct ml_fights *self)
{
    if (!self)
        return;
    ml_list_each_entry (struct lookup, lookup, &self->lookups)
        lookup_end(lookup, NULL);
    free(self);
}
