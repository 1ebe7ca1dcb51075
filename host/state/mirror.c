/* A copy of the cached world, and the API server that a revision sees which runs on it. */
#include "state/mirror.h"

#include "codec/json_apply.h"
#include "codec/json_diff.h"
#include "codec/rfc3339.h"
#include "kube/object.h"
#include "state/deletions.h"

#define EVENT_REASONS_MAX 100

struct ml_mirror {
    struct ml_mirror_opts opts;
    struct ml_transport transport;
    struct ml_outbound outbound;
    struct ml_services services; /* of what runs on it */
    struct ml_clock clock;       /* of them: the wall clock stands */
    int64_t wall_ns;             /* the same in both mirrors of a plan */
    struct ml_random random;     /* all mirrors draw the same */
    struct ml_dict *dict;        /* of objects that no informer has */
    struct ml_set changed;       /* struct ml_mirrored by id */
    struct ml_set events;        /* struct ml_mirrored_event by id */
    char *by;                    /* of the run under way */
    size_t writes, reads;
    struct ml_list calls; /* under way */
    struct ml_task tell;  /* of what is unknown */
    char *unknown;
};

/* ---- what cannot be known ---- */

static void tell_unknown(void *context)
{
    struct ml_mirror *self = context;
    ML_AUTO_FREE char *what = ml_take(&self->unknown);
    self->opts.unknown(self->opts.context, what);
}

static void mirror_unknown(struct ml_mirror *self, char *what)
{
    free(self->unknown);
    self->unknown = what;
    ml_task_defer(&self->tell, self->services.loop);
}

/* ---- objects ---- */

static struct ml_str mirrored_id(const void *entry)
{
    return ml_str_of(((const struct ml_mirrored *)entry)->id);
}

static char *make_id(const struct ml_kind *kind, struct ml_str ns, struct ml_str name)
{
    return ml_asprintf("%s %s " ML_STR_FMT "%s" ML_STR_FMT, kind->api_version, kind->kind,
                       ML_STR_ARG(ns), ns.len ? "/" : "", ML_STR_ARG(name));
}

const struct ml_mirrored *ml_mirror_find(const struct ml_mirror *self, const char *id)
{
    return ml_set_get(&self->changed, ml_str_of(id));
}

const struct ml_mirrored *ml_mirror_next(const struct ml_mirror *self, size_t *cursor)
{
    return ml_set_next(&self->changed, cursor);
}

/* The object that a request is about, as it is by now. */
struct place {
    const struct ml_kind *kind;
    struct ml_str ns, name, subresource;
    char *id;
    struct ml_mirrored *record; /* NULL: it was not written to */
};

/* The copy that has the object whole, or would have it; NULL: only the server knows. */
static struct ml_informer *find_informer(const struct ml_mirror *self, const struct place *place)
{
    struct ml_informer *each = NULL;
    while ((each = ml_informers_next(self->services.informers, each)))
        if (ml_informer_kind(each) == place->kind && ml_informer_has_all(each, place->ns))
            return each;
    return NULL;
}

static struct ml_str place_key(const struct place *place)
{
    struct ml_str id = ml_str_of(place->id);
    ml_str_cut(&id, ' ');
    ml_str_cut(&id, ' ');
    return id;
}

static struct ml_mirrored *place_record(struct ml_mirror *self, struct place *place,
                                        struct ml_object *before)
{
    struct ml_mirrored *record = place->record;
    if (!record) {
        record = place->record = ml_new(struct ml_mirrored);
        record->kind = place->kind;
        record->id = ml_strdup(place->id);
        record->before = before ? ml_object_ref(before) : NULL;
        record->after = before ? ml_object_ref(before) : NULL;
        ml_set_put(&self->changed, record);
    }
    return record;
}

static void note_write(struct ml_mirror *self, struct ml_mirrored *record)
{
    self->writes++;
    free(record->by);
    record->by = ml_strdup(self->by);
}

/* Each copy of the kind shows the object from now on; NULL: that it is gone. */
static void show(struct ml_mirror *self, const struct place *place, struct ml_str json)
{
    struct ml_informer *each = NULL;
    while ((each = ml_informers_next(self->services.informers, each))) {
        if (ml_informer_kind(each) != place->kind)
            continue;
        if (json.len > 0)
            ml_informer_learn(each, json);
        else
            ml_informer_forget(each, place_key(place));
    }
}

