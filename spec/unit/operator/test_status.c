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

static struct ml_result ok_with(const char *status)
{
    return (struct ml_result){
        .outcome = ML_OUTCOME_OK,
        .err = ML_ERR_INIT,
        .status = ml_str_of(status),
        .requeue_after_ns = -1,
        .requeue_at_ns = -1,
    };
}

/* The patch's status part, or "" when nothing is to be written. */
static char *patched(const char *status, const struct ml_result *result)
{
    struct ml_object *object = object_with(status);
    struct ml_buf patch = ML_BUF_INIT;
    struct ml_err err = ML_ERR_INIT;
    assert_int_equal(ml_status_patch(object, result, NOW, &patch, &err), 0);
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
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_result result = ok_with(cases[i].returned);
        char *patch = patched(cases[i].before, &result);
        assert_string_equal(patch, cases[i].patch);
        free(patch);
    }
}

#define CONDITION(status, reason, message, generation, time)                                       \
    "{\"type\":\"Valid\",\"status\":\"" status "\",\"reason\":\"" reason                           \
    "\",\"message\":\"" message "\",\"observedGeneration\":" generation                            \
    ",\"lastTransitionTime\":\"" time "\"}"

static void test_status_of_an_invalid_object_says_so_and_takes_it_back(void **state)
{
    (void)state;
    struct ml_result invalid = ok_with("");
    invalid.outcome = ML_OUTCOME_INVALID;
    invalid.field = ML_STR("spec.schedule");
    ml_err_set(&invalid.err, ML_EINVALID, "no such month");
    char *patch = patched("{}", &invalid);
    assert_string_equal(patch, "{\"conditions\":[" CONDITION("False", "Invalid",
                                                             "spec.schedule: no such month", "3",
                                                             "2023-11-14T22:13:20Z") "]}");
    free(patch);

    /* Said already: nothing to write. */
    patch = patched("{\"conditions\":[" CONDITION("False", "Invalid",
                                                  "spec.schedule: no such month", "3",
                                                  "2001-01-01T00:00:00Z") "]}",
                    &invalid);
    assert_string_equal(patch, "");
    free(patch);

    struct ml_result fine = ok_with("{\"phase\":\"PENDING\"}");
    patch = patched("{\"conditions\":[" CONDITION("False", "Invalid", "spec.schedule: x", "2",
                                                  "2001-01-01T00:00:00Z") "]}",
                    &fine);
    assert_string_equal(patch,
                        "{\"conditions\":[" CONDITION("True", "Valid", "", "3",
                                                      "2023-11-14T22:13:20Z") "],"
                                                                              "\"phase\":"
                                                                              "\"PENDING\"}");
    free(patch);
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
    struct ml_result result = ok_with(status);
    struct ml_object *object = object_with("{}");
    struct ml_err err = ML_ERR_INIT;
    struct ml_buf patch = ML_BUF_INIT;
    assert_int_equal(ml_status_patch(object, &result, NOW, &patch, &err), ML_ESCRIPT);
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
        cmocka_unit_test(test_status_of_an_invalid_object_says_so_and_takes_it_back),
        cmocka_unit_test(test_many_conditions_cost_no_more_than_their_number),
        cmocka_unit_test(test_too_many_conditions_are_refused),
        cmocka_unit_test(test_conditions_merge_by_type_and_keep_the_time),
        cmocka_unit_test(test_conditions_without_type_or_status_are_refused),
    };
    return cmocka_run_group_tests(tests, make_dict, drop_dict);
}
