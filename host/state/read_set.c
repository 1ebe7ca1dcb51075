/* Read sets: their bytes, which script/reads.c puts together, and their comparison with a change of
 * an object, for operator/read_sets.c.
 *
 * The bytes are the host's own and are read without doubting them. */
#include "state/read_set.h"

#include "base/map.h"
#include "codec/json_members.h"
#include "kube/kind.h"

#define NUMBER_LONG    255
#define NAME_LONG      127
#define NAME_COMMON    128
#define DEPTH_PATH_MAX 8 /* levels of a field that a log line names */

struct ml_read_set {
    uint32_t refs, len;
    char bytes[];
};

static const char *const common_names[] = {
    "metadata",
    "spec",
    "status",
    "data",
    "name",
    "namespace",
    "labels",
    "uid",
    "phase",
    "conditions",
    "type",
    "annotations",
    "ownerReferences",
    "reason",
    "message",
    "replicas",
    "template",
    "deletionTimestamp",
    "readyReplicas",
    "selector",
    "containers",
    "controller",
    "kind",
    "apiVersion",
    "generation",
    "finalizers",
    "resourceVersion",
    "observedGeneration",
};

void ml_read_put_number(struct ml_buf *out, size_t number)
{
    ml_assert(number <= UINT16_MAX);
    ml_buf_putc(out, (char)ML_MIN(number, (size_t)NUMBER_LONG));
    if (number < NUMBER_LONG)
        return;
    ml_buf_putc(out, (char)(number & 0xff));
    ml_buf_putc(out, (char)(number >> 8));
}

void ml_read_put_name(struct ml_buf *out, struct ml_str name)
{
    for (size_t i = 0; i < ML_COUNT(common_names); i++)
        if (ml_str_is(name, common_names[i])) {
            ml_buf_putc(out, (char)(NAME_COMMON + i));
            return;
        }
    ml_assert(name.len <= UINT16_MAX);
    ml_buf_putc(out, (char)ML_MIN(name.len, (size_t)NAME_LONG));
    if (name.len >= NAME_LONG) {
        ml_buf_putc(out, (char)(name.len & 0xff));
        ml_buf_putc(out, (char)(name.len >> 8));
    }
    ml_buf_append_str(out, name);
}

struct ml_read_set *ml_read_set_new(struct ml_str bytes)
{
    struct ml_read_set *set = ml_zalloc(sizeof *set + bytes.len);
    set->refs = 1;
    set->len = (uint32_t)bytes.len;
    if (bytes.len > 0)
        memcpy(set->bytes, bytes.ptr, bytes.len);
    return set;
}

struct ml_read_set *ml_read_set_ref(struct ml_read_set *set)
{
    set->refs++;
    return set;
}

void ml_read_set_unref(struct ml_read_set *set)
{
    if (set && --set->refs == 0)
        free(set);
}

struct ml_str ml_read_set_bytes(const struct ml_read_set *set)
{
    return (struct ml_str){set->bytes, set->len};
}

uint64_t ml_read_version(size_t kind, struct ml_str key, const struct ml_object *object)
{
    uint64_t place = ml_hash(key) + kind + 1;
    uint64_t version = object ? ml_hash(ml_object_rv(object)) | 1 : 0;
    return place * UINT64_C(0x9e3779b97f4a7c15) ^ version * UINT64_C(0xc2b2ae3d27d4eb4f);
}

/* ---- names ---- */

struct packed_name {
    uint64_t version;
    uint16_t key_len;
    uint8_t kind;
};

void ml_read_names_fini(struct ml_read_names *names)
{
    ml_buf_fini(&names->packed);
    *names = (struct ml_read_names){.count = 0};
}

bool ml_read_names_next(const struct ml_read_names *names, size_t *cursor, size_t *out_kind,
                        struct ml_str *out_key, uint64_t *out_version)
{
    struct packed_name head;
    if (*cursor >= names->packed.len)
        return false;
    memcpy(&head, names->packed.ptr + *cursor, sizeof head);
    *out_kind = head.kind;
    *out_version = head.version;
    *out_key = (struct ml_str){names->packed.ptr + *cursor + sizeof head, head.key_len};
    *cursor += sizeof head + head.key_len;
    return true;
}

