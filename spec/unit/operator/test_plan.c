/* Plans, on a scripted API server: what they say, and that they write nothing. */
#include "run_scripts.h"

#include "operator/plan.h"

struct planned {
    struct world *world;
    struct ml_plan *plan;
    bool over;
    struct ml_buf said;
};

static void on_done(void *context)
{
    ((struct planned *)context)->over = true;
}

static void files_of(const char *text, struct ml_files *out)
{
    struct ml_err err = ML_ERR_INIT;
    *out = ML_FILES_INIT;
    assert_int_equal(ml_files_add(out, &ml_files_scripts, ML_STR("a.lua"), ml_str_of(text), &err),
                     0);
    out->only = ml_strdup("a.lua");
}

static struct ml_outbound_call *send_nothing(struct ml_outbound *outbound,
                                             const struct ml_outbound_request *request,
                                             ml_outbound_done *done, void *context)
{
    (void)outbound, (void)done, (void)context;
    fail_msg("%s was asked", request->url);
    return NULL;
}

static bool allow(struct ml_outbound *outbound, const char *origin)
{
    (void)outbound, (void)origin;
    return true;
}

static void begin(struct world *world, struct planned *planned, const char *text, const char *runs,
                  size_t objects_max)
{
    static struct ml_outbound outbound = {.allows = allow, .send = send_nothing};
    ML_AUTO(ml_files_fini) struct ml_files files, running = ML_FILES_INIT;
    struct ml_err err = ML_ERR_INIT;
    files_of(text, &files);
    if (runs)
        files_of(runs, &running);
    world->services.outbound = &outbound;
    *planned = (struct planned){.world = world};
    const struct ml_plan_opts opts = {
        .services = &world->services,
        .files = &files,
        .runs = runs ? &running : NULL,
        .objects_max = objects_max,
        .done = on_done,
        .context = planned,
    };
    if (ml_plan_new(&opts, &planned->plan, &err) < 0)
        fail_msg("%s", err.message);
    ml_loop_poll(world->loop);
}

static void say_field(void *context, struct ml_str field, struct ml_str from, struct ml_str to)
{
    ml_buf_printf(context, " " ML_STR_FMT ":" ML_STR_FMT ">" ML_STR_FMT, ML_STR_ARG(field),
                  ML_STR_ARG(from), ML_STR_ARG(to));
}

static void say_changes(struct planned *planned)
{
    static const char *const verbs[] = {"create", "change", "delete"};
    struct ml_plan_change change;
    size_t cursor = 0;
    while (ml_plan_next_change(planned->plan, &cursor, &change)) {
        ml_buf_printf(&planned->said, "%s %s " ML_STR_FMT " for %s", verbs[change.verb],
                      change.kind->kind, ML_STR_ARG(change.key), change.by);
        if (change.verb == ML_PLAN_CHANGE)
            ml_plan_differences(&change, say_field, &planned->said);
        if (change.why)
            ml_buf_printf(&planned->said, ": %s", change.why);
        ml_buf_putc(&planned->said, '\n');
    }
}

static void say_rest(struct planned *planned)
{
    static const char *const names[] = {"fails", "unknown", "endless"};
    struct ml_plan_note note;
    size_t cursor = 0;
    for (enum ml_plan_notes which = 0; which < ML_PLAN_NOTES; which++)
        for (size_t i = 0; ml_plan_note(planned->plan, which, i, &note); i++)
            ml_buf_printf(&planned->said, "%s %s: %s\n", names[which], note.key, note.text);
    for (const struct ml_mirrored_event *event;
         (event = ml_plan_next_event(planned->plan, &cursor));)
        ml_buf_printf(&planned->said, "event %s %zu %s: %s\n", event->id, event->count,
                      event->about, event->note);
}

/* The plan has ended, has written nothing, and says this. */
static void expect(struct planned *planned, const char *said)
{
    assert_true(planned->over);
    say_changes(planned);
    say_rest(planned);
    if (strcmp(ml_buf_cstr(&planned->said), said) != 0)
        fail_msg("%s\nis not\n%s", ml_buf_cstr(&planned->said), said);
    assert_int_equal(planned->world->write_count, 0);
    ml_plan_free(ml_take(&planned->plan));
    ml_buf_fini(&planned->said);
    ml_loop_poll(planned->world->loop);
    assert_int_equal(planned->world->write_count, 0);
}

static void check(struct world *world, const char *text, const char *runs, const char *said)
{
    struct planned planned;
    begin(world, &planned, text, runs, 0);
    expect(&planned, said);
}

