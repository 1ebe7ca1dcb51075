/* What keeps the number of Events down (client-go's EventCorrelator): similar ones are combined,
 * and each object may cause only so many. The recorder asks for each Event. */
#include "state/event_correlator.h"

#include "base/clock.h"

/* ---- what was seen lately ---- */

/* The head of an entry; its key stands behind the entry. */
struct entry {
    int64_t last_ns; /* when it was asked for last, before this time */
    struct ml_str key;
};

static struct ml_str entry_key(const void *entry)
{
    return ((const struct entry *)entry)->key;
}

void ml_event_recent_init(struct ml_event_recent *recent)
{
    *recent = (struct ml_event_recent){.by_key.key = entry_key};
}

void ml_event_recent_fini(struct ml_event_recent *recent)
{
    ml_set_each (&recent->by_key, cursor, entry)
        free(entry);
    ml_set_fini(&recent->by_key);
}

static struct entry *entry_new(struct ml_str key, size_t size, int64_t now_ns)
{
    struct entry *entry = ml_zalloc(size + key.len);
    entry->key = (struct ml_str){(char *)entry + size, key.len};
    memcpy((char *)entry + size, key.ptr, key.len);
    entry->last_ns = now_ns;
    return entry;
}

/* The entry of the key, of `size` bytes: a new one is zero but for its head. It is the newest now.
 */
static void *entry_get(struct ml_event_recent *recent, struct ml_str key, size_t size, size_t max,
                       int64_t now_ns)
{
    struct entry *entry = ml_set_remove(&recent->by_key, key);
    if (!entry && recent->by_key.len == max) {
        size_t first = 0;
        free(ml_set_remove(&recent->by_key, entry_key(ml_set_next(&recent->by_key, &first))));
    }
    if (!entry)
        entry = entry_new(key, size, now_ns);
    ml_set_put(&recent->by_key, entry);
    return entry;
}

/* ---- similar Events ---- */

#define SIMILAR_WINDOW_NS (600 * ML_NS_PER_S)

/* One reason of one object, and the notes it had, by their hashes. */
struct similar {
    struct entry entry;
    uint64_t notes[ML_EVENT_COMBINED_NOTES - 1];
    size_t note_count;
};

bool ml_event_similar_combines(struct ml_event_recent *recent, struct ml_str reason,
                               struct ml_str note, int64_t now_ns)
{
    struct similar *similar = entry_get(recent, reason, sizeof *similar, ML_EVENT_SIMILAR_MAX,
                                        now_ns);
    uint64_t hash = ml_str_hash(note);
    if (now_ns - similar->entry.last_ns > SIMILAR_WINDOW_NS)
        similar->note_count = 0;
    similar->entry.last_ns = now_ns;
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
    struct entry entry;
    bool filled; /* once, with SPAM_BURST */
    double tokens;
};

bool ml_event_spam_allows(struct ml_event_recent *recent, struct ml_str object, int64_t now_ns)
{
    struct bucket *bucket = entry_get(recent, object, sizeof *bucket, ML_EVENT_SPAM_OBJECTS,
                                      now_ns);
    double refill = (double)(now_ns - bucket->entry.last_ns) / (double)SPAM_REFILL_NS;
    bucket->tokens = bucket->filled ? ML_MIN(bucket->tokens + refill, (double)SPAM_BURST)
                                    : (double)SPAM_BURST;
    bucket->filled = true;
    bucket->entry.last_ns = now_ns;
    if (bucket->tokens < 1)
        return false;
    bucket->tokens -= 1;
    return true;
}
