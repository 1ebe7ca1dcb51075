/* zstd dictionaries, made of the first objects of a kind. */
#include "kube/dict.h"

#include <zdict.h>
#include <zstd.h>

/* At this size zstd's tables for a dictionary take 80 KiB, one byte further 150. */
#define TEXT_LEN_MAX 7679
#define GROWTHS_MAX  8
#define PACKS_WELL   16 /* to one sixteenth or less: such a text adds nothing to the dictionary */
/* After TRAIN_AFTER texts the dictionary gets entropy tables, made of the next SAMPLES texts. For
 * 35 KiB a packed text is a fifth smaller; packing and unpacking take a third of the time. */
#define TRAIN_AFTER     64
#define SAMPLES         16
#define SAMPLES_LEN_MAX ((size_t)64 * 1024)
#define TABLES_LEN_MAX  1024
/* 32 KiB of window: the working memory stays at 160 KiB however large an object is. */
#define WINDOW_LOG      15
#define HASH_LOG        12
#define LEVEL           1
#define SCRATCH_LEN_MAX ((size_t)64 * 1024) /* kept between calls */

/* zstd's working memory. It carries nothing from one call to the next, so one is enough for
 * all dictionaries of a thread. */
struct context {
    size_t refs;
    ZSTD_CCtx *pack;
    ZSTD_DCtx *unpack;
    struct ml_buf packed;
};

struct ml_dict_text {
    size_t refs;
    struct context *context;
    ZSTD_DDict *trained; /* text and tables; NULL: the bytes below, as they are */
    size_t len;
    char bytes[];
};

struct ml_dict {
    size_t refs;
    size_t growths;
    struct ml_dict_text *text; /* the newest; NULL before the first object */
    ZSTD_CDict *prepared;      /* of the newest */
    size_t packed;             /* texts so far, until it is trained */
    struct ml_buf samples;
    size_t sample_lens[SAMPLES];
};

static _Thread_local struct context *thread_context;

static struct context *zstd_context_ref(void)
{
    struct context *context = thread_context;
    if (!context) {
        context = thread_context = ml_new(struct context);
        context->pack = ZSTD_createCCtx();
        context->unpack = ZSTD_createDCtx();
        ml_assert(context->pack && context->unpack);
        ZSTD_CCtx_setParameter(context->pack, ZSTD_c_compressionLevel, LEVEL);
        ZSTD_CCtx_setParameter(context->pack, ZSTD_c_contentSizeFlag, 0);
        ZSTD_CCtx_setParameter(context->pack, ZSTD_c_dictIDFlag, 0);
        ZSTD_CCtx_setParameter(context->pack, ZSTD_c_windowLog, WINDOW_LOG);
        ZSTD_CCtx_setParameter(context->pack, ZSTD_c_hashLog, HASH_LOG);
    }
    context->refs++;
    return context;
}

static void zstd_context_unref(struct context *context)
{
    if (--context->refs > 0)
        return;
    ml_assert(thread_context == context);
    thread_context = NULL;
    ZSTD_freeCCtx(context->pack);
    ZSTD_freeDCtx(context->unpack);
    ml_buf_fini(&context->packed);
    free(context);
}

static struct ml_dict_text *dict_text_new(struct ml_str head, struct ml_str tail)
{
    struct ml_dict_text *text = ml_alloc(sizeof *text + head.len + tail.len);
    text->refs = 1;
    text->context = zstd_context_ref();
    text->trained = NULL;
    text->len = head.len + tail.len;
    if (head.len > 0)
        memcpy(text->bytes, head.ptr, head.len);
    memcpy(text->bytes + head.len, tail.ptr, tail.len);
    return text;
}

void ml_dict_text_unref(struct ml_dict_text *text)
{
    if (!text || --text->refs > 0)
        return;
    zstd_context_unref(text->context);
    ZSTD_freeDDict(text->trained);
    free(text);
}

struct ml_dict *ml_dict_new(void)
{
    struct ml_dict *dict = ml_new(struct ml_dict);
    dict->refs = 1;
    return dict;
}

void ml_dict_unref(struct ml_dict *dict)
{
    if (!dict || --dict->refs > 0)
        return;
    ZSTD_freeCDict(dict->prepared);
    ml_dict_text_unref(dict->text);
    ml_buf_fini(&dict->samples);
    free(dict);
}

/* `bytes`: the dictionary as zstd gets it, plain or trained. */
static void dict_set(struct ml_dict *dict, struct ml_dict_text *text, struct ml_str bytes)
{
    ml_dict_text_unref(dict->text);
    ZSTD_freeCDict(dict->prepared);
    dict->text = text;
    dict->prepared = ZSTD_createCDict(bytes.ptr, bytes.len, LEVEL);
    ml_assert(dict->prepared);
}

