#include "state/lease_watch.h"

#include "state/watch_event.h"

#define LINE_MAX_BYTES ((size_t)256 * 1024)

static const struct ml_http_deadlines deadlines = {
    .connect_ms = 10000,
    .first_byte_ms = 10000,
    .total_ms = 330000, /* the server ends it after 300 s */
};

static int on_line(void *context, struct ml_str line, struct ml_err *err)
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

static int on_data(void *context, struct ml_str piece, struct ml_err *err)
{
    struct lease_watch *watch = context;
    return ml_json_lines_feed(&watch->lines, piece, on_line, watch, err);
}

static void on_done(void *context, const struct ml_err *err)
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
    static const struct ml_client_stream handler = {.data = on_data, .done = on_done};
    if (watch->call || watch->forbidden)
        return;
    ml_json_lines_fini(&watch->lines);
    ml_json_lines_init(&watch->lines, LINE_MAX_BYTES);
    watch->call = ml_client_stream(watch->client, watch->path, &deadlines, &handler, watch);
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
