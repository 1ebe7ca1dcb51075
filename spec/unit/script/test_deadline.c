/* The deadline holds wherever the time goes: in recursion, in metamethods, in error handling, in
 * one long step of Lua, in the compiler. Each program runs while a script loads, and in a
 * reconcile. */
#include "script_world.h"

#include <time.h>

#define DEADLINE_MS 40
/* The longest step that cannot be interrupted: a rehash or a collection of all there is, or
 * unwinding a full stack; on a busy machine with sanitizers. */
#define LATE_MS 250

static int64_t cpu_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000 + now.tv_nsec / ML_NS_PER_MS;
}

static const char *const programs[] = {
    "local s = (\"1\"):rep(1000000) while true do local c = s + 1 end",
    "local s = (\" \"):rep(1000000) .. \"1\" while true do local c = s + 1 end",
    "local t = {} for i=1,180 do t = setmetatable({}, {__call = t}) end while true do pcall(t) end",
    "local t = {} setmetatable(t, {__call = t}) while true do pcall(t) end",
    "local s = (\"x\"):rep(1000000) while true do local t = s..s..s..s..s..s end",
    "local function f() local x <close> = setmetatable({}, {__close = function() error(\"x\") "
    "end}) return 1 + f() end while true do pcall(f) end",
    "local m = {} m.__close = function() local x <close> = setmetatable({}, m) error(\"x\") end "
    "local function f() local x <close> = setmetatable({}, m) f() end f()",
    "local m m = {__close = function() while true do end end} local function f(n) local x <close> "
    "= setmetatable({}, m) if n > 0 then f(n-1) end while true do end end f(5000)",
    "local m m = {__close = function() pcall(error) end} local function f() local x <close> = "
    "setmetatable({}, m) f() end while true do pcall(f) end",
    "local m m = {__close = function() local function g() local x <close> = setmetatable({}, m) "
    "g() end pcall(g) end} local function f() local x <close> = setmetatable({}, m) f() end while "
    "true do pcall(f) end",
    "local function deep(n) local x = n if n == 0 then while true do pcall(error) end end local f "
    "= function() return x end return 1 + deep(n-1) end deep(60000)",
    "local a, b = (\"x\"):rep(1000000) .. \"a\", (\"x\"):rep(1000000) .. \"b\" while true do local "
    "c = a < b end",
    "local a, b = (\"\\0\"):rep(1000000) .. \"a\", (\"\\0\"):rep(1000000) .. \"b\" while true do "
    "local c = a < b end",
    "local t t = setmetatable({}, {__concat = function(a, b) return a .. b end}) while true do "
    "pcall(function() return t .. t end) end",
    "local function deep(n) if n == 0 then return pcall(error) end return (deep(n-1)) end while "
    "true do deep(60000) end",
    "local function deep(n) if n == 0 then while true do pcall(error) end end return (deep(n-1)) "
    "end deep(100000)",
    "local function deep(n) if n == 0 then while true do pcall(error, {}) end end return 1 + "
    "deep(n-1) end pcall(deep, 150000) deep(120000)",
    "local m = {} m.__eq = function(a, b) return a == setmetatable({}, m) end while true do "
    "pcall(function() return setmetatable({}, m) == setmetatable({}, m) end) end",
    "local a, b = (\"x\"):rep(1000000) .. \"a\", (\"x\"):rep(1000000) .. \"b\" while true do local "
    "c = a == b end",
    "local function f(n) if n == 0 then while true do pcall(error, \"x\", 100000) end end return 1 "
    "+ f(n-1) end f(100000)",
    "local function f(n) if n == 0 then while true do pcall(error, \"x\", 2) end end return 1 + "
    "f(n-1) end f(100000)",
    "local m = {} m.__tostring = function(s) error(s) end error(setmetatable({}, m))",
    "while true do local x = math.fmod(1e308, 5e-324) + 1e308 % 5e-324 end",
    "for i = 0, 1, 5e-324 do end",
    "for i = math.mininteger, math.maxinteger do end",
    "local t = {} for i = 1, 100000 do t[i] = {} end while true do t[1] = {} end",
    "local t = {} for i = 1, 200 do local u = {} for j = 1, 1000 do u[j] = j end t[i] = u end "
    "while true do for i = 1, 200 do t[i][1] = {} end end",
    "local t = {} for i = 1, 60 do t[1 << i] = 1 end while true do local n = #t end",
    "local function f() return ((\"x\"):gsub(\"x\", f)) end while true do pcall(f) end",
    "local function f() pcall(string.gsub, \"xx\", \"x\", f) end f()",
    "local t = {} for i=1,1990 do t = setmetatable({}, {__index = t}) end while true do local x = "
    "t.a end",
    "local t t = setmetatable({}, {__index = function(_, k) return t[k] end}) while true do "
    "pcall(function() return t.x end) end",
    "local t = setmetatable({}, {__index = function(t, i) return i end}) while true do for i in "
    "ipairs(t) do if i > 100 then break end end end",
    "local t = {} local n = 0 while true do n = n + 1 t[(\"x\"):rep(1000000)] = 1 end",
    "local m = {} m.__lt = function(a, b) return a < b end while true do pcall(function() return "
    "setmetatable({}, m) < setmetatable({}, m) end) end",
    "local t t = setmetatable({}, {__newindex = function(_, k, v) t[k] = v end}) while true do "
    "pcall(function() t.x = 1 end) end",
    "local m = {} m.__pairs = function(t) return pairs(t) end while true do pcall(pairs, "
    "setmetatable({}, m)) end",
    "local m = {} m.__pairs = function(t) pcall(pairs,t) pcall(pairs,t) end pairs(setmetatable({}, "
    "m))",
    "local t = {} for i=1,180 do t[i]=pcall end while true do pcall(table.unpack(t)) end",
    "local function f() return pcall(f) end f() while true do f() end",
    "local function f() pcall(f) pcall(f) end f()",
    "local function f(n) local ok = pcall(f, n) return f(n) end f()",
    "while true do pcall(pcall, pcall, pcall, pcall, error) end",
    "local t = {} for i = 1, 131072 do t[\"k\" .. i] = i end local n = 131072 while true do "
    "t[\"k\" .. (n - 131071)] = nil n = n + 1 t[\"k\" .. n] = n end",
    "local t = {} for i = 1, 131072 do t[i * 7919] = i end local n = 131072 while true do t[(n - "
    "131071) * 7919] = nil n = n + 1 t[n * 7919] = n end",
    "local t = {} for i=1,200000 do t[i]=i end while true do select(-1, table.unpack(t)) end",
    "while true do local t = setmetatable({}, setmetatable({}, {__index = function() end})) local "
    "x = t.x end",
    "local m = {} m.__lt = function(a, b) local t = {} for i=1,1000 do t[i]=setmetatable({}, m) "
    "end table.sort(t) return true end local t = {} for i=1,1000 do t[i]=setmetatable({}, m) end "
    "while true do pcall(table.sort, t) end",
    "local function f() table.sort({1,2,3}, f) end while true do pcall(f) end",
    "local function f() pcall(table.sort, {1,2,3}, f) return true end f()",
    "local function f() return 1 + f() end while true do pcall(f) end",
    "local function f() local ok = pcall(function() local function g() return 1 + g() end g() end) "
    "return 1 + f() end f()",
    "local function g() return 1 + g() end local function f() pcall(g) return 1 + f() end while "
    "true do pcall(f) end",
    "local s = \"return 1\" local c = require \"cjson\" local t = {} for i=1,120 do t = {t} end "
    "while true do c.encode(t) end",
    "local s = (\"f\"):rep(1000000) while true do tonumber(s, 16) tonumber(\"0x\" .. s) end",
    "local s = \"0.\" .. (\"1\"):rep(1000000) .. \"e-5\" while true do tonumber(s) end",
    "local m = {} m.__tostring = function(s) return tostring(s) end while true do pcall(tostring, "
    "setmetatable({}, m)) end",
    "local t = {} for i=1,200000 do t[i]=i end while true do pcall(function(...) local u = {...} "
    "end, table.unpack(t)) end",
    "local t = {} for i=1,200000 do t[i]=i end local function f() return 1 + f(table.unpack(t)) "
    "end while true do pcall(f) end",
    "local s = (\"x\"):rep(1000000) while true do s:upper() s:reverse() s:byte(1, 50000) end",
    "while true do pcall(function() local t = {} for i = 1, 100000 do local x = i t[i] = "
    "function() return x end end error(\"x\") end) end",
    "local s = \"a\" .. (\"\\x80\"):rep(1000000) while true do pcall(function() for _ in "
    "utf8.codes(s, true) do end end) pcall(utf8.offset, s, -1) end",
    "local function f(...) return f(1, ...) end while true do pcall(f) end",
    "local function f(...) return select(\"#\", f(1, ...)) end while true do pcall(f) end",
    "local function f() local ok, e = pcall(f) error(e, 0) end f()",
};

