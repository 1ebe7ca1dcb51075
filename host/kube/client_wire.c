/* Between the verbs of client.h and HTTP: what a request is on the wire, and which error an answer
 * stands for. Errors come from a Status object, or from whatever else an answer without success
 * has as its body: reason before code, as apimachinery's pkg/api/errors decides. client.c calls
 * it, and those that read ERROR events of a watch. */
#include "kube/client_internal.h"

#include "base/escape.h"
#include "codec/json.h"

#include <stdio.h>

#define TEXT_LEN_MAX 200 /* of an answer that is no Status */

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

static bool has_field_manager(enum ml_verb verb)
{
    return verb != ML_VERB_GET && verb != ML_VERB_DELETE;
}

static char *make_request_path(const struct ml_client_request *request)
{
    if (!request->kind)
        return ml_strdup(request->path);
    ML_AUTO(ml_buf_fini) struct ml_buf path = ML_BUF_INIT;
    struct ml_str name = request->verb == ML_VERB_CREATE && request->subresource.len == 0
                             ? ML_STR("") /* POST goes to the collection */
                             : request->name;
    ml_kind_path(request->kind, request->ns, name, request->subresource, &path);
    if (request->field_manager && has_field_manager(request->verb))
        ml_url_query(&path, "fieldManager", ml_str_of(request->field_manager));
    if (request->verb == ML_VERB_APPLY && request->force)
        ml_url_query(&path, "force", ML_STR("true"));
    if (request->dry_run)
        ml_url_query(&path, "dryRun", ML_STR("All"));
    return ml_buf_take(&path);
}

/* DeleteOptions. Background is the default for most kinds, but not for Jobs. */
static void make_delete_body(const struct ml_client_request *request, struct ml_buf *out)
{
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "kind", ML_STR("DeleteOptions"));
    ml_json_put_string(&writer, "apiVersion", ML_STR("v1"));
    ml_json_put_string(&writer, "propagationPolicy",
                       request->foreground ? ML_STR("Foreground") : ML_STR("Background"));
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
        .path = make_request_path(request),
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

static const struct {
    const char *reason;
    int kind;
} reasons[] = {
    {"Unauthorized", ML_EUNAUTHORIZED},
    {"Forbidden", ML_EFORBIDDEN},
    {"NotFound", ML_ENOT_FOUND},
    {"AlreadyExists", ML_EALREADY_EXISTS},
    {"Conflict", ML_ECONFLICT},
    {"Gone", ML_EGONE},
    {"Expired", ML_EGONE},
    {"Invalid", ML_EINVALID},
    {"BadRequest", ML_EINVALID},
    {"RequestEntityTooLarge", ML_EINVALID},
    {"Timeout", ML_ETIMEOUT},
    {"ServerTimeout", ML_ETIMEOUT},
    {"TooManyRequests", ML_ETOO_MANY},
    {"MethodNotAllowed", ML_EUNSUPPORTED},
    {"NotAcceptable", ML_EUNSUPPORTED},
    {"UnsupportedMediaType", ML_EUNSUPPORTED},
    {"InternalError", ML_ESERVER},
    {"StoreReadError", ML_ESERVER},
    {"ServiceUnavailable", ML_EUNAVAILABLE},
};

static const struct {
    int code;
    int kind;
    const char *text;
} codes[] = {
    {400, ML_EINVALID, "Bad Request"},
    {401, ML_EUNAUTHORIZED, "Unauthorized"},
    {403, ML_EFORBIDDEN, "Forbidden"},
    {404, ML_ENOT_FOUND, "Not Found"},
    {405, ML_EUNSUPPORTED, "Method Not Allowed"},
    {406, ML_EUNSUPPORTED, "Not Acceptable"},
    {407, ML_EFORBIDDEN, "Proxy Authentication Required"},
    {408, ML_ETIMEOUT, "Request Timeout"},
    {409, ML_ECONFLICT, "Conflict"},
    {410, ML_EGONE, "Gone"},
    {413, ML_EINVALID, "Request Entity Too Large"},
    {415, ML_EUNSUPPORTED, "Unsupported Media Type"},
    {422, ML_EINVALID, "Unprocessable Entity"},
    {429, ML_ETOO_MANY, "Too Many Requests"},
    {500, ML_ESERVER, "Internal Server Error"},
    {502, ML_EUNAVAILABLE, "Bad Gateway"},
    {503, ML_EUNAVAILABLE, "Service Unavailable"},
    {504, ML_ETIMEOUT, "Gateway Timeout"},
};

