/* Finalizers, from the first write for an object to the end of its controller, on a scripted API
 * server and a fake clock. */
#include "run_scripts.h"

#define OURS    "moonloop.dev/one"
#define GOING   ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\""
#define CARRIES ",\"finalizers\":[\"a/b\",\"" OURS "\",\"c/d\"]"

/* Answers an Event, or a status that has nothing but the condition of a finalize that is not done:
 * that is left out. */
static bool answer_telling(struct fake_call *call)
{
    static const char *const condition = "\"status\":{\"conditions\":[{\"type\":\"Reconciled\","
                                         "\"status\":\"False\",\"reason\":\"Finalizing\"";
    if (!strstr(call->path, "/events") && !strstr(call->body, condition))
        return false;
    fake_reply(call, 200, "{}");
    return true;
}

/* Answers writes that tell of the run, and returns the oldest other write; NULL: there is none. */
static struct fake_call *take_write(struct world *world)
{
    struct fake_call *found = NULL;
    size_t at = 0;
    while (at < world->write_count) {
        struct fake_call *call = world->writes[at];
        bool told = answer_telling(call);
        if (told || !found) {
            found = told ? found : call;
            world->write_count--;
            memmove(&world->writes[at], &world->writes[at + 1],
                    (world->write_count - at) * sizeof(world->writes[0]));
            if (told)
                ml_loop_poll(world->loop);
        } else {
            at++;
        }
    }
    return found;
}

static void expect_no_write(struct world *world)
{
    struct fake_call *call = take_write(world);
    if (call)
        fail_msg("%s %s %s", call->method, call->path, call->body);
}

/* The next write, which has this in its body. */
static struct fake_call *expect_write_at(int line, struct world *world, const char *body)
{
    struct fake_call *call = take_write(world);
    if (!call || !strstr(call->body, body))
        fail_msg("line %d: %s %s: %s, not %s", line, call ? call->method : "no write",
                 call ? call->path : "", call ? call->body : "", body);
    return call;
}

#define expect_write(world, body) expect_write_at(__LINE__, world, body)

/* reconcile returns the first, finalize the second; NULL: there is none. */
static char *finalizing(const char *name, const char *reconcile, const char *finalize)
{
    ML_AUTO_FREE char *more = finalize ? ml_asprintf("  finalize = function(thing, ctx) %s end,\n",
                                                     finalize)
                                       : ml_strdup("");
    return ml_asprintf("local m = require 'moonloop'\n"
                       "return m.controller {\n"
                       "  name = '%s', reconciles = m.kind('test.dev/v1', 'Thing'),\n"
                       "  reconcile = function(thing, ctx) %s end,\n"
                       "%s}\n",
                       name, reconcile, more);
}

/* The object as it is now: in the answer to a write, and in the watch. `more` as for change. */
static void answer_changed(struct world *world, struct fake_call *write, int version,
                           const char *more)
{
    ML_AUTO_FREE char *object = ml_asprintf(
        "{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":\"a\","
        "\"namespace\":\"d\",\"uid\":\"ua\",\"resourceVersion\":\"%d\"%s}}",
        version, more);
    ML_AUTO_FREE char *event = ml_asprintf("{\"type\":\"MODIFIED\",\"object\":%s}\n", object);
    fake_reply(write, 200, object);
    assert_true(fake_piece(world->watch, event));
    ml_loop_poll(world->loop);
}

static void gone(struct world *world, int version)
{
    ML_AUTO_FREE char *event = ml_asprintf(
        "{\"type\":\"DELETED\",\"object\":{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Thing\","
        "\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"ua\",\"resourceVersion\":"
        "\"%d\"}}}\n",
        version);
    assert_true(fake_piece(world->watch, event));
    ml_loop_poll(world->loop);
}

