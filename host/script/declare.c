/* The declaration of a script: moonloop.kind and moonloop.controller (moonloop/init.lua) call the
 * functions here to make kinds and controllers, and the controller that a script returns is read
 * into a `struct ml_declaration`. Also puts together the primitives of the library and ctx.
 *
 * Kinds and controllers are userdata, so that a script can neither forge one nor change one that
 * was checked. moonloop/init.lua checks a controller first, with helpful messages; the code here
 * trusts none of that and checks again. */
#include "kube/object_diff.h"
#include "kube/selector.h"
#include "script/ctx_calls.h"
#include "script/ctx_target.h"
#include "script/index.h"

#define GVK_TEXT_MAX      256  /* of a group, version or kind each; Kubernetes allows less */
#define SELECTOR_MAX      1024 /* bytes of a label or field selector */
#define SELECTOR_JSON_MAX 4096 /* of a webhook */
#define TIMEOUT_DEFAULT_S 10   /* of a webhook */

struct kind_value {
    struct ml_script_kind kind; /* first, for script_to_kind; its slices point into text */
    char text[];
};

ML_RAISES static void push_api_version(lua_State *L, const struct ml_gvk *gvk)
{
    lua_pushfstring(L, "%s%s%s", gvk->group.ptr, gvk->group.len > 0 ? "/" : "", gvk->version.ptr);
}

ML_RAISES static void push_selector(lua_State *L, struct ml_str selector)
{
    if (selector.len > 0)
        lua_pushlstring(L, selector.ptr, selector.len);
    else
        lua_pushnil(L);
}

ML_RAISES static int kind_index(lua_State *L)
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
        script_missing_field(L, "a kind", "kind", 2);
    return 1;
}

ML_RAISES static int kind_tostring(lua_State *L)
{
    const struct ml_script_kind *kind = script_to_kind(L, 1);
    if (!kind)
        return luaL_error(L, "not a kind");
    push_api_version(L, &kind->gvk);
    lua_pushfstring(L, "%s/%s", lua_tostring(L, -1), kind->gvk.kind.ptr);
    return 1;
}

ML_RAISES static int kind_equal(lua_State *L)
{
    const struct ml_script_kind *a = script_to_kind(L, 1), *b = script_to_kind(L, 2);
    lua_pushboolean(L, a && b && script_is_same_kind(&a->gvk, &b->gvk));
    return 1;
}

/* Copies `text`, terminated, to `*at` and moves `*at` behind it. */
static struct ml_str copy_text(char **at, struct ml_str text)
{
    struct ml_str copy = {*at, text.len};
    if (text.len > 0)
        memcpy(*at, text.ptr, text.len);
    (*at)[text.len] = '\0';
    *at += text.len + 1;
    return copy;
}

/* Copies a kind with its strings, terminated, into `text`, of kind_text_size bytes. */
static void copy_kind(struct ml_script_kind *to, const struct ml_script_kind *from, char *text)
{
    *to = *from;
    to->gvk.group = copy_text(&text, from->gvk.group);
    to->gvk.version = copy_text(&text, from->gvk.version);
    to->gvk.kind = copy_text(&text, from->gvk.kind);
    to->selection.labels = copy_text(&text, from->selection.labels);
    to->selection.fields = copy_text(&text, from->selection.fields);
}

static size_t kind_text_size(const struct ml_script_kind *kind)
{
    return kind->gvk.group.len + kind->gvk.version.len + kind->gvk.kind.len +
           kind->selection.labels.len + kind->selection.fields.len + 5;
}

/* Do labels, fields and metadata_only have the right types, or are they absent? */
static bool is_selection_typed(lua_State *L)
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

/* kind(apiVersion, kind, labels, fields, metadata_only), called by moonloop.kind. Returns the kind,
 * with the line of the call of moonloop.kind, or nil and what is wrong. */
