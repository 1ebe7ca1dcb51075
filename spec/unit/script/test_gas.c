/* The cost of one call: with any argument, a call of a function of C is over soon after the
 * deadline. Measured as CPU time of this thread, so that a busy machine changes nothing. */
#include "script_unit.h"

#ifndef MOONLOOP_CPU_STRETCH
#define MOONLOOP_CPU_STRETCH 1
#endif

#define DEADLINE_NS (20 * ML_NS_PER_MS * MOONLOOP_CPU_STRETCH)

/* The statements end by success or error; the CPU they took until then. */
static int64_t measure(const char *statements)
{
    const struct ml_script_limits limits = {.load_cpu_ns = DEADLINE_NS};
    ML_AUTO_FREE char *text = ml_asprintf("%s\nreturn {}", statements);
    struct ml_err err;
    int64_t begin_ns = unit_cpu_ns();
    struct ml_script *script = load_file("t.lua", text, &limits, &err);
    int64_t used_ns = unit_cpu_ns() - begin_ns;
    ml_script_unref(script);
    return used_ns;
}

static void expect_held(const char *const *attacks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int64_t used_ns = measure(attacks[i]);
        if (used_ns > 2 * DEADLINE_NS) /* once more: a virtual machine's CPU clock may leap */
            used_ns = ML_MIN(used_ns, measure(attacks[i]));
        if (used_ns > 2 * DEADLINE_NS)
            fail_msg("%d ms of CPU with a deadline of %d ms: %s", (int)(used_ns / ML_NS_PER_MS),
                     (int)(DEADLINE_NS / ML_NS_PER_MS), attacks[i]);
    }
}

static void test_patterns_pay_for_the_bytes_they_look_at(void **state)
{
    (void)state;
    static const char *const attacks[] = {
        /* a frontier with a large set at each place */
        "local set = ('%a'):rep(7000) local s = ('1'):rep(200000) s:find('%f[' .. set .. ']')",
        /* a set that is passed over for each character */
        "local s = ('\\1'):rep(500000) s:find('[' .. ('a-z'):rep(5000) .. ']*$')",
        "local s = ('\\1'):rep(500000) s:find('[' .. ('%w'):rep(7000) .. ']')",
        "local s = ('a'):rep(500000) s:gsub('[^' .. ('%d'):rep(7000) .. ']-b', '')",
        /* its end is looked for again and again */
        "local s = ('a'):rep(500000) s:find('a?[' .. ('b'):rep(15000) .. ']')",
        "local p = '[' .. ('b'):rep(1000000) .. ']' local s = ('a'):rep(100000) s:find(p)",
        /* the text of a capture again: a comparison as long as the text at each place */
        "local s = ('a'):rep(400000) s:find('(a*)%1b')",
        "local s = ('a'):rep(400000) s:find('(.-)%1%1b')",
        "local s = ('a'):rep(1000000) s:match('^(a*).-%1x')",
        /* brackets that never close, from each place */
        "local s = ('('):rep(1000000) s:find('%b()')",
        "local s = ('('):rep(1000000) s:gsub('%b()', '')",
        /* a replacement that costs much and makes little */
        "local r = ('%1'):rep(500000) ; ('a'):rep(1000):gsub('()', r)",
        "local r = ('%1'):rep(500000) ; ('a'):rep(1000):gsub('(b?)', r)",
        "local r = ('%%'):rep(500000) ; ('a'):rep(1000):gsub('a', r)",
        /* captures as long as the subject */
        "local s = ('a'):rep(400000) while true do s:find('((((((((a*))))))))') end",
    };
    expect_held(attacks, ML_COUNT(attacks));
}

