/* The rules of sharding as pure functions, without clock and requests: the member that a key
 * belongs to, the text of a Lease of the group, the members that are alive, and the keys that one
 * of them may act on. */
#include "state/shard_group.h"

#include "codec/json.h"

#include <stdio.h>

#define KEY_SALT UINT64_C(0x9e3779b97f4a7c15)

/* ---- rendezvous hashing ---- */

/* The finalizer of splitmix64: each bit of the input changes half of the output's. */
static uint64_t rendezvous_mix(uint64_t value)
{
    value ^= value >> 30;
    value *= UINT64_C(0xbf58476d1ce4e5b9);
    value ^= value >> 27;
    value *= UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}

uint64_t rendezvous_key(struct ml_str controller, struct ml_str object)
{
    return rendezvous_mix(rendezvous_mix(ml_str_hash(controller) + KEY_SALT) ^ ml_str_hash(object));
}

uint64_t rendezvous_owner(uint64_t key, const uint64_t *members, size_t count)
{
    uint64_t owner = 0, highest = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t weight = rendezvous_mix(key ^ rendezvous_mix(members[i] + KEY_SALT));
        if (!owner || weight > highest || (weight == highest && members[i] < owner)) {
            owner = members[i];
            highest = weight;
        }
    }
    return owner;
}

uint64_t shard_member_id(const char *identity)
{
    uint64_t id = rendezvous_key(ML_STR("moonloop.dev/shard-member"), ml_str_of(identity));
    return id ? id : 1;
}

/* ---- a set of members ---- */

void shard_set_add(struct shard_set *set, uint64_t id)
{
    size_t at = 0;
    while (at < set->count && set->ids[at] < id)
        at++;
    if (at == SHARD_MEMBERS_MAX || (at < set->count && set->ids[at] == id))
        return;
    size_t behind = ML_MIN(set->count, (size_t)SHARD_MEMBERS_MAX - 1) - at;
    memmove(&set->ids[at + 1], &set->ids[at], behind * sizeof *set->ids);
    set->ids[at] = id;
    set->count = at + 1 + behind;
}

bool shard_set_eq(const struct shard_set *a, const struct shard_set *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static void shard_id_format(uint64_t id, char out[SHARD_ID_LEN + 1])
{
    snprintf(out, SHARD_ID_LEN + 1, "%016llx", (unsigned long long)id);
}

bool shard_id_parse(struct ml_str text, uint64_t *out)
{
    uint64_t id = 0;
    if (text.len != SHARD_ID_LEN)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c >= '0' && c <= '9')
            id = id << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            id = id << 4 | (uint64_t)(c - 'a' + 10);
        else
            return false;
    }
    if (id == 0)
        return false;
    *out = id;
    return true;
}

char *shard_set_text(const struct shard_set *set)
{
    struct ml_buf text = ML_BUF_INIT;
    char id[SHARD_ID_LEN + 1];
    ml_buf_puts(&text, "");
    for (size_t i = 0; i < set->count; i++) {
        shard_id_format(set->ids[i], id);
        ml_buf_printf(&text, "%s%s", i ? "," : "", id);
    }
    return ml_buf_take(&text);
}

bool shard_set_parse(struct ml_str text, struct shard_set *out)
{
    struct shard_set set = {0};
    while (text.len > 0) {
        uint64_t id;
        if (set.count == SHARD_MEMBERS_MAX || !shard_id_parse(ml_str_cut(&text, ','), &id) ||
            (set.count && id <= set.ids[set.count - 1]) || (text.ptr && text.len == 0))
            return false; /* the last: a comma at the end */
        set.ids[set.count++] = id;
    }
    *out = set;
    return true;
}

/* ---- the Lease of a member ---- */

static bool shard_lease_id(struct ml_str object, const char *group, uint64_t *out)
{
    ML_AUTO_FREE char *name = ml_json_find_string(object, "metadata", "name", NULL);
    ML_AUTO_FREE char *label = ml_json_find_string(object, "metadata", "labels", SHARD_LABEL, NULL);
    size_t prefix = strlen(group);
    return name && label && strcmp(label, group) == 0 && strncmp(name, group, prefix) == 0 &&
           name[prefix] == '-' && shard_id_parse(ml_str_of(name + prefix + 1), out);
}

