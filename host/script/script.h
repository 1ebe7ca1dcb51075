/* L5 script. One controller script: its own lua_State with an allow-list environment, a memory
 * budget and a CPU deadline, and reconciles as coroutines in it. Nothing of lua.h is
 * visible here.
 *
 * However wrong a script is, it causes only an error for its own key. */
#pragma once

#include "state/custom_metrics.h"
#include "state/expectations.h"
#include "state/read_set.h"
#include "state/reflector.h"
#include "state/services.h"

struct ml_write_check;
struct ml_script;
struct ml_run; /* one reconcile under way */

#define ML_SCRIPT_SOURCE_MAX ((size_t)1024 * 1024) /* bytes of one file: what a ConfigMap holds */

struct ml_script_limits {
    size_t memory_max;   /* bytes of one script, in Lua and in the host; 0: 16 MiB */
    int64_t load_cpu_ns; /* for loading; 0: 200 ms */
    int64_t run_cpu_ns;  /* between two waits of a reconcile; 10 times this in all; 0: 100 ms */
    size_t writes_max;   /* in one reconcile; 0: 64 */
    size_t reads_max;    /* in one reconcile; 0: 1000 */
    struct ml_cpu_account
        *load_account;          /* borrowed while it loads: of the CPU time of that; NULL: nobody */
    volatile uint64_t *at_work; /* has `version` while code of the script runs, and 0 otherwise;
                                   borrowed as long as the script lives; NULL: not set */
    uint64_t version;
};

/* The files of one source: a folder (of one file or of all), or a ConfigMap. Names are bare
 * ("cnat.lua"); `require "x"` finds "x.lua" here and nowhere else. Borrowed. */
struct ml_script_file {
    struct ml_str name;
    struct ml_str text;
};

struct ml_script_files {
    const struct ml_script_file *files;
    size_t count;
};

/* Is told which lines of the files of scripts can run, when they load, and which do. The
 * limits of CPU time are wider then. */
struct ml_coverage {
    void (*can_run)(struct ml_coverage *coverage, const char *file, int line);
    void (*runs)(struct ml_coverage *coverage, const char *file, int line);
};

/* The declaration of a script. Lives as long as the script; strings are terminated. */
enum ml_script_use {
    ML_USE_RECONCILES, /* exactly one */
    ML_USE_OWNS,       /* its changes enqueue the controller owner */
    ML_USE_WATCHES,    /* its changes enqueue the keys that the map function returns */
    ML_USE_TOUCHES,    /* read and written by request, not watched ("uses") */
};

struct ml_script_kind {
    struct ml_gvk gvk;
    struct ml_selection selection; /* the watched part; of ML_USE_TOUCHES always all */
    enum ml_script_use use;
    int line;           /* where it is declared, 0 unknown */
    unsigned when;      /* enum ml_object_part: changes of these count */
    bool when_function; /* ml_script_when decides which changes count */
    bool adopts;        /* of ML_USE_OWNS: takes over objects that nobody controls */
};

#define ML_SCRIPT_VERSIONS_MAX 8 /* that it converts */
#define ML_SCRIPT_FORMERLY_MAX 8 /* names that it had before */

/* Webhooks: the questions that the API server may ask it. Strings live as long as the script. */
struct ml_script_webhooks {
    bool defaults, validates;
    const char *versions[ML_SCRIPT_VERSIONS_MAX]; /* that it converts to its own and back; sorted */
    size_t version_count;

    /* How it wants default and validate to be called; as in a webhook configuration. */
    bool ignores_failure;                             /* failurePolicy Ignore */
    bool matches_exactly;                             /* matchPolicy Exact */
    int timeout_seconds;                              /* 10 unless it says otherwise */
    const char *namespace_selector, *object_selector; /* JSON; NULL: all */
};

#define ML_REVISION_LEN 8

