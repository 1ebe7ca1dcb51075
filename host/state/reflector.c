#include "state/reflector.h"

#include <stdio.h>

#include "state/backoff.h"
#include "state/reflector_fsm.h"
#include "state/reflector_list.h"
#include "state/watch_event.h"

#define PAGE_ITEMS      "500"
#define SLOW_RETRY_NS   (10 * ML_NS_PER_S) /* for what a person has to mend: 403, 404 */
#define SHORT_WATCH_NS  (1 * ML_NS_PER_S)
#define BOOKMARK_IDLE_S 75 /* a bookmark comes each 60 s, the server's history holds 75 s */
#define SILENCE_NS      (300 * ML_NS_PER_S) /* the least a watch is asked to last */
#define WATCH_MIN_S     300
#define WATCH_MAX_S     600

struct ml_reflector {
    struct ml_reflector_opts opts;
    struct ml_clock *clock;
    char *ns;
    char *name;
    struct reflector_step step;
    struct ml_client_call *call;
    struct ml_timer retry;
    struct ml_backoff backoff;
    struct ml_err trouble; /* as told last; kind 0: none */

    char *version; /* everything up to it has been told; NULL before the first list */

    struct reflector_list list;
    bool later_page;

    struct ml_json_lines lines;
    struct ml_timer idle;
    int64_t opened_ns;
    int64_t timeout_s;          /* asked of the server for this watch */
    size_t events;              /* of this watch */
    int64_t heard_ns;           /* the last list, event or bookmark, of whatever watch */
    bool bookmarks;             /* this server sends them */
    enum reflector_end verdict; /* of an ERROR event or a broken line */
};

static void run_step(struct ml_reflector *self);

static void set_version(struct ml_reflector *self, const char *version)
{
    if (!self->version || strcmp(self->version, version) != 0) {
        free(self->version);
        self->version = ml_strdup(version);
    }
    self->opts.handler->progress(self->opts.context, ml_rv_parse(ml_str_of(version)));
}

static void tell_trouble(struct ml_reflector *self, const struct ml_err *err, int64_t delay_ns)
{
    int kind = err ? err->kind : 0;
    if (kind == self->trouble.kind)
        return;
    self->trouble = err ? *err : ML_ERR_INIT;
    self->opts.handler->trouble(self->opts.context, err, delay_ns / ML_NS_PER_MS);
}

/* How long to wait before `step`: what the server asked for, or our own backoff. */
static int64_t delay_of(struct ml_reflector *self, const struct ml_err *err)
{
    if (!self->step.wait)
        return 0;
    if (err && err->retry_after_ms >= 0) {
        int64_t asked_ns = ML_MIN(err->retry_after_ms, 60000) * ML_NS_PER_MS;
        asked_ns = ML_MAX(asked_ns, ML_NS_PER_S);
        return asked_ns +
               ml_random_between(self->opts.random, 0, asked_ns / 2); /* not all at once */
    }
    if (err && (err->kind == ML_ENOT_FOUND || err->kind == ML_EFORBIDDEN))
        return SLOW_RETRY_NS + ml_random_between(self->opts.random, 0, ML_NS_PER_S);
    return ml_backoff_next(&self->backoff, self->opts.random, ml_clock_monotonic(self->clock));
}

static void on_retry(void *context)
{
    run_step(context);
}

static void end(struct ml_reflector *self, enum reflector_end how, const struct ml_err *err)
{
    self->step = reflector_next(&self->step, how);
    if (!self->version && !self->step.watch)
        self->step.any_version = true;
    int64_t delay_ns = delay_of(self, err);
    if (err && how != WATCH_ENDED && how != WATCH_GONE && how != LIST_GONE && how != LIST_PAGE_GONE)
        tell_trouble(self, err, delay_ns);
    ml_timer_start(&self->retry, delay_ns);
}

/* The URL of the collection, with the selector of a single object. */
static void append_path(const struct ml_reflector *self, struct ml_buf *url)
{
    ml_kind_path(self->opts.kind, ml_str_of(self->ns), ML_STR(""), ML_STR(""), url);
    if (*self->name) {
        ML_AUTO_FREE char *selector = ml_asprintf("metadata.name=%s", self->name);
        ml_url_query(url, "fieldSelector", ml_str_of(selector));
    }
}

/* ---- LIST ---- */

static void request_page(struct ml_reflector *self);

static bool is_gone(const struct ml_err *err)
{
    return err->kind == ML_EGONE || strcmp(err->reason, "ResourceVersionTooLarge") == 0;
}

