/* F13: what an HTTP/2 server may do to a connection: GOAWAY, gentle and not, RST_STREAM, and few
 * streams at once. A request that was not processed is sent again on another connection; one that
 * may have been processed is sent again only if it is a read. The peer is a process that counts
 * what it processed. */
#include "net_tls.h"

#include "tried.h"

#include <openssl/ssl.h>
#include <poll.h>
#include <sys/mman.h>

#define CALLS       24
#define STREAMS_MAX 2

enum act {
    ACT_ANSWER,
    ACT_GOAWAY_GENTLE, /* from the second request on: not processed */
    ACT_GOAWAY_ERROR,  /* the second one is processed, and not answered */
    ACT_RESET,         /* the same, by RST_STREAM */
    ACT_REFUSE,        /* the second one is not processed, by RST_STREAM */
    ACT_CLOSE,         /* the second one is processed, then the connection is closed */
    ACT_FEW_STREAMS,
};

/* Shared with the peer. */
struct tally {
    int connections;
    int processed;
    int most_open; /* streams at once on a connection that knows the limit */
};

struct peer_h2 {
    SSL *ssl;
    enum act act;
    struct tally *tally;
    int requests; /* of this connection */
    uint32_t open[64];
    int open_count;
    bool knows_limit; /* the client has acknowledged the server's settings */
    bool done;
};

enum frame { DATA = 0, HEADERS = 1, RST = 3, SETTINGS = 4, PING = 6, GOAWAY = 7 };

static void put32(unsigned char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> (24 - 8 * i));
}

static void send_frame(struct peer_h2 *peer, enum frame type, int flags, uint32_t stream,
                       const void *payload, size_t len)
{
    unsigned char frame[9 + 64] = {0, (unsigned char)(len >> 8), (unsigned char)len,
                                   (unsigned char)type, (unsigned char)flags};
    put32(frame + 5, stream);
    memcpy(frame + 9, payload, len);
    SSL_write(peer->ssl, frame, (int)(9 + len));
}

static void send_goaway(struct peer_h2 *peer, uint32_t last, uint32_t error)
{
    unsigned char payload[8];
    put32(payload, last);
    put32(payload + 4, error);
    send_frame(peer, GOAWAY, 0, 0, payload, sizeof payload);
    peer->done = true;
}

static void send_reset(struct peer_h2 *peer, uint32_t stream, uint32_t error)
{
    unsigned char payload[4];
    put32(payload, error);
    send_frame(peer, RST, 0, stream, payload, sizeof payload);
}

static void answer(struct peer_h2 *peer, uint32_t stream)
{
    send_frame(peer, HEADERS, 0x4, stream, "\x88", 1); /* :status 200, of the static table */
    send_frame(peer, DATA, 0x1, stream, "ok", 2);
}

static void process(struct peer_h2 *peer)
{
    __atomic_add_fetch(&peer->tally->processed, 1, __ATOMIC_SEQ_CST);
}

/* A request has come in whole. Only the first connection misbehaves. */
static void take(struct peer_h2 *peer, uint32_t stream)
{
    bool strike = ++peer->requests == 2 && peer->tally->connections == 1;
    switch (strike || peer->act == ACT_FEW_STREAMS ? peer->act : ACT_ANSWER) {
    case ACT_ANSWER:
        process(peer);
        answer(peer, stream);
        return;
    case ACT_GOAWAY_GENTLE:
        send_goaway(peer, stream - 2, 0);
        return;
    case ACT_GOAWAY_ERROR:
        process(peer);
        send_goaway(peer, stream, 0xb);
        return;
    case ACT_RESET:
        process(peer);
        send_reset(peer, stream, 0x2);
        return;
    case ACT_REFUSE:
        send_reset(peer, stream, 0x7);
        return;
    case ACT_CLOSE:
        process(peer);
        peer->done = true;
        return;
    case ACT_FEW_STREAMS:
        process(peer);
        peer->open[peer->open_count++ % 64] = stream;
        if (peer->knows_limit)
            peer->tally->most_open = ML_MAX(peer->tally->most_open, peer->open_count);
        return;
    }
}

