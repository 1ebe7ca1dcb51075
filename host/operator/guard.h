/* L6 operator. The guard before a revision goes live: judges what its plan says (plan.h). A
 * revision that would do harm is held until somebody approves it; one that fails where the one that
 * works now does not, is refused. */
#pragma once

#include "operator/plan.h"

#define ML_APPROVE_ANNOTATION "moonloop.dev/approve"

#define ML_GUARD_DELETES_MAX  10 /* objects; fewer are never held */
#define ML_GUARD_DELETES_PART 20 /* one in so many of what its objects own: 5 % */
#define ML_GUARD_FAILS_OF     5  /* objects; with fewer, failures are not counted */
#define ML_GUARD_FAILS_PART   5  /* one in so many: 20 % */

#define ML_GUARD_OBJECTS_MAX 500 /* that are tried; of more, a sample */
#define ML_GUARD_READS_MAX   100 /* of the server, for what is not cached */

enum ml_guard_verdict { ML_GUARD_PASSES, ML_GUARD_HOLDS, ML_GUARD_REFUSES };

/* Of a plan that has ended, with a revision that works now. If it does not pass, `err` says why,
 * with numbers and the first object, and what to do. */
enum ml_guard_verdict ml_guard_judge(const struct ml_plan *plan, struct ml_err *err);
