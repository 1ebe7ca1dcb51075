/* The course of a key: what it waits for, what goes before it, and when it is tried again. */
#include "run_scripts.h"

#include "operator/controller_internal.h"

/* Its status tells when it was run last. */
static const char *const stamper =
    "local m = require 'moonloop'\n"
    "return m.controller {\n"
    "  name = 'one', reconciles = m.kind('test.dev/v1', 'Thing'),\n"
    "  owns = { m.kind('test.dev/v1', 'Part') },\n"
    "  reconcile = function(thing, ctx)\n"
    "    return { status = { phase = ('at %d'):format(ctx.now() // 1) },\n"
    "      requeue_after = thing.spec.want == 'TIMER' and 60 or nil }\n"
    "  end,\n"
    "}\n";

static void test_controller_conflict_is_tried_again_when_the_cache_has_caught_up(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return { status = { phase = 'ONE' } }");
    tell(world, one, NULL);
    fake_refuse(only_write(world), 409, "Conflict", "the object has been modified");
    fake_piece(
        world->watch,
        "{\"type\":\"MODIFIED\",\"object\":{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Thing\","
        "\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"ua\",\"resourceVersion\":"
        "\"20\"}}}\n");
    advance(world, ML_NS_PER_S);
    struct fake_call *again = only_write(world);
    assert_non_null(strstr(again->body, "\"resourceVersion\":\"20\""));
    accept(world, again, 21, "ONE");
    assert_int_equal(world->write_count, 0);
}

/* The number of a thing that still waits: the order in which they come is not stated. */
static int one_that_waits(const struct world *world)
{
    for (int i = 0; i < 100; i++) {
        ML_AUTO_FREE char *part = ml_asprintf("/t%d/", i);
        size_t at = 0;
        while (at < world->write_count && !strstr(world->writes[at]->path, part))
            at++;
        if (at == world->write_count)
            return i;
    }
    fail_msg("all were written");
    return -1;
}

static void test_controller_edit_overtakes_what_the_first_list_brought(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return { status = { phase = 'ONE' } }");
    ML_AUTO_FREE char *things = many_things();
    world->things = things;
    tell(world, one, NULL);
    assert_int_equal(world->write_count, 8); /* of low priority no more at once */
    int waits = one_that_waits(world);
    for (size_t i = 0; i < 2; i++) {
        ML_AUTO_FREE char *name = i == 0 ? ml_asprintf("t%d", waits) : ml_strdup("new");
        ML_AUTO_FREE char *event = ml_asprintf(
            "{\"type\":\"MODIFIED\",\"object\":{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Thing\","
            "\"metadata\":{\"name\":\"%s\",\"namespace\":\"d\",\"uid\":\"u%s\","
            "\"resourceVersion\":\"2%zu\"}}}\n",
            name, name + 1, i);
        fake_piece(world->watch, event);
        ml_loop_poll(world->loop);
        assert_int_equal(world->write_count, 9 + i);
        assert_non_null(strstr(world->writes[8 + i]->path, name));
    }
    for (size_t i = 0; i < 10; i++)
        fake_reply(world->writes[i], 200, "{}");
}

/* Nothing else wakes it: the host itself comes back to it. */
static void test_controller_status_that_was_not_written_is_tried_again(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return { status = { phase = 'ONE' } }");
    tell(world, one, NULL);
    fake_refuse(only_write(world), 500, "InternalError", "etcd is not well");
    advance(world, 5 * ML_NS_PER_MS);
    accept(world, only_write(world), 11, "ONE");
    assert_int_equal(world->write_count, 0);
}

static void test_controller_backoff_grows_and_is_forgotten_by_a_success(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return { status = { phase = thing.spec.want } }");
    int64_t delay_ns = 5 * ML_NS_PER_MS;
    tell(world, one, NULL);
    change(world, 11, "X", "");
    for (int i = 0; i < 10; i++, delay_ns *= 2) {
        fake_refuse(only_write(world), 500, "InternalError", "etcd is not well");
        advance(world, delay_ns - 1);
        assert_int_equal(world->write_count, 0);
        advance(world, 1);
    }
    accept(world, only_write(world), 12, "X");
    change(world, 13, "Y", "");
    fake_refuse(only_write(world), 500, "InternalError", "etcd is not well");
    advance(world, 5 * ML_NS_PER_MS);
    accept(world, only_write(world), 14, "Y");
}