/* ---- requests ---- */

struct ml_transport_call {
    struct ml_mirror *mirror;
    struct ml_list node;
    struct ml_http_handler handler;
    void *context;
    char *method, *path, *content_type, *body;
    struct ml_task task;
    struct ml_client_call *reading; /* of the server; or NULL */
    struct place place;
};

static void call_free(struct ml_transport_call *call)
{
    ml_list_remove(&call->node);
    ml_task_cancel(&call->task);
    if (call->reading)
        ml_client_cancel(call->reading);
    free(call->method);
    free(call->path);
    free(call->content_type);
    free(call->body);
    free(call->place.id);
    free(call);
}

static void call_end(struct ml_transport_call *call, const struct ml_err *err)
{
    struct ml_http_handler handler = call->handler;
    void *context = call->context;
    call_free(call);
    handler.done(context, err);
}

static void answer(struct ml_transport_call *call, int status, struct ml_str body)
{
    const struct ml_http_head head = {
        .status = status, .retry_after_ms = -1, .content_type = ML_STR("application/json")};
    struct ml_err err = ML_ERR_INIT;
    if (call->handler.head)
        call->handler.head(call->context, &head);
    if (call->handler.data && call->handler.data(call->context, body, &err) < 0)
        call_end(call, &err);
    else
        call_end(call, NULL);
}

/* A Status, in the words of apimachinery, pkg/api/errors. */
static void refuse(struct ml_transport_call *call, int code, const char *reason,
                   const char *message)
{
    ML_AUTO(ml_buf_fini) struct ml_buf body = ML_BUF_INIT;
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, &body);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "kind", ML_STR("Status"));
    ml_json_put_string(&writer, "apiVersion", ML_STR("v1"));
    ml_json_put_string(&writer, "status", code < 300 ? ML_STR("Success") : ML_STR("Failure"));
    ml_json_put_string(&writer, "message", ml_str_of(message));
    ml_json_put_string(&writer, "reason", ml_str_of(reason));
    ml_json_put_int(&writer, "code", code);
    ml_json_end_object(&writer);
    answer(call, code, ml_buf_str(&body));
}

static void refuse_missing(struct ml_transport_call *call)
{
    ML_AUTO_FREE char *message = ml_asprintf(
        "%s \"" ML_STR_FMT "\" not found", call->place.kind->plural, ML_STR_ARG(call->place.name));
    refuse(call, 404, "NotFound", message);
}

/* It is never answered. */
static void leave_unknown(struct ml_transport_call *call, const char *why)
{
    mirror_unknown(call->mirror, ml_asprintf("%s %s: %s", call->method, call->path, why));
}

/* "/apis/apps/v1/namespaces/NS/deployments/NAME/SUB?QUERY" (ml_kind_path); `place` points into it.
 * False: it is no path of a kind that is known. */
static bool parse_path(const struct ml_mirror *self, const char *path, struct place *place)
{
    struct ml_str rest = ml_str_of(path), part[6] = {{NULL, 0}};
    size_t count = 0;
    rest = ml_str_cut(&rest, '?');
    ml_str_cut(&rest, '/');
    bool core = ml_str_is(ml_str_cut(&rest, '/'), "api");
    if (!rest.ptr)
        return false;
    const char *version = rest.ptr;
    ml_str_cut(&rest, '/');
    if (!core && rest.ptr)
        ml_str_cut(&rest, '/');
    if (!rest.ptr)
        return false;
    struct ml_str api_version = {version, (size_t)(rest.ptr - version) - 1};
    while (rest.ptr && count < ML_COUNT(part))
        part[count++] = ml_str_cut(&rest, '/');
    /* A namespace and its status and finalize are objects of the kind Namespace. */
    bool namespaced = count > 2 && ml_str_is(part[0], "namespaces") &&
                      !ml_str_is(part[2], "status") && !ml_str_is(part[2], "finalize");
    const struct ml_str *at = namespaced ? part + 2 : part;
    place->kind = ml_discovery_known_as(self->services.discovery, api_version, at[0]);
    place->ns = namespaced ? part[1] : ML_STR("");
    place->name = at[1].ptr ? at[1] : ML_STR("");
    place->subresource = at[2].ptr ? at[2] : ML_STR("");
    return place->kind != NULL;
}

