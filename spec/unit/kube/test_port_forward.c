/* A connection to a port in a pod, through a server over TLS that plays the API server and the
 * kubelet. */
#include "unit.h"

#include "kube/kubeconfig.h"
#include "kube/port_forward.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "net/tls.h"

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <stdio.h>

#define BOUND_NS (20 * ML_NS_PER_S)
#define STATUS                                                                                     \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"pods "        \
    "\\\"a\\\" is "                                                                                \
    "forbidden: User \\\"eve\\\" cannot create resource "                                          \
    "\\\"pods/portforward\\\"\",\"reason\":\"Forbidden\",\"code\":403}"

struct world {
    struct ml_loop *loop;
    struct ml_tls_identity tls;
    struct ml_http_server *server;
    struct ml_http_exchange *upgraded; /* NULL: none is open */
    char asked[256];                   /* path and query */
    char authorization[64], impersonated[64], protocol[64];
    struct ml_buf sent; /* by the client, still masked */
    bool refuses;
    struct ml_http_client *http;
    struct ml_kubeconfig config;
    struct ml_credentials *credentials;
    struct ml_port_forward *forward;
    int opens, closes;
    bool leaves; /* when bytes come */
    struct ml_buf got;
    struct ml_err err;
};

static const char *header_of(const struct ml_http_exchange *exchange, const char *name)
{
    const char *value = ml_http_header(exchange, name);
    return value ? value : "";
}

static void on_client_bytes(void *context, struct ml_str bytes)
{
    struct world *world = context;
    ml_buf_append_str(&world->sent, bytes);
}

static void on_client_gone(void *context)
{
    struct world *world = context;
    world->upgraded = NULL;
}

static void upgrade(struct world *world, struct ml_http_exchange *exchange)
{
    ML_AUTO_FREE char *text = ml_asprintf("%s258EAFA5-E914-47DA-95CA-C5AB0DC85B11",
                                          header_of(exchange, "Sec-WebSocket-Key"));
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int len = 0;
    char accept[64];
    EVP_Digest(text, strlen(text), digest, &len, EVP_sha1(), NULL);
    EVP_EncodeBlock((unsigned char *)accept, digest, (int)len);
    const struct ml_http_header headers[] = {{"Connection", "Upgrade"},
                                             {"Upgrade", "websocket"},
                                             {"Sec-WebSocket-Accept", accept},
                                             {"Sec-WebSocket-Protocol", world->protocol}};
    exchange->received = on_client_bytes;
    exchange->closed = on_client_gone;
    exchange->context = world;
    world->upgraded = exchange;
    assert_true(ml_http_upgrade(exchange, headers, ML_COUNT(headers)));
}

static void answer(void *context, struct ml_http_exchange *exchange)
{
    struct world *world = context;
    snprintf(world->asked, sizeof world->asked, "%s?%s", exchange->path, exchange->query);
    snprintf(world->authorization, sizeof world->authorization, "%s",
             header_of(exchange, "Authorization"));
    snprintf(world->impersonated, sizeof world->impersonated, "%s",
             header_of(exchange, "Impersonate-User"));
    snprintf(world->protocol, sizeof world->protocol, "%s",
             header_of(exchange, "Sec-WebSocket-Protocol"));
    ml_http_forget_header(exchange, "Authorization");
    assert_int_equal('\0', header_of(exchange, "Authorization")[0]);
    if (!world->refuses)
        upgrade(world, exchange);
    else
        ml_http_answer(exchange, &(struct ml_http_answer){.status = 403,
                                                          .content_type = "application/json",
                                                          .body = ML_STR(STATUS)});
}

static void serve(struct world *world)
{
    const struct ml_tls_authority_opts opts = {.clock = ml_clock_real(), .valid_s = 3600};
    struct ml_err err = ML_ERR_INIT;
    SSL_CTX *ctx = NULL;
    assert_int_equal(0, ml_tls_authority_make(&opts, &world->tls, &err));
    assert_int_equal(0, ml_tls_server_context(ml_str_of(world->tls.cert_pem),
                                              ml_str_of(world->tls.key_pem), &ctx, &err));
    const struct ml_http_server_opts server = {.loop = world->loop,
                                               .address = "127.0.0.1:0",
                                               .tls = ctx,
                                               .handle = answer,
                                               .context = world};
    assert_int_equal(0, ml_http_server_new(&server, &world->server, &err));
    SSL_CTX_free(ctx);
}

