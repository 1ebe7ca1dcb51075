/* Fields that the server does not keep as they are sent (unkept.h). Called for the status that a
 * script returned (reconcile.c), and by ctx.patch. */
#include "kube/unkept.h"

#include "base/clock.h"
#include "codec/json_diff.h"
#include "codec/json_members.h"

#include <stdio.h>

#define FIELDS_MAX   1000 /* then all are forgotten, but for those that were named */
#define TOLD_MAX     100
#define AT_ONCE_MAX  64 /* in one patch */
#define FORGET_NS    (600 * ML_NS_PER_S)
#define PATH_MAX_LEN 512 /* a field with a longer one is never known */
#define NAMED_MAX    5   /* at once */
#define NAME_MAX_LEN 120 /* bytes of each */

/* ---- one field after the other ---- */

struct field {
    struct ml_str path; /* "status.phase", "status.items[].size" */
    bool left_out;      /* the server does not have it */
    uint64_t values;    /* a hash of what was sent and of what is there */
};

typedef void field_fn(void *context, const struct field *field);

struct walk {
    field_fn *each;
    void *context;
    size_t count;
    struct ml_buf path;
};

static void walk_value(struct walk *walk, struct ml_str kept, struct ml_str sent, bool in_list);

static void report_field(struct walk *walk, struct ml_str kept, struct ml_str sent)
{
    if (walk->count++ >= AT_ONCE_MAX)
        return;
    const struct field field = {
        .path = ml_buf_str(&walk->path),
        .left_out = kept.len == 0,
        .values = ml_str_hash(kept) * 31 + ml_str_hash(sent),
    };
    walk->each(walk->context, &field);
}

static void walk_member(struct walk *walk, struct ml_str key, struct ml_str kept,
                        struct ml_str sent, bool in_list)
{
    size_t parent = walk->path.len;
    bool plain = !memchr(key.ptr, '.', key.len);
    ml_buf_printf(&walk->path, plain ? "." ML_STR_FMT : "[" ML_STR_FMT "]", ML_STR_ARG(key));
    walk_value(walk, kept, sent, in_list);
    walk->path.len = parent;
}

/* Members that are kept and were not sent. */
static void walk_others(struct walk *walk, struct ml_str kept, const struct ml_json_members *sent)
{
    ML_AUTO(ml_json_members_fini) struct ml_json_members are = {0};
    struct ml_err err = ML_ERR_INIT;
    if (!ml_json_members_read(&are, kept, 0, &err))
        return;
    for (size_t i = 0; i < are.len; i++)
        if (!ml_json_members_find(sent, are.items[i].key))
            walk_member(walk, are.items[i].key, are.items[i].value, ML_STR("null"), true);
}

/* False: one of them is no object. Lists are replaced as a whole: other fields of their items shall
 * be gone. `kept` may be much larger than `sent`. */
static bool walk_objects(struct walk *walk, struct ml_str kept, struct ml_str sent, bool in_list)
{
    ML_AUTO(ml_json_members_fini) struct ml_json_members want = {0};
    struct ml_err err = ML_ERR_INIT;
    if (!ml_json_members_read(&want, sent, 0, &err))
        return false;
    ML_AUTO_FREE struct ml_str *is = ml_zalloc((want.len + 1) * sizeof *is);
    if (!ml_json_members_values(&want, kept, is))
        return false;
    for (size_t i = 0; i < want.len; i++)
        walk_member(walk, want.items[i].key, is[i], want.items[i].value, in_list);
    if (in_list)
        walk_others(walk, kept, &want);
    return true;
}

static size_t count_elements(struct ml_str list)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    size_t count = 0;
    ml_json_reader_init(&reader, list, 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return 0;
    while (ml_json_skip(&reader).len > 0)
        count++;
    return count;
}

/* False: they are no lists of the same length. */
static bool walk_lists(struct walk *walk, struct ml_str kept, struct ml_str sent)
{
    size_t count = count_elements(kept), parent = walk->path.len;
    if (count == 0 || count != count_elements(sent))
        return false;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader is, want;
    ml_json_reader_init(&is, kept, 0);
    ml_json_reader_init(&want, sent, 0);
    ml_json_next(&is);
    ml_json_next(&want);
    ml_buf_puts(&walk->path, "[]");
    for (size_t i = 0; i < count; i++) {
        struct ml_str element = ml_json_skip(&is);
        walk_value(walk, element, ml_json_skip(&want), true);
    }
    walk->path.len = parent;
    return true;
}

/* `kept` is empty where nothing is. A null that was sent takes a field away. */
static void walk_value(struct walk *walk, struct ml_str kept, struct ml_str sent, bool in_list)
{
    bool is_gone = kept.len == 0 || ml_str_is(kept, "null");
    if (walk->count > AT_ONCE_MAX || (ml_str_is(sent, "null") && is_gone))
        return;
    if (kept.len > 0 && (walk_objects(walk, kept, sent, in_list) || ml_json_equal(kept, sent) ||
                         walk_lists(walk, kept, sent)))
        return;
    report_field(walk, kept, sent);
}

/* Calls `each` for every field of the patch that the server does not have so. False: there are more
 * than AT_ONCE_MAX, and the rest is passed over. */
