#include "state/watch_event.h"

#include "codec/json.h"

/* Deeper than the API server lets objects be: one that is too deep for us is still framed. */
#define EVENT_DEPTH_MAX 12000

static enum watch_event_type type_of(struct ml_str name)
{
    static const char *const names[] = {
        [WATCH_ADDED] = "ADDED",       [WATCH_MODIFIED] = "MODIFIED", [WATCH_DELETED] = "DELETED",
        [WATCH_BOOKMARK] = "BOOKMARK", [WATCH_ERROR] = "ERROR",
    };
    for (size_t i = 0; i < ML_COUNT(names); i++)
        if (ml_str_is(name, names[i]))
            return (enum watch_event_type)i;
    return WATCH_UNKNOWN;
}

int watch_event_parse(struct ml_str line, struct watch_event *out, struct ml_err *err)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    struct watch_event event = {.type = WATCH_UNKNOWN};
    bool typed = false;
    ml_json_reader_init(&reader, line, EVENT_DEPTH_MAX);
    if (ml_json_next(&reader) == ML_JSON_OBJECT) {
        while (ml_json_next(&reader) == ML_JSON_KEY) {
            if (ml_str_is(reader.text, "type")) {
                typed = ml_json_next(&reader) == ML_JSON_STRING;
                if (typed)
                    event.type = type_of(reader.text);
            } else if (ml_str_is(reader.text, "object")) {
                event.object = ml_json_skip(&reader);
            } else {
                ml_json_skip(&reader);
            }
        }
    }
    if (reader.token == ML_JSON_ERROR)
        return ml_json_error(&reader, err);
    if (!typed || event.object.len == 0)
        return ml_err_set(err, ML_EINVALID, "no watch event: type or object is missing");
    *out = event;
    return 0;
}

char *watch_event_version(struct ml_str object)
{
    return ml_json_find_string(object, "metadata", "resourceVersion", NULL);
}

char *watch_event_key(struct ml_str object)
{
    ML_AUTO_FREE char *ns = ml_json_find_string(object, "metadata", "namespace", NULL);
    ML_AUTO_FREE char *name = ml_json_find_string(object, "metadata", "name", NULL);
    if (!name)
        return ml_strdup("");
    return ns ? ml_asprintf("%s/%s", ns, name) : ml_take(&name);
}