static void test_sorting_pays_for_its_comparisons(void **state)
{
    (void)state;
    static const char *const attacks[] = {
        /* strings that differ in their last byte only */
        "local t = {} for i = 1, 60 do t[i] = ('x'):rep(200000) .. i end\n"
        "local all = {} for i = 1, 20000 do all[i] = t[i % 60 + 1] end table.sort(all)",
        "local t = {} for i = 1, 60 do t[('x'):rep(200000) .. i] = 1 end while true do pairs(t) "
        "end",
        "local t = {} for i = 1, 100000 do t['k' .. i] = i end while true do pairs(t) end",
        "local t = {} for i = 1, 100000 do t['k' .. i] = i end while true do next(t, 'k1') end",
        "local t = {} for i = 1, 60000 do t[i + 0.5] = i end while true do next(t, 1.5) end",
        "local t = {} for i = 1, 300000 do t[i] = i end while true do table.pack(table.unpack(t)) "
        "end",
        "local t = {} for i = 1, 200000 do t[i] = '' end while true do table.concat(t) end",
        "local t = {} for i = 1, 300000 do t[i] = '' end table.concat(t, ('x'):rep(1000000))",
    };
    expect_held(attacks, ML_COUNT(attacks));
}

/* The linker puts this in between (--wrap). */
struct lua_State;
static size_t looks;
void __real_script_cpu_check(struct lua_State *L);
void __wrap_script_cpu_check(struct lua_State *L);
void __wrap_script_cpu_check(struct lua_State *L)
{
    looks++;
    __real_script_cpu_check(L);
}

static size_t looks_of(const char *statements)
{
    looks = 0;
    run_lua(statements);
    return looks;
}

/* The sum of all keys is bounded by the memory of a script, so the time that one sort takes tells
 * little; how often it looks at the deadline does. */
static void test_sorting_keys_looks_at_the_deadline_for_each_and_for_each_comparison(void **state)
{
    (void)state;
    size_t before = looks_of("local t = {} for i = 1, 10000 do t['k' .. i] = i end");
    size_t with = looks_of("local t = {} for i = 1, 10000 do t['k' .. i] = i end pairs(t)");
    assert_true(with - before >= 10000 + 10000 * 10); /* n log n comparisons, log n > 13 */
}

static void test_json_pays_for_its_bytes(void **state)
{
    (void)state;
    static const char *const attacks[] = {
        "local json = require 'cjson' local s = ('\\1'):rep(500000) while true do json.encode(s) "
        "end",
        "local json = require 'cjson' local s = ('\\1'):rep(1000000)\n"
        "local t = {} for i = 1, 1000 do t[i] = s end while true do pcall(json.encode, t) end",
        "local json = require 'cjson' local s = ('\\127'):rep(1000000) .. s s = s .. s s = s .. s\n"
        "while true do pcall(json.encode, s) end",
        "local json = require 'cjson' local s = '\"' .. ('\\\\u0001'):rep(170000) .. '\"'\n"
        "while true do json.decode(s) end",
        "local json = require 'cjson' local t = {} for i = 1, 50000 do t['k\\1' .. i] = i end\n"
        "while true do json.encode(t) end",
        "local json = require 'cjson' local s = '[' .. ('['):rep(100) .. (']'):rep(100)\n"
        "s = s .. (',' .. s:sub(2)):rep(2000) .. ']' while true do json.decode(s) end",
        "local json = require 'cjson' local s = {} for i = 1, 40000 do s[i] = '\"k' .. i .. '\":1' "
        "end\n"
        "s = '{' .. table.concat(s, ',') .. '}' while true do json.decode(s) end",
        "local json = require 'cjson' local s = ('1'):rep(1000000) while true do json.decode(s) "
        "end",
        "local json = require 'cjson' local s = '0.' .. ('1'):rep(1000000)\n"
        "while true do json.decode(s) end",
        "local json = require 'cjson' local t = {} for i = 1, 300000 do t[i] = 1.1 + i end\n"
        "while true do pcall(json.encode, t) end",
    };
    expect_held(attacks, ML_COUNT(attacks));
}

