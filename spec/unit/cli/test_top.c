/* The screen of moonloop top: answers and keys go in, lines come out, of any size. */
#include "unit.h"

#include "base/buf.h"
#include "cli/top.h"
#include "cli/why.h"

#define WIDE 200

/* Objects of an answer. */
#define FAILS                                                                                      \
    "{\"controller\":\"site\",\"kind\":\"Site\",\"name\":\"d/b\",\"state\":\"fails\","             \
    "\"failures\":4,\"now\":\"it failed 4 times in a row, and is tried again\","                   \
    "\"due\":\"2026-01-02T15:04:09.200000Z\",\"cpu_ms\":0.25,\"error\":\"\\u001b[31mred\\n\"}"
#define RUNS                                                                                       \
    "{\"controller\":\"cnat\",\"kind\":\"At\",\"name\":\"d/c\",\"state\":\"runs\",\"failures\":0," \
    "\"now\":\"it runs\",\"since\":\"2026-01-02T15:03:05.000000Z\"}"
#define DUE                                                                                        \
    "{\"controller\":\"cnat\",\"kind\":\"At\",\"name\":\"d/a\",\"state\":\"due\",\"failures\":0,"  \
    "\"now\":\"its last run asked to be called again\",\"cpu_ms\":7.5,"                            \
    "\"due\":\"2026-01-05T15:04:05.000000Z\"}"

static char *answer_of(int clock_ms, int runs, const char *keys)
{
    return ml_asprintf(
        "{\"at\":\"2026-01-02T15:04:05.000000Z\",\"clock_ms\":%d,\"runs\":%d,\"writes\":%d,"
        "\"leads\":true,\"ready\":false,\"checks\":[\"[+]a ok\",\"b.lua is bad\"],\"controllers\":["
        "{\"controller\":\"cnat\",\"objects\":5,\"ready\":2,\"rests\":\"it is stopping\"},"
        "{\"controller\":\"site\",\"objects\":7,\"ready\":1}],"
        "\"keys_in_all\":30,\"fails_of_host\":1,\"keys\":[%s]}",
        clock_ms, runs, runs / 2, keys);
}

static void tell(struct ml_top *top, const char *keys)
{
    ML_AUTO_FREE char *answer = answer_of(1000, 10, keys);
    ml_top_answered(top, ml_str_of(answer));
}

static struct ml_top *top_of(const char *keys)
{
    struct ml_top *top = ml_top_new(NULL);
    tell(top, keys);
    return top;
}

/* The caller frees it. */
static char *draw(struct ml_top *top, int columns, int rows, int *highlight)
{
    struct ml_buf out = ML_BUF_INIT;
    int line = ml_top_draw(top, columns, rows, &out);
    if (highlight)
        *highlight = line;
    return ml_buf_take(&out);
}

static void assert_shows(struct ml_top *top, const char *part)
{
    ML_AUTO_FREE char *screen = draw(top, WIDE, 24, NULL);
    if (!strstr(screen, part))
        fail_msg("no %s on the screen:\n%s", part, screen);
}

static void assert_hides(struct ml_top *top, const char *part)
{
    ML_AUTO_FREE char *screen = draw(top, WIDE, 24, NULL);
    if (strstr(screen, part))
        fail_msg("%s is on the screen:\n%s", part, screen);
}

/* The line that is highlighted begins so. */
static void assert_selected(struct ml_top *top, const char *name)
{
    int highlight;
    ML_AUTO_FREE char *screen = draw(top, WIDE, 24, &highlight);
    struct ml_str rest = ml_str_of(screen), line = {NULL, 0};
    for (int i = 0; i <= highlight; i++)
        line = ml_str_cut(&rest, '\n');
    if (!ml_str_starts(line, name))
        fail_msg("line %d is not of %s:\n%s", highlight, name, screen);
}

