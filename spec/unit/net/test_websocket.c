/* The client's side of a WebSocket against a peer that says whatever the test wants. */
#include "net_peer.h"

#include <openssl/evp.h>

#include "net/websocket.h"

#define PROTOCOL    "v4.channel.k8s.io"
#define MESSAGE_MAX ((size_t)1000)

struct ws {
    struct net net;
    struct peer peer;
    struct ml_websocket *websocket;
    int opens, messages, closes;
    struct ml_buf got; /* all messages, each with a '|' behind it */
    struct ml_err err; /* of closed(); kind 0: none */
    bool refuses;      /* to take a message */
    bool leaves;       /* when a message comes */
};

static void on_open(void *context)
{
    struct ws *f = context;
    f->opens++;
}

static int on_message(void *context, struct ml_str bytes, struct ml_err *err)
{
    struct ws *f = context;
    f->messages++;
    ml_buf_append_str(&f->got, bytes);
    ml_buf_putc(&f->got, '|');
    if (f->leaves)
        ml_websocket_free(ml_take(&f->websocket));
    return f->refuses ? ml_err_set(err, ML_EFORBIDDEN, "not this one") : 0;
}

static void on_refused(void *context, int status, struct ml_str body, struct ml_err *err)
{
    (void)context;
    ml_err_set(err, ML_EFORBIDDEN, "%d " ML_STR_FMT, status, ML_STR_ARG(body));
}

static void on_closed(void *context, const struct ml_err *err)
{
    struct ws *f = context;
    f->closes++;
    f->websocket = NULL;
    if (err)
        f->err = *err;
}

static int setup(void **state)
{
    static const struct peer_step silent[] = {{0, NULL}};
    struct ws *f = ml_new(struct ws);
    net_init(&f->net);
    peer_init(&f->peer, &f->net, silent, PEER_HOLD);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct ws *f = *state;
    ml_websocket_free(f->websocket);
    peer_fini(&f->peer);
    net_fini(&f->net);
    ml_buf_fini(&f->got);
    free(f);
    return 0;
}

static void open_at(struct ws *f, int port, int64_t patience_ms)
{
    static const struct ml_http_header headers[] = {{"Authorization", "Bearer secret"}};
    static const struct ml_websocket_handler handler = {on_open, on_message, on_refused, on_closed};
    ML_AUTO_FREE char *url = ml_asprintf("http://127.0.0.1:%d/pods/a/portforward?ports=1", port);
    f->websocket = ml_websocket_open(&(struct ml_websocket_opts){.client = f->net.client,
                                                                 .loop = f->net.loop,
                                                                 .url = url,
                                                                 .protocol = PROTOCOL,
                                                                 .headers = headers,
                                                                 .header_count = 1,
                                                                 .patience_ms = patience_ms,
                                                                 .message_bytes_max = MESSAGE_MAX},
                                     &handler, f);
}

/* Asks, and returns what the peer has got. */
static const char *shake(struct ws *f)
{
    open_at(f, f->peer.port, 5000);
    net_until(&f->net, f->peer.count == 1 && strstr(peer_request(&f->peer), "\r\n\r\n"));
    return peer_request(&f->peer);
}

static void say(struct ws *f, const char *bytes, size_t len)
{
    assert_int_equal(write(f->peer.connections[0].fd, bytes, len), len);
}

#define SAY(f, literal) say((f), (literal), sizeof(literal) - 1)

/* The Sec-WebSocket-Accept of the key in a request. */
static void accept_of(const char *request, char out[64])
{
    const char *key = strstr(request, "Sec-WebSocket-Key: ") + strlen("Sec-WebSocket-Key: ");
    ML_AUTO_FREE char *text = ml_asprintf("%.*s258EAFA5-E914-47DA-95CA-C5AB0DC85B11",
                                          (int)strcspn(key, "\r"), key);
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int len = 0;
    EVP_Digest(text, strlen(text), digest, &len, EVP_sha1(), NULL);
    EVP_EncodeBlock((unsigned char *)out, digest, (int)len);
}

