/* Questions to a running host: how its controllers are, and why an object was reconciled, or was
 * not. */
#include "operator/inspect.h"

#include "codec/json.h"
#include "codec/rfc3339.h"
#include "kube/managed_fields.h"
#include "kube/object_diff.h"
#include "operator/controller_internal.h"
#include "state/journal.h"

#include <strings.h>

#define RUNS_SHOWN   5
#define WRITES_SHOWN 20 /* that a run made, and that others made of the object */
#define LEFT_OUT_MAX 16
#define KEYS_SHOWN   200                  /* of those in trouble or active, in all */
#define ERROR_SHOWN  256                  /* bytes of an error beside its key */
#define TRACE_BYTES  ((size_t)256 * 1024) /* of one answer, and an entry: nobody waits for more */

/* ---- texts ---- */

static void put_time(struct ml_json_writer *writer, const char *key, int64_t wall_ns)
{
    char time[ML_RFC3339_MICRO_LEN + 1];
    ml_rfc3339_format_micro(wall_ns, time);
    ml_json_put_string(writer, key, ml_str_of(time));
}

static void put_ms(struct ml_json_writer *writer, const char *key, int64_t ns)
{
    ml_json_key(writer, ml_str_of(key));
    ml_json_real(writer, (double)(ns / 1000) / 1000);
}

/* Unless it is empty. */
static void put_text(struct ml_json_writer *writer, const char *key, struct ml_str text)
{
    if (text.len > 0)
        ml_json_put_string(writer, key, text);
}

static void put_buf(struct ml_json_writer *writer, const char *key, const struct ml_buf *text)
{
    put_text(writer, key, ml_buf_str(text));
}

/* Each line, or each terminated text, is one string. */
static void put_list(struct ml_json_writer *writer, const char *key, struct ml_str all, char end)
{
    ml_json_key(writer, ml_str_of(key));
    ml_json_begin_array(writer);
    while (all.len > 0) {
        struct ml_str one = ml_str_cut(&all, end);
        if (one.len > 0)
            ml_json_string(writer, one);
    }
    ml_json_end_array(writer);
}

static bool is_kind(const struct ml_kind *kind, struct ml_str asked)
{
    return (asked.len == strlen(kind->kind) &&
            strncasecmp(asked.ptr, kind->kind, asked.len) == 0) ||
           (asked.len == strlen(kind->plural) &&
            strncasecmp(asked.ptr, kind->plural, asked.len) == 0);
}

/* The kind that is asked about; NULL: no script has it. */
static const struct ml_kind *find_kind(struct ml_controller *const *all, size_t count,
                                       struct ml_str asked)
{
    for (size_t i = 0; i < count; i++) {
        const struct ml_revision *revision = all[i]->current;
        for (size_t k = 0; revision && k < revision->declaration->kind_count; k++)
            if (is_kind(revision->kinds[k], asked))
                return revision->kinds[k];
    }
    return NULL;
}

/* ---- what an asker is told ---- */

/* The things left out of an answer, by the rule that the asker lacks. */
struct left_out {
    struct {
        const char *what;           /* "controller" */
        const struct ml_kind *kind; /* NULL: not known */
        struct ml_str ns;           /* borrowed */
        size_t number;
    } rows[LEFT_OUT_MAX];
    size_t count;
};

/* The last row takes what has no room of its own. */
static void leave_out(struct left_out *self, const char *what, const struct ml_kind *kind,
                      struct ml_str ns)
{
    size_t i = 0;
    while (i < self->count &&
           !(self->rows[i].kind == kind && strcmp(self->rows[i].what, what) == 0 &&
             ml_str_eq(self->rows[i].ns, ns)))
        i++;
    if (i == LEFT_OUT_MAX) {
        self->rows[--i].what = "other entrie";
        self->rows[i].kind = NULL;
    } else if (i == self->count) {
        self->rows[self->count++] = (__typeof__(self->rows[0])){what, kind, ns, 0};
    }
    self->rows[i].number++;
}

/* "sites.example.com in namespace shop" */
static void describe_rule(const struct ml_kind *kind, struct ml_str ns, struct ml_buf *out)
{
    ml_buf_printf(out, "%s%s%s", kind->plural, *kind->group ? "." : "", kind->group);
    if (ns.len > 0)
        ml_buf_printf(out, " in namespace " ML_STR_FMT, ML_STR_ARG(ns));
}

static void put_left_out(const struct left_out *self, struct ml_json_writer *writer)
{
    if (self->count == 0)
        return;
    ml_json_key(writer, ML_STR("not_shown"));
    ml_json_begin_array(writer);
    for (size_t i = 0; i < self->count; i++) {
        ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
        bool one = self->rows[i].number == 1;
        ml_buf_printf(&text, "%zu %s%s not shown: ", self->rows[i].number, self->rows[i].what,
                      one ? " is" : "s are");
        if (self->rows[i].kind) {
            ml_buf_puts(&text, "you may not list ");
            describe_rule(self->rows[i].kind, self->rows[i].ns, &text);
        } else {
            ml_buf_puts(&text, "their kinds, or your rights to them, are not known");
        }
        ml_json_string(writer, ml_buf_str(&text));
    }
    ml_json_end_array(writer);
}

/* `ns` empty: in all namespaces. */
static bool may_list(const struct ml_inspect_asker *asker, const struct ml_kind *kind,
                     struct ml_str ns)
{
    const struct ml_str all = ML_STR("");
    return !asker || asker->may(asker->context, "list", kind, all, all) ||
           (ns.len > 0 && asker->may(asker->context, "list", kind, ns, all));
}

