/* Records what a run reads of the cache, and packs it into a read set at the end of the run
 * (reads.h). */
#include "script/reads.h"

#define NODES_MAX 512
#define TEXT_MAX  8192 /* bytes of all names */
#define STEP      32   /* nodes, when there is no room */

struct node {
    read_node first_child, next; /* 0: none */
    uint32_t name, name_len;     /* in `text`: of a field, or a key or namespace; of an element 0 */
    uint8_t kind;                /* of an object or a list */
    uint8_t flags;               /* ml_read_node_flag */
    uint8_t root_flags;          /* ml_read_object_flag, ml_read_list_flag */
    enum { NODE_ROOT, NODE_SELF, NODE_OBJECT, NODE_LIST, NODE_FIELD, NODE_ELEMENT } type : 8;
};

struct script_reads {
    struct ml_script *script;
    const struct ml_object *own;
    uint64_t number;
    struct node *nodes; /* [0]: the root, [1]: the reconciled object */
    size_t count, room;
    struct ml_buf text;
    size_t charged;
    struct ml_read_versions versions;
    struct ml_read_names names;
    size_t names_charged;
    const char *because; /* it gave up; NULL: not */
};

static void drop_nodes(struct script_reads *reads)
{
    free(ml_take(&reads->nodes));
    ml_buf_fini(&reads->text);
    reads->count = reads->room = 0;
    ml_budget_give(&reads->script->memory, reads->charged);
    reads->charged = 0;
}

void reads_give_up(struct script_reads *reads, const char *because)
{
    if (!reads || reads->because)
        return;
    reads->because = because;
    drop_nodes(reads);
}

const char *script_reads_gave_up(const struct script_reads *reads)
{
    return reads ? reads->because : "nobody records";
}

/* The nodes count as memory of the script. */
static bool charge_room(struct script_reads *reads)
{
    size_t bytes = reads->room * sizeof(struct node) + reads->text.capacity;
    if (bytes <= reads->charged)
        return true;
    if (!ml_budget_take(&reads->script->memory, bytes - reads->charged))
        return false;
    reads->charged = bytes;
    return true;
}

/* 0: there is no room, and it has given up. */
static read_node add_node(struct script_reads *reads, read_node parent, const struct node *node,
                          struct ml_str name)
{
    if (reads->count == reads->room) {
        reads->room += STEP;
        reads->nodes = ml_realloc(reads->nodes, reads->room * sizeof *reads->nodes);
    }
    read_node place = (read_node)reads->count;
    struct node *added = &reads->nodes[reads->count++];
    *added = *node;
    added->name = (uint32_t)reads->text.len;
    added->name_len = (uint32_t)name.len;
    ml_buf_append_str(&reads->text, name);
    if (place > 0) {
        added->next = reads->nodes[parent].first_child;
        reads->nodes[parent].first_child = place;
    }
    if (reads->count > NODES_MAX || reads->text.len > TEXT_MAX)
        reads_give_up(reads, "it reads too many fields");
    else if (!charge_room(reads))
        reads_give_up(reads, "memory");
    return reads->because ? 0 : place;
}

struct script_reads *script_reads_new_of_any(struct ml_script *script)
{
    static uint64_t numbers;
    const struct ml_str none = {"", 0};
    struct script_reads *reads = ml_new(struct script_reads);
    reads->script = script;
    reads->number = ++numbers;
    add_node(reads, 0, &(struct node){.type = NODE_ROOT}, none);
    if (!reads->because)
        add_node(reads, 0, &(struct node){.type = NODE_SELF}, none);
    return reads;
}

struct script_reads *script_reads_new(struct ml_script *script, const struct ml_object *own)
{
    struct script_reads *reads = script_reads_new_of_any(script);
    reads->own = own;
    reads->versions.objects = ml_read_version(0, ml_object_key(own), own);
    return reads;
}

void script_reads_free(struct script_reads *reads)
{
    if (!reads)
        return;
    drop_nodes(reads);
    ml_read_names_fini(&reads->names);
    ml_budget_give(&reads->script->memory, reads->names_charged);
    free(reads);
}

