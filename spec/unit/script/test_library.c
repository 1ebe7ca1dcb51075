/* The library against scripts that lie to it: it never calls a function that a script replaced, C
 * checks the values that it hands over, and it marks only values that it made. */
#include "script_unit.h"

#define POD "local m = require 'moonloop' local Pod = m.kind('v1', 'Pod')\n"

/* Replaces every function that a script can reach by one that notes the call. */
#define REPLACE_ALL                                                                                \
    "local called = {}\n"                                                                          \
    "local rawset, type, next, real_error, concat = rawset, type, next, error, table.concat\n"     \
    "local function replace(t, path)\n"                                                            \
    "  local names = {}\n"                                                                         \
    "  for name, value in next, t do if type(value) == 'function' then names[#names + 1] = name "  \
    "end end\n"                                                                                    \
    "  for i = 1, #names do\n"                                                                     \
    "    local name, was = names[i], t[names[i]]\n"                                                \
    "    rawset(t, name, function(...) called[#called + 1] = path .. name return was(...) end)\n"  \
    "  end\n"                                                                                      \
    "end\n"                                                                                        \
    "local time, names, result = require 'moonloop.time', require 'moonloop.names', "              \
    "require 'moonloop.result'\n"                                                                  \
    "local pcall = pcall\n"                                                                        \
    "replace(string, 'string.') replace(table, 'table.') replace(math, 'math.')\n"                 \
    "replace(utf8, 'utf8.') replace(_ENV, '')\n"

static void test_library_calls_nothing_of_the_scripts(void **state)
{
    (void)state;
    run_lua(
        "local m = require 'moonloop'\n" REPLACE_ALL "local f = function() end\n"
        "local Pod, Web = m.kind('v1', 'Pod'), m.kind('apps/v1', 'Deployment', { labels = "
        "'app=web' })\n"
        "m.controller { name = 'x', reconciles = Pod, owns = { Web }, reconcile = f,\n"
        "  watches = { m.watch(m.kind('v1', 'Node'), f, { 'labels' }) }, when = { 'status' } }\n"
        "pcall(m.kind, 1) pcall(m.watch, 1) pcall(m.array, 1)\n"
        "pcall(m.kind, 'v1', 'Pod', { lables = 'x' })\n"
        "pcall(m.controller, { name = 'X', ownes = 1 })\n"
        "time.parse('2006-01-02T15:04:05.5+01:00') time.format(1e9) time.duration('1h5m')\n"
        "result.check('x:1', { status = {}, requeue_after = '5m' })\n"
        "result.check('x:1', result.invalid('spec.x', 'bad'))\n"
        "if #called > 0 then real_error(concat(called, ' ')) end\n");
    /* The modules that a script gets are its own. */
    run_lua("local names, result = require 'moonloop.names', require 'moonloop.result'\n"
            "local time, m = require 'moonloop.time', require 'moonloop'\n"
            "local bad = function() error('called') end\n"
            "names.unknown, names.nearest, names.text, time.duration = bad, bad, bad, bad\n"
            "assert(not pcall(m.kind, 'v1', 'Pod', { lables = 'x' }))\n"
            "assert(select(4, pcall(result.check, 'x:1', { requeue_after = '5m' })) == 300)\n");
}

static void test_library_keeps_the_methods_of_strings(void **state)
{
    (void)state;
    run_lua("string.upper = function() return 'mine' end\n"
            "assert(('x'):upper() == 'X' and string.upper('x') == 'mine')\n"
            "string.format = nil assert(('%d'):format(1) == '1')\n");
}

