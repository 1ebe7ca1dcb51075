/* Attempts of a script, and their result: an error, soon. */
#include "script_unit.h"

#include <time.h>

#define DEADLINE_MS 60
#define LATE_MS     1000

static int64_t cpu_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000 + now.tv_nsec / ML_NS_PER_MS;
}

static void test_sandbox_globals_are_the_allow_list(void **state)
{
    (void)state;
    /* Every name of stock Lua 5.4, and whether a script sees it. */
    run_lua(
        "local want = { assert = 1, error = 1, getmetatable = 1, ipairs = 1, math = 1, next = 1,\n"
        "  pairs = 1, pcall = 1, rawequal = 1, rawget = 1, rawlen = 1, rawset = 1, require = 1,\n"
        "  select = 1, setmetatable = 1, string = 1, table = 1, tonumber = 1, tostring = 1,\n"
        "  type = 1, utf8 = 1, _VERSION = 1 }\n"
        "local seen = 0\n"
        "for name in pairs(_ENV) do\n"
        "  if not want[name] then error(name) end\n"
        "  seen = seen + 1\n"
        "end\n"
        "assert(seen == 22, seen)\n"
        "for _, name in ipairs { 'collectgarbage', 'coroutine', 'debug', 'dofile', 'io', 'load',\n"
        "  'loadfile', 'loadstring', 'os', 'package', 'print', 'warn', 'xpcall', '_G' } do\n"
        "  assert(rawget(_ENV, name) == nil, name)\n"
        "end\n"
        "for _, name in ipairs { 'dump', 'pack', 'packsize', 'unpack' } do\n"
        "  assert(string[name] == nil, name)\n"
        "end\n"
        "assert(math.randomseed == nil)\n");
}

static void test_sandbox_endless_code_ends_at_the_deadline(void **state)
{
    (void)state;
    static const char *const attacks[] = {
        /* L1 */ "while true do end",
        "while true do pcall(function() while true do end end) end",
        "local function deep(n) if n == 0 then while true do end end\n"
        "  while true do pcall(deep, n - 1) end end deep(150)",
        "local function f() return f() end f()",
        "for i = 1, math.huge do end",
        "goto a ::a:: goto a",
        "repeat local x <const> = 1 until false",
        /* L7 proxies: a length that never ends */
        "local t = setmetatable({}, { __index = function() return 1 end }) for _ in ipairs(t) do "
        "end",
        /* L8 pattern bombs */
        "local s = ('a'):rep(30000) s:find(('.-'):rep(8) .. 'b')",
        "local s = ('a'):rep(1000000) while true do s:gsub('a', '%0') end",
        "local s = ('a'):rep(40000) for _ in s:gmatch(('a*'):rep(9) .. 'b') do end",
        "local s = ('('):rep(1000000) while true do s:match('%b()') end",
        /* L9 little code, much work */
        "local s = ('x'):rep(1000000) while true do local t = s .. s end",
        "while true do local t = ('x'):rep(1000000) end",
        "local t = {} for i = 1, 50000 do t['k' .. i] = i end while true do pairs(t) end",
        /* L10 */
        "local t = {} for i = 1, 100000 do t[i] = i end\n"
        "while true do table.insert(t, 1, 1) table.remove(t, 1) end",
        "local t = {} for i = 1, 100000 do t[i] = -i end while true do table.sort(t) end",
        "local t = {} for i = 1, 1000 do t[i] = i end\n"
        "while true do table.sort(t, function() return true end) end",
        "while true do table.move({}, 1, 1000000, 2) end",
        /* L21 metamethods and to-be-closed variables that do not end */
        "local x = setmetatable({}, { __index = function(t, k) return t[k .. 'x'] end })\n"
        "while true do pcall(function() return x.a end) end",
        "local x <close> = setmetatable({}, { __close = function() while true do end end })\n"
        "while true do end",
        "local t = setmetatable({}, { __tostring = function() while true do end end })\n"
        "error(tostring(t))",
        "('x'):gsub('x', function() while true do end end)",
        "table.sort({ 3, 2, 1 }, function() while true do end end)",
        "for _ in pairs(setmetatable({}, { __pairs = function() while true do end end })) do end",
        "local c = require 'cjson' local t = {} for i = 1, 30000 do t[i] = { a = i } end\n"
        "while true do c.encode(t) end",
        "local c = require 'cjson' local s = c.encode({ { { a = { b = 'c' } } } })\n"
        "while true do c.decode(s) end",
        "while true do ('%s'):format(('x'):rep(100000)) end",
        "while true do utf8.len(('x'):rep(1000000)) end",
    };
    const struct ml_script_limits limits = {.load_cpu_ns = DEADLINE_MS * ML_NS_PER_MS};
    for (size_t i = 0; i < ML_COUNT(attacks); i++) {
        struct ml_err err;
        int64_t before = cpu_ms();
        assert_null(load_file("t.lua", attacks[i], &limits, &err));
        int64_t took = cpu_ms() - before;
        /* The longest step that cannot be interrupted, with sanitizers and on a busy machine. */
        if (took > DEADLINE_MS + LATE_MS)
            fail_msg("took %d ms: %s", (int)took, attacks[i]);
        bool told = strstr(err.message, "of CPU time") || strstr(err.message, "overflow") ||
                    strstr(err.message, "of memory");
        if (!told)
            fail_msg("'%s' for: %s", err.message, attacks[i]);
    }
}

