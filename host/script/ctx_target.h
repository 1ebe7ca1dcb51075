/* L5 script, private. The object that a script wants to write: how ctx_write.c, ctx_apply.c and
 * ctx_children.c check it, complete it and send it. The functions are in ctx_write.c. */
#pragma once

#include "script/ctx.h"

#define OWNER_TEXT_MAX 192 /* bytes of an owner in a message */

/* The slices point into script->outgoing. */
struct write_target {
    const char *call; /* "ctx.create(object)", for messages */
    struct ctx_kind kind;
    struct ml_str metadata;          /* its JSON */
    struct ml_str ns, name, uid, rv; /* uid, rv: empty when the object has none */
    struct ml_str guard_uid;         /* of the object that an apply must find; empty: of any */
    bool guard_absent;               /* an apply must find none */
    bool followed;                   /* a child that cannot have the owner reference */
    char key[CTX_KEY_MAX];
    bool owned; /* the reconciled object becomes its controller */
};

/* The table at stack index 1. Raises, beginning with `call`, for what is no object of a declared
 * kind. `call` lives as long as the target. */
ML_RAISES void ctx_check_object(lua_State *L, const char *call, struct write_target *target);
/* Writes the object with namespace, owner reference and guards into script->body, and notes that
 * the run wants it. */
ML_RAISES void ctx_complete_object(lua_State *L, const struct write_target *target);
/* What was written has to be looked at again whatever somebody changes of it. */
void ctx_note_written(struct ml_run *run, const struct write_target *target);
/* The body of the request is script->body, if it has one. For the caller to yield. */
ML_RAISES void ctx_send_write(lua_State *L, const char *verb, const struct write_target *target,
                              struct ml_client_request request, bool wait_for_cache);
/* A GET of it; for the caller to yield. */
void ctx_send_get(struct ml_run *run, const struct write_target *target);
/* The object exists already. [-0, +2] nil and an error when it should have us as controller and
 * does not; returns how many results it pushed. */
ML_RAISES int ctx_fail_if_foreign(lua_State *L, const struct write_target *target,
                                  const struct ml_owner *controller);

/* "At x", or "nothing". */
const char *ctx_owner_text(const struct ml_owner *owner, char out[OWNER_TEXT_MAX]);

/* A field of a JSON object; empty when there is none. */
struct ml_str ctx_json_field(struct ml_str object, const char *field);
/* The text of a field that is a string without escapes, as names have none; else empty. */
struct ml_str ctx_plain_field(struct ml_str object, const char *field);
/* Counts the owner references in an object's metadata. `out`: the first that is the controller; its
 * kind has ptr NULL when there is none. */
size_t ctx_read_owners(struct ml_str metadata, struct ml_owner *out);

/* The continuation of a write: the object as it was written, or nil and the error. */
ML_RAISES int ctx_write_answered(lua_State *L, int status, lua_KContext context);
ML_RAISES int ctx_delete(lua_State *L);

/* ctx_apply.c */
ML_RAISES int ctx_apply(lua_State *L);
/* apply_child(child, label): applies an object of a list of children. "kept": it is as it has to
 * be. "applied". "leaving": it is being deleted, nothing was sent. "full": it has to be written,
 * and the run has no write left. Or nil and the error; AlreadyExists for an object that the
 * reconciled one does not control. `label` begins messages. */
ML_RAISES int ctx_apply_child(lua_State *L);

/* generate_name.c: if the object at stack index 1 has a generateName and no name, replaces it by a
 * copy with a name that the next try has as well. */
ML_RAISES void ctx_generate_name(lua_State *L, const char *call);
void ctx_forget_generated(struct ml_run *run);

/* ctx_children.c: the objects that a run wants to be there. `key`: as in write_target. */
ML_RAISES void children_note_wanted(lua_State *L, const struct ctx_kind *kind, const char *key);
void children_forget_wanted(struct ml_run *run);
extern const luaL_Reg script_children[]; /* functions of the library's `host` */

/* followed.c: children that the reconciled object cannot own. */
bool followed_is(lua_State *L, const struct write_target *target);
/* Raises when the script cannot have such a child. */
ML_RAISES void followed_check(lua_State *L, const struct write_target *target);
/* The member "annotations" of its metadata, which says whose it is. */
void followed_write_mark(struct ml_json_writer *writer, const struct ml_script *script,
                         const struct ml_object *owner);
bool followed_is_ours(const struct ml_run *run, const struct write_target *target,
                      const struct ml_object *object);
/* As ctx_fail_if_foreign, for such an object in the cache. */
ML_RAISES int followed_fail_if_foreign(lua_State *L, const struct write_target *target,
                                       const struct ml_object *object);
extern const luaL_Reg script_followed[]; /* functions of the library's `host` */