/* Newer texts go to the end, where zstd reaches them with the shortest distances. */
static void dict_grow(struct ml_dict *dict, struct ml_str plain)
{
    struct ml_str old = {NULL, 0};
    if (dict->text)
        old = (struct ml_str){dict->text->bytes, dict->text->len};
    plain.len = ML_MIN(plain.len, TEXT_LEN_MAX - old.len);
    struct ml_dict_text *text = dict_text_new(old, plain);
    dict_set(dict, text, (struct ml_str){text->bytes, text->len});
    dict->growths++;
}

/* Where no tables can be made of the samples, because they are too short for example, the
 * dictionary stays as it is. */
static void dict_train(struct ml_dict *dict)
{
    const ZDICT_params_t params = {.compressionLevel = LEVEL};
    struct ml_str text = {dict->text->bytes, dict->text->len};
    char room[TEXT_LEN_MAX + TABLES_LEN_MAX];
    size_t len = ZDICT_finalizeDictionary(room, sizeof room, text.ptr, text.len, dict->samples.ptr,
                                          dict->sample_lens, SAMPLES, params);
    ml_buf_fini(&dict->samples);
    dict->growths = GROWTHS_MAX;
    if (ZDICT_isError(len))
        return;
    struct ml_dict_text *trained = dict_text_new((struct ml_str){NULL, 0}, ML_STR(""));
    trained->trained = ZSTD_createDDict(room, len);
    ml_assert(trained->trained);
    dict_set(dict, trained, (struct ml_str){room, len});
}

/* Takes the next text as a sample, the beginning of a large one. */
static void dict_sample(struct ml_dict *dict, struct ml_str plain)
{
    size_t number = dict->packed - TRAIN_AFTER;
    plain.len = ML_MIN(plain.len, SAMPLES_LEN_MAX / SAMPLES);
    ml_buf_append_str(&dict->samples, plain);
    dict->sample_lens[number] = plain.len;
    if (number + 1 == SAMPLES)
        dict_train(dict);
}

static struct ml_str pack_with_dict(struct ml_dict *dict, struct ml_str plain)
{
    struct context *context = dict->text->context;
    size_t room_len = ZSTD_compressBound(plain.len);
    if (context->packed.capacity > SCRATCH_LEN_MAX && room_len <= SCRATCH_LEN_MAX)
        ml_buf_fini(&context->packed);
    ml_buf_clear(&context->packed);
    char *room = ml_buf_reserve(&context->packed, room_len);
    ml_assert(room);
    size_t r = ZSTD_CCtx_refCDict(context->pack, dict->prepared);
    ml_assert(!ZSTD_isError(r));
    size_t len = ZSTD_compress2(context->pack, room, room_len, plain.ptr, plain.len);
    ml_assert(!ZSTD_isError(len));
    return len < plain.len ? (struct ml_str){room, len} : plain;
}

static bool growth_would_help(const struct ml_dict *dict, struct ml_str plain, struct ml_str packed)
{
    return packed.len > plain.len / PACKS_WELL && dict->growths < GROWTHS_MAX &&
           dict->text->len + plain.len <= TEXT_LEN_MAX;
}

struct ml_str ml_dict_pack(struct ml_dict *dict, struct ml_str plain,
                           struct ml_dict_text **out_text)
{
    if (!dict->text)
        dict_grow(dict, plain);
    struct ml_str packed = pack_with_dict(dict, plain);
    if (growth_would_help(dict, plain, packed)) {
        dict_grow(dict, plain);
        packed = pack_with_dict(dict, plain);
    }
    dict->text->refs++;
    *out_text = dict->text;
    if (dict->packed >= TRAIN_AFTER && dict->packed < TRAIN_AFTER + SAMPLES)
        dict_sample(dict, plain);
    dict->packed += dict->packed < TRAIN_AFTER + SAMPLES;
    return packed;
}

void ml_dict_unpack(const struct ml_dict_text *text, struct ml_str packed, char *out,
                    size_t plain_len)
{
    if (packed.len == plain_len) {
        memcpy(out, packed.ptr, plain_len);
        return;
    }
    ZSTD_DCtx *unpack = text->context->unpack;
    size_t len;
    if (text->trained)
        len = ZSTD_decompress_usingDDict(unpack, out, plain_len, packed.ptr, packed.len,
                                         text->trained);
    else /* JSON never starts with a dictionary's magic number: the bytes are used as they are */
        len = ZSTD_decompress_usingDict(unpack, out, plain_len, packed.ptr, packed.len, text->bytes,
                                        text->len);
    ml_assert(len == plain_len);
}
