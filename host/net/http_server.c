/* The HTTP server: requests and answers between evhttp and the handler; its connections, what each
 * of them is doing, their limits in bytes and time, and their ends.
 *
 * evhttp (2.1.12) reports a connection only when a whole request has arrived. We learn from the
 * bufferevent below it what happens before and between requests: its input buffer reports arriving
 * bytes, and we replace its callbacks while an answer is made; each place says why. This relies
 * on:
 *   - evhttp makes its bufferevent through our hook and sets the callbacks' argument to its
 *     connection, so the two can be matched right after the accept (connection_adopt);
 *   - evhttp_connection_free() always calls the close callback first;
 *   - evhttp takes nothing from the input while its read callback is unset, as it is while the
 *     handler is busy (connection_guard): an upgraded connection's bytes are ours from the
 *     101 on, also those behind the request. evhttp keeps the request until the close;
 *   - a request that the handler still holds is taken off a connection that fails, and is then
 *     ours to free; in all other cases evhttp frees it. */
#include "net/http_server.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/map.h"
#include "net/local.h"
#include "net/tcp.h"

#define LINGER_MS INT64_C(2000) /* for a refused client to stop sending and read why */
/* The kernel's send buffer for a client. Left alone, the kernel accepts up to 4 MiB before we
 * notice that a client does not read. */
#define SEND_BYTES (256 * 1024)
/* A client may send this much ahead while its request is being answered, whatever others do. */
#define AHEAD_BYTES    ((size_t)64 * 1024)
#define UPGRADED_PIECE ((size_t)16 * 1024) /* of what is received in one call */

/* ---- unsent data: buffers that share large pieces, and their memory ---- */

/* The payload of one TLS record. libevent hands one piece to one SSL_write, which counts as nothing
 * sent until all of it is, and takes twice its memory. */
#define PIECE_BYTES ((size_t)16 * 1024)
/* The approximate memory that libevent and the heap need for one piece in a buffer. */
#define PIECE_COST ((size_t)128)

/* Pieces of streams that are kept once for all who get them: smaller ones are cheaper copied, and
 * of larger ones none is kept for the next. */
#define SHARED_MIN ((size_t)1024)
#define SHARED_MAX ((size_t)4 * 1024 * 1024)

/* A chunk with its frame. */
struct block {
    struct unsent *unsent;
    size_t refs;
    struct ml_str text; /* in `bytes`, without the frame */
    size_t len;
    char bytes[];
};

/* The data that waits to be sent to clients, and its memory. A piece of a stream that many of them
 * get is kept once: a thousand who watch the same cost the memory of one. The memory goes with what
 * is left to send: libevent frees buffers later than their connections. */
struct unsent {
    size_t refs;        /* the server and each block */
    size_t block_bytes; /* memory of all blocks and of what refers to them */
    size_t referenced;  /* bytes that buffers have by reference */
    struct block *last; /* of the latest large piece */
};

static struct unsent *unsent_new(void)
{
    struct unsent *unsent = ml_new(struct unsent);
    unsent->refs = 1;
    return unsent;
}

static void unsent_unref(struct unsent *unsent)
{
    if (--unsent->refs == 0)
        free(unsent);
}

static struct block *block_new(struct unsent *unsent, struct ml_str text)
{
    char size[24];
    size_t size_len = (size_t)snprintf(size, sizeof size, "%zx\r\n", text.len);
    size_t len = size_len + text.len + strlen("\r\n");
    struct block *block = ml_alloc(sizeof *block + len);
    block->unsent = unsent;
    block->refs = 1;
    block->text = (struct ml_str){block->bytes + size_len, text.len};
    block->len = len;
    memcpy(block->bytes, size, size_len);
    memcpy(block->bytes + size_len, text.ptr, text.len);
    memcpy(block->bytes + size_len + text.len, "\r\n", strlen("\r\n"));
    unsent->refs++;
    unsent->block_bytes += sizeof *block + len;
    return block;
}

static void block_unref(struct block *block)
{
    if (!block || --block->refs > 0)
        return;
    block->unsent->block_bytes -= sizeof *block + block->len;
    unsent_unref(block->unsent);
    free(block);
}

/* The buffer has sent, or dropped, a piece of a block. */
static void on_block_piece_gone(const void *data, size_t len, void *context)
{
    struct block *block = context;
    (void)data;
    block->unsent->block_bytes -= PIECE_COST;
    block->unsent->referenced -= len;
    block_unref(block);
}

/* Adds it to a buffer without copying it; the buffer has references then. */
static void block_send(struct block *block, struct evbuffer *output)
{
    for (size_t at = 0, len; at < block->len; at += len) {
        len = ML_MIN(block->len - at, PIECE_BYTES);
        int r = evbuffer_add_reference(output, block->bytes + at, len, on_block_piece_gone, block);
        ml_assert(r == 0);
        block->refs++;
        block->unsent->block_bytes += PIECE_COST;
        block->unsent->referenced += len;
    }
}

static void unsent_free(struct unsent *unsent)
{
    block_unref(ml_take(&unsent->last));
    unsent_unref(unsent);
}

static void unsent_add_text(struct evbuffer *output, struct ml_str text)
{
    for (size_t len; text.len; text.ptr += len, text.len -= len) {
        len = ML_MIN(text.len, PIECE_BYTES);
        evbuffer_add(output, text.ptr, len);
    }
}

/* Adds a piece, which is not empty, as evhttp_send_reply_chunk does, but small ones copied to the
 * buffer's end: each block is a TLS record and a system call of its own. */
static void unsent_add_chunk(struct unsent *unsent, struct evbuffer *output, struct ml_str piece)
{
    if (piece.len < SHARED_MIN || piece.len > SHARED_MAX) {
        evbuffer_add_printf(output, "%zx\r\n", piece.len);
        unsent_add_text(output, piece);
        evbuffer_add(output, "\r\n", 2);
        return;
    }
    if (!unsent->last || !ml_str_eq(unsent->last->text, piece)) {
        block_unref(unsent->last);
        unsent->last = block_new(unsent, piece);
    }
    block_send(unsent->last, output);
}

/* ---- a connection ---- */