/* A declaration that a script changes after the library read it is refused or does not count. */
static void test_library_reads_a_declaration_once(void **state)
{
    (void)state;
    static const char *const lies[] = {
        "w.kind = 5",
        "w.kind = m.null",
        "w.kind = nil",
        "w.map = 5",
        "w.map = nil",
        "w.map = m.null",
        "w.when = 5",
        "w.when = m.null",
        "w.when = 'labels'",
        "w.when = { {} }",
        "w.when = { 5 }",
        "w.when = { m.null }",
        "w.when = { 'lables' }",
        "w.when = setmetatable({}, { __len = function() return 9 end, __index = function() return "
        "5 "
        "end })",
        "w.when = {} for i = 1, 100 do w.when[i] = 'labels' end",
        "w.when = {} for i = 1, 5000 do w.when[i] = 'labels' end",
        "d.owns = setmetatable({}, { __index = function(_, i) return i == 1 and 5 or nil end, "
        "__pairs = function() return function() end end }) d.owns[1] = 5",
        "d.watches = { setmetatable({}, { __index = w }) }",
        "d.watches = { 5 }",
        "d.watches = { m.null }",
        "d.watches = { Pod }",
        "d.uses = { m.null }",
        "d.uses = m.null",
        "d.reconciles = m.null",
        "d.reconcile = m.null",
        "d.reconcile = setmetatable({}, { __call = function() end })",
        "d.name = 5",
        "d.name = 'a/b'",
        "d.name = '../a'",
        "d.name = 'a\\nb'",
        "d.name = 'a\\n'",
        "d.name = 'a\\0b'",
        "d.name = '-a'",
        "d.name = ''",
        "d.name = ('a'):rep(64)",
        "d.name = ('a'):rep(1000000)",
        "d.max_concurrent = 0",
        "d.max_concurrent = 1.5",
        "d.max_concurrent = 0/0",
        "d.max_concurrent = math.maxinteger",
        "d.max_concurrent = '5'",
        "d.rollout = 5",
        "d.rollout = m.null",
        "d.rollout = Pod",
        "d.rollout = 'careful'",
        "d.rollout = ''",
        "d.rollout = { mode = 'careful' }",
        "d.rollout = { mode = 5 }",
        "d.rollout = { max_deletes = -1 }",
        "d.rollout = { max_deletes = '5' }",
        "d.rollout = { max_deletes = 1000001 }",
        "d.rollout = { max_deletes_percent = 101 }",
        "d.rollout = { max_failures_percent = 0.5 }",
        "d.rollout = { max_delete = 5 }",
        "d.rollout = { [1] = 5 }",
        "d.owns = {} for i = 1, 5000 do d.owns[i] = Pod end",
        "d[{}] = 1",
        "d[setmetatable({}, { __tostring = function() return 5 end })] = 1",
        "for i = 1, 5000 do d[i] = i end",
    };
    for (size_t i = 0; i < ML_COUNT(lies); i++) {
        struct ml_err err;
        ML_AUTO_FREE char *text = ml_asprintf(
            POD "local Node, f = m.kind('v1', 'Node'), function() end\n"
                "local w = m.watch(Node, f, { 'labels' })\n"
                "local d = { name = 'x', reconciles = Pod, reconcile = f, watches = { w } }\n"
                "%s\n"
                "return m.controller(d)",
            lies[i]);
        struct ml_script *script = load_file("t.lua", text, NULL, &err);
        if (script)
            fail_msg("was not refused: %s", lies[i]);
        if (!strstr(err.message, "t.lua:"))
            fail_msg("'%s' for: %s", err.message, lies[i]);
    }
}

/* A declaration with a metatable counts as it stands there, whatever the metamethods say. */
static void test_library_asks_no_metamethod_of_a_declaration(void **state)
{
    (void)state;
    struct ml_err err;
    struct ml_script *script = load_file(
        "t.lua",
        POD "local turn = 0\n"
            "return m.controller(setmetatable({ name = 'x', reconciles = Pod, reconcile = "
            "function() end }, { __index = function(_, key) turn = turn + 1\n"
            "  return turn > 1 and 5 or nil end, __pairs = function() error('asked') end }))",
        NULL, &err);
    if (!script)
        fail_msg("%s", err.message);
    assert_int_equal(ml_script_declaration(script)->concurrency_max, 1000);
    ml_script_unref(script);
}

