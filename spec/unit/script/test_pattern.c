/* The own matcher against the stock one: whatever both are asked, they answer the same. */
#include "unit.h"

#include <lualib.h>

#include "base/random.h"
#include "script/environment.h"
#include "script/pattern.h"

#define ROUNDS 60000

static const char compare_chunk[] =
    "local own, call, subject, pattern, extra = ...\n"
    "local calls = {\n"
    "  find = function(lib) return lib.find(subject, pattern, extra) end,\n"
    "  match = function(lib) return lib.match(subject, pattern, extra) end,\n"
    "  gmatch = function(lib)\n"
    "    local all = {}\n"
    "    for a, b, c in lib.gmatch(subject, pattern) do\n"
    "      all[#all + 1] = ('%s|%s|%s'):format(a, b, c)\n"
    "    end\n"
    "    return table.concat(all, ';')\n"
    "  end,\n"
    "  text = function(lib) return lib.gsub(subject, pattern, '<%0%%>', extra) end,\n"
    "  again = function(lib) return lib.gsub(subject, pattern, '%1-') end,\n"
    "  table = function(lib) return lib.gsub(subject, pattern, { a = 1, b = false, ab = 'x' }) "
    "end,\n"
    "  call = function(lib)\n"
    "    return lib.gsub(subject, pattern, function(a, b)\n"
    "      return a == 'a' and nil or ('[%s%s]'):format(a, b or '')\n"
    "    end)\n"
    "  end,\n"
    "}\n"
    "local function show(...)\n"
    "  local list = table.pack(...)\n"
    "  for i = 1, list.n do list[i] = math.type(list[i]) == 'float' and 'float' or\n"
    "    tostring(list[i]):gsub('^[^:]*:%d+: ', '') end\n"
    "  return table.concat(list, ',')\n"
    "end\n"
    "local want = show(pcall(calls[call], string))\n"
    "local got = show(pcall(calls[call], own))\n"
    "if want ~= got then\n"
    "  error(('%s(%q, %q, %s): want %s, got %s'):format(call, subject, pattern, extra, want, got), "
    "0)\n"
    "end\n";

static int open_both(void **state)
{
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    assert_int_equal(luaL_loadstring(L, compare_chunk), LUA_OK);
    script_open_string(L);
    *state = L;
    return 0;
}

static int close_both(void **state)
{
    lua_close(*state);
    return 0;
}

static void compare(lua_State *L, const char *call, struct ml_str subject, struct ml_str pattern,
                    int64_t extra)
{
    lua_pushvalue(L, 1);
    lua_pushvalue(L, 2);
    lua_pushstring(L, call);
    lua_pushlstring(L, subject.ptr, subject.len);
    lua_pushlstring(L, pattern.ptr, pattern.len);
    if (extra == INT64_MAX)
        lua_pushnil(L);
    else
        lua_pushinteger(L, extra);
    if (lua_pcall(L, 5, 0, 0) != LUA_OK)
        fail_msg("%s", lua_tostring(L, -1));
}

static const char *const calls[] = {"find", "match", "gmatch", "text", "again", "table", "call"};

static size_t compose(struct ml_random *random, const char *const *pieces, size_t piece_count,
                      int64_t pieces_max, char *out)
{
    size_t len = 0;
    for (int64_t n = ml_random_between(random, 0, pieces_max + 1); n > 0; n--) {
        const char *piece = pieces[ml_random_between(random, 0, (int64_t)piece_count)];
        size_t piece_len = piece[0] ? strlen(piece) : 1; /* "" stands for a NUL */
        memcpy(out + len, piece, piece_len);
        len += piece_len;
    }
    return len;
}