/* ---- reads of the server ---- */

static bool may_read(struct ml_transport_call *call)
{
    struct ml_mirror *self = call->mirror;
    if (self->reads++ < self->opts.reads_max)
        return true;
    leave_unknown(call, "a plan reads no more from the server");
    return false;
}

/* Sends a GET of the path. */
static void read_server(struct ml_transport_call *call, const char *path, ml_client_done *done)
{
    const struct ml_client_request request = {
        .verb = ML_VERB_GET, .path = path, .flow = "plan", .yields = true};
    if (may_read(call))
        call->reading = ml_client_send(call->mirror->opts.services->client, &request, done, call);
}

static void on_passed_on(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_transport_call *call = context;
    call->reading = NULL;
    if (!err)
        answer(call, 200, body);
    else if (err->http >= 400)
        refuse(call, err->http, err->reason, err->message);
    else
        leave_unknown(call, err->message); /* nobody has answered */
}

/* An object that the run has written is as it made it. Of others the server tells more than the
 * copy: managedFields. */
static void serve_get(struct ml_transport_call *call)
{
    const struct ml_mirrored *record = call->place.record;
    ML_AUTO(ml_buf_fini) struct ml_buf json = ML_BUF_INIT;
    if (!record || record->before == record->after) {
        read_server(call, call->path, on_passed_on);
        return;
    }
    if (!record->after) {
        refuse_missing(call);
        return;
    }
    ml_object_json(record->after, &json);
    answer(call, 200, ml_buf_str(&json));
}

static void serve_list(struct ml_transport_call *call)
{
    size_t cursor = 0;
    for (const struct ml_mirrored *each; (each = ml_mirror_next(call->mirror, &cursor));) {
        if (each->kind != call->place.kind || each->before == each->after)
            continue;
        leave_unknown(call, "it lists from the server what the plan has changed");
        return;
    }
    read_server(call, call->path, on_passed_on);
}

/* ---- Events ---- */

static struct ml_str event_id(const void *entry)
{
    return ml_str_of(((const struct ml_mirrored_event *)entry)->id);
}

static void count_event(struct ml_mirror *self, struct ml_str body)
{
    ML_AUTO_FREE char *type = ml_json_find_string(body, "type", NULL);
    ML_AUTO_FREE char *reason = ml_json_find_string(body, "reason", NULL);
    ML_AUTO_FREE char *id = ml_asprintf("%s %s", type ? type : "", reason ? reason : "");
    struct ml_mirrored_event *event = ml_set_get(&self->events, ml_str_of(id));
    if (!event && self->events.len == EVENT_REASONS_MAX)
        return;
    if (!event) {
        ML_AUTO_FREE char *kind = ml_json_find_string(body, "regarding", "kind", NULL);
        ML_AUTO_FREE char *ns = ml_json_find_string(body, "regarding", "namespace", NULL);
        ML_AUTO_FREE char *name = ml_json_find_string(body, "regarding", "name", NULL);
        event = ml_new(struct ml_mirrored_event);
        event->id = ml_take(&id);
        event->note = ml_json_find_string(body, "note", NULL);
        event->about = ml_asprintf("%s %s%s%s", kind ? kind : "", ns ? ns : "", ns ? "/" : "",
                                   name ? name : "");
        ml_set_put(&self->events, event);
    }
    event->count++;
}

const struct ml_mirrored_event *ml_mirror_next_event(const struct ml_mirror *self, size_t *cursor)
{
    return ml_set_next(&self->events, cursor);
}

/* ---- writes ---- */

/* Adds all that the server sets in a new object. The uid follows from the name and from how often
 * the object was made before, so that it is the same in each mirror. */
static int complete_new(struct ml_mirror *self, const struct place *place, struct ml_str body,
                        struct ml_buf *out, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf patch = ML_BUF_INIT;
    char uid[ML_UUID_LEN + 1], now[ML_RFC3339_LEN + 1];
    uint64_t hash = ml_str_hash(ml_str_of(place->id)) + (place->record ? place->record->made : 0);
    ml_uuid_format(hash, ~hash, uid);
    ml_rfc3339_format(ml_clock_wall(self->services.clock), now);
    ml_buf_printf(&patch,
                  "{%s\"metadata\":{\"uid\":\"%s\",\"resourceVersion\":\"1\",\"generation\":1,"
                  "\"creationTimestamp\":\"%s\",\"managedFields\":null}}",
                  place->kind->has_status ? "\"status\":null," : "", uid, now);
    return ml_json_merge(body, ml_buf_str(&patch), out, err);
}

