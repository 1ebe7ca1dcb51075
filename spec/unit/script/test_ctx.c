/* The ctx functions: what goes over the wire, and what a script gets back. */
#include "script_world.h"

static void test_passing_failure_ends_the_reconcile_past_any_pcall(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *reason;
        int kind;
    } cases[] = {
        {409, "Conflict", ML_ECONFLICT},
        {401, "Unauthorized", ML_EUNAUTHORIZED},
        {500, "InternalError", ML_ESERVER},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct world w;
        struct told told;
        world_open(&w,
                   "pcall(function() ctx.create(pod(at)) end)\n"
                   "ctx.log('must not come here') return { status = { no = true } }",
                   NULL);
        assert_non_null(world_start(&w, &told));
        fake_refuse(fake_next(w.fake), cases[i].status, cases[i].reason, "sorry");
        ml_loop_poll(w.loop);
        expect_outcome(&told, ML_OUTCOME_ERROR, "");
        assert_int_equal(told.kind, cases[i].kind);
        assert_non_null(strstr(told.message, "create Pod default/x-pod: "));
        world_close(&w);
    }
}

static void test_expected_failure_comes_back_and_is_named_later(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w, "local pod = ctx.create(pod(at))\nreturn { status = pod.status }", NULL);
    assert_non_null(world_start(&w, &told));
    fake_refuse(fake_next(w.fake), 403, "Forbidden", "pods is forbidden");
    ml_loop_poll(w.loop);
    expect_outcome(&told, ML_OUTCOME_ERROR, "");
    assert_non_null(strstr(told.message, "at.lua:14: attempt to index a nil value (local 'pod') "
                                         "(after: create Pod default/x-pod: Forbidden: "));
    world_close(&w);
}

static void test_failure_whose_message_is_raised_says_it_once(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w, "local _, err = ctx.create(pod(at)) error('no: ' .. err.message)", NULL);
    assert_non_null(world_start(&w, &told));
    fake_refuse(fake_next(w.fake), 403, "Forbidden", "pods is forbidden");
    ml_loop_poll(w.loop);
    expect_outcome(&told, ML_OUTCOME_ERROR, "");
    assert_string_equal(told.message, "at.lua:13: no: pods is forbidden");
    world_close(&w);
}

static void test_failure_raised_says_itself_once(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w, "assert(ctx.get(Pod, 'none'))", NULL);
    assert_null(world_start(&w, &told));
    expect_outcome(&told, ML_OUTCOME_ERROR, "");
    assert_string_equal(told.message,
                        "at.lua:13: get Pod default/none: NotFound: Pod default/none not found");
    world_close(&w);
}

static void test_get_reads_the_cache_or_asks(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w,
               "local pod = assert(ctx.get(Pod, 'x-pod'))\n"
               "local none, err = ctx.get(Pod, 'x-pod', 'elsewhere')\n"
               "assert(none == nil and err.kind == 'NotFound' and err.code == 404)\n"
               "assert(tostring(err):find('get Pod elsewhere/x%-pod: NotFound'), tostring(err))\n"
               "local secret = assert(ctx.get(Secret, 's'))\n"
               "assert(secret.metadata.managedFields == nil)\n"
               "return { status = { app = pod.metadata.labels.app, data = secret.data } }",
               NULL);
    ML_AUTO_FREE char *pod = world_pod_json("101", NULL);
    world_event(&w, "ADDED", pod);
    assert_non_null(world_start(&w, &told));
    struct fake_call *get = fake_expect(w.fake, "GET", "/api/v1/namespaces/default/secrets/s");
    world_answer(&w, get, 200,
                 "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"s\","
                 "\"managedFields\":[{\"manager\":\"x\"}]},\"data\":{\"z\":\"MQ==\",\"a\":\"\"}}");
    expect_outcome(&told, ML_OUTCOME_OK, "{\"app\":\"x\",\"data\":{\"z\":\"MQ==\",\"a\":\"\"}}");
    world_close(&w);
}

