/* L4 state. Inside of the reflector: what it asks the server for, and how it reads the answer.
 * Private to reflector.c and reflector_request.c. */
#pragma once

#include "codec/json_stream.h"
#include "state/reflector.h"
#include "state/reflector_fsm.h"

/* Appends the path of a LIST or WATCH with its query. `version`: up to which all is known, or NULL;
 * `next`: the continue token of a later page, or NULL. */
void reflector_list_url(const struct ml_reflector_opts *opts, const struct reflector_step *step,
                        const char *version, const char *next, struct ml_buf *url);
void reflector_watch_url(const struct ml_reflector_opts *opts, const struct reflector_step *step,
                         const char *version, int64_t timeout_s, struct ml_buf *url);

/* A list at the most recent version of that object alone. */
void reflector_object_url(const struct ml_reflector_opts *opts, struct ml_object *object,
                          struct ml_buf *url);

/* The Accept field; NULL: plain JSON. */
const char *reflector_accept(const struct ml_reflector_opts *opts, bool list);

/* Makes `out` of what the server sent, a reference for the caller: the cached object when it has
 * not changed, so that a relist needs no second copy of the cache. False: it cannot be read, which
 * was reported; `out` is then the cached object of that key, or NULL. */
bool reflector_read(const struct ml_reflector_opts *opts, struct ml_str raw,
                    struct ml_object **out);

/* One list while it is received, in pages or as a stream: a shadow of the store, which is published
 * only when it is complete. */
struct reflector_list {
    const struct ml_reflector_opts *opts;
    struct ml_set objects; /* a reference each */
    struct ml_json_list *page;
    char *next;    /* continue token of the next page, NULL: none */
    char *version; /* of the pages as a whole, from the first one */
};

void reflector_list_init(struct reflector_list *list, const struct ml_reflector_opts *opts);
void reflector_list_clear(struct reflector_list *list); /* empty, and holds no memory */

/* Takes the object that the server sent. One that cannot be read keeps its cached version. */
void reflector_list_add(struct reflector_list *list, struct ml_str raw);

/* A page: open, feed to `page`, close. After close, `next` tells whether another one follows. */
void reflector_list_open_page(struct reflector_list *list);
ML_NODISCARD int reflector_list_close_page(struct reflector_list *list, struct ml_err *err);
/* Does a complete list show `object` as it is here, and no version older than `version`? */
bool reflector_list_confirms(const struct reflector_list *list, struct ml_object *object,
                             const char *version);
