/* The entries of metadata.managedFields that belong to one controller, made one. */
#include <stdio.h>

#include "unit.h"

#include "kube/managed_fields.h"

#define ENTRY(MANAGER, OPERATION, FIELDS)                                                          \
    "{\"manager\":\"" MANAGER "\",\"operation\":\"" OPERATION                                      \
    "\",\"apiVersion\":\"v1\",\"time\":\"t\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":" FIELDS "}"

static const char *const updates[] = {"we", "we/patch", "old", NULL};
static const char *const applies[] = {"old", NULL};
static const struct ml_managers managers = {.name = "we", .updates = updates, .applies = applies};

/* `want` NULL: nothing is joined. */
static void assert_joined(const char *list, const char *want)
{
    ML_AUTO(ml_buf_fini) struct ml_buf out = ML_BUF_INIT;
    ML_AUTO_FREE char *metadata = ml_asprintf("{\"name\":\"x\",\"managedFields\":%s}", list);
    bool joins = ml_managers_join(&managers, ml_str_of(metadata), &out);
    if (joins != (want != NULL))
        fail_msg("%s: %s", list, joins ? "was joined" : "was not joined");
    assert_string_equal(ml_buf_cstr(&out), want ? want : "");
}

static void test_updates_become_part_of_the_apply(void **state)
{
    (void)state;
    assert_joined(
        "[" ENTRY("we", "Update", "{\"f:data\":{\".\":{},\"f:a\":{},\"f:b\":{}}}") "," ENTRY(
            "kubectl", "Update",
            "{\"f:data\":{\"f:c\":{}}}") "," ENTRY("we", "Apply",
                                                   "{\"f:data\":{\"f:a\":{}},\"f:kind\":{}}") "]",
        "[" ENTRY(
            "we", "Apply",
            "{\"f:data\":{\".\":{},\"f:a\":{},\"f:b\":{}},\"f:kind\":{}}") "," ENTRY("kubect"
                                                                                     "l",
                                                                                     "Update",
                                                                                     "{\"f:"
                                                                                     "data\":"
                                                                                     "{\"f:"
                                                                                     "c\":{}}"
                                                                                     "}") "]");
}

static void test_without_an_apply_the_updates_become_one(void **state)
{
    (void)state;
    assert_joined("[" ENTRY("we/patch", "Update", "{\"f:a\":{}}") "]",
                  "[" ENTRY("we", "Apply", "{\"f:a\":{}}") "]");
}

static void test_all_entries_of_former_names_are_taken_over(void **state)
{
    (void)state;
    assert_joined("[" ENTRY("old", "Apply", "{\"f:a\":{}}") "," ENTRY(
                      "old", "Update", "{\"f:b\":{}}") "," ENTRY("we", "Apply", "{\"f:c\":{}}") "]",
                  "[" ENTRY("we", "Apply", "{\"f:a\":{},\"f:b\":{},\"f:c\":{}}") "]");
}

/* {} and a member "." say both that the path itself is in the set. */
static void test_a_path_stays_in_the_set_when_paths_below_it_are_added(void **state)
{
    (void)state;
    assert_joined("[" ENTRY("we", "Update", "{\"f:dir\":{}}") "," ENTRY(
                      "we", "Apply", "{\"f:dir\":{\"f:size\":{}}}") "]",
                  "[" ENTRY("we", "Apply", "{\"f:dir\":{\".\":{},\"f:size\":{}}}") "]");
    assert_joined("[" ENTRY("we", "Update", "{\"f:dir\":{\"f:size\":{}}}") "," ENTRY(
                      "we", "Apply", "{\"f:dir\":{}}") "]",
                  "[" ENTRY("we", "Apply", "{\"f:dir\":{\".\":{},\"f:size\":{}}}") "]");
    assert_joined(
        "[" ENTRY("we", "Update", "{\"f:dir\":{}}") "," ENTRY("we", "Apply", "{\"f:dir\":{}}") "]",
        "[" ENTRY("we", "Apply", "{\"f:dir\":{}}") "]");
}

static void test_keys_with_quotes_stay_as_they_are(void **state)
{
    (void)state;
    assert_joined(
        "[" ENTRY("we", "Update", "{\"k:{\\\"name\\\":\\\"a\\\"}\":{\"f:x\":{}}}") "," ENTRY(
            "we", "Apply", "{\"k:{\\\"name\\\":\\\"a\\\"}\":{\"f:y\":{}}}") "]",
        "[" ENTRY("we", "Apply", "{\"k:{\\\"name\\\":\\\"a\\\"}\":{\"f:x\":{},\"f:y\":{}}}") "]");
}