/* In each namespace that the host watches, or in all. */
static bool may_list_watched(const struct ml_inspect_view *view, const struct ml_kind *kind)
{
    const char *const *watched = ml_informers_namespaces(view->services->informers);
    if (may_list(view->asker, kind, ML_STR("")))
        return true;
    if (!watched || !*watched || !kind->namespaced)
        return false;
    while (*watched && may_list(view->asker, kind, ml_str_of(*watched)))
        watched++;
    return !*watched;
}

/* One without a version tells its name alone. */
static bool shows_controller(const struct ml_inspect_view *view,
                             const struct ml_controller *controller, struct left_out *left_out)
{
    const struct ml_kind *kind = controller->current ? ml_revision_kind(controller->current) : NULL;
    if (!kind || may_list_watched(view, kind))
        return true;
    leave_out(left_out, "controller", kind, ML_STR(""));
    return false;
}

/* The kind of this name that the live version of the controller declares; NULL: it does not, or no
 * version is live. An empty name: the reconciled kind. */
static const struct ml_kind *kind_of(const struct ml_controller *controller, struct ml_str name)
{
    const struct ml_revision *revision = controller->current;
    for (size_t i = 0; revision && i < revision->declaration->kind_count; i++)
        if (name.len == 0 || ml_str_is(name, revision->kinds[i]->kind))
            return revision->kinds[i];
    return NULL;
}

static const struct ml_controller *find_controller(struct ml_controller *const *all, size_t count,
                                                   struct ml_str name)
{
    for (size_t i = 0; i < count; i++)
        if (ml_str_is(name, all[i]->name))
            return all[i];
    return NULL;
}

/* May the asker see the kind in the namespace of the key? Else it is counted. */
static bool shows_kind(const struct ml_inspect_view *view, const struct ml_kind *kind,
                       struct ml_str key, const char *what, struct left_out *left_out)
{
    if (kind && may_list(view->asker, kind, ml_key_namespace(key)))
        return true;
    leave_out(left_out, what, kind, kind ? ml_key_namespace(key) : ML_STR(""));
    return false;
}

/* An entry of the journal names the object of the run and, of a write, the one that was written. */
static bool shows_entry(const struct ml_inspect_view *view, struct ml_controller *const *all,
                        size_t count, const struct ml_journal_entry *entry,
                        struct left_out *left_out)
{
    const struct ml_controller *by = find_controller(all, count, entry->controller);
    bool is_run = entry->what == ML_JOURNAL_RUN;
    const char *what = is_run ? "run" : "write";
    if (!view->asker)
        return true;
    return shows_kind(view, by ? kind_of(by, ML_STR("")) : NULL, entry->key, what, left_out) &&
           (is_run || shows_kind(view, kind_of(by, entry->kind), entry->name, what, left_out));
}

/* ---- how a controller is ---- */

/* Why it begins no run at all; NULL: it does. */
static const char *controller_rests(const struct ml_controller *controller)
{
    const struct ml_services *services = controller->services;
    if (!controller->current)
        return "no version of its script is live yet";
    if (controller->current->stopped)
        return "its version was stopped, and the one before is not live yet";
    if (controller->stopping)
        return "it is stopping";
    if (controller->removal.on)
        return "it is being removed, and takes its finalizers off";
    if (services->standby)
        return "this replica stands by; another one leads";
    if (controller->paused)
        return "it is paused (moonloop pause CONTROLLER --end)";
    if (ml_informer_is_degraded(controller->current->informers[0]))
        return "its kind cannot be watched";
    if (controller->circuit.state != ML_CIRCUIT_CLOSED)
        return "its circuit is open: the script runs into its limits, and one object at a time "
               "tries it";
    return NULL;
}

/* A new version that may still be taken back. */
static void put_trial(const struct ml_controller *controller, struct ml_json_writer *writer)
{
    const struct controller_trial *trial = &controller->trial;
    if (!trial->revision)
        return;
    ml_json_key(writer, ML_STR("trial"));
    ml_json_begin_object(writer);
    ml_json_put_string(writer, "revision", ml_str_of(trial->revision->declaration->revision));
    ml_json_put_int(writer, "objects", (int64_t)trial->brake.tried);
    ml_json_put_int(writer, "of", (int64_t)trial->brake.objects);
    ml_json_end_object(writer);
}

static void put_controller(const struct ml_controller *controller, struct ml_json_writer *writer)
{
    const struct ml_revision *current = controller->current;
    const struct ml_workqueue *queue = controller->queue;
    const char *rests = controller_rests(controller);
    ml_json_begin_object(writer);
    ml_json_put_string(writer, "controller", ml_str_of(controller->name));
    if (current) {
        ml_json_put_string(writer, "revision", ml_str_of(current->declaration->revision));
        ml_json_put_string(writer, "script", ml_str_of(current->declaration->file));
        ml_json_put_string(writer, "kind", ml_str_of(ml_revision_kind(current)->kind));
        ml_json_put_int(writer, "objects", (int64_t)ml_store_len(ml_revision_store(current)));
    }
    ml_json_put_int(writer, "ready", (int64_t)ml_workqueue_len(queue));
    ml_json_put_int(writer, "running", controller->in_flight);
    ml_json_put_int(writer, "waiting", (int64_t)ml_workqueue_delayed(queue));
    ml_json_put_int(writer, "failing", (int64_t)ml_workqueue_failing(queue, ML_STR("")).count);
    put_text(writer, "rests", ml_str_of(rests));
    put_trial(controller, writer);
    ml_json_end_object(writer);
}

