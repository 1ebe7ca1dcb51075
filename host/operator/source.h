/* L6 operator. The sources of scripts: a path, or a ConfigMap watched through the API. */
#pragma once

#include "operator/scripts.h"

/* The annotation of a ConfigMap that names controllers that are to be removed. */
#define ML_REMOVE_ANNOTATION "moonloop.dev/remove"

/* A file or folder, watched with inotify; the swap of a mounted ConfigMap's ..data link counts
 * as one change. Nobody reads reports. */
struct ml_source *ml_source_path_new(const char *path);

/* "NAMESPACE/NAME", checked by ml_source_configmap_check. Reports are Events on the ConfigMap. */
struct ml_source *ml_source_configmap_new(const char *where);
/* Adds the scripts in a ConfigMap (JSON). ML_ELIMIT as ml_files_add. */
ML_NODISCARD int ml_source_configmap_files(struct ml_str configmap, struct ml_files *files,
                                           struct ml_err *err);
/* ML_EINVALID when it is not of that form. */
ML_NODISCARD int ml_source_configmap_check(const char *where, struct ml_err *err);
