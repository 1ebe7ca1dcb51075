/* L6 operator. The structs of ml_scripts, for scripts.c, which has all sources, and scripts_slot.c,
 * which has one file and its controller; the functions are of the latter. */
#pragma once

#include "operator/controller.h"
#include "operator/loader.h"
#include "operator/scripts.h"

#define SOURCES_MAX     64
#define CONTROLLERS_MAX 100 /* those without a file keep running and count */

/* One source with its loader. */
struct feed {
    struct ml_scripts *scripts;
    struct ml_source *source;
    struct ml_loader *loader;
    bool loaded;             /* at least once */
    struct ml_err trouble;   /* why its source could not be read when last tried */
    struct ml_timer missing; /* until controllers go whose file is gone: of a path in `dev` */
    uint64_t removals_told;  /* of names that are to be removed and are not here */
    struct ml_last_good *last_good; /* NULL: none is kept */
};

/* One file of one source, and its controller. */
struct slot {
    struct feed *feed;
    char *file;
    struct ml_controller *controller; /* NULL until a version was good */
    struct ml_controller *successor;  /* same file, other name: takes over when it is live */
    uint64_t fingerprint;             /* of the version offered last */
    uint64_t refused;                 /* of the set refused last; 0: the newest is not refused */
    uint64_t refused_text;            /* of the text of the file in that set */
    struct ml_err why;                /* why the newest version was refused */
    bool missing;                     /* the file is gone from its source */
    char *removed;                    /* the name of its controller, which was removed; or NULL */
    size_t draining;                  /* controllers of it in ml_scripts.draining */
    bool dead;                        /* freed when those have ended */
    struct ml_list node;
};

struct ml_scripts {
    struct ml_services *services;
    struct ml_script_limits limits;
    struct ml_crash_marker *marker; /* NULL: none is kept */
    struct feed feeds[SOURCES_MAX];
    size_t feed_count;
    struct ml_list slots;
    struct ml_list dead; /* slots */
    /* Removed, or replaced by controllers of other names; freed when their finalizers are gone and
     * their reconciles have ended. */
    struct ml_controller *draining[CONTROLLERS_MAX];
    size_t draining_count;
    bool stopping;
    size_t running; /* controllers that have not stopped yet */
    void (*stopped)(void *context);
    void *stopped_context;
    struct ml_task stopped_task;
    struct ml_metric_family *refusals;
    struct ml_metric_family *refused; /* 1: what its source has is not what runs */
    struct ml_metric_family *quarantines;
    struct ml_metric_family *loads;
    struct ml_metric *without_file, *not_working;
    struct ml_metrics_collector collector;
    void (*live)(void *context); /* NULL: nobody asked */
    void *live_context;
};

struct slot *slot_find(const struct feed *feed, struct ml_str file); /* NULL: there is none */
struct slot *slot_get(struct feed *feed, struct ml_str file); /* makes it when there is none */
/* Its controllers go with it; while some of them drain, it stays among the dead ones. */
void slot_free(struct slot *slot);
/* For a file that never was a controller and is gone, or is a module: readiness must not wait for
 * it. NULL is fine. */
void slot_free_unless_controller(struct slot *slot);
/* The newest good version: offered, or else current; or NULL. Borrowed. */
struct ml_script *slot_script(const struct slot *slot);
/* A version of it is live. */
bool slot_works(const struct slot *slot);
/* Says so in the log, as a metric, and as an Event for the author. `last_good`: the version that is
 * about to run instead, or NULL. */
void slot_refuse(struct slot *slot, const struct ml_err *err, bool quarantined,
                 const struct ml_script *last_good);
/* Sets the gauge: is what its source has not what runs? */
void slot_show_refused(const struct slot *slot, bool refused);
/* Takes over the reference to `script`. `fingerprint`: of the files that it was made from. */
void slot_offer(struct slot *slot, struct ml_script *script, uint64_t fingerprint);
/* `which` 0: its controller, 1: the successor, which answers as soon as it is asked by its name.
 * False: there is none. */
bool slot_webhook(const struct slot *slot, size_t which, struct ml_webhook_target *out);
/* Names of the controllers that keep running without a file: "a, b, c". Returns how many. */
size_t scripts_list_without_file(const struct ml_scripts *self, struct ml_buf *names);

/* Begins to remove its controller, unless that is being done. */
void slot_remove(struct slot *slot);
/* No object carries the finalizer of the controller any more. */
void slot_on_removed(void *context, struct ml_controller *controller, size_t count);
