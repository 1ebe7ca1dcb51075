/* Lists and watches one kind: the requests, at the collection endpoints of apimachinery
 * (pkg/apis/meta/internalversion), the reading of their answers, and the steps from one to the
 * next, as reflector_fsm.c decides. */
#include "state/reflector.h"

#include "codec/json.h"
#include "codec/json_stream.h"
#include "state/reflector_fsm.h"
#include "state/watch_event.h"

#include <stdio.h>

#define PAGE_ITEMS "500"

#define SHORT_WATCH_NS  (1 * ML_NS_PER_S)
#define FLAPPING_MAX    5  /* so many short watches in a row are resumed at once */
#define BOOKMARK_IDLE_S 75 /* a bookmark comes each 60 s, the server's history holds 75 s */
#define SILENCE_NS      (300 * ML_NS_PER_S) /* the least a watch is asked to last */
#define NO_BOOKMARK_NS  (150 * ML_NS_PER_S) /* two bookmarks that did not come */
/* Seconds that the server is asked to keep a watch open. Before the end it sends a bookmark, and
 * then the end: a connection that brings neither is dead (docs/decisions/0027). */
#define WATCH_MIN_S   16
#define WATCH_MAX_S   20
#define WATCH_GRACE_S 5 /* for the end to arrive */
/* Of a server in this process, to which no connection can die: as client-go. */
#define LOCAL_MIN_S   300
#define LOCAL_MAX_S   600
#define LOCAL_GRACE_S 10
#define CONNECT_MS    10000
/* The rest of 30 s after a watch whose end did not come: its connection may have been dead for as
 * long as it lasted. */
#define CONNECT_HASTY_MS 4000
/* To the first byte of a page. A list that takes longer has more time when it is tried again: the
 * server may be slow, and not the connection dead. */
#define LIST_MS        25000
#define LIST_SLOW_MS   60000
#define STREAM_FIRST_S 30 /* for the first event of a streaming list */
#define STREAM_NEXT_S  10 /* for the one after, the bookmark at the end included */
#define STREAM_TAIL_S                                                                              \
    10 /* that its connection goes on as a watch, which the next one takes over                    \
        */

/* ---- what is watched ---- */

bool ml_selection_eq(const struct ml_selection *a, const struct ml_selection *b)
{
    return ml_str_eq(a->labels, b->labels) && ml_str_eq(a->fields, b->fields) &&
           a->metadata_only == b->metadata_only;
}

int ml_selection_object(const struct ml_selection *selection, struct ml_dict *dict,
                        const struct ml_kind *kind, struct ml_str json, struct ml_object **out,
                        struct ml_err *err)
{
    if (!selection->metadata_only)
        return ml_object_new(dict, kind->api_version, kind->kind, json, out, err);
    struct ml_str metadata;
    if (!ml_json_find(json, &metadata, "metadata", NULL))
        return ml_err_set(err, ML_EINVALID, "no metadata");
    ML_AUTO(ml_buf_fini) struct ml_buf bare = ML_BUF_INIT;
    ml_buf_puts(&bare, "{\"metadata\":");
    ml_buf_append_str(&bare, metadata);
    ml_buf_puts(&bare, "}");
    return ml_object_new(dict, kind->api_version, kind->kind, ml_buf_str(&bare), out, err);
}

/* ---- requests ---- */

/* The URL of the collection, with what is selected of it. */
static void append_collection_path(const struct ml_reflector_opts *opts, struct ml_buf *url)
{
    struct ml_str fields = opts->selection->fields;
    ml_kind_path(opts->kind, opts->ns, ML_STR(""), ML_STR(""), url);
    ML_AUTO_FREE char *own = ml_asprintf("metadata.name=" ML_STR_FMT "%s" ML_STR_FMT,
                                         ML_STR_ARG(opts->name), fields.len > 0 ? "," : "",
                                         ML_STR_ARG(fields));
    if (opts->name.len > 0)
        fields = ml_str_of(own);
    if (fields.len > 0)
        ml_url_query(url, "fieldSelector", fields);
    if (opts->selection->labels.len > 0)
        ml_url_query(url, "labelSelector", opts->selection->labels);
}

/* Appends the path of a LIST with its query. `version`: up to which all is known, or NULL; `next`:
 * the continue token of a later page, or NULL. */
