#include "state/shard_set.h"

#include "base/buf.h"
#include "state/rendezvous.h"

#include <stdio.h>

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

bool shard_set_has(const struct shard_set *set, uint64_t id)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->ids[i] == id)
            return true;
    return false;
}

bool shard_set_eq(const struct shard_set *a, const struct shard_set *b)
{
    return a->count == b->count && memcmp(a->ids, b->ids, a->count * sizeof *a->ids) == 0;
}

uint64_t shard_set_owner(const struct shard_set *set, uint64_t key)
{
    return rendezvous_owner(key, set->ids, set->count);
}

void shard_id_format(uint64_t id, char out[SHARD_ID_LEN + 1])
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
