/* L2 net. One field of a request's or an answer's head, for clients and servers alike. */
#pragma once

#include "base/base.h"

struct ml_http_header {
    const char *name;
    const char *value;
};

/* RFC 9110, 5.6.2: what a method or the name of a field may be. */
static inline bool ml_http_is_token(const char *text)
{
    return *text && text[strspn(text, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                      "ABCDEFGHIJKLMNOPQRSTUVWXYZ")] == '\0';
}
