/* A document's tree as JSON: keys become text and are sorted, merge keys are carried out, aliases
 * written anew, of a key that comes twice the last counts. And the list of keys that come twice.
 *
 * Rules: go.yaml.in/yaml/v2 decode.go (decoder, mapping, setMapIndex) and sigs.k8s.io/yaml yaml.go
 * (convertToJSONableObject). */
#include "codec/yaml_internal.h"

#include "base/escape.h"
#include "base/map.h"

#include <math.h>

#define FEW       16 /* members that are sorted by insertion */
#define KEY_BYTES 64 /* of one that is made, with its place; those of numbers are short */

/* A member of a mapping that is being written. */
struct member {
    struct ml_str key;
    uint32_t key_node, value;
    uint32_t order;
    uint8_t key_type; /* of struct ml_yaml_value */
    bool aliased;     /* it came through an alias */
};

struct writer {
    struct ml_yaml_tree *tree;
    struct ml_yaml_fault *fault;
    struct ml_buf *out;
    size_t out_max;              /* of out->len */
    size_t aliased_max;          /* bytes that aliases may still add */
    size_t alias_start;          /* where the output of the outermost alias begins */
    size_t alias_depth;          /* of aliases inside of each other */
    size_t reads, aliased_reads; /* of nodes; the second through aliases */
    size_t depth;
    struct member *members; /* of all mappings that are open */
    size_t members_len, members_capacity;
    char **keys; /* keys without a node whose text they are */
    size_t keys_len, keys_capacity;
    struct ml_buf binary;
    bool has_duplicates;
};

static int refuse_aliases(struct writer *writer, const struct ml_yaml_node *node)
{
    return ml_yaml_fail(writer->fault, ML_ELIMIT, node, "document contains excessive aliasing");
}

/* Call after each addition to the output. */
static int check_size(struct writer *writer, const struct ml_yaml_node *node)
{
    if (writer->out->failed || writer->out->len > writer->out_max)
        return ml_yaml_fail(writer->fault, ML_ELIMIT, node, "as JSON the text becomes too large");
    if (writer->alias_depth && writer->out->len - writer->alias_start > writer->aliased_max)
        return refuse_aliases(writer, node);
    return 0;
}

/* The share of all reads that may come through aliases: 99 % of a short document, 10 % of a long
 * one. */
static double allowed_share(size_t reads)
{
    const double low = 400000, high = 4000000;
    if ((double)reads <= low)
        return 0.99;
    return (double)reads >= high ? 0.10 : 0.99 - 0.89 * (((double)reads - low) / (high - low));
}

/* Counts a node that is read, and asks whether to go on. */
static int count_read(struct writer *writer, const struct ml_yaml_node *node)
{
    size_t held = writer->members_capacity * sizeof writer->members[0] +
                  writer->keys_capacity * KEY_BYTES + writer->out->capacity;
    int r = ml_yaml_go_on(writer->tree, held, writer->fault);
    writer->reads++;
    if (r < 0 || writer->alias_depth == 0)
        return r;
    writer->aliased_reads++;
    if (writer->aliased_reads > 100 && writer->reads > 1000 &&
        (double)writer->aliased_reads / (double)writer->reads > allowed_share(writer->reads))
        return refuse_aliases(writer, node);
    return 0;
}

static void enter_alias(struct writer *writer)
{
    if (writer->alias_depth++ == 0)
        writer->alias_start = writer->out->len;
}

static void leave_alias(struct writer *writer)
{
    if (--writer->alias_depth > 0)
        return;
    size_t len = writer->out->len - writer->alias_start;
    writer->aliased_max -= ML_MIN(len, writer->aliased_max);
}

/* A collection is entered; what it contains must not name it. */
static int open_node(struct writer *writer, struct ml_yaml_node *node)
{
    if (writer->depth == ML_JSON_DEPTH_MAX)
        return ml_yaml_fail(writer->fault, ML_EINVALID, node, "nested too deep through an alias");
    writer->depth++;
    node->open = true;
    return 0;
}

static void close_node(struct writer *writer, struct ml_yaml_node *node)
{
    writer->depth--;
    node->open = false;
}

static int check_alias(struct writer *writer, const struct ml_yaml_node *alias)
{
    if (!writer->tree->nodes[alias->first].open)
        return 0;
    return ml_yaml_fail(writer->fault, ML_EINVALID, alias,
                        "anchor '" ML_STR_FMT "' value contains itself", ML_STR_ARG(alias->text));
}

