/* The HTTP client: the head of an answer; libcurl's options for a request, and errors for its
 * result codes; pools of its connections; and calls, from ml_http_send over the head and the pieces
 * to done(). libcurl's handles may only be added and removed while libcurl is not on the stack, so
 * both happen in a task. */
#include "net/http_client.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/wipe.h"
#include "net/http_proxy.h"
#include "net/tcp.h"

/* ---- the head of an answer ---- */

void ml_http_head_init(struct ml_http_head_parser *parser)
{
    *parser = (struct ml_http_head_parser){.head.retry_after_ms = -1};
}

void ml_http_head_fini(struct ml_http_head_parser *parser)
{
    free(parser->content_type);
    free(parser->warning);
    free((char *)parser->length.ptr);
    ml_http_head_init(parser);
}

/* "HTTP/1.1 200 OK", "HTTP/2 200". */
static int parse_status_line(struct ml_str line)
{
    int64_t status = 0;
    (void)ml_str_cut(&line, ' ');
    if (!ml_str_to_i64(ml_str_cut(&line, ' '), &status) || status > 999)
        return 0;
    return (int)status;
}

/* client-go reads seconds only; the date form counts as absent there and so it does here. */
static int64_t parse_retry_after(struct ml_str value)
{
    uint64_t seconds = 0;
    if (!ml_str_to_u64(value, &seconds))
        return -1;
    return (int64_t)ML_MIN(seconds, (uint64_t)INT64_MAX / 1000) * 1000;
}

/* libcurl reads the three forms of RFC 9110, 5.6.7, and some more; 0 for others. */
static int64_t parse_date(struct ml_str value)
{
    ML_AUTO_FREE char *text = ml_str_dup(value);
    time_t seconds = curl_getdate(text, NULL);
    return seconds > 0 ? (int64_t)seconds : 0;
}

/* The text in `299 agent "text"`, without the escapes of its quoted form; NULL when it is no
 * such warning. The caller frees it. */
static char *parse_warning(struct ml_str value)
{
    if (!ml_str_is(ml_str_cut(&value, ' '), "299"))
        return NULL;
    (void)ml_str_cut(&value, ' '); /* the agent; API servers write "-" */
    if (value.len == 0 || value.ptr[0] != '"')
        return NULL;
    char *text = ml_alloc(value.len);
    size_t len = 0;
    for (size_t i = 1; i < value.len && value.ptr[i] != '"'; i++) {
        if (value.ptr[i] == '\\' && i + 1 < value.len)
            i++;
        text[len++] = value.ptr[i];
    }
    text[len] = '\0';
    return text;
}

/* RFC 9112, 6.3: a body with two different lengths, or with one that is no number, has none. The
 * same number may stand there more than once. */
static void head_accept_length(struct ml_http_head_parser *parser, struct ml_str value)
{
    uint64_t number = 0;
    for (struct ml_str rest = value; rest.ptr && !parser->bad;) {
        struct ml_str each = ml_str_trim(ml_str_cut(&rest, ','));
        if (!ml_str_to_u64(each, &number))
            parser->bad = "its Content-Length is not a number";
        else if (!parser->length.ptr)
            parser->length = (struct ml_str){ml_str_dup(each), each.len};
        else if (!ml_str_eq(parser->length, each))
            parser->bad = "it has two different values of Content-Length";
    }
}

static bool field_name_is(struct ml_str name, const char *want)
{
    return name.len == strlen(want) && strncasecmp(name.ptr, want, name.len) == 0;
}

static void head_accept_field(struct ml_http_head_parser *parser, struct ml_str name,
                              struct ml_str value)
{
    struct ml_http_head *head = &parser->head;
    if (field_name_is(name, "Retry-After")) {
        head->retry_after_ms = parse_retry_after(value);
    } else if (field_name_is(name, "Date")) {
        head->date_s = parse_date(value);
    } else if (field_name_is(name, "Content-Type")) {
        free(parser->content_type);
        parser->content_type = ml_str_dup(value);
        head->content_type = ml_str_of(parser->content_type);
    } else if (field_name_is(name, "Warning") && !parser->warning) {
        parser->warning = parse_warning(value);
        head->warning = ml_str_of(parser->warning);
    } else if (field_name_is(name, "Content-Length")) {
        head_accept_length(parser, value);
    }
}

static bool head_end(struct ml_http_head_parser *parser)
{
    int status = parser->head.status;
    if (status == 101)
        parser->bad = "status 101 switches to a protocol that was not asked for";
    else if (status < 100)
        parser->bad = "it has no HTTP status";
    parser->complete = status >= 200 || status == 101 || status < 100;
    return parser->complete;
}

bool ml_http_head_line(struct ml_http_head_parser *parser, struct ml_str line)
{
    if (parser->complete)
        return false;
    line = ml_str_trim(line);
    if (line.len == 0)
        return head_end(parser);
    if (ml_str_starts(line, "HTTP/")) {
        ml_http_head_fini(parser);
        parser->head.status = parse_status_line(line);
        return false;
    }
    struct ml_str value = line;
    struct ml_str name = ml_str_cut(&value, ':');
    head_accept_field(parser, ml_str_trim(name), ml_str_trim(value));
    return false;
}

/* ---- options: method, headers, body, TLS, proxy, and those of all our requests ---- */

/* libcurl allocates both per transfer; its defaults of 16 and 64 KiB suit big files. All transfers
 * have the same sizes: where two with different receive buffers share a connection of HTTP/2,
 * libcurl 7.88 writes past the smaller one. */
#define RECEIVE_BUFFER (16 * 1024L)
#define SEND_BUFFER    (16 * 1024L)
/* How long an unused connection may wait for its next request. */
#define CONNECTION_IDLE_S 90L

/* Data that the handle points at; freed after the handle. */
struct options {
    struct curl_slist *headers;
    struct curl_slist *connect_to;
    char *body;
    char *proxy; /* URL, or NULL: none */
};

/* Through which proxy the last origin was reached: nearly all requests of a pool go to one server,
 * and what the environment says about it is looked up once. */
struct route {
    char *origin; /* the URL up to its path; NULL: none yet */
    char *proxy;  /* URL, or NULL: none */
};

static void apply_common(CURL *easy)
{
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, RECEIVE_BUFFER);
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, SEND_BUFFER);
    curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, CONNECTION_IDLE_S);
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    /* Without it, giving up a request joins the thread that still resolves its host name. */
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
}

static void set_blob(CURL *easy, CURLoption option, struct ml_str pem)
{
    struct curl_blob blob = {.data = (char *)pem.ptr, .len = pem.len, .flags = CURL_BLOB_NOCOPY};
    if (pem.len)
        curl_easy_setopt(easy, option, &blob);
}

static void apply_tls(CURL *easy, const struct ml_http_tls *tls)
{
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (tls->ca_pem.len) {
        /* The blob replaces libcurl's CA file, but would be added to its folder. */
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
        set_blob(easy, CURLOPT_CAINFO_BLOB, tls->ca_pem);
    } else if (tls->ca_file) {
        /* Of a file alone libcurl keeps what it parsed, for all connections: a megabyte. */
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
        curl_easy_setopt(easy, CURLOPT_CAINFO, tls->ca_file);
    }
    set_blob(easy, CURLOPT_SSLCERT_BLOB, tls->cert_pem);
    set_blob(easy, CURLOPT_SSLKEY_BLOB, tls->key_pem);
    /* For a key that is encrypted: otherwise OpenSSL asks the terminal, and waits. */
    curl_easy_setopt(easy, CURLOPT_KEYPASSWD, "");
    if (tls->insecure) {
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
}

static int set_url(CURL *easy, const char *url, struct ml_err *err)
{
    CURLcode code = curl_easy_setopt(easy, CURLOPT_URL, url);
    bool https = strncasecmp(url, "https:", 6) == 0;
    if (code != CURLE_OK)
        return ml_err_set(err, ML_EINVALID, "URL %s: %s", url, curl_easy_strerror(code));
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION,
                     https ? (long)CURL_HTTP_VERSION_2TLS : (long)CURL_HTTP_VERSION_1_1);
    /* A burst of requests waits for the first connection to say whether it multiplexes,
     * instead of opening one connection each. */
    curl_easy_setopt(easy, CURLOPT_PIPEWAIT, https ? 1L : 0L);
    return 0;
}

