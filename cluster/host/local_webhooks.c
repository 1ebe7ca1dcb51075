/* Registers the webhooks of live scripts at the embedded API server, and answers the reviews that
 * it sends to them. */
#include "cluster/host/local_webhooks.h"

#include "operator/webhook_manifests.h"

#define URL "https://scripts.moonloop.dev" /* cluster/apiserver/webhook.lua calls it inside */

/* ---- registered ---- */

static void put_kind(struct ml_json_writer *writer, const struct ml_declaration *declaration)
{
    const struct ml_gvk *gvk = &declaration->kinds[0].gvk;
    ML_AUTO_FREE char *text = ml_asprintf(ML_STR_FMT "/" ML_STR_FMT, ML_STR_ARG(gvk->group),
                                          ML_STR_ARG(gvk->kind));
    ml_json_string(writer, ml_str_of(text));
}

void ml_local_webhooks_put_kind(const struct ml_declaration *declaration,
                                struct ml_json_writer *writer)
{
    const struct ml_script_webhooks *has = &declaration->webhooks;
    if (has->defaults || has->validates || has->version_count > 0)
        put_kind(writer, declaration);
}

struct registration {
    struct ml_json_writer objects, kinds;
};

/* One whose kind is not known yet comes when it is live. */
static void put_manifests(struct registration *to, const struct ml_webhook_target *target)
{
    static const struct ml_webhook_client client = {.url = URL};
    const struct ml_declaration *declaration = ml_script_declaration(target->script);
    if (!target->kind)
        return;
    ml_webhook_put_mutating(declaration, target->kind->plural, &client, &to->objects);
    ml_webhook_put_validating(declaration, target->kind->plural, &client, &to->objects);
    ml_webhook_put_conversion(declaration, target->kind->plural, &client, &to->objects);
    put_kind(&to->kinds, declaration);
}

int ml_local_webhooks_register(struct ml_operator *operator, struct ml_server_lua * lua,
                               struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf objects = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf kinds = ML_BUF_INIT;
    struct registration to;
    struct ml_webhook_target target;
    ml_json_writer_init(&to.objects, &objects);
    ml_json_writer_init(&to.kinds, &kinds);
    ml_json_begin_array(&to.objects);
    ml_json_begin_array(&to.kinds);
    for (size_t at = 0; ml_scripts_next_webhook(ml_operator_scripts(operator), &at, &target);)
        put_manifests(&to, &target);
    ml_json_end_array(&to.objects);
    ml_json_end_array(&to.kinds);
    ML_AUTO_FREE char *both = ml_asprintf("{\"objects\":%s,\"kinds\":%s}", ml_buf_cstr(&objects),
                                          ml_buf_cstr(&kinds));
    return ml_server_lua_call(lua, "cluster.register", "set", ml_str_of(both), NULL, err);
}

/* ---- answered ---- */

static void put_answer(struct ml_buf *out, int code, const char *content_type, struct ml_str body)
{
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    ml_json_put_int(&writer, "code", code);
    ml_json_put_string(&writer, "content_type", ml_str_of(content_type));
    ml_json_put_string(&writer, "body", body);
    ml_json_end_object(&writer);
}

static void answer_review(struct ml_operator *operator, const char * path, struct ml_str review,
                          struct ml_buf *out)
{
    struct ml_webhook_target target;
    enum ml_webhook webhook;
    struct ml_str name;
    if (!ml_webhook_parse(ml_str_of(path), &webhook, &name) ||
        !ml_scripts_webhook(ml_operator_scripts(operator), name, &target)) {
        put_answer(out, 404, "text/plain", ML_STR("no script of this name has been loaded"));
        return;
    }
    struct ml_review *review_run = ml_review_new(webhook, target.script, review);
    struct ml_review_answer answer;
    while (!ml_review_step(review_run, &answer))
        ;
    put_answer(out, answer.status, answer.content_type, answer.body);
    ml_review_free(review_run);
}

static void put_target(struct ml_json_writer *writer, const struct ml_webhook_target *target)
{
    const struct ml_declaration *declaration = ml_script_declaration(target->script);
    const struct ml_gvk *gvk = &declaration->kinds[0].gvk;
    ML_AUTO_FREE char *api_version = ml_asprintf(ML_STR_FMT "%s" ML_STR_FMT, ML_STR_ARG(gvk->group),
                                                 gvk->group.len > 0 ? "/" : "",
                                                 ML_STR_ARG(gvk->version));
    ml_json_begin_object(writer);
    ml_json_put_string(writer, "name", ml_str_of(declaration->name));
    ml_json_put_string(writer, "apiVersion", ml_str_of(api_version));
    ml_json_put_string(writer, "kind", gvk->kind);
    ml_json_key(writer, ML_STR("versions"));
    ml_json_begin_array(writer);
    for (size_t i = 0; i < declaration->webhooks.version_count; i++)
        ml_json_string(writer, ml_str_of(declaration->webhooks.versions[i]));
    ml_json_end_array(writer);
    ml_json_end_object(writer);
}

/* answer{path=, review=} -> { code=, content_type=, body= } */
static int lua_answer(void *context, struct ml_str argument, struct ml_buf *result,
                      struct ml_err *err)
{
    struct ml_operator *const *operator= context;
    ML_AUTO_FREE char *path = ml_json_find_string(argument, "path", NULL);
    struct ml_str review;
    if (!path || !*operator|| !ml_json_find(argument, &review, "review", NULL))
        return ml_err_set(err, ML_EINVALID, "answer: expected a path and a review");
    answer_review(*operator, path, review, result);
    return 0;
}

/* scripts() -> list of { name=, apiVersion=, kind=, versions= } */
static int lua_scripts(void *context, struct ml_str argument, struct ml_buf *result,
                       struct ml_err *err)
{
    struct ml_operator *const *operator= context;
    struct ml_json_writer writer;
    struct ml_webhook_target target;
    (void)argument, (void)err;
    ml_json_writer_init(&writer, result);
    ml_json_begin_array(&writer);
    for (size_t at = 0;
         *operator&& ml_scripts_next_webhook(ml_operator_scripts(*operator), &at, &target);)
        put_target(&writer, &target);
    ml_json_end_array(&writer);
    return 0;
}

void ml_local_webhooks_open(struct ml_server_lua *lua, struct ml_operator *const *operator)
{
    ml_server_lua_define(lua, "cluster.local_webhooks", "answer", lua_answer, (void *)operator);
    ml_server_lua_define(lua, "cluster.local_webhooks", "scripts", lua_scripts, (void *)operator);
}