static void check(const char *program, int64_t took, const char *message)
{
    static const char *const ends[] = {"of CPU time",
                                       "overflow",
                                       "of memory",
                                       "too many results",
                                       "error() was called with a table",
                                       "attempt to call"};
    bool told = false;
    for (size_t i = 0; i < ML_COUNT(ends); i++)
        told |= strstr(message, ends[i]) != NULL;
    if (!told)
        fail_msg("'%s' for: %s", message, program);
    if (took > DEADLINE_MS + LATE_MS)
        fail_msg("took %d ms: %s", (int)took, program);
}

static void test_deadline_holds_while_a_script_loads(void **state)
{
    (void)state;
    const struct ml_script_limits limits = {.load_cpu_ns = DEADLINE_MS * ML_NS_PER_MS};
    for (size_t i = 0; i < ML_COUNT(programs); i++) {
        struct ml_err err;
        int64_t before = cpu_ms();
        struct ml_script *script = load_file("t.lua", programs[i], &limits, &err);
        assert_null(script);
        check(programs[i], cpu_ms() - before, err.message);
    }
}

static void test_deadline_holds_in_a_reconcile(void **state)
{
    (void)state;
    const struct ml_script_limits limits = {.run_cpu_ns = DEADLINE_MS * ML_NS_PER_MS};
    for (size_t i = 0; i < ML_COUNT(programs); i++) {
        struct world w;
        struct told told;
        world_open(&w, programs[i], &limits);
        int64_t before = cpu_ms();
        assert_null(world_start(&w, &told));
        int64_t took = cpu_ms() - before;
        assert_int_equal(told.outcome, ML_OUTCOME_ERROR);
        check(programs[i], took, told.message);
        world_close(&w);
    }
}

