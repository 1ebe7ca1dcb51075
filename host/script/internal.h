/* L5 script, private. Shared by the files of this layer: the state of a script and of a run, and
 * the calls between these files.
 *
 * The rule for calls into Lua: a Lua error may leave a function marked ML_RAISES and skips cleanup.
 * So such a function owns nothing: memory that it needs belongs to the script, to the run, or to
 * Lua. A function without the mark never raises and never lets Lua allocate. */
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

typedef uint32_t read_node; /* what a run has read of: reads.h; 0: not recorded */

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

struct ml_script {
    size_t references;
    struct ml_services *cluster;
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
    int default_ref, validate_ref, answer_ref; /* webhook.c; the last is moonloop.verdict's */
    int to_refs[ML_SCRIPT_VERSIONS_MAX], from_refs[ML_SCRIPT_VERSIONS_MAX];
    int reconcile_line, finalize_line;

    /* Work buffers. They belong to the script, so that a Lua error cannot leak them. */
    struct ml_buf opened;   /* an object's JSON on its way in */
    struct ml_buf outgoing; /* a table's JSON on its way out */
    struct ml_buf overlay;  /* fields that the host adds */
    struct ml_buf body;     /* the two merged */
    struct ml_buf traceback;
    char place[LUA_IDSIZE + 16]; /* "cnat.lua:12: ", of the last error */
    struct ml_json_reader reader;
    struct ml_json_spans spans; /* of an object on its way in */
    size_t shape_nodes;

    struct script_coroutine idle[SCRIPT_IDLE_MAX];
    size_t idle_count;

    struct ml_map applied;      /* ctx_write.c: what ctx.apply sent */
    struct ml_unkept unkept;    /* fields that ctx.patch sent and the server does not keep */
    struct ml_repeats refusals; /* refusal.c: of writes */

    struct script_index *indexes[SCRIPT_INDEXES_MAX]; /* index.h */
    size_t index_count;
    size_t index_pending;             /* objects, over all of them */
    struct script_reads *index_reads; /* records what the function of an index reads; else NULL */
    ml_script_index_failed *index_failed;
    void *index_context;

    size_t kept_count;    /* kept.c: tables and functions that outlive a run */
    char kept_place[192]; /* the variable that has changed, or why it is not known; "": none */
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
    struct ml_err err;          /* kind 0: success */
    struct ml_turn turn;        /* waits for a turn of the payer, with: */
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

    struct ml_map wanted;    /* ctx_children.c: objects of owned kinds, "1 default/x" */
    struct ml_map generated; /* generate_name.c: uses of each generateName */

    struct script_reads *reads;    /* reads.h: what it read of the cache */
    struct ml_custom_notes *notes; /* what ctx.metric recorded; NULL: nothing */
    struct ml_result result;
    struct ml_buf status;
    char *field;
    size_t charged; /* to the script, for what the run holds: status, notes of its writes */
};

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

/* limits.c: the script's budget has what Lua allocates and what the host holds because of the
 * script: its work space, what a run keeps, what the client holds of its requests and answers
 * (struct ml_client_request). Events have a limit of their own (state/recorder.h). */
void script_memory_init(struct ml_script *script);
/* "out of memory (limit 16 MiB)". */
void script_out_of_memory(const struct ml_script *script, struct ml_err *err);
ML_RAISES void script_raise_out_of_memory(lua_State *L);
/* Raises it when it does not fit, even after garbage was collected.
 * Who holds it gives it back with ml_budget_give(&script->memory, …). */
ML_RAISES void script_charge(lua_State *L, size_t bytes);
/* Charges what the work space has grown by; raises as script_charge does. */
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
int64_t script_cpu_end(enum script_deadline *out_deadline); /* what it used, ns */
bool script_cpu_expired(void);                              /* sticky until the end */
bool script_cpu_stopped(void);                 /* it has ended the code at least once */
ML_RAISES void script_cpu_check(lua_State *L); /* for loops in C; does not return once expired */

/* door.c: the only ways from the host into Lua. */

/* Calls function(L) in the main thread with `argument` as light userdata. ML_ESCRIPT, with the
 * traceback in script->traceback, when it raises or uses more than cpu_ns. */
ML_NODISCARD int script_protect(struct ml_script *script, lua_CFunction function, void *argument,
                                int64_t cpu_ns, struct ml_err *err);

/* Writes the current position of L to script->traceback and script->place. */
void script_note_place(lua_State *L);

/* "cnat.lua:12: …": does the message begin with a place? */
bool script_has_place(const char *message);

enum script_resumed { SCRIPT_ENDED, SCRIPT_WAITS, SCRIPT_FAILED };
/* Starts or resumes the run's coroutine. FAILED fills run->err. */
enum script_resumed script_resume(struct ml_run *run);

/* sandbox.c: the environment of scripts. */
ML_RAISES void script_sandbox_open(lua_State *L);
ML_RAISES const char *script_tolstring(lua_State *L, int index, size_t *len); /* [-0, +1] */
/* [-1, +0] Registers the metatable on top under the address `key`, and hides it. Values that have
 * it can be told by identity, as no script can get at it. */
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

