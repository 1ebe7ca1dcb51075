/* The verbs of the client: what is sent, what is tried again, and what comes back. */
#include "kube_client.h"

static void test_client_sends_each_verb_as_the_api_wants_it(void **state)
{
    struct world *world = *state;
    static const struct {
        struct ml_client_request request;
        const char *method, *path, *content_type, *body;
    } rows[] = {
        {{.verb = ML_VERB_GET, .name = ML_STR("a")},
         "GET",
         "/api/v1/namespaces/default/pods/a",
         NULL,
         ""},
        {{.verb = ML_VERB_CREATE,
          .name = ML_STR("a"),
          .body = ML_STR("{\"x\":1}"),
          .field_manager = "m"},
         "POST",
         "/api/v1/namespaces/default/pods?fieldManager=m",
         "application/json",
         "{\"x\":1}"},
        {{.verb = ML_VERB_UPDATE,
          .name = ML_STR("a"),
          .subresource = ML_STR("status"),
          .body = ML_STR("{}")},
         "PUT",
         "/api/v1/namespaces/default/pods/a/status",
         "application/json",
         "{}"},
        {{.verb = ML_VERB_PATCH_MERGE,
          .name = ML_STR("a"),
          .body = ML_STR("{}"),
          .field_manager = "m b"},
         "PATCH",
         "/api/v1/namespaces/default/pods/a?fieldManager=m%20b",
         "application/merge-patch+json",
         "{}"},
        {{.verb = ML_VERB_APPLY,
          .name = ML_STR("a"),
          .body = ML_STR("{}"),
          .field_manager = "m",
          .force = true},
         "PATCH",
         "/api/v1/namespaces/default/pods/a?fieldManager=m&force=true",
         "application/apply-patch+yaml",
         "{}"},
        {{.verb = ML_VERB_DELETE, .name = ML_STR("a"), .uid = "u", .resource_version = "7"},
         "DELETE",
         "/api/v1/namespaces/default/pods/a",
         "application/json",
         "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"propagationPolicy\":\"Background\","
         "\"preconditions\":{\"uid\":\"u\",\"resourceVersion\":\"7\"}}"},
        {{.verb = ML_VERB_DELETE, .name = ML_STR("a")},
         "DELETE",
         "/api/v1/namespaces/default/pods/a",
         "application/json",
         "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"propagationPolicy\":\"Background\"}"},
        {{.verb = ML_VERB_DELETE, .name = ML_STR("a"), .uid = "u", .foreground = true},
         "DELETE",
         "/api/v1/namespaces/default/pods/a",
         "application/json",
         "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"propagationPolicy\":\"Foreground\","
         "\"preconditions\":{\"uid\":\"u\"}}"},
        {{.verb = ML_VERB_CREATE, .name = ML_STR("a"), .body = ML_STR("{}"), .dry_run = true},
         "POST",
         "/api/v1/namespaces/default/pods?dryRun=All",
         "application/json",
         "{}"},
        {{.verb = ML_VERB_GET, .path = "/version"}, "GET", "/version", NULL, ""},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        struct ml_client_request request = rows[i].request;
        request.kind = request.path ? NULL : &pods;
        request.ns = ML_STR("default");
        ml_client_send(world->client, &request, on_done, world);
        struct fake_call *call = fake_expect(world->server, rows[i].method, rows[i].path);
        if (rows[i].content_type)
            assert_string_equal(call->content_type, rows[i].content_type);
        else
            assert_null(call->content_type);
        assert_string_equal(call->body, rows[i].body);
        assert_false(call->streaming);
        fake_reply(call, 200, "{\"ok\":true}");
        assert_int_equal(world->done_count, i + 1);
        assert_int_equal(world->err.kind, 0);
        assert_string_equal(world->body, "{\"ok\":true}");
    }
}

static void test_client_gives_the_error_of_a_status(void **state)
{
    struct world *world = *state;
    send_request(world, ML_VERB_CREATE, "a");
    fake_refuse(fake_next(world->server), 409, "AlreadyExists", "pods \\\"a\\\" already exists");
    assert_int_equal(world->err.kind, ML_EALREADY_EXISTS);
    assert_int_equal(world->err.http, 409);
    assert_string_equal(world->err.message, "pods \"a\" already exists");
    fake_expect_none(world->server);
}

