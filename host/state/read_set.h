/* L4 state. The reads of a reconcile, packed: immutable, shared, a few dozen bytes. The script
 * layer makes a read set (script/reads.c). The operator keeps the last one of each key, to decide
 * whether a change of an object can matter to the key.
 *
 * The bytes are a sequence of roots, each followed by a tree of fields. Of names that begin with
 * the name of the reconciled object only the rest is stored, so that most keys of a controller
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

#define ML_READ_SET_MAX   1024 /* bytes; every change wakes a key that reads more */
#define ML_READ_LISTS_MAX 4    /* kinds that a run lists, with objects that others control */
#define ML_READ_NAMES_MAX 64   /* objects that a run looks for by name; of more kinds count whole */

enum ml_read_root { READ_SELF, READ_OBJECT, READ_LIST };

enum ml_read_object_flag {
    READ_OWN_NAMESPACE = 1, /* that of the reconciled object, not stored again */
    READ_OWN_NAME = 2,      /* the name begins with that of the reconciled object */
    READ_OWNER = 4,         /* its controller was read */
};

enum ml_read_list_flag {
    READ_IN_OWN_NAMESPACE = 1,
    READ_IN_ALL_NAMESPACES = 2,
    READ_OWNED = 4, /* its controller decides whether it is in the list */
};

enum ml_read_node_flag {
    READ_WHOLE = 1,    /* everything below */
    READ_KEYS = 2,     /* names, order and scalars of this level */
    READ_ELEMENTS = 4, /* of an array: its length, its scalars; then a node for its tables */
    READ_COMPARED = 8, /* of SELF: the host compared the status with the returned one */
};

struct ml_kind;
struct ml_read_set;

/* `bytes` in the form above, copied; script/reads.c makes them. The result has one reference. */
struct ml_read_set *ml_read_set_new(struct ml_str bytes);
struct ml_read_set *ml_read_set_ref(struct ml_read_set *set);
void ml_read_set_unref(struct ml_read_set *set); /* NULL is fine */
struct ml_str ml_read_set_bytes(const struct ml_read_set *set);

/* Append to the bytes of a new set. A number is below 65536. */
void ml_read_put_number(struct ml_buf *out, size_t number);
void ml_read_put_name(struct ml_buf *out, struct ml_str name);

/* The versions of the objects that a run read. They also show changes that the key is not notified
 * of, because its watch function does not name it, or `when` leaves them out. */
struct ml_read_versions {
    uint64_t objects; /* sum of ml_read_version of the object itself, and of each object read */
    size_t list_count;
    struct ml_read_list_version {
        size_t kind;
        uint64_t changes; /* ml_informer_changes, when it was listed */
    } lists[ML_READ_LISTS_MAX];
};

/* The objects that a run looked for by name, whether they were there or not; the reconciled object
 * is not among them. Also of a run without a read set. Zeros: none. */
struct ml_read_names {
    struct ml_buf packed;
    size_t count;
    uint64_t whole_kinds; /* bits of kinds; it looked for more of their names than are here */
};

void ml_read_names_fini(struct ml_read_names *names);
/* Adds an object unless it is there. `seen`: what the cache has of it now; NULL: nothing. */
void ml_read_names_add(struct ml_read_names *names, size_t kind, struct ml_str key,
                       const struct ml_object *seen);
/* Steps through them; start with *cursor 0. `out_version` as ml_read_version when it was added; the
 * key is borrowed. False at the end. */
bool ml_read_names_next(const struct ml_read_names *names, size_t *cursor, size_t *out_kind,
                        struct ml_str *out_key, uint64_t *out_version);

/* A number for one object at one version; NULL: it does not exist. */
uint64_t ml_read_version(size_t kind, struct ml_str key, const struct ml_object *object);

/* A change that the key is notified of. `kind` is an index in the declaration: the first one with
 * this informer. */
struct ml_read_change {
    size_t kind;
    const struct ml_object *old, *new;
    struct ml_str own_key; /* of the reconciled object */
    bool self;             /* it is a change of that object */
    bool own_status;       /* it is the echo of the status that the run returned */
};

/* Can the change give another run another result? `out_field`, unless NULL, gets the field
 * that was read and differs, "status.phase", or nothing. */
bool ml_read_set_touched(const struct ml_read_set *set, const struct ml_read_change *change,
                         struct ml_buf *out_field);

/* Appends what was read, each terminated: "spec.replicas", "Pod default/a: status.phase", "list of
 * Pod: status.phase". `kinds` are those that the numbers in the set mean. */
void ml_read_set_describe(const struct ml_read_set *set, struct ml_str own_key,
                          const struct ml_kind *const *kinds, struct ml_buf *out);

/* Steps through the objects that were read by name; start with *cursor 0. `key` is emptied first.
 * False at the end. */
bool ml_read_set_next_object(const struct ml_read_set *set, struct ml_str own_key, size_t *cursor,
                             size_t *out_kind, struct ml_buf *key);
