/* moonloop plan: what scripts would do on a cluster, as a diff. Nothing is written: an operator
 * whose client sends reads alone, and dry runs on request, fills the caches, and the scripts run on
 * a copy of them (operator/plan.h). moonloop snapshot does the same, and keeps what it has read for
 * plans without a server (kube/snapshot.h). */
#include "cli/api.h"

#include "base/escape.h"
#include "codec/json_diff.h"
#include "include/moonloop.h"
#include "operator/operator.h"
#include "operator/plan.h"
#include "operator/text_check.h"

#include <stdio.h>

#define SYNC_MAX_NS (30 * ML_NS_PER_S)
#define KIND_MAX_NS (3 * ML_NS_PER_S)
#define LOOK_NS     (200 * ML_NS_PER_MS)
#define DRY_RUN_MS  30000
#define SAMPLES     5  /* of one verb and kind, in text */
#define FIELDS      10 /* of one object, likewise */

struct values {
    struct ml_api_opts api;
    struct ml_option_list scripts, words;
    struct ml_script_limits limits;
    const char *format;
    const char *snapshot; /* answers in place of a server; or NULL */
    bool server_side;
};

/* The API server's answer to a change. */
struct dry_run {
    char *stored;  /* the object as it would be stored, JSON; NULL: as the plan says */
    char *refused; /* why it would not; or NULL */
};

/* The plan of one controller, while it is made. */
struct work {
    struct ml_operator *operator;
    struct ml_loop *loop;
    struct ml_plan *plan;
    struct ml_text_check *check;
    struct ml_cpu_account account; /* of the check */
    struct ml_timer look;
    int64_t began_ns;
    int64_t sync_max_ns;
    bool planned, synced;
    struct ml_err problem;

    struct dry_run *dry_runs; /* of each change; NULL: the server was not asked */
    size_t dry_run_count;
    struct ml_buf answer; /* to the request under way */
    struct ml_err refusal;
};

struct command {
    struct ml_api *api;
    struct ml_operator *operator;
    const struct ml_script_limits *limits;
    int64_t sync_max_ns;
    bool is_silent;   /* it prints problems alone */
    bool prints_json; /* else text */
    bool server_side; /* changes are sent as dry runs */
    struct ml_json_writer json;
    size_t controllers, changes, bad, objects;
};

/* ---- making it ---- */

static void on_planned(void *context)
{
    struct work *work = context;
    work->planned = true;
    if (work->check)
        ml_text_check_kinds_exist(work->check);
    else
        ml_loop_stop(work->loop);
}

static void on_checked(void *context, const struct ml_err *problem)
{
    struct work *work = context;
    if (problem)
        work->problem = *problem;
    else
        work->check = NULL;
    if (problem || work->planned)
        ml_loop_stop(work->loop);
}

static int64_t now_ns(const struct work *work)
{
    return ml_clock_monotonic(ml_loop_clock(work->loop));
}

/* Gives up when a kind is not installed, or the caches do not fill. */
static void look(void *context)
{
    struct work *work = context;
    ML_AUTO(ml_buf_fini) struct ml_buf why = ML_BUF_INIT;
    int64_t max_ns = ml_plan_misses_kind(work->plan) ? KIND_MAX_NS : work->sync_max_ns;
    ml_plan_waits(work->plan, &why);
    if (why.len == 0)
        return;
    if (now_ns(work) - work->began_ns < max_ns) {
        ml_timer_start(&work->look, LOOK_NS);
        return;
    }
    ml_err_set(&work->problem, ML_ETIMEOUT, ML_STR_FMT, ML_STR_ARG(ml_str_trim(ml_buf_str(&why))));
    ml_loop_stop(work->loop);
}

/* `work->problem` says why there is none. */
static void make_plan(struct work *work, const struct ml_files *files,
                      const struct ml_script *script, const struct ml_script_limits *limits)
{
    struct ml_services *services = ml_operator_services(work->operator);
    const struct ml_plan_opts opts = {.services = services,
                                      .limits = limits,
                                      .files = files,
                                      .done = on_planned,
                                      .context = work};
    work->loop = services->loop;
    work->began_ns = now_ns(work);
    if (ml_plan_new(&opts, &work->plan, &work->problem) < 0)
        return;
    work->check = ml_text_check_new(services, &work->account, files, script, on_checked, work);
    ml_timer_init(&work->look, work->loop, look, work);
    ml_timer_start(&work->look, LOOK_NS);
    ml_loop_run(work->loop);
}