/* Sets the version of the changed object `result`; `base` is the one before. */
static int complete_changed(struct ml_str base, struct ml_str result, struct ml_buf *out,
                            struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf patch = ML_BUF_INIT;
    ML_AUTO_FREE char *rv = ml_json_find_string(base, "metadata", "resourceVersion", NULL);
    struct ml_str was = {NULL, 0}, is = {NULL, 0}, generation = {NULL, 0};
    uint64_t version = ml_rv_parse(ml_str_of(rv));
    int64_t number = 0;
    (void)ml_json_find(base, &was, "spec", NULL);
    (void)ml_json_find(result, &is, "spec", NULL);
    bool counts = was.len + is.len > 0 && !ml_json_equal(was, is) &&
                  ml_json_find(base, &generation, "metadata", "generation", NULL) &&
                  ml_str_to_i64(generation, &number);
    ml_buf_printf(&patch, "{\"metadata\":{\"resourceVersion\":\"%llu\"",
                  (unsigned long long)(version == ML_RV_OPAQUE ? 1 : version + 1));
    if (counts)
        ml_buf_printf(&patch, ",\"generation\":%lld", (long long)number + 1);
    ml_buf_puts(&patch, "}}");
    return ml_json_merge(result, ml_buf_str(&patch), out, err);
}

/* The members of the metadata that only the server sets, and the status where it is a subresource,
 * are those of `base`. */
static int keep_servers_fields(const struct place *place, struct ml_str base, struct ml_str result,
                               struct ml_buf *out, struct ml_err *err)
{
    static const char *const names[] = {"uid", "resourceVersion", "generation",
                                        "creationTimestamp"};
    ML_AUTO(ml_buf_fini) struct ml_buf patch = ML_BUF_INIT, without = ML_BUF_INIT;
    struct ml_json_writer writer;
    struct ml_str value, changed = result;
    bool keeps_status = place->kind->has_status && !ml_str_is(place->subresource, "status");
    if (keeps_status) { /* a patch cannot take the place of an object */
        if (ml_json_merge(result, ML_STR("{\"status\":null}"), &without, err) < 0)
            return err->kind;
        changed = ml_buf_str(&without);
    }
    ml_json_writer_init(&writer, &patch);
    ml_json_begin_object(&writer);
    if (keeps_status && ml_json_find(base, &value, "status", NULL))
        ml_json_put_raw(&writer, "status", value);
    ml_json_key(&writer, ML_STR("metadata"));
    ml_json_begin_object(&writer);
    ml_json_put_raw(&writer, "managedFields", ML_STR("null"));
    for (size_t i = 0; i < ML_COUNT(names); i++)
        if (ml_json_find(base, &value, "metadata", names[i], NULL))
            ml_json_put_raw(&writer, names[i], value);
    ml_json_end_object(&writer);
    ml_json_end_object(&writer);
    return ml_json_merge(changed, ml_buf_str(&patch), out, err);
}

/* The object is `json` from now on, which is answered. */
static void store_written(struct ml_transport_call *call, struct ml_object *base,
                          struct ml_str json, int status)
{
    struct ml_mirror *self = call->mirror;
    struct ml_object *object = NULL;
    struct ml_err err = ML_ERR_INIT;
    if (ml_object_new(self->dict, call->place.kind->api_version, call->place.kind->kind, json,
                      &object, &err) < 0) {
        refuse(call, 422, "Invalid", err.message);
        return;
    }
    struct ml_mirrored *record = place_record(self, &call->place, base);
    ml_object_unref(record->after);
    record->after = object;
    record->made += !base;
    note_write(self, record);
    show(self, &call->place, json);
    answer(call, status, json);
}

static void refuse_error(struct ml_transport_call *call, const struct ml_err *err)
{
    refuse(call, err->kind == ML_ELIMIT ? 413 : 400, "BadRequest", err->message);
}

