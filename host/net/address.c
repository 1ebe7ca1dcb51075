/* Classifies addresses by tables: those of IPv4, and all forms of IPv6 that carry one. */
#include "net/address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <strings.h>

#include "base/str.h"

enum address_class {
    ADDRESS_FINE,
    ADDRESS_LOOPBACK,
    ADDRESS_LINK_LOCAL,
    ADDRESS_METADATA,
    ADDRESS_NOBODY, /* unspecified, multicast, reserved */
};

/* Clouds tell machines their secrets there; besides, all of 169.254.0.0/16 is link-local. */
const struct ml_address_range ml_address_metadata[ML_ADDRESS_METADATA_COUNT] = {
    {0xa9fe0000, 16}, /* 169.254.0.0/16: nearly all clouds */
    {0x646464c8, 32}, /* 100.100.100.200: Alibaba */
    {0xa83f8110, 32}, /* 168.63.129.16: Azure */
    {0xc0000000, 24}, /* 192.0.0.0/24: 192.0.0.192 is Oracle's; no servers are there (RFC 6890) */
};

/* Whole addresses of such services. Other addresses of 169.254.0.0/16 may stand by chance in an
 * address of IPv6. */
static const uint32_t metadata_servers[] = {
    0xa9fea9fe, /* 169.254.169.254 */
    0xa9feaa02, /* 169.254.170.2: AWS ECS */
    0xa9feaa17, /* 169.254.170.23: AWS EKS */
    0xa9fe2a2a, /* 169.254.42.42: Scaleway */
    0xa9fe0017, /* 169.254.0.23: Tencent */
    0x646464c8, 0xa83f8110, 0xc00000c0,
};

struct prefix {
    uint8_t bytes[16];
    unsigned bits;
};

static const struct prefix metadata_v6[] = {
    {{0xfd, 0, 0x0e, 0xc2}, 32},             /* fd00:ec2::/32: AWS */
    {{0xfd, 0x20, 0, 0xce}, 32},             /* fd20:ce::/32: Google */
    {{0xfd, 0, 0, 0xc1}, 32},                /* fd00:c1::/32: Oracle */
    {{0xfd, 0, 0, 0x42, [15] = 0x42}, 128},  /* fd00:42::42: Scaleway */
    {{0xfd, 0, 0xa9, 0xfe, 0xa9, 0xfe}, 48}, /* fd00:a9fe:a9fe::/48: Linode */
};

/* Prefixes behind which an address of IPv4 stands, at this byte. */
static const struct {
    struct prefix prefix;
    unsigned at;
} carriers[] = {
    {{{0}, 96}, 12},                        /* ::/96: IPv4-compatible */
    {{{[10] = 0xff, [11] = 0xff}, 96}, 12}, /* ::ffff:0:0/96: IPv4-mapped */
    {{{[8] = 0xff, [9] = 0xff}, 96}, 12},   /* ::ffff:0:0:0/96: RFC 2765 */
    {{{0, 0x64, 0xff, 0x9b}, 96}, 12},      /* 64:ff9b::/96: RFC 6052 */
    {{{0x20, 0x02}, 16}, 2},                /* 2002::/16: 6to4 */
    {{{0x20, 0x01}, 32}, 4},                /* 2001::/32: Teredo's server */
};

/* Prefixes of a network's own NAT64, whose length nobody outside knows: 64:ff9b:1::/48 (RFC 8215).
 */
static const struct prefix local_nat64 = {{0, 0x64, 0xff, 0x9b, 0, 1}, 48};

/* Where RFC 6052, 2.2 puts the four bytes of IPv4, for each length of a prefix. */
static const uint8_t translated[][4] = {{4, 5, 6, 7},   {5, 6, 7, 9},    {6, 7, 9, 10},
                                        {7, 9, 10, 11}, {9, 10, 11, 12}, {12, 13, 14, 15}};

static bool is_in_range(uint32_t address, const struct ml_address_range *range)
{
    return (address ^ range->address) >> (32 - range->bits) == 0;
}

