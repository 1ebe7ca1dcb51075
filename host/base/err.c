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
    char inner[ML_ERR_MESSAGE_MAX];
    va_list args;
    memcpy(inner, err->message, sizeof inner);
    va_start(args, format);
    int used = vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    if (used >= 0 && (size_t)used < sizeof err->message)
        snprintf(err->message + used, sizeof err->message - (size_t)used, ": %s", inner);
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