static void on_nothing(void *context)
{
    (void)context;
}

static void work_fini(struct work *work)
{
    for (size_t i = 0; i < work->dry_run_count; i++) {
        free(work->dry_runs[i].stored);
        free(work->dry_runs[i].refused);
    }
    free(work->dry_runs);
    ml_buf_fini(&work->answer);
    ml_timer_stop(&work->look);
    ml_text_check_cancel(work->check);
    ml_plan_free(work->plan);
    ml_cpu_account_fini(&work->account);
}

/* ---- what the API server says of it ---- */

static void on_dry_run(void *context, struct ml_str body, const struct ml_err *err)
{
    struct work *work = context;
    work->refusal = err ? *err : ML_ERR_INIT;
    if (!err)
        ml_buf_append_str(&work->answer, body);
    ml_loop_stop(work->loop);
}

/* Sends the write, which takes place nowhere. False: it is refused; `work->refusal` says why. */
static bool ask_server(struct work *work, struct ml_client_request *request)
{
    ML_AUTO_FREE char *manager = ml_asprintf(ML_MANAGER_PREFIX "%s",
                                             ml_plan_declaration(work->plan)->name);
    request->field_manager = manager;
    request->dry_run = true;
    request->timeout_ms = DRY_RUN_MS;
    ml_buf_clear(&work->answer);
    ml_client_send(ml_operator_client(work->operator), request, on_dry_run, work);
    ml_loop_run(work->loop);
    return !work->refusal.kind;
}

/* The object without the metadata that the server sets. */
static void append_wanted(const struct ml_object *object, struct ml_buf *out)
{
    static const char unset[] = "{\"metadata\":{\"resourceVersion\":null,\"uid\":null,"
                                "\"generation\":null,\"creationTimestamp\":null,"
                                "\"managedFields\":null}}";
    ML_AUTO(ml_buf_fini) struct ml_buf json = ML_BUF_INIT;
    struct ml_err err = ML_ERR_INIT;
    ml_object_json(object, &json);
    if (ml_json_merge(ml_buf_str(&json), ml_str_of(unset), out, &err) < 0)
        ml_buf_puts(out, "{}"); /* an object of the cache is one */
}

static void begin_request(const struct ml_plan_change *change, struct ml_client_request *request)
{
    *request = (struct ml_client_request){
        .kind = change->kind,
        .ns = ml_key_namespace(change->key),
        .name = ml_key_name(change->key),
    };
}

/* Sends a patch of the object, or of its status. False: it is refused. True without an answer: the
 * patch is empty. */
static bool try_patch(struct work *work, const struct ml_plan_change *change, struct ml_str sub,
                      struct ml_str patch)
{
    struct ml_client_request request;
    ml_buf_clear(&work->answer);
    if (patch.len == 0 || ml_str_is(patch, "{}"))
        return true;
    begin_request(change, &request);
    request.verb = ML_VERB_PATCH_MERGE;
    request.subresource = sub;
    request.body = patch;
    return ask_server(work, &request);
}

/* Gives the object this status; "null": none. */
static void set_status(struct ml_buf *object, struct ml_str status)
{
    ML_AUTO(ml_buf_fini) struct ml_buf without = ML_BUF_INIT, with = ML_BUF_INIT;
    struct ml_err err;
    if (ml_json_merge(ml_buf_str(object), ML_STR("{\"status\":null}"), &without, &err) < 0)
        return; /* it is no object */
    ml_buf_printf(&with, "{\"status\":" ML_STR_FMT "}", ML_STR_ARG(status));
    ml_buf_clear(object);
    if (ml_json_merge(ml_buf_str(&without), ml_buf_str(&with), object, &err) < 0)
        ml_buf_append_str(object, ml_buf_str(&without));
}

/* As the host would send it: the status by its subresource, where there is one. `stored` becomes
 * the object as the server would have it. False: it is refused. */
