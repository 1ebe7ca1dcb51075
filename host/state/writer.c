/* Sends the writes of scripts and of the status, reads the outcome of a write whose reply was lost,
 * and remembers the authors of the last writes. */
#include "state/writer.h"

#include "codec/json.h"
#include "state/journal.h"

#define NAMES_MAX 1000 /* 100 controllers at a time; then all is forgotten */

/* ---- the authors of the last writes ---- */

void ml_authors_fini(struct ml_authors *authors)
{
    for (size_t i = 0; i < ML_AUTHORS_MAX; i++) {
        free(authors->writes[i].key);
        free(authors->deletions[i].key);
    }
    ml_map_each (&authors->names, cursor, name)
        free(name);
    ml_map_fini(&authors->names);
    *authors = (struct ml_authors){.names = {0}};
}

static const char *name_of(struct ml_authors *authors, const char *controller)
{
    char *name = ml_map_get(&authors->names, ml_str_of(controller));
    if (name)
        return name;
    if (authors->names.len == NAMES_MAX)
        ml_authors_fini(authors);
    name = ml_strdup(controller);
    ml_map_put(&authors->names, ml_str_of(name), name);
    return name;
}

static void note_author(struct ml_author *place, const struct ml_kind *kind, uint64_t id,
                        const char *controller, struct ml_str key)
{
    free(place->key);
    *place = (struct ml_author){kind, id, controller, ml_str_dup(key)};
}

void ml_authors_note(struct ml_authors *authors, const struct ml_kind *kind, uint64_t rv,
                     const char *controller, struct ml_str key)
{
    if (!authors || rv == ML_RV_OPAQUE)
        return;
    const char *name = name_of(authors, controller);
    note_author(&authors->writes[rv % ML_AUTHORS_MAX], kind, rv, name, key);
}

void ml_authors_note_deletion(struct ml_authors *authors, struct ml_str uid, const char *controller,
                              struct ml_str key)
{
    uint64_t id = ml_hash(uid);
    if (!authors)
        return;
    const char *name = name_of(authors, controller);
    note_author(&authors->deletions[id % ML_AUTHORS_MAX], NULL, id, name, key);
}

static const struct ml_author *find_author(const struct ml_author *authors,
                                           const struct ml_kind *kind, uint64_t id)
{
    const struct ml_author *author = &authors[id % ML_AUTHORS_MAX];
    return author->controller && author->id == id && author->kind == kind ? author : NULL;
}

const struct ml_author *ml_authors_of(const struct ml_authors *authors, const struct ml_kind *kind,
                                      uint64_t rv)
{
    return authors && rv != ML_RV_OPAQUE ? find_author(authors->writes, kind, rv) : NULL;
}

const struct ml_author *ml_authors_of_deletion(const struct ml_authors *authors, struct ml_str uid)
{
    return authors ? find_author(authors->deletions, NULL, ml_hash(uid)) : NULL;
}

/* ---- one write ---- */

struct ml_writer_call {
    struct ml_services *services;
    const struct ml_kind *kind;
    enum ml_verb verb;
    char *ns;
    char *name;
    char *key;
    char *owner_uid;
    char *uid, *rv;       /* the preconditions of the write, or NULL */
    char *place;          /* of the script that asked for it, or NULL */
    bool of_status;       /* it writes the status alone */
    char *why, *revision; /* of a delete, for its trace, as the next two; else NULL */
    const struct ml_kind *owner_kind;
    struct ml_object *owner;
    struct ml_expectations *expectations;
    struct ml_informer *informer;
    ml_client_done *done;
    void *context;

    struct ml_client_call *sent;
    struct ml_err *refused;   /* by the check: why it was not sent; else NULL */
    struct ml_task refusal;   /* answers with that */
    struct ml_err *lost;      /* why the reply did not come, during the read; else NULL */
    struct ml_budget *budget; /* of the script that writes, or NULL */
};

static void writer_call_free(struct ml_writer_call *call)
{
    free(call->ns);
    free(call->name);
    free(call->key);
    free(call->owner_uid);
    free(call->uid);
    free(call->rv);
    free(call->lost);
    ml_task_cancel(&call->refusal);
    free(call->refused);
    free(call->place);
    free(call->why);
    free(call->revision);
    ml_object_unref(call->owner);
    free(call);
}

static const char *verb_name(const struct ml_writer_call *call)
{
    switch (call->verb) {
    case ML_VERB_CREATE:
        return "create";
    case ML_VERB_UPDATE:
        return "update";
    case ML_VERB_APPLY:
        return "apply";
    case ML_VERB_PATCH_MERGE:
        return call->of_status ? "patch status of" : "patch";
    case ML_VERB_DELETE:
        return "delete";
    case ML_VERB_GET:
        break;
    }
    ML_UNREACHABLE();
}

