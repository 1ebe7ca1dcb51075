/* A script's own tests on the way of a new version, with a tester that runs nothing, on a scripted
 * API server and a fake clock: which versions are tested, with what, and what comes of it.
 * spec/host/own_tests_spec.lua has the tester itself. */
#include "fake_tester.h"
#include "run_scripts.h"

#include <sys/stat.h>

#define FAILS "a_test.lua:3: one writes TWO: Expected objects to be the same."

static const char *crd; /* what the server answers for it; NULL: 403; "": 404 */
static int crds_asked;

static void answer_crd(void *context, struct fake_call *call)
{
    if (!strstr(call->path, "/customresourcedefinitions/")) {
        answer(context, call);
        return;
    }
    crds_asked++;
    if (!crd)
        fake_refuse(call, 403, "Forbidden", "customresourcedefinitions is forbidden");
    else if (*crd)
        fake_reply(call, 200, crd);
    else
        fake_refuse(call, 404, "NotFound", "not found");
}

static int set_up_tester(void **state)
{
    struct world *world = world_open(false);
    crd = "";
    crds_asked = 0;
    fake_set_handler(world->server, answer_crd, world);
    ml_scripts_set_tester(world->scripts, fake_tester_new());
    ml_scripts_start(world->scripts);
    *state = world;
    return 0;
}

/* Sets what is beside the scripts from the next set of files on. NULL: no test. */
static void put_tests(struct world *world, const char *a, const char *b)
{
    struct ml_err err = ML_ERR_INIT;
    struct ml_files *tests = &world->source.tests;
    ml_files_fini(tests);
    if (a)
        assert_int_equal(
            ml_files_add(tests, &ml_files_tests, ML_STR("a_test.lua"), ml_str_of(a), &err), 0);
    if (b)
        assert_int_equal(
            ml_files_add(tests, &ml_files_tests, ML_STR("b_test.lua"), ml_str_of(b), &err), 0);
}

static double refused(struct world *world)
{
    ML_AUTO(ml_buf_fini) struct ml_buf page = ML_BUF_INIT;
    const char *line = "\nmoonloop_script_refused{file=\"a.lua\"} ";
    ml_metrics_write(world->metrics, &page);
    const char *at = strstr(ml_buf_cstr(&page), line);
    return at ? strtod(at + strlen(line), NULL) : -1;
}

/* The status that the script returns. */
struct texts {
    char *one, *two, *three;
};

/* Version one runs, and it has a test. */
static struct texts begin(struct world *world)
{
    const struct texts texts = {
        script("one", "return { status = { phase = 'ONE' } }"),
        script("one", "return { status = { phase = 'TWO' } }"),
        script("one", "return { status = { phase = 'THREE' } }"),
    };
    put_tests(world, "-- test", NULL);
    tell(world, texts.one, NULL);
    assert_live(world, "one");
    accept(world, only_write(world), 11, "ONE");
    world->reported[0] = '\0';
    return texts;
}

static void texts_free(struct texts *texts)
{
    free(texts->one);
    free(texts->two);
    free(texts->three);
}

static void test_own_tests_are_awaited(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_free) struct texts texts = begin(world);
    assert_int_equal(tester.begun, 0); /* these are the first files of a folder */
    tell(world, texts.two, NULL);
    assert_string_equal(world->reported, "");
    assert_int_equal(ml_scripts_next(world->scripts), 0); /* `--until-idle` waits */
    assert_string_equal(tester.run->tests, "a_test.lua ");
    assert_string_equal(fake_tests_file(&tester.run->files, "a.lua"), texts.two);
    assert_string_equal(fake_tests_file(&tester.run->files, "a_test.lua"), "-- test");
    fake_tests_end(ML_TESTS_PASS, NULL);
    assert_live(world, "one");
    assert_int_equal(unit_count(world->log.fd, "the new version passes its own tests"), 1);
    ml_loop_poll(world->loop);
    assert_non_null(strstr(only_write(world)->body, "TWO"));
    accept(world, world->writes[0], 12, "TWO");
}

static void test_own_tests_that_fail_refuse_the_version(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_free) struct texts texts = begin(world);
    ML_AUTO(ml_buf_fini) struct ml_buf list = ML_BUF_INIT;
    tell(world, texts.two, NULL);
    fake_tests_end(ML_TESTS_FAIL, FAILS);
    ml_loop_poll(world->loop);
    assert_string_equal(world->reported, "Warning ScriptRefused: " FAILS);
    assert_int_equal(world->write_count, 0);
    assert_int_equal(refused(world), 1);
    ml_scripts_list_ready(world->scripts, &list);
    assert_non_null(strstr(ml_buf_cstr(&list), "; the newest version is refused\n"));
    world->reported[0] = '\0';
    tell(world, texts.two, NULL);
    assert_string_equal(world->reported, ""); /* told once */
    assert_int_equal(tester.begun, 1);
    tell(world, texts.one, NULL); /* what runs needs no test */
    assert_int_equal(tester.begun, 1);
    assert_int_equal(refused(world), 0);
}