static void test_strings_and_numbers_pay_for_their_bytes(void **state)
{
    (void)state;
    static const char *const attacks[] = {
        "local f, t = ('%99.99f'):rep(9000), {} for i = 1, 9000 do t[i] = 1e308 end\n"
        "while true do string.format(f, table.unpack(t)) end",
        "local s = ('x'):rep(1000000) while true do string.format('%q%q%q%q', s, s, s, s) end",
        "local s = ('x'):rep(1000000) s = s .. s .. s .. s while true do pcall(string.format, s) "
        "end",
        "local s = ('x'):rep(1000000) while true do s:find(s) end",
        "local s = ('ab'):rep(500000) while true do s:find(('ba'):rep(250000) .. 'x', 1, true) end",
        "local s = ('a'):rep(1000000) while true do pcall(string.byte, s, 1, 900000) end",
        "local s = ('9'):rep(1000000) while true do tonumber(s) end",
        "local s = ('9'):rep(1000000) while true do tonumber(s, 16) end",
        "local s = '0x.' .. ('f'):rep(1000000) while true do tonumber(s) end",
        "local s = ('x'):rep(1000000) while true do s:upper():lower():reverse() end",
        "local s = ('\\u{10FFFF}'):rep(200000) while true do utf8.len(s) utf8.offset(s, -1) end",
        "local s = ('x'):rep(900000) while true do pcall(utf8.codepoint, s, 1, -1) end",
        "local t = table.pack(('x'):rep(900000):byte(1, 200000))\n"
        "while true do pcall(utf8.char, table.unpack(t)) pcall(string.char, table.unpack(t)) end",
        "local t = {} for i = 1, 200000 do t[i] = i end while true do math.max(table.unpack(t)) "
        "end",
        "local t = {} for i = 1, 200000 do t[i] = i end while true do select(-1, table.unpack(t)) "
        "end",
    };
    expect_held(attacks, ML_COUNT(attacks));
}

/* The collector takes out of weak tables while C looks at them; ASan tells. */
static void test_keys_stay_while_they_are_sorted(void **state)
{
    (void)state;
    run_lua("local json = require 'cjson'\n"
            "for _, use in ipairs { pairs, next, json.encode } do\n"
            "  for round = 1, 3 do\n"
            "    local meta = {}\n"
            "    local t, hold = setmetatable({}, meta), {}\n"
            "    meta.__mode = 'v'\n" /* setmetatable would refuse it */
            "    for i = 1, 3000 do hold[i] = {} t[('x'):rep(200) .. i] = hold[i] end\n"
            "    hold = nil\n"
            "    pcall(use, t)\n"
            "  end\n"
            "end");
}

static void test_deep_calls_of_pcall_end(void **state)
{
    (void)state;
    static const char *const attacks[] = {
        "local function f() pcall(f) pcall(f) end f()",
        "local function f(...) return pcall(pcall, f, ...) end while true do f() end",
        "local function f() pcall(f) error({}) end while true do pcall(f) end",
        "local function f() f() end while true do pcall(f) end",
        "local function f() return (('x'):gsub('x', f)) end while true do pcall(f) end",
        "local t t = setmetatable({}, { __index = function(_, k) return t[k] end })\n"
        "while true do pcall(function() return t.x end) end",
        "local t = {} setmetatable(t, { __tostring = function() return tostring(t) end })\n"
        "while true do pcall(tostring, t) end",
    };
    expect_held(attacks, ML_COUNT(attacks));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns_pay_for_the_bytes_they_look_at),
        cmocka_unit_test(test_sorting_pays_for_its_comparisons),
        cmocka_unit_test(test_sorting_keys_looks_at_the_deadline_for_each_and_for_each_comparison),
        cmocka_unit_test(test_json_pays_for_its_bytes),
        cmocka_unit_test(test_strings_and_numbers_pay_for_their_bytes),
        cmocka_unit_test(test_keys_stay_while_they_are_sorted),
        cmocka_unit_test(test_deep_calls_of_pcall_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
