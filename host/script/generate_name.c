/* metadata.generateName of ctx.ensure and ctx.create. A server that makes the name makes another
 * one each time that a request is repeated. Here it follows from the owner's uid, the kind, the
 * namespace, the generateName and the number of its uses in the run: the next try of a reconcile
 * comes to the same name, whatever happened to the reply. Called by ctx_write.c. */
#include "base/map.h"
#include "script/ctx_target.h"

#define SUFFIX_LEN    10 /* characters: 2e14 names */
#define GENERATED_MAX 63 /* as the API server's own generated names */

/* How often a run has used a generateName. */
struct generated {
    size_t uses;
    char key[];
};

void ctx_forget_generated(struct ml_run *run)
{
    ml_map_each (&run->generated, cursor, generated)
        free(generated);
    ml_map_fini(&run->generated);
}

/* Which use of the text on top this is, from 1. */
ML_RAISES static size_t count_use(lua_State *L)
{
    struct ml_run *run = script_thread_of(L)->run;
    struct ml_str key = script_check_str(L, -1);
    struct generated *generated = ml_map_get(&run->generated, key);
    if (generated)
        return ++generated->uses;
    size_t bytes = sizeof(*generated) + key.len + 2 * sizeof(struct ml_map_slot);
    script_charge(L, bytes);
    run->charged += bytes;
    generated = ml_alloc(sizeof(*generated) + key.len);
    generated->uses = 1;
    memcpy(generated->key, key.ptr, key.len);
    ml_map_put(&run->generated, (struct ml_str){generated->key, key.len}, generated);
    return 1;
}

/* The alphabet of the API server's generated names: no vowels, so no words; no 0, 1 and 3. */
static void write_suffix(uint64_t hash, char out[SUFFIX_LEN + 1])
{
    static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";
    hash ^= hash >> 32; /* the last bytes of a text reach few of the upper bits */
    hash *= UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 29;
    for (int i = 0; i < SUFFIX_LEN; i++, hash /= sizeof(alphabet) - 1)
        out[i] = alphabet[hash % (sizeof(alphabet) - 1)];
    out[SUFFIX_LEN] = '\0';
}

/* [-0, +1] A field of the table at `index` as text, "" when it is none. */
ML_RAISES static void push_text(lua_State *L, int index, const char *field)
{
    if (script_push_field(L, index, field) == LUA_TSTRING)
        return;
    lua_pop(L, 1);
    lua_pushliteral(L, "");
}

/* [-0, +1] The name for the object whose metadata are at `metadata`. */
ML_RAISES static void push_name(lua_State *L, int metadata, struct ml_str prefix)
{
    static const char *const fields[] = {"apiVersion", "kind"};
    struct ml_str uid = ml_object_uid(script_thread_of(L)->object);
    char suffix[SUFFIX_LEN + 1];
    int first = lua_gettop(L) + 1;
    lua_pushlstring(L, uid.ptr, uid.len);
    for (size_t i = 0; i < ML_COUNT(fields); i++) {
        lua_pushliteral(L, "\n");
        push_text(L, 1, fields[i]);
    }
    lua_pushliteral(L, "\n");
    push_text(L, metadata, "namespace");
    lua_pushliteral(L, "\n");
    lua_pushlstring(L, prefix.ptr, prefix.len);
    lua_concat(L, lua_gettop(L) - first + 1);
    size_t use = count_use(L);
    lua_pushfstring(L, "\n%d", (int)use);
    lua_concat(L, 2);
    write_suffix(ml_str_hash(script_check_str(L, -1)), suffix);
    lua_pop(L, 1);
    lua_pushlstring(L, prefix.ptr, ML_MIN(prefix.len, (size_t)(GENERATED_MAX - SUFFIX_LEN)));
    lua_pushstring(L, suffix);
    lua_concat(L, 2);
}

/* [-0, +1] metadata.generateName of the object at index 1, if its metadata, which are on top, ask
 * for a name. False: they do not, and nothing was pushed. */
ML_RAISES static bool push_prefix(lua_State *L)
{
    int metadata = lua_gettop(L);
    lazy_complete(L, metadata);
    push_text(L, metadata, "name");
    bool has_name = script_str(L, -1).len > 0;
    lua_pop(L, 1);
    push_text(L, metadata, "generateName");
    if (!has_name && script_str(L, -1).len > 0)
        return true;
    lua_pop(L, 1);
    return false;
}

ML_RAISES void ctx_generate_name(lua_State *L, const char *call)
{
    int top = lua_gettop(L);
    ctx_may_wait(L, call);
    if (!lua_istable(L, 1))
        return;
    lazy_complete(L, 1);
    if (script_push_field(L, 1, "metadata") != LUA_TTABLE || !push_prefix(L)) {
        lua_settop(L, top);
        return;
    }
    script_push_copy(L, 1);
    script_push_copy(L, top + 1);
    push_name(L, top + 1, script_str(L, top + 2)); /* behind the metadata and the prefix */
    lua_setfield(L, -2, "name");
    lua_setfield(L, -2, "metadata");
    lua_replace(L, 1);
    lua_settop(L, top);
}
