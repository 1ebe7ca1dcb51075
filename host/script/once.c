/* The primitives of ctx.once (moonloop/once.lua), besides the ctx functions that scripts have: the
 * owner, how Secrets are declared, base64, errors. The table with these functions is passed to
 * once.lua alone; no script gets it. */
#include "base/wipe.h"
#include "codec/base64.h"
#include "script/ctx_calls.h"
#include "script/ctx_target.h"

#define ONCE_VALUE_MAX ((size_t)3 * 1024 * 1024) /* of a body */

ML_RAISES static void put_field(lua_State *L, const char *field, struct ml_str text)
{
    lua_pushlstring(L, text.ptr ? text.ptr : "", text.len);
    lua_setfield(L, -2, field);
}

/* owner() -> { apiVersion =, kind =, name =, namespace =, uid = } of the reconciled object, which
 * becomes the controller of the Secret; nothing outside of a reconcile. */
ML_RAISES static int once_owner(lua_State *L)
{
    const struct script_thread *thread = script_thread_of(L);
    if (!thread->run)
        return 0;
    const struct ml_kind *kind = script_of(L)->binding.kinds[0];
    lua_createtable(L, 0, 5);
    put_field(L, "apiVersion", ml_str_of(kind->api_version));
    put_field(L, "kind", ml_str_of(kind->kind));
    put_field(L, "name", ml_object_name(thread->object));
    put_field(L, "namespace", ml_object_namespace(thread->object));
    put_field(L, "uid", ml_object_uid(thread->object));
    return 1;
}

/* declared() -> { labels =, metadata_only = } of Secret; nothing when the script does not declare
 * it. */
ML_RAISES static int once_declared(lua_State *L)
{
    const struct ml_declaration *declaration = &script_of(L)->declaration;
    for (size_t i = 0; i < declaration->kind_count; i++) {
        const struct ml_script_kind *kind = &declaration->kinds[i];
        if (!ctx_is_secret(&kind->gvk))
            continue;
        lua_createtable(L, 0, 2);
        if (kind->selection.labels.len > 0)
            put_field(L, "labels", kind->selection.labels);
        lua_pushboolean(L, kind->selection.metadata_only);
        lua_setfield(L, -2, "metadata_only");
        return 1;
    }
    return 0;
}

/* encode(bytes) -> base64 */
ML_RAISES static int once_encode(lua_State *L)
{
    struct ml_str bytes = script_check_str(L, 1);
    struct ml_buf *out = &script_of(L)->outgoing;
    ml_buf_clear(out);
    if (bytes.len > ONCE_VALUE_MAX || !ml_base64_encode(bytes, out))
        return luaL_error(L, "ctx.once: a value is too large");
    script_charge_work(L);
    lua_pushlstring(L, out->ptr ? out->ptr : "", out->len);
    ml_wipe_buf(out);
    return 1;
}

/* decode(base64) -> bytes; nothing for other text, or other values. */
ML_RAISES static int once_decode(lua_State *L)
{
    struct ml_str text = script_str(L, 1);
    struct ml_buf *out = &script_of(L)->outgoing;
    ml_buf_clear(out);
    if (!text.ptr || text.len > ONCE_VALUE_MAX || !ml_base64_decode(text, out))
        return 0;
    script_charge_work(L);
    lua_pushlstring(L, out->ptr ? out->ptr : "", out->len);
    ml_wipe_buf(out);
    return 1;
}

/* refuse("AlreadyExists" or "Invalid", name, namespace, text) -> nil, err: the Secret cannot be
 * used. Logged as a write that the server refuses. */
ML_RAISES static int once_refuse(lua_State *L)
{
    struct ml_run *run = ctx_may_wait(L, ONCE_CALL);
    bool is_foreign = strcmp(luaL_checkstring(L, 1), "AlreadyExists") == 0;
    const char *name = luaL_checkstring(L, 2), *ns = luaL_checkstring(L, 3);
    struct ml_err err = ML_ERR_INIT;
    ml_err_set(&err, is_foreign ? ML_EALREADY_EXISTS : ML_EINVALID, "Secret %s/%s %s", ns, name,
               luaL_checkstring(L, 4));
    err.http = is_foreign ? 409 : 422;
    snprintf(run->what, sizeof(run->what), "once Secret %s/%s", ns, name);
    return ctx_refuse_write(L, &err);
}

/* [-0, +0] Adds ctx.once to the table of ctx functions on top. */
ML_RAISES void script_add_once(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"owner", once_owner},   {"declared", once_declared},
        {"encode", once_encode}, {"decode", once_decode},
        {"refuse", once_refuse}, {"live", ctx_get_live},
        {"adopt", ctx_adopt},    {NULL, NULL},
    };
    static const char *const shared[] = {"get", "ensure", "patch", NULL};
    int ctx = lua_gettop(L);
    script_push_library(L, "moonloop.once");
    lua_getfield(L, -1, "bind");
    luaL_newlib(L, functions);
    lua_pushvalue(L, ctx);
    script_move_fields(L, -2, shared);
    lua_call(L, 1, 1);
    lua_setfield(L, ctx, "once");
    lua_settop(L, ctx);
}
