#include "unit.h"

#include "kube/selector.h"

static void test_label_selector_is_checked_as_by_the_server(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *wrong; /* a part of the message, or NULL: it is fine */
    } rows[] = {
        {"app=web", NULL},
        {"app == web , tier!=a", NULL},
        {"app in (a, b),x notin (c),!old,has", NULL},
        {"! old", NULL},
        {"app=", NULL},
        {"app in (,a)", NULL},
        {"in in (in, notin)", NULL},
        {"example.com/app=A_b.c-d", NULL},
        {"size>1,size<-9", "no label has the value '-9'"},
        {"size>1,size<9", NULL},
        {"size>x", "'size>x': expected a whole number"},
        {"", "expected requirements like app=web"},
        {"app=web,", "expected requirements"},
        {"app=a b", "'app=a b': expected requirements"},
        {"x,app in ()", "'app in ()': expected requirements"},
        {"app in (a", "expected requirements"},
        {"app in a", "expected requirements"},
        {"app of (a)", "expected requirements"},
        {"!app=a", "expected requirements"},
        {"app=!a", "expected requirements"},
        {"app=-a", "no label has the value '-a'"},
        {"app in (a, b-)", "no label has the value 'b-'"},
        {"=web", "'=web': expected requirements"},
        {"-app", "no label has the name '-app'"},
        {"Ex.com/app", "no label has the name 'Ex.com/app'"},
        {"a/b/c", "no label has the name 'a/b/c'"},
        {"/c", "no label has the name '/c'"},
        {"a./c", "no label has the name 'a./c'"},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        struct ml_err err = ML_ERR_INIT;
        int r = ml_label_selector_check(ml_str_of(rows[i].text), &err);
        if ((r < 0) != (rows[i].wrong != NULL) ||
            (rows[i].wrong && !strstr(err.message, rows[i].wrong)))
            fail_msg("%s: '%s'", rows[i].text, err.message);
    }
}

static void test_label_selector_bounds_names_and_values(void **state)
{
    (void)state;
    char text[80];
    struct ml_err err = ML_ERR_INIT;
    memset(text, 'a', sizeof text);
    assert_int_equal(ml_label_selector_check((struct ml_str){text, 63}, &err), 0);
    assert_int_equal(ml_label_selector_check((struct ml_str){text, 64}, &err), ML_EINVALID);
    text[1] = '=';
    assert_int_equal(ml_label_selector_check((struct ml_str){text, 65}, &err), 0);
    assert_int_equal(ml_label_selector_check((struct ml_str){text, 66}, &err), ML_EINVALID);
}

static void test_label_selector_matches_as_the_server_does(void **state)
{
    (void)state;
    static const struct {
        const char *selector, *labels;
        const char *missed; /* NULL: it matches */
    } rows[] = {
        {"", "", NULL},
        {"app=web", "{\"app\":\"web\"}", NULL},
        {"app=web", "{\"app\":\"db\"}", "app=web"},
        {"app=web", "{}", "app=web"},
        {"app=web", "", "app=web"},
        {"a=b, app = web ,c", "{\"a\":\"b\"}", "app = web"},
        {"app!=web", "", NULL},
        {"app!=web", "{\"app\":\"web\"}", "app!=web"},
        {"app in (a, b)", "{\"app\":\"b\"}", NULL},
        {"app in (a, b)", "{\"app\":\"c\"}", "app in (a, b)"},
        {"app notin (a, b)", "{\"app\":\"a\"}", "app notin (a, b)"},
        {"app notin (a, b)", "{}", NULL},
        {"app=", "{\"app\":\"\"}", NULL},
        {"app=", "{}", "app="},
        {"app", "{\"app\":\"\"}", NULL},
        {"!app", "{\"app\":\"\"}", "!app"},
        {"!app", "{}", NULL},
        {"x.io/n>2,x.io/n<4", "{\"x.io/n\":\"3\"}", NULL},
        {"n>2", "{\"n\":\"2\"}", "n>2"},
        {"n<2", "{\"n\":\"x\"}", "n<2"},
        {"n<2", "{}", "n<2"},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        struct ml_str missed = ML_STR("");
        bool matches = ml_label_selector_matches(ml_str_of(rows[i].selector),
                                                 ml_str_of(rows[i].labels), &missed);
        if (matches != (rows[i].missed == NULL) ||
            (rows[i].missed && !ml_str_is(missed, rows[i].missed)))
            fail_msg("%s %s: " ML_STR_FMT, rows[i].selector, rows[i].labels, ML_STR_ARG(missed));
    }
}

static void test_field_selector_is_checked(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool fine;
    } rows[] = {
        {"spec.nodeName=n1", true},
        {"a==b,c!=d", true},
        {"a=", true},
        {"a=b\\,c\\=d\\\\,e=f", true},
        {"", false},
        {"spec.nodeName", false},
        {"a=b,", false},
        {"=b", false},
        {"!=b", false},
        {"a=b=c", false},
        {"a=b\\c", false},
        {"a=b\\", false},
        {"a in (b)", false},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        struct ml_err err = ML_ERR_INIT;
        int r = ml_field_selector_check(ml_str_of(rows[i].text), &err);
        if ((r == 0) != rows[i].fine)
            fail_msg("%s: %s", rows[i].text, err.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_label_selector_is_checked_as_by_the_server),
        cmocka_unit_test(test_label_selector_bounds_names_and_values),
        cmocka_unit_test(test_label_selector_matches_as_the_server_does),
        cmocka_unit_test(test_field_selector_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