enum phase {
    HTTP_IDLE,     /* between requests */
    HTTP_ARRIVING, /* from the accept or a request's first byte until it is whole */
    HTTP_BUSY,     /* the handler has it */
    HTTP_SENDING,  /* the answer has ended, bytes are left to send */
    HTTP_REFUSED,  /* our own answer to a request that evhttp never sees whole */
    HTTP_ABORTED,  /* closed in the next round of the loop */
};

struct connection {
    struct ml_list node; /* in server->fresh, waiting or busy */
    struct ml_http_server *server;
    struct bufferevent *bev;
    struct evhttp_connection *evcon;
    bufferevent_data_cb evhttp_write; /* evhttp's own callbacks, called through ours */
    bufferevent_event_cb evhttp_event;
    enum phase phase;
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

struct ml_http_server {
    struct ml_loop *loop;
    struct ssl_ctx_st *tls;       /* NULL: plain */
    struct ml_http_limits limits; /* none is 0 */
    ml_http_handle *handle;
    void (*refusal)(void *context, int status, struct ml_http_answer *answer); /* or NULL */
    void *context;
    struct evhttp *http;
    struct evconnlistener *listener;
    bool local; /* a local socket */
    struct ml_timer accepting;
    struct event *adopt;
    size_t count;           /* of its connections */
    struct ml_list fresh;   /* made by accept, evhttp's side not known yet */
    struct ml_list waiting; /* for a request; the longest waiting first */
    struct ml_list busy;    /* first the one whose client has read nothing for the longest time */
    size_t held_bytes;      /* of all connections */
    size_t unsent_bytes;    /* in the output buffers of all connections */
    struct unsent *unsent;
    struct ml_map by_evcon; /* adopted ones by the address of their evhttp_connection */
};

static void connection_start_timer(struct connection *connection, int64_t ms)
{
    ml_timer_start(&connection->timer, ms * ML_NS_PER_MS);
}

static void connection_move_to(struct connection *connection, struct ml_list *list)
{
    ml_list_remove(&connection->node);
    ml_list_push(list, &connection->node);
}

/* Never inside a callback of this very connection. */
static void connection_end(struct connection *connection)
{
    evhttp_connection_free(connection->evcon); /* on_connection_closed frees the rest */
}

static struct ml_str evcon_key(const struct connection *connection)
{
    return (struct ml_str){(const char *)&connection->evcon, sizeof connection->evcon};
}

static struct connection *connection_of(struct ml_http_server *server,
                                        struct evhttp_connection *evcon)
{
    struct ml_str key = {(const char *)&evcon, sizeof evcon};
    struct connection *connection = ml_map_get(&server->by_evcon, key);
    ml_assert(connection != NULL);
    return connection;
}

static void connection_set_held(struct connection *connection, size_t bytes)
{
    connection->server->held_bytes += bytes - connection->held_bytes;
    connection->held_bytes = bytes;
}

/* A request with more bytes than this cannot be within the limits. */
static size_t arrived_max(const struct ml_http_server *server)
{
    return server->limits.header_bytes_max + server->limits.body_bytes_max;
}

/* Checks a piece of a head; false for a NUL. */
static bool connection_check_head_bytes(struct connection *connection, const char *bytes,
                                        size_t len)
{
    for (size_t i = 0; i < len && connection->in_head; i++) {
        if (bytes[i] == '\0')
            return false;
        if (bytes[i] == '\n') {
            connection->in_head = connection->line_len > 0;
            connection->line_len = 0;
        } else if (bytes[i] != '\r') {
            connection->line_len++;
        }
    }
    return true;
}

/* Checks the last `len` bytes that came in. evhttp ends a line at the first NUL, so a field would
 * have another value for us than for its sender. */
static bool connection_check_head(struct connection *connection, size_t len)
{
    struct evbuffer *input = bufferevent_get_input(connection->bev);
    struct evbuffer_ptr at;
    struct evbuffer_iovec piece;
    size_t begin = evbuffer_get_length(input) - len;
    while (connection->in_head && len > 0 &&
           evbuffer_ptr_set(input, &at, begin, EVBUFFER_PTR_SET) == 0 &&
           evbuffer_peek(input, (ev_ssize_t)len, &at, &piece, 1) > 0) {
        size_t got = ML_MIN(piece.iov_len, len);
        if (!connection_check_head_bytes(connection, piece.iov_base, got))
            return false;
        begin += got;
        len -= got;
    }
    return true;
}

static void connection_begin_request(struct connection *connection)
{
    connection->phase = HTTP_BUSY;
    ml_timer_stop(&connection->timer);
    connection_move_to(connection, &connection->server->busy);
}

/* The answer has ended. */
static void connection_sending(struct connection *connection)
{
    connection->phase = HTTP_SENDING;
    connection->unsent_bytes = SIZE_MAX;
    connection_start_timer(connection, connection->server->limits.arrival_ms);
}

/* For the next request. */
static void connection_wait(struct connection *connection)
{
    const struct ml_http_limits *limits = &connection->server->limits;
    /* Bytes that are here already are the beginning of the next request. */
    connection->arrived_bytes = evbuffer_get_length(bufferevent_get_input(connection->bev));
    connection_set_held(connection, connection->arrived_bytes);
    connection->in_head = true;
    connection->line_len = 0;
    connection->phase = connection->arrived_bytes ? HTTP_ARRIVING : HTTP_IDLE;
    connection_start_timer(connection,
                           connection->arrived_bytes ? limits->arrival_ms : limits->idle_ms);
    connection_move_to(connection, &connection->server->waiting);
    connection->has_bad_head = !connection_check_head(connection, connection->arrived_bytes);
}

static void connection_abort(struct connection *connection)
{
    /* Later: the caller may run inside a callback of evhttp for this connection. */
    connection->phase = HTTP_ABORTED;
    ml_task_defer(&connection->task, connection->server->loop);
}

/* The reasons that evhttp does not know, and one that has been renamed. */
static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {
        {400, "Bad Request"},
        {405, "Method Not Allowed"},
        {413, "Request Entity Too Large"},
        {422, "Unprocessable Entity"},
        {429, "Too Many Requests"},
        {501, "Not Implemented"},
    };
    for (size_t i = 0; i < ML_COUNT(reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return NULL; /* evhttp's */
}

/* Fills in the server's own answer; the caller frees nothing. */
static void make_refusal(const struct ml_http_server *server, int status,
                         struct ml_http_answer *out)
{
    *out = (struct ml_http_answer){.status = status,
                                   .content_type = "text/plain; charset=utf-8",
                                   .body = ml_str_of(reason_of(status))};
    if (server->refusal)
        server->refusal(server->context, status, out);
}

/* ---- our last word on a connection ---- */

static void connection_set_send_bytes(struct bufferevent *bev, int bytes)
{
    setsockopt(bufferevent_getfd(bev), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

static void send_close_notify(struct bufferevent *bev, SSL *ssl)
{
    int r = SSL_shutdown(ssl);
    if (r < 0 && SSL_get_error(ssl, r) == SSL_ERROR_WANT_WRITE) {
        /* The client reads so slowly that the socket is full: make room, as nothing comes
         * afterwards. */
        connection_set_send_bytes(bev, 2 * SEND_BYTES);
        SSL_shutdown(ssl);
    }
    ERR_clear_error();
}

/* Drops what a client goes on sending after our last word: closing with unread bytes would reset
 * the connection, and the client would lose our answer. Don't use `context`: a pending call of
 * evhttp's read callback may pass an argument of its own. */
static void on_discarded_input(struct bufferevent *bev, void *context)
{
    struct evbuffer *input = bufferevent_get_input(bev);
    (void)context;
    evbuffer_drain(input, evbuffer_get_length(input));
}

static void on_last_byte_sent(struct bufferevent *bev, void *context)
{
    struct connection *connection = context;
    SSL *ssl = bufferevent_openssl_get_ssl(bev);
    if (evbuffer_get_length(bufferevent_get_output(bev)))
        return;
    if (ssl)
        send_close_notify(bev, ssl);
    shutdown(bufferevent_getfd(bev), SHUT_WR);
    connection->unsent_bytes = 0;
    connection_start_timer(connection, LINGER_MS);
}

static void on_lingering_closed(struct bufferevent *bev, short what, void *context)
{
    (void)bev, (void)what;
    connection_end(context);
}

/* Sends what waits, and then waits a little for the client to close. */
static void connection_linger(struct connection *connection)
{
    connection->is_lingering = true;
    connection_set_held(connection, 0);
    on_discarded_input(connection->bev, NULL);
    bufferevent_setcb(connection->bev, on_discarded_input, on_last_byte_sent, on_lingering_closed,
                      connection);
    bufferevent_enable(connection->bev, EV_READ | EV_WRITE);
    if (evbuffer_get_length(bufferevent_get_output(connection->bev)) == 0)
        bufferevent_trigger(connection->bev, EV_WRITE, BEV_TRIG_DEFER_CALLBACKS);
}

/* ---- refusing a request before it is whole ---- */

static void connection_send_refusal(struct connection *connection)
{
    struct evbuffer *output = bufferevent_get_output(connection->bev);
    struct ml_http_answer answer = {0};
    make_refusal(connection->server, connection->refusal, &answer);
    evbuffer_add_printf(output,
                        "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                        "Connection: close\r\n\r\n",
                        answer.status, reason_of(answer.status), answer.content_type,
                        answer.body.len);
    evbuffer_add(output, answer.body.ptr, answer.body.len);
    connection_linger(connection);
    connection_start_timer(connection, LINGER_MS);
}

/* evhttp would read all of the request, or answer with an HTML page and a reset. So evhttp is cut
 * off from this connection, and we answer ourselves, in a task outside this callback. */
static void connection_refuse(struct connection *connection, int status)
{
    connection->phase = HTTP_REFUSED;
    connection_set_held(connection, 0);
    connection->refusal = status;
    bufferevent_setcb(connection->bev, NULL, NULL, on_lingering_closed, connection);
    ml_task_defer(&connection->task, connection->server->loop);
}

static void on_connection_task(void *context)
{
    struct connection *connection = context;
    if (connection->phase == HTTP_REFUSED)
        connection_send_refusal(connection);
    else
        connection_end(connection);
}

/* ---- bytes, time and the end ---- */

/* Drops at once what waits for the client and what it sent ahead; the connection closes in the next
 * round of the loop, as the handler may be writing to other connections right now. */
static void connection_cut(struct connection *connection)
{
    struct evbuffer *output = bufferevent_get_output(connection->bev);
    struct evbuffer *input = bufferevent_get_input(connection->bev);
    connection->cut = true;
    bufferevent_disable(connection->bev, EV_READ | EV_WRITE);
    evbuffer_unfreeze(output, 1); /* a bufferevent keeps its own from being drained by others */
    evbuffer_drain(output, evbuffer_get_length(output));
    evbuffer_freeze(output, 1);
    evbuffer_drain(input, evbuffer_get_length(input));
    connection_set_held(connection, 0);
    ml_task_defer(&connection->task, connection->server->loop);
}

/* The connection to close when too much input is held: the one whose request has been arriving for
 * the longest time, or else one that sent much ahead while a request is being answered. */
static struct connection *find_holder_to_close(struct connection *reader)
{
    struct ml_http_server *server = reader->server;
    ml_list_each_entry (struct connection, other, &server->waiting) {
        if (other != reader && other->phase == HTTP_ARRIVING && other->held_bytes > 0)
            return other;
    }
    ml_list_each_entry (struct connection, other, &server->busy) {
        if (!other->cut && evbuffer_get_length(bufferevent_get_input(other->bev)) > AHEAD_BYTES)
            return other;
    }
    return NULL;
}

static void bound_held_bytes(struct connection *reader)
{
    struct ml_http_server *server = reader->server;
    struct connection *victim;
    while (server->held_bytes > server->limits.arrived_bytes_max &&
           (victim = find_holder_to_close(reader))) {
        if (victim->phase == HTTP_ARRIVING)
            connection_end(victim);
        else
            connection_cut(victim);
    }
}

/* Runs before evhttp sees the bytes. */
static void on_connection_input(struct evbuffer *input, const struct evbuffer_cb_info *info,
                                void *context)
{
    struct connection *connection = context;
    struct ml_http_server *server = connection->server;
    (void)input;
    if (info->n_added == 0)
        return;
    if (connection->phase == HTTP_REFUSED || connection->phase == HTTP_ABORTED ||
        connection->is_lingering)
        return;
    connection_set_held(connection, connection->held_bytes + info->n_added);
    if (connection->phase == HTTP_IDLE) {
        connection->phase = HTTP_ARRIVING;
        connection_start_timer(connection, server->limits.arrival_ms);
    }
    if (connection->phase != HTTP_ARRIVING) {
        bound_held_bytes(connection);
        return;
    }
    connection->arrived_bytes += info->n_added;
    if (connection->arrived_bytes > arrived_max(server))
        connection_refuse(connection, 413);
    else if (!connection_check_head(connection, info->n_added))
        connection_refuse(connection, 400);
    else
        bound_held_bytes(connection);
}

/* Bytes have been added to the output, or been sent. A client that takes some moves behind those
 * that do not. */
static void on_connection_output(struct evbuffer *output, const struct evbuffer_cb_info *info,
                                 void *context)
{
    struct connection *connection = context;
    bool is_ours = connection->phase == HTTP_BUSY || connection->phase == HTTP_SENDING;
    (void)output;
    connection->server->unsent_bytes += info->n_added - info->n_deleted;
    if (is_ours && (info->n_deleted || info->orig_size == 0))
        connection_move_to(connection, &connection->server->busy);
}

/* Enforces unsent_bytes_max after data was added to the output of `writer`. */
static void connection_bound_unsent(struct connection *writer)
{
    struct ml_http_server *server = writer->server;
    while (ml_http_server_unsent(server) > server->limits.unsent_bytes_max) {
        struct connection *victim = NULL;
        ml_list_each (node, &server->busy) {
            victim = ml_container_of(node, struct connection, node);
            if (victim != writer && !victim->cut &&
                evbuffer_get_length(bufferevent_get_output(victim->bev)) > 0)
                break;
            victim = NULL;
        }
        if (!victim)
            return;
        connection_cut(victim);
    }
}

/* Over TLS a write callback may come when new bytes have been added since (it is deferred, and
 * the length is not looked at again); evhttp would take it for the end of the answer, and cut
 * that off or mix it up with the next request. */
static void on_output_written(struct bufferevent *bev, void *context)
{
    struct connection *connection = context;
    if (!connection->cut && evbuffer_get_length(bufferevent_get_output(bev)) == 0)
        connection->evhttp_write(bev, connection->evcon);
}

static void on_connection_event(struct bufferevent *bev, short what, void *context)
{
    struct connection *connection = context;
    connection->evhttp_event(bev, what, connection->evcon); /* frees the connection */
}

/* Puts our callbacks between the bufferevent and evhttp; needed after each call of evhttp that
 * writes, because it sets its own. */
static void connection_guard(struct connection *connection)
{
    /* No read callback: evhttp's own would end the process when bytes of the next request come
     * in while this one is being answered. They stay in the input buffer. */
    bufferevent_setcb(connection->bev, NULL, on_output_written, on_connection_event, connection);
    /* evhttp stops reading while a handler works, and would see a client's close only when it
     * writes the next time. */
    bufferevent_enable(connection->bev, EV_READ);
}

/* ---- upgraded connections ---- */

/* evhttp may call this with an argument of its own, from a call that it had put off. */
static void on_upgraded_input(struct bufferevent *bev, void *context)
{
    struct evbuffer *input = bufferevent_get_input(bev);
    char piece[UPGRADED_PIECE];
    bufferevent_getcb(bev, NULL, NULL, NULL, &context);
    struct connection *connection = context;
    struct ml_http_exchange *exchange = &connection->exchange;
    while (connection->phase == HTTP_BUSY && !connection->cut &&
           (bufferevent_get_enabled(bev) & EV_READ)) {
        int len = evbuffer_remove(input, piece, sizeof piece);
        connection_set_held(connection, evbuffer_get_length(input));
        if (len <= 0)
            break;
        exchange->received(exchange->context, (struct ml_str){piece, (size_t)len});
    }
}

static void connection_pause(struct connection *connection, bool paused)
{
    if (paused) {
        bufferevent_disable(connection->bev, EV_READ);
        return;
    }
    bufferevent_enable(connection->bev, EV_READ);
    /* libevent would notice the bytes that are there only when more come. */
    if (evbuffer_get_length(bufferevent_get_input(connection->bev)) > 0)
        bufferevent_trigger(connection->bev, EV_READ, BEV_TRIG_DEFER_CALLBACKS);
}

/* From now on what arrives goes to the exchange, and evhttp sees none of it. */
static void connection_upgrade(struct connection *connection)
{
    connection->upgraded = true;
    bufferevent_setcb(connection->bev, on_upgraded_input, NULL, on_connection_event, connection);
    bufferevent_enable(connection->bev, EV_WRITE); /* evhttp only does while it answers */
    connection_pause(connection, false);
}

/* Closes when all that was written has been sent. */
static void connection_finish_upgraded(struct connection *connection)
{
    connection_sending(connection);
    connection_linger(connection);
}

/* ---- the timer, and the end ---- */

static void on_connection_timer(void *context)
{
    struct connection *connection = context;
    size_t unsent = evbuffer_get_length(bufferevent_get_output(connection->bev));
    if (connection->phase == HTTP_SENDING && unsent < connection->unsent_bytes) {
        connection->unsent_bytes = unsent; /* slow, but the client reads */
        connection_start_timer(connection, connection->server->limits.arrival_ms);
        return;
    }
    connection_end(connection);
}

/* Answers a client that speaks plain HTTP to a TLS port, as Go's server does. */
static void answer_plain_http(struct bufferevent *bev)
{
    static const char text[] = "HTTP/1.0 400 Bad Request\r\n\r\n"
                               "Client sent an HTTP request to an HTTPS server.\n";
    char rest[4096];
    bool is_http = false;
    for (unsigned long error; (error = bufferevent_get_openssl_error(bev));)
        is_http |= ERR_GET_REASON(error) == SSL_R_HTTP_REQUEST;
    if (!is_http)
        return;
    /* Unread bytes would make the close a reset. */
    while (recv(bufferevent_getfd(bev), rest, sizeof rest, MSG_DONTWAIT) > 0)
        ;
    send(bufferevent_getfd(bev), text, sizeof text - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* libevent frees the TLS state without a close_notify; without one, a client cannot distinguish the
 * end of an answer that has no length from a broken connection. */
static void connection_end_tls(struct bufferevent *bev)
{
    SSL *ssl = bufferevent_openssl_get_ssl(bev);
    if (ssl && SSL_is_init_finished(ssl)) {
        SSL_set_shutdown(ssl, SSL_RECEIVED_SHUTDOWN); /* do not wait for the client's */
        send_close_notify(bev, ssl);
    } else if (ssl) {
        answer_plain_http(bev);
    }
}

static void connection_forget(struct connection *connection)
{
    ml_timer_stop(&connection->timer);
    ml_task_cancel(&connection->task);
    ml_list_remove(&connection->node);
    connection_set_held(connection, 0);
    connection->server->count--;
    free(connection->headers);
    free(connection);
}

/* The connection closes; a request that it has ends here. */
static void connection_notify_handler(struct connection *connection)
{
    struct evhttp_request *request = ml_take(&connection->request);
    if (!request)
        return;
    if (connection->phase == HTTP_BUSY && connection->exchange.closed)
        connection->exchange.closed(connection->exchange.context);
    if (!evhttp_request_get_connection(request))
        evhttp_request_free(request); /* evhttp left it to us */
}

static void on_connection_closed(struct evhttp_connection *evcon, void *context)
{
    struct connection *connection = context;
    (void)evcon;
    struct evbuffer *output = bufferevent_get_output(connection->bev);
    evbuffer_remove_cb(bufferevent_get_input(connection->bev), on_connection_input, connection);
    evbuffer_remove_cb(output, on_connection_output, connection);
    connection->server->unsent_bytes -= evbuffer_get_length(output);
    connection_end_tls(connection->bev);
    ml_map_remove(&connection->server->by_evcon, evcon_key(connection));
    connection_notify_handler(connection);
    connection_forget(connection);
}

/* ---- the beginning ---- */

/* Makes one for a client that is being accepted, and puts it among the fresh ones. It frees itself
 * when evhttp closes it. */
static struct connection *connection_new(struct ml_http_server *server, struct event_base *base)
{
    struct connection *connection = ml_new(struct connection);
    SSL *ssl = server->tls ? SSL_new(server->tls) : NULL;
    ml_assert(!server->tls || ssl);
    connection->server = server;
    connection->bev = ssl ? bufferevent_openssl_socket_new(base, -1, ssl, BUFFEREVENT_SSL_ACCEPTING,
                                                           BEV_OPT_CLOSE_ON_FREE)
                          : bufferevent_socket_new(base, -1, 0);
    ml_assert(connection->bev != NULL);
    bufferevent_incref(connection->bev); /* until it is adopted */
    ml_timer_init(&connection->timer, server->loop, on_connection_timer, connection);
    ml_task_init(&connection->task, on_connection_task, connection);
    ml_list_init(&connection->node);
    ml_list_push(&server->fresh, &connection->node);
    server->count++;
    return connection;
}

/* Matches a fresh one with the connection that evhttp has made for its bufferevent. If evhttp has
 * already dropped that, frees it and returns false. */
static bool connection_adopt(struct connection *connection)
{
    struct ml_http_server *server = connection->server;
    int on = 1;
    void *evcon = NULL;
    bufferevent_getcb(connection->bev, NULL, &connection->evhttp_write, &connection->evhttp_event,
                      &evcon);
    bufferevent_decref(connection->bev);
    if (!evcon) {
        connection_forget(connection);
        return false;
    }
    connection->evcon = evcon;
    ml_map_put(&server->by_evcon, evcon_key(connection), connection);
    evhttp_connection_set_closecb(connection->evcon, on_connection_closed, connection);
    evbuffer_add_cb(bufferevent_get_input(connection->bev), on_connection_input, connection);
    evbuffer_add_cb(bufferevent_get_output(connection->bev), on_connection_output, connection);
    /* A client may send ahead while a request is being answered: room for the largest request and a
     * read that goes beyond it. With less room over TLS, bytes that libevent has decrypted when it
     * stops would stay there until more come. */
    bufferevent_setwatermark(connection->bev, EV_READ, 0, arrived_max(server) + AHEAD_BYTES);
    setsockopt(bufferevent_getfd(connection->bev), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ml_tcp_notice_dead_peer(bufferevent_getfd(connection->bev));
    connection_set_send_bytes(connection->bev, SEND_BYTES);
    connection_wait(connection);
    connection->phase = HTTP_ARRIVING;
    connection_start_timer(connection, server->limits.arrival_ms);
    return true;
}

static struct connection *exchange_connection(struct ml_http_exchange *exchange)
{
    struct connection *connection = ml_container_of(exchange, struct connection, exchange);
    ml_assert(connection->phase == HTTP_BUSY); /* or the exchange is over */
    return connection;
}

/* ---- requests ---- */

/* NULL for those evhttp does not know: it has not kept the name either. */
static const char *method_name(struct evhttp_request *request)
{
    static const struct {
        enum evhttp_cmd_type command;
        const char *name;
    } methods[] = {
        {EVHTTP_REQ_GET, "GET"},       {EVHTTP_REQ_POST, "POST"},
        {EVHTTP_REQ_HEAD, "HEAD"},     {EVHTTP_REQ_PUT, "PUT"},
        {EVHTTP_REQ_DELETE, "DELETE"}, {EVHTTP_REQ_OPTIONS, "OPTIONS"},
        {EVHTTP_REQ_TRACE, "TRACE"},   {EVHTTP_REQ_CONNECT, "CONNECT"},
        {EVHTTP_REQ_PATCH, "PATCH"},
    };
    for (size_t i = 0; i < ML_COUNT(methods); i++)
        if (methods[i].command == evhttp_request_get_command(request))
            return methods[i].name;
    return NULL;
}

static void exchange_read_headers(struct connection *connection, struct evhttp_request *request)
{
    const struct evkeyvalq *fields = evhttp_request_get_input_headers(request);
    struct ml_http_exchange *exchange = &connection->exchange;
    const struct evkeyval *field;
    size_t count = 0;
    for (field = fields->tqh_first; field; field = field->next.tqe_next)
        count++;
    connection->headers = ml_realloc(connection->headers, (count + 1) * sizeof(*exchange->headers));
    for (field = fields->tqh_first; field; field = field->next.tqe_next)
        connection->headers[exchange->header_count++] = (struct ml_http_header){field->key,
                                                                                field->value};
    exchange->headers = connection->headers;
}

static void exchange_read_request(struct connection *connection, struct evhttp_request *request)
{
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
    const char *path = uri ? evhttp_uri_get_path(uri) : NULL;
    const char *query = uri ? evhttp_uri_get_query(uri) : NULL;
    char *client = NULL; /* evhttp's own */
    ev_uint16_t port;
    evhttp_connection_get_peer(connection->evcon, &client, &port);
    struct evbuffer *input = evhttp_request_get_input_buffer(request);
    connection->exchange = (struct ml_http_exchange){
        .method = method_name(request),
        .path = path && *path ? path : "/",
        .query = query ? query : "",
        .body.len = evbuffer_get_length(input),
        .client = client ? client : "",
    };
    connection->exchange.tls = bufferevent_openssl_get_ssl(connection->bev);
    connection->exchange.body.ptr = (const char *)evbuffer_pullup(input, -1);
    exchange_read_headers(connection, request);
}

static void answer_refusal(struct connection *connection, int status)
{
    struct ml_http_answer answer;
    struct evkeyvalq *headers = evhttp_request_get_output_headers(connection->request);
    make_refusal(connection->server, status, &answer);
    evhttp_add_header(headers, "Connection", "close");
    ml_http_answer(&connection->exchange, &answer);
}

/* evhttp treats HEAD, TRACE and unknown methods as requests without a body; if they have one, it
 * would read the body as the next request. */
static bool request_leaves_body_unread(const struct ml_http_exchange *exchange)
{
    const char *length = ml_http_header(exchange, "Content-Length");
    bool bodyless = !exchange->method || strcmp(exchange->method, "HEAD") == 0 ||
                    strcmp(exchange->method, "TRACE") == 0;
    return bodyless &&
           ((length && strcmp(length, "0") != 0) || ml_http_header(exchange, "Transfer-Encoding"));
}

static bool is_digits(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text);
}

/* Another reader of the same bytes might see other fields, or the end of the body elsewhere (RFC
 * 9112, 5.1 and 6.3). evhttp uses the first of several lengths and accepts signs. */
static bool request_is_ambiguous(const struct ml_http_exchange *exchange)
{
    const char *length = NULL, *host = NULL;
    for (size_t i = 0; i < exchange->header_count; i++) {
        const struct ml_http_header *field = &exchange->headers[i];
        if (!ml_http_is_token(field->name))
            return true;
        if (strcasecmp(field->name, "Content-Length") == 0) {
            if (!is_digits(field->value) || (length && strcmp(length, field->value) != 0))
                return true;
            length = field->value;
        } else if (strcasecmp(field->name, "Host") == 0) {
            if (host)
                return true;
            host = field->value;
        }
    }
    return length && ml_http_header(exchange, "Transfer-Encoding");
}

/* Nobody knows where its body ends: evhttp treats it as a request without one. */
static bool request_has_unknown_coding(const struct ml_http_exchange *exchange)
{
    const char *coding = ml_http_header(exchange, "Transfer-Encoding");
    return coding && strcasecmp(coding, "chunked") != 0;
}

/* The answer has been sent. */
static void on_answer_sent(struct evhttp_request *request, void *context)
{
    struct connection *connection = context;
    (void)request; /* evhttp frees it */
    connection->request = NULL;
    connection_wait(connection);
}

static void on_request(struct evhttp_request *request, void *context)
{
    struct ml_http_server *server = context;
    struct connection *connection = connection_of(server, evhttp_request_get_connection(request));
    struct ml_http_exchange *exchange = &connection->exchange;
    connection->request = request;
    connection->streaming = false;
    connection->upgraded = false;
    evhttp_request_set_on_complete_cb(request, on_answer_sent, connection);
    connection_begin_request(connection);
    connection_guard(connection);
    exchange_read_request(connection, request);
    if (request_leaves_body_unread(exchange))
        evhttp_add_header(evhttp_request_get_output_headers(request), "Connection", "close");
    if (connection->has_bad_head || request_is_ambiguous(exchange))
        answer_refusal(connection, 400);
    else if (!exchange->method)
        answer_refusal(connection, 405);
    else if (request_has_unknown_coding(exchange))
        answer_refusal(connection, 501);
    else if (exchange->body.len > server->limits.body_bytes_max)
        answer_refusal(connection, 413);
    else
        server->handle(server->context, exchange);
}

const char *ml_http_header(const struct ml_http_exchange *exchange, const char *name)
{
    for (size_t i = 0; i < exchange->header_count; i++) {
        if (strcasecmp(exchange->headers[i].name, name) == 0)
            return exchange->headers[i].value;
    }
    return NULL;
}

char *ml_http_decode(const char *raw)
{
    size_t len = 0;
    char *text = evhttp_uridecode(raw, 0, &len);
    if (text && strlen(text) != len)
        free(ml_take(&text));
    return text;
}

void ml_http_forget_header(struct ml_http_exchange *exchange, const char *name)
{
    struct connection *connection = ml_container_of(exchange, struct connection, exchange);
    struct evkeyvalq *fields = evhttp_request_get_input_headers(connection->request);
    for (struct evkeyval *field = fields->tqh_first; field; field = field->next.tqe_next)
        if (strcasecmp(field->key, name) == 0)
            explicit_bzero(field->value, strlen(field->value));
}

/* ---- answers ---- */

static bool answer_has_body(const struct connection *connection, int status)
{
    return status >= 200 && status != 204 && status != 304 &&
           strcmp(connection->exchange.method ? connection->exchange.method : "", "HEAD") != 0;
}

static bool answer_has_length(const struct ml_http_answer *answer)
{
    for (size_t i = 0; i < answer->header_count; i++)
        if (strcasecmp(answer->headers[i].name, "Content-Length") == 0)
            return true;
    return false;
}

static void answer_add_head(struct connection *connection, const struct ml_http_answer *answer)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(connection->request);
    if (answer->content_type)
        evhttp_add_header(headers, "Content-Type", answer->content_type);
    for (size_t i = 0; i < answer->header_count; i++)
        evhttp_add_header(headers, answer->headers[i].name, answer->headers[i].value);
}

void ml_http_answer(struct ml_http_exchange *exchange, const struct ml_http_answer *answer)
{
    struct connection *connection = exchange_connection(exchange);
    struct evhttp_request *request = connection->request;
    char length[24];
    ml_assert(!connection->streaming);
    answer_add_head(connection, answer);
    /* Set by us: evhttp leaves it out for HEAD, where it has to be what GET would have sent. */
    snprintf(length, sizeof length, "%zu", answer->body.len);
    if (answer->status >= 200 && answer->status != 204 && answer->status != 304)
        evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Length", length);
    if (answer_has_body(connection, answer->status))
        unsent_add_text(evhttp_request_get_output_buffer(request), answer->body);
    connection_sending(connection);
    evhttp_send_reply(request, answer->status, reason_of(answer->status), NULL);
    connection_guard(connection);
    connection_bound_unsent(connection);
}

void ml_http_stream(struct ml_http_exchange *exchange, const struct ml_http_answer *head)
{
    struct connection *connection = exchange_connection(exchange);
    struct evhttp_request *request = connection->request;
    ml_assert(!connection->streaming);
    bool is_1_0 = request->major == 1 && request->minor == 0;
    connection->streaming = true;
    /* A stream may last: it does not keep what was sent along with the request. */
    evbuffer_drain(evhttp_request_get_input_buffer(request), exchange->body.len);
    exchange->body = ML_STR("");
    connection_set_held(connection, evbuffer_get_length(bufferevent_get_input(connection->bev)));
    connection->chunked = !is_1_0 && !answer_has_length(head) &&
                          answer_has_body(connection, head->status);
    /* Asked by HTTP/1.0 to keep the connection, evhttp would say "Content-Length: 0". */
    if (is_1_0)
        evhttp_remove_header(evhttp_request_get_input_headers(request), "Connection");
    answer_add_head(connection, head);
    evhttp_send_reply_start(request, head->status, reason_of(head->status));
    connection_guard(connection);
}

size_t ml_http_write(struct ml_http_exchange *exchange, struct ml_str piece)
{
    struct connection *connection = exchange_connection(exchange);
    struct evbuffer *output = bufferevent_get_output(connection->bev);
    ml_assert(connection->streaming);
    if (connection->cut)
        return SIZE_MAX / 2;
    if (piece.len && connection->upgraded)
        unsent_add_text(output, piece);
    else if (piece.len && connection->chunked)
        unsent_add_chunk(connection->server->unsent, output, piece);
    else if (piece.len && answer_has_body(connection, connection->request->response_code))
        unsent_add_text(output, piece);
    connection_bound_unsent(connection);
    return evbuffer_get_length(output);
}

void ml_http_finish(struct ml_http_exchange *exchange)
{
    struct connection *connection = exchange_connection(exchange);
    ml_assert(connection->streaming);
    if (connection->cut) { /* a regular end would make the cut answer look complete */
        connection_abort(connection);
        return;
    }
    if (connection->upgraded) {
        connection_finish_upgraded(connection);
        return;
    }
    connection_sending(connection);
    if (!connection->chunked && evbuffer_get_length(bufferevent_get_output(connection->bev)) == 0) {
        evhttp_send_reply_end(connection->request); /* and may have closed the connection */
        return;
    }
    evhttp_send_reply_end(connection->request);
    connection_guard(connection);
}

bool ml_http_upgrade(struct ml_http_exchange *exchange, const struct ml_http_header *headers,
                     size_t count)
{
    struct connection *connection = exchange_connection(exchange);
    struct evbuffer *output = bufferevent_get_output(connection->bev);
    ml_assert(!connection->streaming && exchange->received);
    if (connection->request->major != 1 || connection->request->minor == 0 ||
        connection->request->type == EVHTTP_REQ_HEAD)
        return false;
    evbuffer_drain(evhttp_request_get_input_buffer(connection->request), exchange->body.len);
    exchange->body = ML_STR("");
    connection_set_held(connection, evbuffer_get_length(bufferevent_get_input(connection->bev)));
    evbuffer_add_printf(output, "HTTP/1.1 101 Switching Protocols\r\n");
    for (size_t i = 0; i < count; i++) {
        if (!strpbrk(headers[i].value, "\r\n"))
            evbuffer_add_printf(output, "%s: %s\r\n", headers[i].name, headers[i].value);
    }
    evbuffer_add(output, "\r\n", 2);
    connection->streaming = true;
    connection_upgrade(connection);
    return true;
}

void ml_http_pause(struct ml_http_exchange *exchange, bool paused)
{
    struct connection *connection = exchange_connection(exchange);
    ml_assert(connection->upgraded);
    connection_pause(connection, paused);
}

void ml_http_abort(struct ml_http_exchange *exchange)
{
    connection_abort(exchange_connection(exchange));
}

#define HEADER_BYTES_MAX  ((size_t)64 * 1024)
#define BODY_BYTES_MAX    ((size_t)3 * 1024 * 1024)
#define ARRIVAL_MS        INT64_C(30000)
#define IDLE_MS           INT64_C(180000)
#define CONNECTIONS_MAX   1024
#define UNSENT_BYTES_MAX  ((size_t)64 * 1024 * 1024)
#define ARRIVED_BYTES_MAX ((size_t)64 * 1024 * 1024)
#define ACCEPT_AGAIN_MS   INT64_C(1000)

/* ---- accepting ---- */

static void server_make_room(struct ml_http_server *server, struct connection *newest)
{
    if (server->count <= server->limits.connections_max)
        return;
    struct ml_list *first = server->waiting.next; /* `newest` itself when all others are busy */
    connection_end(first == &server->waiting ? newest
                                             : ml_container_of(first, struct connection, node));
}

/* Runs in the same round of the loop as the accept, so before any byte has been read. */
static void on_connections_accepted(evutil_socket_t fd, short what, void *context)
{
    struct ml_http_server *server = context;
    (void)fd, (void)what;
    for (struct ml_list *node; (node = ml_list_shift(&server->fresh));) {
        struct connection *connection = ml_container_of(node, struct connection, node);
        if (!connection_adopt(connection))
            continue;
        if (server->local && !ml_local_is_trusted(bufferevent_getfd(connection->bev)))
            connection_end(connection);
        else
            server_make_room(server, connection);
    }
}

/* evhttp's hook for the bufferevent of a new connection, our first notice of it. Must not fail:
 * evhttp would continue without TLS. */
static struct bufferevent *on_accepting(struct event_base *base, void *context)
{
    struct ml_http_server *server = context;
    struct connection *connection = connection_new(server, base);
    event_active(server->adopt, EV_TIMEOUT, 0);
    return connection->bev;
}

/* Most likely no descriptors are left. The pending connection would wake us again and again.
 * evhttp keeps the listener's context for itself, so a timer that always runs enables it again. */
static void on_accept_error(struct evconnlistener *listener, void *evhttp)
{
    (void)evhttp;
    evconnlistener_disable(listener);
}

static void on_accept_again(void *context)
{
    struct ml_http_server *server = context;
    evconnlistener_enable(server->listener);
    ml_timer_start(&server->accepting, ACCEPT_AGAIN_MS * ML_NS_PER_MS);
}

/* ---- the server ---- */

/* Clients that hold connections must leave descriptors for those to the API server. */
static size_t limit_by_descriptors(size_t connections_max)
{
    struct rlimit descriptors = {0};
    getrlimit(RLIMIT_NOFILE, &descriptors);
    return ML_MIN(connections_max, ML_MAX(descriptors.rlim_cur / 4, (rlim_t)1));
}

static void server_fill_limits(struct ml_http_limits *limits)
{
    if (!limits->header_bytes_max)
        limits->header_bytes_max = HEADER_BYTES_MAX;
    if (!limits->body_bytes_max)
        limits->body_bytes_max = BODY_BYTES_MAX;
    if (!limits->arrival_ms)
        limits->arrival_ms = ARRIVAL_MS;
    if (!limits->idle_ms)
        limits->idle_ms = IDLE_MS;
    if (!limits->connections_max)
        limits->connections_max = CONNECTIONS_MAX;
    limits->connections_max = limit_by_descriptors(limits->connections_max);
    if (!limits->unsent_bytes_max)
        limits->unsent_bytes_max = UNSENT_BYTES_MAX;
    if (!limits->arrived_bytes_max)
        limits->arrived_bytes_max = ARRIVED_BYTES_MAX;
}

static void server_start_evhttp(struct ml_http_server *server, int fd)
{
    server->http = evhttp_new(ml_loop_base(server->loop));
    ml_assert(server->http != NULL);
    evhttp_set_max_headers_size(server->http, (ev_ssize_t)server->limits.header_bytes_max);
    evhttp_set_max_body_size(server->http, -1); /* ours: see on_connection_input and on_request */
    evhttp_set_allowed_methods(server->http, UINT16_MAX); /* the refusal is ours */
    evhttp_set_default_content_type(server->http, NULL);
    evhttp_set_bevcb(server->http, on_accepting, server);
    evhttp_set_gencb(server->http, on_request, server);
    struct evhttp_bound_socket *bound = evhttp_accept_socket_with_handle(server->http, fd);
    ml_assert(bound != NULL);
    server->listener = evhttp_bound_socket_get_listener(bound);
    evconnlistener_set_error_cb(server->listener, on_accept_error);
}

int ml_http_server_new(const struct ml_http_server_opts *opts, struct ml_http_server **out,
                       struct ml_err *err)
{
    int fd = -1;
    bool local = opts->address[0] == '@';
    int r = local ? ml_local_listen(opts->address + 1, &fd, err)
                  : ml_tcp_listen(opts->address, &fd, err);
    if (r < 0)
        return r;
    struct ml_http_server *server = ml_new(struct ml_http_server);
    server->local = local;
    server->loop = opts->loop;
    server->tls = opts->tls;
    server->limits = opts->limits;
    server->handle = opts->handle;
    server->refusal = opts->refusal;
    server->context = opts->context;
    server->unsent = unsent_new();
    ml_list_init(&server->fresh);
    ml_list_init(&server->waiting);
    ml_list_init(&server->busy);
    server_fill_limits(&server->limits);
    if (opts->tls)
        SSL_CTX_up_ref(opts->tls);
    server->adopt = event_new(ml_loop_base(opts->loop), -1, 0, on_connections_accepted, server);
    ml_assert(server->adopt != NULL);
    server_start_evhttp(server, fd);
    ml_timer_init(&server->accepting, opts->loop, on_accept_again, server);
    ml_timer_start(&server->accepting, ACCEPT_AGAIN_MS * ML_NS_PER_MS);
    *out = server;
    return 0;
}

void ml_http_server_free(struct ml_http_server *server)
{
    if (!server)
        return;
    on_connections_accepted(-1, 0, server); /* so that all are known to each other */
    ml_timer_stop(&server->accepting);
    evhttp_free(server->http); /* and its connections and the socket */
    ml_assert(server->count == 0);
    event_free(server->adopt);
    unsent_free(server->unsent);
    ml_map_fini(&server->by_evcon);
    SSL_CTX_free(server->tls);
    free(server);
}

void ml_http_server_set_tls(struct ml_http_server *server, struct ssl_ctx_st *tls)
{
    ml_assert(server->tls && tls);
    SSL_CTX_up_ref(tls);
    SSL_CTX_free(server->tls);
    server->tls = tls;
}

int ml_http_server_port(const struct ml_http_server *server)
{
    return ml_tcp_local_port(ml_http_server_listener(server));
}

int ml_http_server_listener(const struct ml_http_server *server)
{
    return evconnlistener_get_fd(server->listener);
}

size_t ml_http_server_connections(const struct ml_http_server *server)
{
    return server->count;
}

size_t ml_http_server_unsent(const struct ml_http_server *server)
{
    const struct unsent *unsent = server->unsent;
    /* Bytes that buffers hold by reference are counted once, with their block. */
    return server->unsent_bytes - ML_MIN(unsent->referenced, server->unsent_bytes) +
           unsent->block_bytes;
}