/* Only an edit mends it. The message would tell of every other run. */
static void test_controller_invalid_object_waits_for_an_edit(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one",
                                    "if thing.spec.want == 'Y' then\n"
                                    "  return { status = { phase = 'Y' } }\n"
                                    "end\n"
                                    "return ctx.invalid('spec.want', 'seen at ' .. ctx.now())");
    tell(world, one, NULL);
    accept_all(world); /* the status, and an Event */
    for (int minutes = 0; minutes < 60; minutes++)
        advance(world, 60 * ML_NS_PER_S);
    assert_int_equal(world->write_count, 0);
    change(world, 13, "Y", "");
    accept(world, only_write(world), 14, "Y");
}

static void test_controller_object_that_is_going_is_left_alone(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return { status = { phase = thing.spec.want } }");
    tell(world, one, NULL);
    change(world, 11, "X", ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"");
    assert_int_equal(world->write_count, 0);
    assert_true(ready(world));
}

static void test_controller_owner_hears_of_its_children_and_of_none_else(void **state)
{
    struct world *world = *state;
    tell(world, stamper, NULL);
    reply_no_parts(world);
    accept(world, only_write(world), 11, "at 1700000000");
    part_changes(world, "ADDED", 12, "other.dev");
    assert_int_equal(world->write_count, 0);
    part_changes(world, "MODIFIED", 13, "test.dev");
    accept(world, only_write(world), 14, "at 1700000002");
    part_changes(world, "MODIFIED", 15, NULL); /* taken from it */
    accept(world, only_write(world), 16, "at 1700000003");
    part_changes(world, "DELETED", 17, NULL);
    assert_int_equal(world->write_count, 0);
}

/* The cache of the owner may be behind that of its children. */
static void test_controller_owner_is_asked_for_before_a_child_is_made_again(void **state)
{
    struct world *world = *state;
    tell(world, stamper, NULL);
    reply_no_parts(world);
    accept(world, only_write(world), 11, "at 1700000000");
    part_changes(world, "ADDED", 12, "test.dev");
    accept(world, only_write(world), 13, "at 1700000001");
    part_changes(world, "DELETED", 14, "test.dev");
    assert_int_equal(world->write_count, 0);
    fake_reply(ml_take(&world->live_read), 200, "{\"metadata\":{\"uid\":\"another\"}}");
    assert_int_equal(world->write_count, 0);
    advance(world, 5 * ML_NS_PER_MS);
    fake_reply(ml_take(&world->live_read), 200, "{\"metadata\":{\"uid\":\"ua\"}}");
    ml_loop_poll(world->loop);
    accept(world, only_write(world), 15, "at 1700000002");
}

/* Another replica leads by the time that the server has shown the object. */
static void test_controller_that_may_not_act_any_more_begins_no_run(void **state)
{
    struct world *world = *state;
    tell(world, stamper, NULL);
    reply_no_parts(world);
    accept(world, only_write(world), 11, "at 1700000000");
    part_changes(world, "ADDED", 12, "test.dev");
    accept(world, only_write(world), 13, "at 1700000001");
    part_changes(world, "DELETED", 14, "test.dev");
    world->services.standby = true;
    fake_reply(ml_take(&world->live_read), 200, "{\"metadata\":{\"uid\":\"ua\"}}");
    ml_loop_poll(world->loop);
    assert_int_equal(world->write_count, 0);
}

/* Only the newest run's timer counts. */
static void test_controller_timer_of_an_earlier_run_is_taken_back(void **state)
{
    struct world *world = *state;
    tell(world, stamper, NULL);
    reply_no_parts(world);
    accept(world, only_write(world), 11, "at 1700000000");
    advance(world, ML_NS_PER_S);
    change(world, 12, "TIMER", "");
    accept(world, only_write(world), 13, "at 1700000001");
    advance(world, ML_NS_PER_S);
    change(world, 14, "NONE", "");
    accept(world, only_write(world), 15, "at 1700000002");
    advance(world, 59 * ML_NS_PER_S);
    advance(world, 2 * ML_NS_PER_S);
    assert_int_equal(world->write_count, 0);
}