static void test_client_takes_a_failure_in_a_success_for_one(void **state)
{
    struct world *world = *state;
    send_request(world, ML_VERB_GET, "a");
    fake_reply(fake_next(world->server), 200,
               "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Expired\",\"code\":410}");
    assert_int_equal(world->err.kind, ML_EGONE);
    send_request(world, ML_VERB_GET, "a");
    fake_reply(fake_next(world->server), 200, "{\"kind\":\"Pod\",\"status\":\"Failure\"}");
    assert_int_equal(world->err.kind, 0);
}

static void test_client_reads_again_when_the_connection_is_lost(void **state)
{
    struct world *world = *state;
    send_request(world, ML_VERB_GET, "a");
    for (int i = 0; i < 3; i++) {
        fake_fail(fake_next(world->server), ML_ENETWORK, "reset");
        fake_expect_none(world->server);
        advance(world, 2000);
        assert_int_equal(world->done_count, 0);
    }
    fake_fail(fake_next(world->server), ML_ENETWORK, "reset");
    assert_int_equal(world->done_count, 1);
    assert_int_equal(world->err.kind, ML_ENETWORK);
    assert_string_equal(world->err.message, "reset");
}

static void test_client_forgets_what_a_lost_answer_brought(void **state)
{
    struct world *world = *state;
    send_request(world, ML_VERB_GET, "a");
    struct fake_call *call = fake_next(world->server);
    fake_head(call, 200);
    fake_piece(call, "{\"half\":");
    fake_fail(call, ML_ENETWORK, "cut");
    advance(world, 2000);
    fake_reply(fake_next(world->server), 200, "{}");
    assert_string_equal(world->body, "{}");
}

static void test_client_never_writes_again_after_a_lost_connection(void **state)
{
    struct world *world = *state;
    static const enum ml_verb verbs[] = {ML_VERB_CREATE, ML_VERB_UPDATE, ML_VERB_PATCH_MERGE,
                                         ML_VERB_APPLY, ML_VERB_DELETE};
    static const int kinds[] = {ML_ENETWORK, ML_ETIMEOUT, ML_ETLS};
    for (size_t i = 0; i < ML_COUNT(verbs) * ML_COUNT(kinds); i++) {
        int kind = kinds[i % ML_COUNT(kinds)];
        send_request(world, verbs[i / ML_COUNT(kinds)], "a");
        fake_fail(fake_next(world->server), kind, "no answer");
        assert_int_equal(world->done_count, i + 1);
        assert_int_equal(world->err.kind, kind);
        advance(world, 60000);
        fake_expect_none(world->server);
    }
}

/* Which refusals are asked again: the verb, the code, with Retry-After. */
static void test_client_waits_as_the_server_asked(void **state)
{
    struct world *world = *state;
    static const struct {
        enum ml_verb verb;
        int status;
        int64_t seconds; /* -1: no header */
        bool again;
    } rows[] = {
        {ML_VERB_GET, 429, 3, true},      {ML_VERB_CREATE, 429, 3, true},
        {ML_VERB_GET, 503, 3, true},      {ML_VERB_CREATE, 503, 3, false},
        {ML_VERB_APPLY, 500, 3, false},   {ML_VERB_GET, 429, -1, false},
        {ML_VERB_CREATE, 429, -1, false}, {ML_VERB_GET, 500, -1, false},
        {ML_VERB_GET, 404, 3, false},     {ML_VERB_APPLY, 500, -1, false},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        world->done_count = 0;
        send_request(world, rows[i].verb, "a");
        struct fake_call *call = fake_next(world->server);
        fake_reply_head(call,
                        &(struct ml_http_head){
                            .status = rows[i].status,
                            .retry_after_ms = rows[i].seconds < 0 ? -1 : rows[i].seconds * 1000},
                        "");
        if (!rows[i].again) {
            assert_int_equal(world->done_count, 1);
            assert_true(world->err.retry_after_ms ==
                        (rows[i].seconds < 0 ? -1 : rows[i].seconds * 1000));
            advance(world, 1100); /* a 429 pauses all */
            continue;
        }
        advance(world, 2990);
        fake_expect_none(world->server);
        advance(world, 1600);
        fake_reply(fake_next(world->server), 200, "{}");
        assert_int_equal(world->done_count, 1);
        assert_int_equal(world->err.kind, 0);
    }
    fake_expect_none(world->server);
}

