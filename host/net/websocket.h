/* L2 net. The client's side of a WebSocket (RFC 6455): bytes in messages, over a link of the HTTP
 * client. Frames of the server are bytes from outside: their sizes are bounded, and a frame that
 * the RFC forbids ends the connection.
 *
 * libcurl 7.88, that of Debian 12, has no WebSockets but as an experiment: docs/decisions/0042. */
#pragma once

#include "base/buf.h"
#include "net/http_client.h"

/* ---- frames, for the client itself and its tests ---- */

#define ML_WEBSOCKET_CONTROL_MAX 125 /* bytes of a ping, pong or close; RFC 6455, 5.5 */
#define ML_WEBSOCKET_HEAD_MAX    10

enum ml_websocket_what {
    ML_WEBSOCKET_MESSAGE, /* whole, its fragments together */
    ML_WEBSOCKET_PING,
    ML_WEBSOCKET_PONG,
    ML_WEBSOCKET_CLOSE,
};

/* Makes messages of the frames of a server, cut anywhere. */
struct ml_websocket_reader {
    size_t message_bytes_max;
    unsigned char head[ML_WEBSOCKET_HEAD_MAX];
    size_t head_len;
    bool in_payload;
    uint64_t left; /* of the payload */
    struct ml_buf message, control;
    bool is_fragmented; /* `message` has some fragments, and more follow */
};

void ml_websocket_reader_init(struct ml_websocket_reader *reader, size_t message_bytes_max);
void ml_websocket_reader_fini(struct ml_websocket_reader *reader);

/* Takes bytes from the front of `rest`. 1: `what` and `payload` are the next event, and `payload`
 * is valid until the next call. 0: `rest` is used up. ML_EINVALID: the server broke the protocol.
 * ML_ELIMIT: a message is longer than message_bytes_max. */
ML_NODISCARD int ml_websocket_read(struct ml_websocket_reader *reader, struct ml_str *rest,
                                   enum ml_websocket_what *what, struct ml_str *payload,
                                   struct ml_err *err);

/* ---- connections ---- */

struct ml_websocket;

struct ml_websocket_opts {
    struct ml_http_client *client;
    struct ml_loop *loop;
    const char *url;                      /* http://… or https://… */
    const char *protocol;                 /* Sec-WebSocket-Protocol: the only one that we speak */
    const struct ml_http_header *headers; /* such as Authorization; valid, and wiped when sent */
    size_t header_count;
    const struct ml_http_tls *tls; /* as of struct ml_http_request; must outlive it */
    int64_t patience_ms;           /* for the connection, and for the answer to the handshake */
    size_t message_bytes_max;      /* of the server's */
};

struct ml_websocket_handler {
    void (*open)(void *context);
    /* Non-zero ends it: closed() comes with that error. The slice lives during the call. */
    int (*message)(void *context, struct ml_str bytes, struct ml_err *err);
    /* The server answered with another status than 101: makes an error of it. NULL: one that names
     * the status. */
    void (*refused)(void *context, int status, struct ml_str body, struct ml_err *err);
    /* Always the last, unless freed. `err` NULL: the server closed it as the protocol says. It is
     * freed when this returns. */
    void (*closed)(void *context, const struct ml_err *err);
};

/* Callbacks come later from the loop, never inside this call; it may be freed in them, but for
 * closed(). */
struct ml_websocket *ml_websocket_open(const struct ml_websocket_opts *opts,
                                       const struct ml_websocket_handler *handler, void *context);
/* One binary message, once it is open. Returns the bytes that wait to be sent. */
size_t ml_websocket_send(struct ml_websocket *websocket, struct ml_str bytes);
/* Says so to the server, if that can be done at once. NULL is fine. */
void ml_websocket_free(struct ml_websocket *websocket);