uint64_t script_reads_number(const struct script_reads *reads)
{
    return reads ? reads->number : 0;
}

struct script_reads *script_reads_now(lua_State *L)
{
    const struct ml_run *run = script_thread_of(L)->run;
    return run ? run->reads : script_of(L)->index_reads;
}

struct script_reads *script_reads_of(lua_State *L, uint64_t number)
{
    struct script_reads *reads = script_reads_now(L);
    if (!reads || reads->number == number)
        return reads;
    reads_give_up(reads, "it looks at what an earlier run kept");
    return NULL;
}

/* Does recording go on below `parent`? It ends when all is given up, or the parent is read whole.
 */
static bool records_below(const struct script_reads *reads, read_node parent)
{
    return reads && !reads->because && parent != 0 && !(reads->nodes[parent].flags & READ_WHOLE);
}

static struct ml_str name_of(const struct script_reads *reads, const struct node *node)
{
    return (struct ml_str){reads->text.ptr + node->name, node->name_len};
}

static bool is_same_place(const struct script_reads *reads, const struct node *node,
                          const struct node *wanted, struct ml_str name)
{
    return node->type == wanted->type && node->kind == wanted->kind &&
           (node->type != NODE_LIST || node->root_flags == wanted->root_flags) &&
           ml_str_eq(name_of(reads, node), name);
}

/* The child that is there, or a new one; 0: it gave up. */
static read_node child_of(struct script_reads *reads, read_node parent, const struct node *wanted,
                          struct ml_str name)
{
    for (read_node at = reads->nodes[parent].first_child; at; at = reads->nodes[at].next)
        if (is_same_place(reads, &reads->nodes[at], wanted, name))
            return at;
    return add_node(reads, parent, wanted, name);
}

/* The first declared kind that has the same informer: changes are reported by informer. */
static size_t first_of_informer(const struct ml_script *script, size_t kind)
{
    size_t first = 0;
    while (script->binding.informers[first] != script->binding.informers[kind])
        first++;
    return first;
}

/* Only kinds that are watched are read of the cache. */
static bool records_kind(struct script_reads *reads, size_t kind)
{
    if (reads && !reads->script->binding.informers[kind])
        reads_give_up(reads, "it asks the server itself");
    return reads && !reads->because;
}

read_node reads_self(struct script_reads *reads)
{
    return reads && !reads->because ? 1 : 0;
}

/* At most ML_READ_NAMES_MAX, so that they are counted and not refused. */
static void note_name(struct script_reads *reads, size_t kind, struct ml_str key,
                      const struct ml_object *seen)
{
    if (!reads || !reads->own || !reads->script->binding.informers[kind] ||
        (kind == 0 && ml_str_eq(key, ml_object_key(reads->own))))
        return;
    ml_read_names_add(&reads->names, first_of_informer(reads->script, kind), key, seen);
    size_t more = reads->names.packed.capacity - reads->names_charged;
    ml_budget_force(&reads->script->memory, more);
    reads->names_charged += more;
}

struct ml_read_names script_reads_take_names(struct script_reads *reads)
{
    struct ml_read_names names = reads->names;
    reads->names = (struct ml_read_names){.count = 0};
    return names;
}

read_node reads_object(struct script_reads *reads, size_t kind, struct ml_str key,
                       const struct ml_object *seen)
{
    note_name(reads, kind, key, seen);
    if (!records_kind(reads, kind))
        return 0;
    const struct node wanted = {.type = NODE_OBJECT,
                                .kind = (uint8_t)first_of_informer(reads->script, kind)};
    size_t before = reads->count;
    read_node node = child_of(reads, 0, &wanted, key);
    if (node && reads->count > before)
        reads->versions.objects += ml_read_version(wanted.kind, key, seen);
    return node;
}

void reads_owner(struct script_reads *reads, read_node object)
{
    if (records_below(reads, object))
        reads->nodes[object].root_flags |= READ_OWNER;
}

