/* Sends on from the machine whatever pods send to addresses outside of the cluster.
 *
 * Connections: a raw socket gets each SYN that a pod sends outside; the kernel has dropped it,
 * as nothing listens there. The machine connects to where it goes. Then a listener is opened
 * at that address and port, the SYN is sent once more, and each connection that the listener
 * accepts goes to the relay, with the machine's connection.
 *
 * Datagrams: a raw socket gets each one that a pod sends outside; for each pair of a pod's port
 * and a place outside, a flow, the machine has a connected socket, so that answers come from that
 * place only. They are sent to the pod in its name. */
#include "cluster/host/egress.h"

#include <errno.h>
#include <event2/event.h>
#include <linux/filter.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_AT_ONCE 64 /* packets before others have their turn */
#define DATAGRAM_MAX (65535 - 20 - 8)

bool egress_flow_equal(const struct egress_flow *a, const struct egress_flow *b)
{
    return a->pod.s_addr == b->pod.s_addr && a->outside.s_addr == b->outside.s_addr &&
           a->pod_port == b->pod_port && a->outside_port == b->outside_port;
}

/* ---- packets: reading ---- */

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

/* ---- packets: filters ---- */

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

/* Attaches a filter to a raw socket: it then gets only packets to the outside that the host itself
 * has not sent, and with `syn_only` of TCP only those that begin a connection. */
static bool attach_filter(int raw, bool syn_only)
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

/* A listening socket then accepts only connections whose beginning the host has sent. */
static bool attach_listener_filter(int listener)
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

/* ---- packets: writing. One that cannot be sent is lost, as packets may be ---- */

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

/* Once more what the pod has sent; now it may be accepted. */
static void send_syn(int tcp, const struct egress_flow *flow, const uint8_t *segment, size_t len)
{
    struct tcphdr head;
    ml_assert(len >= sizeof head);
    memcpy(&head, segment, sizeof head);
    send_segment(tcp, flow->pod, flow->outside, &head,
                 (struct iovec){(void *)(segment + sizeof head), len - sizeof head});
}

static void refuse_syn(int tcp, const struct egress_flow *flow, const uint8_t *segment)
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

static void send_datagram(int udp, const struct egress_flow *flow, const uint8_t *bytes, size_t len)
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

/* Destination unreachable, with a code of ICMP; `excerpt` is that of the packet that it is about.
 */
static void send_unreachable(int icmp, const struct egress_flow *flow,
                             const uint8_t excerpt[EGRESS_EXCERPT_LEN], uint8_t code)
{
    struct icmphdr head = {.type = ICMP_DEST_UNREACH, .code = code};
    uint32_t sum = add_up(0, &head, sizeof head);
    head.checksum = checksum_of(add_up(sum, excerpt, EGRESS_EXCERPT_LEN));
    struct iovec parts[2] = {{&head, sizeof head}, {(void *)excerpt, EGRESS_EXCERPT_LEN}};
    send_parts(icmp, (struct in_addr){0}, flow->pod, parts);
}

/* ---- connections and datagrams ---- */

/* How ICMP says what errno says of a place; -1: not at all. */
static int icmp_code_of(int problem)
{
    switch (problem) {
    case ENETUNREACH:
        return ICMP_NET_UNREACH;
    case EHOSTUNREACH:
    case EHOSTDOWN:
        return ICMP_HOST_UNREACH;
    case EACCES:
    case EPERM:
        return ICMP_PKT_FILTERED;
    default:
        return -1;
    }
}

/* A raw socket in the pods' network that gets the packets that pods send outside, of TCP only those
 * that begin a connection. The caller closes it. */
static int open_raw_socket(struct ml_pod_network *network, int protocol, int *out_fd,
                           struct ml_err *err)
{
    const struct ml_pod_socket spec = {.type = SOCK_RAW, .protocol = protocol};
    int r = ml_pod_network_socket(network, &spec, out_fd, err);
    if (r == 0 && !attach_filter(*out_fd, protocol == IPPROTO_TCP))
        return ml_err_set(err, ML_EIO, "attach a filter: %s", strerror(errno));
    return r;
}

/* ---- datagrams ---- */

