/* YAML to JSON: the documents of a file, or one. libyaml's events become a tree, and the tree JSON.
 *
 * Rules: apimachinery/pkg/util/yaml/decoder.go (what kubectl takes for a document),
 * go.yaml.in/yaml/v2 decode.go (parser, decoder, mapping, setMapIndex) and sigs.k8s.io/yaml yaml.go
 * (convertToJSONableObject). */
#include "codec/yaml.h"

#include "base/escape.h"
#include "base/map.h"
#include "codec/json.h"
#include "codec/yaml_scalar.h"

#include <math.h>
#include <yaml.h>

#define ANCHORS_MAX    10000 /* of one document */
#define DIRECTIVES_MAX 100   /* libyaml compares each with all before it */
#define TAG_PREFIX     "tag:yaml.org,2002:"

#define FEW       16 /* members that are sorted by insertion */
#define KEY_BYTES 64 /* of one that is made, with its place; those of numbers are short */

#define SEPARATOR "---"

/* The bytes that aliases may add, beyond the length of the text itself. Honest documents stay far
 * below; a few aliases that each double the one before would fill any memory. */
#define ALIASED_BYTES_MAX ((size_t)1024 * 1024)

/* ---- a document as a tree ----
 *
 * Merge keys and keys that come twice need a mapping as a whole before it is written. */

/* A document. Nodes are named by their place; 0 names none. */
struct tree {
    struct ml_yaml_node *nodes;
    size_t len, capacity;
    uint32_t root;                     /* 0: no document */
    struct ml_buf texts;               /* of the nodes; it never moves, and is wiped */
    const struct ml_yaml_watch *watch; /* NULL: nobody */
};

/* The node itself, or what an alias names. */
static const struct ml_yaml_node *named(const struct tree *tree, const struct ml_yaml_node *node)
{
    return node->kind == ML_YAML_ALIAS ? &tree->nodes[node->first] : node;
}

/* Is this key "<<", which merges? */
static bool is_merge(const struct ml_yaml_node *key)
{
    return key->kind == ML_YAML_SCALAR && (key->plain || key->tag == ML_YAML_MERGE) &&
           ml_str_is(key->text, "<<");
}

/* Asks who watches whether to go on; `more`: bytes that are held beside the tree. */
static int go_on(const struct tree *tree, size_t more, struct ml_yaml_fault *fault)
{
    size_t held = tree->capacity * sizeof tree->nodes[0] + tree->texts.capacity + more;
    if (!tree->watch || tree->watch->go_on(tree->watch->context, held))
        return 0;
    return ml_err_set(fault->err, ML_ELIMIT, "the reading was ended");
}

struct builder {
    yaml_parser_t parser;
    yaml_event_t event; /* the current one; freed by the next */
    struct tree *tree;
    struct ml_yaml_fault *fault;
    struct ml_map anchors; /* name to place; a later one of the same name counts */
    size_t anchor_count;
    size_t text_len;
    struct level {
        uint32_t node, last; /* the collection, and its last child so far */
    } levels[ML_JSON_DEPTH_MAX];
    size_t depth;
};

static int refuse(struct builder *builder, const char *problem)
{
    builder->fault->line = builder->event.start_mark.line + 1;
    return ml_err_set(builder->fault->err, ML_EINVALID, "%s", problem);
}

/* Kubernetes' reader counts lines from 0 and then adds 1 for the scanner's errors alone; in the
 * first line it names none. */
static int refuse_as_parser(struct builder *builder)
{
    const yaml_parser_t *parser = &builder->parser;
    struct ml_yaml_fault *fault = builder->fault;
    /* Trouble with the bytes themselves comes without a mark. */
    bool of_bytes = parser->error == YAML_READER_ERROR;
    fault->line = (of_bytes ? parser->mark.line : parser->problem_mark.line) + 1;
    if (!of_bytes && parser->problem_mark.line)
        fault->named_line = parser->problem_mark.line + (parser->error == YAML_SCANNER_ERROR);
    else if (!of_bytes)
        fault->named_line = parser->context_mark.line;
    return ml_err_set(fault->err, ML_EINVALID, "%s",
                      parser->problem ? parser->problem : "unknown problem parsing YAML content");
}

