#include "state_world.h"

#include "codec/json.h"
#include "state/recorder.h"

#define EVENTS "/apis/events.k8s.io/v1/namespaces/default/events"

struct recorder_world {
    struct world world;
    struct ml_recorder *recorder;
    int flushed;
};

static int setup(void **state)
{
    struct recorder_world *self = ml_new(struct recorder_world);
    world_init(&self->world);
    self->recorder = ml_recorder_new(&(struct ml_recorder_opts){
        .client = self->world.client,
        .loop = self->world.loop,
        .metrics = self->world.metrics,
        .controller = "moonloop",
        .instance = "host-1",
    });
    *state = self;
    return 0;
}

static int teardown(void **state)
{
    struct recorder_world *self = *state;
    ml_recorder_free(self->recorder);
    world_fini(&self->world);
    free(self);
    return 0;
}

static struct ml_event event_of(const char *name, const char *note)
{
    return (struct ml_event){
        .about = {.api_version = ML_STR("v1"),
                  .kind = ML_STR("Pod"),
                  .ns = ML_STR("default"),
                  .name = ml_str_of(name),
                  .uid = ML_STR("u1")},
        .reason = ML_STR("Started"),
        .action = ML_STR("Reconcile"),
        .note = ml_str_of(note),
    };
}

static void record(struct recorder_world *self, const char *name, const char *note)
{
    const struct ml_event event = event_of(name, note);
    ml_recorder_event(self->recorder, &event);
}

static int events_total(struct recorder_world *self, const char *result)
{
    return (int)ml_metric_value(
        ml_metric_with(ml_metrics_counter(self->world.metrics, "moonloop_events_total", "",
                                          ml_metric_labels("result")),
                       ml_metric_labels(result)));
}

/* The Event that this request makes gets `count` from the server. */
static void assert_series(const struct fake_call *call, int count)
{
    struct ml_str raw;
    assert_string_equal(call->method, "PATCH");
    assert_true(ml_json_find(ml_str_of(call->body), &raw, "series", "count", NULL));
    ML_AUTO_FREE char *want = ml_asprintf("%d", count);
    assert_str_eq(raw, want);
}

static char *body_text(const struct fake_call *call, const char *key)
{
    return ml_json_find_string(ml_str_of(call->body), key, NULL);
}

/* Records once and lets the server take it; returns the path of the Event. */
static char *record_first(struct recorder_world *self)
{
    record(self, "a", "hello");
    struct fake_call *call = fake_expect(self->world.server, "POST", EVENTS);
    ML_AUTO_FREE char *name = ml_json_find_string(ml_str_of(call->body), "metadata", "name", NULL);
    fake_reply(call, 201, "{}");
    return ml_asprintf(EVENTS "/%s", name);
}

/* ---- one Event ---- */

static void test_recorder_event_is_created_as_the_api_wants_it(void **state)
{
    struct recorder_world *self = *state;
    struct ml_event event = event_of("a", "it \"runs\"");
    event.about.rv = ML_STR("7");
    event.warning = true;
    ml_recorder_event(self->recorder, &event);
    struct fake_call *call = fake_expect(self->world.server, "POST", EVENTS);
    assert_string_equal(call->content_type, "application/json");
    assert_string_equal(
        call->body,
        "{\"apiVersion\":\"events.k8s.io/v1\",\"kind\":\"Event\",\"metadata\":{\"name\":"
        "\"a.17979cfe362a0000\",\"namespace\":\"default\"},"
        "\"eventTime\":\"2023-11-14T22:13:20.000000Z\","
        "\"reportingController\":\"moonloop\",\"reportingInstance\":\"host-1\","
        "\"type\":\"Warning\",\"reason\":\"Started\",\"action\":\"Reconcile\","
        "\"note\":\"it \\\"runs\\\"\",\"regarding\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\","
        "\"namespace\":\"default\",\"name\":\"a\",\"uid\":\"u1\",\"resourceVersion\":\"7\"}}");
    fake_reply(call, 201, "{}");
    fake_expect_none(self->world.server);
    assert_int_equal(events_total(self, "sent"), 1);
}