static void test_controller_failure_is_logged_once_per_doubling_of_its_pause(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "error(thing.spec and thing.spec.want or 'boom')");
    ML_AUTO_FREE char *two = script("one",
                                    "error(thing.spec and thing.spec.want or 'boom') do end");
    int fd = world->log.fd;
    tell(world, one, NULL);
    for (int64_t delay_ns = 5 * ML_NS_PER_MS; delay_ns < 2 * ML_NS_PER_S; delay_ns *= 2) {
        accept_all(world);
        advance(world, delay_ns);
    }
    /* The first, the ninth and the tenth. */
    assert_int_equal(unit_count(fd, "reconcile failed; trying again"), 3);
    assert_int_equal(unit_count(fd, "failures=1 retry_seconds=0.005\n"), 1);
    assert_int_equal(unit_count(fd, "failures=9 retry_seconds=1.28\n"), 1);
    assert_int_equal(unit_count(fd, "failures=10 retry_seconds=2.56\n"), 1);
    assert_int_equal(unit_count(fd, "\n  a.lua:4: in function <4>\n"), 1);
    change(world, 11, "other", ""); /* another failure */
    assert_int_equal(unit_count(fd, "failures=1 "), 2);
    change(world, 12, "again", "");
    change(world, 13, "again", "");
    assert_int_equal(unit_count(fd, "failures=1 "), 3);
    accept_all(world);
    tell(world, two, NULL); /* another version of the script */
    accept_all(world);
    assert_int_equal(unit_count(fd, "failures=1 "), 4);
    assert_int_equal(unit_count(fd, "\n  a.lua:4: in function <4>\n"), 4);
    accept_all(world);
}

static void test_controller_success_ends_a_failure(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "if thing.spec.want ~= 'X' then error 'boom' end");
    tell(world, one, NULL);
    accept_all(world);
    change(world, 11, "Y", "");
    assert_int_equal(unit_count(world->log.fd, "reconcile failed"), 1);
    change(world, 12, "X", "");
    change(world, 13, "Z", "");
    assert_int_equal(unit_count(world->log.fd, "reconcile failed"), 2);
    assert_int_equal(unit_count(world->log.fd, "failures=1 "), 2);
    accept_all(world);
}

/* For those who wait until there is nothing left to do: what fails for good is not waited for. */
static void test_controller_what_fails_again_and_again_is_told_and_not_waited_for(void **state)
{
    struct world *world = *state;
    ML_AUTO(ml_buf_fini) struct ml_buf why = ML_BUF_INIT;
    ML_AUTO_FREE char *one = script("one", "if thing.spec.want ~= 'X' then error 'boom' end");
    tell(world, one, NULL);
    accept_all(world);
    for (int tries = 1; tries < 13; tries++) {
        assert_int_not_equal(ml_scripts_next(world->scripts), INT64_MAX);
        advance(world, 5 * ML_NS_PER_MS << (tries - 1));
    }
    assert_int_equal(ml_scripts_next(world->scripts), INT64_MAX);
    assert_true(ml_scripts_fail(world->scripts, &why));
    assert_string_equal(ml_buf_cstr(&why),
                        "a.lua: Thing d/a failed 13 times in a row: a.lua:4: boom\n");
    ml_buf_clear(&why);
    change(world, 11, "X", "");
    assert_int_equal(ml_scripts_next(world->scripts), INT64_MAX);
    assert_false(ml_scripts_fail(world->scripts, &why));
    assert_int_equal(why.len, 0);
    accept_all(world);
}

static void on_beside(void *context, struct ml_str body, const struct ml_err *err)
{
    (void)context, (void)body, (void)err;
}

/* Another request is answered. */
static void server_answers(struct world *world)
{
    const struct ml_client_request request = {.verb = ML_VERB_GET, .path = "/version"};
    ml_client_send(world->services.client, &request, on_beside, NULL);
    ml_loop_poll(world->loop);
}

static void fail_write(struct world *world, struct fake_call *write, bool away)
{
    if (!away) {
        fake_refuse(write, 500, "InternalError", "etcd is not well");
        return;
    }
    fake_refuse(write, 503, "", "a proxy says so");
    ml_loop_poll(world->loop);
    fake_refuse(ml_take(&world->live_read), 503, "", "a proxy says so");
}

/* After an outage: what waits for the server goes on as soon as it answers anybody; what the
 * server itself failed keeps its pause. */
static void test_controller_key_goes_on_when_the_server_answers(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return { status = { phase = 'ONE' } }");
    tell(world, one, NULL);
    for (int away = 1; away >= 0; away--) {
        int64_t delay_ns = 5 * ML_NS_PER_MS;
        for (int i = 0; i < 8; i++, delay_ns *= 2) { /* not long enough to be told */
            fail_write(world, only_write(world), away);
            if (i < 7)
                advance(world, delay_ns);
        }
        server_answers(world);
        advance(world, 5 * ML_NS_PER_MS);
        assert_int_equal(world->write_count, away);
        advance(world, away ? 0 : delay_ns);
        accept(world, only_write(world), 11 + away, "ONE");
        change(world, 21 + !away, "ONE", "");
    }
    accept_all(world);
}

