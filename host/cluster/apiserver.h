/* L5 script. The embedded API server, asked from C: lua/cluster/apiserver/ in a trusted state of
 * its own. It knows no sockets: who brings a request also brings a sink for the answer.
 *
 * A request is handled at once, on the caller's stack; the sink's functions are called then or
 * later, from the loop. They must not call back into the server or into Lua.
 *
 * In Lua the answer is a userdata with send, start, write, finish, abort and the field on_close, as
 * lua/cluster/meta/host.lua has it. An error that a handler raises is logged with its traceback
 * and answered with a Status of 500, or when an answer has begun, by its abort. */
#pragma once

#include "cluster/trusted.h"
#include "net/http_server.h"

struct ml_apiserver;
struct ml_apiserver_call; /* a request whose answer has not ended */

struct ml_apiserver_options {
    struct ml_loop *loop;     /* borrowed */
    struct ml_clock *clock;   /* borrowed; NULL: the real one */
    struct ml_random *random; /* borrowed; NULL: seeded by the kernel */
    struct ml_log *log;       /* borrowed; NULL: nowhere */
    struct ml_str settings;   /* JSON, for new() of cluster.apiserver; empty: {} */
    bool files_first;         /* as in ml_trusted_options */
    int garbage_percent;      /* the same */
};

/* Makes `require("cluster.apiserver").new(settings)`; Lua beside it finds the server as
 * `require "cluster.apiserver.running"`. ML_EINVALID for settings that are no JSON, ML_ESCRIPT
 * when Lua raises. */
ML_NODISCARD int ml_apiserver_new(const struct ml_apiserver_options *options,
                                  struct ml_apiserver **out, struct ml_err *err);
/* Answers under way are aborted. Not from inside Lua. NULL is fine. */
void ml_apiserver_free(struct ml_apiserver *server);

/* A new server in place of this one, in the same state: modules stay loaded, which is most of the
 * work. Answers under way are aborted; timers and deferred functions of the state, others' too,
 * are forgotten. On failure the server that was there stays, without what is forgotten. Not from
 * what the loop calls. */
ML_NODISCARD int ml_apiserver_reset(struct ml_apiserver *server, struct ml_str settings,
                                    struct ml_err *err);

/* The state it lives in, for other Lua of the host's own beside it. */
struct ml_trusted *ml_apiserver_trusted(struct ml_apiserver *server);

/* All borrowed during the call. */
struct ml_apiserver_request {
    const char *method;
    struct ml_str path;                   /* still %-encoded */
    struct ml_str query;                  /* behind the '?'; empty when there is none */
    const struct ml_http_header *headers; /* names in any case; values of equal names are joined */
    size_t header_count;
    struct ml_str body;
};

/* Where the answer goes: send, alone; or start, any number of writes, and finish. Abort may come
 * at any time. After send, finish and abort nothing comes. */
struct ml_apiserver_sink {
    void (*send)(void *context, const struct ml_http_answer *answer);
    void (*start)(void *context, const struct ml_http_answer *head); /* without a body */
    size_t (*write)(void *context, struct ml_str bytes); /* returns the bytes that wait, this
                                                            process's only */
    void (*finish)(void *context);
    void (*abort)(void *context);
};

/* `sink` is borrowed as long as the answer has not ended. Returns NULL when it has ended before
 * this function does; else the call, which is gone when the answer ends or with
 * ml_apiserver_gone. */
struct ml_apiserver_call *ml_apiserver_handle(struct ml_apiserver *server,
                                              const struct ml_apiserver_request *request,
                                              const struct ml_apiserver_sink *sink, void *context);

/* The client has left: nothing goes to the sink any more, and Lua's on_close is called. */
void ml_apiserver_gone(struct ml_apiserver_call *call);
