/* Programs of the grammar in lua_program.c, in the real sandbox, beside a bystander. The first
 * bytes set the limits, the collector and the server's answers, the rest makes the program.
 * FUZZ_PRINT=1 prints it. script_stage.h lists the findings. */
#include <stdio.h>

#include "lua_program.h"
#include "script_stage.h"

#define HEAD     4
#define ANSWERS  24
#define LOAD_CPU (60 * ML_NS_PER_MS) /* instrumented, the library alone takes some of it */
#define TRIES    3

static void set_limits(struct stage *stage, const uint8_t *head)
{
    stage->limits = (struct ml_script_limits){
        .memory_max = (size_t)1 << (20 + head[1] % 3),
        .load_cpu_ns = LOAD_CPU,
        .run_cpu_ns = (2 + head[0] % 9) * ML_NS_PER_MS,
        .writes_max = 8,
        .reads_max = 50,
    };
    stage->slow = head[2] & 1;
    if (!stage->slow)
        return;
    stage->limits.load_cpu_ns = ML_NS_PER_S;
    stage->limits.run_cpu_ns = ML_NS_PER_S / 10;
}

static uint64_t seed_of(const uint8_t *data, size_t size)
{
    return data[2] & 2 ? choices_seed(data, size) : 0;
}

/* Returns what took longer than it may, and by how much; NULL: nothing. */
static const char *run(const uint8_t *data, size_t size, struct ml_str text, int64_t *out_over_ns)
{
    struct stage stage;
    struct choices answers;
    choices_init(&answers, data + HEAD, ML_MIN(size - HEAD, (size_t)ANSWERS), seed_of(data, size));
    stage_open(&stage, &answers, data[2] & 4 ? ML_LOG_JSON : ML_LOG_TEXT);
    set_limits(&stage, data);
    if (stage.slow)
        stage_stress_collector(data[2] & 8 ? 1 + data[3] % 64 : 0);
    if (stage_load(&stage, text)) {
        if (stage.slow) /* not while the library loads: it would take all of the time */
            stage_stress_collector(1 + data[3] % 16);
        stage_reconcile(&stage);
        stage_watch_functions(&stage);
        stage_webhooks(&stage);
        stage_finalize(&stage);
        stage_reconcile(&stage);
    }
    stage_stress_collector(0);
    stage_check_log(&stage);
    stage_check_bystander();
    stage_close(&stage);
    *out_over_ns = stage.slowest_ns;
    return stage.slowest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct choices choices;
    struct ml_buf program = ML_BUF_INIT;
    if (size <= HEAD)
        return -1;
    size_t skip = ML_MIN(size, (size_t)HEAD + ANSWERS);
    choices_init(&choices, data + skip, size - skip, seed_of(data, size));
    lua_program_write(&choices, &program);
    if (getenv("FUZZ_PRINT"))
        fprintf(stderr, ML_STR_FMT "\n", ML_STR_ARG(ml_buf_str(&program)));
    int64_t over_ns = 0;
    const char *slow = run(data, size, ml_buf_str(&program), &over_ns);
    for (int tries = 1; slow && tries < TRIES; tries++) /* a busy machine is no finding */
        slow = run(data, size, ml_buf_str(&program), &over_ns);
    if (slow)
        stage_found("%s: %lld ms more than twice the budget", slow,
                    (long long)(over_ns / ML_NS_PER_MS));
    ml_buf_fini(&program);
    stage_check_leaks();
    return 0;
}
