/* L1 codec. Instants in the format of Kubernetes. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

/* Nanoseconds since 1970-01-01T00:00:00Z. Accepts RFC 3339: four-digit year, 'T' and 'Z' in
 * either case, an optional fraction (digits past the ninth are dropped), an offset. Refuses,
 * with `out` untouched: a day the month does not have, hour 24, second 60 other than a leap
 * second at 23:59:60 UTC (which counts as 23:59:59), an offset beyond 23:59, a space for 'T',
 * anything before or behind, and years that do not fit (1678-2261). */
ML_NODISCARD bool ml_rfc3339_parse(struct ml_str text, int64_t *out_wall_ns);

#define ML_RFC3339_LEN       20 /* 2006-01-02T15:04:05Z, metav1.Time */
#define ML_RFC3339_MICRO_LEN 27 /* 2006-01-02T15:04:05.000000Z, metav1.MicroTime */

/* Whole seconds, or microseconds, UTC, terminated. */
void ml_rfc3339_format(int64_t wall_ns, char out[ML_RFC3339_LEN + 1]);
void ml_rfc3339_format_micro(int64_t wall_ns, char out[ML_RFC3339_MICRO_LEN + 1]);
