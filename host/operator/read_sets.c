/* The read sets of a controller's keys (read_sets.h). Keys whose runs read the same share one. */
#include "operator/read_sets.h"

#include "codec/json.h"
#include "kube/object_diff.h"
#include "operator/status.h"

#define SCRIPT_KINDS 64 /* more than a script declares */

/* The set of a key: a part of its record. */
struct ml_key_reads {
    struct ml_key *key;
    struct ml_read_set *set;
    uint64_t objects;                   /* as in ml_read_versions */
    struct ml_read_list_version *lists; /* NULL: none; `changes`: all up to that one are known */
    uint8_t list_count;
    bool awaits_echo; /* the status that the run wrote has not come back yet */
    uint32_t passed;  /* the change that was let pass last; a key may be told of one twice */
};

/* A read set that keys share. */
struct shared {
    struct ml_read_set *set;
    size_t users;
};

/* An object that keys look for. The name has a byte for the kind and the object's key; only the
 * byte: all objects of the kind. */
struct looked_for {
    struct ml_list readers;
    size_t name_len;
    char name[];
};

/* The objects that a key looks for, and for each the link in its list of readers. */
struct reader {
    struct looked_for *what;
    struct ml_key_lookups *of;
    struct ml_list node;
};

/* Another part of its record. */
struct ml_key_lookups {
    struct ml_key *key;
    struct reader *readers;
    size_t count;
};

struct ml_read_sets {
    struct ml_keys *keys;
    struct ml_map looked_for; /* name -> struct looked_for */
    struct ml_map shared;     /* bytes -> shared */
    size_t bytes;
    struct ml_buf field;
};

static struct ml_key_reads *find_entry(const struct ml_read_sets *self, struct ml_str key)
{
    const struct ml_key *record = ml_keys_find(self->keys, key);
    return record ? record->reads : NULL;
}

static struct ml_key_lookups *find_lookups(const struct ml_read_sets *self, struct ml_str key)
{
    const struct ml_key *record = ml_keys_find(self->keys, key);
    return record ? record->lookups : NULL;
}

static size_t bytes_of_entry(const struct ml_key_reads *entry)
{
    return sizeof *entry + entry->list_count * sizeof *entry->lists;
}

static size_t bytes_of_shared(const struct shared *shared)
{
    return sizeof(*shared) + sizeof(struct ml_map_slot) + 2 * sizeof(uint32_t) +
           ml_read_set_bytes(shared->set).len;
}

struct ml_read_sets *ml_read_sets_new(struct ml_keys *keys)
{
    struct ml_read_sets *self = ml_new(struct ml_read_sets);
    self->keys = keys;
    return self;
}

static struct ml_read_set *share(struct ml_read_sets *self, struct ml_read_set *set)
{
    struct shared *shared = ml_map_get(&self->shared, ml_read_set_bytes(set));
    if (!shared) {
        shared = ml_new(struct shared);
        shared->set = ml_read_set_ref(set);
        ml_map_put(&self->shared, ml_read_set_bytes(set), shared);
        self->bytes += bytes_of_shared(shared);
    }
    shared->users++;
    return shared->set;
}

static void unshare(struct ml_read_sets *self, struct ml_read_set *set)
{
    struct shared *shared = ml_map_get(&self->shared, ml_read_set_bytes(set));
    if (--shared->users > 0)
        return;
    ml_map_remove(&self->shared, ml_read_set_bytes(set));
    self->bytes -= bytes_of_shared(shared);
    ml_read_set_unref(shared->set);
    free(shared);
}

static void entry_free(struct ml_read_sets *self, struct ml_key_reads *entry)
{
    self->bytes -= bytes_of_entry(entry);
    unshare(self, entry->set);
    free(entry->lists);
    entry->key->reads = NULL;
    ml_key_unref(entry->key);
    free(entry);
}

/* ---- what keys look for ---- */

static size_t bytes_of_looked_for(const struct looked_for *what)
{
    return sizeof *what + what->name_len + sizeof(struct ml_map_slot) + 2 * sizeof(uint32_t);
}

static size_t bytes_of_lookups(const struct ml_key_lookups *lookups)
{
    return sizeof *lookups + lookups->count * sizeof *lookups->readers;
}

