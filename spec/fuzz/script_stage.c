#include "stage_server.h"

#include <sanitizer/lsan_interface.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "codec/json.h"
#include "operator/status.h"
#include "script/internal.h"

#define NOW        (INT64_C(1700000000) * ML_NS_PER_S)
#define STEPS_MAX  40
#define LEAKS_EACH 256 /* inputs */
/* The longest that C works without looking at the deadline: the escapes of a string as large as one
 * may be, 25 ms as released and eight times that when it is instrumented. */
#define CPU_SLACK      (200 * ML_NS_PER_MS)
#define STATUS_BYTE_NS 300 /* instrumented */
#define LOG_MAX        ((size_t)4 * 1024 * 1024)

static const struct ml_kind at_kind = {
    "example.com/v1", "example.com", "v1", "At", "ats", true, true};
static const struct ml_kind pod_kind = {"v1", "", "v1", "Pod", "pods", true, true};
static const struct ml_kind secret_kind = {"v1", "", "v1", "Secret", "secrets", true, false};
static const struct ml_kind node_kind = {"v1", "", "v1", "Node", "nodes", false, true};
static const struct ml_kind other_kind = {"v1", "", "v1", "Other", "others", true, false};

void stage_found(const char *what, ...)
{
    va_list arguments;
    fprintf(stderr, "FINDING: ");
    va_start(arguments, what);
    vfprintf(stderr, what, arguments);
    va_end(arguments);
    fprintf(stderr, "\n");
    abort();
}

/* {{{ The collector. The linker puts __wrap_script_allocate where the host names script_allocate.
 */

static struct {
    size_t every, since;
    bool refused; /* the one before: this is Lua's second try */
} stress;

void *__real_script_allocate(void *memory, void *ptr, size_t osize, size_t nsize);
void *__wrap_script_allocate(void *memory, void *ptr, size_t osize, size_t nsize);

void *__wrap_script_allocate(void *memory, void *ptr, size_t osize, size_t nsize)
{
    bool grows = nsize > (ptr ? osize : 0);
    if (grows && stress.every > 0 && !stress.refused && ++stress.since >= stress.every) {
        stress.since = 0;
        stress.refused = true;
        return NULL; /* Lua collects all garbage and asks again */
    }
    if (grows)
        stress.refused = false;
    return __real_script_allocate(memory, ptr, osize, nsize);
}

void stage_stress_collector(size_t every)
{
    stress.every = every;
    stress.since = 0;
    stress.refused = false;
}

static int64_t cpu_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * ML_NS_PER_S + now.tv_nsec;
}

static void check_step(struct stage *stage, const char *step, int64_t since, int64_t budget_ns)
{
    int64_t over = cpu_now() - since - stage->host_ns - 2 * budget_ns - CPU_SLACK;
    stage->host_ns = 0;
    if (over > stage->slowest_ns && !stage->slow) {
        stage->slowest_ns = over;
        stage->slowest = step;
    }
    if (stage->script && ml_script_budget(stage->script)->used > stage->limits.memory_max)
        stage_found("%s: %zu bytes of %zu are in use", step, ml_script_budget(stage->script)->used,
                    stage->limits.memory_max);
}

static const char bystander_text[] =
    "local moonloop = require 'moonloop'\n"
    "local time = require 'moonloop.time'\n"
    "local cjson = require 'cjson'\n"
    "local kept = {}\n"
    "return moonloop.controller { name = 'bystander',\n"
    "  reconciles = moonloop.kind('example.com/v1', 'At'),\n"
    "  uses = { moonloop.kind('v1', 'Secret') },\n"
    "  reconcile = function(at, ctx)\n"
    "    local words = {}\n"
    "    for word in (('b a d c'):gsub('%a', { a = 'one', b = 'two' })):gmatch('%w+') do\n"
    "      table.insert(words, word)\n"
    "    end\n"
    "    table.sort(words)\n"
    "    kept[#kept % 20 + 1] = cjson.decode('{\"z\":1,\"a\":[1,2,{}]}')\n"
    "    local keys = {}\n"
    "    for key in pairs(kept[1]) do keys[#keys + 1] = key end\n"
    "    return { status = { words = table.concat(words, ','), keys = keys,\n"
    "      due = time.format(time.parse('2006-01-02T15:04:05Z') + time.duration('1h')),\n"
    "      name = at.metadata.name, missing = at.spec.a == nil } }\n"
    "  end }\n";