/* ---- keys ---- */

static int refuse_key(struct writer *writer, const struct member *member, const char *type,
                      bool is_null)
{
    struct ml_buf shown = ML_BUF_INIT, value = ML_BUF_INIT;
    const struct ml_yaml_tree *tree = writer->tree;
    const struct ml_yaml_node *node = &tree->nodes[member->key_node];
    ml_yaml_put_go(&shown, tree, member->key_node);
    ml_yaml_put_go(&value, tree, member->value);
    int r = ml_yaml_fail(
        writer->fault, ML_EINVALID, node, "unsupported map key of type: %s, key: %s, value: %s",
        type, is_null ? "<nil>" : ml_buf_cstr(&shown),
        strcmp(ml_buf_cstr(&value), "interface {}(nil)") == 0 ? "<nil>" : ml_buf_cstr(&value));
    writer->fault->of_json = true;
    ml_buf_fini(&shown);
    ml_buf_fini(&value);
    return r;
}

/* Keeps a key that was made. */
static struct ml_str keep_key(struct writer *writer, struct ml_buf *text)
{
    struct ml_str key = {NULL, text->len};
    writer->keys = ml_grow(writer->keys, &writer->keys_capacity, writer->keys_len,
                           sizeof writer->keys[0]);
    key.ptr = writer->keys[writer->keys_len++] = ml_buf_take(text);
    return key;
}

static int write_node(struct writer *writer, uint32_t place);

/* A mistake inside of the key is reported first. */
static int refuse_collection_key(struct writer *writer, uint32_t key)
{
    int r = write_node(writer, key);
    if (r < 0)
        return r;
    struct ml_buf shown = ML_BUF_INIT;
    ml_yaml_put_go(&shown, writer->tree, key);
    r = ml_yaml_fail(writer->fault, ML_EINVALID, &writer->tree->nodes[key], "invalid map key: %s",
                     ml_buf_cstr(&shown));
    ml_buf_fini(&shown);
    return r;
}

/* The key as text. */
static int name_member(struct writer *writer, struct member *member)
{
    const struct ml_yaml_node *node = ml_yaml_named(writer->tree,
                                                    &writer->tree->nodes[member->key_node]);
    struct ml_yaml_value value;
    struct ml_buf text = ML_BUF_INIT;
    if (node->kind != ML_YAML_SCALAR)
        return refuse_collection_key(writer, member->key_node);
    int r = ml_yaml_resolve(node, &writer->binary, &value, writer->fault);
    if (r < 0)
        return r;
    member->key_type = (uint8_t)value.type;
    switch (value.type) {
    case ML_YAML_IS_NULL:
        return refuse_key(writer, member, "%!s(<nil>)", true);
    case ML_YAML_IS_NATURAL:
        return refuse_key(writer, member, "uint64", false);
    case ML_YAML_IS_TEXT:
        member->key = value.text;
        if (node->tag != ML_YAML_BINARY)
            return 0;
        ml_buf_append_str(&text, value.text);
        break;
    case ML_YAML_IS_BOOL:
        member->key = value.truth ? ML_STR("true") : ML_STR("false");
        return 0;
    case ML_YAML_IS_INT:
        ml_buf_printf(&text, "%lld", (long long)value.integer);
        break;
    case ML_YAML_IS_REAL:
        ml_yaml_put_real_key(&text, value.real);
        break;
    }
    member->key = keep_key(writer, &text);
    return 0;
}

/* ---- mappings ---- */

static int add_members(struct writer *writer, struct ml_yaml_node *mapping);

static int add_member(struct writer *writer, uint32_t key, uint32_t value)
{
    struct member member = {.key_node = key, .value = value, .aliased = writer->alias_depth > 0};
    int r = count_read(writer, &writer->tree->nodes[key]);
    if (r == 0)
        r = name_member(writer, &member);
    if (r < 0)
        return r;
    writer->members = ml_grow(writer->members, &writer->members_capacity, writer->members_len,
                              sizeof member);
    member.order = (uint32_t)writer->members_len;
    writer->members[writer->members_len++] = member;
    return 0;
}