static void test_sandbox_memory_bomb_ends_at_the_limit(void **state)
{
    (void)state;
    static const char *const attacks[] = {
        "local s = 'x' while true do s = s .. s end",
        "local t = {} for i = 1, 1e9 do t[i] = { i } end",
        "local t = {} for i = 1, 1e9 do t['k' .. i] = i end",
        "local function f(...) return 1 + f(1, ...) end f()",
        "local t = {} while true do pcall(function() while true do t[#t + 1] = ('x'):rep(1000) end "
        "end) end",
        "local t = {} for i = 1, 900000 do t[i] = i end local u = { table.unpack(t) }",
        "local t = {} for i = 1, 1e6 do t[i] = ('x'):rep(1000000) end",
        "local s = ('x'):rep(1000000) for i = 1, 12 do s = s:gsub('x', 'xx') end",
        "local t = {} for i = 1, 1000000 do t[i] = 'abcdefghijkl' end\n"
        "local s = table.concat(t) local u = s .. s .. s",
    };
    /* A state that is nearly full may spend long on its garbage before it is full. */
    const struct ml_script_limits limits = {.memory_max = 4 * 1024 * 1024,
                                            .load_cpu_ns = 30 * ML_NS_PER_S};
    for (size_t i = 0; i < ML_COUNT(attacks); i++) {
        struct ml_err err;
        assert_null(load_file("t.lua", attacks[i], &limits, &err));
        /* Just below its limit Lua collects at each allocation, for as long as there is garbage. */
        bool told = strstr(err.message, "out of memory (limit 4 MiB)") ||
                    strstr(err.message, "overflow") || strstr(err.message, "too many results") ||
                    strstr(err.message, "of CPU time");
        if (!told)
            fail_msg("'%s' for: %s", err.message, attacks[i]);
    }
}

static void test_sandbox_deep_source_is_refused_at_once(void **state)
{
    (void)state;
    static const char *const pieces[] = {"{",   "(",  "not ",       "..x",
                                         "a.b", "[[", "if x then ", "a=a,"};
    for (size_t i = 0; i < ML_COUNT(pieces); i++) {
        size_t piece_len = strlen(pieces[i]), count = 1000 * 1000 / piece_len;
        ML_AUTO_FREE char *text = ml_alloc(count * piece_len + 16);
        size_t len = (size_t)sprintf(text, "return x");
        for (size_t n = 0; n < count; n++, len += piece_len)
            memcpy(text + len, pieces[i], piece_len);
        text[len] = '\0';
        struct ml_err err;
        assert_null(load_file("t.lua", text, NULL, &err));
        assert_null(strstr(err.message, "CPU time"));
    }
}