static void slist_append(struct curl_slist **list, const char *text)
{
    struct curl_slist *longer = curl_slist_append(*list, text);
    ml_assert(longer != NULL);
    *list = longer;
}

/* Names the server `name` towards TLS while connecting, and speaking HTTP, to where the URL
 * points: what client-go does for tls-server-name. */
static void rename_server(struct options *options, CURLU *url, const char *name)
{
    char *host = NULL, *port = NULL;
    if (curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
        curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK) {
        ML_AUTO_FREE char *route = ml_asprintf("::%s:%s", host, port);
        ML_AUTO_FREE char *field = ml_asprintf("Host: %s:%s", host, port);
        slist_append(&options->connect_to, route);
        slist_append(&options->headers, field);
        curl_url_set(url, CURLUPART_HOST, name, 0);
    }
    curl_free(host);
    curl_free(port);
}

/* The kubeconfig's, or else the environment's. */
static char *proxy_for(CURLU *url, bool https, const char *proxy_url)
{
    char *host = NULL, *port = NULL, *proxy = NULL;
    if (proxy_url)
        proxy = proxy_url[0] ? ml_strdup(proxy_url) : NULL;
    else if (curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
             curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK)
        proxy = ml_http_proxy_from_env(https, host, port);
    curl_free(host);
    curl_free(port);
    return proxy;
}

/* Go trusts a proxy by the same authority as the server. */
static void apply_proxy_tls(CURL *easy, const struct ml_http_tls *tls)
{
    curl_easy_setopt(easy, CURLOPT_PROXY_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (tls->ca_pem.len) {
        curl_easy_setopt(easy, CURLOPT_PROXY_CAPATH, NULL);
        set_blob(easy, CURLOPT_PROXY_CAINFO_BLOB, tls->ca_pem);
    }
    if (tls->insecure) {
        curl_easy_setopt(easy, CURLOPT_PROXY_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(easy, CURLOPT_PROXY_SSL_VERIFYHOST, 0L);
    }
}

/* Go's socks5 leaves names to the proxy, and its http is at port 80, where libcurl's is at 1080;
 * an empty proxy keeps libcurl from asking the environment itself. */
static void apply_proxy(CURL *easy, const char *proxy, const struct ml_http_tls *tls)
{
    ML_AUTO_WIPE char *socks = NULL;
    if (proxy && strncasecmp(proxy, "socks5://", 9) == 0)
        socks = ml_asprintf("socks5h://%s", proxy + 9);
    if (proxy && strncasecmp(proxy, "http://", 7) == 0)
        curl_easy_setopt(easy, CURLOPT_PROXYPORT, 80L); /* for a URL without one */
    curl_easy_setopt(easy, CURLOPT_PROXY, socks ? socks : proxy ? proxy : "");
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "");
    apply_proxy_tls(easy, tls);
}

static struct ml_str origin_of(const char *url)
{
    const char *scheme_end = strstr(url, "://");
    const char *host = scheme_end ? scheme_end + 3 : url;
    return (struct ml_str){url, (size_t)(host - url) + strcspn(host, "/?#")};
}

static bool route_leads_to(const struct route *route, const char *url)
{
    return route->origin && ml_str_is(origin_of(url), route->origin);
}

static void route_fini(struct route *route)
{
    ml_wipe_free(route->origin);
    ml_wipe_free(route->proxy);
    *route = (struct route){NULL, NULL};
}

static void route_keep(struct route *route, const char *url, const char *proxy)
{
    route_fini(route);
    *route = (struct route){ml_str_dup(origin_of(url)), ml_strdup(proxy)};
}

/* The URL as it stands; libcurl refuses a bad one when it sends. */
static int apply_known_target(struct options *options, CURL *easy, const char *url,
                              const struct ml_http_tls *tls, const struct route *route,
                              struct ml_err *err)
{
    options->proxy = ml_strdup(route->proxy);
    apply_proxy(easy, options->proxy, tls);
    return set_url(easy, url, err);
}

static int apply_target(struct options *options, CURL *easy, const char *url,
                        const struct ml_http_tls *tls, struct route *route, struct ml_err *err)
{
    CURLU *parts = curl_url();
    char *changed = NULL;
    ml_assert(parts != NULL);
    CURLUcode code = curl_url_set(parts, CURLUPART_URL, url, CURLU_PATH_AS_IS);
    int r = 0;
    if (code != CURLUE_OK) {
        r = ml_err_set(err, ML_EINVALID, "URL %s: %s", url, curl_url_strerror(code));
    } else {
        options->proxy = proxy_for(parts, strncasecmp(url, "https:", 6) == 0, tls->proxy_url);
        apply_proxy(easy, options->proxy, tls);
        if (tls->server_name && tls->server_name[0])
            rename_server(options, parts, tls->server_name);
        if (options->connect_to)
            curl_url_get(parts, CURLUPART_URL, &changed, 0);
        else
            route_keep(route, url, options->proxy);
        r = set_url(easy, changed ? changed : url, err);
        curl_easy_setopt(easy, CURLOPT_CONNECT_TO, options->connect_to);
    }
    curl_free(changed);
    curl_url_cleanup(parts);
    return r;
}

/* libcurl sends a line as it gets it: a line end in a value would smuggle in another field. */
static int apply_headers(struct options *options, CURL *easy, const struct ml_http_request *request,
                         struct ml_err *err)
{
    bool typed = false, has_agent = false, accepts = false;
    for (size_t i = 0; i < request->header_count; i++) {
        const struct ml_http_header *header = &request->headers[i];
        if (!ml_http_is_token(header->name) || strpbrk(header->value, "\r\n"))
            return ml_err_set(err, ML_EINVALID, "header %s: not a valid name and value",
                              header->name);
        /* For libcurl "Name:" means to leave a field out and "Name;" that it is empty. */
        ML_AUTO_FREE char *name = ml_asprintf(header->value[0] ? "%s: " : "%s;", header->name);
        ML_AUTO_WIPE char *line = ml_join(ml_str_of(name), ml_str_of(header->value));
        slist_append(&options->headers, line);
        typed = typed || strcasecmp(header->name, "Content-Type") == 0;
        has_agent = has_agent || strcasecmp(header->name, "User-Agent") == 0;
        accepts = accepts || strcasecmp(header->name, "Accept") == 0;
    }
    if (request->passed_on && !has_agent)
        slist_append(&options->headers, "User-Agent:");
    if (request->passed_on && !accepts)
        slist_append(&options->headers, "Accept:");
    slist_append(&options->headers, "Expect:");
    if (!typed)
        slist_append(&options->headers, "Content-Type:");
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, options->headers);
    return 0;
}

static int apply_method(struct options *options, CURL *easy, const struct ml_http_request *request,
                        struct ml_err *err)
{
    const char *method = request->method;
    if (!ml_http_is_token(method))
        return ml_err_set(err, ML_EINVALID, "method %s: not a valid name", method);
    if (strcmp(method, "HEAD") == 0) {
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
        return 0;
    }
    bool may_be_empty = strcmp(method, "POST") && strcmp(method, "PUT") && strcmp(method, "PATCH");
    if (request->body.len || !may_be_empty) {
        options->body = ml_str_dup(request->body);
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.len);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, options->body);
    }
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
    return 0;
}

static void apply_version(CURL *easy, const struct ml_http_request *request)
{
    if (request->http2) {
        curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
        curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
        curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
        /* libcurl would stop behind the last byte of the body, in front of the trailer. nghttp2
         * counts them as well. */
        curl_easy_setopt(easy, CURLOPT_IGNORE_CONTENT_LENGTH, 1L);
    } else if (request->passed_on) {
        curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    }
}

