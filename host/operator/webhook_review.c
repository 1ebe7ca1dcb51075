/* Reviews, from their JSON to the script and back: what all have in common, and admission.
 * Conversions are in webhook_conversion.c. Called by webhook_server.c in turns of the loop, by
 * cluster/local_webhooks.c at once. Rules: apiserver/pkg/admission/plugin/webhook/request. */
#include "codec/base64.h"
#include "operator/webhook_object.h"
#include "operator/webhook_review_internal.h"

#define HTTP_OK          200
#define HTTP_BAD_REQUEST 400
#define HTTP_FAILED      500

static const char *const names[] = {
    [ML_WEBHOOK_DEFAULT] = "default",
    [ML_WEBHOOK_VALIDATE] = "validate",
    [ML_WEBHOOK_CONVERT] = "convert",
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

void review_end_bad_request(struct ml_review *self, const struct ml_err *err)
{
    end_with_text(self, HTTP_BAD_REQUEST, err->message);
}

static void end_failed(struct ml_review *self, const struct ml_err *err)
{
    self->failure = *err;
    end_with_text(self, HTTP_FAILED, err->message);
}

void review_begin_response(struct ml_review *self)
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

void review_end_response(struct ml_review *self)
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
    review_begin_response(self);
    ml_json_put_bool(&self->writer, "allowed", true);
    review_end_response(self);
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
        r = ml_webhook_defaulted(what, object, ml_buf_str(&self->work[0]), &patch, err);
    if (r < 0)
        return r;
    review_begin_response(self);
    ml_json_put_bool(&self->writer, "allowed", true);
    if (patch.len > strlen("[]")) {
        ML_AUTO(ml_buf_fini) struct ml_buf encoded = ML_BUF_INIT;
        ml_base64_encode(ml_buf_str(&patch), &encoded);
        ml_json_put_string(&self->writer, "patchType", ML_STR("JSONPatch"));
        ml_json_put_string(&self->writer, "patch", ml_buf_str(&encoded));
    }
    review_end_response(self);
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
    review_begin_response(self);
    ml_json_put_bool(&self->writer, "allowed", allowed);
    if (ml_json_find(said, &value, "status", NULL))
        ml_json_put_raw(&self->writer, "status", value);
    if (ml_json_find(said, &value, "warnings", NULL))
        ml_json_put_raw(&self->writer, "warnings", value);
    review_end_response(self);
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
        review_end_bad_request(self, &err);
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
        review_end_bad_request(self, &err);
    else if (webhook == ML_WEBHOOK_CONVERT)
        review_begin_conversion(self);
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
        review_step_conversion(self);
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
