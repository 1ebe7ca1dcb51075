/* The primitives that the modules of the library build on (moonloop/base64.lua, crypto.lua,
 * labels.lua, yaml.lua and others): lists and copies of tables, base64, YAML as kubectl reads it,
 * label selectors, random bytes and digests, files of time zones. */
#include <unistd.h>

#include "codec/base64.h"
#include "codec/crypto.h"
#include "codec/yaml.h"
#include "kube/kubeconfig.h"
#include "kube/selector.h"
#include "script/environment.h"
#include "script/objects.h"
#include "script/reads.h"

#define YAML_CHARGED ((size_t)64 * 1024) /* bytes that its reader's memory is charged by */
#define ALPHABET_MAX 256
#define DRAWN_MAX    256                 /* bytes at a time */
#define ZONE_MAX     ((size_t)16 * 1024) /* bytes of its file; the largest there are have 4 KB */

/* ---- tables ---- */

/* moonloop.array(list): marks the table as an array and returns it. Refuses a table with a
 * metatable, which may protect it or give it its meaning. */
ML_RAISES static int host_array(lua_State *L)
{
    if (lua_isnoneornil(L, 1)) {
        lua_settop(L, 0);
        lua_newtable(L);
    }
    if (!lua_istable(L, 1))
        return luaL_error(L, "moonloop.array(list): expected a table, got a %s",
                          luaL_typename(L, 1));
    lua_settop(L, 1);
    if (lazy_is_pending(L, 1) || key_order_keys(L, 1))
        return luaL_error(L, "moonloop.array(list): this table is an object");
    if (script_is_array(L, 1))
        return 1;
    if (lua_getmetatable(L, 1))
        return luaL_error(L, "moonloop.array(list): this table has a metatable; put its elements "
                             "into a new one");
    script_mark_array(L, 1);
    return 1;
}

/* copy(table): the library checks and keeps a copy, so that the script cannot change it afterwards.
 */
ML_RAISES static int host_copy(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    script_push_copy(L, 1, SCRIPT_COPY_MAX);
    return 1;
}

/* contents(table, most) -> copy, count: its entries in a new table, which is a list if that one is
 * marked as a list; nil: there are more. */
ML_RAISES static int host_contents(lua_State *L)
{
    int most = (int)luaL_checkinteger(L, 2), count = 0;
    lazy_check_table(L, 1);
    for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1)) {
        script_cpu_check(L);
        if (count++ == most)
            return 0;
    }
    script_push_copy(L, 1, most);
    if (script_is_array(L, 1))
        script_mark_array(L, -1);
    lua_pushinteger(L, count);
    return 2;
}

/* is_array(table) -> is it marked as a list? */
ML_RAISES static int host_is_array(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_pushboolean(L, script_is_array(L, 1));
    return 1;
}

ML_RAISES static int host_getmetatable(lua_State *L)
{
    if (!lua_getmetatable(L, 1))
        lua_pushnil(L);
    return 1;
}

/* ---- base64 and JSON ---- */

/* The work buffer for the output of the codecs, empty. */
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

/* ---- YAML ---- */

struct yaml_account {
    struct ml_script *script;
    size_t capacity; /* of script->outgoing at the beginning: charged by script_charge_work */
    size_t charged;
    bool is_broke;
};

static struct yaml_account account_of(struct ml_script *script)
{
    return (struct yaml_account){.script = script, .capacity = script->outgoing.capacity};
}

/* Raises nothing: the reader has memory of its own. */
static bool may_go_on(void *context, size_t held)
{
    struct yaml_account *account = context;
    if (script_cpu_expired())
        return false;
    held += account->script->outgoing.capacity - account->capacity;
    if (held <= account->charged)
        return true;
    size_t more = held - account->charged + YAML_CHARGED;
    account->is_broke = !ml_budget_take(&account->script->memory, more);
    account->charged += account->is_broke ? 0 : more;
    return !account->is_broke;
}

/* Call after the work: raises what has ended it, and charges what its result leaves behind. */
ML_RAISES static void settle(lua_State *L, const struct yaml_account *account)
{
    ml_budget_give(&account->script->memory, account->charged);
    script_cpu_check(L);
    script_charge_work(L);
    if (account->is_broke)
        script_raise_out_of_memory(L);
}

/* yaml_encode(value) -> text | nil, why; raises for what JSON cannot hold */
ML_RAISES static int host_yaml_encode(lua_State *L)
{
    struct ml_buf *json = &script_of(L)->overlay, *out = clear_outgoing(L);
    struct yaml_account account = account_of(script_of(L));
    const struct ml_yaml_watch watch = {may_go_on, &account};
    struct ml_err err;
    luaL_checkany(L, 1);
    script_encode(L, 1, "", json);
    out->len_max = 2 * SCRIPT_JSON_MAX;
    int r = ml_yaml_write(ml_buf_str(json), ML_YAML_SENTENCES, &watch, out, &err);
    settle(L, &account);
    return r < 0 ? script_push_refusal(L, err.message) : push_outgoing(L);
}

