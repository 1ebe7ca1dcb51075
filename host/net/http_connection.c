/* The connections of the HTTP server: their phases, limits and ends, and what waits to be sent. */
#include "net/http_connection.h"

#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/buf.h"
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
    struct http_unsent *unsent;
    size_t refs;
    struct ml_str text; /* in `bytes`, without the frame */
    size_t len;
    char bytes[];
};

struct http_unsent {
    size_t refs;        /* the server and each block */
    size_t block_bytes; /* memory of all blocks and of what refers to them */
    size_t referenced;  /* bytes that buffers have by reference */
    struct block *last; /* of the latest large piece */
};

struct http_unsent *http_unsent_new(void)
{
    struct http_unsent *unsent = ml_new(struct http_unsent);
    unsent->refs = 1;
    return unsent;
}

static void http_unsent_unref(struct http_unsent *unsent)
{
    if (--unsent->refs == 0)
        free(unsent);
}

static struct block *block_new(struct http_unsent *unsent, struct ml_str text)
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
    http_unsent_unref(block->unsent);
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

void http_unsent_free(struct http_unsent *unsent)
{
    block_unref(ml_take(&unsent->last));
    http_unsent_unref(unsent);
}

/* Bytes that buffers hold by reference are counted once, with their block. */
size_t http_unsent_bytes(const struct http_unsent *unsent, size_t buffered)
{
    return buffered - ML_MIN(unsent->referenced, buffered) + unsent->block_bytes;
}

void http_unsent_add_text(struct evbuffer *output, struct ml_str text)
{
    for (size_t len; text.len; text.ptr += len, text.len -= len) {
        len = ML_MIN(text.len, PIECE_BYTES);
        evbuffer_add(output, text.ptr, len);
    }
}

/* As evhttp_send_reply_chunk, but small ones copied to the buffer's end: each block is a TLS record
 * and a system call of its own. */
