/* From a result to the patch of the status, and the conditions in it. */
#include "unit.h"

#include "base/clock.h"
#include "operator/status.h"
#include "script/maxima.h"

#define NOW INT64_C(1700000000000000000) /* 2023-11-14T22:13:20Z */

static struct ml_dict *dict;

static struct ml_object *object_with(const char *status)
{
    ML_AUTO_FREE char *json = ml_asprintf(
        "{\"apiVersion\":\"v1\",\"kind\":\"At\",\"metadata\":{\"name\":\"a\",\"namespace\":\"d\","
        "\"uid\":\"u1\",\"resourceVersion\":\"7\",\"generation\":3},\"status\":%s}",
        status);
    struct ml_object *object = NULL;
    struct ml_err err = ML_ERR_INIT;
    assert_int_equal(ml_object_new(dict, NULL, NULL, ml_str_of(json), &object, &err), 0);
    return object;
}

/* The patch's status part, or "" when nothing is to be written. */
static char *patched_with(const char *before, const char *returned,
                          const struct ml_reconciled *reconciled)
{
    struct ml_object *object = object_with(before);
    struct ml_buf patch = ML_BUF_INIT;
    struct ml_err err = ML_ERR_INIT;
    assert_int_equal(ml_status_patch(object, ml_str_of(returned), reconciled, NOW, &patch, &err),
                     0);
    ml_object_unref(object);
    static const char guard[] =
        "{\"metadata\":{\"uid\":\"u1\",\"resourceVersion\":\"7\"},\"status\":";
    if (patch.len) {
        assert_memory_equal(patch.ptr, guard, sizeof guard - 1);
        patch.len -= sizeof guard - 1;
        memmove(patch.ptr, patch.ptr + sizeof guard - 1, patch.len);
        patch.len--; /* the closing brace */
    }
    return ml_buf_take(&patch);
}

static void assert_patch(const char *before, const char *returned,
                         const struct ml_reconciled *reconciled, const char *patch)
{
    ML_AUTO_FREE char *found = patched_with(before, returned, reconciled);
    assert_string_equal(found ? found : "", patch);
}

