/* The sandbox has exactly the names that moonloop/fields.lua lists, and another name raises an
 * error that says which was probably meant. tools/script-api.lua makes that file,
 * and holds docs/script-limits.md against the same table; test_bounds.c walks all functions that a
 * script can reach and holds them against docs/script-limits.md. */
#include "script_world.h"

#define LISTED                                                                                     \
    "local fields = require 'moonloop.fields'\n"                                                   \
    "local function each(list) return fields[list]:gmatch '%S+' end\n"

static void test_api_modules_have_what_the_table_lists_and_no_more(void **state)
{
    (void)state;
    run_lua(LISTED "for _, name in ipairs { 'moonloop', 'moonloop.time', 'cjson' } do\n"
                   "  local module, left = require(name), {}\n"
                   "  for key in pairs(module) do left[key] = true end\n"
                   "  for key in each(name) do\n"
                   "    assert(left[key], name .. ' lacks ' .. key)\n"
                   "    left[key] = nil\n"
                   "  end\n"
                   "  assert(next(left) == nil, tostring(next(left)) .. ' of ' .. name .. ' is not "
                   "listed')\n"
                   "end\n");
}

/* Runs `body` as reconcile, with the statements of LISTED before it. */
static void reconcile(const char *body, struct told *told)
{
    struct world w;
    world_open_file(&w, LISTED, "nil", body, NULL);
    assert_null(world_start(&w, told));
    world_close(&w);
}

static void test_api_values_have_what_the_table_lists(void **state)
{
    (void)state;
    struct told told;
    reconcile("for name in each 'ctx' do assert(type(ctx[name]) == 'function', name) end\n"
              "for name in each 'kind' do local _ = Pod[name] end\n"
              "local _, failure = ctx.get(Pod, 'none')\n"
              "for name in each 'error' do assert(failure[name] ~= nil, name) end\n",
              &told);
    assert_string_equal(told.message, "");
    assert_int_equal(told.outcome, ML_OUTCOME_OK);
}

/* Each field that is listed is read: what cannot be its value is refused, by its name. */
static void test_api_fields_that_are_listed_are_read(void **state)
{
    (void)state;
    struct told told;
    reconcile("local results = require 'moonloop.result'\n"
              "local function refused(field, f, ...)\n"
              "  local ok, why = pcall(f, ...)\n"
              "  assert(not ok and tostring(why):find(field .. ': ', 1, true), field)\n"
              "end\n"
              "for field in each 'controller' do\n"
              "  local declared = { name = 'x', reconciles = At, reconcile = error }\n"
              "  declared[field] = moonloop.null\n"
              "  refused(field, moonloop.controller, declared)\n"
              "end\n"
              "for field in each 'selection' do\n"
              "  refused(field, moonloop.kind, 'v1', 'Pod', { [field] = moonloop.null })\n"
              "end\n"
              "for field in each 'result' do\n"
              "  refused(field, results.check, 'x:1', { [field] = moonloop.null })\n"
              "end\n"
              "for field in each 'list' do\n"
              "  if field ~= 'owned' then -- anything is true or false\n"
              "    refused(field, ctx.list, Pod, { [field] = moonloop.null })\n"
              "  end\n"
              "end\n"
              "for part in each 'part' do moonloop.watch(Pod, error, { part }) end\n",
              &told);
    assert_string_equal(told.message, "");
    assert_int_equal(told.outcome, ML_OUTCOME_OK);
}

static void test_api_name_that_does_not_exist_brings_the_one_meant(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"ctx.gett(Pod, 'x')", "ctx has no 'gett'; did you mean 'get'?"},
        {"ctx.put(at)", "ctx has no 'put'; it has get, list, ensure, create, "},
        {"ctx[{}]()", "ctx has no 'a table'; it has get"},
        {"ctx[setmetatable({}, { __tostring = function() return 'get' end })]()",
         "ctx has no 'a table'; it has get"},
        {"ctx[('g'):rep(1000)]()", "ctx has no 'ggggggg"},
        {"moonloop.nul()", "moonloop has no 'nul'; did you mean 'null'?"},
        {"moonloop.xyz()",
         "moonloop has no 'xyz'; it has kind, controller, recreate, exact, watch, index, array, "
         "null, is_null"},
        {"time.prase('x')", "moonloop.time has no 'prase'; did you mean 'parse'?"},
        {"time.xyz()", "moonloop.time has no 'xyz'; it has utc, parse, format, duration"},
        {"ctx.list(Pod, { label = {} })",
         "ctx.list(Kind [, { namespace =, labels =, owned =, fields =, index =, key = }]): unknown "
         "field 'label'; did you mean 'labels'?"},
        {"ctx.list(Pod, { [1] = 'x' })",
         "unknown field '1'; the fields are namespace, labels, owned, fields, index, key"},
        {"ctx.list(Pod, setmetatable({ own = true }, { __pairs = error, __index = error }))",
         "unknown field 'own'; did you mean 'owned'?"},
        {"local x = Pod.apiversion", "a kind has no 'apiversion'; did you mean 'apiVersion'?"},
        {"local _, err = ctx.get(Pod, 'x') local x = err.reason",
         "an error has no 'reason'; it has kind, code, message"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct told told;
        reconcile(cases[i][0], &told);
        assert_int_equal(told.outcome, ML_OUTCOME_ERROR);
        if (strncmp(told.message, "at.lua:", 7) != 0 || !strstr(told.message, cases[i][1]))
            fail_msg("%s: '%s' is not in '%s'", cases[i][0], cases[i][1], told.message);
    }
}

/* A script may put a name of its own into its copy, and ask whether there is one. */
static void test_api_modules_stay_tables_of_the_script(void **state)
{
    (void)state;
    run_lua("local moonloop = require 'moonloop'\n"
            "assert(rawget(moonloop, 'xyz') == nil and not pcall(function() return moonloop.xyz "
            "end))\n"
            "moonloop.xyz = 5 assert(moonloop.xyz == 5)\n"
            "assert(getmetatable(moonloop) == false and not pcall(setmetatable, moonloop, {}))\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_api_modules_have_what_the_table_lists_and_no_more),
        cmocka_unit_test(test_api_values_have_what_the_table_lists),
        cmocka_unit_test(test_api_fields_that_are_listed_are_read),
        cmocka_unit_test(test_api_name_that_does_not_exist_brings_the_one_meant),
        cmocka_unit_test(test_api_modules_stay_tables_of_the_script),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
