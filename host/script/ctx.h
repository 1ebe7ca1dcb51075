/* L5 script, private. What the ctx functions share. A binding is three moves: check the
 * arguments (may raise, owns nothing), work (run.c; no Lua), push what came of it. One that has
 * to wait yields between the last two. */
#pragma once

#include "script/failure.h"

/* A kind that the script declared, as it was bound. */
struct ctx_kind {
    size_t index; /* in the declaration */
    enum ml_script_use use;
    const struct ml_selection *selection; /* what of it the informer has */
    const struct ml_kind *kind;
    struct ml_informer *informer; /* NULL: by request */
};

/* The object that a script wants to write. Slices into script->outgoing. */
struct ctx_target {
    const char *call; /* "ctx.create(object)", for messages */
    struct ctx_kind kind;
    struct ml_str ns, name, uid, rv; /* uid, rv: empty when the object has none */
    bool owned;                      /* gets the reconciled object as its controller */
};

/* ctx.c */
ML_RAISES
int script_open_ctx(lua_State *L); /* [-0, +1] */
/* Raises "ctx.get(Kind, name): why". */
ML_RAISES
int ctx_misuse(lua_State *L, const char *call, const char *why);
/* Raises when the script did not declare the kind. */
ML_RAISES
struct ctx_kind ctx_kind_of(lua_State *L, const struct ml_gvk *gvk);
/* The kind value at `index`. */
ML_RAISES
struct ctx_kind ctx_check_kind(lua_State *L, int index, const char *call);
/* `given`, checked, or when it is empty the namespace of the object at hand; empty for what is
 * cluster-scoped. */
ML_RAISES
struct ml_str ctx_namespace(lua_State *L, const char *call, const struct ml_kind *kind,
                            struct ml_str given);
ML_RAISES
void ctx_count_read(lua_State *L);
ML_RAISES
void ctx_count_write(lua_State *L);
/* The run, when this call may wait. */
ML_RAISES
struct ml_operator *ctx_may_wait(lua_State *L, const char *call);
/* [-0, +2] nil and the error, remembered for the message of a later one. Returns 2. */
ML_RAISES
int ctx_fail(lua_State *L, const struct ml_err *err);
/* Ends the reconcile with an error that no script can catch. For a return statement. */
ML_RAISES
int ctx_abandon(lua_State *L, const struct ml_err *err);
/* True: the caller has to yield, as the caches do not show yet what this run wrote of the kind. */
ML_RAISES
bool ctx_must_wait(lua_State *L, const char *call, const struct ctx_kind *kind);

/* ctx_object.c */
/* Reads the object at 1 into script->outgoing and `target`. */
ML_RAISES
void ctx_check_object(lua_State *L, const char *call, struct ctx_target *target);
/* Completes it into script->body: namespace, owner reference. Raises when it may not be written
 * like that: it cannot have that owner, or what is selected of its kind leaves it out. */
ML_RAISES
void ctx_complete(lua_State *L, const struct ctx_target *target);
/* The uid of the controller owner of an object, or empty. `out_text` gets "ReplicaSet web". */
struct ml_str ctx_controller_of(struct ml_str json, char *out_text, size_t size);
/* A string at a path below `json` that has no escapes, as names have none; else empty. */
__attribute__((sentinel)) struct ml_str ctx_plain(struct ml_str json, const char *first, ...);

/* ctx_read.c */
extern const luaL_Reg script_ctx_read[];
/* "namespace/name" into `out`; the slice. */
struct ml_str ctx_key(struct ml_str ns, struct ml_str name, char out[2 * 256]);
/* What the run is about to do, for messages: "get Pod default/x". NULL is fine. */
void ctx_say(struct ml_operator *run, const char *verb, const struct ctx_kind *kind, struct ml_str ns,
             struct ml_str name);
/* The cached object, borrowed, or NULL: also of a kind that is not watched. */
struct ml_object *ctx_cached(const struct ctx_kind *kind, struct ml_str ns, struct ml_str name);
/* ctx_list.c */
ML_RAISES
int script_ctx_list(lua_State *L);
/* ctx_apply.c */
ML_RAISES
int script_ctx_apply(lua_State *L);
void ctx_forget_applied(struct ml_script *script);
/* ctx_write.c */
extern const luaL_Reg script_ctx_write[];
/* Sends the write; `request` has its verb and what is special to it. */
void ctx_send(struct ml_operator *run, const struct ctx_target *target, struct ml_client_request request,
              bool wait_for_cache);
/* What most writes end with, a continuation: the object as the server has it, or nil and the
 * error. */
ML_RAISES
int ctx_written(lua_State *L, int status, lua_KContext context);

/* run.c: the work. Each starts the one thing that the run then waits for. */
void run_read(struct ml_operator *run, const struct ml_client_request *request);
void run_write(struct ml_operator *run, const struct ctx_kind *kind, const struct ml_write *write);
void run_see(struct ml_operator *run, const struct ctx_kind *kind, struct script_wrote *wrote);
bool run_error_is_expected(int kind); /* comes back as nil, err; all others end the run */
