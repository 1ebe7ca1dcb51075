#include "script_unit.h"

#define HEAD                                                                                       \
    "local moonloop = require 'moonloop'\n"                                                        \
    "local At = moonloop.kind('example.com/v1', 'At')\n"                                           \
    "local Pod = moonloop.kind('v1', 'Pod')\n"

static const char whole[] = HEAD
    "local Node = moonloop.kind('v1', 'Node')\n"
    "local Secret = moonloop.kind('v1', 'Secret')\n"
    "return moonloop.controller { name = 'at-1', reconciles = At, owns = { Pod },\n"
    "  watches = { moonloop.watch(Node, function() return {} end) }, uses = { Secret },\n"
    "  max_concurrent = 7, reconcile = function(at, ctx) end }\n";

static void test_load_controller_is_declared(void **state)
{
    (void)state;
    static const struct {
        enum ml_script_use use;
        const char *group, *version, *kind;
        int line;
    } want[] = {
        {ML_USE_RECONCILES, "example.com", "v1", "At", 2},
        {ML_USE_OWNS, "", "v1", "Pod", 3},
        {ML_USE_WATCHES, "", "v1", "Node", 4},
        {ML_USE_TOUCHES, "", "v1", "Secret", 5},
    };
    struct ml_err err;
    struct ml_script *script = load_file("at.lua", whole, NULL, &err);
    if (!script)
        fail_msg("%s", err.message);
    const struct ml_declaration *declaration = ml_script_declaration(script);
    assert_non_null(declaration);
    assert_string_equal(declaration->name, "at-1");
    assert_string_equal(declaration->file, "at.lua");
    assert_int_equal(declaration->concurrency_max, 7);
    assert_int_equal(declaration->kind_count, ML_COUNT(want));
    for (size_t i = 0; i < ML_COUNT(want); i++) {
        const struct ml_script_kind *kind = &declaration->kinds[i];
        assert_int_equal(kind->use, want[i].use);
        assert_int_equal(kind->line, want[i].line);
        assert_string_equal(kind->gvk.group.ptr, want[i].group);
        assert_string_equal(kind->gvk.version.ptr, want[i].version);
        assert_string_equal(kind->gvk.kind.ptr, want[i].kind);
    }
    assert_true(ml_script_loaded_file(script, ML_STR("at.lua")));
    assert_false(ml_script_loaded_file(script, ML_STR("other.lua")));
    assert_in_range(ml_script_budget(script)->used, 10000, 400000);
    ml_script_unref(ml_script_ref(script));
    ml_script_unref(script);
}

static void test_load_table_is_a_module(void **state)
{
    (void)state;
    struct ml_err err;
    struct ml_script *script = load_file("m.lua", "return { one = 1 }", NULL, &err);
    assert_non_null(script);
    assert_null(ml_script_declaration(script));
    ml_script_unref(script);
}

static void test_load_bad_file_is_refused_with_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"local x = = 1", "a.lua:1: unexpected symbol near '='"},
        {"\n\nerror 'boom'", "a.lua:3: boom"},
        {"\nlocal x = nothing", "a.lua:2: there is no variable 'nothing' here"},
        {"\nx = 1", "a.lua:2: a script sets no globals: write 'local x = …'"},
        {"error { }", "error() was called with a table instead of a message"},
        {"return 5", "a.lua:1: the file returns a number; a script returns moonloop.controller"},
        {"", "a.lua:1: the file returns nothing"},
        {"\x1bLua", "a.lua:1: this is bytecode; a script is source text"},
        {"require 'b'", "a.lua:1: require 'b': there is no b.lua next to this script"},
        {"require '../b'", "a.lua:1: require: a module's name has letters"},
        {"require 'a'", "requires itself"},
        {"while true do end", "a.lua:1: used more than 50 ms of CPU time"},
        {"local x <close> = setmetatable({}, { __close = function()\n  while true do end\nend })\n"
         "error 'first'",
         "a.lua:2: used more than 50 ms of CPU time"},
        {"local t = {} for i = 1, 1e8 do t[i] = i end", "out of memory (limit 1 MiB)"},
        {"\nrequire('moonloop').kind('a/b/c', 'X')",
         "a.lua:2: moonloop.kind(apiVersion, kind [, selection])"},
        {"return { ctx = io }", "there is no variable 'io' here"},
    };
    const struct ml_script_limits limits = {.memory_max = 1024 * 1024,
                                            .load_cpu_ns = 50 * ML_NS_PER_MS};
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_err err;
        assert_null(load_file("a.lua", cases[i].text, &limits, &err));
        if (!strstr(err.message, cases[i].want))
            fail_msg("'%s' is not in '%s'", cases[i].want, err.message);
    }
}

