/* Results of a reconcile, and their effects. */
#include "script_world.h"

#include <signal.h>

static void test_run_result_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        enum ml_outcome outcome;
        const char *message, *field, *status;
        int64_t after_ns, at_ns;
    } cases[] = {
        {"", ML_OUTCOME_OK, "", "", "", -1, -1},
        {"return nil", ML_OUTCOME_OK, "", "", "", -1, -1},
        {"return {}", ML_OUTCOME_OK, "", "", "", -1, -1},
        {"return { status = { phase = 'A', n = 1 } }", ML_OUTCOME_OK, "", "",
         "{\"n\":1,\"phase\":\"A\"}", -1, -1},
        {"return { status = at.status }", ML_OUTCOME_OK, "", "", "{}", -1, -1},
        {"return { requeue_after = 1.5 }", ML_OUTCOME_OK, "", "", "", 1500 * ML_NS_PER_MS, -1},
        {"return { requeue_after = '5m30s' }", ML_OUTCOME_OK, "", "", "", 330 * ML_NS_PER_S, -1},
        {"return { requeue_at = 1700000060 }", ML_OUTCOME_OK, "", "", "", -1,
         1700000060 * ML_NS_PER_S},
        {"return ctx.invalid('spec.size', 'too large')", ML_OUTCOME_INVALID, "too large",
         "spec.size", "", -1, -1},
        {"return ctx.terminal('no way')", ML_OUTCOME_TERMINAL, "no way", "", "", -1, -1},
        {"if at.status.phase or at.metadata.labels.x then error() end assert(at.spec.size == 3)",
         ML_OUTCOME_OK, "", "", "", -1, -1},
        {"for k in pairs(at) do assert(k ~= 'status') end assert(rawget(at, 'status') == nil)",
         ML_OUTCOME_OK, "", "", "", -1, -1},
        {"assert(ctx.now() == 1700000000)", ML_OUTCOME_OK, "", "", "", -1, -1},
        {"assert(time.format(ctx.now()) == '2023-11-14T22:13:20Z')", ML_OUTCOME_OK, "", "", "", -1,
         -1},
        {"ctx.log('hello', { n = 1, list = { 1 } }) ctx.log('again')", ML_OUTCOME_OK, "", "", "",
         -1, -1},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct world w;
        struct told told;
        world_open(&w, cases[i].body, NULL);
        assert_null(world_start(&w, &told));
        assert_int_equal(told.count, 1);
        if (told.outcome != cases[i].outcome)
            fail_msg("%s: %s", cases[i].body, told.message);
        assert_string_equal(told.message, cases[i].message);
        assert_string_equal(told.field, cases[i].field);
        assert_string_equal(told.status, cases[i].status);
        assert_int_equal(told.after_ns, cases[i].after_ns);
        assert_int_equal(told.at_ns, cases[i].at_ns);
        world_close(&w);
    }
}

static void test_run_log_line_has_the_keys_of_all_lines(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w, "ctx.log('hello', { n = 1 })", NULL);
    assert_null(world_start(&w, &told));
    assert_int_equal(unit_count(w.log.fd,
                                " info  at: hello controller=\"at\" controllerKind=\"At\" "
                                "namespace=\"default\" name=\"x\" "
                                "reconcileID=\"0000abcd\" fields={\"n\":1}\n"),
                     1);
    world_close(&w);
}

