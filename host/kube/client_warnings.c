#include "kube/client_internal.h"

#define WARNINGS_MAX 256

void ml_client_warnings_take(struct ml_client_warnings *warnings, struct ml_str text)
{
    if (text.len == 0 || warnings->full || ml_map_get(&warnings->seen, text))
        return;
    if (warnings->seen.len == WARNINGS_MAX) {
        warnings->full = true;
        ml_warn(warnings->log, "client", "further warnings of the API server are not logged",
                ML_I("distinct", WARNINGS_MAX));
        return;
    }
    char *copy = ml_str_dup(text);
    ml_map_put(&warnings->seen, (struct ml_str){copy, text.len}, copy);
    ml_warn(warnings->log, "client", "warning of the API server", ML_STR_FIELD("warning", text));
}

void ml_client_warnings_fini(struct ml_client_warnings *warnings)
{
    ml_map_each (&warnings->seen, cursor, text)
        free(text);
    ml_map_fini(&warnings->seen);
}