/* `tls` must outlive the handle; `route` is that of the requests before, with the same `tls`.
 * ML_EINVALID when the request cannot be sent as it stands; `options` is to be ended in either
 * case. */
static int options_apply(struct options *options, CURL *easy, const struct ml_http_request *request,
                         const struct ml_http_tls *tls, struct route *route, struct ml_err *err)
{
    const char *url = request->url;
    apply_common(easy);
    apply_tls(easy, tls);
    if (request->deadlines.connect_ms > 0)
        /* The call's own timer watches over it; libcurl divides it among addresses. */
        curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)request->deadlines.connect_ms);
    int r = route_leads_to(route, url) ? apply_known_target(options, easy, url, tls, route, err)
                                       : apply_target(options, easy, url, tls, route, err);
    if (r < 0)
        return r;
    apply_version(easy, request);
    r = apply_method(options, easy, request, err);
    if (r < 0)
        return r;
    return apply_headers(options, easy, request, err);
}

/* The answer has begun, so the request will not be sent again: overwrites its token, which would
 * stay as long as a watch does. */
static void options_forget(struct options *options)
{
    for (struct curl_slist *line = options->headers; line; line = line->next)
        if (strncasecmp(line->data, "Authorization:", 14) == 0)
            explicit_bzero(line->data, strlen(line->data));
}

static void options_fini(struct options *options)
{
    curl_slist_free_all(options->headers);
    curl_slist_free_all(options->connect_to);
    ml_wipe_free(options->body); /* a Secret, a token to review */
    ml_wipe_free(options->proxy);
    *options = (struct options){0};
}

/* ---- failures: our kinds, with a message a user can act on: what was tried, with whom, and why
 * it did not work ---- */

/* NULL when `url` is not a URL. */
static char *url_peer(const char *url)
{
    char *host = NULL, *port = NULL, *peer = NULL;
    CURLU *parts = curl_url();
    /* libcurl's URLs know no socks5, but for a name in front of an address. */
    if (parts && curl_url_set(parts, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK &&
        curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK) {
        curl_url_get(parts, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT);
        peer = port ? ml_asprintf("%s:%s", host, port) : ml_strdup(host);
    }
    curl_free(host);
    curl_free(port);
    curl_url_cleanup(parts);
    return peer;
}

/* "host:port" of a URL for messages, with the scheme's port when it names none; the text itself
 * when it is not a URL. The caller frees it. */
static char *peer_of_url(const char *url)
{
    char *peer = url_peer(url);
    return peer ? peer : ml_strdup(url);
}

/* The same for a proxy's URL, in words, without user and password. */
static char *peer_of_proxy(const char *url)
{
    ML_AUTO_FREE char *peer = url_peer(url);
    return ml_asprintf("the proxy%s%s", peer ? " " : "", peer ? peer : "");
}

/* A transfer that failed with `code`. */
struct failure {
    CURLcode code;
    const char *url;
    const char *peer;   /* server or proxy, for the message */
    const char *detail; /* CURLOPT_ERRORBUFFER, may be empty */
    long os_errno;      /* CURLINFO_OS_ERRNO */
};

/* Causes read on in the middle of a sentence: "connection refused". */
static void lower_first(char *text)
{
    if (isupper((unsigned char)text[0]) && islower((unsigned char)text[1]))
        text[0] = (char)tolower((unsigned char)text[0]);
}

/* The bare cause: libcurl's own words around it say less than our context. */
static void describe_failure(const struct failure *failure, char *out, size_t size)
{
    static const char *const noise[] = {"SSL certificate problem: ", "SSL: ", "OpenSSL "};
    const char *text = failure->detail[0] ? failure->detail : curl_easy_strerror(failure->code);
    for (size_t i = 0; i < ML_COUNT(noise); i++) {
        size_t len = strlen(noise[i]);
        if (strncmp(text, noise[i], len) == 0)
            text += len;
    }
    snprintf(out, size, "%s", text);
    lower_first(out);
}

static int set_connect_error(struct ml_err *err, const struct failure *failure)
{
    char cause[CURL_ERROR_SIZE];
    describe_failure(failure, cause, sizeof cause);
    if (failure->os_errno)
        snprintf(cause, sizeof cause, "%s", strerror((int)failure->os_errno));
    lower_first(cause);
    return ml_err_set(err, ML_ENETWORK, "connect to %s: %s", failure->peer, cause);
}

static int set_verify_error(struct ml_err *err, const struct failure *failure)
{
    char cause[CURL_ERROR_SIZE];
    const char *hint = " (check certificate-authority in the kubeconfig)";
    describe_failure(failure, cause, sizeof cause);
    if (strstr(cause, "subject name"))
        hint = " (check server and tls-server-name in the kubeconfig)";
    else if (strstr(cause, "expired") || strstr(cause, "not yet valid"))
        hint = "";
    return ml_err_set(err, ML_ETLS, "TLS to %s: certificate verify failed: %s%s", failure->peer,
                      cause, hint);
}

/* A handshake, or with TLS 1.3 the first read after it, ends either because the peer sent an
 * alert or because the connection broke; libcurl has one code for both. */
static int set_stream_error(struct ml_err *err, const struct failure *failure)
{
    char cause[CURL_ERROR_SIZE];
    describe_failure(failure, cause, sizeof cause);
    bool handshake = failure->code == CURLE_SSL_CONNECT_ERROR;
    bool broken = strstr(cause, "SSL_ERROR_SYSCALL") || strstr(cause, "reset by peer") ||
                  strstr(cause, "unexpected eof");
    bool alert = strstr(cause, "alert");
    if (alert && (strstr(cause, "certificate") || strstr(cause, "unknown ca")))
        return ml_err_set(err, ML_ETLS,
                          "TLS to %s: %s (check client-certificate and client-key in the "
                          "kubeconfig)",
                          failure->peer, cause);
    if (strstr(cause, "wrong version number"))
        return ml_err_set(err, ML_ETLS, "TLS to %s: it speaks no TLS (http instead of https?)",
                          failure->peer);
    if (handshake || alert)
        return ml_err_set(err, broken ? ML_ENETWORK : ML_ETLS, "TLS to %s: %s", failure->peer,
                          cause);
    return ml_err_set(err, ML_ENETWORK, "connection to %s broke: %s", failure->peer, cause);
}

/* Fills `err` and returns its kind. */
static int failure_set_error(struct ml_err *err, const struct failure *failure)
{
    char cause[CURL_ERROR_SIZE];
    describe_failure(failure, cause, sizeof cause);
    switch ((int)failure->code) { /* libcurl has a hundred codes; a request meets these */
    case CURLE_WEIRD_SERVER_REPLY:
        return ml_err_set(err, ML_ENETWORK, "%s speaks no HTTP: %s", failure->peer, cause);
    case CURLE_UNSUPPORTED_PROTOCOL:
        /* Also what libcurl calls an answer that does not begin like HTTP, or has another version
         * or no status. */
        if (strstr(cause, "HTTP/0.9"))
            return ml_err_set(err, ML_ENETWORK, "%s speaks no HTTP", failure->peer);
        if (strstr(cause, "response"))
            return ml_err_set(err, ML_ENETWORK, "%s speaks no HTTP: %s", failure->peer, cause);
        return ml_err_set(err, ML_EINVALID, "URL %s: %s", failure->url, cause);
    case CURLE_URL_MALFORMAT:
        return ml_err_set(err, ML_EINVALID, "URL %s: %s", failure->url, cause);
    case CURLE_COULDNT_RESOLVE_HOST:
        return ml_err_set(err, ML_ENETWORK, "connect to %s: no such host", failure->peer);
    case CURLE_COULDNT_RESOLVE_PROXY: /* libcurl's words can have its password in them */
        return ml_err_set(err, ML_ENETWORK, "connect to %s: %s", failure->peer,
                          strstr(cause, "syntax") ? "its URL is not valid" : "no such host");
    case CURLE_COULDNT_CONNECT:
    case CURLE_PROXY:
        return set_connect_error(err, failure);
    case CURLE_OPERATION_TIMEDOUT: /* the kernel's; our deadlines never get here */
        return ml_err_set(err, ML_ENETWORK, "connection to %s broke: %s", failure->peer, cause);
    case CURLE_PEER_FAILED_VERIFICATION:
        return set_verify_error(err, failure);
    case CURLE_SSL_CACERT_BADFILE:
        return ml_err_set(err, ML_ETLS,
                          "TLS to %s: unusable CA certificates: %s (check certificate-authority "
                          "in the kubeconfig)",
                          failure->peer, cause);
    case CURLE_SSL_CERTPROBLEM:
        return ml_err_set(err, ML_ETLS,
                          "TLS to %s: unusable client certificate: %s (check client-certificate "
                          "and client-key in the kubeconfig)",
                          failure->peer, cause);
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_USE_SSL_FAILED:
        return ml_err_set(err, ML_ETLS, "TLS to %s: %s", failure->peer, cause);
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
        return set_stream_error(err, failure);
    case CURLE_GOT_NOTHING:
        return ml_err_set(err, ML_ENETWORK, "connection to %s broke: closed without an answer",
                          failure->peer);
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
        return ml_err_set(err, ML_ENETWORK, "answer of %s was cut: %s", failure->peer, cause);
    case CURLE_OUT_OF_MEMORY:
    case CURLE_FAILED_INIT:
        return ml_err_set(err, ML_EINTERNAL, "request to %s: %s", failure->peer, cause);
    default:
        return ml_err_set(err, ML_ENETWORK, "request to %s: %s", failure->peer, cause);
    }
}

/* ---- pools of connections ---- */

/* libcurl allocates 22 KiB for a handle that has made a request. */
#define SPARE_MAX 32

struct ml_http_client {
    struct ml_loop *loop;
    char *user_agent;
    struct ml_list pools;
    bool inside;             /* libcurl is on the stack: no handle may be added or removed */
    struct ml_list starting; /* calls to hand to libcurl */
    struct ml_list running;
    struct ml_list ending; /* canceled calls, to remove from libcurl */
    struct ml_task work;
    bool in_done;
    CURL *spare[SPARE_MAX]; /* handles that are used again */
    size_t spare_count;
};

/* A pool is one libcurl multi handle on the loop: the connections of one TLS identity, either for
 * plain requests or for streams. An unused pool closes its connections after a while; a pool whose
 * identity was replaced closes them with its last call. */
struct pool {
    struct ml_list node;
    struct ml_http_client *client;
    CURLM *multi;
    struct ml_timer timer; /* libcurl's own waits */
    struct ml_timer idle;
    size_t calls;
    int *sockets; /* of its connections */
    size_t socket_count;
    bool stale; /* a newer generation took over */

    const struct ml_http_tls *key; /* only compared, never read */
    bool streaming;
    struct ml_http_tls tls; /* our copy: a call may outlive the lender's contents */
    struct route route;
};

static void on_transfer_ended(CURL *easy, CURLcode code);

/* Below the idle limits of usual load balancers, above the pace of a lease renewal. */
#define POOL_IDLE_NS (90 * ML_NS_PER_S)

static void pool_put(struct pool *pool)
{
    ml_assert(pool->calls > 0);
    if (--pool->calls == 0)
        ml_timer_start(&pool->idle, pool->stale ? 0 : POOL_IDLE_NS);
}

static void pool_drain(struct pool *pool)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(pool->multi, &left)))
        if (message->msg == CURLMSG_DONE)
            on_transfer_ended(message->easy_handle, message->data.result);
}