static struct looked_for *looked_for_get(struct ml_read_sets *self, size_t kind, struct ml_str key)
{
    ML_AUTO(ml_buf_fini) struct ml_buf name = ML_BUF_INIT;
    ml_buf_putc(&name, (char)kind);
    ml_buf_append_str(&name, key);
    struct looked_for *what = ml_map_get(&self->looked_for, ml_buf_str(&name));
    if (what)
        return what;
    what = ml_zalloc(sizeof *what + name.len);
    what->name_len = name.len;
    memcpy(what->name, name.ptr, name.len);
    ml_list_init(&what->readers);
    ml_map_put(&self->looked_for, (struct ml_str){what->name, what->name_len}, what);
    self->bytes += bytes_of_looked_for(what);
    return what;
}

static void lookups_free(struct ml_read_sets *self, struct ml_key_lookups *lookups)
{
    self->bytes -= bytes_of_lookups(lookups);
    for (size_t i = 0; i < lookups->count; i++) {
        struct looked_for *what = lookups->readers[i].what;
        ml_list_remove(&lookups->readers[i].node);
        if (!ml_list_empty(&what->readers))
            continue;
        ml_map_remove(&self->looked_for, (struct ml_str){what->name, what->name_len});
        self->bytes -= bytes_of_looked_for(what);
        free(what);
    }
    lookups->key->lookups = NULL;
    ml_key_unref(lookups->key);
    free(lookups->readers);
    free(lookups);
}

static bool looks_for(const struct ml_key_lookups *lookups, size_t kind, struct ml_str key)
{
    for (size_t i = 0; lookups && i < lookups->count; i++) {
        const struct looked_for *what = lookups->readers[i].what;
        if ((uint8_t)what->name[0] == kind && what->name_len == key.len + 1 &&
            memcmp(what->name + 1, key.ptr, key.len) == 0)
            return true;
    }
    return false;
}

/* Is each change of it told to the key of `owner` as one of what it owns? */
static bool is_told_anyway(const struct ml_revision *revision, size_t kind,
                           const struct ml_object *object, const struct ml_object *owner)
{
    struct ml_owner controller;
    if (!object || !ml_object_controller(object, &controller) ||
        !ml_str_eq(controller.uid, ml_object_uid(owner)))
        return false;
    for (size_t i = kind; i < revision->declaration->kind_count; i++)
        if (revision->informers[i] == revision->informers[kind] &&
            revision->declaration->kinds[i].use == ML_USE_OWNS)
            return true;
    return false;
}

/* Has somebody else changed it since the run looked for it? */
static bool is_missed(const struct ml_revision *revision, size_t kind, struct ml_str key,
                      uint64_t version, const struct ml_object *owner)
{
    struct ml_informer *informer = revision->informers[kind];
    const struct ml_object *now = ml_store_get(ml_informer_store(informer), key);
    return ml_read_version(kind, key, now) != version &&
           !(now && ml_expectations_is_echo(revision->expectations, ml_object_key(owner), informer,
                                            ml_object_rv_number(now)));
}

static struct ml_key_lookups *lookups_new(size_t most)
{
    struct ml_key_lookups *lookups = ml_new(struct ml_key_lookups);
    lookups->readers = ml_zalloc(most * sizeof *lookups->readers);
    return lookups;
}

static void add_reader(struct ml_read_sets *self, struct ml_key_lookups *lookups, size_t kind,
                       struct ml_str key)
{
    struct reader *reader = &lookups->readers[lookups->count++];
    reader->of = lookups;
    reader->what = looked_for_get(self, kind, key);
    ml_list_push(&reader->what->readers, &reader->node);
}

