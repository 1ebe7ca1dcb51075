/* Older versions in place of the newest one: when a process starts with a bad source, and when the
 * source names a revision. On a scripted API server and a fake clock. */
#include "fake_tester.h"
#include "kept_revisions.h"
#include "run_scripts.h"

struct rollback_world {
    struct world *world;
    struct fake_call *list;  /* of the kept revisions, which the test answers */
    struct fake_call *watch; /* of them */
    struct fake_call *write; /* to them */
};

static struct rollback_world kept; /* one at a time */

static void answer_kept(void *context, struct fake_call *call)
{
    struct world *world = context;
    bool is_kept = strstr(call->path, "/configmaps") != NULL;
    if (!is_kept)
        answer(world, call);
    else if (strcmp(call->method, "GET") != 0)
        kept.write = call;
    else if (strstr(call->path, "watch=1"))
        fake_head(kept.watch = call, 200);
    else if (strstr(call->path, "?"))
        kept.list = call;
    else
        fake_refuse(call, 404, "NotFound", "the source is not served here");
}

static int set_up_kept(void **state)
{
    struct world *world = world_open(false);
    kept = (struct rollback_world){.world = world};
    world->source.ns = ML_STR("d");
    world->source.configmap = ML_STR("scripts");
    fake_set_handler(world->server, answer_kept, world);
    ml_scripts_start(world->scripts);
    ml_loop_poll(world->loop);
    *state = world;
    return 0;
}

/* Answers a write to the kept revisions as a server that keeps nothing. */
static void accept_kept(struct world *world)
{
    while (kept.write) {
        fake_reply(ml_take(&kept.write), 200, "{}");
        ml_loop_poll(world->loop);
    }
}

static int tear_down_kept(void **state)
{
    accept_kept(*state);
    return tear_down(state);
}

/* These texts of a.lua are kept, the last one as the newest. */
static void answer_list(struct world *world, const char *const *texts, size_t count)
{
    ML_AUTO(ml_buf_fini) struct ml_buf object = ML_BUF_INIT;
    struct ml_json_writer writer = kept_begin(&object, 50, true);
    for (size_t i = 0; i < count; i++)
        kept_put(&writer, "one", revision_of("a.lua", texts[i]), (int)i, "a.lua", texts[i]);
    kept_end(&writer);
    ML_AUTO_FREE char *list = kept_list(&object);
    assert_non_null(kept.list);
    fake_reply(ml_take(&kept.list), 200, list);
    ml_loop_poll(world->loop);
    assert_non_null(kept.watch);
}

/* Sets the annotation: in place of the revision of `instead` runs that of `text`. */
static void roll_back(struct world *world, const char *text, const char *instead)
{
    free(world->source.rollback);
    world->source.rollback = ml_asprintf("one: %s instead of %s", revision_of("a.lua", text),
                                         revision_of("a.lua", instead));
}

static double gauge(struct world *world, const char *name)
{
    ML_AUTO(ml_buf_fini) struct ml_buf page = ML_BUF_INIT;
    ML_AUTO_FREE char *line = ml_asprintf("\n%s{file=\"a.lua\"} ", name);
    ml_metrics_write(world->metrics, &page);
    const char *at = strstr(ml_buf_cstr(&page), line);
    assert_non_null(at);
    return strtod(at + strlen(line), NULL);
}

static void assert_gauges(struct world *world, int refused, int drifted)
{
    assert_int_equal(gauge(world, "moonloop_script_refused"), refused);
    assert_int_equal(gauge(world, "moonloop_script_drifted"), drifted);
}

static void assert_reported(const struct world *world, const char *start)
{
    if (strncmp(world->reported, start, strlen(start)) != 0)
        fail_msg("%s", world->reported);
}

/* The version with that phase runs: it answers a change of the object. */
static void assert_runs(struct world *world, const char *phase)
{
    static int version = 1000;
    accept_all(world);
    accept_kept(world);
    change(world, version++, "X", "");
    struct fake_call *write = only_write(world);
    ML_AUTO_FREE char *status = ml_asprintf("\"phase\":\"%s\"", phase);
    if (!strstr(write->body, status))
        fail_msg("%s, not %s", write->body, phase);
    accept(world, write, version++, phase);
    accept_all(world);
}