static int next_event(struct builder *builder)
{
    yaml_event_delete(&builder->event);
    return yaml_parser_parse(&builder->parser, &builder->event) ? 0 : refuse_as_parser(builder);
}

static enum ml_yaml_tag tag_of(const yaml_char_t *tag)
{
    static const char *const names[] = {
        [ML_YAML_STR] = "str",       [ML_YAML_BOOL] = "bool",   [ML_YAML_INT] = "int",
        [ML_YAML_FLOAT] = "float",   [ML_YAML_NULL] = "null",   [ML_YAML_TIMESTAMP] = "timestamp",
        [ML_YAML_BINARY] = "binary", [ML_YAML_MERGE] = "merge",
    };
    if (!tag || !*tag)
        return ML_YAML_UNTAGGED;
    const char *text = (const char *)tag;
    if (strncmp(text, TAG_PREFIX, strlen(TAG_PREFIX)) == 0)
        for (size_t i = ML_YAML_STR; i < ML_COUNT(names); i++)
            if (strcmp(text + strlen(TAG_PREFIX), names[i]) == 0)
                return (enum ml_yaml_tag)i;
    return ML_YAML_OTHER;
}

/* The text of a node, kept. There was room for all of them from the start. */
static struct ml_str keep(struct tree *tree, const yaml_char_t *text, size_t len)
{
    struct ml_str kept = {tree->texts.ptr + tree->texts.len, len};
    ml_assert(tree->texts.len + len <= tree->texts.capacity);
    if (len)
        ml_buf_append(&tree->texts, text, len);
    return kept;
}

/* A node of the current event, the next child of the collection that is open. */
static uint32_t add_node(struct builder *builder, enum ml_yaml_kind kind)
{
    struct tree *tree = builder->tree;
    tree->nodes = ml_grow(tree->nodes, &tree->capacity, tree->len, sizeof tree->nodes[0]);
    uint32_t place = (uint32_t)tree->len++;
    tree->nodes[place] = (struct ml_yaml_node){.kind = (uint8_t)kind,
                                               .line = (uint32_t)builder->event.start_mark.line};
    if (builder->depth == 0) {
        tree->root = place;
        return place;
    }
    struct level *level = &builder->levels[builder->depth - 1];
    if (level->last)
        tree->nodes[level->last].next = place;
    else
        tree->nodes[level->node].first = place;
    level->last = place;
    return place;
}

static int name_node(struct builder *builder, const yaml_char_t *name, uint32_t place)
{
    if (!name)
        return 0;
    if (builder->anchor_count++ == ANCHORS_MAX)
        return refuse(builder, "more than 10000 anchors");
    ml_map_put(&builder->anchors, keep(builder->tree, name, strlen((const char *)name)),
               (void *)(uintptr_t)place);
    return 0;
}

static int add_alias(struct builder *builder)
{
    const yaml_char_t *name = builder->event.data.alias.anchor;
    uint32_t place = add_node(builder, ML_YAML_ALIAS);
    struct ml_yaml_node *node = &builder->tree->nodes[place];
    node->text = keep(builder->tree, name, strlen((const char *)name));
    node->first = (uint32_t)(uintptr_t)ml_map_get(&builder->anchors, node->text);
    return node->first
               ? 0
               : ml_yaml_fail(builder->fault, ML_EINVALID, node,
                              "unknown anchor '" ML_STR_FMT "' referenced", ML_STR_ARG(node->text));
}

static int add_scalar(struct builder *builder)
{
    const yaml_event_t *event = &builder->event;
    uint32_t place = add_node(builder, ML_YAML_SCALAR);
    struct ml_yaml_node *node = &builder->tree->nodes[place];
    node->text = keep(builder->tree, event->data.scalar.value, event->data.scalar.length);
    node->tag = (uint8_t)tag_of(event->data.scalar.tag);
    node->plain = event->data.scalar.plain_implicit;
    return name_node(builder, event->data.scalar.anchor, place);
}

