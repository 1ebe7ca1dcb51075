/* L5 script, private. Records what a run reads from the cache: a tree of the objects, lists and
 * fields it touched. At its end script_reads_pack makes a read set of it
 * (state/read_set.h), which the operator asks whether a later change can matter to the key.
 *
 * Each reads_* function may be called with `reads` NULL (no recorder: loading, when, map) and with
 * node 0 (not recorded), and returns 0 then. None raises or enters Lua. After too many reads, or
 * reads_give_up, all of them do nothing: every change wakes the key.
 *
 * Names that a run looks for are noted all the same: a new or deleted object calls the key.
 *
 * A recorder ends with its run, but the script may keep a table of the run. So code that holds a
 * node for longer than one call also keeps the number of its recorder, and gets the recorder with
 * script_reads_of. */
#pragma once

#include "script/internal.h"
#include "state/read_set.h"

struct script_reads;

/* `script` is charged for its memory; both outlive it. `own`: the reconciled object. */
struct script_reads *script_reads_new(struct ml_script *script, const struct ml_object *own);
/* For a function that is called with many objects: each is its SELF, and the reads of all are
 * recorded together. It is never packed. */
struct script_reads *script_reads_new_of_any(struct ml_script *script);
void script_reads_free(struct script_reads *reads); /* NULL is fine */
/* Its number, never 0 and never used again; 0 for NULL. */
uint64_t script_reads_number(const struct script_reads *reads);
/* The recorder of the run, or of the function of an index, whose code runs on L; NULL: none. */
struct script_reads *script_reads_now(lua_State *L);
/* The same when it has that number. Otherwise NULL, and the recorder of the current run, if any,
 * gives up: the run read a table that an earlier run, or the loading, kept. */
struct script_reads *script_reads_of(lua_State *L, uint64_t number);

read_node reads_self(struct script_reads *reads); /* the reconciled object */

/* ctx.get, ensure and writes: its existence and its uid are read, also when it is absent. `kind`:
 * the index in the declaration. `seen`: what the cache has of it now; NULL: nothing. */
read_node reads_object(struct script_reads *reads, size_t kind, struct ml_str key,
                       const struct ml_object *seen);
/* Its controller is read too: is it ours? */
void reads_owner(struct script_reads *reads, read_node object);
/* ctx.list: the set of objects in the namespace (empty: in all) is read. One node for the fields of
 * all members; a filter by labels reads those labels of them. `owned`: only those that the
 * reconciled object controls. */
read_node reads_list(struct script_reads *reads, size_t kind, struct ml_str ns, bool owned);

/* The field was touched, or asked for and absent: its value if it is a scalar, its presence and
 * type if it is a table. */
read_node reads_field(struct script_reads *reads, read_node parent, struct ml_str name);
/* Any element of an array: its length and the scalars in it are read. One node for all elements
 * that are tables. */
read_node reads_element(struct script_reads *reads, read_node parent);
/* next, pairs, #, table.*: all names, their order and the scalars of this level; a table below
 * counts by its presence and type only. */
void reads_keys(struct script_reads *reads, read_node node);
/* The whole subtree: encoded, returned, compared, written. */
void reads_whole(struct script_reads *reads, read_node node);
/* The status that the run returned will be compared with the object's own and written over it. */
void reads_returns_status(struct script_reads *reads);

/* The fields that `from` has recorded of its SELF are read of `node`, too; everything, if it gave
 * up. */
void reads_copy_self(struct script_reads *reads, read_node node, const struct script_reads *from);

/* The result may depend on something else: every change wakes the key. `because` is static. */
void reads_give_up(struct script_reads *reads, const char *because);
/* Why it gave up; NULL: it did not. */
const char *script_reads_gave_up(const struct script_reads *reads);

/* The read set of the run, for the caller to unref. NULL: it gave up, or would be too large. */
struct ml_read_set *script_reads_pack(struct script_reads *reads);
/* The names that the run looked for, for the caller to own; also of a run that gave up. */
struct ml_read_names script_reads_take_names(struct script_reads *reads);
/* The versions that the run saw, for ml_result. */
const struct ml_read_versions *script_reads_versions(const struct script_reads *reads);
