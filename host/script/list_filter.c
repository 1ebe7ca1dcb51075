/* The options of ctx.list (list_filter.h): labels, fields, index, namespace, owned. */
#include "script/list_filter.h"

#include "codec/json_members.h"
#include "kube/selector.h"
#include "script/ctx_calls.h"

/* ---- checking ---- */

/* [-0, +0] Raises with a part of the key, which may be long. */
ML_RAISES static int refuse_term(lua_State *L, const char *problem, struct ml_str key)
{
    lua_pushlstring(L, key.ptr, ML_MIN(key.len, (size_t)64));
    return luaL_error(L, LIST_CALL ": %s '%s'", problem, lua_tostring(L, -1));
}

ML_RAISES static void check_label(lua_State *L, const struct list_term *label)
{
    if (!label->key.ptr || !label->value.ptr)
        luaL_error(L, LIST_CALL ": labels: expected a table of strings");
    if (!ml_label_valid(label->key, label->value))
        refuse_term(L, "labels: no object can have this label", label->key);
}

/* "spec.nodeName": names, with dots between them. */
static bool is_field_path(struct ml_str path)
{
    bool is_name_empty = true;
    for (size_t i = 0; i < path.len; i++) {
        if (path.ptr[i] == '.' && is_name_empty)
            return false;
        is_name_empty = path.ptr[i] == '.';
        if (path.ptr[i] == '\0' || path.ptr[i] == '[' || path.ptr[i] == '=' || path.ptr[i] == ',')
            return false;
    }
    return !is_name_empty && path.len <= SCRIPT_FIELD_PATH_MAX;
}

ML_RAISES static void check_field(lua_State *L, const struct list_term *field)
{
    if (!field->key.ptr || !field->value.ptr)
        luaL_error(L, LIST_CALL ": fields: expected a table from paths to strings, as in "
                                "{ [\"spec.nodeName\"] = \"n1\" }");
    if (!is_field_path(field->key))
        refuse_term(L, "fields: expected the path of a field, as in \"spec.nodeName\", got",
                    field->key);
}

/* [-0, +2] Checks the terms in the table on top. Pushes an array of the sorted keys followed by
 * their values, and a userdata with slices of these, which it returns. */
ML_RAISES static struct list_term *check_terms(lua_State *L, const char *what, size_t max,
                                               void (*check)(lua_State *, const struct list_term *),
                                               size_t *out_count)
{
    int given = lua_gettop(L), held = given + 1;
    lazy_complete(L, given);
    script_push_keys(L, given);
    size_t count = (size_t)lua_rawlen(L, held);
    if (count > max)
        luaL_error(L, LIST_CALL ": %s: at most %d", what, (int)max);
    struct list_term *terms = lua_newuserdatauv(L, (count + 1) * sizeof(*terms), 0);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, held, (lua_Integer)i + 1);
        lua_pushvalue(L, -1);
        lua_rawget(L, given);
        terms[i] = (struct list_term){script_str(L, -2), script_str(L, -1)};
        check(L, &terms[i]);
        lua_rawseti(L, held, (lua_Integer)(count + i + 1));
        lua_pop(L, 1);
    }
    *out_count = count;
    return terms;
}

/* [-0, +1 or more] The table that the option has; false: it has none. */
ML_RAISES static bool push_table_option(lua_State *L, const char *option)
{
    int type = script_push_field(L, 2, option);
    if (type != LUA_TNIL && type != LUA_TTABLE)
        luaL_error(L, LIST_CALL ": %s: expected a table", option);
    return type == LUA_TTABLE;
}

/* A cache of metadata has no other fields. */
ML_RAISES static void check_cached_fields(lua_State *L, const struct ctx_kind *kind,
                                          const struct list_filter *filter)
{
    for (size_t i = 0; i < filter->field_count; i++)
        if (kind->selection->metadata_only &&
            memcmp(filter->fields[i].key.ptr, "metadata.",
                   ML_MIN(filter->fields[i].key.len, strlen("metadata."))) != 0)
            refuse_term(L, "fields: this kind is watched with metadata_only, which leaves out",
                        filter->fields[i].key);
}

