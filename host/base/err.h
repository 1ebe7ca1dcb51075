/* L0 base. An error: a kind for decisions, a message for people, and for answers of a
 * Kubernetes API server their code, reason and Retry-After.
 *
 * A fallible function returns 0 or a negative ML_E… kind, takes `struct ml_err *err` last
 * (never NULL), and leaves its out parameters untouched on failure. Layers below `operator` never
 * log an error; the code that decides what to do about it logs it, once. Holds no memory of its
 * own. */
#pragma once

#include "base/base.h"
#include "base/str.h"

/* Name in C, name that scripts and logs see, worth trying again without a change? */
#define ML_ERR_KINDS(X)                                                                            \
    X(INVALID, "Invalid", false) /* the thing asked about is bad */                                \
    X(NOT_FOUND, "NotFound", false)                                                                \
    X(ALREADY_EXISTS, "AlreadyExists", false)                                                      \
    X(CONFLICT, "Conflict", true)         /* somebody else was faster: read again */               \
    X(GONE, "Gone", true)                 /* resourceVersion too old: list again */                \
    X(UNAUTHORIZED, "Unauthorized", true) /* 401; credentials may be renewed */                    \
    X(FORBIDDEN, "Forbidden", true)       /* 403; rights may be granted later */                   \
    X(TIMEOUT, "Timeout", true)                                                                    \
    X(TOO_MANY, "TooManyRequests", true) /* 429; see retry_after_ms */                             \
    X(UNAVAILABLE, "Unavailable", true)  /* 5xx of a server that may recover */                    \
    X(SERVER, "ServerError", true)       /* any other 5xx */                                       \
    X(NETWORK, "Network", true)          /* no answer: refused, reset, cut, no such host */        \
    X(TLS, "TLS", true)                  /* certificate or handshake refused */                    \
    X(LIMIT, "LimitExceeded", false)     /* one of our own maxima */                               \
    X(UNSUPPORTED, "Unsupported", false)                                                           \
    X(SCRIPT, "ScriptError", true) /* Lua raised, or broke the contract */                         \
    X(CANCELED, "Canceled", false) /* by us; nothing to report */                                  \
    X(IO, "IO", true)              /* files and the operating system */                            \
    X(INTERNAL, "Internal", true)  /* none of the above */

enum ml_err_kind {
    ML_OK = 0,
#define ML_ERR_ENUM(name, text, retriable) ML_E##name##_INDEX,
    ML_ERR_KINDS(ML_ERR_ENUM)
#undef ML_ERR_ENUM
};

/* The negative results: ML_EINVALID, ML_ENOT_FOUND, … */
enum {
#define ML_ERR_NEGATIVE(name, text, retriable) ML_E##name = -(int)ML_E##name##_INDEX,
    ML_ERR_KINDS(ML_ERR_NEGATIVE)
#undef ML_ERR_NEGATIVE
};

/* An API server's message about a schema takes kilobytes. A place that shows less cuts it there. */
#define ML_ERR_MESSAGE_MAX 4096
#define ML_ERR_REASON_MAX  48

struct ml_err {
    int kind;                       /* 0 or ML_E… */
    int http;                       /* status code, 0 when there was no answer */
    int64_t retry_after_ms;         /* the wish of the server, or -1 */
    char reason[ML_ERR_REASON_MAX]; /* Status.reason, or "" */
    char
        message[ML_ERR_MESSAGE_MAX]; /* one line, no trailing full stop; cut at a character's end */
};

#define ML_ERR_INIT ((struct ml_err){.retry_after_ms = -1})

/* Fills `err` anew and returns `kind`, so that it can stand in a return statement. */
int ml_err_set(struct ml_err *err, int kind, const char *format, ...) ML_PRINTF(3, 4);

/* A copy that the caller frees; NULL gives NULL. For what is kept: an error takes 4 KiB. */
struct ml_err *ml_err_dup(const struct ml_err *err);

/* Puts "context: " before the message, keeps the rest, returns err->kind. */
int ml_err_wrap(struct ml_err *err, const char *format, ...) ML_PRINTF(2, 3);

const char *ml_err_name(int kind); /* "NotFound"; "OK" for 0 */
bool ml_err_retriable(int kind);