/* The objects, in their order. */
static void assert_order(struct ml_top *top, const char *first, const char *then, const char *last)
{
    ML_AUTO_FREE char *screen = draw(top, WIDE, 24, NULL);
    const char *a = strstr(screen, first), *b = strstr(screen, then), *c = strstr(screen, last);
    if (!a || !b || !c || a > b || b > c)
        fail_msg("not %s, %s, %s:\n%s", first, then, last, screen);
}

static void assert_path(const struct ml_top *top, const char *expected)
{
    ML_AUTO(ml_buf_fini) struct ml_buf path = ML_BUF_INIT;
    ml_top_path(top, &path);
    assert_string_equal(ml_buf_cstr(&path), expected);
}

static void test_top_shows_what_the_host_tells(void **state)
{
    struct ml_top *top = ml_top_new(NULL);
    (void)state;
    assert_shows(top, "the host has not answered yet");
    assert_path(top, "/top/");
    tell(top, FAILS "," RUNS "," DUE);
    assert_shows(top, "not ready, leads: b.lua is bad\ncontrollers 2, objects 12, failing 1, "
                      "queued 3, runs/s -, writes/s -\nCONTROLLER");
    assert_shows(top, "  it is stopping\n");
    assert_shows(top, "\n3 of 30 objects in trouble or active, by trouble\n");
    assert_shows(top, "\nd/b    site       fails 4  in 4.2s    0.25 \\x1b[31mred\\n\n");
    assert_shows(top, "\nd/c    cnat       runs         60s       - it runs\n");
    assert_shows(top, "\nd/a    cnat       due        in 3d    7.50 its last run asked to be");
    assert_shows(top, "\nSite d/b: it failed 4 times in a row, and is tried again\n\\x1b[31mred");
    assert_hides(top, "\x1b");
    assert_order(top, "d/b", "d/c", "d/a");
    ml_top_free(top);
}

static void test_top_tells_runs_and_writes_in_a_second(void **state)
{
    struct ml_top *top = top_of("");
    ML_AUTO_FREE char *next = answer_of(3000, 50, "");
    ML_AUTO_FREE char *restarted = answer_of(5000, 4, "");
    (void)state;
    ml_top_answered(top, ml_str_of(next));
    assert_shows(top, ", runs/s 20.0, writes/s 10.0\n");
    assert_shows(top, "no object is in trouble or active\n");
    ml_top_answered(top, ml_str_of(next));
    assert_shows(top, ", runs/s -");
    ml_top_answered(top, ml_str_of(restarted));
    assert_shows(top, ", runs/s -");
    ml_top_free(top);
}

static void test_top_selection_stays_on_its_object(void **state)
{
    struct ml_top *top = top_of(FAILS "," RUNS "," DUE);
    (void)state;
    assert_selected(top, "d/b");
    ml_top_press(top, ML_TOP_UP);
    assert_selected(top, "d/b");
    ml_top_press(top, 'j');
    assert_selected(top, "d/c");
    tell(top, RUNS "," DUE "," FAILS);
    assert_selected(top, "d/c");
    tell(top, DUE "," FAILS "," RUNS);
    assert_selected(top, "d/c");
    ml_top_press(top, 's');
    assert_selected(top, "d/c");
    ml_top_press(top, 'k');
    assert_selected(top, "d/b");
    tell(top, RUNS "," DUE); /* it is gone: the next one is selected */
    assert_selected(top, "d/c");
    tell(top, "");
    assert_shows(top, "no object");
    tell(top, DUE);
    assert_selected(top, "d/a");
    ml_top_press(top, ML_TOP_END);
    ml_top_press(top, ML_TOP_PAGE_DOWN);
    assert_selected(top, "d/a");
    ml_top_free(top);
}

