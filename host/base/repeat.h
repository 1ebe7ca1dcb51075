/* L0 base. Decides which repetitions of a failure are logged. A failure is logged when it begins.
 * After that it is logged when it has lasted for a second, and then each time that it has lasted
 * twice as long as at the line before: once per doubling of a growing pause. Another text is
 * another failure. */
#pragma once

#include "base/log.h"
#include "base/map.h"

/* One thing that may fail again and again. Zeros: it works. */
struct ml_repeat {
    uint64_t text; /* its hash */
    int64_t failures;
    int64_t since_ns, quiet_until_ns;
    bool is_reported; /* to others than the log: somebody must learn when it is over */
};

/* A failure with that text at `now_ns` of the monotonic clock. True: log it. */
ML_NODISCARD bool ml_repeat_failed(struct ml_repeat *self, struct ml_str text, int64_t now_ns);

/* Log fields: how often it failed, and in how many ns it is tried again (-1: not by itself). */
#define ML_REPEAT_FIELDS(repeat, retry_ns)                                                         \
    ML_I((repeat)->failures > 0 ? "failures" : "", (repeat)->failures),                            \
        ML_F((retry_ns) >= 0 ? "retry_seconds" : "", (double)(retry_ns) / (double)ML_NS_PER_S)

/* It works again: the next failure is a new one. */
void ml_repeat_over(struct ml_repeat *self);

/* Many of them, by key. Holds at most 10,000 of about 100 bytes each; when it is full, all are
 * forgotten and begin again. Zeros: none. */
struct ml_repeats {
    struct ml_map by_id;
};

/* The repeat of `key`, which is copied. The result is valid until the next call. */
struct ml_repeat *ml_repeats_get(struct ml_repeats *self, struct ml_str key);
/* It works again. Returns what it was: zeros, if it did not fail. */
struct ml_repeat ml_repeats_over(struct ml_repeats *self, struct ml_str key);
void ml_repeats_clear(struct ml_repeats *self); /* all of them; frees what it holds */