static void test_list_filters_and_sorts(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w,
               "local function names(options)\n"
               "  local all = moonloop.array {}\n"
               "  for i, pod in ipairs(ctx.list(Pod, options)) do\n"
               "    all[i] = pod.metadata.namespace .. '/' .. pod.metadata.name\n"
               "  end\n"
               "  return table.concat(all, ' ')\n"
               "end\n"
               "return { status = { all = names { namespace = '*' }, here = names(),\n"
               "  owned = names { owned = true }, even = names { labels = { even = 'yes' } } } }",
               NULL);
    for (int i = 5; i > 0; i--) {
        ML_AUTO_FREE char *pod = ml_asprintf(
            "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p%d\",\"namespace\":"
            "\"%s\",\"uid\":\"u%d\",\"resourceVersion\":\"%d\",\"labels\":{\"even\":\"%s\"}%s}}",
            i, i == 3 ? "other" : "default", i, 200 - i, i % 2 ? "no" : "yes",
            i == 4 ? ",\"ownerReferences\":[{\"apiVersion\":\"example.com/v1\",\"kind\":\"At\","
                     "\"name\":\"x\"," CREATED_BY_US ",\"controller\":true}]"
                   : "");
        world_event(&w, "ADDED", pod);
    }
    assert_null(world_start(&w, &told));
    expect_outcome(&told, ML_OUTCOME_OK,
                   "{\"all\":\"default/p1 default/p2 default/p4 default/p5 other/p3\","
                   "\"even\":\"default/p2 default/p4\","
                   "\"here\":\"default/p1 default/p2 default/p4 default/p5\","
                   "\"owned\":\"default/p4\"}");
    world_close(&w);
}

static void test_list_with_too_much_of_a_filter_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *labels, *want;
    } cases[] = {
        {"for i = 1, 65 do labels['l' .. i] = 'x' end", "labels: at most 64"},
        {"for i = 1, 40000 do labels['l' .. i] = 'x' end", "labels: at most 64"},
        {"for i = 1, 64 do labels[('l'):rep(60) .. i] = ('x'):rep(63) end",
         "the request's URL would have 8"},
        {"labels.app = ('x'):rep(64)", "no object can have this label 'app'"},
        {"labels.app = ('x'):rep(1000000)", "no object can have this label 'app'"},
        {"labels[('x'):rep(1000000)] = 'x'", "no object can have this label 'xxx"},
        {"labels.app = 'x,other=y'", "no object can have this label 'app'"},
        {"labels.app = 1", "labels: expected a table of strings"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct world w;
        struct told told;
        ML_AUTO_FREE char *body = ml_asprintf(
            "local labels = {} %s\nctx.list(Secret, { labels = labels })", cases[i].labels);
        world_open(&w, body, NULL);
        assert_null(world_start(&w, &told));
        expect_outcome(&told, ML_OUTCOME_ERROR, "");
        if (!strstr(told.message, cases[i].want))
            fail_msg("'%s' is not in '%s'", cases[i].want, told.message);
        fake_expect_none(w.fake);
        world_close(&w);
    }
}

/* No code of the script runs while its options are read. */
static void test_list_asks_no_metamethod(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w,
               "local options = setmetatable({ namespace = '*' }, { __index = error })\n"
               "return { status = { n = #ctx.list(Pod, options) } }",
               NULL);
    assert_null(world_start(&w, &told));
    expect_outcome(&told, ML_OUTCOME_OK, "{\"n\":0}");
    world_close(&w);
}

/* Names come from the script: none leads to another URL, of kinds that are watched or asked for. */
static void test_names_that_no_object_can_have_are_refused(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(
        &w,
        "local names = { '../others', '..', '.', 'a/b', 'a\\nb', 'a\\0b', 'a b', 'a%2fb', 'a?b', "
        "'#',\n"
        "  ('x'):rep(254), ('x'):rep(1000 * 1000), '\\xff' }\n"
        "local tried = 0\n"
        "local function refuse(call, ...)\n"
        "  local ok, why = pcall(call, ...) assert(not ok and why:find 'name', why) tried = tried "
        "+ 1\n"
        "end\n"
        "for _, name in ipairs(names) do for _, kind in ipairs { Pod, Secret } do\n"
        "  local object = { apiVersion = 'v1', kind = kind.kind, metadata = { name = name } }\n"
        "  refuse(ctx.list, kind, { namespace = name })\n"
        "  refuse(ctx.get, kind, name)\n"
        "  refuse(ctx.get, kind, 'x', name)\n"
        "  refuse(ctx.create, object)\n"
        "  object.metadata = { name = 'x', namespace = name }\n"
        "  refuse(ctx.apply, object)\n"
        "end end\n"
        "return { status = { tried = tried } }",
        NULL);
    size_t before = fake_count(w.fake);
    world_start(&w, &told);
    expect_outcome(&told, ML_OUTCOME_OK, "{\"tried\":130}");
    assert_int_equal(fake_count(w.fake), before);
    world_close(&w);
}