/* Members of the object under way. */
static void put_status(const struct ml_inspect_view *view, struct left_out *left_out,
                       struct ml_json_writer *writer)
{
    ML_AUTO(ml_buf_fini) struct ml_buf checks = ML_BUF_INIT;
    struct ml_controller *all[ML_CONTROLLERS_MAX];
    ml_json_put_bool(writer, "leads", !view->services->standby);
    ml_json_put_bool(writer, "ready", view->ready);
    ml_buf_append_str(&checks, view->why);
    ml_scripts_list_ready(view->scripts, &checks);
    put_list(writer, "checks", ml_buf_str(&checks), '\n');
    ml_json_key(writer, ML_STR("controllers"));
    ml_json_begin_array(writer);
    size_t count = ml_scripts_controllers(view->scripts, all);
    for (size_t i = 0; i < count; i++)
        if (shows_controller(view, all[i], left_out))
            put_controller(all[i], writer);
    ml_json_end_array(writer);
}

static void answer_status(const struct ml_inspect_view *view, struct ml_buf *out)
{
    struct left_out left_out = {.count = 0};
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    put_status(view, &left_out, &writer);
    put_left_out(&left_out, &writer);
    ml_json_end_object(&writer);
}

/* ---- where a key stands ---- */

static int64_t wall_of(const struct ml_controller *controller, int64_t monotonic_ns)
{
    struct ml_clock *clock = controller->services->clock;
    return ml_clock_wall(clock) + monotonic_ns - ml_clock_monotonic(clock);
}

/* Why the key does not run at all; empty: nothing holds it. */
static void describe_hold(const struct ml_controller *controller, struct ml_str key,
                          struct ml_buf *out)
{
    const struct ml_services *services = controller->services;
    const char *rests = controller_rests(controller);
    const struct ml_object *object = ml_store_get(ml_revision_store(controller->current), key);
    if (!object)
        ml_buf_puts(out, "no such object is in the cache");
    else if (rests)
        ml_buf_printf(out, "controller %s runs for no object: %s", controller->name, rests);
    else if (services->shard && !ml_shard_acts(services->shard, ml_str_of(controller->name), key))
        ml_buf_puts(out, "another replica of the shard group has it");
    else if (ml_object_paused(object))
        ml_buf_puts(out, "it is paused, by its annotation " ML_PAUSED_ANNOTATION);
}

static bool cache_shows_writes(const struct ml_controller *controller, struct ml_str key)
{
    const struct ml_revision *revision = ml_controller_revision_of(controller, key);
    for (size_t i = 0; i < revision->declaration->kind_count; i++)
        if (revision->informers[i] &&
            !ml_expectations_shown(controller->expectations, key, revision->informers[i]))
            return false;
    return true;
}

static void describe_failures(const struct ml_workqueue_place *place, struct ml_buf *out)
{
    if (place->failures == 1)
        ml_buf_puts(out, "it failed");
    else
        ml_buf_printf(out, "it failed %u times in a row", place->failures);
    ml_buf_puts(out, place->awaits_server
                         ? ", and is tried again when the API server answers, or then"
                         : ", and is tried again");
}

/* When it runs next, and why then. */
static void describe_place(const struct ml_controller *controller, struct ml_str key,
                           struct ml_json_writer *writer)
{
    const struct ml_workqueue_place place = ml_workqueue_find(controller->queue, key);
    int64_t pause_ns = ml_enqueue_filter_pause(controller->filter, key);
    ML_AUTO(ml_buf_fini) struct ml_buf now = ML_BUF_INIT;
    if (place.where == ML_KEY_OUT)
        ml_buf_puts(&now, "it runs");
    else if (pause_ns > 0)
        ml_buf_puts(&now, "it is slowed, as it wakes itself or fights with somebody else");
    else if (place.where == ML_KEY_READY)
        ml_buf_puts(&now, "it waits for its turn");
    else if (place.where == ML_KEY_DELAYED && place.failures > 0)
        describe_failures(&place, &now);
    else if (place.where == ML_KEY_DELAYED)
        ml_buf_puts(&now, "its last run asked to be called again");
    else if (!cache_shows_writes(controller, key))
        ml_buf_puts(&now, "it waits until the cache shows what its last run wrote");
    else
        ml_buf_puts(&now, "nothing is due: a change wakes it");
    put_buf(writer, "now", &now);
    if (place.where == ML_KEY_OUT || place.where == ML_KEY_READY)
        put_time(writer, "since", wall_of(controller, place.at_ns));
    else if (place.where == ML_KEY_DELAYED)
        put_time(writer, "due", wall_of(controller, place.at_ns));
}

/* A controller with a live version: the members `now`, and `since` or `due`. */
static void put_now(const struct ml_controller *controller, struct ml_str key,
                    struct ml_json_writer *writer)
{
    ML_AUTO(ml_buf_fini) struct ml_buf hold = ML_BUF_INIT;
    describe_hold(controller, key, &hold);
    if (hold.len > 0)
        put_buf(writer, "now", &hold);
    else
        describe_place(controller, key, writer);
}