static void test_pattern_random_questions_have_the_stock_answers(void **state)
{
    static const char *const in_pattern[] = {
        "a",       "b",    ".",     "%a",     "%d", "%S", "%W",   "[ab]", "[^a]", "[a-c]",
        "[%d_]",   "[]]",  "*",     "+",      "-",  "?",  "*",    "-",    "(",    ")",
        "(",       ")",    "()",    "^",      "$",  "%1", "%2",   "%b()", "%bab", "%f[a]",
        "%f[^%w]", "%.",   "%%",    "[",      "]",  "%",  "%f",   "%b",   "(a)",  "(.-)",
        "(b*)",    "[a-]", "[^]a]", "[%a-z]", " ",  "",   "\xc3", "%z",
    };
    static const char *const in_subject[] = {"a", "b", "ab", "(", ")", " ", "1", "_", ".", "", "c"};
    struct ml_random random;
    ml_random_init(&random, 7);
    for (size_t round = 0; round < ROUNDS; round++) {
        char subject[64], pattern[64];
        struct ml_str s = {subject,
                           compose(&random, in_subject, ML_COUNT(in_subject), 12, subject)};
        struct ml_str p = {pattern, compose(&random, in_pattern, ML_COUNT(in_pattern), 7, pattern)};
        int64_t extra = ml_random_between(&random, -4, 8);
        compare(*state, calls[round % ML_COUNT(calls)], s, p, extra > 4 ? INT64_MAX : extra);
    }
}

static void test_pattern_corners_have_the_stock_answers(void **state)
{
    static const struct {
        const char *subject, *pattern;
    } cases[] = {
        {"THE (quick) fox", "%((%a+)%)"},
        {"THE (quick) fox", "%f[%a]%a+%f[%A]"},
        {"key = value", "^(%w+)%s*=%s*(%w+)$"},
        {"2026-07-03T10:02:00Z", "^(%d%d%d%d)%-(%d%d)%-(%d%d)T(%d%d):(%d%d):(%d%d)Z$"},
        {"", ""},
        {"", ".-"},
        {"abc", ""},
        {"abc", "()"},
        {"hello world", "o w"},
        {"a\nb", "a.b"},
        {"((a)(b))", "%b()"},
        {"x^y", "^x^y$"},
        {"aXb", "%u"},
        {"[[x]]", "[[]"},
        {"a-z", "[a%-z]+"},
        {"aaa", "^a-$"},
        {"abcabc", "(abc)%1"},
        {"\"quoted\"", "([\"'])(.-)%1"},
        {"a,b,,c", "([^,]*)"},
        {"ab", "(a)(b)(c?)%3"},
        {"a", "(((((((((((((((((((((((((((((((((a)))))))))))))))))))))))))))))))))"},
        {"a", "%"},
        {"a", "[a"},
        {"a", "[a%"},
        {"a", "[^"},
        {"a", "[]"},
        {"a", "%b"},
        {"a", "%bx"},
        {"a", "%f"},
        {"a", "(a"},
        {"a", "a)"},
        {"a", "%0"},
        {"a", "%9"},
        {"a", "(%1)"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++)
        for (size_t call = 0; call < ML_COUNT(calls); call++)
            compare(*state, calls[call], ml_str_of(cases[i].subject), ml_str_of(cases[i].pattern),
                    INT64_MAX);
}

static void test_pattern_deep_recursion_has_the_stock_answer(void **state)
{
    char pattern[1300];
    size_t len = 0;
    for (int i = 0; i < 250; i++) {
        memcpy(pattern + len, "a?", 2);
        len += 2;
    }
    char subject[300];
    memset(subject, 'a', sizeof(subject));
    for (size_t n = 195; n < 205; n++)
        compare(*state, "match", (struct ml_str){subject, n}, (struct ml_str){pattern, len},
                INT64_MAX);
}

static bool at_once(void)
{
    return true;
}

static void test_pattern_expired_stops(void **state)
{
    (void)state;
    char subject[4096];
    memset(subject, 'a', sizeof(subject));
    struct pattern match;
    pattern_init(&match, (struct ml_str){subject, sizeof(subject)}, at_once);
    assert_null(pattern_at(&match, subject, ML_STR(".-.-.-.-.-b")));
    assert_true(match.stopped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pattern_random_questions_have_the_stock_answers),
        cmocka_unit_test(test_pattern_corners_have_the_stock_answers),
        cmocka_unit_test(test_pattern_deep_recursion_has_the_stock_answer),
        cmocka_unit_test(test_pattern_expired_stops),
    };
    return cmocka_run_group_tests(tests, open_both, close_both);
}
