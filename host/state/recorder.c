/* Sends Kubernetes Events behind all other requests, counts repeated ones as a series, and keeps
 * their number down as client-go's EventCorrelator does: similar ones are combined, and each object
 * may cause only so many. */
#include "state/recorder.h"

#include "codec/json.h"
#include "codec/rfc3339.h"

#include <stdio.h>

#define SERIES_IDLE_NS   (360 * ML_NS_PER_S) /* a quiet series is over */
#define SERIES_UPDATE_NS (60 * ML_NS_PER_S)  /* how old the count on the server may get */
#define NOTE_UPDATE_NS   (10 * ML_NS_PER_S)  /* how old its note may get */
#define IN_FLIGHT_MAX    4
#define SERIES_MAX       1000
#define BYTES_MAX        ((size_t)2 * 1024 * 1024) /* of all series */
#define SOURCE_SHARE     4                         /* one source has a quarter of both at most */
#define NOTE_MAX         1024                      /* bytes; what the API server takes */
#define COUNT_MAX        16                        /* bytes of " (and 3" */
#define SEARCHED_MAX     8192                      /* bytes of a note, for that */
#define NAME_PREFIX_MAX  200                       /* leaves room for the suffix in 253 bytes */
#define REASON_MAX       128
#define TRIES_MAX        12 /* of one request, while the server does not answer */
#define RETRY_NS         (10 * ML_NS_PER_S)

/* ---- what was seen lately ---- */

/* The head of an entry; its key stands behind the entry. */
struct entry {
    int64_t last_ns; /* when it was asked for last, before this time */
    struct ml_str key;
};

static struct ml_str entry_key(const void *entry)
{
    return ((const struct entry *)entry)->key;
}

void ml_event_recent_init(struct ml_event_recent *recent)
{
    *recent = (struct ml_event_recent){.by_key.key = entry_key};
}

void ml_event_recent_fini(struct ml_event_recent *recent)
{
    ml_set_each (&recent->by_key, cursor, entry)
        free(entry);
    ml_set_fini(&recent->by_key);
}

static struct entry *entry_new(struct ml_str key, size_t size, int64_t now_ns)
{
    struct entry *entry = ml_zalloc(size + key.len);
    entry->key = (struct ml_str){(char *)entry + size, key.len};
    memcpy((char *)entry + size, key.ptr, key.len);
    entry->last_ns = now_ns;
    return entry;
}

/* The entry of the key, of `size` bytes: a new one is zero but for its head. It is the newest now.
 */
static void *entry_get(struct ml_event_recent *recent, struct ml_str key, size_t size, size_t max,
                       int64_t now_ns)
{
    struct entry *entry = ml_set_remove(&recent->by_key, key);
    if (!entry && recent->by_key.len == max) {
        size_t first = 0;
        free(ml_set_remove(&recent->by_key, entry_key(ml_set_next(&recent->by_key, &first))));
    }
    if (!entry)
        entry = entry_new(key, size, now_ns);
    ml_set_put(&recent->by_key, entry);
    return entry;
}

/* ---- similar Events ---- */

#define SIMILAR_WINDOW_NS (600 * ML_NS_PER_S)

/* One reason of one object, and the notes it had, by their hashes. */
struct similar {
    struct entry entry;
    uint64_t notes[ML_EVENT_COMBINED_NOTES - 1];
    size_t note_count;
};

bool ml_event_similar_combines(struct ml_event_recent *recent, struct ml_str reason,
                               struct ml_str note, int64_t now_ns)
{
    struct similar *similar = entry_get(recent, reason, sizeof *similar, ML_EVENT_SIMILAR_MAX,
                                        now_ns);
    uint64_t hash = ml_str_hash(note);
    if (now_ns - similar->entry.last_ns > SIMILAR_WINDOW_NS)
        similar->note_count = 0;
    similar->entry.last_ns = now_ns;
    for (size_t i = 0; i < similar->note_count; i++)
        if (similar->notes[i] == hash)
            return false;
    if (similar->note_count == ML_COUNT(similar->notes))
        return true;
    similar->notes[similar->note_count++] = hash;
    return false;
}