static void test_run_mistake_is_an_error_with_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *body, *want;
    } cases[] = {
        {"error 'boom'", "at.lua:13: boom"},
        {"local x = at.spec.deep.er", "at.lua:13: attempt to index a nil value (field 'deep')"},
        {"at.status.phase = 'X'",
         "at.lua:13: the object has no status yet: return { status = { … } } from reconcile"},
        {"at.metadata.labels.x = 'X'",
         "at.lua:13: the object has no labels: give it a whole table"},
        {"return 5", "at.lua:12: reconcile returned a number; expected nothing"},
        {"return nil, 'bad'", "at.lua:12: reconcile returned nil and 'bad'"},
        {"return {}, {}", "at.lua:12: reconcile returned more than one value"},
        {"return { stauts = {} }", "unknown field 'stauts'; did you mean 'status'?"},
        {"return { status = 'x' }", "status: expected a table, got a string"},
        {"return { status = { 1 } }", "at.lua:12: status: expected an object, not a list"},
        {"return { status = { phase = error } }",
         "at.lua:12: status.phase: a function cannot be stored"},
        {"return { requeue_after = '5 parsecs' }", "requeue_after: expected a duration like 5m30s"},
        {"return { requeue_after = -1 }", "requeue_after: -1 seconds is out of range"},
        {"return { requeue_after = 1e300 }", "requeue_after: 1e+300 seconds is out of range"},
        {"return { requeue_at = 9223372036854775807 }", "seconds is out of range"},
        {"return { requeue_at = '5m' }", "requeue_at: expected a number of seconds"},
        {"return { requeue_at = 1, requeue_after = 1 }", "one of them, not both"},
        {"ctx.update(at)", "at.lua:13: ctx has no 'update'; it has get, list, ensure, create"},
        {"ctx.now = 1", "ctx cannot be changed"},
        {"return ctx.invalid('x')",
         "at.lua:12: ctx.invalid(field, why [, { status =, conditions = }]): expected two strings"},
        {"local v = ctx.invalid('x') return v", "at.lua:13: ctx.invalid(field, why [, "},
        {"error(setmetatable({}, { __tostring = function() while true do end end }))",
         "at.lua:13: error() was called with a table"},
        {"ctx.get('Pod', 'x')", "at.lua:13: ctx.get(Kind, name [, namespace]): expected a kind"},
        {"ctx.get(Pod)", "expected the name of an object, got no value"},
        {"ctx.get(Pod, 'a/b')", "ctx.get(Kind, name [, namespace]): the name 'a/b' is no name: it "
                                "has letters, digits, '-', '.' and ':', and begins and ends"},
        {"ctx.get(Pod, ('a'):rep(254))", "the name has 254 bytes; a name has at most 253"},
        {"ctx.get(Pod, 'a', ('a'):rep(254))", "the namespace has 254 bytes; a name has at most"},
        {"ctx.get(Node, 'x')",
         "at.lua:13: Node v1 is not declared: add it to owns, watches or uses"},
        {"ctx.list(Pod, { label = {} })", "ctx.list(Kind [, { namespace =, labels =, owned =,"},
        {"ctx.create {}", "ctx.create(object): the object needs apiVersion and kind"},
        {"ctx.create { apiVersion = 'v1', kind = 'Pod', metadata = {} }",
         "metadata.name is missing"},
        {"ctx.create { apiVersion = 'v1', kind = 'Pod', metadata = { generateName = 'a/' } }",
         "ctx.create(object): metadata.name 'a/"},
        {"ctx.apply { apiVersion = 'v1', kind = 'Pod', metadata = { name = ('a'):rep(254) } }",
         "metadata.name has 254 bytes; a name has at most 253"},
        {"ctx.apply { apiVersion = 'v1', kind = 'Pod', metadata = { name = 5 } }",
         "metadata.name is no text"},
        {"ctx.apply { apiVersion = 'v1', kind = 'Pod', metadata = { name = 'a', namespace = 'B_' } "
         "}",
         "metadata.namespace 'B_' is no name: it has letters"},
        {"ctx.create 'x'", "ctx.create(object): expected an object as in a manifest, got a string"},
        {"ctx.create { apiVersion = 'v1', kind = 'Pod', metadata = { name = 'a', namespace = 'b' } "
         "}",
         "a Pod in namespace 'b' cannot be owned by a At in namespace 'default'"},
        {"ctx.delete(pod(at))", "ctx.delete(object): the object was not read from the server"},
        {"ctx.patch(pod(at), {})", "was not read from the server"},
        {"ctx.event('x')",
         "ctx.event(reason, note [, { type =, about =, related = }]): expected two strings"},
        {"ctx.event('x', 'y', { abaut = at })", "unknown field 'abaut'; did you mean 'about'"},
        {"ctx.event('x', 'y', { about = 'Pod' })",
         "about: expected an object, or a reference as in { apiVersion = \"v1\", kind = "
         "\"Node\", name = \"a\" }, got a string"},
        {"ctx.event('x', 'y', { about = { name = 'a' } })", "about: it needs apiVersion and kind"},
        {"ctx.event('x', 'y', { related = { apiVersion = 'v1', kind = 'Node' } })",
         "related: its name"},
        {"ctx.event('x', 'y', { about = { apiVersion = 'v1', kind = 'Node', name = '../x' } })",
         "about: its name"},
        {"ctx.event('x', 'y', { about = { apiVersion = 'v1', kind = 'Node', name = 'x', "
         "namespace = 'a/b' } })",
         "about: its namespace"},
        {"ctx.event('x', 'y', { about = { apiVersion = 'v1', kind = 'Pod', name = 'x', "
         "namespace = '..' } })",
         "the namespace"},
        {"ctx.event('x', 'y', { about = { apiVersion = 'v1', kind = 'Node', name = 7 } })",
         "about: its name: expected a text, got a number"},
        {"ctx.event('x', 'y', { type = 'Bad' })", "the type is \"Normal\" or \"Warning\""},
        {"ctx.event('x', 'y', 'Bad')", "the type is \"Normal\" or \"Warning\""},
        {"('x'):gsub('x', function() ctx.get(Secret, 'x') end)", "cannot wait inside a function"},
        {"while true do end", "at.lua:13: used more than 50 ms of CPU time without waiting"},
        {"while true do pcall(error) end", "used more than 50 ms of CPU time"},
        {"local s = 'x' while true do s = s .. s end", "at.lua:13: out of memory (limit 16 MiB)"},
        {"require 'late'", "only while the script loads"},
    };
    const struct ml_script_limits limits = {.run_cpu_ns = 50 * ML_NS_PER_MS};
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct world w;
        struct told told;
        world_open(&w, cases[i].body, &limits);
        assert_null(world_start(&w, &told));
        assert_int_equal(told.count, 1);
        if (told.outcome != ML_OUTCOME_ERROR || !strstr(told.message, cases[i].want))
            fail_msg("%s: '%s' is not in '%s'", cases[i].body, cases[i].want, told.message);
        assert_int_equal(told.kind, ML_ESCRIPT);
        world_close(&w);
    }
}

