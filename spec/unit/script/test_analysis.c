#include "unit.h"

#include "script/analysis.h"

#define HEAD                                                                                       \
    "local moonloop = require 'moonloop'\n"                                                        \
    "local App = moonloop.kind('e.com/v1', 'App')\n"

#define SCHEMA                                                                                     \
    "{\"root\":\"App\",\"definitions\":{\"App\":{\"type\":\"object\",\"properties\":{"             \
    "\"spec\":{\"allOf\":[{\"$ref\":\"#/components/schemas/Spec\"}],\"default\":{}}}},"            \
    "\"Spec\":{\"type\":\"object\",\"properties\":{\"size\":{\"type\":\"integer\"}}}}}"

static struct ml_analysis *begin(const char *text, size_t memory_max)
{
    const struct ml_script_file file = {ML_STR("x.lua"), ml_str_of(text)};
    const struct ml_script_files files = {&file, 1};
    return ml_analysis_new(&files, memory_max);
}

/* Steps until it wants something, or has ended. */
static enum ml_analysis_state go_on(struct ml_analysis *analysis, size_t *steps)
{
    enum ml_analysis_state state;
    do {
        state = ml_analysis_step(analysis);
        *steps += 1;
    } while (state == ML_ANALYSIS_READS);
    return state;
}

/* The only problem of a text. `schema` NULL: the kind is not known; "": there is no such kind. */
static void assert_problem(const char *text, const char *schema, const char *expected)
{
    size_t steps = 0;
    struct ml_analysis *analysis = begin(text, 0);
    assert_int_equal(go_on(analysis, &steps), ML_ANALYSIS_WANTS_KINDS);
    for (size_t i = 0; schema && i < ml_analysis_kind_count(analysis); i++) {
        struct ml_gvk gvk = ml_analysis_kind(analysis, i);
        assert_true(ml_str_is(gvk.group, "e.com") && ml_str_is(gvk.version, "v1") &&
                    ml_str_is(gvk.kind, "App"));
        if (schema[0])
            ml_analysis_give_schema(analysis, i, ml_str_of(schema));
        gvk.kind = ML_STR("Banana");
        ml_analysis_give_kind(analysis, &gvk);
        if (schema[0])
            gvk.kind = ML_STR("App");
        ml_analysis_give_kind(analysis, &gvk);
    }
    assert_int_equal(go_on(analysis, &steps), ML_ANALYSIS_DONE);
    assert_int_equal(ml_analysis_problem_count(analysis), expected ? 1 : 0);
    if (expected) {
        assert_string_equal(ml_analysis_problem(analysis, 0)->file, "x.lua");
        assert_string_equal(ml_analysis_problem(analysis, 0)->text, expected);
    }
    assert_int_equal(ml_analysis_step(analysis), ML_ANALYSIS_DONE);
    ml_analysis_free(analysis);
}

static void test_analysis_finds_names_that_do_not_exist(void **state)
{
    (void)state;
    assert_problem("local moonloop = require 'moonloop'\nreturn moonloop.arry {}", NULL,
                   "x.lua:2: moonloop has no 'arry'; did you mean 'array'?");
    assert_problem("return {}", NULL, NULL);
    assert_problem("", NULL, NULL);
}

static void test_analysis_compiles_patterns(void **state)
{
    (void)state;
    assert_problem("local regex = require 'moonloop.regex'\nreturn regex.match('x', '[a-z')", NULL,
                   "x.lua:2: regex.match(text, pattern): pattern: missing closing ] at '[a-z'");
    assert_problem("local regex = require 'moonloop.regex'\nreturn regex.match('x', '[a-z]')", NULL,
                   NULL);
}

static void test_analysis_asks_for_the_kinds_that_a_text_names(void **state)
{
    (void)state;
    static const char text[] = HEAD
        "return moonloop.controller { name = 'x', reconciles = App, reconcile = function(app)\n"
        "  return app.spec.sise end }";
    assert_problem(text, SCHEMA,
                   "x.lua:4: App of e.com/v1 has no field 'spec.sise'; did you mean 'size'?");
    assert_problem(text, NULL, NULL);
    assert_problem(text, "", "x.lua:2: there is no kind App in e.com/v1");
}