/* The line of /readyz?verbose for a.lua, behind "[+]a.lua ok: controller one runs revision ". */
static void assert_listed(struct world *world, const char *text, const char *more)
{
    ML_AUTO(ml_buf_fini) struct ml_buf list = ML_BUF_INIT;
    ML_AUTO_FREE char *want = ml_asprintf(
        "[+]test ok\n[+]a.lua ok: controller one runs revision %s%s\n", revision_of("a.lua", text),
        more);
    ml_scripts_list_ready(world->scripts, &list);
    assert_string_equal(ml_buf_cstr(&list), want);
}

struct texts {
    char *one, *two, *three;
};

static struct texts make_texts(void)
{
    return (struct texts){script("one", "return { status = { phase = 'ONE' } }"),
                          script("one", "return { status = { phase = 'TWO' } }"),
                          script("one", "return { status = { phase = 'THREE' } }")};
}

static void texts_fini(struct texts *texts)
{
    free(texts->one);
    free(texts->two);
    free(texts->three);
}

#define BROKEN "return {\n  nonsense =\n"

/* ---- a start with a bad source ---- */

static void test_start_with_a_bad_source_runs_the_newest_kept(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_fini) struct texts texts = make_texts();
    answer_list(world, (const char *[]){texts.one, texts.two}, 2);
    tell(world, BROKEN, NULL);
    assert_int_equal(unit_count(world->log.fd, "the last good version keeps running"), 1);
    assert_runs(world, "TWO");
    assert_true(ready(world));
    assert_listed(world, texts.two, "; the newest version is refused");
    assert_gauges(world, 1, 1);
    tell(world, BROKEN, NULL); /* nothing new */
    assert_int_equal(unit_count(world->log.fd, "script refused"), 1);
    tell(world, texts.three, NULL);
    assert_runs(world, "THREE");
    assert_gauges(world, 0, 0);
}

static void test_start_that_learns_late_of_what_is_kept_runs_it_then(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_fini) struct texts texts = make_texts();
    tell(world, BROKEN, NULL);
    assert_false(ready(world));
    assert_gauges(world, 1, 1);
    answer_list(world, (const char *[]){texts.one, texts.two}, 2);
    assert_runs(world, "TWO");
    assert_true(ready(world));
    assert_gauges(world, 1, 1);
    assert_int_equal(unit_count(world->log.fd, "script refused"), 1);
}

static void test_start_passes_over_a_kept_version_that_is_broken(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_fini) struct texts texts = make_texts();
    answer_list(world, (const char *[]){texts.one, "error 'it is broken'"}, 2);
    tell(world, BROKEN, NULL);
    assert_runs(world, "ONE");
}

static void test_start_with_a_file_that_cannot_be_read_runs_the_newest_kept(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_fini) struct texts texts = make_texts();
    ML_AUTO_FREE char *huge = ml_zalloc(ML_SCRIPT_SOURCE_MAX + 2);
    memset(huge, '-', ML_SCRIPT_SOURCE_MAX + 1);
    answer_list(world, (const char *[]){texts.one, texts.two}, 2);
    tell(world, huge, NULL);
    assert_runs(world, "TWO");
    assert_gauges(world, 1, 1);
}

static void test_version_that_runs_is_not_replaced_when_an_edit_is_bad(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_fini) struct texts texts = make_texts();
    answer_list(world, (const char *[]){texts.one, texts.two}, 2);
    tell(world, texts.three, NULL);
    assert_runs(world, "THREE");
    tell(world, BROKEN, NULL);
    assert_runs(world, "THREE");
}

/* ---- a rollback ---- */