/* Libraries; each pushes a new table. */
ML_RAISES int script_open_string(lua_State *L);
ML_RAISES void script_open_string_methods(lua_State *L); /* after the last script_open_string */
ML_RAISES int script_open_table(lua_State *L);
ML_RAISES int script_pairs(lua_State *L);
ML_RAISES int script_next(lua_State *L);

/* tablelib.c: sorts in C data whose length a script controls. */
#define SCRIPT_SORT_ITEM_MAX 64 /* bytes */

/* Sorts `count` items of `size` bytes in place, by heap sort: n log n comparisons at most,
 * whatever the order they come in, and no memory. Not stable. Looks at the deadline after each
 * comparison, and raises; the items are then in any order. `compare` is as qsort's. */
ML_RAISES void script_sort(lua_State *L, void *items, size_t count, size_t size,
                           int (*compare)(const void *, const void *));
/* [-0, +1] The keys of the table at `index` as a sorted array, which holds them. */
ML_RAISES void script_push_keys(lua_State *L, int index);
/* The same in the order of pairs: those of a table that has `count` and is no sequence. Needs 10
 * slots of the stack. */
ML_RAISES void script_push_ordered_keys(lua_State *L, int index, size_t count);

/* fields.c: errors for unknown names, which suggest the one that was probably meant. `list` is a
 * list of moonloop/fields.lua. */

/* Raises "WHAT has no 'gett'; did you mean 'get'?" for the name at `index`. */
ML_RAISES ML_NORETURN void script_missing_field(lua_State *L, const char *what, const char *list,
                                                int index);
/* Raises "CALL: unknown field 'label'; did you mean 'labels'?" for a key of the table in stack
 * slot `index` that is not in the list. Asks no metamethod. */
ML_RAISES void script_check_fields(lua_State *L, const char *call, const char *list, int index);
/* [-0, +0] Makes the table on top raise when something is read that it does not have. Its list has
 * its name; a table without a list stays as it is. */
ML_RAISES void script_guard_fields(lua_State *L, const char *name);

/* module.c: require, the embedded library. */
ML_RAISES void script_open_library(lua_State *L); /* [-1, +0] with its environment on top */
ML_RAISES void script_push_library(lua_State *L,
                                   const char *name); /* [-0, +1] its own, not for scripts */
ML_RAISES int script_library_require(lua_State *L);
ML_RAISES int script_require(lua_State *L);
ML_RAISES void
script_push_loaded(lua_State *L); /* [-0, +1] from name to what require gives the script */
ML_RAISES void script_load_file(lua_State *L, const struct ml_script_file *file); /* [-0, +1] */

/* globals.c: raises "cnat.lua:12: there is no variable 'nmes' here; …" when code of the chunk on
 * top uses a name that the environment does not have. `file`: its name. */
ML_RAISES void script_check_globals(lua_State *L, const char *file);

/* kept.c: tables and functions that outlive a run. */

/* Finds all tables and functions that the code of the script can reach, once it is loaded. */
ML_RAISES void script_kept_find(lua_State *L);
/* Has any of it changed since? Called when code of the script has run. Never raises. */
void script_kept_check(struct ml_script *script);

/* shape.c: the metatables that keep the key order of objects. */
enum shape_root {
    SHAPE_PLAIN,
    SHAPE_OBJECT, /* of Kubernetes */
    SHAPE_METADATA,
    SHAPE_ROOTS,
    SHAPE_ITEMS, /* an array of SHAPE_OBJECT; has no shape itself */
};
ML_RAISES void shape_open(lua_State *L);
ML_RAISES void shape_begin(lua_State *L, enum shape_root root); /* [-0, +1] the node */
/* With the key on top: moves the node in stack slot `node` on. `count`: keys so far. */
ML_RAISES void shape_step(lua_State *L, int node, size_t count);
ML_RAISES void shape_end(lua_State *L, int object, enum shape_root root); /* [-1 node, +0] */
ML_RAISES void shape_trim(lua_State *L); /* forgets the tree when it is full */
/* Pushes the array of keys of the table at `index` when it has a shape. Never raises. */
bool shape_keys(lua_State *L, int index);
/* Pushes the table from key to place in that array; made on first use. */
ML_RAISES void shape_places(lua_State *L, int index);
/* [-0, +0 or +1] The table that the absent field whose name is at stack index 2 reads as in an
 * object of `root`; returns how many. */
ML_RAISES int shape_push_absent(lua_State *L, enum shape_root root);
bool shape_is_array(lua_State *L, int index); /* marked by moonloop.array or a JSON array */
ML_RAISES void shape_mark_array(lua_State *L, int index);

/* json_decode.c: JSON to Lua. [-0, +1]; raises when it is no JSON. Of a Kubernetes object, other
 * than of plain JSON, what is absent can be read, and its managedFields are left out. `place`:
 * where what the script reads of it is recorded; 0: nowhere. */
ML_RAISES void script_push_json(lua_State *L, struct ml_str json,
                                enum shape_root root);               /* all of it */
