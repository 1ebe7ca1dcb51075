/* Reviews, from their JSON to the script and back. Rules of admission:
 * apiserver/pkg/admission/plugin/webhook/request; of conversion:
 * apiextensions-apiserver/pkg/apiserver/conversion. */
#include "operator/webhook_review.h"

#include "codec/base64.h"
#include "codec/json.h"
#include "codec/json_diff.h"
#include "codec/json_members.h"

#define SHOWN_MAX       100 /* bytes of the review in a message */
#define VALUE_SHOWN_MAX 64  /* bytes of a value in a message */

#define HTTP_OK          200
#define HTTP_BAD_REQUEST 400
#define HTTP_FAILED      500

static const char *const names[] = {
    [ML_WEBHOOK_DEFAULT] = "default",
    [ML_WEBHOOK_VALIDATE] = "validate",
    [ML_WEBHOOK_CONVERT] = "convert",
};

/* The review that is expected. */
struct review_form {
    const char *api_version, *kind;
};

struct ml_review {
    enum ml_webhook webhook;
    struct ml_script *script;
    const struct ml_declaration *declaration;
    const struct review_form *form;
    struct ml_str request; /* raw, as all that follow */
    struct ml_str uid;     /* with its quotes */

    int status; /* 0: not over */
    struct ml_err failure;
    struct ml_buf answer;
    struct ml_json_writer writer;

    /* Of a conversion. */
    char *wanted; /* apiVersion */
    struct ml_json_reader objects;
    bool is_reading; /* `objects` is to be ended */
    struct ml_buf work[2];
};

static const struct review_form admission = {"admission.k8s.io/v1", "AdmissionReview"};
static const struct review_form conversion = {"apiextensions.k8s.io/v1", "ConversionReview"};

const char *ml_webhook_name(enum ml_webhook webhook)
{
    return names[webhook];
}

bool ml_webhook_parse(struct ml_str path, enum ml_webhook *out_webhook, struct ml_str *out_name)
{
    if (path.len == 0 || path.ptr[0] != '/')
        return false;
    struct ml_str name = {path.ptr + 1, path.len - 1};
    struct ml_str first = ml_str_cut(&name, '/');
    for (size_t i = 0; i < ML_COUNT(names); i++) {
        if (!ml_str_is(first, names[i]) || name.len == 0 || memchr(name.ptr, '/', name.len))
            continue;
        *out_webhook = (enum ml_webhook)i;
        *out_name = name;
        return true;
    }
    return false;
}

/* ---- answers ---- */

/* Ends with a text that says what is wrong. */
static void end_with_text(struct ml_review *self, int status, const char *text)
{
    self->status = status;
    ml_buf_clear(&self->answer);
    ml_buf_puts(&self->answer, text);
    ml_buf_putc(&self->answer, '\n');
}

/* The review cannot be read. */
static void end_bad_request(struct ml_review *self, const struct ml_err *err)
{
    end_with_text(self, HTTP_BAD_REQUEST, err->message);
}

static void end_failed(struct ml_review *self, const struct ml_err *err)
{
    self->failure = *err;
    end_with_text(self, HTTP_FAILED, err->message);
}

/* Opens the response, with its uid. */
static void begin_response(struct ml_review *self)
{
    ml_buf_clear(&self->answer);
    ml_json_writer_init(&self->writer, &self->answer);
    ml_json_begin_object(&self->writer);
    ml_json_put_string(&self->writer, "kind", ml_str_of(self->form->kind));
    ml_json_put_string(&self->writer, "apiVersion", ml_str_of(self->form->api_version));
    ml_json_key(&self->writer, ML_STR("response"));
    ml_json_begin_object(&self->writer);
    ml_json_put_raw(&self->writer, "uid", self->uid);
}

/* Closes the response: the answer is complete. */
static void end_response(struct ml_review *self)
{
    struct ml_err err = ML_ERR_INIT;
    ml_json_end_object(&self->writer);
    ml_json_end_object(&self->writer);
    self->status = HTTP_OK;
    if (!self->answer.failed)
        return;
    ml_err_set(&err, ML_ELIMIT, "the answer is larger than %zu MiB",
               ML_REVIEW_ANSWER_MAX / 1024 / 1024);
    end_failed(self, &err);
}

static void end_allowed(struct ml_review *self)
{
    begin_response(self);
    ml_json_put_bool(&self->writer, "allowed", true);
    end_response(self);
}

/* ---- the head of a review ---- */