static int open_collection(struct builder *builder, enum ml_yaml_kind kind)
{
    const yaml_event_t *event = &builder->event;
    const yaml_char_t *name = kind == ML_YAML_MAPPING ? event->data.mapping_start.anchor
                                                      : event->data.sequence_start.anchor;
    if (builder->depth == ML_JSON_DEPTH_MAX)
        return refuse(builder, "nested too deep");
    uint32_t place = add_node(builder, kind);
    builder->levels[builder->depth++] = (struct level){.node = place};
    return name_node(builder, name, place);
}

/* Takes the current event, one of a node. */
static int add_event(struct builder *builder)
{
    switch (builder->event.type) {
    case YAML_ALIAS_EVENT:
        return add_alias(builder);
    case YAML_SCALAR_EVENT:
        return add_scalar(builder);
    case YAML_SEQUENCE_START_EVENT:
        return open_collection(builder, ML_YAML_SEQUENCE);
    case YAML_MAPPING_START_EVENT:
        return open_collection(builder, ML_YAML_MAPPING);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        builder->depth--;
        return 0;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        break;
    }
    ML_UNREACHABLE();
}

/* An entry of a map is below 64 bytes; the parser may have the longest scalar twice. */
static int ask_to_go_on(struct builder *builder)
{
    return go_on(builder->tree, 64 * builder->anchor_count + 2 * builder->text_len, builder->fault);
}

/* The current event is the document's start; afterwards it is its end. */
static int read_document(struct builder *builder)
{
    const yaml_version_directive_t *version = builder->event.data.document_start.version_directive;
    if (version && (version->major != 1 || version->minor != 1))
        return refuse(builder, "found incompatible YAML document");
    int r = next_event(builder);
    while (r == 0 && builder->event.type != YAML_DOCUMENT_END_EVENT) {
        r = add_event(builder);
        if (r == 0)
            r = ask_to_go_on(builder);
        if (r == 0)
            r = next_event(builder);
    }
    return r;
}

/* The line of what follows the document; what is no YAML counts. */
static size_t line_behind(struct builder *builder)
{
    struct ml_err ignored;
    struct ml_yaml_fault fault = {.err = &ignored}, *outer = builder->fault;
    builder->fault = &fault;
    int r = next_event(builder);
    builder->fault = outer;
    if (r < 0)
        return fault.line;
    return builder->event.type == YAML_STREAM_END_EVENT ? 0 : builder->event.start_mark.line + 1;
}

static int read_stream(struct builder *builder, size_t *out_trailing)
{
    int r = next_event(builder);
    if (r == 0)
        r = next_event(builder);
    if (out_trailing)
        *out_trailing = 0;
    if (r < 0 || builder->event.type == YAML_STREAM_END_EVENT)
        return r;
    r = read_document(builder);
    if (r == 0 && out_trailing)
        *out_trailing = line_behind(builder);
    return r;
}

/* Does a line end before `at`? In UTF-16 a zero is before it, whatever stands there. */
static bool ends_line(struct ml_str text, size_t at)
{
    const struct ml_str before = {text.ptr, at};
    return at == 0 || memchr("\n\r\0", text.ptr[at - 1], 3) || ml_str_ends(before, "\xc2\x85") ||
           ml_str_ends(before, "\xe2\x80\xa8") || ml_str_ends(before, "\xe2\x80\xa9");
}

static bool has_many_directives(struct ml_str text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len && count <= DIRECTIVES_MAX; i++)
        count += text.ptr[i] == '%' && ends_line(text, i);
    return count > DIRECTIVES_MAX;
}

/* Reads the first document; of the tree only `watch` is set. When `out_trailing` is not NULL it
 * gets the line, from 1, of what follows that document, or 0. End the tree in any case. */