static void test_list_of_what_is_used_is_asked_for(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(
        &w,
        "local list = assert(ctx.list(Secret, { labels = { app = 'x', ['example.com/tier'] = 'y' } "
        "}))\n"
        "return { status = { n = #list, kind = list[1].kind, name = list[1].metadata.name } }",
        NULL);
    assert_non_null(world_start(&w, &told));
    struct fake_call *get = fake_next(w.fake);
    assert_non_null(strstr(get->path, "/api/v1/namespaces/default/secrets?labelSelector=app%3Dx"
                                      "%2Cexample.com%2Ftier%3Dy"));
    world_answer(&w, get, 200,
                 "{\"kind\":\"SecretList\",\"items\":[{\"metadata\":{\"name\":\"a\"}},"
                 "{\"metadata\":{\"name\":\"b\"}}]}");
    expect_outcome(&told, ML_OUTCOME_OK, "{\"kind\":\"Secret\",\"n\":2,\"name\":\"a\"}");
    world_close(&w);
}

static void test_read_after_write_waits_for_the_cache(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w,
               "assert(ctx.apply(pod(at)))\n"
               "return { status = { phase = assert(ctx.get(Pod, 'x-pod')).status.phase } }",
               NULL);
    assert_non_null(world_start(&w, &told));
    struct fake_call *call = fake_next(w.fake);
    assert_string_equal(call->method, "PATCH");
    assert_string_equal(call->content_type, "application/apply-patch+yaml");
    assert_non_null(strstr(call->path, PODS "/x-pod?"));
    assert_non_null(strstr(call->path, "force=true"));
    assert_non_null(strstr(call->body, CREATED_BY_US));
    ML_AUTO_FREE char *pod = world_pod_json("101", "at-uid");
    world_answer(&w, call, 200, pod);
    assert_int_equal(told.count, 0);
    world_event(&w, "ADDED", pod);
    expect_outcome(&told, ML_OUTCOME_OK, "{\"phase\":\"Running\"}");
    world_close(&w);
}

/* The watch stands still: the read inside the reconcile goes on with what the server has. */
static void test_read_after_write_asks_the_server_when_the_watch_lags(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w,
               "assert(ctx.apply(pod(at)))\n"
               "return { status = { phase = assert(ctx.get(Pod, 'x-pod')).status.phase } }",
               NULL);
    assert_non_null(world_start(&w, &told));
    ML_AUTO_FREE char *pod = world_pod_json("101", "at-uid");
    world_answer(&w, fake_next(w.fake), 200, pod);
    ml_clock_fake_advance(&w.clock, 10 * ML_NS_PER_S);
    ml_loop_poll(w.loop);
    struct fake_call *get = fake_expect(w.fake, "GET", PODS "/x-pod");
    fake_expect_none(w.fake); /* one for the run and for the key */
    assert_int_equal(told.count, 0);
    world_answer(&w, get, 200, pod);
    expect_outcome(&told, ML_OUTCOME_OK, "{\"phase\":\"Running\"}");
    world_close(&w);
}

/* Likewise the write that waits for the cache itself: one read each time, however long it takes. */
static void test_ensure_asks_the_server_once_at_a_time_when_the_watch_lags(void **state)
{
    (void)state;
    static const int seconds[] = {10, 20, 40};
    struct world w;
    struct told told;
    world_open(&w, "return { status = { phase = assert(ctx.ensure(pod(at))).status.phase } }",
               NULL);
    assert_non_null(world_start(&w, &told));
    ML_AUTO_FREE char *pod = world_pod_json("101", "at-uid");
    world_answer(&w, fake_next(w.fake), 201, pod);
    for (size_t i = 0; i < ML_COUNT(seconds); i++) {
        assert_int_equal(told.count, 0);
        for (int passed = 0; passed < seconds[i]; passed += 5) { /* the watch is kept alive */
            ml_clock_fake_advance(&w.clock, 5 * ML_NS_PER_S);
            ml_loop_poll(w.loop);
            world_event(&w, "BOOKMARK",
                        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":"
                        "{\"resourceVersion\":\"100\"}}");
        }
        struct fake_call *get = fake_expect(w.fake, "GET", PODS "/x-pod");
        fake_expect_none(w.fake);
        world_answer(&w, get, i < 2 ? 503 : 200, i < 2 ? "{}" : pod);
    }
    expect_outcome(&told, ML_OUTCOME_OK, "{\"phase\":\"Running\"}");
    world_close(&w);
}

