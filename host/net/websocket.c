/* The client's side of a WebSocket: the handshake, frames, pings and the close. */
#include "net/websocket.h"

#include "base/wipe.h"

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <strings.h>

/* ---- frames of the server ---- */

enum opcode {
    OPCODE_CONTINUATION = 0,
    OPCODE_TEXT = 1,
    OPCODE_BINARY = 2,
    OPCODE_CLOSE = 8,
    OPCODE_PING = 9,
    OPCODE_PONG = 10,
};

#define LAST_FRAME 0x80
#define MASKED     0x80

void ml_websocket_reader_init(struct ml_websocket_reader *self, size_t message_bytes_max)
{
    *self = (struct ml_websocket_reader){.message_bytes_max = message_bytes_max};
    ml_buf_init(&self->message, message_bytes_max);
    ml_buf_init(&self->control, ML_WEBSOCKET_CONTROL_MAX);
}

void ml_websocket_reader_fini(struct ml_websocket_reader *self)
{
    ml_buf_fini(&self->message);
    ml_buf_fini(&self->control);
}

static int break_protocol(struct ml_err *err, const char *how)
{
    return ml_err_set(err, ML_EINVALID, "the server broke the protocol of WebSockets: %s", how);
}

static size_t head_need(const struct ml_websocket_reader *self)
{
    size_t size = self->head_len < 2 ? 0 : self->head[1] & 0x7f;
    return size == 126 ? 4 : size == 127 ? 10 : 2;
}

static bool is_control(int opcode)
{
    return opcode >= OPCODE_CLOSE;
}

static int check_control(const struct ml_websocket_reader *self, int opcode, struct ml_err *err)
{
    if (opcode > OPCODE_PONG)
        return break_protocol(err, "a frame of an unknown kind");
    if (!(self->head[0] & LAST_FRAME) || self->left > ML_WEBSOCKET_CONTROL_MAX)
        return break_protocol(err, "a control frame that is not whole and short");
    return 0;
}

static int check_data(const struct ml_websocket_reader *self, int opcode, struct ml_err *err)
{
    size_t has = self->is_fragmented ? self->message.len : 0;
    if (opcode == OPCODE_TEXT)
        return break_protocol(err, "a message of text, where bytes are expected");
    if (opcode > OPCODE_BINARY)
        return break_protocol(err, "a frame of an unknown kind");
    if ((opcode == OPCODE_CONTINUATION) != self->is_fragmented)
        return break_protocol(err, "fragments out of order");
    if (self->left > self->message_bytes_max - has)
        return ml_err_set(err, ML_ELIMIT, "a message of the server has more than %zu bytes",
                          self->message_bytes_max);
    return 0;
}

/* The head is whole. */
static int begin_payload(struct ml_websocket_reader *self, struct ml_err *err)
{
    int opcode = self->head[0] & 0x0f;
    self->left = self->head[1] & 0x7f;
    if (self->head_len > 2)
        self->left = 0;
    for (size_t i = 2; i < self->head_len; i++)
        self->left = self->left << 8 | self->head[i];
    if (self->head[0] & 0x70)
        return break_protocol(err, "a frame of an extension that was not agreed on");
    if (self->head[1] & MASKED)
        return break_protocol(err, "a masked frame");
    int r = is_control(opcode) ? check_control(self, opcode, err) : check_data(self, opcode, err);
    if (r < 0)
        return r;
    self->in_payload = true;
    if (is_control(opcode))
        ml_buf_clear(&self->control);
    else if (!self->is_fragmented)
        ml_buf_clear(&self->message);
    return 0;
}

