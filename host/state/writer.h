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
 * A version that was read counts for the expectations like an answer: the next reconcile sees at
 * least that one.
 * A delete is noted when the answer is the object with a deletionTimestamp. When the object was
 * gone at once the answer has no later version, and the cache may show the object a little longer:
 * a second delete, with its uid, gets NotFound or Conflict. */
#pragma once

#include "base/map.h"
#include "state/deletions.h"
#include "state/expectations.h"
#include "state/services.h"

struct ml_writer_call;

struct ml_write;

/* Asked before each write is sent. */
struct ml_write_check {
    /* False: it is not sent, and answered with `err`, which was set. */
    bool (*lets)(void *context, const struct ml_write *write, struct ml_err *err);
    void *context;
};

struct ml_write {
    struct ml_client_request request; /* strings are copied where the client needs that */
    struct ml_expectations *expectations;
    const struct ml_write_check *check; /* NULL: each write is sent */
    struct ml_informer *informer;       /* of the kind written, or NULL; outlives the call */
    struct ml_str key;                  /* of the object being reconciled; copied */
    struct ml_str owner_uid;            /* of the controller owner in the body, or empty; copied */
    /* Of the script that asked for it, for the journal: "site.lua:88"; copied. NULL: the host did,
     * or it is a delete, which has `deletion.why`. */
    const char *place;
    /* Of a delete, for its trace: as in struct ml_deletion, whose other fields are known. Texts are
     * copied, and a reference is taken. */
    struct {
        const char *why, *revision;
        const struct ml_kind *owner_kind;
        struct ml_object *owner;
    } deletion;
};

/* `body`: the object after the write (for a delete: the object or a Status), valid during the
 * call. As ml_client_done otherwise: later from the loop, never inside this call. */
struct ml_writer_call *ml_writer_send(struct ml_services *services, const struct ml_write *write,
                                      ml_client_done *done, void *context);
void ml_writer_cancel(struct ml_writer_call *call); /* `done` does not come; NULL is fine */

/* ---- the authors of the last writes ---- */

/* Remembers which run of this process wrote which version of an object, and which objects runs
 * deleted, for the last few hundred of each. The writer notes each write when it is answered; the
 * enqueue filter asks for the author when a change by somebody else wakes a key. */
#define ML_AUTHORS_MAX 256 /* writes that are remembered; a later one takes the place of one */

struct ml_author {
    const struct ml_kind *kind; /* NULL: of a deletion */
    uint64_t id;                /* the version, or a hash of the uid */
    const char *controller;     /* in `names` */
    char *key;                  /* of the object that the run was for */
};

/* All zero: nobody wrote anything. */
struct ml_authors {
    struct ml_author writes[ML_AUTHORS_MAX];    /* by the lowest bits of `id` */
    struct ml_author deletions[ML_AUTHORS_MAX]; /* likewise */
    struct ml_map names;                        /* each once; controllers come and go */
};

void ml_authors_fini(struct ml_authors *authors);

/* A run of `controller` for `key` wrote an object of `kind`, which is interned, at version `rv`, or
 * deleted the one with that uid. Both are copied. `authors` NULL, and a version that is no number:
 * ignored. */
void ml_authors_note(struct ml_authors *authors, const struct ml_kind *kind, uint64_t rv,
                     const char *controller, struct ml_str key);
void ml_authors_note_deletion(struct ml_authors *authors, struct ml_str uid, const char *controller,
                              struct ml_str key);

/* NULL: none of this process, or it was too long ago, or the answer has not come yet. Valid until
 * the next note. */
const struct ml_author *ml_authors_of(const struct ml_authors *authors, const struct ml_kind *kind,
                                      uint64_t rv);
const struct ml_author *ml_authors_of_deletion(const struct ml_authors *authors, struct ml_str uid);
