/* L6 operator, private. The state of all scripts, and the files that share it: scripts.c has their
 * life, scripts_ready.c what is asked about them. */
#pragma once

#include "operator/controller.h"
#include "operator/last_good.h"
#include "operator/loader.h"
#include "operator/scripts.h"

#define SOURCES_MAX     64
#define CONTROLLERS_MAX 100 /* of a process; what lost its file keeps running and counts */

/* One file of one source, and what came of it. */
struct slot {
    struct ml_scripts *scripts;
    struct ml_source *source;
    char *file;
    struct ml_controller *controller; /* works; NULL as long as no version was good */
    struct ml_controller *successor;  /* same file, other name: takes over when it is live */
    uint64_t fingerprint;             /* of the version offered last */
    uint64_t refused;                 /* of the set that was refused last; 0: none is */
    uint64_t refused_text;            /* of the file alone, when it was */
    struct ml_err why;                /* it was refused, or is not there */
    bool missing;                     /* the source has no such file any more */
    struct ml_list node;
};

/* A controller whose file has another one by now; it ends when its work is done. */
struct draining {
    struct ml_controller *controller;
    struct ml_list node;
};

struct feed {
    struct ml_scripts *scripts;
    struct ml_source *source;
    struct ml_loader *loader;
    bool loaded;                    /* its files were, at least once */
    struct ml_last_good *last_good; /* NULL: none is kept */
    uint64_t proposed;              /* fingerprint of the set that is to become it; 0: none */
    struct ml_timer proof;
};

struct ml_scripts {
    struct ml_cluster *cluster;
    struct ml_script_limits limits;
    struct ml_crash_marker *marker; /* NULL: none is kept */
    struct feed feeds[SOURCES_MAX];
    size_t feed_count;
    struct ml_list slots;
    struct ml_list draining;
    bool stopping;
    size_t running; /* controllers that have not stopped yet */
    void (*stopped)(void *context);
    void *stopped_context;
    struct ml_metric_family *refusals;
    struct ml_metric_family *quarantines;
    struct ml_metric_family *loads;
    struct ml_metric *without_file;
};

/* The newest version of a file that was good: on its way or at work. */
static inline struct ml_script *slot_script(const struct slot *slot)
{
    const struct ml_controller *controller = slot->successor ? slot->successor : slot->controller;
    if (!controller)
        return NULL;
    struct ml_script *offered = ml_controller_offered(controller);
    return offered ? offered : ml_controller_current(controller);
}

static inline bool slot_works(const struct slot *slot)
{
    return slot->controller && ml_controller_current(slot->controller);
}

/* Every file of the source runs as it is now, at work and not standing by. */
bool scripts_of_source_work(const struct ml_scripts *scripts, const struct ml_source *source);