ML_RAISES static int host_kind(lua_State *L)
{
    struct ml_script_kind kind = {
        .selection = {script_str(L, 3), script_str(L, 4), lua_toboolean(L, 5)},
    };
    struct ml_gvk *gvk = &kind.gvk;
    struct ml_str api_version = script_str(L, 1), name = script_str(L, 2);
    struct ml_err err = ML_ERR_INIT;
    if (!api_version.ptr || !name.ptr || !ml_gvk_parse(api_version, name, gvk) ||
        ML_MAX(gvk->group.len, ML_MAX(gvk->version.len, gvk->kind.len)) >= GVK_TEXT_MAX)
        ml_err_set(&err, ML_EINVALID,
                   "expected an API version and a kind, as in moonloop.kind(\"apps/v1\", "
                   "\"Deployment\")");
    else if (!is_selection_typed(L))
        ml_err_set(&err, ML_EINVALID, "labels and fields are strings, metadata_only is a boolean");
    if (err.kind || check_selection(&kind.selection, &err) < 0)
        return script_push_refusal(L, err.message);
    lua_Debug caller;
    if (lua_getstack(L, 2, &caller) && lua_getinfo(L, "l", &caller))
        kind.line = ML_MAX(caller.currentline, 0);
    struct kind_value *value = script_push_userdata(L, sizeof(*value) + kind_text_size(&kind),
                                                    &script_kind_key);
    copy_kind(&value->kind, &kind, value->text);
    return 1;
}

ML_RAISES static int host_is_kind(lua_State *L)
{
    lua_pushboolean(L, script_to_kind(L, 1) != NULL);
    return 1;
}

/* Keeps the definition that moonloop/init.lua checked where the script cannot reach it. */
ML_RAISES static int host_controller(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_newuserdatauv(L, 0, 1);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &script_controller_key);
    lua_setmetatable(L, -2);
    return 1;
}

ML_RAISES static void open_metatables(lua_State *L)
{
    static const luaL_Reg kind_methods[] = {
        {"__index", kind_index}, {"__tostring", kind_tostring}, {"__eq", kind_equal}, {NULL, NULL}};
    luaL_newlib(L, kind_methods);
    script_register_metatable(L, &script_kind_key);
    lua_newtable(L);
    script_register_metatable(L, &script_controller_key);
    script_index_open(L);
}

/* Raises that the value of moonloop.controller is not what it makes. */
ML_RAISES ML_NORETURN static void refuse_definition(lua_State *L, const char *field)
{
    luaL_error(L, "%s: not a controller of moonloop.controller: look at %s",
               script_of(L)->declaration.file, field);
    ML_UNREACHABLE();
}

ML_RAISES void script_push_host(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"controller", host_controller},     {"index", script_index_new},
        {"is_kind", host_is_kind},           {"kind", host_kind},
        {"require", script_library_require}, {NULL, NULL},
    };
    open_metatables(L);
    luaL_newlib(L, functions);
    luaL_setfuncs(L, script_children, 0);
    luaL_setfuncs(L, script_child_writes, 0);
    script_add_primitives(L);
    luaL_setfuncs(L, script_regex, 0);
}

/* [-1, +0] Adds the kind on top to the declaration. */
ML_RAISES static void declare_kind(lua_State *L, const char *field, enum ml_script_use use)
{
    struct ml_script *script = script_of(L);
    struct ml_declaration *declaration = &script->declaration;
    const struct ml_script_kind *made = script_to_kind(L, -1);
    if (!made || declaration->kind_count == SCRIPT_KINDS_MAX)
        refuse_definition(L, field);
    struct ml_script_kind *kind = &script->kinds[declaration->kind_count++];
    *kind = *made;
    kind->use = use;
    kind->when = ML_PART_ALL;
    luaL_ref(L, LUA_REGISTRYINDEX); /* the kind's strings live as long as the state */
}

ML_RAISES static void declare_kinds(lua_State *L, int definition, const char *field,
                                    enum ml_script_use use)
{
    if (script_push_field(L, definition, field) != LUA_TTABLE)
        refuse_definition(L, field);
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++)
        declare_kind(L, field, use);
    lua_pop(L, 2);
}

/* moonloop/init.lua has made { kind =, adopt = } of each entry. */
ML_RAISES static void declare_owns(lua_State *L, int definition)
{
    struct ml_script *script = script_of(L);
    if (script_push_field(L, definition, "owns") != LUA_TTABLE)
        refuse_definition(L, "owns");
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++) {
        if (!lua_istable(L, -1))
            refuse_definition(L, "owns");
        script_push_field(L, -1, "kind");
        declare_kind(L, "owns", ML_USE_OWNS);
        script_push_field(L, -1, "adopt");
        script->kinds[script->declaration.kind_count - 1].adopts = lua_toboolean(L, -1);
        lua_pop(L, 2);
    }
    lua_pop(L, 2);
}

