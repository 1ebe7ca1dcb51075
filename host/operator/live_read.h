/* L6 operator. Asks the server whether an object that the cache shows is still there, and stays.
 * Caches of two kinds are not of the same moment: when a child has gone, its owner may have gone
 * before, and another one of its name may be there, while the cache still shows the old one.
 * Whoever makes the child again for that one has its work done twice. Follows client-go's rule
 * before an adoption (kubernetes/pkg/controller/controller_ref_manager.go,
 * RecheckDeletionTimestamp). */
#pragma once

#include "kube/client.h"
#include "kube/object.h"

struct ml_live_read;

/* `err` NULL: it is there, with this uid, and nobody deletes it. ML_ECONFLICT: not so; else why
 * that could not be learned. The recheck is over when it returns. */
typedef void ml_live_read_done(void *context, const struct ml_err *err);

/* `object` is of `kind`, and is not held. */
struct ml_live_read *ml_live_read_start(struct ml_client *client, const struct ml_kind *kind,
                                        const struct ml_object *object, ml_live_read_done *done,
                                        void *context);
void ml_live_read_cancel(struct ml_live_read *live_read); /* done comes no more; NULL is fine */