static void pool_act(struct pool *pool, curl_socket_t fd, int events)
{
    int running;
    ml_assert(!pool->client->inside);
    pool->client->inside = true;
    curl_multi_socket_action(pool->multi, fd, events, &running);
    pool->client->inside = false;
    pool->calls++; /* the last call may be put back now, and the pool must outlive this function */
    pool_drain(pool);
    pool_put(pool);
}

static void on_socket_event(evutil_socket_t fd, short what, void *context)
{
    int events = (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0);
    pool_act(context, fd, events);
}

static void on_pool_timer(void *context)
{
    pool_act(context, CURL_SOCKET_TIMEOUT, 0);
}

static int on_curl_sets_timer(CURLM *multi, long timeout_ms, void *context)
{
    struct pool *pool = context;
    (void)multi;
    if (timeout_ms < 0)
        ml_timer_stop(&pool->timer);
    else
        ml_timer_start(&pool->timer, timeout_ms * ML_NS_PER_MS);
    return 0;
}

/* `assigned` is the libevent event that we gave libcurl to keep with the socket. */
static int on_curl_sets_socket(CURL *easy, curl_socket_t fd, int what, void *context,
                               void *assigned)
{
    struct pool *pool = context;
    struct event *event = assigned;
    (void)easy;
    if (event)
        event_del(event);
    if (what == CURL_POLL_REMOVE) {
        if (event)
            event_free(event);
        return 0;
    }
    short events = EV_PERSIST;
    events |= what & CURL_POLL_IN ? EV_READ : 0;
    events |= what & CURL_POLL_OUT ? EV_WRITE : 0;
    struct event_base *base = ml_loop_base(pool->client->loop);
    if (event) {
        event_assign(event, base, fd, events, on_socket_event, pool);
    } else {
        event = event_new(base, fd, events, on_socket_event, pool);
        ml_assert(event != NULL);
        curl_multi_assign(pool->multi, fd, event);
    }
    event_add(event, NULL);
    return 0;
}

static void pool_forget_socket(struct pool *pool, int fd)
{
    for (size_t i = 0; i < pool->socket_count; i++)
        if (pool->sockets[i] == fd)
            pool->sockets[i--] = pool->sockets[--pool->socket_count];
}

static int on_socket_opened(void *context, curl_socket_t fd, curlsocktype purpose)
{
    struct pool *pool = context;
    unsigned int timeout_ms = ML_TCP_DEAD_PEER_S * 1000;
    (void)purpose;
    ml_tcp_notice_dead_peer(fd);
    /* No probes are sent while data waits for its acknowledgment. */
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
    pool_forget_socket(pool, fd);
    size_t bytes = (pool->socket_count + 1) * sizeof *pool->sockets;
    pool->sockets = ml_realloc(pool->sockets, bytes);
    pool->sockets[pool->socket_count++] = fd;
    return CURL_SOCKOPT_OK;
}

static int on_socket_unused(void *context, curl_socket_t fd)
{
    pool_forget_socket(context, fd);
    return close(fd);
}

/* Makes the pool know the sockets that libcurl opens for this transfer, until it closes them. For
 * each transfer, before it is added to pool->multi. */
static void pool_follow_sockets(struct pool *pool, CURL *easy)
{
    curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket_opened);
    curl_easy_setopt(easy, CURLOPT_SOCKOPTDATA, pool);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_socket_unused);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, pool);
}

/* HTTP/2 has frames that come unasked, and each answer says which request it is for. */
static bool connection_multiplexes(CURL *easy)
{
    const struct curl_tlssessioninfo *session = NULL;
    const unsigned char *protocol = NULL;
    unsigned int len = 0;
    curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &session);
    if (session && session->internals)
        SSL_get0_alpn_selected(session->internals, &protocol, &len);
    return len == 2 && memcmp(protocol, "h2", 2) == 0;
}

