/* cluster. The last steps of a started process before it is another program, and what is said when
 * they fail. */
#pragma once

#include "cluster/process_internal.h"
#include "cluster/process_request.h"

/* Makes the report one of a failure, with this message. */
void process_report_failure(struct process_report *report, const char *format, ...) ML_PRINTF(2, 3);
/* errno in words, as Go writes them: "no such file or directory". Valid until the next call. */
const char *process_errno_text(void);

/* Becomes the leader of a session with this input and output, and executes the command. If that
 * fails, a report of it goes to `failed`, which a successful exec closes. */
ML_NORETURN void process_exec(const struct process_request *request,
                              const struct process_stdio *stdio, int failed);
