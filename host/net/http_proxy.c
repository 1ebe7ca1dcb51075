/* Reads HTTPS_PROXY, HTTP_PROXY and NO_PROXY, as Go does. */
#include "net/http_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/str.h"

/* The upper-case name counts first. */
static const char *proxy_variable(const char *upper, const char *lower)
{
    const char *value = getenv(upper);
    if (!value || !*value)
        value = getenv(lower);
    return value && *value ? value : NULL;
}

struct address {
    int family; /* AF_INET, AF_INET6, or 0: a name */
    unsigned char bytes[16];
};

static struct address parse_address(struct ml_str text)
{
    struct address address = {0};
    char copy[INET6_ADDRSTRLEN];
    if (text.len >= 2 && text.ptr[0] == '[' && text.ptr[text.len - 1] == ']')
        text = (struct ml_str){text.ptr + 1, text.len - 2};
    if (text.len == 0 || text.len >= sizeof copy)
        return address;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    if (inet_pton(AF_INET, copy, address.bytes) == 1)
        address.family = AF_INET;
    else if (inet_pton(AF_INET6, copy, address.bytes) == 1)
        address.family = AF_INET6;
    return address;
}

static bool same_bits(const unsigned char *a, const unsigned char *b, uint64_t count)
{
    size_t whole = count / 8;
    unsigned char mask = (unsigned char)(0xff00 >> (count % 8));
    return memcmp(a, b, whole) == 0 && (count % 8 == 0 || ((a[whole] ^ b[whole]) & mask) == 0);
}

/* "10.0.0.0/8" */
static bool in_network(struct ml_str entry, const struct address *host)
{
    struct ml_str bits_text = entry;
    const struct address network = parse_address(ml_str_cut(&bits_text, '/'));
    uint64_t bits = 0, bits_max = network.family == AF_INET6 ? 128 : 32;
    return network.family && network.family == host->family && ml_str_to_u64(bits_text, &bits) &&
           bits <= bits_max && same_bits(network.bytes, host->bytes, bits);
}

static bool same_name(struct ml_str a, struct ml_str b)
{
    return a.len == b.len && strncasecmp(a.ptr, b.ptr, a.len) == 0;
}

/* "example.com" means itself and what is below, ".example.com" and "*.example.com" only that. */
static bool is_domain_or_below(struct ml_str entry, struct ml_str host)
{
    if (ml_str_starts(entry, "*."))
        entry = (struct ml_str){entry.ptr + 1, entry.len - 1};
    if (entry.len == 0)
        return false;
    if (entry.ptr[0] != '.' && same_name(entry, host))
        return true;
    if (entry.ptr[0] == '.')
        entry = (struct ml_str){entry.ptr + 1, entry.len - 1};
    if (host.len < entry.len + 1)
        return false;
    size_t below = host.len - entry.len;
    return host.ptr[below - 1] == '.' &&
           same_name(entry, (struct ml_str){host.ptr + below, entry.len});
}

/* Takes ":port" off an entry; an IPv6 address has one only behind brackets. */
static struct ml_str cut_entry_port(struct ml_str *entry)
{
    struct ml_str port = {NULL, 0};
    const char *colon = memrchr(entry->ptr, ':', entry->len);
    size_t len = colon ? (size_t)(colon - entry->ptr) : 0;
    bool single = colon && (entry->ptr[len - (len > 0)] == ']' || !memchr(entry->ptr, ':', len));
    if (!single)
        return port;
    port = (struct ml_str){colon + 1, entry->len - len - 1};
    entry->len = len;
    return port;
}

static bool no_proxy_entry_matches(struct ml_str entry, struct ml_str host,
                                   const struct address *address, const char *port)
{
    if (entry.len == 0)
        return false;
    if (ml_str_is(entry, "*"))
        return true;
    if (memchr(entry.ptr, '/', entry.len))
        return in_network(entry, address);
    struct ml_str own_port = cut_entry_port(&entry);
    if (own_port.len > 0 && !ml_str_is(own_port, port))
        return false;
    const struct address own = parse_address(entry);
    if (own.family)
        return own.family == address->family &&
               same_bits(own.bytes, address->bytes, own.family == AF_INET6 ? 128 : 32);
    return is_domain_or_below(entry, host);
}

bool ml_http_no_proxy(const char *list, const char *host, const char *port)
{
    const struct address address = parse_address(ml_str_of(host));
    for (struct ml_str rest = ml_str_of(list); rest.ptr;)
        if (no_proxy_entry_matches(ml_str_trim(ml_str_cut(&rest, ',')), ml_str_of(host), &address,
                                   port))
            return true;
    return false;
}

/* Loopback goes direct whatever the environment says. */
static bool is_loopback(const char *host)
{
    static const unsigned char v6[16] = {[15] = 1};
    const struct address address = parse_address(ml_str_of(host));
    return strcasecmp(host, "localhost") == 0 ||
           (address.family == AF_INET && address.bytes[0] == 127) ||
           (address.family == AF_INET6 && memcmp(address.bytes, v6, sizeof v6) == 0);
}

char *ml_http_proxy_from_env(bool https, const char *host, const char *port)
{
    const char *proxy = https ? proxy_variable("HTTPS_PROXY", "https_proxy")
                              : proxy_variable("HTTP_PROXY", "http_proxy");
    if (!proxy || is_loopback(host) ||
        ml_http_no_proxy(proxy_variable("NO_PROXY", "no_proxy"), host, port))
        return NULL;
    return strstr(proxy, "://") ? ml_strdup(proxy) : ml_asprintf("http://%s", proxy);
}
