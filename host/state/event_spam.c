#include "state/event_spam.h"

#define BURST     25
#define REFILL_NS (300 * ML_NS_PER_S)

struct bucket {
    struct ml_list node;
    double tokens;
    int64_t at_ns;
    size_t key_len;
    char key[];
};

static struct ml_str key_of(const struct bucket *bucket)
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
    ml_map_remove(&spam->by_object, key_of(bucket));
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
    bucket->tokens = BURST;
    bucket->at_ns = now_ns;
    bucket->key_len = object.len;
    memcpy(bucket->key, object.ptr, object.len);
    ml_list_init(&bucket->node);
    ml_map_put(&spam->by_object, key_of(bucket), bucket);
    return bucket;
}

bool ml_event_spam_allows(struct ml_event_spam *spam, struct ml_str object, int64_t now_ns)
{
    struct bucket *bucket = ml_map_get(&spam->by_object, object);
    if (!bucket)
        bucket = bucket_new(spam, object, now_ns);
    double refill = (double)(now_ns - bucket->at_ns) / (double)REFILL_NS;
    bucket->tokens = ML_MIN(bucket->tokens + refill, (double)BURST);
    bucket->at_ns = now_ns;
    ml_list_remove(&bucket->node);
    ml_list_push(&spam->recent, &bucket->node);
    if (bucket->tokens < 1)
        return false;
    bucket->tokens -= 1;
    return true;
}