/* A new object may have got its name from the server. */
static void writer_record(const struct ml_writer_call *call, struct ml_str body,
                          const struct ml_err *err)
{
    ML_AUTO_FREE char *given = *call->name ? NULL
                                           : ml_json_find_string(body, "metadata", "name", NULL);
    ML_AUTO_FREE char *name = ml_asprintf("%s%s%s", call->ns, *call->ns ? "/" : "",
                                          given ? given : call->name);
    ml_journal_add(call->services->journal,
                   &(struct ml_journal_entry){
                       .what = ML_JOURNAL_WRITE,
                       .at_ns = ml_clock_wall(call->services->clock),
                       .controller = ml_str_of(ml_expectations_controller(call->expectations)),
                       .key = ml_str_of(call->key),
                       .error = ml_str_of(err ? err->message : NULL),
                       .verb = ml_str_of(verb_name(call)),
                       .kind = ml_str_of(call->kind->kind),
                       .name = ml_str_of(name),
                       .place = ml_str_of(call->why ? call->why : call->place),
                   });
}

static void writer_finish(struct ml_writer_call *call, struct ml_str body, const struct ml_err *err)
{
    if (call->services->journal)
        writer_record(call, body, err);
    call->done(call->context, body, err);
    writer_call_free(call);
}

/* Notes what the caches must show before this key runs again. Returns the version. */
static uint64_t writer_note_expectation(struct ml_writer_call *call, struct ml_str body)
{
    ML_AUTO_FREE char *version = ml_json_find_string(body, "metadata", "resourceVersion", NULL);
    uint64_t rv = version && *version ? ml_rv_parse(ml_str_of(version)) : ML_RV_OPAQUE;
    ml_expectations_wrote(call->expectations, ml_str_of(call->key), call->informer,
                          ml_str_of(call->ns), ml_str_of(call->name), rv);
    return rv;
}

static void writer_trace_deletion(const struct ml_writer_call *call, const char *controller)
{
    const struct ml_deletion deletion = {
        .kind = call->kind,
        .ns = ml_str_of(call->ns),
        .name = ml_str_of(call->name),
        .why = call->why,
        .controller = controller,
        .revision = call->revision,
        .owner_kind = call->owner_kind,
        .owner = call->owner,
    };
    ml_deletions_note(call->services->deletions, &deletion);
}

static void writer_accept_written(struct ml_writer_call *call, struct ml_str body)
{
    uint64_t rv = writer_note_expectation(call, body);
    const char *controller = ml_expectations_controller(call->expectations);
    ml_authors_note(call->services->authors, call->kind, rv, controller, ml_str_of(call->key));
    if (call->verb == ML_VERB_DELETE && call->uid)
        ml_authors_note_deletion(call->services->authors, ml_str_of(call->uid), controller,
                                 ml_str_of(call->key));
    if (call->verb == ML_VERB_DELETE)
        writer_trace_deletion(call, controller);
    writer_finish(call, body, NULL);
}

/* ---- a reply that was lost ---- */

static bool has_controller_owner(struct ml_str object, const char *uid)
{
    struct ml_str owners;
    if (!ml_json_find(object, &owners, "metadata", "ownerReferences", NULL))
        return false;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, owners, 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return false;
    for (struct ml_str owner; (owner = ml_json_skip(&reader)).len;) {
        ML_AUTO_FREE char *is = ml_json_find_string(owner, "uid", NULL);
        struct ml_str controls;
        if (is && strcmp(is, uid) == 0 && ml_json_find(owner, &controls, "controller", NULL) &&
            ml_str_is(controls, "true"))
            return true;
    }
    return false;
}

/* NULL and "" are no text. */
static bool is_same_text(const char *a, const char *b)
{
    return a && b && *a && strcmp(a, b) == 0;
}

/* 0: the write took effect. Else the error to return. */
static int writer_classify_lost_reply(const struct ml_writer_call *call, struct ml_str found,
                                      struct ml_err *err)
{
    ML_AUTO_FREE char *uid = ml_json_find_string(found, "metadata", "uid", NULL);
    ML_AUTO_FREE char *rv = ml_json_find_string(found, "metadata", "resourceVersion", NULL);
    struct ml_str leaving;
    *err = *call->lost;
    switch (call->verb) {
    case ML_VERB_CREATE:
        return !*call->owner_uid || has_controller_owner(found, call->owner_uid) ? 0 : err->kind;
    case ML_VERB_DELETE:
        if (uid && call->uid && !is_same_text(uid, call->uid))
            return 0;
        return ml_json_find(found, &leaving, "metadata", "deletionTimestamp", NULL) ? 0 : err->kind;
    case ML_VERB_UPDATE:
    case ML_VERB_PATCH_MERGE:
    case ML_VERB_APPLY:
        if (!call->rv || (is_same_text(uid, call->uid) && is_same_text(rv, call->rv)))
            return err->kind;
        return ml_err_set(err, ML_ECONFLICT, "%s; it has changed since, by this or by another hand",
                          call->lost->message);
    case ML_VERB_GET:
        break;
    }
    ML_UNREACHABLE();
}

