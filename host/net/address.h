/* L2 net. Which addresses may be asked on behalf of a script: not those that only this machine
 * reaches, such as a cloud's metadata service, as they give away the machine's own rights. */
#pragma once

#include "base/err.h"

struct sockaddr;

/* Networks of IPv4 with the metadata services of clouds. */
struct ml_address_range {
    uint32_t address; /* in the host's byte order */
    unsigned bits;    /* of the prefix */
};
#define ML_ADDRESS_METADATA_COUNT 4
extern const struct ml_address_range ml_address_metadata[ML_ADDRESS_METADATA_COUNT];

/* 0, or ML_EFORBIDDEN: link-local and metadata addresses, unspecified, multicast and reserved ones,
 * and those of IPv6 that carry such an address of IPv4 in one of its forms (mapped, compatible,
 * translated, NAT64, 6to4, Teredo, ISATAP). `loopback`: this machine itself may be asked. */
ML_NODISCARD int ml_address_check(const struct sockaddr *address, bool loopback,
                                  struct ml_err *err);

/* The host of an origin "https://HOST:PORT". True: it is loopback, by its name or as an address. */
bool ml_origin_is_loopback(const char *origin);
/* As ml_address_check, when the host of the origin is an address; a name is fine. An origin whose
 * name begins with "*." is a pattern; ML_EINVALID unless it has no other '*', and two more labels
 * or several, the last of them not a number. */
ML_NODISCARD int ml_origin_check(const char *origin, struct ml_err *err);
/* Is the origin this one, or one of this pattern? A pattern covers the names with one more label or
 * several in the place of its '*', and other patterns of these. Upper case counts as lower case. */
bool ml_origin_covers(const char *pattern, const char *origin);