/* The members of what a merge key names. */
static int merge_one(struct writer *writer, struct ml_yaml_node *node)
{
    struct ml_yaml_node *mapping = node->kind == ML_YAML_ALIAS ? &writer->tree->nodes[node->first]
                                                               : node;
    if (mapping->kind != ML_YAML_MAPPING)
        return ml_yaml_fail(writer->fault, ML_EINVALID, node,
                            "map merge requires map or sequence of maps as the value");
    int r = node->kind == ML_YAML_ALIAS ? check_alias(writer, node) : 0;
    if (r == 0)
        r = open_node(writer, mapping);
    if (r < 0)
        return r;
    if (node->kind == ML_YAML_ALIAS)
        enter_alias(writer);
    r = count_read(writer, mapping);
    if (r == 0)
        r = add_members(writer, mapping);
    if (node->kind == ML_YAML_ALIAS)
        leave_alias(writer);
    close_node(writer, mapping);
    return r;
}

/* Of several mappings the first counts, so that it comes last. */
static int merge(struct writer *writer, struct ml_yaml_node *node)
{
    struct ml_yaml_node *nodes = writer->tree->nodes;
    if (node->kind != ML_YAML_SEQUENCE)
        return merge_one(writer, node);
    size_t count = 0;
    for (uint32_t i = node->first; i; i = nodes[i].next)
        count++;
    ML_AUTO_FREE uint32_t *items = ml_alloc((count + 1) * sizeof *items);
    size_t len = 0;
    for (uint32_t i = node->first; i; i = nodes[i].next)
        items[len++] = i;
    int r = 0;
    while (len > 0 && r == 0)
        r = merge_one(writer, &nodes[items[--len]]);
    return r;
}

/* Adds the members of a mapping and of the mappings that it merges, in the order in which they
 * count. */
static int add_members(struct writer *writer, struct ml_yaml_node *mapping)
{
    struct ml_yaml_node *nodes = writer->tree->nodes;
    int r = 0;
    for (uint32_t key = mapping->first; key && r == 0;) {
        uint32_t value = nodes[key].next;
        r = ml_yaml_is_merge(&nodes[key]) ? merge(writer, &nodes[value])
                                          : add_member(writer, key, value);
        key = nodes[value].next;
    }
    return r;
}

static int compare_members(const void *a, const void *b)
{
    const struct member *first = a, *second = b;
    int order = ml_str_cmp(first->key, second->key);
    if (order != 0)
        return order;
    return first->order < second->order ? -1 : 1;
}

static void sort_members(struct member *members, size_t len)
{
    if (len > FEW) {
        qsort(members, len, sizeof members[0], compare_members);
        return;
    }
    for (size_t i = 1; i < len; i++) {
        struct member member = members[i];
        size_t place = i;
        for (; place > 0 && compare_members(&members[place - 1], &member) > 0; place--)
            members[place] = members[place - 1];
        members[place] = member;
    }
}

static int write_value(struct writer *writer, struct member member)
{
    if (member.aliased)
        enter_alias(writer);
    int r = write_node(writer, member.value);
    if (member.aliased)
        leave_alias(writer);
    return r;
}

/* A value that another of the same key replaces is read all the same: it may be wrong. It need not
 * be possible in JSON. */
static int pass_over(struct writer *writer, struct member member)
{
    size_t len = writer->out->len;
    int r = write_value(writer, member);
    if (writer->fault->of_json)
        r = 0;
    writer->fault->of_json = false;
    writer->out->len = len;
    return r;
}

/* Writes the members from `from` on, sorted. */
static int write_members(struct writer *writer, size_t from)
{
    size_t end = writer->members_len;
    int r = 0;
    for (size_t i = from; i < end && r == 0; i++) {
        struct member member = writer->members[i]; /* the array may move */
        if (i + 1 < end && ml_str_eq(member.key, writer->members[i + 1].key)) {
            writer->has_duplicates = true;
            r = pass_over(writer, member);
            continue;
        }
        if (writer->out->ptr[writer->out->len - 1] != '{')
            ml_buf_putc(writer->out, ',');
        ml_escape_json(writer->out, member.key);
        ml_buf_putc(writer->out, ':');
        r = check_size(writer, &writer->tree->nodes[member.key_node]);
        if (r == 0)
            r = write_value(writer, member);
    }
    return r;
}

static int write_mapping(struct writer *writer, struct ml_yaml_node *node)
{
    size_t from = writer->members_len;
    ml_buf_putc(writer->out, '{');
    int r = check_size(writer, node);
    if (r == 0)
        r = add_members(writer, node);
    if (r == 0) {
        sort_members(writer->members + from, writer->members_len - from);
        r = write_members(writer, from);
    }
    writer->members_len = from;
    ml_buf_putc(writer->out, '}');
    return r < 0 ? r : check_size(writer, node);
}

