/* L3 kube. Finds the resource of a kind on this server. Each group/version is requested separately
 * (GET /apis/GROUP/VERSION, /api/VERSION), when one of its kinds is needed. An answer is kept
 * permanently; after "no such kind" the server is asked again after a second. */
#pragma once

#include "kube/client.h"

struct ml_discovery;
struct ml_discovery_wait;

struct ml_discovery *ml_discovery_new(struct ml_client *client, struct ml_loop *loop);
void ml_discovery_free(struct ml_discovery *discovery);

/* ML_ENOT_FOUND: the server has no such kind (yet). Other errors as the client's. */
typedef void ml_discovery_done(void *context, const struct ml_kind *kind, const struct ml_err *err);

/* Resolves a kind; `done` comes once, later from the loop, never inside this call. Calls for the
 * same group/version share one request. `gvk` is copied. */
struct ml_discovery_wait *ml_discovery_resolve(struct ml_discovery *discovery,
                                               const struct ml_gvk *gvk, ml_discovery_done *done,
                                               void *context);
void ml_discovery_cancel(struct ml_discovery_wait *wait);

/* The kind if it is known without a request, else NULL. Built-in kinds that the host itself
 * uses (ConfigMap v1, Event events.k8s.io/v1) are always known. */
const struct ml_kind *ml_discovery_known(const struct ml_discovery *discovery,
                                         const struct ml_gvk *gvk);

/* The same by the name in URLs: "apps/v1" and "deployments". */
const struct ml_kind *ml_discovery_known_as(const struct ml_discovery *discovery,
                                            struct ml_str api_version, struct ml_str plural);

/* Forgets a kind whose URL answered 404, so that the next resolve asks the server. The struct
 * stays; a later answer updates its fields (strings included: do not keep them). */
void ml_discovery_forget(struct ml_discovery *discovery, const struct ml_kind *kind);
