/* The Lua state in which lua/analysis reads the texts of scripts. Its code is the host's own, and
 * what it reads may be anything: so memory and instructions have limits, and a text that needs more
 * is left unread. */
#include "script/analysis.h"

#include <lualib.h>

#include "codec/json.h"
#include "codec/regex.h"
#include "script/internal.h"
#include "script/library.h"
#include "script/maxima.h"

#define MEMORY_DEFAULT ((size_t)16 * 1024 * 1024)
#define HOOK_EVERY     1000 /* instructions */
#define HOOKS_A_STEP   25   /* one or two milliseconds: a quick slice (state/slices.c) */
#define HOOKS_MAX      200000

struct wanted {
    char *group, *version, *kind;
};

struct ml_analysis {
    lua_State *L;
    lua_State *work; /* a coroutine, on the stack of L */
    int arguments;   /* on the stack of `work`, for the next step */
    size_t used, memory_max;
    size_t hooks, hooks_of_step; /* that ran, of HOOKS_MAX and of HOOKS_A_STEP */
    enum ml_analysis_state state;
    struct ml_script_files files; /* borrowed while the state is made */
    struct ml_json_reader reader; /* of a schema: an error of Lua must not lose it */
    struct ml_regex *regex;       /* the last that was tried, for the same reason */
    struct wanted *kinds;
    size_t kind_count;
    struct ml_analysis_problem *problems;
    size_t problem_count;
    struct ml_err why;
};

static const char documents_key, known_key;

/* ---- the state ---- */

static void *analysis_allocate(void *context, void *ptr, size_t osize, size_t nsize)
{
    struct ml_analysis *self = context;
    size_t before = ptr ? osize : 0;
    if (nsize > before && self->used + (nsize - before) > self->memory_max)
        return NULL;
    void *memory = NULL;
    if (nsize == 0)
        free(ptr);
    else
        memory = ml_realloc(ptr, nsize);
    self->used = self->used - before + nsize;
    return memory;
}

static struct ml_analysis *analysis_of(lua_State *L)
{
    return *(struct ml_analysis **)lua_getextraspace(L);
}

/* Ends the step, or all of it. Inside of a function in C nothing can end: the next hook will. */
ML_RAISES static void on_count(lua_State *L, lua_Debug *debug)
{
    struct ml_analysis *self = analysis_of(L);
    (void)debug;
    if (++self->hooks > HOOKS_MAX)
        luaL_error(L, "it takes more than %d million instructions",
                   HOOKS_MAX / 1000 * HOOK_EVERY / 1000);
    if (++self->hooks_of_step >= HOOKS_A_STEP && lua_isyieldable(L))
        lua_yield(L, 0);
}

static const struct script_library *find_module(const char *name)
{
    static const struct script_library *const libraries[] = {analysis_library, script_library};
    for (size_t i = 0; i < ML_COUNT(libraries); i++)
        for (const struct script_library *module = libraries[i]; module->name; module++)
            if (strcmp(module->name, name) == 0)
                return module;
    return NULL;
}

ML_RAISES static int require_module(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    if (luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE) &&
        lua_getfield(L, -1, name) != LUA_TNIL)
        return 1;
    const struct script_library *module = find_module(name);
    if (!module)
        return luaL_error(L, "there is no module %s", name);
    lua_settop(L, 2);
    lua_pushfstring(L, "@%s", module->file);
    if (luaL_loadbufferx(L, (const char *)module->code, (size_t)(module->end - module->code),
                         lua_tostring(L, -1), "b") != LUA_OK)
        return lua_error(L);
    lua_call(L, 0, 1);
    lua_pushvalue(L, -1);
    lua_setfield(L, 2, name);
    return 1;
}

/* ---- what goes in and out ---- */

