#include "cluster/host/netlink.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#define MESSAGE_MAX 512

/* A request under construction; all that is asked for here fits. */
struct message {
    union {
        struct nlmsghdr head;
        char bytes[MESSAGE_MAX];
    };
};

int netlink_open(void)
{
    return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
}

/* ---- building ---- */

static void message_init(struct message *message, uint16_t type, uint16_t flags)
{
    memset(message, 0, sizeof *message);
    message->head.nlmsg_len = NLMSG_HDRLEN;
    message->head.nlmsg_type = type;
    message->head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
}

static void *message_append(struct message *message, const void *bytes, size_t len)
{
    size_t at = NLMSG_ALIGN(message->head.nlmsg_len);
    ml_assert(at + len <= sizeof message->bytes);
    if (len)
        memcpy(message->bytes + at, bytes, len);
    message->head.nlmsg_len = (uint32_t)(at + len);
    return message->bytes + at;
}

static void message_add(struct message *message, uint16_t type, const void *bytes, size_t len)
{
    struct rtattr head = {.rta_type = type, .rta_len = (uint16_t)RTA_LENGTH(len)};
    message_append(message, &head, sizeof head);
    message_append(message, bytes, len);
}

static void message_add_text(struct message *message, uint16_t type, const char *text)
{
    message_add(message, type, text, strlen(text) + 1);
}

static void message_add_number(struct message *message, uint16_t type, uint32_t number)
{
    message_add(message, type, &number, sizeof number);
}

/* An attribute of attributes: all that is added until message_close is in it. */
static struct rtattr *message_open(struct message *message, uint16_t type)
{
    struct rtattr head = {.rta_type = type};
    return message_append(message, &head, sizeof head);
}

static void message_close(struct message *message, struct rtattr *opened)
{
    char *end = message->bytes + message->head.nlmsg_len;
    opened->rta_len = (uint16_t)(end - (char *)opened);
}

/* ---- asking ---- */

static bool netlink_ask(int netlink, struct message *message)
{
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
        char request[MESSAGE_MAX]; /* the kernel repeats it */
    } answer;
    ssize_t len;
    if (send(netlink, message->bytes, message->head.nlmsg_len, 0) < 0)
        return false;
    do
        len = recv(netlink, &answer, sizeof answer, 0);
    while (len < 0 && errno == EINTR);
    if (len < 0)
        return false;
    bool is_answer = (size_t)len >= sizeof answer.head + sizeof answer.error.error &&
                     answer.head.nlmsg_type == NLMSG_ERROR;
    errno = is_answer ? -answer.error.error : EPROTO;
    return errno == 0;
}

static void message_init_link(struct message *message, uint16_t flags, unsigned link, bool up)
{
    struct ifinfomsg info = {.ifi_family = AF_UNSPEC, .ifi_index = (int)link};
    if (up)
        info.ifi_flags = info.ifi_change = IFF_UP;
    message_init(message, RTM_NEWLINK, flags);
    message_append(message, &info, sizeof info);
}

bool netlink_add_bridge(int netlink, const char *name, const uint8_t hardware[NETLINK_HARDWARE_LEN])
{
    struct message message;
    message_init_link(&message, NLM_F_CREATE | NLM_F_EXCL, 0, true);
    message_add_text(&message, IFLA_IFNAME, name);
    message_add(&message, IFLA_ADDRESS, hardware, NETLINK_HARDWARE_LEN);
    struct rtattr *info = message_open(&message, IFLA_LINKINFO);
    message_add_text(&message, IFLA_INFO_KIND, "bridge");
    message_close(&message, info);
    return netlink_ask(netlink, &message);
}