static bool try_change(struct work *work, const struct ml_plan_change *change,
                       struct ml_buf *stored)
{
    ML_AUTO(ml_buf_fini)
    struct ml_buf after = ML_BUF_INIT, patch = ML_BUF_INIT, of_status = ML_BUF_INIT;
    struct ml_str status = {NULL, 0};
    struct ml_err err;
    append_wanted(change->before, stored);
    append_wanted(change->after, &after);
    if (ml_json_merge_diff(ml_buf_str(stored), ml_buf_str(&after), &patch, &err) < 0)
        return true;
    if (change->kind->has_status && ml_json_find(ml_buf_str(&patch), &status, "status", NULL)) {
        ml_buf_printf(&of_status, "{\"status\":" ML_STR_FMT "}", ML_STR_ARG(status));
        set_status(&patch, ML_STR("null"));
    }
    if (!try_patch(work, change, ML_STR(""), ml_buf_str(&patch)))
        return false;
    if (work->answer.len > 0) {
        ml_buf_clear(stored);
        ml_buf_append_str(stored, ml_buf_str(&work->answer));
    }
    if (!try_patch(work, change, ML_STR("status"), ml_buf_str(&of_status)))
        return false;
    if (work->answer.len > 0) {
        status = ML_STR("null");
        (void)ml_json_find(ml_buf_str(&work->answer), &status, "status", NULL);
        set_status(stored, status);
    }
    return true;
}

/* Would the plan make this namespace? */
static bool makes_namespace(const struct work *work, struct ml_str ns)
{
    struct ml_plan_change change;
    size_t cursor = 0;
    while (ml_plan_next_change(work->plan, &cursor, &change))
        if (change.verb == ML_PLAN_CREATE && strcmp(change.kind->plural, "namespaces") == 0 &&
            ml_str_eq(change.key, ns))
            return true;
    return false;
}

/* In a namespace that the plan would make first, the server knows nothing yet. */
static bool try_create(struct work *work, const struct ml_plan_change *change,
                       struct ml_buf *stored)
{
    ML_AUTO(ml_buf_fini) struct ml_buf body = ML_BUF_INIT;
    struct ml_client_request request;
    begin_request(change, &request);
    append_wanted(change->after, &body);
    request.verb = ML_VERB_CREATE;
    request.name = ML_STR("");
    request.body = ml_buf_str(&body);
    if (ask_server(work, &request))
        ml_buf_append_str(stored, ml_buf_str(&work->answer));
    else if (work->refusal.kind != ML_ENOT_FOUND || !makes_namespace(work, request.ns))
        return false;
    return true;
}

static bool try_delete(struct work *work, const struct ml_plan_change *change)
{
    struct ml_client_request request;
    ML_AUTO_FREE char *uid = ml_str_dup(ml_object_uid(change->before));
    begin_request(change, &request);
    request.verb = ML_VERB_DELETE;
    request.uid = uid;
    return ask_server(work, &request) || work->refusal.kind == ML_ENOT_FOUND;
}

/* A server that answers no more would be asked once more for each change, and refuses none of them.
 */
static bool has_no_answer(struct work *work, const struct ml_plan_change *change)
{
    if (!ml_client_unanswered(&work->refusal))
        return false;
    ml_err_set(&work->problem, work->refusal.kind,
               "%s: the API server did not answer the dry run of %s " ML_STR_FMT ": %s",
               ml_plan_declaration(work->plan)->file, change->kind->kind, ML_STR_ARG(change->key),
               work->refusal.message);
    return true;
}

/* Sends each change as a dry run, one after the other. */
static void try_changes(struct work *work)
{
    struct ml_plan_change change;
    size_t cursor = 0, count = 0;
    while (ml_plan_next_change(work->plan, &cursor, &change))
        count++;
    work->dry_runs = ml_zalloc((count + 1) * sizeof *work->dry_runs);
    work->dry_run_count = count;
    cursor = 0;
    for (size_t i = 0; ml_plan_next_change(work->plan, &cursor, &change); i++) {
        ML_AUTO(ml_buf_fini) struct ml_buf stored = ML_BUF_INIT;
        bool fits = change.verb == ML_PLAN_CREATE   ? try_create(work, &change, &stored)
                    : change.verb == ML_PLAN_DELETE ? try_delete(work, &change)
                                                    : try_change(work, &change, &stored);
        if (!fits && has_no_answer(work, &change))
            return;
        if (!fits)
            work->dry_runs[i].refused = ml_strdup(work->refusal.message);
        else if (stored.len > 0)
            work->dry_runs[i].stored = ml_buf_take(&stored);
    }
}

/* ---- telling it ---- */

struct cursor {
    size_t at, index;
};

struct change {
    struct ml_plan_change is;
    const char *refused; /* by the server; NULL: it is not, or was not asked */
};

static void on_any_difference(void *context, struct ml_str field ML_UNUSED,
                              struct ml_str from ML_UNUSED, struct ml_str to ML_UNUSED)
{
    *(bool *)context = true;
}

