#include "net_peer.h"

#define OK_HEAD "HTTP/1.1 200 OK\r\n"

static void test_http_client_ends_an_answer_well_or_says_how_it_failed(void **state)
{
    static const struct {
        const char *name;
        struct peer_step steps[5];
        enum peer_end end;
        struct ml_http_deadlines deadlines;
        int kind;
        const char *message;
        int status; /* 0: no head came */
        const char *body;
    } cases[] = {
        {"length",
         {{0, OK_HEAD "Content-Length: 5\r\n\r\nhello"}},
         PEER_HOLD,
         {0},
         0,
         "",
         200,
         "hello"},
        {"no content", {{0, "HTTP/1.1 204 No Content\r\n\r\n"}}, PEER_HOLD, {0}, 0, "", 204, ""},
        {"any status",
         {{0, "HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno"}},
         PEER_HOLD,
         {0},
         0,
         "",
         503,
         "no"},
        {"redirect stays",
         {{0, "HTTP/1.1 302 F\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"}},
         PEER_HOLD,
         {0},
         0,
         "",
         302,
         ""},
        {"interim first",
         {{0, "HTTP/1.1 103 Hints\r\n\r\n"}, {5, OK_HEAD "Content-Length: 1\r\n\r\nx"}},
         PEER_HOLD,
         {0},
         0,
         "",
         200,
         "x"},
        {"until close", {{0, OK_HEAD "\r\nall of it"}}, PEER_CLOSE, {0}, 0, "", 200, "all of it"},
        {"chunks",
         {{0, OK_HEAD "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"},
          {10, "3\r\ncde\r\n"},
          {10, "0\r\nRetry-After: 3\r\n\r\n"}},
         PEER_HOLD,
         {0},
         0,
         "",
         200,
         "abcde"},
        {"slow but within",
         {{20, OK_HEAD "Content-Length: 3\r\n\r\n"}, {20, "a"}, {20, "b"}, {20, "c"}},
         PEER_HOLD,
         {.connect_ms = 5000, .first_byte_ms = 5000, .idle_ms = 5000, .total_ms = 9000},
         0,
         "",
         200,
         "abc"},
        {"body cut",
         {{0, OK_HEAD "Content-Length: 50\r\n\r\nhello"}},
         PEER_CLOSE,
         {0},
         ML_ENETWORK,
         "was cut",
         200,
         "hello"},
        {"chunk cut",
         {{0, OK_HEAD "Transfer-Encoding: chunked\r\n\r\n9\r\nhell"}},
         PEER_CLOSE,
         {0},
         ML_ENETWORK,
         "was cut",
         200,
         "hell"},
        {"last chunk missing",
         {{0, OK_HEAD "Transfer-Encoding: chunked\r\n\r\n4\r\nhell\r\n"}},
         PEER_CLOSE,
         {0},
         ML_ENETWORK,
         "was cut",
         200,
         "hell"},
        {"bad chunk",
         {{0, OK_HEAD "Transfer-Encoding: chunked\r\n\r\nxyz\r\n"}},
         PEER_CLOSE,
         {0},
         ML_ENETWORK,
         "127.0.0.1:",
         200,
         ""},
        {"reset in body",
         {{0, OK_HEAD "Content-Length: 50\r\n\r\nhello"}, {20, " "}},
         PEER_RESET,
         {0},
         ML_ENETWORK,
         "reset by peer",
         200,
         NULL},
        {"no answer", {{0, ""}}, PEER_CLOSE, {0}, ML_ENETWORK, "closed without an answer", 0, ""},
        {"no HTTP",
         {{0, "SSH-2.0-OpenSSH_9.2\r\n"}},
         PEER_CLOSE,
         {0},
         ML_ENETWORK,
         "speaks no HTTP",
         0,
         ""},
        {"slow first byte",
         {{15000, OK_HEAD "\r\n"}},
         PEER_HOLD,
         {.connect_ms = 9000, .first_byte_ms = 30},
         ML_ETIMEOUT,
         "no answer from 127.0.0.1:",
         0,
         ""},
        {"idle",
         {{0, OK_HEAD "Content-Length: 9\r\n\r\na"}, {10, "b"}},
         PEER_HOLD,
         {.first_byte_ms = 9000, .idle_ms = 60},
         ML_ETIMEOUT,
         "no byte for 0.06 s",
         200,
         "ab"},
        {"total",
         {{0, OK_HEAD "Content-Length: 9\r\n\r\na"}, {10, "b"}, {15000, "c"}},
         PEER_HOLD,
         {.idle_ms = 9000, .total_ms = 80},
         ML_ETIMEOUT,
         "not done within 0.08 s",
         200,
         "ab"},
    };
    struct net *net = *state;
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct peer peer;
        struct answer got;
        peer_init(&peer, net, cases[i].steps, cases[i].end);
        answer_get(&got, net,
                   &(struct ml_http_request){.method = "GET",
                                             .url = local_url(peer.port),
                                             .deadlines = cases[i].deadlines});
        if (got.err.kind != cases[i].kind)
            fail_msg("%s: %s: %s", cases[i].name, ml_err_name(got.err.kind), got.err.message);
        assert_has(got.err.message, cases[i].message);
        assert_int_equal(got.status, cases[i].status);
        assert_int_equal(got.heads, cases[i].status != 0);
        if (cases[i].body)
            assert_str_eq(ml_buf_str(&got.body), cases[i].body);
        ml_buf_fini(&got.body);
        peer_fini(&peer);
    }
}