static const char bystander_status[] = "{\"due\":\"2006-01-02T16:04:05Z\",\"keys\":[\"z\",\"a\"],"
                                       "\"missing\":true,\"name\":\"x\",\"words\":"
                                       "\"c,d,one,two\"}";

static struct {
    struct stage stage;
    struct choices answers;
    struct ml_script *script;
    const struct ml_kind *kinds[2];
    struct ml_informer *in[2];
    bool done;
} bystander;

static struct ml_script *load(struct stage *stage, struct ml_str text, struct ml_err *err)
{
    const struct ml_script_file file = {ML_STR("at.lua"), text};
    const struct ml_script_files files = {&file, 1};
    struct ml_script *script = NULL;
    if (ml_script_load(&stage->services, &stage->limits, &files, 0, &script, err) < 0)
        return NULL;
    return script;
}

static void bystander_done(void *context ML_UNUSED, struct ml_result *result)
{
    bystander.done = true;
    if (result->outcome != ML_OUTCOME_OK)
        stage_found("the bystander failed: %s", result->err->message);
    if (!ml_str_is(result->status, bystander_status))
        stage_found("the bystander returned " ML_STR_FMT, ML_STR_ARG(result->status));
}

void stage_check_bystander(void)
{
    bystander.done = false;
    ml_script_reconcile(bystander.script, bystander.stage.object, "0", bystander_done, NULL);
    if (!bystander.done)
        stage_found("the bystander did not come to its end");
}

void stage_check_leaks(void)
{
    static size_t inputs;
    if (++inputs % LEAKS_EACH == 0 && __lsan_do_recoverable_leak_check())
        stage_found("memory was lost by one of the last %d inputs", LEAKS_EACH);
}

static void open_world(struct stage *stage, struct choices *answers, enum ml_log_format format);

static void open_bystander(void)
{
    struct ml_err err = ML_ERR_INIT;
    struct stage *stage = &bystander.stage;
    choices_init(&bystander.answers, NULL, 0, 0);
    open_world(stage, &bystander.answers, ML_LOG_JSON);
    stage->limits = (struct ml_script_limits){.load_cpu_ns = 10 * ML_NS_PER_S,
                                              .run_cpu_ns = 10 * ML_NS_PER_S};
    bystander.script = load(stage, ml_str_of(bystander_text), &err);
    if (!bystander.script)
        stage_found("the bystander does not load: %s", err.message);
    bystander.kinds[0] = &at_kind;
    bystander.kinds[1] = &secret_kind;
    ml_script_bind(bystander.script, &(struct ml_script_binding){.kinds = bystander.kinds,
                                                                 .informers = bystander.in,
                                                                 .expectations = stage->gate});
}

static struct ml_object *make_object(struct stage *stage, const char *json)
{
    struct ml_err err = ML_ERR_INIT;
    struct ml_object *object = NULL;
    if (ml_object_new(stage->dict, "", "", ml_str_of(json), &object, &err) < 0)
        stage_found("%s", err.message);
    return object;
}