static void put_key(const struct ml_controller *controller, struct ml_str key,
                    struct ml_json_writer *writer)
{
    ML_AUTO(ml_buf_fini) struct ml_buf reads = ML_BUF_INIT;
    const struct ml_revision *revision = ml_controller_revision_of(controller, key);
    ml_json_begin_object(writer);
    ml_json_put_string(writer, "controller", ml_str_of(controller->name));
    ml_json_put_string(writer, "revision", ml_str_of(revision->declaration->revision));
    put_now(controller, key, writer);
    /* Without this list every change of the kinds of the script wakes the key. With it, also any
     * change of its own object but of the status. */
    if (ml_read_sets_describe(controller->read_sets, revision, key, &reads))
        put_list(writer, "reads", ml_buf_str(&reads), '\0');
    ml_json_end_object(writer);
}

/* ---- what was done ---- */

/* The last entries of the journal that are about an object. */
struct history {
    struct ml_journal_entry runs[RUNS_SHOWN], writes[WRITES_SHOWN];
    size_t run_count, write_count; /* of all that there were */
};

static void keep(struct ml_journal_entry *list, size_t max, size_t *count,
                 const struct ml_journal_entry *entry)
{
    list[(*count)++ % max] = *entry;
}

/* The controllers of a host, and those that reconcile the kind that is asked about. */
struct asked {
    struct ml_str kind, key;
    const struct ml_kind *known; /* NULL: no script has the kind */
    struct ml_controller *all[ML_CONTROLLERS_MAX], *own[ML_CONTROLLERS_MAX];
    size_t count, own_count;
};

/* The names in it that are not the object's. */
static bool shows_write(const struct ml_inspect_view *view, const struct asked *asked,
                        const struct ml_journal_entry *write, bool is_own, bool is_of_object,
                        struct left_out *left_out)
{
    const struct ml_controller *by = find_controller(asked->all, asked->count, write->controller);
    if (!view->asker)
        return true;
    return (is_own ||
            shows_kind(view, by ? kind_of(by, ML_STR("")) : NULL, write->key, "write", left_out)) &&
           (is_of_object ||
            shows_kind(view, by ? kind_of(by, write->kind) : NULL, write->name, "write", left_out));
}

/* Runs for the key by one of these controllers, their writes, and writes of the object itself. The
 * asker may get the object; what else a write names is asked about. */
static void read_journal(const struct ml_inspect_view *view, const struct asked *asked,
                         struct history *out, struct left_out *left_out)
{
    const struct ml_journal *journal = view->services->journal;
    struct ml_str kind = asked->kind, key = asked->key;
    struct ml_journal_cursor cursor = {0};
    struct ml_journal_entry entry;
    while (journal && ml_journal_next(journal, &cursor, &entry)) {
        bool is_own = ml_str_eq(entry.key, key) &&
                      find_controller(asked->own, asked->own_count, entry.controller);
        bool is_of_object = entry.what == ML_JOURNAL_WRITE && ml_str_eq(entry.name, key) &&
                            entry.kind.len == kind.len &&
                            strncasecmp(entry.kind.ptr, kind.ptr, kind.len) == 0;
        if (is_own && entry.what == ML_JOURNAL_RUN)
            keep(out->runs, RUNS_SHOWN, &out->run_count, &entry);
        else if ((is_own || is_of_object) &&
                 shows_write(view, asked, &entry, is_own, is_of_object, left_out))
            keep(out->writes, WRITES_SHOWN, &out->write_count, &entry);
    }
}

static void put_run(const struct ml_journal_entry *run, struct ml_json_writer *writer)
{
    put_time(writer, "at", run->at_ns);
    put_text(writer, "controller", run->controller);
    put_text(writer, "for", run->key);
    put_text(writer, "revision", run->revision);
    put_text(writer, "cause", run->cause);
    if (run->waited_ns >= 0)
        put_ms(writer, "waited_ms", run->waited_ns);
    put_ms(writer, "took_ms", run->took_ns);
    put_ms(writer, "cpu_ms", run->cpu_ns);
    ml_json_put_int(writer, "writes", (int64_t)run->writes);
    put_text(writer, "result", run->result);
    put_text(writer, "error", run->error);
}

static void put_write(const struct ml_journal_entry *write, struct ml_json_writer *writer)
{
    put_time(writer, "at", write->at_ns);
    put_text(writer, "controller", write->controller);
    put_text(writer, "for", write->key);
    put_text(writer, "verb", write->verb);
    put_text(writer, "kind", write->kind);
    put_text(writer, "name", write->name);
    put_text(writer, "place", write->place);
    put_text(writer, "error", write->error);
}

/* The newest last. */
static void put_entries(const char *key, const struct ml_journal_entry *list, size_t max,
                        size_t count,
                        void (*put)(const struct ml_journal_entry *, struct ml_json_writer *),
                        struct ml_json_writer *writer)
{
    ml_json_key(writer, ml_str_of(key));
    ml_json_begin_array(writer);
    for (size_t i = count > max ? count - max : 0; i < count; i++) {
        ml_json_begin_object(writer);
        put(&list[i % max], writer);
        ml_json_end_object(writer);
    }
    ml_json_end_array(writer);
}

/* ---- one field ---- */

static int refuse_kind(const struct asked *asked, struct ml_buf *out)
{
    ml_buf_printf(out, "no script of this host has the kind " ML_STR_FMT "\n",
                  ML_STR_ARG(asked->kind));
    return 404;
}

/* Returns 200 when the object was read; 404 and 502 with the reason in `out`. */
static int check_read(const struct ml_inspect_view *view, const struct asked *asked,
                      struct ml_buf *out)
{
    struct ml_inspect_read *read = view->read;
    if (!asked->known)
        return refuse_kind(asked, out);
    if (!read->is_known) {
        read->kind = asked->known;
        read->ns = ml_str_dup(ml_key_namespace(asked->key));
        read->name = ml_str_dup(ml_key_name(asked->key));
        return ML_INSPECT_READS;
    }
    if (!read->err)
        return 200;
    ml_buf_printf(out, "the API server does not show the object: %s\n", read->err->message);
    return read->err->http == 404 ? 404 : 502;
}