#define PACKET_MAX 65536
#define SWEEP_NS   (5 * ML_NS_PER_S)

struct datagrams {
    struct ml_loop *loop;
    int udp, icmp; /* raw */
    struct ml_loop_watch *sent;
    struct ml_list flows; /* the one that was used last is last */
    size_t flow_count;
    struct ml_timer sweep;
};

struct flow {
    struct ml_list node;
    struct datagrams *all;
    struct egress_flow way;
    uint8_t excerpt[EGRESS_EXCERPT_LEN]; /* of the last one that was sent */
    int fd;
    struct ml_loop_watch *watch;
    int64_t used_ns;
};

static int64_t now_ns(const struct datagrams *all)
{
    return ml_clock_monotonic(ml_loop_clock(all->loop));
}

static void flow_free(struct flow *flow)
{
    ml_loop_watch_free(flow->watch);
    ml_close_fd(&flow->fd);
    ml_list_remove(&flow->node);
    flow->all->flow_count--;
    free(flow);
}

static void flow_used(struct flow *flow)
{
    flow->used_ns = now_ns(flow->all);
    ml_list_remove(&flow->node);
    ml_list_push(&flow->all->flows, &flow->node);
}

/* Ends those that were quiet for long. */
static void sweep(void *context)
{
    struct datagrams *all = context;
    int64_t since_ns = now_ns(all) - ML_EGRESS_QUIET_NS;
    ml_list_each_entry (struct flow, flow, &all->flows)
        if (flow->used_ns <= since_ns)
            flow_free(flow);
    if (all->flow_count)
        ml_timer_start(&all->sweep, SWEEP_NS);
}

/* ---- answers ---- */

/* The place has refused what was sent: so the pod is told. */
static void tell_problem(const struct flow *flow, int problem)
{
    int code = problem == ECONNREFUSED ? ICMP_PORT_UNREACH : icmp_code_of(problem);
    if (code >= 0)
        send_unreachable(flow->all->icmp, &flow->way, flow->excerpt, (uint8_t)code);
}

static void on_answers(void *context)
{
    static uint8_t bytes[PACKET_MAX];
    struct flow *flow = context;
    for (int i = 0; i < READ_AT_ONCE; i++) {
        ssize_t len = recv(flow->fd, bytes, sizeof bytes, 0);
        if (len < 0 && errno != EAGAIN && errno != EINTR)
            tell_problem(flow, errno);
        if (len < 0)
            return;
        flow_used(flow);
        send_datagram(flow->all->udp, &flow->way, bytes, (size_t)len);
    }
}

/* ---- what pods send ---- */

static struct flow *flow_at(struct datagrams *all, const struct egress_flow *way)
{
    ml_list_each_entry (struct flow, flow, &all->flows)
        if (egress_flow_equal(&flow->way, way))
            return flow;
    return NULL;
}

/* Makes room for a flow of this pod: of its own, if it has many, else of all, the oldest goes. */
static void make_room(struct datagrams *all, struct in_addr pod)
{
    struct flow *oldest = NULL, *oldest_of_pod = NULL;
    size_t of_pod = 0;
    ml_list_each_entry (struct flow, flow, &all->flows) {
        bool is_of_pod = flow->way.pod.s_addr == pod.s_addr;
        of_pod += is_of_pod;
        if (!oldest)
            oldest = flow;
        if (is_of_pod && !oldest_of_pod)
            oldest_of_pod = flow;
    }
    if (of_pod >= ML_EGRESS_POD_FLOWS_MAX)
        flow_free(oldest_of_pod);
    else if (all->flow_count >= ML_EGRESS_FLOWS_MAX)
        flow_free(oldest);
}

/* NULL: the machine cannot send there; the pod has been told. */
static struct flow *flow_new(struct datagrams *all, const struct egress_packet *packet)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_addr = packet->flow.outside,
                                   .sin_port = packet->flow.outside_port};
    make_room(all, packet->flow.pod);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof to) < 0) {
        struct flow refused = {.all = all, .way = packet->flow};
        memcpy(refused.excerpt, packet->excerpt, sizeof refused.excerpt);
        tell_problem(&refused, errno);
        ml_close_fd(&fd);
    }
    if (fd < 0)
        return NULL;
    struct flow *flow = ml_new(struct flow);
    *flow = (struct flow){.all = all, .way = packet->flow, .fd = fd};
    ml_list_push(&all->flows, &flow->node);
    all->flow_count++;
    flow->watch = ml_loop_watch_fd(all->loop, fd, on_answers, flow);
    if (!ml_timer_active(&all->sweep))
        ml_timer_start(&all->sweep, SWEEP_NS);
    return flow;
}