static void test_own_tests_that_are_edited_test_what_is_not_live(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_free) struct texts texts = begin(world);
    put_tests(world, "-- of a version that runs", NULL);
    tell(world, texts.one, NULL);
    assert_int_equal(tester.begun, 0);
    tell(world, texts.two, NULL);
    put_tests(world, "-- while they run", NULL);
    tell(world, texts.two, NULL);
    assert_int_equal(tester.canceled, 1);
    assert_string_equal(fake_tests_file(&tester.run->files, "a_test.lua"), "-- while they run");
    fake_tests_end(ML_TESTS_FAIL, FAILS);
    put_tests(world, "-- of a refused version", NULL);
    tell(world, texts.two, NULL);
    assert_string_equal(fake_tests_file(&tester.run->files, "a_test.lua"),
                        "-- of a refused version");
    fake_tests_end(ML_TESTS_PASS, NULL);
    assert_live(world, "one");
    assert_int_equal(refused(world), 0);
    ml_loop_poll(world->loop);
    accept(world, only_write(world), 12, "TWO");
}

static void test_own_tests_of_the_newest_version_count(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_free) struct texts texts = begin(world);
    tell(world, texts.two, NULL);
    tell(world, texts.three, NULL);
    assert_int_equal(tester.canceled, 1);
    assert_string_equal(fake_tests_file(&tester.run->files, "a.lua"), texts.three);
    fake_tests_end(ML_TESTS_PASS, NULL);
    ml_loop_poll(world->loop);
    assert_non_null(strstr(only_write(world)->body, "THREE"));
    accept(world, world->writes[0], 12, "THREE");
    tell(world, texts.two, NULL);
    tell(world, "return {", NULL); /* refused; the one under test has no successor to wait for */
    fake_tests_end(ML_TESTS_FAIL, FAILS);
    assert_int_equal(refused(world), 1);
}

/* Its caches are not there yet when the tests of the one before could pass. */
static void test_own_tests_end_with_the_version_that_they_test(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_free) struct texts texts = begin(world);
    ML_AUTO_FREE char *owner = ml_asprintf(
        "local m = require 'moonloop'\n"
        "return m.controller {\n"
        "  name = 'one', reconciles = m.kind('test.dev/v1', 'Thing'),\n"
        "  owns = { m.kind('test.dev/v1', 'Part') }, reconcile = function() end,\n"
        "}\n");
    tell(world, texts.two, NULL);
    assert_non_null(tester.run);
    tell(world, owner, NULL);
    assert_null(tester.run);
    assert_string_equal(world->reported, "");
    reply_no_parts(world);
    assert_non_null(tester.run);
    assert_string_equal(fake_tests_file(&tester.run->files, "a.lua"), owner);
    fake_tests_end(ML_TESTS_PASS, NULL);
    assert_live(world, "one");
}

static void test_own_tests_that_cannot_run_hold_up_nothing(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_free) struct texts texts = begin(world);
    tell(world, texts.two, NULL);
    fake_tests_end(ML_TESTS_LOST, "busted is not there");
    assert_live(world, "one");
    assert_int_equal(unit_count(world->log.fd, "the tests of a script were not run"), 1);
    assert_int_equal(unit_count(world->log.fd, "busted is not there"), 1);
    ml_loop_poll(world->loop);
    accept(world, only_write(world), 12, "TWO");
}

static void test_own_tests_of_modules_are_those_of_their_users(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = ml_asprintf("require 'b' %s", "\n");
    ML_AUTO_FREE char *rest = script("one", "return");
    ML_AUTO_FREE char *uses = ml_asprintf("%s%s", one, rest);
    put_tests(world, NULL, "-- of the module");
    tell(world, uses, "return {}");
    assert_live(world, "one");
    tell(world, uses, "return { 1 }");
    assert_string_equal(tester.run->tests, "b_test.lua ");
    assert_string_equal(fake_tests_file(&tester.run->files, "b.lua"), "return { 1 }");
    fake_tests_end(ML_TESTS_PASS, NULL);
    assert_live(world, "one");
}

static void test_own_tests_of_others_are_not_awaited(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_free) struct texts texts = begin(world);
    put_tests(world, NULL, "-- of no script");
    tell(world, texts.two, NULL);
    assert_int_equal(tester.begun, 0);
    assert_live(world, "one");
    accept(world, only_write(world), 12, "TWO");
}

static void test_own_tests_that_cannot_be_read_fail(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_free) struct texts texts = begin(world);
    put_tests(world, "\xff\xfe-", NULL);
    assert_int_equal(world->source.tests.refused_count, 1);
    tell(world, texts.two, NULL);
    assert_int_equal(tester.begun, 0);
    assert_string_equal(world->reported,
                        "Warning ScriptRefused: a_test.lua: is UTF-16; save it as UTF-8");
}