static int read_tree(struct tree *tree, struct ml_str text, size_t *out_trailing,
                     struct ml_yaml_fault *fault)
{
    struct builder builder = {.tree = tree, .fault = fault, .text_len = text.len};
    *tree = (struct tree){.watch = tree->watch};
    if (text.len > UINT32_MAX / 4)
        return ml_err_set(fault->err, ML_ELIMIT, "more than 1 GiB of YAML");
    if (has_many_directives(text))
        return ml_err_set(fault->err, ML_ELIMIT, "more than %d directives", DIRECTIVES_MAX);
    int r = ask_to_go_on(&builder);
    if (r < 0)
        return r;
    /* A UTF-16 text grows by half, an escape like "\L" from two bytes to three. */
    ml_buf_init(&tree->texts, text.len * 2 + 16);
    (void)ml_buf_reserve(&tree->texts, text.len * 2 + 16);
    tree->nodes = ml_grow(tree->nodes, &tree->capacity, 0, sizeof tree->nodes[0]);
    tree->len = 1; /* the place 0 names no node */
    if (!yaml_parser_initialize(&builder.parser))
        ml_assert(!"memory for a YAML parser");
    const char *input = text.ptr ? text.ptr : "";
    yaml_parser_set_input_string(&builder.parser, (const unsigned char *)input, text.len);
    r = read_stream(&builder, out_trailing);
    yaml_event_delete(&builder.event);
    yaml_parser_delete(&builder.parser);
    ml_map_fini(&builder.anchors);
    return r;
}

static void tree_fini(struct tree *tree)
{
    if (tree->texts.ptr) /* it may have been a kubeconfig; only what was written needs wiping */
        explicit_bzero(tree->texts.ptr, tree->texts.len);
    ml_buf_fini(&tree->texts);
    free(tree->nodes);
    *tree = (struct tree){0};
}

/* ---- a value as Go prints it with %#v ---- */

#define SHOWN_MAX ((size_t)ML_ERR_MESSAGE_MAX) /* longer than a message can be */

static void put_quoted(struct ml_buf *out, struct ml_str text)
{
    static const char letters[] = "abtnvfr"; /* of 7 to 13 */
    ml_buf_putc(out, '"');
    for (size_t i = 0; i < text.len && out->len < SHOWN_MAX; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c == '"' || c == '\\')
            ml_buf_printf(out, "\\%c", c);
        else if (c >= 7 && c <= 13)
            ml_buf_printf(out, "\\%c", letters[c - 7]);
        else if (c < ' ' || c == 0x7f)
            ml_buf_printf(out, "\\x%02x", c);
        else
            ml_buf_putc(out, (char)c);
    }
    ml_buf_putc(out, '"');
}

static void put_scalar(struct ml_buf *out, const struct ml_yaml_node *node)
{
    struct ml_yaml_value value;
    struct ml_err err;
    struct ml_yaml_fault fault = {.err = &err};
    struct ml_buf binary = ML_BUF_INIT;
    if (ml_yaml_resolve(node, &binary, &value, &fault) < 0)
        value = (struct ml_yaml_value){.type = ML_YAML_IS_TEXT, .text = node->text};
    switch (value.type) {
    case ML_YAML_IS_NULL:
        ml_buf_puts(out, "interface {}(nil)");
        break;
    case ML_YAML_IS_BOOL:
        ml_buf_puts(out, value.truth ? "true" : "false");
        break;
    case ML_YAML_IS_INT:
        ml_buf_printf(out, "%lld", (long long)value.integer);
        break;
    case ML_YAML_IS_NATURAL:
        ml_buf_printf(out, "0x%llx", (unsigned long long)value.natural);
        break;
    case ML_YAML_IS_REAL:
        ml_yaml_put_real_key(out, value.real);
        break;
    case ML_YAML_IS_TEXT:
        put_quoted(out, value.text);
        break;
    }
    ml_buf_fini(&binary);
}

