/* What keeps the number of Events down (client-go's EventCorrelator): similar ones are combined,
 * and each object may cause only so many. The recorder asks for each Event. */
#include "state/event_correlator.h"

#include "base/clock.h"

/* ---- similar Events ---- */

#define SIMILAR_WINDOW_NS (600 * ML_NS_PER_S)

/* One reason of one object, and the notes it had, by their hashes. */
struct similar {
    struct ml_list node;
    int64_t last_ns;
    uint64_t notes[ML_EVENT_COMBINED_NOTES - 1];
    size_t note_count;
    size_t key_len;
    char key[];
};

static struct ml_str similar_key(const struct similar *similar)
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
    ml_map_remove(&self->by_reason, similar_key(similar));
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
    ml_map_put(&self->by_reason, similar_key(similar), similar);
    return similar;
}

/* FNV-1a. */
static uint64_t similar_note_hash(struct ml_str text)
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
    uint64_t hash = similar_note_hash(note);
    if (now_ns - similar->last_ns > SIMILAR_WINDOW_NS)
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

/* ---- the spam filter ---- */

#define SPAM_BURST     25
#define SPAM_REFILL_NS (300 * ML_NS_PER_S)

struct bucket {
    struct ml_list node;
    double tokens;
    int64_t at_ns;
    size_t key_len;
    char key[];
};

static struct ml_str bucket_key(const struct bucket *bucket)
{
    return (struct ml_str){bucket->key, bucket->key_len};
}

void ml_event_spam_init(struct ml_event_spam *spam)
{
    *spam = (struct ml_event_spam){0};
    ml_list_init(&spam->recent);
}

static void bucket_free(struct ml_event_spam *spam, struct bucket *bucket)
{
    ml_map_remove(&spam->by_object, bucket_key(bucket));
    ml_list_remove(&bucket->node);
    free(bucket);
}

void ml_event_spam_fini(struct ml_event_spam *spam)
{
    ml_list_each (node, &spam->recent)
        bucket_free(spam, ml_container_of(node, struct bucket, node));
    ml_map_fini(&spam->by_object);
}

static struct bucket *bucket_new(struct ml_event_spam *spam, struct ml_str object, int64_t now_ns)
{
    if (spam->by_object.len == ML_EVENT_SPAM_OBJECTS)
        bucket_free(spam, ml_container_of(spam->recent.next, struct bucket, node));
    struct bucket *bucket = ml_zalloc(sizeof *bucket + object.len);
    bucket->tokens = SPAM_BURST;
    bucket->at_ns = now_ns;
    bucket->key_len = object.len;
    memcpy(bucket->key, object.ptr, object.len);
    ml_list_init(&bucket->node);
    ml_map_put(&spam->by_object, bucket_key(bucket), bucket);
    return bucket;
}

bool ml_event_spam_allows(struct ml_event_spam *spam, struct ml_str object, int64_t now_ns)
{
    struct bucket *bucket = ml_map_get(&spam->by_object, object);
    if (!bucket)
        bucket = bucket_new(spam, object, now_ns);
    double refill = (double)(now_ns - bucket->at_ns) / (double)SPAM_REFILL_NS;
    bucket->tokens = ML_MIN(bucket->tokens + refill, (double)SPAM_BURST);
    bucket->at_ns = now_ns;
    ml_list_remove(&bucket->node);
    ml_list_push(&spam->recent, &bucket->node);
    if (bucket->tokens < 1)
        return false;
    bucket->tokens -= 1;
    return true;
}
