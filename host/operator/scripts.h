/* L6 operator. All scripts of a host: gets sets of files from its sources, loads new versions
 * beside the running ones, offers the good ones to their controllers and refuses the others. A
 * missing or broken file never stops a running script. */
#pragma once

#include "operator/controller.h"
#include "operator/guard.h"
#include "operator/history.h"
#include "operator/load.h"
#include "operator/own_tests.h"

struct ml_scripts;

/* ---- a source: where files come from (source.h has two) ---- */

struct ml_source;

struct ml_source_class {
    /* Begins to report sets of files; never inside this call. */
    void (*start)(struct ml_source *source, struct ml_services *services);
    /* Reports to the author. NULL: nobody reads it. */
    void (*report)(struct ml_source *source, bool warning, const char *reason, const char *note);
    void (*again)(struct ml_source *source); /* reports the files once more; or NULL */
    void (*free)(struct ml_source *source);
};

struct ml_source {
    const struct ml_source_class *class;
    char *name; /* "reconcilers/", "configmap moonloop-system/scripts": for messages; owned */
    bool removes_missing; /* a file that is gone removes its controller; of a folder in `dev` */
    char *removed; /* names of controllers that are to be removed, "a, b"; NULL: none; owned */
    char *paused;  /* "true": all of its controllers are; or names as in `removed`; owned */
    char *retry;   /* another value ends all waits of its controllers; NULL: none; owned */
    bool allows_unknown_names; /* scripts with names that do not exist run, too */
    char *version;  /* resourceVersion of what the files came from; NULL: it has none; owned */
    char *rollback; /* which revisions run instead of others (history.h); NULL: none; owned */
    char *rollout;  /* how new versions take over; NULL: it does not say; owned */
    char *approved; /* revisions that go live whatever their plans say, "a, b"; NULL: none; owned */
    struct ml_str ns, configmap; /* beside which revisions are kept; empty: they are not */
    struct ml_files tests;       /* as they were read with the files; owned */
    struct ml_err tests_trouble; /* why they were not read */
    char *folder;                /* of the files; NULL: they are in none; owned */

    /* The rest is of scripts.c. */
    struct ml_scripts *scripts;
    bool read;                         /* files came at least once */
    bool allowed_unknown_names;        /* what `allows_unknown_names` was at that time */
    char *retried;                     /* likewise, `retry` */
    char *rolled_back;                 /* likewise, `rollback` */
    char *approvals_seen;              /* likewise, `approved` */
    char *rollout_seen;                /* likewise, `rollout` */
    enum ml_rollout_mode mode;         /* of that */
    struct ml_history *history;        /* NULL: no revisions are kept */
    bool loaded;                       /* a set was loaded at least once */
    uint64_t tests_seen;               /* a fingerprint of `tests` at that time */
    struct ml_files scripts_seen;      /* the newest files, if there are tests and a tester */
    struct ml_err trouble;             /* why it could not be read when last tried */
    struct ml_script_limits limits;    /* with `cpu_account` */
    struct ml_cpu_account cpu_account; /* of the CPU time of loading */
    struct ml_slice slice;
    struct ml_load *load;    /* NULL: nothing is being loaded */
    struct ml_load *before;  /* the unfinished one that `load` replaced, or NULL */
    struct ml_timer missing; /* until controllers go whose file is gone: of a path in `dev` */
    uint64_t removals_told;  /* of names that are to be removed and are not here */
    struct ml_last_good *last_good; /* NULL: none is kept */
    struct ml_list node;
};

/* For the classes: a complete set, borrowed. Also called when it is the same as before. */
void ml_source_notify_files(struct ml_source *source, const struct ml_files *files);
/* Likewise: there are no scripts to read: not found, deleted, unreadable. Called on each change,
 * not on each attempt. Running scripts keep running. */
void ml_source_notify_trouble(struct ml_source *source, const struct ml_err *err);

/* ---- the set ---- */

/* `limits` is copied. `marker` (borrowed; NULL: none is kept) shows which version runs; the
 * versions that it has in quarantine are refused. `live` (NULL: nobody asks) is called with
 * `context` when a version of a script has gone live. */
struct ml_scripts *ml_scripts_new(struct ml_services *services,
                                  const struct ml_script_limits *limits,
                                  struct ml_crash_marker *marker, void (*live)(void *context),
                                  void *context);
/* Before the start; new versions take over at once unless it is called. */
void ml_scripts_set_guard(struct ml_scripts *scripts, const struct ml_guard_opts *guard);
/* Before the start. New versions have to pass their own tests, which `tester` (borrowed) runs;
 * NULL, as without the call: tests are not run. */
void ml_scripts_set_tester(struct ml_scripts *scripts, struct ml_tester *tester);
void ml_scripts_free(struct ml_scripts *scripts); /* cancels running reconciles; NULL is fine */

/* Takes ownership of the source; before the start. */
void ml_scripts_add_source(struct ml_scripts *scripts, struct ml_source *source);
void ml_scripts_start(struct ml_scripts *scripts);

/* Begins no new reconcile; `done` is called once, from the loop, when the running ones have ended.
 */
void ml_scripts_stop(struct ml_scripts *scripts, void (*done)(void *context), void *context);

#define ML_CONTROLLERS_MAX 100 /* those without a file keep running and count */

/* Fills `out` with all controllers and returns how many there are: first those of files, then the
 * ones that were removed or replaced and have not ended yet. Valid until the loop goes on. */
size_t ml_scripts_controllers(const struct ml_scripts *scripts,
                              struct ml_controller *out[ML_CONTROLLERS_MAX]);

/* True when every source has been read and each of its scripts runs. Otherwise appends a line for
 * each that is missing to `why`. */
bool ml_scripts_ready(const struct ml_scripts *scripts, struct ml_buf *why);

/* Appends a line for each source that has been read and each script that runs: "[+]site.lua ok:
 * controller site runs revision 3f2a91bc". */
void ml_scripts_list_ready(const struct ml_scripts *scripts, struct ml_buf *out);

/* The scripts of all sources, by how they are: each is in exactly one. */
struct ml_scripts_count {
    size_t live;         /* and sees all of its kinds */
    size_t missing_kind; /* live or not, one of its kinds is not installed */
    size_t refused;      /* there is no good version of it */
    size_t blocked; /* live or not, one of its caches is not kept up to date: a right is missing */
    size_t pending; /* is about to go live */
    bool read;      /* every source has been read */
};

struct ml_scripts_count ml_scripts_count(const struct ml_scripts *scripts);

/* When the next reconcile is due, as ml_workqueue_next; 0 also before the sources have been read.
 */
int64_t ml_scripts_next(const struct ml_scripts *scripts);

/* The version that answers webhooks of the controller of this name. False: there is none. */
bool ml_scripts_webhook(const struct ml_scripts *scripts, struct ml_str name,
                        struct ml_webhook_target *out);
/* Walks over the controllers that have webhooks; `*cursor` is 0 at first. False: that was the last
 * one. */
bool ml_scripts_next_webhook(const struct ml_scripts *scripts, size_t *cursor,
                             struct ml_webhook_target *out);
/* As ml_controller_fails, of all controllers of files: which objects could not be reconciled so far
 * and why; and appends a line for each source that was read and has no script. */
bool ml_scripts_fail(const struct ml_scripts *scripts, struct ml_buf *why);
