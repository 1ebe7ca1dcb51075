/* L6 operator. Checks the names in the texts of a script before its version goes live
 * (script/analysis.h), with the schemas of the API server, in slices of a CPU account. */
#pragma once

#include "kube/openapi.h"
#include "operator/files.h"
#include "script/analysis.h"
#include "state/services.h"

struct ml_text_check;

/* Texts in which nothing was found, with a schema for each kind: they are not analyzed again. For a
 * process with many operators of short life, each with a server of its own (`moonloop test`). The
 * oldest are forgotten. */
#define ML_CHECKED_TEXTS_MAX 64

struct ml_checked_texts {
    uint64_t prints[ML_CHECKED_TEXTS_MAX]; /* ml_files_fingerprint; 0: none */
    size_t next;
};

/* `problem`: an error for the first problem that was found and how many there are more. The check
 * goes on, and calls again when the schemas have changed so that there is none. NULL: none was
 * found, or the texts could not be read; the struct is gone. */
typedef void ml_text_check_done(void *context, const struct ml_err *problem);

/* Checks the files that the script was loaded from, which are copied. `done` comes later from the
 * loop: as soon as a problem is found, else after ml_text_check_kinds_exist. */
struct ml_text_check *ml_text_check_new(struct ml_services *services,
                                        struct ml_cpu_account *account,
                                        const struct ml_files *files,
                                        const struct ml_script *script, ml_text_check_done *done,
                                        void *context);
/* The kinds that the script declares exist by now: those whose schema the server did not have are
 * asked for again. */
void ml_text_check_kinds_exist(struct ml_text_check *check);
void ml_text_check_cancel(struct ml_text_check *check); /* NULL is fine */