static void open_pods(struct stage *stage)
{
    static const char list[] =
        "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"100\"},"
        "\"items\":[{\"metadata\":{\"name\":\"y\",\"namespace\":\"default\",\"uid\":\"y-uid\","
        "\"resourceVersion\":\"99\",\"labels\":{\"app\":\"x\"}}},{\"metadata\":{\"name\":\"z\","
        "\"namespace\":\"other\",\"uid\":\"z-uid\",\"resourceVersion\":\"98\",\"ownerReferences\":["
        "{\"controller\":true,\"uid\":\"at-uid\",\"kind\":\"At\",\"name\":\"x\",\"apiVersion\":\"e/"
        "v1\""
        "}]}}]}";
    stage->pods = ml_informers_get(stage->informers, &pod_kind, NULL);
    ml_loop_poll(stage->loop);
    stage_server_answer(stage, list);
    ml_loop_poll(stage->loop);
    if (stage->first)
        stage_server_answer(stage, NULL);
    if (!stage->watch)
        stage_found("no watch follows the list");
    ml_loop_poll(stage->loop);
    if (!ml_informer_synced(stage->pods))
        stage_found("the cache is not in step");
}

static void open_world(struct stage *stage, struct choices *answers, enum ml_log_format format)
{
    *stage = (struct stage){.answers = answers, .rv = 1000};
    stage->last = &stage->first;
    stage->transport = stage_server();
    stage->log_fd = memfd_create("log", 0);
    ml_clock_fake_init(&stage->clock, NOW);
    stage->loop = ml_loop_new(&stage->clock.clock);
    ml_random_init(&stage->random, 1);
    ml_log_init(&stage->log, &stage->clock.clock, stage->log_fd, format, ML_LOG_DEBUG);
    stage->metrics = ml_metrics_new();
    stage->client = ml_client_new(&(struct ml_client_opts){.loop = stage->loop,
                                                           .transport = &stage->transport,
                                                           .metrics = stage->metrics,
                                                           .random = &stage->random,
                                                           .log = &stage->log});
    stage->informers = ml_informers_new(&(struct ml_informers_opts){.client = stage->client,
                                                                    .loop = stage->loop,
                                                                    .random = &stage->random,
                                                                    .log = &stage->log,
                                                                    .metrics = stage->metrics});
    stage->recorder = ml_recorder_new(&(struct ml_recorder_opts){.client = stage->client,
                                                                 .loop = stage->loop,
                                                                 .metrics = stage->metrics,
                                                                 .controller = "moonloop.dev/at",
                                                                 .instance = "fuzz"});
    stage->gate = ml_expectations_new(&stage->keys, stage->loop, stage->client, stage->metrics,
                                      "at");
    stage->services = (struct ml_services){.loop = stage->loop,
                                           .clock = &stage->clock.clock,
                                           .random = &stage->random,
                                           .log = &stage->log,
                                           .metrics = stage->metrics,
                                           .client = stage->client,
                                           .informers = stage->informers,
                                           .recorder = stage->recorder};
    stage->dict = ml_dict_new();
    stage->custom = ml_custom_metrics_new(&stage->services, &stage->keys, "at");
    stage->object = make_object(
        stage, "{\"apiVersion\":\"example.com/v1\",\"kind\":\"At\",\"metadata\":{\"name\":\"x\","
               "\"namespace\":\"default\",\"uid\":\"at-uid\",\"resourceVersion\":\"50\","
               "\"finalizers\":[\"moonloop.dev/"
               "at\"],\"labels\":{\"app\":\"x\"}},\"spec\":{\"size\":3,\"number\":"
               "12345678901234567890,\"items\":[1,{\"a\":[]},\"\\n\\u001b[2J\",1e400]},"
               "\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}");
    stage->pod = make_object(
        stage, "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"y\",\"namespace\":"
               "\"default\",\"uid\":\"y-uid\",\"resourceVersion\":\"99\",\"annotations\":{\"to\":"
               "\"default/x\"}},\"spec\":{}}");
    open_pods(stage);
}

void stage_open(struct stage *stage, struct choices *answers, enum ml_log_format format)
{
    if (!bystander.script)
        open_bystander();
    open_world(stage, answers, format);
}