static void put_go(struct ml_buf *out, const struct tree *tree, uint32_t place);

static void put_children(struct ml_buf *out, const struct tree *tree, uint32_t child, bool mapping)
{
    bool is_key = true;
    for (uint32_t i = child; i && out->len < SHOWN_MAX; i = tree->nodes[i].next) {
        if (i != child)
            ml_buf_puts(out, mapping && !is_key ? ":" : ", ");
        put_go(out, tree, i);
        is_key = !is_key;
    }
}

/* Appends a node. Ends after some hundred bytes. */
static void put_go(struct ml_buf *out, const struct tree *tree, uint32_t place)
{
    const struct ml_yaml_node *node = named(tree, &tree->nodes[place]);
    bool mapping = node->kind == ML_YAML_MAPPING;
    if (out->len >= SHOWN_MAX)
        return;
    if (node->kind == ML_YAML_SCALAR) {
        put_scalar(out, node);
        return;
    }
    ml_buf_puts(out, mapping ? "map[interface {}]interface {}{" : "[]interface {}{");
    put_children(out, tree, node->first, mapping);
    ml_buf_putc(out, '}');
}

/* ---- a tree as JSON ----
 *
 * Keys become text and are sorted, merge keys are carried out, aliases written anew, of a key that
 * comes twice the last counts. */

/* A member of a mapping that is being written. */
struct member {
    struct ml_str key;
    uint32_t key_node, value;
    uint32_t order;
    uint8_t key_type; /* of struct ml_yaml_value */
    bool aliased;     /* it came through an alias */
};

struct writer {
    struct tree *tree;
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
                  writer->keys_capacity * KEY_BYTES;
    int r = go_on(writer->tree, held, writer->fault);
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
    const struct tree *tree = writer->tree;
    const struct ml_yaml_node *node = &tree->nodes[member->key_node];
    put_go(&shown, tree, member->key_node);
    put_go(&value, tree, member->value);
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
    put_go(&shown, writer->tree, key);
    r = ml_yaml_fail(writer->fault, ML_EINVALID, &writer->tree->nodes[key], "invalid map key: %s",
                     ml_buf_cstr(&shown));
    ml_buf_fini(&shown);
    return r;
}

/* The key as text. */
static int name_member(struct writer *writer, struct member *member)
{
    const struct ml_yaml_node *node = named(writer->tree, &writer->tree->nodes[member->key_node]);
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
        r = is_merge(&nodes[key]) ? merge(writer, &nodes[value]) : add_member(writer, key, value);
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
        ml_json_go_float64(writer->out, value);
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

/* Appends the tree, within `out_max` bytes of `out`; `aliased_max`: what aliases may add.
 * `out_duplicates` is set when a mapping has a key twice. */
static int write_tree(struct tree *tree, size_t out_max, size_t aliased_max, struct ml_buf *out,
                      bool *out_duplicates, struct ml_yaml_fault *fault)
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
    const struct tree *tree;
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
    put_go(&shown, search->tree, key);
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
    const struct ml_yaml_node *node = named(search->tree, &search->tree->nodes[place]);
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
        put_go(&text, search->tree, place);
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
        search_members(search, named(search->tree, node), keys);
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
        if (is_merge(&nodes[key]))
            search_merged(search, &nodes[value], keys);
        else
            search_member(search, key, value, keys);
        key = nodes[value].next;
    }
}

static void search_node(struct search *search, uint32_t place)
{
    const struct ml_yaml_node *nodes = search->tree->nodes;
    const struct ml_yaml_node *node = named(search->tree, &nodes[place]);
    if (node->kind == ML_YAML_MAPPING) {
        ML_AUTO(free_keys) struct ml_map keys = {0};
        search_members(search, node, &keys);
    } else if (node->kind == ML_YAML_SEQUENCE) {
        for (uint32_t i = node->first; i; i = nodes[i].next)
            search_node(search, i);
    }
}

