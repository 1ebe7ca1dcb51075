#include "state_reflector.h"

/* ---- starting a watch ---- */

static void test_reflector_refused_watch_keeps_its_version_where_it_can(void **state)
{
    struct reflector_world *self = *state;
    static const struct {
        int status; /* 0: no answer */
        const char *reason;
        int64_t silent_ms, rest_ms;
        bool watch; /* else a LIST comes next */
        const char *heard;
    } rows[] = {
        {429, "TooManyRequests", 799, 801, true, "trouble(TooManyRequests)"},
        {0, "", 799, 801, true, "trouble(Network)"},
        {500, "InternalError", 799, 801, false, "trouble(ServerError)"},
        {503, "ServiceUnavailable", 799, 801, false, "trouble(Unavailable)"},
        {401, "Unauthorized", 999, 1001, false, "trouble(Unauthorized)"},
        {403, "Forbidden", 999, 1001, false, "trouble(Forbidden)"},
        {404, "NotFound", 999, 1001, false, "trouble(NotFound)"},
        {410, "Expired", 99, 101, false, ""},
        {204, "", 799, 801, false, "trouble(Internal)"},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        reply_list(restart(self), 5, "", pod("a", "ua", 3));
        struct fake_call *watch = expect_watch(self, "5");
        ml_buf_clear(&self->heard);
        if (rows[i].status)
            fake_refuse(watch, rows[i].status, rows[i].reason, "no");
        else
            fake_fail(watch, ML_ENETWORK, "refused");
        assert_heard(self, rows[i].heard);
        expect_silence(self, rows[i].silent_ms);
        advance(&self->world, rows[i].rest_ms);
        if (rows[i].watch && rows[i].status)
            expect_watch(self, "5");
        else if (rows[i].watch)
            expect_resumed(self, "a", 3, 5);
        else
            expect_list(self, "5");
    }
}

static void test_reflector_retry_after_is_honoured_without_a_list(void **state)
{
    struct reflector_world *self = *state;
    reply_list(expect_list(self, ""), 5, "", "");
    fake_reply_head(expect_watch(self, "5"),
                    &(struct ml_http_head){.status = 429, .retry_after_ms = 7000}, "");
    assert_heard(self, "listing replace 5: trouble(TooManyRequests)");
    assert_in_range(self->retry_ms, 7000, 10499); /* who was refused together comes back apart */
    expect_silence(self, 6999);
    advance(&self->world, 3501);
    fake_head(expect_watch(self, "5"), 200);
    advance(&self->world, 1000);
    assert_heard(self, "trouble(over)");
}

/* Said by an intermediary, or not at all: the version is still good, and a list would only add to
 * the load. */
static void test_reflector_watch_not_let_in_for_now_is_asked_for_again(void **state)
{
    struct reflector_world *self = *state;
    static const struct {
        int status, kind;
        bool retry_after, watch;
    } rows[] = {
        {503, 0, true, true},          {500, 0, true, true},          {503, 0, false, false},
        {0, ML_ENETWORK, false, true}, {0, ML_ETIMEOUT, false, true}, {0, ML_ETLS, false, true},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        reply_list(restart(self), 5, "", pod("a", "ua", 3));
        struct fake_call *watch = expect_watch(self, "5");
        const struct ml_http_head head = {
            .status = rows[i].status,
            .retry_after_ms = rows[i].retry_after ? 3000 : -1,
        };
        if (rows[i].kind)
            fake_fail(watch, rows[i].kind, "no");
        else
            fake_reply_head(watch, &head, "busy");
        expect_silence(self, rows[i].retry_after ? 2999 : 799);
        advance(&self->world, 1501);
        if (rows[i].watch)
            expect_resumed(self, "a", 3, 5);
        else
            expect_list(self, "5");
    }
}

/* The right to list without the right to watch: not over with each list. */
static void test_reflector_trouble_is_over_only_when_the_watch_opens(void **state)
{
    struct reflector_world *self = *state;
    reply_list(expect_list(self, ""), 5, "", "");
    fake_refuse(expect_watch(self, "5"), 403, "Forbidden", "no");
    for (int turn = 0; turn < 3; turn++) {
        advance(&self->world, 11000);
        reply_list(expect_list(self, "5"), 5, "", "");
        fake_refuse(expect_watch(self, "5"), 403, "Forbidden", "no");
    }
    assert_heard(self, "listing replace 5: trouble(Forbidden) replace 5: trouble(Forbidden) "
                       "replace 5: trouble(Forbidden) replace 5: trouble(Forbidden)");
}