bool shard_lease_read(struct ml_str object, const char *group, struct shard_lease *out)
{
    struct lease_record record = {0};
    struct ml_err err;
    *out = (struct shard_lease){0};
    if (!shard_lease_id(object, group, &out->id) || lease_record_read(&record, object, &err) < 0)
        return false;
    ML_AUTO_FREE char *view = ml_json_find_string(object, "metadata", "annotations",
                                                  SHARD_ANNOTATION, NULL);
    if (!view || !shard_set_parse(ml_str_of(view), &out->view))
        shard_set_add(&out->view, out->id);
    out->uid = lease_text_of(object, "metadata", "uid");
    out->rv = lease_text_of(object, "metadata", "resourceVersion");
    out->holder = ml_take(&record.holder);
    out->duration_ns = record.duration_ns;
    lease_record_fini(&record);
    return true;
}

void shard_lease_fini(struct shard_lease *lease)
{
    free(lease->uid);
    free(lease->rv);
    free(lease->holder);
    *lease = (struct shard_lease){0};
}

char *shard_lease_name(const char *group, uint64_t id)
{
    char text[SHARD_ID_LEN + 1];
    shard_id_format(id, text);
    return ml_asprintf("%s-%s", group, text);
}

static void write_single_pair(struct ml_json_writer *writer, const char *under, const char *key,
                              const char *value)
{
    ml_json_key(writer, ml_str_of(under));
    ml_json_begin_object(writer);
    ml_json_put_string(writer, key, ml_str_of(value));
    ml_json_end_object(writer);
}

char *shard_lease_json(const struct shard_lease_text *text)
{
    ML_AUTO_FREE char *name = shard_lease_name(text->group, text->id);
    ML_AUTO_FREE char *view = shard_set_text(text->view);
    ML_AUTO(ml_buf_fini) struct ml_buf metadata = ML_BUF_INIT;
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, &metadata);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "name", ml_str_of(name));
    ml_json_put_string(&writer, "namespace", ml_str_of(text->ns));
    if (text->rv) {
        ml_json_put_string(&writer, "uid", ml_str_of(text->uid));
        ml_json_put_string(&writer, "resourceVersion", ml_str_of(text->rv));
    }
    write_single_pair(&writer, "labels", SHARD_LABEL, text->group);
    write_single_pair(&writer, "annotations", SHARD_ANNOTATION, view);
    ml_json_end_object(&writer);
    return lease_claim_json(&text->claim, ml_buf_str(&metadata));
}

/* ---- the group ---- */

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

static struct shard_peer *shard_group_find(const struct shard_group *group, uint64_t id)
{
    for (size_t i = 0; i < group->count; i++)
        if (group->peers[i].lease.id == id)
            return &group->peers[i];
    return NULL;
}

static void shard_group_drop(struct shard_group *group, size_t index)
{
    shard_lease_fini(&group->peers[index].lease);
    group->peers[index] = group->peers[--group->count];
}

/* Any write of the Lease counts as a sign of life: at worst a dead member is noticed later. */
static bool shard_lease_is_unchanged(const struct shard_lease *a, const struct shard_lease *b)
{
    return strcmp(a->uid, b->uid) == 0 && strcmp(a->rv, b->rv) == 0;
}

