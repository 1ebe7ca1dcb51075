/* A new version on trial: the steps of a canary, the brake that stops it, and the way back. On a
 * scripted API server and a fake clock; the status of a thing says which version worked for it. */
#include "things_server.h"

#define TRIAL_OBJECTS "\nmoonloop_controller_trial_objects{controller=\"one\"} "
#define HELD          "\nmoonloop_script_held{file=\"a.lua\"} "

/* The version A is live, and has worked for all. */
static void start(struct world *world, const char *mode)
{
    ML_AUTO_FREE char *text = version_of(mode, "A", "");
    put_things(world);
    tell(world, text, NULL);
    put_parts(world);
    serve(world);
    assert_live(world, "one");
    pass(world, ML_NS_PER_S);
    assert_int_equal(in_phase('A'), THINGS);
    assert_int_equal((int)metric(world, TRIAL_OBJECTS), 0);
}

static int set_up_trial(void **state)
{
    struct world *world = world_open(false);
    set_guard(world, ML_ROLLOUT_GUARDED);
    ml_scripts_start(world->scripts);
    *state = world;
    return 0;
}

static int tear_down_trial(void **state)
{
    int result = tear_down(state);
    free(things.list);
    return result;
}

#define TRIAL_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_trial, tear_down_trial)

static void assert_stopped(const struct world *world, const char *why)
{
    assert_int_equal(unit_count(world->log.fd, "script stopped; the version before it runs again"),
                     1);
    if (unit_count(world->log.fd, why) != 1)
        fail_msg("%s", world->reported);
}

/* Nothing but A works, and what the source has is held. */
static void assert_back(struct world *world)
{
    pass(world, ML_NS_PER_S);
    assert_int_equal(in_phase('A'), THINGS);
    assert_int_equal((int)metric(world, HELD), 1);
    assert_int_equal((int)metric(world, TRIAL_OBJECTS), 0);
}

/* ---- the steps of a canary ---- */

static void test_canary_works_for_more_and_more(void **state)
{
    struct world *world = *state;
    start(world, "canary");
    offer(world, "canary", "B", "");
    pass(world, 200 * ML_NS_PER_MS);
    assert_int_equal(in_phase('B'), 1);
    assert_int_equal((int)metric(world, TRIAL_OBJECTS), 1);
    assert_string_equal(world->reported, "");
    pass(world, 9 * ML_NS_PER_S); /* it settles for ten seconds */
    assert_int_equal(in_phase('B'), 1);
    pass(world, 2 * ML_NS_PER_S);
    size_t more = in_phase('B');
    assert_in_range(more, 2, THINGS / 4);
    assert_int_equal(in_phase('A'), THINGS - more);
    pass(world, 25 * ML_NS_PER_S);
    assert_int_equal(in_phase('B'), THINGS);
    assert_live(world, "one");
    pass(world, 11 * ML_NS_PER_S);
    assert_int_equal((int)metric(world, TRIAL_OBJECTS), 0);
}

/* A change of an object goes to the version that works for it, and to no other. */
static void test_each_key_is_of_one_version(void **state)
{
    struct world *world = *state;
    start(world, "canary");
    offer(world, "canary", "B", "");
    pass(world, 200 * ML_NS_PER_MS);
    for (int i = 0; i < THINGS; i++) {
        ML_AUTO_FREE char *event = ml_asprintf(
            "{\"type\":\"MODIFIED\",\"object\":{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Thing\","
            "\"metadata\":{\"name\":\"t%d\",\"namespace\":\"d\",\"uid\":\"u%d\","
            "\"resourceVersion\":\"%d\"},\"spec\":{\"want\":1},\"status\":{\"phase\":\"-\"}}}\n",
            i, i, (things.versions[i] = ++things.version));
        assert_true(fake_piece(world->watch, event));
    }
    serve(world);
    pass(world, ML_NS_PER_S);
    assert_int_equal(in_phase('B'), 1);
    assert_int_equal(in_phase('A'), THINGS - 1);
}