static void test_run_error_has_a_traceback(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w, "local function inner() error('deep') end\ninner()", NULL);
    assert_null(world_start(&w, &told));
    assert_string_equal(told.message, "at.lua:13: deep");
    assert_non_null(strstr(told.traceback, "at.lua:13: in "));
    assert_non_null(strstr(told.traceback, "at.lua:14: in "));
    assert_null(strstr(told.traceback, "0x"));
    world_close(&w);
}

static void test_run_state_serves_again_after_a_bomb(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w,
               "if ctx.now() > 1700000000 then return { status = { ok = true } } end\n"
               "local t = {} for i = 1, 1e9 do t[i] = { i } end",
               NULL);
    assert_null(world_start(&w, &told));
    assert_non_null(strstr(told.message, "out of memory (limit 16 MiB)"));
    ml_clock_fake_advance(&w.clock, ML_NS_PER_S);
    assert_null(world_start(&w, &told));
    assert_string_equal(told.status, "{\"ok\":true}");
    world_close(&w);
}

static void test_run_cpu_in_all_is_limited(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    const struct ml_script_limits limits = {.run_cpu_ns = 20 * ML_NS_PER_MS};
    world_open(&w,
               "while true do\n"
               "  for i = 1, 100000 do local s = tostring(i) end\n"
               "  ctx.get(Secret, 's')\n"
               "end",
               &limits);
    world_start(&w, &told);
    for (size_t i = 0; i < 1000 && told.count == 0; i++)
        world_answer(&w, fake_next(w.fake), 404, "{\"kind\":\"Status\",\"code\":404}");
    assert_int_equal(told.outcome, ML_OUTCOME_ERROR);
    assert_non_null(strstr(told.message, "of CPU time"));
    world_close(&w);
}

/* The transport of the world, but the deadline rings while a request is handed over: between the
 * script's last instruction and its wait. */
static struct ml_transport_call *(*submit_before)(struct ml_transport *transport,
                                                  const struct ml_transport_request *request,
                                                  const struct ml_http_handler *handler,
                                                  void *context);

static struct ml_transport_call *ring_and_submit(struct ml_transport *transport,
                                                 const struct ml_transport_request *request,
                                                 const struct ml_http_handler *handler,
                                                 void *context)
{
    raise(SIGVTALRM);
    return submit_before(transport, request, handler, context);
}

