/* L5 script, private. The object that a script wants to write: how it is checked, completed and
 * sent (ctx_target.c), and whether it may be written when it exists (ownership.c). */
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
    struct ml_str guard_rv;          /* its version; empty: any */
    bool guard_absent;               /* an apply must find none */
    bool adopt;                      /* an object that nobody controls is taken over */
    bool tracked;                    /* a child that cannot have the owner reference */
    char key[CTX_KEY_MAX];
    bool owned;      /* the reconciled object becomes its controller */
    const char *why; /* of a delete: for its trace; lives until the write is sent */
};

/* ---- ctx_target.c ---- */

/* The table at stack index 1. Raises, beginning with `call`, for what is no object of a declared
 * kind. `call` lives as long as the target. */
ML_RAISES void ctx_check_object(lua_State *L, const char *call, struct write_target *target);
/* Writes `json` with `patch` merged over it into script->body. */
ML_RAISES void ctx_merge_into_body(lua_State *L, const char *call, const struct ml_buf *json,
                                   const struct ml_buf *patch);
/* Writes the object with namespace, owner reference and guards into script->body, and notes that
 * the run wants it. */
ML_RAISES void ctx_complete_object(lua_State *L, const struct write_target *target);
/* Any later change of the object that was written wakes the key. */
void ctx_note_written(struct ml_run *run, const struct write_target *target);
/* The body of the request is script->body, if it has one. For the caller to yield. */
ML_RAISES void ctx_send_write(lua_State *L, const char *verb, const struct write_target *target,
                              struct ml_client_request request, bool wait_for_cache);
/* A GET of it; for the caller to yield. */
void ctx_send_get(struct ml_run *run, const struct write_target *target);
/* Writes the member ownerReferences: those of `metadata`, then ours. */
void ctx_write_references(struct ml_json_writer *writer, const struct ml_script *script,
                          const struct ml_object *owner, struct ml_str metadata);
/* Reads the options of ctx.ensure and ctx.apply, a table at stack index 2 or nothing. */
ML_RAISES void ctx_read_write_options(lua_State *L, struct write_target *target);

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

/* The objects that a run wants to be there. `key`: as in write_target. */
bool children_is_wanted(const struct ml_run *run, size_t kind, struct ml_str key);
/* Is the object in this JSON a Secret of ctx.once? */
bool ctx_is_once(const struct ml_gvk *gvk, struct ml_str json);
/* It is wanted as ctx.ensure or ctx.create makes it: no apply of this run removes what these set.
 */
ML_RAISES void children_note_made(lua_State *L, const struct ctx_kind *kind, const char *key);
bool children_is_made(const struct ml_run *run, const struct ctx_kind *kind, const char *key);

/* Is it a child that the reconciled object cannot own? */
bool ctx_is_tracked(lua_State *L, const struct write_target *target);

/* ---- exact.c ---- */

/* [-0, +0 or +1] ctx_children.c: the paths of the maps of the object at `index` that are exactly
 * what the script says, a sorted list of texts. False: there are none, and nothing was pushed. */
ML_RAISES bool children_push_exact(lua_State *L, int index);
/* run->body is the answer to an apply of the object at index 1. If it has keys in these maps that
 * the script does not give, writes a merge patch that removes them into script->body. */
ML_RAISES bool exact_make_patch(lua_State *L, const struct write_target *target);

/* ---- ownership.c ---- */

/* May an object that exists be written? */
enum claim {
    CLAIM_WRITE,      /* yes; for an owned kind, `guard_uid` is set */
    CLAIM_ADOPT,      /* yes, and the write makes it ours; `guard_rv` is set, too */
    CLAIM_ASK_SERVER, /* send a GET, and ask ctx_claim_answer */
    CLAIM_REFUSED,    /* no; nil and the error are pushed */
};
/* [-0, +0 or +2] Of the cached object. */
ML_RAISES enum claim ctx_claim_cached(lua_State *L, struct write_target *target,
                                      const struct ml_object *object);
/* [-0, +0 or +2] Of the answer to a GET, while run->body lives. Never CLAIM_ASK_SERVER. */
ML_RAISES enum claim ctx_claim_answer(lua_State *L, struct write_target *target);
/* Does the reconciled object control it, by owner reference or mark? */
bool ctx_controls(const struct ml_run *run, const struct write_target *target,
                  const struct ml_object *object);
/* Does another one? False also for an object that nobody controls. */
bool ctx_is_anothers(const struct ml_run *run, const struct write_target *target,
                     const struct ml_object *object);
/* After CLAIM_ADOPT: sends a patch that makes the reconciled object the controller and changes
 * nothing else. For the caller to yield; it continues when the cache shows it. */
ML_RAISES void ctx_send_adoption(lua_State *L, const struct write_target *target);
/* run->body is the answer to an apply. If this controller has set fields of the object under other
 * names or by other operations, sends a patch of managedFields that makes them fields of the apply,
 * so that the next one removes those that it does not give. True: for the caller to yield, and then
 * to apply again. */
ML_RAISES bool ctx_send_joined_fields(lua_State *L, const struct write_target *target);
