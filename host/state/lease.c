/* Leases (coordination.k8s.io/v1): their times, their text, and the attempts to hold one,
 * for the election (election.c) and for the members of a shard group (shard.c). */
#include "state/lease.h"

#include "codec/json.h"
#include "codec/rfc3339.h"
#include "state/watch_event.h"

/* A server that starts may forbid what it will allow, so the watch is not given up for good. */
#define WATCH_FORBIDDEN_NS (60 * ML_NS_PER_S)
#define DURATION_S_MAX     INT64_C(2147483647) /* the field is an int32 */
#define TIMEOUT_NS_MIN     ML_NS_PER_S
#define LINE_MAX_BYTES     ((size_t)256 * 1024)

int ml_lease_times_check(const struct ml_lease_times *times, struct ml_err *err)
{
    if (times->lease_ns < ML_NS_PER_S || times->lease_ns % ML_NS_PER_S != 0)
        return ml_err_set(err, ML_EINVALID,
                          "--leader-election-lease-duration: expected whole seconds, at least 1");
    if (times->renew_ns <= 0 || times->retry_ns <= 0)
        return ml_err_set(err, ML_EINVALID,
                          "--leader-election-renew-deadline and --leader-election-retry-period: "
                          "expected more than 0");
    if (times->lease_ns <= times->renew_ns)
        return ml_err_set(err, ML_EINVALID,
                          "--leader-election-lease-duration must be longer than "
                          "--leader-election-renew-deadline");
    if ((double)times->renew_ns <= LEASE_RETRY_JITTER * (double)times->retry_ns)
        return ml_err_set(err, ML_EINVALID,
                          "--leader-election-renew-deadline must be longer than 1.2 times "
                          "--leader-election-retry-period");
    return 0;
}

/* ---- the text of a Lease ---- */

char *lease_text_of(struct ml_str object, const char *under, const char *field)
{
    char *text = ml_json_find_string(object, under, field, NULL);
    return text ? text : ml_strdup("");
}

static int64_t lease_number_of(struct ml_str object, const char *field)
{
    struct ml_str raw;
    int64_t value;
    if (!ml_json_find(object, &raw, "spec", field, NULL) || !ml_str_to_i64(raw, &value) ||
        value < 0 || value > DURATION_S_MAX)
        return 0;
    return value;
}

int lease_record_read(struct lease_record *record, struct ml_str object, struct ml_err *err)
{
    struct ml_str metadata, spec;
    int r = ml_json_check(object, 0, err);
    if (r < 0)
        return ml_err_wrap(err, "the Lease cannot be read");
    if (!ml_json_find(object, &metadata, "metadata", NULL) || *metadata.ptr != '{')
        return ml_err_set(err, ML_EINVALID, "the Lease cannot be read: it has no metadata");
    if (!ml_json_find(object, &spec, "spec", NULL))
        spec = ML_STR("");
    lease_record_fini(record);
    *record = (struct lease_record){
        .metadata = ml_str_dup(metadata),
        .spec = ml_str_dup(spec),
        .holder = lease_text_of(object, "spec", "holderIdentity"),
        .acquired = lease_text_of(object, "spec", "acquireTime"),
        .duration_ns = lease_number_of(object, "leaseDurationSeconds") * ML_NS_PER_S,
        .transitions = lease_number_of(object, "leaseTransitions"),
    };
    return 0;
}

void lease_record_fini(struct lease_record *record)
{
    free(record->metadata);
    free(record->spec);
    free(record->holder);
    free(record->acquired);
    *record = (struct lease_record){0};
}

char *lease_claim_json(const struct lease_claim *claim, struct ml_str metadata)
{
    struct ml_buf json = ML_BUF_INIT;
    struct ml_json_writer writer;
    char renewed[ML_RFC3339_MICRO_LEN + 1];
    ml_rfc3339_format_micro(claim->renewed_ns, renewed);
    ml_json_writer_init(&writer, &json);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "apiVersion", ML_STR("coordination.k8s.io/v1"));
    ml_json_put_string(&writer, "kind", ML_STR("Lease"));
    ml_json_put_raw(&writer, "metadata", metadata);
    ml_json_key(&writer, ML_STR("spec"));
    ml_json_begin_object(&writer);
    if (*claim->holder)
        ml_json_put_string(&writer, "holderIdentity", ml_str_of(claim->holder));
    ml_json_put_int(&writer, "leaseDurationSeconds", claim->duration_s);
    ml_json_put_string(&writer, "acquireTime",
                       ml_str_of(*claim->acquired ? claim->acquired : renewed));
    ml_json_put_string(&writer, "renewTime", ml_str_of(renewed));
    ml_json_put_int(&writer, "leaseTransitions", claim->transitions);
    ml_json_end_object(&writer);
    ml_json_end_object(&writer);
    return ml_buf_take(&json);
}

