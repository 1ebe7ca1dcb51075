#include "state/shard_group.h"

#include "codec/json.h"

void shard_group_init(struct shard_group *group, const char *name, uint64_t self,
                      int64_t duration_ns)
{
    *group = (struct shard_group){.self = self, .name = name, .duration_ns = duration_ns};
    group->peers = ml_zalloc(SHARD_PEERS_MAX * sizeof *group->peers);
}

void shard_group_fini(struct shard_group *group)
{
    for (size_t i = 0; i < group->count; i++)
        shard_lease_fini(&group->peers[i].lease);
    free(group->peers);
    *group = (struct shard_group){0};
}

static struct shard_peer *find(const struct shard_group *group, uint64_t id)
{
    for (size_t i = 0; i < group->count; i++)
        if (group->peers[i].lease.id == id)
            return &group->peers[i];
    return NULL;
}

static void drop(struct shard_group *group, size_t index)
{
    shard_lease_fini(&group->peers[index].lease);
    group->peers[index] = group->peers[--group->count];
}

/* Any write of the Lease counts as a sign of life: at worst a dead one counts for longer. */
static bool is_unchanged(const struct shard_lease *a, const struct shard_lease *b)
{
    return strcmp(a->uid, b->uid) == 0 && strcmp(a->rv, b->rv) == 0;
}

static void note(struct shard_group *group, struct shard_lease *lease, int64_t now_ns)
{
    struct shard_peer *peer = find(group, lease->id);
    if (!peer) {
        peer = &group->peers[group->count++];
        *peer = (struct shard_peer){.since_ns = now_ns};
    } else if (is_unchanged(&peer->lease, lease)) {
        peer->present = true;
        shard_lease_fini(lease);
        return;
    } else {
        shard_lease_fini(&peer->lease);
        peer->since_ns = now_ns;
    }
    peer->lease = *lease;
    peer->present = true;
}

static void judge(struct shard_group *group, int64_t asked_ns)
{
    for (size_t i = group->count; i-- > 0;) {
        struct shard_peer *peer = &group->peers[i];
        int64_t duration_ns = peer->lease.duration_ns ? peer->lease.duration_ns
                                                      : group->duration_ns;
        peer->dead = asked_ns - peer->since_ns >= duration_ns;
        if (!peer->present && !shard_peer_counts(peer))
            drop(group, i);
    }
}

/* The items that are of the group; NULL-terminated by their count. */
static int read_items(const struct shard_group *group, struct ml_str list,
                      struct shard_lease *leases, size_t *out_count, struct ml_err *err)
{
    struct ml_str items;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader = {0};
    if (!ml_json_find(list, &items, "items", NULL))
        return ml_err_set(err, ML_EINVALID, "the list of Leases cannot be read: it has no items");
    ml_json_reader_init(&reader, items, 0);
    enum ml_json_token first = ml_json_next(&reader);
    if (first == ML_JSON_NULL)
        return 0;
    if (first != ML_JSON_ARRAY)
        return ml_err_set(err, ML_EINVALID, "the list of Leases cannot be read: no list of items");
    for (struct ml_str item; (item = ml_json_skip(&reader)).len;) {
        struct shard_lease lease;
        if (!shard_lease_read(item, group->name, &lease)) {
            shard_lease_fini(&lease);
            continue;
        }
        if (*out_count == SHARD_PEERS_MAX) {
            shard_lease_fini(&lease);
            return ml_err_set(err, ML_ELIMIT,
                              "more than %d Leases with the label " SHARD_LABEL "=%s: delete those "
                              "that nobody renews",
                              SHARD_PEERS_MAX, group->name);
        }
        leases[(*out_count)++] = lease;
    }
    return reader.token == ML_JSON_ERROR ? ml_json_error(&reader, err) : 0;
}

/* Those that are gone stay until they are dead; with them there may be too many. */
static bool has_room(const struct shard_group *group, const struct shard_lease *leases,
                     size_t count)
{
    size_t unknown = 0;
    for (size_t i = 0; i < count; i++)
        unknown += leases[i].id != group->self && !find(group, leases[i].id);
    return group->count + unknown <= SHARD_PEERS_MAX;
}

int shard_group_observe(struct shard_group *group, struct ml_str list, int64_t asked_ns,
                        int64_t now_ns, struct shard_lease *out_self, struct ml_err *err)
{
    ML_AUTO_FREE struct shard_lease *leases = ml_zalloc(SHARD_PEERS_MAX * sizeof *leases);
    size_t count = 0;
    *out_self = (struct shard_lease){0};
    int r = read_items(group, list, leases, &count, err);
    if (r == 0 && !has_room(group, leases, count))
        r = ml_err_set(err, ML_ELIMIT, "more than %d members of the shard group %s",
                       SHARD_PEERS_MAX, group->name);
    if (r < 0) {
        for (size_t i = 0; i < count; i++)
            shard_lease_fini(&leases[i]);
        return r;
    }
    for (size_t i = 0; i < group->count; i++)
        group->peers[i].present = false;
    for (size_t i = 0; i < count; i++) {
        if (leases[i].id == group->self)
            *out_self = leases[i];
        else
            note(group, &leases[i], now_ns);
    }
    judge(group, asked_ns);
    return 0;
}

bool shard_peer_counts(const struct shard_peer *peer)
{
    return !peer->dead && *peer->lease.holder;
}

bool shard_group_is_news(const struct shard_group *group, const struct shard_lease *lease)
{
    if (lease->id == group->self)
        return false;
    const struct shard_peer *peer = find(group, lease->id);
    return !peer || !shard_peer_counts(peer) || !*lease->holder ||
           peer->lease.opaque != lease->opaque || !shard_set_eq(&peer->lease.view, &lease->view);
}

void shard_group_alive(const struct shard_group *group, struct shard_set *out)
{
    *out = (struct shard_set){0};
    shard_set_add(out, group->self);
    for (size_t i = 0; i < group->count; i++)
        if (shard_peer_counts(&group->peers[i]))
            shard_set_add(out, group->peers[i].lease.id);
}

const struct shard_peer *shard_group_remains(const struct shard_group *group, int64_t now_ns,
                                             int64_t grace_ns)
{
    for (size_t i = 0; i < group->count; i++) {
        const struct shard_peer *peer = &group->peers[i];
        bool has_left = !*peer->lease.holder;
        if (peer->present && (has_left ? now_ns - peer->since_ns >= grace_ns : peer->dead))
            return peer;
    }
    return NULL;
}
