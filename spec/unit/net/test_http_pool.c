#include "net_peer.h"

#include "net/http_routes.h"

#include <netinet/tcp.h>

#define OK_HEAD "HTTP/1.1 200 OK\r\n"

/* Sends the next request from done(), a few times over. */
struct chain {
    struct net *net;
    const char *url;
    int left;
    int failed;
};

static void chain_head(void *context, const struct ml_http_head *head)
{
    (void)context, (void)head;
}

static int chain_data(void *context, struct ml_str piece, struct ml_err *err)
{
    (void)context, (void)piece, (void)err;
    return 0;
}

static void chain_done(void *context, const struct ml_err *err)
{
    static const struct ml_http_handler handler = {chain_head, chain_data, chain_done};
    struct chain *chain = context;
    chain->failed += err != NULL;
    if (chain->left-- == 0) {
        ml_loop_stop(chain->net->loop);
        return;
    }
    ml_http_send(chain->net->client, &(struct ml_http_request){.method = "GET", .url = chain->url},
                 &handler, chain);
}

static void say_hello(void *context, struct ml_http_page *page)
{
    (*(int *)context)++;
    ml_buf_puts(&page->reply, "hello");
}

static void test_http_pool_sends_from_done(void **state)
{
    struct net *net = *state;
    struct ml_http_routes *server;
    struct ml_err err = ML_ERR_INIT;
    int served = 0;
    assert_int_equal(ml_http_routes_new(net->loop, "127.0.0.1:0", &server, &err), 0);
    ml_http_routes_add(server, "/", say_hello, &served);
    struct chain chain = {.net = net,
                          .url = local_url(ml_http_server_port(ml_http_routes_server(server))),
                          .left = 20};
    chain_done(&chain, NULL);
    net_run(net);
    assert_int_equal(chain.failed, 0);
    assert_int_equal(served, 20);
    ml_http_routes_free(server);
}

static void test_http_pool_serves_a_hundred_calls_at_once(void **state)
{
    enum { CALLS = 100 };
    struct net *net = *state;
    struct ml_http_routes *server;
    struct ml_err err = ML_ERR_INIT;
    int served = 0, waiting = CALLS;
    static struct answer got[CALLS];
    assert_int_equal(ml_http_routes_new(net->loop, "127.0.0.1:0", &server, &err), 0);
    ml_http_routes_add(server, "/", say_hello, &served);
    for (int i = 0; i < CALLS; i++) {
        got[i] = (struct answer){.net = net, .waiting = &waiting};
        answer_send(&got[i], &(struct ml_http_request){.method = "GET",
                                                       .url = local_url(ml_http_server_port(
                                                           ml_http_routes_server(server))),
                                                       .streaming = i % 2,
                                                       .deadlines.total_ms = 15000});
    }
    net_run(net);
    assert_int_equal(served, CALLS);
    for (int i = 0; i < CALLS; i++) {
        assert_int_equal(got[i].err.kind, 0);
        assert_str_eq(ml_buf_str(&got[i].body), "hello");
        ml_buf_fini(&got[i].body);
    }
    ml_http_routes_free(server);
}

static void test_http_pool_keeps_connections_by_identity_and_kind(void **state)
{
    static const struct peer_step steps[] = {{0, OK_HEAD "Content-Length: 0\r\n\r\n"}, {0}};
    struct net *net = *state;
    struct ml_http_tls first = {0}, second = {0};
    static const struct {
        int identity;
        uint64_t generation;
        bool streaming;
        size_t connections; /* that the peer has seen after this call */
    } calls[] = {{0, 0, false, 1}, {0, 0, true, 2}, {1, 0, false, 3}, {0, 1, false, 4}};
    struct peer peer;
    peer_init(&peer, net, steps, PEER_HOLD);
    for (size_t i = 0; i < ML_COUNT(calls); i++) {
        struct answer got;
        struct ml_http_tls *tls = calls[i].identity ? &second : &first;
        tls->generation = calls[i].generation;
        answer_get(&got, net,
                   &(struct ml_http_request){.method = "GET",
                                             .url = local_url(peer.port),
                                             .tls = tls,
                                             .streaming = calls[i].streaming});
        assert_int_equal(got.err.kind, 0);
        assert_int_equal(peer.count, calls[i].connections);
    }
    net_until(net, peer.connections[0].closed_by_client && /* the former generation's */
                       peer.connections[1].closed_by_client);
    net_settle(net, 20);
    assert_false(peer.connections[2].closed_by_client);
    assert_false(peer.connections[3].closed_by_client);
    peer_fini(&peer);
}

