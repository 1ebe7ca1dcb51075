/* L4 state. One LIST while it is received: pages are parsed item by item into a shadow of the
 * store, which is published only when it is complete. */
#pragma once

#include "codec/json_stream.h"
#include "state/reflector_opts.h"

struct reflector_list {
    const struct ml_reflector_opts *opts;
    struct ml_json_list *page; /* the page that comes in, NULL between pages */
    struct ml_object **objects;
    size_t count;
    size_t capacity;
    char *next;    /* continue token of the next page, NULL: none */
    char *version; /* of the list as a whole, from its first page */
};

/* Reads an item of a list. Returns the cached object when it has not changed, or when the item
 * cannot be read (which is reported); a reference for the caller. NULL when there is none. */
struct ml_object *reflector_list_read(const struct ml_reflector_opts *opts, struct ml_str raw);

void reflector_list_init(struct reflector_list *list, const struct ml_reflector_opts *opts);
void reflector_list_fini(struct reflector_list *list);

/* Pages: open, feed, close. After close, `next` tells whether another one follows. */
void reflector_list_open_page(struct reflector_list *list);
ML_NODISCARD int reflector_list_feed(struct reflector_list *list, struct ml_str piece,
                                     struct ml_err *err);
ML_NODISCARD int reflector_list_close_page(struct reflector_list *list, struct ml_err *err);
