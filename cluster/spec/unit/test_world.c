/* The world in virtual time: scripts of this test and the embedded server as it is shipped. */
#include "unit.h"

#include "cluster/host/world.h"

#include <stdio.h>
#include <unistd.h>

#define SCRIPTS "/tmp/moonloop-test-XXXXXX"

struct world {
    struct ml_world *world;
    char folder[sizeof SCRIPTS];
    char *script; /* path of the only one */
};

/* A ConfigMap that says when, and the Secret that is made then. */
static const char *const maker =
    "local moonloop = require 'moonloop'\n"
    "local ConfigMap = moonloop.kind('v1', 'ConfigMap')\n"
    "local Secret = moonloop.kind('v1', 'Secret')\n"
    "return moonloop.controller { name = 'maker', reconciles = ConfigMap, owns = { Secret },\n"
    "  reconcile = function(map, ctx)\n"
    "    local at = tonumber(map.data and map.data.at)\n"
    "    if not at then return end\n"
    "    if at > ctx.now() then return { requeue_at = at } end\n"
    "    ctx.ensure { apiVersion = 'v1', kind = 'Secret',\n"
    "      metadata = { name = map.metadata.name } }\n"
    "  end }\n";

/* Reacts to each of its own changes with another one. */
static const char *const restless =
    "local moonloop = require 'moonloop'\n"
    "local ConfigMap = moonloop.kind('v1', 'ConfigMap')\n"
    "local Secret = moonloop.kind('v1', 'Secret')\n"
    "return moonloop.controller { name = 'restless', reconciles = ConfigMap, uses = { Secret },\n"
    "  reconcile = function(map, ctx)\n"
    "    if not (map.data and map.data.n) then return end\n"
    "    ctx.get(Secret, map.metadata.name)\n"
    "    return { requeue_after = 0 }\n"
    "  end }\n";

/* The functions for the test's Lua. */
static const char *const prelude =
    "local host, world = require 'cluster.host', require 'cluster.world'\n"
    "local server = require 'cluster.apiserver.running'\n"
    "local function call(...) return require 'cluster.apiserver.running':call(...) end\n"
    "local MAPS, SECRETS = '/api/v1/namespaces/default/configmaps',\n"
    "  '/api/v1/namespaces/default/secrets'\n"
    "local function map(name, data)\n"
    "  local code, object = call('POST', MAPS, { apiVersion = 'v1', kind = 'ConfigMap',\n"
    "    metadata = { name = name }, data = data })\n"
    "  assert(code == 201, host.json.encode(object))\n"
    "end\n"
    "local function secret(name) return (call('GET', SECRETS .. '/' .. name)) end\n"
    "local function in_seconds(n) return tostring(math.floor(host.now()) + n) end\n";

static void run(struct world *world, const char *statements)
{
    struct ml_server_lua *lua = ml_world_server_lua(world->world);
    ML_AUTO_FREE char *text = ml_asprintf("%s%s", prelude, statements);
    struct ml_err err;
    if (ml_server_lua_run(lua, "test", ml_str_of(text), &err) < 0)
        fail_msg("%s", ml_server_lua_traceback(lua));
}