void stage_close(struct stage *stage)
{
    stage_stress_collector(0);
    ml_custom_metrics_free(stage->custom);
    ml_result_fini(&stage->result);
    ml_script_unref(stage->script);
    ml_object_unref(stage->object);
    ml_object_unref(stage->pod);
    ml_dict_unref(stage->dict);
    ml_expectations_free(stage->gate);
    ml_keys_fini(&stage->keys);
    ml_informer_put(stage->pods);
    ml_recorder_free(stage->recorder);
    ml_informers_free(stage->informers);
    ml_client_free(stage->client);
    if (stage->first || stage->watch)
        stage_found("a request outlives all who could have asked");
    ml_loop_poll(stage->loop);
    ml_loop_free(stage->loop);
    ml_metrics_free(stage->metrics);
    close(stage->log_fd);
}

static const struct ml_kind *bound_kind(const struct ml_gvk *gvk)
{
    const struct ml_kind *const known[] = {&at_kind, &pod_kind, &secret_kind, &node_kind};
    for (size_t i = 0; i < ML_COUNT(known); i++)
        if (ml_str_is(gvk->group, known[i]->group) && ml_str_is(gvk->kind, known[i]->kind))
            return known[i];
    return &other_kind;
}

static void log_refusal(struct stage *stage, const char *what, const struct ml_err *err)
{
    if (getenv("FUZZ_PRINT"))
        fprintf(stderr, "-- %s: %s\n", what, err->message);
    ml_warn(&stage->log, "scripts", what, ML_S("file", "at.lua"), ML_ERR(err));
}

bool stage_load(struct stage *stage, struct ml_str text)
{
    struct ml_err err = ML_ERR_INIT;
    int64_t since = cpu_now();
    stage->script = load(stage, text, &err);
    check_step(stage, "load", since, stage->limits.load_cpu_ns);
    if (!stage->script) {
        log_refusal(stage, "script refused", &err);
        return false;
    }
    const struct ml_declaration *declaration = ml_script_declaration(stage->script);
    if (!declaration)
        return false;
    ml_assert(declaration->kind_count <= STAGE_KINDS_MAX);
    for (size_t i = 0; i < declaration->kind_count; i++) {
        stage->kinds[i] = bound_kind(&declaration->kinds[i].gvk);
        stage->in[i] = stage->kinds[i] == &pod_kind && declaration->kinds[i].use != ML_USE_TOUCHES
                           ? stage->pods
                           : NULL;
    }
    ml_script_bind(stage->script, &(struct ml_script_binding){.kinds = stage->kinds,
                                                              .informers = stage->in,
                                                              .expectations = stage->gate});
    ml_custom_metrics_declare(stage->custom, declaration->metrics, declaration->metric_count);
    return true;
}

struct told {
    struct stage *stage;
    size_t count;
};

/* Writes the status as the host does; its time may grow with the status' length, nothing else. */
static void write_status(struct stage *stage, const struct ml_result *result)
{
    struct ml_err err = ML_ERR_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf patch = ML_BUF_INIT;
    int64_t since = cpu_now();
    if (result->status.len > 0 && ml_json_check(result->status, 0, &err) < 0)
        stage_found("the status is no JSON: %s", err.message);
    if (ml_status_patch(stage->object, result->status, NULL, NOW, &patch, &err) < 0)
        log_refusal(stage, "status refused", &err);
    else if (patch.len > 0 && ml_json_check(ml_buf_str(&patch), 0, &err) < 0)
        stage_found("the status patch is no JSON: %s", err.message);
    int64_t took_ns = cpu_now() - since;
    check_step(stage, "status", since, (int64_t)result->status.len * STATUS_BYTE_NS);
    stage->host_ns += took_ns;
}

static void told(void *context, struct ml_result *result)
{
    struct told *told = context;
    struct stage *stage = told->stage;
    told->count++;
    if (result->requeue_after_ns < -1 || result->requeue_at_ns < -1)
        stage_found("a requeue in the past: %lld, %lld", (long long)result->requeue_after_ns,
                    (long long)result->requeue_at_ns);
    if (getenv("FUZZ_PRINT"))
        fprintf(stderr, "-- reconciled: %d %s\n", (int)result->outcome,
                result->err ? result->err->message : "");
    if (result->outcome != ML_OUTCOME_OK)
        ml_error(&stage->log, "controller", "reconcile failed", ML_ERR(result->err));
    if (result->outcome != ML_OUTCOME_ERROR)
        write_status(stage, result);
    ml_result_fini(&stage->result);
    stage->result = ml_result_take(result);
}

