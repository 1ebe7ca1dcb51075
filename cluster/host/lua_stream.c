/* host.stream: parts of protocols for which Lua is too slow or has nothing: zlib with a dictionary
 * (SPDY's headers), gzip (large answers), the mask and the handshake of WebSockets. */
#include <openssl/evp.h>
#include <zlib.h>

#include "cluster/host/server_lua_internal.h"
#include "codec/base64.h"

#define DEFLATER "cluster.host.deflater"
#define GZIPPER  "cluster.host.gzipper"
#define INFLATER "cluster.host.inflater"
#define PIECE    4096

/* Of deflateInit2: the window, and 16 for gzip's head and foot in place of zlib's; and the memory
 * that is its default. */
#define GZIP_WINDOW   (15 + 16)
#define DEFAULT_STATE 8

/* A full userdata with its dictionary, if it has one, as its user value. */
struct codec {
    z_stream zlib;
    int (*end)(z_stream *zlib); /* NULL: it was not begun, or has ended */
    size_t out_max;             /* of one call; of an inflater */
    bool has_failed;
};

/* [+1] */
ML_RAISES static struct codec *push_codec(lua_State *L, const char *type)
{
    struct codec *codec = lua_newuserdatauv(L, sizeof *codec, 1);
    *codec = (struct codec){0};
    luaL_setmetatable(L, type);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    return codec;
}

static int codec_gc(lua_State *L)
{
    struct codec *codec = lua_touserdata(L, 1);
    if (codec->end)
        ml_take (&codec->end)(&codec->zlib);
    return 0;
}

/* deflater(dictionary) -> deflater */
ML_RAISES static int stream_deflater(lua_State *L)
{
    struct ml_str dictionary = binding_check_str(L, 1);
    struct codec *codec = push_codec(L, DEFLATER);
    int r = deflateInit(&codec->zlib, Z_DEFAULT_COMPRESSION);
    ml_assert(r == Z_OK);
    codec->end = deflateEnd;
    r = deflateSetDictionary(&codec->zlib, (const Bytef *)dictionary.ptr, (uInt)dictionary.len);
    ml_assert(r == Z_OK);
    return 1;
}

/* [+1] What has become of the bytes. */
ML_RAISES static int push_deflated(lua_State *L, struct codec *codec, struct ml_str bytes,
                                   int flush)
{
    luaL_argcheck(L, bytes.len <= INT32_MAX, 2, "too long");
    struct ml_buf *out = binding_clear_work(L);
    char piece[PIECE];
    codec->zlib.next_in = (Bytef *)bytes.ptr;
    codec->zlib.avail_in = (uInt)bytes.len;
    do {
        codec->zlib.next_out = (Bytef *)piece;
        codec->zlib.avail_out = sizeof piece;
        int r = deflate(&codec->zlib, flush);
        ml_assert(r == Z_OK || r == Z_STREAM_END || r == Z_BUF_ERROR);
        ml_buf_append(out, piece, sizeof piece - codec->zlib.avail_out);
    } while (codec->zlib.avail_out == 0);
    lua_pushlstring(L, out->ptr ? out->ptr : "", out->len);
    return 1;
}

/* deflater:add(bytes) -> bytes; the other side can read them all */
ML_RAISES static int deflater_add(lua_State *L)
{
    struct codec *codec = luaL_checkudata(L, 1, DEFLATER);
    return push_deflated(L, codec, binding_check_str(L, 2), Z_SYNC_FLUSH);
}

/* gzipper() -> gzipper: the fastest compression, as kube-apiserver's answers have it */
ML_RAISES static int stream_gzipper(lua_State *L)
{
    lua_settop(L, 1);
    struct codec *codec = push_codec(L, GZIPPER);
    int r = deflateInit2(&codec->zlib, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, DEFAULT_STATE,
                         Z_DEFAULT_STRATEGY);
    ml_assert(r == Z_OK);
    codec->end = deflateEnd;
    return 1;
}

/* gzipper:add(text, from, to) -> bytes: the bytes of the text from one place to another, both
 * counted; with its last one all has been said */
ML_RAISES static int gzipper_add(lua_State *L)
{
    struct codec *codec = luaL_checkudata(L, 1, GZIPPER);
    struct ml_str text = binding_check_str(L, 2);
    lua_Integer from = luaL_checkinteger(L, 3), to = luaL_checkinteger(L, 4);
    luaL_argcheck(L, codec->end, 1, "it has ended");
    luaL_argcheck(L, to >= 0 && (size_t)to <= text.len, 4, "a place in the text");
    luaL_argcheck(L, from >= 1 && from <= to + 1, 3, "a place in the text");
    bool is_last = (size_t)to == text.len;
    struct ml_str piece = {text.ptr + from - 1, (size_t)(to - from + 1)};
    push_deflated(L, codec, piece, is_last ? Z_FINISH : Z_NO_FLUSH);
    if (is_last)
        ml_take (&codec->end)(&codec->zlib);
    return 1;
}

