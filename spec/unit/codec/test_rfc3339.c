#include "unit.h"

#include "codec/rfc3339.h"

static void test_rfc3339_good_forms_give_their_instant(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t s, ns;
    } cases[] = {
        {"1970-01-01T00:00:00Z", 0, 0},
        {"1970-01-01t00:00:00z", 0, 0},
        {"1970-01-01T00:00:01.5Z", 1, 500000000},
        {"1970-01-01T00:00:00.000000001Z", 0, 1},
        {"1970-01-01T00:00:00.1234567899999Z", 0, 123456789},
        {"1969-12-31T23:59:59Z", -1, 0},
        {"1969-12-31T23:59:59.25Z", -1, 250000000},
        {"2000-02-29T12:00:00Z", 951825600, 0},
        {"2024-02-29T23:59:59Z", 1709251199, 0},
        {"2026-11-21T05:02:57Z", 1795237377, 0},
        {"1985-04-12T23:20:50.52Z", 482196050, 520000000},
        {"1996-12-19T16:39:57-08:00", 851042397, 0},
        {"1937-01-01T12:00:27.87+00:20", -1041337173, 870000000},
        {"1990-12-31T23:59:60Z", 662687999, 0},
        {"1990-12-31T15:59:60-08:00", 662687999, 0},
        {"2017-01-01T05:29:60+05:30", 1483228799, 0},
        {"1970-01-01T23:59:00+23:59", 0, 0},
        {"1970-01-01T00:00:00-00:00", 0, 0},
        {"1969-12-31T00:01:00-23:59", 0, 0},
        {"1678-01-01T00:00:00Z", -9214560000, 0},
        {"1678-01-01T00:00:00+23:59", -9214560000 - 86340, 0},
        {"2261-12-31T23:59:59.999999999Z", 9214646399, 999999999},
        {"2261-12-31T23:59:59.999999999-23:59", 9214646399 + 86340, 999999999},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        int64_t ns = 0;
        if (!ml_rfc3339_parse(ml_str_of(cases[i].text), &ns))
            fail_msg("refused: %s", cases[i].text);
        if (ns != cases[i].s * ML_NS_PER_S + cases[i].ns)
            fail_msg("%s gave %lld", cases[i].text, (long long)ns);
    }
}

static void test_rfc3339_bad_forms_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "1970",
        "1970-01-01",
        "1970-01-01T00:00:00",
        "1970-01-01T00:00Z",
        "1970-01-01T00Z",
        "1970-01-01 00:00:00Z",
        "1970-01-01_00:00:00Z",
        "19700101T000000Z",
        "1970-1-01T00:00:00Z",
        "1970-01-1T00:00:00Z",
        "1970-01-01T0:00:00Z",
        "70-01-01T00:00:00Z",
        "01970-01-01T00:00:00Z",
        "+1970-01-01T00:00:00Z",
        "-1970-01-01T00:00:00Z",
        "1970-00-01T00:00:00Z",
        "1970-13-01T00:00:00Z",
        "1970-01-00T00:00:00Z",
        "1970-01-32T00:00:00Z",
        "1970-04-31T00:00:00Z",
        "1970-06-31T00:00:00Z",
        "1970-09-31T00:00:00Z",
        "1970-11-31T00:00:00Z",
        "1970-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2023-02-29T00:00:00Z",
        "2000-02-30T00:00:00Z",
        "1970-01-01T24:00:00Z",
        "1970-01-01T00:60:00Z",
        "1970-01-01T00:00:61Z",
        "1970-01-01T00:00:60Z",
        "1970-01-01T12:59:60Z",
        "1990-12-31T23:59:60+01:00",
        "1990-12-31T23:58:60Z",
        "1970-01-01T00:00:00.Z",
        "1970-01-01T00:00:00.",
        "1970-01-01T00:00:00,5Z",
        "1970-01-01T00:00:00.-5Z",
        "1970-01-01T00:00:00.5 Z",
        "1970-01-01T00:00:00ZZ",
        "1970-01-01T00:00:00Z ",
        " 1970-01-01T00:00:00Z",
        "1970-01-01T00:00:00Z\n",
        "1970-01-01T00:00:00+24:00",
        "1970-01-01T00:00:00+00:60",
        "1970-01-01T00:00:00+0000",
        "1970-01-01T00:00:00+00",
        "1970-01-01T00:00:00+",
        "1970-01-01T00:00:00+1:00",
        "1970-01-01T00:00:00+01:0",
        "1970-01-01T00:00:00+01:00Z",
        "1970-01-01T00:00:00 +01:00",
        "1970-01-01T00:00:00UTC",
        "1970-01-01T-1:00:00Z",
        "1970-01-01T00:00: 1Z",
        "1970/01/01T00:00:00Z",
        "1970-01-01T00-00-00Z",
        "1970-W01-1T00:00:00Z",
        "1970-001T00:00:00Z",
        "1677-12-31T23:59:59Z",
        "2262-01-01T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "0x70-01-01T00:00:00Z",
        "now",
    };
    for (size_t i = 0; i < ML_COUNT(bad); i++) {
        int64_t ns = 42;
        if (ml_rfc3339_parse(ml_str_of(bad[i]), &ns))
            fail_msg("taken: %s", bad[i]);
        assert_int_equal(ns, 42);
    }
    int64_t ns;
    assert_false(ml_rfc3339_parse(ML_STR("1970-01-01T00:00:00Z\0"), &ns));
    assert_false(ml_rfc3339_parse((struct ml_str){NULL, 0}, &ns));
}

static void test_rfc3339_format_rounds_down_and_has_a_fixed_length(void **state)
{
    (void)state;
    static const struct {
        int64_t ns;
        const char *seconds, *micro;
    } cases[] = {
        {0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z"},
        {1999, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000001Z"},
        {-1, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999999Z"},
        {INT64_C(951825599999999999), "2000-02-29T11:59:59Z", "2000-02-29T11:59:59.999999Z"},
        {INT64_C(1795237377) * ML_NS_PER_S, "2026-11-21T05:02:57Z", "2026-11-21T05:02:57.000000Z"},
        {INT64_MAX, "2262-04-11T23:47:16Z", "2262-04-11T23:47:16.854775Z"},
        {INT64_MIN, "1677-09-21T00:12:43Z", "1677-09-21T00:12:43.145224Z"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        char seconds[ML_RFC3339_LEN + 1], micro[ML_RFC3339_MICRO_LEN + 1];
        ml_rfc3339_format(cases[i].ns, seconds);
        ml_rfc3339_format_micro(cases[i].ns, micro);
        assert_string_equal(seconds, cases[i].seconds);
        assert_string_equal(micro, cases[i].micro);
    }
}

static void test_rfc3339_every_day_survives_the_round(void **state)
{
    (void)state;
    const int64_t day = 86400 * ML_NS_PER_S;
    char before[ML_RFC3339_LEN + 1] = "";
    for (int64_t days = -106650; days < 106650; days++) {
        char text[ML_RFC3339_LEN + 1];
        int64_t back, ns = days * day + 3661 * ML_NS_PER_S;
        ml_rfc3339_format(ns, text);
        assert_true(strcmp(before, text) < 0);
        assert_true(ml_rfc3339_parse(ml_str_of(text), &back));
        assert_true(back == ns);
        memcpy(before, text, sizeof before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rfc3339_good_forms_give_their_instant),
        cmocka_unit_test(test_rfc3339_bad_forms_are_refused),
        cmocka_unit_test(test_rfc3339_format_rounds_down_and_has_a_fixed_length),
        cmocka_unit_test(test_rfc3339_every_day_survives_the_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
