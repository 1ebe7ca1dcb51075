/* Limits of a script: memory, in its Lua state and in the host because of it, and CPU time.
 *
 * The CPU deadline is a timer on this thread's CPU clock, armed at each entry into Lua (call.c).
 * When it expires, the signal handler sets a hook that ends the run at the next instruction. (A
 * count hook that is always set would cost more than the scripts themselves.) No code of a script
 * can outlast it: a coroutine yields and is never resumed; where it cannot yield the hook stays
 * set, the sandbox's pcall raises again, and loops in C check the flag. */
#include "base/escape.h"
#include "script/internal.h"
#include "script/reads.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

/* ---- memory ---- */

/* A full script collects its garbage again only after its use has grown by max / COLLECT_SHARE. */
#define COLLECT_SHARE 16

static void collect_script_garbage(struct ml_budget *budget)
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
                                        .pool = script->services ? &script->services->script_memory
                                                                 : NULL,
                                        .pool_grants = SCRIPT_MEMORY_OWN,
                                        .reclaim = collect_script_garbage};
}

void script_out_of_memory(const struct ml_script *script, struct ml_err *err)
{
    const struct ml_budget *memory = &script->memory;
    size_t kib = (memory->pool_refused ? memory->pool->max : memory->max) / 1024;
    bool whole = kib % 1024 == 0;
    ml_err_set(err, ML_ESCRIPT, "out of memory (limit %zu %s%s)", whole ? kib / 1024 : kib,
               whole ? "MiB" : "KiB", memory->pool_refused ? " for all scripts together" : "");
}

ML_RAISES void script_raise_out_of_memory(lua_State *L)
{
    struct ml_err err;
    reads_give_up(script_reads_now(L), "memory"); /* the script may catch the error */
    script_out_of_memory(script_of(L), &err);
    luaL_error(L, "%s", err.message);
}

ML_RAISES void script_charge(lua_State *L, size_t bytes)
{
    if (!ml_budget_take(&script_of(L)->memory, bytes))
        script_raise_out_of_memory(L);
}

static size_t work_space_bytes(const struct ml_script *script)
{
    return script->opened.capacity + script->outgoing.capacity + script->overlay.capacity +
           script->body.capacity + script->traceback.capacity + script->reader.unescaped.capacity +
           script->spans.capacity * sizeof(struct ml_json_span);
}

ML_RAISES void script_charge_work(lua_State *L)
{
    struct ml_script *script = script_of(L);
    size_t space = work_space_bytes(script);
    if (ML_LIKELY(space <= script->work_charged))
        return;
    if (!ml_budget_take(&script->memory, space - script->work_charged)) {
        script_release_work(script, 0);
        script_raise_out_of_memory(L);
    }
    script->work_charged = space;
}

/* False when the work spaces have grown by more than the script has left. */
static bool recharge_work(struct ml_script *script)
{
    size_t space = work_space_bytes(script), charged = script->work_charged;
    bool fits = space <= charged || ml_budget_fits(&script->memory, space - charged);
    ml_budget_give(&script->memory, charged);
    ml_budget_force(&script->memory, space);
    script->work_charged = space;
    return fits;
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
    if (keep == 0 || script->spans.capacity * sizeof(struct ml_json_span) > keep)
        ml_json_spans_fini(&script->spans);
    if (!recharge_work(script) && keep > 0)
        script_release_work(script, 0);
}

static void release_opened(struct ml_script *script, size_t keep)
{
    if (script->opened.capacity > keep)
        ml_buf_fini(&script->opened);
    if (script->spans.capacity * sizeof(struct ml_json_span) > keep)
        ml_json_spans_fini(&script->spans);
}

void script_release_opened(struct ml_script *script)
{
    release_opened(script, SCRIPT_WORK_KEPT);
    if (recharge_work(script))
        return;
    release_opened(script, 0);
    (void)recharge_work(script);
}

struct ml_budget *ml_script_budget(struct ml_script *script)
{
    return &script->memory;
}

/* ---- the place of running code ---- */

#define TRACEBACK_LEVELS_MAX 24
#define TRACEBACK_NAME_MAX   64 /* bytes of a function's name; a script may choose a megabyte */

/* Escaped: no name begins a line of its own. */
static void write_name(const lua_Debug *activation, struct ml_buf *out)
{
    ml_buf_printf(out, "%s '", activation->namewhat);
    ml_escape_text(out, ml_str_head(ml_str_of(activation->name), TRACEBACK_NAME_MAX));
    ml_buf_puts(out, "'\n");
}