static void test_top_sorts(void **state)
{
    struct ml_top *top = top_of(FAILS "," RUNS "," DUE);
    (void)state;
    assert_int_equal(ML_TOP_STAY, ml_top_press(top, 's'));
    assert_shows(top, ", by name\n");
    assert_order(top, "\nd/a", "\nd/b", "\nd/c");
    ml_top_press(top, 's');
    assert_shows(top, ", by CPU\n");
    assert_order(top, "\nd/a", "\nd/b", "\nd/c");
    ml_top_press(top, 's');
    assert_order(top, "\nd/b", "\nd/c", "\nd/a");
    ml_top_free(top);
}

static void test_top_filters_by_controller(void **state)
{
    struct ml_top *top = top_of(FAILS "," RUNS "," DUE);
    (void)state;
    assert_int_equal(ML_TOP_ASK, ml_top_press(top, 'c'));
    assert_path(top, "/top/cnat");
    assert_shows(top, "2 of 30 objects in trouble or active, of controller cnat, by trouble\n");
    assert_hides(top, "\nd/b");
    assert_int_equal(ML_TOP_ASK, ml_top_press(top, ML_TOP_TAB));
    assert_path(top, "/top/site");
    assert_hides(top, "\nd/a");
    tell(top, "");
    assert_shows(top, "\nno object of controller site is in trouble or active\n");
    ml_top_press(top, 'c');
    assert_path(top, "/top/");
    ml_top_free(top);
    top = ml_top_new("gone");
    assert_path(top, "/top/gone");
    tell(top, FAILS);
    ml_top_press(top, 'c');
    assert_path(top, "/top/");
    assert_shows(top, "\nd/b");
    ml_top_free(top);
}

static void test_top_shows_why_and_returns(void **state)
{
    struct ml_top *top = top_of(FAILS "," RUNS);
    (void)state;
    ml_top_press(top, 'j');
    assert_int_equal(ML_TOP_ASK, ml_top_press(top, ML_TOP_ENTER));
    assert_path(top, "/why/At/d/c");
    ml_top_answered(top,
                    ML_STR("{\"kind\":\"At\",\"name\":\"d/c\",\"controllers\":[{\"controller\":"
                           "\"cnat\",\"revision\":\"3f2a91bc\",\"now\":\"it runs\"}],\"runs\":"
                           "[{\"error\":\"\\u001b[31m\"}],\"writes\":[]}"));
    assert_shows(top, "At d/c\ncontroller cnat, revision 3f2a91bc: it runs\nlast runs:\n");
    assert_shows(top, "\nq back");
    assert_hides(top, "\x1b");
    /* A line that is longer than the screen goes on in the next. */
    ML_AUTO_FREE char *narrow = draw(top, 10, 40, NULL);
    assert_non_null(
        strstr(narrow, "At d/c\ncontroller\n cnat, rev\nision 3f2a\n91bc: it r\nuns\n"));
    ML_AUTO_FREE char *first = draw(top, 10, 3, NULL);
    ml_top_press(top, 'j');
    ML_AUTO_FREE char *then = draw(top, 10, 3, NULL);
    assert_string_equal("At d/c\ncontroller\n cnat, rev\n", first);
    assert_string_equal("controller\n cnat, rev\nision 3f2a\n", then);
    ml_top_press(top, ML_TOP_END);
    ml_top_press(top, 'g');
    ML_AUTO_FREE char *again = draw(top, 10, 3, NULL);
    assert_string_equal(first, again);
    assert_int_equal(ML_TOP_ASK, ml_top_press(top, 'q'));
    assert_path(top, "/top/");
    assert_selected(top, "d/c");
    ml_top_press(top, ML_TOP_ENTER);
    assert_int_equal(ML_TOP_ASK, ml_top_press(top, ML_TOP_ESC));
    assert_int_equal(ML_TOP_QUIT, ml_top_press(top, 'q'));
    ml_top_free(top);
}

