/* The object that a script wants to write: reads it from the table of the script, checks it, adds
 * the namespace, the owner reference or mark and the guards, and sends the request. Also notes
 * which objects a run wants. */
#include "script/ctx_target.h"

#include "base/map.h"
#include "codec/json_diff.h"
#include "kube/object.h"
#include "kube/selector.h"

/* An apply that is to make an object says that it has this version: no object has it. */
#define VERSION_OF_NOTHING "1"

/* ---- fields of its JSON ---- */

struct ml_str ctx_json_field(struct ml_str object, const char *field)
{
    struct ml_str raw = {"", 0};
    ml_json_find(object, &raw, field, NULL);
    return raw;
}

/* The text of a string without escapes; else empty. */
static struct ml_str plain_text(struct ml_str raw)
{
    if (raw.len < 2 || raw.ptr[0] != '"' || memchr(raw.ptr, '\\', raw.len))
        return (struct ml_str){"", 0};
    return (struct ml_str){raw.ptr + 1, raw.len - 2};
}

struct ml_str ctx_plain_field(struct ml_str object, const char *field)
{
    return plain_text(ctx_json_field(object, field));
}

size_t ctx_read_owners(struct ml_str metadata, struct ml_owner *out)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    struct ml_str reference;
    size_t count = 0;
    *out = (struct ml_owner){.uid = {"", 0}};
    ml_json_reader_init(&reader, ctx_json_field(metadata, "ownerReferences"), 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return 0;
    for (; (reference = ml_json_skip(&reader)).len > 0; count++)
        if (!out->kind.ptr && ml_str_is(ctx_json_field(reference, "controller"), "true"))
            *out = (struct ml_owner){.kind = ctx_plain_field(reference, "kind"),
                                     .name = ctx_plain_field(reference, "name"),
                                     .uid = ctx_plain_field(reference, "uid")};
    return count;
}

const char *ctx_owner_text(const struct ml_owner *owner, char out[OWNER_TEXT_MAX])
{
    if (!owner->kind.ptr)
        return "nothing";
    snprintf(out, OWNER_TEXT_MAX, ML_STR_FMT " " ML_STR_FMT, ML_STR_ARG(owner->kind),
             ML_STR_ARG(owner->name));
    return out;
}

bool ctx_is_once(const struct ml_gvk *gvk, struct ml_str json)
{
    struct ml_str label;
    return ctx_is_secret(gvk) &&
           ml_json_find(json, &label, "metadata", "labels", "moonloop.dev/once", NULL) &&
           ml_str_is(label, "\"true\"");
}

/* ---- objects that a run wants ---- */

struct wanted {
    bool is_made; /* by ctx.ensure or ctx.create, so that what these set is wanted, too */
    char name[];  /* "1 default/x" */
};

static struct wanted *find_wanted(const struct ml_run *run, size_t kind, struct ml_str key)
{
    char name[CTX_KEY_MAX + 24];
    int len = snprintf(name, sizeof(name), "%zu " ML_STR_FMT, kind, ML_STR_ARG(key));
    return ml_map_get(&run->wanted, (struct ml_str){name, (size_t)len});
}

ML_RAISES static struct wanted *note_wanted(lua_State *L, const struct ctx_kind *kind,
                                            const char *key)
{
    struct ml_run *run = script_thread_of(L)->run;
    struct wanted *wanted = find_wanted(run, kind->index, ml_str_of(key));
    size_t bytes = sizeof(*wanted) + strlen(key) + 24;
    if (wanted)
        return wanted;
    script_charge(L, bytes + 2 * sizeof(struct ml_map_slot));
    run->charged += bytes + 2 * sizeof(struct ml_map_slot);
    wanted = ml_zalloc(bytes);
    snprintf(wanted->name, bytes - sizeof(*wanted), "%zu %s", kind->index, key);
    ml_map_put(&run->wanted, ml_str_of(wanted->name), wanted);
    return wanted;
}

ML_RAISES static void note_wanted_child(lua_State *L, const struct ctx_kind *kind, const char *key)
{
    if (script_thread_of(L)->run && kind->use == ML_USE_OWNS)
        note_wanted(L, kind, key);
}

ML_RAISES void children_note_made(lua_State *L, const struct ctx_kind *kind, const char *key)
{
    note_wanted(L, kind, key)->is_made = true;
}

bool children_is_wanted(const struct ml_run *run, size_t kind, struct ml_str key)
{
    return find_wanted(run, kind, key) != NULL;
}

bool children_is_made(const struct ml_run *run, const struct ctx_kind *kind, const char *key)
{
    const struct wanted *wanted = find_wanted(run, kind->index, ml_str_of(key));
    return wanted && wanted->is_made;
}

