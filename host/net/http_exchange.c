#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <stdio.h>
#include <strings.h>

#include "net/http_exchange.h"

/* Pieces of streams that are kept once for all who get them: smaller ones are cheaper copied, and
 * of larger ones none is kept for the next. */
#define SHARED_MIN ((size_t)1024)
#define SHARED_MAX ((size_t)4 * 1024 * 1024)

static struct http_connection *connection_of(struct ml_http_exchange *exchange)
{
    struct http_connection *connection = ml_container_of(exchange, struct http_connection,
                                                         exchange);
    ml_assert(connection->phase == HTTP_BUSY); /* or the exchange is over */
    return connection;
}

/* ---- the request ---- */

/* NULL for those evhttp does not know: it has not kept the name either. */
static const char *method_name(struct evhttp_request *request)
{
    switch (evhttp_request_get_command(request)) {
    case EVHTTP_REQ_GET:
        return "GET";
    case EVHTTP_REQ_POST:
        return "POST";
    case EVHTTP_REQ_HEAD:
        return "HEAD";
    case EVHTTP_REQ_PUT:
        return "PUT";
    case EVHTTP_REQ_DELETE:
        return "DELETE";
    case EVHTTP_REQ_OPTIONS:
        return "OPTIONS";
    case EVHTTP_REQ_TRACE:
        return "TRACE";
    case EVHTTP_REQ_CONNECT:
        return "CONNECT";
    case EVHTTP_REQ_PATCH:
        return "PATCH";
    default:
        return NULL;
    }
}

static void read_headers(struct http_connection *connection, struct evhttp_request *request)
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

static void read_request(struct http_connection *connection, struct evhttp_request *request)
{
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
    const char *path = uri ? evhttp_uri_get_path(uri) : NULL;
    const char *query = uri ? evhttp_uri_get_query(uri) : NULL;
    struct evbuffer *input = evhttp_request_get_input_buffer(request);
    char *remote = NULL;
    uint16_t port = 0;
    evhttp_connection_get_peer(connection->evcon, &remote, &port);
    connection->exchange = (struct ml_http_exchange){
        .method = method_name(request),
        .path = path && *path ? path : "/",
        .query = query ? query : "",
        .remote = remote,
        .body.len = evbuffer_get_length(input),
    };
    connection->exchange.body.ptr = (const char *)evbuffer_pullup(input, -1);
    read_headers(connection, request);
}

static void answer_refusal(struct http_connection *connection, int status)
{
    struct ml_http_answer answer;
    struct evkeyvalq *headers = evhttp_request_get_output_headers(connection->request);
    http_refusal(connection->server, status, &answer);
    evhttp_add_header(headers, "Connection", "close");
    ml_http_answer(&connection->exchange, &answer);
}

/* evhttp takes HEAD, TRACE and methods unknown to it for requests without a body, and would
 * read the body they have all the same as the next request. */
static bool leaves_body_unread(const struct ml_http_exchange *exchange)
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

