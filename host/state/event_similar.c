#include "state/event_similar.h"

#include "base/clock.h"

#define WINDOW_NS (600 * ML_NS_PER_S)

/* One reason of one object, and the notes it had, by their hashes. */
struct similar {
    struct ml_list node;
    int64_t last_ns;
    uint64_t notes[ML_EVENT_COMBINED_NOTES - 1];
    size_t note_count;
    size_t key_len;
    char key[];
};

static struct ml_str key_of(const struct similar *similar)
{
    return (struct ml_str){similar->key, similar->key_len};
}

void ml_event_similar_init(struct ml_event_similar *self)
{
    *self = (struct ml_event_similar){0};
    ml_list_init(&self->recent);
}

static void similar_free(struct ml_event_similar *self, struct similar *similar)
{
    ml_map_remove(&self->by_reason, key_of(similar));
    ml_list_remove(&similar->node);
    free(similar);
}

void ml_event_similar_fini(struct ml_event_similar *self)
{
    ml_list_each (node, &self->recent)
        similar_free(self, ml_container_of(node, struct similar, node));
    ml_map_fini(&self->by_reason);
}

static struct similar *similar_get(struct ml_event_similar *self, struct ml_str reason)
{
    struct similar *similar = ml_map_get(&self->by_reason, reason);
    if (similar)
        return similar;
    if (self->by_reason.len == ML_EVENT_SIMILAR_MAX)
        similar_free(self, ml_container_of(self->recent.next, struct similar, node));
    similar = ml_zalloc(sizeof *similar + reason.len);
    similar->key_len = reason.len;
    memcpy(similar->key, reason.ptr, reason.len);
    ml_list_init(&similar->node);
    ml_map_put(&self->by_reason, key_of(similar), similar);
    return similar;
}

/* FNV-1a. */
static uint64_t hash_of(struct ml_str text)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < text.len; i++)
        hash = (hash ^ (unsigned char)text.ptr[i]) * UINT64_C(1099511628211);
    return hash;
}

bool ml_event_similar_combines(struct ml_event_similar *self, struct ml_str reason,
                               struct ml_str note, int64_t now_ns)
{
    struct similar *similar = similar_get(self, reason);
    uint64_t hash = hash_of(note);
    if (now_ns - similar->last_ns > WINDOW_NS)
        similar->note_count = 0;
    similar->last_ns = now_ns;
    ml_list_remove(&similar->node);
    ml_list_push(&self->recent, &similar->node);
    for (size_t i = 0; i < similar->note_count; i++)
        if (similar->notes[i] == hash)
            return false;
    if (similar->note_count == ML_COUNT(similar->notes))
        return true;
    similar->notes[similar->note_count++] = hash;
    return false;
}