/* The next change; one that the server would make nothing of is passed over. */
static bool next_change(const struct work *work, struct cursor *cursor, struct change *out)
{
    while (ml_plan_next_change(work->plan, &cursor->at, &out->is)) {
        const struct dry_run *dry_run = work->dry_runs ? &work->dry_runs[cursor->index] : NULL;
        bool differs = out->is.verb != ML_PLAN_CHANGE || !dry_run || dry_run->refused;
        cursor->index++;
        out->refused = dry_run ? dry_run->refused : NULL;
        if (dry_run)
            out->is.stored = ml_str_of(dry_run->stored);
        if (!differs)
            ml_plan_differences(&out->is, on_any_difference, &differs);
        if (differs)
            return true;
    }
    return false;
}

static const char *const notes[] = {
    [ML_PLAN_FAILS] = "fails", [ML_PLAN_UNKNOWN] = "unknown", [ML_PLAN_ENDLESS] = "endless"};

static void put_field(void *context, struct ml_str field, struct ml_str from, struct ml_str to)
{
    struct ml_json_writer *json = context;
    ml_json_begin_object(json);
    ml_json_put_string(json, "field", field);
    if (from.len > 0)
        ml_json_put_raw(json, "from", from);
    if (to.len > 0)
        ml_json_put_raw(json, "to", to);
    ml_json_end_object(json);
}

static void put_change(struct ml_json_writer *json, const struct change *told)
{
    const struct ml_plan_change *change = &told->is;
    struct ml_str ns = ml_key_namespace(change->key);
    ml_json_begin_object(json);
    ml_json_put_string(json, "verb", ml_str_of(ml_plan_verbs[change->verb]));
    ml_json_put_string(json, "apiVersion", ml_str_of(change->kind->api_version));
    ml_json_put_string(json, "kind", ml_str_of(change->kind->kind));
    if (ns.len > 0)
        ml_json_put_string(json, "namespace", ns);
    ml_json_put_string(json, "name", ml_key_name(change->key));
    ml_json_put_string(json, "for", ml_str_of(change->by));
    if (change->why)
        ml_json_put_string(json, "why", ml_str_of(change->why));
    if (told->refused)
        ml_json_put_string(json, "refused", ml_str_of(told->refused));
    if (change->verb != ML_PLAN_DELETE) {
        ml_json_key(json, ML_STR("fields"));
        ml_json_begin_array(json);
        ml_plan_differences(change, put_field, json);
        ml_json_end_array(json);
    }
    ml_json_end_object(json);
}

static void put_notes(struct ml_json_writer *json, const struct ml_plan *plan,
                      enum ml_plan_notes which)
{
    struct ml_plan_note note;
    ml_json_key(json, ml_str_of(notes[which]));
    ml_json_begin_array(json);
    for (size_t i = 0; ml_plan_note(plan, which, i, &note); i++) {
        ml_json_begin_object(json);
        ml_json_put_string(json, "object", ml_str_of(note.key));
        ml_json_put_string(json, "message", ml_str_of(note.text));
        ml_json_end_object(json);
    }
    ml_json_end_array(json);
}

static void put_events(struct ml_json_writer *json, const struct ml_plan *plan)
{
    size_t cursor = 0;
    ml_json_key(json, ML_STR("events"));
    ml_json_begin_array(json);
    for (const struct ml_mirrored_event *event; (event = ml_plan_next_event(plan, &cursor));) {
        struct ml_str reason = ml_str_of(event->id), type = ml_str_cut(&reason, ' ');
        ml_json_begin_object(json);
        ml_json_put_string(json, "type", type);
        ml_json_put_string(json, "reason", reason);
        ml_json_put_int(json, "count", (int64_t)event->count);
        ml_json_put_string(json, "object", ml_str_of(event->about));
        ml_json_put_string(json, "note", ml_str_of(event->note));
        ml_json_end_object(json);
    }
    ml_json_end_array(json);
}