ML_RAISES static void push_files(lua_State *L, const struct ml_script_files *files)
{
    lua_createtable(L, (int)files->count, 0);
    for (size_t i = 0; i < files->count; i++) {
        lua_createtable(L, 0, 2);
        lua_pushlstring(L, files->files[i].name.ptr, files->files[i].name.len);
        lua_setfield(L, -2, "name");
        lua_pushlstring(L, files->files[i].text.ptr, files->files[i].text.len);
        lua_setfield(L, -2, "text");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

ML_RAISES static void push_json(lua_State *L, struct ml_json_reader *reader);

ML_RAISES static void push_object(lua_State *L, struct ml_json_reader *reader)
{
    lua_newtable(L);
    while (ml_json_next(reader) == ML_JSON_KEY) {
        lua_pushlstring(L, reader->text.ptr, reader->text.len);
        ml_json_next(reader);
        push_json(L, reader);
        lua_rawset(L, -3);
    }
}

ML_RAISES static void push_array(lua_State *L, struct ml_json_reader *reader)
{
    lua_newtable(L);
    for (lua_Integer i = 1; ml_json_next(reader) != ML_JSON_ARRAY_END; i++) {
        if (reader->token == ML_JSON_ERROR)
            return;
        push_json(L, reader);
        lua_rawseti(L, -2, i);
    }
}

/* The value that begins with the token at hand; null is nil. After an error all is nil. */
ML_RAISES static void push_json(lua_State *L, struct ml_json_reader *reader)
{
    luaL_checkstack(L, 4, "JSON");
    switch (reader->token) {
    case ML_JSON_OBJECT:
        push_object(L, reader);
        break;
    case ML_JSON_ARRAY:
        push_array(L, reader);
        break;
    case ML_JSON_STRING:
    case ML_JSON_NUMBER:
        lua_pushlstring(L, reader->text.ptr, reader->text.len);
        break;
    case ML_JSON_INT:
        lua_pushinteger(L, reader->integer);
        break;
    case ML_JSON_REAL:
        lua_pushnumber(L, reader->real);
        break;
    case ML_JSON_TRUE:
    case ML_JSON_FALSE:
        lua_pushboolean(L, reader->token == ML_JSON_TRUE);
        break;
    case ML_JSON_NULL:
    case ML_JSON_KEY:
    case ML_JSON_OBJECT_END:
    case ML_JSON_ARRAY_END:
    case ML_JSON_END:
    case ML_JSON_ERROR:
        lua_pushnil(L);
        break;
    }
}

ML_RAISES static char *copy_field(lua_State *L, int index, const char *name)
{
    size_t len = 0;
    lua_getfield(L, index, name);
    const char *text = lua_tolstring(L, -1, &len);
    char *copy = ml_str_dup((struct ml_str){text ? text : "", len});
    lua_pop(L, 1);
    return copy;
}

/* An error of Lua may end it: what has been read belongs to the analysis by then. */
ML_RAISES static void read_kinds(lua_State *L, struct ml_analysis *self, int list)
{
    size_t count = lua_rawlen(L, list);
    self->kinds = ml_zalloc((count + 1) * sizeof *self->kinds);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, list, (lua_Integer)i + 1);
        int entry = lua_gettop(L);
        struct wanted *wanted = &self->kinds[self->kind_count++];
        wanted->group = copy_field(L, entry, "group");
        wanted->version = copy_field(L, entry, "version");
        wanted->kind = copy_field(L, entry, "kind");
        lua_settop(L, entry - 1);
    }
}

ML_RAISES static void read_problems(lua_State *L, struct ml_analysis *self, int list)
{
    size_t count = lua_rawlen(L, list);
    self->problems = ml_zalloc((count + 1) * sizeof *self->problems);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, list, (lua_Integer)i + 1);
        int entry = lua_gettop(L);
        struct ml_analysis_problem *problem = &self->problems[self->problem_count++];
        problem->file = copy_field(L, entry, "file");
        problem->text = copy_field(L, entry, "text");
        lua_settop(L, entry - 1);
    }
}

/* ---- the work ---- */

/* [list of kinds] → what the host knows of them, later. */
ML_RAISES static int ask_for_kinds(lua_State *L)
{
    lua_settop(L, 1);
    return lua_yield(L, 1);
}

/* [results, for a pause that has ended] */
ML_RAISES static int give_results(lua_State *L ML_UNUSED, int status ML_UNUSED, lua_KContext count)
{
    return (int)count;
}

/* compile(plain) -> true | false, reason, the part that is wrong. It may take 20 ms, so the step
 * ends here. */
