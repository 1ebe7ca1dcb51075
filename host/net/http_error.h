/* L2 net, private to the HTTP client. Turns libcurl's result codes into our kinds, with a
 * message a user can act on: what was tried, with whom, and why it did not work. */
#pragma once

#include <curl/curl.h>

#include "base/err.h"

/* "host:port" of a URL for messages, with the scheme's port when it names none; the URL
 * itself when it is none. The caller frees it. */
char *ml_http_url_peer(const char *url);
/* The same of a proxy's URL, in words; nothing of a user and password in it. */
char *ml_http_proxy_peer(const char *url);

/* What libcurl tells about a transfer that ended with `code`. */
struct ml_http_failure {
    CURLcode code;
    const char *url;
    const char *peer;   /* whom it was met with, for the message */
    const char *detail; /* CURLOPT_ERRORBUFFER, may be empty */
    long os_errno;      /* CURLINFO_OS_ERRNO */
};

/* Fills `err` and returns its kind. */
int ml_http_error_set(struct ml_err *err, const struct ml_http_failure *failure);