static void test_status_writes_the_difference_only(void **state)
{
    (void)state;
    static const struct {
        const char *before, *returned, *patch;
    } cases[] = {
        {"{}", "{\"phase\":\"PENDING\"}", "{\"phase\":\"PENDING\"}"},
        {"{\"phase\":\"PENDING\"}", "{\"phase\":\"PENDING\"}", ""},
        {"{\"phase\":\"PENDING\",\"n\":1}", "{\"phase\":\"DONE\"}", "{\"phase\":\"DONE\"}"},
        {"{\"phase\":\"DONE\"}", "", ""},
        {"{\"phase\":\"DONE\",\"n\":1}", "{\"n\":null}", "{\"n\":null}"},
        {"{\"nodes\":[\"a\"]}", "{\"nodes\":[\"a\"]}", ""},
        /* A kind without a schema for its status may have anything there: */
        {"\"text\"", "{\"phase\":\"DONE\"}", "{\"phase\":\"DONE\"}"},
        {"null", "{\"phase\":\"DONE\"}", "{\"phase\":\"DONE\"}"},
        {"[1]", "{\"phase\":\"DONE\",\"n\":null}", "{\"phase\":\"DONE\"}"},
        {"7", "", ""},
        {"{\"phase\":5}", "{\"phase\":\"DONE\"}", "{\"phase\":\"DONE\"}"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        assert_patch(cases[i].before, cases[i].returned, NULL, cases[i].patch);
    }
}

#define EARLIER  "2001-01-01T00:00:00Z"
#define NOW_TEXT "2023-11-14T22:13:20Z"

#define RECONCILED(status, reason, message, generation, time)                                      \
    "{\"type\":\"Reconciled\",\"status\":\"" status "\",\"reason\":\"" reason                      \
    "\",\"message\":\"" message "\",\"observedGeneration\":" generation                            \
    ",\"lastTransitionTime\":\"" time "\"}"
#define ALONE(condition) "{\"conditions\":[" condition "]}"

static const struct ml_reconciled good = {.controller = "cnat"};

static struct ml_reconciled failed(const char *reason, const char *message)
{
    return (struct ml_reconciled){.controller = "cnat", .failure = reason, .message = message};
}

static void test_status_of_a_failed_reconcile_says_so_and_takes_it_back(void **state)
{
    (void)state;
    struct ml_reconciled invalid = failed("Invalid", "spec.schedule: no such month");
    assert_patch(
        "{}", "", &invalid,
        ALONE(RECONCILED("False", "Invalid", "cnat: spec.schedule: no such month", "3", NOW_TEXT)));
    /* With what the script returned beside it. */
    assert_patch("{}", "{\"phase\":\"BAD\"}", &invalid,
                 "{\"phase\":\"BAD\",\"conditions\":[" RECONCILED(
                     "False", "Invalid", "cnat: spec.schedule: no such month", "3", NOW_TEXT) "]}");
    assert_patch(
        ALONE(RECONCILED("False", "Invalid", "cnat: spec.schedule: x", "2", EARLIER)),
        "{\"phase\":\"PENDING\"}", &good,
        "{\"conditions\":[" RECONCILED("True", "Reconciled", "", "3", NOW_TEXT) "],"
                                                                                "\"phase\":"
                                                                                "\"PENDING\"}");
}

static void test_status_of_an_object_that_never_failed_has_no_condition(void **state)
{
    (void)state;
    assert_patch("{}", "", &good, "");
    assert_patch("{\"phase\":\"A\"}", "{\"phase\":\"A\"}", &good, "");
    assert_patch(ALONE(RECONCILED("True", "Reconciled", "", "1", EARLIER)), "", &good, "");
}

static void test_status_says_a_failure_once(void **state)
{
    (void)state;
    static const struct {
        const char *message;
        bool is_new;
    } cases[] = {
        {"cnat.lua:12: boom at 17 of 20", false},
        {"cnat.lua:12: boom at 18 of 9", false}, /* numbers alone */
        {"cnat.lua:13: boom at 17 of 20", true}, /* another line */
        {"cnat.lua:12: bang at 17 of 20", true},
        {"cnat.lua:12: boom at 17 of 20, again", true},
        {"cnat.lua:12: boom at 17 of", true},
        {"cnat.lua:12: boom at x of 20", true},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_reconciled again = failed("ReconcileFailed", cases[i].message);
        ML_AUTO_FREE char *patch = patched_with(
            ALONE(RECONCILED("False", "ReconcileFailed", "cnat: cnat.lua:12: boom at 17 of 20", "3",
                             EARLIER)),
            "", &again);
        if ((patch && *patch) != cases[i].is_new)
            fail_msg("%s: %s", cases[i].message, patch);
        if (cases[i].is_new) /* False it was, and False it is */
            assert_non_null(strstr(patch, EARLIER));
    }
    /* Another reason, and another generation. */
    struct ml_reconciled other = failed("Failed", "cnat.lua:12: boom");
    assert_patch(
        ALONE(RECONCILED("False", "ReconcileFailed", "cnat: cnat.lua:12: boom", "3", EARLIER)), "",
        &other, ALONE(RECONCILED("False", "Failed", "cnat: cnat.lua:12: boom", "3", EARLIER)));
    assert_patch(ALONE(RECONCILED("False", "Failed", "cnat: cnat.lua:12: boom", "2", EARLIER)), "",
                 &other,
                 ALONE(RECONCILED("False", "Failed", "cnat: cnat.lua:12: boom", "3", EARLIER)));
}

/* Two controllers of one kind do not take turns at it. */
static void test_status_leaves_the_failure_of_another_controller_alone(void **state)
{
    (void)state;
    const char *others = ALONE(RECONCILED("False", "Failed", "cnat-2: a.lua:1: no", "3", EARLIER));
    struct ml_reconciled mine = failed("Failed", "cnat.lua:1: no");
    assert_patch(others, "", &good, "");
    assert_patch(others, "", &mine, "");
    assert_false(ml_reconciled_failed(
        ml_str_of("[" RECONCILED("False", "Failed", "cnat-2: no", "3", EARLIER) "]"), "cnat",
        NULL));
    assert_true(ml_reconciled_failed(
        ml_str_of("[" RECONCILED("False", "Failed", "cnat: no", "3", EARLIER) "]"), "cnat", NULL));
    static const char *const formerly[] = {"cnat-2", NULL};
    assert_true(ml_reconciled_failed(
        ml_str_of("[" RECONCILED("False", "Failed", "cnat-2: no", "3", EARLIER) "]"), "cnat",
        formerly));
}

/* The server shows a message with broken UTF-8 otherwise, but it is the same failure. */
static void test_status_compares_a_failure_as_the_server_shows_it(void **state)
{
    (void)state;
    struct ml_reconciled cut = failed("Failed", "a.lua:1: caf\xc3");
    ML_AUTO_FREE char *first = patched_with("{}", "", &cut);
    assert_non_null(strstr(first, "cnat: a.lua:1: caf\xef\xbf\xbd\""));
    assert_patch(first, "", &cut, "");
}

static void test_status_conditions_are_removed_by_null(void **state)
{
    (void)state;
    static const char remove[] =
        "{\"conditions\":[{\"type\":\"A\",\"status\":null},{\"type\":\"X\",\"status\":null}]}";
    assert_patch("{}", remove, NULL, "");
    assert_patch("{\"conditions\":[{\"type\":\"B\",\"status\":\"True\"}]}", remove, NULL, "");
    assert_patch("{\"conditions\":[{\"type\":\"A\",\"status\":\"True\"},{\"type\":\"B\","
                 "\"status\":\"True\"}]}",
                 remove, NULL, "{\"conditions\":[{\"type\":\"B\",\"status\":\"True\"}]}");
    assert_patch("{\"conditions\":[{\"type\":\"A\",\"status\":\"True\"}]}", remove, NULL,
                 "{\"conditions\":[]}");
}

static void test_conditions_merge_by_type_and_keep_the_time(void **state)
{
    (void)state;
    struct ml_buf out = ML_BUF_INIT;
    struct ml_err err = ML_ERR_INIT;
    struct ml_str before = ml_str_of(
        "[{\"type\":\"A\",\"status\":\"True\",\"reason\":\"r\",\"message\":\"\","
        "\"lastTransitionTime\":\"2001-01-01T00:00:00Z\"},{\"type\":\"B\",\"status\":\"True\"}]");
    struct ml_str wanted = ml_str_of("[{\"type\":\"C\",\"status\":\"Unknown\"},"
                                     "{\"type\":\"A\",\"status\":\"True\",\"message\":\"m\"}]");
    assert_int_equal(ml_conditions_merge(before, wanted, 5, NOW, &out, &err), 0);
    assert_string_equal(
        ml_buf_cstr(&out),
        "[{\"type\":\"A\",\"status\":\"True\",\"message\":\"m\",\"reason\":\"A\","
        "\"observedGeneration\":5,\"lastTransitionTime\":\"2001-01-01T00:00:00Z\"},"
        "{\"type\":\"B\",\"status\":\"True\"},"
        "{\"type\":\"C\",\"status\":\"Unknown\",\"reason\":\"C\",\"message\":\"\","
        "\"observedGeneration\":5,\"lastTransitionTime\":\"2023-11-14T22:13:20Z\"}]");
    ml_buf_fini(&out);
}

static void test_conditions_without_type_or_status_are_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {"[{\"type\":\"A\"}]", "[{\"status\":\"True\"}]", "[1]"};
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_buf out = ML_BUF_INIT;
        struct ml_err err = ML_ERR_INIT;
        assert_int_equal(
            ml_conditions_merge((struct ml_str){NULL, 0}, ml_str_of(cases[i]), 1, NOW, &out, &err),
            ML_EINVALID);
        ml_buf_fini(&out);
    }
}