static void create(struct ml_transport_call *call)
{
    ML_AUTO(ml_buf_fini) struct ml_buf json = ML_BUF_INIT;
    struct ml_err err = ML_ERR_INIT;
    if (complete_new(call->mirror, &call->place, ml_str_of(call->body), &json, &err) < 0)
        refuse_error(call, &err);
    else
        store_written(call, NULL, ml_buf_str(&json), 201);
}

/* uid and resourceVersion in the metadata of the body, or in a delete's preconditions. */
static bool meets(const struct ml_object *base, struct ml_str guards)
{
    ML_AUTO_FREE char *uid = ml_json_find_string(guards, "uid", NULL);
    ML_AUTO_FREE char *rv = ml_json_find_string(guards, "resourceVersion", NULL);
    return (!uid || ml_str_is(ml_object_uid(base), uid)) &&
           (!rv || ml_str_is(ml_object_rv(base), rv));
}

/* Appends `base` with the body of the request merged over it. */
static int merge_body(struct ml_transport_call *call, struct ml_str base, struct ml_buf *out,
                      struct ml_err *err)
{
    struct ml_mirror *self = call->mirror;
    struct ml_str body = ml_str_of(call->body), status = {NULL, 0};
    ML_AUTO(ml_buf_fini) struct ml_buf part = ML_BUF_INIT;
    if (strcmp(call->content_type, "application/apply-patch+yaml") == 0) {
        const struct ml_mirrored *mine = call->place.record;
        const struct ml_mirrored *theirs = self->opts.before
                                               ? ml_mirror_find(self->opts.before, call->place.id)
                                               : NULL;
        const char *applied = mine && mine->applied       ? mine->applied
                              : theirs && theirs->applied ? theirs->applied
                                                          : "";
        return ml_json_apply(base, body, ml_str_of(applied), out, err);
    }
    if (call->place.subresource.len == 0)
        return ml_json_merge(base, body, out, err);
    (void)ml_json_find(body, &status, "status", NULL);
    ml_buf_printf(&part, "{\"status\":" ML_STR_FMT "}",
                  ML_STR_ARG(status.len > 0 ? status : ML_STR("{}")));
    return ml_json_merge(base, ml_buf_str(&part), out, err);
}

static void keep_applied(struct ml_transport_call *call, struct ml_object *base)
{
    if (strcmp(call->content_type, "application/apply-patch+yaml") != 0)
        return;
    struct ml_mirrored *record = place_record(call->mirror, &call->place, base);
    free(record->applied);
    record->applied = ml_strdup(call->body);
}

static void change(struct ml_transport_call *call, struct ml_object *base)
{
    ML_AUTO(ml_buf_fini)
    struct ml_buf was = ML_BUF_INIT, merged = ML_BUF_INIT, is = ML_BUF_INIT, json = ML_BUF_INIT;
    struct ml_err err = ML_ERR_INIT;
    struct ml_str metadata = {NULL, 0};
    (void)ml_json_find(ml_str_of(call->body), &metadata, "metadata", NULL);
    if (!meets(base, metadata)) {
        refuse(call, 409, "Conflict",
               "the object has been modified; please apply your changes to the latest version");
        return;
    }
    ml_object_json(base, &was);
    if (merge_body(call, ml_buf_str(&was), &merged, &err) < 0 ||
        keep_servers_fields(&call->place, ml_buf_str(&was), ml_buf_str(&merged), &is, &err) < 0) {
        refuse_error(call, &err);
        return;
    }
    keep_applied(call, base);
    if (ml_json_equal(ml_buf_str(&was), ml_buf_str(&is)))
        answer(call, 200, ml_buf_str(&was));
    else if (complete_changed(ml_buf_str(&was), ml_buf_str(&is), &json, &err) < 0)
        refuse_error(call, &err);
    else
        store_written(call, base, ml_buf_str(&json), 200);
}

