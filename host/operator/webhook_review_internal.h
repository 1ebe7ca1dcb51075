/* L6 operator. Shared by webhook_review.c and webhook_conversion.c; private to these. */
#pragma once

#include "codec/json.h"
#include "operator/webhook_review.h"

#define SHOWN_MAX 100 /* bytes of the review in a message */

/* The review that is expected. */
struct review_form {
    const char *api_version, *kind;
};

struct ml_review {
    enum ml_webhook webhook;
    struct ml_script *script;
    const struct ml_declaration *declaration;
    const struct review_form *form;
    struct ml_str request; /* raw, as all that follow */
    struct ml_str uid;     /* with its quotes */

    int status; /* 0: not over */
    struct ml_err failure;
    struct ml_buf answer;
    struct ml_json_writer writer;

    /* Of a conversion. */
    char *wanted; /* apiVersion */
    struct ml_json_reader objects;
    bool is_reading; /* `objects` is to be ended */
    struct ml_buf work[2];
};

/* webhook_review.c */

/* The review cannot be read. */
void review_end_bad_request(struct ml_review *self, const struct ml_err *err);
/* Opens the response, with its uid; and closes it: the answer is complete. */
void review_begin_response(struct ml_review *self);
void review_end_response(struct ml_review *self);

/* webhook_conversion.c */

void review_begin_conversion(struct ml_review *self);
/* Converts the next object, or ends the answer. */
void review_step_conversion(struct ml_review *self);