static void test_event_is_about_the_object(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w, "ctx.event('Started', 'it runs', 'Warning')", NULL);
    assert_null(world_start(&w, &told));
    expect_outcome(&told, ML_OUTCOME_OK, "");
    struct fake_call *call = fake_next(w.fake);
    assert_string_equal(call->method, "POST");
    assert_non_null(strstr(call->path, "/namespaces/default/events"));
    assert_non_null(strstr(call->body, CREATED_BY_US));
    assert_non_null(strstr(call->body, "\"type\":\"Warning\""));
    world_answer(&w, call, 201, "{}");
    world_close(&w);
}

/* The body of the one Event of a run, which goes to `path`; `world_close` frees it. */
static const char *event_of(struct world *w, const char *statements, const char *path)
{
    struct told told;
    world_open(w, statements, NULL);
    assert_null(world_start(w, &told));
    expect_outcome(&told, ML_OUTCOME_OK, "");
    struct fake_call *call = fake_next(w->fake);
    assert_non_null(strstr(call->path, path));
    const char *body = call->body;
    world_answer(w, call, 201, "{}");
    return body;
}

static void test_event_may_be_about_another_object(void **state)
{
    (void)state;
    static const struct {
        const char *statements, *path, *regarding;
    } rows[] = {
        {"ctx.event('X', 'y', { about = pod(at) })", "/namespaces/default/events",
         "\"regarding\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"namespace\":\"default\","
         "\"name\":\"x-pod\"}"},
        {"ctx.event('X', 'y', { about = { apiVersion = 'v1', kind = 'Node', name = 'n1', uid = "
         "'u7' "
         "} })",
         "/namespaces/default/events",
         "\"regarding\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"n1\",\"uid\":\"u7\"}"},
        {"ctx.event('X', 'y', { about = { apiVersion = 'apps/v1', kind = 'Deployment', name = 'd', "
         "namespace = 'other', controller = true } })",
         "/namespaces/other/events",
         "\"regarding\":{\"apiVersion\":\"apps/"
         "v1\",\"kind\":\"Deployment\",\"namespace\":\"other\","
         "\"name\":\"d\"}"},
        {"ctx.event('X', 'y', { related = at, type = 'Warning' })", "/namespaces/default/events",
         "\"related\":{\"apiVersion\":\"example.com/v1\",\"kind\":\"At\",\"namespace\":\"default\","
         "\"name\":\"x\",\"uid\":\"at-uid\"}"},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        struct world w;
        const char *body = event_of(&w, rows[i].statements, rows[i].path);
        if (!strstr(body, rows[i].regarding))
            fail_msg("%s: no %s in %s", rows[i].statements, rows[i].regarding, body);
        world_close(&w);
    }
}

static void test_budgets_are_kept(void **state)
{
    (void)state;
    const struct ml_script_limits limits = {.writes_max = 2, .reads_max = 3};
    struct world w;
    struct told told;
    world_open(&w, "for i = 1, 4 do ctx.get(Pod, 'a') end", &limits);
    assert_null(world_start(&w, &told));
    assert_non_null(strstr(told.message, "at.lua:13: more than 3 reads in one reconcile"));
    world_close(&w);
    world_open(&w, "for i = 1, 3 do ctx.create(pod(at)) end", &limits);
    assert_non_null(world_start(&w, &told));
    for (int i = 0; i < 2; i++) {
        fake_refuse(fake_next(w.fake), 422, "Invalid", "no");
        ml_loop_poll(w.loop);
    }
    assert_non_null(strstr(told.message, "at.lua:13: more than 2 writes in one reconcile"));
    fake_expect_none(w.fake);
    world_close(&w);
}

static void test_cancel_takes_back_what_is_open(void **state)
{
    (void)state;
    static const char closing[] = /* must not run: nothing would end it */
        "local x <close> = setmetatable({}, { __close = function() while true do end end })\n"
        "ctx.get(Secret, 's')";
    static const char *const bodies[] = {"ctx.get(Secret, 's')", "ctx.create(pod(at))", closing};
    for (size_t i = 0; i < ML_COUNT(bodies); i++) {
        struct world w;
        struct told told;
        world_open(&w, bodies[i], NULL);
        struct ml_run *run = world_start(&w, &told);
        assert_non_null(run);
        ml_script_cancel(run);
        assert_true(fake_next(w.fake)->canceled);
        assert_int_equal(told.count, 0);
        world_close(&w);
    }
    static const char *const waiting[] = {"ctx.apply(pod(at)) ctx.get(Pod, 'x-pod')",
                                          "ctx.ensure(pod(at))"};
    for (size_t i = 0; i < ML_COUNT(waiting); i++) {
        struct world w;
        struct told told;
        world_open(&w, waiting[i], NULL);
        struct ml_run *run = world_start(&w, &told);
        ML_AUTO_FREE char *pod = world_pod_json("101", "at-uid");
        world_answer(&w, fake_next(w.fake), 200, pod);
        assert_false(ml_script_writes(run));
        ml_script_cancel(run); /* while it waits for the cache */
        world_event(&w, "ADDED", pod);
        assert_int_equal(told.count, 0);
        world_close(&w);
    }
}