static void test_own_tests_have_the_definitions_of_the_server(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_free) struct texts texts = begin(world);
    crd = "{\"metadata\":{\"name\":\"things.test.dev\",\"resourceVersion\":\"4\"},"
          "\"spec\":{\"group\":\"test.dev\"},\"status\":{}}";
    tell(world, texts.two, NULL);
    assert_null(tester.run->crds);
    assert_string_equal(
        fake_tests_file(&tester.run->definitions, "things.test.dev.json"),
        "{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"CustomResourceDefinition\","
        "\"metadata\":{\"name\":\"things.test.dev\"},\"spec\":{\"group\":\"test.dev\"}}");
    fake_tests_end(ML_TESTS_PASS, NULL);
    ml_loop_poll(world->loop);
    accept(world, only_write(world), 12, "TWO");
    crd = NULL; /* it may not be read: nobody knows if the version is good */
    tell(world, texts.three, NULL);
    assert_null(tester.run);
    assert_live(world, "one");
    assert_int_equal(
        unit_count(world->log.fd, "CustomResourceDefinition things.test.dev cannot be read"), 1);
    accept(world, only_write(world), 13, "THREE");
}

static void test_own_tests_have_the_definitions_beside_the_folder(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_free) struct texts texts = begin(world);
    char root[] = "/tmp/test_own_tests-XXXXXX";
    assert_non_null(mkdtemp(root));
    ML_AUTO_FREE char *beside = ml_asprintf("%s/crds", root);
    ML_AUTO_FREE char *folder = ml_asprintf("%s/scripts", root);
    assert_int_equal(mkdir(beside, 0700), 0);
    assert_int_equal(mkdir(folder, 0700), 0);
    world->source.folder = ml_strdup(folder);
    tell(world, texts.two, NULL);
    assert_int_equal(crds_asked, 0);
    ML_AUTO_FREE char *want = ml_asprintf("%s/../crds", folder);
    assert_string_equal(tester.run->crds, want);
    fake_tests_end(ML_TESTS_PASS, NULL);
    ml_loop_poll(world->loop);
    accept(world, only_write(world), 12, "TWO");
    rmdir(beside);
    rmdir(folder);
    rmdir(root);
}

static void set_true(void *context)
{
    *(bool *)context = true;
}

static void test_own_tests_end_with_the_host(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_free) struct texts texts = begin(world);
    bool stopped = false;
    tell(world, texts.two, NULL);
    ml_scripts_stop(world->scripts, set_true, &stopped);
    assert_null(tester.run);
    ml_loop_poll(world->loop);
    assert_true(stopped);
}

static void test_own_tests_end_with_their_controller(void **state)
{
    struct world *world = *state;
    ML_AUTO(texts_free) struct texts texts = begin(world);
    tell(world, texts.two, NULL);
    assert_non_null(tester.run);
    world->source.removed = ml_strdup("one");
    tell(world, texts.two, NULL);
    accept_all(world);
    advance(world, ML_NS_PER_S);
    assert_null(tester.run);
    assert_int_equal(tester.canceled, 1);
    assert_string_equal(world->reported, "Normal ControllerRemoved: a.lua: controller one is "
                                         "removed; moonloop.dev/one was taken off 0 objects; what "
                                         "stays: 1 objects of Thing, and the objects that they "
                                         "own");
}

static void test_own_tests_without_a_tester_are_told_once(void **state)
{
    struct world *world = *state;
    ml_scripts_set_tester(world->scripts, NULL);
    ML_AUTO(texts_free) struct texts texts = begin(world);
    tell(world, texts.two, NULL);
    assert_live(world, "one");
    accept(world, only_write(world), 12, "TWO");
    put_tests(world, "-- another", NULL);
    tell(world, texts.two, NULL);
    assert_int_equal(unit_count(world->log.fd, "tests beside the scripts are not run"), 1);
}

#define OWN_TESTS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_tester, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OWN_TESTS_TEST(test_own_tests_are_awaited),
        OWN_TESTS_TEST(test_own_tests_that_fail_refuse_the_version),
        OWN_TESTS_TEST(test_own_tests_that_are_edited_test_what_is_not_live),
        OWN_TESTS_TEST(test_own_tests_of_the_newest_version_count),
        OWN_TESTS_TEST(test_own_tests_end_with_the_version_that_they_test),
        OWN_TESTS_TEST(test_own_tests_that_cannot_run_hold_up_nothing),
        OWN_TESTS_TEST(test_own_tests_of_modules_are_those_of_their_users),
        OWN_TESTS_TEST(test_own_tests_of_others_are_not_awaited),
        OWN_TESTS_TEST(test_own_tests_that_cannot_be_read_fail),
        OWN_TESTS_TEST(test_own_tests_have_the_definitions_of_the_server),
        OWN_TESTS_TEST(test_own_tests_have_the_definitions_beside_the_folder),
        OWN_TESTS_TEST(test_own_tests_end_with_the_host),
        OWN_TESTS_TEST(test_own_tests_end_with_their_controller),
        OWN_TESTS_TEST(test_own_tests_without_a_tester_are_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
