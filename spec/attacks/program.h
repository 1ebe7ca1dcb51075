/* One hostile program: a Lua file as an operator would be handed it, and what its head says must
 * come of it. The language of the head stands in README.md. */
#pragma once

#include <regex.h>

#include "operator/files.h"

#define PROGRAM_ENTRIES_MAX 8
#define PROGRAM_PARTS_MAX   8

enum program_expect {
    EXPECT_HELD,    /* whatever: the host is unharmed */
    EXPECT_OK,      /* a reconcile succeeds and none fails */
    EXPECT_REFUSED, /* it does not load */
    EXPECT_ERROR,   /* a reconcile or a watch function fails */
    EXPECT_CPU,     /* it is refused or fails for its CPU time */
    EXPECT_MEMORY,  /* likewise for its memory */
};

/* Something in the folder of scripts that is no script. */
struct program_entry {
    char what[16]; /* "fifo", "folder", "dangling", "loop", "zero", "random", "huge", "socket" or
                    * "locked"; make_entry makes each */
    char name[64];
};

struct program {
    char *name; /* "gas/sort_long_strings" */
    enum program_expect expect;
    bool has_pattern;
    regex_t pattern; /* of the message */

    int64_t objects, copies, renames, touches;
    int64_t memory_mib; /* what the process may grow by; 0: the default */
    int64_t share;      /* percent of one processor in all; 0: not asked */
    int64_t for_ns;     /* 0: until what is expected has come */
    bool at_start;      /* it is there when the host begins */
    bool json;          /* the log */
    bool may_secrets, may_others;

    struct program_entry entries[PROGRAM_ENTRIES_MAX];
    size_t entry_count;
    struct ml_script_file parts[PROGRAM_PARTS_MAX]; /* the first is the program itself */
    size_t part_count;
    char *text;
};

/* Reads `path`; `name` is what it is called. Ends the process at a line of the head that it does
 * not understand, and says where: else a program that checks nothing would pass. */
void program_read(struct program *program, const char *path, const char *name);
void program_free(struct program *program);

/* The text of a part, with each @N@ as `number`, and what stands in @x1000{ … }@ a thousand times,
 * in it each @I@ as 1, 2, …; the caller frees it. */
char *program_text(struct ml_str text, int64_t number);
