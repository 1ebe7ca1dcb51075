/* F49: edits by chance, good ones and such as do harm after a while, in all modes, while the server
 * refuses and objects change. Judged by the requests: nothing comes from a version that was
 * stopped; in the end each object is as one good version wants it, and what does harm is held. */
#include "things_server.h"

#include "seeds.h"
#include "tried.h"

#include <malloc.h>

#define EDITS 25 /* for each seed; $SWAPS: another number */

static const char letters[] = "BCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

struct trials {
    struct world *world;
    struct ml_random random;
    char revisions[128][ML_REVISION_LEN + 1]; /* by letter */
    size_t edits, stops;
    bool last_is_bad;
    char last;
};

static struct trials trials;

static uint64_t chance(uint64_t below)
{
    return ml_random_u64(&trials.random) % below;
}

static void on_report(struct ml_source *source, bool warning, const char *reason, const char *note)
{
    (void)source, (void)warning;
    if (strcmp(reason, "ScriptStopped") != 0)
        return;
    const char *revision = strstr(note, "revision ") + strlen("revision ");
    for (const char *letter = letters; *letter; letter++)
        if (strncmp(trials.revisions[(int)*letter], revision, ML_REVISION_LEN) == 0)
            things.stopped[(int)*letter] = true;
    trials.stops++;
}

static const struct ml_source_class reporting_class = {
    .start = source_start, .report = on_report, .again = source_again, .free = source_free};

/* After `second` it fails for a third of the things, or deletes the parts of all. No plan knows. */
static char *harm(int64_t second)
{
    return ml_asprintf("    if ctx.now() < %lld then\n"
                       "      return { status = { phase = phase }, requeue_at = %lld }\n"
                       "    end\n%s",
                       (long long)second, (long long)second,
                       chance(2) ? "    if tonumber(name:sub(2)) % 3 == 0 then error 'late' end"
                                 : "    local part = ctx.get(Part, name)\n"
                                   "    if part then ctx.delete(part) end");
}

static void edit(void)
{
    static const char *const modes[] = {"guarded", "canary"};
    char letter;
    do /* of none that still works for a thing */
        letter = letters[trials.edits++ % (sizeof letters - 1)];
    while (in_phase(letter) > 0);
    const char phase[] = {letter, '\0'};
    bool is_bad = chance(3) == 0;
    int64_t late_s = trials.world->clock.wall_ns / ML_NS_PER_S + 1 + (int64_t)chance(6);
    ML_AUTO_FREE char *bad = is_bad ? harm(late_s) : ml_strdup("");
    ML_AUTO_FREE char *body = ml_asprintf("    local phase = '%c' -- %zu\n%s", letter, trials.edits,
                                          bad);
    ML_AUTO_FREE char *text = version_of(modes[chance(2)], phase, body);
    snprintf(trials.revisions[(int)letter], sizeof trials.revisions[0], "%s",
             revision_of("a.lua", text));
    things.stopped[(int)letter] = false;
    trials.last = letter;
    trials.last_is_bad = is_bad;
    tell(trials.world, text, NULL);
    serve(trials.world);
}

/* Somebody touches a thing, which changes nothing about what is wanted. */
static void touch(void)
{
    int thing = (int)chance(THINGS);
    things.versions[thing] = ++things.version;
    ML_AUTO_FREE char *object = json_of(thing);
    ML_AUTO_FREE char *event = ml_asprintf("{\"type\":\"MODIFIED\",\"object\":%s}\n", object);
    assert_true(fake_piece(trials.world->watch, event));
    serve(trials.world);
}

static void live(void)
{
    switch (chance(4)) {
    case 0:
        touch();
        break;
    case 1:
        things.refuses = 503;
        pass(trials.world, (int64_t)chance(3) * ML_NS_PER_S);
        things.refuses = 0;
        break;
    default:
        pass(trials.world, (int64_t)chance(25) * ML_NS_PER_S);
    }
}

/* A letter that all things have; 0: they do not agree. */
static char agreed(void)
{
    char phase = things.phase[0];
    return in_phase(phase) == THINGS ? phase : '\0';
}

static void check_end(void)
{
    things.refuses = 0;
    pass(trials.world, 90 * ML_NS_PER_S);
    char phase = agreed();
    bool is_held = metric(trials.world, "\nmoonloop_script_held{file=\"a.lua\"} ") > 0;
    if (!phase)
        fail_msg("the things do not agree: %zu of %c", in_phase(trials.last), trials.last);
    assert_false(things.stopped[(int)phase]);
    if (trials.last_is_bad && (!is_held || phase == trials.last))
        fail_msg("version %c does harm, and is not stopped: %c works", trials.last, phase);
    if (!trials.last_is_bad && (is_held || phase != trials.last))
        fail_msg("version %c does no harm, and %c works", trials.last, phase);
}

static size_t heap(void)
{
    return mallinfo2().uordblks;
}

static void run(uint64_t seed)
{
    struct world *world = world_open(false);
    const char *swaps = getenv("SWAPS");
    size_t count = swaps ? (size_t)atol(swaps) : EDITS, tenth = 0;
    trials = (struct trials){.world = world};
    ml_random_init(&trials.random, seed);
    world->source.class = &reporting_class;
    set_guard(world, ML_ROLLOUT_GUARDED);
    ml_scripts_start(world->scripts);
    ML_AUTO_FREE char *first = version_of("guarded", "A", "");
    put_things(world);
    tell(world, first, NULL);
    put_parts(world);
    serve(world);
    pass(world, ML_NS_PER_S);
    for (size_t i = 0; i < count; i++) {
        edit();
        live();
        if (i == count / 10)
            tenth = heap();
    }
    check_end();
    if (swaps)
        print_message("%zu edits, %zu stopped; heap: %zu KiB after a tenth, %zu KiB\n", count,
                      trials.stops, tenth / 1024, heap() / 1024);
    struct world *state = world;
    void *end = state;
    assert_int_equal(tear_down(&end), 0);
    free(things.list);
}

static void test_f49_edits_in_every_state_of_a_trial(void **state)
{
    (void)state;
    size_t seeds = faults_each_seed("F49", 4, run);
    faults_tried("F49", seeds * EDITS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_f49_edits_in_every_state_of_a_trial)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