static void test_recorder_event_of_a_controller_has_its_name(void **state)
{
    struct recorder_world *self = *state;
    struct ml_event event = event_of("a", "hello");
    event.controller = ML_STR("cnat");
    ml_recorder_event(self->recorder, &event);
    struct fake_call *call = fake_expect(self->world.server, "POST", EVENTS);
    ML_AUTO_FREE char *controller = body_text(call, "reportingController");
    assert_string_equal(controller, "cnat");
    fake_reply(call, 201, "{}");
}

static void test_recorder_event_about_no_namespace_goes_to_default(void **state)
{
    struct recorder_world *self = *state;
    struct ml_event event = event_of("node-1", "hello");
    event.about.ns = ML_STR("");
    ml_recorder_event(self->recorder, &event);
    struct fake_call *call = fake_expect(self->world.server, "POST", EVENTS);
    assert_null(ml_json_find_string(ml_str_of(call->body), "regarding", "namespace", NULL));
    fake_reply(call, 201, "{}");
}

static void test_recorder_events_with_other_related_objects_are_others(void **state)
{
    struct recorder_world *self = *state;
    struct ml_event event = event_of("a", "hello");
    event.related = (struct ml_event_object){
        .api_version = ML_STR("v1"), .kind = ML_STR("Node"), .name = ML_STR("n1")};
    ml_recorder_event(self->recorder, &event);
    ml_recorder_event(self->recorder, &event);
    event.related.name = ML_STR("n2");
    ml_recorder_event(self->recorder, &event);
    struct fake_call *call = fake_expect(self->world.server, "POST", EVENTS);
    struct ml_str related;
    assert_true(ml_json_find(ml_str_of(call->body), &related, "related", NULL));
    assert_true(ml_str_is(related, "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"n1\"}"));
    fake_reply(call, 201, "{}");
    call = fake_expect(self->world.server, "POST", EVENTS);
    assert_non_null(strstr(call->body, "\"n2\""));
    fake_reply(call, 201, "{}");
}

static void test_recorder_name_of_an_event_is_a_subdomain_whatever_the_objects(void **state)
{
    struct recorder_world *self = *state;
    char longest[254];
    memset(longest, 'x', 253);
    longest[253] = '\0';
    longest[199] = '.'; /* a cut at 200 bytes ends behind it */
    const struct {
        const char *object;
        const char *prefix;
        size_t prefix_len;
    } rows[] = {
        {"web.example-1", "web.example-1.", 14},
        {"system:admin", "event.", 6},
        {"Upper", "event.", 6},
        {"a..b", "event.", 6},
        {longest, "xxxxx", 5},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        record(self, rows[i].object, "hello");
        struct fake_call *call = fake_next(self->world.server);
        ML_AUTO_FREE char *name = ml_json_find_string(ml_str_of(call->body), "metadata", "name",
                                                      NULL);
        assert_memory_equal(name, rows[i].prefix, rows[i].prefix_len);
        assert_true(strlen(name) <= 253);
        assert_null(strstr(name, ".."));
        fake_reply(call, 201, "{}");
    }
}

static void test_recorder_texts_are_cut_at_a_characters_end(void **state)
{
    struct recorder_world *self = *state;
    char note[1100], reason[200];
    memset(note, 'n', sizeof note);
    memcpy(note + 1022, "\xe2\x82\xac", 3); /* the euro sign would end at 1025 */
    memset(reason, 'R', sizeof reason);
    struct ml_event event = event_of("a", "");
    event.note = (struct ml_str){note, sizeof note};
    event.reason = event.action = (struct ml_str){reason, sizeof reason};
    ml_recorder_event(self->recorder, &event);
    struct fake_call *call = fake_next(self->world.server);
    ML_AUTO_FREE char *got_note = body_text(call, "note");
    ML_AUTO_FREE char *got_reason = body_text(call, "reason");
    ML_AUTO_FREE char *got_action = body_text(call, "action");
    assert_int_equal(strlen(got_note), 1022);
    assert_int_equal(strlen(got_reason), 128);
    assert_int_equal(strlen(got_action), 128);
    fake_reply(call, 201, "{}");
}

