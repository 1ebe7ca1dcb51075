/* The condition Reconciled (reconciled.h). Called by status.c, which merges it into the status that
 * a script returned, and by read_sets.c. */
#include "operator/reconciled.h"

#include "codec/json.h"
#include "operator/conditions.h"

#include <inttypes.h>
#include <stdio.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Does the condition have this text in the field? */
static bool field_is(struct ml_str condition, const char *field, struct ml_str text)
{
    ML_AUTO_FREE char *value = ml_json_find_string(condition, field, NULL);
    return value && ml_str_eq(ml_str_of(value), text);
}

static bool is_said_by(struct ml_str condition, const char *controller)
{
    ML_AUTO_FREE char *message = ml_json_find_string(condition, "message", NULL);
    size_t len = strlen(controller);
    return message && strncmp(message, controller, len) == 0 &&
           strncmp(message + len, ": ", 2) == 0;
}

static bool is_ours(struct ml_str condition, const char *controller, const char *const *formerly)
{
    for (; formerly && *formerly; formerly++)
        if (is_said_by(condition, *formerly))
            return true;
    return is_said_by(condition, controller);
}

static bool is_false(struct ml_str condition)
{
    return field_is(condition, "status", ML_STR("False"));
}

bool ml_reconciled_failed(struct ml_str conditions, const char *controller,
                          const char *const *formerly)
{
    struct ml_str condition = ml_conditions_find(conditions, ML_STR(ML_CONDITION_RECONCILED));
    return condition.len > 0 && is_false(condition) && is_ours(condition, controller, formerly);
}

/* How long the place of a message is: "cnat: cnat.lua:12: ", up to the second ": ". */
static size_t place_len(const char *message)
{
    const char *first = strstr(message, ": ");
    const char *second = first ? strstr(first + 2, ": ") : NULL;
    return second ? (size_t)(second - message) : strlen(message);
}

/* Do they differ only in numbers behind their place? A script that puts the time into its message
 * would otherwise write at each try. */
static bool is_same_failure(const char *a, const char *b)
{
    size_t place = place_len(a);
    if (strncmp(a, b, place) != 0)
        return false;
    a += place;
    b += place;
    while (*a && *b) {
        if (is_digit(*a) && is_digit(*b)) {
            a += strspn(a, "0123456789");
            b += strspn(b, "0123456789");
        } else if (*a++ != *b++) {
            return false;
        }
    }
    return *a == *b;
}

static bool is_said(struct ml_str condition, int64_t generation, const char *reason,
                    const char *message)
{
    ML_AUTO_FREE char *said = ml_json_find_string(condition, "message", NULL);
    struct ml_str observed;
    char wanted[24];
    snprintf(wanted, sizeof wanted, "%" PRId64, generation);
    return said && is_false(condition) && field_is(condition, "reason", ml_str_of(reason)) &&
           ml_json_find(condition, &observed, "observedGeneration", NULL) &&
           ml_str_is(observed, wanted) && is_same_failure(said, message);
}

static void write_condition(const char *status, const char *reason, const char *message,
                            struct ml_buf *out)
{
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, out);
    ml_json_begin_array(&writer);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "type", ML_STR(ML_CONDITION_RECONCILED));
    ml_json_put_string(&writer, "status", ml_str_of(status));
    ml_json_put_string(&writer, "reason", ml_str_of(reason));
    ml_json_put_string(&writer, "message", ml_str_of(message));
    ml_json_end_object(&writer);
    ml_json_end_array(&writer);
}

/* "CONTROLLER: MESSAGE" as it reads once it has been JSON: what is no UTF-8, such as a character
 * that was cut, is replaced there. */
static char *message_of(const struct ml_reconciled *reconciled)
{
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT, json = ML_BUF_INIT, out = ML_BUF_INIT;
    struct ml_json_writer writer;
    ml_buf_printf(&text, "%s: %s", reconciled->controller, reconciled->message);
    ml_json_writer_init(&writer, &json);
    ml_json_string(&writer, ml_buf_str(&text));
    ml_json_to_string(ml_buf_str(&json), &out);
    return ml_strdup(ml_buf_cstr(&out));
}

void ml_reconciled_condition(struct ml_str conditions, int64_t generation,
                             const struct ml_reconciled *reconciled, struct ml_buf *out)
{
    struct ml_str before = ml_conditions_find(conditions, ML_STR(ML_CONDITION_RECONCILED));
    bool failed = before.len > 0 && is_false(before);
    if (failed && !is_ours(before, reconciled->controller, reconciled->formerly))
        return;
    if (!reconciled->failure) {
        if (failed)
            write_condition("True", "Reconciled", "", out);
        return;
    }
    ML_AUTO_FREE char *message = message_of(reconciled);
    if (!is_said(before, generation, reconciled->failure, message))
        write_condition("False", reconciled->failure, message, out);
}