static void test_finalizer_comes_before_the_first_status(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = finalizing("one", "return { status = { phase = 'ONE' } }", "");
    tell(world, one, NULL);
    struct fake_call *add = expect_write(world, "");
    assert_string_equal(add->path, "/apis/test.dev/v1/namespaces/d/things/a");
    assert_string_equal(add->body, "{\"metadata\":{\"uid\":\"ua\",\"resourceVersion\":\"1\","
                                   "\"finalizers\":[\"" OURS "\"]}}");
    expect_no_write(world);
    answer_changed(world, add, 11, ",\"finalizers\":[\"" OURS "\"]");
    struct fake_call *status = expect_write(world, "");
    assert_string_equal(status->path, "/apis/test.dev/v1/namespaces/d/things/a/status");
    assert_string_equal(status->body, "{\"metadata\":{\"uid\":\"ua\",\"resourceVersion\":\"11\"},"
                                      "\"status\":{\"phase\":\"ONE\"}}");
    ML_AUTO_FREE char *done = ml_strdup(",\"finalizers\":[\"" OURS
                                        "\"]},\"status\":{\"phase\":\"ONE\"},\"x\":{");
    answer_changed(world, status, 12, done);
    expect_no_write(world); /* its own echoes come to an end */
    advance(world, 3600 * ML_NS_PER_S);
    expect_no_write(world);
}

static void test_finalizer_is_not_added_where_nothing_is_written(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = finalizing(
        "one", "if thing.spec.want == 'X' then return { status = { phase = 'X' } } end", "");
    tell(world, one, NULL);
    expect_no_write(world);
    change(world, 11, "no", "");
    expect_no_write(world);
    change(world, 12, "no", GOING); /* it has none: it goes without a call */
    expect_no_write(world);
}

static void test_finalizer_that_is_not_added_lets_no_status_be_written(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = finalizing("one", "return { status = { phase = 'ONE' } }", "");
    tell(world, one, NULL);
    fake_refuse(expect_write(world, OURS), 403, "Forbidden", "no right to patch things");
    expect_no_write(world);
    assert_int_equal(unit_count(world->log.fd, "add the finalizer: no right to patch things"), 1);
    advance(world, 5 * ML_NS_PER_MS);
    fake_refuse(expect_write(world, OURS), 404, "NotFound", "things \"a\" not found");
    advance(world, 3600 * ML_NS_PER_S);
    expect_no_write(world);
}

static void test_finalize_is_called_and_the_finalizer_goes(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = finalizing("one", "if thing.spec.want then error 'not this' end", "");
    tell(world, one, NULL);
    change(world, 11, "X", CARRIES GOING);
    struct fake_call *remove = expect_write(world, "");
    assert_string_equal(remove->path, "/apis/test.dev/v1/namespaces/d/things/a");
    assert_string_equal(remove->body, "{\"metadata\":{\"uid\":\"ua\",\"resourceVersion\":\"11\","
                                      "\"finalizers\":[\"a/b\",\"c/d\"]}}");
    answer_changed(world, remove, 12, ",\"finalizers\":[\"a/b\",\"c/d\"]" GOING);
    expect_no_write(world);
    change(world, 13, "Y", ",\"finalizers\":[\"c/d\"]" GOING); /* that is not ours to see to */
    expect_no_write(world);
    gone(world, 14);
    advance(world, 3600 * ML_NS_PER_S);
    expect_no_write(world);
}

/* Its answer has the version of before, and the cache shows it for a while. */
static void
test_finalize_is_not_called_again_for_an_object_that_went_with_its_finalizer(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = finalizing("one", "", "");
    tell(world, one, NULL);
    change(world, 11, "X", ",\"finalizers\":[\"" OURS "\"]" GOING);
    struct fake_call *remove = expect_write(world, "\"finalizers\":[]");
    fake_reply(remove, 200,
               "{\"metadata\":{\"name\":\"a\",\"uid\":\"ua\",\"resourceVersion\":\"11\"}}");
    ml_loop_poll(world->loop);
    resync(world); /* something brings it up */
    ml_loop_poll(world->loop);
    expect_no_write(world);
    fake_refuse(ml_take(&world->live_read), 404, "NotFound", "things \"a\" not found");
    ml_loop_poll(world->loop);
    expect_no_write(world);
    gone(world, 12);
    advance(world, 3600 * ML_NS_PER_S);
    expect_no_write(world);
}

static void test_finalize_that_is_not_done_keeps_the_object(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = finalizing(
        "one", "", "if ctx.now() < 1700000060 then return { requeue_after = 10 } end");
    tell(world, one, NULL);
    change(world, 11, "X", CARRIES GOING);
    for (int i = 0; i < 6; i++) {
        expect_no_write(world);
        advance(world, 10 * ML_NS_PER_S);
    }
    fake_reply(expect_write(world, "\"finalizers\":[\"a/b\",\"c/d\"]"), 200, "{}");
}

