/* L6 operator. Answers one review of an API server by the functions of one version of a script:
 * AdmissionReview of admission.k8s.io/v1 for default and validate, ConversionReview of
 * apiextensions.k8s.io/v1 for convert. No input or output: webhook_server.c has both, and a test
 * world calls it directly.
 *
 * A review that cannot be read, and a script that fails, have an HTTP status that is no success:
 * the API server then does what failurePolicy says. A conversion that fails says so in its answer.
 */
#pragma once

#include "script/script.h"

#define ML_REVIEW_ANSWER_MAX ((size_t)16 * 1024 * 1024) /* bytes */

enum ml_webhook { ML_WEBHOOK_DEFAULT, ML_WEBHOOK_VALIDATE, ML_WEBHOOK_CONVERT };

/* "default", "validate", "convert" */
const char *ml_webhook_name(enum ml_webhook webhook);
/* The path is "/default/NAME", "/validate/NAME" or "/convert/NAME" of a controller. */
ML_NODISCARD bool ml_webhook_parse(struct ml_str path, enum ml_webhook *out_webhook,
                                   struct ml_str *out_name);

/* The version that answers. All borrowed. */
struct ml_webhook_target {
    struct ml_script *script;
    const struct ml_kind *kind; /* that it reconciles; NULL: it has not been looked up yet */
    struct ml_cpu_account *cpu_account; /* of its code; NULL: nobody pays */
};

struct ml_review;

struct ml_review_answer {
    int status;               /* HTTP */
    const char *content_type; /* JSON, or text that says what is wrong */
    struct ml_str body;
    const struct ml_err *failure; /* of the script, for the log; NULL: none */
};

/* Reads the head of the review. `script` gets a reference, `body` is borrowed. */
struct ml_review *ml_review_new(enum ml_webhook webhook, struct ml_script *script,
                                struct ml_str body);
void ml_review_free(struct ml_review *review); /* NULL is fine */

/* Runs one piece of code of the script: of a conversion, for one object. True when the answer is
 * complete; `out` lives as long as the review. */
bool ml_review_step(struct ml_review *review, struct ml_review_answer *out);