/* ---- children that cannot have an owner reference ---- */

bool ctx_is_tracked(lua_State *L, const struct write_target *target)
{
    struct ml_str owner_ns = ml_object_namespace(script_thread_of(L)->object);
    return target->owned && owner_ns.len > 0 && !ml_str_eq(owner_ns, target->ns);
}

/* Raises when the script cannot have such a child. */
ML_RAISES static void check_tracked(lua_State *L, const struct write_target *target)
{
    const struct ml_script *script = script_of(L);
    const char *owner = script->binding.kinds[0]->kind, *kind = target->kind.kind->kind;
    if (!script->declaration.finalizes)
        luaL_error(L,
                   "%s: a %s %s cannot be owned by a %s of another namespace; declare finalize (it "
                   "may be empty), and the host lists it on the %s and deletes it afterwards",
                   target->call, kind, target->key, owner, owner);
    if (target->kind.selection->labels.len > 0)
        luaL_error(L,
                   "%s: a %s that cannot be owned by a %s needs a kind without labels: when they "
                   "change, the script would lose sight of it",
                   target->call, kind, owner);
}

/* The member "annotations" of its metadata, which says whose it is. */
static void write_mark(struct ml_json_writer *writer, const struct ml_script *script,
                       const struct ml_object *owner)
{
    ML_AUTO(ml_buf_fini) struct ml_buf mark = ML_BUF_INIT;
    ml_tracked_mark(script->declaration.name, owner, &mark);
    ml_json_key(writer, ML_STR("annotations"));
    ml_json_begin_object(writer);
    ml_json_put_string(writer, ML_TRACKED_OWNER, ml_buf_str(&mark));
    ml_json_end_object(writer);
}

/* ---- checking ---- */

/* A namespaced object can own objects of its own namespace only. */
ML_RAISES static void check_owner_namespace(lua_State *L, const struct write_target *target)
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

/* Encodes the stringData of the Secret in script->outgoing. Returns its metadata. */
ML_RAISES static struct ml_str encode_strings(lua_State *L, struct ml_str metadata)
{
    struct ml_script *script = script_of(L);
    ml_buf_clear(&script->body);
    if (!secret_encode_strings(ml_buf_str(&script->outgoing), &script->body))
        return metadata;
    const struct ml_buf encoded = script->body;
    script->body = script->outgoing;
    script->outgoing = encoded;
    script_cpu_check(L);
    return ctx_json_field(ml_buf_str(&script->outgoing), "metadata");
}

/* `name`: that of the metadata, or empty if it has none that is a plain text. */
ML_RAISES static void check_name(lua_State *L, const char *call, struct ml_str metadata,
                                 struct ml_str name)
{
    struct ml_err err = ML_ERR_INIT;
    if (ml_name_check(name, &err) == 0)
        return;
    bool is_given = name.len == 0 && ctx_json_field(metadata, "name").len > 0;
    bool generates = name.len == 0 && ctx_json_field(metadata, "generateName").len > 0;
    luaL_error(L, "%s: metadata.name %s%s", call, is_given ? "is no text" : err.message,
               generates ? "; a generateName is for ctx.ensure and ctx.create" : "");
}

ML_RAISES void ctx_check_object(lua_State *L, const char *call, struct write_target *target)
{
    struct ml_buf *out = &script_of(L)->outgoing;
    struct ml_gvk gvk;
    struct ml_err err = ML_ERR_INIT;
    if (!lua_istable(L, 1))
        luaL_error(L, "%s: expected an object as in a manifest, got a %s", call,
                   luaL_typename(L, 1));
    script_encode(L, 1, "", out);
    struct ml_json_wanted top[] = {{.name = "apiVersion"}, {.name = "kind"}, {.name = "metadata"}};
    ml_json_find_members(ml_buf_str(out), top, ML_COUNT(top));
    struct ml_str metadata = top[2].raw;
    script_cpu_check(L);
    if (!ml_gvk_parse(plain_text(top[0].raw), plain_text(top[1].raw), &gvk))
        luaL_error(L, "%s: the object needs apiVersion and kind, as in a manifest", call);
    const struct ctx_kind found = ctx_kind_of(L, &gvk);
    if (ctx_is_secret(&gvk))
        metadata = encode_strings(L, metadata);
    *target = (struct write_target){.call = call, .kind = found, .metadata = metadata};
    struct ml_json_wanted parts[] = {
        {.name = "name"}, {.name = "namespace"}, {.name = "uid"}, {.name = "resourceVersion"}};
    ml_json_find_members(metadata, parts, ML_COUNT(parts));
    target->name = plain_text(parts[0].raw);
    check_name(L, call, metadata, target->name);
    struct ml_str raw = parts[1].raw, ns = plain_text(raw);
    /* "" and null mean that the host chooses the namespace, as for kubectl. */
    bool has_ns = raw.len > 0 && !ml_str_is(raw, "\"\"") && !ml_str_is(raw, "null");
    if (has_ns && ml_name_check(ns, &err) < 0)
        luaL_error(L, "%s: metadata.namespace %s", call, err.message);
    target->ns = ctx_namespace(L, call, target->kind.kind, ns);
    ctx_write_key(target->ns, target->name, target->key);
    target->uid = plain_text(parts[2].raw);
    target->rv = plain_text(parts[3].raw);
    target->owned = target->kind.use == ML_USE_OWNS;
    target->adopt = script_of(L)->kinds[target->kind.index].adopts;
}