static void test_http_client_names_host_and_cause_when_it_cannot_connect(void **state)
{
    struct net *net = *state;
    struct answer got;
    char want[64];
    int port;
    close(peer_listen(&port)); /* a port that nobody listens on any more */
    answer_get(&got, net, &(struct ml_http_request){.method = "GET", .url = local_url(port)});
    assert_int_equal(got.err.kind, ML_ENETWORK);
    snprintf(want, sizeof want, "connect to 127.0.0.1:%d: connection refused", port);
    assert_string_equal(got.err.message, want);
    assert_int_equal(got.heads, 0);
}

static void test_http_client_bounds_the_wait_for_a_connection(void **state)
{
    struct net *net = *state;
    struct answer got;
    struct ml_http_request request = {.method = "GET", .deadlines.connect_ms = 50};
    int port, full = peer_listen(&port);
    /* A listener that accepts nothing; its queue full, it drops what comes next. */
    assert_int_equal(listen(full, 0), 0);
    int fillers[8];
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (size_t i = 0; i < ML_COUNT(fillers); i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        connect(fillers[i], (struct sockaddr *)&address, sizeof address);
    }
    request.url = local_url(port);
    answer_get(&got, net, &request);
    assert_int_equal(got.err.kind, ML_ETIMEOUT);
    assert_has(got.err.message, "connect to 127.0.0.1:");
    for (size_t i = 0; i < ML_COUNT(fillers); i++)
        close(fillers[i]);
    close(full);
}

static void test_http_client_refuses_what_cannot_be_sent(void **state)
{
    static const struct ml_http_header split = {"X-A", "1\r\nX-B: 2"}, nameless = {"", "x"},
                                       spaced = {"X A", "1"};
    static const struct ml_http_request cases[] = {
        {.method = "GET", .url = "ftp://127.0.0.1/"},
        {.method = "GET", .url = "not a url"},
        {.method = "GET", .url = "http://"},
        {.method = "GET", .url = ""},
        {.method = "G T", .url = "http://127.0.0.1:1/"},
        {.method = "", .url = "http://127.0.0.1:1/"},
        {.method = "GET", .url = "http://127.0.0.1:1/", .headers = &split, .header_count = 1},
        {.method = "GET", .url = "http://127.0.0.1:1/", .headers = &nameless, .header_count = 1},
        {.method = "GET", .url = "http://127.0.0.1:1/", .headers = &spaced, .header_count = 1},
    };
    struct net *net = *state;
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct answer got;
        answer_get(&got, net, &cases[i]);
        if (got.err.kind != ML_EINVALID)
            fail_msg("%s %s: %s", cases[i].method, cases[i].url, got.err.message);
    }
}

static void test_http_client_sends_method_headers_and_body_as_given(void **state)
{
    static const struct peer_step steps[] = {{0, OK_HEAD "Content-Length: 0\r\n\r\n"}, {0}};
    static const struct ml_http_header headers[] = {{"Content-Type", "application/json"},
                                                    {"X-Empty", ""}};
    static const struct {
        const char *method;
        const char *body;
        size_t header_count;
        const char *has[5];
    } cases[] = {
        {"GET", "", 0, {"GET /api/v1?watch=1 HTTP/1.1\r\n", "User-Agent: unit/1.0\r\n"}},
        {"HEAD", "", 0, {"HEAD /api/v1?watch=1 HTTP/1.1\r\n"}},
        {"DELETE", "", 0, {"DELETE /api/v1?watch=1 HTTP/1.1\r\n"}},
        {"DELETE", "{}", 1, {"DELETE ", "Content-Length: 2\r\n", "\r\n\r\n{}"}},
        {"POST",
         "{\"a\":1}",
         2,
         {"POST ", "Content-Type: application/json\r\n", "X-Empty:", "Content-Length: 7\r\n",
          "\r\n\r\n{\"a\":1}"}},
        {"POST", "", 0, {"POST ", "Content-Length: 0\r\n"}},
        {"PATCH", "x", 1, {"PATCH ", "\r\n\r\nx"}},
        {"PUT", "x", 1, {"PUT ", "\r\n\r\nx"}},
    };
    struct net *net = *state;
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct peer peer;
        struct answer got;
        peer_init(&peer, net, steps, PEER_HOLD);
        char body[16];
        snprintf(body, sizeof body, "%s", cases[i].body);
        struct ml_http_request request = {.method = cases[i].method,
                                          .url = local_url(peer.port),
                                          .headers = headers,
                                          .header_count = cases[i].header_count,
                                          .body = ml_str_of(body)};
        got = (struct answer){.net = net};
        answer_send(&got, &request);
        memset(body, '#', sizeof body); /* it was copied */
        net_run(net);
        assert_int_equal(got.err.kind, 0);
        for (size_t n = 0; n < ML_COUNT(cases[i].has) && cases[i].has[n]; n++)
            assert_has(peer_request(&peer), cases[i].has[n]);
        assert_null(strstr(peer_request(&peer), "Expect"));
        assert_null(strstr(peer_request(&peer), "urlencoded"));
        assert_null(strstr(peer_request(&peer), "Accept-Encoding"));
        peer_fini(&peer);
    }
}