static void test_rollback_runs_the_older_version_until_the_next_edit(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_fini) struct texts texts = make_texts();
    answer_list(world, (const char *[]){texts.one}, 1);
    tell(world, texts.two, NULL);
    assert_runs(world, "TWO");
    assert_gauges(world, 0, 0);
    roll_back(world, texts.one, texts.two);
    tell(world, texts.two, NULL);
    ML_AUTO_FREE char *note = ml_asprintf(
        "Normal RolledBack: a.lua: controller one runs an older version, revision %s, as "
        "moonloop.dev/rollback says, until the script is edited",
        revision_of("a.lua", texts.one));
    assert_string_equal(world->reported, note);
    assert_listed(world, texts.one, "; rolled back");
    assert_runs(world, "ONE");
    assert_gauges(world, 0, 1);
    assert_true(ready(world));
    world->reported[0] = '\0';
    tell(world, texts.two, NULL); /* nothing new */
    tell(world, texts.two, "return { helper = true }");
    assert_string_equal(world->reported, "Warning ScriptRefused: b.lua: returns a table that is "
                                         "not a moonloop.controller{…}, and no other script "
                                         "requires it");
    assert_runs(world, "ONE");
    assert_int_equal(unit_count(world->log.fd, "older version is live"), 1);
    assert_gauges(world, 0, 1);
    tell(world, texts.three, NULL); /* with the annotation as it was */
    assert_live(world, "one");
    assert_listed(world, texts.three, "");
    assert_runs(world, "THREE");
    assert_gauges(world, 0, 0);
    tell(world, texts.two, NULL); /* that text again */
    assert_runs(world, "ONE");
}

static void test_rollback_is_over_when_its_annotation_goes(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_fini) struct texts texts = make_texts();
    answer_list(world, (const char *[]){texts.one}, 1);
    tell(world, texts.two, NULL);
    roll_back(world, texts.one, texts.two);
    tell(world, texts.two, NULL);
    assert_runs(world, "ONE");
    free(ml_take(&world->source.rollback));
    tell(world, texts.two, NULL);
    assert_live(world, "one");
    assert_runs(world, "TWO");
    assert_gauges(world, 0, 0);
}

/* The newest version would do the harm that somebody has just stopped. */
static void test_rollback_holds_over_a_restart(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_fini) struct texts texts = make_texts();
    roll_back(world, texts.one, texts.two);
    tell(world, texts.two, NULL);
    assert_int_equal(world->write_count, 0);
    assert_false(ready(world));
    assert_int_equal(unit_count(world->log.fd, "waiting for the kept revisions"), 1);
    int asked = world->asked_again;
    answer_list(world, (const char *[]){texts.one, texts.two}, 2);
    assert_int_equal(world->asked_again, asked + 1);
    tell(world, texts.two, NULL);
    assert_true(ready(world));
    assert_runs(world, "ONE");
}

static void test_rollback_to_what_is_not_kept_is_told_and_changes_nothing(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_fini) struct texts texts = make_texts();
    answer_list(world, (const char *[]){texts.one, "error 'it is broken'"}, 2);
    tell(world, texts.two, NULL);
    roll_back(world, texts.three, texts.two);
    tell(world, texts.two, NULL);
    assert_int_equal(unit_count(world->log.fd, "it is not kept; test-revisions has these: "), 1);
    assert_reported(world, "Warning RollbackFailed: moonloop.dev/rollback: revision ");
    assert_runs(world, "TWO");
    roll_back(world, "error 'it is broken'", texts.two);
    tell(world, texts.two, NULL);
    assert_int_equal(unit_count(world->log.fd, "does not run: a.lua:1: it is broken"), 1);
    assert_runs(world, "TWO");
    assert_gauges(world, 0, 0);
    assert_int_equal(unit_count(world->log.fd, " is live"), 1);
    free(world->source.rollback);
    world->source.rollback = ml_strdup("one");
    tell(world, texts.two, NULL);
    assert_reported(world, "Warning RollbackFailed: moonloop.dev/rollback: 'one' is not of the");
    assert_runs(world, "TWO");
}

/* The version that was rolled back must not come again by a mistyped digit. */
static void test_rollback_that_is_mistyped_leaves_the_one_before(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_fini) struct texts texts = make_texts();
    answer_list(world, (const char *[]){texts.one}, 1);
    tell(world, texts.two, NULL);
    roll_back(world, texts.one, texts.two);
    tell(world, texts.two, NULL);
    roll_back(world, texts.three, texts.two);
    tell(world, texts.two, NULL);
    assert_runs(world, "ONE");
    assert_gauges(world, 0, 1);
    assert_int_equal(unit_count(world->log.fd, "it is not kept"), 1);
    tell(world, texts.two, NULL);
    assert_int_equal(unit_count(world->log.fd, "it is not kept"), 1);
}