/* The payload is whole. True: so is something to tell. */
static bool end_payload(struct ml_websocket_reader *self, enum ml_websocket_what *what,
                        struct ml_str *payload)
{
    int opcode = self->head[0] & 0x0f;
    bool is_last = self->head[0] & LAST_FRAME;
    self->in_payload = false;
    self->head_len = 0;
    if (is_control(opcode)) {
        *what = opcode == OPCODE_PING   ? ML_WEBSOCKET_PING
                : opcode == OPCODE_PONG ? ML_WEBSOCKET_PONG
                                        : ML_WEBSOCKET_CLOSE;
        *payload = ml_buf_str(&self->control);
        return true;
    }
    self->is_fragmented = !is_last;
    *what = ML_WEBSOCKET_MESSAGE;
    *payload = ml_buf_str(&self->message);
    return is_last;
}

static struct ml_str take_front(struct ml_str *rest, uint64_t len)
{
    struct ml_str front = {rest->ptr, (size_t)ML_MIN((uint64_t)rest->len, len)};
    *rest = (struct ml_str){rest->ptr + front.len, rest->len - front.len};
    return front;
}

int ml_websocket_read(struct ml_websocket_reader *self, struct ml_str *rest,
                      enum ml_websocket_what *what, struct ml_str *payload, struct ml_err *err)
{
    while (rest->len > 0 || (self->in_payload && self->left == 0)) {
        if (!self->in_payload) {
            struct ml_str byte = take_front(rest, 1);
            self->head[self->head_len++] = (unsigned char)byte.ptr[0];
            if (self->head_len == head_need(self) && begin_payload(self, err) < 0)
                return err->kind;
            continue;
        }
        bool of_control = is_control(self->head[0] & 0x0f);
        struct ml_str piece = take_front(rest, self->left);
        ml_buf_append_str(of_control ? &self->control : &self->message, piece);
        self->left -= piece.len;
        if (self->left == 0 && end_payload(self, what, payload))
            return 1;
    }
    return 0;
}

/* ---- frames of the client ---- */

#define MASK_LEN 4

/* RFC 6455, 5.3: masked, by bytes that nobody can foresee. Ends the process without such bytes. */
static void append_frame(struct ml_buf *out, enum opcode opcode, struct ml_str payload)
{
    unsigned char head[ML_WEBSOCKET_HEAD_MAX + MASK_LEN] = {LAST_FRAME | (unsigned char)opcode};
    size_t width = payload.len < 126 ? 0 : payload.len <= 0xffff ? 2 : 8;
    head[1] = MASKED | (unsigned char)(width == 0 ? payload.len : width == 2 ? 126 : 127);
    for (size_t i = 0; i < width; i++)
        head[2 + i] = (unsigned char)((uint64_t)payload.len >> (8 * (width - 1 - i)));
    unsigned char *mask = head + 2 + width;
    ml_assert(RAND_bytes(mask, MASK_LEN) == 1);
    char *to = ml_buf_reserve(out, 2 + width + MASK_LEN + payload.len);
    ml_assert(to != NULL);
    memcpy(to, head, 2 + width + MASK_LEN);
    to += 2 + width + MASK_LEN;
    for (size_t i = 0; i < payload.len; i++)
        to[i] = (char)((unsigned char)payload.ptr[i] ^ mask[i % MASK_LEN]);
    out->len += 2 + width + MASK_LEN + payload.len;
}

/* ---- the handshake ---- */

#define KEY_BYTES     16
#define KEY_LEN       24 /* in base64 */
#define ACCEPT_LEN    28
#define HEAD_MAX      ((size_t)16 * 1024)
#define REFUSAL_MAX   ((size_t)64 * 1024)                    /* head and body */
#define ACCEPT_SUFFIX "258EAFA5-E914-47DA-95CA-C5AB0DC85B11" /* RFC 6455, 1.3 */

static void make_key(char out[KEY_LEN + 1])
{
    unsigned char bytes[KEY_BYTES];
    ml_assert(RAND_bytes(bytes, sizeof bytes) == 1);
    EVP_EncodeBlock((unsigned char *)out, bytes, sizeof bytes);
}

static void make_accept(const char *key, char out[ACCEPT_LEN + 1])
{
    ML_AUTO_FREE char *text = ml_asprintf("%s" ACCEPT_SUFFIX, key);
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int len = 0;
    ml_assert(EVP_Digest(text, strlen(text), digest, &len, EVP_sha1(), NULL) == 1);
    EVP_EncodeBlock((unsigned char *)out, digest, (int)len);
}

