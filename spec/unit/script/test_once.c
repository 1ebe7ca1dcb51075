/* ctx.once on the wire, and the values of a refused Secret, which nobody may see.
 * spec/testing/once_test.lua shows its use. */
#include "script_world.h"

#define SECRETS "/api/v1/namespaces/default/secrets"
#define ONCE                                                                                       \
    "local values, err = ctx.once('s', { a = function() return 'hunter22' end })\n"                \
    "if not values then return { status = { kind = err.kind, why = tostring(err) } } end\n"        \
    "return { status = values }"
#define OURS                                                                                       \
    "\"ownerReferences\":[{\"apiVersion\":\"example.com/v1\",\"kind\":\"At\",\"name\":\"x\","      \
    "\"uid\":\"at-uid\",\"controller\":true}],\"labels\":{\"moonloop.dev/once\":\"true\"}"

static char *secret_json(const char *metadata, const char *fields)
{
    return ml_asprintf("{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"s\","
                       "\"namespace\":\"default\",\"uid\":\"s-uid\",\"resourceVersion\":\"7\",%s},"
                       "%s}",
                       metadata, fields);
}

/* The log as text. */
static char *read_log(const struct world *w)
{
    off_t size = lseek(w->log.fd, 0, SEEK_END);
    char *text = ml_zalloc((size_t)size + 1);
    assert_int_equal(pread(w->log.fd, text, (size_t)size, 0), size);
    return text;
}

static void test_once_asks_then_creates(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w, ONCE, NULL);
    assert_non_null(world_start(&w, &told));
    struct fake_call *call = fake_next(w.fake);
    assert_string_equal(call->method, "GET");
    world_answer(&w, call, 404, NOT_FOUND);
    call = fake_next(w.fake); /* ctx.ensure looks again, as the kind is not watched */
    assert_string_equal(call->method, "GET");
    world_answer(&w, call, 404, NOT_FOUND);
    call = fake_next(w.fake);
    assert_string_equal(call->method, "POST");
    assert_non_null(strstr(call->path, SECRETS "?fieldManager=moonloop-at"));
    assert_non_null(strstr(call->body, "\"data\":{\"a\":\"aHVudGVyMjI=\"}"));
    assert_non_null(strstr(call->body, "\"name\":\"x\",\"uid\":\"at-uid\""));
    assert_non_null(strstr(call->body, "\"controller\":true"));
    ML_AUTO_FREE char *made = secret_json(OURS, "\"data\":{\"a\":\"aHVudGVyMjI=\"}");
    world_answer(&w, call, 201, made);
    expect_outcome(&told, ML_OUTCOME_OK, "{\"a\":\"hunter22\"}");
    world_close(&w);
}

/* A value on the server counts, and no new one is made. */
static void test_once_gives_what_the_server_has(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w, ONCE, NULL);
    assert_non_null(world_start(&w, &told));
    ML_AUTO_FREE char *there = secret_json(OURS, "\"data\":{\"a\":\"b3RoZXI=\"}");
    world_answer(&w, fake_next(w.fake), 200, there);
    expect_outcome(&told, ML_OUTCOME_OK, "{\"a\":\"other\"}");
    fake_expect_none(w.fake);
    world_close(&w);
}

static void test_once_adds_a_key_by_a_guarded_patch(void **state)
{
    (void)state;
    static const char *const datas[] = {
        "\"data\":{\"old\":\"eA==\"}",
        "\"data\":{\"a\":\"no base64!\",\"old\":\"eA==\"}",
    };
    for (size_t i = 0; i < ML_COUNT(datas); i++) {
        struct world w;
        struct told told;
        world_open(&w, ONCE, NULL);
        assert_non_null(world_start(&w, &told));
        ML_AUTO_FREE char *there = secret_json(OURS, datas[i]);
        world_answer(&w, fake_next(w.fake), 200, there);
        struct fake_call *call = fake_next(w.fake);
        assert_string_equal(call->method, "PATCH");
        assert_non_null(strstr(call->body, "\"uid\":\"s-uid\",\"resourceVersion\":\"7\""));
        assert_non_null(strstr(call->body, "\"data\":{\"a\":\"aHVudGVyMjI=\",\"old\":null}"));
        fake_refuse(call, 409, "Conflict", "the object has been modified");
        ml_loop_poll(w.loop);
        expect_outcome(&told, ML_OUTCOME_ERROR, "");
        assert_int_equal(told.kind, ML_ECONFLICT);
        world_close(&w);
    }
}

