/* What moonloop/base64.lua, labels.lua and yaml.lua build on: base64, values by way of JSON, YAML
 * as kubectl reads it, label selectors. Added to the primitives of the library by declare.c. */
#include "codec/base64.h"
#include "codec/yaml.h"
#include "kube/selector.h"
#include "script/internal.h"

#define YAML_CHARGED ((size_t)64 * 1024) /* bytes that its reader's memory is charged by */

/* The work buffer of what goes out of the codecs, empty. */
static struct ml_buf *clear_outgoing(lua_State *L)
{
    struct ml_buf *out = &script_of(L)->outgoing;
    ml_buf_clear(out);
    out->len_max = SCRIPT_JSON_MAX;
    return out;
}

/* [-0, +1] */
ML_RAISES static int push_outgoing(lua_State *L)
{
    const struct ml_buf *out = &script_of(L)->outgoing;
    script_charge_work(L);
    lua_pushlstring(L, out->ptr ? out->ptr : "", out->len);
    return 1;
}

/* base64_encode(bytes) -> text | nil, why */
ML_RAISES static int host_base64_encode(lua_State *L)
{
    struct ml_str bytes = script_check_str(L, 1);
    if (!ml_base64_encode(bytes, clear_outgoing(L)))
        return script_push_refusal(L, "the result is larger than 3 MiB");
    return push_outgoing(L);
}

/* base64_decode(text) -> bytes | nil, why */
ML_RAISES static int host_base64_decode(lua_State *L)
{
    struct ml_str text = script_check_str(L, 1);
    struct ml_err err;
    if (text.len > SCRIPT_JSON_MAX)
        return script_push_refusal(L, "it is larger than 3 MiB");
    if (ml_base64_decode_strict(text, clear_outgoing(L), &err) < 0)
        return script_push_refusal(L, err.message);
    return push_outgoing(L);
}

/* encode(value) -> its JSON */
ML_RAISES static int host_encode(lua_State *L)
{
    luaL_checkany(L, 1);
    script_encode(L, 1, "", &script_of(L)->outgoing);
    return push_outgoing(L);
}

/* plain(value) -> what is left of it when it has been JSON: tables without metamethods, lists that
 * are marked, the keys of an object in its order */
ML_RAISES static int host_plain(lua_State *L)
{
    luaL_checkany(L, 1);
    script_encode(L, 1, "", &script_of(L)->outgoing);
    script_push_json(L, ml_buf_str(&script_of(L)->outgoing), SHAPE_PLAIN);
    return 1;
}

/* is_list(table) -> whether it is marked as one */
ML_RAISES static int host_is_list(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_pushboolean(L, shape_is_array(L, 1));
    return 1;
}

/* ---- YAML ---- */

struct yaml_payer {
    struct ml_script *script;
    size_t charged;
    bool is_broke;
};

/* Raises nothing: the reader has memory of its own. */
static bool may_read_on(void *context, size_t held)
{
    struct yaml_payer *payer = context;
    if (script_cpu_expired())
        return false;
    if (held <= payer->charged)
        return true;
    size_t more = held - payer->charged + YAML_CHARGED;
    payer->is_broke = !ml_budget_take(&payer->script->memory, more);
    payer->charged += payer->is_broke ? 0 : more;
    return !payer->is_broke;
}

/* Reads the one document of `text` into `out`. 0: there is none. */
static int read_yaml(struct yaml_payer *payer, struct ml_str text, struct ml_buf *out,
                     struct ml_err *err)
{
    const struct ml_yaml_watch watch = {may_read_on, payer};
    struct ml_yaml_stream stream;
    ml_yaml_stream_init(&stream, text);
    stream.watch = &watch;
    int first = ml_yaml_stream_next(&stream, SCRIPT_JSON_MAX, out, err), second = 0;
    size_t len = out->len;
    if (first > 0)
        second = ml_yaml_stream_next(&stream, SCRIPT_JSON_MAX, out, err);
    if (second > 0)
        second = ml_err_set(err, ML_EINVALID, "line %zu: a second document; expected one",
                            stream.line);
    out->len = len;
    ml_budget_give(&payer->script->memory, payer->charged);
    return second < 0 ? second : first;
}

/* yaml_decode(text) -> value | nil, why */
ML_RAISES static int host_yaml_decode(lua_State *L)
{
    struct ml_str text = script_check_str(L, 1);
    struct ml_buf *out = clear_outgoing(L);
    struct yaml_payer payer = {.script = script_of(L)};
    struct ml_err err;
    if (text.len > SCRIPT_YAML_MAX)
        return script_push_refusal(L, "it is larger than 1 MiB");
    int r = read_yaml(&payer, text, out, &err);
    script_cpu_check(L);
    if (payer.is_broke)
        script_raise_out_of_memory(L);
    if (r < 0)
        return script_push_refusal(L, err.message);
    if (r == 0)
        script_push_null(L);
    else
        script_push_json(L, ml_buf_str(out), SHAPE_PLAIN);
    return 1;
}

/* ---- selectors ---- */

/* selector_check(text) -> true | nil, why */
ML_RAISES static int host_selector_check(lua_State *L)
{
    struct ml_str selector = script_check_str(L, 1);
    struct ml_err err;
    if (selector.len > SCRIPT_SELECTOR_MAX)
        return script_push_refusal(L, "a selector has at most 4096 bytes");
    if (selector.len > 0 && ml_label_selector_check(selector, &err) < 0)
        return script_push_refusal(L, err.message);
    lua_pushboolean(L, 1);
    return 1;
}

/* selector_matches(text, labels) -> boolean; the text has passed selector_check */
ML_RAISES static int host_selector_matches(lua_State *L)
{
    struct ml_str selector = script_check_str(L, 1), missed;
    struct ml_buf *labels = &script_of(L)->outgoing;
    script_encode(L, 2, "labels", labels);
    lua_pushboolean(L, ml_label_selector_matches(selector, ml_buf_str(labels), &missed));
    return 1;
}

/* is_label(key, value) -> can an object have it? */
ML_RAISES static int host_is_label(lua_State *L)
{
    struct ml_str key = script_check_str(L, 1), value = script_check_str(L, 2);
    lua_pushboolean(L, ml_label_valid(key, value));
    return 1;
}

ML_RAISES void script_add_text(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"base64_decode", host_base64_decode},
        {"base64_encode", host_base64_encode},
        {"encode", host_encode},
        {"is_label", host_is_label},
        {"is_list", host_is_list},
        {"plain", host_plain},
        {"selector_check", host_selector_check},
        {"selector_matches", host_selector_matches},
        {"yaml_decode", host_yaml_decode},
        {NULL, NULL},
    };
    luaL_setfuncs(L, functions, 0);
}
