#include "unit.h"

#include "base/buf.h"
#include "codec/regex.h"

#define MEMORY ((size_t)512 * 1024)

static struct ml_regex *compile(const char *pattern)
{
    struct ml_str part;
    struct ml_regex *regex = ml_regex_new(ml_str_of(pattern), MEMORY);
    assert_null(ml_regex_problem(regex, &part));
    return regex;
}

/* "FROM-TO" of each match, from 1, as Lua counts: an empty one ends before it begins. */
static char *places(const char *pattern, struct ml_str text)
{
    struct ml_regex *regex = compile(pattern);
    struct ml_regex_walk walk = {.regex = regex, .text = text, .before = ML_REGEX_NOWHERE};
    struct ml_buf out = ML_BUF_INIT;
    struct ml_str match;
    enum ml_regex_found found;
    while ((found = ml_regex_next(&walk, &match, 1)) != ML_REGEX_NONE)
        if (found == ML_REGEX_MATCH)
            ml_buf_printf(&out, "%zu-%zu ", (size_t)(match.ptr - text.ptr) + 1,
                          (size_t)(match.ptr - text.ptr) + match.len);
    assert_int_equal(ml_regex_next(&walk, &match, 1), ML_REGEX_NONE);
    ml_regex_free(regex);
    return ml_buf_take(&out);
}

static void test_regex_walks_over_matches_as_go_does(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        struct ml_str text;
        const char *places;
    } cases[] = {
        {"[0-9]+", {"12 ab 3", 7}, "1-2 7-7 "},
        {"a*", {"baab", 4}, "1-0 2-3 5-4 "},
        {"", {"ä", 2}, "1-0 3-2 "},
        {"^a", {"aaa", 3}, "1-1 "},
        {"(?m)^", {"a\nb", 3}, "1-0 3-2 "},
        {"\\B", {"ö.", 3}, "1-0 3-2 4-3 "},
        {"x", {"", 0}, ""},
        {"\\x00", {"a\0b", 3}, "2-2 "},
        {".", {"a\xff\xf0z", 4}, "1-1 4-4 "}, /* bytes that are no UTF-8 */
        {"[^a]", {"\xff", 1}, ""},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        ML_AUTO_FREE char *found = places(cases[i].pattern, cases[i].text);
        assert_string_equal(found, cases[i].places);
    }
}

static void test_regex_reports_groups(void **state)
{
    (void)state;
    struct ml_str text = ML_STR("key=value"), groups[4];
    struct ml_regex *regex = compile("(\\w+)(:)?=(.*)");
    struct ml_regex_walk walk = {.regex = regex, .text = text, .before = ML_REGEX_NOWHERE};
    assert_int_equal(ml_regex_groups(regex), 3);
    assert_int_equal(ml_regex_next(&walk, groups, ML_COUNT(groups)), ML_REGEX_MATCH);
    assert_true(ml_str_is(groups[0], "key=value") && ml_str_is(groups[1], "key"));
    assert_null(groups[2].ptr);
    assert_true(ml_str_is(groups[3], "value"));
    ml_regex_free(regex);
}

static void test_regex_looks_at_the_text_before_the_place_where_it_begins(void **state)
{
    (void)state;
    struct ml_str match;
    struct ml_regex *regex = compile("^b|\\bc");
    struct ml_regex_walk walk = {
        .regex = regex, .text = ML_STR("abc c"), .at = 1, .before = ML_REGEX_NOWHERE};
    assert_int_equal(ml_regex_next(&walk, &match, 1), ML_REGEX_MATCH);
    assert_ptr_equal(match.ptr, walk.text.ptr + 4);
    ml_regex_free(regex);
}

static void test_regex_says_which_part_of_a_pattern_is_wrong(void **state)
{
    (void)state;
    struct ml_str part;
    struct ml_regex *regex = ml_regex_new(ML_STR("x[b-a]"), MEMORY);
    assert_string_equal(ml_regex_problem(regex, &part), "invalid character class range");
    assert_true(ml_str_is(part, "b-a"));
    ml_regex_free(regex);
    regex = ml_regex_new(ML_STR("\\pL{1000}"), MEMORY);
    assert_string_equal(ml_regex_problem(regex, &part), "expression too large");
    ml_regex_free(regex);
    ml_regex_free(NULL);
}

static void test_regex_counts_what_it_holds(void **state)
{
    (void)state;
    struct ml_buf text = ML_BUF_INIT;
    struct ml_regex *small = compile("a"), *large = compile("(?:a|b)*a(?:a|b){12}c");
    size_t compiled = ml_regex_memory(large);
    assert_in_range(ml_regex_memory(small), 100, 4096);
    assert_in_range(compiled, ml_regex_memory(small), 16384);
    for (uint32_t i = 0, seed = 1; i < 20000; i++) /* each place another state */
        ml_buf_putc(&text, (seed = seed * 1103515245 + 12345) >> 16 & 1 ? 'a' : 'b');
    assert_false(ml_regex_matches(large, ml_buf_str(&text)));
    assert_in_range(ml_regex_memory(large), 16384, MEMORY);
    ml_buf_fini(&text);
    ml_regex_free(small);
    ml_regex_free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_regex_walks_over_matches_as_go_does),
        cmocka_unit_test(test_regex_reports_groups),
        cmocka_unit_test(test_regex_looks_at_the_text_before_the_place_where_it_begins),
        cmocka_unit_test(test_regex_says_which_part_of_a_pattern_is_wrong),
        cmocka_unit_test(test_regex_counts_what_it_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
