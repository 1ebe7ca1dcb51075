#include "kube_client.h"

#include "codec/json.h"
#include "kube/openapi.h"

#include <limits.h>

#define APP_OF_V1                                                                                  \
    "\"x-kubernetes-group-version-kind\":[{\"group\":\"e.com\",\"version\":\"v1\",\"kind\":"       \
    "\"App\"}]"

/* Copies the kind out of a document with these components.schemas. */
static int schema_of(const char *schemas, struct ml_buf *out, struct ml_err *err)
{
    ML_AUTO_FREE char *document = ml_asprintf(
        "{\"openapi\":\"3.0.0\",\"paths\":{},\"components\":{\"schemas\":%s}}", schemas);
    const struct ml_gvk gvk = {ML_STR("e.com"), ML_STR("v1"), ML_STR("App")};
    ml_buf_clear(out);
    return ml_openapi_schema(ml_str_of(document), &gvk, out, err);
}

static void test_openapi_copies_what_a_kind_needs(void **state)
{
    (void)state;
    static const struct {
        const char *schemas, *copied;
    } rows[] = {
        {"{\"com.App\":{\"type\":\"object\"," APP_OF_V1 "}}",
         "{\"root\":\"com.App\",\"definitions\":{\"com.App\":{\"type\":\"object\"," APP_OF_V1
         "}}}"},
        /* what it refers to, once, also from there; and nothing else */
        {"{\"A\":{\"items\":{\"$ref\":\"#/components/schemas/B\"}," APP_OF_V1 "},\"C\":{},"
         "\"B\":{\"allOf\":[{\"$ref\":\"#/components/schemas/A\"},{\"$ref\":\"#/components/schemas/"
         "B\"}]}}",
         "{\"root\":\"A\",\"definitions\":{\"A\":{\"items\":{\"$ref\":\"#/components/schemas/"
         "B\"}," APP_OF_V1 "},"
         "\"B\":{\"allOf\":[{\"$ref\":\"#/components/schemas/A\"},{\"$ref\":\"#/components/schemas/"
         "B\"}]}}}"},
        /* no descriptions, but a field of that name, and one called $ref */
        {"{\"A\":{\"description\":\"x\",\"properties\":{\"description\":{\"description\":\"y\","
         "\"type\":\"string\"},"
         "\"$ref\":{\"type\":\"string\"}}," APP_OF_V1 "}}",
         "{\"root\":\"A\",\"definitions\":{\"A\":{\"properties\":{\"description\":{\"type\":"
         "\"string\"},"
         "\"$ref\":{\"type\":\"string\"}}," APP_OF_V1 "}}}"},
        /* every kind of value */
        {"{\"A\":{\"enum\":[\"a\\n\",1,-2.5,1e400,true,false,null,{},[]]," APP_OF_V1 "}}",
         "{\"root\":\"A\",\"definitions\":{\"A\":{\"enum\":[\"a\\n\",1,-2.5,1e400,true,false,null,{"
         "},[]]," APP_OF_V1 "}}}"},
        /* what is referred to and does not exist, or is elsewhere */
        {"{\"A\":{\"items\":{\"$ref\":\"#/components/schemas/Z\"},\"not\":{\"$ref\":\"http://e.com/"
         "\"}," APP_OF_V1 "}}",
         "{\"root\":\"A\",\"definitions\":{\"A\":{\"items\":{\"$ref\":\"#/components/schemas/Z\"},"
         "\"not\":{\"$ref\":\"http://e.com/\"}," APP_OF_V1 "}}}"},
        /* of two with one name the last counts */
        {"{\"A\":{\"type\":\"string\"},\"A\":{" APP_OF_V1 "}}",
         "{\"root\":\"A\",\"definitions\":{\"A\":{" APP_OF_V1 "}}}"},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        ML_AUTO(ml_buf_fini) struct ml_buf out = ML_BUF_INIT;
        struct ml_err err = ML_ERR_INIT;
        assert_int_equal(schema_of(rows[i].schemas, &out, &err), 0);
        assert_string_equal(ml_buf_cstr(&out), rows[i].copied);
    }
}

