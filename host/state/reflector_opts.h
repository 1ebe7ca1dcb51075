/* L4 state. What a reflector watches, and what it reports to whom: for its owner, and for the parts
 * that it is made of. */
#pragma once

#include "base/random.h"
#include "kube/client.h"
#include "state/selection.h"

/* The reason in the error when the server shows an old state. */
#define REFLECTOR_BEHIND "ServerBehind"

/* What a reflector reports, in the order of the server. All calls come from the loop. */
struct ml_reflector_handler {
    /* A list at the most recent version is requested now: it will show everything that was written
     * before this call. */
    void (*listing)(void *context);
    /* A complete list, consistent at `rv`. The objects are borrowed. */
    void (*replace)(void *context, struct ml_object *const *objects, size_t count, uint64_t rv);
    void (*upsert)(void *context, struct ml_object *object);
    void (*remove)(void *context, struct ml_object *last); /* as the DELETED event carried it */
    /* After each event and bookmark: everything up to `rv` has been reported. */
    void (*progress)(void *context, uint64_t rv);
    /* An object that could not be read; the stream goes on. `key` may be empty. */
    void (*poisoned)(void *context, struct ml_str key, const struct ml_err *err);
    /* Could not list or watch (403, 404, network, …) and will try again in `retry_ms`. Called on
     * each try; NULL, once, when it works again. */
    void (*trouble)(void *context, const struct ml_err *err, int64_t retry_ms);
    /* The object that is cached for `key` now (borrowed, or NULL), so that a list can reuse what
     * did not change instead of holding everything twice. */
    struct ml_object *(*current)(void *context, struct ml_str key);
    /* A list, a streaming list or a watch has ended: how, in one word ("gone", "ended", …), and
     * whether a list follows. */
    void (*turn)(void *context, bool watched, const char *how, bool lists);
    /* The server was restored to an earlier state: the list that comes next begins a new epoch,
     * in which versions start lower. */
    void (*restored)(void *context, struct ml_str known, struct ml_str shown);
    /* The collection answered 404. Each time. */
    void (*missing)(void *context);
};

/* Features that the server turned out to lack for a resource. Shared by the reflectors of it. */
struct ml_reflector_server {
    bool no_streams;
    bool no_metadata;
};

struct ml_reflector_opts {
    struct ml_client *client;
    struct ml_loop *loop;
    struct ml_random *random;
    const struct ml_kind *kind;
    struct ml_str ns;                     /* empty: all; copied */
    struct ml_str name;                   /* empty: all; else this one object; copied */
    const struct ml_selection *selection; /* borrowed for life */
    bool streams;                         /* lists are asked for as streams (WatchList) */
    struct ml_reflector_server *server;   /* borrowed for life */
    struct ml_dict *dict;                 /* borrowed for life */
    const struct ml_reflector_handler *handler;
    void *context;
};
