/* IPv4 packets of pods: reads SYNs and datagrams, writes answers in the name of addresses outside,
 * and the socket filters that let only such packets through. */
#include "cluster/host/egress_packet.h"

#include <linux/filter.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include "cluster/host/pod_network.h"

#define DATAGRAM_MAX (65535 - 20 - 8)

bool egress_flow_equal(const struct egress_flow *a, const struct egress_flow *b)
{
    return a->pod.s_addr == b->pod.s_addr && a->outside.s_addr == b->outside.s_addr &&
           a->pod_port == b->pod_port && a->outside_port == b->outside_port;
}

/* ---- reading ---- */

/* Both protocols begin with the ports. */
static bool read_packet(const uint8_t *bytes, size_t len, uint8_t protocol, size_t header_min,
                        struct egress_packet *out)
{
    struct iphdr head;
    if (len < sizeof head)
        return false;
    memcpy(&head, bytes, sizeof head);
    size_t head_len = (size_t)head.ihl * 4, whole = ntohs(head.tot_len);
    if (head.version != 4 || head.protocol != protocol || head_len < sizeof head || whole > len ||
        whole < head_len + header_min)
        return false;
    struct egress_flow *flow = &out->flow;
    *flow = (struct egress_flow){.pod = {head.saddr}, .outside = {head.daddr}};
    out->segment = bytes + head_len;
    out->len = whole - head_len;
    memcpy(&flow->pod_port, out->segment, sizeof flow->pod_port);
    memcpy(&flow->outside_port, out->segment + 2, sizeof flow->outside_port);
    head.ihl = sizeof head / 4;
    memcpy(out->excerpt, &head, sizeof head);
    memcpy(out->excerpt + sizeof head, out->segment, EGRESS_EXCERPT_LEN - sizeof head);
    return ml_pod_network_has(flow->pod) && ml_pod_network_is_outside(flow->outside) &&
           flow->pod_port && flow->outside_port;
}

bool egress_read_datagram(const uint8_t *bytes, size_t len, struct egress_packet *out)
{
    struct udphdr head;
    if (!read_packet(bytes, len, IPPROTO_UDP, sizeof head, out))
        return false;
    memcpy(&head, out->segment, sizeof head);
    size_t said = ntohs(head.len);
    if (said < sizeof head || said > out->len)
        return false;
    out->len = said;
    return true;
}

bool egress_read_syn(const uint8_t *bytes, size_t len, struct egress_packet *out)
{
    struct tcphdr head;
    if (!read_packet(bytes, len, IPPROTO_TCP, sizeof head, out))
        return false;
    memcpy(&head, out->segment, sizeof head);
    size_t head_len = (size_t)head.doff * 4;
    if (!head.syn || head.ack || head.rst || head.fin || head_len < sizeof head ||
        head_len > out->len)
        return false;
    out->len = head_len; /* bytes that come with it are sent again */
    return true;
}

/* ---- filters ---- */

#define LOAD(width, mode, at)    BPF_STMT(BPF_LD | (width) | (mode), (at))
#define IF_EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (yes), (no))
#define AND(mask)                BPF_STMT(BPF_ALU | BPF_AND | BPF_K, (mask))
#define RETURN(len)              BPF_STMT(BPF_RET | BPF_K, (len))
#define LOAD_MARK                LOAD(BPF_W, BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_MARK))
#define DESTINATION              16 /* of an IPv4 header */
#define FLAGS                    13 /* of a TCP header */
#define PREFIX_MASK              (~0U << (32 - ML_POD_NETWORK_PREFIX))
#define ALL                      UINT32_MAX

static bool attach(int fd, struct sock_filter *filter, size_t count)
{
    const struct sock_fprog program = {.len = (unsigned short)count, .filter = filter};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
}

bool egress_filter(int raw, bool syn_only)
{
    struct sock_filter filter[] = {
        LOAD_MARK,
        IF_EQUAL(ML_POD_NETWORK_MARK, 9, 0),
        LOAD(BPF_W, BPF_ABS, DESTINATION),
        AND(PREFIX_MASK),
        IF_EQUAL(ML_POD_NETWORK_PODS, 6, 0),
        IF_EQUAL(ML_POD_NETWORK_SERVICES, 5, 0),
        /* The header of TCP is behind that of IP. */
        BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
        LOAD(BPF_B, BPF_IND, FLAGS),
        AND(TH_SYN | TH_ACK),
        IF_EQUAL(TH_SYN, 0, 1),
        RETURN(ALL),
        RETURN(0),
    };
    if (!syn_only)
        filter[6] = (struct sock_filter)RETURN(ALL);
    return attach(raw, filter, ML_COUNT(filter));
}