/* However long the text is: that there are more failures is not lost. */
static void test_recorder_count_of_others_survives_the_cut(void **state)
{
    struct recorder_world *self = *state;
    static const char *const ends[] = {" (and 12 more)", " (and 12 more) (after: something)"};
    for (size_t i = 0; i < ML_COUNT(ends); i++) {
        for (size_t len = 1000; len < 1050; len++) { /* of text before, of two-byte characters */
            struct ml_buf note = ML_BUF_INIT;
            for (size_t k = 0; k < len / 2; k++)
                ml_buf_puts(&note, "\xc3\xa4");
            ml_buf_puts(&note, ends[i]);
            ML_AUTO_FREE char *name = ml_asprintf("a-%zu-%zu", i, len);
            record(self, name, ml_buf_cstr(&note));
            struct fake_call *call = fake_next(self->world.server);
            ML_AUTO_FREE char *got = body_text(call, "note");
            assert_true(strlen(got) <= 1024);
            assert_true(ml_str_is_utf8(ml_str_of(got)));
            assert_non_null(strstr(got, " (and 12 more)"));
            if (note.len > 1024 + strlen(ends[1]))
                assert_non_null(strstr(got, "\xc3\xa4…"));
            fake_reply(call, 201, "{}");
            ml_buf_fini(&note);
        }
    }
}

/* ---- series ---- */

static void test_recorder_same_event_again_becomes_a_series(void **state)
{
    struct recorder_world *self = *state;
    ML_AUTO_FREE char *path = record_first(self);
    record(self, "a", "hello");
    struct fake_call *call = fake_expect(self->world.server, "PATCH", path);
    assert_string_equal(call->content_type, "application/merge-patch+json");
    assert_string_equal(
        call->body,
        "{\"series\":{\"count\":2,\"lastObservedTime\":\"2023-11-14T22:13:20.000000Z\"}}");
    fake_reply(call, 200, "{}");
    fake_expect_none(self->world.server);
}

static void test_recorder_series_is_told_at_most_once_a_minute(void **state)
{
    struct recorder_world *self = *state;
    ML_AUTO_FREE char *path = record_first(self);
    record(self, "a", "hello");
    fake_reply(fake_expect(self->world.server, "PATCH", path), 200, "{}");
    for (int i = 0; i < 5; i++) {
        advance(&self->world, 11999);
        record(self, "a", "hello");
    }
    fake_expect_none(self->world.server);
    advance(&self->world, 5);
    record(self, "a", "hello");
    struct fake_call *call = fake_expect(self->world.server, "PATCH", path);
    assert_series(call, 8);
    fake_reply(call, 200, "{}");
}

static void test_recorder_what_differs_is_an_event_of_its_own(void **state)
{
    struct recorder_world *self = *state;
    struct ml_event events[6];
    for (size_t i = 0; i < ML_COUNT(events); i++)
        events[i] = event_of("a", "hello");
    events[1].note = ML_STR("other");
    events[2].reason = ML_STR("Other");
    events[3].about.uid = ML_STR("u2");
    events[4].warning = true;
    events[5].controller = ML_STR("other");
    for (size_t i = 0; i < ML_COUNT(events); i++) {
        ml_recorder_event(self->recorder, &events[i]);
        fake_reply(fake_expect(self->world.server, "POST", EVENTS), 201, "{}");
    }
}

static void test_recorder_repeated_while_on_its_way_is_told_afterwards(void **state)
{
    struct recorder_world *self = *state;
    record(self, "a", "hello");
    struct fake_call *call = fake_expect(self->world.server, "POST", EVENTS);
    record(self, "a", "hello");
    record(self, "a", "hello");
    fake_expect_none(self->world.server);
    fake_reply(call, 201, "{}");
    call = fake_next(self->world.server);
    assert_series(call, 3);
    fake_reply(call, 200, "{}");
    fake_expect_none(self->world.server);
}