ML_RAISES void ctx_read_write_options(lua_State *L, struct write_target *target)
{
    if (lua_isnoneornil(L, 2))
        return;
    if (!lua_istable(L, 2))
        luaL_error(L, "%s: expected options as in { adopt = true }, got a %s", target->call,
                   luaL_typename(L, 2));
    script_check_fields(L, target->call, "write", 2);
    int type = script_push_field(L, 2, "adopt");
    if (type != LUA_TNIL && type != LUA_TBOOLEAN)
        luaL_error(L, "%s: adopt: expected true or false, got a %s", target->call,
                   lua_typename(L, type));
    target->adopt = target->adopt || lua_toboolean(L, -1);
    lua_pop(L, 1);
}

/* An object that the label selector of the watch leaves out would never show in the cache: the
 * script would create it again and again. */
ML_RAISES static void check_watched_labels(lua_State *L, const struct write_target *target)
{
    struct ml_str labels = ctx_json_field(target->metadata, "labels"), missed;
    if (ml_label_selector_matches(target->kind.selection->labels, labels, &missed))
        return;
    lua_pushlstring(L, missed.ptr, missed.len);
    luaL_error(L,
               "%s: this script watches the objects of %s with the labels '%s' only, and would "
               "never see this one: '%s' does not hold for its metadata.labels",
               target->call, target->kind.kind->kind, target->kind.selection->labels.ptr,
               lua_tostring(L, -1));
}

/* ---- completing ---- */

void ctx_write_references(struct ml_json_writer *writer, const struct ml_script *script,
                          const struct ml_object *owner, struct ml_str metadata)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    const struct ml_kind *kind = script->binding.kinds[0];
    struct ml_str reference;
    ml_json_reader_init(&reader, ctx_json_field(metadata, "ownerReferences"), 0);
    ml_json_key(writer, ML_STR("ownerReferences"));
    ml_json_begin_array(writer);
    if (ml_json_next(&reader) == ML_JSON_ARRAY)
        while ((reference = ml_json_skip(&reader)).len > 0)
            ml_json_raw(writer, reference);
    ml_json_begin_object(writer);
    ml_json_put_string(writer, "apiVersion", ml_str_of(kind->api_version));
    ml_json_put_string(writer, "kind", ml_str_of(kind->kind));
    ml_json_put_string(writer, "name", ml_object_name(owner));
    ml_json_put_string(writer, "uid", ml_object_uid(owner));
    ml_json_put_bool(writer, "controller", true);
    ml_json_put_bool(writer, "blockOwnerDeletion", true);
    ml_json_end_object(writer);
    ml_json_end_array(writer);
}

/* Writes `json` with `patch` merged over it into script->body. */
ML_RAISES void ctx_merge_into_body(lua_State *L, const char *call, const struct ml_buf *json,
                                   const struct ml_buf *patch)
{
    struct ml_buf *body = &script_of(L)->body;
    struct ml_err err = ML_ERR_INIT;
    ml_buf_clear(body);
    if (ml_json_merge(ml_buf_str(json), ml_buf_str(patch), body, &err) < 0)
        luaL_error(L, "%s: %s", call, err.message);
}

/* The preconditions that the server checks before an apply. */
static void write_guards(struct ml_json_writer *writer, const struct write_target *target)
{
    if (target->guard_uid.len > 0)
        ml_json_put_string(writer, "uid", target->guard_uid);
    if (target->guard_absent)
        ml_json_put_string(writer, "resourceVersion", ML_STR(VERSION_OF_NOTHING));
    else if (target->guard_rv.len > 0)
        ml_json_put_string(writer, "resourceVersion", target->guard_rv);
}