bool ml_read_sets_look(struct ml_read_sets *self, const struct ml_revision *revision,
                       const struct ml_object *owner, const struct ml_read_names *names)
{
    struct ml_str key = ml_object_key(owner), name;
    struct ml_key_lookups *old = find_lookups(self, key);
    size_t cursor = 0, kind;
    uint64_t version;
    bool missed = false;
    size_t most = names->count + (size_t)__builtin_popcountll(names->whole_kinds);
    struct ml_key_lookups *lookups = lookups_new(most);
    while (ml_read_names_next(names, &cursor, &kind, &name, &version)) {
        const struct ml_informer *informer = revision->informers[kind];
        if (is_told_anyway(revision, kind, ml_store_get(ml_informer_store(informer), name), owner))
            continue;
        missed = missed ||
                 (!looks_for(old, kind, name) && is_missed(revision, kind, name, version, owner));
        add_reader(self, lookups, kind, name);
    }
    for (kind = 0; kind < SCRIPT_KINDS; kind++) {
        if (!(names->whole_kinds & UINT64_C(1) << kind))
            continue;
        missed = missed || !looks_for(old, kind, ML_STR(""));
        add_reader(self, lookups, kind, ML_STR(""));
    }
    if (old)
        lookups_free(self, old);
    if (lookups->count == 0) {
        free(lookups->readers);
        free(lookups);
        return missed;
    }
    lookups->key = ml_keys_ref(self->keys, key);
    lookups->key->lookups = lookups;
    self->bytes += bytes_of_lookups(lookups);
    return missed;
}

void ml_read_sets_find_readers(const struct ml_read_sets *self, size_t kind, struct ml_str object,
                               struct ml_buf *out)
{
    ML_AUTO(ml_buf_fini) struct ml_buf name = ML_BUF_INIT;
    if (self->looked_for.len == 0)
        return;
    ml_buf_putc(&name, (char)kind);
    ml_buf_append_str(&name, object);
    const struct ml_str names[] = {ml_buf_str(&name), {name.ptr, 1}};
    for (size_t i = 0; i < ML_COUNT(names); i++) {
        struct looked_for *what = ml_map_get(&self->looked_for, names[i]);
        if (!what)
            continue;
        ml_list_each_entry (struct reader, reader, &what->readers) {
            ml_buf_append_str(out, ml_key_str(reader->of->key));
            ml_buf_putc(out, '\0');
        }
    }
}

/* ---- all of a key ---- */

void ml_read_sets_drop_all(struct ml_read_sets *self)
{
    ml_keys_each(self->keys, key)
    {
        struct ml_key_lookups *lookups = key->lookups;
        if (key->reads)
            entry_free(self, key->reads);
        if (lookups)
            lookups_free(self, lookups);
    }
}

void ml_read_sets_free(struct ml_read_sets *self)
{
    if (!self)
        return;
    ml_read_sets_drop_all(self);
    ml_map_fini(&self->looked_for);
    ml_map_fini(&self->shared);
    ml_buf_fini(&self->field);
    free(self);
}

static void drop_set(struct ml_read_sets *self, struct ml_str key)
{
    struct ml_key_reads *entry = find_entry(self, key);
    if (entry)
        entry_free(self, entry);
}

void ml_read_sets_drop(struct ml_read_sets *self, struct ml_str key)
{
    struct ml_key_lookups *lookups = find_lookups(self, key);
    drop_set(self, key);
    if (lookups)
        lookups_free(self, lookups);
}

static void put_versions(struct ml_key_reads *entry, const struct ml_read_versions *versions)
{
    size_t bytes = versions->list_count * sizeof(*entry->lists);
    entry->objects = versions->objects;
    entry->list_count = (uint8_t)versions->list_count;
    if (bytes == 0)
        return;
    entry->lists = ml_alloc(bytes);
    memcpy(entry->lists, versions->lists, bytes);
}

void ml_read_sets_put(struct ml_read_sets *self, struct ml_str key, struct ml_read_set *set,
                      const struct ml_read_versions *versions, bool wrote_status)
{
    drop_set(self, key);
    if (!set)
        return;
    struct ml_key_reads *entry = ml_new(struct ml_key_reads);
    entry->key = ml_keys_ref(self->keys, key);
    entry->key->reads = entry;
    entry->set = share(self, set);
    entry->awaits_echo = wrote_status;
    put_versions(entry, versions);
    self->bytes += bytes_of_entry(entry);
}

static bool is_own_object(const struct ml_revision *revision, struct ml_str key,
                          const struct ml_change *change)
{
    const struct ml_object *object = change->new ? change->new : change->old;
    return change->informer == revision->informers[0] && ml_str_eq(ml_object_key(object), key);
}

/* Of the reconciled object only a change of its status may not matter, and that of a failure which
 * the object tells does: the host takes it back, whether the script returns a status or not. */
