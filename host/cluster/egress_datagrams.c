/* Datagrams on their way out. A raw socket gets each one that a pod sends outside; for each pair of
 * a pod's port and a place outside, a flow, the machine has a connected socket, so that answers
 * come from that place only. They are sent to the pod in its name. */
#include <errno.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster/egress_internal.h"

#define PACKET_MAX 65536
#define SWEEP_NS   (5 * ML_NS_PER_S)

struct egress_datagrams {
    struct ml_loop *loop;
    int udp, icmp; /* raw */
    struct ml_loop_watch *sent;
    struct ml_list flows; /* the one that was used last is last */
    size_t flow_count;
    struct ml_timer sweep;
};

struct flow {
    struct ml_list node;
    struct egress_datagrams *all;
    struct egress_flow way;
    uint8_t excerpt[EGRESS_EXCERPT_LEN]; /* of the last one that was sent */
    int fd;
    struct ml_loop_watch *watch;
    int64_t used_ns;
};

static int64_t now_ns(const struct egress_datagrams *all)
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
    struct egress_datagrams *all = context;
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
    int code = problem == ECONNREFUSED ? ICMP_PORT_UNREACH : egress_code_of(problem);
    if (code >= 0)
        egress_send_unreachable(flow->all->icmp, &flow->way, flow->excerpt, (uint8_t)code);
}

static void on_answers(void *context)
{
    static uint8_t bytes[PACKET_MAX];
    struct flow *flow = context;
    for (int i = 0; i < EGRESS_READ_AT_ONCE; i++) {
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

static struct flow *flow_at(struct egress_datagrams *all, const struct egress_flow *way)
{
    ml_list_each_entry (struct flow, flow, &all->flows)
        if (egress_flow_equal(&flow->way, way))
            return flow;
    return NULL;
}

/* Makes room for a flow of this pod: of its own, if it has many, else of all, the oldest goes. */
static void make_room(struct egress_datagrams *all, struct in_addr pod)
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
static struct flow *flow_new(struct egress_datagrams *all, const struct egress_packet *packet)
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

static void send_on(struct egress_datagrams *all, const struct egress_packet *packet)
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
    struct egress_datagrams *all = context;
    for (int i = 0; i < EGRESS_READ_AT_ONCE; i++) {
        struct egress_packet packet;
        ssize_t len = recv(all->udp, bytes, sizeof bytes, 0);
        if (len < 0)
            return;
        if (egress_read_datagram(bytes, (size_t)len, &packet))
            send_on(all, &packet);
    }
}

int egress_datagrams_new(struct ml_loop *loop, struct ml_pod_network *network, int icmp,
                         struct egress_datagrams **out, struct ml_err *err)
{
    int udp = -1;
    if (egress_open(network, IPPROTO_UDP, &udp, err) < 0) {
        ml_close_fd(&udp);
        return err->kind;
    }
    struct egress_datagrams *all = ml_new(struct egress_datagrams);
    *all = (struct egress_datagrams){.loop = loop, .udp = udp, .icmp = icmp};
    ml_list_init(&all->flows);
    ml_timer_init(&all->sweep, loop, sweep, all);
    all->sent = ml_loop_watch_fd(loop, udp, on_sent, all);
    *out = all;
    return 0;
}

void egress_datagrams_free(struct egress_datagrams *datagrams)
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
