/* Fields that the server does not keep as they are sent: which these are, how they are named, and
 * for how long they are known. */
#include "unit.h"

#include "base/clock.h"
#include "kube/unkept.h"

static struct ml_unkept_patch patch_of(const char *kept, const char *sent, int64_t now_s)
{
    return (struct ml_unkept_patch){.root = "status",
                                    .kept = ml_str_of(kept),
                                    .sent = ml_str_of(sent),
                                    .now_ns = now_s * ML_NS_PER_S};
}

static char *named(struct ml_unkept *unkept, const char *kept, const char *sent)
{
    struct ml_unkept_names names = {.except = NULL};
    const struct ml_unkept_patch patch = patch_of(kept, sent, 0);
    ml_unkept_learn(unkept, &patch, &names);
    char *text = ml_asprintf("%s|%s", ml_buf_cstr(&names.left_out), ml_buf_cstr(&names.changed));
    ml_buf_fini(&names.left_out);
    ml_buf_fini(&names.changed);
    return text;
}

static bool covers(const struct ml_unkept *unkept, const char *kept, const char *sent,
                   int64_t now_s)
{
    const struct ml_unkept_patch patch = patch_of(kept, sent, now_s);
    return ml_unkept_covers(unkept, &patch);
}

static void test_unkept_names_what_differs(void **state)
{
    (void)state;
    static const struct {
        const char *kept, *sent, *named;
    } cases[] = {
        {"{\"a\":1}", "{\"a\":1}", "|"},
        {"{\"a\":1,\"b\":2}", "{\"b\":null}", "|status.b"},
        {"{\"a\":1}", "{\"b\":null}", "|"},
        {"", "{\"a\":1}", "status.a|"},
        {"{\"a\":1}", "{\"a\":1.0}", "|status.a"},
        {"{\"a\":{\"b\":1}}", "{\"a\":{\"b\":1,\"c\":{\"d\":2}}}", "status.a.c|"},
        {"{}", "{\"a\":{\"b\":1}}", "status.a|"},
        {"{\"x.y\":{}}", "{\"x.y\":{\"z\":1}}", "status[x.y].z|"},
        /* Lists are replaced: other items shall be gone. */
        {"{\"l\":[{\"a\":1}]}", "{\"l\":[{\"a\":1,\"b\":2}]}", "status.l[].b|"},
        {"{\"l\":[{\"a\":1,\"b\":2}]}", "{\"l\":[{\"a\":1}]}", "|status.l[].b"},
        {"{\"l\":[1,2]}", "{\"l\":[1]}", "|status.l"},
        {"{\"l\":[[{\"a\":1}]]}", "{\"l\":[[{\"a\":2}]]}", "|status.l[][].a"},
        {"{\"l\":[]}", "{\"l\":[]}", "|"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_unkept unkept = {.budget = NULL};
        ML_AUTO_FREE char *text = named(&unkept, cases[i].kept, cases[i].sent);
        assert_string_equal(text, cases[i].named);
        assert_int_equal(covers(&unkept, cases[i].kept, cases[i].sent, 1),
                         !!strcmp(cases[i].named, "|"));
        ml_unkept_fini(&unkept);
    }
}

static void test_unkept_is_known_whatever_the_value_and_not_for_ever(void **state)
{
    (void)state;
    struct ml_unkept unkept = {.budget = NULL};
    free(named(&unkept, "{\"q\":\"1\"}", "{\"typo\":1,\"q\":\"1000m\"}"));
    assert_true(covers(&unkept, "{\"q\":\"1\"}", "{\"typo\":2}", 1));
    assert_true(covers(&unkept, "{\"q\":\"1\"}", "{\"typo\":2,\"q\":\"1000m\"}", 599));
    assert_false(covers(&unkept, "{\"q\":\"1\"}", "{\"q\":\"2000m\"}", 1));
    assert_false(covers(&unkept, "{\"q\":\"2\"}", "{\"q\":\"1000m\"}", 1));
    assert_false(covers(&unkept, "{}", "{\"typo\":2,\"other\":1}", 1));
    assert_false(covers(&unkept, "{\"typo\":1}", "{\"typo\":2}", 1)); /* the schema has it now */
    assert_false(covers(&unkept, "{}", "{\"typo\":2}", 600));
    ml_unkept_fini(&unkept);
}

/* Kubernetes' own types leave out a 0, and keep a 1. */
static void test_unkept_of_a_built_in_type_counts_for_its_value(void **state)
{
    (void)state;
    struct ml_unkept unkept = {.budget = NULL};
    struct ml_unkept_patch patch = patch_of("{}", "{\"n\":0}", 0);
    patch.built_in = true;
    ml_unkept_learn(&unkept, &patch, NULL);
    assert_true(ml_unkept_covers(&unkept, &patch));
    patch.sent = ML_STR("{\"n\":1}");
    assert_false(ml_unkept_covers(&unkept, &patch));
    ml_unkept_fini(&unkept);
}

/* With any status of a script: names, fields and paths are limited, and all is charged. */
static void test_unkept_has_limits(void **state)
{
    (void)state;
    struct ml_budget budget = {.max = 1024 * 1024};
    struct ml_unkept unkept = {.budget = &budget};
    ML_AUTO(ml_buf_fini) struct ml_buf many = ML_BUF_INIT, deep = ML_BUF_INIT;
    size_t names = 0;
    for (int i = 0; i < 5000; i++) {
        ML_AUTO_FREE char *sent = ml_asprintf("{\"f%d\":1}", i);
        ML_AUTO_FREE char *text = named(&unkept, "{}", sent);
        names += strcmp(text, "|") != 0;
    }
    assert_int_equal(names, 100);
    assert_true(unkept.fields.len <= 1000);
    assert_true(budget.used > 0);
    for (int i = 0; i < 65; i++)
        ml_buf_printf(&many, "%s\"m%d\":1", i > 0 ? "," : "{", i);
    ml_buf_puts(&many, "}");
    free(named(&unkept, "{}", ml_buf_cstr(&many)));
    assert_false(covers(&unkept, "{}", ml_buf_cstr(&many), 1));
    ml_buf_puts(&deep, "{\"");
    for (int i = 0; i < 600; i++)
        ml_buf_putc(&deep, 'x');
    ml_buf_puts(&deep, "\":1}");
    ML_AUTO_FREE char *text = named(&unkept, "{}", ml_buf_cstr(&deep));
    assert_string_equal(text, "|");
    assert_false(covers(&unkept, "{}", ml_buf_cstr(&deep), 1));
    ml_unkept_fini(&unkept);
    assert_int_equal(budget.used, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unkept_names_what_differs),
        cmocka_unit_test(test_unkept_is_known_whatever_the_value_and_not_for_ever),
        cmocka_unit_test(test_unkept_of_a_built_in_type_counts_for_its_value),
        cmocka_unit_test(test_unkept_has_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
