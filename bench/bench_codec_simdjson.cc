// simdjson on the pods of bench_codec, next to the same memcpy. "dom" checks all of a text and
// builds its tree; "on demand" goes to one value and checks little of what it passes.
extern "C" {
#include "bench_pods.h"
#include "bench_timing.h"
}

#include <simdjson.h>

#include <vector>

namespace
{

constexpr int pods_max = 400;

struct Pods {
    std::vector<simdjson::padded_string> each;
    std::vector<char> copy;
    simdjson::dom::parser dom;
    simdjson::ondemand::parser on_demand;
};

size_t run_memcpy(void *context, struct ml_str text)
{
    auto *pods = static_cast<Pods *>(context);
    memcpy(pods->copy.data(), text.ptr, text.len);
    return static_cast<size_t>(pods->copy[text.len / 2]);
}

size_t run_utf8(void *, struct ml_str text)
{
    return simdjson::validate_utf8(text.ptr, text.len);
}

size_t run_dom(void *context, struct ml_str)
{
    auto *pods = static_cast<Pods *>(context);
    size_t good = 0;
    for (auto &pod : pods->each)
        good += pods->dom.parse(pod).error() == simdjson::SUCCESS;
    ml_assert(good == pods->each.size());
    return good;
}

size_t run_on_demand(void *context, struct ml_str)
{
    auto *pods = static_cast<Pods *>(context);
    size_t found = 0;
    for (auto &pod : pods->each) {
        simdjson::ondemand::document document;
        std::string_view phase;
        ml_assert(pods->on_demand.iterate(pod).get(document) == simdjson::SUCCESS);
        found += document["status"]["phase"].get_string().get(phase) == simdjson::SUCCESS;
    }
    ml_assert(found == pods->each.size());
    return found;
}

void measure(bool large)
{
    Pods pods;
    struct ml_buf all = {};
    for (int i = 0; i < pods_max; i++) {
        size_t start = all.len;
        bench_pod(&all, i, large);
        pods.each.emplace_back(all.ptr + start, all.len - start);
    }
    pods.copy.resize(all.len);
    struct ml_str text = ml_buf_str(&all);
    double memcpy_rate = bench_mb_per_s(run_memcpy, &pods, text);
    printf("%d pods of %zu bytes\n", pods_max, pods.each[0].size());
    bench_print("memcpy", memcpy_rate, memcpy_rate);
    bench_print("simdjson valid UTF-8", bench_mb_per_s(run_utf8, &pods, text), memcpy_rate);
    bench_print("simdjson dom", bench_mb_per_s(run_dom, &pods, text), memcpy_rate);
    bench_print("simdjson on demand, phase", bench_mb_per_s(run_on_demand, &pods, text),
                memcpy_rate);
    ml_buf_fini(&all);
}

} // namespace

int main()
{
    measure(false);
    measure(true);
    return 0;
}
