/* L2 net, private to the HTTP client. Gathers an answer's head from the lines that libcurl
 * hands over one at a time, over interim (1xx) answers and up to the blank line. */
#pragma once

#include "net/http_client.h"

struct ml_http_head_parser {
    struct ml_http_head head; /* its slices point into the two texts below */
    char *content_type;
    char *warning;
    bool complete; /* what comes now are trailers, which nobody reads */
};

void ml_http_head_init(struct ml_http_head_parser *parser);
void ml_http_head_fini(struct ml_http_head_parser *parser);

/* Takes a line with or without its line end. True for the one that completes the head. */
bool ml_http_head_line(struct ml_http_head_parser *parser, struct ml_str line);