static void test_load_kind_keeps_what_of_it_is_watched(void **state)
{
    (void)state;
    struct ml_err err;
    struct ml_script *script = load_file(
        "a.lua",
        "local m = require 'moonloop'\n"
        "local Pod = m.kind('v1', 'Pod', { labels = 'app in (a, b)', fields = 'spec.nodeName=n',\n"
        "  metadata_only = true })\n"
        "assert(Pod.labels == 'app in (a, b)' and Pod.fields == 'spec.nodeName=n')\n"
        "assert(Pod.metadata_only and Pod == m.kind('v1', 'Pod'))\n"
        "local At = m.kind('e/v1', 'At', { labels = 'shard=1' })\n"
        "assert(At.fields == nil and At.metadata_only == false)\n"
        "local f = function() end\n"
        "return m.controller { name = 'a', reconciles = At, owns = { Pod }, reconcile = f,\n"
        "  watches = { m.watch(Pod, f, { 'generation' }) } }",
        NULL, &err);
    if (!script)
        fail_msg("%s", err.message);
    const struct ml_declaration *declaration = ml_script_declaration(script);
    const struct ml_selection want[] = {
        {ML_STR("shard=1"), ML_STR(""), false},
        {ML_STR("app in (a, b)"), ML_STR("spec.nodeName=n"), true},
        {ML_STR("app in (a, b)"), ML_STR("spec.nodeName=n"), true},
    };
    assert_int_equal(declaration->kind_count, ML_COUNT(want));
    for (size_t i = 0; i < ML_COUNT(want); i++)
        assert_true(ml_selection_eq(&declaration->kinds[i].selection, &want[i]));
    assert_int_equal(declaration->kinds[1].line, 2);
    ml_script_unref(script);
}

static void test_load_bad_selection_is_refused_with_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *options, *want;
    } cases[] = {
        {"{ label = 'a=b' }",
         "a.lua:3: moonloop.kind(apiVersion, kind [, selection]): unknown field "
         "'label'; did you mean 'labels'?"},
        {"'app=web'",
         "a.lua:3: moonloop.kind(apiVersion, kind [, selection]): expected what to select"},
        {"{ labels = { app = 'web' } }", "labels: expected a selector in one string, got a table"},
        {"{ fields = 1 }", "fields: expected a selector in one string, got a number"},
        {"{ metadata_only = 'yes' }", "metadata_only: expected true or false, got a string"},
        {"{ labels = 'app in ()' }", "a.lua:3: moonloop.kind(apiVersion, kind [, selection]): "
                                     "labels: 'app in ()': expected requirements"},
        {"{ labels = '' }", "labels: '': expected requirements"},
        {"{ labels = 'app=web', fields = 'spec.nodeName' }",
         "fields: 'spec.nodeName': expected terms like spec.nodeName=n1"},
        {"{ labels = ('a'):rep(1025) }", "a selector has at most 1024 bytes"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_err err;
        ML_AUTO_FREE char *text = ml_asprintf("local m = require 'moonloop'\n\n"
                                              "local Pod = m.kind('v1', 'Pod', %s)\nreturn {}",
                                              cases[i].options);
        assert_null(load_file("a.lua", text, NULL, &err));
        if (!strstr(err.message, cases[i].want))
            fail_msg("'%s' is not in '%s'", cases[i].want, err.message);
    }
}