static void test_run_deadline_that_rings_when_it_waits_ends_it_with_the_answer(void **state)
{
    (void)state;
    static const struct {
        const char *body, *answer;
        int status;
    } cases[] = {
        {"pcall(ctx.get, Secret, 's') error('went on')", "{}", 200},
        {"ctx.get(Secret, 's') error('went on')", "{\"kind\":\"Status\",\"code\":404}", 404},
        {"ctx.create(pod(at)) error('went on')",
         "{\"metadata\":{\"name\":\"x-pod\",\"namespace\":\"default\",\"resourceVersion\":\"101\"}"
         "}",
         201},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct world w;
        struct told told;
        world_open(&w, cases[i].body, NULL);
        struct ml_transport *transport = fake_transport_seam(w.fake);
        submit_before = transport->submit;
        transport->submit = ring_and_submit;
        assert_non_null(world_start(&w, &told));
        assert_int_equal(told.count, 0);
        world_answer(&w, fake_next(w.fake), cases[i].status, cases[i].answer);
        if (i == 2) /* the writer waits for the cache */
            world_event(&w, "ADDED",
                        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":"
                        "{\"name\":\"x-pod\",\"namespace\":\"default\",\"uid\":\"u\","
                        "\"resourceVersion\":\"101\"}}");
        assert_int_equal(told.count, 1);
        assert_int_equal(told.outcome, ML_OUTCOME_ERROR);
        assert_non_null(strstr(told.message, "of CPU time without waiting"));
        world_close(&w);
    }
}

/* A read where the run cannot wait is an error, and leaves no request under way. */
static void test_run_reads_after_a_write_where_nothing_can_wait(void **state)
{
    (void)state;
    static const char *const calls[] = {"ctx.get(Pod, 'p')", "ctx.list(Pod)"};
    for (size_t i = 0; i < ML_COUNT(calls); i++) {
        struct world w;
        struct told told;
        ML_AUTO_FREE char *body = ml_asprintf(
            "local p = assert(ctx.get(Pod, 'p'))\n"
            "ctx.patch(p, { metadata = { labels = { a = 'b' } } })\n"
            "local ok, why\n"
            "('x'):gsub('x', function() ok, why = pcall(function() return %s end) end)\n"
            "assert(not ok) error(why)",
            calls[i]);
        world_open(&w, body, NULL);
        world_event(&w, "ADDED",
                    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":"
                    "{\"name\":\"p\",\"namespace\":\"default\",\"uid\":\"u\","
                    "\"resourceVersion\":\"101\"}}");
        world_start(&w, &told);
        world_answer(&w, fake_next(w.fake), 200,
                     "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\","
                     "\"namespace\":\"default\",\"resourceVersion\":\"102\"}}");
        assert_int_equal(told.count, 1);
        if (!strstr(told.message, "cannot wait inside a function"))
            fail_msg("%s", told.message);
        world_close(&w);
    }
}

/* A table keeps the metatable that protects it. */
static void test_run_nothing_but_plain_tables_is_marked_as_a_list(void **state)
{
    (void)state;
    static const char *const others[] = {"ctx",
                                         "at",
                                         "at.status",
                                         "at.metadata",
                                         "at.metadata.labels",
                                         "ctx.invalid('a', 'b')",
                                         "ctx.terminal('a')",
                                         "Pod"};
    for (size_t i = 0; i < ML_COUNT(others); i++) {
        struct world w;
        struct told told;
        ML_AUTO_FREE char *body = ml_asprintf("moonloop.array(%s)", others[i]);
        world_open(&w, body, NULL);
        assert_null(world_start(&w, &told));
        if (!strstr(told.message, "at.lua:13: moonloop.array(list): "))
            fail_msg("%s: '%s'", others[i], told.message);
        world_close(&w);
    }
}

/* A result that was changed after ctx.invalid made it costs an error. */
static void test_run_result_that_lies_is_an_error(void **state)
{
    (void)state;
    static const char *const changes[] = {
        "v.outcome = 'ok'",
        "v.outcome = nil",
        "v.outcome = 5",
        "v.field = 5",
        "v.field = {}",
        "v.message = nil",
        "v.message = {}",
        "v.field = moonloop.null",
        "v.outcome = 'invalid\\0'",
        "for i = 1, 5000 do v[i] = i end",
    };
    for (size_t i = 0; i < ML_COUNT(changes); i++) {
        struct world w;
        struct told told;
        ML_AUTO_FREE char *body = ml_asprintf("local v = ctx.invalid('spec.x', 'bad') %s return v",
                                              changes[i]);
        world_open(&w, body, NULL);
        assert_null(world_start(&w, &told));
        if (told.outcome != ML_OUTCOME_ERROR)
            fail_msg("%s: outcome %d", changes[i], told.outcome);
        world_close(&w);
    }
}

