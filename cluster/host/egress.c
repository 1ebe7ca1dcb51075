/* Sends on from the machine whatever pods send to addresses outside of the cluster.
 *
 * Connections: a raw socket gets each SYN that a pod sends outside; the kernel has dropped it,
 * as nothing listens there. The machine connects to where it goes. Then a socket, a door, listens
 * at that address and port, the SYN is sent once more, and each connection that the door accepts
 * goes to the relay, with the machine's connection.
 *
 * Datagrams: a raw socket gets each one that a pod sends outside; for each pair of a pod's port
 * and a place outside, a flow, the machine has a connected socket, so that answers come from that
 * place only. They are sent to the pod in its name. */
#include "cluster/host/egress.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster/host/egress_packet.h"

#define READ_AT_ONCE 64 /* packets before others have their turn */

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
    if (r == 0 && !egress_filter(*out_fd, protocol == IPPROTO_TCP))
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
        egress_send_unreachable(flow->all->icmp, &flow->way, flow->excerpt, (uint8_t)code);
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
        egress_send_datagram(flow->all->udp, &flow->way, bytes, (size_t)len);
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
    struct ml_list attempts, doors;
    size_t attempt_count;
    struct datagrams *datagrams;
};

/* Listens at a place outside, for connections that wait to be accepted there. */
struct door {
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
    struct door *door; /* NULL: not connected yet */
};

/* ---- ends ---- */

static void door_free(struct door *door)
{
    ml_loop_watch_free(door->watch);
    ml_close_fd(&door->fd);
    ml_list_remove(&door->node);
    free(door);
}

static void attempt_free(struct attempt *attempt)
{
    struct door *door = attempt->door;
    if (door && --door->waiting == 0)
        door_free(door);
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
        egress_send_unreachable(egress->icmp, &attempt->flow, attempt->excerpt, (uint8_t)code);
    else if (problem != ETIMEDOUT)
        egress_refuse_syn(egress->tcp, &attempt->flow, attempt->syn);
    attempt_free(attempt);
}

/* ---- doors ---- */

static struct attempt *attempt_at(struct ml_egress *egress, const struct egress_flow *flow)
{
    ml_list_each_entry (struct attempt, attempt, &egress->attempts)
        if (egress_flow_equal(&attempt->flow, flow))
            return attempt;
    return NULL;
}

static void pass_on(const struct door *door, int fd, const struct sockaddr_in *client)
{
    const struct egress_flow flow = {.pod = client->sin_addr,
                                     .pod_port = client->sin_port,
                                     .outside = door->address,
                                     .outside_port = door->port};
    struct attempt *attempt = attempt_at(door->egress, &flow);
    if (!attempt || attempt->door != door) {
        close(fd);
        return;
    }
    event_free(ml_take(&attempt->connect_event)); /* before its descriptor is another's */
    ml_relay_join(door->egress->relay, fd, attempt->target);
    attempt->target = -1;
    attempt_free(attempt);
}

/* Frees the door, too. */
static void refuse_all(struct door *door)
{
    struct ml_egress *egress = door->egress;
    size_t left = door->waiting;
    ml_list_each_entry (struct attempt, attempt, &egress->attempts)
        if (left && attempt->door == door) {
            left--;
            refuse(attempt, ECONNRESET);
        }
}

static void on_door(void *context)
{
    struct door *door = context;
    struct sockaddr_in client;
    socklen_t len = sizeof client;
    int fd = accept4(door->fd, (struct sockaddr *)&client, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0)
        pass_on(door, fd, &client);
    else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
        refuse_all(door);
}

static struct door *door_to(struct ml_egress *egress, const struct egress_flow *flow)
{
    ml_list_each_entry (struct door, door, &egress->doors)
        if (door->address.s_addr == flow->outside.s_addr && door->port == flow->outside_port)
            return door;
    const struct ml_pod_socket spec = {.type = SOCK_STREAM,
                                       .address = flow->outside,
                                       .port = ntohs(flow->outside_port),
                                       .is_outside = true};
    struct ml_err err = ML_ERR_INIT;
    int fd = -1;
    if (ml_pod_network_socket(egress->network, &spec, &fd, &err) < 0 ||
        !egress_filter_listener(fd)) {
        ml_close_fd(&fd);
        return NULL;
    }
    struct door *door = ml_new(struct door);
    *door = (struct door){
        .egress = egress, .address = flow->outside, .port = flow->outside_port, .fd = fd};
    door->watch = ml_loop_watch_fd(egress->loop, door->fd, on_door, door);
    ml_list_push(&egress->doors, &door->node);
    return door;
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
    struct door *door = problem ? NULL : door_to(egress, &attempt->flow);
    if (!door) {
        refuse(attempt, problem ? problem : ECONNRESET);
        return;
    }
    attempt->door = door;
    door->waiting++;
    ml_timer_start(&attempt->expiry, ADMITTED_NS);
    egress_send_syn(egress->tcp, &attempt->flow, attempt->syn, attempt->syn_len);
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
    ml_list_init(&egress->doors);
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
    while (!ml_list_empty(&egress->attempts)) /* doors go with their last attempt */
        attempt_free(ml_container_of(egress->attempts.next, struct attempt, node));
    datagrams_free(egress->datagrams);
    ml_loop_watch_free(egress->tcp_watch);
    ml_close_fd(&egress->tcp);
    ml_close_fd(&egress->icmp);
    free(egress);
}
