/* Keys that are slowed: the lines and revisions that change the field in turn, and since when. On a
 * scripted API server and a fake clock. */
#include "run_scripts.h"

#include "state/journal.h"

static int set_up_journal(void **state)
{
    struct world *world = world_open(false);
    world->services.journal = ml_journal_new(ML_JOURNAL_BYTES);
    world->services.authors = ml_new(struct ml_authors);
    ml_scripts_start(world->scripts);
    *state = world;
    return 0;
}

static int tear_down_journal(void **state)
{
    struct world *world = *state;
    struct ml_journal *journal = world->services.journal;
    struct ml_authors *authors = world->services.authors;
    tear_down(state);
    ml_authors_fini(authors);
    free(authors);
    ml_journal_free(journal);
    return 0;
}

/* Sets spec.by of the part to its name, in line 8. */
static char *rival(const char *name, const char *more)
{
    return ml_asprintf(
        "local m = require 'moonloop'\n"
        "local Part = m.kind('test.dev/v1', 'Part')\n"
        "local by = '%s'%s\n"
        "return m.controller { name = by, reconciles = m.kind('test.dev/v1', 'Thing'),\n"
        "  watches = { m.watch(Part, function() return { 'd/a' } end) },\n"
        "  reconcile = function(thing, ctx)\n"
        "    local part = ctx.get(Part, 'p')\n"
        "    if part.spec.by ~= by then ctx.patch(part, { spec = { by = by } }) end\n"
        "  end,\n"
        "}\n",
        name, more);
}

#define PART                                                                                       \
    "{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Part\",\"metadata\":{\"name\":\"p\","              \
    "\"namespace\":\"d\",\"uid\":\"up\",\"resourceVersion\":\"%d\"},\"spec\":{\"by\":\"%.1s\"}}"

static void put_part(struct world *world)
{
    ML_AUTO_FREE char *part = ml_asprintf(PART, 1, "-");
    ML_AUTO_FREE char *list = ml_asprintf("{\"kind\":\"PartList\",\"apiVersion\":\"test.dev/v1\","
                                          "\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[%s]"
                                          "}",
                                          part);
    fake_reply(world->parts, 200, list);
    ml_loop_poll(world->loop);
}

static int version = 100; /* of the part, the newest */

/* Does what is asked until nothing is, and at most `rounds` writes of the part. */
static void serve(struct world *world, int rounds)
{
    ml_loop_poll(world->loop);
    while (world->write_count > 0) {
        struct fake_call *call = world->writes[0];
        memmove(world->writes, world->writes + 1, --world->write_count * sizeof *world->writes);
        const char *by = call->body ? strstr(call->body, "\"by\":\"") : NULL;
        if (!by || !strstr(call->path, "/parts/p")) {
            fake_reply(call, 200, "{}");
        } else {
            assert_true(rounds-- > 0);
            ML_AUTO_FREE char *part = ml_asprintf(PART, ++version, by + strlen("\"by\":\""));
            ML_AUTO_FREE char *event = ml_asprintf("{\"type\":\"MODIFIED\",\"object\":%s}\n", part);
            fake_reply(call, 200, part);
            assert_true(fake_piece(world->parts_watch, event));
        }
        ml_loop_poll(world->loop);
    }
}

/* Somebody else, who is no run of this process, sets the part back. */
static void set_back(struct world *world)
{
    ML_AUTO_FREE char *part = ml_asprintf(PART, ++version, "z");
    ML_AUTO_FREE char *event = ml_asprintf("{\"type\":\"MODIFIED\",\"object\":%s}\n", part);
    assert_true(fake_piece(world->parts_watch, event));
    ml_loop_poll(world->loop);
}

static void assert_logged(const struct world *world, const char *text)
{
    if (unit_count(world->log.fd, text) > 0)
        return;
    char log[8192] = "";
    ssize_t len = pread(world->log.fd, log, sizeof log - 1, 0);
    fail_msg("%s is not in the log: %.*s", text, (int)len, log);
}

