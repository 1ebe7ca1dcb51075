/* L8 cli. The kinds that a set of CRD manifests defines, for checking declarations offline. */
#pragma once

#include "kube/kind.h"

struct ml_crds {
    char **kinds; /* "group/version/Kind" */
    size_t count;
};

/* Adds the CRDs of a YAML file, or of the *.yaml, *.yml and *.json files of a folder. Other
 * manifests in them are passed over. ML_EIO, ML_EINVALID with the file's name. */
ML_NODISCARD int ml_crds_read(struct ml_crds *crds, const char *path, struct ml_err *err);
void ml_crds_fini(struct ml_crds *crds);

/* True for a kind of the API server itself (core, or a group without a dot or of k8s.io), and
 * for one that a manifest serves. */
bool ml_crds_have(const struct ml_crds *crds, const struct ml_gvk *gvk);
