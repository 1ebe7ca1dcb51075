/* L4 state. HTTP requests of scripts (ctx.http) to servers other than the API server. An interface,
 * as the transport is: operator/outbound.c sends them, a test's world answers them itself. */
#pragma once

#include "base/budget.h"
#include "net/http.h"

#define ML_OUTBOUND_BODY_MAX ((size_t)1024 * 1024) /* of a request, and of an answer */
#define ML_OUTBOUND_MAX_MS   INT64_C(10000)

struct ml_outbound_call;

/* Copied. */
struct ml_outbound_request {
    const char *method;
    const char *url;
    const char *origin; /* of the url */
    const struct ml_http_header *headers;
    size_t header_count;
    struct ml_str body;
    int64_t timeout_ms;
    struct ml_budget *budget; /* charged for request and answer; must outlive the call */
    /* As in ml_http_request: called before a byte of it is sent; `context` is the call's. */
    int (*may_send)(void *context, struct ml_err *err);
};

/* `answer`: {"status":200,"headers":{"content-type":"text/plain"}} as JSON without a line end, then
 * a line end, then the body. Valid during the call. `err`: ML_ENETWORK, ML_ETLS, ML_ETIMEOUT,
 * ML_EFORBIDDEN (an address that must not be asked), ML_ELIMIT, or what may_send said. */
typedef void ml_outbound_done(void *context, struct ml_str answer, const struct ml_err *err);

struct ml_outbound {
    /* Has the operator's owner allowed scripts to ask this origin? Of a pattern (ml_origin_covers):
     * some of its origins. */
    bool (*allows)(struct ml_outbound *outbound, const char *origin);
    /* `done` comes later from the loop, never inside this call. */
    struct ml_outbound_call *(*send)(struct ml_outbound *outbound,
                                     const struct ml_outbound_request *request,
                                     ml_outbound_done *done, void *context);
    void (*cancel)(struct ml_outbound *outbound, struct ml_outbound_call *call);
};