static void publish(struct ml_reflector *self)
{
    uint64_t version = ml_rv_parse(ml_str_of(self->list.version));
    self->opts.handler->replace(self->opts.context, self->list.objects, self->list.count, version);
    set_version(self, self->list.version);
    self->heard_ns = ml_clock_monotonic(self->clock);
    reflector_list_fini(&self->list);
    end(self, LIST_COMPLETE, NULL);
}

static int on_list_data(void *context, struct ml_str piece, struct ml_err *err)
{
    struct ml_reflector *self = context;
    return reflector_list_feed(&self->list, piece, err);
}

static void on_list_done(void *context, const struct ml_err *err)
{
    struct ml_reflector *self = context;
    struct ml_err bad = ML_ERR_INIT;
    self->call = NULL;
    if (!err && reflector_list_close_page(&self->list, &bad) < 0)
        err = &bad;
    if (err) {
        enum reflector_end how = !is_gone(err)      ? LIST_FAILED
                                 : self->later_page ? LIST_PAGE_GONE
                                                    : LIST_GONE;
        reflector_list_fini(&self->list);
        end(self, how, err);
    } else if (self->list.next) {
        self->later_page = true;
        request_page(self);
    } else {
        publish(self);
    }
}

static void request_page(struct ml_reflector *self)
{
    static const struct ml_client_stream handler = {.data = on_list_data, .done = on_list_done};
    static const struct ml_http_deadlines deadlines = {
        .connect_ms = 10000,
        .first_byte_ms = 60000,
        .idle_ms = 30000,
    };
    ML_AUTO(ml_buf_fini) struct ml_buf url = ML_BUF_INIT;
    append_path(self, &url);
    if (self->step.paged)
        ml_url_query(&url, "limit", ML_STR(PAGE_ITEMS));
    /* A token and a version together are refused. */
    if (self->list.next)
        ml_url_query(&url, "continue", ml_str_of(self->list.next));
    else if (!self->step.any_version)
        ml_url_query(&url, "resourceVersion", ml_str_of(self->version));
    reflector_list_open_page(&self->list);
    self->call = ml_client_stream(self->opts.client, ml_buf_cstr(&url), &deadlines, &handler, self);
}

static void start_list(struct ml_reflector *self)
{
    self->later_page = false;
    reflector_list_fini(&self->list);
    if (self->step.any_version)
        self->opts.handler->listing(self->opts.context);
    request_page(self);
}

/* ---- WATCH ---- */

static void rest_idle(struct ml_reflector *self)
{
    int64_t jitter_s = ml_random_between(self->opts.random, 0, 5);
    int64_t limit_s = (self->bookmarks ? BOOKMARK_IDLE_S : self->timeout_s + 10) + jitter_s;
    ml_timer_start(&self->idle, limit_s * ML_NS_PER_S);
}

static void tell_object(struct ml_reflector *self, const struct watch_event *event)
{
    const struct ml_reflector_opts *opts = &self->opts;
    struct ml_object *object;
    struct ml_err poison = ML_ERR_INIT;
    bool gone = event->type == WATCH_DELETED;
    if (ml_object_new(opts->dict, opts->kind->api_version, opts->kind->kind, event->object, &object,
                      &poison) == 0) {
        if (gone)
            opts->handler->remove(opts->context, object);
        else
            opts->handler->upsert(opts->context, object);
        ml_object_unref(object);
        return;
    }
    ML_AUTO_FREE char *key = watch_event_key(event->object);
    opts->handler->poisoned(opts->context, ml_str_of(key), &poison);
    object = opts->handler->current(opts->context, ml_str_of(key));
    if (gone && object)
        opts->handler->remove(opts->context, object);
}

static int take_error(struct ml_reflector *self, struct ml_str status, struct ml_err *err)
{
    ml_status_error(status, 0, err);
    self->verdict = is_gone(err)                ? WATCH_GONE
                    : err->kind == ML_ETOO_MANY ? WATCH_THROTTLED
                                                : WATCH_FAILED;
    return err->kind;
}

static int take_line(void *context, struct ml_str line, struct ml_err *err)
{
    struct ml_reflector *self = context;
    struct watch_event event;
    /* A line that is no event may have been one: only a new list can tell what it said. */
    if (watch_event_parse(line, &event, err) < 0)
        return err->kind;
    if (event.type == WATCH_ERROR)
        return take_error(self, event.object, err);
    self->events++;
    self->heard_ns = ml_clock_monotonic(self->clock);
    ML_AUTO_FREE char *version = watch_event_version(event.object);
    if (event.type == WATCH_BOOKMARK)
        self->bookmarks = true;
    else if (event.type != WATCH_UNKNOWN)
        tell_object(self, &event);
    if (version && *version)
        set_version(self, version);
    return 0;
}