static void test_sandbox_refusals_say_why(void **state)
{
    (void)state;
    static const struct {
        const char *statements, *want;
    } cases[] = {
        /* L2 */ {"setmetatable({}, { __gc = function() while true do end end })",
                  "t.lua:1: setmetatable: __gc is not available"},
        /* L5 */ {"local s = ('xx'):rep(1 << 50)", "string.rep: the result is larger than 1 MiB"},
        {"local s = ('x'):rep(1024, ('y'):rep(1024))", "larger than 1 MiB"},
        /* L6 */ {"table.move({}, 1, 1 << 50, 2)", "a range of more than 1000000 elements"},
        {"table.unpack({}, 1, 1e7)", "a range of more than 1000000 elements"},
        {"table.concat({}, '', 1, 1 << 40)", "a range of more than 1000000 elements"},
        {"table.insert({}, 5, 1)", "position out of bounds"},
        /* L12 */
        {"local t = "
         "{{{{{{{{{{",
         "t.lua:"},
        /* L15 */ {"getmetatable('').__index = {}", "attempt to index a boolean value"},
        {"setmetatable(require('cjson').decode '{}', {})",
         "the metatable of this table is protected"},
        {"setmetatable(_ENV, {})", "protected"},
        /* L17 */ {"local s = ('%p'):format({})", "no conversion '%p'"},
        {"local s = ('%99999d'):format(1)", "a width or precision has at most two digits"},
        {"local s = ('%d'):format(1.5)", "number has no integer representation"},
        {"local s = ('%s'):format()", "no value for conversion 1"},
        {"require('moonloop').kind('v1', 'Pod').kind = 1", "attempt to index a userdata value"},
        {"local x = require('moonloop').kind('v1', 'Pod').plural",
         "a kind has no 'plural'; it has apiVersion, kind, labels, fields, metadata_only"},
        {"local t = {} setmetatable(t, { __call = t }) t()", "attempt to call a table value"},
        {"require('moonloop').array(5)", "moonloop.array(list): expected a table"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++)
        refuse_lua(cases[i].statements, cases[i].want);
}

/* The usual deep copy: setmetatable accepts what getmetatable gave. */
static void test_sandbox_deep_copies_are_plain_tables(void **state)
{
    (void)state;
    run_lua("local function copy(value)\n"
            "  if type(value) ~= 'table' then return value end\n"
            "  local made = {}\n"
            "  for k, v in pairs(value) do made[copy(k)] = copy(v) end\n"
            "  return setmetatable(made, getmetatable(value))\n"
            "end\n"
            "local cjson = require 'cjson'\n"
            "local read = cjson.decode '{\"spec\":{\"ports\":[1,2],\"name\":\"x\"}}'\n"
            "local made = copy(read)\n"
            "made.spec.name = 'y'\n"
            "assert(cjson.encode(made) == '{\"spec\":{\"name\":\"y\",\"ports\":[1,2]}}')\n"
            "assert(read.spec.name == 'x' and getmetatable(made) == nil)\n"
            "setmetatable(made, {})\n");
    refuse_lua("setmetatable({}, true)", "nil or table expected, got boolean");
}

static void test_sandbox_tells_no_addresses(void **state)
{
    (void)state;
    run_lua(
        "assert(tostring({}) == 'table' and tostring(assert) == 'function')\n"
        "assert(('%s %s'):format({}, true) == 'table true')\n"
        "assert(tostring(require('moonloop').kind('apps/v1', 'Deployment'))\n"
        "  == 'apps/v1/Deployment')\n"
        "assert(tostring(setmetatable({}, { __tostring = function() return 'me' end })) == 'me')\n"
        "assert(getmetatable('') == false)\n"
        "local k = require('moonloop').kind\n"
        "assert(k('v1', 'Pod') == k('v1', 'Pod') and k('v1', 'Pod') ~= k('v2', 'Pod'))\n"
        "assert(k('a.b/v1', 'X').apiVersion == 'a.b/v1' and k('v1', 'X').kind == 'X')\n");
}

static void test_sandbox_string_functions_are_those_of_lua(void **state)
{
    (void)state;
    run_lua("assert(('ab'):rep(3, '-') == 'ab-ab-ab' and ('x'):rep(0) == '' and (''):rep(1 << 50) "
            "== '')\n"
            "assert(('%5.2f|%-4d|%04x|%s|%q|%%'):format(3.14159, 42, 255, 'x', 'a\"\\n\\0001')\n"
            "  == ' 3.14|42  |00ff|x|\"a\\\\\"\\\\\\n\\\\0001\"|%')\n"
            "assert(('%10s|%-5s|%.2s'):format('abc', 'ab', 'abc') == '       abc|ab   |ab')\n"
            "assert(('%c%c'):format(72, 105) == 'Hi' and ('%g'):format(1e20) == '1e+20')\n"
            "assert(('%i'):format(3.0) == '3' and ('%s'):format(nil) == 'nil')\n"
            "assert(#('%s'):format(('x'):rep(5000)) == 5000)\n"
            "assert('10' + 1 == 11 and '2' * '3' == 6)\n");
}

static void test_sandbox_table_functions_are_those_of_lua(void **state)
{
    (void)state;
    run_lua(
        "local t = { 5, 2, 8, 1 }\n"
        "table.sort(t) assert(table.concat(t, ' ') == '1 2 5 8')\n"
        "table.sort(t, function(a, b) return a > b end) assert(table.concat(t, ' ') == '8 5 2 1')\n"
        "table.insert(t, 9) table.insert(t, 1, 0) assert(table.concat(t, ' ') == '0 8 5 2 1 9')\n"
        "assert(table.remove(t) == 9 and table.remove(t, 1) == 0 and #t == 4)\n"
        "assert(table.remove({}) == nil)\n"
        "assert(select('#', table.unpack({ 1, nil, 3 }, 1, 3)) == 3)\n"
        "assert(table.pack(1, nil).n == 2)\n"
        "assert(table.concat(table.move({ 1, 2, 3 }, 1, 3, 2), ' ') == '1 1 2 3')\n"
        "assert(table.concat(table.move({ 1, 2, 3 }, 2, 3, 1), ' ') == '2 3 3')\n"
        "assert(table.concat(table.move({ 1, 2 }, 1, 2, 1, {}), ' ') == '1 2')\n"
        "local big, n = {}, 3000 for i = 1, n do big[i] = i * 7919 % 3001 end table.sort(big)\n"
        "for i = 2, n do assert(big[i - 1] <= big[i]) end\n");
    refuse_lua("table.sort { 1, 'a' }", "attempt to compare");
    refuse_lua("table.concat { {} }", "invalid value (a table) at index 1");
}

static void test_sandbox_random_is_the_hosts(void **state)
{
    (void)state;
    run_lua("for i = 1, 1000 do\n"
            "  local x = math.random() assert(x >= 0 and x < 1)\n"
            "  local n = math.random(3) assert(n >= 1 and n <= 3 and math.type(n) == 'integer')\n"
            "  local m = math.random(-2, 2) assert(m >= -2 and m <= 2)\n"
            "  math.random(math.mininteger, math.maxinteger)\n"
            "end\n");
    refuse_lua("math.random(0)", "interval is empty");
}

static void test_sandbox_state_goes_on_after_its_memory_limit(void **state)
{
    (void)state;
    struct ml_err err;
    const struct ml_script_limits limits = {.memory_max = 8 * 1024 * 1024};
    assert_null(load_file("t.lua", "local s = 'x' while true do s = s .. s end", &limits, &err));
    struct ml_script *script = load_file(
        "t.lua", "for i = 1, 100 do local s = ('x'):rep(1000000) end return {}", &limits, &err);
    if (!script) /* garbage does not count */
        fail_msg("%s", err.message);
    assert_in_range(ml_script_budget(script)->used, 1, limits.memory_max);
    ml_script_unref(script);
}

/* Keys that a table of stock Lua would put into one chain: a remainder that is always the same,
 * floats that differ behind the digits that were hashed. */
static void test_sandbox_chosen_keys_do_not_collide(void **state)
{
    (void)state;
    static const char *const attacks[] = {
        "local m = (1 << 16) - 1 for i = 1, 40000 do t[i * m] = i end",
        "local m = (1 << 15) - 1 for i = 1, 20000 do t[i * m] = i end",
        "for i = 1, 40000 do t[i << 32] = i end",
        "for i = 1, 40000 do t[-i * 65535] = i end",
        "for i = 1, 40000 do t[1.5 + i * 2.0^-50] = i end",
        "for i = 1, 40000 do t[(1 << 60) + 0.0 + i * 2.0^20] = i end",
        "for i = 1, 40000 do t[i + 0.5] = i end",
    };
    for (size_t i = 0; i < ML_COUNT(attacks); i++) {
        struct ml_err err;
        ML_AUTO_FREE char *text = ml_asprintf("local t = {}\n%s\nreturn t", attacks[i]);
        int64_t before = cpu_ms();
        struct ml_script *script = load_file("t.lua", text, NULL, &err);
        int64_t took = cpu_ms() - before;
        if (!script)
            fail_msg("%s: %s", attacks[i], err.message);
        ml_script_unref(script);
        if (took > 200) /* stock Lua: seconds */
            fail_msg("took %d ms: %s", (int)took, attacks[i]);
    }
}

/* __mode put in after setmetatable has looked means nothing. */
static void test_sandbox_no_table_is_weak(void **state)
{
    (void)state;
    run_lua("local modes = { 'k', 'v', 'kv' }\n"
            "for _, mode in ipairs(modes) do\n"
            "  local meta = {}\n"
            "  local t = setmetatable({}, meta)\n"
            "  meta.__mode = mode\n"
            "  for i = 1, 100 do t[{}] = {} t[i] = {} end\n"
            "  for i = 1, 40 do local garbage = ('x'):rep(500000 + i) end\n"
            "  local count = 0\n"
            "  for _ in pairs(t) do count = count + 1 end\n"
            "  assert(count == 200, count)\n"
            "end\n");
}

static void test_sandbox_labels_and_gotos_are_limited(void **state)
{
    (void)state;
    static const struct {
        const char *before, *piece, *after, *want;
    } cases[] = {
        {"do ", "goto a ", " ::a:: end", "too many labels/gotos"},
        {"while true do ", "if a then break end ", "end", "too many labels/gotos"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        size_t piece_len = strlen(cases[i].piece), count = 100 * 1000 / piece_len;
        ML_AUTO_FREE char *text = ml_alloc(count * piece_len + 64);
        size_t len = (size_t)sprintf(text, "%s", cases[i].before);
        for (size_t n = 0; n < count; n++, len += piece_len)
            memcpy(text + len, cases[i].piece, piece_len);
        strcpy(text + len, cases[i].after);
        int64_t before = cpu_ms();
        refuse_lua(text, cases[i].want);
        assert_in_range(cpu_ms() - before, 0, 200);
    }
    run_lua("for i = 1, 3 do if i == 2 then goto next end do break end ::next:: end");
}

/* A finalizer that fails, at the end of the C stack or of the memory, would never run again. */
static void test_sandbox_buffers_are_given_back_wherever_a_script_fails(void **state)
{
    (void)state;
    static const char text[] =
        "local rep, gsub = string.rep, string.gsub\n"
        "local function descend(depth_max, at_the_bottom)\n"
        "  local depth = 0\n"
        "  local function level()\n"
        "    depth = depth + 1\n"
        "    if depth >= depth_max then at_the_bottom() end\n"
        "    return (gsub('x', 'x', level))\n"
        "  end\n"
        "  pcall(level)\n"
        "  return depth\n"
        "end\n"
        "local bottom = descend(1e9)\n"
        "for up = 0, 2 do\n"
        "  descend(bottom - up, function() rep('x', 300000) end)\n"
        "  descend(bottom - up, function() for i = 1, 30000 do local t = { i } end end)\n"
        "end\n";
    run_lua(text); /* unloading aborts when a byte is lost */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sandbox_globals_are_the_allow_list),
        cmocka_unit_test(test_sandbox_endless_code_ends_at_the_deadline),
        cmocka_unit_test(test_sandbox_memory_bomb_ends_at_the_limit),
        cmocka_unit_test(test_sandbox_deep_source_is_refused_at_once),
        cmocka_unit_test(test_sandbox_refusals_say_why),
        cmocka_unit_test(test_sandbox_deep_copies_are_plain_tables),
        cmocka_unit_test(test_sandbox_tells_no_addresses),
        cmocka_unit_test(test_sandbox_string_functions_are_those_of_lua),
        cmocka_unit_test(test_sandbox_table_functions_are_those_of_lua),
        cmocka_unit_test(test_sandbox_random_is_the_hosts),
        cmocka_unit_test(test_sandbox_chosen_keys_do_not_collide),
        cmocka_unit_test(test_sandbox_no_table_is_weak),
        cmocka_unit_test(test_sandbox_labels_and_gotos_are_limited),
        cmocka_unit_test(test_sandbox_buffers_are_given_back_wherever_a_script_fails),
        cmocka_unit_test(test_sandbox_state_goes_on_after_its_memory_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