static bool socket_has_bytes_or_end(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

/* Has something come on the kept connection, from this port, that the transfer is about to use?
 * Then it was closed, or the server, or somebody between, said something that nobody asked for.
 * libcurl 7.88 would take that for the answer. Always false for a new connection, and for one of
 * HTTP/2. libcurl says of the connection only which port it has. */
static bool pool_connection_is_unclean(const struct pool *pool, CURL *easy, int local_port)
{
    long connects = 1;
    curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &connects);
    if (connects > 0 || connection_multiplexes(easy))
        return false;
    for (size_t i = 0; i < pool->socket_count; i++)
        if (ml_tcp_local_port(pool->sockets[i]) == local_port &&
            socket_has_bytes_or_end(pool->sockets[i]))
            return true;
    return false;
}

static struct ml_str copy_str(struct ml_str s)
{
    return (struct ml_str){s.len ? ml_str_dup(s) : NULL, s.len};
}

static void pool_copy_tls(struct pool *pool, const struct ml_http_tls *tls)
{
    if (!tls)
        return;
    pool->tls = *tls;
    pool->tls.ca_pem = copy_str(tls->ca_pem);
    pool->tls.cert_pem = copy_str(tls->cert_pem);
    pool->tls.key_pem = copy_str(tls->key_pem);
    pool->tls.ca_file = ml_strdup(tls->ca_file);
    pool->tls.server_name = ml_strdup(tls->server_name);
    pool->tls.proxy_url = ml_strdup(tls->proxy_url);
}

static void pool_free(void *context)
{
    struct pool *pool = context;
    ml_assert(pool->calls == 0 && !pool->client->inside);
    ml_list_remove(&pool->node);
    curl_multi_cleanup(pool->multi); /* closes connections: still calls on_set_socket */
    ml_timer_stop(&pool->timer);
    ml_timer_stop(&pool->idle);
    free((char *)pool->tls.ca_pem.ptr);
    free((char *)pool->tls.cert_pem.ptr);
    ml_wipe_free((char *)pool->tls.key_pem.ptr);
    free((char *)pool->tls.ca_file);
    free((char *)pool->tls.server_name);
    ml_wipe_free((char *)pool->tls.proxy_url);
    route_fini(&pool->route);
    free(pool->sockets);
    free(pool);
}

static struct pool *pool_new(struct ml_http_client *client, const struct ml_http_tls *tls,
                             bool streaming)
{
    struct pool *pool = ml_new(struct pool);
    pool->client = client;
    pool->key = tls;
    pool->streaming = streaming;
    pool_copy_tls(pool, tls);
    ml_timer_init(&pool->timer, client->loop, on_pool_timer, pool);
    ml_timer_init(&pool->idle, client->loop, pool_free, pool);
    pool->multi = curl_multi_init();
    ml_assert(pool->multi != NULL);
    curl_multi_setopt(pool->multi, CURLMOPT_SOCKETFUNCTION, on_curl_sets_socket);
    curl_multi_setopt(pool->multi, CURLMOPT_SOCKETDATA, pool);
    curl_multi_setopt(pool->multi, CURLMOPT_TIMERFUNCTION, on_curl_sets_timer);
    curl_multi_setopt(pool->multi, CURLMOPT_TIMERDATA, pool);
    /* Streams get a connection each. libcurl 7.88 now and then leaves one of several long bodies
     * on one HTTP/2 connection without another byte (seen in one of a hundred starts, with two
     * lists of 16 KiB and more); and one slow reader's window must not hold the others up. */
    long pipelining = streaming ? CURLPIPE_NOTHING : CURLPIPE_MULTIPLEX;
    curl_multi_setopt(pool->multi, CURLMOPT_PIPELINING, pipelining);
    ml_list_push(&client->pools, &pool->node);
    return pool;
}

static void pool_retire(struct pool *pool)
{
    pool->stale = true;
    if (pool->calls == 0)
        ml_timer_start(&pool->idle, 0);
}

/* Later calls with the identity of this pool make connections of their own; calls under way go on
 * with those they have. */
static void pool_leave_connections(struct pool *pool)
{
    ml_list_each_entry (struct pool, other, &pool->client->pools) {
        if (other->key == pool->key)
            pool_retire(other);
    }
}

static bool same_text(const char *a, const char *b)
{
    return ml_str_eq(ml_str_of(a), ml_str_of(b));
}

/* Besides the generation the contents count: another identity may have been put where a
 * freed one was, and must not get its connections. */
static bool pool_is_of(const struct pool *pool, const struct ml_http_tls *tls)
{
    const struct ml_http_tls *own = &pool->tls;
    return !tls ||
           (own->generation == tls->generation && own->insecure == tls->insecure &&
            ml_str_eq(own->ca_pem, tls->ca_pem) && ml_str_eq(own->cert_pem, tls->cert_pem) &&
            ml_str_eq(own->key_pem, tls->key_pem) && same_text(own->ca_file, tls->ca_file) &&
            same_text(own->server_name, tls->server_name) &&
            same_text(own->proxy_url, tls->proxy_url));
}

/* The pool for this identity (NULL: the default one); give it back with pool_put. */
static struct pool *pool_get(struct ml_http_client *client, const struct ml_http_tls *tls,
                             bool streaming)
{
    struct pool *found = NULL;
    ml_list_each_entry (struct pool, pool, &client->pools) {
        if (pool->stale || pool->key != tls)
            continue;
        if (!pool_is_of(pool, tls))
            pool_retire(pool);
        else if (pool->streaming == streaming)
            found = pool;
    }
    if (!found)
        found = pool_new(client, tls, streaming);
    found->calls++;
    ml_timer_stop(&found->idle);
    return found;
}

/* Lets a transfer go on whose callback has paused it; what it has held back comes inside. */
static CURLcode pool_unpause(struct pool *pool, CURL *easy)
{
    ml_assert(!pool->client->inside);
    pool->client->inside = true;
    CURLcode code = curl_easy_pause(easy, CURLPAUSE_CONT);
    pool->client->inside = false;
    return code;
}

/* ---- calls ---- */

enum call_phase {
    CALL_CONNECTING, /* or waiting for a connection */
    CALL_WAITING,    /* for the head */
    CALL_READING,
    CALL_CANCELED,
    CALL_DONE,
};

struct ml_http_call {
    struct ml_list node;
    struct ml_http_client *client;
    struct pool *pool;
    CURL *easy;
    bool added; /* to the pool's multi handle */
    enum call_phase phase;
    struct ml_http_handler handler;
    void *context;
    int (*may_send)(void *context, struct ml_err *err);
    int (*open_socket)(void *context, const struct sockaddr *address);
    int (*may_connect)(void *context, const struct sockaddr *address, struct ml_err *err);
    struct ml_err *refused; /* by may_connect: why the last address was; NULL: none was */
    void (*field)(void *context, struct ml_str name, struct ml_str value);
    void (*trailer)(void *context, struct ml_str name, struct ml_str value);
    bool writes;
    struct ml_http_link *link; /* only a connection is wanted, by this; else NULL */
    char *url;
    struct options options;
    struct ml_http_head_parser head;
    struct ml_http_deadlines deadlines;
    int64_t total_due; /* monotonic ns; INT64_MAX: none */
    struct ml_timer timer;
    bool unclean;          /* its connection had bytes that nobody asked for: it gets another one */
    bool paused;           /* by its owner */
    bool held;             /* by libcurl, which keeps a piece */
    struct ml_task resume; /* lets libcurl go on */
    struct ml_err *err;    /* the reason to end the call, if it is ours and not that of libcurl */
    char detail[CURL_ERROR_SIZE];
};

static CURL *client_get_easy(struct ml_http_client *client)
{
    if (client->spare_count > 0)
        return client->spare[--client->spare_count];
    CURL *easy = curl_easy_init();
    ml_assert(easy != NULL);
    return easy;
}

static void client_keep_easy(struct ml_http_client *client, CURL *easy)
{
    if (client->spare_count == SPARE_MAX) {
        curl_easy_cleanup(easy);
        return;
    }
    curl_easy_reset(easy);
    client->spare[client->spare_count++] = easy;
}