/* The value of a field of the head, or {NULL, 0}. */
static struct ml_str find_field(struct ml_str head, const char *name)
{
    (void)ml_str_cut(&head, '\n'); /* the status line */
    while (head.len > 0) {
        struct ml_str value = ml_str_cut(&head, '\n');
        struct ml_str field = ml_str_trim(ml_str_cut(&value, ':'));
        if (field.len == strlen(name) && strncasecmp(field.ptr, name, field.len) == 0)
            return ml_str_trim(value);
    }
    return (struct ml_str){NULL, 0};
}

static bool has_word(struct ml_str list, const char *word)
{
    while (list.len > 0) {
        struct ml_str one = ml_str_trim(ml_str_cut(&list, ','));
        if (one.len == strlen(word) && strncasecmp(one.ptr, word, one.len) == 0)
            return true;
    }
    return false;
}

/* "HTTP/1.1 101 Switching Protocols"; 0: no such line. */
static int status_of(struct ml_str head)
{
    uint64_t status = 0;
    struct ml_str version = ml_str_cut(&head, ' ');
    if (!ml_str_starts(version, "HTTP/1.") || !ml_str_to_u64(ml_str_head(head, 3), &status))
        return 0;
    return status >= 100 && status <= 999 ? (int)status : 0;
}

/* ---- connections ---- */

enum phase { WEBSOCKET_CONNECTING, WEBSOCKET_SHAKING, WEBSOCKET_REFUSED, WEBSOCKET_OPEN };

struct ml_websocket {
    struct ml_http_link *link; /* NULL: it has ended */
    struct ml_websocket_handler handler;
    void *context;
    enum phase phase;
    char *request; /* the handshake, with the token; wiped when it was sent */
    char *protocol;
    char *peer; /* for messages: the URL up to its path */
    char accept[ACCEPT_LEN + 1];
    struct ml_buf head; /* of the answer, and the body of a refusal */
    struct ml_websocket_reader reader;
    struct ml_timer patience;
    int64_t patience_ms;
    bool is_inside; /* a callback that may free it */
    bool is_freed;  /* there: its memory goes afterwards */
};

static void websocket_free(struct ml_websocket *self)
{
    if (self->is_freed)
        return;
    ml_timer_stop(&self->patience);
    ml_http_link_free(ml_take(&self->link));
    ml_wipe_free(self->request);
    free(self->protocol);
    free(self->peer);
    ml_buf_fini(&self->head);
    ml_websocket_reader_fini(&self->reader);
    self->is_freed = true;
    if (!self->is_inside)
        free(self);
}

/* Begins a call of a function of the user's. */
static void enter(struct ml_websocket *self)
{
    self->is_inside = true;
}

/* Ends it. True: it was freed there, and is gone. */
static bool leave(struct ml_websocket *self)
{
    self->is_inside = false;
    if (!self->is_freed)
        return false;
    free(self);
    return true;
}

static void send_frame(struct ml_websocket *self, enum opcode opcode, struct ml_str payload)
{
    ML_AUTO(ml_buf_fini) struct ml_buf frame = ML_BUF_INIT;
    append_frame(&frame, opcode, payload);
    ml_http_link_write(self->link, ml_buf_str(&frame));
}

void ml_websocket_free(struct ml_websocket *self)
{
    static const char normal[] = {(char)(1000 >> 8), (char)(1000 & 0xff)};
    if (!self)
        return;
    if (self->phase == WEBSOCKET_OPEN && self->link)
        send_frame(self, OPCODE_CLOSE, (struct ml_str){normal, sizeof normal});
    websocket_free(self);
}