static void test_fight_names_both_lines_and_revisions(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *a = rival("x", ""), *b = rival("y", "");
    tell(world, a, b);
    put_part(world);
    serve(world, 100);
    ML_AUTO_FREE char *of_a = ml_strdup(revision_of("a.lua", a));
    ML_AUTO_FREE char *of_b = ml_strdup(revision_of("b.lua", b));
    ML_AUTO_FREE char *lines_of_a = ml_asprintf(
        "other=\"controller y\" changes=\"Part d/p: spec.by (a.lua:8 of revision %s, b.lua:8 of "
        "revision %s)\" since=\"%s\"",
        of_a, of_b, of_a);
    ML_AUTO_FREE char *lines_of_b = ml_asprintf(
        "other=\"controller x\" changes=\"Part d/p: spec.by (b.lua:8 of revision %s, a.lua:8 of "
        "revision %s)\" since=\"%s\"",
        of_b, of_a, of_b);
    assert_logged(world, lines_of_a);
    advance(world, ML_NS_PER_S);
    serve(world, 100);
    assert_logged(world, lines_of_b);
}

/* An edit of one side that does not end it: the text says since which revision it lasts. */
static void test_fight_names_the_revision_that_began_it(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *a = rival("x", ""), *b = rival("y", ""), *edited = rival("x", " -- mine");
    tell(world, a, b);
    put_part(world);
    serve(world, 100);
    ML_AUTO_FREE char *of_a = ml_strdup(revision_of("a.lua", a));
    ML_AUTO_FREE char *of_edited = ml_strdup(revision_of("a.lua", edited));
    tell(world, edited, b);
    for (int i = 0; i < 60; i++) {
        advance(world, ML_NS_PER_S);
        serve(world, 100);
    }
    ML_AUTO_FREE char *line = ml_asprintf("(a.lua:8 of revision %s, ", of_edited);
    ML_AUTO_FREE char *since = ml_asprintf(" since=\"%s\"", of_a);
    assert_logged(world, line);
    assert_true(unit_count(world->log.fd, since) >= 2);
    ML_AUTO_FREE char *never = ml_asprintf(" since=\"%s\"", of_edited);
    assert_int_equal(unit_count(world->log.fd, never), 0);
}

/* When the object is read, this controller's own patch is the last that managedFields know of. */
static void test_own_patches_are_no_other_side(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *text = rival("x", "");
    tell(world, text, NULL);
    put_part(world);
    world->parts = NULL;
    for (int i = 0; i < 100 && !world->parts; i++) {
        serve(world, 100);
        advance(world, 250 * ML_NS_PER_MS);
        set_back(world);
    }
    assert_non_null(world->parts); /* the read of the part */
    fake_reply(ml_take(&world->parts), 200,
               "{\"metadata\":{\"managedFields\":[{\"manager\":\"moonloop-x/patch\",\"time\":"
               "\"2023-11-14T22:13:20Z\",\"fieldsV1\":{\"f:spec\":{\"f:by\":{}}}}]}}");
    ml_loop_poll(world->loop);
    assert_logged(world, "other=\"another client\" changes=\"Part d/p: spec.by (a.lua:8 of ");
    serve(world, 100);
}

static void test_script_that_wakes_itself_is_told_with_its_line(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *text = ml_asprintf(
        "local m = require 'moonloop'\n"
        "local Part = m.kind('test.dev/v1', 'Part')\n"
        "return m.controller { name = 'x', reconciles = m.kind('test.dev/v1', 'Thing'),\n"
        "  watches = { m.watch(Part, function() return { 'd/a' } end) },\n"
        "  reconcile = function(thing, ctx)\n"
        "    local part = ctx.get(Part, 'p')\n"
        "    ctx.patch(part, { spec = { by = part.spec.by == 'x' and 'y' or 'x' } })\n"
        "  end,\n"
        "}\n");
    tell(world, text, NULL);
    put_part(world);
    serve(world, 100);
    ML_AUTO_FREE char *line = ml_asprintf("changes=\"Part d/p: spec.by (a.lua:7 of revision %s)\"",
                                          revision_of("a.lua", text));
    assert_logged(world, "script wakes itself; slowing it down");
    assert_logged(world, line);
}

#define FIGHTS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_journal, tear_down_journal)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIGHTS_TEST(test_fight_names_both_lines_and_revisions),
        FIGHTS_TEST(test_fight_names_the_revision_that_began_it),
        FIGHTS_TEST(test_own_patches_are_no_other_side),
        FIGHTS_TEST(test_script_that_wakes_itself_is_told_with_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