/* ---- other nodes ---- */

static int write_sequence(struct writer *writer, struct ml_yaml_node *node)
{
    int r = 0;
    ml_buf_putc(writer->out, '[');
    for (uint32_t i = node->first; i && r == 0; i = writer->tree->nodes[i].next) {
        if (i != node->first)
            ml_buf_putc(writer->out, ',');
        r = write_node(writer, i);
    }
    ml_buf_putc(writer->out, ']');
    return r < 0 ? r : check_size(writer, node);
}

static int write_real(struct writer *writer, const struct ml_yaml_node *node, double value)
{
    if (isfinite(value)) {
        ml_yaml_put_real(writer->out, value);
        return 0;
    }
    int r = ml_yaml_fail(writer->fault, ML_EINVALID, node, "json: unsupported value: %s",
                         isnan(value) ? "NaN"
                         : value < 0  ? "-Inf"
                                      : "+Inf");
    writer->fault->of_json = true;
    return r;
}

static int write_scalar(struct writer *writer, const struct ml_yaml_node *node)
{
    struct ml_yaml_value value;
    int r = ml_yaml_resolve(node, &writer->binary, &value, writer->fault);
    if (r < 0)
        return r;
    switch (value.type) {
    case ML_YAML_IS_NULL:
        ml_buf_puts(writer->out, "null");
        break;
    case ML_YAML_IS_BOOL:
        ml_buf_puts(writer->out, value.truth ? "true" : "false");
        break;
    case ML_YAML_IS_INT:
        ml_buf_printf(writer->out, "%lld", (long long)value.integer);
        break;
    case ML_YAML_IS_NATURAL:
        ml_buf_printf(writer->out, "%llu", (unsigned long long)value.natural);
        break;
    case ML_YAML_IS_REAL:
        r = write_real(writer, node, value.real);
        break;
    case ML_YAML_IS_TEXT:
        ml_escape_json(writer->out, value.text);
        break;
    }
    return r < 0 ? r : check_size(writer, node);
}

static int write_collection(struct writer *writer, struct ml_yaml_node *node)
{
    int r = open_node(writer, node);
    if (r < 0)
        return r;
    r = node->kind == ML_YAML_MAPPING ? write_mapping(writer, node) : write_sequence(writer, node);
    close_node(writer, node);
    return r;
}

static int write_alias(struct writer *writer, const struct ml_yaml_node *node)
{
    int r = check_alias(writer, node);
    if (r < 0)
        return r;
    enter_alias(writer);
    r = write_node(writer, node->first);
    leave_alias(writer);
    return r;
}

/* One level of recursion a level of nesting, two of an alias. */
static int write_node(struct writer *writer, uint32_t place)
{
    struct ml_yaml_node *node = &writer->tree->nodes[place];
    int r = count_read(writer, node);
    if (r < 0)
        return r;
    if (node->kind == ML_YAML_ALIAS)
        return write_alias(writer, node);
    return node->kind == ML_YAML_SCALAR ? write_scalar(writer, node)
                                        : write_collection(writer, node);
}

int ml_yaml_tree_write(struct ml_yaml_tree *tree, size_t out_max, size_t aliased_max,
                       struct ml_buf *out, bool *out_duplicates, struct ml_yaml_fault *fault)
{
    struct writer writer = {
        .tree = tree, .fault = fault, .out = out, .out_max = out_max, .aliased_max = aliased_max};
    int r = 0;
    if (tree->root)
        r = write_node(&writer, tree->root);
    else
        ml_buf_puts(out, "null");
    *out_duplicates = writer.has_duplicates;
    for (size_t i = 0; i < writer.keys_len; i++)
        free(writer.keys[i]);
    free(writer.keys);
    free(writer.members);
    ml_buf_fini(&writer.binary);
    return r;
}

/* ---- the keys that a mapping has twice, as Kubernetes' strict reader tells them ---- */

/* Keys of different types are different ones there (1 and "1"), and what a merge key brings in
 * counts, too. */

#define TOLD_MAX 1000

struct search {
    const struct ml_yaml_tree *tree;
    struct ml_buf *out;
    struct ml_buf binary;
    size_t told;
};