static void test_rollback_that_is_mistyped_leaves_the_one_before_a_restart(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_fini) struct texts texts = make_texts();
    answer_list(world, (const char *[]){texts.two, texts.one}, 2); /* ONE ran last */
    roll_back(world, texts.three, texts.two);
    tell(world, texts.two, NULL);
    assert_runs(world, "ONE");
    assert_gauges(world, 0, 1);
}

static void test_rollback_in_place_of_another_revision_does_nothing(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_fini) struct texts texts = make_texts();
    answer_list(world, (const char *[]){texts.one}, 1);
    tell(world, texts.two, NULL);
    roll_back(world, texts.one, texts.three);
    tell(world, texts.two, NULL);
    assert_runs(world, "TWO");
    assert_int_equal(unit_count(world->log.fd, " is live"), 1);
}

static void test_rollback_stays_while_an_edit_is_refused(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_fini) struct texts texts = make_texts();
    answer_list(world, (const char *[]){texts.one}, 1);
    tell(world, texts.two, NULL);
    roll_back(world, texts.one, texts.two);
    tell(world, texts.two, NULL);
    tell(world, BROKEN, NULL);
    assert_runs(world, "ONE");
    assert_gauges(world, 1, 1);
    tell(world, texts.two, NULL);
    assert_runs(world, "ONE");
    assert_gauges(world, 0, 1);
}

/* ---- what is kept ---- */

static void test_version_that_is_live_is_kept(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_fini) struct texts texts = make_texts();
    answer_list(world, NULL, 0);
    tell(world, texts.two, NULL);
    assert_non_null(kept.write);
    ML_AUTO_FREE char *key = ml_asprintf("\"one.%s\":", revision_of("a.lua", texts.two));
    assert_non_null(strstr(kept.write->body, key));
    assert_non_null(strstr(kept.write->body, "\\\"way\\\":\\\"start\\\""));
    accept_kept(world);
    tell(world, BROKEN, NULL);
    assert_null(kept.write);
    tell(world, texts.one, NULL);
    assert_non_null(kept.write);
    assert_non_null(strstr(kept.write->body, "\\\"way\\\":\\\"edit\\\""));
}

static void test_version_that_is_rolled_back_to_is_the_newest_kept(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_fini) struct texts texts = make_texts();
    answer_list(world, (const char *[]){texts.one, texts.two}, 2);
    tell(world, texts.two, NULL);
    assert_null(kept.write); /* the newest already */
    roll_back(world, texts.one, texts.two);
    tell(world, texts.two, NULL);
    assert_non_null(kept.write);
    ML_AUTO_FREE char *key = ml_asprintf("\"one.%s\":", revision_of("a.lua", texts.one));
    assert_non_null(strstr(kept.write->body, key));
    assert_non_null(strstr(kept.write->body, "\\\"way\\\":\\\"rollback\\\""));
}

/* ---- its own tests, at a start ---- */

static void begin_tests(struct world *world)
{
    struct ml_err err = ML_ERR_INIT;
    ml_scripts_set_tester(world->scripts, fake_tester_new());
    assert_int_equal(ml_files_add(&world->source.tests, &ml_files_tests, ML_STR("a_test.lua"),
                                  ML_STR("-- test"), &err),
                     0);
}

static void test_start_tests_what_did_not_run_before(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_fini) struct texts texts = make_texts();
    begin_tests(world);
    tell(world, texts.two, NULL);
    assert_null(tester.run); /* it is not known yet which version ran */
    answer_list(world, (const char *[]){texts.one}, 1);
    fake_tests_end(ML_TESTS_FAIL, "a_test.lua:1: fails");
    assert_runs(world, "ONE");
    assert_gauges(world, 1, 1);
}

static void test_start_tests_nothing_that_ran_before(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_fini) struct texts texts = make_texts();
    begin_tests(world);
    tell(world, texts.one, NULL);
    answer_list(world, (const char *[]){texts.one}, 1);
    assert_runs(world, "ONE");
    assert_int_equal(tester.begun, 0);
}

#define ROLLBACK_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_kept, tear_down_kept)

/* ---- a start with the guard: the version that ran last is what a new one is compared with ---- */