static void test_analysis_survives_any_schema(void **state)
{
    (void)state;
    static const char text[] = HEAD
        "return moonloop.controller { name = 'x', reconciles = App, reconcile = function(app)\n"
        "  return { status = { a = app.spec.size, b = app.spec.other.more[1] } } end }";
    static const char *const schemas[] = {
        "7",
        "[]",
        "{}",
        "null",
        "{\"root\":7}",
        "{\"root\":\"A\",\"definitions\":7}",
        "{\"root\":\"A\",",
        "\x80",
        "{\"root\":\"A\",\"definitions\":{\"A\":7}}",
        "{\"root\":\"A\",\"definitions\":{\"A\":{\"properties\":7,\"type\":[],\"enum\":{}}}}",
        "{\"root\":\"A\",\"definitions\":{\"A\":{\"properties\":{\"spec\":7,\"status\":{"
        "\"properties\":[null]}}}}}",
        "{\"root\":\"A\",\"definitions\":{\"A\":{\"$ref\":\"#/components/schemas/A\"}}}",
        "{\"root\":\"A\",\"definitions\":{\"A\":{\"properties\":{\"spec\":{\"$ref\":\"#/components/"
        "schemas/A\"}}}}}",
        "{\"root\":\"A\",\"definitions\":{\"A\":{\"properties\":{\"spec\":{\"allOf\":7,\"items\":{"
        "\"allOf\":[7]}}}}}}",
    };
    for (size_t i = 0; i < ML_COUNT(schemas); i++) {
        size_t steps = 0;
        struct ml_analysis *analysis = begin(text, 0);
        assert_int_equal(go_on(analysis, &steps), ML_ANALYSIS_WANTS_KINDS);
        ml_analysis_give_schema(analysis, 0, ml_str_of(schemas[i]));
        assert_int_equal(go_on(analysis, &steps), ML_ANALYSIS_DONE);
        ml_analysis_free(analysis);
    }
}

/* A text of that many functions. */
static char *long_text(size_t count)
{
    struct ml_buf text = ML_BUF_INIT;
    ml_buf_puts(&text, "local M = {}\n");
    for (size_t i = 0; i < count; i++)
        ml_buf_printf(&text, "function M.f%zu(x) return { a = x.b, c = 'd' .. x.e } end\n", i);
    ml_buf_puts(&text, "return M.f0(require 'moonloop'.arry)");
    return (char *)ml_buf_cstr(&text);
}

static void test_analysis_works_in_steps(void **state)
{
    (void)state;
    ML_AUTO_FREE char *text = long_text(2000);
    size_t steps = 0;
    struct ml_analysis *analysis = begin(text, 0);
    assert_int_equal(go_on(analysis, &steps), ML_ANALYSIS_WANTS_KINDS);
    assert_int_equal(go_on(analysis, &steps), ML_ANALYSIS_DONE);
    assert_in_range(steps, 10, 100000);
    assert_int_equal(ml_analysis_problem_count(analysis), 1);
    ml_analysis_free(analysis);
}

/* It ends with any limit, and does no harm. */
static void test_analysis_gives_up_when_memory_runs_out(void **state)
{
    (void)state;
    ML_AUTO_FREE char *text = long_text(300);
    bool gave_up = false, ended = false;
    for (size_t memory = 1024; memory < (size_t)4 * 1024 * 1024; memory += memory / 9) {
        size_t steps = 0;
        struct ml_analysis *analysis = begin(text, memory);
        enum ml_analysis_state at = go_on(analysis, &steps);
        if (at == ML_ANALYSIS_WANTS_KINDS) {
            const struct ml_gvk gvk = {ML_STR("e.com"), ML_STR("v1"), ML_STR("App")};
            ml_analysis_give_kind(analysis, &gvk);
            at = go_on(analysis, &steps);
        }
        if (at == ML_ANALYSIS_GAVE_UP)
            assert_non_null(strstr(ml_analysis_why(analysis)->message, "cannot be checked"));
        else
            assert_int_equal(ml_analysis_problem_count(analysis), 1);
        gave_up |= at == ML_ANALYSIS_GAVE_UP;
        ended |= at == ML_ANALYSIS_DONE;
        ml_analysis_free(analysis);
    }
    assert_true(gave_up && ended);
}

static void test_analysis_can_be_dropped_at_any_step(void **state)
{
    (void)state;
    ML_AUTO_FREE char *text = long_text(100);
    ml_analysis_free(NULL);
    for (size_t steps = 0; steps < 40; steps++) {
        struct ml_analysis *analysis = begin(text, 0);
        for (size_t i = 0; i < steps; i++)
            (void)ml_analysis_step(analysis);
        ml_analysis_free(analysis);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_analysis_finds_names_that_do_not_exist),
        cmocka_unit_test(test_analysis_compiles_patterns),
        cmocka_unit_test(test_analysis_asks_for_the_kinds_that_a_text_names),
        cmocka_unit_test(test_analysis_survives_any_schema),
        cmocka_unit_test(test_analysis_works_in_steps),
        cmocka_unit_test(test_analysis_gives_up_when_memory_runs_out),
        cmocka_unit_test(test_analysis_can_be_dropped_at_any_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