void ml_read_names_add(struct ml_read_names *names, size_t kind, struct ml_str key,
                       const struct ml_object *seen)
{
    size_t cursor = 0, other_kind;
    uint64_t version;
    struct ml_str other;
    while (ml_read_names_next(names, &cursor, &other_kind, &other, &version))
        if (other_kind == kind && ml_str_eq(other, key))
            return;
    if (names->count == ML_READ_NAMES_MAX || key.len > UINT16_MAX) {
        names->whole_kinds |= UINT64_C(1) << kind;
        return;
    }
    const struct packed_name head = {
        .version = ml_read_version(kind, key, seen),
        .key_len = (uint16_t)key.len,
        .kind = (uint8_t)kind,
    };
    names->count++;
    ml_buf_append(&names->packed, &head, sizeof head);
    ml_buf_append_str(&names->packed, key);
}

/* ---- reading the bytes ---- */

struct cursor {
    const uint8_t *at, *end;
};

static struct cursor cursor_of(const struct ml_read_set *set, size_t offset)
{
    const uint8_t *bytes = (const uint8_t *)set->bytes;
    return (struct cursor){bytes + offset, bytes + set->len};
}

static uint8_t read_byte(struct cursor *in)
{
    ml_assert(in->at < in->end);
    return *in->at++;
}

static size_t read_two_bytes(struct cursor *in)
{
    size_t low = read_byte(in);
    return low | (size_t)read_byte(in) << 8;
}

static size_t read_number(struct cursor *in)
{
    size_t number = read_byte(in);
    return number == NUMBER_LONG ? read_two_bytes(in) : number;
}

static struct ml_str read_name(struct cursor *in)
{
    size_t len = read_byte(in);
    if (len >= NAME_COMMON)
        return ml_str_of(common_names[len - NAME_COMMON]);
    if (len == NAME_LONG)
        len = read_two_bytes(in);
    ml_assert(len <= (size_t)(in->end - in->at));
    struct ml_str name = {(const char *)in->at, len};
    in->at += len;
    return name;
}

static void skip_node(struct cursor *in)
{
    uint8_t flags = read_byte(in);
    if (flags & READ_WHOLE)
        return;
    for (size_t count = read_number(in); count > 0; count--) {
        read_name(in);
        skip_node(in);
    }
    if (flags & READ_ELEMENTS)
        skip_node(in);
}

struct root {
    enum ml_read_root type;
    size_t kind;
    uint8_t flags;
    struct ml_str name;
};

/* Stands before its node afterwards. */
static struct root read_root(struct cursor *in)
{
    struct root root = {.type = (enum ml_read_root)read_byte(in), .name = {"", 0}};
    if (root.type == READ_SELF)
        return root;
    root.kind = read_byte(in);
    root.flags = read_byte(in);
    root.name = read_name(in);
    return root;
}

static void append_object_key(const struct root *root, struct ml_str own_key, struct ml_buf *key)
{
    struct ml_str ns = ml_key_namespace(own_key);
    if (root->flags & READ_OWN_NAMESPACE && ns.len > 0)
        ml_buf_printf(key, ML_STR_FMT "/", ML_STR_ARG(ns));
    if (root->flags & READ_OWN_NAME)
        ml_buf_append_str(key, ml_key_name(own_key));
    ml_buf_append_str(key, root->name);
}

bool ml_read_set_next_object(const struct ml_read_set *set, struct ml_str own_key, size_t *cursor,
                             size_t *out_kind, struct ml_buf *key)
{
    struct cursor in = cursor_of(set, *cursor);
    while (in.at < in.end) {
        struct root root = read_root(&in);
        skip_node(&in);
        if (root.type != READ_OBJECT)
            continue;
        ml_buf_clear(key);
        append_object_key(&root, own_key, key);
        *out_kind = root.kind;
        *cursor = (size_t)(in.at - (const uint8_t *)set->bytes);
        return true;
    }
    *cursor = set->len;
    return false;
}