static int setup(void **state)
{
    struct world *world = ml_new(struct world);
    world->loop = ml_loop_new(ml_clock_real());
    serve(world);
    world->http = ml_http_client_new(world->loop, "moonloop-test");
    world->config.server = ml_asprintf("https://127.0.0.1:%d", ml_http_server_port(world->server));
    world->config.tls.ca_pem = ml_str_of(world->tls.ca_pem);
    world->config.authorization = ml_strdup("Bearer secret");
    world->credentials = ml_credentials_new(
        &(struct ml_credentials_opts){.loop = world->loop, .config = &world->config});
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    ml_port_forward_free(world->forward);
    ml_http_client_free(world->http);
    ml_credentials_free(world->credentials);
    ml_http_server_free(world->server);
    ml_tls_identity_fini(&world->tls);
    ml_loop_free(world->loop);
    free(world->config.server);
    free(world->config.authorization);
    ml_buf_fini(&world->sent);
    ml_buf_fini(&world->got);
    free(world);
    return 0;
}

static void on_open(void *context)
{
    struct world *world = context;
    world->opens++;
}

static void on_received(void *context, struct ml_str bytes)
{
    struct world *world = context;
    ml_buf_append_str(&world->got, bytes);
    if (world->leaves)
        ml_port_forward_free(ml_take(&world->forward));
}

static void on_closed(void *context, const struct ml_err *err)
{
    struct world *world = context;
    world->closes++;
    world->forward = NULL;
    if (err)
        world->err = *err;
}

static void stop(void *context)
{
    ml_loop_stop(context);
}

/* Serves the loop for a millisecond. */
static void turn(struct world *world)
{
    struct ml_timer timer;
    ml_timer_init(&timer, world->loop, stop, world->loop);
    ml_timer_start(&timer, ML_NS_PER_MS);
    ml_loop_run(world->loop);
    ml_timer_stop(&timer);
}

