/* L4 state. Inside of the reflector, one file for each thing it does: reflector.c goes from step
 * to step, reflector_request.c says what is asked for, reflector_pages.c lists, reflector_watch.c
 * watches, reflector_stream.c lists by a watch. Private to these. */
#pragma once

#include "state/backoff.h"
#include "state/reflector_epoch.h"
#include "state/reflector_fsm.h"
#include "state/reflector_list.h"
#include "state/store.h"
#include "state/watch_event.h"

struct ml_reflector {
    struct ml_reflector_opts opts;
    struct ml_clock *clock;
    char *ns;
    char *name;
    struct reflector_step step;
    struct ml_client_call *call;
    struct ml_timer retry;
    int64_t retry_ns; /* when it is due, monotonic */
    struct ml_client_await await;
    struct ml_backoff backoff;
    struct ml_err trouble; /* as told last; kind 0: none */

    char *version; /* everything up to it has been told; NULL before the first list */
    struct reflector_epoch epoch;

    struct reflector_list list;
    bool later_page;

    struct ml_json_lines lines;
    struct ml_timer idle;
    int64_t opened_ns;
    int64_t timeout_s;          /* asked of the server for this watch */
    size_t events;              /* of this watch */
    size_t flapping;            /* watches before this one that ended within a second */
    int64_t heard_ns;           /* the last list, event or bookmark, of whatever watch */
    bool bookmarks;             /* this server sends them */
    enum reflector_end verdict; /* of an ERROR event or a broken line */
    struct ml_store *shadow;    /* a streaming list as far as it came; NULL: none comes in */
};

/* reflector.c. The step is over; decides what follows and when. `err` may be NULL. */
void reflector_end(struct ml_reflector *self, enum reflector_end how, const struct ml_err *err);
void reflector_works(struct ml_reflector *self); /* whatever the trouble was, it is over */
/* A complete list of `objects` at `version`. 0 when it was published; ML_EUNAVAILABLE when it is
 * older than what is known. */
ML_NODISCARD int reflector_publish(struct ml_reflector *self, struct ml_object *const *objects,
                                   size_t count, const char *version, struct ml_err *err);
/* Everything up to `version` was told. Never goes back. */
void reflector_advance(struct ml_reflector *self, const char *version);
bool reflector_is_gone(const struct ml_err *err); /* 410, or a version not reached */

/* reflector_request.c. */
void reflector_list_url(const struct ml_reflector *self, struct ml_buf *url);
void reflector_watch_url(const struct ml_reflector *self, struct ml_buf *url);
const char *reflector_list_accept(const struct ml_reflector *self);
const char *reflector_watch_accept(const struct ml_reflector *self);

/* reflector_pages.c, reflector_watch.c: the steps. */
void reflector_start_list(struct ml_reflector *self);
void reflector_start_watch(struct ml_reflector *self);
void reflector_watch_init(struct ml_reflector *self);

/* reflector_stream.c. */
void reflector_stream_begin(struct ml_reflector *self);
void reflector_stream_drop(struct ml_reflector *self); /* nothing of it was told */
void reflector_stream_take(struct ml_reflector *self, const struct watch_event *event);
/* The bookmark behind the last initial event. As reflector_publish. */
ML_NODISCARD int reflector_stream_complete(struct ml_reflector *self, const char *version,
                                           struct ml_err *err);
