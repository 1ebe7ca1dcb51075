/* ctx.metric, and the metrics that a script declares. A run keeps the recorded values in its notes;
 * the controller counts them when the run has ended well (state/custom_metrics.h). */
#include "script/ctx.h"
#include "script/ctx_calls.h"

#include <math.h>

#define LABEL_VALUE_MAX 256 /* bytes of a label's value */
#define METRIC_NAME_MAX 100
#define RECORDED_MAX    1000 /* values that one reconcile records */

/* ---- the declaration ---- */

ML_RAISES ML_NORETURN static void refuse(lua_State *L, const char *what)
{
    luaL_error(L, "%s: metrics: not what moonloop.controller checked: %s",
               script_of(L)->declaration.file, what);
    ML_UNREACHABLE();
}

static bool is_metric_name(struct ml_str name)
{
    return name.len > 0 && name.len <= METRIC_NAME_MAX &&
           !(name.ptr[0] >= '0' && name.ptr[0] <= '9') &&
           strspn(name.ptr, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
               name.len;
}

ML_RAISES static enum ml_custom_type check_type(lua_State *L)
{
    for (int type = ML_CUSTOM_COUNTER; type <= ML_CUSTOM_HISTOGRAM; type++)
        if (ml_str_is(script_str(L, -1), ml_custom_type_name((enum ml_custom_type)type)))
            return (enum ml_custom_type)type;
    refuse(L, "type");
}

/* [-1, +0] The labels in the list on top. */
ML_RAISES static void declare_labels(lua_State *L, struct ml_custom_metric *metric)
{
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++) {
        struct ml_str label = script_str(L, -1);
        if (metric->label_count == ML_CUSTOM_LABELS_MAX || !is_metric_name(label) ||
            ml_str_is(label, "le") || ml_str_is(label, "controller") || ml_str_starts(label, "__"))
            refuse(L, "labels");
        metric->labels[metric->label_count++] = ml_str_dup(label);
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
}

/* [-1, +0] The buckets in the list on top. */
ML_RAISES static void declare_buckets(lua_State *L, struct ml_custom_metric *metric)
{
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++) {
        double bound = lua_tonumber(L, -1);
        bool ascends = i == 1 || bound > metric->buckets[i - 2];
        if (metric->bucket_count == ML_CUSTOM_BUCKETS_MAX || lua_type(L, -1) != LUA_TNUMBER ||
            !isfinite(bound) || !ascends)
            refuse(L, "buckets");
        metric->buckets[metric->bucket_count++] = bound;
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
}

/* The metric in the table on top. */
ML_RAISES static void declare_metric(lua_State *L, struct ml_custom_metric *metric)
{
    int given = lua_gettop(L);
    script_push_field(L, given, "name");
    script_push_field(L, given, "help");
    struct ml_str name = script_str(L, -2), help = script_str(L, -1);
    if (!is_metric_name(name) || !help.ptr || strpbrk(help.ptr, "\n\\"))
        refuse(L, "name or help");
    metric->name = ml_str_dup(name);
    metric->help = ml_str_dup(help);
    script_push_field(L, given, "type");
    metric->type = check_type(L);
    script_push_field(L, given, "sum");
    metric->sums = lua_toboolean(L, -1);
    if (metric->sums && metric->type != ML_CUSTOM_GAUGE)
        refuse(L, "sum");
    if (script_push_field(L, given, "labels") != LUA_TTABLE)
        refuse(L, "labels");
    declare_labels(L, metric);
    if (script_push_field(L, given, "buckets") != LUA_TTABLE)
        refuse(L, "buckets");
    declare_buckets(L, metric);
    lua_settop(L, given);
}

ML_RAISES void script_declare_metrics(lua_State *L, int definition)
{
    struct ml_script *script = script_of(L);
    if (script_push_field(L, definition, "metrics") != LUA_TTABLE)
        refuse(L, "no table");
    lua_Integer count = (lua_Integer)lua_rawlen(L, -1);
    if (count > ML_CUSTOM_METRICS_MAX)
        refuse(L, "too many");
    if (count > 0)
        script->metrics = ml_zalloc((size_t)count * sizeof *script->metrics);
    for (lua_Integer i = 1; i <= count; i++) {
        if (lua_rawgeti(L, -1, i) != LUA_TTABLE)
            refuse(L, "no table");
        declare_metric(L, &script->metrics[script->declaration.metric_count++]);
        lua_pop(L, 1);
    }
    script->declaration.metrics = script->metrics;
    lua_pop(L, 1);
}

/* ---- ctx.metric ---- */

ML_RAISES static const struct ml_custom_metric *check_metric(lua_State *L)
{
    const struct ml_declaration *declaration = &script_of(L)->declaration;
    struct ml_str name = script_str(L, 1);
    if (!name.ptr)
        luaL_error(L, METRIC_CALL ": expected the name of a metric, got a %s", luaL_typename(L, 1));
    for (size_t i = 0; i < declaration->metric_count; i++)
        if (ml_str_is(name, declaration->metrics[i].name))
            return &declaration->metrics[i];
    lua_pushlstring(L, name.ptr, ML_MIN(name.len, (size_t)METRIC_NAME_MAX));
    luaL_error(L, METRIC_CALL ": no metric '%s' is declared: add it to metrics",
               lua_tostring(L, -1));
    ML_UNREACHABLE();
}

ML_RAISES static double check_value(lua_State *L, const struct ml_custom_metric *metric)
{
    double value = lua_type(L, 2) == LUA_TNUMBER ? lua_tonumber(L, 2) : (double)NAN;
    if (!isfinite(value))
        luaL_error(L, METRIC_CALL ": %s: expected a number that is neither infinite nor NaN",
                   metric->name);
    if (metric->type == ML_CUSTOM_COUNTER && value < 0)
        luaL_error(L, METRIC_CALL ": %s: a counter only grows; expected a number from 0 on",
                   metric->name);
    if (metric->sums && fabs(value) > ML_CUSTOM_PART_MAX)
        luaL_error(L, METRIC_CALL ": %s: a gauge with sum takes numbers from -1e300 to 1e300",
                   metric->name);
    return value;
}

/* The value of one label, which stays on the stack. */
ML_RAISES static struct ml_str
check_label_value(lua_State *L, const struct ml_custom_metric *metric, const char *label)
{
    script_push_field(L, 3, label);
    struct ml_str value = script_str(L, -1);
    if (!value.ptr)
        luaL_error(L, METRIC_CALL ": %s: labels: %s: expected a string, got a %s", metric->name,
                   label, luaL_typename(L, -1));
    if (value.len > LABEL_VALUE_MAX || memchr(value.ptr, '\0', value.len) || !ml_str_is_utf8(value))
        luaL_error(L, METRIC_CALL ": %s: labels: %s: expected text of at most %d bytes",
                   metric->name, label, LABEL_VALUE_MAX);
    return value;
}

ML_RAISES static void check_label_values(lua_State *L, const struct ml_custom_metric *metric,
                                         struct ml_str out[ML_CUSTOM_LABELS_MAX])
{
    size_t given = 0;
    if (lua_isnoneornil(L, 3)) {
        lua_settop(L, 2);
        lua_newtable(L);
    }
    if (!lua_istable(L, 3))
        luaL_error(L, METRIC_CALL ": %s: labels: expected a table", metric->name);
    lazy_complete(L, 3);
    for (lua_pushnil(L); lua_next(L, 3); lua_pop(L, 1)) {
        script_cpu_check(L);
        given++;
    }
    for (size_t i = 0; i < metric->label_count; i++)
        out[i] = check_label_value(L, metric, metric->labels[i]);
    if (given != metric->label_count)
        luaL_error(L, METRIC_CALL ": %s: labels: %d are given, and %d are declared", metric->name,
                   (int)given, (int)metric->label_count);
}

ML_RAISES int ctx_metric(lua_State *L)
{
    struct script_thread *thread = script_thread_of(L);
    struct ml_run *run = thread->run;
    struct ml_str values[ML_CUSTOM_LABELS_MAX];
    if (!run)
        return luaL_error(L, METRIC_CALL ": only while reconciling");
    lua_settop(L, 3);
    luaL_checkstack(L, ML_CUSTOM_LABELS_MAX + 8, NULL);
    const struct ml_custom_metric *metric = check_metric(L);
    double value = check_value(L, metric);
    check_label_values(L, metric, values);
    if (ml_custom_notes_len(run->notes) >= RECORDED_MAX)
        return luaL_error(L, METRIC_CALL ": more than %d values in one reconcile", RECORDED_MAX);
    size_t most = (size_t)ML_CUSTOM_LABELS_MAX * (2 * LABEL_VALUE_MAX + METRIC_NAME_MAX);
    script_charge(L, most);
    if (!run->notes)
        run->notes = ml_custom_notes_new();
    size_t bytes = ml_custom_notes_add(run->notes, metric, values, ml_object_name(thread->object),
                                       value);
    ml_budget_give(&thread->script->memory, most);
    ml_budget_force(&thread->script->memory, bytes);
    run->charged += bytes;
    return 0;
}
