/* Parses the lines of a watch. */
#include "state/watch_event.h"

#include "codec/json.h"
#include "codec/json_scan.h"

struct member {
    struct ml_str key;   /* as written, between its quotes */
    struct ml_str value; /* raw */
};

/* The end of the string that starts before `at`, after its closing quote; NULL if there is none. */
static const char *json_string_end(const char *at, const char *end)
{
    while ((at = ml_json_quote_end(at, end)) < end) {
        if (*at == '"')
            return at + 1;
        if (end - at < 2)
            return NULL;
        at += 2;
    }
    return NULL;
}

/* The ',' or closing bracket after the value at `at`; NULL if there is none. */
static const char *json_value_end(const char *at, const char *end)
{
    size_t depth = 0;
    while (at && (at = ml_json_structure_end(at, end, depth == 0)) < end) {
        bool opens = (*at | 0x20) == '{';
        if (*at == '"') {
            at = json_string_end(at + 1, end);
            continue;
        }
        if (depth == 0 && !opens)
            return at;
        depth += opens ? 1 : (size_t)-1;
        at++;
    }
    return NULL;
}

/* The members of an object: the text after its '{'. Empty if it is not an object. */
static struct ml_str members_of_object(struct ml_str object)
{
    object = ml_str_trim(object);
    if (object.len == 0 || object.ptr[0] != '{')
        return (struct ml_str){NULL, 0};
    return (struct ml_str){object.ptr + 1, object.len - 1};
}

/* Takes the next member off `rest`. False, with `rest` as it was, at the end or where no member
 * follows. */
static bool next_member(struct ml_str *rest, struct member *out)
{
    if (rest->len == 0)
        return false;
    const char *end = rest->ptr + rest->len;
    const char *key = ml_json_space_end(rest->ptr, end);
    if (key == end || *key != '"')
        return false;
    const char *key_end = json_string_end(++key, end);
    const char *colon = key_end ? ml_json_space_end(key_end, end) : end;
    if (colon == end || *colon != ':')
        return false;
    const char *next = json_value_end(colon + 1, end);
    if (!next)
        return false;
    out->key = (struct ml_str){key, (size_t)(key_end - 1 - key)};
    out->value = ml_str_trim((struct ml_str){colon + 1, (size_t)(next - colon - 1)});
    next += *next == ',';
    *rest = (struct ml_str){next, (size_t)(end - next)};
    return true;
}

/* A key may be written with escapes, though no server does. */
static bool member_key_is(const struct member *member, const char *name)
{
    if (!memchr(member->key.ptr, '\\', member->key.len))
        return ml_str_is(member->key, name);
    ML_AUTO(ml_buf_fini) struct ml_buf plain = ML_BUF_INIT;
    struct ml_str quoted = {member->key.ptr - 1, member->key.len + 2};
    return ml_json_to_string(quoted, &plain) && ml_str_is(ml_buf_str(&plain), name);
}

/* The value of `name` that begins with `first`: '{' or '"'. Of duplicate keys the last counts, as
 * for ml_object_new. */
static struct ml_str watch_event_find(struct ml_str object, const char *name, char first)
{
    struct ml_str rest = members_of_object(object);
    struct ml_str found = {NULL, 0};
    struct member member;
    while (next_member(&rest, &member))
        if (member_key_is(&member, name) && member.value.len > 0 && member.value.ptr[0] == first)
            found = member.value;
    return found;
}

/* The caller frees it; NULL when metadata has no such string. */
static char *watch_event_metadata_text(struct ml_str object, const char *name)
{
    struct ml_str raw = watch_event_find(watch_event_find(object, "metadata", '{'), name, '"');
    struct ml_buf text = ML_BUF_INIT;
    if (ml_json_to_string(raw, &text))
        return ml_buf_take(&text);
    ml_buf_fini(&text);
    return NULL;
}

static enum watch_event_type watch_event_type_of(struct ml_str quoted)
{
    static const char *const names[] = {
        [WATCH_ADDED] = "\"ADDED\"",     [WATCH_MODIFIED] = "\"MODIFIED\"",
        [WATCH_DELETED] = "\"DELETED\"", [WATCH_BOOKMARK] = "\"BOOKMARK\"",
        [WATCH_ERROR] = "\"ERROR\"",
    };
    for (size_t i = 0; i < ML_COUNT(names); i++)
        if (ml_str_is(quoted, names[i]))
            return (enum watch_event_type)i;
    return WATCH_UNKNOWN;
}

int watch_event_parse(struct ml_str line, struct watch_event *out, struct ml_err *err)
{
    struct ml_str rest = members_of_object(line);
    struct ml_str type = {NULL, 0}, object = {NULL, 0};
    struct member member;
    while (next_member(&rest, &member)) {
        if (member_key_is(&member, "type"))
            type = member.value;
        else if (member_key_is(&member, "object"))
            object = member.value;
    }
    if (!ml_str_is(ml_str_trim(rest), "}"))
        return ml_err_set(err, ML_EINVALID, "a line of the watch is no JSON object");
    if (type.len == 0 || type.ptr[0] != '"')
        return ml_err_set(err, ML_EINVALID, "a line of the watch has no type");
    if (object.len == 0 || object.ptr[0] != '{')
        return ml_err_set(err, ML_EINVALID, "a line of the watch has no object");
    *out = (struct watch_event){.type = watch_event_type_of(type), .object = object};
    return 0;
}

bool watch_event_is_status(struct ml_str line)
{
    return ml_str_is(watch_event_find(line, "kind", '"'), "\"Status\"");
}

bool watch_event_ends_initial(struct ml_str object)
{
    struct ml_str annotations = watch_event_find(watch_event_find(object, "metadata", '{'),
                                                 "annotations", '{');
    return ml_str_is(watch_event_find(annotations, "k8s.io/initial-events-end", '"'), "\"true\"");
}

char *watch_event_version(struct ml_str object)
{
    return watch_event_metadata_text(object, "resourceVersion");
}

char *watch_event_key(struct ml_str object)
{
    ML_AUTO_FREE char *ns = watch_event_metadata_text(object, "namespace");
    ML_AUTO_FREE char *name = watch_event_metadata_text(object, "name");
    if (!name)
        return ml_strdup("");
    return ns && *ns ? ml_asprintf("%s/%s", ns, name) : ml_take(&name);
}
