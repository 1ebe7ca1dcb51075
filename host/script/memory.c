/* Memory of the host's that a script causes: charged to its budget until it is gone, beside what
 * its Lua state has. */
#include "script/internal.h"

/* A script that is full to the brim collects its garbage for what is new, not each time it asks. */
#define COLLECT_SHARE 16

static void collect_garbage(struct ml_budget *budget)
{
    struct ml_script *script = ml_container_of(budget, struct ml_script, memory);
    if (budget->used < script->collected_at + budget->max / COLLECT_SHARE)
        return;
    lua_gc(script->L, LUA_GCCOLLECT);
    script->collected_at = budget->used;
}

void script_memory_init(struct ml_script *script)
{
    script->memory = (struct ml_budget){.max = script->limits.memory_max,
                                        .pool = script->cluster ? &script->cluster->script_memory
                                                                : NULL,
                                        .pool_grants = SCRIPT_MEMORY_OWN,
                                        .reclaim = collect_garbage};
}

void script_out_of_memory(const struct ml_script *script, struct ml_err *err)
{
    const struct ml_budget *memory = &script->memory;
    size_t kib = (memory->pool_refused ? memory->pool->max : memory->max) / 1024;
    bool whole = kib % 1024 == 0;
    ml_err_set(err, ML_ESCRIPT, "out of memory (limit %zu %s%s)", whole ? kib / 1024 : kib,
               whole ? "MiB" : "KiB", memory->pool_refused ? " for all scripts together" : "");
}

ML_RAISES
static void raise_out_of_memory(lua_State *L)
{
    struct ml_err err;
    script_out_of_memory(script_of(L), &err);
    luaL_error(L, "%s", err.message);
}

ML_RAISES
void script_charge(lua_State *L, size_t bytes)
{
    if (!ml_budget_take(&script_of(L)->memory, bytes))
        raise_out_of_memory(L);
}

static size_t work_space(const struct ml_script *script)
{
    return script->opened.capacity + script->outgoing.capacity + script->overlay.capacity +
           script->body.capacity + script->traceback.capacity + script->reader.unescaped.capacity;
}

ML_RAISES
void script_charge_work(lua_State *L)
{
    struct ml_script *script = script_of(L);
    size_t space = work_space(script);
    if (ML_LIKELY(space <= script->work_charged))
        return;
    if (!ml_budget_take(&script->memory, space - script->work_charged)) {
        script_release_work(script, 0);
        raise_out_of_memory(L);
    }
    script->work_charged = space;
}

void script_release_work(struct ml_script *script, size_t keep)
{
    struct ml_buf *bufs[] = {&script->opened, &script->outgoing, &script->overlay, &script->body,
                             &script->traceback};
    for (size_t i = 0; i < ML_COUNT(bufs); i++)
        if (keep == 0 || bufs[i]->capacity > keep)
            ml_buf_fini(bufs[i]);
    if (keep == 0 || script->reader.unescaped.capacity > keep) {
        ml_json_reader_fini(&script->reader);
        ml_json_reader_init(&script->reader, ML_STR("null"), 0);
    }
    size_t space = work_space(script);
    ml_budget_give(&script->memory, script->work_charged);
    ml_budget_force(&script->memory, space);
    script->work_charged = space;
}

struct ml_budget *ml_script_budget(struct ml_script *script)
{
    return &script->memory;
}