static void test_openapi_says_what_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *schemas;
        int kind;
        const char *message;
    } rows[] = {
        {"{}", ML_ENOT_FOUND, "no kind App"},
        {"{\"A\":{}}", ML_ENOT_FOUND, "no kind App"},
        {"{\"A\":{\"x-kubernetes-group-version-kind\":7}}", ML_ENOT_FOUND, "no kind App"},
        {"{\"A\":{\"x-kubernetes-group-version-kind\":[7,{\"group\":\"e.com\"}]}}", ML_ENOT_FOUND,
         "no kind App"},
        {"7", ML_ENOT_FOUND, "no kind App"},
        {"{\"A\":{" APP_OF_V1 "},\"B\":{\"a\" 1}}", ML_EINVALID, "no components.schemas"},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        ML_AUTO(ml_buf_fini) struct ml_buf out = ML_BUF_INIT;
        struct ml_err err = ML_ERR_INIT;
        int r = schema_of(rows[i].schemas, &out, &err);
        if (r != rows[i].kind || !strstr(err.message, rows[i].message))
            fail_msg("%s: %d %s", rows[i].schemas, r, err.message);
    }
    static const char *const documents[] = {"", "7", "{}", "{\"components\":{}}",
                                            "{\"components\":"};
    for (size_t i = 0; i < ML_COUNT(documents); i++) {
        ML_AUTO(ml_buf_fini) struct ml_buf out = ML_BUF_INIT;
        struct ml_err err = ML_ERR_INIT;
        const struct ml_gvk gvk = {ML_STR(""), ML_STR("v1"), ML_STR("Pod")};
        assert_int_equal(ml_openapi_schema(ml_str_of(documents[i]), &gvk, &out, &err), ML_EINVALID);
    }
}

static void test_openapi_has_a_document_for_each_version(void **state)
{
    (void)state;
    static const char index[] =
        "{\"paths\":{\"api/v1\":{\"serverRelativeURL\":\"/openapi/v3/api/v1?hash=A\"},"
        "\"apis/apps/v1\":{\"serverRelativeURL\":\"/openapi/v3/apis/apps/v1?hash=B\"},"
        "\"apis/e.com/v1\":{\"serverRelativeURL\":\"http://elsewhere/\"},\"apis/e.com/v2\":{}}}";
    static const struct {
        const char *group, *version, *path;
    } rows[] = {
        {"", "v1", "/openapi/v3/api/v1?hash=A"},
        {"apps", "v1", "/openapi/v3/apis/apps/v1?hash=B"},
        {"apps", "v2", NULL},
        {"e.com", "v1", NULL},
        {"e.com", "v2", NULL},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        ML_AUTO(ml_buf_fini) struct ml_buf path = ML_BUF_INIT;
        bool found = ml_openapi_path(ml_str_of(index), ml_str_of(rows[i].group),
                                     ml_str_of(rows[i].version), &path);
        assert_int_equal(found, rows[i].path != NULL);
        assert_string_equal(ml_buf_cstr(&path), rows[i].path ? rows[i].path : "");
    }
}

/* ---- from a server ---- */

#define INDEX_OF_E                                                                                 \
    "{\"paths\":{\"apis/e.com/v1\":{\"serverRelativeURL\":\"/openapi/v3/apis/e.com/v1?hash=A\"},"  \
    "\"apis/apps/v1\":{\"serverRelativeURL\":\"/openapi/v3/apis/apps/v1?hash=B\"},"                \
    "\"apis/apps/v1beta1\":{\"serverRelativeURL\":\"/openapi/v3/apis/apps/v1beta1?hash=C\"}}}"
#define DOCUMENT_OF_E "{\"components\":{\"schemas\":{\"A\":{" APP_OF_V1 "}}}}"
#define DOCUMENT_OF_APPS                                                                           \
    "{\"components\":{\"schemas\":{\"D\":{\"x-kubernetes-group-version-kind\":[{\"group\":"        \
    "\"apps\",\"version\":\"v1\",\"kind\":\"Deployment\"}]}}}}"