/* Nothing that happens has to wake it. */
static void test_finalize_that_names_no_time_is_called_after_a_minute(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = finalizing(
        "one", "", "if ctx.now() < 1700000060 then return { status = { phase = 'GOING' } } end");
    tell(world, one, NULL);
    change(world, 11, "X", CARRIES GOING);
    answer_changed(world, expect_write(world, "\"status\":{\"phase\":\"GOING\""), 12,
                   CARRIES GOING "},\"status\":{\"phase\":\"GOING\"},\"x\":{");
    expect_no_write(world);
    advance(world, 60 * ML_NS_PER_S - 1);
    expect_no_write(world);
    advance(world, 1);
    fake_reply(expect_write(world, "\"finalizers\":[\"a/b\",\"c/d\"]"), 200, "{}");
}

static void test_finalize_that_raises_keeps_the_object_until_an_edit(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = finalizing("one", "", "error 'boom'");
    ML_AUTO_FREE char *two = finalizing("one", "", "return nil");
    tell(world, one, NULL);
    change(world, 11, "X", CARRIES GOING);
    fake_reply(
        expect_write(world, "\"reason\":\"FinalizeFailed\",\"message\":\"one: a.lua:5: boom"), 200,
        "{}");
    for (int64_t delay_ns = 5 * ML_NS_PER_MS; delay_ns < 2 * ML_NS_PER_S; delay_ns *= 2) {
        expect_no_write(world);
        advance(world, delay_ns);
    }
    assert_true(unit_count(world->log.fd, "finalize failed; trying again") > 0);
    assert_true(unit_count(world->log.fd, "a.lua:5: boom") > 0);
    tell(world, two, NULL);
    fake_reply(expect_write(world, "\"finalizers\":[\"a/b\",\"c/d\"]"), 200, "{}");
}

static void test_finalize_that_gives_up_waits_for_a_change(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = finalizing(
        "one", "", "if thing.spec.want ~= 'OK' then return ctx.terminal 'not like that' end");
    tell(world, one, NULL);
    change(world, 11, "X", CARRIES GOING);
    fake_reply(expect_write(world, "\"reason\":\"Failed\""), 200, "{}");
    advance(world, 240 * ML_NS_PER_S);
    expect_no_write(world);
    change(world, 12, "OK", CARRIES GOING);
    fake_reply(expect_write(world, "\"finalizers\":[\"a/b\",\"c/d\"]"), 200, "{}");
}

static void test_finalizer_that_met_another_version_is_removed_from_the_next(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = finalizing("one", "", "");
    tell(world, one, NULL);
    change(world, 11, "X", CARRIES GOING);
    fake_refuse(expect_write(world, "\"resourceVersion\":\"11\""), 409, "Conflict", "modified");
    change(world, 12, "X", ",\"finalizers\":[\"c/d\",\"" OURS "\"]" GOING);
    advance(world, 5 * ML_NS_PER_MS);
    fake_reply(expect_write(world, "\"resourceVersion\":\"12\",\"finalizers\":[\"c/d\"]"), 200,
               "{}");
    assert_int_equal(unit_count(world->log.fd, "failed"), 0);
}

/* Somebody tells the controller that its cache is behind: what is going is known to be going. */
static void test_finalize_is_called_when_a_child_went(void **state)
{
    static const char *const owner =
        "local m = require 'moonloop'\n"
        "return m.controller {\n"
        "  name = 'one', reconciles = m.kind('test.dev/v1', 'Thing'),\n"
        "  owns = { m.kind('test.dev/v1', 'Part') },\n"
        "  reconcile = function() end,\n"
        "  finalize = function(thing, ctx)\n"
        "    if #ctx.list(m.kind('test.dev/v1', 'Part')) > 0 then\n"
        "      return { requeue_after = 3000 }\n"
        "    end\n"
        "  end,\n"
        "}\n";
    struct world *world = *state;
    tell(world, owner, NULL);
    reply_no_parts(world);
    part_changes(world, "ADDED", 12, "test.dev");
    change(world, 13, "X", CARRIES GOING);
    expect_no_write(world);
    part_changes(world, "DELETED", 14, "test.dev");
    expect_no_write(world);
    fake_reply(ml_take(&world->live_read), 200,
               "{\"metadata\":{\"uid\":\"ua\",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"}}");
    ml_loop_poll(world->loop);
    fake_reply(expect_write(world, "\"finalizers\":[\"a/b\",\"c/d\"]"), 200, "{}");
}

