/* L3 kube. An object in the cache: one immutable, reference-counted block with the metadata that
 * the host needs and the object's JSON, without managedFields, zstd-compressed with the
 * dictionary of its kind. One thread. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "codec/json.h"
#include "kube/dict.h"

#define ML_OBJECT_SIZE_MAX ((size_t)8 * 1024 * 1024) /* of JSON, from the server */

/* resourceVersion as a number if it is one (Kubernetes 1.35+: decimal, comparable);
 * ML_RV_OPAQUE for others. The text stays exact in ml_object_rv. */
#define ML_RV_OPAQUE UINT64_MAX
uint64_t ml_rv_parse(struct ml_str text);
/* True when both are such numbers, of whatever size, and `a` is the lower one: by length, then by
 * text (apimachinery, pkg/util/resourceversion). False for all others. */
bool ml_rv_older(struct ml_str a, struct ml_str b);

struct ml_object; /* opaque */

/* Parses and checks one object as the server sent it. `api_version` and `kind` are added
 * to a list item that lacks them (""/NULL: it must have them). ML_EINVALID with the problem
 * (not JSON, not UTF-8, deeper than ML_JSON_DEPTH_MAX, no metadata.name or uid or
 * resourceVersion): the caller skips the object and goes on. `out` starts with one
 * reference. */
ML_NODISCARD int ml_object_new(struct ml_dict *dict, const char *api_version, const char *kind,
                               struct ml_str json, struct ml_object **out, struct ml_err *err);
struct ml_object *ml_object_ref(struct ml_object *object);
void ml_object_unref(struct ml_object *object); /* NULL is fine */

/* Opens the block: appends its JSON to `out`. The only access to the contents. */
void ml_object_json(const struct ml_object *object, struct ml_buf *out);
/* The same with another resourceVersion, a number, so that a comparison finds nothing else. A
 * version that is shorter than three bytes, or is written with escapes, stays. */
void ml_object_json_as(const struct ml_object *object, struct ml_str rv, struct ml_buf *out);

struct ml_str ml_object_key(const struct ml_object *object); /* "ns/name" or "name" */
struct ml_str ml_object_namespace(const struct ml_object *object);
struct ml_str ml_object_name(const struct ml_object *object);
struct ml_str ml_object_uid(const struct ml_object *object);
struct ml_str ml_object_rv(const struct ml_object *object); /* as text, for requests */
uint64_t ml_object_rv_number(const struct ml_object *object);
int64_t ml_object_generation(const struct ml_object *object);
bool ml_object_deleting(const struct ml_object *object); /* has a deletionTimestamp */
#define ML_PAUSED_ANNOTATION "moonloop.dev/paused"
/* Its annotation moonloop.dev/paused is "true": no controller may run for it, or write to it. */
bool ml_object_paused(const struct ml_object *object);
#define ML_RETRY_ANNOTATION "moonloop.dev/retry"
/* Has somebody given the annotation moonloop.dev/retry another value? */
bool ml_object_retried(const struct ml_object *old, const struct ml_object *new);
/* False: metadata.finalizers is empty. True: ask ml_finalizers_have. */
bool ml_object_has_finalizers(const struct ml_object *object);
size_t ml_object_bytes(const struct ml_object *object); /* held in memory, for metrics */

/* The owner whose reference has controller: true. */
struct ml_owner {
    struct ml_str group; /* of its apiVersion: compared without the version */
    struct ml_str kind;
    struct ml_str name;
    struct ml_str uid;
};

/* False when there is none. The slices live as long as the object. */
bool ml_object_controller(const struct ml_object *object, struct ml_owner *out);

/* Has metadata.finalizers this one? The server ignores none, and keeps their order; so do these
 * functions. */
bool ml_finalizers_have(const struct ml_object *object, struct ml_str finalizer);
/* Has it one of these? The list ends with NULL. */
bool ml_finalizers_have_any(const struct ml_object *object, const char *const *finalizers);

/* Begins a JSON merge patch, which is appended to `out`: it fails with Conflict when the object's
 * uid or resourceVersion is another by then. The writer is left in the patch's metadata; the caller
 * ends both objects. */
void ml_patch_begin(struct ml_json_writer *writer, struct ml_buf *out, struct ml_str uid,
                    struct ml_str rv);

/* Appends a JSON merge patch of the whole list, which adds `finalizer` at its end or removes it;
 * entries of others stay. Entries of `former`, a list that ends with NULL, or NULL, go in any
 * case. Preconditions: the object's uid, and `rv`, the resourceVersion of this list. */
void ml_finalizers_patch(const struct ml_object *object, struct ml_str rv, struct ml_str finalizer,
                         const char *const *former, bool add, struct ml_buf *out);
/* The list alone, as a member of the metadata under way. */
void ml_finalizers_put(struct ml_json_writer *writer, const struct ml_object *object,
                       struct ml_str finalizer, const char *const *former, bool add);

/* ---- objects that the host keeps for itself, such as the Secret of its webhooks ---- */

#define ML_MANAGED_BY "app.kubernetes.io/managed-by" /* the label of these: "moonloop" */

/* The metadata, as a member of the object under way: with the label, of a new object (`rv` empty);
 * or of a merge patch of that version. */
void ml_managed_metadata_put(struct ml_json_writer *writer, const char *name, struct ml_str rv);
/* Has the object (JSON) the label? If not, somebody else made it. */
bool ml_managed_by_host(struct ml_str object);

/* ---- objects that belong to another one by an annotation ----
 *
 * They cannot have it as an owner reference: they are in another namespace, or cluster-scoped. An
 * annotation says whose they are, and an annotation of their owner, the inventory, lists them:
 * script/ctx_target.c and ctx_children.c write them. A change of such an object wakes its owner. */

#define ML_TRACKED_OWNER     "moonloop.dev/owner"    /* of the object: "CONTROLLER NS/NAME UID" */
#define ML_TRACKED_INVENTORY "children.moonloop.dev" /* of its owner: this, "/", CONTROLLER */

/* Appends the value of the annotation for what belongs to `owner`. */
void ml_tracked_mark(const char *controller, const struct ml_object *owner, struct ml_buf *out);

/* The annotation of the object in this JSON; empty when it has none, or one with escapes. */
struct ml_str ml_tracked_annotation(struct ml_str json, const char *name);

/* Appends the key of the object that this one belongs to by the annotation, a key that an object
 * can have: anybody may write the annotation, and no server checks it. False: none that this
 * controller follows, by its name or one of `formerly`, up to NULL. */
bool ml_tracked_key(const struct ml_object *object, const char *controller,
                    const char *const *formerly, struct ml_buf *out_key);
