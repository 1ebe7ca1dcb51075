/* moonloop.exact: maps of an object that have the keys which the script gives, and no others. An
 * apply leaves keys of others alone; when its answer shows some, a merge patch removes them, of the
 * very version that was answered. */
#include "codec/json_members.h"
#include "kube/object.h"
#include "script/ctx_target.h"

#define PART_MAX 63 /* bytes of a field's name in a path; moonloop/init.lua checks it */

struct removal {
    struct ml_json_writer writer;
    struct ml_str sent, answer; /* the object, JSON */
    struct ml_str at;           /* the path of the map under way in the patch */
    size_t count;               /* of keys */
};

/* Empty when there is none. */
static struct ml_str value_at(struct ml_str json, struct ml_str path)
{
    char name[PART_MAX + 1];
    while (path.len > 0 && json.len > 0) {
        struct ml_str part = ml_str_cut(&path, '.');
        snprintf(name, sizeof name, ML_STR_FMT, ML_STR_ARG(part));
        json = ctx_json_field(json, name);
    }
    return json;
}

/* Cuts the first part from both paths, if it is the same. */
static bool cut_common(struct ml_str *a, struct ml_str *b)
{
    struct ml_str rest_a = *a, rest_b = *b;
    if (a->len == 0 || b->len == 0 ||
        !ml_str_eq(ml_str_cut(&rest_a, '.'), ml_str_cut(&rest_b, '.')))
        return false;
    *a = rest_a;
    *b = rest_b;
    return true;
}

/* Ends the maps that do not lead to `path`, and begins those that do. */
static void move_to(struct removal *removal, struct ml_str path)
{
    struct ml_str left = removal->at, next = path;
    while (cut_common(&left, &next))
        continue;
    for (; left.len > 0; ml_str_cut(&left, '.'))
        ml_json_end_object(&removal->writer);
    while (next.len > 0) {
        ml_json_key(&removal->writer, ml_str_cut(&next, '.'));
        ml_json_begin_object(&removal->writer);
    }
    removal->at = path;
}

/* Adds the keys of one map that the answer has and the script does not give, each as null. False:
 * the answer has no map there. */
static bool remove_keys(struct removal *removal, struct ml_str path)
{
    ML_AUTO(ml_json_members_fini) struct ml_json_members had = {0}, given = {0};
    struct ml_str answered = value_at(removal->answer, path);
    struct ml_err err = ML_ERR_INIT;
    if (answered.len == 0)
        return true;
    if (!ml_json_members_read(&had, answered, 0, &err))
        return false;
    bool is_given = ml_json_members_read(&given, value_at(removal->sent, path), 0, &err);
    for (size_t i = 0; i < had.len; i++) {
        if (is_given && ml_json_members_find(&given, had.items[i].key))
            continue;
        move_to(removal, path);
        ml_json_key(&removal->writer, had.items[i].key);
        ml_json_null(&removal->writer);
        removal->count++;
    }
    return true;
}

/* Of the paths in the list on top, those within the metadata, or the others. */
ML_RAISES static void remove_at_paths(lua_State *L, struct removal *removal,
                                      const struct write_target *target, bool within_metadata)
{
    lua_Integer count = luaL_len(L, -1);
    for (lua_Integer i = 1; i <= count; i++) {
        lua_rawgeti(L, -1, i);
        struct ml_str path = script_check_str(L, -1); /* the list keeps it */
        lua_pop(L, 1);
        if (ml_str_starts(path, "metadata.") == within_metadata && !remove_keys(removal, path))
            luaL_error(L, "%s: moonloop.exact: '%s' of this %s is no map", target->call, path.ptr,
                       target->kind.kind->kind);
        script_cpu_check(L);
    }
}

ML_RAISES bool exact_make_patch(lua_State *L, const struct write_target *target)
{
    struct ml_script *script = script_of(L);
    int top = lua_gettop(L);
    if (!children_push_exact(L, 1))
        return false;
    ctx_complete_object(L, target);
    struct removal removal = {.sent = ml_buf_str(&script->body),
                              .answer = script_thread_of(L)->run->body,
                              .at = ML_STR("metadata")};
    struct ml_str metadata = ctx_json_field(removal.answer, "metadata");
    ml_buf_clear(&script->overlay);
    ml_patch_begin(&removal.writer, &script->overlay, ctx_plain_field(metadata, "uid"),
                   ctx_plain_field(metadata, "resourceVersion"));
    remove_at_paths(L, &removal, target, true);
    remove_at_paths(L, &removal, target, false);
    move_to(&removal, ML_STR(""));
    ml_json_end_object(&removal.writer);
    const struct ml_buf sent = script->body;
    script->body = script->overlay;
    script->overlay = sent;
    lua_settop(L, top);
    return removal.count > 0;
}