/* The answer has names that would be another question, and none. */
static void test_top_asks_nothing_about_what_is_no_name(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{\"controller\":\"a\",\"kind\":\"At\",\"name\":\"d/c HTTP/1.0\\r\\nX: y\"}",
        "{\"controller\":\"a\",\"kind\":\"A/t\",\"name\":\"d/c\"}",
        "{\"controller\":\"a\",\"kind\":\"At\",\"name\":\"\"}",
        "{}",
        "7",
        "null",
    };
    for (size_t i = 0; i < ML_COUNT(bad); i++) {
        struct ml_top *top = top_of(bad[i]);
        assert_int_equal(ML_TOP_STAY, ml_top_press(top, ML_TOP_ENTER));
        assert_path(top, "/top/");
        ml_top_free(top);
    }
    struct ml_top *top = top_of("");
    assert_int_equal(ML_TOP_STAY, ml_top_press(top, ML_TOP_ENTER));
    ml_top_answered(top, ML_STR("{\"at\":\"2026-01-02T15:04:05Z\",\"controllers\":[{\"controller\":"
                                "\"a HTTP/1.0\\r\\n\"}]}"));
    ml_top_press(top, 'c');
    assert_shows(top, "no object of controller a HTTP/1.0\\r\\n is in trouble or active\n");
    assert_path(top, "/top/");
    ml_top_free(top);
}

static void test_top_pauses(void **state)
{
    struct ml_top *top = top_of(FAILS);
    (void)state;
    assert_true(ml_top_refreshes(top));
    assert_int_equal(ML_TOP_STAY, ml_top_press(top, 'p'));
    assert_false(ml_top_refreshes(top));
    assert_shows(top, "by trouble; paused\n");
    assert_int_equal(ML_TOP_STAY, ml_top_press(top, 'c'));
    assert_int_equal(ML_TOP_ASK, ml_top_press(top, 'r'));
    assert_int_equal(ML_TOP_ASK, ml_top_press(top, 'p'));
    assert_true(ml_top_refreshes(top));
    ml_top_free(top);
}

static void test_top_helps(void **state)
{
    struct ml_top *top = top_of(FAILS);
    (void)state;
    ml_top_press(top, '?');
    assert_shows(top, "c, Tab ");
    assert_hides(top, "d/b");
    ml_top_press(top, ML_TOP_ENTER);
    assert_path(top, "/top/");
    ml_top_press(top, '?');
    assert_shows(top, "d/b");
    ml_top_free(top);
}

static void test_top_keeps_what_it_knows_when_an_answer_is_garbage(void **state)
{
    static const char *const garbage[] = {
        "", "{", "null", "[]", "\"text\"", "{\"at\":7}", "{\"at\":\"yesterday\",\"keys\":[]}",
    };
    static const char *const odd[] = {
        "{\"at\":\"2026-01-02T15:04:05Z\"}",
        "{\"at\":\"2026-01-02T15:04:05Z\",\"keys\":{},\"controllers\":\"x\",\"checks\":[{}]}",
        "{\"at\":\"2026-01-02T15:04:05Z\",\"keys\":[[],{\"name\":{\"a\":1}},{\"due\":\"x\"}],"
        "\"controllers\":[7],\"runs\":\"many\",\"clock_ms\":99999999999999999999}",
    };
    struct ml_top *top = top_of(FAILS);
    (void)state;
    for (size_t i = 0; i < ML_COUNT(garbage); i++) {
        ml_top_answered(top, ml_str_of(garbage[i]));
        assert_shows(top, "the host's answer is broken\n");
        assert_selected(top, "d/b");
    }
    tell(top, FAILS);
    assert_hides(top, "broken");
    for (size_t i = 0; i < ML_COUNT(odd); i++) {
        ml_top_answered(top, ml_str_of(odd[i]));
        assert_hides(top, "broken");
        ml_top_press(top, ML_TOP_ENTER);
    }
    for (size_t i = 0; i < ML_COUNT(garbage); i++) {
        tell(top, FAILS);
        assert_int_equal(ML_TOP_ASK, ml_top_press(top, ML_TOP_ENTER));
        ml_top_answered(top, ml_str_of(garbage[i]));
        ML_AUTO_FREE char *screen = draw(top, 20, 5, NULL);
        ml_top_press(top, 'q');
    }
    ml_top_free(top);
}

