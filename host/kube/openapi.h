/* L3 kube. The schemas of kinds, as an API server publishes them in OpenAPI v3 documents: GET
 * /openapi/v3 lists one for each group and version.
 * Source: k8s.io/kube-openapi/pkg/handler3; its documents have no other references than to their
 * own `components.schemas`. */
#pragma once

#include "kube/client.h"
#include "kube/kind.h"

/* Appends the path of the document of a group and version, as the server's list of documents
 * (`index`) has it, with the hash of its content: "/openapi/v3/apis/apps/v1?hash=12AB". False:
 * there is none. */
bool ml_openapi_path(struct ml_str index, struct ml_str group, struct ml_str version,
                     struct ml_buf *out);

/* Appends the schema of a kind, and all that it refers to, without descriptions:
 *     {"root": "io.k8s.api.apps.v1.Deployment", "definitions": {"io.k8s.api.apps.v1.Deployment":
 * {…}, …}} ML_ENOT_FOUND: the document has no such kind. ML_EINVALID: it is broken. */
ML_NODISCARD int ml_openapi_schema(struct ml_str document, const struct ml_gvk *gvk,
                                   struct ml_buf *out, struct ml_err *err);

/* ---- from a server ---- */

/* The parts of documents that were asked for before. The server names a document by the hash of its
 * content, so they are right as long as its list has that name. */
struct ml_openapi_cache;

#define ML_OPENAPI_CACHE_BYTES ((size_t)512 * 1024) /* of all parts; the oldest document goes */

struct ml_openapi_cache *ml_openapi_cache_new(void);
void ml_openapi_cache_free(struct ml_openapi_cache *cache); /* NULL is fine */

struct ml_openapi_request;

struct ml_openapi_handler {
    /* The schema of a kind that was asked for, as ml_openapi_schema writes it, valid during the
     * call. Not called for one that the server does not publish. */
    void (*schema)(void *context, size_t index, struct ml_str schema);
    /* A kind that exists, in a group of the API server itself: all of the group's kinds that can be
     * told from are reported. Not called when one of the documents could not be read. */
    void (*kind)(void *context, const struct ml_gvk *gvk);
    /* All have been asked for. The struct is gone. `are_published`: the server has OpenAPI
     * documents, and this client could read them. */
    void (*done)(void *context, bool are_published);
};

struct ml_openapi_opts {
    struct ml_client *client;
    struct ml_loop *loop;
    struct ml_openapi_cache *cache; /* outlives the request; NULL: all documents are asked for */
    const struct ml_gvk *gvks;      /* copied; one kind at least */
    size_t count;
};

/* Asks the server, and again as long as it does not answer. Where it refuses to, `schema` is not
 * called. Callbacks come later from the loop. */
struct ml_openapi_request *ml_openapi_ask(const struct ml_openapi_opts *opts,
                                          const struct ml_openapi_handler *handler, void *context);
void ml_openapi_cancel(struct ml_openapi_request *request); /* NULL is fine */
