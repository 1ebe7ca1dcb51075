/* What the Lua library builds on: kinds, arrays, controllers. Kinds and controllers are userdata: a
 * script can name them and look at them, but neither make one itself nor change one that was
 * checked. */
#include "kube/selector.h"
#include "script/ctx.h"

#define GVK_TEXT_MAX 256  /* of a group, version or kind each; Kubernetes allows less */
#define SELECTOR_MAX 1024 /* bytes of a label or field selector */
#define COPY_MAX     1000 /* entries of a table that the library reads: options, a list of kinds */

struct kind_value {
    struct ml_script_kind kind; /* slices into text */
    char text[];
};

static const char kind_key, controller_key, host_key;

static bool is_made_of(lua_State *L, int index, const char *key)
{
    if (lua_type(L, index) != LUA_TUSERDATA || !lua_getmetatable(L, index))
        return false;
    lua_rawgetp(L, LUA_REGISTRYINDEX, key);
    bool is = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return is;
}

static struct kind_value *to_kind_value(lua_State *L, int index)
{
    return is_made_of(L, index, &kind_key) ? lua_touserdata(L, index) : NULL;
}

const struct ml_script_kind *script_to_kind(lua_State *L, int index)
{
    const struct kind_value *value = to_kind_value(L, index);
    return value ? &value->kind : NULL;
}

bool script_is_controller(lua_State *L, int index)
{
    return is_made_of(L, index, &controller_key);
}

ML_RAISES
static void push_api_version(lua_State *L, const struct ml_gvk *gvk)
{
    lua_pushfstring(L, "%s%s%s", gvk->group.ptr, gvk->group.len > 0 ? "/" : "", gvk->version.ptr);
}

ML_RAISES
static void push_selector(lua_State *L, struct ml_str selector)
{
    if (selector.len > 0)
        lua_pushlstring(L, selector.ptr, selector.len);
    else
        lua_pushnil(L);
}

ML_RAISES
static int kind_index(lua_State *L)
{
    const struct ml_script_kind *kind = script_to_kind(L, 1);
    const char *field = lua_tostring(L, 2);
    if (kind && field && strcmp(field, "apiVersion") == 0)
        push_api_version(L, &kind->gvk);
    else if (kind && field && strcmp(field, "kind") == 0)
        lua_pushstring(L, kind->gvk.kind.ptr);
    else if (kind && field && strcmp(field, "labels") == 0)
        push_selector(L, kind->selection.labels);
    else if (kind && field && strcmp(field, "fields") == 0)
        push_selector(L, kind->selection.fields);
    else if (kind && field && strcmp(field, "metadata_only") == 0)
        lua_pushboolean(L, kind->selection.metadata_only);
    else
        return luaL_error(L, "a kind has the fields apiVersion, kind, labels, fields and "
                             "metadata_only");
    return 1;
}

ML_RAISES
static int kind_tostring(lua_State *L)
{
    const struct ml_script_kind *kind = script_to_kind(L, 1);
    if (!kind)
        return luaL_error(L, "not a kind");
    push_api_version(L, &kind->gvk);
    lua_pushfstring(L, "%s/%s", lua_tostring(L, -1), kind->gvk.kind.ptr);
    return 1;
}

static bool same_kind(const struct ml_gvk *a, const struct ml_gvk *b)
{
    return ml_str_eq(a->group, b->group) && ml_str_eq(a->version, b->version) &&
           ml_str_eq(a->kind, b->kind);
}

ML_RAISES
static int kind_equal(lua_State *L)
{
    const struct ml_script_kind *a = script_to_kind(L, 1), *b = script_to_kind(L, 2);
    lua_pushboolean(L, a && b && same_kind(&a->gvk, &b->gvk));
    return 1;
}

/* A terminated copy at `*at`, which moves on. */
static struct ml_str put_text(char **at, struct ml_str text)
{
    struct ml_str copy = {*at, text.len};
    if (text.len > 0)
        memcpy(*at, text.ptr, text.len);
    (*at)[text.len] = '\0';
    *at += text.len + 1;
    return copy;
}

void script_copy_kind(struct ml_script_kind *to, const struct ml_script_kind *from, char *text)
{
    *to = *from;
    to->gvk.group = put_text(&text, from->gvk.group);
    to->gvk.version = put_text(&text, from->gvk.version);
    to->gvk.kind = put_text(&text, from->gvk.kind);
    to->selection.labels = put_text(&text, from->selection.labels);
    to->selection.fields = put_text(&text, from->selection.fields);
}

size_t script_kind_text(const struct ml_script_kind *kind)
{
    return kind->gvk.group.len + kind->gvk.version.len + kind->gvk.kind.len +
           kind->selection.labels.len + kind->selection.fields.len + 5;
}

static struct ml_str text_at(lua_State *L, int index)
{
    struct ml_str text = {NULL, 0};
    if (lua_type(L, index) == LUA_TSTRING)
        text.ptr = lua_tolstring(L, index, &text.len);
    return text;
}

/* A selector, metadata_only: of the type they have to be, or left out? */
static bool selection_typed(lua_State *L)
{
    for (int index = 3; index <= 4; index++)
        if (!lua_isnoneornil(L, index) && lua_type(L, index) != LUA_TSTRING)
            return false;
    return lua_isnoneornil(L, 5) || lua_isboolean(L, 5);
}

