/* Objects on their way to the server: which one a table means, and what the host puts in that
 * the script may leave out: the namespace and the owner reference. */
#include "codec/json_diff.h"
#include "codec/json_members.h"
#include "kube/selector.h"
#include "script/ctx.h"

/* The text between the quotes when `raw` is a string without escapes; else empty. */
static struct ml_str plain(struct ml_str raw)
{
    if (raw.len < 2 || raw.ptr[0] != '"' || memchr(raw.ptr, '\\', raw.len))
        return (struct ml_str){"", 0};
    return (struct ml_str){raw.ptr + 1, raw.len - 2};
}

struct ml_str ctx_plain(struct ml_str json, const char *first, ...)
{
    va_list keys;
    struct ml_str raw = json;
    va_start(keys, first);
    bool found = true;
    for (const char *key = first; key && found; key = va_arg(keys, const char *))
        found = ml_json_find(raw, &raw, key, NULL);
    va_end(keys);
    return plain(found ? raw : (struct ml_str){"", 0});
}

/* Goes over the owner references of an object, once. */
struct reference_walk {
    struct ml_json_reader reader;
    bool open;
};

static void walk_begin(struct reference_walk *walk, struct ml_str json)
{
    struct ml_str list = {"", 0};
    ml_json_find(json, &list, "metadata", "ownerReferences", NULL);
    ml_json_reader_init(&walk->reader, list, 0);
    walk->open = list.len > 0 && ml_json_next(&walk->reader) == ML_JSON_ARRAY;
}

static bool walk_next(struct reference_walk *walk, struct ml_str *out_reference)
{
    if (!walk->open)
        return false;
    *out_reference = ml_json_skip(&walk->reader);
    walk->open = out_reference->len > 0;
    return walk->open;
}

static void walk_end(struct reference_walk *walk)
{
    ml_json_reader_fini(&walk->reader);
}

struct ml_str ctx_controller_of(struct ml_str json, char *out_text, size_t size)
{
    ML_AUTO(walk_end) struct reference_walk walk;
    struct ml_str reference, controller;
    walk_begin(&walk, json);
    while (walk_next(&walk, &reference)) {
        if (!ml_json_find(reference, &controller, "controller", NULL) ||
            !ml_str_is(controller, "true"))
            continue;
        struct ml_str kind = ctx_plain(reference, "kind", NULL);
        struct ml_str name = ctx_plain(reference, "name", NULL);
        snprintf(out_text, size, ML_STR_FMT " " ML_STR_FMT, ML_STR_ARG(kind), ML_STR_ARG(name));
        return ctx_plain(reference, "uid", NULL);
    }
    snprintf(out_text, size, "nothing");
    return (struct ml_str){"", 0};
}

static size_t count_references(struct ml_str json)
{
    ML_AUTO(walk_end) struct reference_walk walk;
    struct ml_str reference;
    size_t count = 0;
    walk_begin(&walk, json);
    while (walk_next(&walk, &reference))
        count++;
    return count;
}

/* Nothing but the reconciled object's own namespace can hold what it owns. */
ML_RAISES
static void check_owner(lua_State *L, const struct ctx_target *target)
{
    const struct ml_object *owner = script_thread_of(L)->object;
    const struct ml_kind *owner_kind = script_of(L)->binding.kinds[0];
    struct ml_str owner_ns = ml_object_namespace(owner);
    if (owner_ns.len == 0 || ml_str_eq(owner_ns, target->ns))
        return;
    lua_pushlstring(L, target->ns.ptr, target->ns.len);
    lua_pushlstring(L, owner_ns.ptr, owner_ns.len);
    luaL_error(L,
               "%s: a %s in namespace '%s' cannot be owned by a %s in namespace '%s'; to write "
               "it without an owner, declare the kind in uses",
               target->call, target->kind.kind->kind, lua_tostring(L, -2), owner_kind->kind,
               lua_tostring(L, -1));
}

/* What an object says of itself; each empty when it does not. */
struct names {
    struct ml_str api_version, kind, name, ns, uid, rv;
    bool has_ns; /* though `ns` may be empty: a text that no namespace can have */
};

static struct ml_str plain_member(const struct ml_json_members *members, const char *key)
{
    const struct ml_json_member *member = ml_json_members_find(members, ml_str_of(key));
    return plain(member ? member->value : (struct ml_str){"", 0});
}

/* "" and null leave the choice to the host, as for kubectl. */
static bool says_something(const struct ml_json_member *member)
{
    return member && !ml_str_is(member->value, "\"\"") && !ml_str_is(member->value, "null");
}

static struct names read_names(struct ml_str json)
{
    ML_AUTO(ml_json_members_fini) struct ml_json_members object = {0}, metadata = {0};
    struct ml_err err;
    const struct ml_json_member *member = NULL;
    if (ml_json_members_read(&object, json, 0, &err))
        member = ml_json_members_find(&object, ML_STR("metadata"));
    bool has_metadata = member && ml_json_members_read(&metadata, member->value, 0, &err);
    struct names names = {.api_version = plain_member(&object, "apiVersion"),
                          .kind = plain_member(&object, "kind")};
    names.name = names.ns = names.uid = names.rv = (struct ml_str){"", 0};
    if (!has_metadata)
        return names;
    names.name = plain_member(&metadata, "name");
    names.ns = plain_member(&metadata, "namespace");
    names.has_ns = says_something(ml_json_members_find(&metadata, ML_STR("namespace")));
    names.uid = plain_member(&metadata, "uid");
    names.rv = plain_member(&metadata, "resourceVersion");
    return names;
}

