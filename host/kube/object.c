/* An object as the cache holds it. Reads the metadata from the server's JSON, leaves managedFields
 * out, and packs the rest with dict.c. Finalizers, and the annotations of tracked children. */
#include "kube/object.h"

#include "codec/json.h"
#include "kube/kind.h"

#include <malloc.h>

#define TEXT_LEN_MAX 253 /* Kubernetes' longest name; struct ml_object keeps lengths in a byte */
#define KEY_LEN_MAX  24  /* longer than any key looked for */

/* The texts that the object keeps open, in the order of its bytes. */
enum text {
    TEXT_NS, /* with the '/' that stands behind it in the key; or empty */
    TEXT_NAME,
    TEXT_UID,
    TEXT_RV,
    TEXT_OWNER_GROUP,
    TEXT_OWNER_KIND,
    TEXT_OWNER_NAME,
    TEXT_OWNER_UID,
    TEXTS,
};

/* The block is the object's JSON, except that strings the object keeps open anyway (uid, name, …)
 * are holes: a byte that JSON never holds raw and one that names the string. So each string is kept
 * once, and zstd packs only the text that objects have in common. */
#define HOLE          '\x01'
#define HOLE_LEN      2
#define HOLE_TEXT_MIN 3 /* every hole is shorter than its text: see fill_holes() */

struct ml_object {
    uint32_t refs;
    uint32_t json_len;
    uint32_t plain_len; /* of the JSON with holes */
    uint32_t packed_len;
    struct ml_dict_text *text;
    int64_t generation;
    uint8_t lens[TEXTS];
    bool deleting : 1, has_owner : 1, has_finalizers : 1, paused : 1, has_retry : 1;
    char bytes[]; /* the texts, and the block; nothing between them */
};

_Static_assert(ML_OBJECT_SIZE_MAX < UINT32_MAX / 2, "lengths fit their fields");

static bool is_rv_number(struct ml_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
    return text.len == 1 || (text.len > 1 && text.ptr[0] != '0');
}

uint64_t ml_rv_parse(struct ml_str text)
{
    uint64_t number = 0;
    return is_rv_number(text) && ml_str_to_u64(text, &number) ? number : ML_RV_OPAQUE;
}

bool ml_rv_older(struct ml_str a, struct ml_str b)
{
    if (!is_rv_number(a) || !is_rv_number(b))
        return false;
    return a.len != b.len ? a.len < b.len : memcmp(a.ptr, b.ptr, a.len) < 0;
}

/* Where a text starts in `bytes`; TEXTS: where the block does. */
static size_t text_start(const struct ml_object *object, enum text text)
{
    size_t start = 0;
    for (size_t i = 0; i < text; i++)
        start += object->lens[i];
    return start;
}

static struct ml_str object_text(const struct ml_object *object, enum text text)
{
    return (struct ml_str){object->bytes + text_start(object, text), object->lens[text]};
}

struct ml_str ml_object_key(const struct ml_object *object)
{
    return (struct ml_str){object->bytes, (size_t)object->lens[TEXT_NS] + object->lens[TEXT_NAME]};
}

struct ml_str ml_object_namespace(const struct ml_object *object)
{
    size_t len = object->lens[TEXT_NS];
    return (struct ml_str){object->bytes, len - (len > 0)};
}

struct ml_str ml_object_name(const struct ml_object *object)
{
    return object_text(object, TEXT_NAME);
}

struct ml_str ml_object_uid(const struct ml_object *object)
{
    return object_text(object, TEXT_UID);
}

struct ml_str ml_object_rv(const struct ml_object *object)
{
    return object_text(object, TEXT_RV);
}

uint64_t ml_object_rv_number(const struct ml_object *object)
{
    return ml_rv_parse(ml_object_rv(object));
}

int64_t ml_object_generation(const struct ml_object *object)
{
    return object->generation;
}

bool ml_object_deleting(const struct ml_object *object)
{
    return object->deleting;
}

bool ml_object_paused(const struct ml_object *object)
{
    return object->paused;
}