static void test_newer_version_ends_a_trial(void **state)
{
    struct world *world = *state;
    start(world, "canary");
    offer(world, "canary", "B", "");
    pass(world, 12 * ML_NS_PER_S);
    assert_in_range(in_phase('B'), 2, THINGS / 4);
    offer(world, "canary", "C", "");
    pass(world, ML_NS_PER_S);
    assert_int_equal(in_phase('C'), 1);
    assert_int_equal(in_phase('B'), 0);
    pass(world, 60 * ML_NS_PER_S);
    assert_int_equal(in_phase('C'), THINGS);
}

static void test_approval_ends_the_waiting(void **state)
{
    struct world *world = *state;
    start(world, "canary");
    offer(world, "canary", "B", "");
    pass(world, 200 * ML_NS_PER_MS);
    ML_AUTO_FREE char *text = version_of("canary", "B", "");
    struct ml_controller *all[ML_CONTROLLERS_MAX];
    size_t tried;
    assert_int_equal(ml_scripts_controllers(world->scripts, all), 1);
    const struct ml_revision *trial = ml_controller_on_trial(all[0], &tried);
    world->source.approved = ml_strdup(trial->declaration->revision);
    tell(world, text, NULL);
    pass(world, ML_NS_PER_S);
    assert_int_equal(in_phase('B'), THINGS);
    assert_int_equal((int)metric(world, TRIAL_OBJECTS), 0);
}

static void test_standby_begins_the_steps_when_it_leads(void **state)
{
    struct world *world = *state;
    start(world, "canary");
    world->services.standby = true;
    offer(world, "canary", "B", "");
    pass(world, 60 * ML_NS_PER_S);
    assert_int_equal(in_phase('B'), 0);
    world->services.standby = false;
    resync(world);
    pass(world, ML_NS_PER_S);
    assert_int_equal(in_phase('B'), 1);
}

static void test_paused_trial_waits(void **state)
{
    struct world *world = *state;
    start(world, "canary");
    offer(world, "canary", "B", "");
    pass(world, 200 * ML_NS_PER_MS);
    ML_AUTO_FREE char *text = version_of("canary", "B", "");
    world->source.paused = ml_strdup("true");
    tell(world, text, NULL);
    pass(world, 60 * ML_NS_PER_S);
    assert_int_equal(in_phase('B'), 1);
}

/* ---- the brake ---- */

#define FAILS_FOR_ONE "    if name == 't42' then error 'no' end"

static void test_failure_of_one_object_stops_a_canary(void **state)
{
    struct world *world = *state;
    start(world, "canary");
    offer(world, "canary", "B", FAILS_FOR_ONE);
    pass(world, 40 * ML_NS_PER_S);
    assert_stopped(world, "it fails for 1 of them, for which the version before did not; the last: "
                          "d/t42: ");
    assert_back(world);
}

/* An object for which the version before failed as well. */
static void test_failure_from_before_does_not_count(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *text = version_of("canary", "A", FAILS_FOR_ONE);
    put_things(world);
    tell(world, text, NULL);
    put_parts(world);
    serve(world);
    pass(world, ML_NS_PER_S);
    offer(world, "canary", "B", FAILS_FOR_ONE);
    pass(world, 60 * ML_NS_PER_S);
    assert_int_equal(in_phase('B'), THINGS - 1);
    assert_live(world, "one");
    assert_int_equal((int)metric(world, TRIAL_OBJECTS), 0);
    assert_int_equal((int)metric(world, HELD), 0);
}

/* One that replaces another on trial is compared with the version before both. */
static void test_versions_in_a_row_count_together(void **state)
{
    struct world *world = *state;
    start(world, "guarded");
    offer(world, "guarded", "B", "    if tonumber(name:sub(2)) < 15 then error 'no' end");
    pass(world, 2 * ML_NS_PER_S);
    assert_int_equal(in_phase('B'), THINGS - 15);
    offer(world, "guarded", "C", "    if tonumber(name:sub(2)) < 25 then error 'no' end");
    pass(world, 2 * ML_NS_PER_S);
    assert_stopped(world, "it fails for 21 of them");
    assert_back(world);
}

