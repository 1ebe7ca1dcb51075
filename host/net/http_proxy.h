/* L2 net. The proxy that the environment names for a request: HTTPS_PROXY, HTTP_PROXY and NO_PROXY
 * as Go's golang.org/x/net/http/httpproxy reads them, and so kubectl. libcurl's own reading
 * differs: it also reads ALL_PROXY, and supports no ports in NO_PROXY. */
#pragma once

#include <stdbool.h>

/* NULL: no proxy, connect directly. `host` as in a URL, an IPv6 address in brackets. The caller
 * frees the result. */
char *ml_http_proxy_from_env(bool https, const char *host, const char *port);

/* Does NO_PROXY's value `list` exclude this host and port from the proxy? */
bool ml_http_no_proxy(const char *list, const char *host, const char *port);