static int check_selection(const struct ml_selection *selection, struct ml_err *err)
{
    if (ML_MAX(selection->labels.len, selection->fields.len) > SELECTOR_MAX)
        return ml_err_set(err, ML_EINVALID, "a selector has at most %d bytes", SELECTOR_MAX);
    if (selection->labels.ptr && ml_label_selector_check(selection->labels, err) < 0)
        return ml_err_wrap(err, "labels");
    if (selection->fields.ptr && ml_field_selector_check(selection->fields, err) < 0)
        return ml_err_wrap(err, "fields");
    return 0;
}

/* kind(apiVersion, kind, labels, fields, metadata_only), called by moonloop.kind: the kind, or nil
 * and what is wrong. Its line is that of whoever called moonloop.kind. */
ML_RAISES
static int host_kind(lua_State *L)
{
    struct ml_script_kind kind = {
        .selection = {text_at(L, 3), text_at(L, 4), lua_toboolean(L, 5)},
    };
    struct ml_gvk *gvk = &kind.gvk;
    struct ml_str api_version = text_at(L, 1), name = text_at(L, 2);
    struct ml_err err = ML_ERR_INIT;
    if (!api_version.ptr || !name.ptr || !ml_gvk_parse(api_version, name, gvk) ||
        ML_MAX(gvk->group.len, ML_MAX(gvk->version.len, gvk->kind.len)) >= GVK_TEXT_MAX)
        ml_err_set(&err, ML_EINVALID,
                   "expected an API version and a kind, as in moonloop.kind(\"apps/v1\", "
                   "\"Deployment\")");
    else if (!selection_typed(L))
        ml_err_set(&err, ML_EINVALID, "labels and fields are strings, metadata_only is a boolean");
    if (err.kind || check_selection(&kind.selection, &err) < 0) {
        lua_pushnil(L);
        lua_pushstring(L, err.message);
        return 2;
    }
    lua_Debug caller;
    if (lua_getstack(L, 2, &caller) && lua_getinfo(L, "l", &caller))
        kind.line = ML_MAX(caller.currentline, 0);
    struct kind_value *value = lua_newuserdatauv(L, sizeof(*value) + script_kind_text(&kind), 0);
    script_copy_kind(&value->kind, &kind, value->text);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &kind_key);
    lua_setmetatable(L, -2);
    return 1;
}

ML_RAISES
static int host_is_kind(lua_State *L)
{
    lua_pushboolean(L, script_to_kind(L, 1) != NULL);
    return 1;
}

/* moonloop.array(list): the same table, marked. Only a plain table is: the metatable of any other
 * is what protects it, or what it means. */
ML_RAISES
static int host_array(lua_State *L)
{
    if (lua_isnoneornil(L, 1)) {
        lua_settop(L, 0);
        lua_newtable(L);
    }
    if (!lua_istable(L, 1))
        return luaL_error(L, "moonloop.array(list): expected a table, got a %s",
                          luaL_typename(L, 1));
    lua_settop(L, 1);
    if (shape_keys(L, 1))
        return luaL_error(L, "moonloop.array(list): this table is an object");
    if (shape_is_array(L, 1))
        return 1;
    if (lua_getmetatable(L, 1))
        return luaL_error(L, "moonloop.array(list): this table has a metatable; put its elements "
                             "into a new one");
    shape_mark_array(L, 1);
    return 1;
}

/* The definition that moonloop/init.lua checked, out of the script's reach. */
ML_RAISES
static int host_controller(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_newuserdatauv(L, 0, 1);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &controller_key);
    lua_setmetatable(L, -2);
    return 1;
}

ML_RAISES
void script_push_copy(lua_State *L, int index)
{
    index = lua_absindex(L, index);
    lua_newtable(L);
    int copy = lua_gettop(L);
    luaL_checkstack(L, 4, NULL);
    lua_pushnil(L);
    for (size_t count = 0; lua_next(L, index); count++) {
        if (count == COPY_MAX) {
            lua_pushfstring(L, "a table with more than %d entries, where a few are expected",
                            COPY_MAX);
            lua_error(L);
        }
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, copy);
    }
}

/* copy(table): what the library checks, so that nothing changes it after the check. */
ML_RAISES
static int host_copy(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    script_push_copy(L, 1);
    return 1;
}

ML_RAISES
static int host_getmetatable(lua_State *L)
{
    if (!lua_getmetatable(L, 1))
        lua_pushnil(L);
    return 1;
}

ML_RAISES
static void open_metatables(lua_State *L)
{
    static const luaL_Reg kind_methods[] = {
        {"__index", kind_index}, {"__tostring", kind_tostring}, {"__eq", kind_equal}, {NULL, NULL}};
    luaL_newlib(L, kind_methods);
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_rawsetp(L, LUA_REGISTRYINDEX, &kind_key);
    lua_newtable(L);
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_rawsetp(L, LUA_REGISTRYINDEX, &controller_key);
}

ML_RAISES
void script_push_host(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"array", host_array},
        {"controller", host_controller},
        {"copy", host_copy},
        {"getmetatable", host_getmetatable},
        {"is_kind", host_is_kind},
        {"kind", host_kind},
        {"require", script_library_require},
        {NULL, NULL},
    };
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &host_key) == LUA_TTABLE)
        return;
    lua_pop(L, 1);
    open_metatables(L);
    luaL_newlib(L, functions);
    script_push_null(L);
    lua_setfield(L, -2, "null");
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &host_key);
}
