/* L5 script, private. The state of a script and of a run, and the files that all others build on:
 * limits.c, value.c, lifetime.c, and call.c with outliving_state.c. No two files of this layer need
 * each other. A file uses files that stand before it: limits.c, value.c, objects.h, module.c,
 * call.c, index.h, lifetime.c, run.h, ctx.h, ctx_target.h, declare.c, sandbox.c; callbacks.c comes
 * last, too.
 *
 * The rule for calls into Lua: a Lua error may leave a function marked ML_RAISES and skips cleanup.
 * So such a function owns nothing: memory that it needs belongs to the script, to the run, or to
 * Lua. Other functions never raise and never let Lua allocate. */
#pragma once

#include <lauxlib.h>
#include <lua.h>

#include "base/budget.h"
#include "base/map.h"
#include "base/repeat.h"
#include "codec/json_members.h"
#include "kube/unkept.h"
#include "script/maxima.h"
#include "script/script.h"
#include "state/writer.h"

#define ML_RAISES

typedef uint32_t read_node; /* a place that a run has read: reads.h; 0: not recorded */

#define SCRIPT_STRING_MAX    ((size_t)1024 * 1024)     /* bytes that one string function makes */
#define SCRIPT_RANGE_MAX     1000000                   /* elements that one table function moves */
#define SCRIPT_JSON_MAX      ((size_t)3 * 1024 * 1024) /* of one body; the API server's own limit */
#define SCRIPT_KINDS_MAX     32
#define SCRIPT_WHEN_MAX      16    /* parts that one `when` names */
#define SCRIPT_NAME_MAX      63    /* bytes of a controller's name, a DNS label */
#define SCRIPT_RUNNING_MAX   10000 /* reconciles in flight that a controller may ask for */
#define SCRIPT_KEYS_MAX      10000 /* that one call of a watch function names */
#define SCRIPT_IDLE_MAX      8     /* coroutines kept for the next run */
#define SCRIPT_CPU_IN_ALL    10    /* times the budget between two waits, in one reconcile */
#define SCRIPT_LOG_LINES_MAX 100   /* of one reconcile */
#define SCRIPT_EVENTS_MAX    25    /* of one reconcile; the recorder's limit for one object */
#define SCRIPT_MEMORY_OWN    ((size_t)512 * 1024)  /* that no other script can take away */
#define SCRIPT_STATUS_MAX    ((size_t)1024 * 1024) /* as JSON; etcd accepts 1.5 MiB */
#define SCRIPT_WORK_KEPT     ((size_t)64 * 1024)   /* of each work space, between two runs */
#define SCRIPT_FIELD_MAX     256                   /* bytes of the field that ctx.invalid names */
#define SCRIPT_WHAT_MAX      768                   /* a verb, a kind and a key */
#define SCRIPT_WRITE_NOTED   256 /* bytes of a write in the expectations, besides names */

/* The extra space of every Lua thread points to one of these. */
struct script_thread {
    struct ml_script *script;
    struct ml_run *run;       /* NULL in the main thread: loading, or a watch function */
    struct ml_object *object; /* the reconciled object, or the changed one; NULL while loading, and
                                 for a webhook, whose object is not stored yet: */
    struct ml_webhook_object asked_about;
    int result_line; /* where the function begins whose result is read; 0: reconcile's */
    size_t kind;     /* of the changed object, in the declaration */
    size_t reads;
    size_t log_lines;
    size_t events;
};

struct script_coroutine {
    lua_State *L; /* NULL: none */
    int ref;      /* keeps it in the registry */
};

/* limits.c; of a build with MOONLOOP_GC_STRESS. */
struct script_stress {
    bool on; /* once the library is loaded */
    bool refused;
    size_t until_next;
};

/* The last apply of an object. */
struct script_applied {
    uint64_t hash; /* of the body that was sent */
    char rv[32];   /* resourceVersion of the answer */
    char key[];    /* "v1 Pod default/x" */
};

#define SCRIPT_PLACE_MAX (LUA_IDSIZE + 16) /* bytes of "FILE:LINE" */

struct ml_script {
    size_t references;
    struct ml_services *services;
    struct ml_script_limits limits; /* with defaults: none is 0 */
    struct script_stress stress;
    struct ml_budget memory; /* of Lua, and of data that the host holds for it: limits.c */
    size_t work_charged;     /* of this, for the work buffers below */
    size_t collected_at;     /* used bytes after the host's last collection */
    struct ml_random random;
    lua_State *L;
    struct script_thread thread;

    const struct ml_script_files *files; /* while it loads, then NULL */
    char **loaded;                       /* names of the files it loaded, entry first */
    size_t loaded_count;