static void test_start_is_compared_with_the_revision_that_ran_last(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *old = script("one", "return { status = { phase = 'OLD' } }");
    ML_AUTO_FREE char *endless = script(
        "one", "return { status = { phase = tostring((tonumber(thing.status.phase) or 0) + 1) } }");
    set_guard(world, ML_ROLLOUT_GUARDED);
    tell(world, endless, NULL);
    assert_int_equal(world->write_count, 0);
    answer_list(world, (const char *const[]){old}, 1);
    if (!strstr(world->reported, "ScriptLoaded: a.lua: controller one runs an older version"))
        fail_msg("%s", world->reported);
    assert_int_equal(gauge(world, "moonloop_script_held"), 1);
    assert_runs(world, "OLD");
}

/* The revision that ran last may want a guard, which is known when it has been read. */
static void test_start_asks_the_revision_that_ran_last_how_it_is_replaced(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *old = ml_asprintf(
        "local m = require 'moonloop'\n"
        "return m.controller { name = 'one', reconciles = m.kind('test.dev/v1', 'Thing'),\n"
        "  rollout = { mode = 'guarded' },\n"
        "  reconcile = function(thing) return { status = { phase = 'OLD' } } end }\n");
    ML_AUTO_FREE char *endless = script(
        "one", "return { status = { phase = tostring((tonumber(thing.status.phase) or 0) + 1) } }");
    set_guard(world, ML_ROLLOUT_IMMEDIATE);
    tell(world, endless, NULL);
    assert_int_equal(world->write_count, 0);
    answer_list(world, (const char *const[]){old}, 1);
    assert_int_equal(gauge(world, "moonloop_script_held"), 1);
    assert_runs(world, "OLD");
}

static void test_start_does_not_wait_for_ever_for_the_kept_revisions(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *text = script("one", "return { status = { phase = 'UP' } }");
    set_guard(world, ML_ROLLOUT_GUARDED);
    tell(world, text, NULL);
    advance(world, 9 * ML_NS_PER_S);
    assert_int_equal(world->write_count, 0);
    advance(world, ML_NS_PER_S);
    assert_live(world, "one");
    accept_all(world);
    answer_list(world, NULL, 0);
}

/* ---- what was stopped, in this process or in another ---- */

#define WHY "a.lua: revision X was stopped"

/* One text is kept, and another was stopped. */
static char *kept_and_stopped(struct ml_buf *object, int version, const char *good,
                              const char *stopped)
{
    struct ml_json_writer writer = kept_begin(object, version, true);
    kept_put(&writer, "one", revision_of("a.lua", good), 1, "a.lua", good);
    kept_put_stopped(&writer, "one", revision_of("a.lua", stopped), 2, WHY);
    kept_end(&writer);
    return kept_list(object);
}

static void watch_brings(struct world *world, const struct ml_buf *object)
{
    ML_AUTO_FREE char *event = ml_asprintf("{\"type\":\"MODIFIED\",\"object\":%.*s}\n",
                                           (int)object->len, object->ptr);
    assert_true(fake_piece(kept.watch, event));
    ml_loop_poll(world->loop);
}

static void test_start_does_not_try_what_was_stopped(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_fini) struct texts texts = make_texts();
    ML_AUTO(ml_buf_fini) struct ml_buf object = ML_BUF_INIT;
    ML_AUTO_FREE char *list = kept_and_stopped(&object, 50, texts.one, texts.two);
    set_guard(world, ML_ROLLOUT_GUARDED);
    tell(world, texts.two, NULL);
    fake_reply(ml_take(&kept.list), 200, list);
    ml_loop_poll(world->loop);
    assert_int_equal(gauge(world, "moonloop_script_held"), 1);
    assert_runs(world, "ONE");
    world->source.approved = ml_strdup(revision_of("a.lua", texts.two));
    tell(world, texts.two, NULL);
    assert_int_equal(gauge(world, "moonloop_script_held"), 0);
    assert_runs(world, "TWO");
}

