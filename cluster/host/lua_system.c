/* cluster.host: clock, random numbers, digests, base64 and log for the server's Lua, and
 * host.after and host.defer, whose functions the loop calls. */
#include <malloc.h>
#include <sys/random.h>

#include "base/escape.h"
#include "cluster/host/server_lua_internal.h"
#include "codec/base64.h"
#include "codec/crypto.h"
#include "codec/rfc3339.h"

#define SECRET_MAX     256 /* bytes; getrandom never returns fewer */
#define LOG_FIELDS_MAX 16
#define TIMER          "moonloop.timer"
#define TURN_NS        (10 * ML_NS_PER_MS)

/* base64.encode(s) -> s */
ML_RAISES static int base64_encode(lua_State *L)
{
    struct ml_str bytes = binding_check_str(L, 1);
    struct ml_buf *out = binding_clear_work(L);
    if (!ml_base64_encode(bytes, out))
        return luaL_error(L, "base64.encode: too large");
    lua_pushlstring(L, out->ptr, out->len);
    return 1;
}

/* base64.decode(s) -> s | nil */
ML_RAISES static int base64_decode(lua_State *L)
{
    struct ml_str text = binding_check_str(L, 1);
    struct ml_buf *out = binding_clear_work(L);
    if (ml_base64_decode(text, out))
        lua_pushlstring(L, out->ptr, out->len);
    else
        lua_pushnil(L);
    return 1;
}

/* sha256(s) -> lowercase hex */
ML_RAISES static int system_sha256(lua_State *L)
{
    unsigned char digest[ML_SHA256_LEN];
    struct ml_buf *out = binding_clear_work(L);
    ml_sha256(binding_check_str(L, 1), digest);
    ml_hex_encode((struct ml_str){(const char *)digest, sizeof digest}, out);
    lua_pushlstring(L, out->ptr, out->len);
    return 1;
}

/* hmac_sha256(key, s) -> raw bytes */
ML_RAISES static int system_hmac_sha256(lua_State *L)
{
    struct ml_str key = binding_check_str(L, 1), bytes = binding_check_str(L, 2);
    luaL_argcheck(L, key.len <= INT32_MAX, 1, "too long a key");
    unsigned char digest[ML_SHA256_LEN];
    ml_hmac_sha256(key, bytes, digest);
    lua_pushlstring(L, (const char *)digest, sizeof digest);
    return 1;
}

static int push_seconds(lua_State *L, int64_t ns)
{
    lua_pushnumber(L, (double)ns / (double)ML_NS_PER_S);
    return 1;
}

/* now() -> wall seconds */
static int system_now(lua_State *L)
{
    return push_seconds(L, ml_clock_wall(server_lua_of(L)->options.clock));
}

/* monotonic() -> seconds */
static int system_monotonic(lua_State *L)
{
    return push_seconds(L, ml_clock_monotonic(server_lua_of(L)->options.clock));
}

/* timestamp() -> "2026-07-03T10:00:00Z" */
static int system_timestamp(lua_State *L)
{
    char text[ML_RFC3339_LEN + 1];
    ml_rfc3339_format(ml_clock_wall(server_lua_of(L)->options.clock), text);
    lua_pushlstring(L, text, ML_RFC3339_LEN);
    return 1;
}

/* timestamp_micro() -> "2026-07-03T10:00:00.000000Z" */
static int system_timestamp_micro(lua_State *L)
{
    char text[ML_RFC3339_MICRO_LEN + 1];
    ml_rfc3339_format_micro(ml_clock_wall(server_lua_of(L)->options.clock), text);
    lua_pushlstring(L, text, ML_RFC3339_MICRO_LEN);
    return 1;
}

/* random(n) -> integer in [0, n) */
ML_RAISES static int system_random(lua_State *L)
{
    lua_Integer n = luaL_checkinteger(L, 1);
    luaL_argcheck(L, n > 0, 1, "above 0");
    lua_pushinteger(L, ml_random_between(server_lua_of(L)->options.random, 0, n));
    return 1;
}

