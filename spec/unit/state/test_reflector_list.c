#include "state_reflector.h"

static void test_reflector_lists_then_watches_from_the_lists_version(void **state)
{
    struct reflector_world *self = *state;
    struct fake_call *list = expect_list(self, "");
    assert_string_equal(list->path, "/api/v1/pods?limit=500");
    assert_true(list->streaming);
    reply_list(list, 5, "", pod("a", "ua", 99));
    struct fake_call *watch = expect_watch(self, "5"); /* never an item's version */
    assert_true(watch->streaming);
    assert_string_equal(query_of(watch, "allowWatchBookmarks"), "true");
    int64_t timeout_s = atoll(query_of(watch, "timeoutSeconds"));
    assert_in_range(timeout_s, 16, 20); /* and 5 for its end to arrive: 25 s in all */
    assert_int_equal(watch->deadlines.total_ms, (timeout_s + 5) * 1000);
    assert_heard(self, "listing replace 5: a@99");
    assert_int_equal(self->progress, 5);
}

static void test_reflector_of_one_object_selects_it(void **state)
{
    struct reflector_world *self = *state;
    fake_next(self->world.server);
    world_start(self, "ns", "scripts");
    struct fake_call *list = fake_next(self->world.server);
    assert_string_equal(
        list->path, "/api/v1/namespaces/ns/pods?fieldSelector=metadata.name%3Dscripts&limit=500");
    reply_list(list, 5, "", "");
    assert_string_equal(query_of(expect_watch(self, "5"), "fieldSelector"),
                        "metadata.name%3Dscripts");
}

static void test_reflector_pages_are_told_as_one_list(void **state)
{
    struct reflector_world *self = *state;
    reply_list(expect_list(self, ""), 5, "t1", pod("a", "ua", 1));
    struct fake_call *second = next_call(self);
    assert_string_equal(second->path, "/api/v1/pods?limit=500&continue=t1");
    reply_list(second, 6, "t2", ""); /* an empty page is not the last one */
    assert_heard(self, "listing");
    reply_list(next_call(self), 7, "", pod("b", "ub", 2));
    assert_heard(self, "replace 5: a@1 b@2");
    expect_watch(self, "5");
}

static void test_reflector_list_in_pieces_is_the_same_list(void **state)
{
    struct reflector_world *self = *state;
    ML_AUTO_FREE char *items = ml_asprintf("%s,%s", pod("a", "ua", 3), pod("b", "ub", 4));
    ML_AUTO_FREE char *body = pod_list(5, "", items);
    struct fake_call *list = expect_list(self, "");
    fake_head(list, 200);
    for (const char *at = body; *at; at++)
        assert_true(fake_piece_bytes(list, (struct ml_str){at, 1}));
    assert_heard(self, "listing");
    fake_end(list);
    assert_heard(self, "replace 5: a@3 b@4");
    expect_watch(self, "5");
}

/* No part of a list is told if the list fails on its way, with any error. */
static void test_reflector_list_that_fails_is_told_in_no_part(void **state)
{
    struct reflector_world *self = *state;
    static const char *const bodies[] = {
        "",
        "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[{}",
        "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[]",
        "{\"kind\":\"PodList\",\"metadata\":{},\"items\":[]}",
        "{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"5\"}}",
        "{\"kind\":\"Table\",\"metadata\":{\"resourceVersion\":\"5\"},\"rows\":[]}",
        "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"InternalError\",\"code\":500}",
        "<html>",
        "[]",
    };
    for (size_t i = 0; i < ML_COUNT(bodies); i++) {
        fake_reply(expect_list(self, ""), 200, bodies[i]);
        advance(&self->world, 60000);
    }
    assert_null(strstr(ml_buf_cstr(&self->heard), "replace"));
    reply_list(expect_list(self, ""), 5, "", "");
    assert_non_null(strstr(ml_buf_cstr(&self->heard), "replace 5:"));
}