static void put_plan(struct ml_json_writer *json, const struct work *work)
{
    const struct ml_plan *plan = work->plan;
    const struct ml_declaration *declaration = ml_plan_declaration(plan);
    struct change change;
    struct cursor cursor = {0};
    size_t tried, objects = ml_plan_objects(plan, &tried);
    ml_json_begin_object(json);
    ml_json_put_string(json, "controller", ml_str_of(declaration->name));
    ml_json_put_string(json, "file", ml_str_of(declaration->file));
    ml_json_put_string(json, "revision", ml_str_of(declaration->revision));
    ml_json_put_string(json, "kind", declaration->kinds[0].gvk.kind);
    ml_json_put_int(json, "objects", (int64_t)objects);
    ml_json_put_int(json, "tried", (int64_t)tried);
    ml_json_key(json, ML_STR("changes"));
    ml_json_begin_array(json);
    while (next_change(work, &cursor, &change))
        put_change(json, &change);
    ml_json_end_array(json);
    for (enum ml_plan_notes which = 0; which < ML_PLAN_NOTES; which++)
        put_notes(json, plan, which);
    put_events(json, plan);
    ml_json_end_object(json);
}

/* The changes of one verb to one kind are told together. */
struct group {
    enum ml_plan_verb verb;
    const struct ml_kind *kind;
};

struct printed_fields {
    size_t count;
};

static void print_field(void *context, struct ml_str field, struct ml_str from, struct ml_str to)
{
    struct printed_fields *fields = context;
    ML_AUTO(ml_buf_fini) struct ml_buf line = ML_BUF_INIT;
    if (fields->count++ >= FIELDS)
        return;
    ml_plan_append_difference(&line, field, from, to);
    ml_print_line(stdout, "      %s", ml_buf_cstr(&line));
}

static void print_change(const struct change *told)
{
    const struct ml_plan_change *change = &told->is;
    struct printed_fields fields = {0};
    ml_print_line(stdout, "    " ML_STR_FMT ", for %s%s%s", ML_STR_ARG(change->key), change->by,
                  change->why ? ": " : "", change->why ? change->why : "");
    if (told->refused)
        ml_print_line(stdout, "      the API server refuses it: %s", told->refused);
    else if (change->verb == ML_PLAN_CHANGE)
        ml_plan_differences(change, print_field, &fields);
    if (fields.count > FIELDS)
        ml_print_line(stdout, "      and %zu more fields", fields.count - FIELDS);
}

static void print_group(const struct work *work, const struct group *group)
{
    struct change change;
    struct cursor cursor = {0};
    size_t count = 0;
    while (next_change(work, &cursor, &change))
        count += change.is.verb == group->verb && change.is.kind == group->kind;
    ml_print_line(stdout, "  %s %zu %s", ml_plan_verbs[group->verb], count, group->kind->kind);
    count = 0;
    cursor = (struct cursor){0};
    while (next_change(work, &cursor, &change)) {
        bool belongs = change.is.verb == group->verb && change.is.kind == group->kind;
        if (belongs && count++ < SAMPLES)
            print_change(&change);
    }
    if (count > SAMPLES)
        ml_print_line(stdout, "    and %zu more", count - SAMPLES);
}

/* Returns the number of changes. */
static size_t print_changes(const struct work *work)
{
    static const enum ml_plan_verb order[] = {ML_PLAN_DELETE, ML_PLAN_CHANGE, ML_PLAN_CREATE};
    struct change change;
    size_t total = 0;
    for (size_t i = 0; i < ML_COUNT(order); i++) {
        ML_AUTO(ml_map_fini) struct ml_map kinds = {0};
        struct cursor cursor = {0};
        while (next_change(work, &cursor, &change)) {
            if (change.is.verb != order[i])
                continue;
            total++;
            struct ml_str name = ml_str_of(change.is.kind->plural);
            struct group group = {change.is.verb, change.is.kind};
            if (!ml_map_put(&kinds, name, (void *)change.is.kind))
                print_group(work, &group);
        }
    }
    return total;
}

static size_t print_notes(const struct ml_plan *plan, enum ml_plan_notes which)
{
    static const char *const heads[] = {
        [ML_PLAN_FAILS] = "fails",
        [ML_PLAN_UNKNOWN] = "is not known, as a server would have to be asked",
        [ML_PLAN_ENDLESS] = "writes without end: each run changes what the one before has made"};
    struct ml_plan_note note;
    size_t count = 0;
    for (; ml_plan_note(plan, which, count, &note); count++) {
        if (count == 0)
            ml_print_line(stdout, "  %s", heads[which]);
        if (count < SAMPLES)
            ml_print_line(stdout, "    %s: %s", note.key, note.text);
    }
    if (count > SAMPLES)
        ml_print_line(stdout, "    and %zu more", count - SAMPLES);
    return count;
}

