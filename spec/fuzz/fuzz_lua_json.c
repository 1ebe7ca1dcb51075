/* Any bytes through the JSON of the host's own Lua (host.json). It must take what the reader takes,
 * but for numbers beyond a double. For each text that it takes, encode must return JSON with no key
 * twice, and decoding and encoding that must return the same; and so for a copy. */
#include <stdio.h>

#include "cluster/host/server_lua.h"
#include "codec/json.h"

#define DEPTH_MAX 10000 /* host.json's own */

static const char *const prelude =
    "local json = require 'cluster.host'.json\n"
    "local say = require 'fuzz'.say\n"
    "function check(text)\n"
    "  local value, why = json.decode(text)\n"
    "  local strict, duplicates = json.decode_strict(text)\n"
    "  if value == nil then\n"
    "    assert(strict == nil and why == duplicates and #why > 0)\n"
    "    return say(why:find('too large', 1, true) and 'large' or 'bad')\n"
    "  end\n"
    "  local copy = json.copy(value)\n"
    "  assert(json.equal(value, strict) and json.equal(copy, value))\n"
    "  local once = json.encode(value)\n"
    "  local again, none = json.decode_strict(once)\n"
    "  local zero = once == '-0' or once:find '%-0[],}]'\n" /* a float; comes back as 0 */
    "  assert(#none == 0 and (zero or json.encode(again) == once))\n"
    "  assert(json.encode(copy) == once)\n"
    "  say 'good'\n"
    "end\n";

static struct ml_server_lua *lua;
static char said[8];

static int say(void *context, struct ml_str argument, struct ml_buf *result, struct ml_err *err)
{
    (void)context, (void)result, (void)err;
    snprintf(said, sizeof said, "%.*s", (int)argument.len - 2, argument.ptr + 1);
    return 0;
}

static void run(const char *text)
{
    struct ml_err err;
    if (ml_server_lua_run(lua, "fuzz", ml_str_of(text), &err) == 0)
        return;
    fprintf(stderr, "%s\n", ml_server_lua_traceback(lua));
    abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    lua = ml_server_lua_new(&(struct ml_server_lua_options){.files_first = false});
    ml_server_lua_define(lua, "fuzz", "say", say, NULL);
    run(prelude);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ml_str json = {(const char *)data, size};
    struct ml_buf text = ML_BUF_INIT;
    struct ml_err err;
    ml_buf_puts(&text, "check '");
    for (size_t i = 0; i < size; i++)
        ml_buf_printf(&text, "\\%03d", data[i]);
    ml_buf_puts(&text, "'");
    run(ml_buf_cstr(&text));
    ml_buf_fini(&text);
    bool is_json = ml_json_check(json, DEPTH_MAX, &err) == 0;
    ml_assert(strcmp(said, "large") == 0 || is_json == (strcmp(said, "good") == 0));
    return 0;
}