/* An object with finalizers stays, and is being deleted. */
static void mark_deleted(struct ml_transport_call *call, struct ml_object *base)
{
    ML_AUTO(ml_buf_fini)
    struct ml_buf was = ML_BUF_INIT, is = ML_BUF_INIT, json = ML_BUF_INIT, patch = ML_BUF_INIT;
    struct ml_err err = ML_ERR_INIT;
    char now[ML_RFC3339_LEN + 1];
    ml_object_json(base, &was);
    if (ml_object_deleting(base)) {
        answer(call, 200, ml_buf_str(&was));
        return;
    }
    ml_rfc3339_format(ml_clock_wall(call->mirror->services.clock), now);
    ml_buf_printf(&patch, "{\"metadata\":{\"deletionTimestamp\":\"%s\"}}", now);
    if (ml_json_merge(ml_buf_str(&was), ml_buf_str(&patch), &is, &err) < 0 ||
        complete_changed(ml_buf_str(&was), ml_buf_str(&is), &json, &err) < 0)
        refuse_error(call, &err);
    else
        store_written(call, base, ml_buf_str(&json), 200);
}

static void delete_object(struct ml_transport_call *call, struct ml_object *base)
{
    struct ml_mirror *self = call->mirror;
    struct ml_str guards = {NULL, 0};
    (void)ml_json_find(ml_str_of(call->body), &guards, "preconditions", NULL);
    if (!meets(base, guards)) {
        refuse(call, 409, "Conflict", "the preconditions of the deletion are not met");
        return;
    }
    if (ml_object_has_finalizers(base)) {
        mark_deleted(call, base);
        return;
    }
    struct ml_mirrored *record = place_record(self, &call->place, base);
    ml_object_unref(ml_take(&record->after));
    note_write(self, record);
    show(self, &call->place, ML_STR(""));
    refuse(call, 200, "", "");
}

static void on_deletion(void *context, const struct ml_deletion *deletion)
{
    struct ml_mirror *self = context;
    ML_AUTO_FREE char *id = make_id(deletion->kind, deletion->ns, deletion->name);
    struct ml_mirrored *record = ml_set_get(&self->changed, ml_str_of(id));
    if (!record)
        return;
    free(record->why);
    record->why = ml_strdup(deletion->why);
}

/* A finalizer that goes was the last one: so does the object. */
static void end_deleted(struct ml_mirror *self, const struct place *place)
{
    struct ml_mirrored *record = place->record;
    if (!record || !record->after || !ml_object_deleting(record->after) ||
        ml_object_has_finalizers(record->after))
        return;
    ml_object_unref(ml_take(&record->after));
    show(self, place, ML_STR(""));
}

/* `base`: the object that the request is about; NULL: there is none. */
static void serve_write(struct ml_transport_call *call, struct ml_object *base)
{
    struct ml_mirror *self = call->mirror;
    bool creates = strcmp(call->method, "POST") == 0;
    bool applies = call->content_type &&
                   strcmp(call->content_type, "application/apply-patch+yaml") == 0;
    struct place place = {.kind = call->place.kind, .record = NULL};
    ML_AUTO_FREE char *id = place.id = ml_strdup(call->place.id);
    if (creates && base) {
        refuse(call, 409, "AlreadyExists", "the object already exists");
    } else if (creates || (applies && !base && call->place.subresource.len == 0)) {
        if (applies)
            keep_applied(call, NULL);
        create(call);
    } else if (!base) {
        refuse_missing(call);
    } else if (strcmp(call->method, "DELETE") == 0) {
        delete_object(call, base);
    } else {
        change(call, base);
    }
    place.record = ml_set_get(&self->changed, ml_str_of(id));
    end_deleted(self, &place);
}

static void on_base_read(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_transport_call *call = context;
    struct ml_object *base = NULL;
    struct ml_err problem = ML_ERR_INIT;
    call->reading = NULL;
    if (err && err->kind != ML_ENOT_FOUND) {
        leave_unknown(call, err->message); /* the script may write what it may not read */
    } else if (!err && ml_object_new(call->mirror->dict, call->place.kind->api_version,
                                     call->place.kind->kind, body, &base, &problem) < 0) {
        refuse_error(call, &problem);
    } else {
        serve_write(call, base);
        ml_object_unref(base);
    }
}

