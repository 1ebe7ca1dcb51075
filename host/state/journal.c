/* The journal of runs and writes. Each entry is in one piece, a head and its texts; one that does
 * not fit at the end of the block goes to the beginning. */
#include "state/journal.h"

#define TEXTS 7 /* of an entry: see texts_of */
#define ALIGN sizeof(int64_t)

struct head {
    int64_t at_ns, waited_ns, took_ns, cpu_ns;
    uint32_t len; /* of the entry; 0: nothing more up to the end of the block */
    uint32_t writes;
    uint16_t lens[TEXTS];
    uint8_t what;
};

struct ml_journal {
    char *bytes;
    size_t capacity;
    size_t first; /* where the oldest entry begins */
    size_t next;  /* where the next one goes */
    size_t count;
    uint64_t added; /* entries that there ever were */
    uint64_t runs;  /* of these */
};

/* The texts of an entry, in the order in which they are kept. */
static void texts_of(struct ml_journal_entry *entry, struct ml_str *out[TEXTS])
{
    bool is_run = entry->what == ML_JOURNAL_RUN;
    struct ml_str *const texts[TEXTS] = {
        &entry->controller,
        &entry->key,
        &entry->error,
        is_run ? &entry->revision : &entry->verb,
        is_run ? &entry->cause : &entry->kind,
        is_run ? &entry->result : &entry->name,
        &entry->place,
    };
    memcpy(out, texts, sizeof texts);
}

struct ml_journal *ml_journal_new(size_t bytes)
{
    struct ml_journal *self = ml_new(struct ml_journal);
    self->capacity = bytes - bytes % ALIGN;
    self->bytes = ml_zalloc(self->capacity);
    return self;
}

void ml_journal_free(struct ml_journal *self)
{
    if (!self)
        return;
    free(self->bytes);
    free(self);
}

/* At `at` or, if the rest of the block is empty, at its beginning. */
static size_t skip_rest(const struct ml_journal *self, size_t at)
{
    struct head head;
    if (self->capacity - at < sizeof head)
        return 0;
    memcpy(&head, self->bytes + at, sizeof head);
    return head.len == 0 ? 0 : at;
}

static void drop_oldest(struct ml_journal *self)
{
    struct head head;
    memcpy(&head, self->bytes + self->first, sizeof head);
    self->count--;
    self->first = self->count == 0 ? self->next : skip_rest(self, self->first + head.len);
}

/* Makes room for `len` bytes in one piece, at self->next. */
static void make_room(struct ml_journal *self, size_t len)
{
    if (self->capacity - self->next < len) {
        while (self->count > 0 && self->first >= self->next)
            drop_oldest(self);
        if (self->capacity - self->next >= sizeof(struct head))
            memset(self->bytes + self->next, 0, sizeof(struct head));
        self->next = 0;
        if (self->count == 0)
            self->first = 0;
    }
    while (self->count > 0 && self->first >= self->next && self->first - self->next < len)
        drop_oldest(self);
}

void ml_journal_add(struct ml_journal *self, const struct ml_journal_entry *entry)
{
    struct ml_journal_entry copy;
    struct ml_str *texts[TEXTS];
    if (!self)
        return;
    copy = *entry;
    texts_of(&copy, texts);
    struct head head = {
        .at_ns = copy.at_ns,
        .waited_ns = copy.waited_ns,
        .took_ns = copy.took_ns,
        .cpu_ns = copy.cpu_ns,
        .writes = (uint32_t)ML_MIN(copy.writes, (size_t)UINT32_MAX),
        .what = (uint8_t)copy.what,
    };
    size_t len = sizeof head;
    for (size_t i = 0; i < TEXTS; i++) {
        *texts[i] = ml_str_head(*texts[i], ML_JOURNAL_TEXT_MAX);
        head.lens[i] = (uint16_t)texts[i]->len;
        len += texts[i]->len;
    }
    len += ALIGN - 1 - (len - 1) % ALIGN;
    make_room(self, len);
    head.len = (uint32_t)len;
    char *at = self->bytes + self->next;
    memcpy(at, &head, sizeof head);
    at += sizeof head;
    for (size_t i = 0; i < TEXTS; i++) {
        if (texts[i]->len > 0)
            memcpy(at, texts[i]->ptr, texts[i]->len);
        at += texts[i]->len;
    }
    self->next += len;
    self->count++;
    self->added++;
    self->runs += copy.what == ML_JOURNAL_RUN;
}

uint64_t ml_journal_added(const struct ml_journal *self)
{
    return self ? self->added : 0;
}

uint64_t ml_journal_runs(const struct ml_journal *self)
{
    return self ? self->runs : 0;
}

bool ml_journal_next(const struct ml_journal *self, struct ml_journal_cursor *cursor,
                     struct ml_journal_entry *out)
{
    struct ml_str *texts[TEXTS];
    struct head head;
    if (cursor->count == self->count)
        return false;
    size_t at = cursor->count == 0 ? self->first : skip_rest(self, cursor->at);
    memcpy(&head, self->bytes + at, sizeof head);
    *out = (struct ml_journal_entry){
        .number = self->added - self->count + cursor->count + 1,
        .what = (enum ml_journal_what)head.what,
        .at_ns = head.at_ns,
        .waited_ns = head.waited_ns,
        .took_ns = head.took_ns,
        .cpu_ns = head.cpu_ns,
        .writes = head.writes,
    };
    texts_of(out, texts);
    cursor->count++;
    cursor->at = at + head.len;
    at += sizeof head;
    for (size_t i = 0; i < TEXTS; i++) {
        *texts[i] = (struct ml_str){self->bytes + at, head.lens[i]};
        at += head.lens[i];
    }
    return true;
}