static void print_events(const struct ml_plan *plan)
{
    size_t cursor = 0;
    for (const struct ml_mirrored_event *event; (event = ml_plan_next_event(plan, &cursor));)
        ml_print_line(stdout, "  Event %s, %zu times, as of %s: %s", event->id, event->count,
                      event->about, event->note);
}

static void print_plan(const struct work *work)
{
    const struct ml_plan *plan = work->plan;
    const struct ml_declaration *declaration = ml_plan_declaration(plan);
    size_t tried, objects = ml_plan_objects(plan, &tried), said = 0;
    ml_print_line(stdout,
                  "%s: controller %s, revision %s: %zu of %zu objects of " ML_STR_FMT " were tried",
                  declaration->file, declaration->name, declaration->revision, tried, objects,
                  ML_STR_ARG(declaration->kinds[0].gvk.kind));
    said += print_changes(work);
    for (enum ml_plan_notes which = 0; which < ML_PLAN_NOTES; which++)
        said += print_notes(plan, which);
    print_events(plan);
    if (said == 0)
        ml_print_line(stdout, "  changes nothing");
}

/* ---- the command ---- */

static void count_plan(struct command *self, const struct work *work)
{
    struct change change;
    struct ml_plan_note note;
    struct cursor cursor = {0};
    while (next_change(work, &cursor, &change)) {
        self->changes++;
        self->bad += change.refused != NULL;
    }
    for (size_t i = 0; ml_plan_note(work->plan, ML_PLAN_FAILS, i, &note); i++)
        self->bad++;
}

static size_t count_objects(const struct ml_plan *plan)
{
    size_t tried;
    return ml_plan_objects(plan, &tried);
}

static void plan_controller(struct command *self, const struct ml_files *all,
                            const struct ml_script *script)
{
    struct work work = {
        .operator= self->operator, .sync_max_ns = self->sync_max_ns, .problem = ML_ERR_INIT};
    ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT;
    ml_files_copy_loaded(&files, all, script);
    ml_cpu_account_init(&work.account, ml_operator_services(self->operator)->slices, on_nothing,
                        &work);
    make_plan(&work, &files, script, self->limits);
    if (!work.problem.kind && self->server_side)
        try_changes(&work);
    self->controllers++;
    if (work.problem.kind) {
        self->bad++;
        ml_print_line(stderr, "%s", work.problem.message);
    } else if (self->is_silent) {
        self->objects += count_objects(work.plan);
    } else if (self->prints_json) {
        put_plan(&self->json, &work);
        count_plan(self, &work);
    } else {
        print_plan(&work);
        count_plan(self, &work);
    }
    work_fini(&work);
}

static void count_bad(struct command *self, const struct ml_err *err)
{
    self->bad++;
    ml_print_line(stderr, "%s", err->message);
}

static void plan_path(struct command *self, const char *path)
{
    ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT;
    struct ml_load load;
    const struct ml_load_opts opts = {.limits = self->limits};
    struct ml_err err = ML_ERR_INIT;
    if (ml_files_read(&files, &ml_files_scripts, path, &err) < 0) {
        count_bad(self, &err);
        return;
    }
    for (size_t i = 0; i < files.refused_count; i++)
        count_bad(self, &files.refused[i].err);
    ml_load_all(&load, &files, &opts);
    for (size_t i = 0; i < files.count; i++) {
        const struct ml_load_verdict *verdict = &load.verdicts[i];
        if (verdict->outcome == ML_LOAD_REFUSED)
            count_bad(self, &verdict->err);
        else if (verdict->outcome == ML_LOAD_CONTROLLER)
            plan_controller(self, &files, verdict->script);
    }
    ml_load_fini(&load);
}

/* A script may name any origin: a plan asks none of them. */
static bool allow_origin(struct ml_outbound *outbound, const char *origin)
{
    (void)outbound, (void)origin;
    return true;
}

/* The one fence of the client: nothing that changes anything leaves this process. A dry run changes
 * nothing, and is sent if it is asked for. */
static int refuse_writes(void *context, const char *method, const char *path, struct ml_err *err)
{
    const struct command *self = context;
    const char *query = strchr(path, '?');
    if (self->server_side && query &&
        (strstr(query, "?dryRun=All") || strstr(query, "&dryRun=All")))
        return 0;
    return ml_err_set(err, ML_EFORBIDDEN, "%s %s was not sent: a plan writes nothing", method,
                      path);
}

static int reach_server(struct ml_api *api, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf version = ML_BUF_INIT;
    struct ml_client_request request = {.verb = ML_VERB_GET, .path = "/version"};
    return ml_api_ask(api, &request, &version, err);
}

