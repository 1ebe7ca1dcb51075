#include "state_reflector.h"

/* The first streaming list of a fresh reflector. */
static struct fake_call *begin(struct reflector_world *self)
{
    fake_next(self->world.server);
    self->streams = true;
    world_start(self, "", "");
    struct fake_call *stream = fake_next(self->world.server);
    ml_buf_clear(&self->heard);
    return stream;
}

/* The bookmark behind the last initial event. */
static bool send_end(struct fake_call *stream, int rv)
{
    ML_AUTO_FREE char *line = ml_asprintf(
        "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{"
        "\"resourceVersion\":\"%d\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n",
        rv);
    return fake_piece(stream, line);
}

static void assert_stream(struct fake_call *call, const char *version)
{
    assert_string_equal(query_of(call, "sendInitialEvents"), "true");
    assert_string_equal(query_of(call, "resourceVersionMatch"), "NotOlderThan");
    assert_string_equal(query_of(call, "allowWatchBookmarks"), "true");
    assert_string_equal(query_of(call, "watch"), "1");
    assert_string_equal(query_of(call, "resourceVersion"), version);
}

static void test_stream_is_told_as_a_list_and_goes_on_as_the_watch(void **state)
{
    struct reflector_world *self = *state;
    struct fake_call *stream = begin(self);
    assert_stream(stream, "");
    fake_head(stream, 200);
    send_event(stream, "ADDED", pod("a", "ua", 3));
    send_event(stream, "ADDED", pod("b", "ub", 900)); /* in no order */
    send_event(stream, "ADDED", pod("c", "uc", 5));
    send_event(stream, "MODIFIED", pod("a", "ua", 10)); /* changed meanwhile */
    send_event(stream, "DELETED", pod("c", "uc", 11));
    send_bookmark(stream, 11); /* not that one */
    assert_heard(self, "trouble(over)" + sizeof "trouble(over)" - 1);
    assert_int_equal(self->progress, 0);
    assert_true(send_end(stream, 12));
    assert_int_equal(self->progress, 12);
    assert_int_equal(ml_store_len(self->store), 2);
    ml_buf_clear(&self->heard);
    send_event(stream, "ADDED", pod("d", "ud", 13));
    assert_true(send_end(stream, 14)); /* a second one is a bookmark */
    assert_heard(self, "upsert d@13");
    fake_end(stream);
    struct fake_call *watch = expect_watch(self, "14");
    assert_false(has_query(watch, "sendInitialEvents")); /* or all would come again */
    assert_string_equal(self->turn, "watch ended");
}

static void test_stream_that_ends_early_is_begun_anew(void **state)
{
    struct reflector_world *self = *state;
    struct fake_call *stream = begin(self);
    fake_head(stream, 200);
    send_event(stream, "ADDED", pod("a", "ua", 3));
    fake_end(stream);
    expect_backoff(self);
    stream = next_call(self);
    assert_stream(stream, "");
    fake_head(stream, 200);
    send_event(stream, "ADDED", pod("b", "ub", 4));
    assert_true(send_end(stream, 9));
    assert_heard(self, "listing replace 9: b@4");
}

static void test_stream_refused_as_such_is_never_asked_for_again(void **state)
{
    struct reflector_world *self = *state;
    static const int codes[] = {422, 400};
    for (size_t i = 0; i < ML_COUNT(codes); i++) {
        self->server.no_streams = false;
        self->streams = true;
        fake_refuse(i == 0 ? begin(self) : restart(self), codes[i], "Invalid",
                    "sendInitialEvents: Forbidden");
        reply_list(expect_list(self, ""), 5, "", pod("a", "ua", 3));
        assert_heard(self, i == 0 ? "listing replace 5: a@3" : "listing replace 5: a@3");
        fake_fail(expect_watch(self, "5"), ML_EINVALID, "odd");
        advance(&self->world, 60000);
        assert_false(has_query(expect_list(self, "5"), "sendInitialEvents"));
    }
}

/* The bookmark that says it is whole does not come: an old proxy, or server. */
static void test_stream_without_its_end_is_given_up_for_good(void **state)
{
    struct reflector_world *self = *state;
    for (int events = 0; events < 2; events++) {
        int64_t patience_ms = events ? 10000 : 30000;
        self->server.no_streams = false;
        struct fake_call *stream = events ? restart(self) : begin(self);
        fake_head(stream, 200);
        if (events)
            send_event(stream, "ADDED", pod("a", "ua", 3));
        advance(&self->world, patience_ms - 1);
        assert_false(stream->canceled);
        advance(&self->world, 1);
        assert_true(stream->canceled);
        assert_true(self->server.no_streams);
        reply_list(expect_list(self, ""), 5, "", "");
        expect_watch(self, "5");
        ml_buf_clear(&self->heard);
    }
}

