/* L6 operator. Shared by the files of ml_scripts: scripts.c has which file has which controller,
 * and which versions it is offered; scripts_removal.c has the end of controllers. Private to these.
 */
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
    struct ml_cluster *cluster;
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
    struct ml_metric_family *quarantines;
    struct ml_metric_family *loads;
    struct ml_metric *without_file;
    void (*live)(void *context); /* NULL: nobody asked */
    void *live_context;
};

/* scripts.c */

/* What refers to the slot is gone, or goes with it. */
void slot_free(struct slot *slot);

/* scripts_removal.c */

/* The controller of the slot ends: first its finalizers go, then it stops. */
void slot_drain(struct slot *slot, struct ml_controller *controller);
/* Begins to remove its controller, unless that is being done. */
void slot_remove(struct slot *slot);
/* No object carries the finalizer of the controller any more. */
void slot_on_removed(void *context, struct ml_controller *controller, size_t count);
/* Is the finalizer of a controller of that name being taken off, as another one took over? One that
 * begins meanwhile would lose its own. */
bool scripts_remove_name(const struct ml_scripts *self, const char *name);
/* The controller was removed, and its source still says so. */
bool slot_stays_removed(const struct slot *slot, const char *name);
/* A set was loaded, or there is none: removes the controllers that its source wants removed. */
void feed_remove_controllers(struct feed *feed);
void feed_removal_init(struct feed *feed);
