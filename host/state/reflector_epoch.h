/* L4 state. What it means that a consistent list is older than what is known. A server that is
 * behind shows it for a while, and waiting mends it: what it shows must not be applied, scripts
 * would see the past. One that was restored from a backup shows it for good, and goes on from
 * there: a new epoch, in which versions begin lower. */
#pragma once

#include "base/clock.h"
#include "base/str.h"

struct reflector_epoch {
    char *shown;      /* the first older version that was shown; NULL: none */
    int64_t since_ns; /* when, monotonic */
};

enum reflector_age {
    AGE_CURRENT,
    AGE_BEHIND,   /* not to be applied */
    AGE_RESTORED, /* to be applied: a new epoch begins */
};

/* `known` is the version up to which everything was told, or NULL; `shown` that of a complete
 * list. RESTORED: the server has been older for 30 s and moves on from there, or for 10 minutes
 * and stands still. */
enum reflector_age reflector_epoch_judge(struct reflector_epoch *epoch, const char *known,
                                         const char *shown, int64_t now_ns);
void reflector_epoch_fini(struct reflector_epoch *epoch);