/* ---- the spam filter ---- */

#define SPAM_BURST     25
#define SPAM_REFILL_NS (300 * ML_NS_PER_S)

struct bucket {
    struct entry entry;
    bool filled; /* once, with SPAM_BURST */
    double tokens;
};

bool ml_event_spam_allows(struct ml_event_recent *recent, struct ml_str object, int64_t now_ns)
{
    struct bucket *bucket = entry_get(recent, object, sizeof *bucket, ML_EVENT_SPAM_OBJECTS,
                                      now_ns);
    double refill = (double)(now_ns - bucket->entry.last_ns) / (double)SPAM_REFILL_NS;
    bucket->tokens = bucket->filled ? ML_MIN(bucket->tokens + refill, (double)SPAM_BURST)
                                    : (double)SPAM_BURST;
    bucket->filled = true;
    bucket->entry.last_ns = now_ns;
    if (bucket->tokens < 1)
        return false;
    bucket->tokens -= 1;
    return true;
}

/* ---- Events and their series ---- */

/* The note of an Event cannot be changed in events.k8s.io/v1. It can in the other form of the same
 * object, as client-go does. */
static const struct ml_kind core_event = {"v1", "", "v1", "Event", "events", true, false};

/* One Event and its repetitions. */
struct series {
    struct ml_list node; /* in `waiting` to be sent, or in `resting` */
    struct ml_recorder *recorder;
    char *key; /* object, controller, type, reason, the related object and note */
    char *ns;
    char *name;  /* of the Event on the server */
    char *event; /* its JSON with the newest note, kept to create it again after a 404 */
    char *source;
    size_t bytes;       /* of all this */
    uint64_t note;      /* hash of the newest note, which is in `event` */
    uint64_t sent_note; /* and of the one that the server has */
    bool exists;        /* the server has it */
    bool queued;        /* in `waiting` */
    bool combined;      /* stands for similar ones */
    bool passing;       /* as the Event says */
    bool sends_note;    /* what is under way changes the note */
    bool keeps_note;    /* the server does not let us change it */
    int tries;          /* that failed in a row */
    int64_t count;
    int64_t sent_count;
    int64_t last_ns; /* monotonic */
    int64_t sent_ns;
    struct ml_client_call *call;
};

struct ml_recorder {
    struct ml_client *client;
    struct ml_loop *loop;
    struct ml_clock *clock;
    char *controller;
    char *instance;
    struct ml_map by_key;
    size_t bytes; /* of all series */
    struct ml_list waiting;
    struct ml_list resting; /* oldest first */
    struct ml_list sending;
    size_t in_flight;
    uint64_t sequence;
    bool keeps_notes; /* we may not change the notes of Events */
    struct ml_event_recent spam, similar;
    struct ml_timer retry; /* active while the server does not answer: nothing is sent */
    void (*flushed)(void *context);
    void *flushed_context;
    struct ml_task flush;
    struct ml_metric *sent, *dropped;
};

/* ---- the text of an Event ---- */

static bool is_name_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_dns_label(struct ml_str label)
{
    for (size_t i = 0; i < label.len; i++)
        if (!is_name_character(label.ptr[i]) && label.ptr[i] != '-')
            return false;
    return label.len > 0 && is_name_character(label.ptr[0]) &&
           is_name_character(label.ptr[label.len - 1]);
}

/* The prefix of an Event's name: the object's name if that is a DNS subdomain, as an Event's name
 * must be. Names of RBAC objects need not be. */
static struct ml_str event_name_prefix(struct ml_str name)
{
    name = ml_str_head(name, NAME_PREFIX_MAX);
    while (name.len > 0 && !is_name_character(name.ptr[name.len - 1])) /* cut inside a label */
        name.len--;
    struct ml_str rest = name;
    do {
        if (!is_dns_label(ml_str_cut(&rest, '.')))
            return ML_STR("event");
    } while (rest.ptr);
    return name;
}

