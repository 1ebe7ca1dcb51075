/* F29: Lua gets no memory, at each of the allocations that loading a script and one reconcile make,
 * once or from then on. It is an error of that load or that object, nothing is left half done, and
 * the next one works. (Where the host itself gets none the process ends: ml_realloc.) Exhaustive.
 *
 * The allocator is caught where it is given to Lua: the linker puts this program's lua_newstate
 * before the library's (--wrap). */
#include "script_world.h"

#include "tried.h"

#include <lua.h>

#define ALLOCATIONS_MAX 100000
/* How often the stack grows in the reconcile below. After 5.4.4 Lua collects nothing meanwhile:
 * then that one allocation fails, and the script with it. */
#define STACK_GROWTHS (LUA_VERSION_RELEASE_NUM > 50404 ? 1 : 0)

static struct {
    lua_Alloc inner;
    void *inner_context;
    size_t count;    /* of allocations since it was armed */
    size_t fails_at; /* 0: never */
    bool for_good;   /* and from then on */
    bool has_failed; /* since it was armed; else there are no more to try */
} allocator;

static void *allocate(void *context, void *ptr, size_t osize, size_t nsize)
{
    bool grows = nsize > 0 && (!ptr || nsize > osize); /* what shrinks may not fail */
    (void)context;
    if (grows && allocator.fails_at > 0) {
        allocator.count++;
        if (allocator.count == allocator.fails_at ||
            (allocator.for_good && allocator.count > allocator.fails_at)) {
            allocator.has_failed = true;
            return NULL;
        }
    }
    return allocator.inner(allocator.inner_context, ptr, osize, nsize);
}

lua_State *__real_lua_newstate(lua_Alloc f, void *context);
lua_State *__wrap_lua_newstate(lua_Alloc f, void *context);

lua_State *__wrap_lua_newstate(lua_Alloc f, void *context)
{
    allocator.inner = f;
    allocator.inner_context = context;
    return __real_lua_newstate(allocate, NULL);
}

static void arm(size_t fails_at, bool for_good)
{
    allocator.count = 0;
    allocator.fails_at = fails_at;
    allocator.for_good = for_good;
    allocator.has_failed = false;
}

static void disarm(void)
{
    allocator.fails_at = 0;
}

static const char *const text =
    "local moonloop = require 'moonloop'\n"
    "local time = require 'moonloop.time'\n"
    "local At = moonloop.kind('example.com/v1', 'At')\n"
    "local Pod = moonloop.kind('v1', 'Pod')\n"
    "local names = {} for i = 1, 50 do names[i] = ('name-%d'):format(i) end\n"
    "return moonloop.controller { name = 'at', reconciles = At, owns = { Pod },\n"
    "  reconcile = function(at, ctx) return { status = { n = #names } } end }\n";

static void try_load(size_t n, bool for_good)
{
    struct ml_err err;
    arm(n, for_good);
    struct ml_script *script = load_file("at.lua", text, NULL, &err);
    disarm();
    assert_true(script || err.kind == ML_ESCRIPT);
    ml_script_unref(script);
}

static void load_as_ever(void)
{
    struct ml_err err;
    struct ml_script *script = load_file("at.lua", text, NULL, &err);
    assert_non_null(script);
    ml_script_unref(script);
}

static void test_memory_that_runs_out_while_a_script_loads(void **state)
{
    (void)state;
    for (int for_good = 0; for_good < 2; for_good++) {
        size_t n = 1;
        do
            try_load(n, for_good);
        while (allocator.has_failed && n++ < ALLOCATIONS_MAX);
        assert_true(n > 500);
        load_as_ever();
        faults_tried("F29", n - 1);
    }
}

/* Answers whatever the script asks, from request `first` on. Returns how many writes it sent. */
static size_t answer_all(struct world *w, size_t first)
{
    size_t writes = 0;
    for (size_t i = first; i < fake_count(w->fake); i++) {
        struct fake_call *call = fake_next(w->fake);
        ML_AUTO_FREE char *pod = world_pod_json("101", "at-uid");
        writes += strcmp(call->method, "GET") != 0;
        if (strcmp(call->method, "GET") == 0)
            world_answer(w, call, 404, "{\"kind\":\"Status\",\"reason\":\"NotFound\"}");
        else
            world_answer(w, call, 201, pod);
    }
    return writes;
}

static const char *const reconcile =
    "local list = {} for i = 1, 20 do list[i] = { n = i, text = ('x'):rep(i) } end\n"
    "local pod = assert(ctx.ensure(pod(at)))\n"
    "ctx.log('made', { name = pod.metadata.name })\n"
    "return { status = { phase = 'RUNNING', size = at.spec.size, list = list } }";

/* One reconcile that fails, then one that does not. Returns false when it did not fail. */
static bool try_reconcile(size_t n, bool for_good)
{
    struct world w;
    struct told told;
    world_open(&w, reconcile, NULL);
    size_t before = fake_count(w.fake);
    arm(n, for_good);
    world_start(&w, &told);
    size_t writes = answer_all(&w, before);
    ML_AUTO_FREE char *shown = world_pod_json("101", "at-uid");
    if (writes)
        world_event(&w, "ADDED", shown); /* the script runs on in here */
    disarm();
    assert_int_equal(told.count, 1);
    bool failed = told.outcome != ML_OUTCOME_OK;
    if (failed) {
        assert_int_equal(told.outcome, ML_OUTCOME_ERROR);
        assert_string_equal(told.status, ""); /* not half of one */
    }
    before = fake_count(w.fake);
    world_start(&w, &told);
    writes += answer_all(&w, before);
    if (told.count == 0)
        world_event(&w, "ADDED", shown);
    assert_int_equal(told.count, 1);
    assert_int_equal(told.outcome, ML_OUTCOME_OK);
    assert_int_equal(writes, 1); /* in both together */
    world_close(&w);
    return failed;
}

static void test_memory_that_runs_out_in_a_reconcile(void **state)
{
    (void)state;
    for (int for_good = 0; for_good < 2; for_good++) {
        size_t n = 1, failed = 0;
        do
            failed += try_reconcile(n, for_good);
        while (allocator.has_failed && n++ < ALLOCATIONS_MAX);
        /* Once alone is made up for by a collection of what nobody needs. */
        assert_true(for_good ? failed > 50 : failed <= STACK_GROWTHS);
        faults_tried("F29", n - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_that_runs_out_while_a_script_loads),
        cmocka_unit_test(test_memory_that_runs_out_in_a_reconcile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