/* The element of a list that has this text in one of its members, as a condition its type. */
static bool find_element(struct ml_str list, struct ml_str text, struct ml_str *out)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    static const char *const keys[] = {"name", "type", "key", "containerPort", "port", "ip", "uid"};
    ml_json_reader_init(&reader, list, 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return false;
    while ((*out = ml_json_skip(&reader)).len > 0)
        for (size_t i = 0; i < ML_COUNT(keys); i++) {
            ML_AUTO_FREE char *value = ml_json_find_string(*out, keys[i], NULL);
            struct ml_str raw = {"", 0};
            if (value ? ml_str_is(text, value)
                      : ml_json_find(*out, &raw, keys[i], NULL) && ml_str_eq(raw, text))
                return true;
        }
    return false;
}

static bool has_field(struct ml_str object, struct ml_str field)
{
    while (field.len > 0) {
        bool in_brackets;
        struct ml_str key = ml_field_take_key(&field, &in_brackets), inner;
        ML_AUTO_FREE char *name = ml_str_dup(key);
        if (!ml_json_find(object, &inner, name, NULL) &&
            !(in_brackets && find_element(object, key, &inner)))
            return false;
        object = inner;
    }
    return true;
}

/* The controller of this host that a manager is of; NULL: none is. */
static const struct ml_controller *controller_of_manager(const struct asked *asked,
                                                         const char *manager)
{
    struct ml_str name = ml_controller_of_manager(manager);
    return name.len > 0 ? find_controller(asked->all, asked->count, name) : NULL;
}

/* The last write of the object by the controller; of its status by any. */
static bool find_last_write(const struct ml_inspect_view *view, const struct asked *asked,
                            const struct ml_controller *by, struct ml_journal_entry *out)
{
    const struct ml_journal *journal = view->services->journal;
    struct ml_journal_cursor cursor = {0};
    struct ml_journal_entry entry;
    bool found = false;
    while (journal && ml_journal_next(journal, &cursor, &entry)) {
        if (entry.what != ML_JOURNAL_WRITE || entry.error.len > 0 ||
            !ml_str_eq(entry.name, asked->key) || !ml_str_eq(entry.kind, asked->kind) ||
            (by ? !ml_str_is(entry.controller, by->name)
                : !ml_str_is(entry.verb, "patch status of")))
            continue;
        *out = entry;
        found = true;
    }
    return found;
}

static void put_manager(const struct ml_inspect_view *view, const struct asked *asked,
                        struct ml_str entry, struct left_out *left_out,
                        struct ml_json_writer *writer)
{
    static const char *const members[][2] = {{"manager", "manager"},
                                             {"operation", "operation"},
                                             {"subresource", "subresource"},
                                             {"time", "at"}};
    ML_AUTO_FREE char *manager = ml_json_find_string(entry, "manager", NULL);
    const char *name = manager ? manager : "";
    const struct ml_controller *by = controller_of_manager(asked, name);
    struct ml_journal_entry write;
    ml_json_begin_object(writer);
    for (size_t i = 0; i < ML_COUNT(members); i++) {
        ML_AUTO_FREE char *text = ml_json_find_string(entry, members[i][0], NULL);
        if (text)
            put_text(writer, members[i][1], ml_str_of(text));
    }
    if (by)
        ml_json_put_string(writer, "controller", ml_str_of(by->name));
    if ((by || strcmp(name, ML_STATUS_MANAGER) == 0) && find_last_write(view, asked, by, &write) &&
        shows_write(view, asked, &write, false, true, left_out)) {
        ml_json_key(writer, ML_STR("write"));
        ml_json_begin_object(writer);
        put_write(&write, writer);
        ml_json_end_object(writer);
    }
    ml_json_end_object(writer);
}

static void put_field(const struct ml_inspect_view *view, const struct asked *asked,
                      struct ml_str field, struct left_out *left_out, struct ml_json_writer *writer)
{
    struct ml_str object = ml_buf_str(&view->read->object), entries = {"[]", 2};
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    (void)ml_json_find(object, &entries, "metadata", "managedFields", NULL);
    ml_json_key(writer, ML_STR("field"));
    ml_json_begin_object(writer);
    ml_json_put_string(writer, "name", field);
    ml_json_put_bool(writer, "found", has_field(object, field));
    ml_json_key(writer, ML_STR("managers"));
    ml_json_begin_array(writer);
    ml_json_reader_init(&reader, entries, 0);
    if (ml_json_next(&reader) == ML_JSON_ARRAY)
        for (struct ml_str entry; (entry = ml_json_skip(&reader)).len > 0;)
            if (ml_managed_entry_has(entry, field))
                put_manager(view, asked, entry, left_out, writer);
    ml_json_end_array(writer);
    ml_json_end_object(writer);
}

/* Does this process reconcile the object, if anything does? An object that none of its controllers
 * reconciles is written by the replica that leads. */
static bool acts_for(const struct ml_inspect_view *view, const struct asked *asked)
{
    const struct ml_shard *shard = view->services->shard;
    for (size_t i = 0; shard && i < asked->own_count; i++)
        if (ml_shard_acts(shard, ml_str_of(asked->own[i]->name), asked->key))
            return true;
    return !view->services->standby && (!shard || asked->own_count == 0);
}