static void test_runs_wait_side_by_side(void **state)
{
    (void)state;
    struct world w;
    struct told told[12];
    world_open(&w, "return { status = { v = ctx.get(Secret, 's').data.v } }", NULL);
    for (size_t i = 0; i < ML_COUNT(told); i++)
        assert_non_null(world_start(&w, &told[i]));
    struct fake_call *calls[ML_COUNT(told)];
    for (size_t i = 0; i < ML_COUNT(told); i++)
        calls[i] = fake_next(w.fake);
    for (size_t n = ML_COUNT(told); n > 0; n--) { /* answered the other way round */
        ML_AUTO_FREE char *body = ml_asprintf("{\"data\":{\"v\":%zu}}", n);
        world_answer(&w, calls[n - 1], 200, body);
        ML_AUTO_FREE char *want = ml_asprintf("{\"v\":%zu}", n);
        expect_outcome(&told[n - 1], ML_OUTCOME_OK, want);
    }
    size_t memory = ml_script_budget(w.script)->used;
    for (int round = 0; round < 200; round++) { /* coroutines serve again, nothing piles up */
        assert_non_null(world_start(&w, &told[0]));
        world_answer(&w, fake_next(w.fake), 200, "{\"data\":{\"v\":1}}");
        expect_outcome(&told[0], ML_OUTCOME_OK, "{\"v\":1}");
    }
    assert_in_range(ml_script_budget(w.script)->used, 1, 2 * memory);
    world_close(&w);
}

static void test_two_scripts_do_not_meet(void **state)
{
    (void)state;
    struct world a, b;
    struct told told_a, told_b;
    world_open(&a, "string.shared = 1 return { status = { v = ctx.get(Secret, 's').data.v } }",
               NULL);
    world_open(&b,
               "assert(string.shared == nil) local s = ctx.get(Secret, 's')\n"
               "while true do end",
               &(struct ml_script_limits){.run_cpu_ns = 20 * ML_NS_PER_MS});
    assert_non_null(world_start(&a, &told_a));
    assert_non_null(world_start(&b, &told_b));
    world_answer(&b, fake_next(b.fake), 200, "{\"data\":{\"v\":1}}");
    expect_outcome(&told_b, ML_OUTCOME_ERROR, "");
    world_answer(&a, fake_next(a.fake), 200, "{\"data\":{\"v\":2}}");
    expect_outcome(&told_a, ML_OUTCOME_OK, "{\"v\":2}");
    world_close(&b);
    world_close(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passing_failure_ends_the_reconcile_past_any_pcall),
        cmocka_unit_test(test_expected_failure_comes_back_and_is_named_later),
        cmocka_unit_test(test_failure_raised_says_itself_once),
        cmocka_unit_test(test_failure_whose_message_is_raised_says_it_once),
        cmocka_unit_test(test_get_reads_the_cache_or_asks),
        cmocka_unit_test(test_names_that_no_object_can_have_are_refused),
        cmocka_unit_test(test_list_filters_and_sorts),
        cmocka_unit_test(test_list_with_too_much_of_a_filter_is_refused),
        cmocka_unit_test(test_list_asks_no_metamethod),
        cmocka_unit_test(test_list_of_what_is_used_is_asked_for),
        cmocka_unit_test(test_read_after_write_waits_for_the_cache),
        cmocka_unit_test(test_read_after_write_asks_the_server_when_the_watch_lags),
        cmocka_unit_test(test_ensure_asks_the_server_once_at_a_time_when_the_watch_lags),
        cmocka_unit_test(test_event_is_about_the_object),
        cmocka_unit_test(test_event_may_be_about_another_object),
        cmocka_unit_test(test_budgets_are_kept),
        cmocka_unit_test(test_cancel_takes_back_what_is_open),
        cmocka_unit_test(test_runs_wait_side_by_side),
        cmocka_unit_test(test_two_scripts_do_not_meet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