static void test_recorder_series_ends_after_six_quiet_minutes(void **state)
{
    struct recorder_world *self = *state;
    ML_AUTO_FREE char *path = record_first(self);
    advance(&self->world, 360000);
    record(self, "a", "hello");
    fake_reply(fake_expect(self->world.server, "PATCH", path), 200, "{}");
    advance(&self->world, 360001);
    record(self, "a", "hello");
    struct fake_call *call = fake_expect(self->world.server, "POST", EVENTS);
    ML_AUTO_FREE char *name = ml_json_find_string(ml_str_of(call->body), "metadata", "name", NULL);
    assert_null(strstr(path, name));
    fake_reply(call, 201, "{}");
}

/* ---- what goes wrong ---- */

static void test_recorder_event_expired_on_the_server_is_made_anew(void **state)
{
    struct recorder_world *self = *state;
    ML_AUTO_FREE char *path = record_first(self);
    record(self, "a", "hello");
    fake_refuse(fake_expect(self->world.server, "PATCH", path), 404, "NotFound", "gone");
    struct fake_call *call = fake_expect(self->world.server, "POST", EVENTS);
    /* Not for ever: a server that takes each Event and knows none of them. */
    fake_reply(call, 201, "{}");
    fake_expect_none(self->world.server);
    assert_int_equal(events_total(self, "sent"), 2);
    assert_int_equal(events_total(self, "dropped"), 0);
}

static void test_recorder_refused_event_is_dropped_and_the_next_one_tried(void **state)
{
    struct recorder_world *self = *state;
    record(self, "a", "hello");
    fake_refuse(fake_expect(self->world.server, "POST", EVENTS), 403, "Forbidden", "no");
    fake_expect_none(self->world.server);
    assert_int_equal(events_total(self, "dropped"), 1);
    record(self, "a", "hello");
    fake_reply(fake_expect(self->world.server, "POST", EVENTS), 201, "{}");
    assert_int_equal(events_total(self, "sent"), 1);
}

static void test_recorder_keeps_events_while_the_server_does_not_answer(void **state)
{
    struct recorder_world *self = *state;
    record(self, "a", "hello");
    record(self, "b", "hello");
    fake_fail(fake_expect(self->world.server, "POST", EVENTS), ML_ENETWORK, "cut");
    fake_refuse(fake_expect(self->world.server, "POST", EVENTS), 503, "ServiceUnavailable", "no");
    record(self, "c", "hello");
    advance(&self->world, 9999);
    fake_expect_none(self->world.server); /* nor for a new one */
    advance(&self->world, 1);
    for (int i = 0; i < 3; i++)
        fake_reply(fake_expect(self->world.server, "POST", EVENTS), 201, "{}");
    assert_int_equal(events_total(self, "sent"), 3);
    assert_int_equal(events_total(self, "dropped"), 0);
}

static void test_recorder_drops_an_event_after_twelve_tries(void **state)
{
    struct recorder_world *self = *state;
    record(self, "a", "hello");
    for (int i = 0; i < 12; i++) {
        assert_int_equal(events_total(self, "dropped"), 0);
        fake_fail(fake_expect(self->world.server, "POST", EVENTS), ML_ETIMEOUT, "slow");
        advance(&self->world, 10000);
    }
    fake_expect_none(self->world.server);
    assert_int_equal(events_total(self, "dropped"), 1);
}

/* Ten notes for one reason, then all further ones are one Event with a count. */
static void test_recorder_combines_what_differs_only_in_its_note(void **state)
{
    struct recorder_world *self = *state;
    static const char *const plain[] = {"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"};
    for (size_t i = 0; i < ML_COUNT(plain); i++) {
        record(self, "a", plain[i]);
        struct fake_call *call = fake_expect(self->world.server, "POST", EVENTS);
        ML_AUTO_FREE char *note = body_text(call, "note");
        assert_string_equal(note, plain[i]);
        fake_reply(call, 201, "{}");
    }
    record(self, "a", "n9");
    struct fake_call *call = fake_expect(self->world.server, "POST", EVENTS);
    ML_AUTO_FREE char *note = body_text(call, "note");
    assert_string_equal(note, "(combined from similar events): n9");
    fake_reply(call, 201, "{}");
    record(self, "a", "n10");
    call = fake_next(self->world.server);
    assert_series(call, 2);
    fake_reply(call, 200, "{}");
    for (int i = 0; i < 100; i++)
        record(self, "a", (const char *[]){"x", "y", "z"}[i % 3]);
    fake_expect_none(self->world.server); /* counted, told within a minute */
    record(self, "b", "n11");             /* another object */
    fake_reply(fake_expect(self->world.server, "POST", EVENTS), 201, "{}");
    advance(&self->world, 601000); /* quiet for ten minutes: words count again */
    record(self, "a", "n12");
    call = fake_expect(self->world.server, "POST", EVENTS);
    ML_AUTO_FREE char *again = body_text(call, "note");
    assert_string_equal(again, "n12");
    fake_reply(call, 201, "{}");
}