static const char *const owns =
    "local m = require 'moonloop'\n"
    "local Part = m.kind('test.dev/v1', 'Part')\n"
    "return m.controller {\n"
    "  name = 'one', reconciles = m.kind('test.dev/v1', 'Thing'), owns = { Part },\n"
    "  reconcile = function(thing, ctx)\n%s\n  end,\n}\n";

/* The cache has these parts; JSON of the list's items. */
static void check_parts(struct world *world, const char *body, const char *runs, const char *items,
                        const char *said)
{
    ML_AUTO_FREE char *list = ml_asprintf(
        "{\"kind\":\"PartList\",\"apiVersion\":\"test.dev/v1\",\"metadata\":"
        "{\"resourceVersion\":\"10\"},\"items\":[%s]}",
        items);
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT, running = ML_BUF_INIT;
    struct planned planned;
    ml_buf_printf(&text, owns, body);
    if (runs)
        ml_buf_printf(&running, owns, runs);
    begin(world, &planned, ml_buf_cstr(&text), runs ? ml_buf_cstr(&running) : NULL, 0);
    fake_reply(world->parts, 200, list);
    ml_loop_poll(world->loop);
    expect(&planned, said);
}

#define OUR_PART(name, more)                                                                       \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"d\",\"uid\":\"u-" name                   \
    "\",\"resourceVersion\":\"5\",\"ownerReferences\":[{\"apiVersion\":\"test.dev/v1\",\"kind\":"  \
    "\"Thing\",\"name\":\"a\",\"uid\":\"ua\",\"controller\":true,\"blockOwnerDeletion\":true}]"    \
    "}" more "}"

/* ---- changes ---- */

static void test_status_is_a_change(void **state)
{
    ML_AUTO_FREE char *text = script("one", "return { status = { phase = 'UP' } }");
    check(*state, text, NULL, "change Thing d/a for d/a status:>{\"phase\":\"UP\"}\n");
}

static void test_script_that_does_nothing_changes_nothing(void **state)
{
    ML_AUTO_FREE char *text = script("one", "");
    check(*state, text, NULL, "");
}

static void test_objects_are_made_once_and_seen_by_the_run(void **state)
{
    check_parts(*state,
                "ctx.ensure { apiVersion = 'test.dev/v1', kind = 'Part', metadata = { name = 'p' },"
                " spec = { size = 1 } }\n"
                "return { status = { parts = #ctx.list(Part) } }",
                NULL, "",
                "create Part d/p for d/a\n"
                "change Thing d/a for d/a status:>{\"parts\":1}\n");
}

static void test_child_that_is_returned_no_longer_is_deleted(void **state)
{
    check_parts(*state, "return { children = {} }", NULL, OUR_PART("p", ""),
                "delete Part d/p for d/a: no longer returned by a.lua:5\n");
}

#define CHILD(fields)                                                                              \
    "return { children = { { apiVersion = 'test.dev/v1', kind = 'Part', metadata = { name = 'p' }" \
    ", spec = { " fields " } } } }"

static void test_apply_changes_the_fields_that_differ(void **state)
{
    check_parts(*state, CHILD("size = 2"), NULL,
                OUR_PART("p", ",\"spec\":{\"size\":1,\"default\":true}"),
                "change Part d/p for d/a spec.size:1>2\n");
}

static void test_apply_of_what_is_there_changes_nothing(void **state)
{
    check_parts(*state, CHILD("size = 1"), NULL,
                OUR_PART("p", ",\"spec\":{\"size\":1,\"default\":true}"), "");
}

static void test_field_that_the_running_revision_applies_goes(void **state)
{
    check_parts(*state, CHILD("color = 'red'"), CHILD("size = 1, color = 'red'"),
                OUR_PART("p", ",\"spec\":{\"size\":1,\"color\":\"red\",\"default\":true}"),
                "change Part d/p for d/a spec.size:1>\n");
}

static void test_what_the_running_revision_does_as_well_does_not_count(void **state)
{
    check_parts(*state, "return { children = {} }", "return { children = {} }", OUR_PART("p", ""),
                "");
}

static void test_patch_and_delete_take_effect_in_the_run(void **state)
{
    check_parts(*state,
                "local part = ctx.get(Part, 'p')\n"
                "if not part then return end\n"
                "ctx.patch(part, { spec = { size = 3 } })\n"
                "part = ctx.get(Part, 'p')\n"
                "ctx.delete(part)\n"
                "return { status = { size = part.spec.size, gone = ctx.get(Part, 'p') == nil } }",
                NULL, OUR_PART("p", ",\"spec\":{\"size\":1}"),
                "delete Part d/p for d/a: ctx.delete at a.lua:10\n"
                "change Thing d/a for d/a status:>{\"gone\":true,\"size\":3}\n");
}