static void send_on(struct datagrams *all, const struct egress_packet *packet)
{
    struct flow *flow = flow_at(all, &packet->flow);
    if (!flow)
        flow = flow_new(all, packet);
    if (!flow)
        return;
    flow_used(flow);
    memcpy(flow->excerpt, packet->excerpt, sizeof flow->excerpt);
    const size_t head = sizeof(struct udphdr);
    if (send(flow->fd, packet->segment + head, packet->len - head, MSG_NOSIGNAL) < 0)
        tell_problem(flow, errno);
}

static void on_sent(void *context)
{
    static uint8_t bytes[PACKET_MAX];
    struct datagrams *all = context;
    for (int i = 0; i < READ_AT_ONCE; i++) {
        struct egress_packet packet;
        ssize_t len = recv(all->udp, bytes, sizeof bytes, 0);
        if (len < 0)
            return;
        if (egress_read_datagram(bytes, (size_t)len, &packet))
            send_on(all, &packet);
    }
}

/* `icmp` is a raw socket, borrowed. */
static int datagrams_new(struct ml_loop *loop, struct ml_pod_network *network, int icmp,
                         struct datagrams **out, struct ml_err *err)
{
    int udp = -1;
    if (open_raw_socket(network, IPPROTO_UDP, &udp, err) < 0) {
        ml_close_fd(&udp);
        return err->kind;
    }
    struct datagrams *all = ml_new(struct datagrams);
    *all = (struct datagrams){.loop = loop, .udp = udp, .icmp = icmp};
    ml_list_init(&all->flows);
    ml_timer_init(&all->sweep, loop, sweep, all);
    all->sent = ml_loop_watch_fd(loop, udp, on_sent, all);
    *out = all;
    return 0;
}

static void datagrams_free(struct datagrams *datagrams)
{
    if (!datagrams)
        return;
    while (!ml_list_empty(&datagrams->flows))
        flow_free(ml_container_of(datagrams->flows.next, struct flow, node));
    ml_timer_stop(&datagrams->sweep);
    ml_loop_watch_free(datagrams->sent);
    ml_close_fd(&datagrams->udp);
    free(datagrams);
}

/* ---- connections ---- */

#define SYN_PACKET_MAX 4096              /* with what an eager client sends along */
#define ADMITTED_NS    (5 * ML_NS_PER_S) /* the pod's kernel answers at once, if it still wants to */

struct ml_egress {
    struct ml_loop *loop;
    struct ml_pod_network *network;
    struct ml_relay *relay;
    int tcp, icmp; /* raw */
    struct ml_loop_watch *tcp_watch;
    struct ml_list attempts, listeners;
    size_t attempt_count;
    struct datagrams *datagrams;
};

/* Listens at a place outside, for connections that wait to be accepted there. */
struct listener {
    struct ml_list node;
    struct ml_egress *egress;
    struct in_addr address;
    in_port_t port;
    int fd;
    struct ml_loop_watch *watch;
    size_t waiting;
};

struct attempt {
    struct ml_list node;
    struct ml_egress *egress;
    struct egress_flow flow;
    uint8_t excerpt[EGRESS_EXCERPT_LEN], syn[EGRESS_SYN_MAX];
    size_t syn_len;
    int target; /* the machine's socket */
    struct event *connect_event;
    struct ml_timer expiry;
    struct listener *listener; /* NULL: not connected yet */
};

/* ---- ends ---- */

static void listener_free(struct listener *listener)
{
    ml_loop_watch_free(listener->watch);
    ml_close_fd(&listener->fd);
    ml_list_remove(&listener->node);
    free(listener);
}