ML_RAISES void ctx_complete_object(lua_State *L, const struct write_target *target)
{
    struct ml_script *script = script_of(L);
    const struct ml_object *owner = script_thread_of(L)->object;
    struct ml_owner controller;
    char other[OWNER_TEXT_MAX];
    bool has_ours = false;
    if (ctx_read_owners(target->metadata, &controller) > SCRIPT_OWNERS_MAX)
        luaL_error(L, "%s: metadata.ownerReferences: at most %d", target->call, SCRIPT_OWNERS_MAX);
    check_watched_labels(L, target);
    script_cpu_check(L);
    if (target->tracked)
        check_tracked(L, target);
    if (target->owned && !target->tracked) {
        check_owner_namespace(L, target);
        has_ours = ml_str_eq(controller.uid, ml_object_uid(owner));
        if (controller.uid.len > 0 && !has_ours)
            luaL_error(L, "%s: the object already has another controller, %s", target->call,
                       ctx_owner_text(&controller, other));
    }
    struct ml_json_writer writer;
    ml_buf_clear(&script->overlay);
    ml_json_writer_init(&writer, &script->overlay);
    ml_json_begin_object(&writer);
    ml_json_key(&writer, ML_STR("metadata"));
    ml_json_begin_object(&writer);
    if (target->ns.len > 0)
        ml_json_put_string(&writer, "namespace", target->ns);
    if (target->tracked)
        write_mark(&writer, script, owner);
    else if (target->owned && !has_ours)
        ctx_write_references(&writer, script, owner, target->metadata);
    write_guards(&writer, target);
    ml_json_end_object(&writer);
    ml_json_end_object(&writer);
    ctx_merge_into_body(L, target->call, &script->outgoing, &script->overlay);
    note_wanted_child(L, &target->kind, target->key);
}

/* ---- sending ---- */

/* The run depends on the object that it writes. If the cache has only a part of it, or may lack it,
 * changes of it stay unseen, so the run gets no read set. */
void ctx_note_written(struct ml_run *run, const struct write_target *target)
{
    const struct ml_selection *selection = target->kind.selection;
    if (!target->kind.informer || selection->metadata_only || selection->fields.len > 0) {
        reads_give_up(run->reads, "it writes what is not watched in full");
        return;
    }
    const struct ml_object *object = ctx_cached(&target->kind, target->key);
    reads_whole(run->reads,
                reads_object(run->reads, target->kind.index, ml_str_of(target->key), object));
}

/* "site.lua:31" of the call; of a child that the script returned, "returned by site.lua:12". */
static void write_place_of_write(lua_State *L, const struct ml_run *run, char *out, size_t size)
{
    const struct ml_script *script = run->thread.script;
    if (!script_running_place(L, out, size))
        snprintf(out, size, "returned by %s:%d", script->declaration.file,
                 script_run_line(script, run));
}

ML_RAISES void ctx_send_write(lua_State *L, const char *verb, const struct write_target *target,
                              struct ml_client_request request, bool wait_for_cache)
{
    struct ml_run *run = script_thread_of(L)->run;
    const struct ml_script *script = run->thread.script;
    size_t writes_max = script->limits.writes_max;
    char place[SCRIPT_PLACE_MAX + sizeof "returned by "];
    script_cpu_check(L);
    if (run->writes++ >= writes_max)
        luaL_error(L, "more than %d writes in one reconcile", (int)writes_max);
    script_charge_work(L);
    ctx_note_request(run, verb, &target->kind, target->key);
    ctx_note_written(run, target);
    request.kind = target->kind.kind;
    request.ns = target->ns;
    request.name = target->name;
    if (!request.field_manager)
        request.field_manager = script->field_manager;
    write_place_of_write(L, run, place, sizeof place);
    const struct ml_write write = {
        .request = request,
        .place = place,
        .expectations = script->binding.expectations,
        .informer = target->kind.informer,
        .key = ml_object_key(run->thread.object),
        .owner_uid = target->owned ? ml_object_uid(run->thread.object) : ML_STR(""),
        .deletion = {.why = target->why,
                     .revision = script->declaration.revision,
                     .owner_kind = script->binding.kinds[0],
                     .owner = run->thread.object},
    };
    if (!run_lacks_finalizer(run)) {
        run_write(run, &write, wait_for_cache);
        return;
    }
    script_charge(L, run_held_bytes(&write));
    run->charged += run_held_bytes(&write);
    run_write_later(run, &write, wait_for_cache);
}

void ctx_send_get(struct ml_run *run, const struct write_target *target)
{
    const struct ml_client_request request = {
        .verb = ML_VERB_GET, .kind = target->kind.kind, .ns = target->ns, .name = target->name};
    ctx_note_request(run, "get", &target->kind, target->key);
    run_read(run, &request);
}

ML_RAISES int ctx_write_answered(lua_State *L, int status, lua_KContext context)
{
    struct ml_run *run = script_thread_of(L)->run;
    if (run->err)
        return ctx_refuse_write(L, run->err);
    ctx_accept_write(run);
    return ctx_answered(L, status, context);
}