/* ---- nobody is left who finalizes ---- */

static void test_finalizer_goes_with_a_version_that_does_not_finalize(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = finalizing("one", "", "return { requeue_after = 5 }");
    ML_AUTO_FREE char *two = finalizing("one", "return { status = { phase = 'TWO' } }", NULL);
    tell(world, one, NULL);
    change(world, 11, "X", CARRIES);
    tell(world, two, NULL);
    answer_changed(world, expect_write(world, "\"finalizers\":[\"a/b\",\"c/d\"]"), 12,
                   ",\"finalizers\":[\"a/b\",\"c/d\"]");
    struct fake_call *status = expect_write(world, "\"phase\":\"TWO\""); /* it is reconciled, too */
    assert_non_null(strstr(status->body, "\"resourceVersion\":\"12\""));
    fake_reply(status, 200, "{}");
}

static void test_finalizer_of_what_is_going_goes_with_a_version_that_does_not_finalize(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = finalizing("one", "", "return { requeue_after = 5 }");
    ML_AUTO_FREE char *two = finalizing("one", "return { status = { phase = 'TWO' } }", NULL);
    tell(world, one, NULL);
    change(world, 11, "X", CARRIES GOING);
    tell(world, two, NULL);
    answer_changed(world, expect_write(world, "\"finalizers\":[\"a/b\",\"c/d\"]"), 12,
                   ",\"finalizers\":[\"a/b\",\"c/d\"]" GOING);
    expect_no_write(world);
}

static void test_finalizer_of_another_controller_is_left_alone(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = finalizing("on", "", NULL);
    tell(world, one, NULL);
    change(world, 11, "X", CARRIES);
    change(world, 12, "X", CARRIES GOING);
    expect_no_write(world);
}

static void set_removed(struct world *world, const char *names)
{
    free(world->source.removed);
    world->source.removed = names ? ml_strdup(names) : NULL;
}

static void test_controller_that_is_removed_takes_its_finalizers_off_and_ends(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = finalizing("one", "return { status = { phase = 'ONE' } }",
                                        "error 'not this'");
    tell(world, one, NULL);
    answer_changed(world, expect_write(world, OURS), 11, CARRIES);
    for (int i = 0; i < 2; i++) { /* the second run is that of the echo */
        fake_refuse(expect_write(world, "\"status\":{\"phase\""), 500, "InternalError", "etcd");
        ml_loop_poll(world->loop);
    }
    set_removed(world, "other, one");
    tell(world, one, NULL);
    advance(world, ML_NS_PER_S);
    fake_refuse(expect_write(world, "\"finalizers\":[\"a/b\",\"c/d\"]"), 500, "InternalError",
                "etcd");
    change(world, 12, "X", CARRIES); /* and is not reconciled any more */
    advance(world, ML_NS_PER_S);
    assert_null(strstr(world->reported, "ControllerRemoved"));
    answer_changed(world, expect_write(world, "\"finalizers\":[\"a/b\",\"c/d\"]"), 13,
                   ",\"finalizers\":[\"a/b\",\"c/d\"]");
    advance(world, ML_NS_PER_S);
    assert_string_equal(world->reported,
                        "Normal ControllerRemoved: a.lua: controller one is removed; " OURS
                        " was taken off 1 objects; what stays: 1 objects of Thing, and the objects "
                        "that they own");
    assert_true(world->watch->canceled); /* nobody needs it any more */
    advance(world, 3600 * ML_NS_PER_S);
    expect_no_write(world);
    assert_true(ready(world));
    tell(world, one, NULL); /* it stays removed */
    advance(world, ML_NS_PER_S);
    expect_no_write(world);
    set_removed(world, NULL);
    tell(world, one, NULL); /* and comes back when it is wanted again */
    answer_changed(world, expect_write(world, OURS), 15, CARRIES);
    fake_reply(expect_write(world, "\"status\":"), 200, "{}");
}