/* ---- describing ---- */

static void put_field(const char *prefix, const struct ml_buf *path, const char *end,
                      struct ml_buf *out)
{
    const char *colon = *prefix && (path->len > 0 || *end) ? ": " : "";
    ml_buf_printf(out, "%s%s" ML_STR_FMT "%s", prefix, colon, ML_STR_ARG(ml_buf_str(path)), end);
    ml_buf_putc(out, '\0');
}

/* `in` stands before the node, and behind it afterwards. */
static void describe_node(struct cursor *in, const char *prefix, struct ml_buf *path,
                          struct ml_buf *out)
{
    uint8_t flags = read_byte(in);
    size_t len = path->len, count = flags & READ_WHOLE ? 0 : read_number(in);
    if (flags & READ_WHOLE && len == 0)
        put_field(prefix, path, "all of it", out);
    else if (count == 0 && !(flags & READ_ELEMENTS) && (len > 0 || *prefix))
        put_field(prefix, path, "", out);
    for (; count > 0; count--) {
        struct ml_str name = read_name(in);
        ml_buf_printf(path, "%s" ML_STR_FMT, len > 0 ? "." : "", ML_STR_ARG(name));
        describe_node(in, prefix, path, out);
        path->len = len;
    }
    if (!(flags & READ_WHOLE) && flags & READ_ELEMENTS) {
        ml_buf_puts(path, "[]");
        describe_node(in, prefix, path, out);
        path->len = len;
    }
}

void ml_read_set_describe(const struct ml_read_set *set, struct ml_str own_key,
                          const struct ml_kind *const *kinds, struct ml_buf *out)
{
    ML_AUTO(ml_buf_fini) struct ml_buf prefix = ML_BUF_INIT, path = ML_BUF_INIT;
    struct cursor in = cursor_of(set, 0);
    while (in.at < in.end) {
        struct root root = read_root(&in);
        ml_buf_clear(&prefix);
        if (root.type == READ_OBJECT) {
            ml_buf_printf(&prefix, "%s ", kinds[root.kind]->kind);
            append_object_key(&root, own_key, &prefix);
        } else if (root.type == READ_LIST) {
            ml_buf_printf(&prefix, "list of %s", kinds[root.kind]->kind);
        }
        describe_node(&in, ml_buf_cstr(&prefix), &path, out);
    }
}

/* ---- comparing ---- */

/* Where the walk stands in the object, for the name of the field. */
struct place {
    const struct place *parent; /* NULL: a field of the object itself */
    struct ml_str name;         /* ptr NULL: an element of an array */
};

struct walk {
    const struct ml_read_change *change;
    struct ml_buf before, after; /* JSON; empty until it is needed */
    struct ml_buf *field;        /* gets the field that differs; NULL: nobody asks */
};

static bool note_difference(const struct walk *walk, const struct place *place)
{
    const struct place *path[DEPTH_PATH_MAX];
    size_t count = 0;
    for (; place; place = place->parent)
        if (place->name.ptr) {
            memmove(path + 1, path, (DEPTH_PATH_MAX - 1) * sizeof(path[0]));
            path[0] = place;
            count = ML_MIN(count + 1, (size_t)DEPTH_PATH_MAX);
        }
    for (size_t i = 0; walk->field && i < count; i++)
        ml_buf_printf(walk->field, "%s" ML_STR_FMT, i > 0 ? "." : "", ML_STR_ARG(path[i]->name));
    return true;
}

static char type_of(struct ml_str raw)
{
    char first = raw.len > 0 ? raw.ptr[0] : '\0';
    return first == '{' || first == '[' ? first : 's';
}

static bool is_table(struct ml_str raw)
{
    return type_of(raw) != 's';
}