/* The mirror cannot see it: it takes place later. */
#define DELETES_LATER                                                                              \
    "    if ctx.now() < 1700000003 then\n"                                                         \
    "      return { status = { phase = 'B' }, requeue_at = 1700000003 }\n"                         \
    "    end\n"                                                                                    \
    "    local part = ctx.get(Part, name)\n"                                                       \
    "    if part then ctx.delete(part) end"

static void test_deletes_are_stopped_before_they_are_sent(void **state)
{
    struct world *world = *state;
    start(world, "guarded");
    offer(world, "guarded", "B", DELETES_LATER);
    assert_live(world, "one");
    assert_int_equal(in_phase('B'), THINGS);
    pass(world, 5 * ML_NS_PER_S);
    assert_int_equal(things.deletes, 10);
    assert_stopped(world, "it was about to delete object number 11 of 100 that its own had");
    assert_back(world);
    assert_int_equal(unit_count(world->log.fd, "the version before is live again"), 1);
}

/* For one object: as if it did so for all. */
static void test_deletes_of_a_canary_count_for_all(void **state)
{
    struct world *world = *state;
    start(world, "canary");
    offer(world, "canary", "B", DELETES_LATER);
    pass(world, 5 * ML_NS_PER_S);
    assert_int_equal(things.deletes, 0);
    assert_stopped(world, "it was about to delete object number 1 of 100 that its own had");
    assert_back(world);
}

/* A version that has settled may do what its author wants. */
static void test_brake_is_off_when_it_is_calm(void **state)
{
    struct world *world = *state;
    start(world, "guarded");
    offer(world, "guarded", "B",
          "    if ctx.now() < 1700000013 then\n"
          "      return { status = { phase = 'B' }, requeue_at = 1700000013 }\n"
          "    end\n"
          "    local part = ctx.get(Part, name)\n"
          "    if part then ctx.delete(part) end");
    pass(world, 20 * ML_NS_PER_S);
    assert_int_equal(things.deletes, THINGS);
    assert_int_equal(in_phase('B'), THINGS);
    assert_int_equal((int)metric(world, HELD), 0);
}

/* Somebody changes all things; `metadata` is more of theirs. */
static void change_all(struct world *world, const char *metadata)
{
    for (int i = 0; i < THINGS; i++) {
        ML_AUTO_FREE char *event = ml_asprintf(
            "{\"type\":\"MODIFIED\",\"object\":{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Thing\","
            "\"metadata\":{\"name\":\"t%d\",\"namespace\":\"d\",\"uid\":\"u%d\",%s"
            "\"resourceVersion\":\"%d\"},\"spec\":{\"want\":\"none\"},\"status\":{\"phase\":\"B\"}}"
            "}\n",
            i, i, metadata, (things.versions[i] = ++things.version));
        assert_true(fake_piece(world->watch, event));
    }
    serve(world);
}

/* Somebody wants the parts to go: the version before would have deleted them as well. */
static void test_deletes_for_edited_objects_are_free(void **state)
{
    struct world *world = *state;
    start(world, "guarded");
    offer(world, "guarded", "B",
          "    if (thing.spec or {}).want == 'none' then\n"
          "      local part = ctx.get(Part, name)\n"
          "      if part then ctx.delete(part) end\n"
          "    end");
    pass(world, ML_NS_PER_S);
    change_all(world, "\"generation\":2,");
    pass(world, ML_NS_PER_S);
    assert_int_equal(things.deletes, THINGS);
    assert_int_equal((int)metric(world, HELD), 0);
}