static void reflector_list_url(const struct ml_reflector_opts *opts,
                               const struct reflector_step *step, const char *version,
                               const char *next, struct ml_buf *url)
{
    append_collection_path(opts, url);
    if (step->paged)
        ml_url_query(url, "limit", ML_STR(PAGE_ITEMS));
    /* The server refuses a continue token together with a version. */
    if (next) {
        ml_url_query(url, "continue", ml_str_of(next));
    } else if (!step->any_version) {
        ml_url_query(url, "resourceVersion", ml_str_of(version));
        ml_url_query(url, "resourceVersionMatch", ML_STR("NotOlderThan"));
    }
}

/* A list at the most recent version of that object alone. */
static void reflector_object_url(const struct ml_reflector_opts *opts, struct ml_object *object,
                                 struct ml_buf *url)
{
    ML_AUTO_FREE char *selector = ml_asprintf("metadata.name=" ML_STR_FMT,
                                              ML_STR_ARG(ml_object_name(object)));
    ml_kind_path(opts->kind, ml_object_namespace(object), ML_STR(""), ML_STR(""), url);
    ml_url_query(url, "fieldSelector", ml_str_of(selector));
    ml_url_query(url, "limit", ML_STR("1"));
}

/* Appends the path of a WATCH with its query. */
static void reflector_watch_url(const struct ml_reflector_opts *opts,
                                const struct reflector_step *step, const char *version,
                                int64_t timeout_s, struct ml_buf *url)
{
    char timeout[24];
    int len = snprintf(timeout, sizeof timeout, "%lld", (long long)timeout_s);
    append_collection_path(opts, url);
    ml_url_query(url, "watch", ML_STR("1"));
    ml_url_query(url, "resourceVersion", ml_str_of(step->any_version ? "" : version));
    if (step->stream) {
        ml_url_query(url, "sendInitialEvents", ML_STR("true"));
        ml_url_query(url, "resourceVersionMatch", ML_STR("NotOlderThan"));
    }
    ml_url_query(url, "allowWatchBookmarks", ML_STR("true"));
    ml_url_query(url, "timeoutSeconds", (struct ml_str){timeout, (size_t)len});
}

/* The Accept field; NULL: plain JSON. */
static const char *reflector_accept(const struct ml_reflector_opts *opts, bool list)
{
    if (!opts->selection->metadata_only || opts->server->no_metadata)
        return NULL;
    return list ? "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,"
                  "application/json"
                : "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
}

/* ---- objects ---- */

/* Makes `out` of what the server sent, a reference for the caller: the cached object when it has
 * not changed, so that a relist needs no second copy of the cache. False: it cannot be read, which
 * was reported; `out` is then the cached object of that key, or NULL. */
static bool reflector_read(const struct ml_reflector_opts *opts, struct ml_str raw,
                           struct ml_object **out)
{
    struct ml_err poison = ML_ERR_INIT;
    if (ml_selection_object(opts->selection, opts->dict, opts->kind, raw, out, &poison) < 0) {
        ML_AUTO_FREE char *key = watch_event_key(raw);
        opts->handler->poisoned(opts->context, ml_str_of(key), &poison);
        struct ml_object *held = opts->handler->current(opts->context, ml_str_of(key));
        *out = held ? ml_object_ref(held) : NULL;
        return false;
    }
    struct ml_object *held = opts->handler->current(opts->context, ml_object_key(*out));
    if (held && ml_str_eq(ml_object_uid(held), ml_object_uid(*out)) &&
        ml_str_eq(ml_object_rv(held), ml_object_rv(*out))) {
        ml_object_unref(*out);
        *out = ml_object_ref(held);
    }
    return true;
}

/* ---- lists ---- */

/* One list while it is received, in pages or as a stream: a shadow of the store, which is published
 * only when it is complete. */
struct reflector_list {
    const struct ml_reflector_opts *opts;
    struct ml_set objects; /* a reference each */
    struct ml_json_list *page;
    char *next;    /* continue token of the next page, NULL: none */
    char *version; /* of the pages as a whole, from the first one */
};

static struct ml_str list_object_key(const void *object)
{
    return ml_object_key(object);
}

static void reflector_list_init(struct reflector_list *list, const struct ml_reflector_opts *opts)
{
    *list = (struct reflector_list){.opts = opts, .objects.key = list_object_key};
}

/* Empty, and holds no memory. */
static void reflector_list_clear(struct reflector_list *list)
{
    ml_set_each (&list->objects, cursor, object)
        ml_object_unref(object);
    ml_set_fini(&list->objects);
    ml_json_list_free(list->page);
    free(list->next);
    free(list->version);
    reflector_list_init(list, list->opts);
}