static bool read_all(struct peer_h2 *peer, unsigned char *into, size_t len)
{
    for (size_t got = 0; got < len;) {
        int n = SSL_read(peer->ssl, into + got, (int)(len - got));
        if (n <= 0)
            return false;
        got += (size_t)n;
    }
    return true;
}

static bool read_frame(struct peer_h2 *peer)
{
    unsigned char head[9];
    static unsigned char payload[1 << 16];
    if (!read_all(peer, head, sizeof head))
        return false;
    size_t len = (size_t)head[1] << 8 | head[2];
    uint32_t stream = (uint32_t)head[6] << 16 | (uint32_t)head[7] << 8 | head[8];
    if (head[0] || !read_all(peer, payload, len))
        return false;
    if (head[3] == SETTINGS && (head[4] & 1))
        peer->knows_limit = true;
    else if (head[3] == SETTINGS)
        send_frame(peer, SETTINGS, 1, 0, "", 0);
    else if (head[3] == PING && !(head[4] & 1))
        send_frame(peer, PING, 1, 0, payload, 8);
    else if ((head[3] == HEADERS || head[3] == DATA) && (head[4] & 1))
        take(peer, stream);
    return true;
}

static void serve(struct peer_h2 *peer)
{
    unsigned char preface[24], few[6] = {0, 3, 0, 0, 0, STREAMS_MAX};
    struct pollfd readable = {.fd = SSL_get_fd(peer->ssl), .events = POLLIN};
    if (SSL_accept(peer->ssl) <= 0 || !read_all(peer, preface, sizeof preface))
        return;
    send_frame(peer, SETTINGS, 0, 0, few, peer->act == ACT_FEW_STREAMS ? sizeof few : 0);
    while (!peer->done) {
        if (SSL_pending(peer->ssl) || poll(&readable, 1, 20) > 0) {
            if (!read_frame(peer))
                return;
            continue;
        }
        while (peer->open_count > 0) /* what waits is answered when nothing more comes */
            answer(peer, peer->open[--peer->open_count]);
    }
}

static int choose_h2(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                     const unsigned char *in, unsigned int in_len, void *context)
{
    (void)ssl, (void)in, (void)in_len, (void)context;
    *out = (const unsigned char *)"h2";
    *out_len = 2;
    return SSL_TLSEXT_ERR_OK;
}

/* In a process of its own; one more for each connection. */
static void peer_main(struct tls_fixture *f, int fd, enum act act, struct tally *tally)
{
    char path[64];
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    snprintf(path, sizeof path, "%s/server.pem", f->folder);
    SSL_CTX_use_certificate_file(ctx, path, SSL_FILETYPE_PEM);
    snprintf(path, sizeof path, "%s/server.key", f->folder);
    SSL_CTX_use_PrivateKey_file(ctx, path, SSL_FILETYPE_PEM);
    SSL_CTX_set_alpn_select_cb(ctx, choose_h2, NULL);
    signal(SIGCHLD, SIG_IGN);
    for (;;) {
        int connection = accept(fd, NULL, NULL);
        if (connection < 0)
            _exit(1);
        tally->connections++;
        if (fork() == 0) {
            struct peer_h2 peer = {.ssl = SSL_new(ctx), .act = act, .tally = tally};
            SSL_set_fd(peer.ssl, connection);
            serve(&peer);
            shutdown(connection, SHUT_RDWR);
            _exit(0);
        }
        close(connection);
    }
}

/* Blocking, unlike peer_listen's: it has a process to itself. */
static struct tally *peer_start(struct tls_fixture *f, enum act act)
{
    struct tally *tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int fd = peer_listen(&f->port);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    f->server = fork();
    if (f->server == 0)
        peer_main(f, fd, act, tally);
    close(fd);
    return tally;
}

