/* L4 state. A set of members of a shard group, as it stands in an annotation. Pure. */
#pragma once

#include "base/str.h"

#define SHARD_MEMBERS_MAX 64
#define SHARD_ID_LEN      16

/* Ascending, without 0. Start with {0}. */
struct shard_set {
    size_t count;
    uint64_t ids[SHARD_MEMBERS_MAX];
};

/* Of more than fit, the smallest stay. */
void shard_set_add(struct shard_set *set, uint64_t id);
bool shard_set_has(const struct shard_set *set, uint64_t id);
bool shard_set_eq(const struct shard_set *a, const struct shard_set *b);

/* Whose the key is among them, as rendezvous_owner. */
uint64_t shard_set_owner(const struct shard_set *set, uint64_t key);

/* "0123456789abcdef,…". The caller frees it. */
char *shard_set_text(const struct shard_set *set);
/* False, with `out` untouched, for anything that shard_set_text does not write. */
ML_NODISCARD bool shard_set_parse(struct ml_str text, struct shard_set *out);

void shard_id_format(uint64_t id, char out[SHARD_ID_LEN + 1]);
ML_NODISCARD bool shard_id_parse(struct ml_str text, uint64_t *out);