static enum address_class class_of_v4(uint32_t address)
{
    if (is_in_range(address, &ml_address_metadata[0]))
        return ADDRESS_LINK_LOCAL;
    for (size_t i = 1; i < ML_COUNT(ml_address_metadata); i++)
        if (is_in_range(address, &ml_address_metadata[i]))
            return ADDRESS_METADATA;
    if (address >> 24 == 127)
        return ADDRESS_LOOPBACK;
    return address >> 24 == 0 || address >> 28 >= 0xe ? ADDRESS_NOBODY : ADDRESS_FINE;
}

static uint32_t v4_at(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static uint32_t translated_v4(const uint8_t bytes[16], const uint8_t places[4])
{
    const uint8_t parts[4] = {bytes[places[0]], bytes[places[1]], bytes[places[2]],
                              bytes[places[3]]};
    return v4_at(parts);
}

static bool has_prefix(const uint8_t bytes[16], const struct prefix *prefix)
{
    return memcmp(bytes, prefix->bytes, prefix->bits / 8) == 0;
}

/* Some translator of the network may lead to a metadata service, or, behind the prefix that is for
 * such translators, to this machine or its links. */
static enum address_class class_of_translated(const uint8_t bytes[16])
{
    bool is_local = has_prefix(bytes, &local_nat64);
    for (size_t i = 0; i < ML_COUNT(translated); i++) {
        uint32_t v4 = translated_v4(bytes, translated[i]);
        enum address_class class = class_of_v4(v4);
        if (is_local && class != ADDRESS_FINE && class != ADDRESS_NOBODY)
            return class;
        for (size_t j = 0; j < ML_COUNT(metadata_servers); j++)
            if (v4 == metadata_servers[j])
                return ADDRESS_METADATA;
    }
    return ADDRESS_FINE;
}

/* Of tunnels that have the address of their other end in their own. */
static enum address_class class_of_tunnel(const uint8_t bytes[16])
{
    static const uint8_t isatap[4] = {0, 0, 0x5e, 0xfe};
    static const struct prefix teredo = {{0x20, 0x01}, 32};
    const uint8_t interface[4] = {bytes[8] & 0xfd, bytes[9], bytes[10], bytes[11]};
    if (memcmp(interface, isatap, sizeof isatap) == 0) /* RFC 5214 */
        return class_of_v4(v4_at(bytes + 12));
    if (has_prefix(bytes, &teredo)) /* RFC 4380: the client's address is inverted */
        return class_of_v4(~v4_at(bytes + 12));
    return ADDRESS_FINE;
}

static enum address_class class_of_v6(const uint8_t bytes[16])
{
    static const uint8_t loopback[16] = {[15] = 1};
    if (memcmp(bytes, loopback, sizeof loopback) == 0)
        return ADDRESS_LOOPBACK;
    if (bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80) /* fe80::/10 */
        return ADDRESS_LINK_LOCAL;
    if (bytes[0] == 0xff)
        return ADDRESS_NOBODY;
    for (size_t i = 0; i < ML_COUNT(metadata_v6); i++)
        if (has_prefix(bytes, &metadata_v6[i]))
            return ADDRESS_METADATA;
    for (size_t i = 0; i < ML_COUNT(carriers); i++) {
        enum address_class class = ADDRESS_FINE;
        if (has_prefix(bytes, &carriers[i].prefix))
            class = class_of_v4(v4_at(bytes + carriers[i].at));
        if (class != ADDRESS_FINE)
            return class;
    }
    enum address_class class = class_of_tunnel(bytes);
    return class == ADDRESS_FINE ? class_of_translated(bytes) : class;
}

static enum address_class class_of(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return class_of_v4(ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr));
    if (address->sa_family == AF_INET6)
        return class_of_v6(((const struct sockaddr_in6 *)address)->sin6_addr.s6_addr);
    return ADDRESS_NOBODY;
}

