/* The operator with a program and a bystander, before an embedded API server in the same process.
 *
 * Time is the operator's own: it passes as the operator uses CPU time (in a sanitizer build as much
 * slower as its limits are larger), and jumps to the next timer when there is nothing to do. The
 * CPU time of the server and of other processes does not count: only the operator can make
 * something late. */
#pragma once

#include "program.h"
#include "report.h"

/* The server with all that each program finds there. Once, before the first arena_run. */
void arena_build(const char *source_dir);

/* Runs one program to its end and fills `report`. The log goes to `log_fd`, a file. To be called
 * once in a process, after a fork. */
void arena_run(const struct program *program, int log_fd, struct report *report);
