/* The life of a script: it makes a fresh Lua state, loads the script into it once, and answers
 * questions about it. operator/loader.c loads, operator/revision.c keeps scripts. */
#include <moonloop_lua.h>

#include "script/ctx.h"
#include "script/index.h"

#ifndef MOONLOOP_CPU_STRETCH
#define MOONLOOP_CPU_STRETCH 1 /* of a build that is slower than what the limits are meant for */
#endif

#define MEMORY_DEFAULT   ((size_t)16 * 1024 * 1024)
#define LOAD_CPU_DEFAULT (200 * ML_NS_PER_MS * MOONLOOP_CPU_STRETCH)
#define RUN_CPU_DEFAULT  (100 * ML_NS_PER_MS * MOONLOOP_CPU_STRETCH)
#define WRITES_DEFAULT   64
#define READS_DEFAULT    1000
#define GC_PAUSE         150 /* a collection starts when memory has grown by half */
#define GC_STEP          200

/* Every way into Lua is protected (door.c), so this is a bug of the host. */
static int unprotected_error(lua_State *L ML_UNUSED)
{
    ML_UNREACHABLE();
}

static struct ml_script_limits limits_with_defaults(const struct ml_script_limits *asked)
{
    struct ml_script_limits limits = asked ? *asked : (struct ml_script_limits){0};
    limits.memory_max = limits.memory_max ? limits.memory_max : MEMORY_DEFAULT;
    limits.load_cpu_ns = limits.load_cpu_ns ? limits.load_cpu_ns : LOAD_CPU_DEFAULT;
    limits.run_cpu_ns = limits.run_cpu_ns ? limits.run_cpu_ns : RUN_CPU_DEFAULT;
    limits.writes_max = limits.writes_max ? limits.writes_max : WRITES_DEFAULT;
    limits.reads_max = limits.reads_max ? limits.reads_max : READS_DEFAULT;
    return limits;
}

static struct ml_script *script_new(struct ml_services *cluster,
                                    const struct ml_script_limits *limits)
{
    struct ml_script *script = ml_new(struct ml_script);
    script->references = 1;
    script->cluster = cluster;
    script->limits = limits_with_defaults(limits);
    script_memory_init(script);
    script->binding.payer = script->limits.load_payer;
    script->thread.script = script;
    if (cluster)
        ml_random_init_child(&script->random, cluster->random);
    else
        ml_random_init(&script->random, 0);
    ml_json_reader_init(&script->reader, ML_STR("null"), 0);
    script_cpu_attach();
    script->L = lua_newstate(script_allocate, &script->memory);
    if (script->L) {
        lua_atpanic(script->L, unprotected_error);
        moonloop_lua_of_scripts(script->L);
        lua_gc(script->L, LUA_GCINC, GC_PAUSE, GC_STEP, 0);
        *(struct script_thread **)lua_getextraspace(script->L) = &script->thread;
    }
    script->unkept.budget = &script->memory;
    return script;
}

static void script_free(struct ml_script *script)
{
    if (script->L)
        lua_close(script->L);
    script_cpu_detach();
    for (size_t i = 0; i < script->loaded_count; i++)
        free(script->loaded[i]);
    free(script->loaded);
    free((char *)script->declaration.file);
    script_free_names(script);
    script_webhooks_fini(&script->declaration.webhooks);
    script_free_metrics(script);
    script_free_http(script);
    ctx_forget_applied(script);
    ml_unkept_fini(&script->unkept);
    script_indexes_free(script);
    ml_repeats_clear(&script->refusals);
    script_release_work(script, 0);
    ml_json_reader_fini(&script->reader);
    ml_assert(script->memory.used == 0);
    free(script);
}

/* Runs in script_protect: opens the sandbox and runs the file. */
ML_RAISES static int load_main(lua_State *L)
{
    const struct ml_script_file *file = lua_touserdata(L, 1);
    script_sandbox_open(L);
#ifdef MOONLOOP_GC_STRESS
    script_of(L)->stress.on = true;
#endif
    script_load_file(L, file);
    if (script_is_controller(L, -1)) {
        script_declare(L, lua_gettop(L));
        script_kept_find(L); /* with wakes = "all" as well, so that both modes run alike */
        return 0;
    }
    if (!lua_istable(L, -1))
        return luaL_error(L,
                          "%s:1: the file returns %s%s; a script returns "
                          "moonloop.controller{ … }, a module a table",
                          script_of(L)->declaration.file, lua_isnil(L, -1) ? "" : "a ",
                          lua_isnil(L, -1) ? "nothing" : luaL_typename(L, -1));
    return 0;
}

/* The line of the last call of moonloop.controller, or 1. `return f{…}` is a tail call, so Lua does
 * not know the line of the caller when f raises. */
static int controller_line(struct ml_str text)
{
    int found = 1, line = 1;
    for (struct ml_str rest = text; rest.ptr; line++) {
        struct ml_str one = ml_str_cut(&rest, '\n');
        if (one.len > 0 && memmem(one.ptr, one.len, ".controller", strlen(".controller")))
            found = line;
    }
    return found;
}

static void add_file_place(const struct ml_script_file *file, struct ml_err *err)
{
    if (script_has_place(err->message))
        return;
    bool is_declaration = strncmp(err->message, "moonloop.controller", 19) == 0;
    ml_err_wrap(err, ML_STR_FMT ":%d", ML_STR_ARG(file->name),
                is_declaration ? controller_line(file->text) : 1);
}

int ml_script_load(struct ml_services *cluster, const struct ml_script_limits *limits,
                   const struct ml_script_files *files, size_t entry, struct ml_script **out,
                   struct ml_err *err)
{
    ml_assert(entry < files->count);
    const struct ml_script_file *file = &files->files[entry];
    struct ml_script *script = script_new(cluster, limits);
    script->files = files;
    script->declaration.file = ml_str_dup(file->name);
    int r;
    if (script->L)
        r = script_protect(script, load_main, (void *)file, script->limits.load_cpu_ns, err);
    else
        r = ml_err_set(err, ML_ESCRIPT, "the memory limit is too small for any script");
    script->files = NULL;
    script->binding.payer = script->limits.load_payer = NULL;
    if (r < 0) {
        add_file_place(file, err);
        script_free(script);
        return r;
    }
    *out = script;
    return 0;
}

struct ml_script *ml_script_ref(struct ml_script *script)
{
    script->references++;
    return script;
}

void ml_script_unref(struct ml_script *script)
{
    if (script && --script->references == 0)
        script_free(script);
}

const struct ml_declaration *ml_script_declaration(const struct ml_script *script)
{
    return script->is_controller ? &script->declaration : NULL;
}

bool ml_script_loaded_file(const struct ml_script *script, struct ml_str name)
{
    for (size_t i = 0; i < script->loaded_count; i++)
        if (ml_str_is(name, script->loaded[i]))
            return true;
    return false;
}

enum ml_limit_hit ml_script_limit_hit(const struct ml_script *script)
{
    return script->limit_hit;
}

size_t ml_script_memory(const struct ml_script *script)
{
    return script->memory.used;
}

void ml_script_bind(struct ml_script *script, const struct ml_script_binding *binding)
{
    script->binding = *binding;
}
