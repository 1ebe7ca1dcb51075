/* Any bytes as a review, for a script with all kinds of webhooks. The first byte chooses the
 * webhook. Any input gets an answer that is JSON and has the review's uid, or a text that says what
 * is wrong. */
#include "codec/json.h"
#include "operator/webhook_review.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char text[] =
    "local moonloop = require 'moonloop'\n"
    "return moonloop.controller { name = 'at', reconciles = moonloop.kind('example.com/v1', "
    "'At'),\n"
    "  default = function(o) o.metadata.labels = { a = 'b' } o.added = { 1, 2 } end,\n"
    "  validate = function(new, old) return old and { { field = 'x', message = tostring(new.x) } "
    "}\n"
    "    or nil, tostring(new.w) end,\n"
    "  convert = { v2 = { to = function(o) o.x, o.y = o.y, o.x end, from = function() end },\n"
    "    v3 = { to = function(o) return o.x end, from = function(o) o.metadata = nil end } },\n"
    "  reconcile = function() end }\n";

static struct ml_script *load_script(void)
{
    const struct ml_script_file file = {ML_STR("at.lua"), ml_str_of(text)};
    const struct ml_script_files files = {&file, 1};
    const struct ml_script_limits limits = {.load_cpu_ns = 10 * ML_NS_PER_S,
                                            .run_cpu_ns = 10 * ML_NS_PER_S};
    struct ml_script *script = NULL;
    struct ml_err err = ML_ERR_INIT;
    ml_assert(ml_script_load(NULL, &limits, &files, 0, &script, &err) == 0);
    return script;
}

static void check_answer(struct ml_str body, const struct ml_review_answer *answer)
{
    struct ml_str asked = {NULL, 0}, is = {NULL, 0};
    struct ml_err err = ML_ERR_INIT;
    ml_assert(answer->body.len > 0);
    ml_assert(answer->status == 200 || answer->status == 400 || answer->status == 500);
    if (answer->status != 200)
        return;
    ml_assert(ml_json_check(answer->body, 0, &err) == 0);
    ml_assert(ml_json_find(body, &asked, "request", "uid", NULL));
    ml_assert(ml_json_find(answer->body, &is, "response", "uid", NULL));
    ml_assert(ml_str_eq(asked, is));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ml_script *script;
    struct ml_review_answer answer;
    if (!script)
        script = load_script();
    if (size == 0)
        return 0;
    struct ml_str body = {(const char *)data + 1, size - 1};
    struct ml_review *review = ml_review_new(data[0] % 3, script, body);
    while (!ml_review_step(review, &answer))
        ;
    check_answer(body, &answer);
    ml_review_free(review);
    return 0;
}