#define CORE_EVENTS "/api/v1/namespaces/default/events"

/* Ten Events with notes of their own, and an eleventh for all others; returns its name. */
static char *combine(struct recorder_world *self)
{
    char note[8];
    for (int i = 0; i < 9; i++) {
        snprintf(note, sizeof note, "n%d", i);
        record(self, "a", note);
        fake_reply(fake_expect(self->world.server, "POST", EVENTS), 201, "{}");
    }
    record(self, "a", "field x");
    struct fake_call *call = fake_expect(self->world.server, "POST", EVENTS);
    char *name = ml_json_find_string(ml_str_of(call->body), "metadata", "name", NULL);
    fake_reply(call, 201, "{}");
    return name;
}

/* events.k8s.io does not let a note be changed; the older form of the same object does. */
static void test_recorder_combined_event_shows_the_newest_note(void **state)
{
    struct recorder_world *self = *state;
    ML_AUTO_FREE char *name = combine(self);
    ML_AUTO_FREE char *path = ml_asprintf(CORE_EVENTS "/%s", name);
    record(self, "a", "field y");
    struct fake_call *call = fake_expect(self->world.server, "PATCH", path);
    ML_AUTO_FREE char *message = body_text(call, "message");
    assert_string_equal(message, "(combined from similar events): field y");
    assert_series(call, 2);
    fake_reply(call, 200, "{}");
    for (int second = 0; second < 9; second++) {
        record(self, "a", "field z");
        advance(&self->world, 1000);
    }
    fake_expect_none(self->world.server);
    advance(&self->world, 1000);
    record(self, "a", "field z");
    call = fake_expect(self->world.server, "PATCH", path);
    ML_AUTO_FREE char *newest = body_text(call, "message");
    assert_string_equal(newest, "(combined from similar events): field z");
    fake_reply(call, 200, "{}");
}

/* A role that was made for an older host: the count is told all the same, and it is not asked for
 * again. */
static void test_recorder_without_the_right_to_change_notes_still_counts(void **state)
{
    struct recorder_world *self = *state;
    ML_AUTO_FREE char *name = combine(self);
    ML_AUTO_FREE char *core = ml_asprintf(CORE_EVENTS "/%s", name);
    ML_AUTO_FREE char *path = ml_asprintf(EVENTS "/%s", name);
    record(self, "a", "field y");
    fake_refuse(fake_expect(self->world.server, "PATCH", core), 403, "Forbidden", "no");
    struct fake_call *call = fake_expect(self->world.server, "PATCH", path);
    assert_null(body_text(call, "message"));
    assert_series(call, 2);
    fake_reply(call, 200, "{}");
    advance(&self->world, 60000);
    record(self, "a", "field z");
    call = fake_expect(self->world.server, "PATCH", path);
    assert_series(call, 3);
    fake_reply(call, 200, "{}");
}

/* "boom at 12" and "boom at 13" are one failure; "a.lua:12: boom" and "a.lua:13: boom" are two. */
static void test_recorder_numbers_may_vary_behind_the_place(void **state)
{
    struct recorder_world *self = *state;
    struct ml_event event = event_of("a", "a.lua:12: boom at 9");
    event.numbers_vary = true;
    ml_recorder_event(self->recorder, &event);
    fake_reply(fake_expect(self->world.server, "POST", EVENTS), 201, "{}");
    event.note = ML_STR("a.lua:12: boom at 1234");
    ml_recorder_event(self->recorder, &event);
    struct fake_call *call = fake_next(self->world.server);
    assert_series(call, 2);
    ML_AUTO_FREE char *message = body_text(call, "message");
    assert_string_equal(message, "a.lua:12: boom at 1234");
    fake_reply(call, 200, "{}");
    event.note = ML_STR("a.lua:13: boom at 9");
    ml_recorder_event(self->recorder, &event);
    fake_reply(fake_expect(self->world.server, "POST", EVENTS), 201, "{}");
}