/* ---- WATCHING ---- */

static void test_reflector_events_are_told_and_move_the_version(void **state)
{
    struct reflector_world *self = *state;
    struct fake_call *watch = till_watching(self);
    send_event(watch, "ADDED", pod("c", "uc", 6));
    assert_int_equal(self->progress_when_told, 5); /* first the event, then what it moves on */
    assert_int_equal(self->progress, 6);
    send_event(watch, "MODIFIED", pod("a", "ua", 7));
    send_event(watch, "DELETED", pod("b", "ub", 8));
    send_bookmark(watch, 20);
    assert_int_equal(self->progress, 20);
    assert_heard(self, "upsert c@6 upsert a@7 remove b@8");
    advance(&self->world, 2000);
    fake_end(watch);
    expect_watch(self, "20");
    assert_heard(self, "");
}

static void test_reflector_unknown_event_is_skipped_and_moves_the_version(void **state)
{
    struct reflector_world *self = *state;
    struct fake_call *watch = till_watching(self);
    send_event(watch, "MOVED", pod("a", "ua", 9));
    send_event(watch, "MOVED", "{\"kind\":\"Pod\"}");
    fake_end(watch);
    expect_watch(self, "9");
    assert_heard(self, "");
}

/* However a watch ends that nobody is to blame for, it is resumed at once and not told. */
static void test_reflector_ended_watch_is_resumed_where_it_was(void **state)
{
    struct reflector_world *self = *state;
    struct fake_call *watch = till_watching(self);
    static const int kinds[] = {0, ML_ENETWORK, ML_ETIMEOUT, ML_ETLS};
    for (size_t i = 0; i < ML_COUNT(kinds); i++) {
        char version[16];
        snprintf(version, sizeof version, "%zu", 10 + i);
        send_bookmark(watch, atoi(version));
        fake_piece(watch,
                   "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"99\"");
        if (kinds[i])
            fake_fail(watch, kinds[i], "cut");
        else
            fake_end(watch);
        watch = kinds[i] ? expect_resumed(self, "b", 4, 20) : expect_watch(self, version);
        fake_head(watch, 200);
    }
    assert_heard(self, "");
}

/* The first lists at once: a change of a CRD ends each watch of its kind, also one that has just
 * begun. */
static void test_reflector_very_short_watches_list_after_a_backoff(void **state)
{
    struct reflector_world *self = *state;
    static const struct {
        int64_t lived_ms;
        bool event, resumed;
    } rows[] = {{0, false, false}, {999, false, false}, {1000, false, true}, {0, true, true}};
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        reply_list(restart(self), 5, "", "");
        struct fake_call *watch = expect_watch(self, "5");
        fake_head(watch, 200);
        advance(&self->world, rows[i].lived_ms);
        if (rows[i].event)
            send_bookmark(watch, 6);
        fake_end(watch);
        if (rows[i].resumed) {
            expect_watch(self, rows[i].event ? "6" : "5");
            continue;
        }
        reply_list(expect_list(self, "5"), 5, "", "");
        watch = expect_watch(self, "5");
        fake_head(watch, 200);
        advance(&self->world, rows[i].lived_ms);
        fake_end(watch);
        expect_backoff(self);
        expect_list(self, "5");
    }
}

/* A server that ends each watch behind its first event: not in a hot loop. */
static void test_reflector_hasty_watches_back_off_in_the_end(void **state)
{
    struct reflector_world *self = *state;
    struct fake_call *watch = till_watching(self);
    for (int rv = 6; rv <= 10; rv++) {
        send_bookmark(watch, rv);
        fake_end(watch);
        watch = next_call(self); /* at once */
        assert_true(has_query(watch, "watch"));
        fake_head(watch, 200);
    }
    send_bookmark(watch, 11);
    fake_end(watch);
    expect_backoff(self);
    watch = expect_watch(self, "11"); /* without a list */
    fake_head(watch, 200);
    advance(&self->world, 1000); /* one that lasts is a new beginning */
    send_bookmark(watch, 12);
    fake_end(watch);
    watch = expect_watch(self, "12");
    fake_head(watch, 200);
    send_bookmark(watch, 13);
    fake_end(watch);
    expect_watch(self, "13");
    assert_heard(self, "");
}

