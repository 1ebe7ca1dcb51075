/* Fills errors with a kind and a message, and puts a context before the message. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
    const char *name;
    bool retriable;
} kinds[] = {{"OK", false},
#define ML_ERR_ROW(name, text, retriable) {text, retriable},
             ML_ERR_KINDS(ML_ERR_ROW)
#undef ML_ERR_ROW
};

static size_t kind_index(int kind)
{
    ml_assert(kind <= 0 && (size_t)-kind < ML_COUNT(kinds));
    return (size_t)-kind;
}

/* `wanted` bytes did not fit, maybe: ends the text at the end of a character. */
static void end_whole(char *text, size_t size, int wanted)
{
    if (wanted >= (int)size)
        text[ml_str_head((struct ml_str){text, size - 1}, size - 2).len] = '\0';
}

int ml_err_set(struct ml_err *err, int kind, const char *format, ...)
{
    va_list args;
    err->kind = kind;
    err->http = 0;
    err->retry_after_ms = -1;
    memset(err->reason, 0, sizeof err->reason);
    va_start(args, format);
    int wanted = vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    end_whole(err->message, sizeof err->message, wanted);
    return kind;
}

struct ml_err *ml_err_dup(const struct ml_err *err)
{
    if (!err)
        return NULL;
    struct ml_err *copy = ml_alloc(sizeof *copy);
    *copy = *err;
    return copy;
}

int ml_err_wrap(struct ml_err *err, const char *format, ...)
{
    char context[ML_ERR_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    int wanted = vsnprintf(context, sizeof context - 2, format, args);
    va_end(args);
    end_whole(context, sizeof context - 2, wanted);
    strcat(context, ": ");
    /* The end of a long message is cut: a reader needs the context first. */
    size_t used = strlen(context);
    size_t kept = ml_str_head(ml_str_of(err->message), ML_ERR_MESSAGE_MAX - 1 - used).len;
    memmove(err->message + used, err->message, kept);
    memcpy(err->message, context, used);
    err->message[used + kept] = '\0';
    return err->kind;
}

const char *ml_err_name(int kind)
{
    return kinds[kind_index(kind)].name;
}

bool ml_err_retriable(int kind)
{
    return kinds[kind_index(kind)].retriable;
}