static char *retry_of(const struct ml_object *object)
{
    ML_AUTO(ml_buf_fini) struct ml_buf json = ML_BUF_INIT;
    if (!object->has_retry)
        return NULL;
    ml_object_json(object, &json);
    return ml_json_find_string(ml_buf_str(&json), "metadata", "annotations", ML_RETRY_ANNOTATION,
                               NULL);
}

bool ml_object_retried(const struct ml_object *old, const struct ml_object *new)
{
    if (!new->has_retry)
        return false;
    ML_AUTO_FREE char *before = retry_of(old);
    ML_AUTO_FREE char *now = retry_of(new);
    return !before || strcmp(before, now) != 0;
}

bool ml_object_has_finalizers(const struct ml_object *object)
{
    return object->has_finalizers;
}

bool ml_object_controller(const struct ml_object *object, struct ml_owner *out)
{
    if (!object->has_owner)
        return false;
    out->group = object_text(object, TEXT_OWNER_GROUP);
    out->kind = object_text(object, TEXT_OWNER_KIND);
    out->name = object_text(object, TEXT_OWNER_NAME);
    out->uid = object_text(object, TEXT_OWNER_UID);
    return true;
}

size_t ml_object_bytes(const struct ml_object *object)
{
    return malloc_usable_size((void *)object) + sizeof(size_t); /* and malloc's own word */
}

/* ---- reading the metadata ---- */

/* A string of the object: its text, and `raw` where the same bytes stand in the JSON (between
 * the quotes); raw.ptr is NULL when they are written with escapes there, or not there. */
struct meta_string {
    struct ml_str text;
    struct ml_str raw;
};

struct meta {
    struct meta_string texts[TEXTS]; /* the namespace without a '/', as it is written */
    int64_t generation;
    bool deleting;
    bool has_finalizers;
    bool paused, has_retry;
    bool has_owner; /* one with controller: true */
    bool has_api_version, has_kind;
    struct ml_str managed_fields; /* the whole member, with one comma; or empty */
    struct ml_buf unescaped;      /* backs texts that were written with escapes */
};

/* Where the texts stand in metadata, and in an owner reference: its apiVersion becomes a group. */
static const char *const text_keys[TEXTS] = {
    [TEXT_NS] = "namespace",
    [TEXT_NAME] = "name",
    [TEXT_UID] = "uid",
    [TEXT_RV] = "resourceVersion",
    [TEXT_OWNER_GROUP] = "apiVersion",
    [TEXT_OWNER_KIND] = "kind",
    [TEXT_OWNER_NAME] = "name",
    [TEXT_OWNER_UID] = "uid",
};

static void meta_fini(struct meta *meta)
{
    ml_buf_fini(&meta->unescaped);
}

struct member {
    struct ml_str key;
    struct ml_str value; /* raw */
    char name[KEY_LEN_MAX];
};

/* The next member of the object the reader is in. False at its end, or on an error. */
static bool read_object_member(struct ml_json_reader *reader, struct member *out)
{
    if (ml_json_next(reader) != ML_JSON_KEY)
        return false;
    /* A copy, cut where it can no longer be a key of ours: the reader's text does not outlive
     * its next step. */
    size_t len = ML_MIN(reader->text.len, sizeof out->name);
    if (len > 0)
        memcpy(out->name, reader->text.ptr, len);
    out->key = (struct ml_str){out->name, len};
    out->value = ml_json_skip(reader);
    return reader->token != ML_JSON_ERROR;
}

/* `raw` is a checked value; anything but a string leaves `out` as it is. */
static void read_meta_string(struct meta *meta, struct ml_str raw, struct meta_string *out)
{
    if (raw.ptr[0] != '"')
        return;
    struct ml_str inner = {raw.ptr + 1, raw.len - 2};
    if (!memchr(inner.ptr, '\\', inner.len)) {
        *out = (struct meta_string){inner, inner};
        return;
    }
    /* The room was reserved at once (read_metadata), so earlier texts do not move. */
    size_t start = meta->unescaped.len;
    ml_json_to_string(raw, &meta->unescaped);
    struct ml_str text = {meta->unescaped.ptr + start, meta->unescaped.len - start};
    *out = (struct meta_string){text, {NULL, 0}};
}

