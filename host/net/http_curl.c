/* Sets libcurl's options for a request, and turns its result codes into errors. */
#include "net/http_curl.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdio.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/wipe.h"

/* ---- the environment's proxy ---- */

/* The upper-case name counts first. */
static const char *proxy_variable(const char *upper, const char *lower)
{
    const char *value = getenv(upper);
    if (!value || !*value)
        value = getenv(lower);
    return value && *value ? value : NULL;
}

struct address {
    int family; /* AF_INET, AF_INET6, or 0: a name */
    unsigned char bytes[16];
};

static struct address parse_address(struct ml_str text)
{
    struct address address = {0};
    char copy[INET6_ADDRSTRLEN];
    if (text.len >= 2 && text.ptr[0] == '[' && text.ptr[text.len - 1] == ']')
        text = (struct ml_str){text.ptr + 1, text.len - 2};
    if (text.len == 0 || text.len >= sizeof copy)
        return address;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    if (inet_pton(AF_INET, copy, address.bytes) == 1)
        address.family = AF_INET;
    else if (inet_pton(AF_INET6, copy, address.bytes) == 1)
        address.family = AF_INET6;
    return address;
}

static bool same_bits(const unsigned char *a, const unsigned char *b, uint64_t count)
{
    size_t whole = count / 8;
    unsigned char mask = (unsigned char)(0xff00 >> (count % 8));
    return memcmp(a, b, whole) == 0 && (count % 8 == 0 || ((a[whole] ^ b[whole]) & mask) == 0);
}

/* "10.0.0.0/8" */
static bool in_network(struct ml_str entry, const struct address *host)
{
    struct ml_str bits_text = entry;
    const struct address network = parse_address(ml_str_cut(&bits_text, '/'));
    uint64_t bits = 0, bits_max = network.family == AF_INET6 ? 128 : 32;
    return network.family && network.family == host->family && ml_str_to_u64(bits_text, &bits) &&
           bits <= bits_max && same_bits(network.bytes, host->bytes, bits);
}

static bool same_name(struct ml_str a, struct ml_str b)
{
    return a.len == b.len && strncasecmp(a.ptr, b.ptr, a.len) == 0;
}

/* "example.com" means itself and what is below, ".example.com" and "*.example.com" only that. */
static bool is_domain_or_below(struct ml_str entry, struct ml_str host)
{
    if (ml_str_starts(entry, "*."))
        entry = (struct ml_str){entry.ptr + 1, entry.len - 1};
    if (entry.len == 0)
        return false;
    if (entry.ptr[0] != '.' && same_name(entry, host))
        return true;
    if (entry.ptr[0] == '.')
        entry = (struct ml_str){entry.ptr + 1, entry.len - 1};
    if (host.len < entry.len + 1)
        return false;
    size_t below = host.len - entry.len;
    return host.ptr[below - 1] == '.' &&
           same_name(entry, (struct ml_str){host.ptr + below, entry.len});
}

/* Takes ":port" off an entry; an IPv6 address has one only behind brackets. */
static struct ml_str cut_entry_port(struct ml_str *entry)
{
    struct ml_str port = {NULL, 0};
    const char *colon = memrchr(entry->ptr, ':', entry->len);
    size_t len = colon ? (size_t)(colon - entry->ptr) : 0;
    bool single = colon && (entry->ptr[len - (len > 0)] == ']' || !memchr(entry->ptr, ':', len));
    if (!single)
        return port;
    port = (struct ml_str){colon + 1, entry->len - len - 1};
    entry->len = len;
    return port;
}

static bool no_proxy_entry_matches(struct ml_str entry, struct ml_str host,
                                   const struct address *address, const char *port)
{
    if (entry.len == 0)
        return false;
    if (ml_str_is(entry, "*"))
        return true;
    if (memchr(entry.ptr, '/', entry.len))
        return in_network(entry, address);
    struct ml_str own_port = cut_entry_port(&entry);
    if (own_port.len > 0 && !ml_str_is(own_port, port))
        return false;
    const struct address own = parse_address(entry);
    if (own.family)
        return own.family == address->family &&
               same_bits(own.bytes, address->bytes, own.family == AF_INET6 ? 128 : 32);
    return is_domain_or_below(entry, host);
}

bool ml_http_no_proxy(const char *list, const char *host, const char *port)
{
    const struct address address = parse_address(ml_str_of(host));
    for (struct ml_str rest = ml_str_of(list); rest.ptr;)
        if (no_proxy_entry_matches(ml_str_trim(ml_str_cut(&rest, ',')), ml_str_of(host), &address,
                                   port))
            return true;
    return false;
}

