/* L2 net, private to http_server.c. The connections of a server: what each is doing, the limits in
 * bytes and time, its end.
 *
 * evhttp (2.1.12) reports a connection only when a whole request has arrived. We learn from the
 * bufferevent below it what happens before and between requests: its input buffer reports arriving
 * bytes, and we replace its callbacks while an answer is made; each place says why. This relies
 * on:
 *   - evhttp makes its bufferevent through our hook and sets the callbacks' argument to its
 *     connection, so the two can be matched right after the accept (http_connection_adopt);
 *   - evhttp_connection_free() always calls the close callback first;
 *   - evhttp takes nothing from the input while its read callback is unset, as it is while the
 *     handler is busy (http_connection_guard): an upgraded connection's bytes are ours from the
 *     101 on, also those behind the request. evhttp keeps the request until the close;
 *   - a request that the handler still holds is taken off a connection that fails, and is then
 *     ours to free; in all other cases evhttp frees it. */
#pragma once

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>

#include "base/map.h"
#include "net/http.h"
#include "net/loop.h"

/* The data that waits to be sent to clients, and its memory. A piece of a stream that many of them
 * get is kept once: a thousand who watch the same cost the memory of one. */
struct http_unsent;

struct http_unsent *http_unsent_new(void);
/* The server ends. The memory goes with what is left to send: libevent frees buffers later than
 * their connections. */
void http_unsent_free(struct http_unsent *unsent);

/* How much it is, in bytes, as far as it can be known; `buffered` are those in all output buffers.
 */
size_t http_unsent_bytes(const struct http_unsent *unsent, size_t buffered);

/* Adds the piece, which is not empty, as a chunk of a stream. The same piece written to one stream
 * after the other is kept once. */
void http_unsent_add_chunk(struct http_unsent *unsent, struct evbuffer *output,
                           struct ml_str piece);
/* Adds a copy of the text as it is. */
void http_unsent_add_text(struct evbuffer *output, struct ml_str text);

enum http_phase {
    HTTP_IDLE,     /* between requests */
    HTTP_ARRIVING, /* from the accept or a request's first byte until it is whole */
    HTTP_BUSY,     /* the handler has it */
    HTTP_SENDING,  /* the answer has ended, bytes are left to send */
    HTTP_REFUSED,  /* our own answer to a request that evhttp never sees whole */
    HTTP_ABORTED,  /* closed in the next round of the loop */
};

struct http_connection {
    struct ml_list node; /* in all->fresh, waiting or busy */
    struct http_connections *all;
    struct bufferevent *bev;
    struct evhttp_connection *evcon;
    bufferevent_data_cb evhttp_write; /* evhttp's own callbacks, called through ours */
    bufferevent_event_cb evhttp_event;
    enum http_phase phase;
    int refusal; /* status of HTTP_REFUSED */
    struct ml_timer timer;
    struct ml_task task;
    size_t arrived_bytes; /* of the request under way */
    size_t held_bytes;    /* read but not finished: of this request and of later ones */
    size_t unsent_bytes;  /* at the last check of the timer */
    bool in_head;         /* the empty line after the fields has not come */
    bool has_bad_head;    /* evhttp already has it: refused when the request is whole */
    size_t line_len;      /* of the head's line that is coming in, without its end */
    bool cut;             /* unsent data was dropped; closed in the next round of the loop */
    struct evhttp_request *request;
    struct ml_http_exchange exchange; /* one at a time: HTTP/1.1 answers in order */
    struct ml_http_header *headers;
    bool streaming;
    bool chunked;
    bool upgraded;     /* evhttp has no part in it any more, until it closes */
    bool is_lingering; /* our last word has been written; what the client sends is dropped */
};

/* The connections of one server. */
struct http_connections {
    struct ml_loop *loop;
    struct ssl_ctx_st *tls;       /* NULL: plain; borrowed */
    struct ml_http_limits limits; /* none is 0 */
    void (*refusal)(void *context, int status, struct ml_http_answer *answer); /* or NULL */
    void *context;
    size_t count;
    struct ml_list fresh;   /* made by accept, evhttp's side not known yet */
    struct ml_list waiting; /* for a request; the longest waiting first */
    struct ml_list busy;    /* first the one whose client has read nothing for the longest time */
    size_t held_bytes;      /* of all connections */
    size_t unsent_bytes;    /* in the output buffers of all connections */
    struct http_unsent *unsent;
    struct ml_map by_evcon; /* adopted ones by the address of their evhttp_connection */
};

/* Makes one for a client that is being accepted, and puts it among the fresh ones. It
 * frees itself when evhttp closes it. */
struct http_connection *http_connection_new(struct http_connections *all, struct event_base *base);
/* Matches a fresh one with the connection that evhttp has made for its bufferevent. If evhttp has
 * already dropped that, frees it and returns false. */
bool http_connection_adopt(struct http_connection *connection);
/* Closes at once. Never inside a callback of this very connection. */
void http_connection_end(struct http_connection *connection);

/* The one that `evcon` is the evhttp side of. */
struct http_connection *http_connection_of(struct http_connections *all,
                                           struct evhttp_connection *evcon);

void http_connection_begin_request(
    struct http_connection *connection);                          /* a whole request has arrived */
void http_connection_sending(struct http_connection *connection); /* its answer has ended */
void http_connection_wait(struct http_connection *connection);    /* for the next one */
void http_connection_abort(struct http_connection *connection);   /* closes in the next round */

/* Sets the number of read bytes that are kept. */
void http_connection_set_held(struct http_connection *connection, size_t bytes);

/* Enforces unsent_bytes_max after data was added to the output of `writer`. */
void http_connection_bound_unsent(struct http_connection *writer);

/* Puts our callbacks between the bufferevent and evhttp; needed after each call of evhttp that
 * writes, because it sets its own. */
void http_connection_guard(struct http_connection *connection);

/* From now on what arrives goes to the exchange, and evhttp sees none of it. */
void http_connection_upgrade(struct http_connection *connection);
/* Of an upgraded one. */
void http_connection_pause(struct http_connection *connection, bool paused);
/* Closes an upgraded one when all that was written has been sent. */
void http_connection_finish_upgraded(struct http_connection *connection);

/* The reason phrase of a status; NULL if evhttp's own is right. */
const char *http_reason(int status);
/* Fills in the server's own answer; the caller frees nothing. */
void http_refusal(const struct http_connections *all, int status, struct ml_http_answer *out);
