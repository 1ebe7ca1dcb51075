/* L6 operator. Answers the questions of a person at a running host: moonloop status, top, why and
 * trace (cli/top.c, cli/why.c), who asks as inspect_server.h says. Nothing is changed. The answers
 * have names, times, texts of errors and places in scripts, and no data of objects.
 *
 * - /status: {"leads":true,"ready":true,"checks":["[+]site.lua ok: …"],"controllers":[…]}
 * - /top/ and /top/CONTROLLER: that, and the keys of all controllers, or of one, that are in
 * trouble or active, at most 200, by trouble: {…,"at":TIME,"clock_ms":N,"runs":N,"writes":N,
 *   "keys_in_all":N,"fails_of_host":N,"keys":[{"controller":…,"kind":…,"name":…,"state":…,
 *   "failures":N,"now":…,"runs":N,"at":…,"took_ms":…,"cpu_ms":…,"result":…,"error":…}]}.
 *   `clock_ms` is monotonic; `runs` and `writes` were made since the start, and those of a key are
 *   what the journal has. `state` is fails, slowed, paused, runs, cache (it waits for the cache),
 *   ready or due, in this order; in one state those come first that fail more often, pause or wait
 *   longer, or are due sooner. A key that fails and is not tried again by itself is one of them,
 *   which `failing` of its controller does not count, and `fails_of_host`, of all controllers, does
 * - /why/KIND/NS/NAME and /why/KIND/NAME: {"found":true,"acts":true,"controllers":[…],"runs":[…],
 *   "writes":[…]}; a kind by its name, its resource or its singular, in any case; `acts`: this
 *   replica reconciles the object, as the one that leads or has it in its share
 * - /why/KIND/NS/NAME?FIELD (named as ml_object_diff does): likewise with "field":
 *   {"name":"spec.replicas","found":true,"managers":[{"manager":"kubectl-edit","operation":"Update",
 *   "at":"2026-01-02T15:04:05Z"},{"manager":"moonloop-one",…,"controller":"one","write":{…}}]},
 *   all whose managed fields it is among; `write`: the last one of this controller that is known
 * - /trace/NUMBER: {"next":NUMBER,"more":false,"missed":0,"entries":[{"run":{…}},{"write":{…}}]},
 *   what was done after this entry of the journal; `next` is for the next question, at once if
 *   there is `more`, and so many entries in between have made room already. /trace/: no entries,
 *   and the `next` of now
 *
 * Each has "not_shown":["1 controller is not shown: you may not list sites.example.com"], when
 * something was left out. */
#pragma once

#include "operator/operator.h"

/* Decides what an asker is told. */
struct ml_inspect_asker {
    /* May the asker `verb` ("get", "list") this? `ns` empty: in all namespaces, or of a kind
     * without; `name` empty: all of them. */
    bool (*may)(void *context, const char *verb, const struct ml_kind *kind, struct ml_str ns,
                struct ml_str name);
    void *context;
};

/* An object as the API server has it, with its managedFields, which no cache has. The answer that
 * needs it fills in what is to be read, and is made again when it was. */
struct ml_inspect_read {
    const struct ml_kind *kind; /* interned */
    char *ns, *name;
    bool is_known; /* `object`, or the error */
    struct ml_buf object;
    struct ml_err *err; /* NULL: it was read */
};

#define ML_INSPECT_READS 202 /* the answer waits for view->read */

/* A host as it is now. Borrowed. */
struct ml_inspect_view {
    const struct ml_services *services;
    const struct ml_scripts *scripts;
    bool ready;
    struct ml_str why;                    /* lines, as of `ready` in struct ml_endpoints_opts */
    const struct ml_inspect_asker *asker; /* NULL: is told all */
    struct ml_inspect_read *read;         /* NULL is fine where no field is asked about */
};

/* Fills in `out`, but for `asker` and `read`; `why` keeps its lines. */
typedef void ml_inspect_look(void *context, struct ml_buf *why, struct ml_inspect_view *out);

/* Answers GET `path`, with the query behind it ("": none), both decoded. Returns the HTTP status
 * and appends the body to `out`: of 200 a JSON object; of 400 (no such question), 403 (of `why`:
 * the asker may not get the object), 404 and 502 (the API server does not show the object) a text;
 * of ML_INSPECT_READS nothing that counts. */
int ml_inspect_answer(const struct ml_inspect_view *view, const char *path, const char *query,
                      struct ml_buf *out);