/* An Event about a state that may be over when the server answers again is not kept until then. */
static void test_recorder_passing_event_is_tried_once(void **state)
{
    struct recorder_world *self = *state;
    struct ml_event event = event_of("a", "no answer");
    event.passing = true;
    ml_recorder_event(self->recorder, &event);
    fake_refuse(fake_expect(self->world.server, "POST", EVENTS), 503, "ServiceUnavailable", "away");
    assert_int_equal(events_total(self, "dropped"), 1);
    advance(&self->world, 60000);
    fake_expect_none(self->world.server);
    record(self, "b", "hello"); /* that is kept, and shows that the server is away */
    fake_refuse(fake_expect(self->world.server, "POST", EVENTS), 503, "ServiceUnavailable", "away");
    ml_recorder_event(self->recorder, &event);
    assert_int_equal(events_total(self, "dropped"), 2);
    advance(&self->world, 10000);
    fake_reply(fake_expect(self->world.server, "POST", EVENTS), 201, "{}");
    fake_expect_none(self->world.server);
}

/* The reply to the first create was lost, and the Event is there. */
static void test_recorder_event_that_exists_already_is_there(void **state)
{
    struct recorder_world *self = *state;
    record(self, "a", "hello");
    fake_refuse(fake_expect(self->world.server, "POST", EVENTS), 409, "AlreadyExists", "there");
    record(self, "a", "hello");
    struct fake_call *call = fake_next(self->world.server);
    assert_series(call, 2);
    fake_reply(call, 200, "{}");
}

/* ---- limits ---- */

static void record_numbered(struct recorder_world *self, const char *object, int number)
{
    char reason[32];
    struct ml_event event = event_of(object, "note");
    snprintf(reason, sizeof reason, "Reason%d", number);
    event.reason = ml_str_of(reason);
    ml_recorder_event(self->recorder, &event);
}

static void answer_all(struct recorder_world *self, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fake_reply(fake_next(self->world.server), 201, "{}");
    fake_expect_none(self->world.server);
}

static void test_recorder_object_may_cause_25_events_then_one_in_5_minutes(void **state)
{
    struct recorder_world *self = *state;
    for (int i = 0; i < 30; i++)
        record_numbered(self, "a", i);
    answer_all(self, 25);
    assert_int_equal(events_total(self, "dropped"), 5);
    struct ml_event warning = event_of("a", "it fails");
    warning.warning = true; /* is not lost among what goes well */
    ml_recorder_event(self->recorder, &warning);
    answer_all(self, 1);
    record(self, "b", "another object");
    answer_all(self, 1);
    advance(&self->world, 299999);
    record_numbered(self, "a", 30);
    answer_all(self, 0);
    advance(&self->world, 1);
    record_numbered(self, "a", 31);
    record_numbered(self, "a", 32);
    answer_all(self, 1);
    assert_int_equal(events_total(self, "dropped"), 7);
}

/* A text of a script is cut before any of it is kept: texts that begin alike are one Event. */
static void test_recorder_keeps_nothing_of_a_text_behind_its_limit(void **state)
{
    struct recorder_world *self = *state;
    ML_AUTO_FREE char *note = ml_zalloc(1024 * 1024);
    memset(note, 'n', 1024 * 1024 - 1);
    record(self, "a", note);
    memset(note + 1024, 'm', 1024 * 1024 - 1025);
    record(self, "a", note);
    fake_reply(fake_next(self->world.server), 201, "{}");
    struct fake_call *call = fake_next(self->world.server);
    assert_series(call, 2);
    fake_reply(call, 200, "{}");
}