static void test_failures_of_edited_objects_are_not_counted(void **state)
{
    struct world *world = *state;
    start(world, "canary");
    offer(
        world, "canary", "B",
        "    if (thing.spec or {}).want == 'none' then return ctx.invalid('spec.want', 'no') end");
    pass(world, ML_NS_PER_S);
    change_all(world, "\"generation\":2,");
    pass(world, 60 * ML_NS_PER_S);
    assert_int_equal((int)metric(world, HELD), 0);
}

/* The same without an edit. */
static void test_invalid_object_stops_a_canary(void **state)
{
    struct world *world = *state;
    start(world, "canary");
    offer(world, "canary", "B",
          "    if name == 't42' then return ctx.invalid('spec.want', 'no') end");
    pass(world, 40 * ML_NS_PER_S);
    assert_stopped(world, "d/t42: ");
    assert_back(world);
}

/* The server is at fault: nobody goes back for that, and the steps wait where it does not answer.
 */
static void test_failures_of_the_server_stop_nothing(void **state)
{
    static const int codes[] = {409, 503, 500, 429};
    struct world *world = *state;
    for (size_t i = 0; i < ML_COUNT(codes); i++) {
        char phase[] = {(char)('B' + i), '\0'};
        if (i == 0)
            start(world, "canary");
        things.refuses = codes[i];
        offer(world, "canary", phase, "");
        pass(world, 5 * ML_NS_PER_S);
        assert_int_equal((int)metric(world, HELD), 0);
        assert_int_equal(in_phase(*phase), 0);
        assert_int_equal((int)metric(world, TRIAL_OBJECTS), 1);
        things.refuses = 0;
        pass(world, 90 * ML_NS_PER_S);
        assert_int_equal(in_phase(*phase), THINGS);
    }
}

/* All objects fail while the server is at fault: that says nothing about the version that worked
 * then, and must not hide what the next one does. */
static void test_failures_of_the_server_before_hide_nothing(void **state)
{
    struct world *world = *state;
    start(world, "guarded");
    things.refuses = 500;
    change_all(world, "");
    pass(world, ML_NS_PER_S);
    offer(world, "guarded", "B",
          "    if ctx.now() < 1700000006 then\n"
          "      return { status = { phase = 'B' }, requeue_at = 1700000006 }\n"
          "    end\n"
          "    if tonumber(name:sub(2)) % 3 == 0 then error 'late' end");
    things.refuses = 0;
    pass(world, 10 * ML_NS_PER_S);
    assert_stopped(world, "it fails for 21 of them");
    assert_back(world);
}

/* One that no script can write again. */
static void test_refusals_of_the_server_stop_a_canary(void **state)
{
    struct world *world = *state;
    start(world, "canary");
    things.refuses = 422;
    offer(world, "canary", "B", "");
    pass(world, 5 * ML_NS_PER_S);
    assert_stopped(world, "write status: not now; edit the script");
    things.refuses = 0;
    assert_back(world);
}

/* Each run changes what brings the next one; a plan would have found it, were it so from the
 * beginning. */
static void test_version_that_wakes_itself_is_stopped(void **state)
{
    struct world *world = *state;
    start(world, "guarded");
    offer(world, "guarded", "B",
          "    if ctx.now() < 1700000003 then\n"
          "      return { status = { phase = 'B' }, requeue_at = 1700000003 }\n"
          "    end\n"
          "    local part = ctx.get(Part, name)\n"
          "    if name == 't7' and part then\n"
          "      local n = tonumber((part.metadata.annotations or {}).n or 0) + 1\n"
          "      ctx.patch(part, { metadata = { annotations = { n = tostring(n) } } })\n"
          "    end");
    pass(world, 20 * ML_NS_PER_S);
    assert_stopped(world, "d/t7 changes again and again: Part d/t7: metadata.annotations");
    assert_back(world);
}