bool netlink_add_pair(int netlink, const char *name, unsigned bridge, const char *peer,
                      int peer_namespace)
{
    const struct ifinfomsg peer_info = {.ifi_family = AF_UNSPEC};
    struct message message;
    message_init_link(&message, NLM_F_CREATE | NLM_F_EXCL, 0, true);
    message_add_text(&message, IFLA_IFNAME, name);
    message_add_number(&message, IFLA_MASTER, bridge);
    struct rtattr *info = message_open(&message, IFLA_LINKINFO);
    message_add_text(&message, IFLA_INFO_KIND, "veth");
    struct rtattr *data = message_open(&message, IFLA_INFO_DATA);
    struct rtattr *other = message_open(&message, VETH_INFO_PEER);
    message_append(&message, &peer_info, sizeof peer_info);
    message_add_text(&message, IFLA_IFNAME, peer);
    message_add_number(&message, IFLA_NET_NS_FD, (uint32_t)peer_namespace);
    message_close(&message, other);
    message_close(&message, data);
    message_close(&message, info);
    return netlink_ask(netlink, &message);
}

bool netlink_set_up(int netlink, unsigned link)
{
    struct message message;
    message_init_link(&message, 0, link, true);
    return netlink_ask(netlink, &message);
}

bool netlink_add_address(int netlink, unsigned link, struct in_addr address, unsigned prefix)
{
    const struct ifaddrmsg info = {.ifa_family = AF_INET,
                                   .ifa_prefixlen = (uint8_t)prefix,
                                   .ifa_scope = RT_SCOPE_UNIVERSE,
                                   .ifa_index = link};
    struct message message;
    message_init(&message, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL);
    message_append(&message, &info, sizeof info);
    message_add(&message, IFA_LOCAL, &address, sizeof address);
    message_add(&message, IFA_ADDRESS, &address, sizeof address);
    return netlink_ask(netlink, &message);
}

/* `way` is an attribute of four bytes that says where the packets go; 0: none. */
static bool add_route(int netlink, uint8_t table, uint8_t type, struct in_addr range,
                      unsigned prefix, uint16_t way, const void *where)
{
    const struct rtmsg info = {.rtm_family = AF_INET,
                               .rtm_dst_len = (uint8_t)prefix,
                               .rtm_table = table,
                               .rtm_protocol = RTPROT_STATIC,
                               .rtm_scope = type == RTN_LOCAL ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
                               .rtm_type = type};
    struct message message;
    message_init(&message, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL);
    message_append(&message, &info, sizeof info);
    if (prefix)
        message_add(&message, RTA_DST, &range, sizeof range);
    if (way)
        message_add(&message, way, where, sizeof(uint32_t));
    return netlink_ask(netlink, &message);
}

bool netlink_add_route(int netlink, struct in_addr range, unsigned prefix, struct in_addr gateway)
{
    return add_route(netlink, RT_TABLE_MAIN, RTN_UNICAST, range, prefix, RTA_GATEWAY, &gateway);
}

bool netlink_add_own_range(const struct netlink_table *table, struct in_addr range, unsigned prefix)
{
    return add_route(table->netlink, table->number, RTN_LOCAL, range, prefix, RTA_OIF,
                     &table->loopback);
}

bool netlink_add_unreachable(const struct netlink_table *table, struct in_addr range,
                             unsigned prefix)
{
    return add_route(table->netlink, table->number, RTN_UNREACHABLE, range, prefix, 0, NULL);
}

bool netlink_add_exception(const struct netlink_table *table, struct in_addr range, unsigned prefix)
{
    return add_route(table->netlink, table->number, RTN_THROW, range, prefix, 0, NULL);
}

bool netlink_add_rule(const struct netlink_table *table, const char *name, uint32_t mark)
{
    const struct fib_rule_hdr info = {
        .family = AF_INET, .table = table->number, .action = FR_ACT_TO_TBL};
    struct message message;
    message_init(&message, RTM_NEWRULE, NLM_F_CREATE);
    message_append(&message, &info, sizeof info);
    if (name)
        message_add_text(&message, FRA_IIFNAME, name);
    else
        message_add_number(&message, FRA_FWMARK, mark);
    return netlink_ask(table->netlink, &message);
}