/* The parts of an object that the word on top names; 0: unknown. */
static unsigned when_parts_of(lua_State *L)
{
    static const struct {
        const char *name;
        unsigned parts;
    } words[] = {
        {"generation", ML_PART_GENERATION | ML_PART_SPEC},
        {"labels", ML_PART_LABELS},
        {"annotations", ML_PART_ANNOTATIONS},
        {"status", ML_PART_STATUS},
    };
    if (lua_type(L, -1) != LUA_TSTRING)
        return 0;
    for (size_t word = 0; word < ML_COUNT(words); word++)
        if (strcmp(lua_tostring(L, -1), words[word].name) == 0)
            return words[word].parts;
    return 0;
}

/* [-1, +0] Reads which changes of the last kind count: a list of parts, a function, or nil for any
 * change. */
ML_RAISES static void declare_when(lua_State *L)
{
    struct ml_script *script = script_of(L);
    size_t index = script->declaration.kind_count - 1;
    struct ml_script_kind *kind = &script->kinds[index];
    if (lua_isfunction(L, -1)) {
        kind->when_function = true;
        script->when_refs[index] = luaL_ref(L, LUA_REGISTRYINDEX);
        return;
    }
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        return;
    }
    if (!lua_istable(L, -1))
        refuse_definition(L, "when");
    kind->when = 0;
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++) {
        unsigned parts = when_parts_of(L);
        if (parts == 0 || i > SCRIPT_WHEN_MAX)
            refuse_definition(L, "when");
        kind->when |= parts;
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
}

ML_RAISES static void declare_watches(lua_State *L, int definition)
{
    struct ml_script *script = script_of(L);
    if (script_push_field(L, definition, "watches") != LUA_TTABLE)
        refuse_definition(L, "watches");
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++) {
        if (!lua_istable(L, -1))
            refuse_definition(L, "watches");
        script_push_field(L, -1, "kind");
        declare_kind(L, "watches", ML_USE_WATCHES);
        if (script_push_field(L, -1, "map") != LUA_TFUNCTION)
            refuse_definition(L, "watches");
        script->map_refs[script->declaration.kind_count - 1] = luaL_ref(L, LUA_REGISTRYINDEX);
        script_push_field(L, -1, "when");
        declare_when(L);
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
}

ML_RAISES static int ctx_assigned(lua_State *L)
{
    return luaL_error(L, "ctx cannot be changed");
}

/* [-0, +1] */
ML_RAISES static void push_ctx(lua_State *L)
{
    static const luaL_Reg functions[] = {{"http", ctx_http}, {"metric", ctx_metric}, {NULL, NULL}};
    static const char *const results[] = {"invalid", "terminal", NULL};
    ctx_open_failures(L);
    luaL_newlib(L, functions);
    luaL_setfuncs(L, script_ctx, 0);
    luaL_setfuncs(L, script_ctx_read, 0);
    luaL_setfuncs(L, script_ctx_write, 0);
    script_add_once(L);
    script_push_library(L, "moonloop.result");
    script_move_fields(L, -2, results);
    script_guard_fields(L, "ctx");
    lua_newuserdatauv(L, 0, 0); /* it outlives the run: no raw function stores into a userdata */
    lua_createtable(L, 0, 3);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, ctx_assigned);
    lua_setfield(L, -2, "__newindex");
    script_hide_metatable(L);
    lua_setmetatable(L, -2);
    lua_remove(L, -2);
}

ML_RAISES static void declare_reconcile(lua_State *L, int definition)
{
    struct ml_script *script = script_of(L);
    if (script_push_field(L, definition, "reconcile") != LUA_TFUNCTION)
        refuse_definition(L, "reconcile");
    script->reconcile_line = ML_MAX(script_place_of_function(L).linedefined, 0);
    script->reconcile_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    script_push_library(L, "moonloop.result");
    lua_getfield(L, -1, "check");
    script->check_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    script_push_library(L, "moonloop.children");
    lua_getfield(L, -1, "carry_out");
    script->children_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pop(L, 2);
    push_ctx(L);
    script->ctx_ref = luaL_ref(L, LUA_REGISTRYINDEX);
}