#define until(world, condition)                                                                    \
    do {                                                                                           \
        int64_t end_ns = ml_clock_monotonic(ml_clock_real()) + BOUND_NS;                           \
        while (!(condition)) {                                                                     \
            if (ml_clock_monotonic(ml_clock_real()) > end_ns)                                      \
                fail_msg("it did not come: %s (%s)", #condition, (world)->err.message);            \
            turn(world);                                                                           \
        }                                                                                          \
    } while (0)

static void begin(struct world *world)
{
    static const struct ml_port_forward_handler handler = {on_open, on_received, on_closed};
    const struct ml_port_forward_opts opts = {
        .loop = world->loop,
        .http = world->http,
        .credentials = world->credentials,
        .ns = ML_STR("shop"),
        .pod = ML_STR("a"),
        .port = 8082,
        .patience_ms = 10000,
    };
    world->forward = ml_port_forward_open(&opts, &handler, world);
}

static void open_forward(struct world *world)
{
    begin(world);
    until(world, world->opens == 1 && world->upgraded);
}

#define SAY(world, frame)                                                                          \
    ml_http_write((world)->upgraded, (struct ml_str){(frame), sizeof(frame) - 1})

static void test_port_forward_asks_for_the_port_of_the_pod(void **state)
{
    struct world *world = *state;
    open_forward(world);
    assert_string_equal("/api/v1/namespaces/shop/pods/a/portforward?ports=8082", world->asked);
    assert_string_equal("Bearer secret", world->authorization);
    assert_string_equal("v4.channel.k8s.io", world->protocol);
}

static void test_port_forward_skips_the_ports_of_the_channels(void **state)
{
    struct world *world = *state;
    open_forward(world);
    SAY(world, "\x82\x03\x00\x92\x1f\x82\x03\x01\x92\x1f\x82\x03\x00hi\x82\x01\x00\x82\x02\x00!");
    until(world, world->got.len == 3);
    assert_string_equal("hi!", ml_buf_cstr(&world->got));
}

/* A kubelet may write the port in two pieces, or with the first bytes. */
static void test_port_forward_skips_a_port_that_is_cut(void **state)
{
    struct world *world = *state;
    open_forward(world);
    SAY(world, "\x82\x02\x00\x92\x82\x04\x00\x1fhi");
    until(world, world->got.len == 2);
    assert_string_equal("hi", ml_buf_cstr(&world->got));
}

static void test_port_forward_sends_much_over_tls(void **state)
{
    const size_t len = (size_t)2 * 1024 * 1024;
    struct world *world = *state;
    ML_AUTO_FREE char *much = ml_zalloc(len);
    open_forward(world);
    ml_port_forward_send(world->forward, ML_STR("ahead"));
    ml_port_forward_send(world->forward, (struct ml_str){much, len});
    ml_port_forward_send(world->forward, ML_STR("behind"));
    until(world, world->sent.len == (2 + 4 + 6) + (10 + 4 + 1 + len) + (2 + 4 + 7));
    const unsigned char *frame = (const unsigned char *)world->sent.ptr;
    assert_int_equal(0x86, frame[1]);
    assert_int_equal(0, frame[2] ^ frame[6]); /* the channel */
    assert_int_equal('a', frame[3] ^ frame[7]);
    assert_int_equal(0, world->closes);
}

/* Of several TLS records, and more than is read at once. */
static void test_port_forward_receives_much_over_tls(void **state)
{
    const size_t len = (size_t)512 * 1024;
    struct world *world = *state;
    ML_AUTO_FREE char *much = ml_zalloc(len);
    open_forward(world);
    SAY(world, "\x82\x03\x00\x92\x1f");
    for (int i = 0; i < 4; i++) {
        SAY(world, "\x82\x7f\x00\x00\x00\x00\x00\x08\x00\x01\x00");
        ml_http_write(world->upgraded, (struct ml_str){much, len});
    }
    until(world, world->got.len == 4 * len);
    assert_int_equal(0, world->closes);
}

static void test_port_forward_tells_the_error_of_the_port(void **state)
{
    struct world *world = *state;
    open_forward(world);
    SAY(world, "\x82\x03\x01\x92\x1f\x82\x0b\x01no service");
    until(world, world->closes == 1);
    assert_int_equal(ML_ENETWORK, world->err.kind);
    assert_string_equal("port 8082 of pod a: no service", world->err.message);
}

static void test_port_forward_refuses_an_unknown_channel(void **state)
{
    struct world *world = *state;
    open_forward(world);
    SAY(world, "\x82\x02\x07x");
    until(world, world->closes == 1);
    assert_int_equal(ML_EINVALID, world->err.kind);
}

static void test_port_forward_tells_why_the_server_refuses_it(void **state)
{
    struct world *world = *state;
    world->refuses = true;
    begin(world);
    until(world, world->closes == 1);
    assert_int_equal(0, world->opens);
    assert_int_equal(ML_EFORBIDDEN, world->err.kind);
    assert_int_equal(403, world->err.http);
    assert_non_null(strstr(world->err.message, "User \"eve\" cannot create resource"));
}

static void test_port_forward_tells_its_end(void **state)
{
    struct world *world = *state;
    open_forward(world);
    SAY(world, "\x88\x02\x03\xe8");
    until(world, world->closes == 1);
    assert_int_equal(0, world->err.kind);
}

static void test_port_forward_may_be_freed_at_any_time(void **state)
{
    struct world *world = *state;
    begin(world);
    ml_port_forward_free(ml_take(&world->forward));
    open_forward(world);
    world->leaves = true;
    SAY(world, "\x82\x03\x00\x92\x1f\x82\x03\x00hi\x82\x03\x00hi");
    until(world, !world->upgraded);
    assert_int_equal(2, world->got.len);
    assert_int_equal(0, world->closes);
}

#define FORWARD_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FORWARD_TEST(test_port_forward_asks_for_the_port_of_the_pod),
        FORWARD_TEST(test_port_forward_skips_the_ports_of_the_channels),
        FORWARD_TEST(test_port_forward_skips_a_port_that_is_cut),
        FORWARD_TEST(test_port_forward_sends_much_over_tls),
        FORWARD_TEST(test_port_forward_receives_much_over_tls),
        FORWARD_TEST(test_port_forward_tells_the_error_of_the_port),
        FORWARD_TEST(test_port_forward_refuses_an_unknown_channel),
        FORWARD_TEST(test_port_forward_tells_why_the_server_refuses_it),
        FORWARD_TEST(test_port_forward_tells_its_end),
        FORWARD_TEST(test_port_forward_may_be_freed_at_any_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