static void event_write_object(struct ml_json_writer *writer, const char *key,
                               const struct ml_event_object *object)
{
    ml_json_key(writer, ml_str_of(key));
    ml_json_begin_object(writer);
    ml_json_put_string(writer, "apiVersion", object->api_version);
    ml_json_put_string(writer, "kind", object->kind);
    if (object->ns.len)
        ml_json_put_string(writer, "namespace", object->ns);
    ml_json_put_string(writer, "name", object->name);
    if (object->uid.len)
        ml_json_put_string(writer, "uid", object->uid);
    if (object->rv.len)
        ml_json_put_string(writer, "resourceVersion", object->rv);
    ml_json_end_object(writer);
}

static char *event_json(const struct series *series, const struct ml_event *event,
                        struct ml_str note)
{
    const struct ml_recorder *self = series->recorder;
    struct ml_buf json = ML_BUF_INIT;
    struct ml_json_writer writer;
    char now[ML_RFC3339_MICRO_LEN + 1];
    ml_rfc3339_format_micro(ml_clock_wall(self->clock), now);
    ml_json_writer_init(&writer, &json);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "apiVersion", ML_STR("events.k8s.io/v1"));
    ml_json_put_string(&writer, "kind", ML_STR("Event"));
    ml_json_key(&writer, ML_STR("metadata"));
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "name", ml_str_of(series->name));
    ml_json_put_string(&writer, "namespace", ml_str_of(series->ns));
    ml_json_end_object(&writer);
    ml_json_put_string(&writer, "eventTime", ml_str_of(now));
    ml_json_put_string(&writer, "reportingController",
                       event->controller.len ? event->controller : ml_str_of(self->controller));
    ml_json_put_string(&writer, "reportingInstance", ml_str_head(ml_str_of(self->instance), 128));
    ml_json_put_string(&writer, "type", event->warning ? ML_STR("Warning") : ML_STR("Normal"));
    ml_json_put_string(&writer, "reason", event->reason);
    ml_json_put_string(&writer, "action", event->action);
    ml_json_put_string(&writer, "note", note);
    event_write_object(&writer, "regarding", &event->about);
    if (event->related.name.len)
        event_write_object(&writer, "related", &event->related);
    ml_json_end_object(&writer);
    return ml_buf_take(&json);
}

/* ---- series ---- */

static void series_free(struct series *series)
{
    ml_map_remove(&series->recorder->by_key, ml_str_of(series->key));
    ml_list_remove(&series->node);
    series->recorder->bytes -= series->bytes;
    free(series->source);
    free(series->key);
    free(series->ns);
    free(series->name);
    free(series->event);
    free(series);
}

static void recorder_on_flush(void *context)
{
    struct ml_recorder *self = context;
    void (*flushed)(void *context) = ml_take(&self->flushed);
    if (flushed)
        flushed(self->flushed_context);
}

static void recorder_notify_when_flushed(struct ml_recorder *self)
{
    if (self->flushed && self->in_flight == 0 && ml_list_empty(&self->waiting))
        ml_task_defer(&self->flush, self->loop);
}

static void series_move(struct series *series, struct ml_list *to)
{
    series->queued = to == &series->recorder->waiting;
    ml_list_remove(&series->node);
    ml_list_push(to, &series->node);
}

/* ---- sending ---- */

static void recorder_send_waiting(void *recorder);

/* Errors after which a retry may succeed. */
static bool is_temporary(const struct ml_err *err)
{
    return err->kind == ML_ENETWORK || err->kind == ML_ETIMEOUT || err->kind == ML_EUNAVAILABLE ||
           err->kind == ML_ETOO_MANY || err->kind == ML_EUNAUTHORIZED;
}

/* Queues the series again and pauses all sending; false: that was its last try. */
static bool series_retry_later(struct series *series)
{
    struct ml_recorder *self = series->recorder;
    if (++series->tries >= TRIES_MAX)
        return false;
    series_move(series, &self->waiting);
    ml_timer_start(&self->retry, RETRY_NS);
    return true;
}

