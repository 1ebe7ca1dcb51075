#include "state/shard_acting.h"

static bool has_view(const struct shard_acting *acting, const struct shard_set *view)
{
    for (size_t i = 0; i < acting->view_count; i++)
        if (shard_set_eq(&acting->views[i], view))
            return true;
    return false;
}

/* In a view of our own a key has one owner: who shares that view claims nothing of ours. */
static void add_claims(struct shard_acting *acting, const struct shard_group *group)
{
    acting->claims = ml_zalloc(ML_MAX(group->count, (size_t)1) * sizeof *acting->claims);
    for (size_t i = 0; i < group->count; i++) {
        const struct shard_peer *peer = &group->peers[i];
        if (!shard_peer_counts(peer) ||
            (!peer->lease.opaque && has_view(acting, &peer->lease.view)))
            continue;
        struct shard_claim *claim = &acting->claims[acting->claim_count++];
        claim->member = peer->lease.id;
        claim->everything = peer->lease.opaque;
        claim->view = peer->lease.view;
    }
}

void shard_acting_init(struct shard_acting *out, const struct shard_group *group,
                       const struct shard_set *const *views, size_t view_count)
{
    *out = (struct shard_acting){.self = group->self};
    ml_assert(view_count <= SHARD_VIEWS_MAX);
    for (size_t i = 0; i < view_count; i++)
        if (!has_view(out, views[i]))
            out->views[out->view_count++] = *views[i];
    add_claims(out, group);
}

void shard_acting_fini(struct shard_acting *acting)
{
    free(acting->claims);
    *acting = (struct shard_acting){0};
}

bool shard_acting_acts(const struct shard_acting *acting, uint64_t key)
{
    for (size_t i = 0; i < acting->view_count; i++)
        if (shard_set_owner(&acting->views[i], key) != acting->self)
            return false;
    for (size_t i = 0; i < acting->claim_count; i++) {
        const struct shard_claim *claim = &acting->claims[i];
        if (claim->everything || shard_set_owner(&claim->view, key) == claim->member)
            return false;
    }
    return acting->view_count > 0;
}

bool shard_acting_eq(const struct shard_acting *a, const struct shard_acting *b)
{
    if (a->view_count != b->view_count || a->claim_count != b->claim_count)
        return false;
    for (size_t i = 0; i < a->view_count; i++)
        if (!shard_set_eq(&a->views[i], &b->views[i]))
            return false;
    for (size_t i = 0; i < a->claim_count; i++) {
        const struct shard_claim *one = &a->claims[i], *other = &b->claims[i];
        if (one->member != other->member || one->everything != other->everything ||
            !shard_set_eq(&one->view, &other->view))
            return false;
    }
    return true;
}
