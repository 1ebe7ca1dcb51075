#include "state/event_json.h"

#include "codec/json.h"
#include "codec/rfc3339.h"
#include "state/event_similar.h"

#define NOTE_MAX        1024
#define NAME_PREFIX_MAX 200 /* leaves room for the suffix in 253 bytes */

static bool is_alphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_label(struct ml_str label)
{
    for (size_t i = 0; i < label.len; i++)
        if (!is_alphanumeric(label.ptr[i]) && label.ptr[i] != '-')
            return false;
    return label.len > 0 && is_alphanumeric(label.ptr[0]) &&
           is_alphanumeric(label.ptr[label.len - 1]);
}

struct ml_str ml_event_name_prefix(struct ml_str name)
{
    name = ml_str_head(name, NAME_PREFIX_MAX);
    while (name.len > 0 && !is_alphanumeric(name.ptr[name.len - 1])) /* cut inside a label */
        name.len--;
    struct ml_str rest = name;
    do {
        if (!is_label(ml_str_cut(&rest, '.')))
            return ML_STR("event");
    } while (rest.ptr);
    return name;
}

static void write_regarding(struct ml_json_writer *writer, const struct ml_event *event)
{
    ml_json_key(writer, ML_STR("regarding"));
    ml_json_begin_object(writer);
    ml_json_put_string(writer, "apiVersion", event->api_version);
    ml_json_put_string(writer, "kind", event->kind);
    if (event->ns.len)
        ml_json_put_string(writer, "namespace", event->ns);
    ml_json_put_string(writer, "name", event->name);
    if (event->uid.len)
        ml_json_put_string(writer, "uid", event->uid);
    if (event->rv.len)
        ml_json_put_string(writer, "resourceVersion", event->rv);
    ml_json_end_object(writer);
}

char *ml_event_json(const struct ml_event *event, const struct ml_event_frame *frame)
{
    struct ml_buf json = ML_BUF_INIT;
    struct ml_json_writer writer;
    char now[ML_RFC3339_MICRO_LEN + 1];
    ml_rfc3339_format_micro(frame->wall_ns, now);
    ml_json_writer_init(&writer, &json);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "apiVersion", ML_STR("events.k8s.io/v1"));
    ml_json_put_string(&writer, "kind", ML_STR("Event"));
    ml_json_key(&writer, ML_STR("metadata"));
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "name", ml_str_of(frame->name));
    ml_json_put_string(&writer, "namespace", ml_str_of(frame->ns));
    ml_json_end_object(&writer);
    ml_json_put_string(&writer, "eventTime", ml_str_of(now));
    ml_json_put_string(&writer, "reportingController", ml_str_of(frame->controller));
    ml_json_put_string(&writer, "reportingInstance", ml_str_head(ml_str_of(frame->instance), 128));
    ml_json_put_string(&writer, "type", event->warning ? ML_STR("Warning") : ML_STR("Normal"));
    ml_json_put_string(&writer, "reason", event->reason);
    ml_json_put_string(&writer, "action", event->action);
    ML_AUTO_FREE char *combined = ml_asprintf(ML_EVENT_COMBINED ML_STR_FMT,
                                              ML_STR_ARG(event->note));
    ml_json_put_string(&writer, "note",
                       ml_str_head(frame->combined ? ml_str_of(combined) : event->note, NOTE_MAX));
    write_regarding(&writer, event);
    ml_json_end_object(&writer);
    return ml_buf_take(&json);
}