/* "cnat.lua:12: in function 'due'" per level, as luaL_traceback says it, without addresses. */
static void write_traceback(lua_State *L, struct ml_buf *out)
{
    ml_buf_clear(out);
    lua_Debug activation;
    for (int level = 0; level < TRACEBACK_LEVELS_MAX; level++) {
        if (!lua_getstack(L, level, &activation))
            return;
        lua_getinfo(L, "Sln", &activation);
        if (activation.what[0] == 'C')
            ml_buf_puts(out, "[host]: in ");
        else
            ml_buf_printf(out, "%s:%d: in ", activation.short_src, activation.currentline);
        if (activation.name)
            write_name(&activation, out);
        else if (activation.what[0] == 'm')
            ml_buf_puts(out, "main chunk\n");
        else
            ml_buf_printf(out, "function <%d>\n", activation.linedefined);
    }
    ml_buf_puts(out, "...\n");
}

bool script_running_place(lua_State *L, char *out, size_t size)
{
    lua_Debug activation;
    out[0] = '\0';
    for (int level = 0; lua_getstack(L, level, &activation); level++) {
        lua_getinfo(L, "Sl", &activation);
        if (activation.currentline <= 0 || strncmp(activation.short_src, "moonloop/", 9) == 0)
            continue;
        snprintf(out, size, "%s:%d", activation.short_src, activation.currentline);
        return true;
    }
    return false;
}

void script_note_place(lua_State *L)
{
    struct ml_script *script = script_of(L);
    write_traceback(L, &script->traceback);
    (void)script_running_place(L, script->place, sizeof(script->place));
}

bool script_has_place(const char *message)
{
    const char *space = strchr(message, ' ');
    const char *colon = memchr(message, ':', space ? (size_t)(space - message) : 0);
    return colon && colon[1] >= '0' && colon[1] <= '9' && space[-1] == ':';
}

/* ---- CPU time ---- */

/* Nothing else in the process uses this signal; it comes only while Lua runs. */
#define CPU_SIGNAL SIGVTALRM

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* The one mutable global of the layer: a signal handler cannot be handed anything better, and
 * a thread has one CPU clock. Lua is never entered from within Lua, so one entry is enough. */
static struct {
    timer_t timer;
    size_t scripts;
    lua_State *volatile running;
    volatile sig_atomic_t expired;
    bool stopped;      /* the deadline has ended the code */
    size_t late_bytes; /* allocated since `expired` */
    int64_t budget_ns;
    int stretch; /* how many times its budget the code has */
} cpu;

/* A script past its deadline may still allocate this much while it ends: a message, a place, a few
 * frames. */
#define LATE_BYTES_MAX ((size_t)64 * 1024)

#define STRESS_HEAP ((size_t)384 * 1024) /* below this size each new object causes a collection */
#ifdef MOONLOOP_GC_STRESS
#define STRESS_STRETCH 40 /* times the CPU budget: most of the time goes into collections */
#else
#define STRESS_STRETCH 1
#endif
#define COVERAGE_STRETCH 10 /* a call of C at each line takes several times as long */

/* Past its deadline a script is refused memory, which ends functions in C that forget to check the
 * flag. */
static bool is_past_deadline(size_t more)
{
    if (!cpu.expired || !cpu.running)
        return false;
    cpu.late_bytes += more;
    return cpu.late_bytes > LATE_BYTES_MAX;
}

/* Finds values that C uses without anchoring them. Refuses memory for each new object once; Lua
 * then collects all garbage and asks again (the buffers of lauxlib.h would not, so only objects).
 * Less often where the heap is large, or it would take hours. */
static bool stress_refuses(struct ml_budget *memory, bool is_object)
{
    struct script_stress *stress = &ml_container_of(memory, struct ml_script, memory)->stress;
    if (!stress->on || !is_object)
        return false;
    if (stress->refused) {
        stress->refused = false;
        return false;
    }
    if (stress->until_next-- > 0)
        return false;
    size_t large = memory->used / STRESS_HEAP;
    stress->until_next = large * large;
    stress->refused = true;
    return true;
}

void *script_allocate(void *ud, void *ptr, size_t osize, size_t nsize)
{
    struct ml_budget *memory = ud;
    size_t held = ptr ? osize : 0; /* when ptr is NULL, osize is a type tag */
    if (nsize == 0) {
        free(ptr);
        ml_budget_give(memory, held);
        return NULL;
    }
    if (nsize > held && !ml_budget_fits(memory, nsize - held))
        return NULL; /* Lua collects all garbage and asks again, then raises */
    if (nsize > held &&
        (is_past_deadline(nsize - held) || stress_refuses(memory, !ptr && osize > 0)))
        return NULL;
    ptr = ml_realloc(ptr, nsize);
    if (nsize > held)
        ml_budget_force(memory, nsize - held);
    else
        ml_budget_give(memory, held - nsize);
    return ptr;
}

