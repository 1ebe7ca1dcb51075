#include "program.h"

#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>

#define TEXT_MAX ((size_t)16 * 1024 * 1024)

static _Noreturn void fail(const char *path, int line, const char *why)
{
    fprintf(stderr, "%s:%d: %s\n", path, line, why);
    exit(2);
}

static char *read_text(const char *path)
{
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    FILE *in = fopen(path, "r");
    if (!in)
        fail(path, 0, "cannot be read");
    char piece[4096];
    for (size_t got; (got = fread(piece, 1, sizeof piece, in)) > 0;)
        ml_buf_append_str(&text, (struct ml_str){piece, got});
    fclose(in);
    ml_buf_cstr(&text);
    return ml_buf_take(&text);
}

static bool read_expect(struct program *program, const char *value)
{
    static const struct {
        const char *word;
        enum program_expect expect;
    } words[] = {
        {"held", EXPECT_HELD},   {"ok", EXPECT_OK},         {"refused", EXPECT_REFUSED},
        {"error", EXPECT_ERROR}, {"limit cpu", EXPECT_CPU}, {"limit memory", EXPECT_MEMORY},
    };
    for (size_t i = 0; i < ML_COUNT(words); i++) {
        size_t len = strlen(words[i].word);
        if (strncmp(value, words[i].word, len) != 0 || (value[len] && value[len] != ' '))
            continue;
        program->expect = words[i].expect;
        const char *open = strchr(value + len, '/'), *close = strrchr(value, '/');
        if (!open)
            return value[len] == '\0';
        ML_AUTO_FREE char *pattern = ml_strndup(open + 1, (size_t)(close - open - 1));
        program->has_pattern = true;
        return close > open && regcomp(&program->pattern, pattern, REG_EXTENDED | REG_NOSUB) == 0;
    }
    return false;
}

static bool read_time(const char *value, int64_t *out_ns)
{
    char *unit;
    double number = strtod(value, &unit);
    if (strcmp(unit, "ms") == 0)
        *out_ns = (int64_t)(number * 1e6);
    else if (strcmp(unit, "s") == 0)
        *out_ns = (int64_t)(number * 1e9);
    return *out_ns > 0;
}

static bool read_entry(struct program *program, const char *value)
{
    if (program->entry_count == PROGRAM_ENTRIES_MAX)
        return false;
    struct program_entry *entry = &program->entries[program->entry_count++];
    return sscanf(value, "%15s %63s", entry->what, entry->name) == 2;
}

static bool read_number(const char *value, int64_t *out)
{
    return ml_str_to_i64(ml_str_of(value), out) && *out > 0;
}

static bool read_directive(struct program *program, const char *word, const char *value)
{
    const struct {
        const char *word;
        int64_t *number;
    } numbers[] = {
        {"objects", &program->objects},   {"copies", &program->copies},
        {"renames", &program->renames},   {"touches", &program->touches},
        {"memory", &program->memory_mib}, {"share", &program->share},
    };
    for (size_t i = 0; i < ML_COUNT(numbers); i++)
        if (strcmp(word, numbers[i].word) == 0)
            return read_number(value, numbers[i].number);
    if (strcmp(word, "attack") == 0)
        return *value != '\0';
    if (strcmp(word, "expect") == 0)
        return read_expect(program, value);
    if (strcmp(word, "for") == 0)
        return read_time(value, &program->for_ns);
    if (strcmp(word, "entry") == 0)
        return read_entry(program, value);
    if (strcmp(word, "log") == 0)
        return program->json = strcmp(value, "json") == 0;
    if (strcmp(word, "loads") == 0)
        return program->at_start = strcmp(value, "at start") == 0;
    if (strcmp(word, "may") == 0) {
        program->may_secrets = program->may_secrets || strcmp(value, "secrets") == 0;
        program->may_others = program->may_others || strcmp(value, "others") == 0;
        return program->may_secrets || program->may_others;
    }
    return false;
}

/* "-- word: value". A comment of another form is none, and ends nothing. */
static bool is_directive(const char *line, char word[16], const char **value)
{
    int at = 0;
    if (sscanf(line, "-- %15[a-z]:%n", word, &at) != 1 || at == 0)
        return false;
    *value = line + at + strspn(line + at, " ");
    return true;
}

