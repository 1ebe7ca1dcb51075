/* L2 net, private to http_server.c and http_exchange.c. Requests and answers, between evhttp and
 * the handler. What a handler calls stands in net/http_server.h. */
#pragma once

#include "net/http_connection.h"

/* evhttp's callback for each request; `server` is a struct ml_http_server. */
void http_exchange_begin(struct evhttp_request *request, void *server);