/* Ends what runs on L, without allocating; call.c reports why. A coroutine yields and is never
 * resumed: raising an error instead would take seconds through 20,000 nested pcalls, as Lua's time
 * to leave each grows with their number. Where L cannot yield, as in a callback of C, at most 200
 * levels are nested and every pcall of the sandbox raises again. Called from a hook, this returns
 * and Lua yields. */
ML_RAISES static void stop_script(lua_State *L)
{
    if (!cpu.stopped)
        script_note_place(L); /* now: yielding from a hook steps back one instruction */
    cpu.stopped = true;
    if (lua_isyieldable(L)) {
        lua_yield(L, 0);
        return;
    }
    lua_pushnil(L);
    lua_error(L);
}

ML_RAISES static void stop_at_instruction(lua_State *L, lua_Debug *activation ML_UNUSED)
{
    stop_script(L);
}

/* lua_sethook may be called from a signal handler (lua.c does so on ^C). */
static void cpu_rings(int signo ML_UNUSED, siginfo_t *info ML_UNUSED, void *context ML_UNUSED)
{
    lua_State *L = cpu.running;
    if (!L)
        return;
    cpu.expired = 1;
    lua_sethook(L, stop_at_instruction, LUA_MASKCOUNT, 1);
}

void script_cpu_attach(void)
{
    if (cpu.scripts++ > 0)
        return;
    struct sigaction action = {.sa_sigaction = cpu_rings, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigemptyset(&action.sa_mask);
    int r = sigaction(CPU_SIGNAL, &action, NULL);
    ml_assert(r == 0);
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = CPU_SIGNAL};
    event.sigev_notify_thread_id = gettid();
    r = timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &cpu.timer);
    ml_assert(r == 0);
}

void script_cpu_detach(void)
{
    ml_assert(cpu.scripts > 0);
    if (--cpu.scripts == 0)
        timer_delete(cpu.timer);
}

static int64_t timer_set(int64_t delay_ns)
{
    struct itimerspec left, set = {.it_value = {.tv_sec = (time_t)(delay_ns / ML_NS_PER_S),
                                                .tv_nsec = (long)(delay_ns % ML_NS_PER_S)}};
    int r = timer_settime(cpu.timer, 0, &set, &left);
    ml_assert(r == 0);
    return left.it_value.tv_sec * ML_NS_PER_S + left.it_value.tv_nsec;
}

/* Lines of the library have names that no file of a script has. */
static void note_line(lua_State *L, lua_Debug *activation)
{
    struct ml_coverage *coverage = script_of(L)->services->coverage;
    lua_getinfo(L, "S", activation);
    coverage->runs(coverage, activation->source + 1, activation->currentline);
}

/* The hook of the deadline takes the place of this one. */
static void follow_lines(lua_State *L)
{
    const struct ml_services *services = script_of(L)->services;
    cpu.stretch = STRESS_STRETCH;
    if (!services || !services->coverage)
        return;
    cpu.stretch *= COVERAGE_STRETCH;
    lua_sethook(L, note_line, LUA_MASKLINE, 0);
}

/* Notes the version that is running, for operator/crash_marker.c to read after the process has
 * died. */
static void mark_at_work(const struct ml_script *script, uint64_t version)
{
    if (script->limits.at_work)
        *script->limits.at_work = version;
}

void script_cpu_begin(lua_State *L, int64_t budget_ns)
{
    ml_assert(!cpu.running);
    mark_at_work(script_of(L), script_of(L)->limits.version);
    cpu.expired = 0;
    cpu.stopped = false;
    cpu.late_bytes = 0;
    follow_lines(L);
    cpu.budget_ns = ML_MAX(budget_ns, ML_NS_PER_MS) * cpu.stretch;
    cpu.running = L;
    timer_set(cpu.budget_ns);
}

bool script_cpu_stopped(void)
{
    return cpu.stopped;
}

int64_t script_cpu_end(enum script_deadline *out_deadline)
{
    /* A pending signal reaches this thread before the call returns; none comes later. */
    int64_t left = timer_set(0);
    lua_State *L = cpu.running;
    cpu.running = NULL;
    mark_at_work(script_of(L), 0);
    if (cpu.expired)
        lua_sethook(L, NULL, 0, 0);
    *out_deadline = cpu.stopped ? DEADLINE_STOPPED : cpu.expired ? DEADLINE_RANG : DEADLINE_KEPT;
    cpu.expired = 0;
    int64_t used_ns = *out_deadline != DEADLINE_KEPT ? cpu.budget_ns : cpu.budget_ns - left;
    return used_ns / cpu.stretch;
}

bool script_cpu_expired(void)
{
    return cpu.expired;
}

ML_RAISES void script_cpu_check(lua_State *L)
{
    if (ML_UNLIKELY(cpu.expired))
        stop_script(L);
}
