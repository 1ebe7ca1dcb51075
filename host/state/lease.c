/* Leases (coordination.k8s.io/v1): their times, their text, and a watch of them. Called by the
 * election (election.c) and by the members of a shard group (shard.c). */
#include "state/lease.h"

#include "codec/json.h"
#include "state/watch_event.h"

#define DURATION_S_MAX INT64_C(2147483647) /* the field is an int32 */
#define TIMEOUT_NS_MIN ML_NS_PER_S
#define LINE_MAX_BYTES ((size_t)256 * 1024)

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

int64_t lease_timeout_ns(const struct ml_lease_times *times)
{
    return ML_MAX(TIMEOUT_NS_MIN, times->renew_ns / 2);
}

void lease_not_renewed(const struct ml_lease_times *times, const struct ml_err *trouble,
                       struct ml_err *out)
{
    *out = *trouble;
    if (!out->kind)
        ml_err_set(out, ML_ETIMEOUT, "no answer yet");
    ml_err_wrap(out, "not renewed for %g s", (double)times->renew_ns / (double)ML_NS_PER_S);
}

struct ml_lease_opts lease_opts_copy(const struct ml_lease_opts *opts)
{
    struct ml_lease_opts copy = *opts;
    copy.ns = ml_strdup(opts->ns);
    copy.name = ml_strdup(opts->name);
    copy.identity = ml_strdup(opts->identity);
    return copy;
}

void lease_opts_fini(struct ml_lease_opts *opts)
{
    free((char *)opts->ns);
    free((char *)opts->name);
    free((char *)opts->identity);
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
    ml_json_put_string(&writer, "acquireTime", ml_str_of(claim->acquired));
    ml_json_put_string(&writer, "renewTime", ml_str_of(claim->renewed));
    ml_json_put_int(&writer, "leaseTransitions", claim->transitions);
    ml_json_end_object(&writer);
    ml_json_end_object(&writer);
    return ml_buf_take(&json);
}

/* ---- the watch ---- */

static const struct ml_http_deadlines lease_watch_deadlines = {
    .connect_ms = 10000,
    .first_byte_ms = 10000,
    .total_ms = 330000, /* the server ends it after 300 s */
};

static int lease_watch_on_line(void *context, struct ml_str line, struct ml_err *err)
{
    struct lease_watch *watch = context;
    struct watch_event event;
    int r = watch_event_parse(line, &event, err);
    if (r < 0)
        return r;
    if (event.type == WATCH_ERROR)
        return ml_err_set(err, ML_EGONE, "the watch was ended by the server");
    if (event.type == WATCH_ADDED || event.type == WATCH_MODIFIED)
        watch->seen(watch->context, event.object);
    else if (event.type == WATCH_DELETED)
        watch->seen(watch->context, ML_STR(""));
    return 0;
}

static int lease_watch_on_data(void *context, struct ml_str piece, struct ml_err *err)
{
    struct lease_watch *watch = context;
    return ml_json_lines_feed(&watch->lines, piece, lease_watch_on_line, watch, err);
}

static void lease_watch_on_done(void *context, const struct ml_err *err)
{
    struct lease_watch *watch = context;
    watch->call = NULL;
    watch->forbidden = err && err->kind == ML_EFORBIDDEN;
}

void lease_watch_init(struct lease_watch *watch, struct ml_client *client, const char *ns,
                      const char *parameter, const char *selector,
                      void (*seen)(void *context, struct ml_str lease), void *context)
{
    *watch = (struct lease_watch){.client = client, .seen = seen, .context = context};
    struct ml_buf path = ML_BUF_INIT;
    ml_buf_printf(&path, "/apis/coordination.k8s.io/v1/namespaces/%s/leases", ns);
    ml_url_query(&path, parameter, ml_str_of(selector));
    ml_url_query(&path, "watch", ML_STR("1"));
    ml_url_query(&path, "timeoutSeconds", ML_STR("300"));
    watch->path = ml_buf_take(&path);
}

void lease_watch_start(struct lease_watch *watch)
{
    static const struct ml_client_stream handler = {.data = lease_watch_on_data,
                                                    .done = lease_watch_on_done};
    if (watch->call || watch->forbidden)
        return;
    ml_json_lines_fini(&watch->lines);
    ml_json_lines_init(&watch->lines, LINE_MAX_BYTES);
    watch->call = ml_client_stream(watch->client, watch->path, &lease_watch_deadlines, &handler,
                                   watch);
}

void lease_watch_stop(struct lease_watch *watch)
{
    if (watch->call)
        ml_client_cancel(ml_take(&watch->call));
}

void lease_watch_fini(struct lease_watch *watch)
{
    lease_watch_stop(watch);
    ml_json_lines_fini(&watch->lines);
    free(watch->path);
    watch->path = NULL;
}
