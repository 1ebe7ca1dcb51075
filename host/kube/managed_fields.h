/* L3 kube. metadata.managedFields: which manager has set which fields of an object. A manager that
 * updates and one that applies are two owners, also under one name. So what a controller set by
 * create or a patch stays for ever once it applies, unless both are made one (client-go,
 * util/csaupgrade, does the same for kubectl). */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* The managers of one controller. All lists end with NULL; NULL is an empty one. */
struct ml_managers {
    const char *name;           /* under which it applies */
    const char *const *updates; /* managers whose entries of updates become part of that */
    const char *const *applies; /* managers whose entries of applies do: names that it had */
};

/* Has `metadata` (of JSON) an entry of `name` or one of `applies`, outside of subresources? */
bool ml_managers_have(const struct ml_managers *managers, struct ml_str metadata);

/* Appends the list of entries in which the entry that applies under `name` has the fields of the
 * others as well, and these are left out. False, with nothing appended: there is nothing to join,
 * or the list is broken. Entries of subresources stay as they are. */
bool ml_managers_join(const struct ml_managers *managers, struct ml_str metadata,
                      struct ml_buf *out);

/* Does an entry of the list (JSON) have the field, named as ml_object_diff does: "spec.replicas",
 * "metadata.annotations[example.com/at]"? An element of a list is named by one of its keys, or its
 * value: "spec.containers[main].image". */
bool ml_managed_entry_has(struct ml_str entry, struct ml_str field);
