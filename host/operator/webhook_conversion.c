/* Conversions: the objects of a review, one after the other, by the script's functions. Rules:
 * apiextensions-apiserver/pkg/apiserver/conversion. */
#include "operator/webhook_object.h"
#include "operator/webhook_review_internal.h"

static void end_unconverted(struct ml_review *self, const struct ml_err *err)
{
    self->failure = *err;
    review_begin_response(self);
    ml_json_key(&self->writer, ML_STR("convertedObjects"));
    ml_json_begin_array(&self->writer);
    ml_json_end_array(&self->writer);
    ml_json_key(&self->writer, ML_STR("result"));
    ml_json_begin_object(&self->writer);
    ml_json_put_string(&self->writer, "status", ML_STR("Failure"));
    ml_json_put_string(&self->writer, "message", ml_str_of(err->message));
    ml_json_end_object(&self->writer);
    review_end_response(self);
}

void review_begin_conversion(struct ml_review *self)
{
    struct ml_str objects = {NULL, 0};
    struct ml_err err = ML_ERR_INIT;
    self->wanted = ml_json_find_string(self->request, "desiredAPIVersion", NULL);
    if (!self->wanted || !ml_json_find(self->request, &objects, "objects", NULL) ||
        objects.ptr[0] != '[') {
        ml_err_set(&err, ML_EINVALID, "the request has no desiredAPIVersion, or no objects");
        review_end_bad_request(self, &err);
        return;
    }
    ml_json_reader_init(&self->objects, objects, 0);
    self->is_reading = true;
    ml_json_next(&self->objects);
    review_begin_response(self);
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
    return r < 0 ? r : ml_webhook_converted(what, object, ml_buf_str(&made), api_version, out, err);
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
    review_end_response(self);
}

static void name_object(struct ml_str object, struct ml_err *err)
{
    ML_AUTO_FREE char *ns = ml_json_find_string(object, "metadata", "namespace", NULL);
    ML_AUTO_FREE char *name = ml_json_find_string(object, "metadata", "name", NULL);
    ml_err_wrap(err, "%.*s%s%.*s", SHOWN_MAX, ns ? ns : "", ns ? "/" : "", SHOWN_MAX,
                name ? name : "an object without a name");
}

void review_step_conversion(struct ml_review *self)
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
