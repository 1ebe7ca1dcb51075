/* L6 operator. The guard judges what a revision would do and does. Before it goes live, by its plan
 * (plan.h): a revision that would do harm, or in the mode `plan` anything, is held until somebody
 * approves it; one that fails where the one that works now does not, is refused. After that the
 * brake, by what its runs do, until it has settled. */
#pragma once

#include "operator/plan.h"

#define ML_APPROVE_ANNOTATION "moonloop.dev/approve"
#define ML_ROLLOUT_ANNOTATION "moonloop.dev/rollout"

#define ML_GUARD_FAILS_OF  5   /* objects; with fewer, failures are not counted */
#define ML_GUARD_READS_MAX 100 /* of the server, for what is not cached */

#define ML_GUARD_SAMPLE_MAX 10000

/* How new versions take over in this process, where neither controller nor source says it. */
struct ml_guard_opts {
    struct ml_rollout rollout; /* ML_ROLLOUT_UNSET: at once, whatever they say (moonloop dev) */
    int sample;                /* objects that are tried when there are more */
};

#define ML_GUARD_OPTS_DEFAULT                                                                      \
    {                                                                                              \
        .rollout = {ML_ROLLOUT_GUARDED, 10, 5, 20, 10}, .sample = 500                              \
    }

/* How the version after one of this declaration (NULL: it says nothing) takes over: as each field
 * of that says, else the mode of the source, else the process. */
struct ml_rollout ml_guard_rollout(const struct ml_declaration *runs, enum ml_rollout_mode source,
                                   const struct ml_guard_opts *opts);

enum ml_guard_verdict { ML_GUARD_PASSES, ML_GUARD_HOLDS, ML_GUARD_REFUSES };

/* Of a plan that has ended, with a revision that works now. If it does not pass, `err` says why,
 * with numbers and the first object, and what to do. `limits`: of ml_guard_rollout. */
enum ml_guard_verdict ml_guard_judge(const struct ml_plan *plan, const struct ml_rollout *limits,
                                     struct ml_err *err);

/* ---- the brake ---- */

/* A revision on trial. Zeros: none. */
struct ml_brake {
    const struct ml_declaration *declaration; /* its */
    struct ml_rollout limits;
    size_t objects, owned; /* of its kind; and in the caches, by these */
    /* Counted by the caller. `tried`: the objects that it works for by now. */
    size_t tried, runs, deletes, fails;
    size_t runs_before, deletes_before; /* of the revision before, as long as it was live */
};

/* For a revision whose plan has ended. */
struct ml_brake ml_brake_of(const struct ml_plan *plan, const struct ml_rollout *limits);
/* May it delete one more object? If not, `err` says why, and what to do; likewise below. One that
 * works for a part of the objects is judged as if it did the same for all. As many deletes as the
 * revision before made in so many runs do not count. */
ML_NODISCARD bool ml_brake_lets_delete(const struct ml_brake *brake, struct ml_err *err);
/* May it go on, with so many failures? In the mode `canary` none is allowed. `key` fails, as
 * `why` says. */
ML_NODISCARD bool ml_brake_lets_fail(const struct ml_brake *brake, struct ml_str key,
                                     const char *why, struct ml_err *err);
/* It stops for another reason. */
void ml_brake_stop(const struct ml_brake *brake, const char *why, struct ml_err *err);
