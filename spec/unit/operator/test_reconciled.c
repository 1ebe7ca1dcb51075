/* The condition in the status of an object whose reconciles fail: when it is written, how often,
 * and with a server that refuses it. */
#include "run_scripts.h"

#include "codec/json.h"

#define FAILS_UNLESS_X                                                                             \
    "if thing.spec.want ~= 'X' then error('boom at ' .. ctx.now()) end return { status = { phase " \
    "= 'FINE' } }"

/* Answers the Events, and takes the writes of statuses out: the one that there is, or NULL. */
static struct fake_call *status_write(struct world *world)
{
    struct fake_call *found = NULL;
    for (size_t i = 0; i < world->write_count; i++) {
        if (strstr(world->writes[i]->path, "/things/a/status")) {
            assert_null(found);
            found = world->writes[i];
        } else {
            fake_reply(world->writes[i], 201, "{}");
        }
    }
    world->write_count = 0;
    ml_loop_poll(world->loop);
    return found;
}

/* The server has what was sent: as the answer and in the watch. */
static void take(struct world *world, struct fake_call *write, int version, const char *want)
{
    struct ml_str status;
    assert_non_null(write);
    assert_true(ml_json_find(ml_str_of(write->body), &status, "status", NULL));
    ML_AUTO_FREE char *object = ml_asprintf(
        "{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":\"a\","
        "\"namespace\":\"d\",\"uid\":\"ua\",\"resourceVersion\":\"%d\"},\"spec\":{\"want\":\"%s\"},"
        "\"status\":" ML_STR_FMT "}",
        version, want, ML_STR_ARG(status));
    ML_AUTO_FREE char *event = ml_asprintf("{\"type\":\"MODIFIED\",\"object\":%s}\n", object);
    fake_reply(write, 200, object);
    assert_true(fake_piece(world->watch, event));
    ml_loop_poll(world->loop);
}

/* The object in the watch, edited by somebody, who keeps this status. */
static void edit(struct world *world, int version, const char *want, const char *status)
{
    ML_AUTO_FREE char *event = ml_asprintf(
        "{\"type\":\"MODIFIED\",\"object\":{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Thing\","
        "\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"ua\",\"resourceVersion\":"
        "\"%d\"},\"spec\":{\"want\":\"%s\"},\"status\":%s}}\n",
        version, want, status);
    assert_true(fake_piece(world->watch, event));
    ml_loop_poll(world->loop);
}

static void begin(struct world *world, const char *body)
{
    ML_AUTO_FREE char *text = script("one", body);
    tell(world, text, NULL);
}

/* For which a key is tried again and again; then the watch ends, and a list begins anew. */
#define MINUTES 4

#define FAILED                                                                                     \
    "{\"conditions\":[{\"type\":\"Reconciled\",\"status\":\"False\",\"reason\":"                   \
    "\"ReconcileFailed\",\"message\":\"one: a.lua:4: boom at 1700000000.0\","                      \
    "\"observedGeneration\":0,\"lastTransitionTime\":\"2023-11-14T22:13:20Z\"}]}"

static void test_reconciled_is_said_once_and_taken_back(void **state)
{
    struct world *world = *state;
    begin(world, FAILS_UNLESS_X);
    struct fake_call *write = status_write(world);
    assert_non_null(write);
    assert_non_null(strstr(write->body, FAILED));
    take(world, write, 11, "");
    for (int minutes = 0; minutes < MINUTES; minutes++) { /* it is tried again, at other times */
        advance(world, 60 * ML_NS_PER_S);
        assert_null(status_write(world));
    }
    edit(world, 12, "X", FAILED);
    write = status_write(world);
    assert_non_null(strstr(write->body, "\"phase\":\"FINE\"")); /* in one write */
    assert_non_null(strstr(write->body, "\"type\":\"Reconciled\",\"status\":\"True\""));
    take(world, write, 13, "X");
    for (int minutes = 0; minutes < MINUTES; minutes++)
        advance(world, 60 * ML_NS_PER_S);
    assert_null(status_write(world));
}

static void test_reconciled_is_not_said_of_what_never_failed(void **state)
{
    struct world *world = *state;
    begin(world, "return { status = { phase = 'FINE' } }");
    struct fake_call *write = status_write(world);
    assert_null(strstr(write->body, "conditions"));
    take(world, write, 11, "");
    assert_null(status_write(world));
}