/* uuid() -> version 4 */
static int system_uuid(lua_State *L)
{
    char text[ML_UUID_LEN + 1];
    ml_random_uuid(server_lua_of(L)->options.random, text);
    lua_pushlstring(L, text, ML_UUID_LEN);
    return 1;
}

/* secret(n) -> n bytes from the kernel, never from the random seam */
ML_RAISES static int system_secret(lua_State *L)
{
    lua_Integer n = luaL_checkinteger(L, 1);
    luaL_argcheck(L, n > 0 && n <= SECRET_MAX, 1, "1 to 256 bytes");
    char bytes[SECRET_MAX];
    ssize_t got = getrandom(bytes, (size_t)n, 0);
    ml_assert(got == n);
    lua_pushlstring(L, bytes, (size_t)n);
    return 1;
}

/* [+1 each] Collects the fields of the table at `index`, sorted by key: strings as they are, other
 * values as JSON. Both stay on the stack, because `fields` points into them. */
ML_RAISES static size_t gather_log_fields(lua_State *L, int index, struct ml_field *fields)
{
    size_t count = 0;
    luaL_checkstack(L, 2 * LOG_FIELDS_MAX + LUA_MINSTACK, NULL);
    lua_pushnil(L);
    while (lua_next(L, index)) {
        if (count == LOG_FIELDS_MAX || lua_type(L, -2) != LUA_TSTRING)
            luaL_argerror(L, index, "up to 16 fields, with strings as keys");
        struct ml_field field = {.key = lua_tostring(L, -2), .type = ML_FIELD_STR};
        if (lua_type(L, -1) != LUA_TSTRING) {
            struct ml_err err;
            field.type = ML_FIELD_RAW;
            if (binding_encode_json(L, -1, &err) < 0)
                luaL_error(L, "log: %s: %s", field.key, err.message);
            const struct ml_buf *out = &server_lua_of(L)->encoder.out;
            lua_pushlstring(L, out->ptr, out->len);
            lua_replace(L, -2);
        }
        field.str.ptr = lua_tolstring(L, -1, &field.str.len);
        size_t place = count++;
        for (; place > 0 && strcmp(fields[place - 1].key, field.key) > 0; place--)
            fields[place] = fields[place - 1];
        fields[place] = field;
        lua_pushvalue(L, -2); /* the key again, for lua_next; key and value stay below */
    }
    return count;
}

/* escape(s) -> s with control characters escaped, safe for a line of a terminal */
ML_RAISES static int system_escape(lua_State *L)
{
    struct ml_str text = binding_check_str(L, 1);
    struct ml_buf *out = binding_clear_work(L);
    if (!ml_escape_text(out, text))
        return luaL_error(L, "escape: too large");
    lua_pushlstring(L, out->ptr, out->len);
    return 1;
}

/* log(level, message, fields?) */
ML_RAISES static int system_log(lua_State *L)
{
    enum ml_log_level level;
    const char *name = luaL_checkstring(L, 1), *message = luaL_checkstring(L, 2);
    luaL_argcheck(L, ml_log_level_parse(name, &level), 1, "debug, info, warn or error");
    const struct ml_server_lua_options *options = &server_lua_of(L)->options;
    if (!options->log || level < options->log->level)
        return 0;
    struct ml_field fields[LOG_FIELDS_MAX + 1] = {{.key = NULL}};
    size_t count = 0;
    if (!lua_isnoneornil(L, 3)) {
        luaL_checktype(L, 3, LUA_TTABLE);
        count = gather_log_fields(L, 3, fields);
    }
    fields[count].key = NULL;
    ml_log_write(options->log, level, options->logger ? options->logger : "lua", message, fields);
    return 0;
}