static void read_head(struct program *program, const char *path)
{
    bool has_attack = false, has_expect = false;
    struct ml_str rest = ml_str_of(program->text);
    for (int number = 1; ml_str_starts(rest, "--"); number++) {
        ML_AUTO_FREE char *line = ml_str_dup(ml_str_cut(&rest, '\n'));
        char word[16];
        const char *value;
        if (!is_directive(line, word, &value))
            continue;
        if (strcmp(word, "also") == 0)
            fail(path, number, "the program itself comes before what it brings along");
        if (!read_directive(program, word, value))
            fail(path, number, "README.md knows no such directive");
        has_attack = has_attack || strcmp(word, "attack") == 0;
        has_expect = has_expect || strcmp(word, "expect") == 0;
    }
    if (!has_attack || !has_expect)
        fail(path, 1, "a program says what it attacks, and what is expected");
}

static void add_part(struct program *program, const char *path, struct ml_str name,
                     struct ml_str text)
{
    if (program->part_count == PROGRAM_PARTS_MAX)
        fail(path, 0, "too many files");
    program->parts[program->part_count++] = (struct ml_script_file){name, text};
}

/* Each "-- also: NAME" begins another file. */
static void cut_parts(struct program *program, const char *path)
{
    static const char mark[] = "\n-- also: ";
    char *at = program->text;
    struct ml_str name = ML_STR("attack.lua");
    for (char *next; (next = strstr(at, mark));) { /* no file of a program is empty */
        add_part(program, path, name, (struct ml_str){at, (size_t)(next + 1 - at)});
        char *end = strchr(next + 1, '\n');
        if (!end)
            fail(path, 0, "a file without a text");
        name = (struct ml_str){next + sizeof mark - 1, (size_t)(end - next) - (sizeof mark - 1)};
        at = end + 1;
    }
    add_part(program, path, name, ml_str_of(at));
}

void program_read(struct program *program, const char *path, const char *name)
{
    *program = (struct program){.objects = 1, .copies = 1, .touches = 2};
    program->name = ml_strdup(name);
    program->text = read_text(path);
    read_head(program, path);
    cut_parts(program, path);
}

void program_free(struct program *program)
{
    if (program->has_pattern)
        regfree(&program->pattern);
    free(program->name);
    free(program->text);
}

/* "@N@" and "@I@": the number of the copy, and of the repetition. */
static void put_numbered(struct ml_buf *out, struct ml_str text, int64_t copy, int64_t repetition)
{
    for (size_t i = 0; i < text.len; i++) {
        bool is_mark = i + 2 < text.len && text.ptr[i] == '@' && text.ptr[i + 2] == '@' &&
                       (text.ptr[i + 1] == 'N' || text.ptr[i + 1] == 'I');
        if (!is_mark) {
            ml_buf_putc(out, text.ptr[i]);
            continue;
        }
        ml_buf_printf(out, "%lld", (long long)(text.ptr[i + 1] == 'N' ? copy : repetition));
        i += 2;
    }
}

char *program_text(struct ml_str text, int64_t number)
{
    ML_AUTO(ml_buf_fini) struct ml_buf out;
    ml_buf_init(&out, TEXT_MAX);
    const char *end = text.ptr + text.len;
    while (text.ptr < end) {
        struct ml_str plain = {text.ptr, (size_t)(end - text.ptr)};
        const char *open = memmem(plain.ptr, plain.len, "@x", 2);
        char *inside = NULL;
        long times = open ? strtol(open + 2, &inside, 10) : 0;
        const char *close = times > 0 && *inside == '{'
                                ? memmem(inside, (size_t)(end - inside), "}@", 2)
                                : NULL;
        if (close)
            plain.len = (size_t)(open - plain.ptr);
        put_numbered(&out, plain, number, 0);
        for (long i = 1; close && i <= times; i++)
            put_numbered(&out, (struct ml_str){inside + 1, (size_t)(close - inside - 1)}, number,
                         i);
        text.ptr = close ? close + 2 : end;
    }
    ml_buf_cstr(&out);
    return ml_buf_take(&out);
}