/* The count is told without the note. */
static bool series_keep_note(struct series *series, const struct ml_err *err)
{
    struct ml_recorder *self = series->recorder;
    series->keeps_note = true;
    self->keeps_notes = self->keeps_notes || err->kind == ML_EFORBIDDEN;
    series_move(series, &self->waiting);
    recorder_send_waiting(self);
    return true;
}

static void series_on_sent(void *context, struct ml_str body, const struct ml_err *err)
{
    struct series *series = context;
    struct ml_recorder *self = series->recorder;
    (void)body;
    series->call = NULL;
    self->in_flight--;
    if (err && is_temporary(err) && !series->passing && series_retry_later(series))
        return;
    series->tries = 0;
    if (err && series->sends_note && err->kind != ML_ENOT_FOUND && series_keep_note(series, err))
        return;
    bool expired = err && err->kind == ML_ENOT_FOUND && series->exists;
    bool created = !series->exists && (!err || err->kind == ML_EALREADY_EXISTS);
    if (!expired)
        ml_metric_add(err ? self->dropped : self->sent, 1);
    series->exists = !expired && (series->exists || created);
    /* Deleted on the server: create it again. Or it happened again while the first was being sent.
     */
    bool more = expired || (created && series->count > series->sent_count);
    series_move(series, more ? &self->waiting : &self->resting);
    recorder_send_waiting(self);
    recorder_notify_when_flushed(self);
}

static bool series_has_new_note(const struct series *series)
{
    return series->exists && !series->keeps_note && !series->recorder->keeps_notes &&
           series->sent_note != series->note;
}

static char *series_count_json(const struct series *series)
{
    struct ml_buf json = ML_BUF_INIT;
    struct ml_json_writer writer;
    char now[ML_RFC3339_MICRO_LEN + 1];
    ml_rfc3339_format_micro(ml_clock_wall(series->recorder->clock), now);
    ml_json_writer_init(&writer, &json);
    ml_json_begin_object(&writer);
    if (series_has_new_note(series)) {
        ML_AUTO_FREE char *note = ml_json_find_string(ml_str_of(series->event), "note", NULL);
        ml_json_put_string(&writer, "message", ml_str_of(note));
    }
    ml_json_key(&writer, ML_STR("series"));
    ml_json_begin_object(&writer);
    ml_json_put_int(&writer, "count", series->count);
    ml_json_put_string(&writer, "lastObservedTime", ml_str_of(now));
    ml_json_end_object(&writer);
    ml_json_end_object(&writer);
    return ml_buf_take(&json);
}

static void series_send(struct series *series)
{
    struct ml_recorder *self = series->recorder;
    ML_AUTO_FREE char *count = series->exists ? series_count_json(series) : NULL;
    series->sends_note = series_has_new_note(series);
    const struct ml_client_request request = {
        .verb = count ? ML_VERB_PATCH_MERGE : ML_VERB_CREATE,
        .kind = series->sends_note ? &core_event : &ml_kind_event,
        .ns = ml_str_of(series->ns),
        .name = ml_str_of(series->name),
        .body = ml_str_of(count ? count : series->event),
        .yields = true,
    };
    series->sent_count = series->count;
    if (!series->exists || series->sends_note)
        series->sent_note = series->note;
    series->sent_ns = ml_clock_monotonic(self->clock);
    series_move(series, &self->sending);
    self->in_flight++;
    series->call = ml_client_send(self->client, &request, series_on_sent, series);
}

static void recorder_send_waiting(void *recorder)
{
    struct ml_recorder *self = recorder;
    while (!ml_timer_active(&self->retry) && self->in_flight < IN_FLIGHT_MAX &&
           !ml_list_empty(&self->waiting))
        series_send(ml_container_of(self->waiting.next, struct series, node));
}

/* ---- recording ---- */