/* release_memory(): pages of it lie free between those that stay, so the allocator is asked to
 * give them back. */
ML_RAISES static int system_release_memory(lua_State *L)
{
    lua_gc(L, LUA_GCCOLLECT);
    malloc_trim(0);
    return 0;
}

void binding_add_misc(lua_State *L)
{
    static const luaL_Reg base64[] = {
        {"encode", base64_encode}, {"decode", base64_decode}, {NULL, NULL}};
    static const luaL_Reg functions[] = {{"sha256", system_sha256},
                                         {"hmac_sha256", system_hmac_sha256},
                                         {"now", system_now},
                                         {"monotonic", system_monotonic},
                                         {"timestamp", system_timestamp},
                                         {"timestamp_micro", system_timestamp_micro},
                                         {"random", system_random},
                                         {"uuid", system_uuid},
                                         {"secret", system_secret},
                                         {"escape", system_escape},
                                         {"log", system_log},
                                         {"release_memory", system_release_memory},
                                         {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
    luaL_newlib(L, base64);
    lua_setfield(L, -2, "base64");
}

/* ---- timers and deferred functions ---- */

/* A full userdata with the function as its user value. The registry holds it, under its own
 * address, while it is pending. */
struct timer {
    struct ml_list node;
    struct ml_server_lua *lua;
    struct ml_timer timer;
};

ML_RAISES static void check_has_loop(lua_State *L)
{
    if (!server_lua_of(L)->options.loop)
        luaL_error(L, "there is no event loop to wait on");
}

static void timer_call_function(void *context)
{
    struct timer *timer = context;
    lua_State *L = timer->lua->running;
    binding_push_callback(L, timer, 1);
    binding_release(L, timer);
    binding_call_back(timer->lua, 0);
}

/* after(seconds, fn) -> timer */
ML_RAISES static int system_after(lua_State *L)
{
    int64_t delay = binding_check_seconds(L, 1);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    check_has_loop(L);
    struct timer *timer = lua_newuserdatauv(L, sizeof *timer, 1);
    timer->lua = server_lua_of(L);
    ml_timer_init(&timer->timer, timer->lua->options.loop, timer_call_function, timer);
    ml_list_push(&timer->lua->timers, &timer->node);
    luaL_setmetatable(L, TIMER);
    lua_pushvalue(L, 2);
    lua_setiuservalue(L, -2, 1);
    binding_hold(L, timer);
    ml_timer_start(&timer->timer, delay);
    return 1;
}

static void timer_cancel(struct timer *timer)
{
    ml_timer_stop(&timer->timer);
    binding_release(timer->lua->running, timer);
}

/* timer:stop(): cancels it; safe at any time */
ML_RAISES static int timer_stop(lua_State *L)
{
    timer_cancel(luaL_checkudata(L, 1, TIMER));
    return 0;
}

static int timer_gc(lua_State *L)
{
    struct timer *timer = lua_touserdata(L, 1);
    ml_timer_stop(&timer->timer);
    ml_list_remove(&timer->node);
    return 0;
}

/* The queue is a table in the registry, under its own address. */
static void queue_empty(struct ml_server_lua *lua, struct server_lua_queue *queue)
{
    lua_State *L = lua->running;
    queue->first = queue->last = 0;
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, queue);
}

/* [-1] Puts the value on top at the end. */
static void queue_push(lua_State *L, struct ml_server_lua *lua, struct server_lua_queue *queue)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, queue);
    lua_insert(L, -2);
    lua_rawseti(L, -2, ++queue->last);
    lua_pop(L, 1);
    ml_task_defer(&lua->deferred, lua->options.loop);
}

/* [+1] The first value. */
static void queue_take(lua_State *L, struct server_lua_queue *queue)
{
    lua_Integer place = ++queue->first;
    lua_rawgetp(L, LUA_REGISTRYINDEX, queue);
    lua_rawgeti(L, -1, place);
    lua_pushnil(L);
    lua_rawseti(L, -3, place);
    lua_remove(L, -2);
}