/* Takes the object that the server sent. One that cannot be read keeps its cached version. */
static void reflector_list_add(struct reflector_list *list, struct ml_str raw)
{
    struct ml_object *object;
    reflector_read(list->opts, raw, &object);
    if (object)
        ml_object_unref(ml_set_put(&list->objects, object));
}

static int list_on_item(void *context, struct ml_str raw, struct ml_err *err)
{
    (void)err; /* a bad item does not spoil the list */
    reflector_list_add(context, raw);
    return 0;
}

/* A page: open, feed to `page`, close. After close, `next` tells whether another one follows. */
static void reflector_list_open_page(struct reflector_list *list)
{
    const struct ml_json_list_handler handler = {.item = list_on_item, .context = list};
    ml_json_list_free(list->page);
    list->page = ml_json_list_new(&handler, ML_OBJECT_SIZE_MAX);
}

static int reflector_list_close_page(struct reflector_list *list, struct ml_err *err)
{
    struct ml_str envelope;
    int r = ml_json_list_finish(list->page, &envelope, err);
    if (r < 0)
        return r;
    ML_AUTO_FREE char *kind = ml_json_find_string(envelope, "kind", NULL);
    if (kind && strcmp(kind, "Status") == 0)
        return ml_status_error(envelope, 0, err);
    ML_AUTO_FREE char *version = ml_json_find_string(envelope, "metadata", "resourceVersion", NULL);
    if (!kind || !ml_str_ends(ml_str_of(kind), "List") || !version || !*version)
        return ml_err_set(err, ML_EINVALID, "the answer is no list of %s, but %s",
                          list->opts->kind->plural, kind ? kind : "something else");
    free(list->next);
    list->next = ml_json_find_string(envelope, "metadata", "continue", NULL);
    if (list->next && !*list->next)
        free(ml_take(&list->next));
    /* All pages are of one version: that of the first page. */
    if (!list->version)
        list->version = ml_take(&version);
    ml_json_list_free(ml_take(&list->page));
    return 0;
}

/* Does a complete list show `object` as it is here, and no version older than `version`? */
static bool reflector_list_confirms(const struct reflector_list *list, struct ml_object *object,
                                    const char *version)
{
    struct ml_object *shown = ml_set_get(&list->objects, ml_object_key(object));
    return shown && ml_str_eq(ml_object_uid(shown), ml_object_uid(object)) &&
           ml_str_eq(ml_object_rv(shown), ml_object_rv(object)) &&
           !ml_rv_older(ml_str_of(list->version), ml_str_of(version));
}

/* ---- the reflector ---- */

struct ml_reflector {
    struct ml_reflector_opts opts;
    struct ml_clock *clock;
    struct reflector_step step;
    struct ml_client_call *call;
    struct ml_timer retry;
    int64_t retry_ns; /* when it is due, monotonic */
    struct ml_client_await await;
    struct reflector_delays delays;
    bool died;          /* the last watch did not end in time: its connection is dead */
    bool slow;          /* the last list got no answer in time */
    bool in_trouble;    /* it was reported */
    bool watch_refused; /* that trouble: only a watch can end it */

    char *version; /* everything up to it has been reported; NULL before the first list */
    struct ml_object *newest; /* the last change reported, a reference; NULL: a deletion, or none */
    bool doubted;             /* the server was away since: its store may have been restored */
    struct reflector_epoch epoch;

    struct reflector_list list;

    struct ml_json_lines lines;
    struct ml_timer idle;
    struct ml_timer settled; /* the watch is open for so long that it works */
    int64_t opened_ns;
    int64_t timeout_s;          /* that this watch lasts */
    bool tail;                  /* it is what follows in a streaming list */
    size_t events;              /* of this watch */
    size_t flapping;            /* watches before this one that ended within a second */
    int64_t heard_ns;           /* the last list, event or bookmark, of whatever watch */
    bool bookmarks;             /* this server sends them */
    enum reflector_end verdict; /* of an ERROR event or a broken line */
};

/* ---- steps and trouble ---- */

static void reflector_retry_after(struct ml_reflector *self, int64_t delay_ns)
{
    self->retry_ns = ml_clock_monotonic(self->clock) + delay_ns;
    ml_timer_start(&self->retry, delay_ns);
}