/* As after a restart between the annotation and the end. */
static void test_controller_that_is_to_be_removed_at_the_start_reconciles_nothing(void **state)
{
    struct world *world = *state;
    world->things = "{\"kind\":\"ThingList\",\"apiVersion\":\"test.dev/v1\",\"metadata\":"
                    "{\"resourceVersion\":\"10\"},\"items\":[{\"metadata\":{\"name\":\"a\","
                    "\"namespace\":\"d\",\"uid\":\"ua\",\"resourceVersion\":\"1\"" CARRIES "}}]}";
    ML_AUTO_FREE char *one = finalizing("one", "return { status = { phase = 'ONE' } }", "");
    set_removed(world, "one");
    tell(world, one, NULL);
    advance(world, ML_NS_PER_S);
    answer_changed(world, expect_write(world, "\"finalizers\":[\"a/b\",\"c/d\"]"), 13,
                   ",\"finalizers\":[\"a/b\",\"c/d\"]");
    advance(world, ML_NS_PER_S);
    assert_non_null(strstr(world->reported, "ControllerRemoved"));
    expect_no_write(world);
}

/* A reconcile that was under way may add its finalizer after the removal began. */
static void test_controller_that_is_removed_waits_for_what_it_has_begun(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = finalizing("one", "return { status = { phase = 'ONE' } }", "");
    tell(world, one, NULL);
    struct fake_call *add = expect_write(world, OURS);
    set_removed(world, "one");
    tell(world, one, NULL);
    advance(world, ML_NS_PER_S);
    fake_reply(add, 200, "{\"metadata\":{\"uid\":\"ua\",\"resourceVersion\":\"11\"}}");
    ml_loop_poll(world->loop);
    fake_reply(expect_write(world, "\"phase\":\"ONE\""), 200,
               "{\"metadata\":{\"uid\":\"ua\",\"resourceVersion\":\"12\"}}");
    advance(world, ML_NS_PER_S); /* the cache shows none of it yet */
    assert_null(strstr(world->reported, "ControllerRemoved"));
    change(world, 12, "X", ",\"finalizers\":[\"" OURS "\"]");
    advance(world, ML_NS_PER_S);
    answer_changed(world, expect_write(world, "\"finalizers\":[]"), 13, "");
    advance(world, ML_NS_PER_S);
    assert_non_null(strstr(world->reported, "ControllerRemoved"));
}

/* The other replica does it; this one ends when that is done. */
static void test_controller_that_is_removed_from_a_standby_waits_for_the_leader(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = finalizing("one", "", "");
    world->services.standby = true;
    tell(world, one, NULL);
    change(world, 11, "X", CARRIES);
    set_removed(world, "one");
    tell(world, one, NULL);
    advance(world, ML_NS_PER_S);
    expect_no_write(world);
    assert_null(strstr(world->reported, "ControllerRemoved"));
    change(world, 12, "X", ",\"finalizers\":[\"a/b\"]");
    advance(world, ML_NS_PER_S);
    assert_non_null(strstr(world->reported, OURS " was taken off 0 objects"));
}

/* A leader that was removing it died. */
static void test_controller_that_is_removed_goes_on_when_this_replica_leads(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = finalizing("one", "", "return { requeue_after = 5 }");
    world->services.standby = true;
    tell(world, one, NULL);
    change(world, 11, "X", CARRIES GOING);
    set_removed(world, "one");
    tell(world, one, NULL);
    advance(world, ML_NS_PER_S);
    expect_no_write(world);
    world->services.standby = false;
    resync(world);
    ml_loop_poll(world->loop);
    answer_changed(world, expect_write(world, "\"finalizers\":[\"a/b\",\"c/d\"]"), 12, GOING);
    advance(world, ML_NS_PER_S);
    assert_non_null(strstr(world->reported, OURS " was taken off 1 objects"));
}

static void test_finalize_is_for_the_replica_that_leads(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = finalizing("one", "", "");
    world->services.standby = true;
    tell(world, one, NULL);
    change(world, 11, "X", CARRIES GOING);
    advance(world, ML_NS_PER_S);
    expect_no_write(world);
    world->services.standby = false;
    resync(world);
    ml_loop_poll(world->loop);
    fake_reply(expect_write(world, "\"finalizers\":[\"a/b\",\"c/d\"]"), 200, "{}");
}

static void test_controller_that_is_not_here_cannot_be_removed(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = finalizing("one", "", NULL);
    set_removed(world, "two");
    tell(world, one, NULL);
    tell(world, one, NULL);
    assert_live(world, "one");
    assert_int_equal(unit_count(world->log.fd, "no such controller to remove"), 1);
    assert_int_equal(unit_count(world->log.fd, "no script here has the controller 'two'"), 1);
}