static void test_object_that_is_made_again_is_another_one(void **state)
{
    check_parts(*state,
                "local step = thing.status.step or 0\n"
                "if step == 3 then assert(ctx.get(Part, 'p'), 'it is gone') return end\n"
                "if step == 1 then\n"
                "  ctx.patch(ctx.get(Part, 'p'), { spec = { size = 1 } })\n"
                "  ctx.delete(ctx.get(Part, 'p'))\n"
                "else ctx.ensure { apiVersion = 'test.dev/v1', kind = 'Part', metadata = { name = "
                "'p' } } end\n"
                "return { status = { step = step + 1 } }",
                NULL, "",
                "create Part d/p for d/a\n"
                "change Thing d/a for d/a status:>{\"step\":3}\n");
}

/* ---- what goes wrong ---- */

static void test_failure_names_the_line(void **state)
{
    ML_AUTO_FREE char *text = script("one", "error('broken')");
    check(*state, text, NULL,
          "change Thing d/a for d/a status:>{\"conditions\":[{\"type\":\"Reconciled\","
          "\"status\":\"False\",\"reason\":\"ReconcileFailed\",\"message\":\"one: a.lua:4: "
          "broken\",\"observedGeneration\":0,\"lastTransitionTime\":\"2023-11-14T22:13:20Z\"}]}\n"
          "fails d/a: a.lua:4: broken\n"
          "event Warning ReconcileFailed 1 Thing d/a: a.lua:4: broken\n");
}

static void test_failure_of_the_running_revision_as_well_does_not_count(void **state)
{
    ML_AUTO_FREE char *text = script("one", "error('broken')");
    struct planned planned;
    struct ml_plan_note note;
    begin(*state, &planned, text, text, 0);
    assert_true(planned.over);
    assert_false(ml_plan_note(planned.plan, ML_PLAN_FAILS, 0, &note));
    ml_plan_free(planned.plan);
}

static void test_http_is_not_asked_and_ends_the_run(void **state)
{
    check(*state,
          "local m = require 'moonloop'\n"
          "return m.controller {\n"
          "  name = 'one', reconciles = m.kind('test.dev/v1', 'Thing'),\n"
          "  http = { 'https://billing.example.com' },\n"
          "  reconcile = function(thing, ctx)\n"
          "    ctx.http { method = 'POST', url = 'https://billing.example.com/pay' }\n"
          "    return { status = { paid = true } }\n"
          "  end,\n}\n",
          NULL, "unknown d/a: POST https://billing.example.com/pay: a plan asks no other server\n");
}

static void test_writes_without_end_are_told(void **state)
{
    ML_AUTO_FREE char *text = script(
        "one", "return { status = { count = (thing.status.count or 0) + 1 } }");
    check(*state, text, NULL,
          "change Thing d/a for d/a status:>{\"count\":4}\nendless d/a: run 4 still writes\n");
}

static void test_running_revision_that_writes_without_end_is_not_blamed_on_the_new_one(void **state)
{
    ML_AUTO_FREE char *text = script(
        "one", "return { status = { count = (thing.status.count or 0) + 1 } }");
    check(*state, text, text, "");
}

static void test_script_that_cannot_be_loaded_is_an_error(void **state)
{
    struct world *world = *state;
    ML_AUTO(ml_files_fini) struct ml_files files;
    struct ml_plan *plan = NULL;
    struct ml_err err = ML_ERR_INIT;
    files_of("return 1 +", &files);
    const struct ml_plan_opts opts = {
        .services = &world->services, .files = &files, .done = on_done};
    assert_int_equal(ml_plan_new(&opts, &plan, &err), ML_ESCRIPT);
    assert_null(plan);
    assert_non_null(strstr(err.message, "a.lua:1:"));
}

/* ---- what is read ---- */

static const char *const uses =
    "local m = require 'moonloop'\n"
    "local Part = m.kind('test.dev/v1', 'Part')\n"
    "return m.controller {\n"
    "  name = 'one', reconciles = m.kind('test.dev/v1', 'Thing'), uses = { Part },\n"
    "  reconcile = function(thing, ctx)\n"
    "    local part = ctx.get(Part, 'p')\n"
    "    ctx.patch(part, { spec = { size = 2 } })\n"
    "    return { status = { size = ctx.get(Part, 'p').spec.size } }\n"
    "  end,\n}\n";

