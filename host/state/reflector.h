/* L4 state. Keeps somebody informed of all objects of one kind in one namespace (or all): LIST,
 * then WATCH, for ever, through whatever goes wrong. An explicit state machine after
 * client-go's reflector; the decision (reflector_next in reflector_fsm.h) is a pure function
 * and the input and output stand apart from it.
 *
 * Never publishes part of a list; never takes a resourceVersion from a list item; keeps the
 * last one over a cut and resumes from it; lists again only when it must; does not apply a list
 * that is older than what it told already. */
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/random.h"
#include "kube/client.h"
#include "kube/object.h"
#include "state/selection.h"

struct ml_reflector;

/* The reason of a trouble that is none of the server's: it shows the past. */
#define REFLECTOR_BEHIND "ServerBehind"

/* What a reflector tells, in the order in which the server told it. All from the loop. */
struct ml_reflector_handler {
    /* A list at the most recent version is asked for now: what it brings is not older than
     * anything that was written before this call. */
    void (*listing)(void *context);
    /* A complete list, consistent at `rv`. Takes over nothing: reference what is kept. */
    void (*replace)(void *context, struct ml_object *const *objects, size_t count, uint64_t rv);
    void (*upsert)(void *context, struct ml_object *object);
    void (*remove)(void *context, struct ml_object *last); /* as the DELETED event carried it */
    /* After each event and bookmark: everything up to `rv` has been told. */
    void (*progress)(void *context, uint64_t rv);
    /* An object that could not be read; the stream goes on. `key` may be empty. */
    void (*poisoned)(void *context, struct ml_str key, const struct ml_err *err);
    /* Could not list or watch (403, 404, network, …) and will try again in `retry_ms`. Told on
     * each change of kind, not on each try; NULL when it works again. */
    void (*trouble)(void *context, const struct ml_err *err, int64_t retry_ms);
    /* Find the object that is held for `key` now (borrowed, or NULL): lets a list reuse what
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

/* What the server turned out not to do for a resource; for good. Shared by its reflectors. */
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

struct ml_reflector *ml_reflector_new(const struct ml_reflector_opts *opts);
void ml_reflector_start(struct ml_reflector *reflector);
void ml_reflector_free(struct ml_reflector *reflector); /* stops; no call comes afterwards.
                                                           Not from within one of its calls */
