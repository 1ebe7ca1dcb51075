/* L6 operator. Sends what scripts ask by ctx.http: to origins that the operator's owner allowed,
 * and never to addresses of net/address.h. Redirects are not followed. At most 64 requests are
 * under way; others wait, and their time runs. Each request is counted by origin and answer. */
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "net/loop.h"
#include "state/outbound.h"

struct ml_outbound_opts {
    struct ml_loop *loop;
    struct ml_log *log;         /* NULL: says nothing */
    struct ml_metrics *metrics; /* NULL: counts nothing */
    const char *const *origins; /* of --allow-http; NULL-terminated */
    const char *proxy;          /* URL; NULL: as the environment says; "": none */
    const char *ca_file;        /* PEM, of the servers' authority; NULL: the system's roots */
};

/* ML_EINVALID: what is no origin, or no file of certificates; the message names the option. */
ML_NODISCARD int ml_outbound_new(const struct ml_outbound_opts *opts, struct ml_outbound **out,
                                 struct ml_err *err);
void ml_outbound_free(struct ml_outbound *outbound); /* NULL is fine; no call may be under way */