/* Reads the member into `texts` if it is one of those from `first` up to `end`. */
static void read_text_member(struct meta *meta, const struct member *member, enum text first,
                             enum text end, struct meta_string texts[TEXTS])
{
    for (size_t i = first; i < end; i++)
        if (ml_str_is(member->key, text_keys[i]))
            read_meta_string(meta, member->value, &texts[i]);
}

static void read_owner(struct meta *meta, struct ml_json_reader *reader)
{
    struct meta_string texts[TEXTS] = {0};
    bool is_controller = false;
    struct member member;
    while (read_object_member(reader, &member)) {
        if (ml_str_is(member.key, "controller"))
            is_controller = ml_str_is(member.value, "true");
        else
            read_text_member(meta, &member, TEXT_OWNER_GROUP, TEXTS, texts);
    }
    if (!is_controller)
        return;
    meta->has_owner = true;
    for (size_t i = TEXT_OWNER_GROUP; i < TEXTS; i++)
        meta->texts[i] = texts[i];
}

/* Anything but an array of objects, null for example, has no owner. */
static void read_owners(struct meta *meta, struct ml_str raw)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, raw, 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return;
    while (ml_json_next(&reader) == ML_JSON_OBJECT)
        read_owner(meta, &reader);
}

/* The member whose value is `value`, with the comma before it or, when it is the first, the
 * one behind it. `before` is where the former member ends, or the object's '{'. */
static struct ml_str whole_member(const char *before, struct ml_str value)
{
    const char *end = value.ptr + value.len;
    if (*before == '{') {
        before++;
        const char *next = end + strspn(end, " \t\r\n");
        end = *next == ',' ? next + 1 : end;
    }
    return (struct ml_str){before, (size_t)(end - before)};
}

/* The value of ours; NULL: there is none. Most objects have none, and it is not looked for. */
static char *find_annotation(struct ml_str annotations, const char *name)
{
    return memmem(annotations.ptr, annotations.len, name, strlen(name))
               ? ml_json_find_string(annotations, name, NULL)
               : NULL;
}

static void read_annotations(struct meta *meta, struct ml_str raw)
{
    ML_AUTO_FREE char *paused = find_annotation(raw, ML_PAUSED_ANNOTATION);
    ML_AUTO_FREE char *retry = find_annotation(raw, ML_RETRY_ANNOTATION);
    meta->paused = paused && strcmp(paused, "true") == 0;
    meta->has_retry = retry != NULL;
}

static void read_metadata_member(struct meta *meta, const struct member *member)
{
    if (ml_str_is(member->key, "generation"))
        (void)!ml_str_to_i64(member->value, &meta->generation);
    else if (ml_str_is(member->key, "deletionTimestamp"))
        meta->deleting = !ml_str_is(member->value, "null");
    else if (ml_str_is(member->key, "finalizers"))
        meta->has_finalizers = member->value.ptr[0] == '[' && !ml_str_is(member->value, "[]");
    else if (ml_str_is(member->key, "annotations"))
        read_annotations(meta, member->value);
    else if (ml_str_is(member->key, "ownerReferences"))
        read_owners(meta, member->value);
    else
        read_text_member(meta, member, TEXT_NS, TEXT_OWNER_GROUP, meta->texts);
}

static void read_metadata(struct meta *meta, struct ml_str raw)
{
    if (memchr(raw.ptr, '\\', raw.len))
        ml_buf_reserve(&meta->unescaped, raw.len);
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, raw, 0);
    if (ml_json_next(&reader) != ML_JSON_OBJECT)
        return;
    struct member member;
    for (const char *before = raw.ptr; read_object_member(&reader, &member);) {
        if (ml_str_is(member.key, "managedFields"))
            meta->managed_fields = whole_member(before, member.value);
        else
            read_metadata_member(meta, &member);
        before = member.value.ptr + member.value.len;
    }
}