/* An object that leaves the watched part of the kind would keep the finalizer for ever. */
ML_RAISES static void declare_finalize(lua_State *L, int definition)
{
    struct ml_script *script = script_of(L);
    const struct ml_selection *part = &script->kinds[0].selection;
    script->finalize_ref = LUA_NOREF;
    int type = script_push_field(L, definition, "finalize");
    if (type == LUA_TNIL) {
        lua_pop(L, 1);
        return;
    }
    if (type != LUA_TFUNCTION)
        refuse_definition(L, "finalize");
    if (part->labels.len > 0 || part->fields.len > 0)
        refuse_definition(L, "reconciles");
    script->finalize_line = ML_MAX(script_place_of_function(L).linedefined, 0);
    script->finalize_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    script->declaration.finalizes = true;
}

/* Names of the host's own loggers. A controller of such a name could forge their log lines.
 * tools/check-operations.lua compares this list with the code. */
static const char *const host_loggers[] = {
    "apiserver", "client",   "connect", "credentials", "dev",   "election",
    "host",      "informer", "log",     "scripts",     "shard", "watchdog",
};

static bool is_host_logger(const char *name)
{
    for (size_t i = 0; i < ML_COUNT(host_loggers); i++)
        if (strcmp(name, host_loggers[i]) == 0)
            return true;
    return false;
}

/* A DNS label: it is part of URLs, labels, log lines and metrics. */
static bool is_controller_name(struct ml_str name)
{
    return name.len > 0 && name.len <= SCRIPT_NAME_MAX && name.ptr[0] != '-' &&
           name.ptr[name.len - 1] != '-' &&
           strspn(name.ptr, "abcdefghijklmnopqrstuvwxyz0123456789-") == name.len;
}

ML_RAISES static void declare_name(lua_State *L, int definition)
{
    struct ml_script *script = script_of(L);
    script_push_field(L, definition, "name");
    struct ml_str name = script_str(L, -1);
    if (!is_controller_name(name))
        refuse_definition(L, "name");
    if (is_host_logger(name.ptr))
        luaL_error(L,
                   "moonloop.controller: name: a part of the host has the name '%s' in the log; "
                   "give this controller another one",
                   name.ptr);
    script->declaration.name = ml_strdup(name.ptr);
    script->declaration.finalizer = ml_asprintf("moonloop.dev/%s", name.ptr);
    script->field_manager = ml_asprintf(ML_MANAGER_PREFIX "%s", name.ptr);
    script->patch_manager = ml_asprintf(ML_MANAGER_PREFIX "%s/patch", name.ptr);
    lua_pop(L, 1);
}

/* Finalizers and field managers of the names that the controller had. */
ML_RAISES static void declare_formerly(lua_State *L, int definition)
{
    struct ml_script *script = script_of(L);
    struct ml_declaration *declaration = &script->declaration;
    if (script_push_field(L, definition, "formerly") == LUA_TNIL) {
        lua_pop(L, 1);
        return;
    }
    if (!lua_istable(L, -1))
        refuse_definition(L, "formerly");
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++) {
        struct ml_str name = script_str(L, -1);
        if (!is_controller_name(name) || i > ML_SCRIPT_FORMERLY_MAX)
            refuse_definition(L, "formerly");
        declaration->formerly[i - 1] = ml_str_dup(name);
        declaration->former_finalizers[i - 1] = ml_asprintf("moonloop.dev/%s", name.ptr);
        script->former_managers[i - 1] = ml_asprintf(ML_MANAGER_PREFIX "%s", name.ptr);
        script->former_patch_managers[i - 1] = ml_asprintf(ML_MANAGER_PREFIX "%s/patch", name.ptr);
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
}

ML_RAISES static void declare_concurrency(lua_State *L, int definition)
{
    script_push_field(L, definition, "max_concurrent");
    lua_Integer most = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : 0;
    if (most < 1 || most > SCRIPT_RUNNING_MAX)
        refuse_definition(L, "max_concurrent");
    script_of(L)->declaration.concurrency_max = most;
    lua_pop(L, 1);
}