static const struct ml_gvk asked[] = {
    {ML_STR("e.com"), ML_STR("v1"), ML_STR("App")},
    {ML_STR("apps"), ML_STR("v1"), ML_STR("Deploymant")},
    {ML_STR("e.com"), ML_STR("v1"), ML_STR("Other")},
    {ML_STR("other.com"), ML_STR("v1"), ML_STR("App")},
};

struct answer {
    struct ml_buf text; /* a line for each call */
    int done_count;
    bool are_published;
};

static void on_schema(void *context, size_t index, struct ml_str schema)
{
    struct answer *answer = context;
    ml_buf_printf(&answer->text, "schema %zu " ML_STR_FMT "\n", index, ML_STR_ARG(schema));
}

static void on_kind(void *context, const struct ml_gvk *gvk)
{
    struct answer *answer = context;
    ml_buf_printf(&answer->text, "kind " ML_STR_FMT " " ML_STR_FMT " " ML_STR_FMT "\n",
                  ML_STR_ARG(gvk->group), ML_STR_ARG(gvk->version), ML_STR_ARG(gvk->kind));
}

static void on_schemas_done(void *context, bool are_published)
{
    struct answer *answer = context;
    answer->done_count++;
    answer->are_published = are_published;
}

static const struct ml_openapi_handler answer_handler = {on_schema, on_kind, on_schemas_done};

static struct ml_openapi_request *ask_with(struct world *world, struct ml_openapi_cache *cache,
                                           size_t count, struct answer *answer)
{
    const struct ml_openapi_opts opts = {.client = world->client,
                                         .loop = world->loop,
                                         .cache = cache,
                                         .gvks = asked,
                                         .count = count};
    return ml_openapi_ask(&opts, &answer_handler, answer);
}

static struct ml_openapi_request *ask_server(struct world *world, struct answer *answer)
{
    return ask_with(world, NULL, ML_COUNT(asked), answer);
}

static void test_openapi_asks_the_server_for_each_document_once(void **state)
{
    struct world *world = *state;
    struct answer answer = {ML_BUF_INIT, 0, false};
    ask_server(world, &answer);
    fake_reply(fake_expect(world->server, "GET", "/openapi/v3"), 200, INDEX_OF_E);
    ml_loop_poll(world->loop);
    fake_reply(fake_expect(world->server, "GET", "/openapi/v3/apis/e.com/v1?hash=A"), 200,
               DOCUMENT_OF_E);
    ml_loop_poll(world->loop);
    fake_reply(fake_expect(world->server, "GET", "/openapi/v3/apis/apps/v1?hash=B"), 200,
               DOCUMENT_OF_APPS);
    ml_loop_poll(world->loop);
    fake_expect_none(world->server);
    assert_int_equal(answer.done_count, 1);
    assert_true(answer.are_published);
    /* kinds of the server's own groups only: another CustomResourceDefinition may come */
    assert_string_equal(ml_buf_cstr(&answer.text),
                        "schema 0 {\"root\":\"A\",\"definitions\":{\"A\":{" APP_OF_V1 "}}}\n"
                        "kind apps v1 Deployment\n"
                        "kind apps v1 \n"
                        "kind apps v1beta1 \n");
    ml_buf_fini(&answer.text);
}

static void reply_document(struct world *world, const char *path, const char *document)
{
    fake_reply(fake_expect(world->server, "GET", path), 200, document);
    ml_loop_poll(world->loop);
}

static void assert_told_as(struct answer *answer, struct answer *first)
{
    assert_int_equal(answer->done_count, 1);
    assert_true(answer->are_published);
    assert_string_equal(ml_buf_cstr(&answer->text), ml_buf_cstr(&first->text));
}

