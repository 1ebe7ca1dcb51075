/* The reader of YAML held to that of kubectl and kube-apiserver: yaml.txt has what
 * sigs.k8s.io/yaml answered (`make yaml-table`). */
#include "unit.h"

#include "codec/json.h"
#include "codec/yaml.h"

#include <stdio.h>

#define TABLE       SOURCE_DIR "/spec/unit/codec/yaml.txt"
#define ROW_MAX     65536
#define CASES_LEAST 700

/* A case of the table, and what our reader made of it. */
struct row {
    bool differs; /* the table says that it does */
    struct ml_buf text, out, duplicates;
    struct ml_err err;
    int result;
};

/* The JSON string behind the mark of a line. */
static void unquote(const char *line, struct ml_buf *out)
{
    struct ml_str raw = ml_str_trim(ml_str_of(line + 2));
    if (!ml_json_to_string(raw, out))
        fail_msg("not a JSON string: %s", line);
}

static void begin_row(struct row *row, const char *line)
{
    ml_buf_clear(&row->text);
    ml_buf_clear(&row->out);
    ml_buf_clear(&row->duplicates);
    row->err = ML_ERR_INIT;
    unquote(line, &row->text);
    row->result = ml_yaml_document(ml_buf_str(&row->text), ROW_MAX, &row->out, &row->duplicates,
                                   &row->err);
}

/* Do two texts of JSON have the same values? Numbers in the same digits, strings with any escapes.
 */
static bool is_same(struct ml_str a, struct ml_str b)
{
    struct ml_json_reader first, second;
    bool same = true;
    ml_json_reader_init(&first, a, 0);
    ml_json_reader_init(&second, b, 0);
    while (same) {
        enum ml_json_token token = ml_json_next(&first);
        same = token == ml_json_next(&second) && token != ML_JSON_ERROR;
        if (token == ML_JSON_END)
            break;
        if (token == ML_JSON_KEY || token == ML_JSON_STRING || token == ML_JSON_INT ||
            token == ML_JSON_REAL || token == ML_JSON_NUMBER)
            same = same && ml_str_eq(first.text, second.text);
    }
    ml_json_reader_fini(&first);
    ml_json_reader_fini(&second);
    return same;
}

/* Does the row answer as the line says? */
static bool answers(struct row *row, const char *line)
{
    struct ml_buf want = ML_BUF_INIT;
    bool right;
    if (line[0] == '>') {
        right = row->result == 0 &&
                is_same(ml_buf_str(&row->out), ml_str_trim(ml_str_of(line + 2)));
    } else {
        unquote(line, &want);
        right = row->result == ML_EINVALID && strcmp(row->err.message, ml_buf_cstr(&want)) == 0;
    }
    ml_buf_fini(&want);
    return right;
}

/* Takes the next line of the duplicates off. */
static void check_duplicate(struct row *row, const char *line)
{
    struct ml_buf want = ML_BUF_INIT;
    unquote(line, &want);
    struct ml_str rest = ml_buf_str(&row->duplicates);
    struct ml_str first = ml_str_cut(&rest, '\n');
    if (!ml_str_eq(first, ml_buf_str(&want)))
        fail_msg("%s\nwant: %sgot:  " ML_STR_FMT, ml_buf_cstr(&row->text), line, ML_STR_ARG(first));
    memmove(row->duplicates.ptr, rest.ptr ? rest.ptr : "", rest.len);
    row->duplicates.len = rest.len;
    ml_buf_fini(&want);
}

static void end_row(struct row *row)
{
    if (row->duplicates.len)
        fail_msg("%s\ntold without reason: %s", ml_buf_cstr(&row->text),
                 ml_buf_cstr(&row->duplicates));
}

static void check_row(struct row *row, const char *line)
{
    if (answers(row, line) == row->differs)
        fail_msg("%s\n%s: %sgot:  %s", ml_buf_cstr(&row->text),
                 row->differs ? "no longer differs" : "want", line,
                 row->result ? row->err.message : ml_buf_cstr(&row->out));
    row->differs = false;
}

static void test_yaml_texts_mean_what_they_mean_to_kubectl(void **state)
{
    (void)state;
    static char line[ROW_MAX];
    struct row row = {0};
    size_t count = 0;
    FILE *table = fopen(TABLE, "r");
    assert_non_null(table);
    while (fgets(line, sizeof line, table)) {
        if (line[0] == '=') {
            end_row(&row);
            begin_row(&row, line);
            count++;
        } else if (line[0] == '>' || line[0] == '!') {
            check_row(&row, line);
        } else if (line[0] == '~') {
            check_duplicate(&row, line);
        } else if (line[0] == '*') {
            row.differs = true;
        }
    }
    end_row(&row);
    fclose(table);
    assert_true(count >= CASES_LEAST);
    ml_buf_fini(&row.text);
    ml_buf_fini(&row.out);
    ml_buf_fini(&row.duplicates);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_yaml_texts_mean_what_they_mean_to_kubectl),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