static int refuse_to_send(void *context, struct ml_err *err)
{
    struct answer *answer = context;
    assert_int_equal(answer->dones, 0);
    return ml_err_set(err, ML_ECANCELED, "not any more");
}

static void test_http_client_asks_once_more_before_it_sends(void **state)
{
    static const struct peer_step steps[] = {{0, OK_HEAD "Content-Length: 0\r\n\r\n"}, {0}};
    struct net *net = *state;
    struct peer peer;
    struct answer answer;
    peer_init(&peer, net, steps, PEER_HOLD);
    const struct ml_http_request request = {
        .method = "POST",
        .url = local_url(peer.port),
        .body = ML_STR("{}"),
        .may_send = refuse_to_send,
    };
    answer_get(&answer, net, &request);
    assert_int_equal(answer.err.kind, ML_ECANCELED);
    assert_string_equal(answer.err.message, "not any more");
    assert_string_equal(peer_request(&peer), "");
    ml_buf_fini(&answer.body);
    peer_fini(&peer);
}

static void test_http_client_hands_over_the_head(void **state)
{
    static const struct peer_step steps[] = {
        {0, "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 2\r\nContent-Type: text/x\r\n"
            "Warning: 299 - \"be gentle\"\r\nContent-Length: 0\r\n\r\n"},
        {0}};
    struct net *net = *state;
    struct peer peer;
    struct answer got;
    peer_init(&peer, net, steps, PEER_HOLD);
    answer_get(&got, net, &(struct ml_http_request){.method = "GET", .url = local_url(peer.port)});
    assert_int_equal(got.err.kind, 0);
    assert_int_equal(got.status, 429);
    assert_int_equal(got.retry_after_ms, 2000);
    assert_string_equal(got.content_type, "text/x");
    assert_string_equal(got.warning, "be gentle");
    peer_fini(&peer);
}

static void test_http_client_passes_pieces_on_as_they_come(void **state)
{
    static const struct peer_step steps[] = {
        {0, OK_HEAD "Transfer-Encoding: chunked\r\n\r\n6\r\nevent1\r\n"},
        {30, "6\r\nevent2\r\n"},
        {30, "0\r\n\r\n"},
        {0}};
    struct net *net = *state;
    struct peer peer;
    struct answer got;
    peer_init(&peer, net, steps, PEER_HOLD);
    answer_get(
        &got, net,
        &(struct ml_http_request){.method = "GET", .url = local_url(peer.port), .streaming = true});
    assert_int_equal(got.err.kind, 0);
    assert_int_equal(got.pieces, 2);
    assert_str_eq(ml_buf_str(&got.body), "event1event2");
    ml_buf_fini(&got.body);
    peer_fini(&peer);
}

static const struct peer_step two_pieces[] = {
    {0, OK_HEAD "Content-Length: 99\r\n\r\nfirst"}, {20, "second"}, {0}};

static void test_http_client_is_silent_after_cancel_in_a_callback(void **state)
{
    static const struct {
        int act;
        int heads;
        int pieces;
    } cases[] = {{ANSWER_CANCEL_IN_HEAD, 1, 0}, {ANSWER_CANCEL_IN_DATA, 1, 1}};
    struct net *net = *state;
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct peer peer;
        struct answer got = {.net = net};
        peer_init(&peer, net, two_pieces, PEER_HOLD);
        got.act = cases[i].act;
        answer_send(&got, &(struct ml_http_request){.method = "GET",
                                                    .url = local_url(peer.port),
                                                    .deadlines.idle_ms = 30});
        net_until(net, peer.connections[0].closed_by_client);
        net_settle(net, 100);
        assert_int_equal(got.heads, cases[i].heads);
        assert_int_equal(got.pieces, cases[i].pieces);
        assert_int_equal(got.dones, 0);
        ml_buf_fini(&got.body);
        peer_fini(&peer);
    }
}

