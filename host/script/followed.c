/* Children that cannot have the reconciled object as an owner reference: in another namespace, or
 * cluster-scoped under a namespaced object. An annotation of the object lists them before they are
 * made, so that none is lost whenever the process ends; the object has the controller's finalizer
 * from the same write on. Called by ctx_apply.c, ctx_children.c, and moonloop/children.lua, which
 * decides what is listed and deleted. */
#include "kube/followed.h"

#include "kube/object.h"
#include "script/ctx_target.h"

#define CALL "children"

#define INVENTORY_MAX ((size_t)192 * 1024) /* bytes; all annotations may have 256 KiB */

bool followed_is(lua_State *L, const struct write_target *target)
{
    struct ml_str owner_ns = ml_object_namespace(script_thread_of(L)->object);
    return target->owned && owner_ns.len > 0 && !ml_str_eq(owner_ns, target->ns);
}

ML_RAISES void followed_check(lua_State *L, const struct write_target *target)
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

void followed_write_mark(struct ml_json_writer *writer, const struct ml_script *script,
                         const struct ml_object *owner)
{
    ML_AUTO(ml_buf_fini) struct ml_buf mark = ML_BUF_INIT;
    ml_followed_mark(script->declaration.name, owner, &mark);
    ml_json_key(writer, ML_STR("annotations"));
    ml_json_begin_object(writer);
    ml_json_put_string(writer, ML_FOLLOWED_OWNER, ml_buf_str(&mark));
    ml_json_end_object(writer);
}

/* ---- the inventory ---- */

/* The text of the annotation of a controller of this name. */
static struct ml_str find_inventory(struct ml_str json, const char *controller)
{
    char name[sizeof(ML_FOLLOWED_INVENTORY) + 1 + SCRIPT_NAME_MAX];
    snprintf(name, sizeof name, "%s/%s", ML_FOLLOWED_INVENTORY, controller);
    return ml_followed_annotation(json, name);
}

/* inventory(): the text of the reconciled object's annotation, with that of each name which the
 * controller had formerly; and whether there is one of these. */
ML_RAISES static int inventory(lua_State *L)
{
    struct ml_script *script = script_of(L);
    const struct ml_declaration *declaration = &script->declaration;
    bool is_former = false;
    luaL_Buffer text;
    ctx_may_wait(L, CALL);
    ml_buf_clear(&script->opened);
    ml_object_json(script_thread_of(L)->object, &script->opened);
    struct ml_str json = ml_buf_str(&script->opened);
    struct ml_str part = find_inventory(json, declaration->name);
    luaL_buffinit(L, &text);
    luaL_addlstring(&text, part.ptr, part.len);
    for (size_t i = 0; declaration->formerly[i]; i++) {
        part = find_inventory(json, declaration->formerly[i]);
        is_former = is_former || part.len > 0;
        luaL_addchar(&text, ',');
        luaL_addlstring(&text, part.ptr, part.len);
    }
    luaL_pushresult(&text);
    lua_pushboolean(L, is_former);
    return 2;
}

/* Writes the whole patch into script->body: guards, the finalizer, and the annotation, which an
 * empty text removes. Entries of former names go. */
static void make_inventory_patch(struct ml_run *run, struct ml_str text)
{
    struct ml_script *script = run->thread.script;
    const struct ml_declaration *declaration = &script->declaration;
    const struct ml_object *object = run->thread.object;
    struct ml_str rv = run->version ? ml_str_of(run->version) : ml_object_rv(object);
    struct ml_json_writer writer;
    ml_buf_clear(&script->overlay);
    ml_buf_clear(&script->body);
    ml_json_writer_init(&writer, &script->overlay);
    if (text.len > 0)
        ml_json_string(&writer, text);
    else
        ml_json_raw(&writer, ML_STR("null"));
    ml_finalizers_patch(object, rv, ml_str_of(declaration->finalizer),
                        declaration->former_finalizers, true, &script->body);
    script->body.len -= strlen("}}"); /* of the metadata and of the object */
    ml_buf_printf(&script->body, ",\"annotations\":{\"%s/%s\":" ML_STR_FMT, ML_FOLLOWED_INVENTORY,
                  declaration->name, ML_STR_ARG(ml_buf_str(&script->overlay)));
    for (size_t i = 0; declaration->formerly[i]; i++)
        ml_buf_printf(&script->body, ",\"%s/%s\":null", ML_FOLLOWED_INVENTORY,
                      declaration->formerly[i]);
    ml_buf_puts(&script->body, "}}}");
}