static bool own_change_matters(struct ml_read_sets *self, const struct ml_revision *revision,
                               const struct ml_change *change)
{
    if (!change->old || !change->new)
        return true;
    unsigned parts = ml_object_diff(change->old, change->new, &self->field);
    const struct ml_declaration *declaration = revision->declaration;
    if ((parts & ~(unsigned)ML_PART_STATUS) ||
        ml_object_says_failed(change->new, declaration->name, declaration->formerly))
        return true;
    ml_buf_clear(&self->field);
    return false;
}

/* The change did not matter: what was read is what there is now. */
static void note_passed(struct ml_key_reads *entry, size_t kind, bool is_self,
                        const struct ml_change *change)
{
    struct ml_str key = ml_key_str(entry->key);
    ML_AUTO(ml_buf_fini) struct ml_buf read = ML_BUF_INIT;
    size_t cursor = 0, read_kind;
    uint32_t passed = (uint32_t)(change->number * SCRIPT_KINDS + kind + 1);
    if (entry->passed == passed)
        return;
    entry->passed = passed;
    for (size_t i = 0; i < entry->list_count; i++)
        if (entry->lists[i].kind == kind && change->number == entry->lists[i].changes + 1)
            entry->lists[i].changes++;
    if (!change->old || !change->new)
        return;
    struct ml_str changed = ml_object_key(change->new);
    uint64_t step = ml_read_version(kind, changed, change->new) -
                    ml_read_version(kind, changed, change->old);
    if (is_self)
        entry->objects += step;
    while (ml_read_set_next_object(entry->set, key, &cursor, &read_kind, &read))
        if (read_kind == kind && ml_str_eq(ml_buf_str(&read), changed))
            entry->objects += step;
}

bool ml_read_sets_matters(struct ml_read_sets *self, const struct ml_revision *revision,
                          struct ml_str key, const struct ml_change *change, bool own_status)
{
    struct ml_key_reads *entry = find_entry(self, key);
    ml_buf_clear(&self->field);
    if (!entry || ml_script_reads_off(revision->script) || change->child_deleted)
        return true;
    const struct ml_read_change read = {
        .kind = ml_revision_kind_index(revision, change->informer),
        .old = change->old,
        .new = change->new,
        .own_key = key,
        .self = is_own_object(revision, key, change),
        .own_status = own_status,
    };
    if (read.self && !own_status && own_change_matters(self, revision, change))
        return true;
    if (ml_read_set_touched(entry->set, &read, &self->field))
        return true;
    note_passed(entry, read.kind, read.self, change);
    entry->awaits_echo = entry->awaits_echo && !own_status;
    return false;
}

static uint64_t version_now(const struct ml_revision *revision, size_t kind, struct ml_str key)
{
    const struct ml_informer *informer = revision->informers[kind];
    return ml_read_version(kind, key, ml_store_get(ml_informer_store(informer), key));
}

bool ml_read_sets_uncertain(const struct ml_read_sets *self, const struct ml_revision *revision,
                            struct ml_str key)
{
    const struct ml_key_reads *entry = find_entry(self, key);
    ML_AUTO(ml_buf_fini) struct ml_buf read = ML_BUF_INIT;
    size_t cursor = 0, kind;
    if (!entry || entry->awaits_echo)
        return true;
    for (size_t i = 0; i < entry->list_count; i++)
        if (ml_informer_changes(revision->informers[entry->lists[i].kind]) !=
            entry->lists[i].changes)
            return true;
    uint64_t objects = version_now(revision, 0, key);
    while (ml_read_set_next_object(entry->set, key, &cursor, &kind, &read))
        objects += version_now(revision, kind, ml_buf_str(&read));
    return objects != entry->objects;
}

void ml_read_sets_take_field(struct ml_read_sets *self, struct ml_buf *out)
{
    ml_buf_append_str(out, ml_buf_str(&self->field));
    ml_buf_clear(&self->field);
}

bool ml_read_sets_describe(const struct ml_read_sets *self, const struct ml_revision *revision,
                           struct ml_str key, struct ml_buf *out)
{
    const struct ml_key_reads *entry = find_entry(self, key);
    if (!entry || !entry->set)
        return false;
    ml_read_set_describe(entry->set, key, revision->kinds, out);
    return true;
}

size_t ml_read_sets_bytes(const struct ml_read_sets *self)
{
    return self->bytes;
}