static void plan_paths(struct command *self, const struct values *values)
{
    for (size_t i = 0; i < values->scripts.count; i++)
        plan_path(self, values->scripts.values[i]);
    for (size_t i = 0; i < values->words.count; i++)
        plan_path(self, values->words.values[i]);
}

static void plan_as_json(struct command *self, const struct values *values)
{
    ML_AUTO(ml_buf_fini) struct ml_buf out = ML_BUF_INIT;
    ml_json_writer_init(&self->json, &out);
    ml_json_begin_object(&self->json);
    ml_json_key(&self->json, ML_STR("controllers"));
    ml_json_begin_array(&self->json);
    plan_paths(self, values);
    ml_json_end_array(&self->json);
    ml_json_end_object(&self->json);
    ml_print_line(stdout, "%s", ml_buf_cstr(&out));
}

/* Opens the server, or the snapshot that stands for it. Returns an exit code. */
static int command_open(struct command *self, const struct values *values, struct ml_err *err)
{
    if (values->snapshot && (values->api.kubeconfig || values->api.context || values->api.ns)) {
        ml_err_set(
            err, ML_EINVALID,
            "--snapshot stands for the API server and its namespaces; leave out --kubeconfig, "
            "--context and --namespace");
        return MOONLOOP_EXIT_USAGE;
    }
    if (values->snapshot && values->server_side) {
        ml_err_set(err, ML_EINVALID, "--server-side asks the API server; leave out --snapshot");
        return MOONLOOP_EXIT_USAGE;
    }
    self->sync_max_ns = values->snapshot ? KIND_MAX_NS : SYNC_MAX_NS;
    if (values->snapshot)
        return ml_api_open_snapshot(values->snapshot, &self->api, err) < 0 ? MOONLOOP_EXIT_BAD
                                                                           : MOONLOOP_EXIT_OK;
    if (ml_api_open(&values->api, &self->api, err) < 0)
        return MOONLOOP_EXIT_UNREACHABLE;
    return reach_server(self->api, err) < 0 ? ml_api_exit_code(err) : MOONLOOP_EXIT_OK;
}

/* Makes the plans, with an operator that lives as long as they. */
static void command_run(struct command *self, const struct values *values)
{
    const char *ns = values->snapshot ? ml_api_namespace(self->api) : values->api.ns;
    const char *const namespaces[] = {ns, NULL};
    struct ml_outbound outbound = {.allows = allow_origin};
    struct ml_operator_opts opts = {
        .outbound = &outbound, .namespaces = namespaces, .limits = values->limits};
    ml_api_operator_opts(self->api, &opts);
    self->operator= ml_operator_new(&opts);
    ml_client_set_fence(ml_operator_client(self->operator), refuse_writes, self);
    if (self->prints_json)
        plan_as_json(self, values);
    else
        plan_paths(self, values);
    ml_operator_free(self->operator);
}

/* How it went. Returns an exit code. */
static int command_end(const struct command *self, struct ml_err *err)
{
    if (self->bad > 0)
        return MOONLOOP_EXIT_BAD;
    if (self->controllers > 0)
        return MOONLOOP_EXIT_OK;
    ml_err_set(err, ML_EINVALID, "no controller in these scripts");
    return MOONLOOP_EXIT_BAD;
}

static int run(void *given, char **argv, struct ml_err *err)
{
    const struct values *values = given;
    struct command self = {.limits = &values->limits,
                           .prints_json = values->format != NULL,
                           .server_side = values->server_side};
    (void)argv;
    if (values->format && strcmp(values->format, "json") != 0) {
        ml_err_set(err, ML_EINVALID, "-o %s: choose json, or leave it out", values->format);
        return MOONLOOP_EXIT_USAGE;
    }
    if (values->scripts.count + values->words.count == 0) {
        ml_err_set(err, ML_EINVALID, "no scripts given: moonloop plan --scripts PATH");
        return MOONLOOP_EXIT_USAGE;
    }
    int code = command_open(&self, values, err);
    if (code == MOONLOOP_EXIT_OK) {
        command_run(&self, values);
        code = command_end(&self, err);
    }
    ml_api_close(self.api);
    return code == MOONLOOP_EXIT_OK && self.changes > 0 ? MOONLOOP_EXIT_CHANGES : code;
}