/* How a version takes over from the one before. */
enum ml_rollout_mode {
    ML_ROLLOUT_UNSET,     /* of a declaration or a source: it does not say */
    ML_ROLLOUT_IMMEDIATE, /* at once */
    ML_ROLLOUT_GUARDED,   /* when the plan of what it would do is harmless (operator/guard.h) */
    ML_ROLLOUT_CANARY,    /* likewise, for one object, then for more and more of them */
    ML_ROLLOUT_PLAN,      /* when that plan changes nothing, or somebody has approved it */
};

#define ML_ROLLOUT_MODES "guarded, canary, plan or immediate"

/* By its name, as scripts, sources and flags have it. False: no mode is called so. */
ML_NODISCARD bool ml_rollout_mode_parse(struct ml_str name, enum ml_rollout_mode *out);

#define ML_ROLLOUT_DELETES_MAX 1000000
#define ML_ROLLOUT_SETTLE_MAX  86400

/* How the next version takes over from this one. */
struct ml_rollout {
    enum ml_rollout_mode mode;
    /* It is held when it would delete more than both of these: so many objects, and so many in a
     * hundred of what its objects own. It is refused when it fails for more than so many in a
     * hundred. -1: the declaration does not say. */
    int max_deletes, max_deletes_percent, max_failures_percent;
    /* After its objects were reconciled, so long without harm: a step of a canary, and the time
     * until the one before cannot come back by itself. -1 likewise. */
    int settle_seconds;
};

struct ml_declaration {
    const char *name; /* DNS label, at most 63 bytes */
    const char *file; /* "cnat.lua" */
    /* Of the files that loading used: the first digits of the SHA-256 of each file's name, a zero
     * byte, its text and a zero byte, in the order of the names. So it is the same on all replicas,
     * and after a restart. */
    char revision[ML_REVISION_LEN + 1];
    const char *finalizer;                            /* "moonloop.dev/NAME" */
    bool finalizes;                                   /* objects carry it: ml_script_finalize */
    const char *formerly[ML_SCRIPT_FORMERLY_MAX + 1]; /* names that it had; NULL is the end */
    const char *former_finalizers[ML_SCRIPT_FORMERLY_MAX + 1];
    const struct ml_script_kind *kinds;
    size_t kind_count;       /* at most 32 */
    int64_t concurrency_max; /* reconciles in flight; default 1000 */
    bool wakes_all;          /* no reads are recorded: every change wakes a key */
    struct ml_rollout rollout;
    struct ml_script_webhooks webhooks;
    const struct ml_custom_metric *metrics; /* that ctx.metric sets */
    size_t metric_count;
    char **http; /* origins that ctx.http may ask, NULL-terminated; NULL: none */
};

/* Is it the controller's name, or one that it had? */
bool ml_declaration_is_called(const struct ml_declaration *declaration, struct ml_str name);

#define ML_MANAGER_PREFIX "moonloop-"
#define ML_STATUS_MANAGER "moonloop" /* the field manager of the statuses of all controllers */

/* The controller that a field manager is of: "moonloop-NAME" applies and creates, and
 * "moonloop-NAME/patch" patches. A part of `manager`; empty: it is of none. */
struct ml_str ml_controller_of_manager(const char *manager);

/* Compiles and runs `files->files[entry]` in a fresh state. ML_ESCRIPT with "file:line:
 * message" when it does not compile or load, breaks a limit, is bytecode, or returns something
 * that is neither a controller nor a table (a module for others). `out` has one reference.
 * `services` NULL: only to read the declaration (moonloop check). */
ML_NODISCARD int ml_script_load(struct ml_services *services, const struct ml_script_limits *limits,
                                const struct ml_script_files *files, size_t entry,
                                struct ml_script **out, struct ml_err *err);
struct ml_script *ml_script_ref(struct ml_script *script);
void ml_script_unref(struct ml_script *script); /* at the last one, all runs must have ended */

/* NULL when it is a module, not a controller. */
const struct ml_declaration *ml_script_declaration(const struct ml_script *script);
/* Did loading use this file (as entry or by require)? Then a change of it reloads this script. */
bool ml_script_loaded_file(const struct ml_script *script, struct ml_str name);
/* The budget for data that the host holds for the script: requests that are sent for the script
 * name it. Lives as long as the script. */
