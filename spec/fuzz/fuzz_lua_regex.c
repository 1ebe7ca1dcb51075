/* A pattern and, behind a byte that UTF-8 cannot hold, a text, through the server's regexes. A
 * pattern that compiles must answer in time, the same again, and also as a part of a larger one. */
#include <stdio.h>

#include "cluster/host/server_lua.h"

#define CUT 0xFF

static const char *const prelude = "local regex = require 'cluster.regex'\n"
                                   "function check(pattern, text)\n"
                                   "  local compiled, why = regex.compile(pattern)\n"
                                   "  if not compiled then return assert(#why > 0) end\n"
                                   "  local matched, problem = compiled:match(text)\n"
                                   "  local again, same = compiled:match(text)\n"
                                   "  assert(matched == again and problem == same)\n"
                                   "  if pattern:find('\\\\Q', 1, true) then return end\n"
                                   "  local within = regex.compile('(?:' .. pattern .. ')')\n"
                                   "  if problem or not within then return end\n"
                                   "  matched, problem = within:match(text)\n"
                                   "  assert(problem or matched == again)\n"
                                   "end\n";

static struct ml_server_lua *lua;

static void run(const char *text)
{
    struct ml_err err;
    if (ml_server_lua_run(lua, "fuzz", ml_str_of(text), &err) == 0)
        return;
    fprintf(stderr, "%s\n", ml_server_lua_traceback(lua));
    abort();
}

static void put_literal(struct ml_buf *out, const uint8_t *bytes, size_t len)
{
    ml_buf_putc(out, '\'');
    for (size_t i = 0; i < len; i++)
        ml_buf_printf(out, "\\%03d", bytes[i]);
    ml_buf_putc(out, '\'');
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    lua = ml_server_lua_new(&(struct ml_server_lua_options){.files_first = false});
    run(prelude);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *cut = size ? memchr(data, CUT, size) : NULL;
    size_t len = cut ? (size_t)(cut - data) : size;
    struct ml_buf text = ML_BUF_INIT;
    ml_buf_puts(&text, "check(");
    put_literal(&text, data, len);
    ml_buf_puts(&text, ", ");
    put_literal(&text, data + len + (cut ? 1 : 0), size - len - (cut ? 1 : 0));
    ml_buf_puts(&text, ")");
    run(ml_buf_cstr(&text));
    ml_buf_fini(&text);
    return 0;
}