/* The keys of one mapping, each the value of its own entry. */
static void free_keys(struct ml_map *keys)
{
    ml_map_each (keys, cursor, key) {
        free(key);
    }
    ml_map_fini(keys);
}

static void search_node(struct search *search, uint32_t place);
static void search_members(struct search *search, const struct ml_yaml_node *mapping,
                           struct ml_map *keys);

static void tell(struct search *search, uint32_t key, uint32_t value)
{
    struct ml_buf shown = ML_BUF_INIT;
    ml_yaml_put_go(&shown, search->tree, key);
    ml_buf_printf(search->out, "line %u: key %s already set in map\n",
                  search->tree->nodes[value].line + 1, ml_buf_cstr(&shown));
    ml_buf_fini(&shown);
    search->told++;
}

/* A key with its type in front of it; to be freed. */
static struct ml_str typed_key(struct search *search, uint32_t place)
{
    struct ml_yaml_value value;
    struct ml_err err;
    struct ml_yaml_fault fault = {.err = &err};
    struct ml_buf text = ML_BUF_INIT;
    const struct ml_yaml_node *node = ml_yaml_named(search->tree, &search->tree->nodes[place]);
    if (ml_yaml_resolve(node, &search->binary, &value, &fault) < 0)
        return (struct ml_str){NULL, 0}; /* never: the tree could be written */
    ml_buf_putc(&text, (char)('a' + (int)value.type));
    if (value.type == ML_YAML_IS_TEXT)
        ml_buf_append_str(&text, value.text);
    else if (value.type == ML_YAML_IS_REAL && isnan(value.real))
        ml_buf_printf(&text, "%u", place); /* equals nothing */
    else if (value.type == ML_YAML_IS_REAL)
        ml_buf_printf(&text, "%.17g", value.real);
    else
        ml_yaml_put_go(&text, search->tree, place);
    struct ml_str key = {NULL, text.len};
    key.ptr = ml_buf_take(&text);
    return key;
}

static void search_member(struct search *search, uint32_t key, uint32_t value, struct ml_map *keys)
{
    search_node(search, value);
    struct ml_str text = typed_key(search, key);
    if (!ml_map_get(keys, text)) {
        ml_map_put(keys, text, (void *)text.ptr);
        return;
    }
    tell(search, key, value);
    free((void *)text.ptr);
}

/* Writing the tree has refused to merge anything but mappings and sequences of them. */
static void search_merged(struct search *search, const struct ml_yaml_node *node,
                          struct ml_map *keys)
{
    if (node->kind != ML_YAML_SEQUENCE) {
        search_members(search, ml_yaml_named(search->tree, node), keys);
        return;
    }
    size_t count = 0;
    for (uint32_t i = node->first; i; i = search->tree->nodes[i].next)
        count++;
    ML_AUTO_FREE uint32_t *items = ml_alloc((count + 1) * sizeof *items);
    size_t len = 0;
    for (uint32_t i = node->first; i; i = search->tree->nodes[i].next)
        items[len++] = i;
    while (len > 0)
        search_merged(search, &search->tree->nodes[items[--len]], keys);
}

static void search_members(struct search *search, const struct ml_yaml_node *mapping,
                           struct ml_map *keys)
{
    const struct ml_yaml_node *nodes = search->tree->nodes;
    for (uint32_t key = mapping->first; key && search->told < TOLD_MAX;) {
        uint32_t value = nodes[key].next;
        if (ml_yaml_is_merge(&nodes[key]))
            search_merged(search, &nodes[value], keys);
        else
            search_member(search, key, value, keys);
        key = nodes[value].next;
    }
}

static void search_node(struct search *search, uint32_t place)
{
    const struct ml_yaml_node *nodes = search->tree->nodes;
    const struct ml_yaml_node *node = ml_yaml_named(search->tree, &nodes[place]);
    if (node->kind == ML_YAML_MAPPING) {
        ML_AUTO(free_keys) struct ml_map keys = {0};
        search_members(search, node, &keys);
    } else if (node->kind == ML_YAML_SEQUENCE) {
        for (uint32_t i = node->first; i; i = nodes[i].next)
            search_node(search, i);
    }
}

void ml_yaml_tree_duplicates(const struct ml_yaml_tree *tree, struct ml_buf *out)
{
    struct search search = {.tree = tree, .out = out};
    if (tree->root)
        search_node(&search, tree->root);
    ml_buf_fini(&search.binary);
}
