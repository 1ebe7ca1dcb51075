/* Nothing outlives a run but what the script itself keeps: each function of the script API, as
 * lua/script_api.lua lists them, and each form of a result, ten thousand times, and the state of
 * the script has the size that it had after the first thousand. Counted by the script's own budget
 * after a full collection. */
#include "script_world.h"

#include "../../fuzz/lua_signatures.h"
#include "script/internal.h"

#define CALLS      10000
#define FIRST      1000               /* caches are filled by then */
#define CALLS_EACH 50                 /* in one run; below the limits of writes, reads, Events */
#define SLACK      ((size_t)8 * 1024) /* tables that grow by doubling, and some of them late */

static const struct ml_script_limits limits = {.run_cpu_ns = 10 * ML_NS_PER_S,
                                               .load_cpu_ns = 10 * ML_NS_PER_S};

/* `n` counts the calls, so that no two of them have the same arguments. */
static const char prelude[] =
    "local cjson, crypto, base64 = require 'cjson', require 'moonloop.crypto', require "
    "'moonloop.base64'\n"
    "local quantity, yaml, labels = require 'moonloop.quantity', require 'moonloop.yaml', require "
    "'moonloop.labels'\n"
    "local regex = require 'moonloop.regex'\n"
    "local n, kept = 0, nil\n"
    "local function make(at) return { apiVersion = 'v1', kind = 'Pod',\n"
    "  metadata = { name = 'x-pod' }, spec = { text = 'x' .. n } } end\n";

/* An argument for each letter of spec/fuzz/lua_grammar.h; a new one needs its line here. */
static const char *argument(char letter)
{
    static const struct {
        char letter;
        const char *text;
    } arguments[] = {
        {'s', "'x' .. n"},
        {'i', "n % 60 + 1"},
        {'n', "n + 0.5"},
        {'t', "{ 'x' .. n, a = { n } }"},
        {'f', "function() return { n } end"},
        {'c', "function(a, b) return tostring(a) < tostring(b) end"},
        {'p', "'x%d*' .. n"},
        {'r', "'y' .. n"},
        {'F', "'%s' .. n"},
        {'k', "Pod"},
        {'o', "make(at)"},
        {'q', "{ labels = { a = 'x' .. n } }"},
        {'d', "{ year = 2000 + n, month = 1, day = 1 }"},
        {'T', "{ name = 'x' .. n, reconciles = Pod, reconcile = function() return n end }"},
        {'w', "function() return n end"},
        {'e', "{ labels = 'a=x' .. n }"},
        {'m', "{ __index = { n } }"},
        {'v', "{ n, 'x' .. n }"},
        {'b', "n % 2 == 0"},
    };
    for (size_t i = 0; i < ML_COUNT(arguments); i++)
        if (arguments[i].letter == letter)
            return arguments[i].text;
    fail_msg("no argument for the letter %c", letter);
    return NULL;
}

/* Functions that need more than arguments of the right types to do their work. */
static const char *call_of(const char *name)
{
    static const char *const calls[][2] = {
        {"ctx.apply", "ctx.apply(make(at))"},
        {"ctx.ensure", "ctx.ensure(make(at), { adopt = true })"},
        {"ctx.metric", "ctx.metric('m', n, { l = 'x' })"},
        {"ctx.once", "ctx.once('s', { key = function() return 'x' .. n end })"},
        {"ctx.list", "ctx.list(Pod, { namespace = '*' })"},
        {"pairs", "for _ in pairs { n, a = n } do end"},
        {"rawset", "rawset({}, 'x' .. n, n)"},
    };
    for (size_t i = 0; i < ML_COUNT(calls); i++)
        if (strcmp(calls[i][0], name) == 0)
            return calls[i][1];
    return NULL;
}

static char *statement_of(const struct signature *signature)
{
    struct ml_buf text = ML_BUF_INIT;
    const char *call = call_of(signature->name);
    if (call) {
        ml_buf_puts(&text, call);
        return ml_buf_take(&text);
    }
    ml_buf_printf(&text, "%s(", signature->name);
    bool first = true;
    for (const char *letter = signature->types; *letter; letter++) {
        if (*letter == '?')
            continue;
        ml_buf_printf(&text, "%s%s", first ? "" : ", ", argument(*letter));
        first = false;
    }
    ml_buf_puts(&text, ")");
    return ml_buf_take(&text);
}

/* ---- the server ---- */

struct server {
    struct world *w;
    unsigned version;
};

