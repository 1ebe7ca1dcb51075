/* Any bytes as an instant, and any eight of them as nanoseconds: what one direction makes, the
 * other must take and give the same instant. */
#include "codec/rfc3339.h"

static int64_t floor_to(int64_t ns, int64_t unit)
{
    int64_t rest = ns % unit;
    return ns - (rest < 0 ? rest + unit : rest);
}

static void check_instant(int64_t ns)
{
    char seconds[ML_RFC3339_LEN + 1], micro[ML_RFC3339_MICRO_LEN + 1];
    ml_rfc3339_format(ns, seconds);
    ml_rfc3339_format_micro(ns, micro);
    ml_assert(strlen(seconds) == ML_RFC3339_LEN && strlen(micro) == ML_RFC3339_MICRO_LEN);
    ml_assert(memcmp(seconds, micro, ML_RFC3339_LEN - 1) == 0);
    int64_t back;
    bool whole_year = memcmp(seconds, "1678", 4) >= 0 && memcmp(seconds, "2262", 4) < 0;
    ml_assert(ml_rfc3339_parse(ml_str_of(micro), &back) == whole_year);
    if (!whole_year)
        return;
    ml_assert(back == floor_to(ns, ML_NS_PER_US));
    ml_assert(ml_rfc3339_parse(ml_str_of(seconds), &back));
    ml_assert(back == floor_to(ns, ML_NS_PER_S));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t ns;
    if (ml_rfc3339_parse((struct ml_str){(const char *)data, size}, &ns))
        check_instant(ns);
    if (size >= sizeof ns) {
        memcpy(&ns, data, sizeof ns);
        check_instant(ns);
    }
    return 0;
}