static void writer_on_read_back(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_writer_call *call = context;
    struct ml_err verdict = *call->lost;
    call->sent = NULL;
    bool gone = err && err->kind == ML_ENOT_FOUND;
    if (gone && call->verb == ML_VERB_DELETE) {
        writer_accept_written(call, ML_STR(""));
    } else if (!err && writer_classify_lost_reply(call, body, &verdict) == 0) {
        writer_accept_written(call, body);
    } else {
        if (!err && verdict.kind == ML_ECONFLICT)
            writer_note_expectation(call, body);
        writer_finish(call, ML_STR(""), &verdict);
    }
}

/* The client itself returns Unavailable, without an HTTP status, when it did not send. */
static bool outcome_is_unknown(const struct ml_err *err)
{
    return err->kind == ML_ENETWORK || err->kind == ML_ETIMEOUT ||
           (err->kind == ML_EUNAVAILABLE && err->http > 0);
}

static void writer_read_back(struct ml_writer_call *call)
{
    const struct ml_client_request request = {
        .verb = ML_VERB_GET,
        .kind = call->kind,
        .ns = ml_str_of(call->ns),
        .name = ml_str_of(call->name),
        .budget = call->budget,
    };
    call->sent = ml_client_send(call->services->client, &request, writer_on_read_back, call);
}

static void writer_on_answer(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_writer_call *call = context;
    call->sent = NULL;
    if (!err) {
        writer_accept_written(call, body);
    } else if (outcome_is_unknown(err) && *call->name) {
        call->lost = ml_err_dup(err);
        writer_read_back(call);
    } else {
        writer_finish(call, body, err);
    }
}

static void writer_on_refused(void *context)
{
    struct ml_writer_call *call = context;
    writer_finish(call, ML_STR(""), call->refused);
}

/* Every deletion is traced. */
static void writer_keep_reason(struct ml_writer_call *call, const struct ml_write *write)
{
    ml_assert(write->deletion.why && write->deletion.revision && write->deletion.owner);
    call->why = ml_strdup(write->deletion.why);
    call->revision = ml_strdup(write->deletion.revision);
    call->owner_kind = write->deletion.owner_kind;
    call->owner = ml_object_ref(write->deletion.owner);
}

/* Keeps the preconditions of the write: from the body, or for a delete from its options. */
static void writer_keep_guards(struct ml_writer_call *call, const struct ml_write *write)
{
    const struct ml_client_request *request = &write->request;
    if (request->verb == ML_VERB_DELETE) {
        call->uid = ml_strdup(request->uid);
        call->rv = ml_strdup(request->resource_version);
        writer_keep_reason(call, write);
    } else if (request->verb != ML_VERB_CREATE) {
        call->uid = ml_json_find_string(request->body, "metadata", "uid", NULL);
        call->rv = ml_json_find_string(request->body, "metadata", "resourceVersion", NULL);
    }
}

struct ml_writer_call *ml_writer_send(struct ml_services *services, const struct ml_write *write,
                                      ml_client_done *done, void *context)
{
    const struct ml_client_request *request = &write->request;
    struct ml_err refused = ML_ERR_INIT;
    struct ml_writer_call *call = ml_new(struct ml_writer_call);
    call->services = services;
    call->kind = request->kind;
    call->verb = request->verb;
    call->ns = ml_str_dup(request->ns);
    call->name = ml_str_dup(request->name);
    call->key = ml_str_dup(write->key);
    call->owner_uid = ml_str_dup(write->owner_uid);
    call->place = ml_strdup(write->place);
    call->of_status = request->subresource.len > 0;
    call->expectations = write->expectations;
    call->informer = write->informer;
    call->budget = request->budget;
    call->done = done;
    call->context = context;
    writer_keep_guards(call, write);
    ml_task_init(&call->refusal, writer_on_refused, call);
    if (!write->check || write->check->lets(write->check->context, write, &refused)) {
        call->sent = ml_client_send(services->client, request, writer_on_answer, call);
    } else {
        call->refused = ml_err_dup(&refused);
        ml_task_defer(&call->refusal, services->loop);
    }
    return call;
}

void ml_writer_cancel(struct ml_writer_call *call)
{
    if (!call)
        return;
    if (call->sent)
        ml_client_cancel(call->sent);
    writer_call_free(call);
}