/* Changes of objects that the reconciled object controls always wake its key. For others, the count
 * of changes shows later whether one was missed. */
static void note_list_version(struct script_reads *reads, size_t kind)
{
    struct ml_read_versions *versions = &reads->versions;
    for (size_t i = 0; i < versions->list_count; i++)
        if (versions->lists[i].kind == kind)
            return;
    if (versions->list_count == ML_READ_LISTS_MAX) {
        reads_give_up(reads, "it lists too many kinds");
        return;
    }
    versions->lists[versions->list_count++] = (struct ml_read_list_version){
        .kind = kind, .changes = ml_informer_changes(reads->script->binding.informers[kind])};
}

read_node reads_list(struct script_reads *reads, size_t kind, struct ml_str ns, bool owned)
{
    if (!records_kind(reads, kind))
        return 0;
    const struct ml_script_kind *declared = &reads->script->kinds[kind];
    const struct node wanted = {
        .type = NODE_LIST,
        .kind = (uint8_t)first_of_informer(reads->script, kind),
        .root_flags = owned ? READ_OWNED : 0,
    };
    if (!owned || declared->use != ML_USE_OWNS)
        note_list_version(reads, wanted.kind);
    return reads->because ? 0 : child_of(reads, 0, &wanted, ns);
}

read_node reads_field(struct script_reads *reads, read_node parent, struct ml_str name)
{
    if (!records_below(reads, parent))
        return 0;
    return child_of(reads, parent, &(struct node){.type = NODE_FIELD}, name);
}

read_node reads_element(struct script_reads *reads, read_node parent)
{
    const struct ml_str none = {"", 0};
    if (!records_below(reads, parent))
        return 0;
    reads->nodes[parent].flags |= READ_ELEMENTS;
    return child_of(reads, parent, &(struct node){.type = NODE_ELEMENT}, none);
}

void reads_keys(struct script_reads *reads, read_node node)
{
    if (records_below(reads, node))
        reads->nodes[node].flags |= READ_KEYS;
}

void reads_whole(struct script_reads *reads, read_node node)
{
    if (records_below(reads, node))
        reads->nodes[node].flags |= READ_WHOLE;
}

void reads_returns_status(struct script_reads *reads)
{
    if (reads && !reads->because)
        reads->nodes[1].flags |= READ_COMPARED;
}

/* Within JSON's depth, so this may recurse. */
static void copy_fields(struct script_reads *reads, read_node to, const struct script_reads *from,
                        read_node at)
{
    if (!records_below(reads, to))
        return;
    reads->nodes[to].flags |= from->nodes[at].flags;
    for (read_node child = from->nodes[at].first_child; child; child = from->nodes[child].next) {
        const struct node *node = &from->nodes[child];
        read_node copy = node->type == NODE_ELEMENT ? reads_element(reads, to)
                                                    : reads_field(reads, to, name_of(from, node));
        copy_fields(reads, copy, from, child);
    }
}

void reads_copy_self(struct script_reads *reads, read_node node, const struct script_reads *from)
{
    if (from->because)
        reads_whole(reads, node);
    else
        copy_fields(reads, node, from, 1);
}

const struct ml_read_versions *script_reads_versions(const struct script_reads *reads)
{
    return &reads->versions;
}

/* ---- packing ---- */

static void pack_node(const struct script_reads *reads, const struct node *node,
                      struct ml_buf *out);

static bool reads_version(const struct script_reads *reads, const struct node *metadata)
{
    if (metadata->flags & (READ_WHOLE | READ_KEYS))
        return true;
    for (read_node at = metadata->first_child; at; at = reads->nodes[at].next)
        if (ml_str_is(name_of(reads, &reads->nodes[at]), "resourceVersion"))
            return true;
    return false;
}

/* Of the object itself only the status, and the metadata if its version was read: any other change
 * of it wakes its key anyway. */