static void call_free(struct ml_http_call *call)
{
    if (call->added)
        curl_multi_remove_handle(call->pool->multi, call->easy);
    client_keep_easy(call->client, call->easy);
    options_fini(&call->options);
    pool_put(call->pool);
    ml_timer_stop(&call->timer);
    ml_task_cancel(&call->resume);
    ml_list_remove(&call->node);
    ml_http_head_fini(&call->head);
    free(call->url);
    free(call->err);
    free(call->refused);
    free(call);
}

static void call_finish(struct ml_http_call *call, const struct ml_err *err)
{
    /* Its handle goes first: the connection is free for what done() starts. */
    if (call->added)
        curl_multi_remove_handle(call->pool->multi, call->easy);
    call->added = false;
    call->phase = CALL_DONE;
    ml_timer_stop(&call->timer);
    call->client->in_done = true;
    call->handler.done(call->context, err);
    call->client->in_done = false;
    call_free(call);
}

static struct ml_err *call_err(struct ml_http_call *call)
{
    if (!call->err)
        call->err = ml_new(struct ml_err);
    *call->err = ML_ERR_INIT;
    return call->err;
}

/* The deadline of the phase the call is in, in milliseconds; 0: none. */
static int64_t phase_limit_ms(const struct ml_http_call *call)
{
    switch (call->phase) {
    case CALL_CONNECTING:
        return call->deadlines.connect_ms;
    case CALL_WAITING:
        return call->deadlines.first_byte_ms;
    case CALL_READING:
        return call->paused ? 0 : call->deadlines.idle_ms;
    case CALL_CANCELED:
    case CALL_DONE:
        return 0;
    }
    ML_UNREACHABLE();
}

/* Starts the phase's deadline anew, never past the one for the whole call. */
static void call_arm(struct ml_http_call *call)
{
    int64_t limit_ms = phase_limit_ms(call);
    int64_t delay_ns = INT64_MAX;
    if (limit_ms > 0)
        delay_ns = limit_ms * ML_NS_PER_MS;
    if (call->total_due != INT64_MAX) {
        int64_t now = ml_clock_monotonic(ml_loop_clock(call->client->loop));
        delay_ns = ML_MIN(delay_ns, call->total_due - now);
    }
    if (delay_ns != INT64_MAX)
        ml_timer_start(&call->timer, delay_ns);
    else
        ml_timer_stop(&call->timer);
}

static void call_enter(struct ml_http_call *call, enum call_phase phase)
{
    call->phase = phase;
    call_arm(call);
}

/* Whom the call talks to, for messages: a proxy until it answers 2xx to a CONNECT, then the server.
 * For SOCKS, libcurl does not say how far it got. */
static char *call_peer(const struct ml_http_call *call)
{
    long answer = 0;
    const char *proxy = call->options.proxy;
    curl_easy_getinfo(call->easy, CURLINFO_HTTP_CONNECTCODE, &answer);
    if (!proxy || call->phase != CALL_CONNECTING || answer / 100 == 2)
        return peer_of_url(call->url);
    ML_AUTO_FREE char *at_proxy = peer_of_proxy(proxy);
    if (strncasecmp(proxy, "http", 4) == 0)
        return ml_take(&at_proxy);
    ML_AUTO_FREE char *server = peer_of_url(call->url);
    return ml_asprintf("%s through %s", server, at_proxy);
}

/* Says which deadline passed, and who did not answer. */
static void call_set_timeout(struct ml_http_call *call, struct ml_err *err)
{
    ML_AUTO_FREE char *peer = call_peer(call);
    double limit_s = (double)phase_limit_ms(call) / 1000;
    int64_t now = ml_clock_monotonic(ml_loop_clock(call->client->loop));
    if (now >= call->total_due)
        ml_err_set(err, ML_ETIMEOUT, "request to %s: not done within %g s", peer,
                   (double)call->deadlines.total_ms / 1000);
    else if (call->phase == CALL_CONNECTING)
        ml_err_set(err, ML_ETIMEOUT, "connect to %s: no connection within %g s", peer, limit_s);
    else if (call->phase == CALL_WAITING)
        ml_err_set(err, ML_ETIMEOUT, "no answer from %s within %g s", peer, limit_s);
    else
        ml_err_set(err, ML_ETIMEOUT, "answer of %s stalled: no byte for %g s", peer, limit_s);
}

static void on_call_deadline(void *context)
{
    struct ml_http_call *call = context;
    call_set_timeout(call, call_err(call));
    /* The connection may be dead, and so may all others to this server: the next request must not
     * find out about each of them. */
    curl_easy_setopt(call->easy, CURLOPT_FORBID_REUSE, 1L);
    if (call->phase != CALL_CONNECTING)
        pool_leave_connections(call->pool);
    call_finish(call, call->err);
}

/* libcurl repeats any request when a kept connection breaks, because the connection may have died
 * of age. But it may have broken after the server got the request, and then a write has been done.
 */
static int call_refuse_resend(struct ml_http_call *call)
{
    ML_AUTO_FREE char *peer = peer_of_url(call->url);
    return ml_err_set(call_err(call), ML_ENETWORK,
                      "connection to %s broke before the answer; a write is not sent again", peer);
}

/* libcurl has a connection and is about to send. */
static int on_call_connected(void *context, char *peer_ip, char *local_ip, int peer_port,
                             int local_port)
{
    struct ml_http_call *call = context;
    struct ml_err err = ML_ERR_INIT;
    (void)peer_ip, (void)local_ip, (void)peer_port;
    if (call->phase == CALL_CANCELED)
        return CURL_PREREQFUNC_ABORT;
    if (call->phase != CALL_CONNECTING && call->writes && call_refuse_resend(call) < 0)
        return CURL_PREREQFUNC_ABORT;
    call->unclean = pool_connection_is_unclean(call->pool, call->easy, local_port);
    if (call->unclean)
        return CURL_PREREQFUNC_ABORT;
    if (call->may_send && call->may_send(call->context, &err) < 0) {
        *call_err(call) = err;
        return CURL_PREREQFUNC_ABORT;
    }
    if (call->phase == CALL_CONNECTING)
        call_enter(call, CALL_WAITING);
    return CURL_PREREQFUNC_OK;
}

/* Of an interim answer (1xx) nothing is passed on. */
static void call_pass_field(struct ml_http_call *call, struct ml_str line)
{
    void (*pass)(void *context, struct ml_str name,
                 struct ml_str value) = call->head.complete ? call->trailer : call->field;
    line = ml_str_trim(line);
    if (!pass || call->head.head.status < 200 || line.len == 0 || ml_str_starts(line, "HTTP/"))
        return;
    struct ml_str value = line;
    struct ml_str name = ml_str_cut(&value, ':');
    pass(call->context, ml_str_trim(name), ml_str_trim(value));
}

static int call_refuse_answer(struct ml_http_call *call)
{
    ML_AUTO_FREE char *peer = peer_of_url(call->url);
    return ml_err_set(call_err(call), ML_ENETWORK, "the answer of %s is not valid HTTP: %s", peer,
                      call->head.bad);
}

static size_t on_head_line(char *bytes, size_t one, size_t len, void *context)
{
    struct ml_http_call *call = context;
    (void)one;
    if (call->phase == CALL_CANCELED)
        return CURL_WRITEFUNC_ERROR;
    call_pass_field(call, (struct ml_str){bytes, len});
    if (!ml_http_head_line(&call->head, (struct ml_str){bytes, len}))
        return len;
    if (call->head.bad && call_refuse_answer(call) < 0)
        return CURL_WRITEFUNC_ERROR;
    call_enter(call, CALL_READING);
    options_forget(&call->options);
    call->handler.head(call->context, &call->head.head);
    return call->phase == CALL_CANCELED ? CURL_WRITEFUNC_ERROR : len;
}

