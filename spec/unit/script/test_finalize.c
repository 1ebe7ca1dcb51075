/* The function finalize of a script, and the finalizer that is added before its first write. */
#include "script_world.h"

#define MAKE "ctx.create(pod(at))\nend, finalize = function(at, ctx)\n"

#define ADDED                                                                                      \
    "{\"apiVersion\":\"example.com/v1\",\"kind\":\"At\",\"metadata\":{\"name\":\"x\","             \
    "\"namespace\":\"default\",\"uid\":\"at-uid\",\"resourceVersion\":\"51\"}}"

/* The At with this in its metadata. */
static void set_metadata(struct world *w, const char *more)
{
    struct ml_err err = ML_ERR_INIT;
    ML_AUTO_FREE char *json = ml_asprintf(
        "{\"apiVersion\":\"example.com/v1\",\"kind\":\"At\",\"metadata\":{\"name\":\"x\","
        "\"namespace\":\"default\",\"uid\":\"at-uid\",\"resourceVersion\":\"50\",%s}}",
        more);
    ml_object_unref(w->at);
    assert_int_equal(ml_object_new(w->dict, "", "", ml_str_of(json), &w->at, &err), 0);
}

static struct fake_call *expect_add(struct world *w)
{
    struct fake_call *add = fake_next(w->fake);
    assert_string_equal(add->method, "PATCH");
    assert_string_equal(add->path, "/apis/example.com/v1/namespaces/default/ats/x");
    assert_string_equal(add->content_type, "application/merge-patch+json");
    return add;
}

static void test_finalizer_is_added_before_the_first_write(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w, "ctx.create(pod(at))\n" MAKE, NULL);
    set_metadata(&w, "\"finalizers\":[\"a/b\"]");
    assert_non_null(world_start(&w, &told));
    struct fake_call *add = expect_add(&w);
    assert_string_equal(add->body, "{\"metadata\":{\"uid\":\"at-uid\",\"resourceVersion\":\"50\","
                                   "\"finalizers\":[\"a/b\",\"moonloop.dev/at\"]}}");
    fake_expect_none(w.fake);
    world_answer(&w, add, 200, ADDED);
    for (int i = 0; i < 2; i++) { /* added once */
        struct fake_call *create = fake_next(w.fake);
        assert_string_equal(create->method, "POST");
        assert_non_null(strstr(create->body, "\"name\":\"x-pod\""));
        world_answer(&w, create, 409,
                     "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\",\"code\":409}");
    }
    expect_outcome(&told, ML_OUTCOME_OK, "");
    world_close(&w);
}

static void test_finalizer_is_not_added_twice(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w, MAKE, NULL);
    set_metadata(&w, "\"finalizers\":[\"moonloop.dev/at\",\"a/b\"]");
    assert_non_null(world_start(&w, &told));
    struct fake_call *create = fake_next(w.fake);
    assert_string_equal(create->method, "POST");
    world_answer(&w, create, 409, "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\"}");
    world_close(&w);
}

/* Buffers of the script change while it waits: another run writes meanwhile. */
static void test_finalizer_holds_back_the_very_write(void **state)
{
    (void)state;
    struct world w;
    struct told told, other;
    world_open(&w,
               "local it = pod(at)\nit.spec = { of = at.metadata.finalizers and 'b' or 'a' }\n"
               "ctx.create(it)\nend, finalize = function(at, ctx)\n",
               NULL);
    size_t before = ml_script_budget(w.script)->used;
    assert_non_null(world_start(&w, &told));
    struct fake_call *add = expect_add(&w);
    assert_true(ml_script_budget(w.script)->used > before);
    set_metadata(&w, "\"finalizers\":[\"moonloop.dev/at\"]");
    assert_non_null(world_start(&w, &other));
    assert_non_null(strstr(fake_next(w.fake)->body, "{\"of\":\"b\"}"));
    fake_refuse(fake_call_at(w.fake, fake_count(w.fake) - 1), 403, "Forbidden", "no");
    world_answer(&w, add, 200, ADDED);
    struct fake_call *create = fake_next(w.fake);
    assert_non_null(strstr(create->body, "{\"of\":\"a\"}"));
    fake_refuse(create, 403, "Forbidden", "no");
    ml_loop_poll(w.loop);
    assert_int_equal(told.count + other.count, 2);
    world_close(&w);
}