/* [-0, +2] */
ML_RAISES static void check_index(lua_State *L, const struct ctx_kind *kind,
                                  struct list_filter *filter)
{
    bool is_given = script_push_field(L, 2, "index") != LUA_TNIL;
    bool has_key = script_push_field(L, 2, "key") != LUA_TNIL;
    if (!is_given && !has_key)
        return;
    filter->index = script_to_index(L, -2);
    filter->key = script_str(L, -1);
    if (!filter->key.ptr && (has_key || filter->index))
        luaL_error(L, LIST_CALL ": key: expected the string to look up in the index");
    if (!filter->index)
        luaL_error(L, LIST_CALL ": index: expected an index of moonloop.index, got %s",
                   luaL_typename(L, -2));
    const struct ml_gvk *gvk = &script_of(L)->kinds[kind->index].gvk;
    if (!script_is_same_kind(gvk, &filter->index->gvk))
        luaL_error(L, LIST_CALL ": index: it is one of %s, not of %s", filter->index->gvk.kind.ptr,
                   gvk->kind.ptr);
    if (filter->index->overflowed)
        luaL_error(L,
                   LIST_CALL ": index: the index of %s needs more memory than the script has "
                             "(--script-memory)",
                   gvk->kind.ptr);
}

ML_RAISES struct list_filter list_filter_check(lua_State *L, const struct ctx_kind *kind)
{
    struct list_filter filter = {.labels = NULL};
    lua_settop(L, 2);
    if (lua_isnil(L, 2)) {
        lua_newtable(L);
        lua_replace(L, 2);
    }
    if (!lua_istable(L, 2))
        luaL_error(L, LIST_CALL ": expected a table of options");
    lazy_complete(L, 2);
    script_check_fields(L, LIST_CALL, "list", 2);
    script_push_field(L, 2, "namespace");
    struct ml_str given = script_str(L, -1);
    if (!given.ptr && !lua_isnil(L, -1))
        luaL_error(L, LIST_CALL ": namespace: expected a string");
    script_push_field(L, 2, "owned");
    filter.owned = lua_toboolean(L, -1);
    if (push_table_option(L, "labels"))
        filter.labels = check_terms(L, "labels", SCRIPT_FILTER_LABELS_MAX, check_label,
                                    &filter.label_count);
    if (push_table_option(L, "fields"))
        filter.fields = check_terms(L, "fields", SCRIPT_FILTER_FIELDS_MAX, check_field,
                                    &filter.field_count);
    if (kind->informer)
        check_cached_fields(L, kind, &filter);
    check_index(L, kind, &filter);
    if (!ml_str_is(given, "*"))
        filter.ns = ctx_namespace(L, LIST_CALL, kind->kind, given);
    return filter;
}

/* ---- matching ---- */

static bool labels_match(const struct list_filter *filter, struct ml_str json)
{
    ML_AUTO(ml_json_members_fini) struct ml_json_members labels = {0};
    ML_AUTO(ml_buf_fini) struct ml_buf value = ML_BUF_INIT;
    struct ml_str raw;
    struct ml_err err;
    if (filter->label_count == 0)
        return true;
    if (!ml_json_find(json, &raw, "metadata", "labels", NULL) ||
        !ml_json_members_read(&labels, raw, 0, &err))
        return false;
    for (size_t i = 0; i < filter->label_count; i++) {
        const struct list_term *want = &filter->labels[i];
        const struct ml_json_member *label = ml_json_members_find(&labels, want->key);
        ml_buf_clear(&value);
        if (!label || !ml_json_to_string(label->value, &value) ||
            !ml_str_eq(ml_buf_str(&value), want->value))
            return false;
    }
    return true;
}

/* The value at the path as text: a string as it is, a number or boolean as JSON has it, nothing as
 * the empty text. False: it is an object or an array. Follows what the server makes of the
 * selectable fields of a CRD (apiextensions-apiserver, pkg/registry/customresource/strategy.go). */
