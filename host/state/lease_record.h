/* L4 state, private to the election. What a Lease (coordination.k8s.io/v1) says, and the text of
 * one. Whatever stands in it was written by others: a field that makes no sense counts as absent.
 */
#pragma once

#include "kube/kind.h"

extern const struct ml_kind lease_kind;

struct lease_record {
    char *metadata;      /* raw JSON, to be sent back as it came; NULL: nothing was read yet */
    char *spec;          /* raw JSON, to see that it changed; "" when there is none */
    char *holder;        /* "" when nobody holds it */
    char *acquired;      /* acquireTime as it stands there, or "" */
    int64_t duration_ns; /* 0 when it is absent or makes no sense */
    int64_t transitions;
};

/* Replaces what `record` holds. ML_EINVALID, with `record` untouched, for what is no object with
 * metadata. Start with {0}. */
ML_NODISCARD int lease_record_read(struct lease_record *record, struct ml_str object,
                                   struct ml_err *err);
void lease_record_fini(struct lease_record *record);

/* What is to stand in the spec. */
struct lease_claim {
    const char *holder; /* "" for a Lease that is given back */
    int64_t duration_s;
    const char *acquired, *renewed; /* MicroTime */
    int64_t transitions;
};

/* The JSON of a Lease with `metadata` (raw). The caller frees it. */
char *lease_claim_json(const struct lease_claim *claim, struct ml_str metadata);
