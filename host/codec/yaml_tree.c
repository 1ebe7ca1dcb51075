/* libyaml's events as a tree: merge keys and keys that come twice need a mapping as a whole before
 * it is written. One document is read, and nothing behind it.
 *
 * Rules: go.yaml.in/yaml/v2 decode.go (parser), which sigs.k8s.io/yaml reads with. */
#include "codec/yaml_internal.h"

#include "base/map.h"

#include <yaml.h>

#define ANCHORS_MAX    10000 /* of one document */
#define DIRECTIVES_MAX 100   /* libyaml compares each with all before it */
#define TAG_PREFIX     "tag:yaml.org,2002:"

struct builder {
    yaml_parser_t parser;
    yaml_event_t event; /* the current one; freed by the next */
    struct ml_yaml_tree *tree;
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
static struct ml_str keep(struct ml_yaml_tree *tree, const yaml_char_t *text, size_t len)
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
    struct ml_yaml_tree *tree = builder->tree;
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

int ml_yaml_go_on(const struct ml_yaml_tree *tree, size_t more, struct ml_yaml_fault *fault)
{
    size_t held = tree->capacity * sizeof tree->nodes[0] + tree->texts.capacity + more;
    if (!tree->watch || tree->watch->go_on(tree->watch->context, held))
        return 0;
    return ml_err_set(fault->err, ML_ELIMIT, "the reading was ended");
}

/* An entry of a map is below 64 bytes; the parser may have the longest scalar twice. */
static int ask_to_go_on(struct builder *builder)
{
    return ml_yaml_go_on(builder->tree, 64 * builder->anchor_count + 2 * builder->text_len,
                         builder->fault);
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

int ml_yaml_tree_read(struct ml_yaml_tree *tree, struct ml_str text, size_t *out_trailing,
                      struct ml_yaml_fault *fault)
{
    struct builder builder = {.tree = tree, .fault = fault, .text_len = text.len};
    *tree = (struct ml_yaml_tree){.watch = tree->watch};
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

void ml_yaml_tree_fini(struct ml_yaml_tree *tree)
{
    if (tree->texts.ptr) /* it may have been a kubeconfig; only what was written needs wiping */
        explicit_bzero(tree->texts.ptr, tree->texts.len);
    ml_buf_fini(&tree->texts);
    free(tree->nodes);
    *tree = (struct ml_yaml_tree){0};
}
