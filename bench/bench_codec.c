/* The codec's speed on pods, next to memcpy on the same text: 400 different pods one after the
 * other, so that neither branch predictor nor first-level cache knows them by heart. And a regular
 * expression: one match, and the memory that a script is charged for it. */
#include "bench_pods.h"
#include "bench_timing.h"

#include "codec/json.h"
#include "codec/json_stream.h"
#include "codec/regex.h"

#define PODS 400

struct pods {
    struct ml_str each[PODS];
    struct ml_buf list; /* all of them, as a list response */
    struct ml_buf out;
    char *copy;
};

static size_t run_memcpy(void *context, struct ml_str text)
{
    struct pods *pods = context;
    memcpy(pods->copy, text.ptr, text.len);
    return (size_t)pods->copy[text.len / 2];
}

static size_t run_utf8(void *context, struct ml_str text)
{
    (void)context;
    return ml_str_is_utf8(text);
}

static size_t run_check(void *context, struct ml_str text)
{
    struct pods *pods = context;
    struct ml_err err;
    size_t good = 0;
    (void)text;
    for (int i = 0; i < PODS; i++)
        good += ml_json_check(pods->each[i], 0, &err) == 0;
    ml_assert(good == PODS);
    return good;
}

static size_t run_tokens(void *context, struct ml_str text)
{
    struct pods *pods = context;
    size_t tokens = 0;
    (void)text;
    for (int i = 0; i < PODS; i++) {
        struct ml_json_reader reader;
        ml_json_reader_init(&reader, pods->each[i], 0);
        while (ml_json_next(&reader) > ML_JSON_ERROR)
            tokens++;
        ml_assert(reader.token == ML_JSON_END);
        ml_json_reader_fini(&reader);
    }
    return tokens;
}

static size_t run_find(void *context, struct ml_str text)
{
    struct pods *pods = context;
    size_t found = 0;
    (void)text;
    for (int i = 0; i < PODS; i++) {
        struct ml_str raw;
        found += ml_json_find(pods->each[i], &raw, "status", "phase", NULL);
    }
    ml_assert(found == PODS);
    return found;
}

/* Reads tokens and writes them again: what is above run_tokens is the writer's. */
static size_t run_rewrite(void *context, struct ml_str text)
{
    struct pods *pods = context;
    struct ml_json_writer writer;
    struct ml_json_reader reader;
    ml_buf_clear(&pods->out);
    ml_json_writer_init(&writer, &pods->out);
    ml_json_reader_init(&reader, text, 0);
    while (ml_json_next(&reader) > ML_JSON_ERROR) {
        if (reader.token == ML_JSON_OBJECT)
            ml_json_begin_object(&writer);
        else if (reader.token == ML_JSON_OBJECT_END)
            ml_json_end_object(&writer);
        else if (reader.token == ML_JSON_ARRAY)
            ml_json_begin_array(&writer);
        else if (reader.token == ML_JSON_ARRAY_END)
            ml_json_end_array(&writer);
        else if (reader.token == ML_JSON_KEY)
            ml_json_key(&writer, reader.text);
        else if (reader.token == ML_JSON_STRING)
            ml_json_string(&writer, reader.text);
        else if (reader.token == ML_JSON_INT)
            ml_json_int(&writer, reader.integer);
        else if (reader.token == ML_JSON_NULL)
            ml_json_null(&writer);
        else
            ml_json_bool(&writer, reader.token == ML_JSON_TRUE);
    }
    ml_assert(pods->out.len == text.len);
    ml_json_reader_fini(&reader);
    return pods->out.len;
}

static int take_item(void *context, struct ml_str raw, struct ml_err *err)
{
    (void)err;
    *(size_t *)context += raw.len;
    return 0;
}

/* In pieces of 16 KB, as they come from the network. */
static size_t run_list(void *context, struct ml_str text)
{
    (void)context;
    size_t total = 0;
    const struct ml_json_list_handler handler = {take_item, &total};
    struct ml_json_list *list = ml_json_list_new(&handler, 1 << 20);
    struct ml_err err;
    struct ml_str envelope;
    for (size_t at = 0; at < text.len; at += 16384) {
        struct ml_str piece = {text.ptr + at, ML_MIN(text.len - at, (size_t)16384)};
        ml_assert(ml_json_list_feed(list, piece, &err) == 0);
    }
    ml_assert(ml_json_list_finish(list, &envelope, &err) == 0);
    ml_json_list_free(list);
    return total;
}

/* `text` is a byte long: so MB/s are matches in a microsecond. */
static size_t run_match(void *context, struct ml_str text)
{
    struct ml_str groups[4];
    struct ml_regex_walk walk = {.regex = context,
                                 .text = ML_STR("registry.example.com/team/web:1.25.3"),
                                 .before = ML_REGEX_NOWHERE};
    (void)text;
    ml_assert(ml_regex_next(&walk, groups, ML_COUNT(groups)) == ML_REGEX_MATCH);
    return groups[2].len;
}

static void make_pods(struct pods *pods, bool large)
{
    size_t ends[PODS];
    struct ml_buf *list = &pods->list;
    *pods = (struct pods){0};
    ml_buf_puts(list, "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"items\":[");
    size_t first = list->len;
    for (int i = 0; i < PODS; i++) {
        bench_pod(list, i, large);
        ends[i] = list->len;
        ml_buf_putc(list, i + 1 < PODS ? ',' : ']');
    }
    ml_buf_putc(list, '}');
    for (int i = 0; i < PODS; i++) {
        size_t start = i ? ends[i - 1] + 1 : first;
        pods->each[i] = (struct ml_str){list->ptr + start, ends[i] - start};
    }
    pods->copy = ml_alloc(list->len);
}

static void measure(bool large)
{
    static const struct {
        const char *name;
        bench_run *run;
    } runs[] = {
        {"valid UTF-8", run_utf8},
        {"check (skip)", run_check},
        {"token walk", run_tokens},
        {"find status.phase", run_find},
        {"token walk and write", run_rewrite},
        {"list stream", run_list},
    };
    struct pods pods;
    make_pods(&pods, large);
    struct ml_str text = ml_buf_str(&pods.list);
    double memcpy_rate = bench_mb_per_s(run_memcpy, &pods, text);
    printf("%d pods of %zu bytes\n", PODS, pods.each[0].len);
    bench_print("memcpy", memcpy_rate, memcpy_rate);
    for (size_t i = 0; i < ML_COUNT(runs); i++)
        bench_print(runs[i].name, bench_mb_per_s(runs[i].run, &pods, text), memcpy_rate);
    ml_buf_fini(&pods.list);
    ml_buf_fini(&pods.out);
    free(pods.copy);
}

/* An image's name, tag and digest. */
static void measure_regex(void)
{
    static const char pattern[] = "^([^:@]+)(?::([^@]+))?(?:@(.+))?$";
    struct ml_regex *regex = ml_regex_new(ml_str_of(pattern), 512 * 1024);
    size_t compiled = ml_regex_memory(regex);
    double match_ns = 1e3 / bench_mb_per_s(run_match, regex, ML_STR("x"));
    printf("regular expression of %zu bytes\n  compiled %zu bytes, after matches %zu, one match "
           "with its groups %.0f ns\n",
           sizeof pattern - 1, compiled, ml_regex_memory(regex), match_ns);
    ml_regex_free(regex);
}

int main(void)
{
    measure(false);
    measure(true);
    measure_regex();
    return 0;
}
