/* cluster. The embedded API server on HTTPS: passes requests from a socket to the server's Lua, and
 * its answers back, whole or as a stream. The certificate is made at each start, by the cluster's
 * authority (ml_server_lua_authority); its key never leaves the process. Clients are asked for a
 * certificate of that authority, and a client that has one is its subject: net/tls.h.
 *
 * Limits are those of net/http.h. Requests beyond them get the Status that kube-apiserver gives. A
 * stream has no limit of its own: write returns to Lua how many bytes wait for the client, and Lua
 * cuts a client that does not read. */
#pragma once

#include "cluster/host/apiserver.h"
#include "net/http_server.h"

struct ml_embedded_http;

struct ml_embedded_http_opts {
    struct ml_loop *loop;
    struct ml_clock *clock;       /* for the certificate's time; NULL: the real one */
    struct ml_apiserver *server;  /* borrowed; outlives this */
    const char *address;          /* "127.0.0.1:0", as ml_http_listen takes it */
    struct ml_http_limits limits; /* 0: the default; a body's is always 3 MiB */
    const char *const *names;     /* of the certificate, beside localhost, 127.0.0.1 and ::1 */
    size_t name_count;
};

/* ML_EINVALID: a bad address or name; ML_EIO: cannot listen; ML_ETLS. */
ML_NODISCARD int ml_embedded_http_new(const struct ml_embedded_http_opts *opts,
                                      struct ml_embedded_http **out, struct ml_err *err);
/* Closes all connections and ends requests in progress. Not to be called from inside Lua. NULL is
 * fine. */
void ml_embedded_http_free(struct ml_embedded_http *http);

int ml_embedded_http_port(const struct ml_embedded_http *http);
/* The CA certificate for clients, PEM; lives as long as the server's Lua. */
const char *ml_embedded_http_ca(const struct ml_embedded_http *http);