static void test_http_client_is_silent_after_cancel_from_outside(void **state)
{
    struct net *net = *state;
    for (int settle_ms = 0; settle_ms <= 10; settle_ms += 10) { /* before and after it started */
        struct peer peer;
        struct answer got = {.net = net};
        peer_init(&peer, net, (const struct peer_step[]){{30, OK_HEAD "\r\n"}, {0}}, PEER_HOLD);
        answer_send(&got, &(struct ml_http_request){.method = "GET", .url = local_url(peer.port)});
        if (settle_ms)
            net_settle(net, settle_ms);
        ml_http_cancel(got.call);
        net_settle(net, 60);
        assert_int_equal(got.heads + got.pieces + got.dones, 0);
        peer_fini(&peer);
    }
    ml_http_cancel(NULL);
}

static void test_http_client_ends_the_call_with_the_error_of_data(void **state)
{
    struct net *net = *state;
    struct peer peer;
    struct answer got = {.net = net, .act = ANSWER_REFUSE_DATA};
    peer_init(&peer, net, two_pieces, PEER_HOLD);
    answer_send(&got, &(struct ml_http_request){.method = "GET", .url = local_url(peer.port)});
    net_run(net);
    assert_int_equal(got.err.kind, ML_ELIMIT);
    assert_string_equal(got.err.message, "too much");
    assert_int_equal(got.pieces, 1);
    ml_buf_fini(&got.body);
    peer_fini(&peer);
}

static void test_http_client_free_cancels_what_is_under_way(void **state)
{
    struct net *net = *state;
    struct peer peer;
    struct answer got[3] = {{.net = net}, {.net = net}, {.net = net}};
    peer_init(&peer, net, (const struct peer_step[]){{15000, OK_HEAD "\r\n"}, {0}}, PEER_HOLD);
    struct ml_http_request request = {
        .method = "GET", .url = local_url(peer.port), .deadlines.total_ms = 9000};
    answer_send(&got[0], &request);
    answer_send(&got[1], &request);
    net_settle(net, 20);
    ml_http_cancel(got[1].call);
    answer_send(&got[2], &request);
    ml_http_client_free(ml_take(&net->client));
    net_settle(net, 10);
    for (int i = 0; i < 3; i++)
        assert_int_equal(got[i].dones, 0);
    peer_fini(&peer);
}

/* The connection was used before, and is closed when the request has reached the server: libcurl
 * takes it for one that had died of age, and sends again. A read may be sent again; a write may
 * have been done already. */
static void test_http_client_never_sends_a_write_twice(void **state)
{
    static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
    for (size_t i = 0; i < ML_COUNT(methods); i++) {
        struct net *net = *state;
        struct peer peer;
        struct answer first, second = {.net = net};
        const struct peer_step steps[] = {{0, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
                                          {0, NULL}};
        peer_init(&peer, net, steps, PEER_HOLD);
        struct ml_http_request request = {.method = "GET", .url = local_url(peer.port)};
        answer_get(&first, net, &request);
        request.method = methods[i];
        request.body = i > 0 ? ML_STR("{}") : ML_STR("");
        answer_send(&second, &request);
        net_until(net, strstr(strstr(peer_request(&peer), "\r\n\r\n"), methods[i]));
        peer_hang_up(&peer.connections[0]);
        net_until(net, second.dones == 1);
        net_settle(net, 100);
        assert_int_equal(peer.count == 2 && peer.connections[1].request.len > 0, i == 0);
        assert_int_equal(second.err.kind, i == 0 ? 0 : ML_ENETWORK);
        peer_fini(&peer);
        ml_buf_fini(&first.body);
        ml_buf_fini(&second.body);
    }
}

#define NET(test) cmocka_unit_test_setup_teardown(test, net_setup, net_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        NET(test_http_client_ends_an_answer_well_or_says_how_it_failed),
        NET(test_http_client_never_sends_a_write_twice),
        NET(test_http_client_names_host_and_cause_when_it_cannot_connect),
        NET(test_http_client_bounds_the_wait_for_a_connection),
        NET(test_http_client_refuses_what_cannot_be_sent),
        NET(test_http_client_sends_method_headers_and_body_as_given),
        NET(test_http_client_asks_once_more_before_it_sends),
        NET(test_http_client_hands_over_the_head),
        NET(test_http_client_passes_pieces_on_as_they_come),
        NET(test_http_client_is_silent_after_cancel_in_a_callback),
        NET(test_http_client_is_silent_after_cancel_from_outside),
        NET(test_http_client_ends_the_call_with_the_error_of_data),
        NET(test_http_client_free_cancels_what_is_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
