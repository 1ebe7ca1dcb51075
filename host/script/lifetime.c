/* The life of a script: makes it with a fresh Lua state, counts its references, frees all that it
 * holds; and questions about it. sandbox.c loads it. */
#include <moonloop_lua.h>

#include "script/index.h"
#include "script/internal.h"

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

/* Every way into Lua is protected (call.c), so this is a bug of the host. */
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

struct ml_script *script_new(struct ml_services *services, const struct ml_script_limits *limits)
{
    struct ml_script *script = ml_new(struct ml_script);
    script->references = 1;
    script->services = services;
    script->limits = limits_with_defaults(limits);
    script_memory_init(script);
    script->binding.cpu_account = script->limits.load_account;
    script->thread.script = script;
    if (services)
        ml_random_init_child(&script->random, services->random);
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

static void free_names(struct ml_script *script)
{
    struct ml_declaration *declaration = &script->declaration;
    free((char *)declaration->name);
    free((char *)declaration->finalizer);
    free(script->field_manager);
    free(script->patch_manager);
    for (size_t i = 0; i < ML_SCRIPT_FORMERLY_MAX; i++) {
        free((char *)declaration->formerly[i]);
        free((char *)declaration->former_finalizers[i]);
        free((char *)script->former_managers[i]);
        free((char *)script->former_patch_managers[i]);
    }
}

static void free_webhooks(struct ml_script_webhooks *webhooks)
{
    for (size_t i = 0; i < webhooks->version_count; i++)
        free((char *)webhooks->versions[i]);
    free((char *)webhooks->namespace_selector);
    free((char *)webhooks->object_selector);
}

static void free_metrics(struct ml_script *script)
{
    for (size_t i = 0; i < script->declaration.metric_count; i++) {
        struct ml_custom_metric *metric = &script->metrics[i];
        free(metric->name);
        free(metric->help);
        for (size_t k = 0; k < metric->label_count; k++)
            free(metric->labels[k]);
    }
    free(script->metrics);
}

static void free_http(struct ml_script *script)
{
    for (size_t i = 0; script->declaration.http && script->declaration.http[i]; i++)
        free(script->declaration.http[i]);
    free(script->declaration.http);
}

size_t script_applied_bytes(const struct script_applied *applied)
{
    return sizeof(*applied) + strlen(applied->key) + 1 + 2 * sizeof(struct ml_map_slot);
}

void script_forget_applied(struct ml_script *script)
{
    ml_map_each (&script->applied, cursor, applied) {
        ml_budget_give(&script->memory, script_applied_bytes(applied));
        free(applied);
    }
    ml_map_fini(&script->applied);
}

void script_free(struct ml_script *script)
{
    if (script->L)
        lua_close(script->L);
    script_cpu_detach();
    for (size_t i = 0; i < script->loaded_count; i++)
        free(script->loaded[i]);
    free(script->loaded);
    free((char *)script->declaration.file);
    free_names(script);
    free_webhooks(&script->declaration.webhooks);
    free_metrics(script);
    free_http(script);
    script_forget_applied(script);
    ml_unkept_fini(&script->unkept);
    script_indexes_free(script);
    ml_repeats_clear(&script->refusals);
    script_release_work(script, 0);
    ml_json_reader_fini(&script->reader);
    ml_assert(script->memory.used == 0);
    free(script);
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

void ml_script_bind(struct ml_script *script, const struct ml_script_binding *binding)
{
    script->binding = *binding;
}

struct ml_str ml_controller_of_manager(const char *manager)
{
    struct ml_str name = ml_str_of(manager);
    if (!ml_str_starts(name, ML_MANAGER_PREFIX))
        return ML_STR("");
    name = ml_str_of(manager + strlen(ML_MANAGER_PREFIX));
    return ml_str_cut(&name, '/');
}

bool ml_declaration_is_called(const struct ml_declaration *declaration, struct ml_str name)
{
    for (const char *const *former = declaration->formerly; *former; former++)
        if (ml_str_is(name, *former))
            return true;
    return ml_str_is(name, declaration->name);
}
