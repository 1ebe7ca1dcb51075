/* What the unit tests of the reflector share: one on the world of state_world.h, whose handler
 * writes down all that it is told. */
#pragma once

#include "state_world.h"

#include "state/reflector.h"
#include "state/store.h"

/* A reflector and all that it told, as one line of text. */
struct reflector_world {
    struct world world;
    struct ml_dict *dict;
    struct ml_store *store; /* what current() answers from */
    struct ml_reflector *reflector;
    struct ml_buf heard;
    int64_t retry_ms;
    uint64_t progress;
    struct ml_reflector_server server;
    struct ml_selection selection;
    bool streams;
    char turn[64];               /* the last one */
    int missing;                 /* times told */
    uint64_t progress_when_told; /* of the last object */
};

static inline void hear(struct reflector_world *self, const char *what, struct ml_object *object)
{
    ml_buf_printf(&self->heard, " %s", what);
    self->progress_when_told = self->progress;
    if (object)
        ml_buf_printf(&self->heard, " " ML_STR_FMT "@" ML_STR_FMT,
                      ML_STR_ARG(ml_object_name(object)), ML_STR_ARG(ml_object_rv(object)));
}

static inline void on_listing(void *context)
{
    hear(context, "listing", NULL);
}

static inline void on_replace(void *context, struct ml_object *const *objects, size_t count,
                              uint64_t rv)
{
    struct reflector_world *self = context;
    ml_store_free(self->store);
    self->store = ml_store_new();
    ml_buf_printf(&self->heard, " replace %llu:", (unsigned long long)rv);
    for (size_t i = 0; i < count; i++) {
        ml_object_unref(ml_store_put(self->store, objects[i]));
        ml_buf_printf(&self->heard, " " ML_STR_FMT "@" ML_STR_FMT,
                      ML_STR_ARG(ml_object_name(objects[i])), ML_STR_ARG(ml_object_rv(objects[i])));
    }
}

static inline void on_upsert(void *context, struct ml_object *object)
{
    struct reflector_world *self = context;
    hear(self, "upsert", object);
    ml_object_unref(ml_store_put(self->store, object));
}

static inline void on_remove(void *context, struct ml_object *last)
{
    struct reflector_world *self = context;
    hear(self, "remove", last);
    ml_object_unref(ml_store_remove(self->store, ml_object_key(last)));
}

static inline void on_progress(void *context, uint64_t rv)
{
    ((struct reflector_world *)context)->progress = rv;
}

static inline void on_poisoned(void *context, struct ml_str key, const struct ml_err *err)
{
    struct reflector_world *self = context;
    assert_int_not_equal(err->kind, 0);
    ml_buf_printf(&self->heard, " poisoned(" ML_STR_FMT ")", ML_STR_ARG(key));
}

static inline void on_trouble(void *context, const struct ml_err *err, int64_t retry_ms)
{
    struct reflector_world *self = context;
    self->retry_ms = retry_ms;
    ml_buf_printf(&self->heard, " trouble(%s)", err ? ml_err_name(err->kind) : "over");
}

static inline struct ml_object *on_current(void *context, struct ml_str key)
{
    return ml_store_get(((struct reflector_world *)context)->store, key);
}

static inline void on_turn(void *context, bool watched, const char *how, bool lists)
{
    struct reflector_world *self = context;
    snprintf(self->turn, sizeof self->turn, "%s %s%s", watched ? "watch" : "list", how,
             lists ? ", list" : "");
}

static inline void on_restored(void *context, struct ml_str known, struct ml_str shown)
{
    ml_buf_printf(&((struct reflector_world *)context)->heard,
                  " restored(" ML_STR_FMT ">" ML_STR_FMT ")", ML_STR_ARG(known), ML_STR_ARG(shown));
}

static inline void on_missing(void *context)
{
    ((struct reflector_world *)context)->missing++;
}

static const struct ml_reflector_handler handler = {
    on_listing, on_replace, on_upsert, on_remove,   on_progress, on_poisoned,
    on_trouble, on_current, on_turn,   on_restored, on_missing,
};

static inline void world_start(struct reflector_world *self, const char *ns, const char *name)
{
    ml_reflector_free(self->reflector);
    self->reflector = ml_reflector_new(&(struct ml_reflector_opts){
        .client = self->world.client,
        .loop = self->world.loop,
        .random = &self->world.random,
        .kind = &pods,
        .ns = ml_str_of(ns),
        .name = ml_str_of(name),
        .selection = &self->selection,
        .streams = self->streams,
        .server = &self->server,
        .dict = self->dict,
        .handler = &handler,
        .context = self,
    });
    ml_reflector_start(self->reflector);
    ml_loop_poll(self->world.loop);
}

static inline int setup(void **state)
{
    struct reflector_world *self = ml_new(struct reflector_world);
    world_init(&self->world);
    self->dict = ml_dict_new();
    self->store = ml_store_new();
    world_start(self, "", "");
    *state = self;
    return 0;
}

static inline int teardown(void **state)
{
    struct reflector_world *self = *state;
    ml_reflector_free(self->reflector);
    ml_store_free(self->store);
    ml_dict_unref(self->dict);
    ml_buf_fini(&self->heard);
    world_fini(&self->world);
    free(self);
    return 0;
}

/* What was told since the last time. */
static inline void assert_heard(struct reflector_world *self, const char *want)
{
    const char *got = ml_buf_cstr(&self->heard);
    assert_string_equal(*got == ' ' ? got + 1 : got, want);
    ml_buf_clear(&self->heard);
}

static inline struct fake_call *next_call(struct reflector_world *self)
{
    ml_loop_poll(self->world.loop);
    return fake_next(self->world.server);
}

/* The next request, which is a LIST at `version` ("": the most recent). */
static inline struct fake_call *expect_list(struct reflector_world *self, const char *version)
{
    struct fake_call *call = next_call(self);
    assert_false(has_query(call, "watch"));
    assert_string_equal(query_of(call, "resourceVersion"), version);
    return call;
}

static inline struct fake_call *expect_watch(struct reflector_world *self, const char *version)
{
    struct fake_call *call = next_call(self);
    assert_string_equal(query_of(call, "watch"), "1");
    assert_string_equal(query_of(call, "resourceVersion"), version);
    return call;
}

/* Nothing is asked for `ms`. */
static inline void expect_silence(struct reflector_world *self, int64_t ms)
{
    advance(&self->world, ms);
    fake_expect_none(self->world.server);
}

/* Nothing for the shortest first backoff; then there is after the longest. */
static inline void expect_backoff(struct reflector_world *self)
{
    expect_silence(self, 799);
    advance(&self->world, 801);
}

/* A fresh reflector beside a server that has seen others: its first LIST. */
static inline struct fake_call *restart(struct reflector_world *self)
{
    world_start(self, "", "");
    struct fake_call *last = fake_call_at(self->world.server, fake_count(self->world.server) - 1);
    while (fake_next(self->world.server) != last)
        continue;
    ml_buf_clear(&self->heard);
    return last;
}

/* Past the first list, in an open watch from version 5, and heard nothing. */
static inline struct fake_call *till_watching(struct reflector_world *self)
{
    ML_AUTO_FREE char *items = ml_asprintf("%s,%s", pod("a", "ua", 3), pod("b", "ub", 4));
    reply_list(expect_list(self, ""), 5, "", items);
    struct fake_call *watch = expect_watch(self, "5");
    fake_head(watch, 200);
    ml_buf_clear(&self->heard);
    return watch;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
