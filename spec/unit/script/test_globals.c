/* Names that are no variables: a file with one is refused when it is loaded, by its line and with
 * the name that was probably meant, whether the code would ever run or not. */
#include "script_unit.h"

/* Returns the error that refuses the file, or "". */
static const char *refusal(const char *text)
{
    static struct ml_err err;
    const struct ml_script_limits limits = {.memory_max = 8 * 1024 * 1024};
    struct ml_script *script = load_file("a.lua", text, &limits, &err);
    if (!script)
        return err.message;
    ml_script_unref(script);
    return "";
}

static void test_globals_are_found_in_code_that_does_not_run(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"local function f() return nmes end return {}",
         "a.lua:1: there is no variable 'nmes' here"},
        {"local names = {}\nlocal function f()\n  return #nmes\nend return {}",
         "a.lua:3: there is no variable 'nmes' here; did you mean 'names'?"},
        {"return { f = function(object)\n return function() return objcet end end }",
         "a.lua:2: there is no variable 'objcet' here; did you mean 'object'?"},
        {"local function walk(n) return n and wlak(n - 1) end return {}",
         "a.lua:1: there is no variable 'wlak' here; did you mean 'walk'?"},
        {"if false then pritn() end return {}", "a.lua:1: there is no variable 'pritn' here"},
        {"local x = parirs or 1 return {}",
         "a.lua:1: there is no variable 'parirs' here; did you mean 'pairs'?"},
        {"local function f()\n  count = 1 end return {}",
         "a.lua:2: a script sets no globals: write 'local count = …'"},
        {"local count = 0\nlocal function f() conut = count + 1 end return {}",
         "a.lua:2: a script sets no globals: write 'local conut = …'; or did you mean 'count'?"},
        {"local function f() print('x') end return {}",
         "a.lua:1: there is no variable 'print' here; use ctx.log"},
        {"local function f() return os.time() end return {}",
         "a.lua:1: there is no variable 'os' here; for the time use ctx.now()"},
        {"local function f() return io.open 'x' end return {}",
         "a.lua:1: there is no variable 'io' here; a script reaches the cluster through ctx only"},
        {"local function f() return coroutine.wrap(f) end return {}",
         "a.lua:1: there is no variable 'coroutine' here; the host does the waiting"},
        {"local function f() return ctx.now() end return {}",
         "a.lua:1: there is no variable 'ctx' here; it is the second parameter of reconcile"},
        {"local function f() return cjson.null end return {}",
         "there is no variable 'cjson' here; write 'local cjson = require \"cjson\"' at the top"},
        {"local function f() return _ENV.nothing end return {}",
         "there is no variable 'nothing' here"},
        {"local function f() return a_name_that_is_too_long_for_a_short_string_of_lua end return "
         "{}",
         "there is no variable 'a_name_that_is_too_long_for_a_short_string_of_lua' here"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++)
        if (!strstr(refusal(cases[i].text), cases[i].want))
            fail_msg("'%s' is not in '%s'", cases[i].want, refusal(cases[i].text));
}

static void test_globals_that_are_none_are_not_found(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "local a, b = 1 local function f(c, ...) local d = select('#', ...) return a + b + c + d "
        "end return {}",
        "for i = 1, 2 do local x = i end for k, v in pairs {} do local y = k == v end return {}",
        "local t = { nothing = 1 } t.nothing = t.other function t.f() end function t:g() end "
        "return t",
        "return { s = string.format, m = math.pi, u = utf8.char, v = _VERSION, t = table.unpack }",
        "local function f() local _ENV = { x = 1 } return x, y end return {}",
        "local function f(_ENV) x = y return function() return z end end return {}",
        "local e = _ENV local name = 'x' return {}",
        "if rawget(_ENV, 'jit') then error 'x' end return {}",
        "local ok = pcall(function() return _ENV[('no') .. 'thing'] end) return {}",
        "goto done do local x = 1 end ::done:: return {}",
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++)
        if (strcmp(refusal(cases[i]), "") != 0)
            fail_msg("%s: %s", cases[i], refusal(cases[i]));
}

/* The first of the text is named: in the order in which a person reads it. */
static void test_globals_the_first_of_a_file_is_named(void **state)
{
    (void)state;
    assert_string_equal(refusal("local function f()\n  local x = one\nend\nlocal y = two\nreturn "
                                "three"),
                        "a.lua:2: there is no variable 'one' here");
}

/* With more than 255 constants the compiler reaches names by other instructions. */
static void test_globals_are_found_behind_many_constants(void **state)
{
    (void)state;
    struct ml_buf text = ML_BUF_INIT;
    ml_buf_puts(&text, "local t = {\n");
    for (int i = 0; i < 400; i++)
        ml_buf_printf(&text, "'word %d',\n", i);
    ml_buf_puts(&text, "}\nlocal n = #t + tonumber '1'\nlocal m = toonumber '1'\nreturn {}");
    const char *message = refusal(ml_buf_cstr(&text));
    assert_string_equal(message, "a.lua:404: there is no variable 'toonumber' here; did you mean "
                                 "'tonumber'?");
    ml_buf_fini(&text);
}

static void test_globals_of_required_files_are_found(void **state)
{
    (void)state;
    const struct ml_script_file files[] = {
        {ML_STR("a.lua"), ML_STR("local b = require 'b'\nreturn b")},
        {ML_STR("b.lua"), ML_STR("return {\n  f = function() return nothing end }")},
    };
    struct ml_script *script = NULL;
    struct ml_err err = ML_ERR_INIT;
    assert_int_equal(
        ml_script_load(NULL, NULL, &(struct ml_script_files){files, 2}, 0, &script, &err),
        ML_ESCRIPT);
    assert_string_equal(err.message, "b.lua:2: there is no variable 'nothing' here");
}

/* Names and local variables in any number: the check ends, by itself or by the deadline. */
static void test_globals_of_a_large_file_take_little_time(void **state)
{
    (void)state;
    struct ml_buf text = ML_BUF_INIT;
    for (int depth = 0; depth < 150; depth++) {
        ml_buf_puts(&text, "local function f() ");
        for (int i = 0; i < 100; i++)
            ml_buf_printf(&text, "local v%d_%d ", depth, i);
    }
    for (int i = 0; i < 20000; i++)
        ml_buf_puts(&text, "f(math) ");
    ml_buf_puts(&text, "return nothing_at_all ");
    for (int depth = 0; depth < 150; depth++)
        ml_buf_puts(&text, "end ");
    int64_t begin_ns = unit_cpu_ns();
    const char *message = refusal(ml_buf_cstr(&text));
    if (!strstr(message, "there is no variable 'nothing_at_all'") && !strstr(message, "CPU time"))
        fail_msg("%s", message);
    assert_true(unit_cpu_ns() - begin_ns < 2 * ML_NS_PER_S);
    ml_buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_globals_are_found_in_code_that_does_not_run),
        cmocka_unit_test(test_globals_that_are_none_are_not_found),
        cmocka_unit_test(test_globals_the_first_of_a_file_is_named),
        cmocka_unit_test(test_globals_are_found_behind_many_constants),
        cmocka_unit_test(test_globals_of_required_files_are_found),
        cmocka_unit_test(test_globals_of_a_large_file_take_little_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