static void test_kind_that_is_not_cached_is_read_from_the_server(void **state)
{
    struct world *world = *state;
    struct planned planned;
    begin(world, &planned, uses, NULL, 0);
    for (int i = 0; i < 2; i++) { /* ctx.get, and what the patch is merged over */
        assert_false(planned.over);
        assert_string_equal(world->parts->method, "GET");
        assert_string_equal(world->parts->path, "/apis/test.dev/v1/namespaces/d/parts/p");
        fake_reply(world->parts, 200,
                   "{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Part\",\"metadata\":{\"name\":\"p\","
                   "\"namespace\":\"d\",\"uid\":\"up\",\"resourceVersion\":\"5\"},"
                   "\"spec\":{\"size\":1}}");
        ml_loop_poll(world->loop);
    }
    expect(&planned, "change Part d/p for d/a spec.size:1>2\n"
                     "change Thing d/a for d/a status:>{\"size\":2}\n");
}

static void test_plan_can_be_freed_while_the_server_is_asked(void **state)
{
    struct world *world = *state;
    struct planned planned;
    begin(world, &planned, uses, NULL, 0);
    assert_false(planned.over);
    ml_plan_free(planned.plan);
    assert_true(world->parts->canceled);
}

static void test_sample_is_the_same_each_time(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *things = many_things();
    ML_AUTO_FREE char *text = script("one", "return { status = { phase = 'UP' } }");
    struct ml_buf first = ML_BUF_INIT;
    world->things = things;
    for (int i = 0; i < 2; i++) {
        struct planned planned;
        size_t tried, lines = 0;
        begin(world, &planned, text, NULL, 20);
        assert_true(planned.over);
        assert_int_equal(ml_plan_objects(planned.plan, &tried), 100);
        assert_int_equal(tried, 20);
        say_changes(&planned);
        for (const char *at = ml_buf_cstr(&planned.said); (at = strchr(at, '\n')); at++)
            lines++;
        assert_int_equal(lines, 20);
        if (i == 0)
            first = planned.said;
        else
            assert_string_equal(ml_buf_cstr(&planned.said), ml_buf_cstr(&first));
        ml_plan_free(planned.plan);
        if (i == 1)
            ml_buf_fini(&planned.said);
    }
    ml_buf_fini(&first);
}

static void test_running_controller_sees_nothing_of_a_plan(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *runs = script("one", "return { status = { phase = 'UP' } }");
    ML_AUTO_FREE char *next = script("one", "return { status = { phase = 'DOWN' } }");
    tell(world, runs, NULL);
    accept(world, only_write(world), 20, "UP");
    check(world, next, runs, "change Thing d/a for d/a status.phase:\"UP\">\"DOWN\"\n");
    resync(world);
    ml_loop_poll(world->loop);
    assert_int_equal(world->write_count, 0); /* the cache shows UP, as before */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPTS_TEST(test_status_is_a_change),
        SCRIPTS_TEST(test_script_that_does_nothing_changes_nothing),
        SCRIPTS_TEST(test_objects_are_made_once_and_seen_by_the_run),
        SCRIPTS_TEST(test_child_that_is_returned_no_longer_is_deleted),
        SCRIPTS_TEST(test_apply_changes_the_fields_that_differ),
        SCRIPTS_TEST(test_apply_of_what_is_there_changes_nothing),
        SCRIPTS_TEST(test_field_that_the_running_revision_applies_goes),
        SCRIPTS_TEST(test_what_the_running_revision_does_as_well_does_not_count),
        SCRIPTS_TEST(test_patch_and_delete_take_effect_in_the_run),
        SCRIPTS_TEST(test_object_that_is_made_again_is_another_one),
        SCRIPTS_TEST(test_failure_names_the_line),
        SCRIPTS_TEST(test_failure_of_the_running_revision_as_well_does_not_count),
        SCRIPTS_TEST(test_http_is_not_asked_and_ends_the_run),
        SCRIPTS_TEST(test_writes_without_end_are_told),
        SCRIPTS_TEST(test_running_revision_that_writes_without_end_is_not_blamed_on_the_new_one),
        SCRIPTS_TEST(test_script_that_cannot_be_loaded_is_an_error),
        SCRIPTS_TEST(test_kind_that_is_not_cached_is_read_from_the_server),
        SCRIPTS_TEST(test_plan_can_be_freed_while_the_server_is_asked),
        SCRIPTS_TEST(test_sample_is_the_same_each_time),
        SCRIPTS_TEST(test_running_controller_sees_nothing_of_a_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