/* `field` "": none is asked about. */
static void put_why(const struct ml_inspect_view *view, const struct asked *asked,
                    const char *field, struct ml_json_writer *writer)
{
    struct history history = {.run_count = 0};
    struct left_out left_out = {.count = 0};
    bool found = false;
    for (size_t i = 0; i < asked->own_count; i++)
        found = found || ml_store_get(ml_revision_store(asked->own[i]->current), asked->key);
    read_journal(view, asked, &history, &left_out);
    ml_json_begin_object(writer);
    ml_json_put_string(writer, "kind", asked->kind);
    ml_json_put_string(writer, "name", asked->key);
    ml_json_put_bool(writer, "found", found);
    ml_json_put_bool(writer, "acts", acts_for(view, asked));
    ml_json_key(writer, ML_STR("controllers"));
    ml_json_begin_array(writer);
    for (size_t i = 0; i < asked->own_count; i++)
        put_key(asked->own[i], asked->key, writer);
    ml_json_end_array(writer);
    put_entries("runs", history.runs, RUNS_SHOWN, history.run_count, put_run, writer);
    put_entries("writes", history.writes, WRITES_SHOWN, history.write_count, put_write, writer);
    if (*field)
        put_field(view, asked, ml_str_of(field), &left_out, writer);
    put_left_out(&left_out, writer);
    ml_json_end_object(writer);
}

/* Returns 200; or 403 or 404, with the reason in `out`. An asker needs the right to get the object,
 * of each group that has a kind of this name. */
static int check_right(const struct ml_inspect_view *view, const struct asked *asked,
                       struct ml_buf *out)
{
    const struct ml_inspect_asker *asker = view->asker;
    struct ml_str ns = ml_key_namespace(asked->key), name = ml_key_name(asked->key);
    if (asker && !asked->known)
        return refuse_kind(asked, out);
    for (size_t i = 0; asker && i < asked->count; i++) {
        const struct ml_revision *revision = asked->all[i]->current;
        for (size_t k = 0; revision && k < revision->declaration->kind_count; k++) {
            if (!is_kind(revision->kinds[k], asked->kind))
                continue;
            if (asker->may(asker->context, "get", revision->kinds[k], ns, name))
                continue;
            ml_buf_puts(out, "you may not get ");
            describe_rule(revision->kinds[k], ns, out);
            ml_buf_printf(out, ", by the name " ML_STR_FMT "\n", ML_STR_ARG(name));
            return 403;
        }
    }
    return 200;
}

static int answer_why(const struct ml_inspect_view *view, struct ml_str rest, const char *field,
                      struct ml_buf *out)
{
    struct asked asked = {.key = rest};
    struct ml_json_writer writer;
    struct ml_str kind = ml_str_cut(&asked.key, '/');
    if (kind.len == 0 || !ml_name_valid(kind) || !ml_key_valid(asked.key)) {
        ml_buf_puts(out, "expected /why/KIND/NAMESPACE/NAME or /why/KIND/NAME\n");
        return 400;
    }
    asked.count = ml_scripts_controllers(view->scripts, asked.all);
    asked.known = find_kind(asked.all, asked.count, kind);
    asked.kind = asked.known ? ml_str_of(asked.known->kind) : kind;
    for (size_t i = 0; i < asked.count; i++)
        if (asked.all[i]->current && is_kind(ml_revision_kind(asked.all[i]->current), asked.kind))
            asked.own[asked.own_count++] = asked.all[i];
    int status = check_right(view, &asked, out);
    if (status == 200 && *field)
        status = check_read(view, &asked, out);
    if (status != 200)
        return status;
    ml_json_writer_init(&writer, out);
    put_why(view, &asked, field, &writer);
    return 200;
}

static void put_trace_entry(const struct ml_journal_entry *entry, struct ml_json_writer *writer)
{
    bool is_run = entry->what == ML_JOURNAL_RUN;
    ml_json_begin_object(writer);
    ml_json_key(writer, is_run ? ML_STR("run") : ML_STR("write"));
    ml_json_begin_object(writer);
    (is_run ? put_run : put_write)(entry, writer);
    ml_json_end_object(writer);
    ml_json_end_object(writer);
}

static int answer_trace(const struct ml_inspect_view *view, struct ml_str number,
                        struct ml_buf *out)
{
    const struct ml_journal *journal = view->services->journal;
    struct ml_controller *all[ML_CONTROLLERS_MAX];
    size_t count = ml_scripts_controllers(view->scripts, all);
    struct left_out left_out = {.count = 0};
    struct ml_journal_cursor cursor = {0};
    struct ml_journal_entry entry;
    struct ml_json_writer writer;
    uint64_t after = ml_journal_added(journal), missed = 0;
    bool more = false, any = false;
    if (number.len > 0 && !ml_str_to_u64(number, &after)) {
        ml_buf_puts(out, "expected /trace/NUMBER or /trace/\n");
        return 400;
    }
    uint64_t next = after;
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    ml_json_key(&writer, ML_STR("entries"));
    ml_json_begin_array(&writer);
    while (journal && !more && ml_journal_next(journal, &cursor, &entry)) {
        if (entry.number <= after)
            continue;
        if (!any)
            missed = entry.number - after - 1;
        any = true;
        next = entry.number;
        if (shows_entry(view, all, count, &entry, &left_out))
            put_trace_entry(&entry, &writer);
        more = out->len > TRACE_BYTES && entry.number < ml_journal_added(journal);
    }
    ml_json_end_array(&writer);
    ml_json_put_bool(&writer, "more", more);
    ml_json_put_int(&writer, "missed", (int64_t)missed);
    ml_json_put_int(&writer, "next", (int64_t)ML_MIN(next, ml_journal_added(journal)));
    put_left_out(&left_out, &writer);
    ml_json_end_object(&writer);
    return 200;
}