static void on_watch_open(void *context)
{
    struct ml_reflector *self = context;
    self->opened_ns = ml_clock_monotonic(self->clock);
    /* Only now: a list alone, without the right to watch, is no cure. */
    tell_trouble(self, NULL, 0);
    rest_idle(self);
}

static int on_watch_data(void *context, struct ml_str piece, struct ml_err *err)
{
    struct ml_reflector *self = context;
    rest_idle(self);
    int r = ml_json_lines_feed(&self->lines, piece, take_line, self, err);
    if (r < 0 && self->verdict == WATCH_ENDED)
        self->verdict = WATCH_FAILED;
    return r;
}

/* What the end of a watch means. An end that nobody is to blame for is the rule: the server
 * ends each after its time, and so does every proxy. */
static enum reflector_end judge_watch(const struct ml_reflector *self, const struct ml_err *err)
{
    if (self->verdict != WATCH_ENDED)
        return self->verdict;
    if (self->opened_ns < 0) {
        if (err && is_gone(err))
            return WATCH_GONE;
        if (err && (err->kind == ML_ETOO_MANY || err->kind == ML_ENETWORK))
            return WATCH_THROTTLED;
        return WATCH_FAILED;
    }
    if (self->events > 0)
        return WATCH_ENDED;
    int64_t now_ns = ml_clock_monotonic(self->clock);
    if (now_ns - self->opened_ns < SHORT_WATCH_NS)
        return WATCH_SHORT;
    return now_ns - self->heard_ns < SILENCE_NS ? WATCH_ENDED : WATCH_SILENT;
}

static void on_watch_done(void *context, const struct ml_err *err)
{
    struct ml_reflector *self = context;
    self->call = NULL;
    ml_timer_stop(&self->idle);
    ml_json_lines_fini(&self->lines); /* an unfinished line with it */
    end(self, judge_watch(self, err), err);
}

static void on_idle(void *context)
{
    struct ml_reflector *self = context;
    struct ml_err silent;
    ml_err_set(&silent, ML_ETIMEOUT, "the watch fell silent");
    ml_client_cancel(ml_take(&self->call));
    on_watch_done(self, &silent);
}

static void start_watch(struct ml_reflector *self)
{
    static const struct ml_client_stream handler = {
        .open = on_watch_open,
        .data = on_watch_data,
        .done = on_watch_done,
    };
    ML_AUTO(ml_buf_fini) struct ml_buf url = ML_BUF_INIT;
    char timeout[24];
    self->timeout_s = ml_random_between(self->opts.random, WATCH_MIN_S, WATCH_MAX_S);
    int len = snprintf(timeout, sizeof timeout, "%lld", (long long)self->timeout_s);
    append_path(self, &url);
    ml_url_query(&url, "watch", ML_STR("1"));
    ml_url_query(&url, "resourceVersion", ml_str_of(self->version));
    ml_url_query(&url, "allowWatchBookmarks", ML_STR("true"));
    ml_url_query(&url, "timeoutSeconds", (struct ml_str){timeout, (size_t)len});
    const struct ml_http_deadlines deadlines = {
        .connect_ms = 10000,
        .first_byte_ms = 60000,
        .total_ms = (self->timeout_s + 30) * 1000,
    };
    self->opened_ns = -1;
    self->events = 0;
    self->verdict = WATCH_ENDED;
    ml_json_lines_init(&self->lines, ML_OBJECT_SIZE_MAX);
    self->call = ml_client_stream(self->opts.client, ml_buf_cstr(&url), &deadlines, &handler, self);
}

static void run_step(struct ml_reflector *self)
{
    if (self->step.watch)
        start_watch(self);
    else
        start_list(self);
}

struct ml_reflector *ml_reflector_new(const struct ml_reflector_opts *opts)
{
    struct ml_reflector *self = ml_new(struct ml_reflector);
    self->opts = *opts;
    self->clock = ml_loop_clock(opts->loop);
    self->ns = ml_str_dup(opts->ns);
    self->name = ml_str_dup(opts->name);
    self->step = reflector_first();
    self->trouble = ML_ERR_INIT;
    ml_timer_init(&self->retry, opts->loop, on_retry, self);
    ml_timer_init(&self->idle, opts->loop, on_idle, self);
    reflector_list_init(&self->list, &self->opts);
    return self;
}

void ml_reflector_start(struct ml_reflector *self)
{
    run_step(self);
}

void ml_reflector_free(struct ml_reflector *self)
{
    if (!self)
        return;
    if (self->call)
        ml_client_cancel(self->call);
    ml_timer_stop(&self->retry);
    ml_timer_stop(&self->idle);
    ml_json_lines_fini(&self->lines);
    reflector_list_fini(&self->list);
    free(self->version);
    free(self->ns);
    free(self->name);
    free(self);
}
