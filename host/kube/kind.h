/* L3 kube. Names of kinds and resources, and their URLs. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* A kind in a script: moonloop.kind("apps/v1", "Deployment"). */
struct ml_gvk {
    struct ml_str group; /* "" for the core group */
    struct ml_str version;
    struct ml_str kind;
};

/* Splits "group/version" or "version"; slices point into the arguments. False: of another form, or
 * with characters that no API group, version or kind has. */
ML_NODISCARD bool ml_gvk_parse(struct ml_str api_version, struct ml_str kind, struct ml_gvk *out);

/* A group of the API server itself: the core group, one without a dot, or one of its own below
 * k8s.io; others there are of CustomResourceDefinitions (gateway.networking.k8s.io) and aggregated
 * servers. Source: k8s.io/kubernetes/pkg/controlplane/instance.go. */
bool ml_group_is_built_in(struct ml_str group);

/* A kind as discovery knows it. Interned in ml_discovery: one per group, version and kind, so
 * pointers can be compared; lives as long as the discovery. All strings terminated. */
struct ml_kind {
    const char *api_version; /* "apps/v1", "v1" */
    const char *group;       /* "apps", "" */
    const char *version;
    const char *kind;   /* "Deployment" */
    const char *plural; /* "deployments" */
    bool namespaced;
    bool has_status; /* a status subresource */
};

/* Kinds that the host itself uses, on every server. */
extern const struct ml_kind ml_kind_configmap, ml_kind_namespace, ml_kind_event, ml_kind_lease,
    ml_kind_secret, ml_kind_crd, ml_kind_mutating, ml_kind_validating;

/* Appends "/apis/apps/v1/namespaces/NS/deployments/NAME/SUB". `ns` empty: all namespaces;
 * `name`, `subresource` empty: without. Names are percent-encoded where they need it. */
void ml_kind_path(const struct ml_kind *kind, struct ml_str ns, struct ml_str name,
                  struct ml_str subresource, struct ml_buf *out);

/* Appends `key=value`, percent-encoded, after '?' or '&' as the URL needs. */
void ml_url_query(struct ml_buf *url, const char *key, struct ml_str value);

/* The path of a request about Events, which may be sent when no other write may. */
bool ml_path_is_event(const char *path);

/* The parts of a key of stores and queues: "namespace/name", or "name" without a namespace. */
struct ml_str ml_key_namespace(struct ml_str key);
struct ml_str ml_key_name(struct ml_str key);

/* True for a valid name in a URL: a DNS-1123 subdomain of at most 253 bytes, as
 * well as ':' and upper case (RBAC names); never "", ".", ".." or a '/'. */
bool ml_name_valid(struct ml_str name);
/* ML_EINVALID for a name that is not valid; the message stands behind the word for it: "has 300
 * bytes; a name has at most 253". */
int ml_name_check(struct ml_str name, struct ml_err *err);

/* True for a key that an object can have: a valid name, and a valid namespace if it has one. */
bool ml_key_valid(struct ml_str key);

/* Log fields that name the object of a line, with controller-runtime's keys and in its order; `key`
 * is that of the object. Include base/log.h first. */
#define ML_OBJECT_FIELDS(controller_name, kind_name, key)                                          \
    ML_S("controller", (controller_name)), ML_S("controllerKind", (kind_name)),                    \
        ML_STR_FIELD(ml_key_namespace(key).len ? "namespace" : "", ml_key_namespace(key)),         \
        ML_STR_FIELD("name", ml_key_name(key))
