/* Allocation that aborts when memory runs out, and assertions that fail. */
#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

ML_NORETURN static void out_of_memory(size_t size)
{
    fprintf(stderr, "moonloop: out of memory (asked for %zu bytes)\n", size);
    abort();
}

void ml_assert_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "moonloop: bug: %s:%d: %s\n", file, line, condition);
    abort();
}

void *ml_alloc(size_t size)
{
    void *ptr = malloc(size ? size : 1);
    if (!ptr)
        out_of_memory(size);
    return ptr;
}

void *ml_zalloc(size_t size)
{
    void *ptr = calloc(1, size ? size : 1);
    if (!ptr)
        out_of_memory(size);
    return ptr;
}

void *ml_realloc(void *ptr, size_t size)
{
    void *grown = realloc(ptr, size ? size : 1);
    if (!grown)
        out_of_memory(size);
    return grown;
}

char *ml_strndup(const char *text, size_t len)
{
    char *copy = ml_alloc(len + 1);
    if (len)
        memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

char *ml_strdup(const char *text)
{
    return text ? ml_strndup(text, strlen(text)) : NULL;
}

char *ml_asprintf(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = NULL;
    int len = vasprintf(&text, format, args);
    va_end(args);
    if (len < 0)
        out_of_memory(0);
    return text;
}

void ml_close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}