/* The server leaves out what the schema does not have. */
static void test_reconciled_is_tried_once_where_the_schema_lacks_it(void **state)
{
    struct world *world = *state;
    begin(world, FAILS_UNLESS_X);
    fake_reply(status_write(world), 200,
               "{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":\"a\","
               "\"namespace\":\"d\",\"uid\":\"ua\",\"resourceVersion\":\"1\"}}");
    for (int minutes = 0; minutes < MINUTES; minutes++) {
        advance(world, 60 * ML_NS_PER_S);
        assert_null(status_write(world));
    }
    edit(world, 12, "Y", "{}");
    assert_null(status_write(world));
    assert_int_equal(unit_count(world->log.fd, "failures are not shown on its objects"), 1);
    edit(world, 13, "X", "{}");
    take(world, status_write(world), 14,
         "X"); /* the status of the script is written all the same */
}

/* The server's 422, with a cause for each of the fields. */
static void refuse_fields(struct world *world, struct fake_call *write, const char *const *fields)
{
    struct ml_buf causes = ML_BUF_INIT;
    assert_non_null(write);
    for (size_t i = 0; fields[i]; i++)
        ml_buf_printf(&causes,
                      "%s{\"reason\":\"FieldValueInvalid\",\"message\":\"Invalid value\","
                      "\"field\":\"%s\"}",
                      i > 0 ? "," : "", fields[i]);
    ML_AUTO_FREE char *status = ml_asprintf(
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":\"Invalid\","
        "\"code\":422,\"message\":\"Thing \\\"a\\\" is invalid: %s: Invalid value\",\"details\":"
        "{\"causes\":[%s]}}",
        fields[0], ml_buf_cstr(&causes));
    ml_buf_fini(&causes);
    fake_reply(write, 422, status);
    ml_loop_poll(world->loop);
}

/* A schema with other conditions: what the script returns is not lost for that. */
static void test_reconciled_that_is_refused_costs_the_script_nothing(void **state)
{
    struct world *world = *state;
    static const char *const whole[] = {"status.conditions", NULL};
    static const char *const parts[] = {"status.conditions[0].type", "status.conditions[0].reason",
                                        NULL};
    begin(world, "return ctx.invalid('spec.want', 'no', { status = { phase = 'BAD' } })");
    struct fake_call *write = status_write(world);
    assert_non_null(strstr(write->body, "BAD"));
    refuse_fields(world, write, whole);
    refuse_fields(world, status_write(world), parts);
    advance(world, 10 * ML_NS_PER_MS);
    write = status_write(world);
    assert_non_null(strstr(write->body, "\"status\":{\"phase\":\"BAD\"}}"));
    take(world, write, 11, "");
    for (int minutes = 0; minutes < MINUTES; minutes++)
        advance(world, 60 * ML_NS_PER_S);
    assert_null(status_write(world)); /* it waits for an edit */
}

/* A 422 that is about something else: a field that does not fit, another condition in the list, a
 * webhook, which names no field. The kind has conditions all the same. */
static void test_reconciled_refused_for_other_reasons_is_written_later(void **state)
{
    struct world *world = *state;
    static const char *const refusals[][3] = {
        {"status.phase", NULL},
        {"status.conditions[1].message", NULL},
        {"status.conditions[0]x", NULL},
        {"status.conditionsOfOthers", NULL},
        {"status.conditions[0].type", "spec.size", NULL},
    };
    begin(world, FAILS_UNLESS_X);
    int64_t pause_ns = 5 * ML_NS_PER_MS;
    for (size_t i = 0; i < ML_COUNT(refusals); i++, pause_ns *= 2) {
        refuse_fields(world, status_write(world), refusals[i]);
        advance(world, pause_ns);
    }
    struct fake_call *write = status_write(world);
    assert_non_null(write);
    fake_refuse(write, 422, "Invalid", "admission webhook \"x\" denied the request: no");
    advance(world, pause_ns);
    write = status_write(world);
    assert_non_null(write);
    assert_non_null(strstr(write->body, "one: a.lua:4: boom at "));
    take(world, write, 11, "");
    assert_int_equal(unit_count(world->log.fd, "failures are not shown on its objects"), 0);
}