/* A small table again, with indices from 1, when there is nothing in it. */
static void queue_settle(struct ml_server_lua *lua, struct server_lua_queue *queue)
{
    if (queue->first == queue->last)
        queue_empty(lua, queue);
    else
        ml_task_defer(&lua->deferred, lua->options.loop);
}

/* Resumes a thread that gave way. */
static void resume_next_thread(struct ml_server_lua *lua)
{
    lua_State *L = lua->running;
    queue_take(L, &lua->threads);
    if (binding_resume(lua, lua_tothread(L, -1), 0) < 0)
        binding_report_failure(lua);
    lua_pop(L, 1);
}

static void call_next_function(struct ml_server_lua *lua)
{
    queue_take(lua->running, &lua->functions);
    binding_call_back(lua, 0);
}

static bool is_turn_over(const struct ml_server_lua *lua)
{
    return ml_clock_monotonic(lua->options.clock) - lua->turn_began >= TURN_NS;
}

/* Calls the functions and resumes the threads that wait so far, in turn: a request that gives way
 * needs many turns, and must not wait for hundreds of pods that are to be started before each. All
 * that these defer runs in the next turn of the loop, and so does the rest after TURN_NS. */
static void call_deferred(void *context)
{
    struct ml_server_lua *lua = context;
    lua_Integer last_function = lua->functions.last, last_thread = lua->threads.last;
    int64_t end = ml_clock_monotonic(lua->options.clock) + TURN_NS;
    bool any = true;
    while (any && ml_clock_monotonic(lua->options.clock) < end) {
        any = false;
        if (lua->threads.first < last_thread) {
            resume_next_thread(lua);
            any = true;
        }
        if (lua->functions.first < last_function) {
            call_next_function(lua);
            any = true;
        }
    }
    queue_settle(lua, &lua->functions);
    queue_settle(lua, &lua->threads);
}

void binding_forget_timers(struct ml_server_lua *lua)
{
    ml_list_each (node, &lua->timers)
        timer_cancel(ml_container_of(node, struct timer, node));
    ml_task_cancel(&lua->deferred);
    queue_empty(lua, &lua->functions);
    queue_empty(lua, &lua->threads);
}

/* defer(fn) */
ML_RAISES static int system_defer(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    check_has_loop(L);
    struct ml_server_lua *lua = server_lua_of(L);
    lua_pushvalue(L, 1);
    queue_push(L, lua, &lua->functions);
    return 0;
}

/* give_way(): when the call from the loop that runs this has lasted TURN_NS, goes on in a later
 * turn of the loop. Only on the thread that the loop called, never in a coroutine of Lua's own. */
ML_RAISES static int system_give_way(lua_State *L)
{
    struct ml_server_lua *lua = server_lua_of(L);
    if (!lua->options.loop || !lua_isyieldable(L) || !is_turn_over(lua))
        return 0;
    ml_assert(L == lua->running);
    lua_pushthread(L);
    queue_push(L, lua, &lua->threads);
    lua_settop(L, 0);
    return lua_yield(L, 0);
}

void binding_add_timers(lua_State *L)
{
    static const luaL_Reg methods[] = {{"stop", timer_stop}, {NULL, NULL}};
    struct ml_server_lua *lua = server_lua_of(L);
    ml_list_init(&lua->timers);
    ml_task_init(&lua->deferred, call_deferred, lua);
    queue_empty(lua, &lua->functions);
    queue_empty(lua, &lua->threads);
    binding_new_type(L, TIMER, methods, timer_gc);
    lua_pushcfunction(L, system_after);
    lua_setfield(L, -2, "after");
    lua_pushcfunction(L, system_defer);
    lua_setfield(L, -2, "defer");
    lua_pushcfunction(L, system_give_way);
    lua_setfield(L, -2, "give_way");
}