/* The server could not be reached; now it answers somebody, or it is our turn to try. */
static void reflector_on_server_answers(void *context, bool answered)
{
    struct ml_reflector *self = context;
    int64_t now_ns = ml_clock_monotonic(self->clock);
    int64_t delay_ns = 0;
    if (answered)
        delay_ns = reflector_delay_after_answer(&self->delays, self->opts.random, now_ns);
    reflector_retry_after(self, ML_MIN(delay_ns, self->retry_ns - now_ns));
}

/* The cache is current, or will be: not said at the head of an answer, since a server that has
 * restarted opens each watch and ends it with an ERROR event. */
static void reflector_end_trouble(struct ml_reflector *self)
{
    if (self->in_trouble)
        self->opts.handler->trouble(self->opts.context, NULL, 0);
    self->in_trouble = self->watch_refused = false;
    reflector_delays_end_outage(&self->delays);
}

/* Ends that the next step repairs at once, and that need not be reported. */
static bool reflector_end_is_quiet(enum reflector_end how)
{
    return how == WATCH_ENDED || how == WATCH_HASTY || how == WATCH_YOUNG || how == WATCH_GONE ||
           how == LIST_GONE || how == LIST_PAGE_GONE || how == STREAM_REFUSED;
}

static bool reflector_lists_by_stream(const struct ml_reflector *self)
{
    return self->opts.streams && !self->opts.server->no_streams;
}

static void reflector_end(struct ml_reflector *self, enum reflector_end how,
                          const struct ml_err *err)
{
    const struct ml_reflector_opts *opts = &self->opts;
    enum reflector_cause cause = reflector_cause_of(how, err);
    int64_t now_ns = ml_clock_monotonic(self->clock), delay_ns = 0;
    bool watched = self->step.watch;
    self->step = reflector_next(&self->step, how, reflector_lists_by_stream(self));
    if (!self->version && !self->step.watch)
        self->step.any_version = true;
    self->doubted = self->doubted || cause == CAUSE_AWAY;
    opts->handler->turn(opts->context, watched, reflector_end_name(how), !self->step.watch);
    if (self->step.wait)
        delay_ns = reflector_delay(&self->delays, how, err, opts->random, now_ns);
    if (err && !reflector_end_is_quiet(how)) {
        self->in_trouble = true;
        self->watch_refused = watched && cause == CAUSE_REFUSED;
        opts->handler->trouble(opts->context, err, delay_ns / ML_NS_PER_MS);
    }
    reflector_retry_after(self, delay_ns);
    if (err && cause == CAUSE_AWAY && err->retry_after_ms < 0) {
        self->await.probes = ml_client_unanswered(err);
        ml_client_await(opts->client, &self->await);
    }
}

static bool reflector_is_gone(const struct ml_err *err)
{
    return err->kind == ML_EGONE || strcmp(err->reason, "ResourceVersionTooLarge") == 0;
}

/* ---- versions ---- */

static void reflector_set_version(struct ml_reflector *self, const char *version)
{
    if (!self->version || strcmp(self->version, version) != 0) {
        free(self->version);
        self->version = ml_strdup(version);
    }
    self->opts.handler->progress(self->opts.context, ml_rv_parse(ml_str_of(version)));
}

static void reflector_advance(struct ml_reflector *self, const char *version)
{
    if (!self->version || !ml_rv_older(ml_str_of(version), ml_str_of(self->version)))
        reflector_set_version(self, version);
}

/* `object` NULL: a change that no object shows. */
static void reflector_set_newest(struct ml_reflector *self, struct ml_object *object)
{
    if (object && self->newest && ml_rv_older(ml_object_rv(object), ml_object_rv(self->newest)))
        return;
    ml_object_unref(self->newest);
    self->newest = object ? ml_object_ref(object) : NULL;
}

static int reflector_publish(struct ml_reflector *self, const char *version, struct ml_err *err)
{
    const struct ml_reflector_opts *opts = &self->opts;
    int64_t now_ns = ml_clock_monotonic(self->clock);
    enum reflector_age age = reflector_epoch_check(&self->epoch, self->version, version, now_ns);
    if (age == AGE_BEHIND) {
        ml_err_set(err, ML_EUNAVAILABLE,
                   "the server shows version %s, older than %s that it showed before: it is "
                   "behind, or was restored from a backup",
                   version, self->version);
        snprintf(err->reason, sizeof err->reason, "%s", REFLECTOR_BEHIND);
        return err->kind;
    }
    if (age == AGE_RESTORED)
        opts->handler->restored(opts->context, ml_str_of(self->version), ml_str_of(version));
    opts->handler->replace(opts->context, &self->list.objects, ml_rv_parse(ml_str_of(version)));
    reflector_set_version(self, version);
    self->heard_ns = now_ns;
    reflector_set_newest(self, NULL);
    ml_set_each (&self->list.objects, cursor, object)
        reflector_set_newest(self, object);
    self->doubted = false;
    if (!self->watch_refused)
        reflector_end_trouble(self);
    return 0;
}