/* ---- the watch ---- */

static int lease_watch_accept_line(struct lease_hold *hold, struct ml_str line, struct ml_err *err)
{
    struct watch_event event;
    int r = watch_event_parse(line, &event, err);
    if (r < 0)
        return r;
    if (event.type == WATCH_ERROR)
        return ml_err_set(err, ML_EGONE, "the watch was ended by the server");
    if (event.type == WATCH_ADDED || event.type == WATCH_MODIFIED)
        hold->handler->watched(hold->context, event.object);
    else if (event.type == WATCH_DELETED)
        hold->handler->watched(hold->context, ML_STR(""));
    return 0;
}

static int lease_watch_on_data(void *context, struct ml_str piece, struct ml_err *err)
{
    struct lease_hold *hold = context;
    struct ml_str line;
    int r;
    while ((r = ml_json_lines_next(&hold->lines, &piece, &line, err)) > 0)
        if ((r = lease_watch_accept_line(hold, line, err)) < 0)
            break;
    return r;
}

static void lease_watch_on_done(void *context, const struct ml_err *err)
{
    struct lease_hold *hold = context;
    hold->watch = NULL;
    if (err && err->kind == ML_EFORBIDDEN)
        hold->watch_again_ns = lease_hold_now(hold) + WATCH_FORBIDDEN_NS;
}

static char *lease_watch_path(const char *ns, const char *parameter, const char *selector)
{
    struct ml_buf path = ML_BUF_INIT;
    ml_kind_path(&ml_kind_lease, ml_str_of(ns), ML_STR(""), ML_STR(""), &path);
    ml_url_query(&path, parameter, ml_str_of(selector));
    ml_url_query(&path, "watch", ML_STR("1"));
    ml_url_query(&path, "timeoutSeconds", ML_STR("20"));
    return ml_buf_take(&path);
}

void lease_hold_watch(struct lease_hold *hold)
{
    static const struct ml_client_stream handler = {.data = lease_watch_on_data,
                                                    .done = lease_watch_on_done};
    static const struct ml_http_deadlines deadlines = {
        .connect_ms = 10000,
        .first_byte_ms = 10000,
        .total_ms = 25000, /* the server ends it after 20 s, or the connection is dead */
    };
    if (hold->watch || lease_hold_now(hold) < hold->watch_again_ns)
        return;
    ml_json_lines_fini(&hold->lines);
    ml_json_lines_init(&hold->lines, LINE_MAX_BYTES);
    hold->watch = ml_client_stream(hold->opts.client, hold->watch_path, &deadlines, &handler, hold);
}

void lease_hold_end_watch(struct lease_hold *hold)
{
    if (hold->watch)
        ml_client_cancel(ml_take(&hold->watch));
}

/* ---- attempts ---- */

int64_t lease_timeout_ns(const struct ml_lease_times *times)
{
    return ML_MAX(TIMEOUT_NS_MIN, times->renew_ns / 2);
}

static void lease_hold_on_stuck(void *context)
{
    struct lease_hold *hold = context;
    struct ml_err err;
    ml_err_set(&err, ML_ETIMEOUT, "no answer about %s %s/%s within %g s", hold->handler->subject,
               hold->opts.ns, hold->opts.name,
               (double)lease_timeout_ns(&hold->opts.times) / (double)ML_NS_PER_S);
    if (hold->call)
        ml_client_cancel(ml_take(&hold->call));
    hold->handler->stuck(hold->context, &err);
}

static void lease_hold_on_answer(void *context, struct ml_str body, const struct ml_err *err)
{
    struct lease_hold *hold = context;
    hold->call = NULL;
    hold->done(hold->context, body, err);
}