/* An array of so many conditions, T<first> and on. */
static char *many_conditions(size_t first, size_t count)
{
    struct ml_buf list = ML_BUF_INIT;
    for (size_t i = 0; i < count; i++)
        ml_buf_printf(&list, "%s{\"type\":\"T%zu\",\"status\":\"True\"}", i ? "," : "[", first + i);
    ml_buf_putc(&list, ']');
    return ml_buf_take(&list);
}

static void test_many_conditions_cost_no_more_than_their_number(void **state)
{
    (void)state;
    ML_AUTO_FREE char *before = many_conditions(0, 20000);
    ML_AUTO_FREE char *wanted = many_conditions(19900, SCRIPT_CONDITIONS_MAX);
    ML_AUTO(ml_buf_fini) struct ml_buf out = ML_BUF_INIT;
    struct ml_err err = ML_ERR_INIT;
    int64_t begin_ns = unit_cpu_ns();
    assert_int_equal(ml_conditions_merge(ml_str_of(before), ml_str_of(wanted), 1, NOW, &out, &err),
                     0);
    assert_true(unit_cpu_ns() - begin_ns <
                1500 * ML_NS_PER_MS); /* 20 in the release build; it was minutes */
    struct ml_str last = ml_conditions_find(ml_buf_str(&out), ML_STR("T20155"));
    assert_non_null(memmem(last.ptr, last.len, "lastTransitionTime", 18));
}

static void test_too_many_conditions_are_refused(void **state)
{
    (void)state;
    ML_AUTO_FREE char *wanted = many_conditions(0, SCRIPT_CONDITIONS_MAX + 1);
    ML_AUTO_FREE char *status = ml_asprintf("{\"conditions\":%s}", wanted);
    struct ml_object *object = object_with("{}");
    struct ml_err err = ML_ERR_INIT;
    struct ml_buf patch = ML_BUF_INIT;
    assert_int_equal(ml_status_patch(object, ml_str_of(status), NULL, NOW, &patch, &err),
                     ML_ESCRIPT);
    assert_non_null(strstr(err.message, "status.conditions: 257 conditions; at most 256"));
    ml_object_unref(object);
}

static int make_dict(void **state)
{
    (void)state;
    dict = ml_dict_new();
    return 0;
}

static int drop_dict(void **state)
{
    (void)state;
    ml_dict_unref(dict);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status_writes_the_difference_only),
        cmocka_unit_test(test_status_of_a_failed_reconcile_says_so_and_takes_it_back),
        cmocka_unit_test(test_status_of_an_object_that_never_failed_has_no_condition),
        cmocka_unit_test(test_status_says_a_failure_once),
        cmocka_unit_test(test_status_leaves_the_failure_of_another_controller_alone),
        cmocka_unit_test(test_status_compares_a_failure_as_the_server_shows_it),
        cmocka_unit_test(test_status_conditions_are_removed_by_null),
        cmocka_unit_test(test_many_conditions_cost_no_more_than_their_number),
        cmocka_unit_test(test_too_many_conditions_are_refused),
        cmocka_unit_test(test_conditions_merge_by_type_and_keep_the_time),
        cmocka_unit_test(test_conditions_without_type_or_status_are_refused),
    };
    return cmocka_run_group_tests(tests, make_dict, drop_dict);
}
