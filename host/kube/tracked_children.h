/* L3 kube. Objects that belong to another one and cannot have it as an owner reference: they are in
 * another namespace, or cluster-scoped. An annotation says whose they are, and an annotation of
 * their owner, the inventory, lists them: script/ctx_target.c and ctx_children.c write them. */
#pragma once

#include "kube/object.h"

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
