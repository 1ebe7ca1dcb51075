#include "script_unit.h"

static void test_json_text_comes_back_unchanged(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{}",
        "[]",
        "null",
        "true",
        "\"a/b\\u2028\"",
        "9007199254740993",
        "-9223372036854775808",
        "123456789012345678901234567890",
        "1e400",
        "0.1",
        "1.0",
        "{\"z\":1,\"a\":{\"y\":[],\"b\":{}},\"m\":[null,[1.5,\"\"],{}]}",
        "{\"2\":1,\"10\":2,\"1\":3}",
        "[[[[1]]]]",
    };
    for (size_t i = 0; i < ML_COUNT(texts); i++) {
        ML_AUTO_FREE char *statements = ml_asprintf("local c = require 'cjson'\n"
                                                    "local text = [==[%s]==]\n"
                                                    "local got = c.encode(c.decode(text))\n"
                                                    "assert(got == text, got)",
                                                    texts[i]);
        run_lua(statements);
    }
}

static void test_json_changed_object_keeps_its_order(void **state)
{
    (void)state;
    run_lua("local c = require 'cjson'\n"
            "local t = c.decode '{\"z\":1,\"a\":2,\"m\":3}'\n"
            "t.new, t.b, t.a = 4, 5, nil\n"
            "assert(c.encode(t) == '{\"z\":1,\"m\":3,\"b\":5,\"new\":4}', c.encode(t))\n"
            "t.a = 6\n"
            "assert(c.encode(t) == '{\"z\":1,\"a\":6,\"m\":3,\"b\":5,\"new\":4}', c.encode(t))\n");
    run_lua(
        "local c = require 'cjson'\n"
        "assert(c.encode { b = 1, a = 2, c = { 3, 2, 1 } } == '{\"a\":2,\"b\":1,\"c\":[3,2,1]}')\n"
        "assert(c.encode { a = {}, b = c.array {} } == '{\"a\":{},\"b\":[]}')\n");
}

/* With a collection at every allocation all of them would take minutes. That build checks the
 * values that C holds in one round, and all rounds are alike. The other builds check the bound:
 * SHAPES is more than SHAPE_NODES_MAX of shape.c. */
#ifdef MOONLOOP_GC_STRESS
#define SHAPES "100"
#define KEYS   "100"
#else
#define SHAPES "5000"
#define KEYS   "3000"
#endif

static void test_json_many_shapes_are_bounded(void **state)
{
    (void)state;
    run_lua("local c = require 'cjson'\n"
            "for i = 1, " SHAPES " do\n"
            "  local text = ('{\"k%d\":1,\"a\":{\"x%d\":[%d]}}'):format(i, i, i)\n"
            "  if c.encode(c.decode(text)) ~= text then error(text) end\n"
            "end\n"
            "local parts = {}\n"
            "for i = 1, " KEYS " do parts[i] = ('\"k%d\":%d'):format(" KEYS " - i, i) end\n"
            "local text = '{' .. table.concat(parts, ',') .. '}'\n"
            "assert(c.encode(c.decode(text)) == text)\n");
}

static void test_json_duplicate_keys_the_last_counts(void **state)
{
    (void)state;
    run_lua("local c = require 'cjson'\n"
            "local t, keys = c.decode '{\"a\":1,\"b\":2,\"a\":3}', {}\n"
            "for k in pairs(t) do keys[#keys + 1] = k end\n"
            "assert(table.concat(keys) == 'ab' and t.a == 3)\n"
            "assert(c.encode(t) == '{\"a\":3,\"b\":2}')\n");
}