size_t ml_websocket_send(struct ml_websocket *self, struct ml_str bytes)
{
    ML_AUTO(ml_wipe_buf) struct ml_buf frame = ML_BUF_INIT;
    ml_assert(self->phase == WEBSOCKET_OPEN);
    append_frame(&frame, OPCODE_BINARY, bytes);
    return ml_http_link_write(self->link, ml_buf_str(&frame));
}

static void websocket_end(struct ml_websocket *self, const struct ml_err *err)
{
    const struct ml_websocket_handler handler = self->handler;
    void *context = self->context;
    websocket_free(self);
    handler.closed(context, err);
}

/* The server's close frame: "code 1008: policy". */
static int closed_by_server(struct ml_str payload, struct ml_err *err)
{
    if (payload.len < 2)
        return 0;
    int code = (unsigned char)payload.ptr[0] << 8 | (unsigned char)payload.ptr[1];
    struct ml_str why = {payload.ptr + 2, payload.len - 2};
    if (code == 1000 || code == 1001)
        return 0;
    return ml_err_set(err, ML_ENETWORK, "the server closed the WebSocket with code %d%s" ML_STR_FMT,
                      code, why.len > 0 ? ": " : "", ML_STR_ARG(why));
}

/* Passes on what has come. Returns 1 when it goes on; 0 when the server has closed it. */
static int take_frames(struct ml_websocket *self, struct ml_str bytes, struct ml_err *err)
{
    enum ml_websocket_what what;
    struct ml_str payload;
    int r;
    while ((r = ml_websocket_read(&self->reader, &bytes, &what, &payload, err)) == 1) {
        if (what == ML_WEBSOCKET_CLOSE)
            return closed_by_server(payload, err);
        if (what == ML_WEBSOCKET_PING)
            send_frame(self, OPCODE_PONG, payload);
        if (what != ML_WEBSOCKET_MESSAGE)
            continue;
        enter(self);
        int taken = self->handler.message(self->context, payload, err);
        if (leave(self))
            return 1;
        if (taken != 0)
            return taken;
    }
    return r < 0 ? r : 1;
}

static void accept_frames(struct ml_websocket *self, struct ml_str bytes)
{
    struct ml_err err = ML_ERR_INIT;
    int r = take_frames(self, bytes, &err); /* it may be freed now, if this is 1 */
    if (r < 1)
        websocket_end(self, r < 0 ? &err : NULL);
}

/* ---- answers to the handshake ---- */

static int check_answer(const struct ml_websocket *self, struct ml_str head, struct ml_err *err)
{
    struct ml_str protocol = find_field(head, "Sec-WebSocket-Protocol");
    const char *wrong = NULL;
    if (!has_word(find_field(head, "Upgrade"), "websocket") ||
        !has_word(find_field(head, "Connection"), "upgrade"))
        wrong = "it switches to another protocol";
    else if (!ml_str_is(find_field(head, "Sec-WebSocket-Accept"), self->accept))
        wrong = "its Sec-WebSocket-Accept is not that of our key";
    else if (!ml_str_is(protocol, self->protocol))
        wrong = "it does not speak the protocol that was asked for";
    else if (find_field(head, "Sec-WebSocket-Extensions").ptr)
        wrong = "it wants an extension that was not offered";
    if (!wrong)
        return 0;
    return ml_err_set(err, ML_ENETWORK, "the answer of %s is no WebSocket: %s", self->peer, wrong);
}

/* The chunks of a body without their heads; cut where the form is wrong. */
static void join_chunks(struct ml_str body, struct ml_buf *out)
{
    uint64_t size = 1;
    while (body.len > 0 && size > 0) {
        struct ml_str line = ml_str_trim(ml_str_cut(&body, '\n'));
        ML_AUTO_FREE char *text = ml_str_dup(line);
        char *end = NULL;
        size = strtoull(text, &end, 16);
        if (end == text)
            return;
        struct ml_str piece = take_front(&body, size);
        ml_buf_append_str(out, piece);
        (void)ml_str_cut(&body, '\n');
    }
}