ML_RAISES static void declare_wakes(lua_State *L, int definition)
{
    bool is_set = script_push_field(L, definition, "wakes") != LUA_TNIL;
    if (is_set && !ml_str_is(script_str(L, -1), "all"))
        refuse_definition(L, "wakes");
    script_of(L)->declaration.wakes_all = is_set;
    lua_pop(L, 1);
}

/* [-0, +0] -1 when the field is nil. */
ML_RAISES static int rollout_number(lua_State *L, int rollout, const char *field, int most)
{
    bool is_set = script_push_field(L, rollout, field) != LUA_TNIL;
    lua_Integer number = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : -1;
    if (is_set && (number < 0 || number > most))
        refuse_definition(L, "rollout");
    lua_pop(L, 1);
    return (int)number;
}

bool ml_rollout_mode_parse(struct ml_str name, enum ml_rollout_mode *out)
{
    static const char *const names[] = {[ML_ROLLOUT_IMMEDIATE] = "immediate",
                                        [ML_ROLLOUT_GUARDED] = "guarded",
                                        [ML_ROLLOUT_CANARY] = "canary",
                                        [ML_ROLLOUT_PLAN] = "plan"};
    for (size_t i = ML_ROLLOUT_UNSET + 1; i < ML_COUNT(names); i++) {
        if (!ml_str_is(name, names[i]))
            continue;
        *out = (enum ml_rollout_mode)i;
        return true;
    }
    return false;
}

ML_RAISES static enum ml_rollout_mode rollout_mode(lua_State *L, int rollout)
{
    enum ml_rollout_mode mode = ML_ROLLOUT_UNSET;
    bool is_set = script_push_field(L, rollout, "mode") != LUA_TNIL;
    if (is_set && !ml_rollout_mode_parse(script_str(L, -1), &mode))
        refuse_definition(L, "rollout");
    lua_pop(L, 1);
    return mode;
}

ML_RAISES static void declare_rollout(lua_State *L, int definition)
{
    struct ml_rollout *into = &script_of(L)->declaration.rollout;
    if (script_push_field(L, definition, "rollout") != LUA_TTABLE)
        refuse_definition(L, "rollout");
    int rollout = lua_gettop(L);
    into->mode = rollout_mode(L, rollout);
    into->max_deletes = rollout_number(L, rollout, "max_deletes", ML_ROLLOUT_DELETES_MAX);
    into->max_deletes_percent = rollout_number(L, rollout, "max_deletes_percent", 100);
    into->max_failures_percent = rollout_number(L, rollout, "max_failures_percent", 100);
    into->settle_seconds = rollout_number(L, rollout, "settle_seconds", ML_ROLLOUT_SETTLE_MAX);
    lua_pop(L, 1);
}

ML_RAISES static int declare_hook(lua_State *L, int webhooks, const char *field)
{
    int type = script_push_field(L, webhooks, field);
    if (type != LUA_TFUNCTION && type != LUA_TNIL)
        refuse_definition(L, field);
    if (type == LUA_TFUNCTION)
        return luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pop(L, 1);
    return LUA_NOREF;
}

/* [-1, +0] With the table { to =, from = } of the version on top. */
ML_RAISES static void declare_conversion(lua_State *L, const char *version)
{
    struct ml_script *script = script_of(L);
    struct ml_script_webhooks *into = &script->declaration.webhooks;
    size_t index = into->version_count;
    if (index == ML_SCRIPT_VERSIONS_MAX || !lua_istable(L, -1))
        refuse_definition(L, "convert");
    int conversion = lua_gettop(L);
    script->to_refs[index] = declare_hook(L, conversion, "to");
    script->from_refs[index] = declare_hook(L, conversion, "from");
    if (script->to_refs[index] < 0 || script->from_refs[index] < 0)
        refuse_definition(L, "convert");
    into->versions[index] = ml_strdup(version);
    into->version_count++;
    lua_pop(L, 1);
}