/* As far as one level sees it: a table by its type, anything else by its text. */
static bool is_same_here(struct ml_str old, struct ml_str new)
{
    return is_table(old) ? type_of(old) == type_of(new) : ml_str_eq(old, new);
}

static bool node_touched(const struct walk *walk, const struct place *place, struct cursor *in,
                         struct ml_str old, struct ml_str new);

static bool are_keys_same(const struct ml_json_members *old, const struct ml_json_members *new)
{
    if (old->len != new->len)
        return false;
    for (size_t i = 0; i < old->len; i++)
        if (!ml_str_eq(old->items[i].key, new->items[i].key) ||
            !is_same_here(old->items[i].value, new->items[i].value))
            return false;
    return true;
}

/* One field of both; `in` stands before its node. */
static bool field_touched(const struct walk *walk, const struct place *place, struct cursor *in,
                          const struct ml_json_members *old, const struct ml_json_members *new)
{
    const struct ml_json_member *before = ml_json_members_find(old, place->name);
    const struct ml_json_member *after = ml_json_members_find(new, place->name);
    if (!before != !after || (before && !is_same_here(before->value, after->value)))
        return note_difference(walk, place);
    if (before && is_table(before->value))
        return node_touched(walk, place, in, before->value, after->value);
    skip_node(in);
    return false;
}

static bool object_touched(const struct walk *walk, const struct place *place, uint8_t flags,
                           struct cursor *in, struct ml_str old, struct ml_str new)
{
    ML_AUTO(ml_json_members_fini) struct ml_json_members before = {0}, after = {0};
    struct ml_err err = ML_ERR_INIT;
    if (!ml_json_members_read(&before, old, 0, &err) ||
        !ml_json_members_read(&after, new, 0, &err) ||
        (flags & READ_KEYS && !are_keys_same(&before, &after)))
        return note_difference(walk, place);
    for (size_t count = read_number(in); count > 0; count--) {
        const struct place field = {place, read_name(in)};
        if (field_touched(walk, &field, in, &before, &after))
            return true;
    }
    if (flags & READ_ELEMENTS) /* object[1] is nil, before and after */
        skip_node(in);
    return false;
}

/* `in` stands before the node of the elements, if there is one. */
static bool elements_touched(const struct walk *walk, const struct place *place, bool has_node,
                             struct cursor *in, struct ml_str old, struct ml_str new)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader before, after;
    const struct place element = {place, {NULL, 0}};
    ml_json_reader_init(&before, old, 0);
    ml_json_reader_init(&after, new, 0);
    ml_json_next(&before);
    ml_json_next(&after);
    for (;;) {
        struct ml_str x = ml_json_skip(&before), y = ml_json_skip(&after);
        if (x.len == 0 && y.len == 0)
            return false;
        if (x.len == 0 || y.len == 0 || !is_same_here(x, y))
            return note_difference(walk, place);
        struct cursor again = *in;
        if (has_node && is_table(x) && node_touched(walk, &element, &again, x, y))
            return true;
    }
}

static bool array_touched(const struct walk *walk, const struct place *place, uint8_t flags,
                          struct cursor *in, struct ml_str old, struct ml_str new)
{
    for (size_t count = read_number(in); count > 0; count--) { /* array.name is nil, always */
        read_name(in);
        skip_node(in);
    }
    if (flags & (READ_KEYS | READ_ELEMENTS) &&
        elements_touched(walk, place, flags & READ_ELEMENTS, in, old, new))
        return true;
    if (flags & READ_ELEMENTS)
        skip_node(in);
    return false;
}

/* Two tables of the same type. `in` stands before the node, and behind it afterwards unless it was
 * touched. */
static bool node_touched(const struct walk *walk, const struct place *place, struct cursor *in,
                         struct ml_str old, struct ml_str new)
{
    if (ml_str_eq(old, new)) {
        skip_node(in);
        return false;
    }
    uint8_t flags = read_byte(in);
    if (flags & READ_WHOLE)
        return note_difference(walk, place);
    return type_of(old) == '{' ? object_touched(walk, place, flags, in, old, new)
                               : array_touched(walk, place, flags, in, old, new);
}

