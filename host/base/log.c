/* Writes log lines as JSON or as text, and counts those that are lost. */
#include "base/log.h"

#include "base/buf.h"
#include "base/escape.h"

#include <limits.h>
#include <math.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#define LOG_LINE_MAX    ((size_t)16 * 1024)
#define LOG_MESSAGE_MAX 1024 /* bytes of the message; what is longer is cut */
#define LOG_NAME_MAX    128  /* bytes of the logger, and of each key */

static const char *const level_names[] = {"debug", "info", "warn", "error"};

void ml_log_init(struct ml_log *log, struct ml_clock *clock, int fd, enum ml_log_format format,
                 enum ml_log_level level)
{
    *log = (struct ml_log){.clock = clock, .fd = fd, .level = level, .format = format};
}

/* The fields that every line has. */
struct log_head {
    int64_t now; /* wall clock, ns */
    const char *level, *logger, *message;
};

static void append_timestamp(struct ml_buf *line, int64_t wall_ns)
{
    time_t seconds = (time_t)(wall_ns / ML_NS_PER_S);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    ml_buf_printf(line, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", parts.tm_year + 1900,
                  parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                  (int)(wall_ns % ML_NS_PER_S / ML_NS_PER_MS));
}

/* JSON without the line ends that may stand between its tokens. */
static void append_raw_json(struct ml_buf *line, struct ml_str json)
{
    size_t from = line->len;
    ml_buf_append_str(line, json);
    for (size_t i = from; i < line->len; i++)
        if ((unsigned char)line->ptr[i] < 0x20)
            line->ptr[i] = ' ';
}

static void append_field_value(struct ml_buf *line, const struct ml_field *field)
{
    switch (field->type) {
    case ML_FIELD_STR:
    case ML_FIELD_LINES:
        ml_escape_json(line, field->str);
        break;
    case ML_FIELD_INT:
        ml_buf_printf(line, "%lld", (long long)field->integer);
        break;
    case ML_FIELD_REAL:
        ml_buf_printf(line, isfinite(field->real) ? "%.6g" : "null", field->real);
        break;
    case ML_FIELD_RAW:
        append_raw_json(line, field->str);
        break;
    }
}

static struct ml_str shown_name(const char *text)
{
    return ml_str_head(ml_str_of(text), LOG_NAME_MAX);
}

static void append_json_line(struct ml_buf *line, const struct log_head *head,
                             const struct ml_field *fields)
{
    ml_buf_printf(line, "{\"level\":\"%s\",\"ts\":\"", head->level);
    append_timestamp(line, head->now);
    ml_buf_puts(line, "\",\"logger\":");
    ml_escape_json(line, shown_name(head->logger));
    ml_buf_puts(line, ",\"msg\":");
    ml_escape_json(line, ml_str_head(ml_str_of(head->message), LOG_MESSAGE_MAX));
    for (; fields->key; fields++) {
        if (!fields->key[0])
            continue;
        ml_buf_putc(line, ',');
        ml_escape_json(line, shown_name(fields->key));
        ml_buf_putc(line, ':');
        append_field_value(line, fields);
    }
    ml_buf_puts(line, "}\n");
}

static void append_lines_below(struct ml_buf *line, struct ml_str text)
{
    while (text.len > 0) {
        ml_buf_puts(line, "  ");
        ml_escape_text(line, ml_str_cut(&text, '\n'));
        ml_buf_putc(line, '\n');
    }
}

/* Escaped as a whole: nothing in it can begin a line of its own. */
static void append_text_line(struct ml_buf *line, const struct log_head *head,
                             const struct ml_field *fields)
{
    struct ml_buf plain;
    ml_buf_init(&plain, LOG_LINE_MAX);
    append_timestamp(&plain, head->now);
    ml_buf_printf(&plain, " %-5s " ML_STR_FMT ": " ML_STR_FMT, head->level,
                  ML_STR_ARG(shown_name(head->logger)),
                  ML_STR_ARG(ml_str_head(ml_str_of(head->message), LOG_MESSAGE_MAX)));
    for (const struct ml_field *field = fields; field->key; field++) {
        if (!field->key[0] || field->type == ML_FIELD_LINES)
            continue;
        ml_buf_printf(&plain, " " ML_STR_FMT "=", ML_STR_ARG(shown_name(field->key)));
        append_field_value(&plain, field);
    }
    ml_escape_text(line, ml_buf_str(&plain));
    ml_buf_putc(line, '\n');
    for (; fields->key; fields++)
        if (fields->key[0] && fields->type == ML_FIELD_LINES)
            append_lines_below(line, fields->str);
    line->failed = line->failed || plain.failed;
    ml_buf_fini(&plain);
}