/* A megabyte of source whose compilation would take seconds, or is long in one piece. */
static void test_deadline_holds_in_the_compiler(void **state)
{
    (void)state;
    static const struct {
        const char *before, *piece, *after;
    } sources[] = {
        {"local a if a then ", "elseif a then ", " end"},
        {"local a local b=a", " and a", ""},
        {"local a local b=a", " and a or a", ""},
        {"local a local b=", "a<1 and ", "a"},
        {"::a:: ", "goto a ", ""},
        {"do ", "goto a ", " ::a:: end"},
        {"local a while true do ", "if a then break end ", " end"},
        {"local a ", "if a then end ", ""},
        {"local t = {", "{},", "}"},
        {"local t = {", "[1]=1,", "}"},
        {"local b = c", ".a", ""},
        {"", "f'' ", ""},
        {"", "f=function() end ", ""},
        {"local a = '", "\\65", "'"},
        {"local a = [[", "x", "]]"},
        {"local a = 0x", "f", ""},
        {"local a = 0.", "1", "e-5"},
        {"", "\n", ""},
        {"--[==[", "x", "]==]"},
    };
    const struct ml_script_limits limits = {.load_cpu_ns = DEADLINE_MS * ML_NS_PER_MS};
    for (size_t i = 0; i < ML_COUNT(sources); i++) {
        size_t len = 0, piece_len = strlen(sources[i].piece);
        ML_AUTO_FREE char *text = ml_alloc(ML_SCRIPT_SOURCE_MAX);
        len = (size_t)sprintf(text, "%s", sources[i].before);
        for (; len + piece_len + 64 < ML_SCRIPT_SOURCE_MAX; len += piece_len)
            memcpy(text + len, sources[i].piece, piece_len);
        strcpy(text + len, sources[i].after);
        struct ml_err err;
        int64_t before = cpu_ms();
        ml_script_unref(load_file("t.lua", text, &limits, &err));
        int64_t took = cpu_ms() - before;
        if (took > DEADLINE_MS + LATE_MS)
            fail_msg("took %d ms: %s", (int)took, sources[i].piece);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deadline_holds_while_a_script_loads),
        cmocka_unit_test(test_deadline_holds_in_a_reconcile),
        cmocka_unit_test(test_deadline_holds_in_the_compiler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
