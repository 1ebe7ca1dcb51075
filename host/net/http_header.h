/* L2 net. One field of a request's or an answer's head, for clients and servers alike. */
#pragma once

struct ml_http_header {
    const char *name;
    const char *value;
};