static int64_t reflector_take_connect_ms(struct ml_reflector *self)
{
    int64_t limit_ms = self->died ? CONNECT_HASTY_MS : CONNECT_MS;
    self->died = false;
    return limit_ms;
}

/* ---- LIST, page by page ---- */

static void list_request_page(struct ml_reflector *self);

static void list_publish(struct ml_reflector *self)
{
    struct ml_err behind = ML_ERR_INIT;
    int r = reflector_publish(self, self->list.version, &behind);
    reflector_list_clear(&self->list);
    reflector_end(self, r < 0 ? LIST_BEHIND : LIST_COMPLETE, r < 0 ? &behind : NULL);
}

static int list_on_data(void *context, struct ml_str piece, struct ml_err *err)
{
    struct ml_reflector *self = context;
    return ml_json_list_feed(self->list.page, piece, err);
}

static enum reflector_end list_classify_error(struct ml_reflector *self, const struct ml_err *err)
{
    if (err->kind == ML_EUNSUPPORTED) /* 406, 415: plain JSON from now on */
        self->opts.server->no_metadata = true;
    if (!reflector_is_gone(err))
        return LIST_FAILED;
    return self->list.version ? LIST_PAGE_GONE : LIST_GONE; /* a later page, or the first */
}

static void list_on_done(void *context, const struct ml_err *err)
{
    struct ml_reflector *self = context;
    struct ml_err bad = ML_ERR_INIT;
    self->call = NULL;
    self->slow = err && err->kind == ML_ETIMEOUT;
    if (!err && reflector_list_close_page(&self->list, &bad) < 0)
        err = &bad;
    if (err) {
        enum reflector_end how = list_classify_error(self, err);
        reflector_list_clear(&self->list);
        reflector_end(self, how, err);
    } else if (self->list.next) {
        list_request_page(self);
    } else {
        list_publish(self);
    }
}

/* Reads a page of objects at the path. */
static void list_read_page(struct ml_reflector *self, struct ml_buf *path, int64_t first_byte_ms,
                           int64_t idle_ms, void (*done)(void *context, const struct ml_err *err))
{
    const struct ml_http_deadlines deadlines = {
        .connect_ms = reflector_take_connect_ms(self),
        .first_byte_ms = first_byte_ms,
        .idle_ms = idle_ms,
    };
    const struct ml_client_stream handler = {
        .data = list_on_data, .done = done, .accept = reflector_accept(&self->opts, true)};
    reflector_list_open_page(&self->list);
    self->call = ml_client_stream(self->opts.client, ml_buf_cstr(path), &deadlines, &handler, self);
}

static void list_request_page(struct ml_reflector *self)
{
    ML_AUTO(ml_buf_fini) struct ml_buf url = ML_BUF_INIT;
    reflector_list_url(&self->opts, &self->step, self->version, self->list.next, &url);
    list_read_page(self, &url, self->slow ? LIST_SLOW_MS : LIST_MS, 30000, list_on_done);
}

static void reflector_start_list(struct ml_reflector *self)
{
    reflector_list_clear(&self->list);
    if (self->step.any_version)
        self->opts.handler->listing(self->opts.context);
    list_request_page(self);
}

/* ---- the time of a watch ---- */

static bool watch_is_local(const struct ml_reflector *self)
{
    return ml_client_is_local(self->opts.client);
}

static void watch_restart_idle_timer(struct ml_reflector *self)
{
    int64_t limit_s = self->timeout_s + WATCH_GRACE_S;
    if (self->step.stream)
        limit_s = self->events > 0 ? STREAM_NEXT_S : STREAM_FIRST_S;
    else if (watch_is_local(self))
        limit_s = (self->bookmarks ? BOOKMARK_IDLE_S : self->timeout_s + LOCAL_GRACE_S) +
                  ml_random_between(self->opts.random, 0, 5);
    else if (self->tail)
        limit_s = STREAM_TAIL_S;
    ml_timer_start(&self->idle, limit_s * ML_NS_PER_S);
}

