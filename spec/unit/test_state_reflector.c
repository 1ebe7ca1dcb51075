#include "state_world.h"

#include "state/reflector.h"
#include "state/store.h"

/* A reflector and all that it told, as one line of text. */
struct reflector_world {
    struct world world;
    struct ml_dict *dict;
    struct ml_store *store; /* what current() answers from */
    struct ml_reflector *reflector;
    struct ml_buf heard;
    int64_t retry_ms;
    uint64_t progress;
};

static void hear(struct reflector_world *self, const char *what, struct ml_object *object)
{
    ml_buf_printf(&self->heard, " %s", what);
    if (object)
        ml_buf_printf(&self->heard, " " ML_STR_FMT "@" ML_STR_FMT,
                      ML_STR_ARG(ml_object_name(object)), ML_STR_ARG(ml_object_rv(object)));
}

static void on_listing(void *context)
{
    hear(context, "listing", NULL);
}

static void on_replace(void *context, struct ml_object *const *objects, size_t count, uint64_t rv)
{
    struct reflector_world *self = context;
    ml_store_free(self->store);
    self->store = ml_store_new();
    ml_buf_printf(&self->heard, " replace %llu:", (unsigned long long)rv);
    for (size_t i = 0; i < count; i++) {
        ml_object_unref(ml_store_put(self->store, objects[i]));
        ml_buf_printf(&self->heard, " " ML_STR_FMT "@" ML_STR_FMT,
                      ML_STR_ARG(ml_object_name(objects[i])), ML_STR_ARG(ml_object_rv(objects[i])));
    }
}

static void on_upsert(void *context, struct ml_object *object)
{
    struct reflector_world *self = context;
    hear(self, "upsert", object);
    ml_object_unref(ml_store_put(self->store, object));
}

static void on_remove(void *context, struct ml_object *last)
{
    struct reflector_world *self = context;
    hear(self, "remove", last);
    ml_object_unref(ml_store_remove(self->store, ml_object_key(last)));
}

static void on_progress(void *context, uint64_t rv)
{
    ((struct reflector_world *)context)->progress = rv;
}

static void on_poisoned(void *context, struct ml_str key, const struct ml_err *err)
{
    struct reflector_world *self = context;
    assert_int_not_equal(err->kind, 0);
    ml_buf_printf(&self->heard, " poisoned(" ML_STR_FMT ")", ML_STR_ARG(key));
}

static void on_trouble(void *context, const struct ml_err *err, int64_t retry_ms)
{
    struct reflector_world *self = context;
    self->retry_ms = retry_ms;
    ml_buf_printf(&self->heard, " trouble(%s)", err ? ml_err_name(err->kind) : "over");
}

static struct ml_object *on_current(void *context, struct ml_str key)
{
    return ml_store_get(((struct reflector_world *)context)->store, key);
}

static const struct ml_reflector_handler handler = {
    on_listing, on_replace, on_upsert, on_remove, on_progress, on_poisoned, on_trouble, on_current,
};

static void world_start(struct reflector_world *self, const char *ns, const char *name)
{
    ml_reflector_free(self->reflector);
    self->reflector = ml_reflector_new(&(struct ml_reflector_opts){
        .client = self->world.client,
        .loop = self->world.loop,
        .random = &self->world.random,
        .kind = &pods,
        .ns = ml_str_of(ns),
        .name = ml_str_of(name),
        .dict = self->dict,
        .handler = &handler,
        .context = self,
    });
    ml_reflector_start(self->reflector);
    ml_loop_poll(self->world.loop);
}

static int setup(void **state)
{
    struct reflector_world *self = ml_new(struct reflector_world);
    world_init(&self->world);
    self->dict = ml_dict_new();
    self->store = ml_store_new();
    world_start(self, "", "");
    *state = self;
    return 0;
}

static int teardown(void **state)
{
    struct reflector_world *self = *state;
    ml_reflector_free(self->reflector);
    ml_store_free(self->store);
    ml_dict_unref(self->dict);
    ml_buf_fini(&self->heard);
    world_fini(&self->world);
    free(self);
    return 0;
}