static void say_switch(struct ws *f, const char *request, const char *behind, size_t len)
{
    char accept[64];
    accept_of(request, accept);
    struct ml_buf head = ML_BUF_INIT;
    ml_buf_printf(
        &head,
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: WebSocket\r\nConnection: "
        "keep-alive, Upgrade\r\nSec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: " PROTOCOL
        "\r\n\r\n",
        accept);
    ml_buf_append(&head, behind, len);
    say(f, head.ptr, head.len);
    ml_buf_fini(&head);
}

/* An open connection. */
static void open_ws(struct ws *f)
{
    say_switch(f, shake(f), "", 0);
    net_until(&f->net, f->opens == 1);
    ml_buf_clear(&f->peer.connections[0].request);
}

static void wait_closed(struct ws *f, int kind, const char *message)
{
    net_until(&f->net, f->closes == 1);
    assert_int_equal(kind, f->err.kind);
    if (kind)
        assert_has(f->err.message, message);
}

static void test_websocket_asks_as_the_rules_say(void **state)
{
    struct ws *f = *state;
    const char *request = shake(f);
    assert_has(request, "GET /pods/a/portforward?ports=1 HTTP/1.1\r\nHost: 127.0.0.1:");
    assert_has(request, "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n");
    assert_has(request, "\r\nSec-WebSocket-Version: 13\r\n");
    assert_has(request, "\r\nSec-WebSocket-Protocol: " PROTOCOL "\r\n");
    assert_has(request, "\r\nAuthorization: Bearer secret\r\n");
    say_switch(f, request, "", 0);
    net_until(&f->net, f->opens == 1);
}

static void test_websocket_joins_fragments_however_they_are_cut(void **state)
{
    static const char frames[] = "\x02\x02he\x89\x02hi\x00\x00\x80\x03llo\x82\x00\x82\x7e\x00\x01x";
    struct ws *f = *state;
    open_ws(f);
    for (size_t i = 0; i < sizeof frames - 1; i++) {
        say(f, frames + i, 1);
        net_settle(&f->net, 1);
    }
    net_until(&f->net, f->messages == 3);
    assert_string_equal("hello||x|", ml_buf_cstr(&f->got));
}

static void test_websocket_takes_frames_behind_the_head(void **state)
{
    struct ws *f = *state;
    say_switch(f, shake(f), "\x82\x02hi", 4);
    net_until(&f->net, f->messages == 1);
    assert_int_equal(1, f->opens);
    assert_string_equal("hi|", ml_buf_cstr(&f->got));
}

/* Takes the mask off the frame at `at`; returns what it has. The caller frees it. */
static char *unmask(const struct ml_buf *sent, size_t at, unsigned char opcode, size_t len)
{
    const unsigned char *frame = (const unsigned char *)sent->ptr + at;
    size_t head = len < 126 ? 2 : 4;
    assert_true(sent->len >= at + head + 4 + len);
    assert_int_equal(0x80 | opcode, frame[0]);
    assert_int_equal(len < 126 ? 0x80 | len : 0x80 | 126, frame[1]);
    if (head == 4)
        assert_int_equal(len, frame[2] << 8 | frame[3]);
    char *out = ml_zalloc(len + 1);
    for (size_t i = 0; i < len; i++)
        out[i] = (char)(frame[head + 4 + i] ^ frame[head + i % 4]);
    return out;
}

static void test_websocket_sends_masked_messages_and_answers_pings(void **state)
{
    struct ws *f = *state;
    char much[301];
    memset(much, 'y', 300);
    much[300] = '\0';
    open_ws(f);
    ml_websocket_send(f->websocket, ML_STR("hello"));
    ml_websocket_send(f->websocket, ml_str_of(much));
    SAY(f, "\x89\x02hi\x8a\x00");
    const struct ml_buf *sent = &f->peer.connections[0].request;
    net_until(&f->net, sent->len >= 11 + 308 + 8);
    ML_AUTO_FREE char *first = unmask(sent, 0, 2, 5), *second = unmask(sent, 11, 2, 300);
    ML_AUTO_FREE char *pong = unmask(sent, 11 + 308, 10, 2);
    assert_string_equal("hello", first);
    assert_string_equal(much, second);
    assert_string_equal("hi", pong);
    assert_true(memcmp(sent->ptr + 2, "\0\0\0\0", 4) != 0);
    ml_websocket_free(ml_take(&f->websocket));
    net_until(&f->net, f->peer.connections[0].closed_by_client);
    ML_AUTO_FREE char *close = unmask(sent, sent->len - 8, 8, 2);
    assert_memory_equal("\x03\xe8", close, 2);
    assert_int_equal(0, f->closes);
}

