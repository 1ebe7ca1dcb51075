#include "judge.h"

#include "codec/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define BEAT_MS      50  /* what the bystander asks for */
#define LATE_MAX_MS  250 /* what it may be late by, whatever the others do */
#define LINE_MAX     ((size_t)20 * 1024)
#define PATH_LEN_MAX 8192
#define NOTE_LEN_MAX 1024
#define TIME_LEN     24        /* 2031-05-01T00:00:00.000Z */
#define FORGED       "FORGED"  /* what a program writes where it has no voice */
#define ESCAPED      "ESCAPED" /* what it writes when it has what it should not */

void report_fail(struct report *report, const char *format, ...)
{
    size_t len = strlen(report->why);
    if (len + 2 >= sizeof report->why)
        return;
    va_list arguments;
    va_start(arguments, format);
    int added = vsnprintf(report->why + len, sizeof report->why - len - 1, format, arguments);
    va_end(arguments);
    (void)added;
    strcat(report->why, "\n");
}

/* ---- one line of the log ---- */

struct line {
    struct ml_str text;
    char time[TIME_LEN + 1];
    char level[8];
    char *logger;
    char *message;       /* a space, then in a text log with its fields behind it */
    struct ml_str about; /* the message alone */
};

/* A control character (C0, DEL, C1) or a byte that is no UTF-8: what a terminal obeys. */
static bool has_control(struct ml_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        unsigned char next = i + 1 < text.len ? (unsigned char)text.ptr[i + 1] : 0;
        if (c < 0x20 || c == 0x7f || (c == 0xc2 && next >= 0x80 && next < 0xa0))
            return true;
    }
    return !ml_str_is_utf8(text);
}

