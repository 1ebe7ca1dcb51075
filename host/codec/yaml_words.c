/* The words of Kubernetes' reader where it prints a value as Go does. Only for messages. */
#include "codec/yaml_internal.h"

#include <stdarg.h>
#include <stdio.h>

#define SHOWN_MAX ((size_t)ML_ERR_MESSAGE_MAX) /* longer than a message can be */

int ml_yaml_fail(struct ml_yaml_fault *fault, int kind, const struct ml_yaml_node *node,
                 const char *format, ...)
{
    char message[ML_ERR_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    fault->line = node->line + (size_t)1;
    fault->named_line = 0;
    return ml_err_set(fault->err, kind, "%s", message);
}

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

static void put_children(struct ml_buf *out, const struct ml_yaml_tree *tree, uint32_t child,
                         bool mapping)
{
    bool is_key = true;
    for (uint32_t i = child; i && out->len < SHOWN_MAX; i = tree->nodes[i].next) {
        if (i != child)
            ml_buf_puts(out, mapping && !is_key ? ":" : ", ");
        ml_yaml_put_go(out, tree, i);
        is_key = !is_key;
    }
}

void ml_yaml_put_go(struct ml_buf *out, const struct ml_yaml_tree *tree, uint32_t place)
{
    const struct ml_yaml_node *node = ml_yaml_named(tree, &tree->nodes[place]);
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
