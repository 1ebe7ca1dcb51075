#include "state/reflector_epoch.h"

#include "kube/object.h"

#define MOVING_NS   (30 * ML_NS_PER_S)
#define STANDING_NS (600 * ML_NS_PER_S)

enum reflector_age reflector_epoch_judge(struct reflector_epoch *epoch, const char *known,
                                         const char *shown, int64_t now_ns)
{
    if (!known || !ml_rv_older(ml_str_of(shown), ml_str_of(known))) {
        reflector_epoch_fini(epoch);
        return AGE_CURRENT;
    }
    if (!epoch->shown) {
        epoch->shown = ml_strdup(shown);
        epoch->since_ns = now_ns;
        return AGE_BEHIND;
    }
    bool moves = ml_rv_older(ml_str_of(epoch->shown), ml_str_of(shown));
    if (now_ns - epoch->since_ns < (moves ? MOVING_NS : STANDING_NS))
        return AGE_BEHIND;
    reflector_epoch_fini(epoch);
    return AGE_RESTORED;
}

void reflector_epoch_fini(struct reflector_epoch *epoch)
{
    free(epoch->shown);
    *epoch = (struct reflector_epoch){0};
}
