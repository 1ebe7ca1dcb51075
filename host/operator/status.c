/* From the result of a reconcile to the patch of its object's status: the script's conditions are
 * merged by their type, then the host's condition Reconciled, and only the difference is sent. */
#include "operator/status.h"

#include "base/map.h"
#include "codec/json.h"
#include "codec/json_diff.h"
#include "codec/rfc3339.h"
#include "script/maxima.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- conditions ---- */

static bool json_string_is(struct ml_str object, const char *field, struct ml_str want)
{
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    struct ml_str raw;
    return ml_json_find(object, &raw, field, NULL) && ml_json_to_string(raw, &text) &&
           ml_str_eq(ml_buf_str(&text), want);
}

struct ml_str ml_conditions_find(struct ml_str array, struct ml_str type)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, array, 0);
    if (array.len > 0 && ml_json_next(&reader) == ML_JSON_ARRAY)
        for (struct ml_str raw; (raw = ml_json_skip(&reader)).len;)
            if (json_string_is(raw, "type", type))
                return raw;
    return (struct ml_str){NULL, 0};
}

static bool json_has(struct ml_str object, const char *field)
{
    struct ml_str raw;
    return ml_json_find(object, &raw, field, NULL);
}

/* The time at which `status` became what `wanted` says. */
static void write_transition(struct ml_json_writer *writer, struct ml_str before,
                             struct ml_str wanted, int64_t now_ns)
{
    struct ml_str old_status, new_status, since;
    bool same = ml_json_find(before, &old_status, "status", NULL) &&
                ml_json_find(wanted, &new_status, "status", NULL) &&
                ml_str_eq(old_status, new_status) &&
                ml_json_find(before, &since, "lastTransitionTime", NULL);
    if (same) {
        ml_json_put_raw(writer, "lastTransitionTime", since);
        return;
    }
    char now[ML_RFC3339_LEN + 1];
    ml_rfc3339_format(now_ns, now);
    ml_json_put_string(writer, "lastTransitionTime", ml_str_of(now));
}

static bool is_removal(struct ml_str wanted)
{
    struct ml_str status;
    return ml_json_find(wanted, &status, "status", NULL) && ml_str_is(status, "null");
}

static int write_wanted_condition(struct ml_json_writer *writer, struct ml_str before,
                                  struct ml_str wanted, int64_t generation, int64_t now_ns,
                                  struct ml_err *err)
{
    ML_AUTO_FREE char *type = ml_json_find_string(wanted, "type", NULL);
    if (!type || !json_has(wanted, "status"))
        return ml_err_set(err, ML_EINVALID, "status.conditions: each needs type and status");
    if (is_removal(wanted))
        return 0;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, wanted, 0);
    ml_json_next(&reader);
    ml_json_begin_object(writer);
    while (ml_json_next(&reader) == ML_JSON_KEY) {
        ml_json_key(writer, reader.text);
        ml_json_raw(writer, ml_json_skip(&reader));
    }
    if (!json_has(wanted, "reason"))
        ml_json_put_string(writer, "reason", ml_str_of(type));
    if (!json_has(wanted, "message"))
        ml_json_put_string(writer, "message", ML_STR(""));
    if (!json_has(wanted, "observedGeneration"))
        ml_json_put_int(writer, "observedGeneration", generation);
    if (!json_has(wanted, "lastTransitionTime"))
        write_transition(writer, before, wanted, now_ns);
    ml_json_end_object(writer);
    return 0;
}

/* A list, read once, and the first of each type. */
struct condition {
    char *type; /* NULL: it has none */
    struct ml_str raw;
};

struct conditions {
    struct condition *items;
    size_t len, capacity;
    struct ml_map by_type; /* place + 1 */
};

static void conditions_fini(struct conditions *self)
{
    for (size_t i = 0; i < self->len; i++)
        free(self->items[i].type);
    free(self->items);
    ml_map_fini(&self->by_type);
}

