/* L0 base. Lines for a person at a terminal, beside the log. Whatever stands in one, it stays one
 * line: it is escaped as a whole (ml_escape_text), as an error's message, a file's name or anything
 * else in it may be foreign. */
#pragma once

#include "base/buf.h"

#include <stdio.h>

/* Each ends the line. */
void ml_print_line(FILE *to, const char *format, ...) ML_PRINTF(2, 3);
void ml_append_line(struct ml_buf *to, const char *format, ...) ML_PRINTF(2, 3);