static void test_client_gives_up_after_ten_refusals(void **state)
{
    struct world *world = *state;
    send_request(world, ML_VERB_CREATE, "a");
    for (int i = 0; i < 10; i++) {
        assert_int_equal(world->done_count, 0);
        reply_retry_after(fake_next(world->server), 429, 100000); /* waits a minute at most */
        advance(world, 90001);
    }
    assert_int_equal(world->done_count, 1);
    assert_int_equal(world->err.kind, ML_ETOO_MANY);
    assert_int_equal(fake_count(world->server), 10);
}

static void test_client_sends_in_order_as_places_come_free(void **state)
{
    struct world *world = *state; /* one place */
    send_request(world, ML_VERB_GET, "a");
    send_request(world, ML_VERB_GET, "b");
    struct ml_client_call *third = send_request(world, ML_VERB_GET, "c");
    send_request(world, ML_VERB_GET, "d");
    struct fake_call *first = fake_expect(world->server, "GET",
                                          "/api/v1/namespaces/default/pods/a");
    fake_expect_none(world->server);
    ml_client_cancel(third);
    fake_reply(first, 200, "{}");
    struct fake_call *second = fake_expect(world->server, "GET",
                                           "/api/v1/namespaces/default/pods/b");
    reply_retry_after(second, 503, 5); /* resting, it holds no place */
    fake_reply(fake_expect(world->server, "GET", "/api/v1/namespaces/default/pods/d"), 200, "{}");
    advance(world, 8000);
    fake_reply(fake_expect(world->server, "GET", "/api/v1/namespaces/default/pods/b"), 200, "{}");
    assert_int_equal(world->done_count, 3);
}

static void test_client_request_that_yields_goes_last(void **state)
{
    struct world *world = *state; /* one place */
    send_request(world, ML_VERB_GET, "a");
    const struct ml_client_request yielding = {
        .verb = ML_VERB_PATCH_MERGE,
        .kind = &pods,
        .ns = ML_STR("default"),
        .name = ML_STR("late"),
        .subresource = ML_STR("status"),
        .body = ML_STR("{}"),
        .yields = true,
    };
    ml_client_send(world->client, &yielding, on_done, world);
    send_request(world, ML_VERB_GET, "b");
    fake_reply(fake_expect(world->server, "GET", "/api/v1/namespaces/default/pods/a"), 200, "{}");
    fake_reply(fake_expect(world->server, "GET", "/api/v1/namespaces/default/pods/b"), 200, "{}");
    fake_reply(fake_expect(world->server, "PATCH", "/api/v1/namespaces/default/pods/late/status"),
               200, "{}");
    assert_int_equal(world->done_count, 3);
}

static void test_client_cancel_ends_a_call_in_every_state(void **state)
{
    struct world *world = *state; /* one place */
    struct ml_client_call *sent = send_request(world, ML_VERB_GET, "a");
    struct ml_client_call *waiting = send_request(world, ML_VERB_GET, "b");
    ml_client_cancel(waiting);
    ml_client_cancel(sent);
    assert_true(fake_next(world->server)->canceled);
    struct ml_client_call *resting = send_request(world, ML_VERB_GET, "c");
    reply_retry_after(fake_next(world->server), 503, 1);
    ml_client_cancel(resting);
    advance(world, 60000);
    assert_int_equal(world->done_count, 0);
    fake_expect_none(world->server);
}