/* ---- what stays of a key ---- */

/* Each way in which a run may end, by spec.want. All of them have a request under way. */
static const char *const ending =
    "local m = require 'moonloop'\n"
    "local Part = m.kind('test.dev/v1', 'Part')\n"
    "return m.controller {\n"
    "  name = 'one', reconciles = m.kind('test.dev/v1', 'Thing'), owns = { Part },\n"
    "  metrics = { g = { type = 'gauge', help = 'x', labels = { 'name' } } },\n"
    "  reconcile = function(thing, ctx)\n"
    "    local want, status = thing.spec.want, { phase = 'X' }\n"
    "    ctx.get(Part, thing.metadata.name)\n"
    "    ctx.metric('g', 1, { name = thing.metadata.name })\n"
    "    if want == 'INVALID' then return ctx.invalid('spec.want', 'odd') end\n"
    "    if want == 'TERMINAL' then return ctx.terminal 'odd' end\n"
    "    if want == 'ERROR' then error 'odd' end\n"
    "    if want == 'TIMER' then return { status = status, requeue_after = 60 } end\n"
    "    if want == 'DELETE' then assert(ctx.delete(thing)) return end\n"
    "    return { status = status }\n"
    "  end,\n"
    "}\n";

static void thing_event(struct world *world, const char *type, int number, const char *want)
{
    ML_AUTO_FREE char *event = ml_asprintf(
        "{\"type\":\"%s\",\"object\":{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Thing\","
        "\"metadata\":{\"name\":\"t%d\",\"namespace\":\"d\",\"uid\":\"u%d\","
        "\"resourceVersion\":\"%d\"},\"spec\":{\"want\":\"%s\"}}}\n",
        type, number, number, 100 + 2 * number + (strcmp(type, "DELETED") == 0), want);
    assert_true(fake_piece(world->watch, event));
    ml_loop_poll(world->loop);
}

static const struct ml_controller *only_controller(const struct world *world)
{
    struct ml_controller *all[ML_CONTROLLERS_MAX];
    assert_int_equal(ml_scripts_controllers(world->scripts, all), 1);
    return all[0];
}

static void expect_no_records(const struct world *world, const char *after)
{
    const struct ml_controller *one = only_controller(world);
    ML_AUTO(ml_buf_fini) struct ml_buf page = ML_BUF_INIT;
    const struct {
        const char *name;
        size_t count;
    } records[] = {
        {"read sets, in bytes", ml_read_sets_bytes(one->read_sets)},
        {"in the enqueue filter", ml_enqueue_filter_len(one->filter)},
        {"of expectations", ml_expectations_len(one->expectations)},
        {"records of keys", ml_keys_len(&one->keys)},
        {"in the queue", ml_workqueue_len(one->queue)},
        {"under way", (size_t)one->in_flight},
    };
    for (size_t i = 0; i < ML_COUNT(records); i++)
        if (records[i].count > 0)
            fail_msg("%s: %zu %s", after, records[i].count, records[i].name);
    ml_metrics_write(world->metrics, &page);
    if (strstr(ml_buf_cstr(&page), "moonloop_custom_g{"))
        fail_msg("%s: a gauge is left", after);
}

/* Objects in each way: MANY in those in which records stayed once, and with parts. All 26 ways with
 * so many take half a minute with sanitizers. */
enum { SOME = 1000, MANY = 10000 };

/* Records stayed when a script deleted its own object, and when an object went while its run waited
 * for an answer. */
static int objects_of(const char *want, bool before, int status)
{
    bool stayed_once = strcmp(want, "DELETE") == 0 || (strcmp(want, "STATUS") == 0 && before);
    return stayed_once && status == 200 ? MANY : SOME;
}