/* With the blank line; 0: it is not whole. */
static size_t head_length(const struct ml_websocket *self)
{
    const char *end = memmem(self->head.ptr, self->head.len, "\r\n\r\n", 4);
    return end ? (size_t)(end - self->head.ptr) + 4 : 0;
}

static void end_refused(struct ml_websocket *self)
{
    ML_AUTO(ml_buf_fini) struct ml_buf joined = ML_BUF_INIT;
    size_t head_len = head_length(self);
    struct ml_str head = {self->head.ptr, head_len};
    struct ml_str body = {self->head.ptr + head_len, self->head.len - head_len};
    int status = status_of(head);
    struct ml_err err = ML_ERR_INIT;
    if (has_word(find_field(head, "Transfer-Encoding"), "chunked")) {
        join_chunks(body, &joined);
        body = ml_buf_str(&joined);
    }
    if (self->handler.refused)
        self->handler.refused(self->context, status, body, &err);
    if (!err.kind)
        ml_err_set(&err, ML_ENETWORK, "%s answers %d, and opens no WebSocket", self->peer, status);
    websocket_end(self, &err);
}

/* Has all of the body come? One without a length ends with the connection. */
static bool refusal_is_whole(const struct ml_websocket *self, struct ml_str head, size_t head_len)
{
    uint64_t len = 0;
    struct ml_str body = {self->head.ptr + head_len, self->head.len - head_len};
    if (has_word(find_field(head, "Transfer-Encoding"), "chunked"))
        return body.len >= 5 && memcmp(body.ptr + body.len - 5, "0\r\n\r\n", 5) == 0;
    struct ml_str value = find_field(head, "Content-Length");
    return (value.ptr && ml_str_to_u64(value, &len) && body.len >= len) || self->head.failed;
}

static void fail_handshake(struct ml_websocket *self, const char *how)
{
    struct ml_err err = ML_ERR_INIT;
    ml_err_set(&err, ML_ENETWORK, "the answer of %s is no WebSocket: %s", self->peer, how);
    websocket_end(self, &err);
}

/* The head is whole; frames may stand behind it. */
static void accept_head(struct ml_websocket *self, struct ml_str head, size_t head_len)
{
    struct ml_err err = ML_ERR_INIT;
    if (check_answer(self, head, &err) < 0) {
        websocket_end(self, &err);
        return;
    }
    ml_timer_stop(&self->patience);
    self->phase = WEBSOCKET_OPEN;
    ML_AUTO_FREE char *frames = ml_strndup(self->head.ptr + head_len, self->head.len - head_len);
    size_t frames_len = self->head.len - head_len;
    ml_buf_fini(&self->head);
    enter(self);
    self->handler.open(self->context);
    if (leave(self))
        return;
    accept_frames(self, (struct ml_str){frames, frames_len});
}

static void accept_answer(struct ml_websocket *self)
{
    size_t head_len = head_length(self);
    if (head_len == 0 && self->head.len >= HEAD_MAX)
        fail_handshake(self, "its head has more than 16 KiB");
    if (head_len == 0)
        return;
    struct ml_str head = {self->head.ptr, head_len};
    int status = status_of(head);
    if (status == 0)
        fail_handshake(self, "it has no HTTP status");
    else if (status == 101)
        accept_head(self, head, head_len);
    else if (refusal_is_whole(self, head, head_len))
        end_refused(self);
    else
        self->phase = WEBSOCKET_REFUSED;
}

/* ---- the link ---- */

static void on_link_open(void *context)
{
    struct ml_websocket *self = context;
    self->phase = WEBSOCKET_SHAKING;
    ml_timer_start(&self->patience, self->patience_ms * ML_NS_PER_MS);
    ml_http_link_write(self->link, ml_str_of(self->request));
    ml_wipe_free(ml_take(&self->request));
}

static void on_link_bytes(void *context, struct ml_str bytes)
{
    struct ml_websocket *self = context;
    if (self->phase == WEBSOCKET_OPEN) {
        accept_frames(self, bytes);
        return;
    }
    ml_buf_append_str(&self->head, bytes);
    accept_answer(self);
}

