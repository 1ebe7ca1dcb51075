/* L0 base. Structured log lines: a constant message and key/value fields, as JSON (level, ts,
 * logger, msg, then the fields) or as text for a terminal. A line stays one line with any strings
 * in it: JSON, or text without control characters (base/escape.h). The only exception is an
 * ML_LINES field in text: its lines follow below, each escaped, and indented by two spaces, so that
 * none of them looks like a log line. The first 1024 bytes of a message are shown, 128 of the
 * logger and of each key; a line over 16 KiB says only that it was too long. A line that cannot be
 * written now, because nobody reads the pipe or the disk is full, is dropped: logging never blocks
 * or fails the work that it reports. A later line says how many were dropped, as soon as lines can
 * be written again. */
#pragma once

#include "base/clock.h"
#include "base/err.h"

enum ml_log_level { ML_LOG_DEBUG, ML_LOG_INFO, ML_LOG_WARN, ML_LOG_ERROR };
enum ml_log_format { ML_LOG_JSON, ML_LOG_TEXT };

/* A field: ML_S("namespace", ns), ML_STR_FIELD("name", slice), ML_I("attempt", 3),
 * ML_F("seconds", 0.2), ML_RAW("fields", slice of JSON), ML_LINES("traceback", text), ML_ERR(&err).
 */
struct ml_field {
    const char *key; /* "": the field is left out; NULL ends a list */
    enum { ML_FIELD_STR, ML_FIELD_INT, ML_FIELD_REAL, ML_FIELD_RAW, ML_FIELD_LINES } type;
    struct ml_str str;
    int64_t integer;
    double real;
};

#define ML_S(k, text)      ML_STR_FIELD(k, ml_str_of(text))
#define ML_STR_FIELD(k, s) ((struct ml_field){.key = (k), .type = ML_FIELD_STR, .str = (s)})
#define ML_I(k, value)     ((struct ml_field){.key = (k), .type = ML_FIELD_INT, .integer = (value)})
#define ML_F(k, value)     ((struct ml_field){.key = (k), .type = ML_FIELD_REAL, .real = (value)})
#define ML_RAW(k, json)    ((struct ml_field){.key = (k), .type = ML_FIELD_RAW, .str = (json)})
#define ML_LINES(k, text)                                                                          \
    ((struct ml_field){.key = (k), .type = ML_FIELD_LINES, .str = ml_str_of(text)})
/* As JSON it may be six times as long, and the whole line has 16 KiB. */
#define ML_ERROR_SHOWN_MAX  2048
#define ML_ERROR_TEXT(text) ML_STR_FIELD("error", ml_str_head(ml_str_of(text), ML_ERROR_SHOWN_MAX))
#define ML_ERR(err)         ML_ERROR_TEXT((err)->message)
/* The error with its kind. */
#define ML_ERR_FIELDS(err) ML_ERR(err), ML_S("errorKind", ml_err_name((err)->kind))

struct ml_log {
    struct ml_clock *clock;
    int fd;
    enum ml_log_level level; /* lines below it are not written */
    enum ml_log_format format;
    uint64_t dropped;  /* lines that could not be written */
    uint64_t reported; /* of those, already reported in a later line */
    bool torn;         /* only the beginning of the last line was written */
};

/* `fd` is borrowed. A NULL log drops everything. */
void ml_log_init(struct ml_log *log, struct ml_clock *clock, int fd, enum ml_log_format format,
                 enum ml_log_level level);

/* `logger` names the part of the host that logs ("informer"); `fields` ends with a NULL key. */
void ml_log_write(struct ml_log *log, enum ml_log_level level, const char *logger,
                  const char *message, const struct ml_field *fields);

/* The first element only lets the comma stand when there are no fields. */
#define ml_log(log, level, logger, message, ...)                                                   \
    ml_log_write((log), (level), (logger), (message),                                              \
                 (const struct ml_field[]){{.key = ""}, ##__VA_ARGS__, {.key = NULL}} + 1)
#define ml_debug(log, logger, message, ...)                                                        \
    ml_log(log, ML_LOG_DEBUG, logger, message, ##__VA_ARGS__)
#define ml_info(log, logger, message, ...) ml_log(log, ML_LOG_INFO, logger, message, ##__VA_ARGS__)
#define ml_warn(log, logger, message, ...) ml_log(log, ML_LOG_WARN, logger, message, ##__VA_ARGS__)
#define ml_error(log, logger, message, ...)                                                        \
    ml_log(log, ML_LOG_ERROR, logger, message, ##__VA_ARGS__)

/* "debug", "info", "warn", "error" / "json", "text". False when `name` is none of them. */
ML_NODISCARD bool ml_log_level_parse(const char *name, enum ml_log_level *out);
ML_NODISCARD bool ml_log_format_parse(const char *name, enum ml_log_format *out);
