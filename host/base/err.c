/* Called everywhere. */
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

int ml_err_set(struct ml_err *err, int kind, const char *format, ...)
{
    va_list args;
    *err = ML_ERR_INIT;
    err->kind = kind;
    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return kind;
}

int ml_err_wrap(struct ml_err *err, const char *format, ...)
{
    char context[ML_ERR_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(context, sizeof context - 2, format, args);
    va_end(args);
    strcat(context, ": ");
    /* What does not fit falls off the end: the context is what a reader needs first. */
    size_t used = strlen(context);
    size_t kept = ML_MIN(strlen(err->message), ML_ERR_MESSAGE_MAX - 1 - used);
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
