/* L0 base. The ground of all other files: attributes, scoped cleanup, allocation that does not
 * fail, assertions that stay on. Thread-agnostic.
 *
 * Allocation aborts when memory runs out: the host could do nothing useful then. Data that a peer
 * can make grow goes into an ml_buf (with a maximum); data of a script counts in its budget. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ML_NODISCARD    __attribute__((warn_unused_result))
#define ML_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define ML_NORETURN     __attribute__((noreturn))
#define ML_UNUSED       __attribute__((unused))
#define ML_LIKELY(x)    __builtin_expect(!!(x), 1)
#define ML_UNLIKELY(x)  __builtin_expect(!!(x), 0)

/* Is this a build with the address sanitizer? */
#if defined(__SANITIZE_ADDRESS__)
#define ML_SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ML_SANITIZED true
#endif
#endif
#ifndef ML_SANITIZED
#define ML_SANITIZED false
#endif

#define ML_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ML_MIN(a, b)    ((a) < (b) ? (a) : (b))
#define ML_MAX(a, b)    ((a) > (b) ? (a) : (b))

#define ML_NS_PER_US INT64_C(1000)
#define ML_NS_PER_MS INT64_C(1000000)
#define ML_NS_PER_S  INT64_C(1000000000)

/* The struct that holds `member` at `ptr`. */
#define ml_container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* Runs `fini` on the variable when it leaves scope. Never use ML_AUTO in a frame that a Lua
 * error can cross: longjmp skips cleanup handlers. */
#define ML_AUTO(fini) __attribute__((cleanup(fini)))
#define ML_AUTO_FREE  __attribute__((cleanup(ml_free_ptr)))

/* Hands a pointer over: the variable is NULL afterwards. */
#define ml_take(pp)                                                                                \
    ({                                                                                             \
        __typeof__(*(pp)) ml_taken = *(pp);                                                        \
        *(pp) = NULL;                                                                              \
        ml_taken;                                                                                  \
    })

/* For our own mistakes only, never for input. Stays on in release builds. */
#define ml_assert(condition)                                                                       \
    (ML_LIKELY(condition) ? (void)0 : ml_assert_failed(#condition, __FILE__, __LINE__))
#define ML_UNREACHABLE() ml_assert_failed("unreachable", __FILE__, __LINE__)

ML_NORETURN void ml_assert_failed(const char *condition, const char *file, int line);

/* malloc, calloc, realloc, strdup, strndup that abort instead of returning NULL.
 * The caller owns the result and releases it with free(). */
void *ml_alloc(size_t size);
void *ml_zalloc(size_t size);
void *ml_realloc(void *ptr, size_t size);
char *ml_strdup(const char *text);              /* NULL gives NULL */
char *ml_strndup(const char *text, size_t len); /* always terminated */
char *ml_asprintf(const char *format, ...) ML_PRINTF(1, 2);

#define ml_new(type) ((type *)ml_zalloc(sizeof(type)))

/* Closes the descriptor unless it is -1, and leaves -1 there. Also for ML_AUTO. */
void ml_close_fd(int *fd);

/* An array of items of `size` bytes with room for one behind `count`: it doubles when it is full.
 * An empty one is NULL with capacity 0. */
static inline void *ml_grow(void *items, size_t *capacity, size_t count, size_t size)
{
    if (ML_LIKELY(count < *capacity))
        return items;
    *capacity = *capacity ? *capacity * 2 : ML_MAX(512 / size, (size_t)8);
    return ml_realloc(items, *capacity * size);
}

/* For ML_AUTO_FREE: frees what the variable points at. */
static inline void ml_free_ptr(void *pp)
{
    free(*(void **)pp);
}