/* What was told since the last time. */
static void assert_heard(struct reflector_world *self, const char *want)
{
    const char *got = ml_buf_cstr(&self->heard);
    assert_string_equal(*got == ' ' ? got + 1 : got, want);
    ml_buf_clear(&self->heard);
}

static struct fake_call *next_call(struct reflector_world *self)
{
    ml_loop_poll(self->world.loop);
    return fake_next(self->world.server);
}

/* The next request, which is a LIST at `version` ("": the most recent). */
static struct fake_call *expect_list(struct reflector_world *self, const char *version)
{
    struct fake_call *call = next_call(self);
    assert_false(has_query(call, "watch"));
    assert_string_equal(query_of(call, "resourceVersion"), version);
    return call;
}

static struct fake_call *expect_watch(struct reflector_world *self, const char *version)
{
    struct fake_call *call = next_call(self);
    assert_string_equal(query_of(call, "watch"), "1");
    assert_string_equal(query_of(call, "resourceVersion"), version);
    return call;
}

/* Nothing is asked for `ms`. */
static void expect_silence(struct reflector_world *self, int64_t ms)
{
    advance(&self->world, ms);
    fake_expect_none(self->world.server);
}

/* Nothing for the shortest first backoff; then there is after the longest. */
static void expect_backoff(struct reflector_world *self)
{
    expect_silence(self, 799);
    advance(&self->world, 801);
}

/* A fresh reflector beside a server that has seen others: its first LIST. */
static struct fake_call *restart(struct reflector_world *self)
{
    world_start(self, "", "");
    struct fake_call *last = fake_call_at(self->world.server, fake_count(self->world.server) - 1);
    while (fake_next(self->world.server) != last)
        continue;
    ml_buf_clear(&self->heard);
    return last;
}

/* Past the first list, in an open watch from version 5, and heard nothing. */
static struct fake_call *till_watching(struct reflector_world *self)
{
    ML_AUTO_FREE char *items = ml_asprintf("%s,%s", pod("a", "ua", 3), pod("b", "ub", 4));
    reply_list(expect_list(self, ""), 5, "", items);
    struct fake_call *watch = expect_watch(self, "5");
    fake_head(watch, 200);
    ml_buf_clear(&self->heard);
    return watch;
}

/* ---- LIST ---- */

static void test_reflector_lists_then_watches_from_the_lists_version(void **state)
{
    struct reflector_world *self = *state;
    struct fake_call *list = expect_list(self, "");
    assert_string_equal(list->path, "/api/v1/pods?limit=500");
    assert_false(list->streaming);
    reply_list(list, 5, "", pod("a", "ua", 99));
    struct fake_call *watch = expect_watch(self, "5"); /* never an item's version */
    assert_true(watch->streaming);
    assert_string_equal(query_of(watch, "allowWatchBookmarks"), "true");
    int64_t timeout_s = atoll(query_of(watch, "timeoutSeconds"));
    assert_in_range(timeout_s, 300, 599);
    assert_int_equal(watch->deadlines.total_ms, (timeout_s + 30) * 1000);
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

/* Whatever a list fails with on its way, nothing of it is told. */
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
    assert_heard(self, "listing trouble(Network) listing replace 6: b@2");
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
    expect_backoff(self);
    fake_refuse(expect_list(self, "5"), 410, "Expired", "old");
    ML_AUTO_FREE char *items = ml_asprintf(
        "{\"metadata\":{\"namespace\":\"default\",\"name\":\"a\"},\"x\":\"\xff\"},%s",
        pod("c", "uc", 8));
    reply_list(expect_list(self, ""), 9, "", items);
    assert_heard(self, "listing poisoned(default/a) replace 9: a@3 c@8");
}

