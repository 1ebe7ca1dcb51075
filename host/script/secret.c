/* Secrets in writes: encodes their stringData, and keeps their values out of messages. The message
 * of a refused write may have such values: some validation, policies and webhooks repeat the object
 * that they refuse, and the message would get into the log, an Event and the script's status. */
#include "base/wipe.h"
#include "codec/base64.h"
#include "codec/json_members.h"
#include "script/run.h"

#define WINDOW      6 /* consecutive bytes of a value that a message must not have */
#define WINDOW_BITS 16

/* The windows of a message: bit `hash` is set for each. */
struct windows {
    struct ml_str message;
    uint8_t seen[(1 << WINDOW_BITS) / 8];
};

static size_t window_hash(const char *at)
{
    uint64_t window = 0;
    memcpy(&window, at, WINDOW);
    return (size_t)((window * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - WINDOW_BITS));
}

static void note_windows(struct windows *windows, struct ml_str message)
{
    windows->message = message;
    for (size_t i = 0; i + WINDOW <= message.len; i++) {
        size_t hash = window_hash(message.ptr + i);
        windows->seen[hash / 8] |= (uint8_t)(1 << hash % 8);
    }
}

/* Does the message have a part of the value? Of one shorter than a window: all of it. */
static bool has_part(const struct windows *windows, struct ml_str value)
{
    struct ml_str message = windows->message;
    if (value.len < WINDOW)
        return value.len > 0 && memmem(message.ptr, message.len, value.ptr, value.len);
    for (size_t i = 0; i + WINDOW <= value.len; i++) {
        size_t hash = window_hash(value.ptr + i);
        if ((windows->seen[hash / 8] & 1 << hash % 8) &&
            memmem(message.ptr, message.len, value.ptr + i, WINDOW))
            return true;
    }
    return false;
}

/* The same for a field of a Secret: as it stands there, and what its base64 stands for. */
static bool has_part_of_field(const struct windows *windows, struct ml_str raw)
{
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT, bytes = ML_BUF_INIT;
    if (!ml_json_to_string(raw, &text))
        return false;
    bool has = has_part(windows, ml_buf_str(&text));
    if (!has && ml_base64_decode(ml_buf_str(&text), &bytes))
        has = has_part(windows, ml_buf_str(&bytes));
    ml_wipe_buf(&text);
    ml_wipe_buf(&bytes);
    return has;
}

bool ctx_is_secret(const struct ml_gvk *gvk)
{
    return gvk->group.len == 0 && ml_str_is(gvk->kind, "Secret");
}

/* Reads a map of strings, which may be absent. */
static bool read_strings(struct ml_str secret, const char *field, struct ml_json_members *out)
{
    struct ml_err err = ML_ERR_INIT;
    struct ml_str raw;
    if (!ml_json_find(secret, &raw, field, NULL) || ml_str_is(raw, "null"))
        return true;
    return ml_json_members_read(out, raw, 0, &err);
}

static bool write_encoded(struct ml_json_writer *writer, const struct ml_json_member *member)
{
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT, encoded = ML_BUF_INIT;
    bool done = ml_json_to_string(member->value, &text) &&
                ml_base64_encode(ml_buf_str(&text), &encoded);
    ml_json_key(writer, member->key);
    ml_json_string(writer, ml_buf_str(&encoded));
    ml_wipe_buf(&text);
    ml_wipe_buf(&encoded);
    return done;
}

/* A key that both have is the one of stringData. */
static bool write_data(struct ml_json_writer *writer, struct ml_str secret)
{
    ML_AUTO(ml_json_members_fini) struct ml_json_members data = {0}, strings = {0};
    if (!read_strings(secret, "data", &data) || !read_strings(secret, "stringData", &strings))
        return false;
    if (data.len + strings.len == 0)
        return true;
    ml_json_key(writer, ML_STR("data"));
    ml_json_begin_object(writer);
    for (size_t i = 0; i < data.len; i++)
        if (!ml_json_members_find(&strings, data.items[i].key)) {
            ml_json_key(writer, data.items[i].key);
            ml_json_raw(writer, data.items[i].value);
        }
    for (size_t i = 0; i < strings.len; i++)
        if (!write_encoded(writer, &strings.items[i]))
            return false;
    ml_json_end_object(writer);
    return true;
}

bool secret_encode_strings(struct ml_str secret, struct ml_buf *out)
{
    ML_AUTO(ml_json_members_fini) struct ml_json_members members = {0};
    struct ml_json_writer writer;
    struct ml_err err = ML_ERR_INIT;
    size_t before = out->len;
    if (!ml_json_members_read(&members, secret, 0, &err) ||
        !ml_json_members_find(&members, ML_STR("stringData")))
        return false;
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    for (size_t i = 0; i < members.len; i++) {
        const struct ml_json_member *member = &members.items[i];
        if (ml_str_is(member->key, "data") || ml_str_is(member->key, "stringData"))
            continue;
        ml_json_key(&writer, member->key);
        ml_json_raw(&writer, member->value);
    }
    bool done = write_data(&writer, secret);
    ml_json_end_object(&writer);
    if (!done)
        out->len = before;
    return done;
}

void secret_redact(struct ml_str secret, struct ml_err *err)
{
    static const char *const fields[] = {"data", "stringData"};
    struct windows windows = {.message = {NULL, 0}};
    struct ml_err ignored;
    bool leaks = false;
    note_windows(&windows, ml_str_of(err->message));
    for (size_t i = 0; i < ML_COUNT(fields) && !leaks; i++) {
        ML_AUTO(ml_json_members_fini) struct ml_json_members members = {0};
        struct ml_str raw;
        if (!ml_json_find(secret, &raw, fields[i], NULL) ||
            !ml_json_members_read(&members, raw, 0, &ignored))
            continue;
        for (size_t m = 0; m < members.len && !leaks; m++)
            leaks = has_part_of_field(&windows, members.items[m].value);
    }
    if (leaks)
        snprintf(err->message, sizeof(err->message),
                 "what the server says is left out, as it has a part of a value of the Secret");
}
