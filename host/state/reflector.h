/* L4 state. Reports all objects of one kind in one namespace (or all) to its owner: LIST, then
 * WATCH, for ever, through all errors. An explicit state machine after client-go's reflector;
 * a pure function decides the next step (reflector_next in reflector_fsm.h).
 *
 * It never publishes part of a list, and never uses the resourceVersion of a list item. After a cut
 * it resumes from its last resourceVersion; it lists again only when it must. It does not apply a
 * list that is older than what it has already reported. */
#pragma once

#include "base/map.h"
#include "base/random.h"
#include "kube/client.h"
#include "kube/object.h"

/* ---- what is watched ---- */

/* Which objects of a kind: all, or those that selectors match. The server selects. */
struct ml_selection {
    struct ml_str labels; /* a label selector; empty: all */
    struct ml_str fields; /* a field selector; empty: all */
    bool metadata_only;   /* only the metadata of each object */
};

bool ml_selection_eq(const struct ml_selection *a, const struct ml_selection *b);

/* Makes an object of what the server sent; of its metadata alone when only that is selected (a
 * server without PartialObjectMetadata sends whole objects). As ml_object_new. */
ML_NODISCARD int ml_selection_object(const struct ml_selection *selection, struct ml_dict *dict,
                                     const struct ml_kind *kind, struct ml_str json,
                                     struct ml_object **out, struct ml_err *err);

/* ---- the reflector ---- */

/* The reason in the error when the server shows an old state. */
#define REFLECTOR_BEHIND "ServerBehind"

/* Called by a reflector in the order of the server. All calls come from the loop. */
struct ml_reflector_handler {
    /* A list at the most recent version is requested now: it will show everything that was written
     * before this call. */
    void (*listing)(void *context);
    /* A complete list, consistent at `rv`: struct ml_object by key, borrowed. */
    void (*replace)(void *context, const struct ml_set *objects, uint64_t rv);
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
};

/* Features that the server turned out to lack for a kind. Shared by the reflectors of it. */
struct ml_reflector_server {
    const struct ml_kind *kind;
    struct ml_list node; /* its owner's */
    bool no_streams;
    bool no_metadata;
};

/* All borrowed for as long as the reflector lives. */
struct ml_reflector_opts {
    struct ml_client *client;
    struct ml_loop *loop;
    struct ml_random *random;
    const struct ml_kind *kind;
    struct ml_str ns;   /* empty: all */
    struct ml_str name; /* empty: all; else this one object */
    const struct ml_selection *selection;
    bool streams; /* lists are asked for as streams (WatchList) */
    struct ml_reflector_server *server;
    struct ml_dict *dict;
    const struct ml_reflector_handler *handler;
    void *context;
};

struct ml_reflector;

struct ml_reflector *ml_reflector_new(const struct ml_reflector_opts *opts); /* starts at once */
void ml_reflector_free(struct ml_reflector *reflector); /* stops; no call comes afterwards.
                                                           Not from within one of its calls */