/* It was stopped once: the same text is not tried again, another one is. */
static void test_stopped_version_stays_stopped(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *text = version_of("canary", "B", FAILS_FOR_ONE);
    start(world, "canary");
    offer(world, "canary", "B", FAILS_FOR_ONE);
    pass(world, 40 * ML_NS_PER_S);
    assert_back(world);
    tell(world, text, NULL);
    pass(world, 20 * ML_NS_PER_S);
    assert_int_equal(in_phase('A'), THINGS);
    offer(world, "canary", "C", "");
    pass(world, 60 * ML_NS_PER_S);
    assert_int_equal(in_phase('C'), THINGS);
    assert_int_equal((int)metric(world, HELD), 0);
}

/* Another file makes a new set of it, which was not refused. */
static void test_stopped_version_stays_stopped_beside_others(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *text = version_of("canary", "B", FAILS_FOR_ONE);
    start(world, "canary");
    offer(world, "canary", "B", FAILS_FOR_ONE);
    pass(world, 40 * ML_NS_PER_S);
    assert_back(world);
    *world->reported = '\0';
    tell(world, text, "return { a = 1 }\n");
    serve(world);
    pass(world, 20 * ML_NS_PER_S);
    assert_back(world);
    assert_non_null(strstr(world->reported, "ScriptHeld: a.lua: revision "));
    assert_non_null(strstr(world->reported, "it fails for 1 of them"));
}

/* An edit that came while the stopped version was live is what counts. */
static void test_edit_meanwhile_goes_on(void **state)
{
    struct world *world = *state;
    start(world, "guarded");
    offer(world, "guarded", "B", DELETES_LATER);
    pass(world, ML_NS_PER_S);
    offer(world, "guarded", "C", "");
    pass(world, 10 * ML_NS_PER_S);
    assert_int_equal(in_phase('C'), THINGS);
    assert_int_equal(things.deletes, 0);
}

/* ---- the numbers ---- */

static struct ml_brake brake_of(enum ml_rollout_mode mode, size_t tried)
{
    static const struct ml_declaration declaration = {.file = "a.lua", .revision = "3f2a91bc"};
    return (struct ml_brake){
        .declaration = &declaration,
        .limits = {mode, 10, 5, 20, 10},
        .objects = 100,
        .owned = 300,
        .tried = tried,
    };
}

/* Returns how many it lets. */
static size_t deletes_of(struct ml_brake brake)
{
    struct ml_err err = ML_ERR_INIT;
    while (brake.deletes < 1000 && ml_brake_lets_delete(&brake, &err))
        brake.deletes++;
    return brake.deletes;
}

static void test_brake_lets_so_many_deletes(void **state)
{
    struct ml_brake brake = brake_of(ML_ROLLOUT_GUARDED, 100);
    (void)state;
    assert_int_equal(deletes_of(brake), 15); /* 5 % of 300 */
    brake.owned = 100;
    assert_int_equal(deletes_of(brake), 10);
    brake.tried = 10; /* each stands for ten */
    assert_int_equal(deletes_of(brake), 1);
    brake.tried = 1;
    assert_int_equal(deletes_of(brake), 0);
    brake.runs = 20; /* the version before deleted one in five runs */
    brake.runs_before = 100;
    brake.deletes_before = 20;
    assert_int_equal(deletes_of(brake), 4);
    brake.runs = 1;
    assert_int_equal(deletes_of(brake), 1); /* rounded up */
    brake = brake_of(ML_ROLLOUT_GUARDED, 0);
    brake.objects = brake.owned = 0;
    assert_int_equal(deletes_of(brake), 10);
}

/* Returns how many it lets. */
static size_t failures_of(struct ml_brake brake)
{
    struct ml_err err = ML_ERR_INIT;
    while (brake.fails < 100 && ml_brake_lets_fail(&brake, ML_STR("d/a"), "no", &err))
        brake.fails++;
    return brake.fails - 1; /* this one it does not */
}

