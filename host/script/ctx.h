/* L5 script, private. Shared by the ctx functions. A binding has three steps: check the arguments
 * (may raise, owns nothing), work (run.c; no Lua), push the result. A binding that has to wait
 * yields between the last two. */
#pragma once

#include "script/environment.h"
#include "script/objects.h"
#include "script/reads.h"
#include "script/run.h"

/* A declared kind of the script, with its binding. */
struct ctx_kind {
    size_t index; /* in the declaration */
    enum ml_script_use use;
    const struct ml_selection *selection; /* the part of it that the informer has */
    const struct ml_kind *kind;
    struct ml_informer *informer; /* NULL: by request */
};

/* ---- ctx.c ---- */

ML_RAISES void ctx_open_failures(lua_State *L); /* the metatable of script_failure */
/* Raises when the script did not declare the kind. */
ML_RAISES struct ctx_kind ctx_kind_of(lua_State *L, const struct ml_gvk *gvk);
/* `given`, checked, or when it is empty the namespace of the object at hand; empty for what is
 * cluster-scoped. */
ML_RAISES struct ml_str ctx_namespace(lua_State *L, const char *call, const struct ml_kind *kind,
                                      struct ml_str given);
ML_RAISES void ctx_count_read(lua_State *L);
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
/* Sets the request that the run is about to make, for messages: "get Pod default/x". `run` NULL is
 * fine. */
void ctx_note_request(struct ml_run *run, const char *verb, const struct ctx_kind *kind,
                      const char *key);
/* The cached object, borrowed, or NULL: also of a kind that is not watched. */
struct ml_object *ctx_cached(const struct ctx_kind *kind, const char *key);

/* As ctx_fail, for the write in run->what; logs it, too, as the script may drop the error. */
ML_RAISES int ctx_refuse_write(lua_State *L, const struct ml_err *err);
void ctx_accept_write(struct ml_run *run); /* the next time that it is refused is a new one */

/* ---- the functions of ctx ---- */

extern const luaL_Reg script_ctx[]; /* of ctx.c */
extern const luaL_Reg script_ctx_read[];
extern const luaL_Reg script_ctx_write[];
ML_RAISES int ctx_metric(lua_State *L);
ML_RAISES int ctx_http(lua_State *L);
/* [-0, +0] once.c: adds ctx.once to the table on top. */
ML_RAISES void script_add_once(lua_State *L);

/* ---- functions of the library's table of primitives ---- */

/* ctx.get for ctx.once: with a namespace, and from the server also of a watched kind. */
ML_RAISES int ctx_get_live(lua_State *L);
/* adopt(secret) → the Secret as it was read, if nobody controls it and this controller made it,
 * with the reconciled object as its controller; or nil and the error. Also of a kind in uses. */
ML_RAISES int ctx_adopt(lua_State *L);
ML_RAISES int ctx_event(lua_State *L);
extern const luaL_Reg script_children[];     /* what moonloop/children.lua calls, but for these: */
extern const luaL_Reg script_child_writes[]; /* of ctx_write.c */
