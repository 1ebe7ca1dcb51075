/* SipHash-1-3 (Aumasson, Bernstein, "SipHash: a fast short-input PRF", 2012; one round a word and
 * three at the end, as for tables in memory elsewhere). */
#include "base/hash.h"

#include <sys/random.h>

static struct {
    uint64_t low, high;
    bool set;
} seed;

struct sip {
    uint64_t a, b, c, d;
};

static inline uint64_t rotate(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

static inline void sip_round(struct sip *s)
{
    s->a += s->b;
    s->b = rotate(s->b, 13) ^ s->a;
    s->a = rotate(s->a, 32);
    s->c += s->d;
    s->d = rotate(s->d, 16) ^ s->c;
    s->a += s->d;
    s->d = rotate(s->d, 21) ^ s->a;
    s->c += s->b;
    s->b = rotate(s->b, 17) ^ s->c;
    s->c = rotate(s->c, 32);
}

static inline void sip_word(struct sip *s, uint64_t word)
{
    s->d ^= word;
    sip_round(s);
    s->a ^= word;
}

/* Up to eight bytes, the first the lowest. */
static inline uint64_t word_at(const char *at, size_t len)
{
    uint64_t word = 0;
    if (len == sizeof(word)) {
        memcpy(&word, at, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        word = __builtin_bswap64(word);
#endif
        return word;
    }
    for (size_t i = 0; i < len; i++)
        word |= (uint64_t)(unsigned char)at[i] << (8 * i);
    return word;
}

void ml_hash_seed(uint64_t low, uint64_t high)
{
    seed.low = low;
    seed.high = high;
    seed.set = true;
}

static void seed_by_kernel(void)
{
    uint64_t words[2];
    ssize_t got = getrandom(words, sizeof(words), 0);
    ml_assert(got == (ssize_t)sizeof(words));
    ml_hash_seed(words[0], words[1]);
}

uint64_t ml_hash(struct ml_str key)
{
    if (ML_UNLIKELY(!seed.set))
        seed_by_kernel();
    struct sip s = {
        seed.low ^ UINT64_C(0x736f6d6570736575),
        seed.high ^ UINT64_C(0x646f72616e646f6d),
        seed.low ^ UINT64_C(0x6c7967656e657261),
        seed.high ^ UINT64_C(0x7465646279746573),
    };
    size_t left = key.len;
    const char *at = key.ptr;
    for (; left >= 8; left -= 8, at += 8)
        sip_word(&s, word_at(at, 8));
    sip_word(&s, word_at(at, left) | (uint64_t)key.len << 56);
    s.c ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(&s);
    return s.a ^ s.b ^ s.c ^ s.d;
}