/* ---- the keys in trouble, and those that are active ---- */

/* In the order in which a person looks at them. */
enum trouble { FAILS, SLOWED, PAUSED, RUNS, AWAITS_CACHE, READY, DUE, NO_TROUBLE };

static const char *const trouble_names[] = {"fails", "slowed", "paused", "runs",
                                            "cache", "ready",  "due"};

struct troubled {
    const struct ml_controller *controller;
    struct ml_str key; /* of a record or an object */
    enum trouble trouble;
    int64_t order;    /* among those of the same trouble: the least comes first */
    int64_t failures; /* in a row */
};

/* The runs of a key that the journal has. */
struct last_run {
    char *id; /* "CONTROLLER KEY" */
    size_t runs;
    struct ml_journal_entry run; /* the last of these */
};

/* The KEYS_SHOWN of all with the most trouble, the first of them first. */
struct ranking {
    struct troubled best[KEYS_SHOWN + 1];
    struct last_run last[KEYS_SHOWN];
    size_t count, all, failing; /* told, in all, and those of the host that fail */
    const struct ml_inspect_view *view;
    struct left_out left_out;
};

static void ranking_fini(struct ranking *self)
{
    for (size_t i = 0; i < self->count; i++)
        free(self->last[i].id);
}

static bool comes_before(const struct troubled *a, const struct troubled *b)
{
    if (a->trouble != b->trouble)
        return a->trouble < b->trouble;
    if (a->order != b->order)
        return a->order < b->order;
    int by_key = ml_str_cmp(a->key, b->key);
    return by_key ? by_key < 0 : strcmp(a->controller->name, b->controller->name) < 0;
}

static void rank(struct ranking *self, const struct troubled *one)
{
    size_t low = 0, high = self->count;
    self->all++;
    if (high == KEYS_SHOWN && !comes_before(one, &self->best[high - 1]))
        return;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (comes_before(&self->best[middle], one))
            low = middle + 1;
        else
            high = middle;
    }
    memmove(&self->best[low + 1], &self->best[low], (self->count - low) * sizeof *one);
    self->best[low] = *one;
    self->count = ML_MIN(self->count + 1, (size_t)KEYS_SHOWN);
}

static bool shows_key(struct ranking *self, const struct troubled *one)
{
    const struct ml_kind *kind = ml_revision_kind(one->controller->current);
    return !self->view->asker || shows_kind(self->view, kind, one->key, "object", &self->left_out);
}

/* Looks only at parts that the record has: most keys of a controller at rest have none of them. */
static struct troubled trouble_of(const struct ml_controller *controller,
                                  const struct ml_key *record)
{
    struct ml_workqueue_place place = {.where = ML_KEY_IDLE};
    struct troubled one = {
        .controller = controller, .key = ml_key_str(record), .trouble = NO_TROUBLE};
    int64_t pause_ns = 0;
    if (record->queued)
        place = ml_workqueue_find(controller->queue, one.key);
    if (record->pace)
        pause_ns = ml_enqueue_filter_pause(controller->filter, one.key);
    one.failures = place.failures;
    if (record->failures)
        one.failures = ML_MAX(one.failures, record->failures->reconcile.failures);
    one.order = place.at_ns;
    if (one.failures > 0) {
        one.trouble = FAILS;
        one.order = -one.failures;
    } else if (pause_ns > 0) {
        one.trouble = SLOWED;
        one.order = -pause_ns;
    } else if (place.where == ML_KEY_OUT) {
        one.trouble = RUNS;
    } else if (place.where == ML_KEY_READY) {
        one.trouble = READY;
    } else if (place.where == ML_KEY_DELAYED) {
        one.trouble = DUE;
    } else if (record->writes && !cache_shows_writes(controller, one.key)) {
        one.trouble = AWAITS_CACHE;
    }
    return one;
}

/* Of objects that are paused no record has to be there. */
static void rank_paused(const struct ml_controller *controller, struct ranking *out)
{
    const struct ml_shard *shard = controller->services->shard;
    const struct ml_store *store = ml_revision_store(controller->current);
    size_t cursor = 0;
    for (struct ml_object *object; (object = ml_store_next(store, &cursor));) {
        if (!ml_object_paused(object))
            continue;
        struct troubled one = {
            .controller = controller, .key = ml_object_key(object), .trouble = PAUSED};
        const struct ml_key *record = ml_keys_find(&controller->keys, one.key);
        bool is_ranked = record && trouble_of(controller, record).trouble != NO_TROUBLE;
        if (!is_ranked && shows_key(out, &one) &&
            (!shard || ml_shard_acts(shard, ml_str_of(controller->name), one.key)))
            rank(out, &one);
    }
}

/* `chosen`: its keys are told. Of other controllers those that fail are counted. */
static void rank_keys(const struct ml_controller *controller, bool chosen, struct ranking *out)
{
    ml_keys_each(&controller->keys, record)
    {
        struct troubled one = trouble_of(controller, record);
        if (one.trouble == NO_TROUBLE || !shows_key(out, &one))
            continue;
        out->failing += one.trouble == FAILS;
        if (chosen)
            rank(out, &one);
    }
    if (chosen)
        rank_paused(controller, out);
}