bool egress_filter_listener(int listener)
{
    struct sock_filter filter[] = {
        LOAD(BPF_B, BPF_ABS, FLAGS),
        AND(TH_SYN | TH_ACK),
        IF_EQUAL(TH_SYN, 0, 2), /* what goes on with a connection passes */
        LOAD_MARK,
        IF_EQUAL(ML_POD_NETWORK_MARK, 0, 1),
        RETURN(ALL),
        RETURN(0),
    };
    return attach(listener, filter, ML_COUNT(filter));
}

/* ---- writing ---- */

/* RFC 1071. */
static uint32_t add_up(uint32_t sum, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;
    for (; len > 1; at += 2, len -= 2)
        sum += (uint32_t)at[0] << 8 | at[1];
    return len ? sum + ((uint32_t)at[0] << 8) : sum;
}

static uint16_t checksum_of(uint32_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return htons((uint16_t)~sum);
}

/* That of TCP and UDP, which covers the addresses, too. */
static uint16_t checksum_between(struct in_addr from, struct in_addr to, uint8_t protocol,
                                 const struct iovec parts[2])
{
    size_t len = parts[0].iov_len + parts[1].iov_len;
    uint32_t sum = add_up(protocol + (uint32_t)len, &from, sizeof from);
    sum = add_up(sum, &to, sizeof to);
    sum = add_up(sum, parts[0].iov_base, parts[0].iov_len); /* an even number */
    return checksum_of(add_up(sum, parts[1].iov_base, parts[1].iov_len));
}

/* The kernel writes the IPv4 header, and makes fragments where the packet is too long. `from` may
 * be none: then it is the node's. */
static void send_parts(int raw, struct in_addr from, struct in_addr to, struct iovec parts[2])
{
    union {
        struct cmsghdr head; /* for its alignment */
        char space[CMSG_SPACE(sizeof(struct in_pktinfo))];
    } control = {.space = {0}};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = to};
    struct msghdr message = {.msg_name = &at,
                             .msg_namelen = sizeof at,
                             .msg_iov = parts,
                             .msg_iovlen = 2,
                             .msg_control = control.space,
                             .msg_controllen = sizeof control.space};
    const struct in_pktinfo info = {.ipi_spec_dst = from};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = IPPROTO_IP;
    head->cmsg_type = IP_PKTINFO;
    head->cmsg_len = CMSG_LEN(sizeof info);
    memcpy(CMSG_DATA(head), &info, sizeof info);
    (void)sendmsg(raw, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void send_segment(int tcp, struct in_addr from, struct in_addr to, struct tcphdr *head,
                         struct iovec options)
{
    struct iovec parts[2] = {{head, sizeof *head}, options};
    head->check = 0;
    head->check = checksum_between(from, to, IPPROTO_TCP, parts);
    send_parts(tcp, from, to, parts);
}

void egress_send_syn(int tcp, const struct egress_flow *flow, const uint8_t *segment, size_t len)
{
    struct tcphdr head;
    ml_assert(len >= sizeof head);
    memcpy(&head, segment, sizeof head);
    send_segment(tcp, flow->pod, flow->outside, &head,
                 (struct iovec){(void *)(segment + sizeof head), len - sizeof head});
}

void egress_refuse_syn(int tcp, const struct egress_flow *flow, const uint8_t *segment)
{
    struct tcphdr syn;
    memcpy(&syn, segment, sizeof syn);
    struct tcphdr head = {.source = flow->outside_port,
                          .dest = flow->pod_port,
                          .ack_seq = htonl(ntohl(syn.seq) + 1),
                          .doff = sizeof head / 4,
                          .rst = 1,
                          .ack = 1};
    send_segment(tcp, flow->outside, flow->pod, &head, (struct iovec){NULL, 0});
}

void egress_send_datagram(int udp, const struct egress_flow *flow, const uint8_t *bytes, size_t len)
{
    if (len > DATAGRAM_MAX)
        return;
    struct udphdr head = {.source = flow->outside_port,
                          .dest = flow->pod_port,
                          .len = htons((uint16_t)(sizeof head + len))};
    struct iovec parts[2] = {{&head, sizeof head}, {(void *)bytes, len}};
    uint16_t checksum = checksum_between(flow->outside, flow->pod, IPPROTO_UDP, parts);
    head.check = checksum ? checksum : 0xffff; /* 0 means that there is none */
    send_parts(udp, flow->outside, flow->pod, parts);
}

void egress_send_unreachable(int icmp, const struct egress_flow *flow,
                             const uint8_t excerpt[EGRESS_EXCERPT_LEN], uint8_t code)
{
    struct icmphdr head = {.type = ICMP_DEST_UNREACH, .code = code};
    uint32_t sum = add_up(0, &head, sizeof head);
    head.checksum = checksum_of(add_up(sum, excerpt, EGRESS_EXCERPT_LEN));
    struct iovec parts[2] = {{&head, sizeof head}, {(void *)excerpt, EGRESS_EXCERPT_LEN}};
    send_parts(icmp, (struct in_addr){0}, flow->pod, parts);
}