/* An error that came too late for the head of the answer. */
static void test_reflector_status_instead_of_an_event_is_that_error(void **state)
{
    struct reflector_world *self = *state;
    static const struct {
        const char *line, *heard;
        bool watch;
    } rows[] = {
        {"{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Expired\",\"code\":410}\n", "",
         false},
        {"{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"TooManyRequests\"}\n",
         "trouble(TooManyRequests)", true},
        {"{\"kind\":\"Status\"}\n", "trouble(Internal)", false},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        reply_list(restart(self), 5, "", "");
        struct fake_call *watch = expect_watch(self, "5");
        fake_head(watch, 200);
        ml_buf_clear(&self->heard);
        assert_false(fake_piece(watch, rows[i].line));
        assert_heard(self, rows[i].heard);
        if (*rows[i].heard)
            expect_backoff(self);
        else
            expect_short_backoff(self);
        if (rows[i].watch)
            expect_watch(self, "5");
        else
            expect_list(self, "5");
    }
}

/* Each 404 of the collection is told: is the kind still there? */
static void test_reflector_missing_collection_is_told_each_time(void **state)
{
    struct reflector_world *self = *state;
    fake_refuse(expect_list(self, ""), 404, "NotFound", "no");
    advance(&self->world, 11000);
    fake_refuse(expect_list(self, ""), 404, "NotFound", "no");
    assert_int_equal(self->missing, 2);
    assert_heard(self, "listing trouble(NotFound) listing trouble(NotFound)");
}

/* A server that is gone for a while again and again is found again as soon each time. */
static void test_reflector_backoff_begins_anew_after_a_watch_that_worked(void **state)
{
    struct reflector_world *self = *state;
    struct fake_call *watch = till_watching(self);
    for (int outage = 0; outage < 10; outage++) {
        advance(&self->world, 5000);
        fake_end(watch);
        fake_refuse(expect_watch(self, "5"), 500, "InternalError", "no");
        expect_backoff(self);
        fake_refuse(expect_list(self, "5"), 500, "InternalError", "no");
        expect_silence(self, 1599);
        advance(&self->world, 1601);
        reply_list(expect_list(self, "5"), 5, "", "");
        watch = expect_watch(self, "5");
        fake_head(watch, 200);
    }
}

static void test_reflector_error_events_decide_what_follows(void **state)
{
    struct reflector_world *self = *state;
    static const struct {
        const char *status;
        bool watch;
        int64_t silent_ms, rest_ms;
        const char *heard;
    } rows[] = {
        {"{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}", false, 99, 101, ""},
        {"{\"kind\":\"Status\",\"code\":410,\"reason\":\"Gone\"}", false, 99, 101, ""},
        {"{\"kind\":\"Status\",\"code\":410}", false, 99, 101, ""},
        {"{\"kind\":\"Status\",\"code\":504,\"reason\":\"Timeout\",\"details\":{\"causes\":[{"
         "\"reason\":\"ResourceVersionTooLarge\"}]}}",
         false, 99, 101, ""},
        {"{\"kind\":\"Status\",\"code\":429,\"reason\":\"TooManyRequests\"}", true, 799, 801,
         "trouble(TooManyRequests)"},
        {"{\"kind\":\"Status\",\"code\":429,\"reason\":\"TooManyRequests\",\"details\":{"
         "\"retryAfterSeconds\":5}}",
         true, 4999, 2501, "trouble(TooManyRequests)"},
        {"{\"kind\":\"Status\",\"code\":500,\"reason\":\"InternalError\"}", false, 799, 801,
         "trouble(ServerError)"},
        {"{\"kind\":\"Pod\"}", false, 799, 801, "trouble(Internal)"},
        {"{}", false, 799, 801, "trouble(Internal)"},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        reply_list(restart(self), 5, "", "");
        struct fake_call *watch = expect_watch(self, "5");
        fake_head(watch, 200);
        send_bookmark(watch, 6);
        ml_buf_clear(&self->heard);
        ML_AUTO_FREE char *line = event_line("ERROR", rows[i].status);
        assert_false(fake_piece(watch, line));
        assert_heard(self, rows[i].heard);
        expect_silence(self, rows[i].silent_ms);
        advance(&self->world, rows[i].rest_ms);
        if (rows[i].watch)
            expect_watch(self, "6");
        else
            expect_list(self, "6");
    }
}