static int check_text(const struct meta *meta, enum text which, struct ml_err *err)
{
    size_t len = meta->texts[which].text.len;
    bool of_owner = which >= TEXT_OWNER_GROUP;
    bool required = of_owner ? meta->has_owner : which != TEXT_NS;
    const char *before = of_owner ? "" : "metadata.";
    const char *behind = of_owner ? " of the owner" : "";
    if (len == 0 && required)
        return ml_err_set(err, ML_EINVALID, "no %s%s%s", before, text_keys[which], behind);
    if (len > TEXT_LEN_MAX)
        return ml_err_set(err, ML_EINVALID, "%s%s%s is longer than %d bytes", before,
                          text_keys[which], behind, TEXT_LEN_MAX);
    /* A key "ns/name" must split into the same two parts again. */
    if (which <= TEXT_NAME && len > 0 && memchr(meta->texts[which].text.ptr, '/', len))
        return ml_err_set(err, ML_EINVALID, "metadata.%s has a '/'", text_keys[which]);
    return 0;
}

/* Checks the whole text and fills `meta`, whose slices point into `json` and into itself. To be
 * ended with meta_fini in either case. */
static int meta_read(struct ml_str json, struct meta *meta, struct ml_err *err)
{
    *meta = (struct meta){0};
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, json, 0);
    if (ml_json_next(&reader) == ML_JSON_ERROR)
        return ml_json_error(&reader, err);
    if (reader.token != ML_JSON_OBJECT)
        return ml_err_set(err, ML_EINVALID, "not an object");
    struct member member;
    struct ml_str metadata = {NULL, 0};
    while (read_object_member(&reader, &member)) {
        if (ml_str_is(member.key, "metadata"))
            metadata = member.value;
        meta->has_api_version = meta->has_api_version || ml_str_is(member.key, "apiVersion");
        meta->has_kind = meta->has_kind || ml_str_is(member.key, "kind");
    }
    if (reader.token != ML_JSON_ERROR)
        ml_json_next(&reader);
    if (reader.token == ML_JSON_ERROR)
        return ml_json_error(&reader, err);
    if (metadata.len > 0)
        read_metadata(meta, metadata);
    for (size_t i = 0; i < TEXTS; i++)
        if (check_text(meta, i, err) < 0)
            return err->kind;
    return 0;
}

/* ---- packing it ---- */

/* Which texts are holes, and what stands there for them. */
static const char holes[TEXTS][HOLE_LEN] = {
    [TEXT_NAME] = {HOLE, '0' + TEXT_NAME},
    [TEXT_UID] = {HOLE, '0' + TEXT_UID},
    [TEXT_RV] = {HOLE, '0' + TEXT_RV},
    [TEXT_OWNER_NAME] = {HOLE, '0' + TEXT_OWNER_NAME},
    [TEXT_OWNER_UID] = {HOLE, '0' + TEXT_OWNER_UID},
};

/* A stretch of the JSON as it came, and what stands there in the JSON with holes. */
struct edit {
    struct ml_str old;
    struct ml_str new;
};

struct edits {
    struct edit list[TEXTS + 2];
    size_t count;
};

/* Keeps them in the order of the text. */
static void edits_add(struct edits *edits, struct ml_str old, struct ml_str new)
{
    ml_assert(edits->count < ML_COUNT(edits->list));
    size_t at = edits->count++;
    for (; at > 0 && edits->list[at - 1].old.ptr > old.ptr; at--)
        edits->list[at] = edits->list[at - 1];
    edits->list[at] = (struct edit){old, new};
}

/* `head`: members to put in front of all others. */
static void edits_make(struct edits *edits, struct ml_str json, const struct meta *meta,
                       struct ml_str head)
{
    const char *body = (const char *)memchr(json.ptr, '{', json.len) + 1;
    edits_add(edits, (struct ml_str){body, 0}, head);
    if (meta->managed_fields.len > 0)
        edits_add(edits, meta->managed_fields, ML_STR(""));
    for (size_t i = 0; i < TEXTS; i++)
        if (holes[i][0] == HOLE && meta->texts[i].raw.len >= HOLE_TEXT_MIN)
            edits_add(edits, meta->texts[i].raw, (struct ml_str){holes[i], HOLE_LEN});
}