static int check_form(const struct ml_review *self, struct ml_str body, struct ml_err *err)
{
    if (ml_json_check(body, 0, err) < 0)
        return ml_err_wrap(err, "the body is no JSON");
    ML_AUTO_FREE char *api_version = ml_json_find_string(body, "apiVersion", NULL);
    ML_AUTO_FREE char *kind = ml_json_find_string(body, "kind", NULL);
    const char *is_version = api_version ? api_version : "", *is_kind = kind ? kind : "";
    if (strcmp(is_version, self->form->api_version) == 0 && strcmp(is_kind, self->form->kind) == 0)
        return 0;
    return ml_err_set(
        err, ML_EINVALID, "expected %s of %s, got %.*s of %.*s; the configuration's %s is [\"v1\"]",
        self->form->kind, self->form->api_version, SHOWN_MAX, *is_kind ? is_kind : "nothing",
        SHOWN_MAX, *is_version ? is_version : "nothing",
        self->form == &admission ? "admissionReviewVersions" : "conversionReviewVersions");
}

static int read_head(struct ml_review *self, struct ml_str body, struct ml_err *err)
{
    int r = check_form(self, body, err);
    if (r < 0)
        return r;
    if (!ml_json_find(body, &self->request, "request", NULL) || self->request.ptr[0] != '{' ||
        !ml_json_find(self->request, &self->uid, "uid", NULL) || self->uid.ptr[0] != '"' ||
        self->uid.len <= strlen("\"\""))
        return ml_err_set(err, ML_EINVALID, "the review has no request with a uid");
    return 0;
}

/* ---- the object that a function returned: the same one, or another? ---- */

static const char *const identity[] = {"name", "generateName", "namespace", "uid"};

/* An object and its metadata. */
struct parts {
    struct ml_json_members object;
    struct ml_json_members metadata;
};

static void parts_fini(struct parts *parts)
{
    ml_json_members_fini(&parts->metadata);
    ml_json_members_fini(&parts->object);
}

/* Raw; empty when it is absent or null. */
static struct ml_str member_value(const struct ml_json_members *members, const char *name)
{
    const struct ml_json_member *member = ml_json_members_find(members, ml_str_of(name));
    return !member || ml_str_is(member->value, "null") ? ML_STR("") : member->value;
}

static int read_parts(struct parts *parts, const char *what, struct ml_str json, struct ml_err *err)
{
    if (!ml_json_members_read(&parts->object, json, 0, err))
        return ml_err_wrap(err, "%s", what);
    struct ml_str metadata = member_value(&parts->object, "metadata");
    if (metadata.len == 0 || !ml_json_members_read(&parts->metadata, metadata, 0, err))
        return ml_err_set(err, ML_ESCRIPT, "%s returned an object without metadata", what);
    return 0;
}

static int check_same(const char *what, const char *field, struct ml_str old, struct ml_str new,
                      struct ml_err *err)
{
    bool is_same = old.len == 0 || new.len == 0 ? old.len == new.len : ml_json_equal(old, new);
    if (is_same)
        return 0;
    old = old.len > 0 ? ml_str_head(old, VALUE_SHOWN_MAX) : ML_STR("nothing");
    new = new.len > 0 ? ml_str_head(new, VALUE_SHOWN_MAX) : ML_STR("nothing");
    return ml_err_set(err, ML_ESCRIPT,
                      "%s returned an object with another %s: " ML_STR_FMT
                      " instead of " ML_STR_FMT,
                      what, field, ML_STR_ARG(new), ML_STR_ARG(old));
}

static int check_identity(const char *what, const struct parts *old, const struct parts *new,
                          struct ml_err *err)
{
    int r = check_same(what, "kind", member_value(&old->object, "kind"),
                       member_value(&new->object, "kind"), err);
    for (size_t i = 0; i < ML_COUNT(identity) && r == 0; i++) {
        ML_AUTO_FREE char *field = ml_asprintf("metadata.%s", identity[i]);
        r = check_same(what, field, member_value(&old->metadata, identity[i]),
                       member_value(&new->metadata, identity[i]), err);
    }
    return r;
}

/* As Kubernetes writes it, which leaves out an empty map. */
static bool is_nothing(struct ml_str value)
{
    return ml_str_is(value, "null") || ml_str_is(value, "{}");
}

static bool is_free(struct ml_str name)
{
    return ml_str_is(name, "labels") || ml_str_is(name, "annotations");
}