static void attempt_free(struct attempt *attempt)
{
    struct listener *listener = attempt->listener;
    if (listener && --listener->waiting == 0)
        listener_free(listener);
    if (attempt->connect_event)
        event_free(attempt->connect_event);
    ml_timer_stop(&attempt->expiry);
    ml_close_fd(&attempt->target);
    ml_list_remove(&attempt->node);
    attempt->egress->attempt_count--;
    free(attempt);
}

static void expire(void *context)
{
    attempt_free(context);
}

/* The pod sees what the machine saw. After ETIMEDOUT it sees nothing: its own time is out. */
static void refuse(struct attempt *attempt, int problem)
{
    const struct ml_egress *egress = attempt->egress;
    int code = icmp_code_of(problem);
    if (code >= 0)
        send_unreachable(egress->icmp, &attempt->flow, attempt->excerpt, (uint8_t)code);
    else if (problem != ETIMEDOUT)
        refuse_syn(egress->tcp, &attempt->flow, attempt->syn);
    attempt_free(attempt);
}

/* ---- listeners ---- */

static struct attempt *attempt_at(struct ml_egress *egress, const struct egress_flow *flow)
{
    ml_list_each_entry (struct attempt, attempt, &egress->attempts)
        if (egress_flow_equal(&attempt->flow, flow))
            return attempt;
    return NULL;
}

static void pass_on(const struct listener *listener, int fd, const struct sockaddr_in *client)
{
    const struct egress_flow flow = {.pod = client->sin_addr,
                                     .pod_port = client->sin_port,
                                     .outside = listener->address,
                                     .outside_port = listener->port};
    struct attempt *attempt = attempt_at(listener->egress, &flow);
    if (!attempt || attempt->listener != listener) {
        close(fd);
        return;
    }
    event_free(ml_take(&attempt->connect_event)); /* before its descriptor is another's */
    ml_relay_join(listener->egress->relay, fd, attempt->target);
    attempt->target = -1;
    attempt_free(attempt);
}

/* Frees the listener, too. */
static void refuse_all(struct listener *listener)
{
    struct ml_egress *egress = listener->egress;
    size_t left = listener->waiting;
    ml_list_each_entry (struct attempt, attempt, &egress->attempts)
        if (left && attempt->listener == listener) {
            left--;
            refuse(attempt, ECONNRESET);
        }
}

static void on_listener(void *context)
{
    struct listener *listener = context;
    struct sockaddr_in client;
    socklen_t len = sizeof client;
    int fd = accept4(listener->fd, (struct sockaddr *)&client, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0)
        pass_on(listener, fd, &client);
    else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
        refuse_all(listener);
}

static struct listener *listener_at(struct ml_egress *egress, const struct egress_flow *flow)
{
    ml_list_each_entry (struct listener, listener, &egress->listeners)
        if (listener->address.s_addr == flow->outside.s_addr &&
            listener->port == flow->outside_port)
            return listener;
    const struct ml_pod_socket spec = {.type = SOCK_STREAM,
                                       .address = flow->outside,
                                       .port = ntohs(flow->outside_port),
                                       .is_outside = true};
    struct ml_err err = ML_ERR_INIT;
    int fd = -1;
    if (ml_pod_network_socket(egress->network, &spec, &fd, &err) < 0 ||
        !attach_listener_filter(fd)) {
        ml_close_fd(&fd);
        return NULL;
    }
    struct listener *listener = ml_new(struct listener);
    *listener = (struct listener){
        .egress = egress, .address = flow->outside, .port = flow->outside_port, .fd = fd};
    listener->watch = ml_loop_watch_fd(egress->loop, listener->fd, on_listener, listener);
    ml_list_push(&egress->listeners, &listener->node);
    return listener;
}

/* ---- attempts ---- */

static void on_connected(evutil_socket_t fd, short what, void *context)
{
    struct attempt *attempt = context;
    struct ml_egress *egress = attempt->egress;
    int problem = 0;
    socklen_t len = sizeof problem;
    (void)what;
    if (getsockopt((int)fd, SOL_SOCKET, SO_ERROR, &problem, &len) < 0)
        problem = errno;
    if (!problem && !ml_relay_has_room(egress->relay))
        problem = ECONNRESET;
    struct listener *listener = problem ? NULL : listener_at(egress, &attempt->flow);
    if (!listener) {
        refuse(attempt, problem ? problem : ECONNRESET);
        return;
    }
    attempt->listener = listener;
    listener->waiting++;
    ml_timer_start(&attempt->expiry, ADMITTED_NS);
    send_syn(egress->tcp, &attempt->flow, attempt->syn, attempt->syn_len);
}