static size_t on_body_piece(char *bytes, size_t one, size_t len, void *context)
{
    struct ml_http_call *call = context;
    struct ml_err err = ML_ERR_INIT;
    (void)one;
    if (call->phase == CALL_CANCELED)
        return CURL_WRITEFUNC_ERROR;
    call->held = call->paused;
    if (call->held)
        return CURL_WRITEFUNC_PAUSE;
    call_arm(call);
    if (len == 0)
        return 0;
    int r = call->handler.data(call->context, (struct ml_str){bytes, len}, &err);
    if (r == 0)
        return call->phase == CALL_CANCELED ? CURL_WRITEFUNC_ERROR : len;
    *call_err(call) = err;
    return CURL_WRITEFUNC_ERROR;
}

static void call_set_failure(struct ml_http_call *call, CURLcode code, struct ml_err *err)
{
    ML_AUTO_FREE char *peer = call_peer(call);
    struct failure failure = {.code = code, .url = call->url, .peer = peer, .detail = call->detail};
    curl_easy_getinfo(call->easy, CURLINFO_OS_ERRNO, &failure.os_errno);
    bool connecting = call->phase == CALL_CONNECTING && call->deadlines.connect_ms > 0;
    if (call->refused && call->phase == CALL_CONNECTING) {
        *err = *call->refused;
        return;
    }
    if (code == CURLE_OPERATION_TIMEDOUT && connecting)
        call_set_timeout(call, err); /* libcurl was a moment ahead of our timer */
    else
        failure_set_error(err, &failure);
}

/* Nothing of the request has been sent. libcurl has closed the connection. */
static void call_connect_anew(struct ml_http_call *call)
{
    call->unclean = false;
    curl_multi_remove_handle(call->pool->multi, call->easy);
    curl_easy_setopt(call->easy, CURLOPT_FRESH_CONNECT, 1L);
    CURLMcode code = curl_multi_add_handle(call->pool->multi, call->easy);
    ml_assert(code == CURLM_OK);
}

static void link_open(struct ml_http_link *link);

static void on_transfer_ended(CURL *easy, CURLcode code)
{
    struct ml_http_call *call = NULL;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &call);
    if (call->phase == CALL_CANCELED) {
        call_free(call);
        return;
    }
    if (call->unclean) {
        call_connect_anew(call);
        return;
    }
    if (call->link && code == CURLE_OK && !call->err) {
        link_open(call->link); /* its handle stays in the pool, and keeps the connection */
        return;
    }
    if (code != CURLE_OK && !call->err)
        call_set_failure(call, code, call_err(call));
    call_finish(call, call->err);
}

static void on_call_resumed(void *context)
{
    struct ml_http_call *call = context;
    call->held = false;
    CURLcode code = pool_unpause(call->pool, call->easy);
    if (code == CURLE_OK || call->phase == CALL_CANCELED)
        return;
    if (!call->err)
        call_set_failure(call, code, call_err(call));
    call_finish(call, call->err);
}

static void call_start(struct ml_http_call *call)
{
    if (call->err) {
        call_finish(call, call->err);
        return;
    }
    ml_list_push(&call->client->running, &call->node);
    call->added = true;
    CURLMcode code = curl_multi_add_handle(call->pool->multi, call->easy);
    ml_assert(code == CURLM_OK);
}

static void on_client_task(void *context)
{
    struct ml_http_client *client = context;
    struct ml_list *node;
    while ((node = ml_list_shift(&client->ending)))
        call_free(ml_container_of(node, struct ml_http_call, node));
    /* A request that the done() of a failed call sends waits for a task of its own. */
    struct ml_list *last = client->starting.prev;
    while ((node = ml_list_shift(&client->starting))) {
        call_start(ml_container_of(node, struct ml_http_call, node));
        if (node == last)
            break;
    }
}

/* libcurl's buffers and copies of headers have tokens in them: they are wiped. */
static void curl_init_once(void)
{
    CURLcode code = curl_global_init_mem(CURL_GLOBAL_DEFAULT, malloc, ml_wiping_free,
                                         ml_wiping_realloc, strdup, calloc);
    ml_assert(code == CURLE_OK);
}

struct ml_http_client *ml_http_client_new(struct ml_loop *loop, const char *user_agent)
{
    /* libcurl's tables, set up once a process and left to its end. */
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, curl_init_once);
    struct ml_http_client *client = ml_new(struct ml_http_client);
    client->loop = loop;
    client->user_agent = ml_strdup(user_agent);
    ml_list_init(&client->pools);
    ml_list_init(&client->starting);
    ml_list_init(&client->running);
    ml_list_init(&client->ending);
    ml_task_init(&client->work, on_client_task, client);
    return client;
}

static void free_calls(struct ml_list *list)
{
    for (struct ml_list *node; (node = ml_list_shift(list));)
        call_free(ml_container_of(node, struct ml_http_call, node));
}

void ml_http_client_free(struct ml_http_client *client)
{
    if (!client)
        return;
    ml_assert(!client->in_done && !client->inside);
    free_calls(&client->starting);
    free_calls(&client->running);
    free_calls(&client->ending);
    ml_task_cancel(&client->work);
    while (client->spare_count > 0)
        curl_easy_cleanup(client->spare[--client->spare_count]);
    ml_list_each (node, &client->pools)
        pool_free(ml_container_of(node, struct pool, node));
    free(client->user_agent);
    free(client);
}

/* libcurl opens a socket for an address of the server. */
static curl_socket_t on_socket_wanted(void *context, curlsocktype purpose,
                                      struct curl_sockaddr *address)
{
    struct ml_http_call *call = context;
    struct ml_err err = ML_ERR_INIT;
    (void)purpose; /* there is only one: to connect */
    if (call->may_connect && !call->options.proxy &&
        call->may_connect(call->context, &address->addr, &err) < 0) {
        call->refused = call->refused ? call->refused : ml_new(struct ml_err);
        *call->refused = err;
        return CURL_SOCKET_BAD;
    }
    int fd = call->open_socket
                 ? call->open_socket(call->context, &address->addr)
                 : socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    return fd >= 0 ? fd : CURL_SOCKET_BAD;
}

static void call_set_callbacks(struct ml_http_call *call)
{
    CURL *easy = call->easy;
    if (call->open_socket || call->may_connect) {
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_socket_wanted);
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, call);
    }
    pool_follow_sockets(call->pool, easy);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->detail);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, call->client->user_agent);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_call_connected);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, call);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_head_line);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body_piece);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
}

/* Takes over the caller's use of `pool`. */
static struct ml_http_call *call_new(struct ml_http_client *client, struct pool *pool,
                                     const struct ml_http_request *request,
                                     const struct ml_http_handler *handler, void *context)
{
    struct ml_http_call *call = ml_new(struct ml_http_call);
    struct ml_err err = ML_ERR_INIT;
    call->client = client;
    call->handler = *handler;
    call->context = context;
    call->may_send = request->may_send;
    call->open_socket = request->open_socket;
    call->may_connect = request->may_connect;
    call->field = request->field;
    call->trailer = request->trailer;
    call->writes = strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0;
    call->url = ml_strdup(request->url);
    call->deadlines = request->deadlines;
    call->total_due = INT64_MAX;
    if (request->deadlines.total_ms > 0)
        call->total_due = ml_clock_monotonic(ml_loop_clock(client->loop)) +
                          request->deadlines.total_ms * ML_NS_PER_MS;
    ml_timer_init(&call->timer, client->loop, on_call_deadline, call);
    ml_task_init(&call->resume, on_call_resumed, call);
    ml_http_head_init(&call->head);
    call->pool = pool;
    call->easy = client_get_easy(client);
    call_set_callbacks(call);
    if (options_apply(&call->options, call->easy, request, &call->pool->tls, &call->pool->route,
                      &err) < 0)
        *call_err(call) = err;
    call_enter(call, CALL_CONNECTING);
    ml_list_push(&client->starting, &call->node);
    ml_task_defer(&client->work, client->loop);
    return call;
}

struct ml_http_call *ml_http_send(struct ml_http_client *client,
                                  const struct ml_http_request *request,
                                  const struct ml_http_handler *handler, void *context)
{
    struct pool *pool = pool_get(client, request->tls, request->streaming);
    return call_new(client, pool, request, handler, context);
}