static void test_openapi_asks_for_no_document_of_the_same_content_again(void **state)
{
    struct world *world = *state;
    struct ml_openapi_cache *cache = ml_openapi_cache_new();
    struct answer first = {ML_BUF_INIT, 0, false}, again = first, other = first;
    ask_with(world, cache, ML_COUNT(asked), &first);
    reply_document(world, "/openapi/v3", INDEX_OF_E);
    reply_document(world, "/openapi/v3/apis/e.com/v1?hash=A", DOCUMENT_OF_E);
    reply_document(world, "/openapi/v3/apis/apps/v1?hash=B", DOCUMENT_OF_APPS);
    assert_int_equal(first.done_count, 1);
    ask_with(world, cache, ML_COUNT(asked), &again);
    reply_document(world, "/openapi/v3", INDEX_OF_E);
    fake_expect_none(world->server);
    assert_told_as(&again, &first);
    ML_AUTO_FREE char *changed = ml_strdup(INDEX_OF_E);
    *(strstr(changed, "hash=A") + strlen("hash=")) = 'C';
    ask_with(world, cache, ML_COUNT(asked), &other);
    reply_document(world, "/openapi/v3", changed);
    reply_document(world, "/openapi/v3/apis/e.com/v1?hash=C", DOCUMENT_OF_E);
    fake_expect_none(world->server);
    assert_told_as(&other, &first);
    ml_buf_fini(&first.text);
    ml_buf_fini(&again.text);
    ml_buf_fini(&other.text);
    ml_openapi_cache_free(cache);
}

/* Of a document that was read for one kind, another one is asked for. */
static void test_openapi_asks_for_a_kind_that_it_does_not_have(void **state)
{
    struct world *world = *state;
    struct ml_openapi_cache *cache = ml_openapi_cache_new();
    struct answer one = {ML_BUF_INIT, 0, false}, all = one, again = one;
    ask_with(world, cache, 1, &one);
    reply_document(world, "/openapi/v3", INDEX_OF_E);
    reply_document(world, "/openapi/v3/apis/e.com/v1?hash=A", DOCUMENT_OF_E);
    assert_int_equal(one.done_count, 1);
    ask_with(world, cache, ML_COUNT(asked), &all);
    reply_document(world, "/openapi/v3", INDEX_OF_E);
    reply_document(world, "/openapi/v3/apis/e.com/v1?hash=A", DOCUMENT_OF_E);
    reply_document(world, "/openapi/v3/apis/apps/v1?hash=B", DOCUMENT_OF_APPS);
    assert_int_equal(all.done_count, 1);
    ask_with(world, cache, ML_COUNT(asked), &again);
    reply_document(world, "/openapi/v3", INDEX_OF_E);
    fake_expect_none(world->server);
    assert_told_as(&again, &all);
    ml_buf_fini(&one.text);
    ml_buf_fini(&all.text);
    ml_buf_fini(&again.text);
    ml_openapi_cache_free(cache);
}

/* A refusal is asked for again, and so is a document whose part would take too much room. */
static void test_openapi_keeps_no_refusal_and_no_giant(void **state)
{
    struct world *world = *state;
    struct ml_openapi_cache *cache = ml_openapi_cache_new();
    ML_AUTO(ml_buf_fini) struct ml_buf giant = ML_BUF_INIT;
    const char *at = strstr(DOCUMENT_OF_E, APP_OF_V1);
    ml_buf_printf(&giant, "%.*s\"example\":\"", (int)(at - DOCUMENT_OF_E), DOCUMENT_OF_E);
    for (size_t i = 0; i < ML_OPENAPI_CACHE_BYTES; i++)
        ml_buf_putc(&giant, 'x');
    ml_buf_printf(&giant, "\",%s", at);
    for (int i = 0; i < 3; i++) {
        struct answer answer = {ML_BUF_INIT, 0, false};
        ask_with(world, cache, 1, &answer);
        reply_document(world, "/openapi/v3", INDEX_OF_E);
        fake_reply(fake_expect(world->server, "GET", "/openapi/v3/apis/e.com/v1?hash=A"),
                   i == 0 ? 403 : 200, ml_buf_cstr(&giant));
        ml_loop_poll(world->loop);
        assert_int_equal(answer.done_count, 1);
        assert_int_equal(strncmp(ml_buf_cstr(&answer.text), "schema 0", 8) == 0, i > 0);
        ml_buf_fini(&answer.text);
    }
    ml_openapi_cache_free(cache);
}

/* A server that does not answer the first requests for one path, and answers all others. */
struct partly_deaf {
    const char *path;
    int failures; /* yet to come */
    int asked;    /* for that path */
};