static void write_script(struct world *world, const char *text)
{
    FILE *out = fopen(world->script, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

static void open_world(struct world *world)
{
    const char *const scripts[] = {world->script, NULL};
    const struct ml_world_options options = {.setup = {.scripts = scripts, .seed = 1},
                                             .log_fd = getenv("VERBOSE") ? STDERR_FILENO : -1,
                                             .files_first = true};
    struct ml_err err;
    if (ml_world_new(&options, &world->world, &err) < 0)
        fail_msg("%s", err.message);
    ml_world_lua_open(world->world);
}

static void set_up_with(struct world *world, const char *script)
{
    memcpy(world->folder, SCRIPTS, sizeof SCRIPTS);
    assert_non_null(mkdtemp(world->folder));
    world->script = ml_asprintf("%s/script.lua", world->folder);
    write_script(world, script);
    setenv("LUA_PATH", SOURCE_DIR "/?.lua;" SOURCE_DIR "/?/init.lua;" SOURCE_DIR "/lua/?.lua;;", 1);
    open_world(world);
}

static int set_up(void **state)
{
    struct world *world = ml_new(struct world);
    set_up_with(world, maker);
    *state = world;
    return 0;
}

static int set_up_restless(void **state)
{
    struct world *world = ml_new(struct world);
    set_up_with(world, restless);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    ml_world_free(world->world);
    unlink(world->script);
    rmdir(world->folder);
    free(world->script);
    free(world);
    return 0;
}

static void test_world_timer_of_a_script_comes_when_the_clock_gets_there(void **state)
{
    struct world *world = *state;
    struct ml_err err;
    run(world, "map('now', { at = in_seconds(0) }) map('later', { at = in_seconds(300) })");
    assert_int_equal(ml_world_settle(world->world, &err), 0);
    run(world, "assert(world.ready() == true, world.ready())");
    run(world, "assert(secret 'now' == 200) assert(secret 'later' == 404)");
    assert_int_equal(ml_world_advance(world->world, 299 * ML_NS_PER_S, &err), 0);
    run(world, "assert(secret 'later' == 404)");
    assert_int_equal(ml_world_advance(world->world, 1 * ML_NS_PER_S, &err), 0);
    run(world, "assert(secret 'later' == 200)");
}

static void test_world_is_driven_by_lua_of_its_own_state_in_a_coroutine(void **state)
{
    run(*state, "coroutine.wrap(function()\n"
                "  map('a', { at = in_seconds(60) })\n"
                "  assert(world.settle() == true and secret 'a' == 404)\n"
                "  assert(world.advance(60) and secret 'a' == 200)\n"
                "  assert(host.timestamp() == '2026-01-01T00:01:00Z')\n"
                "  coroutine.yield()\n"
                "end)()");
}

static void test_world_refuses_to_be_driven_from_inside(void **state)
{
    run(*state, "local said\n"
                "host.after(1, function() said = { world.settle() } end)\n"
                "assert(world.advance(1))\n"
                "assert(said[1] == nil and said[2]:find 'not from inside')");
}

static void test_world_operator_is_killed_and_another_takes_over(void **state)
{
    run(*state, "map('a', { at = in_seconds(60) })\n"
                "assert(world.settle() and world.restart())\n"
                "map('b', { at = in_seconds(0) })\n"
                "assert(world.settle() and secret 'a' == 404 and secret 'b' == 200)\n"
                "assert(world.restart() and world.restart() and world.advance(60))\n"
                "assert(secret 'a' == 200)");
}

static void test_world_faults_strike_and_are_healed(void **state)
{
    run(*state, "local number = world.fault { kind = 'refuse', method = 'POST', status = 500,\n"
                "  path = '/secrets', reason = 'InternalError' }\n"
                "assert(math.type(number) == 'integer')\n"
                "map('a', { at = in_seconds(0) })\n"
                "assert(world.advance(5) and secret 'a' == 404)\n"
                "assert(world.heal(number) and world.advance(120) and secret 'a' == 200)\n"
                "assert(world.fault { kind = 'lose_reply', method = 'POST', times = 1,\n"
                "  path = '/secrets' })\n"
                "map('b', { at = in_seconds(0) })\n"
                "assert(world.settle() and secret 'b' == 200)\n"
                "local _, why = world.fault { kind = 'none' }\n"
                "assert(why:find 'lose_reply')\n"
                "_, why = world.fault { kind = 'refuse' }\n"
                "assert(why:find 'status')");
}

static void test_world_settle_says_what_has_no_end(void **state)
{
    run(*state, "map('a', { n = '1' })\n"
                "local _, why = world.settle()\n"
                "assert(why:find('no end after 10000 rounds: GET /api/v1/namespaces/default/'\n"
                "  .. 'secrets/a', 1, true), why)\n"
                "_, why = world.advance(1)\n"
                "assert(why:find 'no end')");
}

static void test_world_settle_says_when_it_is_a_timer_that_has_no_end(void **state)
{
    run(*state, "local function again() host.after(0, again) end\n"
                "again()\n"
                "local _, why = world.settle()\n"
                "assert(why:find 'a timer or a deferred function', why)");
}

static void test_world_reset_begins_again(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *reset = ml_asprintf(
        "assert(world.reset { scripts = { '%s' }, seed = 2, now = 1000000 })", world->script);
    run(world, "map('a', { at = in_seconds(60) })\n"
               "host.after(1, function() error 'forgotten' end)\n"
               "assert(world.settle() and world.fault { kind = 'lose' })");
    run(world, reset);
    run(world, "assert(host.timestamp() == '1970-01-12T13:46:40Z')\n"
               "assert(call('GET', MAPS .. '/a') == 404)\n"
               "map('b', { at = in_seconds(0) })\n"
               "assert(world.settle() and secret 'b' == 200 and world.advance(100))\n"
               "assert(world.ready() == true)\n"
               "local _, why = world.reset { scripts = { 1 } }\n"
               "assert(why:find 'a list of paths')");
}

static void test_world_cnat_makes_its_pod_five_minutes_later(void **state)
{
    static const char *const setup = "{ scripts = { '" SOURCE_DIR "/reconcilers/cnat.lua' } }";
    ML_AUTO_FREE char *reset = ml_asprintf("assert(world.reset %s)", setup);
    run(*state, reset);
    run(*state,
        "local file = assert(io.open('" SOURCE_DIR "/crds/at.yaml'))\n"
        "local code, answer = call('POST',\n"
        "  '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',\n"
        "  host.yaml.decode(file:read 'a')[1])\n"
        "file:close()\n"
        "assert(code == 201, host.json.encode(answer))\n"
        "assert(world.settle() and world.ready() == true, world.ready())\n"
        "local ATS = '/apis/cnat.programming-kubernetes.info/v1alpha1/namespaces/default/ats'\n"
        "local POD = '/api/v1/namespaces/default/pods/a-pod'\n"
        "local function phase()\n"
        "  local _, at = call('GET', ATS .. '/a')\n"
        "  return at.status and at.status.phase\n"
        "end\n"
        "code, answer = call('POST', ATS, { kind = 'At', metadata = { name = 'a' },\n"
        "  apiVersion = 'cnat.programming-kubernetes.info/v1alpha1',\n"
        "  spec = { schedule = '2026-01-01T00:05:00Z', command = 'echo YAY' } })\n"
        "assert(code == 201, host.json.encode(answer))\n"
        "assert(world.advance(299) and phase() == 'PENDING' and call('GET', POD) == 404)\n"
        "assert(world.advance(1) and phase() == 'RUNNING')\n"
        "local pod\n"
        "code, pod = call('GET', POD)\n"
        "assert(code == 200 and pod.spec.containers[1].command[2] == 'YAY')\n"
        "pod.status.phase = 'Succeeded'\n"
        "code, answer = call('PUT', POD .. '/status', pod)\n"
        "assert(code == 200, host.json.encode(answer))\n"
        "assert(world.settle() and phase() == 'DONE')");
}

static void test_world_bad_script_is_told_by_ready(void **state)
{
    struct world *world = *state;
    write_script(world, "return 1 +");
    run(world, "assert(world.restart() and world.settle())\n"
               "assert(world.ready():find 'script.lua', world.ready())");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_world_##name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(timer_of_a_script_comes_when_the_clock_gets_there),
        TEST(is_driven_by_lua_of_its_own_state_in_a_coroutine),
        TEST(refuses_to_be_driven_from_inside),
        TEST(operator_is_killed_and_another_takes_over),
        TEST(faults_strike_and_are_healed),
        cmocka_unit_test_setup_teardown(test_world_settle_says_what_has_no_end, set_up_restless,
                                        tear_down),
        TEST(settle_says_when_it_is_a_timer_that_has_no_end),
        TEST(reset_begins_again),
        TEST(cnat_makes_its_pod_five_minutes_later),
        TEST(bad_script_is_told_by_ready),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