static void test_client_counts_requests_and_logs_warnings_once(void **state)
{
    struct world *world = *state;
    const struct ml_http_head head = {
        .status = 200, .retry_after_ms = -1, .warning = ML_STR("v1beta1 is deprecated")};
    ML_AUTO(ml_buf_fini) struct ml_buf before = ML_BUF_INIT;
    ml_metrics_write(world->metrics, &before);
    assert_non_null(strstr(ml_buf_cstr(&before), "rest_client_requests_total{code=\"401\",method="
                                                 "\"PATCH\",host=\"fake.test:6443\"} 0\n"));
    for (int i = 0; i < 3; i++) {
        send_request(world, ML_VERB_GET, "a");
        fake_reply_head(fake_next(world->server), &head, "{}");
    }
    send_request(world, ML_VERB_CREATE, "a");
    fake_fail(fake_next(world->server), ML_ETIMEOUT, "slow");
    char text[4096];
    ssize_t len = pread(world->log_fd, text, sizeof text - 1, 0);
    assert_in_range(len, 1, sizeof text - 1);
    text[len] = '\0';
    char *first = strstr(text, "v1beta1 is deprecated");
    assert_non_null(first);
    assert_null(strstr(first + 1, "v1beta1 is deprecated"));
    ML_AUTO(ml_buf_fini) struct ml_buf page = ML_BUF_INIT;
    ml_metrics_write(world->metrics, &page);
    assert_non_null(strstr(ml_buf_cstr(&page), "rest_client_requests_total{code=\"200\",method="
                                               "\"GET\",host=\"fake.test:6443\"} 3\n"));
    assert_non_null(strstr(ml_buf_cstr(&page), "rest_client_requests_total{code=\"<error>\","
                                               "method=\"POST\",host=\"fake.test:6443\"} 1\n"));
    assert_non_null(strstr(ml_buf_cstr(&page), "rest_client_request_duration_seconds_count{verb="
                                               "\"GET\",host=\"fake.test:6443\"} 3\n"));
}

static void test_client_remembers_a_bounded_number_of_warnings(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 300; i++) {
        char text[16];
        int len = snprintf(text, sizeof text, "w%d", i);
        const struct ml_http_head head = {.status = 200, .warning = {text, (size_t)len}};
        send_request(world, ML_VERB_GET, "a");
        fake_reply_head(fake_next(world->server), &head, "{}");
    }
    static char log[256 * 1024];
    ssize_t len = pread(world->log_fd, log, sizeof log - 1, 0);
    assert_in_range(len, 1, sizeof log - 1);
    log[len] = '\0';
    assert_non_null(strstr(log, "w255"));
    assert_null(strstr(log, "w256"));
    char *end = strstr(log, "further warnings");
    assert_non_null(end);
    assert_null(strstr(end + 1, "further warnings"));
}

struct freeing {
    struct world *world;
    int count;
};

static void free_in_done(void *context, struct ml_str body, const struct ml_err *err)
{
    struct freeing *freeing = context;
    (void)body;
    (void)err;
    freeing->count++;
    ml_client_free(freeing->world->client);
    freeing->world->client = NULL;
}

static void test_client_may_be_freed_by_its_last_call(void **state)
{
    struct world *world = *state;
    struct freeing freeing = {world, 0};
    ml_client_send(world->client,
                   &(struct ml_client_request){.verb = ML_VERB_GET, .path = "/version"},
                   free_in_done, &freeing);
    fake_reply(fake_next(world->server), 200, "{}");
    assert_int_equal(freeing.count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_client_sends_each_verb_as_the_api_wants_it),
        WITH(test_client_gives_the_error_of_a_status),
        WITH(test_client_takes_a_failure_in_a_success_for_one),
        WITH(test_client_reads_again_when_the_connection_is_lost),
        WITH(test_client_forgets_what_a_lost_answer_brought),
        WITH(test_client_never_writes_again_after_a_lost_connection),
        WITH(test_client_waits_as_the_server_asked),
        WITH(test_client_gives_up_after_ten_refusals),
        NARROW(test_client_sends_in_order_as_places_come_free),
        NARROW(test_client_request_that_yields_goes_last),
        NARROW(test_client_cancel_ends_a_call_in_every_state),
        WITH(test_client_counts_requests_and_logs_warnings_once),
        WITH(test_client_remembers_a_bounded_number_of_warnings),
        WITH(test_client_may_be_freed_by_its_last_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
