/* Keys that their mapping has already, as Kubernetes' strict reader tells them. Keys of different
 * types are different ones there (1 and "1"), and what a merge key brings in counts, too.
 *
 * Rules: go.yaml.in/yaml/v2 decode.go (mapping, setMapIndex). */
#include "codec/yaml_internal.h"

#include "base/map.h"

#include <math.h>

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

/* What may be merged was seen when the tree was written: mappings, and sequences of them. */
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