static bool is_packed(const struct script_reads *reads, const struct node *parent,
                      const struct node *field)
{
    if (field->type != NODE_FIELD || parent->type != NODE_SELF)
        return field->type == NODE_FIELD;
    struct ml_str name = name_of(reads, field);
    return ml_str_is(name, "status") ||
           (ml_str_is(name, "metadata") && reads_version(reads, field));
}

static void pack_fields(const struct script_reads *reads, const struct node *node,
                        struct ml_buf *out)
{
    const struct node *nodes = reads->nodes;
    size_t count = 0;
    for (read_node at = node->first_child; at; at = nodes[at].next)
        count += is_packed(reads, node, &nodes[at]);
    ml_read_put_number(out, count);
    for (read_node at = node->first_child; at; at = nodes[at].next) {
        if (!is_packed(reads, node, &nodes[at]))
            continue;
        ml_read_put_name(out, name_of(reads, &nodes[at]));
        pack_node(reads, &nodes[at], out);
    }
}

/* Within JSON's depth, so this may recurse. */
static void pack_node(const struct script_reads *reads, const struct node *node, struct ml_buf *out)
{
    ml_buf_putc(out, (char)node->flags);
    if (node->flags & READ_WHOLE)
        return;
    pack_fields(reads, node, out);
    for (read_node at = node->first_child; at; at = reads->nodes[at].next)
        if (reads->nodes[at].type == NODE_ELEMENT)
            pack_node(reads, &reads->nodes[at], out);
}

static void pack_object(const struct script_reads *reads, const struct node *node,
                        struct ml_buf *out)
{
    struct ml_str key = name_of(reads, node), rest = key;
    struct ml_str own_name = ml_object_name(reads->own);
    uint8_t flags = node->root_flags;
    if (ml_str_eq(ml_key_namespace(key), ml_object_namespace(reads->own))) {
        flags |= READ_OWN_NAMESPACE;
        rest = ml_key_name(key);
        if (rest.len >= own_name.len && memcmp(rest.ptr, own_name.ptr, own_name.len) == 0) {
            flags |= READ_OWN_NAME;
            rest = (struct ml_str){rest.ptr + own_name.len, rest.len - own_name.len};
        }
    }
    ml_buf_putc(out, READ_OBJECT);
    ml_buf_putc(out, (char)node->kind);
    ml_buf_putc(out, (char)flags);
    ml_read_put_name(out, rest);
}

static void pack_list(const struct script_reads *reads, const struct node *node, struct ml_buf *out)
{
    struct ml_str ns = name_of(reads, node);
    uint8_t flags = node->root_flags;
    if (ns.len == 0)
        flags |= READ_IN_ALL_NAMESPACES;
    else if (ml_str_eq(ns, ml_object_namespace(reads->own)))
        flags |= READ_IN_OWN_NAMESPACE;
    ml_buf_putc(out, READ_LIST);
    ml_buf_putc(out, (char)node->kind);
    ml_buf_putc(out, (char)flags);
    ml_read_put_name(out, flags & READ_IN_OWN_NAMESPACE ? ML_STR("") : ns);
}

static void pack_root(const struct script_reads *reads, const struct node *node, struct ml_buf *out)
{
    if (node->type == NODE_OBJECT)
        pack_object(reads, node, out);
    else if (node->type == NODE_LIST)
        pack_list(reads, node, out);
    else
        ml_buf_putc(out, READ_SELF);
    pack_node(reads, node, out);
}

struct ml_read_set *script_reads_pack(struct script_reads *reads)
{
    ML_AUTO(ml_buf_fini) struct ml_buf bytes = ML_BUF_INIT;
    if (!reads || reads->because)
        return NULL;
    for (read_node at = reads->nodes[0].first_child; at; at = reads->nodes[at].next)
        pack_root(reads, &reads->nodes[at], &bytes);
    if (bytes.len > ML_READ_SET_MAX) {
        reads_give_up(reads, "its read set is too large");
        return NULL;
    }
    return ml_read_set_new(ml_buf_str(&bytes));
}