static int kind_of_code(int code)
{
    for (size_t i = 0; i < ML_COUNT(codes); i++)
        if (codes[i].code == code)
            return codes[i].kind;
    if (code >= 500)
        return ML_ESERVER;
    return code >= 400 ? ML_EINVALID : ML_EINTERNAL;
}

static const char *text_of_code(int code)
{
    for (size_t i = 0; i < ML_COUNT(codes); i++)
        if (codes[i].code == code)
            return codes[i].text;
    return "";
}

static int kind_of_reason(struct ml_str reason, int code)
{
    for (size_t i = 0; i < ML_COUNT(reasons); i++)
        if (ml_str_is(reason, reasons[i].reason))
            return reasons[i].kind;
    return kind_of_code(code);
}

/* Server-side apply answers a plain 500 when the object does not fit the schema
 * (apiserver endpoints/handlers/patch.go): trying again does not help. */
static bool is_schema_mismatch(int code, const char *message)
{
    return code == 500 && strstr(message, "typed patch object") != NULL;
}

/* A message for the middle of a sentence: without its full stop. */
static void clean_status_line(struct ml_str text, size_t len_max, char *out)
{
    text = ml_str_head(ml_str_trim(text), len_max);
    while (text.len > 0 && text.ptr[text.len - 1] == '.')
        text.len--;
    ml_clean_line(text, out, len_max + 1);
}

/* "HTTP 502 Bad Gateway", and as much of the body as helps a person. */
static int set_error_without_status(struct ml_err *err, struct ml_str body, int http)
{
    const char *text = text_of_code(http);
    int kind = kind_of_code(http);
    char line[TEXT_LEN_MAX + 1];
    clean_status_line(body, TEXT_LEN_MAX, line);
    const char *detail = line;
    if (*line == '<')
        detail = "an HTML page, so a proxy and not the API server answered";
    else if (*line == '{' || *line == '[')
        detail = "JSON, but no Status object";
    ml_err_set(err, kind, "HTTP %d%s%s%s%s", http, *text ? " " : "", text, *detail ? ": " : "",
               detail);
    err->http = http;
    return kind;
}

static bool status_has_cause(struct ml_str json, const char *reason)
{
    struct ml_str causes;
    if (!ml_json_find(json, &causes, "details", "causes", NULL))
        return false;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, causes, 0);
    bool found = false;
    bool in_reason = false;
    for (;;) {
        enum ml_json_token token = ml_json_next(&reader);
        if (token == ML_JSON_END || token == ML_JSON_ERROR)
            return found;
        found = found || (in_reason && token == ML_JSON_STRING && ml_str_is(reader.text, reason));
        in_reason = token == ML_JSON_KEY && ml_str_is(reader.text, "reason");
    }
}

static int64_t find_status_int(struct ml_str json, const char *first, const char *second)
{
    struct ml_str raw;
    int64_t value = -1;
    if (ml_json_find(json, &raw, first, second, NULL) && !ml_str_to_i64(raw, &value))
        return -1;
    return value;
}

static int64_t status_retry_after_ms(struct ml_str json)
{
    int64_t seconds = find_status_int(json, "details", "retryAfterSeconds");
    return seconds > 0 && seconds < INT32_MAX ? seconds * 1000 : -1;
}

int ml_status_error(struct ml_str json, int http, struct ml_err *err)
{
    ML_AUTO_FREE char *kind = ml_json_find_string(json, "kind", NULL);
    if (!kind || strcmp(kind, "Status") != 0)
        return set_error_without_status(err, json, http);
    ML_AUTO_FREE char *reason = ml_json_find_string(json, "reason", NULL);
    ML_AUTO_FREE char *message = ml_json_find_string(json, "message", NULL);
    int64_t stated = find_status_int(json, "code", NULL);
    int code = http >= 400 || stated < 100 || stated > 999 ? http : (int)stated;
    char line[ML_ERR_MESSAGE_MAX];
    clean_status_line(ml_str_of(message ? message : ""), sizeof line - 1, line);
    if (!*line)
        snprintf(line, sizeof line, "HTTP %d %s", code, reason ? reason : text_of_code(code));
    int result = kind_of_reason(ml_str_of(reason ? reason : ""), code);
    if (is_schema_mismatch(code, line))
        result = ML_EINVALID;
    bool rv_too_large = status_has_cause(json, "ResourceVersionTooLarge");
    ml_err_set(err, rv_too_large ? ML_ETIMEOUT : result, "%s", line);
    err->http = code;
    err->retry_after_ms = status_retry_after_ms(json);
    snprintf(err->reason, sizeof err->reason, "%s",
             rv_too_large ? "ResourceVersionTooLarge"
             : reason     ? reason
                          : "");
    return err->kind;
}