/* Appends a line for each key that its mapping has already, in the order in which Kubernetes'
 * reader sees them. For a tree that could be written. */
static void list_duplicates(const struct tree *tree, struct ml_buf *out)
{
    struct search search = {.tree = tree, .out = out};
    if (tree->root)
        search_node(&search, tree->root);
    ml_buf_fini(&search.binary);
}

/* ---- one document ---- */

/* `watch`, `out_trailing` and `duplicates` may be NULL. */
static int convert(struct ml_str text, size_t json_max, const struct ml_yaml_watch *watch,
                   struct ml_buf *out, size_t *out_trailing, struct ml_buf *duplicates,
                   struct ml_yaml_fault *fault)
{
    struct tree tree = {.watch = watch};
    size_t len_before = out->len;
    size_t out_max = len_before + ML_MIN(json_max, SIZE_MAX / 2);
    bool twice = false;
    int r = read_tree(&tree, text, out_trailing, fault);
    if (r == 0)
        r = write_tree(&tree, out_max, text.len + ALIASED_BYTES_MAX, out, &twice, fault);
    if (r == 0 && twice && duplicates)
        list_duplicates(&tree, duplicates);
    tree_fini(&tree);
    if (r < 0) {
        out->len = len_before;
        out->failed = false;
    }
    return r;
}

int ml_yaml_document(struct ml_str text, size_t json_max, struct ml_buf *out,
                     struct ml_buf *duplicates, struct ml_err *err)
{
    struct ml_yaml_fault fault = {.err = err};
    int r = convert(text, json_max, NULL, out, NULL, duplicates, &fault);
    if (r == 0 || fault.of_json)
        return r;
    if (fault.named_line)
        return ml_err_wrap(err, "yaml: line %zu", fault.named_line);
    return ml_err_wrap(err, "yaml");
}

/* ---- the documents of a file ---- */

/* Moves on by `len` bytes. */
static void advance(struct ml_yaml_stream *stream, size_t len)
{
    const char *end = stream->rest.ptr + len;
    for (const char *at = stream->rest.ptr; (at = memchr(at, '\n', (size_t)(end - at)));) {
        stream->rest_line++;
        if (++at == end)
            break;
    }
    stream->rest = (struct ml_str){end, stream->rest.len - len};
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

void ml_yaml_stream_init(struct ml_yaml_stream *stream, struct ml_str text)
{
    *stream = (struct ml_yaml_stream){.line = 1, .rest = text, .rest_line = 1};
    if (!text.ptr)
        stream->rest = ML_STR("");
    size_t at = 0;
    while (at < text.len && is_space(text.ptr[at]))
        at++;
    stream->is_json = at < text.len && text.ptr[at] == '{';
}

static size_t line_len(struct ml_str text)
{
    const char *end = text.len ? memchr(text.ptr, '\n', text.len) : NULL;
    return end ? (size_t)(end - text.ptr) + 1 : text.len;
}

/* The length of what stands before the next separator but on the first line. */
static size_t chunk_len(struct ml_str text)
{
    size_t len = line_len(text);
    while (len < text.len) {
        struct ml_str rest = {text.ptr + len, text.len - len};
        if (ml_str_starts(rest, SEPARATOR))
            break;
        len += line_len(rest);
    }
    return len;
}

/* Only a comment may stand behind a separator. */
static bool is_wrong_separator(struct ml_str line)
{
    if (!ml_str_starts(line, SEPARATOR))
        return false;
    struct ml_str behind = ml_str_trim((struct ml_str){line.ptr + 3, line.len - 3});
    return behind.len > 0 && behind.ptr[0] != '#';
}

static int refuse_separator(struct ml_yaml_stream *stream, struct ml_str line, struct ml_err *err)
{
    struct ml_str behind = ml_str_trim((struct ml_str){line.ptr + 3, line.len - 3});
    return ml_err_set(err, ML_EINVALID, "line %zu: invalid Yaml document separator: " ML_STR_FMT,
                      stream->line, ML_STR_ARG(ml_str_head(behind, 100)));
}

/* Takes what JSON there is at once. Returns 1, or 0 when there is none. */
static int next_json(struct ml_yaml_stream *stream, size_t json_max, struct ml_buf *out)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, stream->rest, 0);
    struct ml_str raw = ml_json_skip(&reader);
    size_t start = out->len;
    if (raw.len == 0 || raw.ptr[0] != '{' || raw.len > json_max || !ml_buf_append_str(out, raw))
        return 0;
    for (char *at = out->ptr + start; at < out->ptr + out->len; at++)
        if (*at == '\n' || *at == '\r') /* never inside a string */
            *at = ' ';
    advance(stream, (size_t)(raw.ptr - stream->rest.ptr));
    stream->line = stream->rest_line;
    advance(stream, raw.len);
    return 1;
}

