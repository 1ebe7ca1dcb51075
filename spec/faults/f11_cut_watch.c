/* F11: a watch that is cut, at every byte of a stream that was recorded from an API server: within
 * a line, within a character, between lines. Whole lines count, the rest is discarded. The watch is
 * resumed behind the last whole event, or a list follows where the newest object cannot show that
 * the server's history is still the same. No event is told twice, and none is lost. */
#include "state_informers.h"

#include "codec/json.h"
#include "codec/json_stream.h"
#include "state/watch_event.h"
#include "tried.h"

#include <stdio.h>

#define STREAM SOURCE_DIR "/spec/faults/recorded/watch.jsonl"
#define START  1 /* version of the list before the stream */

static const struct ml_kind configmaps = {"v1", "", "v1", "ConfigMap", "configmaps", true, false};

struct line {
    size_t start, end; /* the newline is in it */
    int version;
    enum watch_event_type type;
    struct ml_str object; /* in the stream */
    char name[64];
};

struct cut_world {
    struct informers_world all;
    struct ml_informer *informer;
    struct ml_listener listener;
    struct ml_buf stream;
    struct line lines[512];
    size_t line_count;
    size_t told; /* changes */
};

static void on_change(void *context, struct ml_informer *informer, struct ml_object *old,
                      struct ml_object *new)
{
    struct cut_world *self = context;
    (void)informer;
    assert_true(old || new);
    self->told++;
}

static void on_synced(void *context, struct ml_informer *informer)
{
    (void)context;
    (void)informer;
}

static void read_stream(struct cut_world *self)
{
    char bytes[8192];
    FILE *file = fopen(STREAM, "r");
    assert_non_null(file);
    for (size_t len; (len = fread(bytes, 1, sizeof bytes, file)) > 0;)
        ml_buf_append(&self->stream, bytes, len);
    fclose(file);
    for (size_t at = 0; at < self->stream.len;) {
        const char *newline = memchr(self->stream.ptr + at, '\n', self->stream.len - at);
        assert_non_null(newline);
        struct line *line = &self->lines[self->line_count++];
        line->start = at;
        line->end = at = (size_t)(newline + 1 - self->stream.ptr);
        struct watch_event event;
        struct ml_err err = ML_ERR_INIT;
        struct ml_str text = {self->stream.ptr + line->start, line->end - line->start - 1};
        assert_int_equal(watch_event_parse(text, &event, &err), 0);
        ML_AUTO_FREE char *version = watch_event_version(event.object);
        ML_AUTO_FREE char *name = ml_json_find_string(event.object, "metadata", "name", NULL);
        line->version = atoi(version);
        line->type = event.type;
        line->object = event.object;
        snprintf(line->name, sizeof line->name, "%s", name ? name : "");
        assert_true(self->line_count < ML_COUNT(self->lines));
    }
}

/* In an open watch from START, with an empty cache. */
static struct fake_call *begin(struct cut_world *self)
{
    self->informer = ml_informers_get(self->all.informers, &configmaps, NULL);
    self->listener = (struct ml_listener){
        .change = on_change, .synced = on_synced, .context = self};
    ml_informer_listen(self->informer, &self->listener);
    ml_loop_poll(self->all.world.loop);
    fake_reply(
        fake_next(self->all.world.server), 200,
        "{\"kind\":\"ConfigMapList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}");
    ml_loop_poll(self->all.world.loop);
    struct fake_call *watch = fake_next(self->all.world.server);
    fake_head(watch, 200);
    self->told = 0;
    return watch;
}

static void leave(struct cut_world *self)
{
    ml_informer_unlisten(&self->listener);
    ml_informer_put(ml_take(&self->informer));
    ml_loop_poll(self->all.world.loop);
}

static int setup(void **state)
{
    struct cut_world *self = ml_new(struct cut_world);
    informers_world_init(&self->all, NULL);
    read_stream(self);
    *state = self;
    return 0;
}

static int teardown(void **state)
{
    struct cut_world *self = *state;
    ml_buf_fini(&self->stream);
    informers_world_fini(&self->all);
    free(self);
    return 0;
}

static void feed(struct cut_world *self, struct fake_call *watch, size_t from, size_t to)
{
    assert_true(fake_piece_bytes(watch, (struct ml_str){self->stream.ptr + from, to - from}));
}

/* The object of this name after the first `whole` lines; NULL: there is none. */
static const struct line *find_object(const struct cut_world *self, size_t whole, const char *name)
{
    for (size_t i = whole; i-- > 0;)
        if (self->lines[i].type != WATCH_BOOKMARK && strcmp(self->lines[i].name, name) == 0)
            return self->lines[i].type == WATCH_DELETED ? NULL : &self->lines[i];
    return NULL;
}

/* Answers a list as the server would after the first `whole` lines. `name`: of the one object that
 * is asked for; NULL: all. */
