/* L3 kube. Compresses similar small texts with zstd and a dictionary made of the first of them. A
 * store of objects has one dictionary for each kind; object.c packs with it.
 *
 * The dictionary grows while texts still pack badly and there is room, and is trained once it has
 * seen enough of them. Each change makes a new `struct ml_dict_text`; texts that were packed with
 * an older one keep that alive. */
#pragma once

#include "base/buf.h"

/* The dictionary of a kind. Made from the first objects it sees; objects made before and after
 * hold a reference, so it outlives its store. */
struct ml_dict;
struct ml_dict *ml_dict_new(void);
void ml_dict_unref(struct ml_dict *dict); /* NULL is fine */

/* One state of a dictionary, reference-counted: needed to unpack. */
struct ml_dict_text;
void ml_dict_text_unref(struct ml_dict_text *text);

/* Packs `plain`. Returns the packed form, valid until the next call for any dictionary; it is
 * `plain` itself when packing gains nothing. `out_text` gets a reference. */
struct ml_str ml_dict_pack(struct ml_dict *dict, struct ml_str plain,
                           struct ml_dict_text **out_text);

/* The reverse, into exactly `plain_len` bytes at `out`. */
void ml_dict_unpack(const struct ml_dict_text *text, struct ml_str packed, char *out,
                    size_t plain_len);