/* The last " (and 3 more)" in a text: how many others there were. Empty: there is none. */
static struct ml_str find_count_of_others(struct ml_str text)
{
    static const char begin[] = " (and ", end[] = " more)";
    for (size_t at = text.len; at-- > 0;) {
        struct ml_str rest = {text.ptr + at, text.len - at};
        size_t len = sizeof begin - 1;
        if (!ml_str_starts(rest, begin))
            continue;
        while (len < rest.len && rest.ptr[len] >= '0' && rest.ptr[len] <= '9')
            len++;
        struct ml_str behind = {rest.ptr + len, rest.len - len};
        if (len > sizeof begin - 1 && len <= COUNT_MAX && ml_str_starts(behind, end))
            return (struct ml_str){rest.ptr, len + sizeof end - 1};
    }
    return (struct ml_str){NULL, 0};
}

/* The note, or what an Event has room for. A count of others stays, and the text before it is cut.
 */
static struct ml_str cut_note(struct ml_str note, char room[NOTE_MAX])
{
    if (note.len <= NOTE_MAX)
        return note;
    struct ml_str count = find_count_of_others(ml_str_head(note, SEARCHED_MAX));
    if (count.len == 0 || count.ptr + count.len <= note.ptr + NOTE_MAX)
        return ml_str_head(note, NOTE_MAX);
    static const char dots[] = "…";
    struct ml_str head = ml_str_head(note, NOTE_MAX - count.len - (sizeof dots - 1));
    memcpy(room, head.ptr, head.len);
    memcpy(room + head.len, dots, sizeof dots - 1);
    memcpy(room + head.len + sizeof dots - 1, count.ptr, count.len);
    return (struct ml_str){room, head.len + sizeof dots - 1 + count.len};
}

/* As it is now: the text of the Event, to be sent, or sent again. */
static void series_describe(struct series *series, const struct ml_event *event)
{
    struct ml_recorder *self = series->recorder;
    ML_AUTO_FREE char *combined = ml_asprintf(ML_EVENT_COMBINED ML_STR_FMT,
                                              ML_STR_ARG(event->note));
    char room[NOTE_MAX];
    struct ml_str note = cut_note(series->combined ? ml_str_of(combined) : event->note, room);
    free(series->event);
    series->note = ml_str_hash(note);
    series->event = event_json(series, event, note);
    self->bytes -= series->bytes;
    series->bytes = sizeof *series + strlen(series->key) + strlen(series->ns) +
                    strlen(series->name) + strlen(series->event) + strlen(series->source);
    self->bytes += series->bytes;
}

/* Makes a new Event object, for a new series or one that continues after a pause. */
static void series_begin(struct series *series, const struct ml_event *event)
{
    struct ml_recorder *self = series->recorder;
    struct ml_str prefix = event_name_prefix(event->about.name);
    uint64_t stamp = (uint64_t)ml_clock_wall(self->clock) + self->sequence++;
    free(series->name);
    series->name = ml_asprintf(ML_STR_FMT ".%llx", ML_STR_ARG(prefix), (unsigned long long)stamp);
    series_describe(series, event);
    series->exists = false;
    series->keeps_note = false;
    series->count = 0;
    series->sent_count = 0;
}

/* The share that one source holds; an empty one: all sources. */
struct held {
    size_t count, bytes;
    struct series *oldest; /* that rests, or NULL */
};

static struct held recorder_held_by(const struct ml_recorder *self, struct ml_str source)
{
    struct held held = {.oldest = NULL};
    const struct ml_list *lists[] = {&self->resting, &self->waiting, &self->sending};
    for (size_t i = 0; i < ML_COUNT(lists); i++) {
        ml_list_each_entry (struct series, series, lists[i]) {
            if (source.len > 0 && !ml_str_is(source, series->source))
                continue;
            held.count++;
            held.bytes += series->bytes;
            if (i == 0 && !held.oldest)
                held.oldest = series;
        }
    }
    return held;
}

/* Frees resting series, the oldest first, until less than 1/`share` of the limits is used. */
static bool recorder_make_room_for(struct ml_recorder *self, struct ml_str source, size_t share)
{
    for (;;) {
        struct held held = recorder_held_by(self, source);
        if (held.count < SERIES_MAX / share && held.bytes < BYTES_MAX / share)
            return true;
        if (!held.oldest)
            return false;
        series_free(held.oldest);
    }
}