static bool is_time(const char *text)
{
    static const char form[] = "dddd-dd-ddTdd:dd:dd.dddZ";
    for (size_t i = 0; i < TIME_LEN; i++)
        if (form[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
            return false;
    return true;
}

/* "TIME level logger: message fields" */
static bool split_text(struct line *line)
{
    struct ml_str text = line->text;
    if (text.len < TIME_LEN + 9 || !is_time(text.ptr) || text.ptr[TIME_LEN] != ' ')
        return false;
    memcpy(line->time, text.ptr, TIME_LEN);
    snprintf(line->level, sizeof line->level, "%.5s", text.ptr + TIME_LEN + 1);
    static const char *const levels[] = {"debug", "info ", "warn ", "error"};
    bool known = false;
    for (size_t i = 0; i < ML_COUNT(levels); i++)
        known = known || strcmp(line->level, levels[i]) == 0;
    struct ml_str rest = {text.ptr + TIME_LEN + 7, text.len - TIME_LEN - 7};
    line->logger = ml_str_dup(ml_str_cut(&rest, ':'));
    line->message = ml_str_dup(rest);
    const char *field = strstr(line->message, "=\"");
    line->about = (struct ml_str){line->message,
                                  field ? (size_t)(field - line->message) : rest.len};
    return known && rest.len > 0 && rest.ptr[0] == ' ';
}

static bool split_json(struct line *line)
{
    struct ml_err err = ML_ERR_INIT;
    if (ml_json_check(line->text, 0, &err) < 0)
        return false;
    ML_AUTO_FREE char *time = ml_json_find_string(line->text, "ts", NULL);
    ML_AUTO_FREE char *level = ml_json_find_string(line->text, "level", NULL);
    line->logger = ml_json_find_string(line->text, "logger", NULL);
    ML_AUTO_FREE char *message = ml_json_find_string(line->text, "msg", NULL);
    if (!time || !level || !message || !line->logger || strlen(time) != TIME_LEN || !is_time(time))
        return false;
    memcpy(line->time, time, TIME_LEN);
    snprintf(line->level, sizeof line->level, "%-5s", level);
    line->message = ml_asprintf(" %s " ML_STR_FMT, message, ML_STR_ARG(line->text));
    line->about = (struct ml_str){line->message, 1 + strlen(message)};
    return true;
}

static int64_t ms_of(const char *time)
{
    int h = 0, m = 0, s = 0, ms = 0;
    sscanf(time + 11, "%d:%d:%d.%d", &h, &m, &s, &ms);
    return ((h * 60 + m) * 60 + s) * INT64_C(1000) + ms;
}

static void check_voice(struct judge *judge, const struct line *line)
{
    struct report *report = judge->report;
    bool forged = memmem(line->about.ptr, line->about.len, FORGED, strlen(FORGED)) != NULL;
    if (forged && strncmp(line->logger, "attack", 6) != 0)
        report_fail(report, "speaks with the host's voice: %.200s", line->text.ptr);
    if (strcmp(line->time, judge->last_time) < 0)
        report_fail(report, "a line of another time: %.200s", line->text.ptr);
    memcpy(judge->last_time, line->time, sizeof line->time);
}

static void check_late(struct judge *judge, int64_t now_ms)
{
    int64_t late_ms = now_ms - judge->last_tick_ms - BEAT_MS;
    judge->report->late_ns = ML_MAX(judge->report->late_ns, late_ms * ML_NS_PER_MS);
}

static bool matches(const struct program *program, const struct line *line)
{
    return !program->has_pattern || regexec(&program->pattern, line->message, 0, NULL, 0) == 0;
}

/* Is it what the head of the program says must come? */
static bool is_expected(const struct judge *judge, const struct line *line, bool refused)
{
    const struct program *program = judge->program;
    bool limit = strstr(line->message, "CPU time") != NULL;
    bool memory = strstr(line->message, "out of memory") || strstr(line->message, "memory limit") ||
                  strstr(line->message, "not enough memory");
    switch (program->expect) {
    case EXPECT_REFUSED:
        return refused && matches(program, line);
    case EXPECT_ERROR:
        return !refused && matches(program, line);
    case EXPECT_CPU:
        return limit && matches(program, line);
    case EXPECT_MEMORY:
        return memory && matches(program, line);
    case EXPECT_HELD:
    case EXPECT_OK:
        break;
    }
    return false;
}

static void hear_trouble(struct judge *judge, const struct line *line)
{
    bool refused = strstr(line->message, "refused") != NULL && strcmp(line->logger, "scripts") == 0;
    if (strcmp(line->logger, "scripts") == 0 && !refused)
        return;
    static const char refusal[] = " a write of the script was refused"; /* which it may handle */
    if (strncmp(line->message, refusal, sizeof refusal - 1) == 0)
        return;
    judge->failures++;
    judge->came = judge->came || is_expected(judge, line, refused);
}

/* "  FILE.lua:LINE: in ...", "  [host]: in ..." or "  ...": below a line of a text log. */
static bool is_level_of_traceback(struct ml_str text)
{
    if (!ml_str_starts(text, "  "))
        return false;
    if (ml_str_is(text, "  ..."))
        return true;
    struct ml_str rest = {text.ptr + 2, text.len - 2};
    struct ml_str place = ml_str_cut(&rest, ':');
    if (ml_str_is(place, "[host]"))
        return ml_str_starts(rest, " in ");
    struct ml_str line = ml_str_cut(&rest, ':');
    for (size_t i = 0; i < line.len; i++)
        if (line.ptr[i] < '0' || line.ptr[i] > '9')
            return false;
    return line.len > 0 && ml_str_starts(rest, " in ");
}

static void judge_line(struct judge *judge, struct ml_str text)
{
    struct line line = {.text = text};
    struct report *report = judge->report;
    bool good = judge->program->json ? split_json(&line) : split_text(&line);
    bool below = !judge->program->json && is_level_of_traceback(text);
    if (!good && !below)
        report_fail(report, "a line that is not the host's: %.*s", (int)ML_MIN(text.len, 200),
                    text.ptr);
    if (has_control(text))
        report_fail(report, "a control character in the log: %.200s", text.ptr);
    if (memmem(text.ptr, text.len, ESCAPED, strlen(ESCAPED)))
        report_fail(report, "%.*s", (int)ML_MIN(text.len, 400), text.ptr);
    if (good) {
        check_voice(judge, &line);
        if (strcmp(line.logger, "bystander") == 0 && strncmp(line.message, " tick", 5) == 0) {
            if (judge->watching)
                check_late(judge, ms_of(line.time));
            judge->last_tick_ms = ms_of(line.time);
            report->ticks++;
        } else if (judge->watching && (line.level[0] == 'e' || line.level[0] == 'w')) {
            hear_trouble(judge, &line);
        }
    }
    free(line.logger);
    free(line.message);
}

void judge_log(struct judge *judge)
{
    char piece[64 * 1024 + 1];
    for (;;) {
        ssize_t got = pread(judge->fd, piece, sizeof piece - 1, judge->read_to);
        if (got <= 0)
            return;
        piece[got] = '\0';
        char *last = memrchr(piece, '\n', (size_t)got);
        if (!last && got < (ssize_t)(sizeof piece - 1))
            return;
        size_t whole = last ? (size_t)(last + 1 - piece) : (size_t)got;
        struct ml_str rest = {piece, whole};
        while (rest.len > 0) {
            struct ml_str text = ml_str_cut(&rest, '\n');
            piece[text.ptr + text.len - piece] = '\0';
            judge_line(judge, text);
        }
        judge->read_to += (int64_t)whole;
    }
}

/* ---- a request ---- */

static const char *what_is_wrong(const struct program *program, struct ml_str path)
{
    ML_AUTO_FREE char *text = ml_str_dup(path);
    size_t plain = strcspn(text, "?");
    if (path.len > PATH_LEN_MAX)
        return "too long";
    for (size_t i = 0; i < path.len; i++)
        if ((unsigned char)path.ptr[i] <= ' ' || (unsigned char)path.ptr[i] >= 0x7f)
            return "a character that no URL has";
    text[plain] = '\0';
    if (strstr(text, "..") || strstr(text, "//") || strchr(text, '%') || strstr(text, "/./"))
        return "it leads elsewhere";
    if (strstr(text, "secrets") && !program->may_secrets)
        return "Secrets, which the program does not declare";
    if (strstr(text, "/namespaces/others") && !program->may_others)
        return "a namespace that is none of the program's business";
    return NULL;
}

void judge_request(struct judge *judge, const char *method, const char *path, const char *body)
{
    struct report *report = judge->report;
    report->requests++;
    const char *wrong = what_is_wrong(judge->program, ml_str_of(path));
    if (wrong)
        report_fail(report, "%s %.200s: %s", method, path, wrong);
    if (!strstr(path, "/events"))
        return;
    ML_AUTO_FREE char *note = ml_json_find_string(ml_str_of(body), "note", NULL);
    if (note && strlen(note) > NOTE_LEN_MAX)
        report_fail(report, "%s %.100s: a note of %zu bytes", method, path, strlen(note));
}

/* ---- the end ---- */

void judge_end(struct judge *judge, int64_t now_ms)
{
    const struct program *program = judge->program;
    struct report *report = judge->report;
    judge_log(judge);
    check_late(judge, now_ms);
    if (report->late_ns > LATE_MAX_MS * ML_NS_PER_MS)
        report_fail(report, "the bystander was late by %lld ms",
                    (long long)(report->late_ns / ML_NS_PER_MS));
    bool asked = program->expect != EXPECT_HELD && program->expect != EXPECT_OK;
    if (asked && !judge->came)
        report_fail(report, "it did not fail as expected (%zu failures)", judge->failures);
}
