/* L6 operator. The finalizer of a controller, "moonloop.dev/NAME", on the objects that it
 * reconciles. An object that it cleans up after gets it before anything is written on its behalf:
 * before the first write of the script by script/finalizer.c, before a status by reconcile.c. An
 * object keeps it until finalize returned nothing, or its controller has no finalize any more
 * (docs/decisions/0017). */
#pragma once

#include "operator/revision.h"
#include "state/writer.h"

/* Does the object carry it, or one of a name that the controller had? */
bool ml_finalizer_carries(const struct ml_revision *revision, const struct ml_object *object);
/* One of a name that the controller had. ml_finalizer_write takes these off in any case. */
bool ml_finalizer_is_former(const struct ml_revision *revision, const struct ml_object *object);
/* The object has to carry it before something is written for it, and does not. */
bool ml_finalizer_lacks(const struct ml_revision *revision, const struct ml_object *object);

/* Adds or removes it, by a patch that fails with Conflict when the object has changed. */
struct ml_writer_call *ml_finalizer_write(struct ml_revision *revision, struct ml_object *object,
                                          bool add, ml_client_done *done, void *context);
/* The version of the object in the answer, for ml_finalizer_renew. The caller frees it. */
char *ml_finalizer_version(const struct ml_object *object, struct ml_str answer);

/* Writes the patch of the object's status to `out`, with that version as its precondition instead
 * of the one that it was made with, and returns that. */
struct ml_str ml_finalizer_renew(const struct ml_object *object, const char *version,
                                 struct ml_str patch, struct ml_buf *out);
