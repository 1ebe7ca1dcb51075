#include "net/http_head.h"

#include <strings.h>

void ml_http_head_init(struct ml_http_head_parser *parser)
{
    *parser = (struct ml_http_head_parser){.head.retry_after_ms = -1};
}

void ml_http_head_fini(struct ml_http_head_parser *parser)
{
    free(parser->content_type);
    free(parser->warning);
    ml_http_head_init(parser);
}

/* "HTTP/1.1 200 OK", "HTTP/2 200". */
static int parse_status(struct ml_str line)
{
    int64_t status = 0;
    (void)ml_str_cut(&line, ' ');
    if (!ml_str_to_i64(ml_str_cut(&line, ' '), &status) || status > 999)
        return 0;
    return (int)status;
}

/* client-go reads seconds only; the date form counts as absent there and so it does here. */
static int64_t parse_retry_after(struct ml_str value)
{
    uint64_t seconds = 0;
    if (!ml_str_to_u64(value, &seconds))
        return -1;
    return (int64_t)ML_MIN(seconds, (uint64_t)INT64_MAX / 1000) * 1000;
}

/* The text in `299 agent "text"`, without the escapes of its quoted form; NULL when it is no
 * such warning. The caller frees it. */
static char *parse_warning(struct ml_str value)
{
    if (!ml_str_is(ml_str_cut(&value, ' '), "299"))
        return NULL;
    (void)ml_str_cut(&value, ' '); /* the agent; API servers write "-" */
    if (value.len == 0 || value.ptr[0] != '"')
        return NULL;
    char *text = ml_alloc(value.len);
    size_t len = 0;
    for (size_t i = 1; i < value.len && value.ptr[i] != '"'; i++) {
        if (value.ptr[i] == '\\' && i + 1 < value.len)
            i++;
        text[len++] = value.ptr[i];
    }
    text[len] = '\0';
    return text;
}

static bool name_is(struct ml_str name, const char *want)
{
    return name.len == strlen(want) && strncasecmp(name.ptr, want, name.len) == 0;
}

static void take_field(struct ml_http_head_parser *parser, struct ml_str name, struct ml_str value)
{
    struct ml_http_head *head = &parser->head;
    if (name_is(name, "Retry-After")) {
        head->retry_after_ms = parse_retry_after(value);
    } else if (name_is(name, "Content-Type")) {
        free(parser->content_type);
        parser->content_type = ml_str_dup(value);
        head->content_type = ml_str_of(parser->content_type);
    } else if (name_is(name, "Warning") && !parser->warning) {
        parser->warning = parse_warning(value);
        head->warning = ml_str_of(parser->warning);
    }
}

bool ml_http_head_line(struct ml_http_head_parser *parser, struct ml_str line)
{
    if (parser->complete)
        return false;
    line = ml_str_trim(line);
    if (line.len == 0) {
        /* 101 never comes: nothing here asks for an upgrade. */
        parser->complete = parser->head.status >= 200;
        return parser->complete;
    }
    if (ml_str_starts(line, "HTTP/")) {
        ml_http_head_fini(parser);
        parser->head.status = parse_status(line);
        return false;
    }
    struct ml_str value = line;
    struct ml_str name = ml_str_cut(&value, ':');
    take_field(parser, ml_str_trim(name), ml_str_trim(value));
    return false;
}