static void append_log_line(struct ml_buf *line, enum ml_log_format format,
                            const struct log_head *head, const struct ml_field *fields)
{
    if (format == ML_LOG_JSON)
        append_json_line(line, head, fields);
    else
        append_text_line(line, head, fields);
}

/* Never blocks, whatever the descriptor is, and without O_NONBLOCK, which others who share the
 * descriptor would see: a pipe that polls writable accepts PIPE_BUF bytes at once. */
static bool write_without_blocking(struct ml_log *log, struct ml_str text)
{
    bool begun = false;
    while (text.len > 0) {
        struct pollfd room = {.fd = log->fd, .events = POLLOUT};
        ssize_t written = -1;
        if (poll(&room, 1, 0) == 1 && (room.revents & POLLOUT))
            written = write(log->fd, text.ptr, ML_MIN(text.len, (size_t)PIPE_BUF));
        if (written <= 0) {
            log->torn = log->torn || begun;
            return false;
        }
        begun = true;
        text = (struct ml_str){text.ptr + written, text.len - (size_t)written};
    }
    return true;
}

/* The torn line stands alone; the next one begins on a new line. */
static bool end_torn_line(struct ml_log *log)
{
    if (log->torn && write_without_blocking(log, ML_STR("\n")))
        log->torn = false;
    return !log->torn;
}

static bool report_dropped_lines(struct ml_log *log, int64_t now)
{
    ML_AUTO(ml_buf_fini) struct ml_buf line = ML_BUF_INIT;
    const struct ml_field count[] = {ML_I("lines", log->dropped - log->reported), {.key = NULL}};
    const struct log_head head = {now, "warn", "log", "lines were lost: they could not be written"};
    uint64_t dropped = log->dropped;
    append_log_line(&line, log->format, &head, count);
    if (!write_without_blocking(log, ml_buf_str(&line)))
        return false;
    log->reported = dropped;
    return true;
}

void ml_log_write(struct ml_log *log, enum ml_log_level level, const char *logger,
                  const char *message, const struct ml_field *fields)
{
    if (!log || level < log->level)
        return;
    struct ml_buf line;
    ml_buf_init(&line, LOG_LINE_MAX);
    int64_t now = ml_clock_wall(log->clock);
    struct log_head head = {now, level_names[level], logger, message};
    append_log_line(&line, log->format, &head, fields);
    /* A line that is too long would be cut and no longer be JSON: say so instead. */
    if (line.failed) {
        ml_buf_clear(&line);
        struct ml_str about = ml_str_head(ml_str_of(message), LOG_MESSAGE_MAX);
        const struct ml_field note[] = {ML_STR_FIELD("about", about), {.key = NULL}};
        head.message = "log line too long";
        append_log_line(&line, log->format, &head, note);
    }
    if (!end_torn_line(log) || (log->dropped > log->reported && !report_dropped_lines(log, now)) ||
        !write_without_blocking(log, ml_buf_str(&line)))
        log->dropped++;
    ml_buf_fini(&line);
}

bool ml_log_level_parse(const char *name, enum ml_log_level *out)
{
    for (size_t i = 0; i < ML_COUNT(level_names); i++) {
        if (strcmp(name, level_names[i]) == 0) {
            *out = (enum ml_log_level)i;
            return true;
        }
    }
    return false;
}

bool ml_log_format_parse(const char *name, enum ml_log_format *out)
{
    if (strcmp(name, "json") == 0)
        *out = ML_LOG_JSON;
    else if (strcmp(name, "text") == 0)
        *out = ML_LOG_TEXT;
    else
        return false;
    return true;
}