/* Of an object that was defaulted: all that the function says, and what it cannot see. */
static void put_defaulted_metadata(struct ml_json_writer *writer, const struct parts *old,
                                   const struct parts *new)
{
    struct ml_str managed = member_value(&old->metadata, "managedFields");
    ml_json_begin_object(writer);
    for (size_t i = 0; i < new->metadata.len; i++) {
        const struct ml_json_member *member = &new->metadata.items[i];
        if (ml_str_is(member->key, "managedFields"))
            continue;
        ml_json_key(writer, member->key);
        ml_json_raw(writer, member->value);
    }
    if (managed.len > 0)
        ml_json_put_raw(writer, "managedFields", managed);
    ml_json_end_object(writer);
}

static void put_converted_metadata(struct ml_json_writer *writer, const struct parts *old,
                                   const struct parts *new)
{
    ml_json_begin_object(writer);
    for (size_t i = 0; i < old->metadata.len; i++) {
        const struct ml_json_member *member = &old->metadata.items[i];
        if (is_free(member->key))
            continue;
        ml_json_key(writer, member->key);
        ml_json_raw(writer, member->value);
    }
    for (size_t i = 0; i < new->metadata.len; i++) {
        const struct ml_json_member *member = &new->metadata.items[i];
        if (!is_free(member->key) || is_nothing(member->value))
            continue;
        ml_json_key(writer, member->key);
        ml_json_raw(writer, member->value);
    }
    ml_json_end_object(writer);
}

/* Writes `new` with this apiVersion (empty: its own) and the metadata that `put_metadata` makes. */
static void put_object(struct ml_json_writer *writer, const struct parts *old,
                       const struct parts *new, struct ml_str api_version,
                       void (*put_metadata)(struct ml_json_writer *writer, const struct parts *old,
                                            const struct parts *new))
{
    ml_json_begin_object(writer);
    if (api_version.len > 0)
        ml_json_put_string(writer, "apiVersion", api_version);
    for (size_t i = 0; i < new->object.len; i++) {
        const struct ml_json_member *member = &new->object.items[i];
        if (api_version.len > 0 && ml_str_is(member->key, "apiVersion"))
            continue;
        ml_json_key(writer, member->key);
        if (ml_str_is(member->key, "metadata"))
            put_metadata(writer, old, new);
        else
            ml_json_raw(writer, member->value);
    }
    ml_json_end_object(writer);
}

/* The JSON patch that turns `original` into what `default` made of it, appended to `patch`; "[]"
 * when nothing changed. `what` names the function in messages: "cnat.lua: default". ML_ESCRIPT: it
 * is another object. */
static int make_default_patch(const char *what, struct ml_str original, struct ml_str changed,
                              struct ml_buf *patch, struct ml_err *err)
{
    ML_AUTO(parts_fini) struct parts old = {{0}, {0}}, new = {{0}, {0}};
    ML_AUTO(ml_buf_fini) struct ml_buf whole = ML_BUF_INIT;
    struct ml_json_writer writer;
    if (read_parts(&old, what, original, err) < 0 || read_parts(&new, what, changed, err) < 0 ||
        check_identity(what, &old, &new, err) < 0 ||
        check_same(what, "apiVersion", member_value(&old.object, "apiVersion"),
                   member_value(&new.object, "apiVersion"), err) < 0)
        return err->kind;
    ml_json_writer_init(&writer, &whole);
    put_object(&writer, &old, &new, ML_STR(""), put_defaulted_metadata);
    return ml_json_patch_diff(original, ml_buf_str(&whole), patch, err);
}

/* The converted object with the apiVersion that was asked for, appended to `out`. Of its metadata
 * labels and annotations are those of `converted`, as kube-apiserver has it
 * (apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go), and the rest is the
 * original's. ML_ESCRIPT: it is another object. */
static int make_converted(const char *what, struct ml_str original, struct ml_str converted,
                          struct ml_str api_version, struct ml_buf *out, struct ml_err *err)
{
    ML_AUTO(parts_fini) struct parts old = {{0}, {0}}, new = {{0}, {0}};
    struct ml_json_writer writer;
    if (read_parts(&old, what, original, err) < 0 || read_parts(&new, what, converted, err) < 0 ||
        check_identity(what, &old, &new, err) < 0)
        return err->kind;
    ml_json_writer_init(&writer, out);
    put_object(&writer, &old, &new, api_version, put_converted_metadata);
    return out->failed ? ml_err_set(err, ML_ELIMIT, "%s: the answer is too large", what) : 0;
}

/* ---- admission ---- */