static void open_states(struct walk *walk)
{
    if (walk->before.len > 0)
        return;
    ml_object_json(walk->change->old, &walk->before);
    ml_object_json(walk->change->new, &walk->after);
}

/* A root that both states of the object belong to. */
static bool fields_touched(struct walk *walk, struct cursor *in)
{
    open_states(walk);
    return node_touched(walk, NULL, in, ml_buf_str(&walk->before), ml_buf_str(&walk->after));
}

static bool is_same_controller(const struct ml_object *old, const struct ml_object *new)
{
    struct ml_owner had, has;
    bool was_owned = ml_object_controller(old, &had), is_owned = ml_object_controller(new, &has);
    return was_owned == is_owned && (!is_owned || ml_str_eq(had.uid, has.uid));
}

/* The status of the reconciled object, which the host compares with what the run returned. That
 * this has come back is what the host wanted. */
static bool status_touched(struct walk *walk)
{
    struct ml_str old = {"", 0}, new = {"", 0};
    const struct place status = {NULL, ML_STR("status")};
    if (walk->change->own_status)
        return false;
    open_states(walk);
    ml_json_find(ml_buf_str(&walk->before), &old, "status", NULL);
    ml_json_find(ml_buf_str(&walk->after), &new, "status", NULL);
    return !ml_str_eq(old, new) && note_difference(walk, &status);
}

static bool self_touched(struct walk *walk, struct cursor *in)
{
    return (*in->at & READ_COMPARED && status_touched(walk)) || fields_touched(walk, in);
}

/* Is the root about the object that changed? */
static bool is_concerned(const struct walk *walk, const struct root *root)
{
    const struct ml_read_change *change = walk->change;
    const struct ml_object *object = change->new ? change->new : change->old;
    struct ml_str ns = ml_object_namespace(object);
    if (root->type == READ_SELF)
        return change->self;
    if (root->kind != change->kind)
        return false;
    if (root->type == READ_LIST)
        return root->flags & READ_IN_ALL_NAMESPACES ||
               ml_str_eq(ns, root->flags & READ_IN_OWN_NAMESPACE ? ml_key_namespace(change->own_key)
                                                                 : root->name);
    ML_AUTO(ml_buf_fini) struct ml_buf key = ML_BUF_INIT;
    append_object_key(root, change->own_key, &key);
    return ml_str_eq(ml_buf_str(&key), ml_object_key(object));
}

/* Another existence, identity or owner than the one that was read. */
static bool is_another(const struct ml_read_change *change, const struct root *root)
{
    if (!change->old || !change->new ||
        !ml_str_eq(ml_object_uid(change->old), ml_object_uid(change->new)))
        return true;
    bool counts_owner = (root->type == READ_OBJECT && root->flags & READ_OWNER) ||
                        (root->type == READ_LIST && root->flags & READ_OWNED);
    return counts_owner && !is_same_controller(change->old, change->new);
}

static bool root_touched(struct walk *walk, const struct root *root, struct cursor *in)
{
    if (!is_concerned(walk, root)) {
        skip_node(in);
        return false;
    }
    if (is_another(walk->change, root))
        return true;
    return root->type == READ_SELF ? self_touched(walk, in) : fields_touched(walk, in);
}

bool ml_read_set_touched(const struct ml_read_set *set, const struct ml_read_change *change,
                         struct ml_buf *out_field)
{
    struct walk walk = {.change = change, .field = out_field};
    struct cursor in = cursor_of(set, 0);
    bool touched = false;
    while (!touched && in.at < in.end) {
        struct root root = read_root(&in);
        touched = root_touched(&walk, &root, &in);
    }
    ml_buf_fini(&walk.before);
    ml_buf_fini(&walk.after);
    return touched;
}
