#include "kube/client_internal.h"

#include "codec/json.h"

static const struct {
    const char *method;
    const char *content_type;
} verbs[] = {
    [ML_VERB_GET] = {"GET", NULL},
    [ML_VERB_CREATE] = {"POST", "application/json"},
    [ML_VERB_UPDATE] = {"PUT", "application/json"},
    [ML_VERB_PATCH_MERGE] = {"PATCH", "application/merge-patch+json"},
    [ML_VERB_APPLY] = {"PATCH", "application/apply-patch+yaml"},
    [ML_VERB_DELETE] = {"DELETE", "application/json"},
};

static bool takes_manager(enum ml_verb verb)
{
    return verb != ML_VERB_GET && verb != ML_VERB_DELETE;
}

static char *make_path(const struct ml_client_request *request)
{
    if (!request->kind)
        return ml_strdup(request->path);
    ML_AUTO(ml_buf_fini) struct ml_buf path = ML_BUF_INIT;
    struct ml_str name = request->verb == ML_VERB_CREATE && request->subresource.len == 0
                             ? ML_STR("") /* POST goes to the collection */
                             : request->name;
    ml_kind_path(request->kind, request->ns, name, request->subresource, &path);
    if (request->field_manager && takes_manager(request->verb))
        ml_url_query(&path, "fieldManager", ml_str_of(request->field_manager));
    if (request->verb == ML_VERB_APPLY && request->force)
        ml_url_query(&path, "force", ML_STR("true"));
    return ml_buf_take(&path);
}

/* DeleteOptions. Background says what is the default for most kinds, and for Jobs is not. */
static void make_delete_body(const struct ml_client_request *request, struct ml_buf *out)
{
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "kind", ML_STR("DeleteOptions"));
    ml_json_put_string(&writer, "apiVersion", ML_STR("v1"));
    ml_json_put_string(&writer, "propagationPolicy", ML_STR("Background"));
    if (request->uid || request->resource_version) {
        ml_json_key(&writer, ML_STR("preconditions"));
        ml_json_begin_object(&writer);
        if (request->uid)
            ml_json_put_string(&writer, "uid", ml_str_of(request->uid));
        if (request->resource_version)
            ml_json_put_string(&writer, "resourceVersion", ml_str_of(request->resource_version));
        ml_json_end_object(&writer);
    }
    ml_json_end_object(&writer);
}

void ml_client_wire_make(const struct ml_client_request *request, struct ml_client_wire *out)
{
    ml_assert(!request->kind != !request->path);
    ml_assert(request->kind || request->verb == ML_VERB_GET);
    ml_assert(request->verb != ML_VERB_APPLY || request->field_manager);
    /* Without a name a DELETE would empty the collection. */
    ml_assert(request->verb == ML_VERB_GET || request->verb == ML_VERB_CREATE ||
              request->name.len > 0);
    *out = (struct ml_client_wire){
        .method = verbs[request->verb].method,
        .content_type = verbs[request->verb].content_type,
        .path = make_path(request),
        .accept = ml_strdup(request->accept),
    };
    if (request->verb == ML_VERB_DELETE)
        make_delete_body(request, &out->body);
    else if (request->verb != ML_VERB_GET)
        ml_buf_append_str(&out->body, request->body);
}

void ml_client_wire_fini(struct ml_client_wire *wire)
{
    free(wire->path);
    free(wire->accept);
    ml_buf_fini(&wire->body);
}