/* Makes what it is asked for, and shows it: of Pods, in the watch. */
static void serve(void *context, struct fake_call *call)
{
    struct server *server = context;
    bool makes = strcmp(call->method, "PATCH") == 0 && strstr(call->path, "/pods/");
    if (strstr(call->path, "/events")) {
        fake_reply(call, 201, "{}");
    } else if (!makes || strstr(call->body, "missing")) {
        fake_reply(call, 404, NOT_FOUND);
    } else {
        ML_AUTO_FREE char *version = ml_asprintf("%u", ++server->version);
        ML_AUTO_FREE char *pod = world_pod_json(version, "at-uid");
        ML_AUTO_FREE char *event = ml_asprintf("{\"type\":\"MODIFIED\",\"object\":%s}\n", pod);
        fake_reply(call, 200, pod);
        assert_true(fake_piece(server->w->watch, event));
    }
}

static void run_once(struct world *w, const char *what)
{
    struct told told;
    world_start(w, &told);
    for (int i = 0; i < 5 * CALLS_EACH && told.count == 0; i++)
        ml_loop_poll(w->loop);
    ml_clock_fake_advance(&w->clock, ML_NS_PER_S);
    ml_loop_poll(w->loop); /* Events are sent */
    if (told.count == 0)
        fail_msg("%s: a run does not end", what);
}

static size_t size_of_state(const struct world *w)
{
    lua_gc(w->script->L, LUA_GCCOLLECT, 0);
    lua_gc(w->script->L, LUA_GCCOLLECT, 0); /* what the first one has only marked */
    return ml_script_budget(w->script)->used;
}

/* Runs it so often that there were CALLS calls, `each` of them in a run. Returns 1 if it grew. */
static size_t check_steady(const char *body, size_t each, const char *what)
{
    struct world w;
    struct server server = {&w, 1000};
    size_t before = 0;
    world_open_file(&w, prelude, "nil", body, &limits);
    w.log.level = ML_LOG_ERROR;
    fake_set_handler(w.fake, serve, &server);
    for (size_t calls = 0; calls < CALLS; calls += each) {
        run_once(&w, what);
        if (calls + each >= FIRST && before == 0)
            before = size_of_state(&w);
    }
    size_t after = size_of_state(&w);
    size_t records = w.script->refusals.by_id.len + ml_expectations_len(w.expectations);
    world_close(&w);
    if (records > 100)
        print_error("%s: %zu records are left\n", what, records);
    if (after > before + SLACK)
        print_error("%s: %zu bytes after %d calls, %zu after %d\n", what, before, FIRST, after,
                    CALLS);
    return records > 100 || after > before + SLACK;
}

static void test_each_function_leaves_nothing_behind(void **state)
{
    (void)state;
    size_t wrong = 0;
    for (size_t i = 0; i < ML_COUNT(signatures); i++) {
        ML_AUTO_FREE char *call = statement_of(&signatures[i]);
        ML_AUTO_FREE char *body = ml_asprintf(
            "for _ = 1, %d do n = n + 1 pcall(function() %s end) end", CALLS_EACH, call);
        wrong += check_steady(body, CALLS_EACH, call);
    }
    assert_int_equal(wrong, 0);
}

static void test_each_result_leaves_nothing_behind(void **state)
{
    (void)state;
    static const char *const results[] = {
        "",
        "return nil",
        "return {}",
        "return { status = { n = n, text = 'x' .. n } }",
        "return { conditions = { Ready = { status = n % 2 == 0, message = 'x' .. n } } }",
        "return { requeue_after = n }",
        "return { requeue_at = ctx.now() + n }",
        "return { children = {} }",
        "return { children = { moonloop.recreate(make(at)) }, requeue_after = '1s' }",
        "local child = make(at) child.metadata.name = 'missing'\n"
        "return { children = { moonloop.recreate(child) } }",
        "return { children = { make(at), make(at) } }",
        "return ctx.invalid('spec.x' .. n, 'odd ' .. n)",
        "return ctx.invalid('spec.x' .. n, 'odd ' .. n, { status = { n = n } })",
        "return ctx.terminal('odd ' .. n)",
        "return ctx.terminal('odd ' .. n, { conditions = { Ready = { status = false } } })",
        "error('odd ' .. n)",
        "error({ n })",
        "return n",
        "return { stauts = n }",
        "return nil, 'x' .. n",
        "local _, err = ctx.get(Pod, 'none') error(err)",
        "return { status = { f = function() end } }",
    };
    size_t wrong = 0;
    for (size_t i = 0; i < ML_COUNT(results); i++) {
        ML_AUTO_FREE char *body = ml_asprintf("n = n + 1 %s", results[i]);
        wrong += check_steady(body, 1, results[i]);
    }
    assert_int_equal(wrong, 0);
}

/* The measure sees a value that a script keeps. */
static void test_what_a_script_keeps_is_seen(void **state)
{
    (void)state;
    assert_int_equal(check_steady("n = n + 1 kept = { kept, n }", 1, "(as it should be) kept"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_function_leaves_nothing_behind),
        cmocka_unit_test(test_each_result_leaves_nothing_behind),
        cmocka_unit_test(test_what_a_script_keeps_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