static void test_controller_whose_file_is_gone_is_removed_where_that_is_wanted(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = finalizing("one", "", "");
    ML_AUTO_FREE char *two = finalizing("two", "", NULL);
    world->source.removes_missing = true;
    tell(world, one, two);
    change(world, 11, "X", CARRIES);
    tell(world, NULL, two);
    advance(world, ML_NS_PER_S / 2);
    tell(world, one, two); /* an editor put it back */
    advance(world, 5 * ML_NS_PER_S);
    expect_no_write(world);
    tell(world, NULL, two);
    advance(world, 2 * ML_NS_PER_S);
    advance(world, ML_NS_PER_S);
    answer_changed(world, expect_write(world, "\"finalizers\":[\"a/b\",\"c/d\"]"), 12, "");
    advance(world, ML_NS_PER_S);
    assert_non_null(strstr(world->reported, "ControllerRemoved: a.lua: controller one is removed"));
    assert_true(ready(world));
    expect_no_write(world);
}

static void test_controller_that_gets_another_name_takes_its_finalizers_off(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = finalizing("one", "", "");
    ML_AUTO_FREE char *two = finalizing("two", "", "");
    tell(world, one, NULL);
    change(world, 11, "X", CARRIES);
    tell(world, two, NULL);
    advance(world, ML_NS_PER_S);
    struct fake_call *remove = expect_write(world, "\"finalizers\":[\"a/b\",\"c/d\"]");
    tell(world, one, NULL); /* its finalizers would be taken off as well */
    assert_non_null(strstr(world->reported, "controller one is being removed"));
    answer_changed(world, remove, 12, "");
    advance(world, ML_NS_PER_S);
    assert_non_null(strstr(world->reported, "ControllerRemoved: a.lua: controller one is removed"));
    tell(world, one, NULL);
    assert_non_null(strstr(world->reported, "controller one runs the new version"));
    expect_no_write(world);
}

/* The object always has a finalizer, and each controller leaves those of the other one. */
static void test_controller_that_says_its_former_name_takes_its_finalizers_over(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = finalizing("one", "", "");
    ML_AUTO_FREE char *two = finalizing(
        "two", "", "end, formerly = { 'zero', 'one' }, when = function() return true");
    tell(world, one, NULL);
    change(world, 11, "X", CARRIES);
    tell(world, two, NULL);
    struct fake_call *write = expect_write(world,
                                           "\"finalizers\":[\"a/b\",\"c/d\",\"moonloop.dev/two\"]");
    answer_changed(world, write, 12, ",\"finalizers\":[\"a/b\",\"c/d\",\"moonloop.dev/two\"]");
    advance(world, 10 * ML_NS_PER_S);
    expect_no_write(world);
    change(world, 13, "X", CARRIES GOING); /* one that was deleted before */
    fake_reply(expect_write(world, "\"finalizers\":[\"a/b\",\"c/d\"]"), 200, "{}");
}

static void test_controller_that_says_its_former_name_keeps_its_kind(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = finalizing("one", "", "");
    static const char *const other = "local m = require 'moonloop'\n"
                                     "return m.controller {\n"
                                     "  name = 'two', formerly = { 'one' },\n"
                                     "  reconciles = m.kind('test.dev/v1', 'Part'),\n"
                                     "  reconcile = function() end,\n"
                                     "}\n";
    tell(world, one, NULL);
    tell(world, other, NULL);
    assert_non_null(strstr(world->reported, "reconciles Part now, and objects of Thing carry its "
                                            "finalizer " OURS));
}

static void test_controller_that_was_another_is_refused_while_that_runs(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = finalizing("one", "", "");
    ML_AUTO_FREE char *two = finalizing("two", "",
                                        "end, formerly = { 'one' }, when = function() return true");
    tell(world, one, two);
    assert_int_equal(unit_count(world->log.fd, "of a.lua would be one, and both are loaded"), 1);
    tell(world, two, NULL);
    assert_live(world, "two");
}