static void test_reflector_gone_lists_at_its_version_and_then_at_any(void **state)
{
    struct reflector_world *self = *state;
    struct fake_call *watch = till_watching(self);
    ML_AUTO_FREE char *line = event_line(
        "ERROR", "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}");
    fake_piece(watch, line);
    expect_short_backoff(self);
    struct fake_call *list = expect_list(self, "5");
    assert_false(has_query(list, "limit"));
    fake_refuse(list, 410, "Expired", "old");
    assert_heard(self, "");
    struct fake_call *any = expect_list(self, ""); /* at once, one time */
    assert_string_equal(query_of(any, "limit"), "500");
    fake_refuse(any, 410, "Expired", "old");
    expect_silence(self, 199); /* the second backoff */
    advance(&self->world, 201);
    reply_list(expect_list(self, ""), 40, "", "");
    expect_watch(self, "40");
    assert_heard(self, "listing listing replace 40:");
}

/* Lists at the most recent version, of a server that was restored, until one is believed. */
static void expect_list_at_any_of_restored(struct reflector_world *self, int rv)
{
    reply_list(expect_list(self, ""), rv - 1, "", "");
    advance(&self->world, 60000);
    reply_list(expect_list(self, ""), rv, "", "");
}

static void test_reflector_version_too_large_lists_at_any(void **state)
{
    struct reflector_world *self = *state;
    fake_end(till_watching(self));
    fake_reply(expect_list(self, "5"), 504,
               "{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":504,\"reason\":\"Timeout\","
               "\"details\":{\"causes\":[{\"reason\":\"ResourceVersionTooLarge\"}]}}");
    expect_list_at_any_of_restored(self, 2);
    expect_watch(self, "2");
}

static void test_reflector_gone_for_ever_does_not_spin(void **state)
{
    struct reflector_world *self = *state;
    reply_list(expect_list(self, ""), 5, "", "");
    fake_refuse(expect_watch(self, "5"), 410, "Expired", "old");
    for (int turn = 0; turn < 20; turn++) {
        expect_silence(self, turn < 8 ? 99 << turn : 25599);
        advance(&self->world, 60000);
        reply_list(expect_list(self, "5"), 5, "", "");
        fake_refuse(expect_watch(self, "5"), 410, "Expired", "old");
    }
}

static void test_reflector_line_that_is_no_event_leads_to_a_list(void **state)
{
    struct reflector_world *self = *state;
    static const char *const lines[] = {"<html>\n", "{\"type\":\"ADDED\"}\n", "{\"type\n"};
    for (size_t i = 0; i < ML_COUNT(lines); i++) {
        reply_list(restart(self), 5, "", "");
        struct fake_call *watch = expect_watch(self, "5");
        fake_head(watch, 200);
        send_bookmark(watch, 6);
        ml_buf_clear(&self->heard);
        assert_false(fake_piece(watch, lines[i]));
        assert_heard(self, "trouble(Invalid)");
        expect_backoff(self);
        expect_list(self, "6");
    }
}

static void test_reflector_poisoned_event_costs_itself_only(void **state)
{
    struct reflector_world *self = *state;
    struct fake_call *watch = till_watching(self);
    static const char poison[] = "{\"metadata\":{\"namespace\":\"default\",\"name\":\"a\","
                                 "\"resourceVersion\":\"9\"},\"x\":\"\xff\"}";
    send_event(watch, "MODIFIED", poison);
    assert_int_equal(ml_store_len(self->store), 2); /* the last good version stays */
    send_event(watch, "ADDED", pod("c", "uc", 10));
    send_event(watch, "DELETED", poison); /* that much can be read */
    assert_heard(self, "poisoned(default/a) upsert c@10 poisoned(default/a) remove a@3");
    send_event(watch, "ADDED", "{\"metadata\":{\"resourceVersion\":\"12\"}}");
    assert_heard(self, "poisoned()");
    fake_end(watch);
    expect_watch(self, "12");
}

static void test_reflector_too_deep_event_costs_itself_only(void **state)
{
    struct reflector_world *self = *state;
    struct fake_call *watch = till_watching(self);
    ML_AUTO(ml_buf_fini) struct ml_buf deep = ML_BUF_INIT;
    ml_buf_puts(&deep, "{\"metadata\":{\"name\":\"deep\",\"resourceVersion\":\"9\"},\"x\":");
    for (int i = 0; i < 10000; i++)
        ml_buf_puts(&deep, "{\"a\":");
    ml_buf_puts(&deep, "1");
    for (int i = 0; i < 10001; i++)
        ml_buf_puts(&deep, "}");
    send_event(watch, "ADDED", ml_buf_cstr(&deep));
    send_event(watch, "ADDED", pod("c", "uc", 10));
    assert_heard(self, "poisoned(deep) upsert c@10");
}