/* Reads the one document of `text` into `out`. 0: there is none. */
static int read_yaml(struct yaml_account *account, struct ml_str text, struct ml_buf *out,
                     struct ml_err *err)
{
    const struct ml_yaml_watch watch = {may_go_on, account};
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
    return second < 0 ? second : first;
}

/* yaml_decode(text) -> value | nil, why */
ML_RAISES static int host_yaml_decode(lua_State *L)
{
    struct ml_str text = script_check_str(L, 1);
    struct ml_buf *out = clear_outgoing(L);
    struct yaml_account account = account_of(script_of(L));
    struct ml_err err;
    if (text.len > SCRIPT_YAML_MAX)
        return script_push_refusal(L, "it is larger than 1 MiB");
    int r = read_yaml(&account, text, out, &err);
    settle(L, &account);
    if (r < 0)
        return script_push_refusal(L, err.message);
    if (r == 0)
        script_push_null(L);
    else
        script_push_json(L, ml_buf_str(out), ROOT_PLAIN);
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

/* ---- random bytes and digests ----
 *
 * The randomness is OpenSSL's; in tests it follows from the world's seed (codec/crypto.h). A run
 * that draws any has no read set, as with math.random. */

/* Why no randomness may be drawn now; NULL: it may. A value that is drawn while a file loads
 * differs in each process and after each edit: objects made of it would change with every restart.
 */
static const char *why_not_now(lua_State *L)
{
    return script_of(L)->files ? "only in a function of the controller: what is drawn while the "
                                 "file loads is lost with the process"
                               : NULL;
}

/* Fills `out`; -1 when there are no random bytes. */
static int draw_bytes(lua_State *L, void *out, size_t len, struct ml_err *err)
{
    reads_give_up(script_reads_now(L), "it draws random numbers");
    return ml_secret_bytes(&script_of(L)->random, out, len, err);
}

/* random_bytes(count) -> bytes | nil, why */
ML_RAISES static int host_random_bytes(lua_State *L)
{
    lua_Integer count = luaL_checkinteger(L, 1);
    struct ml_err err;
    luaL_Buffer bytes;
    if (count < 1 || count > SCRIPT_RANDOM_MAX)
        return script_push_refusal(L, "expected a whole number from 1 to 65536");
    if (why_not_now(L))
        return script_push_refusal(L, why_not_now(L));
    char *room = luaL_buffinitsize(L, &bytes, (size_t)count);
    if (draw_bytes(L, room, (size_t)count, &err) < 0)
        return luaL_error(L, "%s", err.message);
    luaL_pushresultsize(&bytes, (size_t)count);
    return 1;
}

/* uuid() -> text | nil, why */
ML_RAISES static int host_uuid(lua_State *L)
{
    uint64_t bits[2];
    char text[ML_UUID_LEN + 1];
    struct ml_err err;
    if (why_not_now(L))
        return script_push_refusal(L, why_not_now(L));
    if (draw_bytes(L, bits, sizeof bits, &err) < 0)
        return luaL_error(L, "%s", err.message);
    ml_uuid_format(bits[0], bits[1], text);
    lua_pushlstring(L, text, ML_UUID_LEN);
    return 1;
}

static bool is_alphabet(struct ml_str letters)
{
    bool seen[ALPHABET_MAX] = {false};
    for (size_t i = 0; i < letters.len; i++) {
        bool *is_seen = &seen[(unsigned char)letters.ptr[i]];
        if (*is_seen)
            return false;
        *is_seen = true;
    }
    return letters.len >= 2;
}

/* Fills `out` with letters that are all equally likely: a byte beyond the last multiple of their
 * number is discarded. -1 when there are no random bytes. */
static int draw_letters(lua_State *L, struct ml_str letters, char *out, size_t len,
                        struct ml_err *err)
{
    unsigned char bytes[DRAWN_MAX];
    size_t usable = ALPHABET_MAX - ALPHABET_MAX % letters.len, made = 0;
    int r = 0;
    while (made < len && r == 0) {
        r = draw_bytes(L, bytes, sizeof bytes, err);
        for (size_t i = 0; i < sizeof bytes && made < len && r == 0; i++)
            if (bytes[i] < usable)
                out[made++] = letters.ptr[bytes[i] % letters.len];
    }
    explicit_bzero(bytes, sizeof bytes);
    return r;
}

/* password(length, alphabet) -> text | nil, why */
ML_RAISES static int host_password(lua_State *L)
{
    lua_Integer length = luaL_checkinteger(L, 1);
    struct ml_str alphabet = script_check_str(L, 2);
    char text[SCRIPT_PASSWORD_MAX];
    struct ml_err err;
    if (length < 1 || length > SCRIPT_PASSWORD_MAX)
        return script_push_refusal(L, "length: expected a whole number from 1 to 1024");
    if (!is_alphabet(alphabet))
        return script_push_refusal(L, "alphabet: expected 2 to 256 bytes, each of them once");
    if (why_not_now(L))
        return script_push_refusal(L, why_not_now(L));
    if (draw_letters(L, alphabet, text, (size_t)length, &err) < 0)
        return luaL_error(L, "%s", err.message);
    lua_pushlstring(L, text, (size_t)length);
    explicit_bzero(text, sizeof text);
    return 1;
}

/* The input of a digest, which reads all of it at once: no deadline holds meanwhile. */
ML_RAISES static struct ml_str check_input(lua_State *L, int index)
{
    struct ml_str bytes = script_check_str(L, index);
    if (bytes.len > SCRIPT_JSON_MAX)
        luaL_error(L, "more than 3 MiB");
    return bytes;
}

/* sha256(bytes) -> bytes */
ML_RAISES static int host_sha256(lua_State *L)
{
    unsigned char digest[ML_SHA256_LEN];
    ml_sha256(check_input(L, 1), digest);
    lua_pushlstring(L, (const char *)digest, sizeof digest);
    return 1;
}

/* hmac_sha256(key, bytes) -> bytes */
ML_RAISES static int host_hmac_sha256(lua_State *L)
{
    unsigned char digest[ML_SHA256_LEN];
    ml_hmac_sha256(check_input(L, 1), check_input(L, 2), digest);
    lua_pushlstring(L, (const char *)digest, sizeof digest);
    return 1;
}

/* hex(bytes) -> text */
ML_RAISES static int host_hex(lua_State *L)
{
    struct ml_str bytes = check_input(L, 1);
    struct ml_buf *out = &script_of(L)->outgoing;
    ml_buf_clear(out);
    out->len_max = 2 * SCRIPT_JSON_MAX;
    if (!ml_hex_encode(bytes, out))
        return luaL_error(L, "too large");
    script_charge_work(L);
    lua_pushlstring(L, out->ptr, out->len);
    return 1;
}

/* ---- time zones ---- */

/* Is it a name of the IANA database? No name has a dot, so none leads out of the folder. */
static bool is_zone_name(struct ml_str name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "_+-/";
    return name.len > 0 && name.len <= SCRIPT_ZONE_NAME_MAX &&
           strspn(name.ptr, letters) == name.len && name.ptr[0] != '/' && !strstr(name.ptr, "//");
}

/* The folder of the zones, where glibc looks for them as well. */
static const char *zones_folder(void)
{
    const char *folder = getenv("TZDIR");
    return folder && *folder ? folder : "/usr/share/zoneinfo";
}

/* zone_file(name) -> the bytes of the zone's file | nil: there is no such zone | nil, why */
ML_RAISES static int host_zone_file(lua_State *L)
{
    struct ml_str name = script_check_str(L, 1);
    struct ml_buf *out = clear_outgoing(L);
    const char *folder = zones_folder();
    struct ml_err err;
    out->len_max = ZONE_MAX;
    if (!is_zone_name(name))
        return 0;
    lua_pushfstring(L, "%s/%s", folder, name.ptr);
    int r = ml_file_read_again(lua_tostring(L, -1), out, &err);
    if (r == 0)
        return push_outgoing(L);
    if (r == ML_ELIMIT)
        return script_push_refusal(L, err.message);
    if (access(folder, R_OK) == 0)
        return 0;
    lua_pushnil(L);
    lua_pushfstring(L, "there are no time zones in %s: install the package tzdata", folder);
    return 2;
}

ML_RAISES void script_add_primitives(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"array", host_array},
        {"base64_decode", host_base64_decode},
        {"base64_encode", host_base64_encode},
        {"contents", host_contents},
        {"copy", host_copy},
        {"getmetatable", host_getmetatable},
        {"hex", host_hex},
        {"hmac_sha256", host_hmac_sha256},
        {"is_array", host_is_array},
        {"is_label", host_is_label},
        {"password", host_password},
        {"random_bytes", host_random_bytes},
        {"selector_check", host_selector_check},
        {"selector_matches", host_selector_matches},
        {"sha256", host_sha256},
        {"uuid", host_uuid},
        {"yaml_decode", host_yaml_decode},
        {"yaml_encode", host_yaml_encode},
        {"zone_file", host_zone_file},
        {NULL, NULL},
    };
    luaL_setfuncs(L, functions, 0);
    script_push_null(L);
    lua_setfield(L, -2, "null");
}
