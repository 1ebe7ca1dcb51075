#include "kube/dict.h"

#include <zstd.h>

/* At this size zstd's tables for a dictionary take 80 KiB, one byte further 150. */
#define TEXT_LEN_MAX 7679
#define GROWTHS_MAX  8
#define PACKS_WELL   16 /* to one sixteenth or less: nothing to learn from such a text */
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
    size_t len;
    char bytes[];
};

struct ml_dict {
    size_t refs;
    size_t growths;
    struct ml_dict_text *text; /* the newest; NULL before the first object */
    ZSTD_CDict *prepared;      /* of the newest */
};

static _Thread_local struct context *thread_context;

static struct context *context_ref(void)
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

static void context_unref(struct context *context)
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

static struct ml_dict_text *text_new(struct ml_str head, struct ml_str tail)
{
    struct ml_dict_text *text = ml_alloc(sizeof *text + head.len + tail.len);
    text->refs = 1;
    text->context = context_ref();
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
    context_unref(text->context);
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
    free(dict);
}

/* Newer texts go to the end, where zstd reaches them with the shortest distances. */
static void dict_grow(struct ml_dict *dict, struct ml_str plain)
{
    struct ml_str old = {NULL, 0};
    if (dict->text)
        old = (struct ml_str){dict->text->bytes, dict->text->len};
    plain.len = ML_MIN(plain.len, TEXT_LEN_MAX - old.len);
    struct ml_dict_text *text = text_new(old, plain);
    ml_dict_text_unref(dict->text);
    ZSTD_freeCDict(dict->prepared);
    dict->text = text;
    dict->prepared = ZSTD_createCDict(text->bytes, text->len, LEVEL);
    ml_assert(dict->prepared);
    dict->growths++;
}

static struct ml_str pack(struct ml_dict *dict, struct ml_str plain)
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
    struct ml_str packed = pack(dict, plain);
    if (growth_would_help(dict, plain, packed)) {
        dict_grow(dict, plain);
        packed = pack(dict, plain);
    }
    dict->text->refs++;
    *out_text = dict->text;
    return packed;
}

void ml_dict_unpack(const struct ml_dict_text *text, struct ml_str packed, char *out,
                    size_t plain_len)
{
    if (packed.len == plain_len) {
        memcpy(out, packed.ptr, plain_len);
        return;
    }
    /* A text that is JSON never starts with the magic number of a trained dictionary, so zstd
     * takes it as it is and needs no preparation. */
    size_t len = ZSTD_decompress_usingDict(text->context->unpack, out, plain_len, packed.ptr,
                                           packed.len, text->bytes, text->len);
    ml_assert(len == plain_len);
}
