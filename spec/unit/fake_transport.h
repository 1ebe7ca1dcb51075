/* A scripted API server for unit tests: a transport that keeps every request until the test
 * (or a handler it installed) answers it, piece by piece if it likes. Nothing happens except
 * through these functions; callbacks run inside the answering call, never inside submit().
 *
 * Misuse fails the running test: an answer to a call that is over or canceled, a second cancel,
 * a call left unanswered at the end. */
#pragma once

#include "kube/transport.h"
#include "net/loop.h"

struct fake_transport;

/* One request as it was submitted. Stays readable until fake_transport_free, whatever became
 * of it. */
struct fake_call {
    const char *method;
    const char *path;         /* with query */
    const char *accept;       /* or NULL */
    const char *content_type; /* or NULL */
    const char *body;         /* terminated; "" when there is none */
    size_t body_len;
    bool streaming;
    bool canceled; /* by the code under test */
    bool over;     /* done() was called */
    struct ml_http_deadlines deadlines;
    struct fake_call_private *private;
};

struct fake_transport *fake_transport_new(struct ml_loop *loop);
/* What to hand to the code under test. */
struct ml_transport *fake_transport_seam(struct fake_transport *fake);
/* To be called after the code under test was freed and before the loop. Fails when a call is
 * neither over nor canceled. NULL is fine. */
void fake_transport_free(struct fake_transport *fake);

/* Requests so far, and those that still wait for an answer (open streams included). */
size_t fake_count(const struct fake_transport *fake);
size_t fake_waiting(const struct fake_transport *fake);

/* The request number `index`, from 0, in the order of submission. Fails when there is none. */
struct fake_call *fake_call_at(struct fake_transport *fake, size_t index);

/* The next request that was not looked at yet; fails when there is none. The second form also
 * fails when method or path (query included) are others. */
struct fake_call *fake_next(struct fake_transport *fake);
struct fake_call *fake_expect(struct fake_transport *fake, const char *method, const char *path);
/* Fails when there is a request that fake_next would return. */
void fake_expect_none(struct fake_transport *fake);

/* The whole answer at once: head, body, regular end. `body` may be NULL. */
void fake_reply(struct fake_call *call, int status, const char *body);
/* The same with all that a head can carry (status, Retry-After, Warning, content type). */
void fake_reply_head(struct fake_call *call, const struct ml_http_head *head, const char *body);
/* A Status object of `status` with this reason and message: what an API server refuses with. */
void fake_refuse(struct fake_call *call, int status, const char *reason, const char *message);

/* What a transport asks when a connection is there for the request, which may have waited for it:
 * 0, or the kind of what `err` says against sending. */
int fake_may_send(struct fake_call *call, struct ml_err *err);

/* The same in steps, for streams: one head, any number of pieces, then end or failure. A
 * failure may also come instead of a head. fake_piece returns false when the code under test
 * refused the piece (its done() has been called then) or canceled. */
void fake_head(struct fake_call *call, int status);
bool fake_piece(struct fake_call *call, const char *text);
bool fake_piece_bytes(struct fake_call *call, struct ml_str bytes);
void fake_end(struct fake_call *call);
void fake_fail(struct fake_call *call, int kind, const char *message);

/* From now on each new request goes to `handler`, from a task of the loop and in order; it
 * answers there or keeps the call for later. Such requests do not come from fake_next. NULL
 * ends it. */
void fake_set_handler(struct fake_transport *fake,
                      void (*handler)(void *context, struct fake_call *call), void *context);