ML_RAISES static int compile_regex(lua_State *L)
{
    struct ml_analysis *self = analysis_of(L);
    struct ml_str plain, part = {"", 0};
    plain.ptr = luaL_checklstring(L, 1, &plain.len);
    ml_regex_free(self->regex);
    self->regex = ml_regex_new(plain, SCRIPT_REGEX_BYTES);
    const char *reason = ml_regex_problem(self->regex, &part);
    lua_settop(L, 0);
    lua_pushboolean(L, !reason);
    lua_pushstring(L, reason);
    lua_pushlstring(L, part.ptr, part.len);
    self->hooks += HOOKS_A_STEP;
    return lua_yieldk(L, 0, 3, give_results);
}

/* Opens the libraries that lua/analysis needs, and leaves the coroutine on the stack. */
ML_RAISES static int open_analysis(lua_State *L)
{
    static const luaL_Reg libraries[] = {
        {LUA_GNAME, luaopen_base},       {LUA_STRLIBNAME, luaopen_string},
        {LUA_TABLIBNAME, luaopen_table}, {LUA_MATHLIBNAME, luaopen_math},
        {LUA_UTF8LIBNAME, luaopen_utf8},
    };
    struct ml_analysis *self = analysis_of(L);
    for (size_t i = 0; i < ML_COUNT(libraries); i++) {
        luaL_requiref(L, libraries[i].name, libraries[i].func, 1);
        lua_pop(L, 1);
    }
    lua_register(L, "require", require_module);
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &documents_key);
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &known_key);
    self->work = lua_newthread(L);
    lua_sethook(self->work, on_count, LUA_MASKCOUNT, HOOK_EVERY);
    lua_getglobal(self->work, "require");
    lua_pushliteral(self->work, "analysis");
    lua_call(self->work, 1, 1);
    lua_getfield(self->work, -1, "run");
    lua_remove(self->work, -2);
    push_files(self->work, &self->files);
    lua_pushcfunction(self->work, ask_for_kinds);
    lua_pushcfunction(self->work, compile_regex);
    self->arguments = 3;
    return 1;
}

static void give_up(struct ml_analysis *self, lua_State *L)
{
    const char *why = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "it failed";
    self->state = ML_ANALYSIS_GAVE_UP;
    ml_err_set(&self->why, ML_ELIMIT, "the names in it cannot be checked: %s", why);
}

struct ml_analysis *ml_analysis_new(const struct ml_script_files *files, size_t memory_max)
{
    struct ml_analysis *self = ml_new(struct ml_analysis);
    self->memory_max = memory_max ? memory_max : MEMORY_DEFAULT;
    self->files = *files;
    self->why = ML_ERR_INIT;
    self->L = lua_newstate(analysis_allocate, self);
    if (!self->L) {
        self->state = ML_ANALYSIS_GAVE_UP;
        ml_err_set(&self->why, ML_ELIMIT, "the names in it cannot be checked: not enough memory");
        return self;
    }
    *(struct ml_analysis **)lua_getextraspace(self->L) = self;
    lua_pushcfunction(self->L, open_analysis);
    if (lua_pcall(self->L, 0, 1, 0) != LUA_OK)
        give_up(self, self->L);
    self->files = (struct ml_script_files){0};
    return self;
}

void ml_analysis_free(struct ml_analysis *self)
{
    if (!self)
        return;
    if (self->L)
        lua_close(self->L);
    ml_json_reader_fini(&self->reader);
    ml_regex_free(self->regex);
    for (size_t i = 0; i < self->kind_count; i++) {
        free(self->kinds[i].group);
        free(self->kinds[i].version);
        free(self->kinds[i].kind);
    }
    for (size_t i = 0; i < self->problem_count; i++) {
        free(self->problems[i].file);
        free(self->problems[i].text);
    }
    free(self->kinds);
    free(self->problems);
    free(self);
}

/* [kinds, or problems] */
ML_RAISES static int read_result(lua_State *L)
{
    struct ml_analysis *self = analysis_of(L);
    luaL_checktype(L, 1, LUA_TTABLE);
    if (self->state == ML_ANALYSIS_WANTS_KINDS)
        read_kinds(L, self, 1);
    else
        read_problems(L, self, 1);
    return 0;
}

/* The table that the coroutine passed out, read on the stack of L, where an error does no harm. */
static void take_result(struct ml_analysis *self, bool are_kinds)
{
    lua_pushcfunction(self->L, read_result);
    lua_xmove(self->work, self->L, 1);
    self->state = are_kinds ? ML_ANALYSIS_WANTS_KINDS : ML_ANALYSIS_DONE;
    if (lua_pcall(self->L, 1, 0, 0) != LUA_OK)
        give_up(self, self->L);
}