static void on_link_closed(void *context, const struct ml_err *err)
{
    struct ml_websocket *self = context;
    struct ml_err cut = ML_ERR_INIT;
    self->link = NULL; /* freed by itself */
    if (!err && self->phase == WEBSOCKET_REFUSED) {
        end_refused(self);
        return;
    }
    if (!err)
        ml_err_set(&cut, ML_ENETWORK, "%s cut the connection %s", self->peer,
                   self->phase == WEBSOCKET_OPEN ? "without closing the WebSocket"
                                                 : "before it answered");
    websocket_end(self, err ? err : &cut);
}

static void on_patience_over(void *context)
{
    struct ml_websocket *self = context;
    struct ml_err err = ML_ERR_INIT;
    ml_err_set(&err, ML_ETIMEOUT, "no answer from %s within %g s", self->peer,
               (double)self->patience_ms / 1000);
    websocket_end(self, &err);
}

/* ---- opening ---- */

/* The URL up to its path, which is empty when there is none. */
static struct ml_str origin_of(const char *url, const char **path)
{
    const char *scheme_end = strstr(url, "://");
    const char *host = scheme_end ? scheme_end + 3 : url;
    *path = host + strcspn(host, "/?");
    struct ml_str origin = {url, (size_t)(*path - url)};
    return origin;
}

/* In one piece of memory, to be wiped. */
static char *make_request(const struct ml_websocket_opts *opts, const char *key)
{
    const char *path;
    struct ml_str origin = origin_of(opts->url, &path);
    const char *host = memmem(origin.ptr, origin.len, "://", 3);
    host = host ? host + 3 : origin.ptr;
    ML_AUTO_FREE char *begin = ml_asprintf(
        "GET %s%s HTTP/1.1\r\nHost: %.*s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\nSec-WebSocket-Protocol: %s\r\n",
        *path == '/' ? "" : "/", path, (int)(path - host), host, key, opts->protocol);
    struct ml_buf out = ML_BUF_INIT;
    size_t len = strlen(begin) + 3;
    for (size_t i = 0; i < opts->header_count; i++)
        len += strlen(opts->headers[i].name) + strlen(opts->headers[i].value) + 4;
    ml_buf_reserve(&out, len);
    ml_buf_puts(&out, begin);
    for (size_t i = 0; i < opts->header_count; i++) {
        const struct ml_http_header *header = &opts->headers[i];
        ml_assert(ml_http_is_token(header->name) && !strpbrk(header->value, "\r\n"));
        ml_buf_puts(&out, header->name);
        ml_buf_puts(&out, ": ");
        ml_buf_puts(&out, header->value);
        ml_buf_puts(&out, "\r\n");
    }
    ml_buf_puts(&out, "\r\n");
    (void)ml_buf_cstr(&out);
    return out.ptr;
}

struct ml_websocket *ml_websocket_open(const struct ml_websocket_opts *opts,
                                       const struct ml_websocket_handler *handler, void *context)
{
    static const struct ml_http_link_handler link = {on_link_open, on_link_bytes, on_link_closed};
    struct ml_websocket *self = ml_new(struct ml_websocket);
    char key[KEY_LEN + 1];
    const char *path;
    make_key(key);
    make_accept(key, self->accept);
    self->handler = *handler;
    self->context = context;
    self->request = make_request(opts, key);
    self->protocol = ml_strdup(opts->protocol);
    self->peer = ml_str_dup(origin_of(opts->url, &path));
    self->patience_ms = opts->patience_ms;
    ml_buf_init(&self->head, REFUSAL_MAX);
    ml_websocket_reader_init(&self->reader, opts->message_bytes_max);
    ml_timer_init(&self->patience, opts->loop, on_patience_over, self);
    const struct ml_http_request request = {
        .url = opts->url,
        .tls = opts->tls,
        .deadlines = {.connect_ms = opts->patience_ms},
    };
    self->link = ml_http_connect(opts->client, &request, &link, self);
    return self;
}