static void test_what_is_not_ours_is_left_alone(void **state)
{
    (void)state;
    static const char *const lists[] = {
        "[]",
        "null",
        "{}",
        "7",
        "[7,null,\"we\",{}]",
        "[" ENTRY("we", "Apply", "{\"f:a\":{}}") "]",
        "[" ENTRY("we2", "Update", "{\"f:a\":{}}") "]",
        "[{\"manager\":\"we\",\"operation\":\"Update\",\"subresource\":\"status\",\"fieldsV1\":{}}"
        "]",
        "[{\"manager\":\"old\",\"operation\":\"Apply\",\"subresource\":\"scale\",\"fieldsV1\":{}}]",
        "[" ENTRY("we", "Update", "7") "]",
        "[" ENTRY("we", "Update", "{\"f:a\":7}") "," ENTRY("we", "Apply", "{\"f:a\":{}}") "]",
    };
    for (size_t i = 0; i < ML_COUNT(lists); i++)
        assert_joined(lists[i], NULL);
}

static void test_sets_have_a_depth(void **state)
{
    (void)state;
    ML_AUTO(ml_buf_fini) struct ml_buf list = ML_BUF_INIT;
    ml_buf_puts(&list, "[");
    for (int entry = 0; entry < 2; entry++) {
        ml_buf_printf(&list, "%s{\"manager\":\"we\",\"operation\":\"Update\",\"fieldsV1\":",
                      entry ? "," : "");
        for (int i = 0; i < 100; i++)
            ml_buf_puts(&list, "{\"f:a\":");
        ml_buf_puts(&list, "{}");
        for (int i = 0; i < 100; i++)
            ml_buf_puts(&list, "}");
        ml_buf_puts(&list, "}");
    }
    ml_buf_puts(&list, "]");
    assert_joined(ml_buf_cstr(&list), NULL);
}

static void test_a_manager_is_found_outside_of_subresources(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        bool has;
    } cases[] = {
        {"[]", false},
        {"[" ENTRY("we", "Update", "{}") "]", true},
        {"[" ENTRY("we", "Apply", "{}") "]", true},
        {"[" ENTRY("old", "Apply", "{}") "]", true},
        {"[" ENTRY("we/patch", "Update", "{}") "]", false},
        {"[" ENTRY("kubectl", "Update", "{}") "]", false},
        {"[{\"manager\":\"we\",\"operation\":\"Update\",\"subresource\":\"status\"}]", false},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        ML_AUTO_FREE char *metadata = ml_asprintf("{\"managedFields\":%s}", cases[i].list);
        if (ml_managers_have(&managers, ml_str_of(metadata)) != cases[i].has)
            fail_msg("%s", cases[i].list);
    }
}

static void test_an_entry_has_a_field(void **state)
{
    (void)state;
    static const char *const entry =
        "{\"manager\":\"we\",\"fieldsV1\":{\"f:spec\":{\".\":{},\"f:replicas\":{},\"f:template\":"
        "{\"f:containers\":{\"k:{\\\"name\\\":\\\"main\\\"}\":{}}}},\"f:metadata\":"
        "{\"f:annotations\":{\"f:a.b/c\":{}}}}}";
    static const struct {
        const char *field;
        bool has;
    } cases[] = {
        {"spec", true},
        {"spec.replicas", true},
        {"spec.template.containers", true},
        {"metadata.annotations[a.b/c]", true},
        {"", true},
        {"spec.paused", false},
        {"spec.replicas.x", false},
        {"metadata.annotations[a.b]", false},
        {"metadata.annotations[", false},
        {"[", false},
        {"status", false},
        {".", false},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++)
        if (ml_managed_entry_has(ml_str_of(entry), ml_str_of(cases[i].field)) != cases[i].has)
            fail_msg("%s", cases[i].field);
    assert_false(ml_managed_entry_has(ML_STR("{}"), ML_STR("spec")));
    assert_false(ml_managed_entry_has(ML_STR("[]"), ML_STR("spec")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_updates_become_part_of_the_apply),
        cmocka_unit_test(test_without_an_apply_the_updates_become_one),
        cmocka_unit_test(test_all_entries_of_former_names_are_taken_over),
        cmocka_unit_test(test_a_path_stays_in_the_set_when_paths_below_it_are_added),
        cmocka_unit_test(test_keys_with_quotes_stay_as_they_are),
        cmocka_unit_test(test_what_is_not_ours_is_left_alone),
        cmocka_unit_test(test_sets_have_a_depth),
        cmocka_unit_test(test_a_manager_is_found_outside_of_subresources),
        cmocka_unit_test(test_an_entry_has_a_field),
    };
    return cmocka_run_group_tests_name("kube_managed_fields", tests, NULL, NULL);
}