/* Finds the object first, by the server where the copy does not have it. */
static void begin_write(struct ml_transport_call *call)
{
    const struct place *place = &call->place;
    ML_AUTO(ml_buf_fini) struct ml_buf path = ML_BUF_INIT;
    if (place->subresource.len > 0 && !ml_str_is(place->subresource, "status")) {
        leave_unknown(call, "a plan knows no subresource but status");
        return;
    }
    const struct ml_informer *informer = find_informer(call->mirror, place);
    struct ml_object *base = place->record ? place->record->after
                             : informer
                                 ? ml_store_get(ml_informer_store(informer), place_key(place))
                                 : NULL;
    if (place->record || informer) {
        if (base)
            ml_object_ref(base);
        serve_write(call, base);
        ml_object_unref(base);
        return;
    }
    ml_kind_path(place->kind, place->ns, place->name, ML_STR(""), &path);
    read_server(call, ml_buf_cstr(&path), on_base_read);
}

static void serve_post(struct ml_transport_call *call)
{
    struct place *place = &call->place;
    struct ml_str body = ml_str_of(call->body);
    ML_AUTO_FREE char *name = ml_json_find_string(body, "metadata", "name", NULL);
    if (place->kind == ml_discovery_known_as(call->mirror->services.discovery,
                                             ML_STR("events.k8s.io/v1"), ML_STR("events"))) {
        count_event(call->mirror, body);
        answer(call, 201, body);
        return;
    }
    if (!name) {
        refuse(call, 422, "Invalid", "metadata.name is missing");
        return;
    }
    free(place->id);
    place->id = make_id(place->kind, place->ns, ml_str_of(name));
    place->name = place_key(place);
    if (place->kind->namespaced)
        ml_str_cut(&place->name, '/');
    place->record = ml_set_get(&call->mirror->changed, ml_str_of(place->id));
    begin_write(call);
}

static void serve(void *context)
{
    struct ml_transport_call *call = context;
    struct ml_mirror *self = call->mirror;
    struct place *place = &call->place;
    bool gets = strcmp(call->method, "GET") == 0;
    if (!parse_path(self, call->path, place)) {
        if (gets)
            read_server(call, call->path, on_passed_on);
        else
            leave_unknown(call, "the kind is not known");
        return;
    }
    place->id = make_id(place->kind, place->ns, place->name);
    place->record = ml_set_get(&self->changed, ml_str_of(place->id));
    if (strcmp(call->method, "POST") == 0)
        serve_post(call);
    else if (!gets)
        begin_write(call);
    else if (place->name.len > 0)
        serve_get(call);
    else
        serve_list(call);
}

static struct ml_transport_call *mirror_submit(struct ml_transport *transport,
                                               const struct ml_transport_request *request,
                                               const struct ml_http_handler *handler, void *context)
{
    struct ml_mirror *self = ml_container_of(transport, struct ml_mirror, transport);
    struct ml_transport_call *call = ml_new(struct ml_transport_call);
    ml_assert(!request->streaming); /* copies watch nothing */
    call->mirror = self;
    call->handler = *handler;
    call->context = context;
    call->method = ml_strdup(request->method);
    call->path = ml_strdup(request->path);
    call->content_type = ml_strdup(request->content_type ? request->content_type : "");
    call->body = ml_str_dup(request->body);
    ml_list_push(&self->calls, &call->node);
    ml_task_init(&call->task, serve, call);
    ml_task_defer(&call->task, self->services.loop);
    return call;
}

static void mirror_cancel(struct ml_transport *transport ML_UNUSED, struct ml_transport_call *call)
{
    call_free(call);
}

static void mirror_transport_free(struct ml_transport *transport ML_UNUSED)
{
}

/* ---- ctx.http ---- */

struct ml_outbound_call {
    char unused;
};

static bool outbound_allows(struct ml_outbound *outbound, const char *origin)
{
    struct ml_mirror *self = ml_container_of(outbound, struct ml_mirror, outbound);
    struct ml_outbound *real = self->opts.services->outbound;
    return real && real->allows(real, origin);
}

static struct ml_outbound_call *outbound_send(struct ml_outbound *outbound,
                                              const struct ml_outbound_request *request,
                                              ml_outbound_done *done ML_UNUSED,
                                              void *context ML_UNUSED)
{
    struct ml_mirror *self = ml_container_of(outbound, struct ml_mirror, outbound);
    mirror_unknown(
        self, ml_asprintf("%s %s: a plan asks no other server", request->method, request->url));
    return ml_new(struct ml_outbound_call);
}

static void outbound_cancel(struct ml_outbound *outbound ML_UNUSED, struct ml_outbound_call *call)
{
    free(call);
}

/* ---- life ---- */

