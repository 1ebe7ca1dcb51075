/* A client before a scripted transport, on a fake clock: what the units of kube/client share. */
#pragma once

#include "unit.h"

#include "fake_transport.h"
#include "kube/client_internal.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct ml_kind pods = {"v1", "", "v1", "Pod", "pods", true, true};

struct world {
    struct ml_clock_fake clock;
    struct ml_loop *loop;
    struct fake_transport *server;
    struct ml_metrics *metrics;
    struct ml_random random;
    struct ml_log log;
    int log_fd;
    struct ml_client *client;
    /* What done() got last. */
    int done_count;
    struct ml_err err;
    char body[1024];
    /* What a stream got. */
    int opened;
    char pieces[1024];
    struct ml_client_call *cancel_in_open, *cancel_in_data;
};

static inline int world_make(void **state, size_t in_flight_max)
{
    struct world *world = ml_new(struct world);
    ml_clock_fake_init(&world->clock, 0);
    world->loop = ml_loop_new(&world->clock.clock);
    world->server = fake_transport_new(world->loop);
    world->metrics = ml_metrics_new();
    ml_random_init(&world->random, 1);
    world->log_fd = memfd_create("log", 0);
    ml_log_init(&world->log, &world->clock.clock, world->log_fd, ML_LOG_TEXT, ML_LOG_INFO);
    world->client = ml_client_new(&(struct ml_client_opts){
        .loop = world->loop,
        .transport = fake_transport_seam(world->server),
        .metrics = world->metrics,
        .random = &world->random,
        .log = &world->log,
        .in_flight_max = in_flight_max,
    });
    *state = world;
    return 0;
}

static inline int setup(void **state)
{
    return world_make(state, 0);
}

static inline int setup_narrow(void **state)
{
    return world_make(state, 1);
}

static inline int teardown(void **state)
{
    struct world *world = *state;
    ml_client_free(world->client);
    fake_transport_free(world->server);
    ml_metrics_free(world->metrics);
    ml_loop_free(world->loop);
    close(world->log_fd);
    free(world);
    return 0;
}

static inline void on_done(void *context, struct ml_str body, const struct ml_err *err)
{
    struct world *world = context;
    world->done_count++;
    world->err = err ? *err : ML_ERR_INIT;
    snprintf(world->body, sizeof world->body, ML_STR_FMT, ML_STR_ARG(body));
}

static inline struct ml_client_call *send_request(struct world *world, enum ml_verb verb,
                                                  const char *name)
{
    return ml_client_send(world->client,
                          &(struct ml_client_request){
                              .verb = verb,
                              .kind = &pods,
                              .ns = ML_STR("default"),
                              .name = ml_str_of(name),
                              .body = ML_STR("{}"),
                              .field_manager = "moonloop",
                          },
                          on_done, world);
}

static inline void advance(struct world *world, int64_t ms)
{
    ml_clock_fake_advance(&world->clock, ms * ML_NS_PER_MS);
    ml_loop_poll(world->loop);
}

static inline void reply_retry_after(struct fake_call *call, int status, int64_t seconds)
{
    fake_reply_head(call,
                    &(struct ml_http_head){.status = status, .retry_after_ms = seconds * 1000}, "");
}

#define WITH(test)   cmocka_unit_test_setup_teardown(test, setup, teardown)
#define NARROW(test) cmocka_unit_test_setup_teardown(test, setup_narrow, teardown)