/* Skips white space, up to a line end. */
static void skip_space(struct ml_yaml_stream *stream)
{
    size_t len = 0;
    while (len < stream->rest.len && is_space(stream->rest.ptr[len]) &&
           stream->rest.ptr[len] != '\n')
        len++;
    if (len < stream->rest.len && stream->rest.ptr[len] == '\n')
        advance(stream, len + 1);
}

static int next_yaml(struct ml_yaml_stream *stream, size_t json_max, struct ml_buf *out,
                     struct ml_err *err)
{
    struct ml_yaml_fault fault = {.err = err};
    struct ml_str chunk = {stream->rest.ptr, chunk_len(stream->rest)};
    struct ml_str first = {chunk.ptr, line_len(chunk)};
    size_t start = out->len, trailing = 0;
    stream->line = stream->rest_line;
    advance(stream, chunk.len);
    if (stream->rest.len > 0 &&
        !is_wrong_separator((struct ml_str){stream->rest.ptr, line_len(stream->rest)}))
        advance(stream, line_len(stream->rest));
    if (is_wrong_separator(first))
        return refuse_separator(stream, first, err);
    int r = convert(chunk, json_max, stream->watch, out, &trailing, NULL, &fault);
    if (r < 0)
        return ml_err_wrap(err, "line %zu", stream->line - 1 + ML_MAX(fault.line, (size_t)1));
    if (trailing)
        stream->trailing_line = stream->line - 1 + trailing;
    if (ml_str_is((struct ml_str){out->ptr + start, out->len - start}, "null")) {
        out->len = start;
        return 0;
    }
    return 1;
}

int ml_yaml_stream_next(struct ml_yaml_stream *stream, size_t json_max, struct ml_buf *out,
                        struct ml_err *err)
{
    int r = 0;
    if (stream->trailing_line) {
        stream->line = stream->trailing_line;
        stream->trailing_line = 0;
        return ml_err_set(err, ML_EINVALID,
                          "line %zu: kubectl does not read what follows a document without a line "
                          "\"---\"; add one",
                          stream->line);
    }
    if (stream->is_json && next_json(stream, json_max, out))
        return 1;
    if (stream->is_json)
        skip_space(stream);
    stream->is_json = false;
    while (r == 0 && stream->rest.len > 0 && !stream->trailing_line)
        r = next_yaml(stream, json_max, out, err);
    return r == 0 && stream->trailing_line ? ml_yaml_stream_next(stream, json_max, out, err) : r;
}

int ml_yaml_to_json(struct ml_str text, size_t json_max, struct ml_buf *out, struct ml_err *err)
{
    struct ml_yaml_stream stream;
    size_t start = out->len;
    int r;
    ml_yaml_stream_init(&stream, text);
    while ((r = ml_yaml_stream_next(&stream, json_max - (out->len - start), out, err)) > 0)
        if (out->len - start >= json_max || !ml_buf_putc(out, '\n')) {
            r = ml_err_set(err, ML_ELIMIT, "line %zu: as JSON the text becomes too large",
                           stream.line);
            break;
        }
    if (r < 0)
        out->len = start;
    return r;
}