static void test_reflector_refused_list_is_told_once_and_tried_each_10_s(void **state)
{
    struct reflector_world *self = *state;
    static const struct {
        int status;
        const char *reason, *heard;
    } rows[] = {
        {404, "NotFound", "listing trouble(NotFound)"},
        {403, "Forbidden", "trouble(Forbidden)"},
    };
    struct fake_call *list = expect_list(self, "");
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        fake_refuse(list, rows[i].status, rows[i].reason, "no");
        assert_heard(self, rows[i].heard);
        assert_in_range(self->retry_ms, 10000, 10999);
        for (int again = 0; again < 3; again++) {
            expect_silence(self, 9999);
            advance(&self->world, 1001);
            list = expect_list(self, "");
            assert_heard(self, "listing");
            if (again < 2)
                fake_refuse(list, rows[i].status, rows[i].reason, "no");
        }
    }
    reply_list(list, 5, "", "");
    assert_heard(self, "replace 5:");
    fake_head(expect_watch(self, "5"), 200);
    assert_heard(self, "trouble(over)");
}

static void test_reflector_failed_list_backs_off_from_800_ms_to_30_s(void **state)
{
    struct reflector_world *self = *state;
    int64_t delay_ms = 800;
    for (int n = 0; n < 9; n++) {
        fake_refuse(expect_list(self, ""), 500, "InternalError", "oops");
        expect_silence(self, delay_ms - 1);
        advance(&self->world, delay_ms + 1);
        delay_ms = ML_MIN(delay_ms * 2, 30000);
    }
    assert_heard(self, "listing trouble(ServerError) listing listing listing listing listing "
                       "listing listing listing listing");
    /* Two good minutes later it begins anew. */
    reply_list(expect_list(self, ""), 5, "", "");
    struct fake_call *watch = expect_watch(self, "5");
    fake_head(watch, 200);
    advance(&self->world, 74000);
    send_bookmark(watch, 6);
    advance(&self->world, 74000);
    fake_piece(watch, "nonsense\n");
    expect_backoff(self);
    expect_list(self, "6");
}

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
        {401, "Unauthorized", 799, 801, false, "trouble(Unauthorized)"},
        {403, "Forbidden", 9999, 1001, false, "trouble(Forbidden)"},
        {404, "NotFound", 9999, 1001, false, "trouble(NotFound)"},
        {410, "Expired", 799, 801, false, ""},
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
        if (rows[i].watch)
            expect_watch(self, "5");
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
    assert_int_equal(self->retry_ms, 7000);
    expect_silence(self, 6999);
    advance(&self->world, 1);
    fake_head(expect_watch(self, "5"), 200);
    assert_heard(self, "trouble(over)");
}

/* The right to list without the right to watch: told once, not at each turn. */
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
    assert_heard(self, "listing replace 5: trouble(Forbidden) replace 5: replace 5: replace 5:");
}

/* ---- WATCHING ---- */

static void test_reflector_events_are_told_and_move_the_version(void **state)
{
    struct reflector_world *self = *state;
    struct fake_call *watch = till_watching(self);
    send_event(watch, "ADDED", pod("c", "uc", 6));
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
        watch = expect_watch(self, version);
        fake_head(watch, 200);
    }
    assert_heard(self, "");
}

static void test_reflector_very_short_watch_lists_after_a_backoff(void **state)
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
        } else {
            expect_backoff(self);
            expect_list(self, "5");
        }
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
        {"{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}", false, 799, 801, ""},
        {"{\"kind\":\"Status\",\"code\":410,\"reason\":\"Gone\"}", false, 799, 801, ""},
        {"{\"kind\":\"Status\",\"code\":410}", false, 799, 801, ""},
        {"{\"kind\":\"Status\",\"code\":504,\"reason\":\"Timeout\",\"details\":{\"causes\":[{"
         "\"reason\":\"ResourceVersionTooLarge\"}]}}",
         false, 799, 801, ""},
        {"{\"kind\":\"Status\",\"code\":429,\"reason\":\"TooManyRequests\"}", true, 799, 801,
         "trouble(TooManyRequests)"},
        {"{\"kind\":\"Status\",\"code\":429,\"reason\":\"TooManyRequests\",\"details\":{"
         "\"retryAfterSeconds\":5}}",
         true, 4999, 1, "trouble(TooManyRequests)"},
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
    expect_backoff(self);
    struct fake_call *list = expect_list(self, "5");
    assert_false(has_query(list, "limit"));
    fake_refuse(list, 410, "Expired", "old");
    assert_heard(self, "");
    struct fake_call *any = expect_list(self, ""); /* at once, one time */
    assert_string_equal(query_of(any, "limit"), "500");
    fake_refuse(any, 410, "Expired", "old");
    expect_backoff(self);
    reply_list(expect_list(self, ""), 40, "", "");
    expect_watch(self, "40");
    assert_heard(self, "listing listing replace 40:");
}