static void test_json_value_that_is_none_is_refused_with_its_path(void **state)
{
    (void)state;
    static const struct {
        const char *value, *want;
    } cases[] = {
        {"{ status = { phase = print_ } }", "t.lua:3: status.phase: a function cannot be stored"},
        {"{ a = { { 1, 2, { b = 0/0 } } } }", "a[1][3].b: a number that is infinite or not"},
        {"{ a = { [1] = 1, [3] = 3 } }", "a: a list with holes"},
        {"{ a = { 1, x = 2 } }", "a: a table is a list or an object; this one has both"},
        {"{ x = 1, [1] = 2 }", "this one has both indexes and string keys"},
        {"{ [true] = 1 }", "only strings can be keys"},
        {"{ [1.5] = 1 }", "a list with holes"},
        {"'\\xff'", "a string that is not UTF-8"},
        {"{ ['\\xff'] = 1 }", "a key that is not UTF-8"},
        {"loop", "nested too deep, or a table that contains itself"},
        {"bush", "the whole is larger than 3 MiB as JSON"},
        {"c.array { x = 1 }", "this one has both indexes and string keys"},
        {"math.huge", "infinite"},
        {"require('moonloop').kind('v1', 'Pod')", "only strings, numbers"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        ML_AUTO_FREE char *statements = ml_asprintf(
            "local c = require 'cjson' local function print_() end local loop = {} "
            "loop.loop = loop\n"
            "local bush = { 1 } for i = 1, 40 do bush = { bush, bush } end\n"
            "c.encode(%s)",
            cases[i].value);
        refuse_lua(statements, cases[i].want);
    }
    refuse_lua("require('cjson').decode('{\"a\":}')", "t.lua:1: invalid JSON at byte");
    refuse_lua("require('cjson').decode('[' .. ('['):rep(200))", "invalid JSON");
    refuse_lua("require('cjson').decode('1 2')", "invalid JSON");
}

static void test_json_null_and_numbers_as_text_are_values(void **state)
{
    (void)state;
    run_lua("local m, c = require 'moonloop', require 'cjson'\n"
            "local t = c.decode '[null, 12345678901234567890, 7, 7.0]'\n"
            "assert(m.is_null(t[1]) and t[1] == m.null and tostring(t[1]) == 'null')\n"
            "assert(not m.is_null(nil) and not m.is_null(false))\n"
            "assert(tostring(t[2]) == '12345678901234567890')\n"
            "assert(t[2] == c.decode '12345678901234567890')\n"
            "assert(math.type(t[3]) == 'integer' and math.type(t[4]) == 'float')\n");
}

static void test_pairs_order_is_the_same_in_every_state(void **state)
{
    (void)state;
    run_lua("local function keys(t)\n"
            "  local list = {}\n"
            "  for k, v in pairs(t) do list[#list + 1] = tostring(k) end\n"
            "  local k, other = nil, {}\n"
            "  repeat k = next(t, k) other[#other + 1] = k ~= nil and tostring(k) or nil\n"
            "  until k == nil\n"
            "  assert(table.concat(list, ' ') == table.concat(other, ' '))\n"
            "  return table.concat(list, ' ')\n"
            "end\n"
            "local c = require 'cjson'\n"
            "assert(keys {} == '')\n"
            "assert(keys { 'a', 'b', 'c' } == '1 2 3')\n"
            "assert(keys { z = 1, a = 1, [3] = 1, [-1] = 1, [true] = 1, [1.5] = 1 }\n"
            "  == '-1 3 1.5 a z true')\n"
            "assert(keys(c.decode '{\"z\":1,\"a\":2}') == 'z a')\n"
            "local t = c.decode '{\"z\":1,\"a\":2}' t.y, t.b, t.z = 1, 1, nil\n"
            "assert(keys(t) == 'a b y')\n"
            "local list = {} for i = 1, 2000 do list['k' .. i] = i end\n"
            "local last = '' for k in pairs(list) do assert(last < k) last = k end\n");
    run_lua(
        "local t, seen = { a = 1, b = 2, c = 3 }, ''\n"
        "for k in pairs(t) do seen = seen .. k t.b = nil end\n"
        "assert(seen == 'ac')\n"
        "assert(next({}) == nil and rawequal(next { x = 1 }, 'x'))\n"
        "local own = setmetatable({}, { __pairs = function() return next, { q = 1 }, nil end })\n"
        "for k in pairs(own) do assert(k == 'q') end\n");
    refuse_lua("next({ a = 1 }, 'b')", "t.lua:1: next: the key is not in the table");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_text_comes_back_unchanged),
        cmocka_unit_test(test_json_changed_object_keeps_its_order),
        cmocka_unit_test(test_json_many_shapes_are_bounded),
        cmocka_unit_test(test_json_duplicate_keys_the_last_counts),
        cmocka_unit_test(test_json_value_that_is_none_is_refused_with_its_path),
        cmocka_unit_test(test_json_null_and_numbers_as_text_are_values),
        cmocka_unit_test(test_pairs_order_is_the_same_in_every_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