static bool each_unkept(const struct ml_unkept_patch *patch, field_fn *each, void *context)
{
    struct walk walk = {.each = each, .context = context, .path = ML_BUF_INIT};
    ml_buf_puts(&walk.path, patch->root);
    walk_value(&walk, patch->kept.len > 0 ? patch->kept : ML_STR("{}"), patch->sent, false);
    ml_buf_fini(&walk.path);
    return walk.count <= AT_ONCE_MAX;
}

/* ---- the fields that are known ---- */

struct known {
    int64_t until_ns; /* INT64_MAX: it was named */
    char key[];
};

static bool is_misspelt(const struct ml_unkept_patch *patch, const struct field *field)
{
    return field->left_out && !patch->built_in;
}

/* The schema of a custom resource has a field or not, whatever its value. */
static char *key_of(const struct ml_unkept_patch *patch, const struct field *field)
{
    if (is_misspelt(patch, field))
        return ml_str_dup(field->path);
    return ml_asprintf(ML_STR_FMT " %016llx", ML_STR_ARG(field->path),
                       (unsigned long long)field->values);
}

static size_t known_bytes(const struct known *known)
{
    return sizeof(*known) + strlen(known->key) + 1 + 2 * sizeof(struct ml_map_slot);
}

static void forget(struct ml_unkept *self, bool all)
{
    size_t cursor = 0;
    for (struct known *known; (known = ml_map_next(&self->fields, &cursor, NULL)) != NULL;) {
        if (known->until_ns == INT64_MAX && !all)
            continue;
        ml_map_remove(&self->fields, ml_str_of(known->key));
        ml_budget_give(self->budget, known_bytes(known));
        free(known);
    }
}

void ml_unkept_fini(struct ml_unkept *self)
{
    forget(self, true);
    ml_map_fini(&self->fields);
}

/* Without memory for it, it is not known. */
static void remember(struct ml_unkept *self, const char *key, int64_t until_ns)
{
    struct known *known = ml_map_get(&self->fields, ml_str_of(key));
    if (known) {
        known->until_ns = until_ns;
        return;
    }
    if (self->fields.len >= FIELDS_MAX)
        forget(self, false);
    size_t size = strlen(key) + 1;
    known = ml_zalloc(sizeof(*known) + size);
    known->until_ns = until_ns;
    memcpy(known->key, key, size);
    if (!ml_budget_take(self->budget, known_bytes(known))) {
        free(known);
        return;
    }
    ml_map_put(&self->fields, ml_str_of(known->key), known);
}

struct cover {
    const struct ml_unkept *unkept;
    const struct ml_unkept_patch *patch;
    size_t known, unknown;
};

static void look_up(void *context, const struct field *field)
{
    struct cover *cover = context;
    ML_AUTO_FREE char *key = key_of(cover->patch, field);
    const struct known *known = ml_map_get(&cover->unkept->fields, ml_str_of(key));
    bool is_known = known && cover->patch->now_ns < known->until_ns;
    cover->known += is_known;
    cover->unknown += !is_known;
}

bool ml_unkept_covers(const struct ml_unkept *self, const struct ml_unkept_patch *patch)
{
    struct cover cover = {.unkept = self, .patch = patch};
    return each_unkept(patch, look_up, &cover) && cover.known > 0 && cover.unknown == 0;
}

struct lesson {
    struct ml_unkept *unkept;
    const struct ml_unkept_patch *patch;
    struct ml_unkept_names *names; /* or NULL */
    size_t left_out, changed;      /* how many are named */
};

/* Appends the path, unless it was named before. */
static void name_field(struct lesson *lesson, struct ml_str path, struct ml_buf *out, size_t *count)
{
    struct ml_unkept *self = lesson->unkept;
    const char *except = lesson->names->except;
    ML_AUTO_FREE char *told = ml_asprintf("told " ML_STR_FMT, ML_STR_ARG(path));
    if ((except && ml_str_is(path, except)) || *count >= NAMED_MAX || self->told >= TOLD_MAX ||
        ml_map_get(&self->fields, ml_str_of(told)))
        return;
    remember(self, told, INT64_MAX);
    self->told++;
    struct ml_str name = ml_str_head(path, NAME_MAX_LEN);
    ml_buf_printf(out, "%s" ML_STR_FMT, (*count)++ ? ", " : "", ML_STR_ARG(name));
}

static void learn_field(void *context, const struct field *field)
{
    struct lesson *lesson = context;
    ML_AUTO_FREE char *key = key_of(lesson->patch, field);
    if (field->path.len > PATH_MAX_LEN)
        return;
    remember(lesson->unkept, key, lesson->patch->now_ns + FORGET_NS);
    if (!lesson->names)
        return;
    if (is_misspelt(lesson->patch, field))
        name_field(lesson, field->path, &lesson->names->left_out, &lesson->left_out);
    else
        name_field(lesson, field->path, &lesson->names->changed, &lesson->changed);
}

void ml_unkept_learn(struct ml_unkept *self, const struct ml_unkept_patch *patch,
                     struct ml_unkept_names *names)
{
    struct lesson lesson = {.unkept = self, .patch = patch, .names = names};
    (void)each_unkept(patch, learn_field, &lesson);
}