/* Appends the JSON with holes. */
static void edits_apply(const struct edits *edits, struct ml_str json, struct ml_buf *out)
{
    const char *at = json.ptr;
    for (size_t i = 0; i < edits->count; i++) {
        const struct edit *edit = &edits->list[i];
        ml_buf_append(out, at, (size_t)(edit->old.ptr - at));
        ml_buf_append_str(out, edit->new);
        at = edit->old.ptr + edit->old.len;
    }
    ml_buf_append(out, at, (size_t)(json.ptr + json.len - at));
}

/* The members that an item of a list lacks, each with its comma. */
static int make_missing_members(const struct meta *meta, const char *api_version, const char *kind,
                                struct ml_buf *out, struct ml_err *err)
{
    const struct {
        const char *key;
        const char *value;
        bool there;
    } members[] = {{"apiVersion", api_version, meta->has_api_version},
                   {"kind", kind, meta->has_kind}};
    for (size_t i = 0; i < ML_COUNT(members); i++) {
        if (members[i].there)
            continue;
        if (!members[i].value || !*members[i].value)
            return ml_err_set(err, ML_EINVALID, "no %s", members[i].key);
        ml_buf_printf(out, "\"%s\":\"%s\",", members[i].key, members[i].value);
    }
    return 0;
}

static struct ml_str group_of_api_version(struct ml_str api_version)
{
    struct ml_str rest = api_version;
    struct ml_str group = ml_str_cut(&rest, '/');
    return rest.ptr ? group : ML_STR("");
}

static char *copy_text_to(char *at, struct ml_str text)
{
    if (text.len > 0)
        memcpy(at, text.ptr, text.len);
    return at + text.len;
}

static struct ml_object *object_of_parts(const struct meta *meta, struct ml_str block)
{
    struct ml_object head = {
        .refs = 1,
        .packed_len = (uint32_t)block.len,
        .generation = meta->generation,
        .deleting = meta->deleting,
        .has_finalizers = meta->has_finalizers,
        .paused = meta->paused,
        .has_retry = meta->has_retry,
        .has_owner = meta->has_owner,
    };
    for (size_t i = 0; i < TEXTS; i++)
        head.lens[i] = (uint8_t)meta->texts[i].text.len;
    head.lens[TEXT_NS] += head.lens[TEXT_NS] > 0;
    size_t len = text_start(&head, TEXTS) + block.len;
    struct ml_object *object = ml_alloc(
        ML_MAX(sizeof *object, offsetof(struct ml_object, bytes) + len));
    *object = head;
    char *at = object->bytes;
    for (size_t i = 0; i < TEXTS; i++) {
        at = copy_text_to(at, meta->texts[i].text);
        if (i == TEXT_NS && head.lens[i] > 0)
            *at++ = '/';
    }
    copy_text_to(at, block);
    return object;
}

int ml_object_new(struct ml_dict *dict, const char *api_version, const char *kind,
                  struct ml_str json, struct ml_object **out, struct ml_err *err)
{
    if (json.len > ML_OBJECT_SIZE_MAX)
        return ml_err_set(err, ML_EINVALID, "larger than %zu bytes", ML_OBJECT_SIZE_MAX);
    ML_AUTO(meta_fini) struct meta meta;
    if (meta_read(json, &meta, err) < 0)
        return err->kind;
    ML_AUTO(ml_buf_fini) struct ml_buf head = ML_BUF_INIT;
    if (make_missing_members(&meta, api_version, kind, &head, err) < 0)
        return err->kind;
    struct meta_string *owner_group = &meta.texts[TEXT_OWNER_GROUP];
    owner_group->text = group_of_api_version(owner_group->text);
    struct edits edits = {.count = 0};
    edits_make(&edits, json, &meta, ml_buf_str(&head));
    ML_AUTO(ml_buf_fini) struct ml_buf plain = ML_BUF_INIT;
    ml_buf_reserve(&plain, json.len + head.len);
    edits_apply(&edits, json, &plain);
    ml_assert(!plain.failed);

