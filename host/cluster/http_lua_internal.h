/* cluster, private to http_lua.c and http_call_lua.c. What the two kinds of requests share: the
 * client, and the sockets. */
#pragma once

#include "cluster/http_lua.h"
#include "cluster/trusted_internal.h"

#define HTTP_CLIENT "cluster.http.client"

/* The library, as the upvalue of each function of the module. */
struct http_library {
    struct ml_http_library parts;
    int posts; /* under way */
    int calls;
};

/* A full userdata: whom a server must prove to be. */
struct http_client {
    struct http_library *library;
    char *ca_pem, *server_name; /* NULL: the system's roots; the URL's host */
    struct ml_http_tls tls;
};

/* A socket that can connect to an address, or -1. */
int http_lua_socket(const struct http_library *library, const struct sockaddr *address);

/* http_call_lua.c. client:request(options) -> call, or nil and why not */
ML_RAISES int http_client_request(lua_State *L);
/* http_call_lua.c. Makes the type of calls known to the state. */
void http_call_open(lua_State *L);
