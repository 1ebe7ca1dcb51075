/* What `moonloop check` asks: the same loading, with nothing behind it. */
#include "operator/batch.h"
#include "operator/scripts.h"

size_t ml_scripts_check(const struct ml_script_limits *limits, const struct ml_files *files,
                        const struct ml_scripts_check *check)
{
    const struct ml_batch_opts opts = {.limits = limits};
    struct ml_batch batch;
    size_t bad = 0;
    ml_batch_load(&batch, files, &opts);
    for (size_t i = 0; i < files->refused_count; i++, bad++)
        check->bad(check->context, &files->refused[i].err);
    for (size_t i = 0; i < files->count; i++) {
        const struct ml_batch_entry *entry = &batch.entries[i];
        if (entry->verdict == ML_BATCH_REFUSED) {
            bad++;
            check->bad(check->context, &entry->err);
        } else if (entry->verdict == ML_BATCH_CONTROLLER) {
            check->good(check->context, entry->script);
        }
    }
    ml_batch_fini(&batch);
    return bad;
}