static void conditions_add(struct conditions *self, struct ml_str raw)
{
    if (self->len == self->capacity) {
        self->capacity = self->capacity ? self->capacity * 2 : 8;
        self->items = ml_realloc(self->items, self->capacity * sizeof(self->items[0]));
    }
    char *type = ml_json_find_string(raw, "type", NULL);
    self->items[self->len++] = (struct condition){type, raw};
    if (type && !ml_map_get(&self->by_type, ml_str_of(type)))
        ml_map_put(&self->by_type, ml_str_of(type), (void *)(uintptr_t)self->len);
}

static void conditions_read(struct conditions *self, struct ml_str array)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, array, 0);
    if (array.len > 0 && ml_json_next(&reader) == ML_JSON_ARRAY)
        for (struct ml_str raw; (raw = ml_json_skip(&reader)).len;)
            conditions_add(self, raw);
}

/* The first of this type, or NULL. */
static const struct condition *conditions_get(const struct conditions *self, const char *type)
{
    uintptr_t place = type ? (uintptr_t)ml_map_get(&self->by_type, ml_str_of(type)) : 0;
    return place ? &self->items[place - 1] : NULL;
}

int ml_conditions_merge(struct ml_str current, struct ml_str wanted, int64_t generation,
                        int64_t now_ns, struct ml_buf *out, struct ml_err *err)
{
    ML_AUTO(conditions_fini) struct conditions old = {.len = 0}, new = {.len = 0};
    const struct ml_str none = {NULL, 0};
    struct ml_json_writer writer;
    int r = 0;
    conditions_read(&old, current);
    conditions_read(&new, wanted);
    if (new.len > SCRIPT_CONDITIONS_MAX)
        return ml_err_set(err, ML_EINVALID, "status.conditions: %zu conditions; at most %d",
                          new.len, SCRIPT_CONDITIONS_MAX);
    ml_json_writer_init(&writer, out);
    ml_json_begin_array(&writer);
    for (size_t i = 0; i < old.len && r == 0; i++) {
        const struct condition *newer = conditions_get(&new, old.items[i].type);
        if (newer)
            r = write_wanted_condition(&writer, old.items[i].raw, newer->raw, generation, now_ns,
                                       err);
        else
            ml_json_raw(&writer, old.items[i].raw);
    }
    for (size_t i = 0; i < new.len &&r == 0; i++)
        if (!conditions_get(&old, new.items[i].type))
            r = write_wanted_condition(&writer, none, new.items[i].raw, generation, now_ns, err);
    ml_json_end_array(&writer);
    return r;
}

/* ---- the condition Reconciled ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
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
    return json_string_is(condition, "status", ML_STR("False"));
}

bool ml_reconciled_failed(struct ml_str conditions, const char *controller,
                          const char *const *formerly)
{
    struct ml_str condition = ml_conditions_find(conditions, ML_STR(ML_CONDITION_RECONCILED));
    return condition.len > 0 && is_false(condition) && is_ours(condition, controller, formerly);
}

bool ml_object_says_failed(const struct ml_object *object, const char *controller,
                           const char *const *formerly)
{
    ML_AUTO(ml_buf_fini) struct ml_buf json = ML_BUF_INIT;
    struct ml_str conditions = {NULL, 0};
    ml_object_json(object, &json);
    ml_json_find(ml_buf_str(&json), &conditions, "status", "conditions", NULL);
    return ml_reconciled_failed(conditions, controller, formerly);
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
    return said && is_false(condition) && json_string_is(condition, "reason", ml_str_of(reason)) &&
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

/* Appends the condition that is to be merged into `conditions` (status.conditions, or empty): an
 * array of one, or nothing when nothing has to be said. A failure is said once: the same one, with
 * other numbers in its message, is not said again while the object has this `generation` (the
 * number of the line counts). */