/* Each screen has at most so many lines of at most so many characters, and no broken one. */
static void assert_fits(struct ml_top *top, int columns, int rows)
{
    int highlight, lines = 0;
    ML_AUTO_FREE char *screen = draw(top, columns, rows, &highlight);
    assert_true(ml_str_is_utf8(ml_str_of(screen)));
    for (struct ml_str rest = ml_str_of(screen); rest.len > 0; lines++) {
        struct ml_str line = ml_str_cut(&rest, '\n');
        int width = 0;
        for (size_t at = 0; at < line.len; width++)
            at += ml_utf8_len(line.ptr + at, line.len - at);
        if (width > columns)
            fail_msg("%d characters instead of %d: %.*s", width, columns, ML_STR_ARG(line));
    }
    assert_true(lines <= ML_MAX(rows, 0));
    assert_true(highlight < ML_MAX(rows, 1));
}

/* Of so many objects, with names and errors in every script. */
static struct ml_top *top_of_many(int count)
{
    ML_AUTO(ml_buf_fini) struct ml_buf many = ML_BUF_INIT;
    for (int i = 0; i < count; i++)
        ml_buf_printf(&many,
                      "%s{\"controller\":\"längliche-steuerung-%d\",\"kind\":\"At\",\"name\":"
                      "\"default/ü日本-%d\",\"state\":\"fails\",\"failures\":%d,\"now\":\"日本語\","
                      "\"error\":\"ééé\\u0007\\u009b\\ud83d\\ude00\",\"cpu_ms\":1e300,\"due\":"
                      "\"2200-01-05T15:04:05Z\"}",
                      i > 0 ? "," : "", i, i, i);
    return top_of(ml_buf_cstr(&many));
}

static void test_top_fits_every_size(void **state)
{
    static const int sizes[] = {0, 1, 2, 3, 4, 5, 10, 12, 24, 80, 10000};
    static const int keys[] = {0, 'G', 'k', ML_TOP_PAGE_UP, '?', 'q'};
    struct ml_top *top = top_of_many(100);
    (void)state;
    for (size_t k = 0; k < ML_COUNT(keys); k++) {
        ml_top_press(top, keys[k]);
        for (size_t i = 0; i < ML_COUNT(sizes); i++)
            for (size_t j = 0; j < ML_COUNT(sizes); j++)
                assert_fits(top, sizes[i], sizes[j]);
        assert_fits(top, -1, -1);
    }
    ml_top_free(top);
}

static void test_top_takes_no_more_than_it_has_room_for(void **state)
{
    struct ml_top *top = top_of_many(1100);
    (void)state;
    assert_shows(top, "\n1000 of 1000 objects");
    ml_top_press(top, 'G');
    assert_selected(top, "default/ü日本-999");
    ml_top_free(top);
}

static void test_top_fills_small_screens_with_objects(void **state)
{
    struct ml_top *top = top_of(FAILS "," RUNS "," DUE);
    int highlight;
    (void)state;
    ML_AUTO_FREE char *small = draw(top, 20, 5, &highlight);
    assert_string_equal("controllers 2, objec\n3 of 30 objects in t\nOBJECT CO… STATE\n"
                        "d/b    si… fails 4\n? help  q quit  Ente\n",
                        small);
    assert_int_equal(3, highlight);
    ml_top_press(top, ML_TOP_END);
    ML_AUTO_FREE char *last = draw(top, 20, 5, &highlight);
    assert_non_null(strstr(last, "\nd/a    cn… due"));
    assert_int_equal(3, highlight);
    ML_AUTO_FREE char *usual = draw(top, 80, 24, &highlight);
    assert_non_null(
        strstr(usual, "\nd/a    cnat       due        in 3d    7.50 its last run asked "));
    assert_non_null(strstr(usual, " READY RUNNING WAITING FAILING\n")); /* none is cut */
    ml_top_free(top);
}