static void test_reflector_version_too_large_lists_at_any(void **state)
{
    struct reflector_world *self = *state;
    fake_end(till_watching(self));
    expect_backoff(self);
    fake_reply(expect_list(self, "5"), 504,
               "{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":504,\"reason\":\"Timeout\","
               "\"details\":{\"causes\":[{\"reason\":\"ResourceVersionTooLarge\"}]}}");
    reply_list(expect_list(self, ""), 2, "", "");
    expect_watch(self, "2");
}

static void test_reflector_gone_for_ever_does_not_spin(void **state)
{
    struct reflector_world *self = *state;
    reply_list(expect_list(self, ""), 5, "", "");
    fake_refuse(expect_watch(self, "5"), 410, "Expired", "old");
    for (int turn = 0; turn < 20; turn++) {
        expect_silence(self, 799);
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

static void test_reflector_silent_watch_is_left_by_the_bookmark_rule(void **state)
{
    struct reflector_world *self = *state;
    struct fake_call *watch = till_watching(self);
    send_bookmark(watch, 6);
    advance(&self->world, 74999);
    assert_false(watch->canceled);
    send_bookmark(watch, 7); /* each byte counts */
    advance(&self->world, 74999);
    assert_false(watch->canceled);
    advance(&self->world, 5001);
    assert_true(watch->canceled);
    struct fake_call *next = expect_watch(self, "7");
    assert_heard(self, "");
    fake_head(next, 200);
    advance(&self->world, 80000); /* that the server sends bookmarks is not forgotten */
    assert_true(next->canceled);
}

static void test_reflector_silent_watch_without_bookmarks_has_its_full_time(void **state)
{
    struct reflector_world *self = *state;
    struct fake_call *watch = till_watching(self);
    int64_t timeout_s = atoll(query_of(watch, "timeoutSeconds"));
    advance(&self->world, (timeout_s + 10) * 1000 - 1);
    assert_false(watch->canceled);
    advance(&self->world, 5001);
    assert_true(watch->canceled);
    expect_watch(self, "5");
}

/* ---- cut anywhere ---- */

/* One stream, split in two at every byte, and into single bytes: always the same is told. */
static void test_reflector_stream_cut_at_every_byte_tells_the_same(void **state)
{
    struct reflector_world *self = *state;
    ML_AUTO(ml_buf_fini) struct ml_buf stream = ML_BUF_INIT;
    const struct {
        const char *type, *object;
    } events[] = {
        {"ADDED", pod("c", "uc", 6)},
        {"BOOKMARK", "{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"7\"}}"},
        {"MODIFIED", "{\"metadata\":{\"name\":\"\\u00e4\xc3\xa4\",\"resourceVersion\":\"8\"}}"},
        {"MODIFIED", pod("a", "ua", 9)},
        {"DELETED", pod("b", "ub", 10)},
    };
    for (size_t i = 0; i < ML_COUNT(events); i++) {
        ML_AUTO_FREE char *line = event_line(events[i].type, events[i].object);
        ml_buf_puts(&stream, line);
        ml_buf_puts(&stream, "\n");
    }
    for (size_t at = 0; at <= stream.len; at++) {
        ML_AUTO_FREE char *items = ml_asprintf("%s,%s", pod("a", "ua", 3), pod("b", "ub", 4));
        reply_list(restart(self), 5, "", items);
        struct fake_call *watch = expect_watch(self, "5");
        fake_head(watch, 200);
        ml_buf_clear(&self->heard);
        assert_true(fake_piece_bytes(watch, (struct ml_str){stream.ptr, at}));
        size_t step = at == 0 ? 1 : stream.len; /* once in single bytes */
        for (size_t rest = at; rest < stream.len; rest += step)
            assert_true(fake_piece_bytes(
                watch, (struct ml_str){stream.ptr + rest, ML_MIN(step, stream.len - rest)}));
        assert_heard(self, "upsert c@6 poisoned(\xc3\xa4\xc3\xa4) upsert a@9 remove b@10");
    }
}

/* A stream that ends at every byte: what was whole counts, and it is resumed behind it. */
static void test_reflector_stream_ended_at_every_byte_resumes_behind_the_last_event(void **state)
{
    struct reflector_world *self = *state;
    ML_AUTO_FREE char *first = event_line("ADDED", pod("c", "uc", 6));
    ML_AUTO_FREE char *second = event_line("ADDED", pod("d", "ud", 7));
    ML_AUTO_FREE char *stream = ml_asprintf("%s%s", first, second);
    for (size_t at = 0; at <= strlen(stream); at++) {
        reply_list(restart(self), 5, "", "");
        struct fake_call *watch = expect_watch(self, "5");
        fake_head(watch, 200);
        advance(&self->world, 1000);
        fake_piece_bytes(watch, (struct ml_str){stream, at});
        fake_fail(watch, ML_ENETWORK, "cut");
        expect_watch(self, at < strlen(first) ? "5" : at < strlen(stream) ? "6" : "7");
    }
}

static void test_reflector_freed_at_any_point_is_silent(void **state)
{
    struct reflector_world *self = *state;
    struct fake_call *list = expect_list(self, "");
    fake_head(list, 200);
    fake_piece(list, "{\"kind\":\"PodList\",\"items\":[{\"metadata\":");
    ml_reflector_free(ml_take(&self->reflector)); /* in a list */
    assert_true(list->canceled);
    world_start(self, "", "");
    struct fake_call *watch = till_watching(self);
    fake_piece(watch, "{\"type\":\"ADD");
    ml_reflector_free(ml_take(&self->reflector)); /* in a watch */
    assert_true(watch->canceled);
    world_start(self, "", "");
    fake_fail(expect_list(self, ""), ML_ENETWORK, "refused");
    ml_reflector_free(ml_take(&self->reflector)); /* in a backoff */
    ml_buf_clear(&self->heard);
    advance(&self->world, 600000);
    fake_expect_none(self->world.server);
    assert_heard(self, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

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
        TEST(test_reflector_refused_list_is_told_once_and_tried_each_10_s),
        TEST(test_reflector_failed_list_backs_off_from_800_ms_to_30_s),
        TEST(test_reflector_refused_watch_keeps_its_version_where_it_can),
        TEST(test_reflector_retry_after_is_honoured_without_a_list),
        TEST(test_reflector_trouble_is_over_only_when_the_watch_opens),
        TEST(test_reflector_events_are_told_and_move_the_version),
        TEST(test_reflector_unknown_event_is_skipped_and_moves_the_version),
        TEST(test_reflector_ended_watch_is_resumed_where_it_was),
        TEST(test_reflector_very_short_watch_lists_after_a_backoff),
        TEST(test_reflector_error_events_decide_what_follows),
        TEST(test_reflector_gone_lists_at_its_version_and_then_at_any),
        TEST(test_reflector_version_too_large_lists_at_any),
        TEST(test_reflector_gone_for_ever_does_not_spin),
        TEST(test_reflector_line_that_is_no_event_leads_to_a_list),
        TEST(test_reflector_poisoned_event_costs_itself_only),
        TEST(test_reflector_too_deep_event_costs_itself_only),
        TEST(test_reflector_silent_watch_is_left_by_the_bookmark_rule),
        TEST(test_reflector_silent_watch_without_bookmarks_has_its_full_time),
        TEST(test_reflector_stream_cut_at_every_byte_tells_the_same),
        TEST(test_reflector_stream_ended_at_every_byte_resumes_behind_the_last_event),
        TEST(test_reflector_freed_at_any_point_is_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
