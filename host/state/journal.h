/* L4 state. The journal: what the runs of this process did of late, for a person who asks
 * (operator/inspect.h). A ring of entries in one block of memory; the oldest make room. It is
 * always on, and has names, texts of errors and places in scripts, but no data of objects. */
#pragma once

#include "base/str.h"

struct ml_journal;

#define ML_JOURNAL_BYTES                                                                           \
    ((size_t)1024 * 1024)       /* 4000 to 8000 entries; the kernel gives the                      \
                                   memory as they come */
#define ML_JOURNAL_TEXT_MAX 512 /* bytes of a text; a longer one is cut */

enum ml_journal_what {
    ML_JOURNAL_RUN,   /* it has ended; its writes come before it */
    ML_JOURNAL_WRITE, /* a write that was answered, or whose answer is lost */
};

/* Instants are of the wall clock, in ns. */
struct ml_journal_entry {
    uint64_t number; /* 1, 2, …; ml_journal_next sets it */
    enum ml_journal_what what;
    int64_t at_ns; /* when the run began, or the write was answered */
    /* The run, or the one that wrote: its controller, and the key that it was for. */
    struct ml_str controller, key;
    struct ml_str error; /* why it failed; empty: it did not */

    /* Of a run: */
    struct ml_str revision;
    struct ml_str cause;  /* "Pod default/a: status.phase", "start"; empty: not known */
    struct ml_str result; /* "success", "requeue_after", "error", … */
    int64_t waited_ns;    /* since the cause; -1: not known */
    int64_t took_ns;      /* waits for the API server included */
    int64_t cpu_ns;       /* of the script */
    size_t writes;        /* that it asked for */

    /* Of a write: */
    struct ml_str verb;  /* "create", "apply", "patch", "delete" */
    struct ml_str kind;  /* "Pod" */
    struct ml_str name;  /* "default/a" */
    struct ml_str place; /* "site.lua:88", "no longer returned by site.lua:88" */
};

struct ml_journal *ml_journal_new(size_t bytes); /* at least 16 KiB */
void ml_journal_free(struct ml_journal *journal);

/* Copies the entry. `journal` NULL, where nobody asks, is fine. */
void ml_journal_add(struct ml_journal *journal, const struct ml_journal_entry *entry);

/* How many there ever were: the number of the newest. Of NULL 0. */
uint64_t ml_journal_added(const struct ml_journal *journal);
/* How many of these were runs; the others were writes. Of NULL 0. */
uint64_t ml_journal_runs(const struct ml_journal *journal);

struct ml_journal_cursor {
    size_t at, count;
};

/* Steps from the oldest entry to the newest; start with zeros. The texts of `out` are the
 * journal's, until the next entry is added. False at the end. */
bool ml_journal_next(const struct ml_journal *journal, struct ml_journal_cursor *cursor,
                     struct ml_journal_entry *out);