static void test_stop_of_another_replica_is_followed(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_fini) struct texts texts = make_texts();
    ML_AUTO(ml_buf_fini) struct ml_buf object = ML_BUF_INIT;
    set_guard(world, ML_ROLLOUT_GUARDED);
    answer_list(world, (const char *[]){texts.one}, 1);
    tell(world, texts.one, NULL);
    assert_runs(world, "ONE");
    tell(world, texts.two, NULL);
    assert_runs(world, "TWO");
    ML_AUTO_FREE char *list = kept_and_stopped(&object, 51, texts.one, texts.two);
    watch_brings(world, &object);
    assert_int_equal(gauge(world, "moonloop_script_held"), 1);
    assert_runs(world, "ONE");
    assert_non_null(list);
}

/* It has settled here, and was stopped elsewhere after that: the kept one runs. */
static void test_stop_after_the_trial_is_followed(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_fini) struct texts texts = make_texts();
    ML_AUTO(ml_buf_fini) struct ml_buf object = ML_BUF_INIT;
    set_guard(world, ML_ROLLOUT_GUARDED);
    answer_list(world, (const char *[]){texts.one}, 1);
    tell(world, texts.one, NULL);
    tell(world, texts.two, NULL);
    assert_runs(world, "TWO");
    for (int i = 0; i < 300; i++) {
        advance(world, 100 * ML_NS_PER_MS);
        accept_all(world);
        accept_kept(world);
    }
    ML_AUTO_FREE char *list = kept_and_stopped(&object, 51, texts.one, texts.two);
    watch_brings(world, &object);
    assert_runs(world, "ONE");
    assert_int_equal(gauge(world, "moonloop_script_held"), 1);
    assert_non_null(list);
}

/* The one that leads has found it good. */
static void test_standby_takes_the_end_of_a_trial_from_the_leader(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_fini) struct texts texts = make_texts();
    ML_AUTO(ml_buf_fini) struct ml_buf object = ML_BUF_INIT;
    set_guard(world, ML_ROLLOUT_CANARY);
    answer_list(world, (const char *[]){texts.one}, 1);
    tell(world, texts.one, NULL);
    assert_runs(world, "ONE");
    world->services.standby = true;
    tell(world, texts.two, NULL);
    assert_listed(world, texts.one, "");
    struct ml_json_writer writer = kept_begin(&object, 51, true);
    kept_put(&writer, "one", revision_of("a.lua", texts.one), 1, "a.lua", texts.one);
    kept_put(&writer, "one", revision_of("a.lua", texts.two), 2, "a.lua", texts.two);
    kept_end(&writer);
    watch_brings(world, &object);
    assert_listed(world, texts.two, "");
    world->services.standby = false;
    resync(world);
    assert_runs(world, "TWO");
}

/* Step by step: the version before works for the others, also in a process that begins. */
static void test_start_in_a_canary_runs_the_version_before_first(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_fini) struct texts texts = make_texts();
    set_guard(world, ML_ROLLOUT_CANARY);
    tell(world, texts.two, NULL);
    answer_list(world, (const char *[]){texts.one}, 1);
    assert_listed(world, texts.one, "");
    assert_int_equal(world->asked_again, 1);
    accept_all(world);
    tell(world, texts.two, NULL);
    advance(world, 100 * ML_NS_PER_MS);
    assert_runs(world, "TWO"); /* for the only object, on trial */
    assert_listed(world, texts.one, "");
}

/* An edit that came while nothing ran: nothing is known about failures before, all else counts. */
static void test_start_with_an_edit_is_a_trial(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_fini) struct texts texts = make_texts();
    struct ml_controller *all[ML_CONTROLLERS_MAX];
    size_t tried;
    set_guard(world, ML_ROLLOUT_GUARDED);
    tell(world, texts.two, NULL);
    answer_list(world, (const char *[]){texts.one}, 1);
    assert_runs(world, "TWO");
    assert_int_equal(ml_scripts_controllers(world->scripts, all), 1);
    assert_non_null(ml_controller_on_trial(all[0], &tried));
    assert_int_equal(tried, 1);
}

