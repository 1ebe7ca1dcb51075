/* L2 net, private to the HTTP client. What a request says to libcurl's easy handle, and what a
 * result code of libcurl means. */
#pragma once

#include <curl/curl.h>

#include "net/http.h"

/* ---- options: method, headers, body, TLS, proxy, and what all our requests share ---- */

/* What the handle points at; ended after the handle. */
struct ml_http_options {
    struct curl_slist *headers;
    struct curl_slist *connect_to;
    char *body;
    char *proxy; /* URL, or NULL: none */
};

/* `tls` must outlive the handle. ML_EINVALID when the request cannot be sent as it stands;
 * `options` is to be ended in either case. */
ML_NODISCARD int ml_http_options_apply(struct ml_http_options *options, CURL *easy,
                                       const struct ml_http_request *request,
                                       const struct ml_http_tls *tls, struct ml_err *err);
/* The answer has begun, so the request will not be sent again: overwrites its token, which would
 * stay as long as a watch does. */
void ml_http_options_forget(struct ml_http_options *options);
void ml_http_options_fini(struct ml_http_options *options);

/* The proxy that the environment names for a request: HTTPS_PROXY, HTTP_PROXY and NO_PROXY as Go's
 * golang.org/x/net/http/httpproxy reads them, and so kubectl. libcurl's own reading differs: it
 * also takes ALL_PROXY, and knows no ports in NO_PROXY. */

/* NULL: none, the server is asked directly. `host` as it stands in a URL, an IPv6 address in
 * brackets. The caller frees the result. */
char *ml_http_proxy_from_env(bool https, const char *host, const char *port);

/* Does NO_PROXY's value `list` say so? */
bool ml_http_no_proxy(const char *list, const char *host, const char *port);

/* ---- failures: our kinds, with a message a user can act on: what was tried, with whom, and why it
 * did not work ---- */

/* "host:port" of a URL for messages, with the scheme's port when it names none; the URL
 * itself when it is none. The caller frees it. */
char *ml_http_url_peer(const char *url);
/* The same of a proxy's URL, in words; nothing of a user and password in it. */
char *ml_http_proxy_peer(const char *url);

/* What libcurl says about a transfer that ended with `code`. */
struct ml_http_failure {
    CURLcode code;
    const char *url;
    const char *peer;   /* whom it was met with, for the message */
    const char *detail; /* CURLOPT_ERRORBUFFER, may be empty */
    long os_errno;      /* CURLINFO_OS_ERRNO */
};

/* Fills `err` and returns its kind. */
int ml_http_error_set(struct ml_err *err, const struct ml_http_failure *failure);