/* Each function of ctx with each kind of value in each place: an error at most. */
static void test_run_ctx_takes_any_argument(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(
        &w,
        "local f = function() end\n"
        "local values = { '', 0, 0/0, -1, math.mininteger, true, {}, { 1 }, f, ctx, at,\n"
        "  at.status, at.metadata, moonloop.null, Pod, moonloop.array {}, 'p', 'a/b', '..',\n"
        "  setmetatable({}, { __index = f, __len = f, __pairs = f, __tostring = f }),\n"
        "  ctx.invalid('a', 'b'), { labels = 5 }, { namespace = '..' }, { owned = 'x' } }\n"
        "for _, name in ipairs { 'get', 'list', 'ensure', 'create', 'apply', 'patch', 'delete',\n"
        "  'event', 'log', 'now', 'invalid', 'terminal' } do\n"
        "  local call = ctx[name]\n"
        "  pcall(call)\n"
        "  for _, a in ipairs(values) do\n"
        "    pcall(call, a) pcall(call, ctx, a) pcall(call, Pod, a)\n"
        "    for _, b in ipairs(values) do\n"
        "      if type(a) ~= 'string' or type(b) ~= 'string' then pcall(call, a, b) end\n"
        "    end\n"
        "    pcall(call, Pod, 'p', a) pcall(call, Pod, a, a) pcall(call, 'x', 5, a)\n"
        "  end\n"
        "end\n"
        "return { status = { ok = true } }",
        NULL);
    world_start(&w, &told);
    for (size_t i = 0; i < 200 && told.count == 0; i++) /* some were writes of the object at hand */
        world_answer(&w, fake_next(w.fake), 404, "{\"kind\":\"Status\",\"code\":404}");
    assert_int_equal(told.count, 1);
    if (told.outcome != ML_OUTCOME_OK)
        fail_msg("%s", told.message);
    fake_expect_none(w.fake);
    world_close(&w);
}

struct emitted {
    size_t count;
    char keys[4][64];
};

static void emit(void *context, struct ml_str key)
{
    struct emitted *emitted = context;
    snprintf(emitted->keys[emitted->count++], 64, ML_STR_FMT, ML_STR_ARG(key));
}

static void test_map_says_whom_a_change_concerns(void **state)
{
    (void)state;
    static const struct {
        const char *annotations;
        size_t count;
        int result;
    } cases[] = {
        {"{\"to\":\"a/b\"}", 2, 0},
        {"{}", 0, 0},
        {"{\"to\":\"b\"}", 2, 0},
        {"{\"to\":\"not a key\"}", 0, ML_ESCRIPT},
        {"{\"to\":\"/b\"}", 0, ML_ESCRIPT},
        {"{\"to\":\"a/\"}", 0, ML_ESCRIPT},
        {"{\"to\":\"a/b/c\"}", 0, ML_ESCRIPT},
        {"{\"to\":\"\"}", 0, ML_ESCRIPT},
    };
    struct world w;
    world_open(&w, "", NULL);
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct emitted emitted = {.count = 0};
        struct ml_object *pod = NULL;
        struct ml_err err = ML_ERR_INIT;
        ML_AUTO_FREE char *json = ml_asprintf(
            "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"namespace\":"
            "\"d\",\"uid\":\"u\",\"resourceVersion\":\"1\",\"annotations\":%s}}",
            cases[i].annotations);
        assert_int_equal(ml_object_new(w.dict, "", "", ml_str_of(json), &pod, &err), 0);
        assert_int_equal(ml_script_map(w.script, 2, pod, emit, &emitted, &err), cases[i].result);
        assert_int_equal(emitted.count, cases[i].count);
        if (emitted.count == 2) {
            assert_string_equal(emitted.keys[0], i == 0 ? "a/b" : "b");
            assert_string_equal(emitted.keys[1], "n/m");
        }
        if (cases[i].result)
            assert_non_null(strstr(err.message, "at.lua:4: the watch function for Pod returned"));
        ml_object_unref(pod);
    }
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_result_is_told),
        cmocka_unit_test(test_run_log_line_has_the_keys_of_all_lines),
        cmocka_unit_test(test_run_mistake_is_an_error_with_its_line),
        cmocka_unit_test(test_run_error_has_a_traceback),
        cmocka_unit_test(test_run_state_serves_again_after_a_bomb),
        cmocka_unit_test(test_run_cpu_in_all_is_limited),
        cmocka_unit_test(test_run_deadline_that_rings_when_it_waits_ends_it_with_the_answer),
        cmocka_unit_test(test_run_reads_after_a_write_where_nothing_can_wait),
        cmocka_unit_test(test_run_nothing_but_plain_tables_is_marked_as_a_list),
        cmocka_unit_test(test_run_result_that_lies_is_an_error),
        cmocka_unit_test(test_run_ctx_takes_any_argument),
        cmocka_unit_test(test_map_says_whom_a_change_concerns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
