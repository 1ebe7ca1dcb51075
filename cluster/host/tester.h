/* cluster. Runs the tests of scripts (operator/own_tests.h) on test worlds, in processes of their
 * own: a test is no part of the sandbox, may take long, and may end its process. So a helper is
 * forked before the host gives up its rights, and starts a process for each run, which
 *
 *   - has the files of the run in a folder of its own, removed with it, and ends with the host
 *   - may use ML_TESTS_CPU_S of CPU time, and may last half a minute
 *   - starts no program, has no network where the kernel has user namespaces, reads the scripts'
 *     folder and the system's, and writes its own folder alone (operator/lockdown.h). */
#pragma once

#include "operator/own_tests.h"

/* Forks the helper: to be called before there are threads, secrets or descriptors that it must not
 * have. NULL: it cannot be forked; `err` says why. */
struct ml_tester *ml_tester_new(struct ml_err *err);
/* Returns when the helper has ended, and all that it started. No run may be left. NULL is fine. */
void ml_tester_free(struct ml_tester *tester);