static void test_websocket_refuses_frames_that_the_rules_forbid(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        int kind;
        const char *message;
    } cases[] = {
        {"\x82\x83mmmmabc", 9, ML_EINVALID, "a masked frame"},
        {"\xc2\x01x", 3, ML_EINVALID, "an extension"},
        {"\x81\x01x", 3, ML_EINVALID, "a message of text"},
        {"\x83\x01x", 3, ML_EINVALID, "an unknown kind"},
        {"\x8b\x00", 2, ML_EINVALID, "an unknown kind"},
        {"\x80\x01x", 3, ML_EINVALID, "fragments out of order"},
        {"\x02\x01x\x82\x01y", 6, ML_EINVALID, "fragments out of order"},
        {"\x09\x01x", 3, ML_EINVALID, "not whole and short"},
        {"\x89\x7e\x00\x7e", 4, ML_EINVALID, "not whole and short"},
        {"\x82\x7e\x03\xe9", 4, ML_ELIMIT, "more than 1000 bytes"},
        {"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", 10, ML_ELIMIT, "more than 1000 bytes"},
        {"\x02\x01x\x80\x7e\x03\xe8", 7, ML_ELIMIT, "more than 1000 bytes"},
        {"\x88\x08\x03\xf0reason", 10, ML_ENETWORK, "code 1008: reason"},
        {"\x88\x02\x03\xe8", 4, 0, NULL},
        {"\x88\x00", 2, 0, NULL},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        teardown(state);
        setup(state);
        struct ws *f = *state;
        open_ws(f);
        say(f, cases[i].bytes, cases[i].len);
        wait_closed(f, cases[i].kind, cases[i].message);
        assert_int_equal(0, f->messages);
    }
}

static void test_websocket_refuses_an_answer_that_is_none(void **state)
{
    static const char *const answers[][2] = {
        {"HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
         "AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\nSec-WebSocket-Protocol: " PROTOCOL "\r\n\r\n",
         "Sec-WebSocket-Accept is not that of our key"},
        {"HTTP/1.1 101 S\r\nUpgrade: spdy\r\nConnection: Upgrade\r\n\r\n", "another protocol"},
        {"nonsense\r\n\r\n", "it has no HTTP status"},
    };
    for (size_t i = 0; i < ML_COUNT(answers); i++) {
        teardown(state);
        setup(state);
        struct ws *f = *state;
        shake(f);
        say(f, answers[i][0], strlen(answers[i][0]));
        wait_closed(f, ML_ENETWORK, answers[i][1]);
        assert_int_equal(0, f->opens);
    }
}

static void test_websocket_refuses_another_protocol_and_extensions(void **state)
{
    static const char *const fields[][2] = {
        {"Sec-WebSocket-Protocol: v5\r\n", "the protocol that was asked for"},
        {"", "the protocol that was asked for"},
        {"Sec-WebSocket-Protocol: " PROTOCOL "\r\nSec-WebSocket-Extensions: x\r\n", "an extension"},
    };
    for (size_t i = 0; i < ML_COUNT(fields); i++) {
        teardown(state);
        setup(state);
        struct ws *f = *state;
        char accept[64];
        accept_of(shake(f), accept);
        ML_AUTO_FREE char *head = ml_asprintf(
            "HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
            "%s\r\n%s\r\n",
            accept, fields[i][0]);
        say(f, head, strlen(head));
        wait_closed(f, ML_ENETWORK, fields[i][1]);
    }
}