ML_RAISES static void declare_conversions(lua_State *L, int webhooks)
{
    if (script_push_field(L, webhooks, "versions") == LUA_TTABLE) {
        int versions = lua_gettop(L);
        if (script_push_field(L, webhooks, "conversions") != LUA_TTABLE)
            refuse_definition(L, "convert");
        for (lua_Integer i = 1; lua_rawgeti(L, versions, i) == LUA_TSTRING; i++) {
            const char *version = lua_tostring(L, -1);
            script_push_field(L, versions + 1, version);
            declare_conversion(L, version);
            lua_pop(L, 1);
        }
    }
    lua_settop(L, webhooks);
}

/* [-0, +0] A selector as JSON; NULL when there is none. */
ML_RAISES static void declare_selector(lua_State *L, int settings, const char *field,
                                       const char **out)
{
    struct ml_script *script = script_of(L);
    if (script_push_field(L, settings, field) == LUA_TTABLE) {
        script_encode(L, -1, field, &script->outgoing);
        if (script->outgoing.len > SELECTOR_JSON_MAX || script->outgoing.ptr[0] != '{')
            luaL_error(L,
                       "moonloop.controller: webhooks.%s: expected a label selector of at most "
                       "%d bytes",
                       field, SELECTOR_JSON_MAX);
        *out = ml_str_dup(ml_buf_str(&script->outgoing));
    }
    lua_pop(L, 1);
}

ML_RAISES static void declare_settings(lua_State *L, int webhooks)
{
    struct ml_script_webhooks *into = &script_of(L)->declaration.webhooks;
    if (script_push_field(L, webhooks, "settings") != LUA_TTABLE)
        refuse_definition(L, "webhooks");
    int settings = lua_gettop(L);
    script_push_field(L, settings, "failure_policy");
    into->ignores_failure = ml_str_is(script_str(L, -1), "Ignore");
    script_push_field(L, settings, "match_policy");
    into->matches_exactly = ml_str_is(script_str(L, -1), "Exact");
    script_push_field(L, settings, "timeout_seconds");
    lua_Integer seconds = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : TIMEOUT_DEFAULT_S;
    if (seconds < 1 || seconds > 30)
        refuse_definition(L, "webhooks.timeout_seconds");
    into->timeout_seconds = (int)seconds;
    declare_selector(L, settings, "namespace_selector", &into->namespace_selector);
    declare_selector(L, settings, "object_selector", &into->object_selector);
    lua_settop(L, webhooks);
}

ML_RAISES static void declare_webhooks(lua_State *L, int definition)
{
    struct ml_script *script = script_of(L);
    struct ml_script_webhooks *into = &script->declaration.webhooks;
    if (script_push_field(L, definition, "webhooks") == LUA_TTABLE) {
        int webhooks = lua_gettop(L);
        script->default_ref = declare_hook(L, webhooks, "default");
        script->validate_ref = declare_hook(L, webhooks, "validate");
        into->defaults = script->default_ref >= 0;
        into->validates = script->validate_ref >= 0;
        declare_conversions(L, webhooks);
        declare_settings(L, webhooks);
        script_push_library(L, "moonloop.validation");
        lua_getfield(L, -1, "answer");
        script->answer_ref = luaL_ref(L, LUA_REGISTRYINDEX);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* Reads the controller at `index`. */
ML_RAISES void script_declare(lua_State *L, int index)
{
    struct ml_script *script = script_of(L);
    lua_getiuservalue(L, index, 1);
    int definition = lua_gettop(L);
    if (!lua_istable(L, definition))
        refuse_definition(L, "the table given to it");
    declare_name(L, definition);
    declare_formerly(L, definition);
    declare_concurrency(L, definition);
    script->declaration.kinds = script->kinds;
    script_push_field(L, definition, "reconciles");
    declare_kind(L, "reconciles", ML_USE_RECONCILES);
    script_push_field(L, definition, "when");
    declare_when(L);
    declare_owns(L, definition);
    declare_watches(L, definition);
    declare_kinds(L, definition, "uses", ML_USE_TOUCHES);
    script_index_check_kinds(L);
    declare_reconcile(L, definition);
    declare_finalize(L, definition);
    declare_wakes(L, definition);
    declare_rollout(L, definition);
    declare_webhooks(L, definition);
    script_declare_metrics(L, definition);
    script_declare_http(L, definition);
    script->is_controller = true;
    lua_settop(L, definition - 1);
}
