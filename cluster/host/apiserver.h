/* cluster. The embedded API server for callers in C: cluster/apiserver/ in a Lua state
 * of its own (server_lua.h). It has no sockets: the caller passes each request with a sink for its
 * answer.
 *
 * A request is handled at once, on the caller's stack, up to its answer or to where it waits for a
 * webhook. The sink's functions are called during that call or later from the loop; they must not
 * call the server or Lua.
 *
 * In Lua the answer is a userdata with send, start, write, finish, abort, upgrade, pause and the
 * fields on_close and on_data, as cluster/meta/host.lua has it. An error that a handler raises
 * is logged with its traceback. The client gets a Status with code 500, or an aborted answer if it
 * had begun. */
#pragma once

#include "cluster/host/server_lua.h"
#include "net/http_server.h"

struct ml_apiserver;
struct ml_apiserver_call; /* a request whose answer has not ended */

struct ml_apiserver_options {
    struct ml_loop *loop;     /* borrowed */
    struct ml_clock *clock;   /* borrowed; NULL: the real one */
    struct ml_random *random; /* borrowed; NULL: seeded by the kernel */
    struct ml_log *log;       /* borrowed; NULL: nowhere */
    struct ml_str settings;   /* JSON, for new() of cluster.apiserver; empty: {} */
    bool files_first;         /* as in ml_server_lua_options */
    int garbage_percent;      /* the same */
};

/* Makes `require("cluster.apiserver").new(settings)`; Lua beside it finds the server as
 * `require "cluster.apiserver.running"`. ML_EINVALID for settings that are no JSON, ML_ESCRIPT
 * when Lua raises. */
ML_NODISCARD int ml_apiserver_new(const struct ml_apiserver_options *options,
                                  struct ml_apiserver **out, struct ml_err *err);
/* Aborts answers in progress. Not to be called from inside Lua. NULL is fine. */
void ml_apiserver_free(struct ml_apiserver *server);

/* Replaces the server by a new one in the same Lua state: modules stay loaded, which is most of the
 * start-up cost. Answers in progress are aborted; all timers and deferred functions of the state
 * are cancelled. On failure the old server stays, without its timers. Not to be called from a
 * callback of the loop. */
ML_NODISCARD int ml_apiserver_reset(struct ml_apiserver *server, struct ml_str settings,
                                    struct ml_err *err);

/* The Lua state of the server, for the host's other Lua modules. */
struct ml_server_lua *ml_apiserver_lua(struct ml_apiserver *server);

struct ml_tls_client; /* net/tls.h */

/* All borrowed during the call. */
struct ml_apiserver_request {
    const char *method;
    struct ml_str path;                   /* still %-encoded */
    struct ml_str query;                  /* behind the '?'; empty when there is none */
    const struct ml_http_header *headers; /* names in any case; values of equal names are joined */
    size_t header_count;
    struct ml_str body;
    const struct ml_tls_client *certificate; /* who shows one; NULL: nobody */
    const char *client;                      /* its address; NULL: it is in this process */
};

/* Receives the answer: either one send, or start, any number of writes, and finish. Abort may come
 * at any time. Nothing follows send, finish or abort. */
struct ml_apiserver_sink {
    void (*send)(void *context, const struct ml_http_answer *answer);
    void (*start)(void *context, const struct ml_http_answer *head); /* without a body */
    size_t (*write)(void *context, struct ml_str bytes); /* returns the bytes that wait, this
                                                            process's only */
    void (*finish)(void *context);
    void (*abort)(void *context);
    /* In place of start: raw bytes in both directions. False: the connection cannot be upgraded,
     * and the answer is still to be given. NULL: no connection of this caller can. */
    bool (*upgrade)(void *context, const struct ml_http_header *headers, size_t count);
    void (*pause)(void *context, bool paused); /* of upgraded ones: the client has to wait */
};

/* `sink` is borrowed until the answer ends. Returns NULL if the answer ended during this call; else
 * the call, which is freed when the answer ends or by ml_apiserver_gone. */
struct ml_apiserver_call *ml_apiserver_handle(struct ml_apiserver *server,
                                              const struct ml_apiserver_request *request,
                                              const struct ml_apiserver_sink *sink, void *context);

/* Passes on bytes that the client of an upgraded connection has sent. */
void ml_apiserver_received(struct ml_apiserver_call *call, struct ml_str bytes);

/* The client has disconnected: the sink gets nothing more, and Lua's on_close is called. */
void ml_apiserver_gone(struct ml_apiserver_call *call);