static void reconciled_condition(struct ml_str conditions, int64_t generation,
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

/* ---- the patch ---- */

/* Both lists, the script's first. Appends nothing when neither has anything to say. */
static int wanted_conditions(struct ml_str current, struct ml_str from_script, int64_t generation,
                             const struct ml_reconciled *reconciled, int64_t now_ns,
                             struct ml_buf *out, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf host = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf scripted = ML_BUF_INIT;
    if (reconciled)
        reconciled_condition(current, generation, reconciled, &host);
    if (!host.len && !from_script.len)
        return 0;
    int r = ml_conditions_merge(current, from_script, generation, now_ns, &scripted, err);
    if (r == 0)
        r = ml_conditions_merge(ml_buf_str(&scripted), ml_buf_str(&host), generation, now_ns, out,
                                err);
    return r;
}

/* The script's status with the finished list of conditions in it; without a list when all that
 * was wanted is that there are none. */
static int wanted_status(struct ml_str current, struct ml_str status, int64_t generation,
                         const struct ml_reconciled *reconciled, int64_t now_ns, struct ml_buf *out,
                         struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf conditions = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf patch = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf merged = ML_BUF_INIT;
    struct ml_str before = {NULL, 0}, from_script = {NULL, 0};
    ml_json_find(current, &before, "conditions", NULL);
    ml_json_find(status, &from_script, "conditions", NULL);
    int r = wanted_conditions(before, from_script, generation, reconciled, now_ns, &conditions,
                              err);
    if (r == 0)
        r = ml_json_merge(current, status.len ? status : ML_STR("{}"), &merged, err);
    if (r < 0 || !conditions.len) {
        ml_buf_append_str(out, ml_buf_str(&merged));
        return r;
    }
    struct ml_str list = ml_buf_str(&conditions);
    if (!before.len && ml_str_is(list, "[]"))
        list = ML_STR("null");
    ml_buf_printf(&patch, "{\"conditions\":" ML_STR_FMT "}", ML_STR_ARG(list));
    return ml_json_merge(ml_buf_str(&merged), ml_buf_str(&patch), out, err);
}

static void write_guarded_patch(const struct ml_object *object, struct ml_str version,
                                struct ml_str status, struct ml_buf *out)
{
    struct ml_json_writer writer;
    ml_patch_begin(&writer, out, ml_object_uid(object), version);
    ml_json_end_object(&writer);
    ml_json_put_raw(&writer, "status", status);
    ml_json_end_object(&writer);
}

int ml_status_patch(struct ml_object *object, struct ml_str status,
                    const struct ml_reconciled *reconciled, int64_t now_ns,
                    struct ml_buf *out_patch, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf json = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf wanted = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf difference = ML_BUF_INIT;
    struct ml_str current = ML_STR("{}");
    ml_object_json(object, &json);
    ml_json_find(ml_buf_str(&json), &current, "status", NULL);
    if (!current.len || current.ptr[0] != '{')
        current = ML_STR("{}"); /* as the server has it for a merge patch: RFC 7396 */
    int r = wanted_status(current, status, ml_object_generation(object), reconciled, now_ns,
                          &wanted, err);
    if (r == 0)
        r = ml_json_merge_diff(current, ml_buf_str(&wanted), &difference, err);
    if (r < 0) {
        err->kind = ML_ESCRIPT;
        return ML_ESCRIPT;
    }
    if (!ml_str_is(ml_buf_str(&difference), "{}"))
        write_guarded_patch(object, ml_object_rv(object), ml_buf_str(&difference), out_patch);
    return 0;
}

struct ml_str ml_status_patch_renew(const struct ml_object *object, const char *version,
                                    struct ml_str patch, struct ml_buf *out)
{
    struct ml_str status = ML_STR("{}");
    ml_json_find(patch, &status, "status", NULL);
    write_guarded_patch(object, ml_str_of(version), status, out);
    return ml_buf_str(out);
}