/* The answers of the caller, which the registry has, for the coroutine. */
static void pass_answers(struct ml_analysis *self)
{
    lua_rawgetp(self->work, LUA_REGISTRYINDEX, &documents_key);
    lua_rawgetp(self->work, LUA_REGISTRYINDEX, &known_key);
    self->arguments = 2;
    self->state = ML_ANALYSIS_READS;
}

enum ml_analysis_state ml_analysis_step(struct ml_analysis *self)
{
    int results = 0;
    if (self->state == ML_ANALYSIS_DONE || self->state == ML_ANALYSIS_GAVE_UP)
        return self->state;
    if (self->state == ML_ANALYSIS_WANTS_KINDS)
        pass_answers(self);
    self->hooks_of_step = 0;
    int arguments = self->arguments;
    self->arguments = 0;
    int status = lua_resume(self->work, self->L, arguments, &results);
    if (status != LUA_OK && status != LUA_YIELD)
        give_up(self, self->work);
    else if (results == 1)
        take_result(self, status == LUA_YIELD);
    return self->state;
}

/* ---- what the caller asks ---- */

enum ml_analysis_state ml_analysis_state(const struct ml_analysis *self)
{
    return self->state;
}

size_t ml_analysis_kind_count(const struct ml_analysis *self)
{
    return self->kind_count;
}

struct ml_gvk ml_analysis_kind(const struct ml_analysis *self, size_t index)
{
    const struct wanted *wanted = &self->kinds[index];
    return (struct ml_gvk){ml_str_of(wanted->group), ml_str_of(wanted->version),
                           ml_str_of(wanted->kind)};
}

/* [wanted as light userdata] Notes the schema that `reader` reads. */
ML_RAISES static int note_schema(lua_State *L)
{
    struct ml_analysis *self = analysis_of(L);
    const struct wanted *wanted = lua_touserdata(L, 1);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &documents_key);
    lua_pushfstring(L, "%s%s%s/%s", wanted->group, wanted->group[0] ? "/" : "", wanted->version,
                    wanted->kind);
    ml_json_next(&self->reader);
    push_json(L, &self->reader);
    lua_rawset(L, 2);
    return 0;
}

/* [gvk as light userdata] */
ML_RAISES static int note_kind(lua_State *L)
{
    const struct ml_gvk *gvk = lua_touserdata(L, 1);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &known_key);
    lua_createtable(L, 0, 3);
    lua_pushlstring(L, gvk->group.ptr, gvk->group.len);
    lua_setfield(L, -2, "group");
    lua_pushlstring(L, gvk->version.ptr, gvk->version.len);
    lua_setfield(L, -2, "version");
    lua_pushlstring(L, gvk->kind.ptr, gvk->kind.len);
    lua_setfield(L, -2, "kind");
    lua_rawseti(L, 2, (lua_Integer)lua_rawlen(L, 2) + 1);
    return 0;
}

static void note(struct ml_analysis *self, lua_CFunction function, const void *what)
{
    if (self->state != ML_ANALYSIS_WANTS_KINDS)
        return;
    lua_pushcfunction(self->L, function);
    lua_pushlightuserdata(self->L, (void *)what);
    if (lua_pcall(self->L, 1, 0, 0) != LUA_OK)
        give_up(self, self->L);
}

void ml_analysis_give_schema(struct ml_analysis *self, size_t index, struct ml_str schema)
{
    ml_json_reader_init(&self->reader, schema, 0);
    note(self, note_schema, &self->kinds[index]);
    ml_json_reader_fini(&self->reader);
    self->reader = (struct ml_json_reader){0};
}

void ml_analysis_give_kind(struct ml_analysis *self, const struct ml_gvk *gvk)
{
    note(self, note_kind, gvk);
}

size_t ml_analysis_problem_count(const struct ml_analysis *self)
{
    return self->problem_count;
}

const struct ml_analysis_problem *ml_analysis_problem(const struct ml_analysis *self, size_t index)
{
    return &self->problems[index];
}

const struct ml_err *ml_analysis_why(const struct ml_analysis *self)
{
    return &self->why;
}