static void test_library_kinds_have_names_of_kubernetes(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "'v1', 'Po/d'",
        "'v1', '../Pod'",
        "'v1', 'Pod\\n'",
        "'v1', 'Pod\\0x'",
        "'v1', ''",
        "'', 'Pod'",
        "'a/b/c', 'Pod'",
        "'../v1', 'Pod'",
        "'apps/..', 'Pod'",
        "'ap ps/v1', 'Pod'",
        "'v1\\n', 'Pod'",
        "('v'):rep(300), 'Pod'",
        "'v1', ('P'):rep(64)",
        "5, 'Pod'",
        "'v1', 5",
        "m.null, m.null",
        "{}, {}",
        "",
        "'v1', Pod",
        "('a'):rep(300) .. '/v1', 'X'",
    };
    for (size_t i = 0; i < ML_COUNT(bad); i++) {
        ML_AUTO_FREE char *text = ml_asprintf(POD "m.kind(%s)", bad[i]);
        refuse_lua(text, "t.lua:2: moonloop.kind(apiVersion, kind [, selection]): expected");
    }
    static const char *const selections[] = {
        "5",
        "m.null",
        "Pod",
        "{ labels = 5 }",
        "{ labels = m.null }",
        "{ fields = {} }",
        "{ metadata_only = 1 }",
        "{ labels = ('a'):rep(2000) }",
        "{ lables = 'a' }",
    };
    for (size_t i = 0; i < ML_COUNT(selections); i++) {
        ML_AUTO_FREE char *text = ml_asprintf(POD "m.kind('v1', 'Pod', %s)", selections[i]);
        refuse_lua(text, "t.lua:2: moonloop.kind(");
    }
}

static void test_library_marks_plain_tables_as_lists_and_nothing_else(void **state)
{
    (void)state;
    run_lua(POD "local list = m.array { 1 } assert(m.array(list) == list)\n"
                "assert(#m.array() == 0 and require('cjson').encode(m.array()) == '[]')\n");
    static const char *const others[] = {
        "_ENV",
        "setmetatable({}, {})",
        "m.watch(Pod, function() end)",
        "require('moonloop.result').terminal('x')",
        "require('cjson').decode '{}'",
        "Pod",
        "m.null",
        "'x'",
    };
    for (size_t i = 0; i < ML_COUNT(others); i++) {
        ML_AUTO_FREE char *text = ml_asprintf(POD "m.array(%s)", others[i]);
        refuse_lua(text, "t.lua:2: moonloop.array(list): ");
        ML_AUTO_FREE char *other = ml_asprintf(POD "require('cjson').array(%s)", others[i]);
        refuse_lua(other, "t.lua:2: moonloop.array(list): ");
    }
}

static void test_library_has_no_weak_tables(void **state)
{
    (void)state;
    refuse_lua("setmetatable({}, { __mode = 'k' })",
               "t.lua:1: setmetatable: __mode is not available");
}

#define ANY_VALUES                                                                                 \
    "local cjson, f = require 'cjson', function() end\n"                                           \
    "local function values() return { 'x', '', 0, -1, 1.5, 0/0, 1/0, math.maxinteger,\n"           \
    "  math.mininteger, true, {}, { 1 }, f, m.null, Pod, m.array {}, m.watch(Pod, f),\n"           \
    "  cjson.decode '{\"a\":{}}', ('x'):rep(5000), setmetatable({}, { __index = f,\n"              \
    "  __len = f, __pairs = f, __tostring = f, __call = f, __concat = f, __eq = f,\n"              \
    "  __lt = f, __name = 5 }), 'v1', 'Pod', '%s', '%d', '%bxy', '[a' } end\n"
#define CALL_WITH_ANY                                                                              \
    "for _, func in pairs(module) do if type(func) == 'function' then\n"                           \
    "  pcall(func)\n"                                                                              \
    "  for i, a in ipairs(values()) do\n"                                                          \
    "    pcall(func, a)\n"                                                                         \
    "    for _, b in ipairs(values()) do pcall(func, a, b) end\n"                                  \
    "    pcall(func, a, a, a) pcall(func, a, 1, a) pcall(func, a, 1, 2, a)\n"                      \
    "    pcall(func, a, nil, a) pcall(func, a, a, a, a, a, a)\n"                                   \
    "  end\n"                                                                                      \
    "end end\n"

/* Each function of the library with each kind of value in each place: an error at most. A module at
 * a time, as all of them take more than a file may take to load. */