    bool is_controller;
    struct ml_declaration declaration;
    struct ml_script_kind kinds[SCRIPT_KINDS_MAX];
    struct ml_custom_metric *metrics; /* metric.c */
    char *field_manager; /* of creates and applies: its fields go when it does not give them */
    char *patch_manager; /* of ctx.patch: what it sets stays until a patch removes it */
    const char *former_managers[ML_SCRIPT_FORMERLY_MAX + 1]; /* of names that it had; up to NULL */
    const char *former_patch_managers[ML_SCRIPT_FORMERLY_MAX + 1];
    bool calls_patch; /* its text has the word; else no field needs to stay for a patch */
    struct ml_script_binding binding;
    enum ml_limit_hit limit_hit; /* of the code that ran last */
    int64_t cpu_used_ns;         /* by that code */

    /* Registry references. */
    int reconcile_ref;
    int finalize_ref; /* LUA_NOREF: none */
    int check_ref;    /* moonloop.result's check */
    int children_ref; /* moonloop.children's carry_out */
    int ctx_ref;
    int map_refs[SCRIPT_KINDS_MAX];
    int when_refs[SCRIPT_KINDS_MAX];
    int default_ref, validate_ref, answer_ref; /* of webhooks; the last is moonloop.validation's */
    int to_refs[ML_SCRIPT_VERSIONS_MAX], from_refs[ML_SCRIPT_VERSIONS_MAX];
    int reconcile_line, finalize_line;

    /* Work buffers. They belong to the script, so that a Lua error cannot leak them. */
    struct ml_buf opened;   /* an object's JSON on its way in */
    struct ml_buf outgoing; /* a table's JSON on its way out */
    struct ml_buf overlay;  /* fields that the host adds */
    struct ml_buf body;     /* the two merged */
    struct ml_buf traceback;
    char place[SCRIPT_PLACE_MAX]; /* "cnat.lua:12", of the last error */
    struct ml_json_reader reader;
    struct ml_json_spans spans; /* of an object on its way in */
    size_t key_order_nodes;

    struct script_coroutine idle[SCRIPT_IDLE_MAX];
    size_t idle_count;

    struct ml_map applied;      /* of script_applied, by its key */
    struct ml_unkept unkept;    /* fields that ctx.patch sent and the server does not keep */
    struct ml_repeats refusals; /* of writes: ctx.c */

    struct script_index *indexes[SCRIPT_INDEXES_MAX]; /* index.h */
    size_t index_count;
    size_t index_pending;             /* objects, over all of them */
    struct script_reads *index_reads; /* records what the function of an index reads; else NULL */
    ml_script_index_failed *index_failed;
    void *index_context;

    size_t outliving_count; /* tables and functions that outlive a run: outliving_state.c */
    char
        outliving_change[192]; /* the variable that has changed, or why it is not known; "": none */
};

struct ml_run {
    struct script_thread thread;
    struct script_coroutine coroutine;
    const char *id; /* for its log lines */
    ml_script_done *done;
    void *context;
    int64_t cpu_left_ns;
    size_t writes;

    /* The one operation that it waits for. */
    struct ml_client_call *read;
    struct ml_outbound_call *http;
    bool http_writes; /* it is no GET or HEAD */
    struct ml_writer_call *write;
    bool waits_for_cache;
    bool waits_for_index;
    const struct ml_informer *awaited; /* whose cache is to show `write`; NULL: go on at once */
    struct ml_str secret; /* body of `write`, if that is a Secret: for secret.c; ptr NULL: none */

    /* The answer; the body lives only while the continuation runs. */
    struct ml_str body;
    struct ml_err *err;         /* NULL: success */
    struct ml_slice slice;      /* waits, with: */
    struct ml_str kept;         /* a copy of the body, which counts as memory of the script */
    char what[SCRIPT_WHAT_MAX]; /* "create Pod default/x", for messages */

    bool finalizes;          /* runs the function finalize */
    bool returned_nothing;   /* the function did */
    bool has_finalizer;      /* the object carries it: it need not be added before a write */
    struct held_write *held; /* finalizer.c: waits for that; NULL: none */
    char *version;           /* the object's resourceVersion since then, or NULL */

    bool abandoned;         /* ends with `err`, without resuming Lua */
    bool overdue;           /* the deadline expired when it began to wait: the answer ends it */
    bool asked_time;        /* ctx.now */
    char *last_failure;     /* message of the last call that returned nil, err */
    size_t last_failure_at; /* where its message begins */

    /* Of values that are one allocation each. */
    struct ml_map wanted;    /* ctx_target.c: objects of owned kinds, "1 default/x" */
    struct ml_map generated; /* ctx_write.c: uses of each generateName */

