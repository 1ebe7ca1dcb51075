/* Measures the cost to hand a script an object of the cache: decoded whole, as it was once, and
 * decoded as the script touches it. On pods of 1.3 and 6 KB, for scripts that read little or all.
 *
 *   bench_objects                  nanoseconds an object, the best of several rounds
 *   bench_objects lazy phase 1000  this only, so many times on a large pod: for callgrind */
#include "bench_pods.h"
#include "bench_timing.h"

#include "script/internal.h"

#define ROUND 400

static const char source[] =
    "local moonloop, cjson = require 'moonloop', require 'cjson'\n"
    "local function copy(value)\n"
    "  if type(value) ~= 'table' then return value end\n"
    "  local to = {}\n"
    "  for key, inner in pairs(value) do to[key] = copy(inner) end\n"
    "  return to\n"
    "end\n"
    "local uses = {\n"
    "  nothing = function() end,\n"
    "  phase = function(pod) return pod.status.phase end,\n"
    "  ready = function(pod)\n"
    "    for _, condition in ipairs(pod.status.conditions) do\n"
    "      if condition.type == 'Ready' then return condition.status end\n"
    "    end\n"
    "  end,\n"
    "  copy = copy,\n"
    "  encode = cjson.encode,\n"
    "}\n"
    "return moonloop.controller { name = 'bench', reconciles = moonloop.kind('v1', 'Pod'),\n"
    "  reconcile = function(pod, use) uses[use](pod) end }\n";

static const char *const uses[] = {"nothing", "phase", "ready", "copy", "encode"};

struct job {
    struct ml_script *script;
    const struct ml_object *object;
    const char *use;
    bool lazy;
    size_t times;
};

/* Runs in script_protect. */
static int hand_over(lua_State *L)
{
    const struct job *job = lua_touserdata(L, 1);
    for (size_t i = 0; i < job->times; i++) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, job->script->reconcile_ref);
        if (job->lazy) {
            script_push_object(L, job->object, 0);
        } else {
            ml_buf_clear(&job->script->opened);
            ml_object_json(job->object, &job->script->opened);
            script_push_json(L, ml_buf_str(&job->script->opened), SHAPE_OBJECT);
        }
        lua_pushstring(L, job->use);
        lua_call(L, 2, 0);
    }
    return 0;
}

static void run_job(struct job *job)
{
    struct ml_err err = ML_ERR_INIT;
    int r = script_protect(job->script, hand_over, job, 100 * ML_NS_PER_S, &err);
    ml_assert(r == 0);
}

static double best_ns(struct job *job)
{
    struct ml_clock *clock = ml_clock_real();
    double best = 0;
    job->times = ROUND;
    for (int round = 0; round < BENCH_ROUNDS; round++) {
        int64_t start_ns = ml_clock_monotonic(clock);
        run_job(job);
        double ns = (double)(ml_clock_monotonic(clock) - start_ns) / ROUND;
        best = round == 0 || ns < best ? ns : best;
    }
    return best;
}

static struct ml_object *make_pod(bool large)
{
    struct ml_buf text = ML_BUF_INIT;
    struct ml_err err = ML_ERR_INIT;
    struct ml_object *object;
    struct ml_dict *dict = ml_dict_new();
    bench_pod(&text, 1, large);
    int r = ml_object_new(dict, "", "", ml_buf_str(&text), &object, &err);
    ml_assert(r == 0);
    ml_buf_fini(&text);
    ml_dict_unref(dict);
    return object;
}

static void measure(struct ml_script *script, bool large)
{
    struct ml_object *object = make_pod(large);
    struct job job = {.script = script, .object = object};
    struct ml_buf json = ML_BUF_INIT;
    ml_object_json(object, &json);
    printf("a pod of %zu bytes without managedFields, in ns\n", json.len);
    ml_buf_fini(&json);
    printf("  %-10s %10s %10s\n", "touched", "whole", "lazy");
    for (size_t i = 0; i < ML_COUNT(uses); i++) {
        job.use = uses[i];
        job.lazy = false;
        double whole_ns = best_ns(&job);
        job.lazy = true;
        printf("  %-10s %10.0f %10.0f\n", uses[i], whole_ns, best_ns(&job));
    }
    ml_object_unref(object);
}

int main(int argc, char **argv)
{
    const struct ml_script_file file = {ML_STR("bench.lua"), ml_str_of(source)};
    const struct ml_script_files files = {&file, 1};
    struct ml_err err = ML_ERR_INIT;
    struct ml_script *script;
    int r = ml_script_load(NULL, NULL, &files, 0, &script, &err);
    if (r < 0) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    if (argc == 4) {
        struct ml_object *object = make_pod(true);
        run_job(&(struct job){script, object, argv[2], strcmp(argv[1], "lazy") == 0,
                              (size_t)atoi(argv[3])});
        ml_object_unref(object);
    } else {
        measure(script, false);
        measure(script, true);
    }
    ml_script_unref(script);
    return 0;
}
