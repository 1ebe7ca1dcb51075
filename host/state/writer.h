/* L4 state. What a reconcile writes: sent through the client, remembered in the expectations of its
 * controller, and, when asked, held until the cache shows it. An unknown outcome (the reply was
 * lost) is settled by reading, never by writing again:
 *   create  found with our controller owner's uid, or (without owner) found at all: it is there,
 *           success; not found: the error goes up and the reconcile retries;
 *   delete  gone, another one by its uid, or on its way out: success; else the error goes up;
 *   others  as it was, by uid and resourceVersion in the body: nothing happened, the error goes
 *           up; else Conflict: who changed it cannot be told. An apply without these is one that
 *           may be sent again: the error goes up.
 * What was read counts for the expectations like an answer: the next reconcile does not see less.
 * A delete is remembered when its answer is the object with the version of its deletionTimestamp;
 * when the object was gone at once the answer names no later version, and the cache may show it
 * a little longer: a second delete of it, with its uid, meets NotFound or Conflict. */
#pragma once

#include "state/cluster.h"
#include "state/expectations.h"

struct ml_writer_call;

struct ml_write {
    struct ml_client_request request;     /* strings are copied as the client needs them */
    struct ml_expectations *expectations; /* NULL: none */
    struct ml_informer *informer; /* that is to show the write, or NULL; outlives the call */
    struct ml_str key;            /* of the object being reconciled; copied */
    struct ml_str owner_uid;      /* of the controller owner in the body, or empty; copied */
    bool wait_for_cache;          /* done comes when the informer shows the write */
};

/* `body`: the object after the write (for a delete: the object or a Status), valid during the
 * call. As ml_client_done otherwise. */
struct ml_writer_call *ml_writer_send(struct ml_cluster *cluster, const struct ml_write *write,
                                      ml_client_done *done, void *context);
/* Its request, or the read that settles it, is under way; false while only the cache is behind. */
bool ml_writer_sends(const struct ml_writer_call *call);
void ml_writer_cancel(struct ml_writer_call *call); /* done comes no more; NULL is fine */
