/* L4 state. The Lease of one member of a shard group: what it says, and its text. Whatever stands
 * in it was written by others. Pure.
 *
 *   metadata.name                                GROUP-ID
 *   metadata.labels[moonloop.dev/shard-group]    GROUP
 *   metadata.annotations[moonloop.dev/shard-view] the members it acts among; see shard.h
 *   spec.holderIdentity                          the process; none: the member has left */
#pragma once

#include "state/shard_set.h"

#define SHARD_LABEL      "moonloop.dev/shard-group"
#define SHARD_ANNOTATION "moonloop.dev/shard-view"

struct shard_lease {
    uint64_t id;
    char *uid, *rv; /* never NULL once read */
    char *holder;   /* "": it has left */
    bool opaque;    /* its view cannot be read: it may claim anything */
    struct shard_set view;
    int64_t duration_ns; /* 0 when it is absent or makes no sense */
};

/* False when `object` is no Lease of a member of `group`. `out` is to be ended either way. */
ML_NODISCARD bool shard_lease_read(struct ml_str object, const char *group,
                                   struct shard_lease *out);
void shard_lease_fini(struct shard_lease *lease);

/* "GROUP-ID". The caller frees it. */
char *shard_lease_name(const char *group, uint64_t id);

struct shard_lease_text {
    const char *group, *ns;
    uint64_t id;
    const char *uid, *rv; /* NULL: to be created */
    const char *holder;   /* "": it leaves */
    const struct shard_set *view;
    int64_t duration_s;
    const char *acquired, *renewed; /* MicroTime */
};

char *shard_lease_json(const struct shard_lease_text *text); /* the caller frees it */