/* A field of the request as text; "" when there is none. To free. */
static char *request_text(const struct ml_review *self, const char *field, const char *below)
{
    char *text = below ? ml_json_find_string(self->request, field, below, NULL)
                       : ml_json_find_string(self->request, field, NULL);
    return text ? text : ml_strdup("");
}

/* Is it a request that these functions decide about? They are not asked about what is to be
 * deleted, or is on its way there: nothing may keep it from going. */
static bool is_asked(const struct ml_review *self, struct ml_str object)
{
    const struct ml_script_webhooks *has = &self->declaration->webhooks;
    ML_AUTO_FREE char *operation = request_text(self, "operation", NULL);
    ML_AUTO_FREE char *subresource = request_text(self, "subResource", NULL);
    ML_AUTO_FREE char *deleted = ml_json_find_string(object, "metadata", "deletionTimestamp", NULL);
    bool has_function = self->webhook == ML_WEBHOOK_DEFAULT ? has->defaults : has->validates;
    bool is_write = strcmp(operation, "CREATE") == 0 || strcmp(operation, "UPDATE") == 0;
    return has_function && is_write && !*subresource && !deleted;
}

/* Of the kind and version that the script reconciles? */
static int check_kind(const struct ml_review *self, struct ml_str object, struct ml_err *err)
{
    const struct ml_gvk *gvk = &self->declaration->kinds[0].gvk;
    ML_AUTO_FREE char *api_version = ml_json_find_string(object, "apiVersion", NULL);
    ML_AUTO_FREE char *kind = ml_json_find_string(object, "kind", NULL);
    struct ml_gvk is;
    if (api_version && kind && ml_gvk_parse(ml_str_of(api_version), ml_str_of(kind), &is) &&
        ml_str_eq(is.group, gvk->group) && ml_str_eq(is.version, gvk->version) &&
        ml_str_eq(is.kind, gvk->kind))
        return 0;
    return ml_err_set(err, ML_EINVALID,
                      "the review is about %.*s of %.*s; controller %s reconciles " ML_STR_FMT
                      " of " ML_STR_FMT "%s" ML_STR_FMT ": look at the rules of the configuration",
                      SHOWN_MAX, kind ? kind : "nothing", SHOWN_MAX,
                      api_version ? api_version : "nothing", self->declaration->name,
                      ML_STR_ARG(gvk->kind), ML_STR_ARG(gvk->group), gvk->group.len > 0 ? "/" : "",
                      ML_STR_ARG(gvk->version));
}

static int call_default(struct ml_review *self, const struct ml_webhook_object *about,
                        struct ml_str object, struct ml_err *err)
{
    ML_AUTO_FREE char *what = ml_asprintf("%s: default", self->declaration->file);
    ML_AUTO(ml_buf_fini) struct ml_buf patch = ML_BUF_INIT;
    int r = ml_script_default(self->script, about, object, &self->work[0], err);
    if (r == 0)
        r = make_default_patch(what, object, ml_buf_str(&self->work[0]), &patch, err);
    if (r < 0)
        return r;
    begin_response(self);
    ml_json_put_bool(&self->writer, "allowed", true);
    if (patch.len > strlen("[]")) {
        ML_AUTO(ml_buf_fini) struct ml_buf encoded = ML_BUF_INIT;
        ml_base64_encode(ml_buf_str(&patch), &encoded);
        ml_json_put_string(&self->writer, "patchType", ML_STR("JSONPatch"));
        ml_json_put_string(&self->writer, "patch", ml_buf_str(&encoded));
    }
    end_response(self);
    return 0;
}

static int call_validate(struct ml_review *self, const struct ml_webhook_object *about,
                         struct ml_str object, struct ml_err *err)
{
    struct ml_str old = {NULL, 0}, value;
    if (!ml_json_find(self->request, &old, "oldObject", NULL) || old.ptr[0] != '{')
        old.len = 0;
    int r = ml_script_validate(self->script, about, object, old, &self->work[0], err);
    if (r < 0)
        return r;
    struct ml_str said = ml_buf_str(&self->work[0]);
    bool allowed = ml_json_find(said, &value, "allowed", NULL) && ml_str_is(value, "true");
    begin_response(self);
    ml_json_put_bool(&self->writer, "allowed", allowed);
    if (ml_json_find(said, &value, "status", NULL))
        ml_json_put_raw(&self->writer, "status", value);
    if (ml_json_find(said, &value, "warnings", NULL))
        ml_json_put_raw(&self->writer, "warnings", value);
    end_response(self);
    return 0;
}