/* When one connection is dead, all may be: the next request does not find out anew. */
static void test_http_pool_leaves_its_connections_when_one_is_dead(void **state)
{
    static const struct peer_step answers[] = {{0, OK_HEAD "Content-Length: 0\r\n\r\n"}, {0}};
    static const struct peer_step silent[] = {{0, ""}, {0}};
    static const struct peer_step stalls[] = {{0, OK_HEAD "Content-Length: 9\r\n\r\nhalf"}, {0}};
    static const struct {
        const struct peer_step *steps;
        struct ml_http_deadlines deadlines;
    } rows[] = {
        {silent, {.first_byte_ms = 50}}, {stalls, {.total_ms = 50}}, {stalls, {.idle_ms = 50}}};
    struct net *net = *state;
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        struct ml_http_tls tls = {0};
        struct peer good, bad;
        struct answer got;
        peer_init(&good, net, answers, PEER_HOLD);
        peer_init(&bad, net, rows[i].steps, PEER_HOLD);
        ML_AUTO_FREE char *url = ml_strdup(local_url(good.port));
        const struct ml_http_request request = {.method = "GET", .url = url, .tls = &tls};
        answer_get(&got, net, &request);
        net_settle(net, 20);
        assert_false(good.connections[0].closed_by_client);
        answer_get(&got, net,
                   &(struct ml_http_request){.method = "GET",
                                             .url = local_url(bad.port),
                                             .tls = &tls,
                                             .streaming = true,
                                             .deadlines = rows[i].deadlines});
        assert_int_equal(got.err.kind, ML_ETIMEOUT);
        ml_buf_fini(&got.body);
        net_until(net, good.connections[0].closed_by_client);
        peer_fini(&good);
        peer_fini(&bad);
    }
}