struct ml_budget *ml_script_budget(struct ml_script *script);

/* Data for the script's runs: the resolved kinds of its declaration (in the same order) and their
 * informers (NULL for ML_USE_TOUCHES). Borrowed; must outlive the runs. */
struct ml_script_binding {
    const struct ml_kind *const *kinds;
    struct ml_informer *const *informers;
    struct ml_expectations *expectations;
    struct ml_cpu_account *cpu_account; /* of the CPU time of its code; NULL: nobody */
    const struct ml_write_check *check; /* of its writes; NULL: none */
};

void ml_script_bind(struct ml_script *script, const struct ml_script_binding *binding);

/* The limit that stopped a piece of script code. */
enum ml_limit_hit {
    ML_LIMIT_NONE,
    ML_LIMIT_CPU,
    ML_LIMIT_MEMORY,
};

/* Of the piece that ended last: a slice of a reconcile, or a call of when or map. */
enum ml_limit_hit ml_script_limit_hit(const struct ml_script *script);

/* ---- indexes (moonloop.index) ----
 *
 * Each watched kind with an index is reported with all its changes, from the first list on; also
 * before the script is bound, so that its indexes are complete when it goes live. */

/* Does the script have an index of kinds[kind]? */
bool ml_script_indexes(const struct ml_script *script, size_t kind);
/* A change as in ml_listener, in the order of the cache. Reporting one twice does no harm. An
 * object that is new or changed is pending from now on. */
void ml_script_index_change(struct ml_script *script, size_t kind, struct ml_object *old,
                            struct ml_object *new);
/* Calls the functions for pending objects, for about 5 ms of CPU time. True: none is pending any
 * more. Not while code of the script runs. */
bool ml_script_index_work(struct ml_script *script);
bool ml_script_index_pending(const struct ml_script *script);

/* A function failed for `object`, of kinds[kind], which is in the index under no key. Or there was
 * not enough memory for the index or its function: then the index holds nothing from now on, and
 * lookups raise, as an object that is missing could make a script do harm. */
typedef void ml_script_index_failed(void *context, size_t kind, struct ml_object *object,
                                    const struct ml_err *err);
void ml_script_on_index_failed(struct ml_script *script, ml_script_index_failed *failed,
                               void *context);

enum ml_outcome {
    ML_OUTCOME_OK,       /* forget the key's failures; obey the requeue below, if any */
    ML_OUTCOME_ERROR,    /* try again with backoff */
    ML_OUTCOME_TERMINAL, /* ctx.terminal: do not retry before the object changes */
    ML_OUTCOME_INVALID,  /* ctx.invalid: the object's spec is invalid */
};

struct ml_result {
    enum ml_outcome outcome;
    struct ml_str field;      /* INVALID: "spec.schedule", else empty */
    struct ml_str status;     /* JSON object to merge over the object's status, or empty */
    int64_t requeue_after_ns; /* or -1 */
    int64_t requeue_at_ns;    /* wall clock; or -1 */
    const char *traceback;    /* of a Lua error, or NULL */
    size_t writes;            /* that it asked for */
    int64_t cpu_ns;           /* of its code */
    bool wrote_status;        /* of a reconcile: among them is one of the status */
    enum ml_limit_hit limit;  /* that ended it */
    struct ml_str version; /* the object's resourceVersion, since the run has added the finalizer;
                              empty: it has not */
    bool finalizes;        /* the result of ml_script_finalize */
    bool finalized;        /* and that is done: the finalizer goes */

    /* Owned by the result (ml_result_fini). */
    struct ml_err *err;            /* NULL when OK; of Lua with "file:line: message" */
    struct ml_read_names names;    /* that it looked for */
    struct ml_custom_notes *notes; /* values of metrics; NULL: none */
    /* The reads that the result depends on; NULL: maybe it depends on more than the cache. */
    struct ml_read_set *reads;
    struct ml_read_versions read_versions; /* with `reads` */
    const char *reads_gave_up;             /* why there are none, static; NULL: there are */
};