static void step_admission(struct ml_review *self)
{
    struct ml_str object = {NULL, 0};
    struct ml_err err = ML_ERR_INIT;
    if (!ml_json_find(self->request, &object, "object", NULL) || object.ptr[0] != '{')
        object = ML_STR("{}");
    if (!is_asked(self, object)) {
        end_allowed(self);
        return;
    }
    if (check_kind(self, object, &err) < 0) {
        end_bad_request(self, &err);
        return;
    }
    ML_AUTO_FREE char *ns = request_text(self, "namespace", NULL);
    ML_AUTO_FREE char *name = request_text(self, "name", NULL);
    ML_AUTO_FREE char *uid = ml_json_find_string(object, "metadata", "uid", NULL);
    ML_AUTO_FREE char *key = ml_asprintf("%s%s%s", ns, *ns ? "/" : "", name);
    const struct ml_webhook_object about = {ml_str_of(ns), ml_str_of(key), ml_str_of(uid)};
    int r = self->webhook == ML_WEBHOOK_DEFAULT ? call_default(self, &about, object, &err)
                                                : call_validate(self, &about, object, &err);
    if (r < 0)
        end_failed(self, &err);
}

/* ---- life ---- */

/* ---- conversion ---- */

static void end_unconverted(struct ml_review *self, const struct ml_err *err)
{
    self->failure = *err;
    begin_response(self);
    ml_json_key(&self->writer, ML_STR("convertedObjects"));
    ml_json_begin_array(&self->writer);
    ml_json_end_array(&self->writer);
    ml_json_key(&self->writer, ML_STR("result"));
    ml_json_begin_object(&self->writer);
    ml_json_put_string(&self->writer, "status", ML_STR("Failure"));
    ml_json_put_string(&self->writer, "message", ml_str_of(err->message));
    ml_json_end_object(&self->writer);
    end_response(self);
}

static void begin_conversion(struct ml_review *self)
{
    struct ml_str objects = {NULL, 0};
    struct ml_err err = ML_ERR_INIT;
    self->wanted = ml_json_find_string(self->request, "desiredAPIVersion", NULL);
    if (!self->wanted || !ml_json_find(self->request, &objects, "objects", NULL) ||
        objects.ptr[0] != '[') {
        ml_err_set(&err, ML_EINVALID, "the request has no desiredAPIVersion, or no objects");
        end_bad_request(self, &err);
        return;
    }
    ml_json_reader_init(&self->objects, objects, 0);
    self->is_reading = true;
    ml_json_next(&self->objects);
    begin_response(self);
    ml_json_key(&self->writer, ML_STR("convertedObjects"));
    ml_json_begin_array(&self->writer);
}

/* Where the version of this apiVersion stands in webhooks.versions; version_count: it is the one
 * that is reconciled. */
static int find_version(const struct ml_review *self, const char *api_version, size_t *out,
                        struct ml_err *err)
{
    const struct ml_script_webhooks *has = &self->declaration->webhooks;
    const struct ml_gvk *hub = &self->declaration->kinds[0].gvk;
    struct ml_gvk gvk;
    bool is_ours = ml_gvk_parse(ml_str_of(api_version), hub->kind, &gvk) &&
                   ml_str_eq(gvk.group, hub->group);
    *out = has->version_count;
    if (is_ours && ml_str_eq(gvk.version, hub->version))
        return 0;
    for (*out = 0; is_ours && *out < has->version_count; ++*out)
        if (ml_str_is(gvk.version, has->versions[*out]))
            return 0;
    return ml_err_set(err, ML_EINVALID, "%s: convert has no functions for %.*s",
                      self->declaration->file, SHOWN_MAX, api_version);
}

/* Calls one function. `from` and `out` are different buffers. */
static int convert_once(struct ml_review *self, size_t version, bool to, struct ml_str object,
                        struct ml_str api_version, struct ml_buf *out, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf made = ML_BUF_INIT;
    ML_AUTO_FREE char *what = ml_asprintf("%s: convert.%s.%s", self->declaration->file,
                                          self->declaration->webhooks.versions[version],
                                          to ? "to" : "from");
    ml_buf_clear(out);
    int r = ml_script_convert(self->script, version, to, object, &made, err);
    return r < 0 ? r : make_converted(what, object, ml_buf_str(&made), api_version, out, err);
}

