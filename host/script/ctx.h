/* L5 script, private. Shared by the ctx functions. A binding has three steps: check the arguments
 * (may raise, owns nothing), work (run.c; no Lua), push the result. A binding that has to wait
 * yields between the last two. */
#pragma once

#include "script/reads.h"

/* A declared kind of the script, with its binding. */
struct ctx_kind {
    size_t index; /* in the declaration */
    enum ml_script_use use;
    const struct ml_selection *selection; /* the part of it that the informer has */
    const struct ml_kind *kind;
    struct ml_informer *informer; /* NULL: by request */
};

/* The `err` of a script: a userdata with the fields kind, code and message, which prints and
 * concatenates as its text. */
struct script_failure {
    int kind;
    int http;
    size_t message_at; /* the message is the end of the text, from here */
    char text[];       /* "create Pod default/x: Forbidden: …" */
};

/* ctx.c */
ML_RAISES int script_open_ctx(lua_State *L);                             /* [-0, +1] */
const struct script_failure *script_to_failure(lua_State *L, int index); /* or NULL */
/* Raises when the script did not declare the kind. */
ML_RAISES struct ctx_kind ctx_kind_of(lua_State *L, const struct ml_gvk *gvk);
/* `given`, checked, or when it is empty the namespace of the object at hand; empty for what is
 * cluster-scoped. */
ML_RAISES struct ml_str ctx_namespace(lua_State *L, const char *call, const struct ml_kind *kind,
                                      struct ml_str given);
ML_RAISES void ctx_count_read(lua_State *L);
ML_RAISES int ctx_event(lua_State *L);
/* The run, when this call may wait. */
ML_RAISES struct ml_run *ctx_may_wait(lua_State *L, const char *call);
/* [-0, +2] nil and the error, remembered for the message of a later one. Returns 2. */
ML_RAISES int ctx_fail(lua_State *L, const struct ml_err *err);
/* The continuation of most calls: the object that the server answered with, or nil and the error.
 */
ML_RAISES int ctx_answered(lua_State *L, int status, lua_KContext context);
/* True: the caller has to yield, as the caches do not show yet what this run wrote of the kind. */
ML_RAISES bool ctx_must_wait(lua_State *L, const char *call, const struct ctx_kind *kind);
#define CTX_KEY_MAX (2 * 256)
/* "namespace/name", or "name", terminated; both are valid names. */
void ctx_write_key(struct ml_str ns, struct ml_str name, char out[CTX_KEY_MAX]);
/* What the run is about to do, for messages: "get Pod default/x". `run` NULL is fine. */
void ctx_note_request(struct ml_run *run, const char *verb, const struct ctx_kind *kind,
                      const char *key);
/* The cached object, borrowed, or NULL: also of a kind that is not watched. */
struct ml_object *ctx_cached(const struct ctx_kind *kind, const char *key);

extern const luaL_Reg script_ctx_read[]; /* ctx_read.c */
/* ctx.get for the library: with a namespace, and from the server also of a watched kind. */
ML_RAISES int ctx_get_live(lua_State *L);
extern const luaL_Reg script_ctx_write[];          /* ctx_write.c */
void ctx_forget_applied(struct ml_script *script); /* what ctx.apply need not send again */

/* refusal.c, for the write in run->what. */
/* As ctx_fail, and a log line, whether the script looks at the error or not. */
ML_RAISES int ctx_refuse_write(lua_State *L, const struct ml_err *err);
void ctx_accept_write(struct ml_run *run); /* the next time that it is refused is a new one */

ML_RAISES int ctx_metric(lua_State *L); /* metric.c */
ML_RAISES int ctx_http(lua_State *L);   /* http.c */
/* [-0, +0] once.c: adds ctx.once to the table on top. */
ML_RAISES void script_add_once(lua_State *L);

/* secret.c */
bool ctx_is_secret(const struct ml_gvk *gvk);
/* Appends the Secret with its stringData encoded into its data, as the API server keeps it: what an
 * apply sets there it can remove again. False, with nothing appended: there is nothing to encode,
 * or the server has to refuse it. */
bool secret_encode_strings(struct ml_str secret, struct ml_buf *out);
/* Replaces the message of `err`, which a write of this Secret (JSON) came to, if it has a part of
 * a value: six bytes of it, or all of a shorter one, in base64 or as it is. */
void secret_redact(struct ml_str secret, struct ml_err *err);

/* run.c: the work. Each starts the one operation that the run then waits for. */
void run_read(struct ml_run *run, const struct ml_client_request *request);
/* `wait_for_cache`: the run continues when the informer of `write`, if any, shows the write. */
void run_write(struct ml_run *run, const struct ml_write *write, bool wait_for_cache);
/* Ends the run with run->err, which the script has not raised. */
void run_fail(struct ml_run *run, enum ml_limit_hit limit);

/* finalizer.c: the finalizer, which an object has to carry before anything is written for it. */
/* Must it be added first? */
bool run_lacks_finalizer(struct ml_run *run);
/* Bytes that the write takes meanwhile: the caller charges the script for them. */
size_t run_held_bytes(const struct ml_write *write);
/* Adds it; the run then continues. For what is written elsewhere than to the API server. */
void run_add_finalizer(struct ml_run *run);
/* As run_write, of which nothing is sent before the finalizer is added. */
void run_write_later(struct ml_run *run, const struct ml_write *write, bool wait_for_cache);
void run_drop_held(struct ml_run *run);

/* run.c again. */
/* The operation that it waited for has ended well, without an answer. */
void run_continue(struct ml_run *run);
/* `budget` and `may_send` are the run's. */
void run_http(struct ml_run *run, const struct ml_outbound_request *request, bool writes);
/* Waits until `informer` shows all that the run wrote of its kind. It must not show it yet. */
void run_wait_for_cache(struct ml_run *run, const struct ml_informer *informer);
/* Waits until no object is pending in the script's indexes. */
void run_wait_for_index(struct ml_run *run);