static void test_top_prints_without_a_terminal(void **state)
{
    struct ml_top *top = top_of(FAILS "," RUNS);
    ML_AUTO(ml_buf_fini) struct ml_buf out = ML_BUF_INIT;
    (void)state;
    ml_top_print(top, &out);
    const char *text = ml_buf_cstr(&out);
    assert_true(
        ml_str_starts(ml_buf_str(&out), "not ready, leads: b.lua is bad\ncontrollers 2, objects"));
    assert_non_null(strstr(text, ", writes/s -\nCONTROLLER "));
    assert_non_null(strstr(text, "\nd/b    site       fails 4  in 4.2s    0.25 \\x1b[31mred\\n\n"
                                 "d/c "));
    assert_null(strstr(text, "? help"));
    assert_null(strchr(text, '\x1b'));
    ml_top_free(top);
}

static void test_top_knows_keys(void **state)
{
    struct ml_str bytes = ML_STR("\x1b[A\x1bOBj\r\t\x1b[6~\x1b[15~q\x1b[1;5Cq\x1b");
    static const int expected[] = {ML_TOP_UP,        ML_TOP_DOWN,  'j', ML_TOP_ENTER, ML_TOP_TAB,
                                   ML_TOP_PAGE_DOWN, ML_TOP_OTHER, 'q', ML_TOP_OTHER, 'q',
                                   ML_TOP_ESC};
    (void)state;
    for (size_t i = 0; i < ML_COUNT(expected); i++) {
        assert_true(bytes.len > 0);
        assert_int_equal(expected[i], ml_top_cut_key(&bytes));
    }
    assert_int_equal(0, bytes.len);
    struct ml_top *top = top_of(FAILS);
    /* Nothing that a terminal may send makes it read too much, or stand still. */
    for (int a = 0; a < 256; a++)
        for (int b = 0; b < 256; b++) {
            const char two[] = {(char)a, (char)b};
            for (struct ml_str rest = {two, 2}; rest.len > 0;) {
                size_t before = rest.len;
                ml_top_press(top, ml_top_cut_key(&rest));
                assert_true(rest.len < before);
            }
        }
    ml_top_free(top);
}

static void test_why_paths_are_of_names(void **state)
{
    (void)state;
    ML_AUTO_FREE char *good = ml_why_path("At", "default/a");
    assert_string_equal("/why/At/default/a", good);
    assert_null(ml_why_path("At", "a b"));
    assert_null(ml_why_path("", "a"));
    assert_null(ml_why_path("At", "a?b"));
    assert_true(ml_answer_is_name("default/a-b_C.9"));
    assert_false(ml_answer_is_name(""));
    assert_false(ml_answer_is_name("a\r\nb"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_top_shows_what_the_host_tells),
        cmocka_unit_test(test_top_tells_runs_and_writes_in_a_second),
        cmocka_unit_test(test_top_selection_stays_on_its_object),
        cmocka_unit_test(test_top_sorts),
        cmocka_unit_test(test_top_filters_by_controller),
        cmocka_unit_test(test_top_shows_why_and_returns),
        cmocka_unit_test(test_top_asks_nothing_about_what_is_no_name),
        cmocka_unit_test(test_top_pauses),
        cmocka_unit_test(test_top_helps),
        cmocka_unit_test(test_top_keeps_what_it_knows_when_an_answer_is_garbage),
        cmocka_unit_test(test_top_fits_every_size),
        cmocka_unit_test(test_top_takes_no_more_than_it_has_room_for),
        cmocka_unit_test(test_top_fills_small_screens_with_objects),
        cmocka_unit_test(test_top_prints_without_a_terminal),
        cmocka_unit_test(test_top_knows_keys),
        cmocka_unit_test(test_why_paths_are_of_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
