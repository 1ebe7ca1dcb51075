/* What the unit tests above the informer share: informers on the world of state_world.h, and one
 * of pods brought to an open watch. */
#pragma once

#include "state_world.h"

#include "state/informer.h"

#include <sys/mman.h>
#include <unistd.h>

struct informers_world {
    struct world world;
    struct ml_log log;
    int log_fd;
    struct ml_informers *informers;
};

static inline void informers_world_init(struct informers_world *self, const char *const *namespaces)
{
    world_init(&self->world);
    self->log_fd = memfd_create("log", 0);
    ml_log_init(&self->log, &self->world.clock.clock, self->log_fd, ML_LOG_TEXT, ML_LOG_DEBUG);
    self->informers = ml_informers_new(&(struct ml_informers_opts){
        .client = self->world.client,
        .loop = self->world.loop,
        .random = &self->world.random,
        .log = &self->log,
        .metrics = self->world.metrics,
        .namespaces = namespaces,
    });
}

static inline void informers_world_fini(struct informers_world *self)
{
    ml_informers_free(self->informers);
    world_fini(&self->world);
    close(self->log_fd);
}

/* How often the log has `text` so far. */
static inline size_t count_logged(const struct informers_world *self, const char *text)
{
    char log[16384] = "";
    ssize_t len = pread(self->log_fd, log, sizeof log - 1, 0);
    size_t count = 0;
    assert_true(len >= 0);
    for (const char *at = log; (at = strstr(at, text)); at++)
        count++;
    return count;
}

/* Answers the LIST that was asked for, and opens the watch that follows. */
static inline struct fake_call *list_and_watch(struct informers_world *self, int rv,
                                               const char *items)
{
    ml_loop_poll(self->world.loop);
    reply_list(fake_next(self->world.server), rv, "", items);
    ml_loop_poll(self->world.loop);
    struct fake_call *watch = fake_next(self->world.server);
    assert_true(has_query(watch, "watch"));
    fake_head(watch, 200);
    return watch;
}

/* Makes the watch end so that a list at its version follows; returns that list. */
static inline struct fake_call *till_relist(struct informers_world *self, struct fake_call *watch)
{
    assert_false(fake_piece(watch, "nonsense\n"));
    advance(&self->world, 60000);
    struct fake_call *list = fake_next(self->world.server);
    assert_false(has_query(list, "watch"));
    return list;
}

/* The same at the most recent version: the list at its own is too old. */
static inline struct fake_call *till_relist_at_any(struct informers_world *self,
                                                   struct fake_call *watch)
{
    fake_refuse(till_relist(self, watch), 410, "Expired", "old");
    ml_loop_poll(self->world.loop);
    struct fake_call *list = fake_next(self->world.server);
    assert_false(has_query(list, "resourceVersion"));
    return list;
}

/* The same of a server that was restored to an earlier state: it has shown version 1 for long, and
 * what the returned list shows from 2 on is taken for a new epoch. */
static inline struct fake_call *till_relist_restored(struct informers_world *self,
                                                     struct fake_call *watch)
{
    reply_list(till_relist_at_any(self, watch), 1, "", "");
    advance(&self->world, 60000);
    struct fake_call *list = fake_next(self->world.server);
    assert_false(has_query(list, "resourceVersion"));
    return list;
}