static void test_reflector_later_page_expired_lists_in_one_piece(void **state)
{
    struct reflector_world *self = *state;
    reply_list(expect_list(self, ""), 5, "t1", pod("a", "ua", 1));
    reply_list(next_call(self), 5, "t2", pod("b", "ub", 2));
    fake_refuse(next_call(self), 410, "Expired", "the token is too old");
    struct fake_call *whole = expect_list(self, "");
    assert_string_equal(whole->path, "/api/v1/pods");
    reply_list(whole, 8, "", pod("c", "uc", 3));
    assert_heard(self, "listing listing replace 8: c@3");
}

static void test_reflector_later_page_cut_begins_anew(void **state)
{
    struct reflector_world *self = *state;
    reply_list(expect_list(self, ""), 5, "t1", pod("a", "ua", 1));
    struct fake_call *second = next_call(self);
    fake_head(second, 200);
    fake_piece(second, "{\"kind\":\"PodList\",\"items\":[");
    fake_fail(second, ML_ENETWORK, "reset");
    expect_backoff(self);
    struct fake_call *again = expect_list(self, "");
    assert_false(has_query(again, "continue"));
    reply_list(again, 6, "", pod("b", "ub", 2));
    assert_heard(self, "listing trouble(Network) listing replace 6: b@2 trouble(over)");
}

static void test_reflector_poisoned_item_costs_itself_only(void **state)
{
    struct reflector_world *self = *state;
    ML_AUTO_FREE char *items = ml_asprintf(
        "%s,{\"metadata\":{\"namespace\":\"d\",\"name\":\"bad\"},\"x\":\"\xff\"},7,{},%s",
        pod("a", "ua", 3), pod("b", "ub", 4));
    reply_list(expect_list(self, ""), 5, "", items);
    assert_heard(self, "listing poisoned(d/bad) poisoned() poisoned() replace 5: a@3 b@4");
}

static void test_reflector_poisoned_item_keeps_its_last_good_version(void **state)
{
    struct reflector_world *self = *state;
    fake_end(till_watching(self));
    fake_refuse(expect_list(self, "5"), 410, "Expired", "old");
    ML_AUTO_FREE char *items = ml_asprintf(
        "{\"metadata\":{\"namespace\":\"default\",\"name\":\"a\"},\"x\":\"\xff\"},%s",
        pod("c", "uc", 8));
    reply_list(expect_list(self, ""), 9, "", items);
    assert_heard(self, "listing poisoned(default/a) replace 9: a@3 c@8");
}

static void test_reflector_refused_list_is_told_and_tried_each_second_or_two(void **state)
{
    struct reflector_world *self = *state;
    static const struct {
        int status;
        const char *reason, *heard;
    } rows[] = {
        {404, "NotFound", "listing trouble(NotFound)"},
        {403, "Forbidden", "listing trouble(Forbidden)"},
    };
    struct fake_call *list = expect_list(self, "");
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        for (int again = 0; again < 3; again++) {
            fake_refuse(list, rows[i].status, rows[i].reason, "no");
            assert_heard(self, rows[i].heard);
            assert_in_range(self->retry_ms, 1000, 1999);
            expect_brisk_backoff(self);
            list = expect_list(self, "");
        }
    }
    reply_list(list, 5, "", "");
    assert_heard(self, "listing replace 5: trouble(over)");
    fake_head(expect_watch(self, "5"), 200);
    assert_heard(self, "");
}

static void test_reflector_failed_list_backs_off_from_800_ms_to_30_s(void **state)
{
    struct reflector_world *self = *state;
    int64_t delay_ms = 800;
    for (int n = 0; n < 9; n++) {
        fake_refuse(expect_list(self, ""), 500, "InternalError", "oops");
        assert_heard(self, "listing trouble(ServerError)");
        expect_silence(self, delay_ms - 1);
        advance(&self->world, delay_ms + 1);
        delay_ms = ML_MIN(delay_ms * 2, 30000);
    }
    /* When it works it begins anew. */
    reply_list(expect_list(self, ""), 5, "", "");
    struct fake_call *watch = expect_watch(self, "5");
    fake_head(watch, 200);
    advance(&self->world, 1000); /* a watch that works for a second */
    send_bookmark(watch, 6);
    fake_piece(watch, "nonsense\n");
    expect_backoff(self);
    expect_list(self, "6");
}