/* `count` requests at once, after one that opened the connection; returns how many went well. */
static int send_calls(struct tls_fixture *f, const char *method, int count, struct answer *answers)
{
    static const struct ml_http_tls tls = {.insecure = true};
    char url[64];
    int good = 0, waiting = 1;
    snprintf(url, sizeof url, "https://127.0.0.1:%d/api", f->port);
    const struct ml_http_request request = {.method = method,
                                            .url = url,
                                            .tls = &tls,
                                            .body = strcmp(method, "GET") ? ML_STR("{}")
                                                                          : ML_STR(""),
                                            .deadlines.total_ms = 10000};
    for (int i = 0; i <= count; i++) {
        answers[i] = (struct answer){.net = &f->net, .waiting = &waiting};
        if (i == 1)
            waiting = count;
        answer_send(&answers[i], &request);
        if (i == 0)
            net_run(&f->net);
    }
    if (count > 0)
        net_run(&f->net);
    for (int i = 0; i <= count; i++) {
        good += answers[i].err.kind == 0 && answers[i].status == 200;
        assert_true(answers[i].err.kind == 0 || answers[i].err.kind == ML_ENETWORK);
        ml_buf_fini(&answers[i].body);
    }
    return good;
}

static void test_h2_gentle_goaway_loses_nothing(void **state)
{
    static const char *const methods[] = {"GET", "POST"};
    for (size_t i = 0; i < 2 * ML_COUNT(methods); i++) {
        struct tls_fixture *f = *state;
        struct answer got[CALLS + 1];
        struct tally *tally = peer_start(f, ACT_GOAWAY_GENTLE);
        int count = i < ML_COUNT(methods) ? 1 : CALLS;
        int good = send_calls(f, methods[i % ML_COUNT(methods)], count, got);
        /* Nothing twice, nothing unknown. Reads are sent again by the client above. */
        assert_int_equal(tally->processed, good);
        tls_server_stop(f);
        faults_tried("F13", 1);
    }
}

/* A write that may have been processed is not sent again; the caller is told. */
static void test_h2_write_that_may_have_been_processed_is_sent_once(void **state)
{
    static const enum act acts[] = {ACT_GOAWAY_ERROR, ACT_RESET, ACT_CLOSE};
    static const char *const methods[] = {"POST", "PATCH", "PUT", "DELETE"};
    for (size_t i = 0; i < ML_COUNT(acts) * ML_COUNT(methods); i++) {
        struct tls_fixture *f = *state;
        struct answer got[2];
        struct tally *tally = peer_start(f, acts[i / ML_COUNT(methods)]);
        int good = send_calls(f, methods[i % ML_COUNT(methods)], 1, got);
        assert_int_equal(tally->processed, 2);
        assert_int_equal(good, 1);
        tls_server_stop(f);
        faults_tried("F13", 1);
    }
}

static void test_h2_stream_that_is_refused_was_not_processed(void **state)
{
    struct tls_fixture *f = *state;
    struct answer got[2];
    struct tally *tally = peer_start(f, ACT_REFUSE);
    int good = send_calls(f, "POST", 1, got);
    assert_int_equal(tally->processed, good);
    faults_tried("F13", 1);
}

/* Before the server has said its limit it may be exceeded (RFC 9113, 5.1.2 and 6.5.3): libcurl 8
 * opens further connections, and begins with all that waits. */
static void test_h2_no_more_streams_than_the_server_allows(void **state)
{
    struct tls_fixture *f = *state;
    struct answer got[CALLS + 1];
    struct tally *tally = peer_start(f, ACT_FEW_STREAMS);
    assert_int_equal(send_calls(f, "GET", CALLS, got), CALLS + 1);
    assert_int_equal(tally->processed, CALLS + 1);
    assert_in_range(tally->most_open, 1, STREAMS_MAX);
    faults_tried("F13", CALLS);
}

#define TLS(test) cmocka_unit_test_setup_teardown(test, tls_setup, tls_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TLS(test_h2_gentle_goaway_loses_nothing),
        TLS(test_h2_write_that_may_have_been_processed_is_sent_once),
        TLS(test_h2_stream_that_is_refused_was_not_processed),
        TLS(test_h2_no_more_streams_than_the_server_allows),
    };
    return cmocka_run_group_tests(tests, tls_group_setup, tls_group_teardown);
}