/* Texts whose JSON is six times as long, from sources that do not stop: each has its share, and
 * others still are heard. */
static void test_recorder_has_a_limit_of_bytes_and_a_share_for_each_source(void **state)
{
    struct recorder_world *self = *state;
    char note[1024];
    memset(note, '\x01', sizeof note);
    size_t kept[5] = {0};
    for (size_t source = 0; source < 5; source++) {
        char name[16], script[16];
        snprintf(script, sizeof script, "script-%zu", source);
        for (int i = 0; i < 300; i++) {
            snprintf(name, sizeof name, "o%zu-%d", source, i);
            struct ml_event event = event_of(name, "");
            event.note = (struct ml_str){note, sizeof note};
            event.source = ml_str_of(script);
            int before = events_total(self, "dropped");
            ml_recorder_event(self->recorder, &event);
            kept[source] += events_total(self, "dropped") == before;
        }
    }
    for (size_t source = 0; source < 4; source++) /* 512 KiB each, of 7 to 8 KiB */
        assert_in_range(kept[source], 60, 75);
    assert_int_equal(kept[4], 0); /* 2 MiB are full */
    size_t sent = kept[0] + kept[1] + kept[2] + kept[3];
    for (size_t i = 0; i < sent; i++)
        fake_reply(fake_next(self->world.server), 201, "{}");
    record(self, "b", "what rests makes room");
    answer_all(self, 1);
}

static void test_recorder_sends_four_at_a_time(void **state)
{
    struct recorder_world *self = *state;
    for (int i = 0; i < 10; i++)
        record_numbered(self, "a", i);
    assert_int_equal(fake_waiting(self->world.server), 4);
    fake_reply(fake_next(self->world.server), 201, "{}");
    assert_int_equal(fake_waiting(self->world.server), 4);
    answer_all(self, 9);
}

/* An Event that waits keeps its place, and repeats of it use up nothing meanwhile. */
static void test_recorder_repeated_while_it_waits_costs_nothing(void **state)
{
    struct recorder_world *self = *state;
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    for (size_t i = 0; i < ML_COUNT(names); i++)
        record(self, names[i], "hello");
    for (int i = 0; i < 30; i++)
        record(self, "e", "hello");
    assert_int_equal(events_total(self, "dropped"), 0);
    for (size_t i = 0; i < ML_COUNT(names); i++) {
        struct fake_call *call = fake_expect(self->world.server, "POST", EVENTS);
        ML_AUTO_FREE char *name = ml_json_find_string(ml_str_of(call->body), "regarding", "name",
                                                      NULL);
        assert_string_equal(name, names[i]);
        fake_reply(call, 201, "{}");
    }
    fake_expect_none(self->world.server);
}

/* Never silent for good: what the limit held back comes later if it still happens. */
static void test_recorder_event_held_back_comes_when_there_is_room(void **state)
{
    struct recorder_world *self = *state;
    for (int i = 0; i < 26; i++)
        record_numbered(self, "a", i);
    answer_all(self, 25);
    for (int minute = 1; minute < 5; minute++) {
        advance(&self->world, 60000);
        record_numbered(self, "a", 25);
        answer_all(self, 0);
    }
    advance(&self->world, 60000);
    record_numbered(self, "a", 25);
    answer_all(self, 1);
}

static void record_objects(struct recorder_world *self, int from, int to)
{
    for (int i = from; i < to; i++) {
        char name[32];
        snprintf(name, sizeof name, "object-%d", i);
        record(self, name, "hello");
    }
}

static void test_recorder_holds_a_thousand_and_drops_what_is_more(void **state)
{
    struct recorder_world *self = *state;
    record_objects(self, 0, 1010);
    assert_int_equal(events_total(self, "dropped"), 10);
    answer_all(self, 1000);
    record_objects(self, 1010, 1011); /* takes the place of the first, which is forgotten */
    answer_all(self, 1);
    record_objects(self, 0, 1);
    fake_reply(fake_expect(self->world.server, "POST", EVENTS), 201, "{}");
    assert_int_equal(events_total(self, "sent"), 1002);
}

/* ---- the end ---- */

