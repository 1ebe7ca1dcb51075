/* What the unit tests of the state layer share: a loop on a fake clock, a client on the scripted
 * server, and short ways to say what that server answers. */
#pragma once

#include "unit.h"

#include "fake_transport.h"
#include "state/cluster.h"

#include <stdio.h>

static const struct ml_kind pods = {"v1", "", "v1", "Pod", "pods", true, true};

struct world {
    struct ml_clock_fake clock;
    struct ml_loop *loop;
    struct fake_transport *server;
    struct ml_metrics *metrics;
    struct ml_random random;
    struct ml_client *client;
};

static inline void world_init(struct world *world)
{
    ml_clock_fake_init(&world->clock, INT64_C(1700000000) * ML_NS_PER_S);
    world->loop = ml_loop_new(&world->clock.clock);
    world->server = fake_transport_new(world->loop);
    world->metrics = ml_metrics_new();
    ml_random_init(&world->random, 1);
    world->client = ml_client_new(&(struct ml_client_opts){
        .loop = world->loop,
        .transport = fake_transport_seam(world->server),
        .metrics = world->metrics,
        .random = &world->random,
    });
}

static inline void world_fini(struct world *world)
{
    ml_client_free(world->client);
    fake_transport_free(world->server);
    ml_metrics_free(world->metrics);
    ml_loop_free(world->loop);
}

static inline void advance(struct world *world, int64_t ms)
{
    ml_clock_fake_advance(&world->clock, ms * ML_NS_PER_MS);
    ml_loop_poll(world->loop);
}

/* A pod as the server sends it, in memory that the next call but seven takes again. */
static inline const char *pod(const char *name, const char *uid, int rv)
{
    static char texts[8][512];
    static size_t turn;
    char *text = texts[turn++ % ML_COUNT(texts)];
    snprintf(text, sizeof texts[0],
             "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\","
             "\"namespace\":\"default\",\"uid\":\"%s\",\"resourceVersion\":\"%d\"}}",
             name, uid, rv);
    return text;
}

/* A list of pods; `next` is the continue token. The caller frees it. */
static inline char *pod_list(int rv, const char *next, const char *items)
{
    return ml_asprintf("{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":"
                       "{\"resourceVersion\":\"%d\",\"continue\":\"%s\"},\"items\":[%s]}",
                       rv, next, items);
}

/* A line of a watch. The caller frees it. */
static inline char *event_line(const char *type, const char *object)
{
    return ml_asprintf("{\"type\":\"%s\",\"object\":%s}\n", type, object);
}

static inline void send_event(struct fake_call *watch, const char *type, const char *object)
{
    ML_AUTO_FREE char *line = event_line(type, object);
    assert_true(fake_piece(watch, line));
}

static inline void send_bookmark(struct fake_call *watch, int rv)
{
    char object[128];
    snprintf(object, sizeof object,
             "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"%d\"}}",
             rv);
    send_event(watch, "BOOKMARK", object);
}

static inline void reply_list(struct fake_call *call, int rv, const char *next, const char *items)
{
    ML_AUTO_FREE char *body = pod_list(rv, next, items);
    fake_reply(call, 200, body);
}

/* The value of a query parameter as the request has it, or "" without it. */
static inline const char *query_of(const struct fake_call *call, const char *name)
{
    static char value[128];
    ML_AUTO_FREE char *wanted = ml_asprintf("%s=", name);
    const char *at = strchr(call->path, '?');
    value[0] = '\0';
    while (at) {
        at++;
        if (strncmp(at, wanted, strlen(wanted)) == 0)
            snprintf(value, sizeof value, "%.*s", (int)strcspn(at + strlen(wanted), "&"),
                     at + strlen(wanted));
        at = strchr(at, '&');
    }
    return value;
}

static inline bool has_query(const struct fake_call *call, const char *name)
{
    ML_AUTO_FREE char *first = ml_asprintf("?%s=", name);
    ML_AUTO_FREE char *later = ml_asprintf("&%s=", name);
    return strstr(call->path, first) || strstr(call->path, later);
}