static void test_controller_that_finalizes_keeps_its_kind(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = finalizing("one", "", "");
    static const char *const other = "local m = require 'moonloop'\n"
                                     "return m.controller {\n"
                                     "  name = 'one', reconciles = m.kind('test.dev/v1', 'Part'),\n"
                                     "  reconcile = function() end,\n"
                                     "}\n";
    tell(world, one, NULL);
    tell(world, other, NULL);
    assert_string_equal(world->reported,
                        "Warning ScriptRefused: a.lua: controller one reconciles Part now, and "
                        "objects of Thing carry its finalizer " OURS
                        "; give the controller of Part another name");
}

/* It is removed while the one that is to take over waits for its kind. */
static void test_controller_that_is_removed_need_not_wait_for_its_successor(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = finalizing("one", "", "");
    static const char *const two = "local m = require 'moonloop'\n"
                                   "return m.controller {\n"
                                   "  name = 'two', reconciles = m.kind('test.dev/v1', 'Part'),\n"
                                   "  reconcile = function() end,\n"
                                   "}\n";
    tell(world, one, NULL);
    change(world, 11, "X", CARRIES);
    tell(world, two, NULL);
    set_removed(world, "one");
    tell(world, two, NULL);
    advance(world, ML_NS_PER_S);
    answer_changed(world, expect_write(world, "\"finalizers\":[\"a/b\",\"c/d\"]"), 12, "");
    advance(world, ML_NS_PER_S);
    assert_non_null(strstr(world->reported, "controller one is removed"));
    reply_no_parts(world);
    assert_live(world, "two");
    assert_true(ready(world));
    world->source.removes_missing = true;
    tell(world, NULL, one);
    advance(world, 2 * ML_NS_PER_S);
    advance(world, ML_NS_PER_S);
    assert_true(ready(world));
    expect_no_write(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPTS_TEST(test_finalizer_comes_before_the_first_status),
        SCRIPTS_TEST(test_controller_that_says_its_former_name_takes_its_finalizers_over),
        SCRIPTS_TEST(test_controller_that_says_its_former_name_keeps_its_kind),
        SCRIPTS_TEST(test_controller_that_was_another_is_refused_while_that_runs),
        SCRIPTS_TEST(test_finalizer_is_not_added_where_nothing_is_written),
        SCRIPTS_TEST(test_finalizer_that_is_not_added_lets_no_status_be_written),
        SCRIPTS_TEST(test_finalize_is_called_and_the_finalizer_goes),
        SCRIPTS_TEST(test_finalize_is_not_called_again_for_an_object_that_went_with_its_finalizer),
        SCRIPTS_TEST(test_finalize_that_is_not_done_keeps_the_object),
        SCRIPTS_TEST(test_finalize_that_names_no_time_is_called_after_a_minute),
        SCRIPTS_TEST(test_finalize_that_raises_keeps_the_object_until_an_edit),
        SCRIPTS_TEST(test_finalize_that_gives_up_waits_for_a_change),
        SCRIPTS_TEST(test_finalizer_that_met_another_version_is_removed_from_the_next),
        SCRIPTS_TEST(test_finalize_is_called_when_a_child_went),
        SCRIPTS_TEST(test_finalizer_goes_with_a_version_that_does_not_finalize),
        SCRIPTS_TEST(test_finalizer_of_what_is_going_goes_with_a_version_that_does_not_finalize),
        SCRIPTS_TEST(test_finalizer_of_another_controller_is_left_alone),
        SCRIPTS_TEST(test_controller_that_is_removed_takes_its_finalizers_off_and_ends),
        SCRIPTS_TEST(test_controller_that_is_to_be_removed_at_the_start_reconciles_nothing),
        SCRIPTS_TEST(test_controller_that_is_removed_waits_for_what_it_has_begun),
        SCRIPTS_TEST(test_controller_that_is_removed_from_a_standby_waits_for_the_leader),
        SCRIPTS_TEST(test_controller_that_is_removed_goes_on_when_this_replica_leads),
        SCRIPTS_TEST(test_finalize_is_for_the_replica_that_leads),
        SCRIPTS_TEST(test_controller_that_is_not_here_cannot_be_removed),
        SCRIPTS_TEST(test_controller_whose_file_is_gone_is_removed_where_that_is_wanted),
        SCRIPTS_TEST(test_controller_that_gets_another_name_takes_its_finalizers_off),
        SCRIPTS_TEST(test_controller_that_finalizes_keeps_its_kind),
        SCRIPTS_TEST(test_controller_that_is_removed_need_not_wait_for_its_successor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