/* Finds the last run of each. The texts are the journal's. */
static void find_last_runs(const struct ml_journal *journal, struct ranking *self)
{
    struct ml_map by_id = {0};
    struct ml_journal_cursor cursor = {0};
    struct ml_journal_entry entry;
    ML_AUTO(ml_buf_fini) struct ml_buf id = ML_BUF_INIT;
    for (size_t i = 0; i < self->count; i++) {
        const struct troubled *one = &self->best[i];
        struct last_run *last = &self->last[i];
        last->id = ml_asprintf("%s " ML_STR_FMT, one->controller->name, ML_STR_ARG(one->key));
        ml_map_put(&by_id, ml_str_of(last->id), last);
    }
    while (journal && ml_journal_next(journal, &cursor, &entry)) {
        if (entry.what != ML_JOURNAL_RUN)
            continue;
        ml_buf_clear(&id);
        ml_buf_append_str(&id, entry.controller);
        ml_buf_putc(&id, ' ');
        ml_buf_append_str(&id, entry.key);
        struct last_run *last = ml_map_get(&by_id, ml_buf_str(&id));
        if (!last)
            continue;
        last->run = entry;
        last->runs++;
    }
    ml_map_fini(&by_id);
}

/* The journal forgets sooner than the controller, which knows its last failure. */
static struct ml_str error_of(const struct troubled *one, const struct last_run *last)
{
    const struct ml_controller *controller = one->controller;
    struct ml_str error = last->run.error;
    if (last->runs == 0 && controller->failed_key && ml_str_is(one->key, controller->failed_key))
        error = ml_str_of(controller->failed_why);
    return ml_str_head(error, ERROR_SHOWN);
}

static void put_troubled(const struct troubled *one, const struct last_run *last,
                         struct ml_json_writer *writer)
{
    ml_json_begin_object(writer);
    ml_json_put_string(writer, "controller", ml_str_of(one->controller->name));
    ml_json_put_string(writer, "kind", ml_str_of(ml_revision_kind(one->controller->current)->kind));
    ml_json_put_string(writer, "name", one->key);
    ml_json_put_string(writer, "state", ml_str_of(trouble_names[one->trouble]));
    ml_json_put_int(writer, "failures", one->failures);
    put_now(one->controller, one->key, writer);
    ml_json_put_int(writer, "runs", (int64_t)last->runs);
    if (last->runs > 0) {
        put_time(writer, "at", last->run.at_ns);
        put_ms(writer, "took_ms", last->run.took_ns);
        put_ms(writer, "cpu_ms", last->run.cpu_ns);
        put_text(writer, "result", last->run.result);
    }
    put_text(writer, "error", error_of(one, last));
    ml_json_end_object(writer);
}

/* `name` empty: of all controllers. */
static void answer_top(const struct ml_inspect_view *view, struct ml_str name, struct ml_buf *out)
{
    ML_AUTO_FREE struct ranking *ranking = ml_new(struct ranking);
    const struct ml_services *services = view->services;
    const struct ml_journal *journal = services->journal;
    struct ml_controller *all[ML_CONTROLLERS_MAX];
    struct ml_json_writer writer;
    size_t count = ml_scripts_controllers(view->scripts, all);
    ranking->view = view;
    for (size_t i = 0; i < count; i++)
        if (all[i]->current)
            rank_keys(all[i], name.len == 0 || ml_str_is(name, all[i]->name), ranking);
    find_last_runs(journal, ranking);
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    put_time(&writer, "at", ml_clock_wall(services->clock));
    ml_json_put_int(&writer, "clock_ms", ml_clock_monotonic(services->clock) / ML_NS_PER_MS);
    ml_json_put_int(&writer, "runs", (int64_t)ml_journal_runs(journal));
    ml_json_put_int(&writer, "writes",
                    (int64_t)(ml_journal_added(journal) - ml_journal_runs(journal)));
    put_status(view, &ranking->left_out, &writer);
    ml_json_put_int(&writer, "keys_in_all", (int64_t)ranking->all);
    ml_json_put_int(&writer, "fails_of_host", (int64_t)ranking->failing);
    ml_json_key(&writer, ML_STR("keys"));
    ml_json_begin_array(&writer);
    for (size_t i = 0; i < ranking->count; i++)
        put_troubled(&ranking->best[i], &ranking->last[i], &writer);
    ml_json_end_array(&writer);
    put_left_out(&ranking->left_out, &writer);
    ml_json_end_object(&writer);
    ranking_fini(ranking);
}

int ml_inspect_answer(const struct ml_inspect_view *view, const char *path, const char *query,
                      struct ml_buf *out)
{
    struct ml_str rest = ml_str_of(path), slash = ml_str_cut(&rest, '/');
    struct ml_str question = ml_str_cut(&rest, '/');
    if (slash.len == 0 && ml_str_is(question, "status") && !rest.ptr) {
        answer_status(view, out);
        return 200;
    }
    if (slash.len == 0 && ml_str_is(question, "top") && rest.ptr) {
        answer_top(view, rest, out);
        return 200;
    }
    if (slash.len == 0 && ml_str_is(question, "why") && rest.ptr)
        return answer_why(view, rest, query, out);
    if (slash.len == 0 && ml_str_is(question, "trace") && rest.ptr)
        return answer_trace(view, rest, out);
    ml_buf_puts(
        out,
        "expected /status, /top/[CONTROLLER], /why/KIND/[NAMESPACE/]NAME or /trace/[NUMBER]\n");
    return 404;
}