static bool recorder_make_room(struct ml_recorder *self, struct ml_str source)
{
    if (source.len > 0 && !recorder_make_room_for(self, source, SOURCE_SHARE))
        return false;
    bool full = self->by_key.len >= SERIES_MAX || self->bytes >= BYTES_MAX;
    return !full || recorder_make_room_for(self, ML_STR(""), 1);
}

static struct series *series_new(struct ml_recorder *self, struct ml_str key,
                                 const struct ml_event *event, bool combined)
{
    if (!recorder_make_room(self, event->source))
        return NULL;
    struct series *series = ml_new(struct series);
    series->recorder = self;
    series->combined = combined;
    series->key = ml_str_dup(key);
    series->ns = event->about.ns.len ? ml_str_dup(event->about.ns) : ml_strdup("default");
    series->source = ml_str_dup(event->source);
    ml_list_init(&series->node);
    ml_list_push(&self->resting, &series->node);
    ml_map_put(&self->by_key, ml_str_of(series->key), series);
    series_begin(series, event);
    return series;
}

static struct series *series_get(struct ml_recorder *self, struct ml_str key,
                                 const struct ml_event *event, bool combined, int64_t now_ns)
{
    struct series *series = ml_map_get(&self->by_key, key);
    if (!series)
        return series_new(self, key, event, combined);
    if (now_ns - series->last_ns > SERIES_IDLE_NS && !series->call)
        series_begin(series, event);
    else if (series->combined || event->numbers_vary)
        series_describe(series, event);
    return series;
}

/* The note as it counts for what is the same: with each number behind its first ": " as one '0'. */
static char *note_without_numbers(struct ml_str note)
{
    struct ml_buf out = ML_BUF_INIT;
    bool behind = false;
    for (size_t i = 0; i < note.len; i++) {
        bool digit = note.ptr[i] >= '0' && note.ptr[i] <= '9';
        behind = behind || (i > 0 && note.ptr[i] == ' ' && note.ptr[i - 1] == ':');
        if (!behind || !digit)
            ml_buf_putc(&out, note.ptr[i]);
        else if (note.ptr[i - 1] < '0' || note.ptr[i - 1] > '9')
            ml_buf_putc(&out, '0');
    }
    return ml_buf_take(&out);
}

static char *object_key(const struct ml_event_object *object)
{
    return ml_asprintf(ML_STR_FMT "/" ML_STR_FMT "/" ML_STR_FMT "/" ML_STR_FMT,
                       ML_STR_ARG(object->kind), ML_STR_ARG(object->ns), ML_STR_ARG(object->name),
                       ML_STR_ARG(object->uid));
}

/* Object, controller and type: the beginning of the key of a series. */
static char *type_key(const struct ml_event *event)
{
    ML_AUTO_FREE char *object = object_key(&event->about);
    return ml_asprintf("%s " ML_STR_FMT " %d ", object, ML_STR_ARG(event->controller),
                       event->warning);
}

bool ml_recorder_shows(const struct ml_recorder *self, const struct ml_event *event)
{
    ML_AUTO_FREE char *type = type_key(event);
    ml_map_each (&self->by_key, cursor, value) {
        const struct series *series = value;
        if (series->exists && ml_str_starts(ml_str_of(series->key), type))
            return true;
    }
    return false;
}