/* Loopback goes direct whatever the environment says. */
static bool is_loopback(const char *host)
{
    static const unsigned char v6[16] = {[15] = 1};
    const struct address address = parse_address(ml_str_of(host));
    return strcasecmp(host, "localhost") == 0 ||
           (address.family == AF_INET && address.bytes[0] == 127) ||
           (address.family == AF_INET6 && memcmp(address.bytes, v6, sizeof v6) == 0);
}

char *ml_http_proxy_from_env(bool https, const char *host, const char *port)
{
    const char *proxy = https ? proxy_variable("HTTPS_PROXY", "https_proxy")
                              : proxy_variable("HTTP_PROXY", "http_proxy");
    if (!proxy || is_loopback(host) ||
        ml_http_no_proxy(proxy_variable("NO_PROXY", "no_proxy"), host, port))
        return NULL;
    return strstr(proxy, "://") ? ml_strdup(proxy) : ml_asprintf("http://%s", proxy);
}

/* ---- options ---- */

/* libcurl allocates both per transfer; its defaults of 16 and 64 KiB suit big files. */
#define RECEIVE_BUFFER (16 * 1024L)
#define SEND_BUFFER    (16 * 1024L)
/* How long an unused connection may wait for its next request. */
#define CONNECTION_IDLE_S 90L

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
static void rename_server(struct ml_http_options *options, CURLU *url, const char *name)
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

static bool route_leads_to(const struct ml_http_route *route, const char *url)
{
    return route->origin && ml_str_is(origin_of(url), route->origin);
}

static void route_keep(struct ml_http_route *route, const char *url, const char *proxy)
{
    ml_http_route_fini(route);
    *route = (struct ml_http_route){ml_str_dup(origin_of(url)), ml_strdup(proxy)};
}

void ml_http_route_fini(struct ml_http_route *route)
{
    ml_wipe_free(route->origin);
    ml_wipe_free(route->proxy);
    *route = (struct ml_http_route){NULL, NULL};
}

/* The URL as it stands; libcurl refuses a bad one when it sends. */
static int apply_known_target(struct ml_http_options *options, CURL *easy, const char *url,
                              const struct ml_http_tls *tls, const struct ml_http_route *route,
                              struct ml_err *err)
{
    options->proxy = ml_strdup(route->proxy);
    apply_proxy(easy, options->proxy, tls);
    return set_url(easy, url, err);
}

static int apply_target(struct ml_http_options *options, CURL *easy, const char *url,
                        const struct ml_http_tls *tls, struct ml_http_route *route,
                        struct ml_err *err)
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
static int apply_headers(struct ml_http_options *options, CURL *easy,
                         const struct ml_http_request *request, struct ml_err *err)
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

static int apply_method(struct ml_http_options *options, CURL *easy,
                        const struct ml_http_request *request, struct ml_err *err)
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

int ml_http_options_apply(struct ml_http_options *options, CURL *easy,
                          const struct ml_http_request *request, const struct ml_http_tls *tls,
                          struct ml_http_route *route, struct ml_err *err)
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
    if (request->passed_on)
        curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
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

/* ---- failures ---- */

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

char *ml_http_url_peer(const char *url)
{
    char *peer = url_peer(url);
    return peer ? peer : ml_strdup(url);
}

char *ml_http_proxy_peer(const char *url)
{
    ML_AUTO_FREE char *peer = url_peer(url);
    return ml_asprintf("the proxy%s%s", peer ? " " : "", peer ? peer : "");
}

/* Causes read on in the middle of a sentence: "connection refused". */
static void lower_first(char *text)
{
    if (isupper((unsigned char)text[0]) && islower((unsigned char)text[1]))
        text[0] = (char)tolower((unsigned char)text[0]);
}

/* The bare cause: libcurl's own words around it say less than our context. */
static void describe_failure(const struct ml_http_failure *failure, char *out, size_t size)
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

static int set_connect_error(struct ml_err *err, const struct ml_http_failure *failure)
{
    char cause[CURL_ERROR_SIZE];
    describe_failure(failure, cause, sizeof cause);
    if (failure->os_errno)
        snprintf(cause, sizeof cause, "%s", strerror((int)failure->os_errno));
    lower_first(cause);
    return ml_err_set(err, ML_ENETWORK, "connect to %s: %s", failure->peer, cause);
}

static int set_verify_error(struct ml_err *err, const struct ml_http_failure *failure)
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
static int set_stream_error(struct ml_err *err, const struct ml_http_failure *failure)
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

int ml_http_error_set(struct ml_err *err, const struct ml_http_failure *failure)
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
