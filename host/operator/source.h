/* L6 operator. Where scripts come from: a path, or a ConfigMap watched through the API. A source
 * notifies its handler of each complete set of files, and reports the results where
 * their author looks. */
#pragma once

#include "operator/files.h"
#include "state/services.h"

struct ml_source;

struct ml_source_handler {
    /* A complete set; borrowed. Also called when it is the same as before. */
    void (*files)(void *context, struct ml_source *source, const struct ml_files *files);
    /* There are no scripts to read: not found, deleted, unreadable. Called on each change, not on
     * each attempt. Running scripts keep running. */
    void (*trouble)(void *context, struct ml_source *source, const struct ml_err *err);
};

struct ml_source_class {
    void (*start)(struct ml_source *source);
    void (*report)(struct ml_source *source, bool warning, const char *reason, const char *note);
    void (*again)(struct ml_source *source); /* notifies once more of what there is */
    void (*free)(struct ml_source *source);
};

struct ml_source {
    const struct ml_source_class *class;
    char *name; /* "reconcilers/", "configmap moonloop-system/scripts": for messages */
    const struct ml_source_handler *handler;
    void *context;
    bool read;            /* `files` was called at least once */
    bool removes_missing; /* a file that is gone removes its controller; of a folder in `dev` */
    char *removed;        /* names of controllers that are to be removed, "a, b"; NULL: none */
};

/* The annotation of a ConfigMap that names them. */
#define ML_REMOVE_ANNOTATION "moonloop.dev/remove"

/* A file or folder, watched with inotify; the swap of a mounted ConfigMap's ..data link counts
 * as one change. */
struct ml_source *ml_source_path_new(struct ml_loop *loop, const char *path);

/* "NAMESPACE/NAME", checked by ml_source_configmap_check. */
struct ml_source *ml_source_configmap_new(struct ml_services *services, const char *where);
/* ML_EINVALID when it is not of that form. */
ML_NODISCARD int ml_source_configmap_check(const char *where, struct ml_err *err);

void ml_source_start(struct ml_source *source, const struct ml_source_handler *handler,
                     void *context);
void ml_source_free(struct ml_source *source); /* NULL is fine */

/* Reports to the author: an Event on the ConfigMap; nothing for a path. */
void ml_source_report(struct ml_source *source, bool warning, const char *reason, const char *note);

/* Notifies its handler once more, as if it had changed. */
void ml_source_again(struct ml_source *source);
/* Is the controller of that name to be removed? */
bool ml_source_removes(const struct ml_source *source, const char *name);

/* For the implementations. */
void ml_source_notify_files(struct ml_source *source, const struct ml_files *files);
void ml_source_notify_trouble(struct ml_source *source, const struct ml_err *err);