    struct script_reads *reads;    /* records its reads of the cache: reads.h */
    struct ml_custom_notes *notes; /* values that ctx.metric recorded; NULL: none */
    struct ml_result result;
    struct ml_buf status;
    char *field;
    size_t charged; /* to the script, for what the run holds: status, notes of its writes */
};

static inline bool run_failed_with(const struct ml_run *run, int kind)
{
    return run->err && run->err->kind == kind;
}

/* The run's error, to be filled. */
static inline struct ml_err *run_make_err(struct ml_run *run)
{
    if (!run->err)
        run->err = ml_alloc(sizeof *run->err);
    return run->err;
}

/* Where the function that the run calls begins; `run` NULL: reconcile. */
static inline int script_run_line(const struct ml_script *script, const struct ml_run *run)
{
    return run && run->finalizes ? script->finalize_line : script->reconcile_line;
}

static inline struct script_thread *script_thread_of(lua_State *L)
{
    return *(struct script_thread **)lua_getextraspace(L);
}

static inline struct ml_script *script_of(lua_State *L)
{
    return script_thread_of(L)->script;
}

/* Of the object at hand; empty for what it does not have. */
static inline struct ml_str script_thread_namespace(const struct script_thread *thread)
{
    return thread->object ? ml_object_namespace(thread->object) : thread->asked_about.ns;
}
static inline struct ml_str script_thread_key(const struct script_thread *thread)
{
    return thread->object ? ml_object_key(thread->object) : thread->asked_about.key;
}
static inline struct ml_str script_thread_uid(const struct script_thread *thread)
{
    return thread->object ? ml_object_uid(thread->object) : thread->asked_about.uid;
}

/* The string at `index`; ptr NULL when there is none, also for a number. */
static inline struct ml_str script_str(lua_State *L, int index)
{
    struct ml_str text = {NULL, 0};
    if (lua_type(L, index) == LUA_TSTRING)
        text.ptr = lua_tolstring(L, index, &text.len);
    return text;
}

/* luaL_checklstring. */
ML_RAISES static inline struct ml_str script_check_str(lua_State *L, int index)
{
    struct ml_str text;
    text.ptr = luaL_checklstring(L, index, &text.len);
    return text;
}

/* [-0, +2] nil and why: what a primitive of the library returns for bad input. */
ML_RAISES static inline int script_push_refusal(lua_State *L, const char *why)
{
    lua_pushnil(L);
    lua_pushstring(L, why);
    return 2;
}

/* Where the function on top begins. */
static inline lua_Debug script_place_of_function(lua_State *L)
{
    lua_Debug place;
    lua_pushvalue(L, -1);
    lua_getinfo(L, ">S", &place);
    return place;
}

/* ---- limits.c ----
 *
 * The script's budget covers the memory of Lua and the memory that the host holds because of the
 * script: its work space, data of its runs, requests and answers in the client (struct
 * ml_client_request). Events have a limit of their own (state/recorder.h). */
void script_memory_init(struct ml_script *script);
/* "out of memory (limit 16 MiB)". */
void script_out_of_memory(const struct ml_script *script, struct ml_err *err);
ML_RAISES void script_raise_out_of_memory(lua_State *L);
/* Raises it when it does not fit, even after garbage was collected. The holder gives it back with
 * ml_budget_give(&script->memory, …). */
ML_RAISES void script_charge(lua_State *L, size_t bytes);
/* Charges the growth of the work space; raises as script_charge does. */
ML_RAISES void script_charge_work(lua_State *L);
/* Frees each work space that is larger than `keep`; 0: all. */
void script_release_work(struct ml_script *script, size_t keep);
/* Frees the buffer of an opened object, if it is large: the script has its own copy by now. */
void script_release_opened(struct ml_script *script);

void *script_allocate(void *memory, void *ptr, size_t osize, size_t nsize); /* lua_Alloc */
void script_cpu_attach(void);                                               /* once a script */
void script_cpu_detach(void);
void script_cpu_begin(lua_State *L, int64_t budget_ns); /* the code that follows runs on L */
enum script_deadline {
    DEADLINE_KEPT,
    DEADLINE_RANG,    /* expired, but the code had ended or yielded by itself */
    DEADLINE_STOPPED, /* it ended the code; a coroutine has yielded and cannot be resumed */
};
int64_t script_cpu_end(enum script_deadline *out_deadline); /* the CPU time used, ns */
bool script_cpu_expired(void);                              /* sticky until the end */
bool script_cpu_stopped(void);                 /* it has ended the code at least once */
ML_RAISES void script_cpu_check(lua_State *L); /* for loops in C; does not return once expired */

/* Writes the place of the innermost function of the script that runs on L, "cnat.lua:12". False,
 * and an empty text: only code of the host runs. */