static void test_websocket_tells_a_refusal_with_its_body(void **state)
{
    static const char *const answers[] = {
        "HTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\n\r\n{\"a\":\"b\"}",
        "HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: "
        "chunked\r\n\r\n4\r\n{\"a\"\r\n5\r\n:\"b\"}\r\n"
        "0\r\n\r\n",
    };
    for (size_t i = 0; i < ML_COUNT(answers); i++) {
        teardown(state);
        setup(state);
        struct ws *f = *state;
        shake(f);
        say(f, answers[i], 30);
        net_settle(&f->net, 5);
        assert_int_equal(0, f->closes);
        say(f, answers[i] + 30, strlen(answers[i]) - 30);
        wait_closed(f, ML_EFORBIDDEN, "403 {\"a\":\"b\"}");
    }
}

static void test_websocket_tells_a_refusal_that_ends_with_the_connection(void **state)
{
    struct ws *f = *state;
    shake(f);
    SAY(f, "HTTP/1.0 502 Bad Gateway\r\n\r\nno \0 upstream");
    net_settle(&f->net, 5);
    peer_hang_up(&f->peer.connections[0]);
    wait_closed(f, ML_EFORBIDDEN, "502 no ");
}

static void test_websocket_tells_a_cut(void **state)
{
    for (int when = 0; when < 3; when++) {
        teardown(state);
        setup(state);
        struct ws *f = *state;
        if (when == 0) {
            shake(f);
        } else {
            open_ws(f);
            f->peer.end = when == 1 ? PEER_CLOSE : PEER_RESET;
            SAY(f, "\x82\x05hel");
            net_settle(&f->net, 5);
        }
        peer_hang_up(&f->peer.connections[0]);
        wait_closed(f, ML_ENETWORK,
                    when == 0   ? "before it answered"
                    : when == 1 ? "without closing the WebSocket"
                                : "broke");
        assert_int_equal(0, f->messages);
    }
}

static void test_websocket_does_not_wait_for_ever(void **state)
{
    struct ws *f = *state;
    open_at(f, f->peer.port, 50);
    wait_closed(f, ML_ETIMEOUT, "no answer from http://127.0.0.1:");
}

static void test_websocket_tells_that_nobody_listens(void **state)
{
    struct ws *f = *state;
    int port;
    close(peer_listen(&port));
    open_at(f, port, 5000);
    wait_closed(f, ML_ENETWORK, "connection refused");
}

static void test_websocket_ends_with_the_error_of_its_user(void **state)
{
    struct ws *f = *state;
    open_ws(f);
    f->refuses = true;
    SAY(f, "\x82\x01x\x82\x01y");
    wait_closed(f, ML_EFORBIDDEN, "not this one");
    assert_int_equal(1, f->messages);
}

static void test_websocket_may_be_freed_in_a_message(void **state)
{
    struct ws *f = *state;
    open_ws(f);
    f->leaves = true;
    SAY(f, "\x82\x01x\x82\x01y");
    net_until(&f->net, f->peer.connections[0].closed_by_client);
    assert_int_equal(1, f->messages);
    assert_int_equal(0, f->closes);
}

/* The peer is a proxy: CONNECT first, then all as before. */
static void test_websocket_goes_through_a_proxy(void **state)
{
    struct ws *f = *state;
    ML_AUTO_FREE char *proxy = ml_asprintf("http://127.0.0.1:%d", f->peer.port);
    setenv("http_proxy", proxy, 1);
    static const struct ml_websocket_handler handler = {on_open, on_message, on_refused, on_closed};
    f->websocket = ml_websocket_open(&(struct ml_websocket_opts){.client = f->net.client,
                                                                 .loop = f->net.loop,
                                                                 .url = "http://api.test:81/x",
                                                                 .protocol = PROTOCOL,
                                                                 .patience_ms = 5000,
                                                                 .message_bytes_max = MESSAGE_MAX},
                                     &handler, f);
    net_until(&f->net, f->peer.count == 1 && strstr(peer_request(&f->peer), "\r\n\r\n"));
    unsetenv("http_proxy");
    assert_has(peer_request(&f->peer), "CONNECT api.test:81 HTTP/1.1\r\n");
    ml_buf_clear(&f->peer.connections[0].request);
    SAY(f, "HTTP/1.1 200 OK\r\n\r\n");
    net_until(&f->net, strstr(peer_request(&f->peer), "\r\n\r\n"));
    assert_has(peer_request(&f->peer), "GET /x HTTP/1.1\r\nHost: api.test:81\r\n");
    say_switch(f, peer_request(&f->peer), "\x82\x01x", 3);
    net_until(&f->net, f->messages == 1);
}

