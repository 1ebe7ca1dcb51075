/* F50: versions that wait for an approval, by chance: edited again while they are tried or held,
 * approved, approved too late or too early, and approvals that are taken back before or after they
 * are seen. Judged by the requests: each comes from a version that was approved. */
#include "things_server.h"

#include "seeds.h"
#include "tried.h"

#define EDITS 40 /* for each seed: one for each letter, at most */

static const char letters[] = "BCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

struct versions {
    struct world *world;
    struct ml_random random;
    char *texts[sizeof letters]; /* by edit */
    size_t edits, live_ones;
    char last_live; /* of those whose approval stayed until they were live */
};

static struct versions versions;

static uint64_t chance(uint64_t below)
{
    return ml_random_u64(&versions.random) % below;
}

static char letter_of(size_t edit)
{
    return letters[edit];
}

static const char *revision(size_t edit)
{
    return revision_of("a.lua", versions.texts[edit]);
}

/* The source as it is after the last edit, with this annotation; NULL: with none. */
static void deliver(const char *approved)
{
    struct world *world = versions.world;
    free(world->source.approved);
    world->source.approved = approved ? ml_strdup(approved) : NULL;
    tell(world, versions.texts[versions.edits - 1], NULL);
}

static void edit(const char *approved)
{
    const char phase[] = {letter_of(versions.edits), '\0'};
    versions.texts[versions.edits] = version_of("plan", phase, "");
    things.stopped[(int)*phase] = !approved || !strstr(approved, revision(versions.edits));
    versions.edits++;
    deliver(approved);
}

static void allow_last(void)
{
    things.stopped[(int)letter_of(versions.edits - 1)] = false;
}

/* Less than a trial of it takes, or a while. */
static void wait_a_little(void)
{
    if (chance(2))
        serve(versions.world);
    if (chance(2))
        pass(versions.world, (int64_t)chance(3) * ML_NS_PER_S);
}

static void assert_held(bool is_held)
{
    bool is = metric(versions.world, "\nmoonloop_script_held{file=\"a.lua\"} ") > 0;
    char last = letter_of(versions.edits - 1);
    if (is != is_held)
        fail_msg("version %c is %sheld", last, is ? "" : "not ");
    size_t written = in_phase(versions.last_live);
    if (written != THINGS)
        fail_msg("%zu things are as version %c wants them", written, versions.last_live);
}

static void approve_last(void)
{
    ML_AUTO_FREE char *approved = ml_asprintf("%s%s", chance(2) ? "00000000, " : "",
                                              revision(versions.edits - 1));
    allow_last();
    deliver(approved);
    pass(versions.world, 20 * ML_NS_PER_S);
    versions.last_live = letter_of(versions.edits - 1);
    versions.live_ones++;
    assert_held(false);
}

/* It may be live by then, or not: the approval is gone before anybody looked. */
static void lose_approval(void)
{
    allow_last();
    deliver(revision(versions.edits - 1));
    deliver(NULL);
    pass(versions.world, 20 * ML_NS_PER_S);
    char last = letter_of(versions.edits - 1);
    if (in_phase(last) == THINGS)
        versions.last_live = last;
    assert_held(versions.last_live != last);
}

static void step(void)
{
    edit(NULL);
    wait_a_little();
    switch (chance(5)) {
    case 0: /* edited again, with the approval of the one before */
        edit(revision(versions.edits - 1));
        pass(versions.world, 20 * ML_NS_PER_S);
        assert_held(true);
        break;
    case 1: /* edited twice, and approved */
        edit(NULL);
        approve_last();
        break;
    case 2:
        lose_approval();
        break;
    case 3:
        approve_last();
        deliver(NULL);
        pass(versions.world, ML_NS_PER_S);
        assert_held(false);
        break;
    default:
        pass(versions.world, 20 * ML_NS_PER_S);
        assert_held(true);
    }
}

static void run(uint64_t seed)
{
    struct world *world = world_open(false);
    versions = (struct versions){.world = world, .last_live = 'A'};
    ml_random_init(&versions.random, seed);
    set_guard(world, ML_ROLLOUT_GUARDED);
    ml_scripts_start(world->scripts);
    ML_AUTO_FREE char *first = version_of("plan", "A", "");
    put_things(world);
    tell(world, first, NULL);
    put_parts(world);
    serve(world);
    pass(world, ML_NS_PER_S);
    while (versions.edits + 2 <= EDITS)
        step();
    assert_true(versions.live_ones > 0);
    for (size_t i = 0; i < versions.edits; i++)
        free(versions.texts[i]);
    void *end = world;
    assert_int_equal(tear_down(&end), 0);
    free(things.list);
}

static void test_f50_held_versions_and_their_approvals(void **state)
{
    (void)state;
    size_t seeds = faults_each_seed("F50", 4, run);
    faults_tried("F50", seeds * EDITS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f50_held_versions_and_their_approvals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
