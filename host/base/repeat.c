/* Decides which repetitions of a failure are logged. */
#include "base/repeat.h"

#define QUIET_FIRST_NS ML_NS_PER_S
#define REPEATS_MAX    10000

struct repeat_entry {
    uint64_t id;
    struct ml_repeat repeat;
};

bool ml_repeat_failed(struct ml_repeat *self, struct ml_str text, int64_t now_ns)
{
    uint64_t hash = ml_hash(text);
    if (self->failures == 0 || self->text != hash)
        *self = (struct ml_repeat){.text = hash,
                                   .since_ns = now_ns,
                                   .quiet_until_ns = now_ns,
                                   .is_reported = self->is_reported};
    self->failures++;
    if (now_ns < self->quiet_until_ns)
        return false;
    self->quiet_until_ns = now_ns + ML_MAX(now_ns - self->since_ns, QUIET_FIRST_NS);
    return true;
}

void ml_repeat_over(struct ml_repeat *self)
{
    *self = (struct ml_repeat){0};
}

static struct ml_str id_of(const uint64_t *id)
{
    return (struct ml_str){(const char *)id, sizeof *id};
}

struct ml_repeat *ml_repeats_get(struct ml_repeats *self, struct ml_str key)
{
    uint64_t id = ml_hash(key);
    struct repeat_entry *entry = ml_map_get(&self->by_id, id_of(&id));
    if (entry)
        return &entry->repeat;
    if (self->by_id.len == REPEATS_MAX)
        ml_repeats_clear(self);
    entry = ml_new(struct repeat_entry);
    entry->id = id;
    ml_map_put(&self->by_id, id_of(&entry->id), entry);
    return &entry->repeat;
}

struct ml_repeat ml_repeats_over(struct ml_repeats *self, struct ml_str key)
{
    uint64_t id = ml_hash(key);
    ML_AUTO_FREE struct repeat_entry *entry = ml_map_remove(&self->by_id, id_of(&id));
    return entry ? entry->repeat : (struct ml_repeat){0};
}

void ml_repeats_clear(struct ml_repeats *self)
{
    ml_map_each (&self->by_id, cursor, entry)
        free(entry);
    ml_map_fini(&self->by_id);
}