/* inflater(dictionary, max) -> inflater */
ML_RAISES static int stream_inflater(lua_State *L)
{
    binding_check_str(L, 1);
    lua_Integer max = luaL_checkinteger(L, 2);
    luaL_argcheck(L, max > 0, 2, "bytes, above 0");
    struct codec *codec = push_codec(L, INFLATER);
    codec->out_max = (size_t)max;
    int r = inflateInit(&codec->zlib);
    ml_assert(r == Z_OK);
    codec->end = inflateEnd;
    return 1;
}

/* One step; false when there is nothing more to do, or all is lost. */
static bool inflate_step(struct codec *codec, struct ml_str dictionary, struct ml_buf *out)
{
    char piece[PIECE];
    codec->zlib.next_out = (Bytef *)piece;
    codec->zlib.avail_out = sizeof piece;
    int r = inflate(&codec->zlib, Z_SYNC_FLUSH);
    if (r == Z_NEED_DICT)
        r = inflateSetDictionary(&codec->zlib, (const Bytef *)dictionary.ptr, (uInt)dictionary.len);
    ml_buf_append(out, piece, sizeof piece - codec->zlib.avail_out);
    codec->has_failed = (r != Z_OK && r != Z_BUF_ERROR) || out->len > codec->out_max;
    return !codec->has_failed && r == Z_OK &&
           (codec->zlib.avail_in > 0 || codec->zlib.avail_out == 0);
}

/* inflater:add(bytes) -> bytes, or nil and why: it is no zlib, or more than `max` */
ML_RAISES static int inflater_add(lua_State *L)
{
    struct codec *codec = luaL_checkudata(L, 1, INFLATER);
    struct ml_str bytes = binding_check_str(L, 2), dictionary;
    luaL_argcheck(L, bytes.len <= INT32_MAX, 2, "too long");
    if (codec->has_failed)
        return binding_push_error(L, "it has failed before");
    lua_getiuservalue(L, 1, 1);
    dictionary.ptr = lua_tolstring(L, -1, &dictionary.len);
    struct ml_buf *out = binding_clear_work(L);
    codec->zlib.next_in = (Bytef *)bytes.ptr;
    codec->zlib.avail_in = (uInt)bytes.len;
    while (inflate_step(codec, dictionary, out))
        ;
    if (codec->has_failed)
        return binding_push_error(L, out->len > codec->out_max ? "too much"
                                                               : "not compressed by zlib");
    lua_pushlstring(L, out->ptr ? out->ptr : "", out->len);
    return 1;
}

/* mask(bytes, key) -> bytes: RFC 6455, 5.3; the key has four bytes */
ML_RAISES static int stream_mask(lua_State *L)
{
    struct ml_str bytes = binding_check_str(L, 1), key = binding_check_str(L, 2);
    luaL_argcheck(L, key.len == 4, 2, "four bytes");
    luaL_Buffer buffer;
    char *out = luaL_buffinitsize(L, &buffer, bytes.len);
    for (size_t i = 0; i < bytes.len; i++)
        out[i] = (char)(bytes.ptr[i] ^ key.ptr[i & 3]);
    luaL_pushresultsize(&buffer, bytes.len);
    return 1;
}

/* accept(key) -> the value of Sec-WebSocket-Accept: RFC 6455, 4.2.2 */
ML_RAISES static int stream_accept(lua_State *L)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    luaL_checkstring(L, 1);
    lua_settop(L, 1);
    lua_pushliteral(L, "258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    lua_concat(L, 2);
    struct ml_str text = binding_check_str(L, 1);
    int done = EVP_Digest(text.ptr, text.len, digest, &len, EVP_sha1(), NULL);
    ml_assert(done == 1);
    struct ml_buf *out = binding_clear_work(L);
    ml_base64_encode((struct ml_str){(const char *)digest, len}, out);
    lua_pushlstring(L, out->ptr, out->len);
    return 1;
}

int binding_open_stream(lua_State *L)
{
    static const luaL_Reg deflater[] = {{"add", deflater_add}, {NULL, NULL}};
    static const luaL_Reg gzipper[] = {{"add", gzipper_add}, {NULL, NULL}};
    static const luaL_Reg inflater[] = {{"add", inflater_add}, {NULL, NULL}};
    static const luaL_Reg functions[] = {{"deflater", stream_deflater}, {"gzipper", stream_gzipper},
                                         {"inflater", stream_inflater}, {"mask", stream_mask},
                                         {"accept", stream_accept},     {NULL, NULL}};
    binding_new_type(L, DEFLATER, deflater, codec_gc);
    binding_new_type(L, GZIPPER, gzipper, codec_gc);
    binding_new_type(L, INFLATER, inflater, codec_gc);
    luaL_newlib(L, functions);
    return 1;
}