/* ---- LIST as a stream ----
 * A watch that begins with what is there (KEP-3157): the initial events fill the list, which is
 * published at the bookmark that says it is whole. */

/* Changes that happen meanwhile may come among the initial events. */
static void stream_accept_event(struct ml_reflector *self, const struct watch_event *event)
{
    reflector_list_add(&self->list, event->object);
    if (event->type != WATCH_DELETED)
        return;
    ML_AUTO_FREE char *key = watch_event_key(event->object);
    ml_object_unref(ml_set_remove(&self->list.objects, ml_str_of(key)));
}

/* The initial events are complete: from here on this is the watch that follows the list. */
static int stream_complete(struct ml_reflector *self, const char *version, struct ml_err *err)
{
    int r = reflector_publish(self, version, err);
    reflector_list_clear(&self->list);
    if (r < 0) {
        self->verdict = LIST_BEHIND;
        return r;
    }
    self->step = reflector_next(&self->step, LIST_COMPLETE, true);
    self->tail = true;
    watch_restart_idle_timer(self);
    return 0;
}

/* ---- WATCH: lines ---- */

/* Returns the object's version, which the caller frees; NULL when it has none. */
static char *watch_notify_object(struct ml_reflector *self, const struct watch_event *event)
{
    const struct ml_reflector_opts *opts = &self->opts;
    struct ml_object *object;
    bool readable = reflector_read(opts, event->object, &object);
    bool deleted = event->type == WATCH_DELETED;
    if (object && deleted)
        opts->handler->remove(opts->context, object);
    else if (readable)
        opts->handler->upsert(opts->context, object);
    reflector_set_newest(self, readable && !deleted ? object : NULL);
    char *version = readable ? ml_str_dup(ml_object_rv(object))
                             : watch_event_version(event->object);
    ml_object_unref(object);
    return version;
}

static int watch_accept_error(struct ml_reflector *self, struct ml_str status, struct ml_err *err)
{
    ml_status_error(status, 0, err);
    self->verdict = reflector_is_gone(err)      ? WATCH_GONE
                    : err->kind == ML_ETOO_MANY ? WATCH_THROTTLED
                                                : WATCH_FAILED;
    return err->kind;
}

static int watch_accept_bookmark(struct ml_reflector *self, struct ml_str object,
                                 const char *version, struct ml_err *err)
{
    self->bookmarks = true;
    if (self->step.stream && version && *version && watch_event_ends_initial(object))
        return stream_complete(self, version, err);
    if (self->step.stream || !version || !ml_rv_older(ml_str_of(version), ml_str_of(self->version)))
        return 0;
    self->verdict = WATCH_BEHIND;
    return ml_err_set(err, ML_EUNAVAILABLE,
                      "a bookmark says version %s, older than %s: the server is behind, or was "
                      "restored from a backup",
                      version, self->version);
}

static int watch_accept_event(struct ml_reflector *self, const struct watch_event *event,
                              struct ml_err *err)
{
    ML_AUTO_FREE char *version = NULL;
    self->events++;
    self->heard_ns = ml_clock_monotonic(self->clock);
    bool listing = self->step.stream;
    bool is_object = event->type != WATCH_BOOKMARK && event->type != WATCH_UNKNOWN;
    if (is_object && listing)
        stream_accept_event(self, event);
    else if (is_object)
        version = watch_notify_object(self, event);
    else
        version = watch_event_version(event->object);
    if (event->type == WATCH_BOOKMARK &&
        watch_accept_bookmark(self, event->object, version, err) < 0)
        return err->kind;
    /* Initial events come in no order: their versions do not say how far we are. */
    if (version && *version && !listing)
        reflector_advance(self, version);
    if (!self->step.stream)
        reflector_end_trouble(self);
    return 0;
}

/* A line that cannot be parsed may have been an event that is now lost, so a new list is needed. A
 * line with a Status is an error that occurred after the response headers were sent. */
static int watch_accept_line(struct ml_reflector *self, struct ml_str line, struct ml_err *err)
{
    struct watch_event event;
    if (watch_event_parse(line, &event, err) == 0)
        return event.type == WATCH_ERROR ? watch_accept_error(self, event.object, err)
                                         : watch_accept_event(self, &event, err);
    return watch_event_is_status(line) ? watch_accept_error(self, line, err) : err->kind;
}