static void test_http_pool_closes_connections_that_nobody_uses(void **state)
{
    static const struct peer_step steps[] = {{0, OK_HEAD "Content-Length: 0\r\n\r\n"}, {0}};
    (void)state;
    struct ml_clock_fake fake;
    struct net net = {0};
    struct peer peer;
    struct answer got;
    char byte;
    ml_clock_fake_init(&fake, 0);
    net.loop = ml_loop_new(&fake.clock);
    net.client = ml_http_client_new(net.loop, "unit/1.0");
    ml_timer_init(&net.bound, net.loop, net_bound_fired, &net);
    peer_init(&peer, &net, steps, PEER_HOLD);
    answer_get(&got, &net, &(struct ml_http_request){.method = "GET", .url = local_url(peer.port)});
    ml_clock_fake_advance(&fake, 89 * ML_NS_PER_S);
    ml_loop_poll(net.loop);
    assert_int_equal(recv(peer.connections[0].fd, &byte, 1, MSG_DONTWAIT), -1);
    ml_clock_fake_advance(&fake, ML_NS_PER_S);
    ml_loop_poll(net.loop);
    const struct timeval patience = {.tv_sec = NET_BOUND_NS / ML_NS_PER_S};
    setsockopt(peer.connections[0].fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(recv(peer.connections[0].fd, &byte, 1, 0), 0);
    peer_fini(&peer);
    net_fini(&net);
}

static void test_http_pool_goes_through_the_proxy_it_is_told(void **state)
{
    static const struct peer_step steps[] = {{0, OK_HEAD "Content-Length: 0\r\n\r\n"}, {0}};
    struct net *net = *state;
    struct peer peer;
    struct answer got;
    char proxy[64];
    peer_init(&peer, net, steps, PEER_HOLD);
    snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", peer.port);
    struct ml_http_tls tls = {.proxy_url = proxy};
    answer_get(&got, net,
               &(struct ml_http_request){
                   .method = "GET", .url = "http://api.invalid:8080/x", .tls = &tls});
    assert_int_equal(got.err.kind, 0);
    assert_has(peer_request(&peer), "GET http://api.invalid:8080/x HTTP/1.1\r\n");
    peer_fini(&peer);
}

static void test_http_pool_passes_by_the_environments_proxy_on_loopback(void **state)
{
    static const struct peer_step steps[] = {{0, OK_HEAD "Content-Length: 0\r\n\r\n"}, {0}};
    struct net *net = *state;
    struct peer peer;
    struct answer got;
    peer_init(&peer, net, steps, PEER_HOLD);
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    answer_get(&got, net, &(struct ml_http_request){.method = "GET", .url = local_url(peer.port)});
    unsetenv("http_proxy");
    assert_int_equal(got.err.kind, 0);
    peer_fini(&peer);
}

static int option_of(int fd, int level, int name)
{
    int value = -1;
    socklen_t len = sizeof value;
    assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
    return value;
}

/* Both ends of a connection, and each of them notices within 30 s that the other is gone. */
static void test_http_pool_and_server_notice_that_a_peer_is_gone(void **state)
{
    struct net *net = *state;
    struct ml_http_routes *server;
    struct ml_err err = ML_ERR_INIT;
    struct answer got;
    int served = 0, ends = 0;
    assert_int_equal(ml_http_routes_new(net->loop, "127.0.0.1:0", &server, &err), 0);
    ml_http_routes_add(server, "/", say_hello, &served);
    int port = ml_http_server_port(ml_http_routes_server(server));
    answer_get(&got, net, &(struct ml_http_request){.method = "GET", .url = local_url(port)});
    for (int fd = 3; fd < 256; fd++) {
        struct sockaddr_in peer;
        socklen_t len = sizeof peer;
        if (getpeername(fd, (struct sockaddr *)&peer, &len) < 0 || peer.sin_family != AF_INET)
            continue;
        ends++;
        assert_int_equal(option_of(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
        assert_in_range(option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE) +
                            option_of(fd, IPPROTO_TCP, TCP_KEEPINTVL) *
                                option_of(fd, IPPROTO_TCP, TCP_KEEPCNT),
                        5, 25);
        if (ntohs(peer.sin_port) == port) /* for sent bytes, too; a client may read slowly */
            assert_in_range(option_of(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 5000, 25000);
    }
    assert_int_equal(ends, 2);
    ml_buf_fini(&got.body);
    ml_http_routes_free(server);
}

/* Bytes that come while the connection is idle are no answer to the next request: that is sent over
 * a new connection only. */
static void assert_next_answer_is_its_own(struct net *net, const struct peer_step *steps,
                                          const char *unasked, const char *first_method)
{
    static const char *const methods[] = {"GET", "POST"};
    for (size_t i = 0; i < 2 * ML_COUNT(methods); i++) {
        struct peer peer;
        struct answer first, second;
        struct ml_http_request request = {.method = first_method, .streaming = i % 2};
        peer_init(&peer, net, steps, PEER_HOLD);
        request.url = local_url(peer.port);
        answer_get(&first, net, &request);
        assert_int_equal(first.err.kind, 0);
        peer_say(&peer.connections[0], unasked);
        peer.steps = (const struct peer_step[]){{0, OK_HEAD "Content-Length: 5\r\n\r\nright"},
                                                {0, NULL}};
        request.method = methods[i / 2];
        answer_get(&second, net, &request);
        assert_int_equal(second.err.kind, 0);
        assert_str_eq(ml_buf_str(&second.body), "right");
        assert_int_equal(peer.count, 2);
        assert_null(strstr(peer_request(&peer) + 1, methods[i / 2]));
        net_until(net, peer.connections[0].closed_by_client);
        peer_fini(&peer);
        ml_buf_fini(&first.body);
        ml_buf_fini(&second.body);
    }
}

static void test_http_pool_takes_no_unasked_bytes_for_an_answer(void **state)
{
    static const char forged[] = OK_HEAD "Content-Length: 5\r\n\r\nwrong";
    static const struct peer_step whole[] = {{0, OK_HEAD "Content-Length: 2\r\n\r\nok"}, {0}};
    static const struct peer_step chunked[] = {
        {0, OK_HEAD "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"}, {0}};
    static const struct peer_step empty[] = {{0, "HTTP/1.1 204 No Content\r\n\r\n"}, {0}};
    static const char *const unasked[] = {forged, "HTTP/1.1 408 Request Timeout\r\n\r\n",
                                          "HTTP/1.1 100 Continue\r\n\r\n", "\r\n", "x"};
    for (size_t i = 0; i < ML_COUNT(unasked); i++) {
        assert_next_answer_is_its_own(*state, whole, unasked[i], "GET");
        assert_next_answer_is_its_own(*state, chunked, unasked[i], "PATCH");
        assert_next_answer_is_its_own(*state, empty, unasked[i], "DELETE");
        assert_next_answer_is_its_own(*state, whole, unasked[i], "HEAD");
    }
}

/* The bytes come with the answer before them, in one piece: libcurl drops them. */
static void test_http_pool_takes_no_bytes_behind_an_answer_for_the_next(void **state)
{
    static const char forged[] = OK_HEAD "Content-Length: 5\r\n\r\nwrong";
    static const char right[] = OK_HEAD "Content-Length: 5\r\n\r\nright";
    static const char *const firsts[] = {
        OK_HEAD "Content-Length: 2\r\n\r\nok", OK_HEAD "Content-Length: 0\r\n\r\n",
        OK_HEAD "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n"};
    struct net *net = *state;
    for (size_t i = 0; i < ML_COUNT(firsts); i++) {
        ML_AUTO_FREE char *both = ml_asprintf("%s%s", firsts[i], forged);
        struct peer peer;
        struct answer first, second = {.net = net};
        peer_init(&peer, net, (const struct peer_step[]){{0, both}, {0, NULL}}, PEER_HOLD);
        const struct ml_http_request request = {.method = "GET", .url = local_url(peer.port)};
        answer_get(&first, net, &request);
        assert_int_equal(first.err.kind, 0);
        peer.steps = (const struct peer_step[]){{0, right}, {0, NULL}};
        answer_send(&second, &request);
        /* On the connection that was kept, the script is over. */
        while (peer.count == 1 && !strstr(peer_request(&peer) + 1, "GET "))
            net_settle(net, 5);
        if (peer.count == 1)
            assert_int_equal(write(peer.connections[0].fd, right, strlen(right)), strlen(right));
        while (second.dones == 0)
            net_run(net);
        assert_int_equal(second.err.kind, 0);
        assert_str_eq(ml_buf_str(&second.body), "right");
        peer_fini(&peer);
        ml_buf_fini(&first.body);
        ml_buf_fini(&second.body);
    }
}

#define NET(test) cmocka_unit_test_setup_teardown(test, net_setup, net_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        NET(test_http_pool_sends_from_done),
        NET(test_http_pool_serves_a_hundred_calls_at_once),
        NET(test_http_pool_keeps_connections_by_identity_and_kind),
        NET(test_http_pool_leaves_its_connections_when_one_is_dead),
        NET(test_http_pool_and_server_notice_that_a_peer_is_gone),
        NET(test_http_pool_takes_no_unasked_bytes_for_an_answer),
        NET(test_http_pool_takes_no_bytes_behind_an_answer_for_the_next),
        cmocka_unit_test(test_http_pool_closes_connections_that_nobody_uses),
        NET(test_http_pool_goes_through_the_proxy_it_is_told),
        NET(test_http_pool_passes_by_the_environments_proxy_on_loopback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