/* Broken off at every byte of every page: the next attempt begins anew, and only a whole list is
 * told. */
static void test_reflector_list_broken_off_at_every_byte_is_told_in_no_part(void **state)
{
    struct reflector_world *self = *state;
    ML_AUTO_FREE char *first = pod_list(5, "t1", pod("a", "ua", 3));
    ML_AUTO_FREE char *last = pod_list(5, "", pod("b", "ub", 4));
    const char *const pages[] = {first, last};
    for (size_t page = 0; page < ML_COUNT(pages); page++) {
        for (size_t len = 0; len < strlen(pages[page]); len++) {
            struct fake_call *call = restart(self);
            if (page == 1) {
                fake_reply(call, 200, pages[0]);
                call = next_call(self);
            }
            fake_head(call, 200);
            assert_true(fake_piece_bytes(call, (struct ml_str){pages[page], len}));
            if (len % 2)
                fake_fail(call, ML_ENETWORK, "reset");
            else
                fake_end(call);
            assert_null(strstr(ml_buf_cstr(&self->heard), "replace"));
            advance(&self->world, 1600);
            assert_false(has_query(expect_list(self, ""), "continue"));
        }
    }
}

/* An API server in Go writes a list that was never made as null. */
static void test_reflector_list_of_null_is_empty(void **state)
{
    struct reflector_world *self = *state;
    fake_reply(expect_list(self, ""), 200,
               "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"5\"},\"items\":null}");
    assert_heard(self, "listing replace 5:");
    expect_watch(self, "5");
}

/* The body of a success decides, not its code. */
static void test_reflector_status_instead_of_a_list_counts_as_its_error(void **state)
{
    struct reflector_world *self = *state;
    static const char expired[] =
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\","
        "\"reason\":\"Expired\",\"code\":410}";
    static const char forbidden[] = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":"
                                    "\"Failure\",\"reason\":\"Forbidden\",\"code\":403}";
    fake_end(till_watching(self));
    fake_reply(expect_list(self, "5"), 200, expired);
    fake_reply(expect_list(self, ""), 200, forbidden);
    assert_heard(self, "listing trouble(Forbidden)");
    expect_brisk_backoff(self);
    expect_list(self, "");
}

static void test_reflector_retry_after_of_a_list_is_honoured(void **state)
{
    struct reflector_world *self = *state;
    static const struct {
        int64_t asked_ms, least_ms;
    } rows[] = {{0, 1000}, {1000, 1000}, {32000, 32000}, {3600000, 60000}};
    struct fake_call *list = expect_list(self, "");
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        const struct ml_http_head head = {.status = 429, .retry_after_ms = rows[i].asked_ms};
        fake_reply_head(list, &head, "");
        expect_silence(self, rows[i].least_ms - 1);
        advance(&self->world, rows[i].least_ms / 2 + 1);
        list = expect_list(self, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_reflector_lists_then_watches_from_the_lists_version),
        TEST(test_reflector_of_one_object_selects_it),
        TEST(test_reflector_pages_are_told_as_one_list),
        TEST(test_reflector_list_in_pieces_is_the_same_list),
        TEST(test_reflector_list_that_fails_is_told_in_no_part),
        TEST(test_reflector_later_page_expired_lists_in_one_piece),
        TEST(test_reflector_later_page_cut_begins_anew),
        TEST(test_reflector_poisoned_item_costs_itself_only),
        TEST(test_reflector_poisoned_item_keeps_its_last_good_version),
        TEST(test_reflector_refused_list_is_told_and_tried_each_second_or_two),
        TEST(test_reflector_failed_list_backs_off_from_800_ms_to_30_s),
        TEST(test_reflector_list_broken_off_at_every_byte_is_told_in_no_part),
        TEST(test_reflector_list_of_null_is_empty),
        TEST(test_reflector_status_instead_of_a_list_counts_as_its_error),
        TEST(test_reflector_retry_after_of_a_list_is_honoured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