ML_RAISES void script_push_answer(lua_State *L, struct ml_str json); /* an object; not recorded */
ML_RAISES void script_push_object(lua_State *L, const struct ml_object *object, read_node place);
ML_RAISES void script_push_null(lua_State *L);
bool script_is_null(lua_State *L, int index);
ML_RAISES void script_numbers_open(lua_State *L);
bool script_number_text(lua_State *L, int index, struct ml_str *out); /* a number kept as text */

/* For lazy.c. */
struct script_decoder {
    lua_State *L;
    struct ml_json_reader *reader; /* the script's, so that a Lua error cannot leak it */
    struct lazy_source *source;    /* NULL: all of the text is decoded */
    int held;                      /* the stack slot of that source */
    struct script_reads *reads;    /* records what it reads; NULL: nowhere */
};
/* [-0, +1] The value whose first token is current; afterwards its last token is, or the first one
 * of what was left for later. */
ML_RAISES void script_decode_value(const struct script_decoder *decoder, enum shape_root root,
                                   read_node place);
/* The same for the value of the field `name` in an object whose keys count as read. */
ML_RAISES void script_decode_member(const struct script_decoder *decoder, enum shape_root root,
                                    read_node parent, struct ml_str name);
/* The shape root of the value of `key` in an object of `root`. */
enum shape_root script_root_below(enum shape_root root, struct ml_str key);

/* lazy.c: objects whose fields are decoded when a script touches them. Such a table is *pending*;
 * C that looks into a table of a script without metamethods completes it first. */
ML_RAISES void lazy_open(lua_State *L);
/* [-0, +1] An object, or any other JSON that was checked. It is copied. */
ML_RAISES void script_push_lazy(lua_State *L, struct ml_str json, read_node place);
/* [-0, +1] For the decoder, with the first token of an object current: a pending table, with the
 * reader past the object. False, with nothing done: this object has to be decoded at once. */
ML_RAISES bool lazy_push_table(const struct script_decoder *decoder, enum shape_root root,
                               read_node place);
bool lazy_is_pending(lua_State *L, int index);
/* Makes a pending table the plain table that it stands for: all its fields are there, those that
 * are objects as pending tables. Does nothing to any other value. */
ML_RAISES void lazy_complete(lua_State *L, int index);
/* luaL_checktype for a table, and completes it. */
ML_RAISES void lazy_check_table(lua_State *L, int index);
/* The text of a table that is still as it was pushed, with all that is below it. */
struct lazy_text {
    struct ml_json_reader *reader; /* the script's: its first token is current */
    const struct lazy_source *source;
    enum shape_root root;
};
/* False: it is not such a table. If true, the whole table counts as read. */
bool lazy_untouched(lua_State *L, int index, struct lazy_text *out);
/* Can the members of the object whose first token is current be read from the text one by one: does
 * no key occur twice, and is none left out? */
bool lazy_is_simple(const struct lazy_text *text, enum shape_root root);

/* json_encode.c: Lua to JSON, into `out`, which is emptied first and belongs to the script or the
 * run. Raises "cnat.lua:12: status.phase: a function cannot be stored"; `root` ("status", or
 * "") starts that path. */
ML_RAISES void script_encode(lua_State *L, int index, const char *root, struct ml_buf *out);

/* What declare.c adds to the primitives of the library, the table on top. */
ML_RAISES void script_add_text(lua_State *L);   /* textlib.c: base64, JSON, YAML, selectors */
ML_RAISES void script_add_crypto(lua_State *L); /* cryptolib.c */
/* metric.c: reads the field `metrics` of the controller at `index` into the declaration. */
ML_RAISES void script_declare_metrics(lua_State *L, int index);
void script_free_metrics(struct ml_script *script);

/* http.c: the same for the field `http`. Raises when the operator's owner has not allowed it. */
ML_RAISES void script_declare_http(lua_State *L, int index);
void script_free_http(struct ml_script *script);

/* declare.c */
ML_RAISES void script_push_host(lua_State *L); /* what the library builds on; no script gets it */
/* [-0, +1] A copy of the table at `index`, without metamethods. */
ML_RAISES void script_push_copy(lua_State *L, int index);
bool script_is_controller(lua_State *L, int index);
bool script_is_same_kind(const struct ml_gvk *a, const struct ml_gvk *b);
/* The result of moonloop.kind: a kind, its selection and its line. NULL: not a kind. */
const struct ml_script_kind *script_to_kind(lua_State *L, int index);
/* Reads the controller at `index` into script->declaration. */
ML_RAISES void script_declare(lua_State *L, int index);
void script_free_names(struct ml_script *script);
/* Raises that the value of moonloop.controller is not what it makes. */
ML_RAISES ML_NORETURN void script_refuse_definition(lua_State *L, const char *field);

/* webhook.c: reads the webhooks of the definition at `index` into script->declaration. */
ML_RAISES void script_declare_webhooks(lua_State *L, int index);
void script_webhooks_fini(struct ml_script_webhooks *webhooks);
