/* For tests of the HTTP server: one under test, plain or over TLS, whose handler does what the
 * path says and counts. */
#pragma once

#include "net_raw.h"

#include "net/http_server.h"
#include "net/tls_authority.h"

struct served {
    struct net net;
    struct ml_tls_identity identity;
    struct ml_http_tls trust;
    SSL_CTX *ctx;
    struct ml_http_server *server;
    int requests;
    int closes; /* of clients gone in the middle */
    struct ml_http_exchange *held[8];
    size_t held_count;
    struct ml_timer ticker; /* writes to the first held one */
    size_t ticks;
    size_t waiting_max;
    char seen[512]; /* the last request: "METHOD path?query body-length" */
    uint64_t seen_hash;
};

static inline void served_closed(void *context)
{
    struct served *f = context;
    f->closes++;
    f->held_count = 0;
    ml_timer_stop(&f->ticker);
    ml_loop_stop(f->net.loop);
}

static inline void served_hold(struct served *f, struct ml_http_exchange *exchange)
{
    exchange->closed = served_closed;
    exchange->context = f;
    f->held[f->held_count++] = exchange;
}

static inline void served_say(struct ml_http_exchange *exchange, int status, struct ml_str body)
{
    static const struct ml_http_header extra[] = {{"X-One", "1"}, {"X-Bad", "a\r\nb"}};
    ml_http_answer(exchange, &(struct ml_http_answer){.status = status,
                                                      .content_type = "text/plain",
                                                      .headers = extra,
                                                      .header_count = ML_COUNT(extra),
                                                      .body = body});
}

static inline void served_stream(struct ml_http_exchange *exchange)
{
    ml_http_stream(exchange, &(struct ml_http_answer){.status = 200, .content_type = "text/event"});
}

/* Writes a block each millisecond while less than a megabyte waits, and cuts beyond. */
static inline void served_tick(void *context)
{
    static char block[64 * 1024];
    struct served *f = context;
    memset(block, 'b', sizeof block);
    size_t waiting = ml_http_write(f->held[0], (struct ml_str){block, sizeof block});
    f->ticks++;
    f->waiting_max = ML_MAX(f->waiting_max, waiting);
    if (waiting > 1024 * 1024) {
        ml_http_abort(f->held[0]);
        f->held_count = 0;
    } else {
        ml_timer_start(&f->ticker, ML_NS_PER_MS);
    }
}

static inline void served_big(struct ml_http_exchange *exchange)
{
    enum { BIG = 8 * 1024 * 1024 };
    char *body = ml_alloc(BIG);
    memset(body, 'y', BIG);
    served_say(exchange, 200, (struct ml_str){body, BIG});
    free(body);
}

static inline void served_pieces(struct ml_http_exchange *exchange)
{
    served_stream(exchange);
    ml_http_write(exchange, ML_STR("one,"));
    ml_http_write(exchange, ML_STR(""));
    ml_http_write(exchange, ML_STR("two"));
    ml_http_finish(exchange);
}

static inline void served_handle(void *context, struct ml_http_exchange *exchange)
{
    struct served *f = context;
    f->requests++;
    snprintf(f->seen, sizeof f->seen, "%s %s?%s %zu", exchange->method, exchange->path,
             exchange->query, exchange->body.len);
    f->seen_hash = ml_str_hash(exchange->body);
    if (strcmp(exchange->path, "/hold") == 0) {
        served_hold(f, exchange);
        ml_loop_stop(f->net.loop);
    } else if (strcmp(exchange->path, "/stream") == 0) {
        served_hold(f, exchange);
        served_stream(exchange);
        ml_http_write(exchange, ML_STR("begun"));
    } else if (strcmp(exchange->path, "/flood") == 0) {
        served_hold(f, exchange);
        served_stream(exchange);
        ml_timer_start(&f->ticker, 0);
    } else if (strcmp(exchange->path, "/pieces") == 0) {
        served_pieces(exchange);
    } else if (strcmp(exchange->path, "/abort") == 0) {
        ml_http_abort(exchange);
    } else if (strcmp(exchange->path, "/big") == 0) {
        served_big(exchange);
    } else if (strcmp(exchange->path, "/none") == 0) {
        ml_http_answer(exchange, &(struct ml_http_answer){.status = 204});
    } else {
        served_say(exchange, 200, ML_STR("hello"));
    }
}

/* Answers the held exchange of this number. */
static inline void served_release(struct served *f, size_t i)
{
    served_say(f->held[i], 200, ML_STR("released"));
}

static inline void served_refusal(void *context, int status, struct ml_http_answer *answer)
{
    (void)context;
    answer->content_type = "application/json";
    answer->body = status == 413 ? ML_STR("{\"code\":413}") : ML_STR("{}");
}

static inline void served_open(struct served *f, bool over_tls, const struct ml_http_limits *limits)
{
    struct ml_err err = ML_ERR_INIT;
    const struct ml_tls_authority_opts opts = {.clock = ml_clock_real(), .valid_s = 3600};
    if (over_tls) {
        assert_int_equal(ml_tls_authority_make(&opts, &f->identity, &err), 0);
        assert_int_equal(ml_tls_server_context(ml_str_of(f->identity.cert_pem),
                                               ml_str_of(f->identity.key_pem), &f->ctx, &err),
                         0);
        f->trust = (struct ml_http_tls){.ca_pem = ml_str_of(f->identity.ca_pem)};
    }
    assert_int_equal(ml_http_server_new(&(struct ml_http_server_opts){.loop = f->net.loop,
                                                                      .address = "127.0.0.1:0",
                                                                      .tls = f->ctx,
                                                                      .handle = served_handle,
                                                                      .context = f,
                                                                      .refusal = served_refusal,
                                                                      .limits = *limits},
                                        &f->server, &err),
                     0);
    SSL_CTX_free(ml_take(&f->ctx)); /* the server keeps its own reference */
}

static inline int served_setup(void **state)
{
    struct served *f = ml_new(struct served);
    net_init(&f->net);
    ml_timer_init(&f->ticker, f->net.loop, served_tick, f);
    *state = f;
    return 0;
}

static inline int served_teardown(void **state)
{
    struct served *f = *state;
    ml_timer_stop(&f->ticker);
    ml_http_server_free(f->server);
    ml_tls_identity_fini(&f->identity);
    net_fini(&f->net);
    free(f);
    return 0;
}

static inline int served_setup_plain(void **state)
{
    served_setup(state);
    served_open(*state, false, &(struct ml_http_limits){0});
    return 0;
}

static inline int served_setup_tls(void **state)
{
    served_setup(state);
    served_open(*state, true, &(struct ml_http_limits){0});
    return 0;
}

/* A client as the server wants it: TLS or plain. */
static inline void served_connect(struct served *f, struct raw *raw)
{
    if (f->trust.ca_pem.len)
        raw_connect_tls(raw, &f->net, ml_http_server_port(f->server));
    else
        raw_connect(raw, &f->net, ml_http_server_port(f->server));
}

/* The answer to one request on a connection of its own, which it asks to close. */
static inline void served_ask(struct served *f, struct raw *raw, const char *text)
{
    served_connect(f, raw);
    raw_send(raw, text);
    raw_wait(raw, NULL);
}
