#include "net/http_options.h"

#include "base/wipe.h"
#include "net/http_proxy.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <strings.h>
#include <sys/socket.h>

/* A peer that vanished without a word is noticed after this, on idle connections too. */
#define DEAD_PEER_S 30L
/* libcurl allocates both per transfer; its defaults of 16 and 64 KiB suit big files. */
#define RECEIVE_BUFFER (16 * 1024L)
#define SEND_BUFFER    (16 * 1024L)
/* How long an unused connection may wait for its next request. */
#define CONNECTION_IDLE_S 90L

static int on_socket(void *context, curl_socket_t fd, curlsocktype purpose)
{
    unsigned int timeout_ms = DEAD_PEER_S * 1000;
    (void)context, (void)purpose;
    /* Keepalive finds a dead peer when nothing is under way; this when something is. */
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
    return CURL_SOCKOPT_OK;
}

static void apply_common(CURL *easy)
{
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, RECEIVE_BUFFER);
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, SEND_BUFFER);
    curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, CONNECTION_IDLE_S);
    curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, DEAD_PEER_S);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, DEAD_PEER_S / 3);
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

static void add(struct curl_slist **list, const char *text)
{
    struct curl_slist *longer = curl_slist_append(*list, text);
    ml_assert(longer != NULL);
    *list = longer;
}

/* Names the server `name` towards TLS while connecting, and speaking HTTP, to where the URL
 * points: what client-go does for tls-server-name. */
static void rename_server(struct ml_http_options *options, CURLU *url, const char *name)
{
    char *host = NULL, *port = NULL;
    if (curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
        curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK) {
        ML_AUTO_FREE char *route = ml_asprintf("::%s:%s", host, port);
        ML_AUTO_FREE char *field = ml_asprintf("Host: %s:%s", host, port);
        add(&options->connect_to, route);
        add(&options->headers, field);
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
        proxy = ml_strdup(proxy_url);
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

static int apply_target(struct ml_http_options *options, CURL *easy, const char *url,
                        const struct ml_http_tls *tls, struct ml_err *err)
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
        r = set_url(easy, changed ? changed : url, err);
        curl_easy_setopt(easy, CURLOPT_CONNECT_TO, options->connect_to);
    }
    curl_free(changed);
    curl_url_cleanup(parts);
    return r;
}

static bool is_token(const char *text)
{
    static const char *const allowed = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                       "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return text[0] && text[strspn(text, allowed)] == '\0';
}

/* libcurl sends a line as it gets it: a line end in a value would smuggle in another field. */
static int apply_headers(struct ml_http_options *options, CURL *easy,
                         const struct ml_http_request *request, struct ml_err *err)
{
    bool typed = false;
    for (size_t i = 0; i < request->header_count; i++) {
        const struct ml_http_header *header = &request->headers[i];
        if (!is_token(header->name) || strpbrk(header->value, "\r\n"))
            return ml_err_set(err, ML_EINVALID, "header %s: not a valid name and value",
                              header->name);
        /* For libcurl "Name:" means to leave a field out and "Name;" that it is empty. */
        ML_AUTO_FREE char *name = ml_asprintf(header->value[0] ? "%s: " : "%s;", header->name);
        ML_AUTO_WIPE char *line = ml_join(ml_str_of(name), ml_str_of(header->value));
        add(&options->headers, line);
        typed = typed || strcasecmp(header->name, "Content-Type") == 0;
    }
    add(&options->headers, "Expect:");
    if (!typed)
        add(&options->headers, "Content-Type:");
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, options->headers);
    return 0;
}

static int apply_method(struct ml_http_options *options, CURL *easy,
                        const struct ml_http_request *request, struct ml_err *err)
{
    const char *method = request->method;
    if (!is_token(method))
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

int ml_http_options_apply(struct ml_http_options *options, CURL *easy,
                          const struct ml_http_request *request, const struct ml_http_tls *tls,
                          struct ml_err *err)
{
    apply_common(easy);
    apply_tls(easy, tls);
    if (request->deadlines.connect_ms > 0)
        /* The call's own timer watches over it; libcurl divides it among addresses. */
        curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)request->deadlines.connect_ms);
    int r = apply_target(options, easy, request->url, tls, err);
    if (r < 0)
        return r;
    r = apply_method(options, easy, request, err);
    if (r < 0)
        return r;
    return apply_headers(options, easy, request, err);
}

void ml_http_options_forget(struct ml_http_options *options)
{
    for (struct curl_slist *line = options->headers; line; line = line->next)
        if (strncasecmp(line->data, "Authorization:", 14) == 0)
            explicit_bzero(line->data, strlen(line->data));
}

void ml_http_options_fini(struct ml_http_options *options)
{
    curl_slist_free_all(options->headers);
    curl_slist_free_all(options->connect_to);
    free(options->body);
    ml_wipe_free(options->proxy);
    *options = (struct ml_http_options){0};
}
