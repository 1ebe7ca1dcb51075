/* Blocking requests by libcurl. Called by the conformance runner, which asks thousands of them: a
 * process and a TLS handshake for each would cost more than the servers' work. */
#include "http.h"

#include <curl/curl.h>
#include <stdio.h>

#include "codec/json.h"

#define PATIENCE_S 60L

struct hostlua_http {
    CURL *easy; /* keeps the connection */
};

/* The state of one request until it is over. */
struct exchange {
    struct curl_slist *headers;
    struct ml_buf sent;
    FILE *head;
    FILE *body;
};

static void exchange_fini(struct exchange *exchange)
{
    curl_slist_free_all(exchange->headers);
    ml_buf_fini(&exchange->sent);
    if (exchange->head)
        fclose(exchange->head);
    if (exchange->body)
        fclose(exchange->body);
}

static int read_headers(struct exchange *exchange, struct ml_str json)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, json, 0);
    while (ml_json_next(&reader) > ML_JSON_ERROR) {
        if (reader.token != ML_JSON_STRING)
            continue;
        ML_AUTO_FREE char *line = ml_str_dup(reader.text);
        exchange->headers = curl_slist_append(exchange->headers, line);
        ml_assert(exchange->headers);
    }
    return reader.token == ML_JSON_END ? 0 : -1;
}

static FILE *open_named(struct ml_str argument, const char *name, const char *mode)
{
    ML_AUTO_FREE char *path = ml_json_find_string(argument, name, NULL);
    return path ? fopen(path, mode) : NULL;
}

static bool read_whole(FILE *file, struct ml_buf *out)
{
    char piece[4096];
    size_t len;
    while ((len = fread(piece, 1, sizeof piece, file)) > 0)
        ml_buf_append(out, piece, len);
    return !ferror(file);
}

static int apply_body(struct exchange *exchange, CURL *easy, struct ml_str argument,
                      struct ml_err *err)
{
    struct ml_str path;
    if (!ml_json_find(argument, &path, "sent", NULL))
        return 0;
    FILE *file = open_named(argument, "sent", "rb");
    bool good = file && read_whole(file, &exchange->sent);
    if (file)
        fclose(file);
    if (!good)
        return ml_err_set(err, ML_EINVALID, "the file `sent` cannot be read");
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)exchange->sent.len);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, exchange->sent.len ? exchange->sent.ptr : "");
    return 0;
}

static int apply(struct exchange *exchange, CURL *easy, struct ml_str argument, struct ml_err *err)
{
    ML_AUTO_FREE char *url = ml_json_find_string(argument, "url", NULL);
    ML_AUTO_FREE char *method = ml_json_find_string(argument, "method", NULL);
    ML_AUTO_FREE char *ca = ml_json_find_string(argument, "ca", NULL);
    struct ml_str headers;
    exchange->head = open_named(argument, "head", "wb");
    exchange->body = open_named(argument, "body", "wb");
    if (!url || !method || !ca || !exchange->head || !exchange->body ||
        !ml_json_find(argument, &headers, "headers", NULL) || read_headers(exchange, headers) < 0)
        return ml_err_set(err, ML_EINVALID, "http: url, method, ca, headers, head and body needed");
    curl_easy_reset(easy); /* the connection stays */
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_CAINFO, ca);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(easy, CURLOPT_NOBODY, (long)(strcmp(method, "HEAD") == 0));
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, exchange->headers);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, exchange->head);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange->body);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT, PATIENCE_S);
    return apply_body(exchange, easy, argument, err);
}

static int ask(void *context, struct ml_str argument, struct ml_buf *result, struct ml_err *err)
{
    struct hostlua_http *http = context;
    ML_AUTO(exchange_fini) struct exchange exchange = {.sent = ML_BUF_INIT};
    (void)result;
    int r = apply(&exchange, http->easy, argument, err);
    if (r < 0)
        return r;
    CURLcode code = curl_easy_perform(http->easy);
    return code == CURLE_OK ? 0 : ml_err_set(err, ML_ENETWORK, "%s", curl_easy_strerror(code));
}

struct hostlua_http *hostlua_http_new(struct ml_server_lua *lua)
{
    struct hostlua_http *http = ml_new(struct hostlua_http);
    http->easy = curl_easy_init();
    ml_assert(http->easy);
    ml_server_lua_define(lua, "hostlua", "http", ask, http);
    return http;
}

void hostlua_http_free(struct hostlua_http *http)
{
    curl_easy_cleanup(http->easy);
    free(http);
}
