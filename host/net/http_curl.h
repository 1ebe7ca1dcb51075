/* L2 net, private to the HTTP client. The options of libcurl's easy handle for a request, and the
 * errors for libcurl's result codes. */
#pragma once

#include <curl/curl.h>

#include "net/http.h"

/* ---- options: method, headers, body, TLS, proxy, and the options of all our requests ---- */

/* Data that the handle points at; freed after the handle. */
struct ml_http_options {
    struct curl_slist *headers;
    struct curl_slist *connect_to;
    char *body;
    char *proxy; /* URL, or NULL: none */
};

/* Through which proxy the last origin was reached: nearly all requests of a pool go to one server,
 * and what the environment says about it is looked up once. */
struct ml_http_route {
    char *origin; /* the URL up to its path; NULL: none yet */
    char *proxy;  /* URL, or NULL: none */
};

void ml_http_route_fini(struct ml_http_route *route);

/* `tls` must outlive the handle; `route` is that of the requests before, with the same `tls`.
 * ML_EINVALID when the request cannot be sent as it stands; `options` is to be ended in either
 * case. */
ML_NODISCARD int ml_http_options_apply(struct ml_http_options *options, CURL *easy,
                                       const struct ml_http_request *request,
                                       const struct ml_http_tls *tls, struct ml_http_route *route,
                                       struct ml_err *err);
/* The answer has begun, so the request will not be sent again: overwrites its token, which would
 * stay as long as a watch does. */
void ml_http_options_forget(struct ml_http_options *options);
void ml_http_options_fini(struct ml_http_options *options);

/* The proxy that the environment names for a request: HTTPS_PROXY, HTTP_PROXY and NO_PROXY as Go's
 * golang.org/x/net/http/httpproxy reads them, and so kubectl. libcurl's own reading differs: it
 * also reads ALL_PROXY, and supports no ports in NO_PROXY. */

/* NULL: no proxy, connect directly. `host` as in a URL, an IPv6 address in
 * brackets. The caller frees the result. */
char *ml_http_proxy_from_env(bool https, const char *host, const char *port);

/* Does NO_PROXY's value `list` exclude this host and port from the proxy? */
bool ml_http_no_proxy(const char *list, const char *host, const char *port);

/* ---- failures: our kinds, with a message a user can act on: what was tried, with whom, and why it
 * did not work ---- */

/* "host:port" of a URL for messages, with the scheme's port when it names none; the text
 * itself when it is not a URL. The caller frees it. */
char *ml_http_url_peer(const char *url);
/* The same for a proxy's URL, in words, without user and password. */
char *ml_http_proxy_peer(const char *url);

/* A transfer that failed with `code`. */
struct ml_http_failure {
    CURLcode code;
    const char *url;
    const char *peer;   /* server or proxy, for the message */
    const char *detail; /* CURLOPT_ERRORBUFFER, may be empty */
    long os_errno;      /* CURLINFO_OS_ERRNO */
};

/* Fills `err` and returns its kind. */
int ml_http_error_set(struct ml_err *err, const struct ml_http_failure *failure);