static void on_flushed(void *context)
{
    ((struct recorder_world *)context)->flushed++;
}

static void test_recorder_flush_waits_for_all_answers_and_is_told_once(void **state)
{
    struct recorder_world *self = *state;
    for (int i = 0; i < 5; i++)
        record_numbered(self, "a", i);
    ml_recorder_flush(self->recorder, on_flushed, self);
    for (int i = 0; i < 4; i++)
        fake_reply(fake_next(self->world.server), 201, "{}");
    ml_loop_poll(self->world.loop);
    assert_int_equal(self->flushed, 0);
    fake_refuse(fake_next(self->world.server), 500, "InternalError", "no");
    assert_int_equal(self->flushed, 0); /* from the loop */
    ml_loop_poll(self->world.loop);
    assert_int_equal(self->flushed, 1);
    record(self, "a", "afterwards");
    answer_all(self, 1);
    ml_loop_poll(self->world.loop);
    assert_int_equal(self->flushed, 1);
}

static void test_recorder_flush_with_nothing_to_send_comes_from_the_loop(void **state)
{
    struct recorder_world *self = *state;
    ml_recorder_flush(self->recorder, on_flushed, self);
    assert_int_equal(self->flushed, 0);
    ml_loop_poll(self->world.loop);
    assert_int_equal(self->flushed, 1);
}

static void test_recorder_freed_while_sending_cancels(void **state)
{
    struct recorder_world *self = *state;
    for (int i = 0; i < 6; i++)
        record_numbered(self, "a", i);
    ml_recorder_flush(self->recorder, on_flushed, self);
    ml_recorder_free(ml_take(&self->recorder));
    assert_int_equal(fake_waiting(self->world.server), 0);
    ml_loop_poll(self->world.loop);
    assert_int_equal(self->flushed, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_recorder_event_is_created_as_the_api_wants_it),
        TEST(test_recorder_event_of_a_controller_has_its_name),
        TEST(test_recorder_event_about_no_namespace_goes_to_default),
        TEST(test_recorder_events_with_other_related_objects_are_others),
        TEST(test_recorder_name_of_an_event_is_a_subdomain_whatever_the_objects),
        TEST(test_recorder_texts_are_cut_at_a_characters_end),
        TEST(test_recorder_count_of_others_survives_the_cut),
        TEST(test_recorder_same_event_again_becomes_a_series),
        TEST(test_recorder_series_is_told_at_most_once_a_minute),
        TEST(test_recorder_what_differs_is_an_event_of_its_own),
        TEST(test_recorder_repeated_while_on_its_way_is_told_afterwards),
        TEST(test_recorder_series_ends_after_six_quiet_minutes),
        TEST(test_recorder_event_expired_on_the_server_is_made_anew),
        TEST(test_recorder_refused_event_is_dropped_and_the_next_one_tried),
        TEST(test_recorder_combines_what_differs_only_in_its_note),
        TEST(test_recorder_combined_event_shows_the_newest_note),
        TEST(test_recorder_without_the_right_to_change_notes_still_counts),
        TEST(test_recorder_numbers_may_vary_behind_the_place),
        TEST(test_recorder_passing_event_is_tried_once),
        TEST(test_recorder_drops_an_event_after_twelve_tries),
        TEST(test_recorder_keeps_events_while_the_server_does_not_answer),
        TEST(test_recorder_event_that_exists_already_is_there),
        TEST(test_recorder_object_may_cause_25_events_then_one_in_5_minutes),
        TEST(test_recorder_keeps_nothing_of_a_text_behind_its_limit),
        TEST(test_recorder_has_a_limit_of_bytes_and_a_share_for_each_source),
        TEST(test_recorder_sends_four_at_a_time),
        TEST(test_recorder_repeated_while_it_waits_costs_nothing),
        TEST(test_recorder_event_held_back_comes_when_there_is_room),
        TEST(test_recorder_holds_a_thousand_and_drops_what_is_more),
        TEST(test_recorder_flush_waits_for_all_answers_and_is_told_once),
        TEST(test_recorder_flush_with_nothing_to_send_comes_from_the_loop),
        TEST(test_recorder_freed_while_sending_cancels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