static int run_snapshot(void *given, char **argv, struct ml_err *err)
{
    const struct values *values = given;
    struct command self = {.limits = &values->limits, .is_silent = true};
    struct values scripts = *values;
    (void)argv;
    if (values->words.count != 1 || values->scripts.count == 0) {
        ml_err_set(err, ML_EINVALID,
                   "expected one file, and scripts: moonloop snapshot FILE --scripts PATH");
        return MOONLOOP_EXIT_USAGE;
    }
    scripts.words.count = 0;
    int code = command_open(&self, values, err);
    if (code == MOONLOOP_EXIT_OK && ml_api_record(self.api, values->api.ns, err) < 0)
        code = MOONLOOP_EXIT_BAD;
    if (code == MOONLOOP_EXIT_OK) {
        command_run(&self, &scripts);
        code = command_end(&self, err);
    }
    if (code == MOONLOOP_EXIT_OK &&
        ml_api_write_snapshot(self.api, values->words.values[0], err) < 0)
        code = MOONLOOP_EXIT_BAD;
    if (code == MOONLOOP_EXIT_OK)
        ml_print_line(stdout, "%s: %zu objects of %zu controllers, and what belongs to them",
                      values->words.values[0], self.objects, self.controllers);
    ml_api_close(self.api);
    return code;
}

#define SCRIPTS_OPTION                                                                             \
    {                                                                                              \
        "--scripts", "PATH", "a script, or a folder of scripts (repeat)", ML_OPTION_LIST,          \
            offsetof(struct values, scripts)                                                       \
    }
#define SERVER_OPTIONS                                                                             \
    {"--script-memory", "BYTES", "limit of one script's memory; default 16Mi", ML_OPTION_SIZE,     \
     offsetof(struct values, limits.memory_max)},                                                  \
        {"--namespace", "NS", "the objects of this namespace alone; default: all", ML_OPTION_TEXT, \
         offsetof(struct values, api.ns)},                                                         \
        {"--kubeconfig", "FILE", "default: $KUBECONFIG, in-cluster, ~/.kube/config",               \
         ML_OPTION_TEXT, offsetof(struct values, api.kubeconfig)},                                 \
    {                                                                                              \
        "--context", "NAME", "of the kubeconfig; default: its current-context", ML_OPTION_TEXT,    \
            offsetof(struct values, api.context)                                                   \
    }

static const struct ml_option snapshot_options[] = {SCRIPTS_OPTION, SERVER_OPTIONS};

const struct ml_command ml_command_snapshot = {
    .name = "snapshot",
    .usage = "FILE --scripts PATH [OPTIONS]",
    .summary = "save what a plan of scripts reads, to plan without the API server",
    .description =
        "Writes the objects of the kinds that the scripts name, and what else a plan of them\n"
        "reads, to a file that `moonloop plan --snapshot` takes. The values of Secrets are left\n"
        "out; all else is in it as it is. Nothing is written to the cluster.",
    .example = "staging.snapshot --scripts reconcilers/ --context staging",
    .options = snapshot_options,
    .option_count = ML_COUNT(snapshot_options),
    .words = offsetof(struct values, words),
    .values_size = sizeof(struct values),
    .run = run_snapshot,
};

static const struct ml_option options[] = {
    SCRIPTS_OPTION,
    {"-o", "json", "all changes, with all fields, as JSON", ML_OPTION_TEXT,
     offsetof(struct values, format)},
    {"--snapshot", "FILE", "over the objects of `moonloop snapshot`, without an API server",
     ML_OPTION_TEXT, offsetof(struct values, snapshot)},
    {"--server-side", NULL, "send each change as a dry run, so that the API server has its say",
     ML_OPTION_FLAG, offsetof(struct values, server_side)},
    SERVER_OPTIONS,
};

const struct ml_command ml_command_plan = {
    .name = "plan",
    .usage = "--scripts PATH [OPTIONS]",
    .summary = "say what scripts would do on the cluster, and write nothing",
    .description =
        "Runs each controller over the objects of the cluster, on a copy of them, and prints\n"
        "what it would create, change and delete, for which objects it fails, and which Events\n"
        "it would record. Nothing is written, and ctx.http asks nobody.\n"
        "Exit code 0: it would change nothing; 2: it would; 1: a script is refused, or fails.",
    .example = "--scripts reconcilers/ --context staging",
    .options = options,
    .option_count = ML_COUNT(options),
    .words = offsetof(struct values, words),
    .values_size = sizeof(struct values),
    .run = run,
};