static int64_t mirror_monotonic_ns(struct ml_clock *clock)
{
    const struct ml_mirror *self = ml_container_of(clock, struct ml_mirror, clock);
    return ml_clock_monotonic(self->opts.services->clock);
}

static int64_t mirror_wall_ns(struct ml_clock *clock)
{
    return ml_container_of(clock, struct ml_mirror, clock)->wall_ns;
}

static void make_services(struct ml_mirror *self)
{
    struct ml_services *services = &self->services;
    const struct ml_services *real = self->opts.services;
    *services = *real;
    services->clock = &self->clock;
    services->random = &self->random;
    services->log = NULL;
    services->metrics = ml_metrics_new();
    services->shard = NULL;
    services->standby = false;
    if (real->script_memory.max > 0) /* what is left of it */
        services->script_memory.max = real->script_memory.max -
                                      ML_MIN(real->script_memory.used, real->script_memory.max - 1);
    services->script_memory.used = 0;
    services->authors = NULL;
    services->journal = NULL;
    services->deletions = ml_deletions_new_heard(on_deletion, self);
    services->outbound = &self->outbound;
    services->client = ml_client_new(&(struct ml_client_opts){.loop = services->loop,
                                                              .transport = &self->transport,
                                                              .metrics = services->metrics,
                                                              .random = &self->random});
    services->informers = ml_informers_new(&(struct ml_informers_opts){
        .client = services->client,
        .loop = services->loop,
        .random = &self->random,
        .metrics = services->metrics,
        .namespaces = ml_informers_namespaces(real->informers),
        .copied = real->informers,
    });
    services->recorder = ml_recorder_new(&(struct ml_recorder_opts){.client = services->client,
                                                                    .loop = services->loop,
                                                                    .metrics = services->metrics,
                                                                    .controller = "moonloop",
                                                                    .instance = "plan"});
}

struct ml_mirror *ml_mirror_new(const struct ml_mirror_opts *opts)
{
    struct ml_mirror *self = ml_new(struct ml_mirror);
    self->opts = *opts;
    self->transport = (struct ml_transport){.submit = mirror_submit,
                                            .cancel = mirror_cancel,
                                            .free = mirror_transport_free,
                                            .host = "plan",
                                            .local = true};
    self->outbound = (struct ml_outbound){outbound_allows, outbound_send, outbound_cancel};
    self->changed.key = mirrored_id;
    self->events.key = event_id;
    self->dict = ml_dict_new();
    self->by = ml_strdup("");
    ml_list_init(&self->calls);
    ml_random_init(&self->random, 1);
    self->clock = (struct ml_clock){mirror_monotonic_ns, mirror_wall_ns};
    self->wall_ns = opts->before ? opts->before->wall_ns : ml_clock_wall(opts->services->clock);
    make_services(self);
    ml_task_init(&self->tell, tell_unknown, self);
    return self;
}

void ml_mirror_free(struct ml_mirror *self)
{
    if (!self)
        return;
    ml_task_cancel(&self->tell);
    ml_deletions_free(self->services.deletions);
    ml_recorder_free(self->services.recorder);
    ml_informers_free(self->services.informers);
    ml_client_free(self->services.client);
    ml_list_each (node, &self->calls)
        call_free(ml_container_of(node, struct ml_transport_call, node));
    ml_metrics_free(self->services.metrics);
    ml_set_each (&self->changed, i, entry) {
        struct ml_mirrored *record = entry;
        ml_object_unref(record->before);
        ml_object_unref(record->after);
        free(record->id);
        free(record->by);
        free(record->why);
        free(record->applied);
        free(record);
    }
    ml_set_each (&self->events, j, entry) {
        struct ml_mirrored_event *event = entry;
        free(event->id);
        free(event->note);
        free(event->about);
        free(event);
    }
    ml_set_fini(&self->changed);
    ml_set_fini(&self->events);
    ml_dict_unref(self->dict);
    free(self->unknown);
    free(self->by);
    free(self);
}

struct ml_services *ml_mirror_services(struct ml_mirror *self)
{
    return &self->services;
}

void ml_mirror_begin(struct ml_mirror *self, struct ml_str key)
{
    free(self->by);
    self->by = ml_str_dup(key);
}

size_t ml_mirror_writes(const struct ml_mirror *self)
{
    return self->writes;
}