void http_unsent_add_chunk(struct http_unsent *unsent, struct evbuffer *output, struct ml_str piece)
{
    if (piece.len < SHARED_MIN || piece.len > SHARED_MAX) {
        evbuffer_add_printf(output, "%zx\r\n", piece.len);
        http_unsent_add_text(output, piece);
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

static void connection_start_timer(struct http_connection *connection, int64_t ms)
{
    ml_timer_start(&connection->timer, ms * ML_NS_PER_MS);
}

static void connection_move_to(struct http_connection *connection, struct ml_list *list)
{
    ml_list_remove(&connection->node);
    ml_list_push(list, &connection->node);
}

void http_connection_end(struct http_connection *connection)
{
    evhttp_connection_free(connection->evcon); /* on_connection_closed frees the rest */
}

static struct ml_str evcon_key(const struct http_connection *connection)
{
    return (struct ml_str){(const char *)&connection->evcon, sizeof connection->evcon};
}

struct http_connection *http_connection_of(struct http_connections *all,
                                           struct evhttp_connection *evcon)
{
    struct ml_str key = {(const char *)&evcon, sizeof evcon};
    struct http_connection *connection = ml_map_get(&all->by_evcon, key);
    ml_assert(connection != NULL);
    return connection;
}

void http_connection_set_held(struct http_connection *connection, size_t bytes)
{
    connection->all->held_bytes += bytes - connection->held_bytes;
    connection->held_bytes = bytes;
}

/* A request with more bytes than this cannot be within the limits. */
static size_t arrived_max(const struct http_connections *all)
{
    return all->limits.header_bytes_max + all->limits.body_bytes_max;
}

/* Checks a piece of a head; false for a NUL. */
static bool connection_check_head_bytes(struct http_connection *connection, const char *bytes,
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
static bool connection_check_head(struct http_connection *connection, size_t len)
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

void http_connection_begin_request(struct http_connection *connection)
{
    connection->phase = HTTP_BUSY;
    ml_timer_stop(&connection->timer);
    connection_move_to(connection, &connection->all->busy);
}

void http_connection_sending(struct http_connection *connection)
{
    connection->phase = HTTP_SENDING;
    connection->unsent_bytes = SIZE_MAX;
    connection_start_timer(connection, connection->all->limits.arrival_ms);
}

void http_connection_wait(struct http_connection *connection)
{
    const struct ml_http_limits *limits = &connection->all->limits;
    /* Bytes that are here already are the beginning of the next request. */
    connection->arrived_bytes = evbuffer_get_length(bufferevent_get_input(connection->bev));
    http_connection_set_held(connection, connection->arrived_bytes);
    connection->in_head = true;
    connection->line_len = 0;
    connection->phase = connection->arrived_bytes ? HTTP_ARRIVING : HTTP_IDLE;
    connection_start_timer(connection,
                           connection->arrived_bytes ? limits->arrival_ms : limits->idle_ms);
    connection_move_to(connection, &connection->all->waiting);
    connection->has_bad_head = !connection_check_head(connection, connection->arrived_bytes);
}

void http_connection_abort(struct http_connection *connection)
{
    /* Later: the caller may run inside a callback of evhttp for this connection. */
    connection->phase = HTTP_ABORTED;
    ml_task_defer(&connection->task, connection->all->loop);
}

/* The reasons that evhttp does not know, and one that has been renamed. */
const char *http_reason(int status)
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

void http_refusal(const struct http_connections *all, int status, struct ml_http_answer *out)
{
    *out = (struct ml_http_answer){.status = status,
                                   .content_type = "text/plain; charset=utf-8",
                                   .body = ml_str_of(http_reason(status))};
    if (all->refusal)
        all->refusal(all->context, status, out);
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
    struct http_connection *connection = context;
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
    http_connection_end(context);
}

/* Sends what waits, and then waits a little for the client to close. */
static void connection_linger(struct http_connection *connection)
{
    connection->is_lingering = true;
    http_connection_set_held(connection, 0);
    on_discarded_input(connection->bev, NULL);
    bufferevent_setcb(connection->bev, on_discarded_input, on_last_byte_sent, on_lingering_closed,
                      connection);
    bufferevent_enable(connection->bev, EV_READ | EV_WRITE);
    if (evbuffer_get_length(bufferevent_get_output(connection->bev)) == 0)
        bufferevent_trigger(connection->bev, EV_WRITE, BEV_TRIG_DEFER_CALLBACKS);
}

/* ---- refusing a request before it is whole ---- */

static void connection_send_refusal(struct http_connection *connection)
{
    struct evbuffer *output = bufferevent_get_output(connection->bev);
    struct ml_http_answer answer = {0};
    http_refusal(connection->all, connection->refusal, &answer);
    evbuffer_add_printf(output,
                        "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                        "Connection: close\r\n\r\n",
                        answer.status, http_reason(answer.status), answer.content_type,
                        answer.body.len);
    evbuffer_add(output, answer.body.ptr, answer.body.len);
    connection_linger(connection);
    connection_start_timer(connection, LINGER_MS);
}

/* evhttp would read all of the request, or answer with an HTML page and a reset. So evhttp is cut
 * off from this connection, and we answer ourselves, in a task outside this callback. */
static void connection_refuse(struct http_connection *connection, int status)
{
    connection->phase = HTTP_REFUSED;
    http_connection_set_held(connection, 0);
    connection->refusal = status;
    bufferevent_setcb(connection->bev, NULL, NULL, on_lingering_closed, connection);
    ml_task_defer(&connection->task, connection->all->loop);
}

static void on_connection_task(void *context)
{
    struct http_connection *connection = context;
    if (connection->phase == HTTP_REFUSED)
        connection_send_refusal(connection);
    else
        http_connection_end(connection);
}

/* ---- bytes, time and the end ---- */

/* Drops at once what waits for the client and what it sent ahead; the connection closes in the next
 * round of the loop, as the handler may be writing to other connections right now. */
static void connection_cut(struct http_connection *connection)
{
    struct evbuffer *output = bufferevent_get_output(connection->bev);
    struct evbuffer *input = bufferevent_get_input(connection->bev);
    connection->cut = true;
    bufferevent_disable(connection->bev, EV_READ | EV_WRITE);
    evbuffer_unfreeze(output, 1); /* a bufferevent keeps its own from being drained by others */
    evbuffer_drain(output, evbuffer_get_length(output));
    evbuffer_freeze(output, 1);
    evbuffer_drain(input, evbuffer_get_length(input));
    http_connection_set_held(connection, 0);
    ml_task_defer(&connection->task, connection->all->loop);
}

/* The connection to close when too much input is held: the one whose request has been arriving for
 * the longest time, or else one that sent much ahead while a request is being answered. */
static struct http_connection *find_holder_to_close(struct http_connection *reader)
{
    struct http_connections *all = reader->all;
    ml_list_each (node, &all->waiting) {
        struct http_connection *other = ml_container_of(node, struct http_connection, node);
        if (other != reader && other->phase == HTTP_ARRIVING && other->held_bytes > 0)
            return other;
    }
    ml_list_each (node, &all->busy) {
        struct http_connection *other = ml_container_of(node, struct http_connection, node);
        if (!other->cut && evbuffer_get_length(bufferevent_get_input(other->bev)) > AHEAD_BYTES)
            return other;
    }
    return NULL;
}

static void bound_held_bytes(struct http_connection *reader)
{
    struct http_connections *all = reader->all;
    struct http_connection *victim;
    while (all->held_bytes > all->limits.arrived_bytes_max &&
           (victim = find_holder_to_close(reader))) {
        if (victim->phase == HTTP_ARRIVING)
            http_connection_end(victim);
        else
            connection_cut(victim);
    }
}

/* Runs before evhttp sees the bytes. */
static void on_connection_input(struct evbuffer *input, const struct evbuffer_cb_info *info,
                                void *context)
{
    struct http_connection *connection = context;
    struct http_connections *all = connection->all;
    (void)input;
    if (info->n_added == 0)
        return;
    if (connection->phase == HTTP_REFUSED || connection->phase == HTTP_ABORTED ||
        connection->is_lingering)
        return;
    http_connection_set_held(connection, connection->held_bytes + info->n_added);
    if (connection->phase == HTTP_IDLE) {
        connection->phase = HTTP_ARRIVING;
        connection_start_timer(connection, all->limits.arrival_ms);
    }
    if (connection->phase != HTTP_ARRIVING) {
        bound_held_bytes(connection);
        return;
    }
    connection->arrived_bytes += info->n_added;
    if (connection->arrived_bytes > arrived_max(all))
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
    struct http_connection *connection = context;
    bool is_ours = connection->phase == HTTP_BUSY || connection->phase == HTTP_SENDING;
    (void)output;
    connection->all->unsent_bytes += info->n_added - info->n_deleted;
    if (is_ours && (info->n_deleted || info->orig_size == 0))
        connection_move_to(connection, &connection->all->busy);
}

void http_connection_bound_unsent(struct http_connection *writer)
{
    struct http_connections *all = writer->all;
    while (http_unsent_bytes(all->unsent, all->unsent_bytes) > all->limits.unsent_bytes_max) {
        struct http_connection *victim = NULL;
        ml_list_each (node, &all->busy) {
            victim = ml_container_of(node, struct http_connection, node);
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
    struct http_connection *connection = context;
    if (!connection->cut && evbuffer_get_length(bufferevent_get_output(bev)) == 0)
        connection->evhttp_write(bev, connection->evcon);
}

static void on_connection_event(struct bufferevent *bev, short what, void *context)
{
    struct http_connection *connection = context;
    connection->evhttp_event(bev, what, connection->evcon); /* frees the connection */
}

void http_connection_guard(struct http_connection *connection)
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
    struct http_connection *connection = context;
    struct ml_http_exchange *exchange = &connection->exchange;
    while (connection->phase == HTTP_BUSY && !connection->cut &&
           (bufferevent_get_enabled(bev) & EV_READ)) {
        int len = evbuffer_remove(input, piece, sizeof piece);
        http_connection_set_held(connection, evbuffer_get_length(input));
        if (len <= 0)
            break;
        exchange->received(exchange->context, (struct ml_str){piece, (size_t)len});
    }
}

void http_connection_upgrade(struct http_connection *connection)
{
    connection->upgraded = true;
    bufferevent_setcb(connection->bev, on_upgraded_input, NULL, on_connection_event, connection);
    bufferevent_enable(connection->bev, EV_WRITE); /* evhttp only does while it answers */
    http_connection_pause(connection, false);
}

void http_connection_pause(struct http_connection *connection, bool paused)
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

void http_connection_finish_upgraded(struct http_connection *connection)
{
    http_connection_sending(connection);
    connection_linger(connection);
}

/* ---- the timer, and the end ---- */

static void on_connection_timer(void *context)
{
    struct http_connection *connection = context;
    size_t unsent = evbuffer_get_length(bufferevent_get_output(connection->bev));
    if (connection->phase == HTTP_SENDING && unsent < connection->unsent_bytes) {
        connection->unsent_bytes = unsent; /* slow, but the client reads */
        connection_start_timer(connection, connection->all->limits.arrival_ms);
        return;
    }
    http_connection_end(connection);
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

static void connection_forget(struct http_connection *connection)
{
    ml_timer_stop(&connection->timer);
    ml_task_cancel(&connection->task);
    ml_list_remove(&connection->node);
    http_connection_set_held(connection, 0);
    connection->all->count--;
    free(connection->headers);
    free(connection);
}

/* The connection closes; a request that it has ends here. */
static void connection_notify_handler(struct http_connection *connection)
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
    struct http_connection *connection = context;
    (void)evcon;
    struct evbuffer *output = bufferevent_get_output(connection->bev);
    evbuffer_remove_cb(bufferevent_get_input(connection->bev), on_connection_input, connection);
    evbuffer_remove_cb(output, on_connection_output, connection);
    connection->all->unsent_bytes -= evbuffer_get_length(output);
    connection_end_tls(connection->bev);
    ml_map_remove(&connection->all->by_evcon, evcon_key(connection));
    connection_notify_handler(connection);
    connection_forget(connection);
}

/* ---- the beginning ---- */

struct http_connection *http_connection_new(struct http_connections *all, struct event_base *base)
{
    struct http_connection *connection = ml_new(struct http_connection);
    SSL *ssl = all->tls ? SSL_new(all->tls) : NULL;
    ml_assert(!all->tls || ssl);
    connection->all = all;
    connection->bev = ssl ? bufferevent_openssl_socket_new(base, -1, ssl, BUFFEREVENT_SSL_ACCEPTING,
                                                           BEV_OPT_CLOSE_ON_FREE)
                          : bufferevent_socket_new(base, -1, 0);
    ml_assert(connection->bev != NULL);
    bufferevent_incref(connection->bev); /* until it is adopted */
    ml_timer_init(&connection->timer, all->loop, on_connection_timer, connection);
    ml_task_init(&connection->task, on_connection_task, connection);
    ml_list_init(&connection->node);
    ml_list_push(&all->fresh, &connection->node);
    all->count++;
    return connection;
}

bool http_connection_adopt(struct http_connection *connection)
{
    struct http_connections *all = connection->all;
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
    ml_map_put(&all->by_evcon, evcon_key(connection), connection);
    evhttp_connection_set_closecb(connection->evcon, on_connection_closed, connection);
    evbuffer_add_cb(bufferevent_get_input(connection->bev), on_connection_input, connection);
    evbuffer_add_cb(bufferevent_get_output(connection->bev), on_connection_output, connection);
    /* A client may send ahead while a request is being answered: room for the largest request and a
     * read that goes beyond it. With less room over TLS, bytes that libevent has decrypted when it
     * stops would stay there until more come. */
    bufferevent_setwatermark(connection->bev, EV_READ, 0, arrived_max(all) + AHEAD_BYTES);
    setsockopt(bufferevent_getfd(connection->bev), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ml_tcp_notice_dead_peer(bufferevent_getfd(connection->bev));
    connection_set_send_bytes(connection->bev, SEND_BYTES);
    http_connection_wait(connection);
    connection->phase = HTTP_ARRIVING;
    connection_start_timer(connection, all->limits.arrival_ms);
    return true;
}