static void test_library_takes_any_argument(void **state)
{
    (void)state;
    static const char *const modules[] = {
        "m",
        "cjson",
        "require 'moonloop.time'",
        "require 'moonloop.names'",
        "require 'moonloop.result'",
        "string",
        "table",
        "utf8",
        "math",
        "{ assert = assert, error = error, getmetatable = getmetatable, ipairs = ipairs,\n"
        "  next = next, pairs = pairs, rawequal = rawequal, rawget = rawget,\n"
        "  rawlen = rawlen, rawset = rawset, require = require, select = select,\n"
        "  setmetatable = setmetatable, tonumber = tonumber, tostring = tostring,\n"
        "  type = type }",
    };
    for (size_t i = 0; i < ML_COUNT(modules); i++) {
        ML_AUTO_FREE char *text = ml_asprintf("%slocal module = %s\n%s", POD ANY_VALUES, modules[i],
                                              CALL_WITH_ANY);
        run_lua(text);
    }
}

/* Told by what they are made of, not by being userdata. */
static void test_library_takes_no_other_userdata_for_a_kind(void **state)
{
    (void)state;
    run_lua(POD
            "local function f() end\n"
            "local c = m.controller { name = 'c', reconciles = Pod, reconcile = f }\n"
            "assert(pcall(m.watch, Pod, f))\n"
            "for _, other in ipairs { c, m.null } do\n"
            "  assert(not pcall(m.watch, other, f))\n"
            "  assert(not pcall(m.controller, { name = 'c', reconciles = other, reconcile = f }))\n"
            "  assert(not pcall(m.controller, { name = 'c', reconciles = Pod, reconcile = f,\n"
            "    owns = { other } }))\n"
            "end\n");
}

/* A name of a zone; the result of time.zone must be nil and `why`. */
static void refuse_zone(const char *name, const char *why)
{
    ML_AUTO_FREE char *text = ml_asprintf("local zone, why = require('moonloop.time').zone('%s')\n"
                                          "assert(not zone and why == [[%s]], why)\n",
                                          name, why);
    run_lua(text);
}

static void write_zone(const char *path, size_t len)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("TZif2", file);
    for (size_t i = 5; i < len; i++)
        putc(0, file);
    assert_int_equal(fclose(file), 0);
}

static void test_library_says_why_there_is_no_zone(void **state)
{
    (void)state;
    char folder[] = "/tmp/moonloop-zones.XXXXXX";
    assert_non_null(mkdtemp(folder));
    ML_AUTO_FREE char *damaged = ml_asprintf("%s/Damaged", folder);
    ML_AUTO_FREE char *large = ml_asprintf("%s/Large", folder);
    write_zone(damaged, 100);
    write_zone(large, 20000);
    setenv("TZDIR", folder, 1);
    refuse_zone("Damaged", "time zone Damaged: it is no file of time zones (TZif), or not all of "
                           "one; install tzdata anew");
    ML_AUTO_FREE char *too_large = ml_asprintf("%s: larger than 16384 bytes", large);
    refuse_zone("Large", too_large);
    unlink(damaged);
    unlink(large);
    rmdir(folder);
    ML_AUTO_FREE char *missing = ml_asprintf(
        "there are no time zones in %s: install the package tzdata", folder);
    refuse_zone("Europe/Berlin", missing);
    run_lua("assert(require('moonloop.time').zone 'UTC')");
    unsetenv("TZDIR");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_library_calls_nothing_of_the_scripts),
        cmocka_unit_test(test_library_keeps_the_methods_of_strings),
        cmocka_unit_test(test_library_reads_a_declaration_once),
        cmocka_unit_test(test_library_asks_no_metamethod_of_a_declaration),
        cmocka_unit_test(test_library_kinds_have_names_of_kubernetes),
        cmocka_unit_test(test_library_marks_plain_tables_as_lists_and_nothing_else),
        cmocka_unit_test(test_library_has_no_weak_tables),
        cmocka_unit_test(test_library_takes_any_argument),
        cmocka_unit_test(test_library_takes_no_other_userdata_for_a_kind),
        cmocka_unit_test(test_library_says_why_there_is_no_zone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