/* ---- WATCH: the answer ---- */

static void watch_on_open(void *context)
{
    struct ml_reflector *self = context;
    self->opened_ns = ml_clock_monotonic(self->clock);
    ml_timer_start(&self->settled, SHORT_WATCH_NS);
    watch_restart_idle_timer(self);
}

/* A server says at once if something is wrong with a watch; one that has been open for a second
 * works, even if nothing happens. */
static void watch_on_settled(void *context)
{
    struct ml_reflector *self = context;
    if (self->step.stream)
        return;
    self->delays = (struct reflector_delays){0};
    reflector_end_trouble(self);
}

static int watch_on_data(void *context, struct ml_str piece, struct ml_err *err)
{
    struct ml_reflector *self = context;
    struct ml_str line;
    int r;
    while ((r = ml_json_lines_next(&self->lines, &piece, &line, err)) > 0)
        if ((r = watch_accept_line(self, line, err)) < 0)
            break;
    if (r < 0 && self->verdict == WATCH_ENDED)
        self->verdict = WATCH_FAILED;
    if (self->step.stream || watch_is_local(self))
        watch_restart_idle_timer(self);
    return r;
}

/* The watch was refused. The version is still good unless the server said otherwise. */
static enum reflector_end watch_classify_refusal(struct ml_reflector *self,
                                                 const struct ml_err *err)
{
    if (!err)
        return WATCH_FAILED;
    if (reflector_is_gone(err))
        return WATCH_GONE;
    if (self->step.stream && (err->http == 400 || err->http == 422)) {
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

/* Classifies the end of a watch. Most ends are normal: servers and proxies end each watch after
 * some time. */
static enum reflector_end watch_classify_end(struct ml_reflector *self, const struct ml_err *err)
{
    if (self->verdict != WATCH_ENDED)
        return self->verdict;
    if (self->opened_ns < 0)
        return watch_classify_refusal(self, err);
    int64_t now_ns = ml_clock_monotonic(self->clock);
    bool brief = now_ns - self->opened_ns < SHORT_WATCH_NS;
    self->flapping = brief ? self->flapping + 1 : 0;
    if (self->events > 0)
        return self->flapping > FLAPPING_MAX ? WATCH_HASTY : WATCH_ENDED;
    if (brief)
        return self->flapping > 1 ? WATCH_SHORT : WATCH_YOUNG;
    int64_t limit_ns = self->bookmarks ? NO_BOOKMARK_NS : SILENCE_NS;
    return now_ns - self->heard_ns < limit_ns ? WATCH_ENDED : WATCH_SILENT;
}

static void watch_on_done(void *context, const struct ml_err *err)
{
    struct ml_reflector *self = context;
    self->call = NULL;
    ml_timer_stop(&self->idle);
    ml_timer_stop(&self->settled);
    ml_json_lines_fini(&self->lines); /* an unfinished line with it */
    self->died = err && err->kind == ML_ETIMEOUT && self->opened_ns >= 0;
    enum reflector_end how = watch_classify_end(self, err);
    reflector_list_clear(&self->list);
    reflector_end(self, how, err);
}

/* A streaming list that went silent, maybe because the last bookmark is missing, would do so again.
 */
static void watch_on_idle(void *context)
{
    struct ml_reflector *self = context;
    struct ml_err silent;
    ml_err_set(&silent, ML_ETIMEOUT, "the watch went silent");
    ml_client_cancel(ml_take(&self->call));
    if (self->tail) { /* as if the server had ended it */
        watch_on_done(self, NULL);
        return;
    }
    if (self->step.stream) {
        self->opts.server->no_streams = true;
        self->verdict = STREAM_REFUSED;
    }
    watch_on_done(self, &silent);
}

static int64_t watch_choose_timeout(const struct ml_reflector *self)
{
    if (watch_is_local(self))
        return ml_random_between(self->opts.random, LOCAL_MIN_S, LOCAL_MAX_S);
    return ml_random_between(self->opts.random, WATCH_MIN_S, WATCH_MAX_S);
}

/* `version`: where it begins. */
static void reflector_start_watch(struct ml_reflector *self, const char *version)
{
    const struct ml_client_stream handler = {
        .open = watch_on_open,
        .data = watch_on_data,
        .done = watch_on_done,
        .accept = reflector_accept(&self->opts, false),
    };
    ML_AUTO(ml_buf_fini) struct ml_buf url = ML_BUF_INIT;
    self->timeout_s = watch_choose_timeout(self);
    if (self->step.stream && self->step.any_version)
        self->opts.handler->listing(self->opts.context);
    /* Where the list may take longer, its own silence ends a stream. */
    int64_t asked_s = self->step.stream ? LOCAL_MAX_S : self->timeout_s;
    reflector_watch_url(&self->opts, &self->step, version, asked_s, &url);
    const struct ml_http_deadlines deadlines = {
        .connect_ms = reflector_take_connect_ms(self),
        .first_byte_ms = (WATCH_MAX_S + WATCH_GRACE_S) * 1000,
        .total_ms = (asked_s + WATCH_GRACE_S) * 1000,
    };
    self->opened_ns = -1;
    self->events = 0;
    self->tail = false;
    self->verdict = WATCH_ENDED;
    ml_json_lines_init(&self->lines, ML_OBJECT_SIZE_MAX);
    self->call = ml_client_stream(self->opts.client, ml_buf_cstr(&url), &deadlines, &handler, self);
}

/* ---- before a watch is resumed ----
 * A store that was restored from a backup accepts a watch from a version that it has not reached,
 * and says nothing of what happens until it has. So the server is first asked for the newest object
 * that it showed: if that is as it was, its history up to there is ours, and the watch begins
 * there. Else a list follows. */

static void doubt_on_done(void *context, const struct ml_err *err)
{
    struct ml_reflector *self = context;
    struct ml_err bad = ML_ERR_INIT;
    self->call = NULL;
    if (!err && reflector_list_close_page(&self->list, &bad) < 0)
        err = &bad;
    bool same = !err && reflector_list_confirms(&self->list, self->newest, self->version);
    if (!err)
        reflector_epoch_check(&self->epoch, self->version, self->list.version,
                              ml_clock_monotonic(self->clock));
    reflector_list_clear(&self->list);
    if (same) {
        self->doubted = false;
        ML_AUTO_FREE char *version = ml_str_dup(ml_object_rv(self->newest));
        reflector_start_watch(self, version);
    } else {
        reflector_end(self, err ? watch_classify_refusal(self, err) : WATCH_DOUBTED, err);
    }
}

static void reflector_ask_for_newest(struct ml_reflector *self)
{
    ML_AUTO(ml_buf_fini) struct ml_buf url = ML_BUF_INIT;
    reflector_list_clear(&self->list);
    reflector_object_url(&self->opts, self->newest, &url);
    list_read_page(self, &url, 10000, 10000, doubt_on_done);
}

static void reflector_resume_watch(struct ml_reflector *self)
{
    if (!self->doubted)
        reflector_start_watch(self, self->version);
    else if (self->newest)
        reflector_ask_for_newest(self);
    else
        reflector_end(self, WATCH_DOUBTED, NULL);
}

/* ---- life ---- */

static void reflector_run_step(void *context)
{
    struct ml_reflector *self = context;
    ml_client_await_stop(&self->await);
    if (self->step.watch)
        reflector_resume_watch(self);
    else if (self->step.stream)
        reflector_start_watch(self, self->version);
    else
        reflector_start_list(self);
}

struct ml_reflector *ml_reflector_new(const struct ml_reflector_opts *opts)
{
    struct ml_reflector *self = ml_new(struct ml_reflector);
    self->opts = *opts;
    self->clock = ml_loop_clock(opts->loop);
    self->step = reflector_first(reflector_lists_by_stream(self));
    self->bookmarks = ml_client_has_bookmarks(opts->client);
    ml_timer_init(&self->retry, opts->loop, reflector_run_step, self);
    self->await = (struct ml_client_await){.again = reflector_on_server_answers, .context = self};
    reflector_list_init(&self->list, &self->opts);
    ml_timer_init(&self->idle, opts->loop, watch_on_idle, self);
    ml_timer_init(&self->settled, opts->loop, watch_on_settled, self);
    reflector_run_step(self);
    return self;
}

void ml_reflector_free(struct ml_reflector *self)
{
    if (!self)
        return;
    if (self->call)
        ml_client_cancel(self->call);
    ml_client_await_stop(&self->await);
    ml_timer_stop(&self->retry);
    ml_timer_stop(&self->idle);
    ml_timer_stop(&self->settled);
    ml_json_lines_fini(&self->lines);
    reflector_list_clear(&self->list);
    ml_object_unref(self->newest);
    reflector_epoch_fini(&self->epoch);
    free(self->version);
    free(self);
}