/* Uses the result as a controller does once the run is gone. */
static void use_result(struct stage *stage)
{
    struct ml_str key = ml_object_key(stage->object), name;
    size_t cursor = 0, kind;
    uint64_t version;
    const struct ml_read_change change = {
        .kind = 0, .old = stage->object, .new = stage->object, .own_key = key, .self = true};
    ml_custom_metrics_record(stage->custom, key, stage->result.notes);
    while (ml_read_names_next(&stage->result.names, &cursor, &kind, &name, &version))
        if (kind >= STAGE_KINDS_MAX || !stage->in[kind] || name.len == 0)
            stage_found("a run looked for '" ML_STR_FMT "' of kind %zu", ML_STR_ARG(name), kind);
    if (stage->result.reads && ml_read_set_touched(stage->result.reads, &change, NULL))
        stage_found("a change that changes nothing matters");
}

/* Brings about the next event for a run that waits; false: there is none. */
static bool happen(struct stage *stage)
{
    int64_t since = cpu_now();
    if (stage->first) {
        stage_server_answer(stage, NULL);
    } else if (ml_loop_next(stage->loop) < INT64_MAX) {
        ml_clock_fake_advance(&stage->clock, 11 * ML_NS_PER_S);
    } else {
        return false;
    }
    ml_loop_poll(stage->loop);
    check_step(stage, "reconcile, after an answer", since, stage->limits.run_cpu_ns);
    return true;
}

typedef struct ml_run *start_run(struct ml_script *script, struct ml_object *object, const char *id,
                                 ml_script_done *done, void *context);

static void run_to_its_end(struct stage *stage, const char *name, start_run *start)
{
    struct told context = {.stage = stage};
    int64_t since = cpu_now();
    struct ml_run *run = start(stage->script, stage->object, "0", told, &context);
    check_step(stage, name, since, stage->limits.run_cpu_ns);
    ml_loop_poll(stage->loop);
    size_t steps = 2 + choose(stage->answers, STEPS_MAX);
    for (size_t step = 0; step < steps && context.count == 0; step++)
        if (!happen(stage))
            break;
    if (context.count > 1 || (!run && context.count != 1))
        stage_found("a reconcile ended %zu times", context.count);
    if (context.count == 0)
        ml_script_cancel(run);
    ml_loop_poll(stage->loop);
    use_result(stage);
}

void stage_reconcile(struct stage *stage)
{
    run_to_its_end(stage, "reconcile", ml_script_reconcile);
}

void stage_finalize(struct stage *stage)
{
    run_to_its_end(stage, "finalize", ml_script_finalize);
}

/* `out`: what a webhook made, which is JSON when it did not fail. */
static void check_webhook(struct stage *stage, const char *what, int64_t since, int r,
                          const struct ml_buf *out, const struct ml_err *err)
{
    struct ml_err bad = ML_ERR_INIT;
    check_step(stage, what, since, stage->limits.run_cpu_ns);
    if (r < 0)
        log_refusal(stage, "webhook failed", err);
    else if (out->len > 0 && ml_json_check(ml_buf_str(out), 0, &bad) < 0)
        stage_found("%s made no JSON: %s", what, bad.message);
}