/* ---- a watch that falls silent ---- */

/* The server was asked to end it; what comes meanwhile is no reason to wait longer for that. */
static void test_reflector_watch_that_the_server_does_not_end_is_left(void **state)
{
    struct reflector_world *self = *state;
    struct fake_call *watch = till_watching(self);
    for (int rv = 7; rv < 60; rv++) {
        int64_t timeout_s = atoll(query_of(watch, "timeoutSeconds"));
        assert_in_range(timeout_s, 16, 20);
        advance(&self->world, 10000);
        if (rv % 2)
            send_event(watch, "MODIFIED", pod("b", "ub", rv));
        advance(&self->world, (timeout_s - 5) * 1000 - 1);
        assert_false(watch->canceled);
        advance(&self->world, 1);
        assert_true(watch->canceled);
        watch = expect_resumed(self, "b", rv % 2 ? rv : ML_MAX(4, rv - 1), rv);
        assert_heard(self, rv % 2 ? ml_buf_cstr(&self->heard) + 1 : "");
        fake_head(watch, 200);
    }
}

/* A server that was restored to an earlier state stays silent to a watch from a later version,
 * however often it is asked; a list finds out. */
static void test_reflector_silence_over_several_watches_leads_to_a_list(void **state)
{
    struct reflector_world *self = *state;
    struct fake_call *watch = till_watching(self);
    for (int i = 0; i < 14; i++) {
        advance(&self->world, 20000);
        fake_end(watch);
        watch = expect_watch(self, "5");
        fake_head(watch, 200);
    }
    advance(&self->world, 20000);
    fake_end(watch);
    fake_refuse(expect_list(self, "5"), 410, "Expired", "too large");
    expect_list_at_any_of_restored(self, 3);
    watch = expect_watch(self, "3");
    fake_head(watch, 200);
    send_bookmark(watch, 4);
    assert_int_equal(self->progress, 4);
}

static void test_reflector_bookmarks_alone_are_no_silence(void **state)
{
    struct reflector_world *self = *state;
    struct fake_call *watch = till_watching(self);
    for (int rv = 6; rv < 40; rv++) {
        advance(&self->world, 18000);
        send_bookmark(watch, rv);
        fake_end(watch);
        ML_AUTO_FREE char *version = ml_asprintf("%d", rv);
        watch = expect_watch(self, version);
        fake_head(watch, 200);
    }
    assert_heard(self, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_reflector_refused_watch_keeps_its_version_where_it_can),
        TEST(test_reflector_retry_after_is_honoured_without_a_list),
        TEST(test_reflector_watch_not_let_in_for_now_is_asked_for_again),
        TEST(test_reflector_hasty_watches_back_off_in_the_end),
        TEST(test_reflector_status_instead_of_an_event_is_that_error),
        TEST(test_reflector_missing_collection_is_told_each_time),
        TEST(test_reflector_trouble_is_over_only_when_the_watch_opens),
        TEST(test_reflector_events_are_told_and_move_the_version),
        TEST(test_reflector_unknown_event_is_skipped_and_moves_the_version),
        TEST(test_reflector_ended_watch_is_resumed_where_it_was),
        TEST(test_reflector_very_short_watches_list_after_a_backoff),
        TEST(test_reflector_backoff_begins_anew_after_a_watch_that_worked),
        TEST(test_reflector_error_events_decide_what_follows),
        TEST(test_reflector_gone_lists_at_its_version_and_then_at_any),
        TEST(test_reflector_version_too_large_lists_at_any),
        TEST(test_reflector_gone_for_ever_does_not_spin),
        TEST(test_reflector_line_that_is_no_event_leads_to_a_list),
        TEST(test_reflector_poisoned_event_costs_itself_only),
        TEST(test_reflector_too_deep_event_costs_itself_only),
        TEST(test_reflector_watch_that_the_server_does_not_end_is_left),
        TEST(test_reflector_silence_over_several_watches_leads_to_a_list),
        TEST(test_reflector_bookmarks_alone_are_no_silence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
