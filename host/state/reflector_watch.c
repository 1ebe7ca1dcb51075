/* WATCH, and what comes of it line by line. */
#include "state/reflector_internal.h"

#define SHORT_WATCH_NS  (1 * ML_NS_PER_S)
#define HASTY_MAX       5  /* so many in a row are resumed at once */
#define BOOKMARK_IDLE_S 75 /* a bookmark comes each 60 s, the server's history holds 75 s */
#define SILENCE_NS      (300 * ML_NS_PER_S) /* the least a watch is asked to last */
#define NO_BOOKMARK_NS  (150 * ML_NS_PER_S) /* two bookmarks that did not come */
#define WATCH_MIN_S     300
#define WATCH_MAX_S     600
#define STREAM_FIRST_S  30 /* for the first event of a streaming list */
#define STREAM_NEXT_S   10 /* for the one after, the bookmark at the end included */

static int64_t idle_limit_ns(const struct ml_reflector *self)
{
    if (self->shadow)
        return (self->events > 0 ? STREAM_NEXT_S : STREAM_FIRST_S) * ML_NS_PER_S;
    int64_t limit_s = self->bookmarks ? BOOKMARK_IDLE_S : self->timeout_s + 10;
    return (limit_s + ml_random_between(self->opts.random, 0, 5)) * ML_NS_PER_S;
}

static void rest_idle(struct ml_reflector *self)
{
    ml_timer_start(&self->idle, idle_limit_ns(self));
}

/* ---- lines ---- */

