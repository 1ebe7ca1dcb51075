#include "unit.h"

#include "kube/kubeconfig_internal.h"
#include "kube/transport_http.h"
#include "net/http_routes.h"

#include <stdio.h>

#define BOUND_NS (10 * ML_NS_PER_S)

/* A server, a client and one call on the real loop. */
struct world {
    struct ml_loop *loop;
    struct ml_http_routes *server;
    struct ml_http_client *http;
    struct ml_kubeconfig config;
    struct ml_transport *transport;
    struct ml_transport_call *call;
    struct ml_timer bound;
    int status;
    char body[64];
    int done_count;
    int kind;
    bool cancel_in_head;
};

static void on_bound(void *context)
{
    (void)context;
    fail_msg("nothing happened in time");
}

static void answer(void *context, struct ml_http_page *page)
{
    (void)context;
    page->status = strcmp(page->path, "/denied") == 0 ? 401 : 200;
    ml_buf_puts(&page->reply, page->query);
}

static int setup(void **state)
{
    struct world *world = ml_new(struct world);
    struct ml_err err = ML_ERR_INIT;
    world->loop = ml_loop_new(ml_clock_real());
    if (ml_http_routes_new(world->loop, "127.0.0.1:0", &world->server, &err) < 0)
        fail_msg("%s", err.message);
    ml_http_routes_add(world->server, "/", answer, NULL);
    world->http = ml_http_client_new(world->loop, "moonloop-test");
    world->config.clock = ml_clock_real();
    world->config.server = ml_asprintf("http://127.0.0.1:%d", ml_http_routes_port(world->server));
    world->transport = ml_transport_http_new(world->http, &world->config);
    ml_timer_init(&world->bound, world->loop, on_bound, NULL);
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    ml_timer_stop(&world->bound);
    world->transport->free(world->transport);
    ml_http_client_free(world->http);
    ml_http_routes_free(world->server);
    ml_loop_free(world->loop);
    free(world->config.server);
    free(world);
    return 0;
}

static void on_head(void *context, const struct ml_http_head *head)
{
    struct world *world = context;
    world->status = head->status;
    if (!world->cancel_in_head)
        return;
    world->transport->cancel(world->transport, world->call);
    ml_loop_stop(world->loop);
}

static int on_data(void *context, struct ml_str piece, struct ml_err *err)
{
    struct world *world = context;
    (void)err;
    strncat(world->body, piece.ptr, piece.len);
    return 0;
}

static void on_done(void *context, const struct ml_err *err)
{
    struct world *world = context;
    world->done_count++;
    world->kind = err ? err->kind : 0;
    ml_loop_stop(world->loop);
}

static void get(struct world *world, const char *path)
{
    static const struct ml_http_handler handler = {on_head, on_data, on_done};
    const struct ml_transport_request request = {
        .method = "GET", .path = path, .deadlines = {.total_ms = 9000}};
    ml_timer_start(&world->bound, BOUND_NS);
    world->call = world->transport->submit(world->transport, &request, &handler, world);
    assert_int_equal(world->done_count, 0);
    ml_loop_run(world->loop);
}

static void test_transport_carries_path_and_query(void **state)
{
    struct world *world = *state;
    get(world, "/x?limit=5");
    assert_int_equal(world->done_count, 1);
    assert_int_equal(world->kind, 0);
    assert_int_equal(world->status, 200);
    assert_string_equal(world->body, "limit=5");
    assert_string_equal(world->transport->host, world->config.server + strlen("http://"));
    assert_false(world->config.token_stale);
}

static void test_transport_asks_for_fresh_credentials_after_a_401(void **state)
{
    struct world *world = *state;
    get(world, "/denied");
    assert_int_equal(world->status, 401);
    assert_int_equal(world->kind, 0);
    assert_true(world->config.token_stale);
}

static void test_transport_cancel_in_head_is_the_end(void **state)
{
    struct world *world = *state;
    world->cancel_in_head = true;
    get(world, "/x?never-seen");
    ml_loop_poll(world->loop);
    assert_int_equal(world->done_count, 0);
    assert_string_equal(world->body, "");
}

static void test_transport_reports_a_server_that_is_not_there(void **state)
{
    struct world *world = *state;
    ml_http_routes_free(ml_take(&world->server));
    get(world, "/x");
    assert_int_equal(world->done_count, 1);
    assert_int_equal(world->kind, ML_ENETWORK);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_transport_carries_path_and_query),
        WITH(test_transport_asks_for_fresh_credentials_after_a_401),
        WITH(test_transport_cancel_in_head_is_the_end),
        WITH(test_transport_reports_a_server_that_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