static void test_websocket_sends_much_to_a_slow_reader(void **state)
{
    struct ws *f = *state;
    const size_t len = (size_t)4 * 1024 * 1024;
    ML_AUTO_FREE char *much = ml_zalloc(len + 1);
    memset(much, 'z', len);
    open_ws(f);
    f->peer.connections[0].request.len_max = 2 * len;
    size_t waits = ml_websocket_send(f->websocket, (struct ml_str){much, len});
    assert_true(waits > 0);
    ml_websocket_send(f->websocket, ML_STR("end"));
    net_until(&f->net, f->peer.connections[0].request.len == len + 14 + 3 + 6);
}

/* ---- links ---- */

static void on_raw_bytes(void *context, struct ml_str bytes)
{
    struct ws *f = context;
    ml_buf_append_str(&f->got, bytes);
}

static const struct ml_http_link_handler raw = {on_open, on_raw_bytes, on_closed};

static struct ml_http_link *connect_raw(struct ws *f)
{
    ML_AUTO_FREE char *url = ml_asprintf("http://127.0.0.1:%d", f->peer.port);
    const struct ml_http_request request = {.url = url, .deadlines = {.connect_ms = 5000}};
    return ml_http_connect(f->net.client, &request, &raw, f);
}

static void test_http_link_passes_bytes_and_the_end(void **state)
{
    struct ws *f = *state;
    struct ml_http_link *link = connect_raw(f);
    net_until(&f->net, f->opens == 1 && f->peer.count == 1);
    assert_int_equal(0, ml_http_link_write(link, ML_STR("a\r\n\r\n")));
    net_until(&f->net, strcmp(peer_request(&f->peer), "a\r\n\r\n") == 0);
    SAY(f, "b");
    net_until(&f->net, f->got.len == 1);
    peer_hang_up(&f->peer.connections[0]);
    wait_closed(f, 0, NULL);
}

static void test_http_link_may_be_freed_before_and_after_it_is_open(void **state)
{
    struct ws *f = *state;
    ml_http_link_free(connect_raw(f));
    struct ml_http_link *link = connect_raw(f);
    net_until(&f->net, f->opens == 1 && f->peer.count >= 1);
    ml_http_link_free(link);
    net_until(&f->net, f->peer.connections[f->peer.count - 1].closed_by_client);
    assert_int_equal(0, f->closes);
}

#define WS_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WS_TEST(test_websocket_asks_as_the_rules_say),
        WS_TEST(test_websocket_joins_fragments_however_they_are_cut),
        WS_TEST(test_websocket_takes_frames_behind_the_head),
        WS_TEST(test_websocket_sends_masked_messages_and_answers_pings),
        WS_TEST(test_websocket_refuses_frames_that_the_rules_forbid),
        WS_TEST(test_websocket_refuses_an_answer_that_is_none),
        WS_TEST(test_websocket_refuses_another_protocol_and_extensions),
        WS_TEST(test_websocket_tells_a_refusal_with_its_body),
        WS_TEST(test_websocket_tells_a_refusal_that_ends_with_the_connection),
        WS_TEST(test_websocket_tells_a_cut),
        WS_TEST(test_websocket_does_not_wait_for_ever),
        WS_TEST(test_websocket_tells_that_nobody_listens),
        WS_TEST(test_websocket_ends_with_the_error_of_its_user),
        WS_TEST(test_websocket_may_be_freed_in_a_message),
        WS_TEST(test_websocket_goes_through_a_proxy),
        WS_TEST(test_websocket_sends_much_to_a_slow_reader),
        WS_TEST(test_http_link_passes_bytes_and_the_end),
        WS_TEST(test_http_link_may_be_freed_before_and_after_it_is_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