static void shard_group_note(struct shard_group *group, struct shard_lease *lease, int64_t now_ns)
{
    struct shard_peer *peer = shard_group_find(group, lease->id);
    if (!peer) {
        peer = &group->peers[group->count++];
        *peer = (struct shard_peer){.since_ns = now_ns};
    } else if (shard_lease_is_unchanged(&peer->lease, lease)) {
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

/* The peer is a member: it has neither left nor died. */
static bool shard_peer_counts(const struct shard_peer *peer)
{
    return !peer->dead && *peer->lease.holder;
}

static void shard_group_mark_dead(struct shard_group *group, int64_t asked_ns)
{
    for (size_t i = group->count; i-- > 0;) {
        struct shard_peer *peer = &group->peers[i];
        int64_t duration_ns = peer->lease.duration_ns ? peer->lease.duration_ns
                                                      : group->duration_ns;
        peer->dead = asked_ns - peer->since_ns >= duration_ns;
        if (!peer->present && !shard_peer_counts(peer))
            shard_group_drop(group, i);
    }
}

/* Reads the items that belong to the group. */
static int shard_group_read_items(const struct shard_group *group, struct ml_str list,
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

/* Peers whose Lease is gone are kept until they are dead; together with them there may be too many.
 */
static bool shard_group_has_room(const struct shard_group *group, const struct shard_lease *leases,
                                 size_t count)
{
    size_t unknown = 0;
    for (size_t i = 0; i < count; i++)
        unknown += leases[i].id != group->self && !shard_group_find(group, leases[i].id);
    return group->count + unknown <= SHARD_PEERS_MAX;
}

int shard_group_observe(struct shard_group *group, struct ml_str list, int64_t asked_ns,
                        int64_t now_ns, struct shard_lease *out_self, struct ml_err *err)
{
    ML_AUTO_FREE struct shard_lease *leases = ml_zalloc(SHARD_PEERS_MAX * sizeof *leases);
    size_t count = 0;
    *out_self = (struct shard_lease){0};
    int r = shard_group_read_items(group, list, leases, &count, err);
    if (r == 0 && !shard_group_has_room(group, leases, count))
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
            shard_group_note(group, &leases[i], now_ns);
    }
    shard_group_mark_dead(group, asked_ns);
    return 0;
}

bool shard_group_is_news(const struct shard_group *group, const struct shard_lease *lease)
{
    if (lease->id == group->self)
        return false;
    const struct shard_peer *peer = shard_group_find(group, lease->id);
    return !peer || !shard_peer_counts(peer) || !*lease->holder ||
           !shard_set_eq(&peer->lease.view, &lease->view);
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

/* ---- what a member may act on ---- */

static bool shard_acting_has_view(const struct shard_acting *acting, const struct shard_set *view)
{
    for (size_t i = 0; i < acting->view_count; i++)
        if (shard_set_eq(&acting->views[i], view))
            return true;
    return false;
}

/* A member that has one of our views claims none of our keys: in one view a key has one owner. */
static void shard_acting_add_claims(struct shard_acting *acting, const struct shard_group *group)
{
    acting->claims = ml_zalloc(ML_MAX(group->count, (size_t)1) * sizeof *acting->claims);
    for (size_t i = 0; i < group->count; i++) {
        const struct shard_peer *peer = &group->peers[i];
        if (!shard_peer_counts(peer) || shard_acting_has_view(acting, &peer->lease.view))
            continue;
        acting->claims[acting->claim_count++] = (struct shard_claim){
            .member = peer->lease.id,
            .view = peer->lease.view,
        };
    }
}

void shard_acting_init(struct shard_acting *out, const struct shard_group *group,
                       const struct shard_set *const *views, size_t view_count)
{
    *out = (struct shard_acting){.self = group->self};
    ml_assert(view_count <= SHARD_VIEWS_MAX);
    for (size_t i = 0; i < view_count; i++)
        if (!shard_acting_has_view(out, views[i]))
            out->views[out->view_count++] = *views[i];
    shard_acting_add_claims(out, group);
}

void shard_acting_fini(struct shard_acting *acting)
{
    free(acting->claims);
    *acting = (struct shard_acting){0};
}

bool shard_acting_acts(const struct shard_acting *acting, uint64_t key)
{
    for (size_t i = 0; i < acting->view_count; i++)
        if (rendezvous_owner(key, acting->views[i].ids, acting->views[i].count) != acting->self)
            return false;
    for (size_t i = 0; i < acting->claim_count; i++) {
        const struct shard_claim *claim = &acting->claims[i];
        if (rendezvous_owner(key, claim->view.ids, claim->view.count) == claim->member)
            return false;
    }
    return acting->view_count > 0;
}
