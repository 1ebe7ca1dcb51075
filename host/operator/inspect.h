/* L6 operator. Answers the questions of a person at a running host: moonloop status, why and trace
 * (cli/why.c). It listens on a local socket, and answers processes of the same user and of root on
 * the same machine, or in the same pod; others ask at a port (inspect_reviews.h). Only GET; nothing
 * is changed. The answers have names, times, texts of errors and places in scripts, and no data of
 * objects.
 *
 * - /status: {"leads":true,"ready":true,"checks":["[+]site.lua ok: …"],"controllers":[…]}
 * - /why/KIND/NS/NAME and /why/KIND/NAME: {"found":true,"acts":true,"controllers":[…],"runs":[…],
 *   "writes":[…]}; a kind by its name, its resource or its singular, in any case; `acts`: this
 *   replica reconciles the object, as the one that leads or has it in its share
 * - /trace/NUMBER: {"next":NUMBER,"more":false,"missed":0,"entries":[{"run":{…}},{"write":{…}}]},
 *   what was done after this entry of the journal; `next` is for the next question, at once if
 *   there is `more`, and so many entries in between have made room already. /trace/: no entries,
 *   and the `next` of now
 *
 * Each has "not_shown":["1 controller is not shown: you may not list sites.example.com"], when
 * something was left out. */
#pragma once

#include "operator/operator.h"

#define ML_INSPECT_SOCKET "moonloop-"

/* The name of the socket of a process in this process id namespace, "moonloop-1.4026531836": pods
 * that share a network have names of their own. The caller frees it. */
char *ml_inspect_socket(const char *pid);

/* Decides what an asker is told. */
struct ml_inspect_asker {
    /* May the asker `verb` ("get", "list") this? `ns` empty: in all namespaces, or of a kind
     * without; `name` empty: all of them. */
    bool (*may)(void *context, const char *verb, const struct ml_kind *kind, struct ml_str ns,
                struct ml_str name);
    void *context;
};

/* A host as it is now. Borrowed. */
struct ml_inspect_view {
    const struct ml_services *services;
    const struct ml_scripts *scripts;
    bool ready;
    struct ml_str why;                    /* lines, as of `ready` in struct ml_endpoints_opts */
    const struct ml_inspect_asker *asker; /* NULL: is told all */
};

/* Fills in `out`, but for the asker; `why` keeps its lines. */
typedef void ml_inspect_look(void *context, struct ml_buf *why, struct ml_inspect_view *out);

/* Answers GET `path`, decoded. Returns the HTTP status and appends the body to `out`: of 200 a JSON
 * object; of 400 (no such question), 403 (of `why`: the asker may not get the object) and 404 a
 * text. */
int ml_inspect_answer(const struct ml_inspect_view *view, const char *path, struct ml_buf *out);

struct ml_inspect;

struct ml_inspect_opts {
    struct ml_loop *loop;
    ml_inspect_look *look;
    void *context;
};

/* ML_EIO: another process has the name. */
ML_NODISCARD int ml_inspect_new(const struct ml_inspect_opts *opts, struct ml_inspect **out,
                                struct ml_err *err);
void ml_inspect_free(struct ml_inspect *inspect); /* before the operator; NULL is fine */
