/* L0 base. Escaping, in one place: of JSON strings, for log lines and for the codec, and of foreign
 * text, for terminals and text logs. */
#pragma once

#include "base/buf.h"

#include <stdio.h>

/* Appends `text` as a quoted JSON string. Two groups of characters are written as \uXXXX: those
 * that server-side apply's YAML 1.1 reader refuses or changes when they are raw (DEL, C1 controls,
 * U+2028/9, U+FEFF, U+FFFE/F), and those that change the direction of text on a terminal (U+202A to
 * U+202E, U+2066 to U+2069). "/" is not escaped, and the rest stays raw UTF-8: every Kubernetes
 * decoder reads this form back unchanged. Bytes that are not UTF-8 become U+FFFD. False when the
 * buffer is full. */
bool ml_escape_json(struct ml_buf *buf, struct ml_str text);

/* Appends foreign text (of a script, an object, a server or a file) for a terminal or a text log.
 * The result cannot begin a line or control a terminal: control characters become \n, \r, \t or
 * \x1b, bytes that are not UTF-8 become \xNN; C1 controls, U+2028/9, U+FEFF and characters that
 * change the direction of text become \uXXXX. Everything else stays, backslashes too. False when
 * the buffer is full. */
bool ml_escape_text(struct ml_buf *buf, struct ml_str text);

/* One printable line of foreign text, for a message: trimmed, at most size - 1 bytes, cut at the
 * end of a character. Control characters become spaces; if a text is not UTF-8, all bytes beyond
 * ASCII become '?'. */
void ml_clean_line(struct ml_str text, char *out, size_t size);

/* A line for a person at a terminal, with its line end. The whole line is escaped (ml_escape_text):
 * an error's message, a file's name or anything else in it may be foreign. */
void ml_print_line(FILE *to, const char *format, ...) ML_PRINTF(2, 3);
void ml_append_line(struct ml_buf *to, const char *format, ...) ML_PRINTF(2, 3);