static void deaf_answer(void *context, struct fake_call *call)
{
    struct partly_deaf *server = context;
    bool is_it = strcmp(call->path, server->path) == 0;
    server->asked += is_it;
    if (is_it && server->failures > 0) {
        server->failures--;
        fake_fail(call, ML_ENETWORK, "away");
    } else if (strcmp(call->path, "/openapi/v3") == 0) {
        fake_reply(call, 200, INDEX_OF_E);
    } else {
        fake_reply(call, 200, strstr(call->path, "e.com") ? DOCUMENT_OF_E : DOCUMENT_OF_APPS);
    }
}

static void test_openapi_asks_again_a_server_that_does_not_answer(void **state)
{
    struct world *world = *state;
    static const char *const paths[] = {"/openapi/v3", "/openapi/v3/apis/e.com/v1?hash=A"};
    for (size_t i = 0; i < ML_COUNT(paths); i++) {
        struct partly_deaf server = {paths[i], 8, 0};
        struct answer answer = {ML_BUF_INIT, 0, false};
        fake_set_handler(world->server, deaf_answer, &server);
        ask_server(world, &answer);
        for (int s = 0; s < 120; s++)
            advance(world, 1000);
        assert_int_equal(server.failures, 0);
        assert_int_equal(answer.done_count, 1);
        assert_true(answer.are_published);
        assert_non_null(strstr(ml_buf_cstr(&answer.text), "schema 0"));
        ml_buf_fini(&answer.text);
    }
}

/* A list that never comes, of a server that answers all else: asked for less and less often. */
static void test_openapi_does_not_hurry_while_only_others_are_answered(void **state)
{
    struct world *world = *state;
    struct partly_deaf server = {"/openapi/v3", INT_MAX, 0};
    struct answer answer = {ML_BUF_INIT, 0, false};
    fake_set_handler(world->server, deaf_answer, &server);
    struct ml_openapi_request *request = ask_server(world, &answer);
    for (int ms = 0; ms < 120000; ms += 50) {
        send_request(world, ML_VERB_GET, "a");
        advance(world, 50);
    }
    ml_openapi_cancel(request);
    assert_int_equal(answer.done_count, 0);
    assert_in_range(server.asked, 20, 80); /* each try is some requests of the client */
    ml_buf_fini(&answer.text);
}

/* Nothing can be told from documents that are not to be had. */
static void test_openapi_tells_no_kinds_of_a_server_that_refuses(void **state)
{
    struct world *world = *state;
    static const struct {
        int index, document;
        bool published;
    } rows[] = {{403, 0, false}, {200, 403, false}, {200, 200, true}};
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        struct answer answer = {ML_BUF_INIT, 0, false};
        ask_server(world, &answer);
        fake_reply(fake_next(world->server), rows[i].index, INDEX_OF_E);
        ml_loop_poll(world->loop);
        if (rows[i].document)
            for (int document = 0; document < 2; document++) {
                fake_reply(fake_next(world->server), rows[i].document, DOCUMENT_OF_APPS);
                ml_loop_poll(world->loop);
            }
        assert_int_equal(answer.done_count, 1);
        assert_int_equal(answer.are_published, rows[i].published);
        assert_int_equal(strstr(ml_buf_cstr(&answer.text), "kind") != NULL, rows[i].published);
        ml_buf_fini(&answer.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_openapi_copies_what_a_kind_needs),
        cmocka_unit_test(test_openapi_says_what_is_wrong),
        cmocka_unit_test(test_openapi_has_a_document_for_each_version),
        WITH(test_openapi_asks_the_server_for_each_document_once),
        WITH(test_openapi_asks_for_no_document_of_the_same_content_again),
        WITH(test_openapi_asks_for_a_kind_that_it_does_not_have),
        WITH(test_openapi_keeps_no_refusal_and_no_giant),
        WITH(test_openapi_asks_again_a_server_that_does_not_answer),
        WITH(test_openapi_does_not_hurry_while_only_others_are_answered),
        WITH(test_openapi_tells_no_kinds_of_a_server_that_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
