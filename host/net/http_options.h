/* L2 net, private to the HTTP client. Dresses a libcurl easy handle for one request: method,
 * headers, body, TLS, proxy, and the settings that every request of ours shares. */
#pragma once

#include <curl/curl.h>

#include "net/http_client.h"

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