static void recorder_add(struct ml_recorder *self, const struct ml_event *event)
{
    ML_AUTO_FREE char *type = type_key(event);
    ML_AUTO_FREE char *reason = ml_asprintf("%s" ML_STR_FMT, type, ML_STR_ARG(event->reason));
    ML_AUTO_FREE char *note = event->numbers_vary ? note_without_numbers(event->note)
                                                  : ml_str_dup(event->note);
    ML_AUTO_FREE char *related = object_key(&event->related);
    ML_AUTO_FREE char *own = ml_asprintf("%s %s %s", reason, related, note);
    int64_t now_ns = ml_clock_monotonic(self->clock);
    bool combined = ml_event_similar_combines(&self->similar, ml_str_of(reason), ml_str_of(note),
                                              now_ns);
    struct series *series = series_get(self, ml_str_of(combined ? reason : own), event, combined,
                                       now_ns);
    if (!series) {
        ml_metric_add(self->dropped, 1);
        return;
    }
    series->count++;
    series->last_ns = now_ns;
    series->passing = event->passing;
    if (!series->call && !series->queued)
        series_move(series, &self->resting); /* the youngest */
    if (event->passing && ml_timer_active(&self->retry)) {
        ml_metric_add(self->dropped, 1);
        return;
    }
    bool updated_lately = series->exists && series->sent_count > 1 &&
                          now_ns - series->sent_ns <
                              (series_has_new_note(series) ? NOTE_UPDATE_NS : SERIES_UPDATE_NS);
    if (series->call || series->queued || updated_lately)
        return;
    if (!ml_event_spam_allows(&self->spam, ml_str_of(type), now_ns)) {
        ml_metric_add(self->dropped, 1);
        return;
    }
    series_move(series, &self->waiting);
    recorder_send_waiting(self);
}

struct ml_event ml_event_about(const struct ml_kind *kind, const struct ml_object *object)
{
    return (struct ml_event){
        .about = {.api_version = ml_str_of(kind->api_version),
                  .kind = ml_str_of(kind->kind),
                  .ns = ml_object_namespace(object),
                  .name = ml_object_name(object),
                  .uid = ml_object_uid(object),
                  .rv = ml_object_rv(object)},
        .action = ML_STR("Reconcile"),
    };
}

void ml_recorder_event(struct ml_recorder *self, const struct ml_event *event)
{
    struct ml_event bounded = *event;
    bounded.reason = ml_str_head(event->reason, REASON_MAX);
    bounded.action = ml_str_head(event->action, REASON_MAX);
    char room[NOTE_MAX];
    bounded.note = cut_note(event->note, room);
    recorder_add(self, &bounded);
}

void ml_recorder_flush(struct ml_recorder *self, void (*done)(void *context), void *context)
{
    self->flushed = done;
    self->flushed_context = context;
    recorder_notify_when_flushed(self);
}

/* ---- life ---- */

struct ml_recorder *ml_recorder_new(const struct ml_recorder_opts *opts)
{
    struct ml_recorder *self = ml_new(struct ml_recorder);
    self->client = opts->client;
    self->loop = opts->loop;
    self->clock = ml_loop_clock(opts->loop);
    self->controller = ml_strdup(opts->controller);
    self->instance = ml_strdup(opts->instance);
    ml_list_init(&self->waiting);
    ml_list_init(&self->resting);
    ml_list_init(&self->sending);
    ml_event_recent_init(&self->spam);
    ml_event_recent_init(&self->similar);
    ml_timer_init(&self->retry, opts->loop, recorder_send_waiting, self);
    ml_task_init(&self->flush, recorder_on_flush, self);
    struct ml_metric_family *events = ml_metrics_counter(opts->metrics, "moonloop_events_total",
                                                         "Events recorded, by result.",
                                                         ml_metric_labels("result"));
    self->sent = ml_metric_with(events, ml_metric_labels("sent"));
    self->dropped = ml_metric_with(events, ml_metric_labels("dropped"));
    return self;
}

void ml_recorder_free(struct ml_recorder *self)
{
    if (!self)
        return;
    ml_task_cancel(&self->flush);
    ml_timer_stop(&self->retry);
    ml_map_each (&self->by_key, cursor, value) {
        struct series *series = value;
        if (series->call)
            ml_client_cancel(series->call);
        series_free(series);
    }
    ml_map_fini(&self->by_key);
    ml_event_recent_fini(&self->spam);
    ml_event_recent_fini(&self->similar);
    free(self->controller);
    free(self->instance);
    free(self);
}