/* Its version is that of the answer: it meets no conflict. */
static void test_finalizer_comes_before_a_write_of_the_object_itself(void **state)
{
    (void)state;
    static const struct {
        const char *call, *method, *body;
    } cases[] = {
        {"ctx.patch(at, { spec = { size = 4 } })", "PATCH",
         "{\"spec\":{\"size\":4},\"metadata\":{\"uid\":\"at-uid\",\"resourceVersion\":\"51\"}}"},
        {"ctx.delete(at)", "DELETE", "{\"uid\":\"at-uid\",\"resourceVersion\":\"51\"}"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct world w;
        struct told told;
        ML_AUTO_FREE char *body = ml_asprintf("%s\nend, finalize = function() ", cases[i].call);
        world_open(&w, body, NULL);
        assert_non_null(world_start(&w, &told));
        world_answer(&w, expect_add(&w), 200, ADDED);
        struct fake_call *write = fake_next(w.fake);
        assert_string_equal(write->method, cases[i].method);
        if (!strstr(write->body, cases[i].body))
            fail_msg("%s: %s", cases[i].call, write->body);
        world_answer(&w, write, 200, ADDED);
        expect_outcome(&told, ML_OUTCOME_OK, "");
        world_close(&w);
    }
}

/* Only a patch that changes something is written, and needs a finalizer. */
static void test_finalizer_is_not_added_for_a_patch_that_changes_nothing(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w, "ctx.patch(at, { spec = { size = 3 } })\nend, finalize = function() ", NULL);
    assert_null(world_start(&w, &told));
    expect_outcome(&told, ML_OUTCOME_OK, "");
    fake_expect_none(w.fake);
    world_close(&w);
}

static void test_finalizer_that_cannot_be_added_lets_nothing_be_written(void **state)
{
    (void)state;
    static const struct {
        int code;
        const char *reason;
        int kind;
    } answers[] = {
        {403, "Forbidden", ML_EFORBIDDEN},
        {409, "Conflict", ML_ECONFLICT},
        {404, "NotFound", ML_ECONFLICT}, /* the object has gone: nobody has to be told */
        {422, "Invalid", ML_EINVALID},
    };
    for (size_t i = 0; i < ML_COUNT(answers); i++) {
        struct world w;
        struct told told;
        world_open(&w, "pcall(ctx.create, pod(at))\n" MAKE, NULL);
        assert_non_null(world_start(&w, &told));
        fake_refuse(expect_add(&w), answers[i].code, answers[i].reason, "so it is");
        ml_loop_poll(w.loop);
        fake_expect_none(w.fake);
        expect_outcome(&told, ML_OUTCOME_ERROR, "");
        assert_int_equal(told.kind, answers[i].kind);
        assert_non_null(strstr(told.message, "add the finalizer moonloop.dev/at"));
        world_close(&w);
    }
}

static void test_finalizer_and_the_held_write_go_with_a_canceled_run(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w, MAKE, NULL);
    struct ml_run *run = world_start(&w, &told);
    struct fake_call *add = expect_add(&w);
    assert_true(ml_script_writes(run));
    ml_script_cancel(run);
    assert_true(add->canceled);
    world_close(&w);
}

/* One that is going gets none: the server would refuse it. */
static void test_finalizer_is_not_added_to_what_is_being_deleted(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w, "\nend, finalize = function(at, ctx)\nctx.create(pod(at))\n", NULL);
    set_metadata(&w, "\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"");
    assert_non_null(ml_script_finalize(w.script, w.at, "0000abcd", world_done, &told));
    struct fake_call *create = fake_next(w.fake);
    assert_string_equal(create->method, "POST");
    fake_refuse(create, 403, "Forbidden", "the namespace is being terminated");
    ml_loop_poll(w.loop);
    world_close(&w);
}

struct ended {
    struct ml_result result;
    char message[ML_ERR_MESSAGE_MAX];
};

static void on_ended(void *context, struct ml_result *result)
{
    struct ended *ended = context;
    ended->result = *result;
    snprintf(ended->message, sizeof ended->message, "%s", result->err ? result->err->message : "");
}

static void test_finalize_is_done_when_it_returns_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        enum ml_outcome outcome;
        bool finalized;
        int64_t after_s;
        const char *message;
    } cases[] = {
        {"return", ML_OUTCOME_OK, true, -1, ""},
        {"return nil", ML_OUTCOME_OK, true, -1, ""},
        {"return {}", ML_OUTCOME_OK, false, 60, ""},
        {"return { status = { phase = 'Going' } }", ML_OUTCOME_OK, false, 60, ""},
        {"return { requeue_after = 5 }", ML_OUTCOME_OK, false, 5, ""},
        {"return { requeue_after = 0 }", ML_OUTCOME_OK, false, 0, ""},
        {"return ctx.terminal 'no'", ML_OUTCOME_TERMINAL, false, -1, "no"},
        {"return ctx.invalid('spec.x', 'no')", ML_OUTCOME_INVALID, false, -1, "no"},
        {"error 'boom'", ML_OUTCOME_ERROR, false, -1, ": boom"},
        {"return true", ML_OUTCOME_ERROR, false, -1, ": finalize returned a boolean"},
        {"return nil, 'no'", ML_OUTCOME_ERROR, false, -1, ": finalize returned nil and"},
        {"return { status = { f = ctx.now } }", ML_OUTCOME_ERROR, false, -1, ": status.f:"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct world w;
        struct ended ended = {.result = {.outcome = ML_OUTCOME_OK}};
        ML_AUTO_FREE char *body = ml_asprintf(
            "error 'not this'\nend, finalize = function(at, ctx)\n"
            "%s",
            cases[i].body);
        world_open(&w, body, NULL);
        assert_null(ml_script_finalize(w.script, w.at, "0000abcd", on_ended, &ended));
        if (ended.result.outcome != cases[i].outcome ||
            ended.result.finalized != cases[i].finalized || !ended.result.finalizes ||
            !strstr(ended.message, cases[i].message))
            fail_msg("%s: outcome %d, finalized %d, %s", cases[i].body, ended.result.outcome,
                     ended.result.finalized, ended.message);
        int64_t after_ns = ended.result.requeue_after_ns;
        assert_int_equal(after_ns < 0 ? -1 : after_ns / ML_NS_PER_S, cases[i].after_s);
        assert_null(ended.result.reads); /* every change wakes it */
        world_close(&w);
    }
}

