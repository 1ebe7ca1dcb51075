/* L4 state. Sends what a reconcile writes through the client, and notes it in the expectations of
 * its controller. When the reply was lost, the outcome is found out by reading, never by writing
 * again:
 *
 *   create   found with our controller owner's uid, or (without owner) found at all: success; not
 *            found: the error is returned and the reconcile retries
 *   delete   gone, replaced by an object with another uid, or terminating: success; else the error
 *   others   unchanged, by uid and resourceVersion in the body: nothing happened, the error is
 *            returned; else Conflict, since it is unknown who changed it. An apply without these
 *            may be sent again: the error is returned
 *
 * What was read counts for the expectations like an answer: the next reconcile sees at least that.
 * A delete is noted when the answer is the object with a deletionTimestamp. When the object was
 * gone at once the answer has no later version, and the cache may show the object a little longer:
 * a second delete, with its uid, gets NotFound or Conflict. */
#pragma once

#include "state/cluster.h"
#include "state/expectations.h"

struct ml_writer_call;

struct ml_write {
    struct ml_client_request request; /* strings are copied where the client needs that */
    struct ml_expectations *expectations;
    struct ml_informer *informer; /* of the kind written, or NULL; outlives the call */
    struct ml_str key;            /* of the object being reconciled; copied */
    struct ml_str owner_uid;      /* of the controller owner in the body, or empty; copied */
};

/* `body`: the object after the write (for a delete: the object or a Status), valid during the
 * call. As ml_client_done otherwise: later from the loop, never inside this call. */
struct ml_writer_call *ml_writer_send(struct ml_cluster *cluster, const struct ml_write *write,
                                      ml_client_done *done, void *context);
void ml_writer_cancel(struct ml_writer_call *call); /* `done` does not come; NULL is fine */