static void tell_object(struct ml_reflector *self, const struct watch_event *event)
{
    const struct ml_reflector_opts *opts = &self->opts;
    struct ml_object *object;
    struct ml_err poison = ML_ERR_INIT;
    bool gone = event->type == WATCH_DELETED;
    if (ml_selection_object(opts->selection, opts->dict, opts->kind, event->object, &object,
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
    self->verdict = reflector_is_gone(err)      ? WATCH_GONE
                    : err->kind == ML_ETOO_MANY ? WATCH_THROTTLED
                                                : WATCH_FAILED;
    return err->kind;
}

/* The initial events are over: from here on this is the watch behind the list. */
static int complete_stream(struct ml_reflector *self, const char *version, struct ml_err *err)
{
    if (reflector_stream_complete(self, version, err) < 0) {
        self->verdict = LIST_BEHIND;
        return err->kind;
    }
    self->step = reflector_next(&self->step, LIST_COMPLETE, true);
    return 0;
}

static int take_bookmark(struct ml_reflector *self, struct ml_str object, const char *version,
                         struct ml_err *err)
{
    self->bookmarks = true;
    if (self->shadow && version && *version && watch_event_ends_initial(object))
        return complete_stream(self, version, err);
    if (self->shadow || !version || !ml_rv_older(ml_str_of(version), ml_str_of(self->version)))
        return 0;
    self->verdict = WATCH_BEHIND;
    return ml_err_set(err, ML_EUNAVAILABLE,
                      "a bookmark says version %s, older than %s: the server is behind, or was "
                      "restored from a backup",
                      version, self->version);
}

static int take_event(struct ml_reflector *self, const struct watch_event *event,
                      struct ml_err *err)
{
    ML_AUTO_FREE char *version = watch_event_version(event->object);
    self->events++;
    self->heard_ns = ml_clock_monotonic(self->clock);
    bool listing = self->shadow != NULL;
    if (event->type == WATCH_BOOKMARK && take_bookmark(self, event->object, version, err) < 0)
        return err->kind;
    bool is_object = event->type != WATCH_BOOKMARK && event->type != WATCH_UNKNOWN;
    if (is_object && listing)
        reflector_stream_take(self, event);
    else if (is_object)
        tell_object(self, event);
    /* Initial events come in no order: none of their versions says how far we are. */
    if (version && *version && !listing)
        reflector_advance(self, version);
    return 0;
}

/* A line that is no event may have been one: only a new list can tell what it said. One that is a
 * Status tells of an error that came too late for the head of the answer. */
static int take_line(void *context, struct ml_str line, struct ml_err *err)
{
    struct ml_reflector *self = context;
    struct watch_event event;
    if (watch_event_parse(line, &event, err) == 0)
        return event.type == WATCH_ERROR ? take_error(self, event.object, err)
                                         : take_event(self, &event, err);
    return watch_event_is_status(line) ? take_error(self, line, err) : err->kind;
}

/* ---- the answer ---- */

static void on_open(void *context)
{
    struct ml_reflector *self = context;
    self->opened_ns = ml_clock_monotonic(self->clock);
    /* Only now: a list alone, without the right to watch, is no cure. */
    reflector_works(self);
    rest_idle(self);
}

static int on_data(void *context, struct ml_str piece, struct ml_err *err)
{
    struct ml_reflector *self = context;
    int r = ml_json_lines_feed(&self->lines, piece, take_line, self, err);
    if (r < 0 && self->verdict == WATCH_ENDED)
        self->verdict = WATCH_FAILED;
    rest_idle(self);
    return r;
}

/* The watch was not let in. The version is still good when nobody said otherwise. */
static enum reflector_end judge_refusal(struct ml_reflector *self, const struct ml_err *err)
{
    if (!err)
        return WATCH_FAILED;
    if (reflector_is_gone(err))
        return WATCH_GONE;
    if (self->shadow && (err->http == 400 || err->http == 422)) {
        self->opts.server->no_streams = true;
        return STREAM_REFUSED;
    }
    if (err->kind == ML_EUNSUPPORTED) /* 406, 415: plain JSON from now on */
        self->opts.server->no_metadata = true;
    bool unanswered = err->http == 0 && (err->kind == ML_ENETWORK || err->kind == ML_ETIMEOUT ||
                                         err->kind == ML_ETLS);
    bool later = err->http >= 500 && err->retry_after_ms >= 0;
    return unanswered || later || err->kind == ML_ETOO_MANY ? WATCH_THROTTLED : WATCH_FAILED;
}

/* What the end of a watch means. An end that nobody is to blame for is the rule: the server
 * ends each after its time, and so does every proxy. */
static enum reflector_end judge(struct ml_reflector *self, const struct ml_err *err)
{
    if (self->verdict != WATCH_ENDED)
        return self->verdict;
    if (self->opened_ns < 0)
        return judge_refusal(self, err);
    int64_t now_ns = ml_clock_monotonic(self->clock);
    bool brief = now_ns - self->opened_ns < SHORT_WATCH_NS;
    self->flapping = brief ? self->flapping + 1 : 0;
    if (self->events > 0)
        return self->flapping > HASTY_MAX ? WATCH_HASTY : WATCH_ENDED;
    if (brief)
        return WATCH_SHORT;
    int64_t limit_ns = self->bookmarks ? NO_BOOKMARK_NS : SILENCE_NS;
    return now_ns - self->heard_ns < limit_ns ? WATCH_ENDED : WATCH_SILENT;
}

static void on_done(void *context, const struct ml_err *err)
{
    struct ml_reflector *self = context;
    self->call = NULL;
    ml_timer_stop(&self->idle);
    ml_json_lines_fini(&self->lines); /* an unfinished line with it */
    enum reflector_end how = judge(self, err);
    reflector_stream_drop(self);
    reflector_end(self, how, err);
}

/* A streaming list that falls silent, maybe for want of the last bookmark, will do so again. */
static void on_idle(void *context)
{
    struct ml_reflector *self = context;
    struct ml_err silent;
    ml_err_set(&silent, ML_ETIMEOUT, "the watch fell silent");
    ml_client_cancel(ml_take(&self->call));
    if (self->shadow) {
        self->opts.server->no_streams = true;
        self->verdict = STREAM_REFUSED;
    }
    on_done(self, &silent);
}

void reflector_watch_init(struct ml_reflector *self)
{
    ml_timer_init(&self->idle, self->opts.loop, on_idle, self);
}

void reflector_start_watch(struct ml_reflector *self)
{
    const struct ml_client_stream handler = {
        .open = on_open,
        .data = on_data,
        .done = on_done,
        .accept = reflector_watch_accept(self),
    };
    ML_AUTO(ml_buf_fini) struct ml_buf url = ML_BUF_INIT;
    self->timeout_s = ml_random_between(self->opts.random, WATCH_MIN_S, WATCH_MAX_S);
    if (self->step.stream)
        reflector_stream_begin(self);
    reflector_watch_url(self, &url);
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
