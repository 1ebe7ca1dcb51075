/* Questions to a running host: how its controllers are, and why an object was reconciled, or was
 * not. */
#include "operator/inspect.h"

#include "codec/rfc3339.h"
#include "net/http_routes.h"
#include "operator/controller_internal.h"
#include "state/journal.h"

#include <strings.h>
#include <unistd.h>

#define RUNS_SHOWN   5
#define WRITES_SHOWN 20                   /* that a run made, and that others made of the object */
#define TRACE_BYTES  ((size_t)256 * 1024) /* of one answer, and an entry: nobody waits for more */

struct ml_inspect {
    struct ml_inspect_opts opts;
    struct ml_http_routes *routes;
};

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

/* The name of the kind that is asked about, if a script declares it; else `asked`. */
static struct ml_str find_kind(struct ml_controller *const *all, size_t count, struct ml_str asked)
{
    for (size_t i = 0; i < count; i++) {
        const struct ml_revision *revision = all[i]->current;
        for (size_t k = 0; revision && k < revision->declaration->kind_count; k++)
            if (is_kind(revision->kinds[k], asked))
                return ml_str_of(revision->kinds[k]->kind);
    }
    return asked;
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

void ml_inspect_status(const struct ml_services *services, const struct ml_scripts *scripts,
                       bool ready, struct ml_str why, struct ml_buf *out)
{
    ML_AUTO(ml_buf_fini) struct ml_buf checks = ML_BUF_INIT;
    struct ml_controller *all[ML_CONTROLLERS_MAX];
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    ml_json_put_bool(&writer, "leads", !services->standby);
    ml_json_put_bool(&writer, "ready", ready);
    ml_buf_append_str(&checks, why);
    ml_scripts_list_ready(scripts, &checks);
    put_list(&writer, "checks", ml_buf_str(&checks), '\n');
    ml_json_key(&writer, ML_STR("controllers"));
    ml_json_begin_array(&writer);
    size_t count = ml_scripts_controllers(scripts, all);
    for (size_t i = 0; i < count; i++)
        put_controller(all[i], &writer);
    ml_json_end_array(&writer);
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

static void put_key(const struct ml_controller *controller, struct ml_str key,
                    struct ml_json_writer *writer)
{
    ML_AUTO(ml_buf_fini) struct ml_buf hold = ML_BUF_INIT, reads = ML_BUF_INIT;
    const struct ml_revision *revision = ml_controller_revision_of(controller, key);
    ml_json_begin_object(writer);
    ml_json_put_string(writer, "controller", ml_str_of(controller->name));
    ml_json_put_string(writer, "revision", ml_str_of(revision->declaration->revision));
    describe_hold(controller, key, &hold);
    if (hold.len > 0)
        put_buf(writer, "now", &hold);
    else
        describe_place(controller, key, writer);
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

static bool is_of_controllers(struct ml_controller *const *all, size_t count, struct ml_str name)
{
    for (size_t i = 0; i < count; i++)
        if (ml_str_is(name, all[i]->name))
            return true;
    return false;
}

/* Runs for the key by one of these controllers, their writes, and writes of the object itself. */
static void read_journal(const struct ml_journal *journal, struct ml_controller *const *all,
                         size_t count, struct ml_str kind, struct ml_str key, struct history *out)
{
    struct ml_journal_cursor cursor = {0};
    struct ml_journal_entry entry;
    while (journal && ml_journal_next(journal, &cursor, &entry)) {
        bool is_own = ml_str_eq(entry.key, key) && is_of_controllers(all, count, entry.controller);
        bool is_of_object = entry.what == ML_JOURNAL_WRITE && ml_str_eq(entry.name, key) &&
                            entry.kind.len == kind.len &&
                            strncasecmp(entry.kind.ptr, kind.ptr, kind.len) == 0;
        if (is_own && entry.what == ML_JOURNAL_RUN)
            keep(out->runs, RUNS_SHOWN, &out->run_count, &entry);
        else if (is_own || is_of_object)
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

void ml_inspect_why(const struct ml_services *services, const struct ml_scripts *scripts,
                    struct ml_str kind, struct ml_str key, struct ml_buf *out)
{
    struct ml_controller *all[ML_CONTROLLERS_MAX], *own[ML_CONTROLLERS_MAX];
    size_t count = ml_scripts_controllers(scripts, all), own_count = 0;
    struct history history = {.run_count = 0};
    struct ml_json_writer writer;
    bool found = false;
    kind = find_kind(all, count, kind);
    for (size_t i = 0; i < count; i++)
        if (all[i]->current && is_kind(ml_revision_kind(all[i]->current), kind)) {
            own[own_count++] = all[i];
            found = found || ml_store_get(ml_revision_store(all[i]->current), key);
        }
    read_journal(services->journal, own, own_count, kind, key, &history);
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "kind", kind);
    ml_json_put_string(&writer, "name", key);
    ml_json_put_bool(&writer, "found", found);
    ml_json_key(&writer, ML_STR("controllers"));
    ml_json_begin_array(&writer);
    for (size_t i = 0; i < own_count; i++)
        put_key(own[i], key, &writer);
    ml_json_end_array(&writer);
    put_entries("runs", history.runs, RUNS_SHOWN, history.run_count, put_run, &writer);
    put_entries("writes", history.writes, WRITES_SHOWN, history.write_count, put_write, &writer);
    ml_json_end_object(&writer);
}

void ml_inspect_trace(const struct ml_journal *journal, uint64_t after, struct ml_buf *out)
{
    struct ml_journal_cursor cursor = {0};
    struct ml_journal_entry entry;
    struct ml_json_writer writer;
    uint64_t next = after, missed = 0;
    bool more = false, any = false;
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    ml_json_key(&writer, ML_STR("entries"));
    ml_json_begin_array(&writer);
    while (journal && !more && ml_journal_next(journal, &cursor, &entry)) {
        bool is_run = entry.what == ML_JOURNAL_RUN;
        if (entry.number <= after)
            continue;
        if (!any)
            missed = entry.number - after - 1;
        any = true;
        next = entry.number;
        ml_json_begin_object(&writer);
        ml_json_key(&writer, is_run ? ML_STR("run") : ML_STR("write"));
        ml_json_begin_object(&writer);
        (is_run ? put_run : put_write)(&entry, &writer);
        ml_json_end_object(&writer);
        ml_json_end_object(&writer);
        more = out->len > TRACE_BYTES && entry.number < ml_journal_added(journal);
    }
    ml_json_end_array(&writer);
    ml_json_put_bool(&writer, "more", more);
    ml_json_put_int(&writer, "missed", (int64_t)missed);
    ml_json_put_int(&writer, "next", (int64_t)ML_MIN(next, ml_journal_added(journal)));
    ml_json_end_object(&writer);
}

/* ---- serving ---- */

static void serve_status(void *context, struct ml_http_page *page)
{
    struct ml_inspect *self = context;
    ML_AUTO(ml_buf_fini) struct ml_buf why = ML_BUF_INIT;
    bool ready = self->opts.ready ? self->opts.ready(self->opts.context, &why)
                                  : ml_operator_ready(self->opts.of, &why);
    page->content_type = "application/json";
    ml_inspect_status(ml_operator_services(self->opts.of), ml_operator_scripts(self->opts.of),
                      ready, ml_buf_str(&why), &page->reply);
}

static void serve_why(void *context, struct ml_http_page *page)
{
    struct ml_inspect *self = context;
    struct ml_str key = ml_str_of(page->path + strlen("/why/"));
    struct ml_str kind = ml_str_cut(&key, '/');
    if (kind.len == 0 || key.len == 0) {
        page->status = 400;
        ml_buf_puts(&page->reply, "expected /why/KIND/NAMESPACE/NAME or /why/KIND/NAME\n");
        return;
    }
    page->content_type = "application/json";
    ml_inspect_why(ml_operator_services(self->opts.of), ml_operator_scripts(self->opts.of), kind,
                   key, &page->reply);
}

static void serve_trace(void *context, struct ml_http_page *page)
{
    struct ml_inspect *self = context;
    const struct ml_journal *journal = ml_operator_services(self->opts.of)->journal;
    struct ml_str number = ml_str_of(page->path + strlen("/trace/"));
    uint64_t after = ml_journal_added(journal);
    if (number.len > 0 && !ml_str_to_u64(number, &after)) {
        page->status = 400;
        ml_buf_puts(&page->reply, "expected /trace/NUMBER or /trace/\n");
        return;
    }
    page->content_type = "application/json";
    ml_inspect_trace(journal, after, &page->reply);
}

char *ml_inspect_socket(const char *pid)
{
    char target[64] = "";
    ssize_t len = readlink("/proc/self/ns/pid", target, sizeof target - 1);
    struct ml_str ns = {target, len > 0 ? (size_t)len : 0}; /* "pid:[4026531836]" */
    (void)ml_str_cut(&ns, '[');
    ns = ml_str_cut(&ns, ']');
    return ml_asprintf(ML_INSPECT_SOCKET "%s." ML_STR_FMT, pid, ML_STR_ARG(ns));
}

int ml_inspect_new(const struct ml_inspect_opts *opts, struct ml_inspect **out, struct ml_err *err)
{
    ML_AUTO_FREE char *pid = ml_asprintf("%d", (int)getpid());
    ML_AUTO_FREE char *name = ml_inspect_socket(pid);
    ML_AUTO_FREE char *address = ml_asprintf("@%s", name);
    struct ml_http_routes *routes = NULL;
    if (ml_http_routes_new(opts->loop, address, &routes, err) < 0)
        return err->kind;
    struct ml_inspect *self = ml_new(struct ml_inspect);
    self->opts = *opts;
    self->routes = routes;
    ml_http_routes_add(routes, "/status", serve_status, self);
    ml_http_routes_add(routes, "/why/", serve_why, self);
    ml_http_routes_add(routes, "/trace/", serve_trace, self);
    *out = self;
    return 0;
}

void ml_inspect_free(struct ml_inspect *self)
{
    if (!self)
        return;
    ml_http_routes_free(self->routes);
    free(self);
}