    struct ml_dict_text *text;
    struct ml_str block = ml_dict_pack(dict, ml_buf_str(&plain), &text);
    struct ml_object *object = object_of_parts(&meta, block);
    object->json_len = (uint32_t)(json.len + head.len - meta.managed_fields.len);
    object->plain_len = (uint32_t)plain.len;
    object->text = text;
    *out = object;
    return 0;
}

struct ml_object *ml_object_ref(struct ml_object *object)
{
    object->refs++;
    return object;
}

void ml_object_unref(struct ml_object *object)
{
    if (!object || --object->refs > 0)
        return;
    ml_dict_text_unref(object->text);
    free(object);
}

/* Moves the text from `from` down to `to`, filling its holes; returns its end. The gap between the
 * two is as long as all holes add, or longer: so the end of the written text never passes the start
 * of the unread text. */
static char *fill_holes(const struct ml_object *object, struct ml_str rv, char *to,
                        const char *from, const char *end)
{
    const char *hole;
    while ((hole = memchr(from, HOLE, (size_t)(end - from)))) {
        size_t len = (size_t)(hole - from);
        enum text text = (enum text)(hole[1] - '0');
        memmove(to, from, len);
        to = copy_text_to(to + len, text == TEXT_RV ? rv : object_text(object, text));
        from = hole + HOLE_LEN;
    }
    ml_assert(to <= from);
    if (to < from)
        memmove(to, from, (size_t)(end - from));
    return to + (end - from);
}

void ml_object_json_as(const struct ml_object *object, struct ml_str rv, struct ml_buf *out)
{
    size_t rv_len = ml_object_rv(object).len;
    size_t len_max = object->json_len + ML_MAX(rv.len, rv_len) - rv_len;
    char *room = ml_buf_reserve(out, len_max);
    if (!room)
        return;
    char *plain = room + (len_max - object->plain_len);
    struct ml_str block = {object->bytes + text_start(object, TEXTS), object->packed_len};
    ml_dict_unpack(object->text, block, plain, object->plain_len);
    out->len += (size_t)(fill_holes(object, rv, room, plain, room + len_max) - room);
}

void ml_object_json(const struct ml_object *object, struct ml_buf *out)
{
    ml_object_json_as(object, ml_object_rv(object), out);
}

/* ---- its finalizers ---- */

/* The reader stands behind the '[' of the list, or it found none: the next token is no string. */
static void begin_finalizers(struct ml_json_reader *reader, const struct ml_object *object,
                             struct ml_buf *json)
{
    struct ml_str list = {"", 0};
    if (ml_object_has_finalizers(object))
        ml_object_json(object, json);
    ml_json_find(ml_buf_str(json), &list, "metadata", "finalizers", NULL);
    ml_json_reader_init(reader, list.len > 0 ? list : ML_STR("[]"), 0);
    ml_json_next(reader);
}

bool ml_finalizers_have(const struct ml_object *object, struct ml_str finalizer)
{
    ML_AUTO(ml_buf_fini) struct ml_buf json = ML_BUF_INIT;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    begin_finalizers(&reader, object, &json);
    while (ml_json_next(&reader) == ML_JSON_STRING)
        if (ml_str_eq(reader.text, finalizer))
            return true;
    return false;
}

static bool is_former(const char *const *finalizers, struct ml_str finalizer)
{
    for (; finalizers && *finalizers; finalizers++)
        if (ml_str_is(finalizer, *finalizers))
            return true;
    return false;
}

bool ml_finalizers_have_any(const struct ml_object *object, const char *const *finalizers)
{
    for (; *finalizers; finalizers++)
        if (ml_finalizers_have(object, ml_str_of(*finalizers)))
            return true;
    return false;
}

