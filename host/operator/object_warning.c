#include "operator/object_warning.h"

void ml_object_warning(struct ml_cluster *cluster, const struct ml_kind *kind,
                       const struct ml_object *object, const char *reason, const char *note)
{
    const struct ml_event event = {
        .api_version = ml_str_of(kind->api_version),
        .kind = ml_str_of(kind->kind),
        .ns = ml_object_namespace(object),
        .name = ml_object_name(object),
        .uid = ml_object_uid(object),
        .rv = ml_object_rv(object),
        .warning = true,
        .reason = ml_str_of(reason),
        .action = ML_STR("Reconcile"),
        .note = ml_str_of(note),
    };
    ml_recorder_event(cluster->recorder, &event);
}