static void write_address(const struct sockaddr *address, char out[INET6_ADDRSTRLEN])
{
    const void *bytes = address->sa_family == AF_INET6
                            ? (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr
                            : (const void *)&((const struct sockaddr_in *)address)->sin_addr;
    if (!inet_ntop(address->sa_family, bytes, out, INET6_ADDRSTRLEN))
        snprintf(out, INET6_ADDRSTRLEN, "an address of another family");
}

int ml_address_check(const struct sockaddr *address, bool loopback, struct ml_err *err)
{
    static const char *const whats[] = {
        [ADDRESS_LOOPBACK] = "a loopback address; declare and allow "
                             "it by its address or as localhost",
        [ADDRESS_LINK_LOCAL] = "a link-local address",
        [ADDRESS_METADATA] = "an address of a metadata service",
        [ADDRESS_NOBODY] = "no address of a server"};
    char text[INET6_ADDRSTRLEN];
    enum address_class class = class_of(address);
    if (class == ADDRESS_FINE || (class == ADDRESS_LOOPBACK && loopback))
        return 0;
    write_address(address, text);
    return ml_err_set(err, ML_EFORBIDDEN, "scripts may not connect to %s: it is %s", text,
                      whats[class]);
}

/* The host between scheme and port, without the brackets of IPv6. The caller frees it. */
static char *host_of_origin(const char *origin)
{
    const char *scheme_end = strstr(origin, "://");
    struct ml_str rest = ml_str_of(scheme_end ? scheme_end + 3 : origin);
    if (rest.len > 0 && rest.ptr[0] == '[') {
        rest = (struct ml_str){rest.ptr + 1, rest.len - 1};
        return ml_str_dup(ml_str_cut(&rest, ']'));
    }
    return ml_str_dup(ml_str_cut(&rest, ':'));
}

/* False: the host is a name. In all the forms that libc reads: "127.1", "0x7f000001". */
static bool read_address(const char *origin, struct sockaddr_storage *out)
{
    ML_AUTO_FREE char *host = host_of_origin(origin);
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    if (getaddrinfo(host, NULL, &hints, &found) != 0)
        return false;
    memcpy(out, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return true;
}

bool ml_origin_is_loopback(const char *origin)
{
    ML_AUTO_FREE char *host = host_of_origin(origin);
    struct sockaddr_storage address = {0};
    if (strcasecmp(host, "localhost") == 0)
        return true;
    return read_address(origin, &address) &&
           class_of((const struct sockaddr *)&address) == ADDRESS_LOOPBACK;
}

/* The part of a pattern that all its origins end with, ".example.com:8443"; NULL: it is no pattern.
 */
static const char *end_of_pattern(const char *pattern)
{
    const char *star = strstr(pattern, "://*.");
    return star ? star + strlen("://*") : NULL;
}

/* ".example.com:8443": two labels that are not empty, and no address. */
static bool is_end_of_names(const char *end)
{
    struct ml_str rest = ml_str_of(end + 1), host = ml_str_cut(&rest, ':'), label = host;
    size_t count = 0;
    for (; host.len > 0; count++) {
        label = ml_str_cut(&host, '.');
        if (label.len == 0)
            return false;
    }
    return count >= 2 && !isdigit((unsigned char)label.ptr[label.len - 1]);
}

bool ml_origin_covers(const char *pattern, const char *origin)
{
    const char *end = end_of_pattern(pattern);
    if (!end)
        return strcasecmp(pattern, origin) == 0;
    size_t scheme = (size_t)(end - pattern) - 1, len = strlen(origin), tail = strlen(end);
    if (len <= scheme + tail || strncasecmp(pattern, origin, scheme) != 0 ||
        strcasecmp(origin + len - tail, end) != 0)
        return false;
    /* In the place of the '*' are labels, none of them empty. */
    for (const char *at = origin + scheme; at < origin + len - tail; at++)
        if (!isalnum((unsigned char)*at) && !strchr("-_*", *at) &&
            (*at != '.' || at == origin + scheme || at[1] == '.'))
            return false;
    return true;
}

int ml_origin_check(const char *origin, struct ml_err *err)
{
    struct sockaddr_storage address = {0};
    const char *end = end_of_pattern(origin), *star = strchr(origin, '*');
    if (star && (!end || star != end - 1 || strchr(end, '*') || !is_end_of_names(end)))
        return ml_err_set(
            err, ML_EINVALID,
            "'*' stands for the first labels of a name, with at least two more behind "
            "it, as in https://*.example.com");
    if (star)
        return 0;
    if (!read_address(origin, &address))
        return 0;
    return ml_address_check((const struct sockaddr *)&address, true, err);
}