/* It is as well a failure that the status of the script cannot be written. */
static void test_reconciled_tells_of_a_status_that_is_refused(void **state)
{
    struct world *world = *state;
    begin(world, "return { status = { phase = 'ODD' } }");
    struct fake_call *write = status_write(world);
    fake_refuse(write, 422, "Invalid", "status.phase: Unsupported value");
    ml_loop_poll(world->loop);
    write = status_write(world);
    assert_non_null(strstr(write->body, "one: write status: "));
    assert_non_null(strstr(write->body, "status.phase: Unsupported value"));
    assert_null(strstr(write->body, "ODD"));
    take(world, write, 11, "");
}

static void test_reconciled_is_not_said_of_conflicts_and_passing_faults(void **state)
{
    struct world *world = *state;
    begin(world, "return { status = { phase = thing.spec.want or 'NEW' } }");
    fake_refuse(status_write(world), 409, "Conflict", "the object has been modified");
    ml_loop_poll(world->loop);
    edit(world, 11, "A", "{}");
    fake_refuse(status_write(world), 500, "InternalError", "etcd is not well");
    advance(world, 20 * ML_NS_PER_MS);
    struct fake_call *write = status_write(world);
    assert_null(strstr(write->body, "Reconciled"));
    take(world, write, 12, "A");
}

/* The failure itself is what is told and tried again, not that of saying it. */
static void test_reconciled_that_cannot_be_written_changes_no_outcome(void **state)
{
    struct world *world = *state;
    begin(world, FAILS_UNLESS_X);
    for (int tries = 0; tries < 8; tries++) {
        struct fake_call *write = status_write(world);
        assert_non_null(write); /* until it is there */
        fake_refuse(write, 403, "Forbidden", "not yours");
        advance(world, 5 * ML_NS_PER_MS << tries);
    }
    assert_int_equal(unit_count(world->log.fd, "Forbidden"), 0);
    assert_true(unit_count(world->log.fd, "a.lua:4: boom at ") > 0);
    take(world, status_write(world), 11, "");
}

static void test_reconciled_of_a_broken_condition_says_what_is_broken(void **state)
{
    struct world *world = *state;
    begin(world, "return { status = { conditions = { { type = 'Ready' } } } }");
    struct fake_call *write = status_write(world);
    assert_non_null(strstr(write->body, "one: status.conditions: each needs type and status"));
    assert_null(strstr(write->body, "Ready\""));
    take(world, write, 11, "");
}

static void test_reconciled_verdicts_are_written_with_what_is_beside_them(void **state)
{
    struct world *world = *state;
    begin(world, "return ctx.terminal('no way', { status = { phase = 'BAD' },\n"
                 "  conditions = { Ready = { status = false, reason = 'NoWay' } } })");
    struct fake_call *write = status_write(world);
    assert_non_null(strstr(write->body, "\"phase\":\"BAD\""));
    assert_non_null(strstr(write->body, "\"type\":\"Ready\""));
    assert_non_null(strstr(write->body, "\"reason\":\"Failed\",\"message\":\"one: no way\""));
    take(world, write, 11, "");
    for (int minutes = 0; minutes < MINUTES; minutes++)
        advance(world, 60 * ML_NS_PER_S);
    assert_null(status_write(world));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPTS_TEST(test_reconciled_is_said_once_and_taken_back),
        SCRIPTS_TEST(test_reconciled_is_not_said_of_what_never_failed),
        SCRIPTS_TEST(test_reconciled_is_tried_once_where_the_schema_lacks_it),
        SCRIPTS_TEST(test_reconciled_that_is_refused_costs_the_script_nothing),
        SCRIPTS_TEST(test_reconciled_refused_for_other_reasons_is_written_later),
        SCRIPTS_TEST(test_reconciled_tells_of_a_status_that_is_refused),
        SCRIPTS_TEST(test_reconciled_is_not_said_of_conflicts_and_passing_faults),
        SCRIPTS_TEST(test_reconciled_that_cannot_be_written_changes_no_outcome),
        SCRIPTS_TEST(test_reconciled_of_a_broken_condition_says_what_is_broken),
        SCRIPTS_TEST(test_reconciled_verdicts_are_written_with_what_is_beside_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