ML_RAISES
void ctx_check_object(lua_State *L, const char *call, struct ctx_target *target)
{
    struct ml_buf *out = &script_of(L)->outgoing;
    if (!lua_istable(L, 1))
        luaL_error(L, "%s: expected an object as in a manifest, got a %s", call,
                   luaL_typename(L, 1));
    script_encode(L, 1, "", out);
    struct names names = read_names(ml_buf_str(out));
    struct ml_gvk gvk;
    script_cpu_check(L);
    if (!ml_gvk_parse(names.api_version, names.kind, &gvk))
        luaL_error(L, "%s: the object needs apiVersion and kind, as in a manifest", call);
    target->call = call;
    target->kind = ctx_kind_of(L, &gvk);
    target->name = names.name;
    if (!ml_name_valid(target->name))
        luaL_error(L, "%s: the object needs a metadata.name that a URL can have", call);
    if (names.has_ns && !ml_name_valid(names.ns))
        luaL_error(L, "%s: metadata.namespace is no name", call);
    target->ns = ctx_namespace(L, call, target->kind.kind, names.ns);
    target->uid = names.uid;
    target->rv = names.rv;
    target->owned = target->kind.use == ML_USE_OWNS;
}

/* What the labels leave out would never show in the cache: it would be made again and again. */
ML_RAISES
static void check_selected(lua_State *L, const struct ctx_target *target)
{
    struct ml_str labels = {"", 0}, missed;
    ml_json_find(ml_buf_str(&script_of(L)->outgoing), &labels, "metadata", "labels", NULL);
    if (ml_label_selector_matches(target->kind.selection->labels, labels, &missed))
        return;
    lua_pushlstring(L, missed.ptr, missed.len);
    luaL_error(L,
               "%s: this script watches the objects of %s with the labels '%s' only, and would "
               "never see this one: '%s' does not hold for its metadata.labels",
               target->call, target->kind.kind->kind, target->kind.selection->labels.ptr,
               lua_tostring(L, -1));
}

static void write_reference(struct ml_json_writer *writer, const struct ml_script *script,
                            const struct ml_object *owner)
{
    const struct ml_kind *kind = script->binding.kinds[0];
    ml_json_begin_object(writer);
    ml_json_put_string(writer, "apiVersion", ml_str_of(kind->api_version));
    ml_json_put_string(writer, "kind", ml_str_of(kind->kind));
    ml_json_put_string(writer, "name", ml_object_name(owner));
    ml_json_put_string(writer, "uid", ml_object_uid(owner));
    ml_json_put_bool(writer, "controller", true);
    ml_json_put_bool(writer, "blockOwnerDeletion", true);
    ml_json_end_object(writer);
}

/* The references the object has, and ours behind them. */
static void write_references(struct ml_json_writer *writer, const struct ml_script *script,
                             const struct ml_object *owner, struct ml_str json)
{
    ML_AUTO(walk_end) struct reference_walk walk;
    struct ml_str reference;
    ml_json_key(writer, ML_STR("ownerReferences"));
    ml_json_begin_array(writer);
    walk_begin(&walk, json);
    while (walk_next(&walk, &reference))
        ml_json_raw(writer, reference);
    write_reference(writer, script, owner);
    ml_json_end_array(writer);
}

ML_RAISES
void ctx_complete(lua_State *L, const struct ctx_target *target)
{
    struct ml_script *script = script_of(L);
    const struct ml_object *owner = script_thread_of(L)->object;
    struct ml_str json = ml_buf_str(&script->outgoing);
    char other[ML_ERR_REASON_MAX * 4];
    bool has_ours = false;
    if (count_references(json) > SCRIPT_OWNERS_MAX)
        luaL_error(L, "%s: metadata.ownerReferences: at most %d", target->call, SCRIPT_OWNERS_MAX);
    check_selected(L, target);
    script_cpu_check(L);
    if (target->owned) {
        check_owner(L, target);
        struct ml_str uid = ctx_controller_of(json, other, sizeof(other));
        has_ours = ml_str_eq(uid, ml_object_uid(owner));
        if (uid.len > 0 && !has_ours)
            luaL_error(L, "%s: the object already has another controller, %s", target->call, other);
    }
    struct ml_json_writer writer;
    ml_buf_clear(&script->overlay);
    ml_json_writer_init(&writer, &script->overlay);
    ml_json_begin_object(&writer);
    ml_json_key(&writer, ML_STR("metadata"));
    ml_json_begin_object(&writer);
    if (target->ns.len > 0)
        ml_json_put_string(&writer, "namespace", target->ns);
    if (target->owned && !has_ours)
        write_references(&writer, script, owner, json);
    ml_json_end_object(&writer);
    ml_json_end_object(&writer);
    ml_buf_clear(&script->body);
    struct ml_err err = ML_ERR_INIT;
    if (ml_json_merge(json, ml_buf_str(&script->overlay), &script->body, &err) < 0)
        luaL_error(L, "%s: %s", target->call, err.message);
}
