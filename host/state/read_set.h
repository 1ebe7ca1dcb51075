/* L4 state. What a reconcile read, packed: immutable, shared, a few dozen bytes. The script layer
 * makes it (script/reads.c); the operator keeps the last one of each key, and asks it whether a
 * change of an object can matter to the key.
 *
 * The bytes are a row of roots, each with a tree of fields behind it. Names that begin with the
 * name of the reconciled object have only their rest, so that the keys of a controller mostly
 * share one set.
 *
 *   root    READ_SELF node
 *           READ_OBJECT kind flags name node      flags: ml_read_object_flag
 *           READ_LIST kind flags namespace node   flags: ml_read_list_flag
 *   node    flags [count (name node)…] [node]     flags: ml_read_node_flag; nothing follows WHOLE;
 *                                                 the last node, of ELEMENTS, is for the elements
 *   count   a byte below 255, or 255 and two bytes
 *   name    a byte below 127: that many bytes follow; 127: first two bytes that say how many;
 *           from 128 on: a name that many objects have */
#pragma once

#include "kube/object.h"

#define ML_READ_SET_MAX   1024 /* bytes; what reads more is woken by everything */
#define ML_READ_LISTS_MAX 4    /* kinds of which a run lists what others control */

enum ml_read_root { READ_SELF, READ_OBJECT, READ_LIST };

enum ml_read_object_flag {
    READ_OWN_NAMESPACE = 1, /* of the reconciled object, and not said again */
    READ_OWN_NAME = 2,      /* the name begins with that of the reconciled object */
    READ_OWNER = 4,         /* who controls it was read */
};

enum ml_read_list_flag {
    READ_IN_OWN_NAMESPACE = 1,
    READ_IN_ALL_NAMESPACES = 2,
    READ_OWNED = 4, /* who controls it decides whether it is in the list */
};

enum ml_read_node_flag {
    READ_WHOLE = 1,    /* everything below */
    READ_KEYS = 2,     /* names, order and scalars of this level */
    READ_ELEMENTS = 4, /* of an array: its length, its scalars; then a node for its tables */
    READ_COMPARED = 8, /* of SELF: the host compared the status with what the run returned */
};

struct ml_read_set;

/* Bytes as above, copied, as script/reads.c makes them. The result has one reference. */
struct ml_read_set *ml_read_set_new(struct ml_str bytes);
struct ml_read_set *ml_read_set_ref(struct ml_read_set *set);
void ml_read_set_unref(struct ml_read_set *set); /* NULL is fine */
struct ml_str ml_read_set_bytes(const struct ml_read_set *set);

/* Appends to bytes that are being made. A number is below 65536. */
void ml_read_put_number(struct ml_buf *out, size_t number);
void ml_read_put_name(struct ml_buf *out, struct ml_str name);

/* Which versions of what it read a run saw. A change that the key is not told of (its watch
 * function does not name it, `when` leaves it out) shows in these. */
struct ml_read_versions {
    uint64_t objects; /* sum of ml_read_version of the object itself, and of each object read */
    size_t list_count;
    struct ml_read_list_version {
        size_t kind;
        uint64_t changes; /* ml_informer_changes, when it was listed */
    } lists[ML_READ_LISTS_MAX];
};

/* One object at one version; NULL: that there is none. */
uint64_t ml_read_version(size_t kind, struct ml_str key, const struct ml_object *object);

/* A change that the key is told of. `kind` is an index in the declaration: of several with the same
 * informer the first. */
struct ml_read_change {
    size_t kind;
    const struct ml_object *old, *new;
    struct ml_str own_key; /* of the reconciled object */
    bool self;             /* it is that object's */
    bool own_status;       /* the status that the run returned has come back */
};

/* Can the change make another run bring another result? `out_field`, unless NULL, gets the field
 * that was read and differs, "status.phase", or nothing. */
bool ml_read_set_touched(const struct ml_read_set *set, const struct ml_read_change *change,
                         struct ml_buf *out_field);

/* Steps through the objects that were read by name; start with *cursor 0. `key` is emptied first.
 * False at the end. */
bool ml_read_set_next_object(const struct ml_read_set *set, struct ml_str own_key, size_t *cursor,
                             size_t *out_kind, struct ml_buf *key);