static bool has_room(const struct ml_egress *egress, struct in_addr pod)
{
    size_t of_pod = 0;
    ml_list_each_entry (struct attempt, attempt, &egress->attempts)
        of_pod += attempt->flow.pod.s_addr == pod.s_addr;
    return egress->attempt_count < ML_EGRESS_ATTEMPTS_MAX && of_pod < ML_EGRESS_POD_ATTEMPTS_MAX;
}

static void attempt_begin(struct ml_egress *egress, const struct egress_packet *packet)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_addr = packet->flow.outside,
                                   .sin_port = packet->flow.outside_port};
    struct attempt *attempt = ml_new(struct attempt);
    *attempt = (struct attempt){.egress = egress, .flow = packet->flow, .syn_len = packet->len};
    ml_assert(packet->len <= sizeof attempt->syn);
    memcpy(attempt->syn, packet->segment, packet->len);
    memcpy(attempt->excerpt, packet->excerpt, sizeof attempt->excerpt);
    ml_timer_init(&attempt->expiry, egress->loop, expire, attempt);
    ml_list_push(&egress->attempts, &attempt->node);
    egress->attempt_count++;
    attempt->target = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (attempt->target < 0 ||
        (connect(attempt->target, (const struct sockaddr *)&to, sizeof to) < 0 &&
         errno != EINPROGRESS)) {
        refuse(attempt, errno);
        return;
    }
    attempt->connect_event = event_new(ml_loop_base(egress->loop), attempt->target, EV_WRITE,
                                       on_connected, attempt);
    ml_assert(attempt->connect_event != NULL);
    event_add(attempt->connect_event, NULL);
}

static void on_tcp_packet(void *context)
{
    struct ml_egress *egress = context;
    uint8_t bytes[SYN_PACKET_MAX];
    for (int i = 0; i < READ_AT_ONCE; i++) {
        struct egress_packet packet;
        ssize_t len = recv(egress->tcp, bytes, sizeof bytes, 0);
        if (len < 0)
            return;
        /* A pod that has no answer yet asks again: the attempt is there then. */
        if (egress_read_syn(bytes, (size_t)len, &packet) && !attempt_at(egress, &packet.flow) &&
            has_room(egress, packet.flow.pod))
            attempt_begin(egress, &packet);
    }
}

/* ---- egress ---- */

int ml_egress_new(struct ml_loop *loop, struct ml_pod_network *network, struct ml_relay *relay,
                  struct ml_egress **out, struct ml_err *err)
{
    struct ml_egress *egress = ml_new(struct ml_egress);
    *egress = (struct ml_egress){
        .loop = loop, .network = network, .relay = relay, .tcp = -1, .icmp = -1};
    ml_list_init(&egress->attempts);
    ml_list_init(&egress->listeners);
    if (open_raw_socket(network, IPPROTO_TCP, &egress->tcp, err) < 0 ||
        open_raw_socket(network, IPPROTO_ICMP, &egress->icmp, err) < 0 ||
        datagrams_new(loop, network, egress->icmp, &egress->datagrams, err) < 0) {
        ml_egress_free(egress);
        return err->kind;
    }
    egress->tcp_watch = ml_loop_watch_fd(loop, egress->tcp, on_tcp_packet, egress);
    *out = egress;
    return 0;
}

void ml_egress_free(struct ml_egress *egress)
{
    if (!egress)
        return;
    while (!ml_list_empty(&egress->attempts)) /* listeners go with their last attempt */
        attempt_free(ml_container_of(egress->attempts.next, struct attempt, node));
    datagrams_free(egress->datagrams);
    ml_loop_watch_free(egress->tcp_watch);
    ml_close_fd(&egress->tcp);
    ml_close_fd(&egress->icmp);
    free(egress);
}