bool script_running_place(lua_State *L, char *out, size_t size);
/* Writes the current position of L to script->traceback and script->place. */
void script_note_place(lua_State *L);
/* "cnat.lua:12: …": does the message begin with a place? */
bool script_has_place(const char *message);

/* ---- value.c: values that the host makes for scripts ---- */

/* Addresses under which metatables are registered: of kinds, controllers and indexes, and of the
 * `err` of a script. Values that have one are known by it, as no script can get at it. */
extern const char script_kind_key, script_controller_key, script_index_key, script_failure_key;

/* [-1, +0] Registers the metatable on top under the address `key`, and hides it. */
ML_RAISES void script_register_metatable(lua_State *L, const char *key);
/* Hides the metatable on top from getmetatable and setmetatable. */
ML_RAISES void script_hide_metatable(lua_State *L);
/* Is the metatable of the value at `index` the one under `key`? */
bool script_has_metatable(lua_State *L, int index, const char *key);
/* [-0, +1] A new userdata with that metatable. */
ML_RAISES void *script_push_userdata(lua_State *L, size_t size, const char *key);
/* The userdata at `index`, if its metatable is that one; else NULL. */
void *script_to_userdata(lua_State *L, int index, const char *key);
/* [-0, +1] A field of the table at `index`, without metamethods. Returns its type. */
ML_RAISES int script_push_field(lua_State *L, int index, const char *field);
/* [-1, +0] Copies the named fields of the table on top into the one at `to`; NULL ends the list. */
ML_RAISES void script_move_fields(lua_State *L, int to, const char *const *fields);
/* [-0, +1] As the stock tostring, but without addresses. */
ML_RAISES const char *script_tolstring(lua_State *L, int index, size_t *len);

ML_RAISES void script_push_null(lua_State *L); /* moonloop.null */
bool script_is_null(lua_State *L, int index);
ML_RAISES void script_numbers_open(lua_State *L);
/* [-0, +1] A number that fits neither an integer nor a float. */
ML_RAISES void script_push_number_text(lua_State *L, struct ml_str text);
bool script_number_text(lua_State *L, int index, struct ml_str *out);

/* The `err` of a script: a userdata with the fields kind, code and message, which prints and
 * concatenates as its text. */
struct script_failure {
    int kind;
    int http;
    size_t message_at; /* the message is the end of the text, from here */
    char text[];       /* "create Pod default/x: Forbidden: …" */
};
/* [-0, +1] `what`: the request that failed, or "". The result lives as long as the value on the
 * stack. */
ML_RAISES const struct script_failure *script_push_failure(lua_State *L, const struct ml_err *err,
                                                           const char *what);
const struct script_failure *script_to_failure(lua_State *L, int index); /* or NULL */

/* The result of moonloop.kind: a kind, its selection and its line. NULL: not a kind. */
static inline const struct ml_script_kind *script_to_kind(lua_State *L, int index)
{
    return script_to_userdata(L, index, &script_kind_key);
}

/* Is it what moonloop.controller returned? */
static inline bool script_is_controller(lua_State *L, int index)
{
    return script_to_userdata(L, index, &script_controller_key) != NULL;
}

static inline bool script_is_same_kind(const struct ml_gvk *a, const struct ml_gvk *b)
{
    return ml_str_eq(a->group, b->group) && ml_str_eq(a->version, b->version) &&
           ml_str_eq(a->kind, b->kind);
}

/* ---- lifetime.c: a script is made, referenced, freed ---- */

/* With an empty Lua state, or none when the memory limit is too small for one. */
struct ml_script *script_new(struct ml_services *services, const struct ml_script_limits *limits);
void script_free(struct ml_script *script);
size_t script_applied_bytes(const struct script_applied *applied); /* that the script is charged */
void script_forget_applied(struct ml_script *script); /* what ctx.apply need not send again */

/* ---- call.c: the only ways from the host into Lua ---- */

/* Calls function(L) in the main thread with `argument` as light userdata. ML_ESCRIPT, with the
 * traceback in script->traceback, when it raises or uses more than cpu_ns. */
ML_NODISCARD int script_protect(struct ml_script *script, lua_CFunction function, void *argument,
                                int64_t cpu_ns, struct ml_err *err);

enum script_resumed { SCRIPT_ENDED, SCRIPT_WAITS, SCRIPT_FAILED };
/* Starts or resumes the run's coroutine. FAILED fills run->err. */
enum script_resumed script_resume(struct ml_run *run);

/* ---- outliving_state.c: tables and functions that outlive a run ---- */

/* Finds all tables and functions that the code of the script can reach, once it is loaded. */
ML_RAISES void script_find_outliving_state(lua_State *L);
/* Has any of it changed since? Called when code of the script has run. Never raises. */
void script_check_outliving_state(struct ml_script *script);
