#include "net_tls.h"

#include "net/http_routes.h"

/* HTTP/2 needs a peer that speaks it: nghttpd where it is installed, else these are skipped. */

#define BIG_BYTES ((size_t)4 * 1024 * 1024)

/* A port that was free a moment ago; nghttpd cannot say which one it took. */
static int free_port(void)
{
    int port;
    close(peer_listen(&port));
    return port;
}

static void wait_until_listening(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int tries = 0; tries < 1000; tries++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        int r = connect(fd, (struct sockaddr *)&address, sizeof address);
        close(fd);
        if (r == 0)
            return;
        usleep(10000);
    }
    fail_msg("nghttpd does not listen");
}

static void write_file(const char *folder, const char *name, size_t len)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)len), 0);
    close(fd);
}

static void h2_start(struct tls_fixture *f)
{
    char port[8], cert[64], key[64];
    if (system("command -v nghttpd >/dev/null") != 0)
        skip();
    write_file(f->folder, "small", 100);
    write_file(f->folder, "big", BIG_BYTES);
    f->port = free_port();
    snprintf(port, sizeof port, "%d", f->port);
    snprintf(cert, sizeof cert, "%s/server.pem", f->folder);
    snprintf(key, sizeof key, "%s/server.key", f->folder);
    char *argv[] = {"nghttpd", "-d", f->folder, "-a", "127.0.0.1", port, key, cert, NULL};
    f->server = tls_spawn(argv, -1);
    wait_until_listening(f->port);
}

static void send_all(struct tls_fixture *f, struct answer *answers, size_t count, const char *path,
                     const struct ml_http_tls *tls)
{
    char url[64];
    snprintf(url, sizeof url, "https://127.0.0.1:%d/%s", f->port, path);
    for (size_t i = 0; i < count; i++)
        answer_send(&answers[i], &(struct ml_http_request){.method = "GET",
                                                           .url = url,
                                                           .tls = tls,
                                                           .streaming = i % 2,
                                                           .deadlines.total_ms = 15000});
}

static void test_http_h2_answers_a_burst(void **state)
{
    enum { CALLS = 120 };
    static struct answer got[CALLS];
    struct tls_fixture *f = *state;
    int waiting = CALLS;
    h2_start(f);
    struct ml_http_tls tls = {.ca_pem = tls_pem(f, "ca.pem"), .server_name = "api.test"};
    for (int i = 0; i < CALLS; i++)
        got[i] = (struct answer){.net = &f->net, .waiting = &waiting};
    send_all(f, got, CALLS, "small", &tls);
    net_run(&f->net);
    for (int i = 0; i < CALLS; i++) {
        assert_string_equal(got[i].err.message, "");
        assert_int_equal(got[i].status, 200);
        assert_int_equal(got[i].body.len, 100);
        ml_buf_fini(&got[i].body);
    }
    free((char *)tls.ca_pem.ptr);
}

/* A call that gives up in the body has had its first piece. */
static bool all_have_given_up(const struct answer *got, int calls)
{
    for (int i = 2; i < calls; i += 3)
        if (got[i].pieces == 0)
            return false;
    return true;
}

static void test_http_h2_other_streams_go_on_when_one_is_given_up(void **state)
{
    enum { CALLS = 12 };
    struct tls_fixture *f = *state;
    struct answer got[CALLS];
    int waiting = CALLS / 3;
    h2_start(f);
    struct ml_http_tls tls = {.insecure = true};
    for (int i = 0; i < CALLS; i++) {
        got[i] = (struct answer){.net = &f->net, .waiting = &waiting};
        got[i].act = i % 3 == 0 ? ANSWER_TAKE
                                : (i % 3 == 1 ? ANSWER_CANCEL_IN_HEAD : ANSWER_CANCEL_IN_DATA);
    }
    send_all(f, got, CALLS, "big", &tls);
    net_until(&f->net, waiting == 0 && all_have_given_up(got, CALLS));
    net_settle(&f->net, 20);
    for (int i = 0; i < CALLS; i++) {
        assert_int_equal(got[i].dones, i % 3 == 0);
        assert_string_equal(got[i].err.message, "");
        assert_true(i % 3 != 0 || got[i].body.len == BIG_BYTES);
        assert_true(i % 3 != 1 || got[i].pieces == 0);
        assert_true(i % 3 != 2 || got[i].pieces == 1);
        ml_buf_fini(&got[i].body);
    }
}

/* Kills the server as soon as the body has begun. */
static int kill_in_data(void *context, struct ml_str piece, struct ml_err *err)
{
    struct answer *answer = context;
    struct tls_fixture *f = ml_container_of(answer->net, struct tls_fixture, net);
    (void)piece, (void)err;
    tls_server_stop(f);
    return 0;
}

