/* Called by `moonloop manifests`. */
#include "cli/yaml_print.h"

#include "codec/json.h"

#include <strings.h>

#define INDENT_MAX 256

static const char *const words[] = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"};

/* May it stand without quotes, and be read as this string? */
static bool is_plain(struct ml_str text)
{
    if (text.len == 0 || strspn(text.ptr, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789./_-") < text.len)
        return false;
    bool begins = (text.ptr[0] >= 'a' && text.ptr[0] <= 'z') ||
                  (text.ptr[0] >= 'A' && text.ptr[0] <= 'Z');
    for (size_t i = 0; i < ML_COUNT(words); i++)
        if (text.len == strlen(words[i]) && strncasecmp(text.ptr, words[i], text.len) == 0)
            return false;
    return begins;
}

static void print_text(FILE *out, struct ml_str text)
{
    ML_AUTO(ml_buf_fini) struct ml_buf quoted = ML_BUF_INIT;
    ML_AUTO_FREE char *copy = ml_str_dup(text); /* terminated, for strspn */
    struct ml_json_writer writer;
    if (is_plain((struct ml_str){copy, text.len})) {
        fputs(copy, out);
        return;
    }
    ml_json_writer_init(&writer, &quoted);
    ml_json_string(&writer, text);
    fputs(ml_buf_cstr(&quoted), out);
}

static void print_value(FILE *out, struct ml_json_reader *reader, int indent, bool in_list);

static void print_members(FILE *out, struct ml_json_reader *reader, int indent, bool in_list)
{
    bool first = true;
    while (ml_json_next(reader) == ML_JSON_KEY) {
        if (!first || !in_list)
            fprintf(out, "\n%*s", indent, "");
        first = false;
        print_text(out, reader->text);
        fputc(':', out);
        ml_json_next(reader);
        print_value(out, reader, indent + 2, false);
    }
    if (first)
        fputs(in_list ? "{}" : " {}", out);
}

/* Elements stand below their key, not indented further, as kubectl prints them. */
static void print_elements(FILE *out, struct ml_json_reader *reader, int indent)
{
    bool first = true;
    while (ml_json_next(reader) != ML_JSON_ARRAY_END && reader->token != ML_JSON_ERROR) {
        fprintf(out, "\n%*s- ", ML_MAX(indent - 2, 0), "");
        print_value(out, reader, indent, true);
        first = false;
    }
    if (first)
        fputs(" []", out);
}

/* Behind "key:" or "- ". */
static void print_value(FILE *out, struct ml_json_reader *reader, int indent, bool in_list)
{
    indent = ML_MIN(indent, INDENT_MAX);
    if (reader->token == ML_JSON_OBJECT) {
        print_members(out, reader, indent, in_list);
        return;
    }
    if (reader->token == ML_JSON_ARRAY) {
        print_elements(out, reader, indent);
        return;
    }
    fputs(in_list ? "" : " ", out);
    if (reader->token == ML_JSON_STRING)
        print_text(out, reader->text);
    else if (reader->token == ML_JSON_TRUE || reader->token == ML_JSON_FALSE)
        fputs(reader->token == ML_JSON_TRUE ? "true" : "false", out);
    else if (reader->token == ML_JSON_NULL)
        fputs("null", out);
    else
        fprintf(out, ML_STR_FMT, ML_STR_ARG(reader->text));
}

void ml_yaml_print(FILE *out, struct ml_str json)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, json, 0);
    fputs("---", out);
    ml_json_next(&reader);
    print_value(out, &reader, 0, false);
    fputc('\n', out);
}