static void test_brake_lets_so_many_failures(void **state)
{
    (void)state;
    assert_int_equal(failures_of(brake_of(ML_ROLLOUT_GUARDED, 100)), 20);
    assert_int_equal(failures_of(brake_of(ML_ROLLOUT_GUARDED, 5)), 1);
    assert_int_equal(failures_of(brake_of(ML_ROLLOUT_GUARDED, 4)), 99); /* too few to tell */
    assert_int_equal(failures_of(brake_of(ML_ROLLOUT_CANARY, 100)), 0);
    assert_int_equal(failures_of(brake_of(ML_ROLLOUT_CANARY, 1)), 0);
}

static void test_brake_says_what_to_do(void **state)
{
    struct ml_brake brake = brake_of(ML_ROLLOUT_CANARY, 3);
    struct ml_err err = ML_ERR_INIT;
    (void)state;
    ml_brake_stop(&brake, "it is late", &err);
    assert_string_equal(err.message,
                        "a.lua: revision 3f2a91bc was stopped, when it worked for 3 of 100 "
                        "objects: it is late; edit the script, or let it go by the annotation "
                        "moonloop.dev/approve: 3f2a91bc");
}

static void test_part_of_a_key_in_a_trial(void **state)
{
    struct ml_keys keys = {0};
    (void)state;
    assert_null(ml_keys_find_trial(&keys, ML_STR("d/a")));
    ml_keys_trial(&keys, ML_STR("d/a"))->ran = true;
    assert_true(ml_keys_find_trial(&keys, ML_STR("d/a"))->ran);
    (void)ml_keys_trial(&keys, ML_STR("d/b"));
    ml_keys_forget_trial(&keys, ML_STR("d/a"));
    ml_keys_forget_trial(&keys, ML_STR("d/c"));
    assert_int_equal(ml_keys_len(&keys), 1);
    ml_keys_forget_all_trials(&keys);
    ml_keys_fini(&keys);
}

/* The process ends in each step. */
static void test_trial_that_is_under_way_at_the_end(void **state)
{
    struct world *world = *state;
    start(world, "canary");
    offer(world, "canary", "B", "");
    pass(world, 12 * ML_NS_PER_S);
    assert_in_range(in_phase('B'), 2, THINGS / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRIAL_TEST(test_canary_works_for_more_and_more),
        TRIAL_TEST(test_each_key_is_of_one_version),
        TRIAL_TEST(test_newer_version_ends_a_trial),
        TRIAL_TEST(test_approval_ends_the_waiting),
        TRIAL_TEST(test_standby_begins_the_steps_when_it_leads),
        TRIAL_TEST(test_paused_trial_waits),
        TRIAL_TEST(test_failure_of_one_object_stops_a_canary),
        TRIAL_TEST(test_failure_from_before_does_not_count),
        TRIAL_TEST(test_versions_in_a_row_count_together),
        TRIAL_TEST(test_deletes_are_stopped_before_they_are_sent),
        TRIAL_TEST(test_deletes_of_a_canary_count_for_all),
        TRIAL_TEST(test_brake_is_off_when_it_is_calm),
        TRIAL_TEST(test_deletes_for_edited_objects_are_free),
        TRIAL_TEST(test_failures_of_edited_objects_are_not_counted),
        TRIAL_TEST(test_invalid_object_stops_a_canary),
        TRIAL_TEST(test_failures_of_the_server_stop_nothing),
        TRIAL_TEST(test_failures_of_the_server_before_hide_nothing),
        TRIAL_TEST(test_refusals_of_the_server_stop_a_canary),
        TRIAL_TEST(test_version_that_wakes_itself_is_stopped),
        TRIAL_TEST(test_stopped_version_stays_stopped),
        TRIAL_TEST(test_stopped_version_stays_stopped_beside_others),
        TRIAL_TEST(test_edit_meanwhile_goes_on),
        TRIAL_TEST(test_trial_that_is_under_way_at_the_end),
        cmocka_unit_test(test_brake_lets_so_many_deletes),
        cmocka_unit_test(test_brake_lets_so_many_failures),
        cmocka_unit_test(test_brake_says_what_to_do),
        cmocka_unit_test(test_part_of_a_key_in_a_trial),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
