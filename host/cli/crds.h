/* L8 cli. The kinds that CustomResourceDefinitions in files define. */
#pragma once

#include "base/err.h"
#include "cli/command.h"
#include "kube/kind.h"
#include "script/analysis.h"

struct ml_crd_kind {
    char *name; /* "group/version/Kind" */
    char *plural;
    size_t definition; /* which of `definitions` */
};

/* Start with {0}. */
struct ml_crds {
    struct ml_crd_kind *kinds;
    size_t count;
    char **definitions; /* as they were read, JSON */
    size_t definition_count;
};

/* Adds the CRDs of YAML files, or of the manifests of folders; others in them are passed over.
 * ML_EINVALID, ML_EIO: a file cannot be read, or is no YAML. */
ML_NODISCARD int ml_crds_read(struct ml_crds *crds, const struct ml_option_list *paths,
                              struct ml_err *err);
void ml_crds_fini(struct ml_crds *crds);

/* Appends all manifests of the file or folder as JSON values to the array that is being written.
 * Errors as above. */
ML_NODISCARD int ml_crds_put(struct ml_json_writer *writer, const char *path, struct ml_err *err);

/* The plural of the kind, and its whole definition as JSON, which live as long as `crds`; NULL: it
 * is not among them. */
const char *ml_crds_plural(const struct ml_crds *crds, const struct ml_gvk *gvk);
const char *ml_crds_definition(const struct ml_crds *crds, const struct ml_gvk *gvk);

/* Gives the analysis, which wants kinds, the schemas of those that are among the CRDs, and all
 * kinds of the CRDs. */
void ml_crds_give(const struct ml_crds *crds, struct ml_analysis *analysis);