static void answer_list(const struct cut_world *self, struct fake_call *call, size_t whole,
                        int version, const char *name)
{
    ML_AUTO(ml_buf_fini) struct ml_buf body = ML_BUF_INIT;
    ml_buf_printf(&body,
                  "{\"kind\":\"ConfigMapList\",\"metadata\":{\"resourceVersion\":\"%d\"},"
                  "\"items\":[",
                  version);
    const char *comma = "";
    for (size_t i = 0; i < whole; i++) {
        const struct line *line = &self->lines[i];
        if (find_object(self, whole, line->name) != line || (name && strcmp(name, line->name) != 0))
            continue;
        ml_buf_printf(&body, "%s" ML_STR_FMT, comma, ML_STR_ARG(line->object));
        comma = ",";
    }
    ml_buf_puts(&body, "]}");
    fake_reply(call, 200, ml_buf_cstr(&body));
}

/* Sends the changes behind `begin` again, as a server does: the watch may be resumed at the newest
 * object, and deletions came after that. */
static void send_again(struct cut_world *self, struct fake_call *watch, size_t whole, int begin)
{
    for (size_t i = 0; i < whole; i++)
        if (self->lines[i].type != WATCH_BOOKMARK && self->lines[i].version > begin)
            feed(self, watch, self->lines[i].start, self->lines[i].end);
}

/* The connection is lost after the first `whole` lines; returns the watch that follows. First the
 * newest object is asked for. Behind that the watch is resumed; else a list follows. The watch has
 * lasted, and the next begins with a bookmark, so that no pause is due. */
static struct fake_call *cut(struct cut_world *self, struct fake_call *watch, size_t whole,
                             int version)
{
    advance(&self->all.world, 1000);
    fake_fail(watch, ML_ENETWORK, "cut");
    ml_loop_poll(self->all.world.loop);
    struct fake_call *next = fake_next(self->all.world.server);
    for (int lists = 0; !has_query(next, "watch"); lists++) {
        assert_true(lists < 2);
        const char *name = strstr(query_of(next, "fieldSelector"), "metadata.name%3D");
        answer_list(self, next, whole, version, name ? name + strlen("metadata.name%3D") : NULL);
        ml_loop_poll(self->all.world.loop);
        next = fake_next(self->all.world.server);
    }
    int begin = atoi(query_of(next, "resourceVersion"));
    assert_in_range(begin, START, version);
    fake_head(next, 200);
    send_again(self, next, whole, begin);
    send_bookmark(next, version);
    return next;
}

/* All that the cache holds, for comparison. */
static uint64_t sum_of(struct cut_world *self)
{
    const struct ml_store *store = ml_informer_store(self->informer);
    size_t cursor = 0;
    uint64_t sum = ml_store_len(store);
    for (struct ml_object *object; (object = ml_store_next(store, &cursor));) {
        ML_AUTO(ml_buf_fini) struct ml_buf json = ML_BUF_INIT;
        uint64_t hash = 14695981039346656037u;
        ml_object_json(object, &json);
        for (size_t i = 0; i < json.len; i++)
            hash = (hash ^ (unsigned char)json.ptr[i]) * 1099511628211u;
        sum += hash;
    }
    return sum;
}

/* Every byte: each line is cut at each of its bytes before it comes whole. */
static void test_watch_cut_at_every_byte_is_resumed_behind_the_last_event(void **state)
{
    struct cut_world *self = *state;
    struct fake_call *watch = begin(self);
    feed(self, watch, 0, self->stream.len);
    uint64_t wanted = sum_of(self);
    size_t changes = self->told, tries = 0;
    fake_end(watch);
    leave(self);
    watch = begin(self);
    int version = START;
    for (size_t i = 0; i < self->line_count; i++) {
        const struct line *line = &self->lines[i];
        for (size_t at = line->start; at < line->end; at++, tries++) {
            size_t told = self->told;
            feed(self, watch, line->start, at);
            assert_int_equal(self->told, told);
            watch = cut(self, watch, i, version);
        }
        feed(self, watch, line->start, line->end);
        version = ML_MAX(version, line->version);
    }
    assert_int_equal(self->told, changes);
    assert_true(sum_of(self) == wanted);
    assert_int_equal(tries, self->stream.len);
    leave(self);
    faults_tried("F11", tries);
}

/* With all that came before in the same connection; the server then sends what it has not seen, as
 * it does: the rest. A prime step, for each try is the whole stream. */
static void test_watch_cut_far_into_its_stream_loses_nothing(void **state)
{
    struct cut_world *self = *state;
    size_t tries = 0, changes = 0;
    uint64_t wanted = 0;
    for (size_t at = self->stream.len; at != SIZE_MAX; at = at < 211 ? SIZE_MAX : at - 211) {
        size_t whole = 0;
        int version = START;
        struct fake_call *watch = begin(self);
        for (; whole < self->line_count && self->lines[whole].end <= at; whole++)
            version = ML_MAX(version, self->lines[whole].version);
        feed(self, watch, 0, at);
        watch = cut(self, watch, whole, version);
        if (whole < self->line_count)
            feed(self, watch, self->lines[whole].start, self->stream.len);
        if (at == self->stream.len) {
            wanted = sum_of(self);
            changes = self->told;
        }
        assert_int_equal(self->told, changes);
        assert_true(sum_of(self) == wanted);
        leave(self);
        tries++;
    }
    faults_tried("F11", tries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_watch_cut_at_every_byte_is_resumed_behind_the_last_event, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watch_cut_far_into_its_stream_loses_nothing, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