/* `before` the run's request is answered, or after. 404: there was no object any more. */
static void make_and_delete(struct world *world, const char *want, bool before, int status)
{
    const int objects = objects_of(want, before, status);
    ML_AUTO_FREE char *after = ml_asprintf("%s, %s the answer %d", want,
                                           before ? "gone before" : "gone after", status);
    for (int i = 1; i <= objects; i++) {
        thing_event(world, "ADDED", i, want);
        assert_true(world->write_count > 0);
        if (before)
            thing_event(world, "DELETED", i, want);
        for (size_t k = 0; k < world->write_count; k++)
            fake_reply(world->writes[k], status,
                       status == 200 ? "{\"metadata\":{\"resourceVersion\":\"1\"}}" : "{}");
        world->write_count = 0;
        ml_loop_poll(world->loop);
        if (!before)
            thing_event(world, "DELETED", i, want);
        accept_all(world);
    }
    for (int i = 0; i < 20; i++) {
        advance(world, 10 * ML_NS_PER_S);
        accept_all(world);
    }
    expect_no_records(world, after);
}

/* A part that names the Thing of this number as its owner. */
static void part_event(struct world *world, const char *type, int number)
{
    ML_AUTO_FREE char *event = ml_asprintf(
        "{\"type\":\"%s\",\"object\":{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Part\","
        "\"metadata\":{\"name\":\"p%d\",\"namespace\":\"d\",\"uid\":\"up%d\","
        "\"ownerReferences\":[{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Thing\","
        "\"name\":\"t%d\",\"uid\":\"u%d\",\"controller\":true}],"
        "\"resourceVersion\":\"%d\"}}}\n",
        type, number, number, number, number, 100 + 2 * number + (strcmp(type, "DELETED") == 0));
    assert_true(fake_piece(world->parts_watch, event));
    ml_loop_poll(world->loop);
}

/* `owned`: the owner is there before the parts, and goes before them. If not, it never was. */
static void make_and_delete_parts(struct world *world, bool owned)
{
    for (int i = 1; i <= MANY; i++) {
        if (owned)
            thing_event(world, "ADDED", i, "STATUS");
        part_event(world, "ADDED", i);
        accept_all(world);
        if (owned)
            thing_event(world, "DELETED", i, "STATUS");
        part_event(world, "DELETED", i);
        accept_all(world);
    }
    for (int i = 0; i < 20; i++) {
        advance(world, 10 * ML_NS_PER_S);
        accept_all(world);
    }
    expect_no_records(world, owned ? "parts outlived their owner" : "the owner never was");
}

static void test_controller_keeps_nothing_of_objects_that_are_gone(void **state)
{
    struct world *world = *state;
    static const char *const wants[] = {"STATUS", "INVALID", "TERMINAL",
                                        "ERROR",  "TIMER",   "DELETE"};
    world->log.level = ML_LOG_DEBUG; /* causes are kept, too */
    world->things = "{\"kind\":\"ThingList\",\"apiVersion\":\"test.dev/v1\",\"metadata\":"
                    "{\"resourceVersion\":\"10\"},\"items\":[]}";
    tell(world, ending, NULL);
    reply_no_parts(world);
    make_and_delete_parts(world, true);
    make_and_delete_parts(world, false);
    for (size_t i = 0; i < ML_COUNT(wants); i++)
        for (int way = 0; way < 4; way++)
            make_and_delete(world, wants[i], way & 1, way & 2 ? 404 : 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPTS_TEST(test_controller_conflict_is_tried_again_when_the_cache_has_caught_up),
        SCRIPTS_TEST(test_controller_edit_overtakes_what_the_first_list_brought),
        SCRIPTS_TEST(test_controller_status_that_was_not_written_is_tried_again),
        SCRIPTS_TEST(test_controller_backoff_grows_and_is_forgotten_by_a_success),
        SCRIPTS_TEST(test_controller_invalid_object_waits_for_an_edit),
        SCRIPTS_TEST(test_controller_object_that_is_going_is_left_alone),
        SCRIPTS_TEST(test_controller_owner_hears_of_its_children_and_of_none_else),
        SCRIPTS_TEST(test_controller_owner_is_asked_for_before_a_child_is_made_again),
        SCRIPTS_TEST(test_controller_that_may_not_act_any_more_begins_no_run),
        SCRIPTS_TEST(test_controller_timer_of_an_earlier_run_is_taken_back),
        SCRIPTS_TEST(test_controller_failure_is_logged_once_per_doubling_of_its_pause),
        SCRIPTS_TEST(test_controller_success_ends_a_failure),
        SCRIPTS_TEST(test_controller_key_goes_on_when_the_server_answers),
        SCRIPTS_TEST(test_controller_what_fails_again_and_again_is_told_and_not_waited_for),
        SCRIPTS_TEST(test_controller_keeps_nothing_of_objects_that_are_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