static void test_stream_ends_decide_what_follows(void **state)
{
    struct reflector_world *self = *state;
    static const struct {
        int status; /* 0: an ERROR event behind the head */
        const char *reason;
        bool stream, wait;
    } rows[] = {
        {429, "TooManyRequests", true, true}, {0, "TooManyRequests", true, true},
        {500, "InternalError", false, false}, {0, "InternalError", false, false},
        {403, "Forbidden", false, false},     {404, "NotFound", false, false},
    };
    begin(self);
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        struct fake_call *stream = restart(self);
        ML_AUTO_FREE char *status = ml_asprintf("{\"kind\":\"Status\",\"reason\":\"%s\"}",
                                                rows[i].reason);
        ML_AUTO_FREE char *line = event_line("ERROR", status);
        if (rows[i].status)
            fake_refuse(stream, rows[i].status, rows[i].reason, "no");
        else {
            fake_head(stream, 200);
            send_event(stream, "ADDED", pod("a", "ua", 3));
            assert_false(fake_piece(stream, line));
        }
        if (rows[i].wait)
            expect_backoff(self);
        if (rows[i].stream)
            assert_stream(next_call(self), "");
        else
            fake_refuse(expect_list(self, ""), 500, "InternalError", "oops");
        advance(&self->world, 60000);
        if (!rows[i].stream)
            assert_stream(next_call(self), ""); /* the next cycle tries again */
    }
    assert_false(self->server.no_streams);
}

static void test_stream_after_a_gone_watch_begins_at_its_version(void **state)
{
    struct reflector_world *self = *state;
    struct fake_call *stream = begin(self);
    fake_head(stream, 200);
    assert_true(send_end(stream, 5));
    ML_AUTO_FREE char *line = event_line(
        "ERROR", "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}");
    assert_false(fake_piece(stream, line));
    expect_short_backoff(self);
    stream = next_call(self);
    assert_stream(stream, "5");
    fake_reply(stream, 504,
               "{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":504,\"reason\":\"Timeout\","
               "\"details\":{\"causes\":[{\"reason\":\"ResourceVersionTooLarge\"}]}}");
    stream = next_call(self); /* at once, one time */
    assert_stream(stream, "");
    fake_head(stream, 200);
    assert_false(send_end(stream, 4)); /* older than what is known */
    assert_int_equal(self->progress, 5);
    expect_brisk_backoff(self);
    assert_stream(next_call(self), "");
}

/* The server was asked for a time in which a long list may come. A watch of its own, which is never
 * silent for long, takes over after the list. */
static void test_stream_is_left_soon_after_it_was_whole(void **state)
{
    struct reflector_world *self = *state;
    struct fake_call *stream = begin(self);
    fake_head(stream, 200);
    assert_true(send_end(stream, 5));
    send_event(stream, "ADDED", pod("a", "ua", 6));
    advance(&self->world, 9999);
    assert_false(stream->canceled);
    advance(&self->world, 1);
    assert_true(stream->canceled);
    expect_watch(self, "6"); /* the server was there: it is asked for nothing before */
    assert_string_equal(self->turn, "watch ended");
}

static void test_stream_with_a_poisoned_object_keeps_its_last_good_version(void **state)
{
    struct reflector_world *self = *state;
    fake_end(till_watching(self)); /* holds a@3 and b@4 */
    self->streams = true;
    struct fake_call *stream = restart(self);
    fake_head(stream, 200);
    send_event(stream, "ADDED",
               "{\"metadata\":{\"namespace\":\"default\",\"name\":\"a\"},\"x\":\"\xff\"}");
    assert_true(send_end(stream, 9));
    assert_heard(self, "poisoned(default/a) replace 9: a@3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_stream_is_told_as_a_list_and_goes_on_as_the_watch),
        TEST(test_stream_that_ends_early_is_begun_anew),
        TEST(test_stream_refused_as_such_is_never_asked_for_again),
        TEST(test_stream_without_its_end_is_given_up_for_good),
        TEST(test_stream_ends_decide_what_follows),
        TEST(test_stream_after_a_gone_watch_begins_at_its_version),
        TEST(test_stream_with_a_poisoned_object_keeps_its_last_good_version),
        TEST(test_stream_is_left_soon_after_it_was_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
