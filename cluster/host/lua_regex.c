/* host.regex: PCRE2, for the patterns of CRD schemas. They are written for Go's RE2, which matches
 * in linear time; cluster/regex.lua translates them
 * (docs/decisions/0005-pcre2.md).
 *
 * Backtracking, which is fast, is tried first, with a limit of steps. Beyond it PCRE2's DFA
 * matcher, which follows all alternatives at once, decides, within limits as well. If both give up,
 * there is no match. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "cluster/host/server_lua_internal.h"

#define REGEX          "moonloop.regex"
#define STEPS_MAX      200000 /* of a match at one start offset, about 10 ms */
#define STEPS_MIN      200    /* at each start offset of a long text */
#define HEAP_KIB_MAX   32768  /* of a match by backtracking */
#define WORKSPACE_SIZE 6000   /* of the DFA matcher: some 1000 alternatives at once */
#define SLOW_TEXT_MAX  2048   /* bytes of a text that the DFA matcher gets */
#define NESTED_MAX     1100   /* groups; a little more than the translation accepts */
#define MESSAGE_MAX    256
#define PATTERN_FLAGS  (PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C)

/* A full userdata; its user value is the pattern. */
struct regex {
    pcre2_code *code;
    pcre2_code *scan; /* for the DFA matcher; NULL until needed */
};

/* Shared by all matches of a Lua state; room for one pair: no groups are asked for. */
struct matching {
    pcre2_compile_context *compile;
    pcre2_match_data *data;
    pcre2_match_context *context;
    int workspace[WORKSPACE_SIZE];
};