void stage_webhooks(struct stage *stage)
{
    const struct ml_script_webhooks *webhooks = &ml_script_declaration(stage->script)->webhooks;
    const struct ml_webhook_object about = {ML_STR("default"), ML_STR("default/x"), ML_STR("u")};
    ML_AUTO(ml_buf_fini) struct ml_buf object = ML_BUF_INIT;
    ml_object_json(stage->object, &object);
    for (size_t step = 0; step < 3 + 2 * webhooks->version_count; step++) {
        ML_AUTO(ml_buf_fini) struct ml_buf out = ML_BUF_INIT;
        struct ml_err err = ML_ERR_INIT;
        int64_t since = cpu_now();
        int r = 0;
        if (step == 0 && webhooks->defaults)
            r = ml_script_default(stage->script, &about, ml_buf_str(&object), &out, &err);
        else if (step < 3 && step > 0 && webhooks->validates)
            r = ml_script_validate(stage->script, &about, ml_buf_str(&object),
                                   step == 1 ? (struct ml_str){NULL, 0} : ml_buf_str(&object), &out,
                                   &err);
        else if (step >= 3)
            r = ml_script_convert(stage->script, (step - 3) / 2, step % 2, ml_buf_str(&object),
                                  &out, &err);
        check_webhook(stage, "webhook", since, r, &out, &err);
    }
}

static void take_key(void *context ML_UNUSED, struct ml_str key)
{
    if (!ml_name_valid(ml_key_name(key)) || memchr(key.ptr, '\n', key.len))
        stage_found("a watch function named '" ML_STR_FMT "'", ML_STR_ARG(key));
}

void stage_watch_functions(struct stage *stage)
{
    const struct ml_declaration *declaration = ml_script_declaration(stage->script);
    for (size_t i = 0; i < declaration->kind_count; i++) {
        struct ml_err err = ML_ERR_INIT;
        bool counts = false;
        int64_t since = cpu_now();
        if (declaration->kinds[i].when_function &&
            ml_script_when(stage->script, i, stage->object, stage->object, &counts, &err) < 0)
            log_refusal(stage, "predicate failed", &err);
        check_step(stage, "when", since, stage->limits.run_cpu_ns);
        since = cpu_now();
        if (declaration->kinds[i].use == ML_USE_WATCHES &&
            ml_script_map(stage->script, i, stage->pod, take_key, NULL, &err) < 0)
            log_refusal(stage, "watch function failed", &err);
        check_step(stage, "watch function", since, stage->limits.run_cpu_ns);
        since = cpu_now();
        if (stage->in[i] && ml_script_indexes(stage->script, i)) {
            ml_script_index_change(stage->script, i, NULL, stage->pod);
            ml_script_index_work(stage->script);
        }
        check_step(stage, "index", since, stage->limits.run_cpu_ns);
    }
}

static bool is_time(struct ml_str line)
{
    static const char form[] = "2023-11-1dTdd:dd:dd.dddZ ";
    if (line.len < sizeof(form) - 1)
        return false;
    for (size_t i = 0; i < sizeof(form) - 1; i++)
        if (form[i] == 'd' ? line.ptr[i] < '0' || line.ptr[i] > '9' : line.ptr[i] != form[i])
            return false;
    return true;
}

static void check_line(const struct stage *stage, struct ml_str line)
{
    struct ml_err err = ML_ERR_INIT;
    for (size_t i = 0; i < line.len; i++)
        if ((unsigned char)line.ptr[i] < ' ' || line.ptr[i] == 0x7F)
            stage_found("the log has the byte %d: %.*s", line.ptr[i], (int)ML_MIN(line.len, 300U),
                        line.ptr);
    if (stage->log.format == ML_LOG_TEXT && !is_time(line) && line.len > 0 && line.ptr[0] != '{')
        stage_found("a forged line: " ML_STR_FMT, ML_STR_ARG(line));
    if (stage->log.format == ML_LOG_JSON && ml_json_check(line, 0, &err) < 0)
        stage_found("a log line is no JSON: " ML_STR_FMT, ML_STR_ARG(line));
}

void stage_check_log(struct stage *stage)
{
    off_t len = lseek(stage->log_fd, 0, SEEK_END);
    if (len > (off_t)LOG_MAX)
        stage_found("%lld bytes were logged", (long long)len);
    if (len <= 0)
        return;
    ML_AUTO_FREE char *text = ml_alloc((size_t)len);
    if (pread(stage->log_fd, text, (size_t)len, 0) != len)
        return;
    struct ml_str rest = {text, (size_t)len};
    while (rest.len > 0)
        check_line(stage, ml_str_cut(&rest, '\n'));
}