void lease_hold_send(struct lease_hold *hold, struct ml_client_request *request,
                     ml_client_done *done)
{
    int64_t timeout_ns = lease_timeout_ns(&hold->opts.times);
    request->timeout_ms = timeout_ns / ML_NS_PER_MS;
    ml_timer_stop(&hold->next);
    ml_timer_start(&hold->stuck, timeout_ns + timeout_ns / 8);
    hold->done = done;
    hold->call = ml_client_send(hold->opts.client, request, lease_hold_on_answer, hold);
}

void lease_hold_warn(struct lease_hold *hold, const char *message, const struct ml_err *err)
{
    if (ml_repeat_failed(&hold->repeat, ml_str_of(err->message), lease_hold_now(hold)))
        ml_warn(hold->opts.log, hold->handler->logger, message, ML_ERR(err),
                ML_S("errorKind", ml_err_name(err->kind)),
                ML_REPEAT_FIELDS(&hold->repeat, hold->opts.times.retry_ns));
}

void lease_hold_succeeded(struct lease_hold *hold)
{
    hold->trouble = ML_ERR_INIT;
    ml_repeat_over(&hold->repeat);
}

int64_t lease_hold_granted_until(const struct lease_hold *hold)
{
    return hold->sent_ns + hold->opts.times.renew_ns;
}

void lease_hold_renew(struct lease_hold *hold)
{
    hold->until_ns = lease_hold_granted_until(hold);
    ml_timer_start(&hold->deadline, hold->until_ns - lease_hold_now(hold));
}

void lease_hold_expired(const struct lease_hold *hold, struct ml_err *out)
{
    *out = hold->trouble;
    if (!out->kind)
        ml_err_set(out, ML_ETIMEOUT, "no answer yet");
    ml_err_wrap(out, "not renewed for %g s",
                (double)hold->opts.times.renew_ns / (double)ML_NS_PER_S);
}

/* ---- the end ---- */

void lease_hold_stop(struct lease_hold *hold)
{
    if (hold->call)
        ml_client_cancel(ml_take(&hold->call));
    ml_timer_stop(&hold->stuck);
    ml_timer_stop(&hold->next);
    ml_timer_stop(&hold->deadline);
    lease_hold_end_watch(hold);
}

static void lease_hold_on_released(void *context)
{
    struct lease_hold *hold = context;
    lease_hold_stop(hold);
    ml_timer_stop(&hold->patience);
    ml_task_cancel(&hold->released_task);
    void (*released)(void *context) = ml_take(&hold->released);
    if (released)
        released(hold->released_context);
}

void lease_hold_release(struct lease_hold *hold, int64_t patience_ns, void (*done)(void *context),
                        void *context)
{
    lease_hold_stop(hold);
    hold->released = done;
    hold->released_context = context;
    ml_timer_start(&hold->patience, patience_ns);
}

void lease_hold_released(struct lease_hold *hold)
{
    ml_task_defer(&hold->released_task, hold->opts.loop);
}

/* ---- life ---- */

void lease_hold_init(struct lease_hold *hold, const struct ml_lease_opts *opts,
                     const struct lease_hold_handler *handler, void *context, const char *parameter,
                     const char *selector)
{
    *hold = (struct lease_hold){.opts = *opts, .handler = handler, .context = context};
    hold->clock = ml_loop_clock(opts->loop);
    hold->trouble = ML_ERR_INIT;
    hold->watch_path = lease_watch_path(opts->ns, parameter, selector);
    ml_timer_init(&hold->stuck, opts->loop, lease_hold_on_stuck, hold);
    ml_timer_init(&hold->next, opts->loop, handler->attempt, context);
    ml_timer_init(&hold->deadline, opts->loop, handler->deadline, context);
    ml_timer_init(&hold->patience, opts->loop, lease_hold_on_released, hold);
    ml_task_init(&hold->released_task, lease_hold_on_released, hold);
}

void lease_hold_fini(struct lease_hold *hold)
{
    lease_hold_stop(hold);
    ml_timer_stop(&hold->patience);
    ml_task_cancel(&hold->released_task);
    ml_json_lines_fini(&hold->lines);
    free(hold->watch_path);
}