ML_RAISES static int inventory_written(lua_State *L, int status ML_UNUSED,
                                       lua_KContext context ML_UNUSED)
{
    struct ml_run *run = script_thread_of(L)->run;
    if (run->err.kind)
        return ctx_refuse_write(L, &run->err);
    ctx_accept_write(run);
    lua_pushboolean(L, 1);
    return 1;
}

/* write_inventory(text): true, or nil and the error. */
ML_RAISES static int write_inventory(lua_State *L)
{
    struct ml_run *run = ctx_may_wait(L, CALL);
    const struct ml_object *object = run->thread.object;
    struct ml_str text = script_check_str(L, 1);
    lua_settop(L, 1);
    if (text.len > INVENTORY_MAX)
        return luaL_error(L,
                          CALL ": the list of those that cannot be owned has %d bytes; at most %d",
                          (int)text.len, (int)INVENTORY_MAX);
    struct write_target target = {
        .call = CALL,
        .kind = ctx_kind_of(L, &run->thread.script->declaration.kinds[0].gvk),
        .ns = ml_object_namespace(object),
        .name = ml_object_name(object),
    };
    ctx_write_key(target.ns, target.name, target.key);
    make_inventory_patch(run, text);
    run->has_finalizer = true; /* by this very write */
    const struct ml_client_request request = {.verb = ML_VERB_PATCH_MERGE,
                                              .body = ml_buf_str(&run->thread.script->body)};
    ctx_send_write(L, "patch", &target, request, false);
    return lua_yieldk(L, 0, 0, inventory_written);
}

/* Finds the owned kind of an entry, "v1 ConfigMap other/x", by group and kind: the script may have
 * gone to another version. NULL; or "unknown", a kind that is not in owns any more, or "gone", for
 * a text that was not written here. */
ML_RAISES static const char *find_entry(lua_State *L, struct ml_str entry, struct write_target *out)
{
    const struct ml_declaration *declaration = &script_of(L)->declaration;
    struct ml_gvk gvk;
    struct ml_str api_version = ml_str_cut(&entry, ' '), kind = ml_str_cut(&entry, ' ');
    if (!ml_gvk_parse(api_version, kind, &gvk) || entry.len == 0 || entry.len >= CTX_KEY_MAX)
        return "gone";
    for (size_t i = 0; i < declaration->kind_count; i++) {
        const struct ml_script_kind *declared = &declaration->kinds[i];
        if (declared->use != ML_USE_OWNS || !ml_str_eq(declared->gvk.group, gvk.group) ||
            !ml_str_eq(declared->gvk.kind, gvk.kind))
            continue;
        *out = (struct write_target){
            .call = CALL, .kind = ctx_kind_of(L, &declared->gvk), .owned = true, .followed = true};
        snprintf(out->key, sizeof out->key, ML_STR_FMT, ML_STR_ARG(entry));
        return NULL;
    }
    return "unknown";
}

/* followed(entry): the object, if it is there and marked as ours; "going": it is being deleted;
 * "gone"; or "unknown": its kind is not in owns any more. */
ML_RAISES static int followed(lua_State *L)
{
    struct ml_run *run = ctx_may_wait(L, CALL);
    struct ml_script *script = run->thread.script;
    struct write_target target;
    const char *none = find_entry(L, script_check_str(L, 1), &target);
    if (none) {
        lua_pushstring(L, none);
        return 1;
    }
    const struct ml_object *object = ctx_cached(&target.kind, target.key);
    reads_object(run->reads, target.kind.index, ml_str_of(target.key), object);
    if (!object || !ctx_controls(run, &target, object)) {
        lua_pushliteral(L, "gone");
    } else if (ml_object_deleting(object)) {
        lua_pushliteral(L, "going");
    } else {
        ml_buf_clear(&script->opened);
        ml_object_json(object, &script->opened);
        script_push_lazy(L, ml_buf_str(&script->opened), 0);
    }
    return 1;
}

const luaL_Reg script_followed[] = {{"followed", followed},
                                    {"event", ctx_event},
                                    {"inventory", inventory},
                                    {"write_inventory", write_inventory},
                                    {NULL, NULL}};