/* Why its runs have no read sets any more, and their earlier ones are void: a variable that
 * outlives a run has changed, or cannot be checked. NULL: they have read sets. Once set it stays.
 */
const char *ml_script_reads_off(const struct ml_script *script);

/* Moves the result out of what ml_script_done got: it belongs to the caller, until ml_result_fini.
 * Its texts (status, field, version, traceback) stay behind, and are empty. */
struct ml_result ml_result_take(struct ml_result *result);
/* Frees what the result owns: names, reads and notes. */
void ml_result_fini(struct ml_result *result);

/* `result` and what it points to live during the call. A receiver that keeps any of it calls
 * ml_result_take, before it decides anything; what is not taken is freed with the run, when the
 * receiver returns. */
typedef void ml_script_done(void *context, struct ml_result *result);

/* Runs reconcile(object, ctx) in a coroutine. Before its first write, if the script finalizes, the
 * finalizer is added to an object that does not carry it. Its log lines have `id`, borrowed until
 * it has ended, as reconcileID. The one exception from the rule for completions (ARCHITECTURE.md):
 * `done` may be called before this returns (it then returns NULL), because the call is already in a
 * turn of the loop. Call it in a slice of the binding's account; the run itself waits for the
 * slices in which it continues. */
struct ml_run *ml_script_reconcile(struct ml_script *script, struct ml_object *object,
                                   const char *id, ml_script_done *done, void *context);
/* The same with finalize(object, ctx), for an object that is being deleted and carries the
 * finalizer. Done when the function returned nothing, or there is none. A table without a time asks
 * to be called again after a minute. Such runs have no read sets. */
struct ml_run *ml_script_finalize(struct ml_script *script, struct ml_object *object,
                                  const char *id, ml_script_done *done, void *context);
/* A write of the run is under way, and its result is unknown. */
bool ml_script_writes(const struct ml_run *run);
void ml_script_cancel(struct ml_run *run); /* cancels its requests; done is not called */

#define ML_SCRIPT_WHEN_SHARE 10 /* of run_cpu_ns: the share of a function `when` */

/* Calls the function `when` of kinds[index]: does a change from `old` to `new` count? 0, or
 * ML_ESCRIPT with "file:line: message". */
ML_NODISCARD int ml_script_when(struct ml_script *script, size_t index, struct ml_object *old,
                                struct ml_object *new, bool *out_counts, struct ml_err *err);

/* Calls the map function of kinds[index] (ML_USE_WATCHES) with a changed object: `emit` is
 * called for each key ("ns/name") to enqueue, at most 10000. 0 or ML_ESCRIPT. */
ML_NODISCARD int ml_script_map(struct ml_script *script, size_t index, struct ml_object *object,
                               void (*emit)(void *context, struct ml_str key), void *context,
                               struct ml_err *err);

/* ---- webhooks ----
 *
 * Each call is one piece of code with run_cpu_ns, which cannot write or wait. Objects are JSON that
 * was checked (ml_json_check), within ML_JSON_DEPTH_MAX. Results are appended to `out`. 0, or
 * ML_ESCRIPT with "file:line: message". */

/* The object that the API server asks about. Empty where there is none, or none yet. */
struct ml_webhook_object {
    struct ml_str ns, key, uid;
};

/* The object as `default` wants it. The script must have it. */
ML_NODISCARD int ml_script_default(struct ml_script *script, const struct ml_webhook_object *about,
                                   struct ml_str object, struct ml_buf *out, struct ml_err *err);
/* The answer of `validate`: the fields allowed, status and warnings, as a JSON object.
 * `old` empty: the object is created. Before ml_script_bind its reads fail. */
ML_NODISCARD int ml_script_validate(struct ml_script *script, const struct ml_webhook_object *about,
                                    struct ml_str new, struct ml_str old, struct ml_buf *out,
                                    struct ml_err *err);
/* The object in another version: `to` makes the version that is reconciled of one in
 * webhooks.versions[index], else `from` the reverse. */
ML_NODISCARD int ml_script_convert(struct ml_script *script, size_t index, bool to,
                                   struct ml_str object, struct ml_buf *out, struct ml_err *err);