static void test_finalize_stays_within_its_limits(void **state)
{
    (void)state;
    struct world w;
    struct ended ended = {.result = {.outcome = ML_OUTCOME_OK}};
    world_open(&w, "\nend, finalize = function(at, ctx)\nwhile true do pcall(error) end",
               &(struct ml_script_limits){0});
    assert_null(ml_script_finalize(w.script, w.at, "0000abcd", on_ended, &ended));
    assert_int_equal(ended.result.outcome, ML_OUTCOME_ERROR);
    assert_int_equal(ended.result.limit, ML_LIMIT_CPU);
    assert_false(ended.result.finalized);
    world_close(&w);
}

static void test_finalize_is_not_called_by_a_reconcile(void **state)
{
    (void)state;
    struct world w;
    struct ended ended = {.result = {.outcome = ML_OUTCOME_ERROR}};
    world_open(&w, "return\nend, finalize = function(at, ctx)\nerror 'not this'", NULL);
    assert_true(ml_script_declaration(w.script)->finalizes);
    assert_string_equal(ml_script_declaration(w.script)->finalizer, "moonloop.dev/at");
    assert_null(ml_script_reconcile(w.script, w.at, "0000abcd", on_ended, &ended));
    assert_int_equal(ended.result.outcome, ML_OUTCOME_OK);
    assert_false(ended.result.finalized);
    assert_false(ended.result.finalizes);
    world_close(&w);
}

/* [declaration]: what is wrong with it. */
static void expect_refused(const char *fields, const char *message)
{
    ML_AUTO_FREE char *text = ml_asprintf("local m = require 'moonloop'\n"
                                          "return m.controller { name = 'at', %s,\n"
                                          "reconcile = function() end }\n",
                                          fields);
    const struct ml_script_file file = {ML_STR("at.lua"), ml_str_of(text)};
    const struct ml_script_files files = {&file, 1};
    struct ml_script *script = NULL;
    struct ml_err err = ML_ERR_INIT;
    assert_int_equal(ml_script_load(NULL, NULL, &files, 0, &script, &err), ML_ESCRIPT);
    if (!strstr(err.message, message))
        fail_msg("%s: %s", fields, err.message);
}

static void test_finalize_that_cannot_be_is_refused(void **state)
{
    (void)state;
    expect_refused("reconciles = m.kind('v1', 'Pod'), finalize = true",
                   "finalize: expected function(object, ctx), got a boolean");
    expect_refused("reconciles = m.kind('v1', 'Pod'), finalise = function() end",
                   "did you mean 'finalize'?");
    expect_refused(
        "reconciles = m.kind('v1', 'Pod', { labels = 'a=b' }), finalize = function() end",
        "would keep its finalizer for ever");
    expect_refused("reconciles = m.kind('v1', 'Pod', { fields = 'spec.nodeName=b' }), "
                   "finalize = function() end",
                   "would keep its finalizer for ever");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finalizer_is_added_before_the_first_write),
        cmocka_unit_test(test_finalizer_is_not_added_twice),
        cmocka_unit_test(test_finalizer_holds_back_the_very_write),
        cmocka_unit_test(test_finalizer_comes_before_a_write_of_the_object_itself),
        cmocka_unit_test(test_finalizer_is_not_added_for_a_patch_that_changes_nothing),
        cmocka_unit_test(test_finalizer_that_cannot_be_added_lets_nothing_be_written),
        cmocka_unit_test(test_finalizer_and_the_held_write_go_with_a_canceled_run),
        cmocka_unit_test(test_finalizer_is_not_added_to_what_is_being_deleted),
        cmocka_unit_test(test_finalize_is_done_when_it_returns_nothing),
        cmocka_unit_test(test_finalize_stays_within_its_limits),
        cmocka_unit_test(test_finalize_is_not_called_by_a_reconcile),
        cmocka_unit_test(test_finalize_that_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