/* One of an object of the same name that is gone, until it is collected. */
static void test_once_leaves_an_earlier_owners_secret(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w, ONCE, NULL);
    assert_non_null(world_start(&w, &told));
    ML_AUTO_FREE char *there = secret_json(
        "\"ownerReferences\":[{\"apiVersion\":\"example.com/v1\",\"kind\":\"At\",\"name\":\"x\","
        "\"uid\":\"old-uid\",\"controller\":true}]",
        "\"data\":{\"a\":\"b3RoZXI=\"}");
    world_answer(&w, fake_next(w.fake), 200, there);
    expect_outcome(&told, ML_OUTCOME_OK,
                   "{\"kind\":\"AlreadyExists\",\"why\":\"once Secret default/s: AlreadyExists: "
                   "Secret default/s exists and is controlled by an earlier At x\"}");
    fake_expect_none(w.fake);
    world_close(&w);
}

/* A webhook repeats the value, as it is or as base64: nobody sees the message. */
static void test_refused_secret_shows_no_value(void **state)
{
    (void)state;
    static const char *const messages[] = {
        "admission webhook \\\"w\\\" denied the request: password 'hunter22' is weak",
        "data[a]: Invalid value: \\\"aHVudGVyMjI=\\\"",
        "the value unter2… is too short",
    };
    for (size_t i = 0; i < ML_COUNT(messages); i++) {
        struct world w;
        struct told told;
        world_open(&w, ONCE, NULL);
        assert_non_null(world_start(&w, &told));
        world_answer(&w, fake_next(w.fake), 404, NOT_FOUND);
        world_answer(&w, fake_next(w.fake), 404, NOT_FOUND);
        fake_refuse(fake_next(w.fake), 422, "Invalid", messages[i]);
        ml_loop_poll(w.loop);
        expect_outcome(&told, ML_OUTCOME_OK,
                       "{\"kind\":\"Invalid\",\"why\":\"create Secret default/s: Invalid: what the "
                       "server says is left out, as it has a part of a value of the Secret\"}");
        ML_AUTO_FREE char *log = read_log(&w);
        assert_non_null(strstr(log, "a write of the script was refused"));
        assert_null(strstr(log, "unter2"));
        assert_null(strstr(log, "aHVudGVy"));
        world_close(&w);
    }
}

static void test_refused_secret_keeps_a_message_without_values(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w, ONCE, NULL);
    assert_non_null(world_start(&w, &told));
    world_answer(&w, fake_next(w.fake), 404, NOT_FOUND);
    world_answer(&w, fake_next(w.fake), 404, NOT_FOUND);
    fake_refuse(fake_next(w.fake), 403, "Forbidden", "exceeded quota: q, requested: secrets=1");
    ml_loop_poll(w.loop);
    expect_outcome(&told, ML_OUTCOME_OK,
                   "{\"kind\":\"Forbidden\",\"why\":\"create Secret default/s: Forbidden: exceeded "
                   "quota: q, requested: secrets=1\"}");
    world_close(&w);
}

/* A failure that ends the reconcile goes the same way into the log and an Event. */
static void test_failed_secret_shows_no_value(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w,
               "ctx.apply { apiVersion = 'v1', kind = 'Secret', metadata = { name = 's' },\n"
               "stringData = { a = 'hunter22' } }",
               NULL);
    assert_non_null(world_start(&w, &told));
    fake_refuse(fake_next(w.fake), 500, "InternalError", "webhook panicked at hunter22");
    ml_loop_poll(w.loop);
    assert_int_equal(told.count, 1);
    assert_int_equal(told.outcome, ML_OUTCOME_ERROR);
    assert_null(strstr(told.message, "hunter22"));
    assert_non_null(strstr(told.message, "is left out"));
    world_close(&w);
}

static void test_cancelled_once_leaves_nothing(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w, ONCE, NULL);
    struct ml_run *run = world_start(&w, &told);
    assert_non_null(run);
    world_answer(&w, fake_next(w.fake), 404, NOT_FOUND);
    world_answer(&w, fake_next(w.fake), 404, NOT_FOUND);
    assert_non_null(fake_next(w.fake));
    ml_script_cancel(run);
    ml_loop_poll(w.loop);
    assert_int_equal(told.count, 0);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_once_asks_then_creates),
        cmocka_unit_test(test_once_gives_what_the_server_has),
        cmocka_unit_test(test_once_adds_a_key_by_a_guarded_patch),
        cmocka_unit_test(test_once_leaves_an_earlier_owners_secret),
        cmocka_unit_test(test_refused_secret_shows_no_value),
        cmocka_unit_test(test_refused_secret_keeps_a_message_without_values),
        cmocka_unit_test(test_failed_secret_shows_no_value),
        cmocka_unit_test(test_cancelled_once_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
