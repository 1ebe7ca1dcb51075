/* Called by operator/outbound.c for each connection, and when a script is loaded. */
#include "net/address.h"

#include <arpa/inet.h>
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

static enum address_class class_of_v4(uint32_t address)
{
    static const uint32_t metadata[] = {
        0x646464c8, /* 100.100.100.200 */
        0xa83f8110, /* 168.63.129.16 */
    };
    for (size_t i = 0; i < ML_COUNT(metadata); i++)
        if (address == metadata[i])
            return ADDRESS_METADATA;
    if (address >> 24 == 127)
        return ADDRESS_LOOPBACK;
    if (address >> 16 == 0xa9fe) /* 169.254.0.0/16 */
        return ADDRESS_LINK_LOCAL;
    return address >> 24 == 0 || address >> 28 >= 0xe ? ADDRESS_NOBODY : ADDRESS_FINE;
}

static uint32_t v4_at(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static enum address_class class_of_v6(const uint8_t bytes[16])
{
    static const uint8_t zeros[12] = {0}, mapped[12] = {[10] = 0xff, [11] = 0xff};
    static const uint8_t nat64[12] = {0, 0x64, 0xff, 0x9b};
    static const uint8_t aws[16] = {0xfd, 0, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54};
    static const uint8_t google[16] = {0xfd, 0x20, 0, 0xce, [14] = 0x02, [15] = 0x54};
    if (memcmp(bytes, zeros, 12) == 0 && v4_at(bytes + 12) == 1)
        return ADDRESS_LOOPBACK;
    if (memcmp(bytes, zeros, 12) == 0 || memcmp(bytes, mapped, 12) == 0 ||
        memcmp(bytes, nat64, 12) == 0)
        return class_of_v4(v4_at(bytes + 12));
    if (bytes[0] == 0x20 && bytes[1] == 0x02) /* 6to4 */
        return class_of_v4(v4_at(bytes + 2));
    if (bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80) /* fe80::/10 */
        return ADDRESS_LINK_LOCAL;
    if (memcmp(bytes, aws, 16) == 0 || memcmp(bytes, google, 16) == 0)
        return ADDRESS_METADATA;
    return bytes[0] == 0xff ? ADDRESS_NOBODY : ADDRESS_FINE;
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

int ml_origin_check(const char *origin, struct ml_err *err)
{
    struct sockaddr_storage address = {0};
    if (!read_address(origin, &address))
        return 0;
    return ml_address_check((const struct sockaddr *)&address, true, err);
}