/* It may still be taken back. */
static void test_version_on_trial_is_not_kept_yet(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_fini) struct texts texts = make_texts();
    set_guard(world, ML_ROLLOUT_GUARDED);
    answer_list(world, (const char *[]){texts.one}, 1);
    tell(world, texts.one, NULL);
    assert_runs(world, "ONE");
    tell(world, texts.two, NULL);
    accept(world, only_write(world), 2000, "TWO");
    for (int i = 0; i < 95; i++)
        advance(world, 100 * ML_NS_PER_MS);
    assert_null(kept.write);
    for (int i = 0; i < 10; i++)
        advance(world, 100 * ML_NS_PER_MS);
    ML_AUTO_FREE char *key = ml_asprintf("\"one.%s\":", revision_of("a.lua", texts.two));
    assert_non_null(kept.write);
    assert_non_null(strstr(kept.write->body, key));
    assert_non_null(strstr(kept.write->body, "\\\"way\\\":\\\"edit\\\""));
}

/* The reason goes to the ConfigMap with the revisions. */
static void test_stop_is_written(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_fini) struct texts texts = make_texts();
    ML_AUTO_FREE char *fails = script("one", "if ctx.now() > 1700000000 then error 'late' end\n"
                                             "return { requeue_after = 1 }");
    set_guard(world, ML_ROLLOUT_CANARY);
    answer_list(world, (const char *[]){texts.one}, 1);
    tell(world, texts.one, NULL);
    assert_runs(world, "ONE");
    tell(world, fails, NULL);
    for (int i = 0; i < 30 && !kept.write; i++) {
        advance(world, 100 * ML_NS_PER_MS);
        accept_all(world);
    }
    assert_non_null(kept.write);
    ML_AUTO_FREE char *key = ml_asprintf("\"one.%s\":", revision_of("a.lua", fails));
    assert_non_null(strstr(kept.write->body, key));
    assert_non_null(strstr(kept.write->body, "\\\"way\\\":\\\"stopped\\\""));
    assert_non_null(strstr(kept.write->body, "a.lua:4: late"));
    assert_runs(world, "ONE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROLLBACK_TEST(test_start_with_a_bad_source_runs_the_newest_kept),
        ROLLBACK_TEST(test_start_does_not_try_what_was_stopped),
        ROLLBACK_TEST(test_stop_of_another_replica_is_followed),
        ROLLBACK_TEST(test_stop_after_the_trial_is_followed),
        ROLLBACK_TEST(test_standby_takes_the_end_of_a_trial_from_the_leader),
        ROLLBACK_TEST(test_start_in_a_canary_runs_the_version_before_first),
        ROLLBACK_TEST(test_start_with_an_edit_is_a_trial),
        ROLLBACK_TEST(test_version_on_trial_is_not_kept_yet),
        ROLLBACK_TEST(test_stop_is_written),
        ROLLBACK_TEST(test_start_tests_what_did_not_run_before),
        ROLLBACK_TEST(test_start_tests_nothing_that_ran_before),
        ROLLBACK_TEST(test_start_that_learns_late_of_what_is_kept_runs_it_then),
        ROLLBACK_TEST(test_start_passes_over_a_kept_version_that_is_broken),
        ROLLBACK_TEST(test_start_with_a_file_that_cannot_be_read_runs_the_newest_kept),
        ROLLBACK_TEST(test_version_that_runs_is_not_replaced_when_an_edit_is_bad),
        ROLLBACK_TEST(test_rollback_runs_the_older_version_until_the_next_edit),
        ROLLBACK_TEST(test_rollback_is_over_when_its_annotation_goes),
        ROLLBACK_TEST(test_rollback_holds_over_a_restart),
        ROLLBACK_TEST(test_rollback_to_what_is_not_kept_is_told_and_changes_nothing),
        ROLLBACK_TEST(test_rollback_that_is_mistyped_leaves_the_one_before),
        ROLLBACK_TEST(test_rollback_that_is_mistyped_leaves_the_one_before_a_restart),
        ROLLBACK_TEST(test_rollback_in_place_of_another_revision_does_nothing),
        ROLLBACK_TEST(test_rollback_stays_while_an_edit_is_refused),
        ROLLBACK_TEST(test_version_that_is_live_is_kept),
        ROLLBACK_TEST(test_version_that_is_rolled_back_to_is_the_newest_kept),
        ROLLBACK_TEST(test_start_is_compared_with_the_revision_that_ran_last),
        ROLLBACK_TEST(test_start_asks_the_revision_that_ran_last_how_it_is_replaced),
        ROLLBACK_TEST(test_start_does_not_wait_for_ever_for_the_kept_revisions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
