/* L0 base. Which repetitions of a failure are logged. One that goes on is logged when it begins,
 * and from a second on whenever it has gone on for twice as long as at the line before: once per
 * doubling of a growing pause, and the more seldom the longer it lasts where the pause stays the
 * same. Another text is another failure. */
#pragma once

#include "base/log.h"
#include "base/map.h"

/* One thing that may fail again and again. Zeros: it works. */
struct ml_repeat {
    uint64_t text; /* its hash */
    int64_t failures;
    int64_t since_ns, quiet_until_ns;
};

/* It failed once more, with that text, at `now_ns` of the monotonic clock. True: to be logged. */
ML_NODISCARD bool ml_repeat_failed(struct ml_repeat *self, struct ml_str text, int64_t now_ns);

/* Log fields: how often it failed, and in how many ns it is tried again (-1: not by itself). */
#define ML_REPEAT_FIELDS(repeat, retry_ns)                                                         \
    ML_I((repeat)->failures > 0 ? "failures" : "", (repeat)->failures),                            \
        ML_F((retry_ns) >= 0 ? "retry_seconds" : "", (double)(retry_ns) / (double)ML_NS_PER_S)

/* It works again: the next failure is a new one. */
void ml_repeat_over(struct ml_repeat *self);

/* Many of them, by key. Holds at most 10,000 at about 100 bytes; when it is full, all are forgotten
 * and begin anew. Zeros: none. */
struct ml_repeats {
    struct ml_map by_id;
};

/* That of `key`, which is not kept. The result is valid until the next call. */
struct ml_repeat *ml_repeats_get(struct ml_repeats *self, struct ml_str key);
void ml_repeats_over(struct ml_repeats *self, struct ml_str key);
void ml_repeats_clear(struct ml_repeats *self); /* all of them; frees what it holds */