static void test_load_bad_declaration_is_refused_with_its_field(void **state)
{
    (void)state;
    static const struct {
        const char *fields, *want;
    } cases[] = {
        {"name = 'a', reconciles = At, reconcile = f, own = {}",
         "a.lua:5: moonloop.controller: unknown field 'own'; did you mean 'owns'?"},
        {"name = 'a', reconciles = At, reconcile = f, colour = 1", "the fields are name,"},
        {"reconciles = At, reconcile = f", "name: expected a string, got a nil"},
        {"name = 'A_b', reconciles = At, reconcile = f", "name: 'A_b' is no DNS label"},
        {"name = 'host', reconciles = At, reconcile = f",
         "a.lua:5: moonloop.controller: name: a part of the host has the name 'host' in the log; "
         "give this controller another one"},
        {"name = 'log', reconciles = At, reconcile = f", "has the name 'log'"},
        {"name = 'a', reconcile = f", "reconciles: expected a kind of moonloop.kind, got a nil"},
        {"name = 'a', reconciles = 'At', reconcile = f", "reconciles: expected a kind"},
        {"name = 'a', reconciles = At", "reconcile: expected function(object, ctx), got a nil"},
        {"name = 'a', reconciles = At, reconcile = f, owns = Pod",
         "owns: expected a list of kinds, got the kind v1/Pod"},
        {"name = 'a', reconciles = At, reconcile = f, owns = { 'Pod' }",
         "owns[1]: expected kinds, got a string"},
        {"name = 'a', reconciles = At, reconcile = f, owns = { x = Pod }", "found the key 'x'"},
        {"name = 'a', reconciles = At, reconcile = f, owns = { Pod }, uses = { Pod }",
         "v1/Pod is in owns and in uses"},
        {"name = 'a', reconciles = At, reconcile = f, watches = { Pod }",
         "watches[1]: expected moonloop.watch(Kind, function)"},
        {"name = 'a', reconciles = At, reconcile = f, watches = { moonloop.watch(Pod) }",
         "moonloop.watch(Kind, function(object, ctx) … end [, when]): expected"},
        {"name = 'a', reconciles = At, reconcile = f, max_concurrent = 0", "max_concurrent:"},
        {"name = 'a', reconciles = At, reconcile = f, wakes = 'none'", "wakes:"},
        {"name = 'a', reconciles = moonloop.kind('v1', 'Pod', { metadata_only = true }), reconcile "
         "= f",
         "a.lua:5: moonloop.controller: reconciles: v1/Pod is metadata_only; a reconcile needs"},
        {"name = 'a', reconciles = At, reconcile = f, uses = { moonloop.kind('v1', 'Pod', { fields "
         "= 'a=b' }) }",
         "uses[1]: labels, fields and metadata_only say what of a kind is watched; v1/Pod is"},
        {"name = 'a', reconciles = At, reconcile = f, owns = { Pod },\n"
         "watches = { moonloop.watch(moonloop.kind('v1', 'Pod', { metadata_only = true }), f) }",
         "v1/Pod is there twice with different selections; a script watches one part of a kind"},
        {"name = 'a', reconciles = Pod, reconcile = f, watches = { "
         "moonloop.watch(moonloop.kind('v1', 'Pod', { metadata_only = true }), f) }",
         "v1/Pod is there twice with different selections"},
        {"name = 'a', reconciles = At, reconcile = f,\n"
         "watches = { moonloop.watch(moonloop.kind('v1', 'Pod', { metadata_only = true }), f, { "
         "'labels', 'status' }) }",
         "a.lua:6: moonloop.watch(Kind, function(object, ctx) … end [, when]): when[2]: no status "
         "of v1/Pod is watched"},
        {"name = 'a', reconciles = At, reconcile = f, when = { 'generatoin' }",
         "a.lua:5: moonloop.controller: when[1]: there is no part 'generatoin'; did you mean "
         "'generation'?"},
        {"name = 'a', reconciles = At, reconcile = f, when = 'labels'",
         "a.lua:5: moonloop.controller: when: expected function(old, new), or parts"},
        {"name = 'a', reconciles = At, reconcile = f,\n"
         "watches = { moonloop.watch(Pod, f, { 'label' }) }",
         "a.lua:6: moonloop.watch(Kind, function(object, ctx) … end [, when]): when[1]: there is "
         "no part 'label'; did "
         "you mean 'labels'?"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_err err;
        ML_AUTO_FREE char *text = ml_asprintf(
            HEAD "local function f() end\nreturn moonloop.controller { %s }", cases[i].fields);
        assert_null(load_file("a.lua", text, NULL, &err));
        if (!strstr(err.message, cases[i].want))
            fail_msg("'%s' is not in '%s'", cases[i].want, err.message);
    }
}

static void test_load_too_large_file_is_refused(void **state)
{
    (void)state;
    size_t len = ML_SCRIPT_SOURCE_MAX + 1;
    ML_AUTO_FREE char *text = ml_alloc(len + 1);
    memset(text, ' ', len);
    text[len] = '\0';
    struct ml_err err;
    assert_null(load_file("a.lua", text, NULL, &err));
    assert_string_equal(err.message, "a.lua:1: larger than 1 MiB");
}

static void test_load_require_finds_files_of_the_set(void **state)
{
    (void)state;
    const struct ml_script_file file[] = {
        {ML_STR("main.lua"), ML_STR("local b = require 'b'\nassert(b.x == 1)\n"
                                    "assert(require 'b' == b)\nreturn {}")},
        {ML_STR("b.lua"), ML_STR("local name = ...\nassert(name == nil or true)\n"
                                 "return { x = 1 }")},
        {ML_STR("c.lua"), ML_STR("error('not mine')")},
        {ML_STR("d.lua"), ML_STR("return require 'e'")},
        {ML_STR("e.lua"), ML_STR("\nlocal x = 1 + nil")},
        {ML_STR("moonloop.lua"), ML_STR("error('shadows the library')")},
    };
    const struct ml_script_files files = {file, ML_COUNT(file)};
    struct ml_err err = ML_ERR_INIT;
    struct ml_script *script = NULL;
    assert_int_equal(ml_script_load(NULL, NULL, &files, 0, &script, &err), 0);
    assert_true(ml_script_loaded_file(script, ML_STR("b.lua")));
    assert_false(ml_script_loaded_file(script, ML_STR("c.lua")));
    ml_script_unref(script);
    script = NULL;
    assert_int_equal(ml_script_load(NULL, NULL, &files, 3, &script, &err), ML_ESCRIPT);
    assert_null(script);
    assert_non_null(strstr(err.message, "e.lua:2: attempt to perform arithmetic"));
}

/* The digits are those that sha256sum gives, as docs/scripting.md says. */
static void test_load_names_the_revision_by_the_files_that_it_used(void **state)
{
    (void)state;
    const struct ml_script_file a = {
        ML_STR("a.lua"), ML_STR("local moonloop = require 'moonloop'\nrequire 'b'\n"
                                "return moonloop.controller { name = 'x', reconciles = "
                                "moonloop.kind('v1', 'Pod'), reconcile = function() end }")};
    const struct ml_script_file b = {ML_STR("b.lua"), ML_STR("return {}")};
    const struct ml_script_file other_b = {ML_STR("b.lua"), ML_STR("return {} ")};
    const struct ml_script_file c = {ML_STR("c.lua"), ML_STR("error 'not loaded'")};
    const struct {
        struct ml_script_file files[3];
        size_t count, entry;
        bool same;
    } rows[] = {
        {{a, b}, 2, 0, true},
        {{c, b, a}, 3, 2, true}, /* neither their order counts, nor what is not loaded */
        {{a, other_b}, 2, 0, false},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        const struct ml_script_files files = {rows[i].files, rows[i].count};
        struct ml_err err = ML_ERR_INIT;
        struct ml_script *script = NULL;
        assert_int_equal(ml_script_load(NULL, NULL, &files, rows[i].entry, &script, &err), 0);
        const char *revision = ml_script_declaration(script)->revision;
        assert_int_equal(strlen(revision), ML_REVISION_LEN);
        assert_int_equal(strcmp(revision, "8d80cd31") == 0, rows[i].same);
        ml_script_unref(script);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_load_controller_is_declared),
        cmocka_unit_test(test_load_table_is_a_module),
        cmocka_unit_test(test_load_bad_file_is_refused_with_its_line),
        cmocka_unit_test(test_load_kind_keeps_what_of_it_is_watched),
        cmocka_unit_test(test_load_bad_selection_is_refused_with_its_line),
        cmocka_unit_test(test_load_bad_declaration_is_refused_with_its_field),
        cmocka_unit_test(test_load_too_large_file_is_refused),
        cmocka_unit_test(test_load_require_finds_files_of_the_set),
        cmocka_unit_test(test_load_names_the_revision_by_the_files_that_it_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