void ml_http_cancel(struct ml_http_call *call)
{
    if (!call || call->phase == CALL_CANCELED || call->phase == CALL_DONE)
        return;
    ml_timer_stop(&call->timer);
    ml_task_cancel(&call->resume);
    call->phase = CALL_CANCELED;
    ml_list_remove(&call->node);
    ml_list_push(&call->client->ending, &call->node);
    ml_task_defer(&call->client->work, call->client->loop);
}

void ml_http_call_pause(struct ml_http_call *call, bool paused)
{
    if (call->paused == paused || call->phase == CALL_CANCELED || call->phase == CALL_DONE)
        return;
    call->paused = paused;
    if (call->phase == CALL_READING)
        call_arm(call);
    if (paused)
        ml_task_cancel(&call->resume);
    else if (call->held)
        ml_task_defer(&call->resume, call->client->loop);
}

/* ---- links: connections without a request of libcurl's ---- */

#define LINK_PIECE  ((size_t)16 * 1024)
#define LINK_PIECES 16 /* that are read at once: others have a turn then */

struct ml_http_link {
    struct ml_http_call *call;
    struct ml_http_link_handler handler;
    void *context;
    struct event *event; /* NULL: not open yet */
    bool wants_to_write; /* so the event says */
    /* OpenSSL wants to see the same bytes at the same place until they are sent: what comes
     * meanwhile is queued. */
    struct ml_buf flight, queued;
    size_t sent;         /* of `flight` */
    bool is_inside;      /* `received`, which may free it */
    bool is_freed;       /* there: its memory goes afterwards */
    struct ml_task more; /* to read: OpenSSL may have bytes that the socket says nothing of */
    struct ml_task broken;
    struct ml_err *err; /* of `broken` */
};

void ml_http_link_free(struct ml_http_link *link)
{
    if (!link)
        return;
    if (link->event)
        event_free(link->event);
    ml_task_cancel(&link->more);
    ml_task_cancel(&link->broken);
    ml_http_cancel(link->call); /* closes the connection */
    ml_wipe_buf(&link->flight);
    ml_wipe_buf(&link->queued);
    free(link->err);
    link->is_freed = true;
    if (!link->is_inside)
        free(link);
}

static void link_end(struct ml_http_link *link, const struct ml_err *err)
{
    link->handler.closed(link->context, err);
    ml_http_link_free(link);
}

static void on_link_broken(void *context)
{
    struct ml_http_link *link = context;
    ML_AUTO_FREE struct ml_err *err = ml_take(&link->err);
    link_end(link, err);
}

/* Ends it later, from the loop. */
static void link_break(struct ml_http_link *link, CURLcode code)
{
    if (link->err)
        return;
    link->err = ml_new(struct ml_err);
    call_set_failure(link->call, code, link->err);
    ml_task_defer(&link->broken, link->call->client->loop);
}

/* The call ended before there was a connection. */
static void on_link_call_done(void *context, const struct ml_err *err)
{
    struct ml_http_link *link = context;
    link->call = NULL; /* the caller frees it */
    link_end(link, err);
}

/* May the next bytes go? */
static bool link_has_flight(struct ml_http_link *link)
{
    if (link->sent < link->flight.len)
        return true;
    ml_wipe_buf(&link->flight);
    link->flight = link->queued;
    link->queued = ML_BUF_INIT;
    link->sent = 0;
    return link->flight.len > 0;
}

static void on_link_event(evutil_socket_t fd, short what, void *context);

static void link_watch(struct ml_http_link *link, bool writes)
{
    struct event_base *base = ml_loop_base(link->call->client->loop);
    evutil_socket_t fd = event_get_fd(link->event);
    short events = EV_READ | EV_PERSIST;
    if (writes == link->wants_to_write)
        return;
    link->wants_to_write = writes;
    if (writes)
        events |= EV_WRITE;
    event_del(link->event);
    event_assign(link->event, base, fd, events, on_link_event, link);
    event_add(link->event, NULL);
}

static void link_flush(struct ml_http_link *link)
{
    CURLcode code = CURLE_OK;
    while (code == CURLE_OK && link_has_flight(link)) {
        size_t sent = 0;
        code = curl_easy_send(link->call->easy, link->flight.ptr + link->sent,
                              link->flight.len - link->sent, &sent);
        link->sent += sent;
    }
    if (code != CURLE_OK && code != CURLE_AGAIN)
        link_break(link, code);
    link_watch(link, code == CURLE_AGAIN);
}

static void link_receive(struct ml_http_link *link)
{
    char piece[LINK_PIECE];
    CURLcode code = CURLE_AGAIN;
    size_t len = 0;
    int pieces = 0;
    link->is_inside = true;
    while (!link->is_freed && pieces++ < LINK_PIECES &&
           (code = curl_easy_recv(link->call->easy, piece, sizeof piece, &len)) == CURLE_OK &&
           len > 0) {
        link->handler.received(link->context, (struct ml_str){piece, len});
    }
    link->is_inside = false;
    if (link->is_freed)
        free(link);
    else if (pieces > LINK_PIECES)
        ml_task_defer(&link->more, link->call->client->loop);
    else if (code == CURLE_OK)
        link_end(link, NULL);
    else if (code != CURLE_AGAIN)
        link_break(link, code);
}

static void on_link_more(void *context)
{
    struct ml_http_link *link = context;
    if (!link->err)
        link_receive(link);
}

static void on_link_event(evutil_socket_t fd, short what, void *context)
{
    struct ml_http_link *link = context;
    (void)fd;
    if (what & EV_WRITE)
        link_flush(link);
    if (what & EV_READ && !link->err)
        link_receive(link);
}

/* libcurl has connected, and watches the socket no longer. */
static void link_open(struct ml_http_link *link)
{
    struct ml_http_call *call = link->call;
    curl_socket_t fd = CURL_SOCKET_BAD;
    curl_easy_getinfo(call->easy, CURLINFO_ACTIVESOCKET, &fd);
    call_enter(call, CALL_READING);
    if (fd == CURL_SOCKET_BAD) {
        call_set_failure(call, CURLE_COULDNT_CONNECT, call_err(call));
        call_finish(call, call->err);
        return;
    }
    link->event = event_new(ml_loop_base(call->client->loop), fd, EV_READ | EV_PERSIST,
                            on_link_event, link);
    ml_assert(link->event != NULL);
    event_add(link->event, NULL);
    link->handler.open(link->context);
}

struct ml_http_link *ml_http_connect(struct ml_http_client *client,
                                     const struct ml_http_request *request,
                                     const struct ml_http_link_handler *handler, void *context)
{
    static const struct ml_http_handler done_only = {.done = on_link_call_done};
    const struct ml_http_request plain = {
        .method = "GET",
        .url = request->url,
        .tls = request->tls,
        .deadlines = {.connect_ms = request->deadlines.connect_ms},
        .passed_on = true, /* HTTP/1.1 */
        .may_connect = request->may_connect,
    };
    struct ml_http_link *link = ml_new(struct ml_http_link);
    struct pool *pool = pool_new(client, request->tls, true);
    pool->stale = true; /* the link's own: libcurl looks through idle connections of a pool */
    pool->calls++;
    link->handler = *handler;
    link->context = context;
    ml_task_init(&link->more, on_link_more, link);
    ml_task_init(&link->broken, on_link_broken, link);
    link->call = call_new(client, pool, &plain, &done_only, link);
    link->call->link = link;
    curl_easy_setopt(link->call->easy, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(link->call->easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
    return link;
}

size_t ml_http_link_write(struct ml_http_link *link, struct ml_str bytes)
{
    ml_assert(link->event != NULL);
    if (link->err)
        return 0;
    if (ml_buf_append_str(&link->queued, bytes))
        link_flush(link);
    else
        link_break(link, CURLE_SEND_ERROR);
    return link->flight.len - link->sent + link->queued.len;
}