/* RFC 9110, 5.6.2. */
static bool is_token(const char *text)
{
    return *text && strspn(text, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                 "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == strlen(text);
}

/* Another reader of the same bytes might see other fields, or the end of the body elsewhere (RFC
 * 9112, 5.1 and 6.3). evhttp goes by the first of several lengths and takes signs. */
static bool is_ambiguous(const struct ml_http_exchange *exchange)
{
    const char *length = NULL, *host = NULL;
    for (size_t i = 0; i < exchange->header_count; i++) {
        const struct ml_http_header *field = &exchange->headers[i];
        if (!is_token(field->name))
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

/* Its end is unknown to us: evhttp takes it for a request without a body. */
static bool has_unknown_coding(const struct ml_http_exchange *exchange)
{
    const char *coding = ml_http_header(exchange, "Transfer-Encoding");
    return coding && strcasecmp(coding, "chunked") != 0;
}

/* The answer has been sent. */
static void on_complete(struct evhttp_request *request, void *context)
{
    struct http_connection *connection = context;
    (void)request; /* evhttp frees it */
    connection->request = NULL;
    http_connection_wait(connection);
}

void http_exchange_begin(struct evhttp_request *request, void *context)
{
    struct ml_http_server *server = context;
    struct http_connection *connection = http_connection_of(server,
                                                            evhttp_request_get_connection(request));
    struct ml_http_exchange *exchange = &connection->exchange;
    connection->request = request;
    connection->streaming = false;
    evhttp_request_set_on_complete_cb(request, on_complete, connection);
    http_connection_take(connection);
    http_connection_guard(connection);
    read_request(connection, request);
    if (leaves_body_unread(exchange))
        evhttp_add_header(evhttp_request_get_output_headers(request), "Connection", "close");
    if (connection->has_bad_head || is_ambiguous(exchange))
        answer_refusal(connection, 400);
    else if (!exchange->method)
        answer_refusal(connection, 405);
    else if (has_unknown_coding(exchange))
        answer_refusal(connection, 501);
    else if (exchange->body.len > server->opts.limits.body_bytes_max)
        answer_refusal(connection, 413);
    else
        server->opts.handle(server->opts.context, exchange);
}

const char *ml_http_header(const struct ml_http_exchange *exchange, const char *name)
{
    for (size_t i = 0; i < exchange->header_count; i++) {
        if (strcasecmp(exchange->headers[i].name, name) == 0)
            return exchange->headers[i].value;
    }
    return NULL;
}

/* ---- the answer ---- */

static bool has_body(const struct http_connection *connection, int status)
{
    return status >= 200 && status != 204 && status != 304 &&
           strcmp(connection->exchange.method ? connection->exchange.method : "", "HEAD") != 0;
}

static void add_head(struct http_connection *connection, const struct ml_http_answer *answer)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(connection->request);
    if (answer->content_type)
        evhttp_add_header(headers, "Content-Type", answer->content_type);
    for (size_t i = 0; i < answer->header_count; i++)
        evhttp_add_header(headers, answer->headers[i].name, answer->headers[i].value);
}

static void add_pieces(struct evbuffer *buffer, struct ml_str bytes)
{
    for (size_t len; bytes.len; bytes.ptr += len, bytes.len -= len) {
        len = ML_MIN(bytes.len, HTTP_PIECE_BYTES);
        evbuffer_add(buffer, bytes.ptr, len);
    }
}

void ml_http_answer(struct ml_http_exchange *exchange, const struct ml_http_answer *answer)
{
    struct http_connection *connection = connection_of(exchange);
    struct evhttp_request *request = connection->request;
    char length[24];
    ml_assert(!connection->streaming);
    add_head(connection, answer);
    /* Set by us: evhttp leaves it out for HEAD, where it has to be what GET would have sent. */
    snprintf(length, sizeof length, "%zu", answer->body.len);
    if (answer->status >= 200 && answer->status != 204 && answer->status != 304)
        evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Length", length);
    if (has_body(connection, answer->status))
        add_pieces(evhttp_request_get_output_buffer(request), answer->body);
    http_connection_sending(connection);
    evhttp_send_reply(request, answer->status, http_reason(answer->status), NULL);
    http_connection_guard(connection);
    http_connection_bound_unsent(connection);
}

void ml_http_stream(struct ml_http_exchange *exchange, const struct ml_http_answer *head)
{
    struct http_connection *connection = connection_of(exchange);
    struct evhttp_request *request = connection->request;
    ml_assert(!connection->streaming);
    bool is_1_0 = request->major == 1 && request->minor == 0;
    connection->streaming = true;
    /* A stream may last: it does not keep what was sent along with the request. */
    evbuffer_drain(evhttp_request_get_input_buffer(request), exchange->body.len);
    exchange->body = ML_STR("");
    http_connection_set_held(connection,
                             evbuffer_get_length(bufferevent_get_input(connection->bev)));
    connection->chunked = !is_1_0 && has_body(connection, head->status);
    /* Asked by HTTP/1.0 to keep the connection, evhttp would say "Content-Length: 0". */
    if (is_1_0)
        evhttp_remove_header(evhttp_request_get_input_headers(request), "Connection");
    add_head(connection, head);
    evhttp_send_reply_start(request, head->status, http_reason(head->status));
    http_connection_guard(connection);
}

/* A chunk with its frame. */
static struct http_block *make_chunk(struct http_unsent *unsent, struct ml_str piece)
{
    char size[24];
    int len = snprintf(size, sizeof size, "%zx\r\n", piece.len);
    return http_block_new(unsent, (struct ml_str){size, (size_t)len}, piece, ML_STR("\r\n"));
}

/* Those who watch the same are written the same, one after the other. */
static void send_shared_chunk(struct ml_http_server *server, struct evbuffer *output,
                              struct ml_str piece)
{
    if (!server->last_block || !http_block_is(server->last_block, piece)) {
        http_block_unref(server->last_block);
        server->last_block = make_chunk(server->unsent, piece);
    }
    http_block_send(server->last_block, output);
}

size_t ml_http_write(struct ml_http_exchange *exchange, struct ml_str piece)
{
    struct http_connection *connection = connection_of(exchange);
    struct evbuffer *output = bufferevent_get_output(connection->bev);
    ml_assert(connection->streaming);
    if (connection->cut)
        return SIZE_MAX / 2;
    /* As evhttp_send_reply_chunk, but small ones copied to the buffer's end: each block is a TLS
     * record and a system call of its own. */
    if (connection->chunked && piece.len >= SHARED_MIN && piece.len <= SHARED_MAX) {
        send_shared_chunk(connection->server, output, piece);
    } else if (piece.len && connection->chunked) {
        evbuffer_add_printf(output, "%zx\r\n", piece.len);
        add_pieces(output, piece);
        evbuffer_add(output, "\r\n", 2);
    } else if (piece.len && has_body(connection, connection->request->response_code)) {
        add_pieces(output, piece);
    }
    http_connection_bound_unsent(connection);
    return evbuffer_get_length(output);
}

void ml_http_finish(struct ml_http_exchange *exchange)
{
    struct http_connection *connection = connection_of(exchange);
    ml_assert(connection->streaming);
    if (connection->cut) { /* the end would make what is missing look whole */
        http_connection_abort(connection);
        return;
    }
    http_connection_sending(connection);
    if (!connection->chunked && evbuffer_get_length(bufferevent_get_output(connection->bev)) == 0) {
        evhttp_send_reply_end(connection->request); /* and may have closed the connection */
        return;
    }
    evhttp_send_reply_end(connection->request);
    http_connection_guard(connection);
}

void ml_http_abort(struct ml_http_exchange *exchange)
{
    http_connection_abort(connection_of(exchange));
}
