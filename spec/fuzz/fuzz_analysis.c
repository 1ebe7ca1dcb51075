/* Any text of a script, and after a byte 0 any schema of its kinds. The analysis comes to an end.
 * It gives up only when it has reached one of its limits, never by a mistake of its own. */
#include "codec/json.h"
#include "script/analysis.h"

#define STEPS_MAX 100000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void give_answers(struct ml_analysis *analysis, struct ml_str schema)
{
    struct ml_err ignored = ML_ERR_INIT;
    bool is_json = ml_json_check(schema, 0, &ignored) ==
                   0; /* a server's document was read before */
    for (size_t i = 0; i < ml_analysis_kind_count(analysis); i++) {
        const struct ml_gvk gvk = ml_analysis_kind(analysis, i);
        if (is_json)
            ml_analysis_give_schema(analysis, i, schema);
        if (i % 2 == 0)
            ml_analysis_give_kind(analysis, &gvk);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ml_str schema = {(const char *)data, size};
    const struct ml_script_file file = {ML_STR("x.lua"), ml_str_cut(&schema, '\0')};
    const struct ml_script_files files = {&file, 1};
    struct ml_analysis *analysis = ml_analysis_new(&files, 0);
    enum ml_analysis_state state = ML_ANALYSIS_READS;
    for (size_t steps = 0; state == ML_ANALYSIS_READS || state == ML_ANALYSIS_WANTS_KINDS;
         steps++) {
        ml_assert(steps < STEPS_MAX);
        state = ml_analysis_step(analysis);
        if (state == ML_ANALYSIS_WANTS_KINDS)
            give_answers(analysis, schema);
    }
    for (size_t i = 0; i < ml_analysis_problem_count(analysis); i++)
        ml_assert(strncmp(ml_analysis_problem(analysis, i)->text, "x.lua:", 6) == 0);
    if (state == ML_ANALYSIS_GAVE_UP) {
        const char *why = ml_analysis_why(analysis)->message;
        ml_assert(why[0] && !strstr(why, "attempt to") && !strstr(why, "it failed"));
    }
    ml_analysis_free(analysis);
    return 0;
}