/* By way of the version that is reconciled, unless one of the two is that one. */
static int convert_object(struct ml_review *self, struct ml_str object, struct ml_str *out,
                          struct ml_err *err)
{
    const struct ml_gvk *gvk = &self->declaration->kinds[0].gvk;
    const size_t hub = self->declaration->webhooks.version_count;
    ML_AUTO_FREE char *is = ml_json_find_string(object, "apiVersion", NULL);
    ML_AUTO_FREE char *hub_version = ml_asprintf(ML_STR_FMT "%s" ML_STR_FMT, ML_STR_ARG(gvk->group),
                                                 gvk->group.len > 0 ? "/" : "",
                                                 ML_STR_ARG(gvk->version));
    size_t from, to;
    int r = find_version(self, is ? is : "", &from, err);
    if (r == 0)
        r = find_version(self, self->wanted, &to, err);
    *out = object;
    if (r < 0 || from == to)
        return r;
    if (from != hub) {
        r = convert_once(self, from, true, *out, ml_str_of(hub_version), &self->work[0], err);
        *out = ml_buf_str(&self->work[0]);
    }
    if (r == 0 && to != hub) {
        r = convert_once(self, to, false, *out, ml_str_of(self->wanted), &self->work[1], err);
        *out = ml_buf_str(&self->work[1]);
    }
    return r;
}

static void end_conversion(struct ml_review *self)
{
    ml_json_end_array(&self->writer);
    ml_json_key(&self->writer, ML_STR("result"));
    ml_json_begin_object(&self->writer);
    ml_json_put_string(&self->writer, "status", ML_STR("Success"));
    ml_json_end_object(&self->writer);
    end_response(self);
}

static void name_object(struct ml_str object, struct ml_err *err)
{
    ML_AUTO_FREE char *ns = ml_json_find_string(object, "metadata", "namespace", NULL);
    ML_AUTO_FREE char *name = ml_json_find_string(object, "metadata", "name", NULL);
    ml_err_wrap(err, "%.*s%s%.*s", SHOWN_MAX, ns ? ns : "", ns ? "/" : "", SHOWN_MAX,
                name ? name : "an object without a name");
}

/* Converts the next object, or ends the answer. */
static void step_conversion(struct ml_review *self)
{
    struct ml_err err = ML_ERR_INIT;
    struct ml_str object = ml_json_skip(&self->objects), converted;
    if (object.len == 0) {
        end_conversion(self);
        return;
    }
    if (object.ptr[0] != '{')
        ml_err_set(&err, ML_EINVALID, "the request has an entry in objects that is no object");
    else if (convert_object(self, object, &converted, &err) < 0)
        name_object(object, &err);
    if (err.kind)
        end_unconverted(self, &err);
    else
        ml_json_raw(&self->writer, converted);
}

/* ---- one review ---- */

struct ml_review *ml_review_new(enum ml_webhook webhook, struct ml_script *script,
                                struct ml_str body)
{
    struct ml_review *self = ml_new(struct ml_review);
    struct ml_err err = ML_ERR_INIT;
    self->webhook = webhook;
    self->script = ml_script_ref(script);
    self->declaration = ml_script_declaration(script);
    self->form = webhook == ML_WEBHOOK_CONVERT ? &conversion : &admission;
    self->failure = ML_ERR_INIT;
    ml_buf_init(&self->answer, ML_REVIEW_ANSWER_MAX);
    if (read_head(self, body, &err) < 0)
        end_bad_request(self, &err);
    else if (webhook == ML_WEBHOOK_CONVERT)
        begin_conversion(self);
    return self;
}

void ml_review_free(struct ml_review *self)
{
    if (!self)
        return;
    if (self->is_reading)
        ml_json_reader_fini(&self->objects);
    for (size_t i = 0; i < ML_COUNT(self->work); i++)
        ml_buf_fini(&self->work[i]);
    ml_buf_fini(&self->answer);
    free(self->wanted);
    ml_script_unref(self->script);
    free(self);
}

bool ml_review_step(struct ml_review *self, struct ml_review_answer *out)
{
    if (!self->status && self->webhook == ML_WEBHOOK_CONVERT)
        step_conversion(self);
    else if (!self->status)
        step_admission(self);
    if (!self->status)
        return false;
    *out = (struct ml_review_answer){
        .status = self->status,
        .content_type = self->status == HTTP_OK ? "application/json" : "text/plain; charset=utf-8",
        .body = ml_buf_str(&self->answer),
        .failure = self->failure.kind ? &self->failure : NULL,
    };
    return true;
}