static struct matching *matching_context_of(lua_State *L)
{
    struct ml_server_lua *lua = server_lua_of(L);
    if (lua->matching)
        return lua->matching;
    struct matching *matching = ml_new(struct matching);
    matching->compile = pcre2_compile_context_create(NULL);
    matching->data = pcre2_match_data_create(1, NULL);
    matching->context = pcre2_match_context_create(NULL);
    ml_assert(matching->compile && matching->data && matching->context);
    pcre2_set_newline(matching->compile, PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(matching->compile, NESTED_MAX);
    pcre2_set_heap_limit(matching->context, HEAP_KIB_MAX);
    lua->matching = matching;
    return matching;
}

void binding_regex_fini(struct ml_server_lua *lua)
{
    struct matching *matching = lua->matching;
    if (!matching)
        return;
    pcre2_compile_context_free(matching->compile);
    pcre2_match_data_free(matching->data);
    pcre2_match_context_free(matching->context);
    free(matching);
    lua->matching = NULL;
}

/* [+2] nil and PCRE2's message. */
static int push_pcre2_error(lua_State *L, int code)
{
    PCRE2_UCHAR message[MESSAGE_MAX];
    pcre2_get_error_message(code, message, sizeof message);
    return binding_push_error(L, (const char *)message);
}

/* NULL: `*code` says why. */
static pcre2_code *compile_pcre2(lua_State *L, struct ml_str pattern, uint32_t flags, int *code)
{
    PCRE2_SIZE at;
    const char *text = pattern.ptr ? pattern.ptr : "";
    return pcre2_compile((PCRE2_SPTR)text, pattern.len, PATTERN_FLAGS | flags, code, &at,
                         matching_context_of(L)->compile);
}

/* compile(pattern) -> re | nil, message */
ML_RAISES static int regex_compile(lua_State *L)
{
    struct ml_str pattern = binding_check_str(L, 1);
    struct regex *regex = lua_newuserdatauv(L, sizeof *regex, 1);
    *regex = (struct regex){NULL, NULL};
    luaL_setmetatable(L, REGEX);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    int code;
    regex->code = compile_pcre2(L, pattern, 0, &code);
    return regex->code ? 1 : push_pcre2_error(L, code);
}

/* The limit of steps at each start offset, such that all of them together end in time. */
static uint32_t match_steps_max(const pcre2_code *code, size_t len)
{
    uint32_t options = 0;
    pcre2_pattern_info(code, PCRE2_INFO_ALLOPTIONS, &options);
    if (options & PCRE2_ANCHORED)
        return STEPS_MAX;
    return (uint32_t)ML_MAX(2 * STEPS_MAX / (len + 1), (size_t)STEPS_MIN);
}

/* The pattern behind ".*?", anchored: with a single start offset there is a single pass. */
static pcre2_code *compile_dfa_pattern(lua_State *L, struct ml_str pattern)
{
    struct ml_buf *text = &server_lua_of(L)->work;
    int code;
    ml_buf_clear(text);
    ml_buf_puts(text, "(?s:.*?)(?:");
    ml_buf_append_str(text, pattern);
    ml_buf_puts(text, ")");
    return compile_pcre2(L, ml_buf_str(text), PCRE2_ANCHORED, &code);
}

/* The regex is at index 1. */
static int match_with_dfa(lua_State *L, struct regex *regex, struct ml_str text)
{
    struct matching *matching = matching_context_of(L);
    if (!regex->scan) {
        struct ml_str pattern;
        lua_getiuservalue(L, 1, 1);
        pattern.ptr = lua_tolstring(L, -1, &pattern.len);
        regex->scan = compile_dfa_pattern(L, pattern);
        lua_pop(L, 1);
    }
    if (!regex->scan)
        return PCRE2_ERROR_MATCHLIMIT;
    pcre2_set_match_limit(matching->context, STEPS_MAX);
    return pcre2_dfa_match(regex->scan, (PCRE2_SPTR)text.ptr, text.len, 0,
                           PCRE2_DFA_SHORTEST | PCRE2_NO_UTF_CHECK, matching->data,
                           matching->context, matching->workspace, WORKSPACE_SIZE);
}

/* re:match(text) -> bool; false and a message when both matchers gave up */
ML_RAISES static int regex_match(lua_State *L)
{
    struct regex *regex = luaL_checkudata(L, 1, REGEX);
    struct ml_str text = binding_check_str(L, 2);
    luaL_argcheck(L, regex->code != NULL, 1, "not compiled");
    struct matching *matching = matching_context_of(L);
    pcre2_set_match_limit(matching->context, match_steps_max(regex->code, text.len));
    int r = pcre2_match(regex->code, (PCRE2_SPTR)text.ptr, text.len, 0, 0, matching->data,
                        matching->context);
    bool given_up = r == PCRE2_ERROR_MATCHLIMIT || r == PCRE2_ERROR_HEAPLIMIT;
    if (given_up && text.len <= SLOW_TEXT_MAX)
        r = match_with_dfa(L, regex, text);
    if (r < 0 && r != PCRE2_ERROR_NOMATCH) {
        push_pcre2_error(L, r);
        lua_pushboolean(L, false);
        lua_replace(L, -3);
        return 2;
    }
    lua_pushboolean(L, r >= 0);
    return 1;
}

/* The byte behind the character at `at`. */
static size_t next_character(struct ml_str text, size_t at)
{
    at++;
    while (at < text.len && ((unsigned char)text.ptr[at] & 0xc0) == 0x80)
        at++;
    return at;
}

/* re:find_all(text, count) -> { from, to, from, to, … } | nil, message. As Go's FindAllString: an
 * empty match that touches the one before it does not count. */
ML_RAISES static int regex_find_all(lua_State *L)
{
    struct regex *regex = luaL_checkudata(L, 1, REGEX);
    struct ml_str text = binding_check_str(L, 2);
    lua_Integer count = luaL_checkinteger(L, 3);
    luaL_argcheck(L, regex->code != NULL, 1, "not compiled");
    struct matching *matching = matching_context_of(L);
    const PCRE2_SIZE *pair = pcre2_get_ovector_pointer(matching->data);
    pcre2_set_match_limit(matching->context, match_steps_max(regex->code, text.len));
    lua_newtable(L);
    lua_Integer found = 0;
    size_t at = 0, before = SIZE_MAX;
    uint32_t flags = 0; /* the first match checks that the text is UTF-8 */
    while (at <= text.len && (count < 0 || found < count)) {
        int r = pcre2_match(regex->code, (PCRE2_SPTR)text.ptr, text.len, at, flags, matching->data,
                            matching->context);
        if (r == PCRE2_ERROR_NOMATCH)
            break;
        if (r < 0)
            return push_pcre2_error(L, r);
        size_t from = pair[0], to = pair[1];
        bool counts = to != at || from != before;
        at = to == at ? next_character(text, at) : to;
        before = to;
        flags = PCRE2_NO_UTF_CHECK;
        if (counts) {
            lua_pushinteger(L, (lua_Integer)from + 1);
            lua_rawseti(L, -2, 2 * found + 1);
            lua_pushinteger(L, (lua_Integer)to);
            lua_rawseti(L, -2, 2 * found + 2);
            found++;
        }
    }
    return 1;
}

static int regex_gc(lua_State *L)
{
    struct regex *regex = lua_touserdata(L, 1);
    pcre2_code_free(regex->code);
    pcre2_code_free(regex->scan);
    *regex = (struct regex){NULL, NULL};
    return 0;
}

int binding_open_regex(lua_State *L)
{
    static const luaL_Reg functions[] = {{"compile", regex_compile}, {NULL, NULL}};
    static const luaL_Reg methods[] = {
        {"match", regex_match}, {"find_all", regex_find_all}, {NULL, NULL}};
    binding_new_type(L, REGEX, methods, regex_gc);
    luaL_newlib(L, functions);
    return 1;
}