void ml_finalizers_put(struct ml_json_writer *writer, const struct ml_object *object,
                       struct ml_str finalizer, const char *const *former, bool add)
{
    ML_AUTO(ml_buf_fini) struct ml_buf json = ML_BUF_INIT;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    begin_finalizers(&reader, object, &json);
    ml_json_key(writer, ML_STR("finalizers"));
    ml_json_begin_array(writer);
    while (ml_json_next(&reader) == ML_JSON_STRING)
        if (!ml_str_eq(reader.text, finalizer) && !is_former(former, reader.text))
            ml_json_string(writer, reader.text);
    if (add)
        ml_json_string(writer, finalizer);
    ml_json_end_array(writer);
}

void ml_patch_begin(struct ml_json_writer *writer, struct ml_buf *out, struct ml_str uid,
                    struct ml_str rv)
{
    ml_json_writer_init(writer, out);
    ml_json_begin_object(writer);
    ml_json_key(writer, ML_STR("metadata"));
    ml_json_begin_object(writer);
    ml_json_put_string(writer, "uid", uid);
    ml_json_put_string(writer, "resourceVersion", rv);
}

void ml_finalizers_patch(const struct ml_object *object, struct ml_str rv, struct ml_str finalizer,
                         const char *const *former, bool add, struct ml_buf *out)
{
    struct ml_json_writer writer;
    ml_patch_begin(&writer, out, ml_object_uid(object), rv);
    ml_finalizers_put(&writer, object, finalizer, former, add);
    ml_json_end_object(&writer);
    ml_json_end_object(&writer);
}

/* ---- objects that belong to another one by an annotation ---- */

void ml_tracked_mark(const char *controller, const struct ml_object *owner, struct ml_buf *out)
{
    ml_buf_printf(out, "%s " ML_STR_FMT " " ML_STR_FMT, controller,
                  ML_STR_ARG(ml_object_key(owner)), ML_STR_ARG(ml_object_uid(owner)));
}

struct ml_str ml_tracked_annotation(struct ml_str json, const char *name)
{
    struct ml_str raw;
    if (!ml_json_find(json, &raw, "metadata", "annotations", name, NULL) || raw.len < 2 ||
        raw.ptr[0] != '"' || memchr(raw.ptr, '\\', raw.len))
        return (struct ml_str){"", 0};
    return (struct ml_str){raw.ptr + 1, raw.len - 2};
}

bool ml_tracked_key(const struct ml_object *object, const char *controller,
                    const char *const *formerly, struct ml_buf *out_key)
{
    ML_AUTO(ml_buf_fini) struct ml_buf json = ML_BUF_INIT;
    ml_object_json(object, &json);
    struct ml_str mark = ml_tracked_annotation(ml_buf_str(&json), ML_TRACKED_OWNER);
    struct ml_str name = ml_str_cut(&mark, ' ');
    while (*formerly && !ml_str_is(name, *formerly))
        formerly++;
    if (!ml_str_is(name, controller) && !*formerly)
        return false;
    struct ml_str key = ml_str_cut(&mark, ' ');
    return ml_key_valid(key) && mark.len > 0 && ml_buf_append_str(out_key, key);
}

/* ---- objects that the host keeps for itself ---- */

void ml_managed_metadata_put(struct ml_json_writer *writer, const char *name, struct ml_str rv)
{
    ml_json_key(writer, ML_STR("metadata"));
    ml_json_begin_object(writer);
    ml_json_put_string(writer, "name", ml_str_of(name));
    if (rv.len > 0) {
        ml_json_put_string(writer, "resourceVersion", rv);
    } else {
        ml_json_key(writer, ML_STR("labels"));
        ml_json_begin_object(writer);
        ml_json_put_string(writer, ML_MANAGED_BY, ML_STR("moonloop"));
        ml_json_end_object(writer);
    }
    ml_json_end_object(writer);
}

bool ml_managed_by_host(struct ml_str object)
{
    ML_AUTO_FREE char *by = ml_json_find_string(object, "metadata", "labels", ML_MANAGED_BY, NULL);
    return by && strcmp(by, "moonloop") == 0;
}