static void test_http_h2_a_connection_lost_in_the_body_is_a_network_error(void **state)
{
    static const struct ml_http_handler handler = {answer_head, kill_in_data, answer_done};
    struct tls_fixture *f = *state;
    struct answer got = {.net = &f->net};
    char url[64];
    h2_start(f);
    write_file(f->folder, "big", 64 * BIG_BYTES); /* more than sockets and windows hold */
    struct ml_http_tls tls = {.insecure = true};
    snprintf(url, sizeof url, "https://127.0.0.1:%d/big", f->port);
    ml_http_send(f->net.client, &(struct ml_http_request){.method = "GET", .url = url, .tls = &tls},
                 &handler, &got);
    net_run(&f->net);
    assert_int_equal(got.status, 200);
    assert_int_equal(got.err.kind, ML_ENETWORK);
}

/* Calls to a server without TLS, which ends its answers with a trailer. */
static void h2_start_plain(struct tls_fixture *f)
{
    char port[8];
    if (system("command -v nghttpd >/dev/null") != 0)
        skip();
    write_file(f->folder, "small", 100);
    f->port = free_port();
    snprintf(port, sizeof port, "%d", f->port);
    char *argv[] = {"nghttpd", "--no-tls",  "-d", f->folder, "--trailer=grpc-status: 7",
                    "-a",      "127.0.0.1", port, NULL};
    f->server = tls_spawn(argv, -1);
    wait_until_listening(f->port);
}

/* The answer and its trailer; it begins as the struct that its handler knows. */
struct trailed {
    struct answer answer;
    char status[8]; /* "grpc-status" behind the body */
    int fields;     /* so many with this name in the head */
};

static void on_head_field(void *context, struct ml_str name, struct ml_str value)
{
    struct trailed *got = context;
    (void)value;
    got->fields += ml_str_is(name, "grpc-status");
}

static void on_trailer(void *context, struct ml_str name, struct ml_str value)
{
    struct trailed *got = context;
    assert_int_equal(got->answer.body.len, 100);
    if (ml_str_is(name, "grpc-status"))
        snprintf(got->status, sizeof got->status, ML_STR_FMT, ML_STR_ARG(value));
}

static void test_http_h2_without_tls_brings_the_trailer(void **state)
{
    static const struct ml_http_tls tls = {.proxy_url = ""};
    struct tls_fixture *f = *state;
    char url[64];
    h2_start_plain(f);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/small", f->port);
    for (int i = 0; i < 2; i++) {
        struct trailed got = {.answer.net = &f->net};
        answer_send(&got.answer, &(struct ml_http_request){.method = "POST",
                                                           .url = url,
                                                           .body = ml_str_of("body"),
                                                           .tls = &tls,
                                                           .http2 = true,
                                                           .passed_on = i == 1,
                                                           .field = on_head_field,
                                                           .trailer = on_trailer});
        net_run(&f->net);
        assert_string_equal(got.answer.err.message, "");
        assert_int_equal(got.answer.status, 200);
        assert_int_equal(got.fields, 0);
        assert_string_equal(got.status, "7");
        ml_buf_fini(&got.answer.body);
    }
}

static void test_http_h2_a_server_of_http_1_is_none(void **state)
{
    static const struct ml_http_tls tls = {.proxy_url = ""};
    struct tls_fixture *f = *state;
    struct ml_http_routes *routes;
    struct ml_err err = ML_ERR_INIT;
    struct answer got = {.net = &f->net};
    assert_int_equal(ml_http_routes_new(f->net.loop, "127.0.0.1:0", &routes, &err), 0);
    int port = ml_http_server_port(ml_http_routes_server(routes));
    answer_send(&got, &(struct ml_http_request){
                          .method = "GET", .url = local_url(port), .tls = &tls, .http2 = true});
    net_run(&f->net);
    assert_int_equal(got.heads, 0);
    assert_int_equal(got.err.kind, ML_ENETWORK);
    ml_http_routes_free(routes);
}

#define TLS(test) cmocka_unit_test_setup_teardown(test, tls_setup, tls_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TLS(test_http_h2_answers_a_burst),
        TLS(test_http_h2_other_streams_go_on_when_one_is_given_up),
        TLS(test_http_h2_a_connection_lost_in_the_body_is_a_network_error),
        TLS(test_http_h2_without_tls_brings_the_trailer),
        TLS(test_http_h2_a_server_of_http_1_is_none),
    };
    return cmocka_run_group_tests(tests, tls_group_setup, tls_group_teardown);
}