static bool field_text(struct ml_str json, struct ml_str path, struct ml_buf *out)
{
    char name[SCRIPT_FIELD_PATH_MAX + 1];
    ml_buf_clear(out);
    for (struct ml_str rest = path; rest.ptr;) {
        struct ml_str one = ml_str_cut(&rest, '.');
        memcpy(name, one.ptr, one.len);
        name[one.len] = '\0';
        if (json.len > 0 && json.ptr[0] == '[') /* ml_json_find would take "0" for an element */
            return false;
        if (!ml_json_find(json, &json, name, NULL))
            return true;
    }
    if (json.len == 0 || json.ptr[0] == '{' || json.ptr[0] == '[')
        return false;
    if (!ml_json_to_string(json, out) && !ml_str_is(json, "null"))
        ml_buf_append_str(out, json);
    return true;
}

static bool fields_match(const struct list_filter *filter, struct ml_str json)
{
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    for (size_t i = 0; i < filter->field_count; i++)
        if (!field_text(json, filter->fields[i].key, &text) ||
            !ml_str_eq(ml_buf_str(&text), filter->fields[i].value))
            return false;
    return true;
}

bool list_filter_matches(const struct list_filter *filter, struct ml_str json)
{
    return labels_match(filter, json) && fields_match(filter, json);
}

read_node list_filter_note_reads(struct script_reads *reads, const struct ctx_kind *kind,
                                 const struct list_filter *filter)
{
    read_node members = reads_list(reads, kind->index, filter->ns, filter->owned);
    for (size_t i = 0; i < filter->label_count; i++) {
        read_node metadata = reads_field(reads, members, ML_STR("metadata"));
        read_node labels = reads_field(reads, metadata, ML_STR("labels"));
        reads_field(reads, labels, filter->labels[i].key);
    }
    for (size_t i = 0; i < filter->field_count; i++) {
        read_node node = members;
        for (struct ml_str rest = filter->fields[i].key; rest.ptr;)
            node = reads_field(reads, node, ml_str_cut(&rest, '.'));
    }
    if (filter->index)
        reads_copy_self(reads, members, filter->index->reads);
    return members;
}

/* ---- asking the server ---- */

static void add_label_selector(const struct list_filter *filter, struct ml_buf *selector)
{
    for (size_t i = 0; i < filter->label_count; i++)
        ml_buf_printf(selector, "%s" ML_STR_FMT "=" ML_STR_FMT, i > 0 ? "," : "",
                      ML_STR_ARG(filter->labels[i].key), ML_STR_ARG(filter->labels[i].value));
}

/* Escaped as apimachinery's fields.EscapeValue does. */
static void add_field_selector(const struct list_filter *filter, struct ml_buf *selector)
{
    for (size_t i = 0; i < filter->field_count; i++) {
        struct ml_str value = filter->fields[i].value;
        ml_buf_printf(selector, "%s" ML_STR_FMT "=", i > 0 ? "," : "",
                      ML_STR_ARG(filter->fields[i].key));
        for (size_t j = 0; j < value.len; j++) {
            if (memchr("\\,=", value.ptr[j], 3))
                ml_buf_putc(selector, '\\');
            ml_buf_putc(selector, value.ptr[j]);
        }
    }
}

ML_RAISES const char *list_filter_path(lua_State *L, const struct ctx_kind *kind,
                                       const struct list_filter *filter)
{
    struct ml_buf *path = &script_of(L)->overlay, *selector = &script_of(L)->body;
    ml_buf_clear(path);
    ml_kind_path(kind->kind, filter->ns, ML_STR(""), ML_STR(""), path);
    ml_buf_clear(selector);
    add_label_selector(filter, selector);
    if (selector->len > 0)
        ml_url_query(path, "labelSelector", ml_buf_str(selector));
    ml_buf_clear(selector);
    add_field_selector(filter, selector);
    if (selector->len > 0)
        ml_url_query(path, "fieldSelector", ml_buf_str(selector));
    if (path->len > SCRIPT_URL_MAX)
        luaL_error(L, LIST_CALL ": the request's URL would have %d bytes; at most %d",
                   (int)path->len, SCRIPT_URL_MAX);
    return ml_buf_cstr(path);
}
