/* The journal: entries come back as they were, the oldest make room, and a long text is cut. */
#include "unit.h"

#include "base/buf.h"
#include "state/journal.h"

#include <stdio.h>

#define BYTES ((size_t)16 * 1024)

static struct ml_journal_entry run_of(const char *key)
{
    return (struct ml_journal_entry){
        .what = ML_JOURNAL_RUN,
        .at_ns = 5,
        .controller = ML_STR("site"),
        .key = ml_str_of(key),
        .revision = ML_STR("3f2a91bc"),
        .cause = ML_STR("start"),
        .result = ML_STR("success"),
        .waited_ns = 1,
        .took_ns = 2,
        .cpu_ns = 3,
        .writes = 4,
    };
}

static void test_journal_gives_back_what_was_added(void **state)
{
    struct ml_journal *journal = ml_journal_new(BYTES);
    const struct ml_journal_entry run = run_of("default/a");
    const struct ml_journal_entry write = {
        .what = ML_JOURNAL_WRITE,
        .at_ns = 4,
        .controller = ML_STR("site"),
        .key = ML_STR("default/a"),
        .error = ML_STR("no"),
        .verb = ML_STR("create"),
        .kind = ML_STR("Pod"),
        .name = ML_STR("default/a-0"),
        .place = ML_STR("site.lua:3"),
    };
    struct ml_journal_cursor cursor = {0};
    struct ml_journal_entry out;
    (void)state;
    assert_false(ml_journal_next(journal, &cursor, &out));
    ml_journal_add(journal, &write);
    ml_journal_add(journal, &run);
    assert_true(ml_journal_next(journal, &cursor, &out));
    assert_int_equal(ML_JOURNAL_WRITE, out.what);
    assert_int_equal(4, out.at_ns);
    assert_true(ml_str_is(out.error, "no"));
    assert_true(ml_str_is(out.verb, "create"));
    assert_true(ml_str_is(out.kind, "Pod"));
    assert_true(ml_str_is(out.name, "default/a-0"));
    assert_true(ml_str_is(out.place, "site.lua:3"));
    assert_int_equal(0, out.revision.len);
    assert_int_equal(2, ml_journal_added(journal));
    assert_int_equal(1, ml_journal_runs(journal));
    assert_true(ml_journal_next(journal, &cursor, &out));
    assert_int_equal(ML_JOURNAL_RUN, out.what);
    assert_true(ml_str_is(out.controller, "site"));
    assert_true(ml_str_is(out.key, "default/a"));
    assert_true(ml_str_is(out.revision, "3f2a91bc"));
    assert_true(ml_str_is(out.cause, "start"));
    assert_true(ml_str_is(out.result, "success"));
    assert_int_equal(0, out.place.len);
    assert_int_equal(1, out.waited_ns);
    assert_int_equal(2, out.took_ns);
    assert_int_equal(3, out.cpu_ns);
    assert_int_equal(4, out.writes);
    assert_false(ml_journal_next(journal, &cursor, &out));
    ml_journal_free(journal);
}

/* Keys of many lengths, so that the end of the block is met in each way. */
static void test_journal_keeps_the_newest_in_order(void **state)
{
    struct ml_journal *journal = ml_journal_new(BYTES);
    (void)state;
    for (int i = 0; i < 5000; i++) {
        char key[400];
        int len = snprintf(key, sizeof key, "%d ", i);
        memset(key + len, 'x', (size_t)(i * 7 % 300));
        key[len + i * 7 % 300] = '\0';
        const struct ml_journal_entry run = run_of(key);
        ml_journal_add(journal, &run);
        struct ml_journal_cursor cursor = {0};
        struct ml_journal_entry out;
        int count = 0, newest = -1;
        while (ml_journal_next(journal, &cursor, &out)) {
            int number = atoi(out.key.ptr);
            assert_true(newest == -1 || number == newest + 1);
            assert_true(ml_str_is(out.result, "success"));
            newest = number;
            count++;
        }
        assert_int_equal(i, newest);
        assert_true(count >= ML_MIN(i + 1, 30));
    }
    ml_journal_free(journal);
}

static void test_journal_cuts_a_long_text(void **state)
{
    struct ml_journal *journal = ml_journal_new(BYTES);
    struct ml_journal_cursor cursor = {0};
    struct ml_journal_entry run = run_of("a"), out;
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    (void)state;
    for (int i = 0; i < 100000; i++)
        ml_buf_putc(&text, 'e');
    run.error = ml_buf_str(&text);
    ml_journal_add(journal, &run);
    assert_true(ml_journal_next(journal, &cursor, &out));
    assert_int_equal(ML_JOURNAL_TEXT_MAX, out.error.len);
    assert_true(ml_str_is(out.result, "success"));
    ml_journal_add(NULL, &run);
    ml_journal_free(journal);
    ml_journal_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_journal_gives_back_what_was_added),
        cmocka_unit_test(test_journal_keeps_the_newest_in_order),
        cmocka_unit_test(test_journal_cuts_a_long_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
