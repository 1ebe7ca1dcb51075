/* Any bytes as a packet that a pod has sent outside: what is read of it lies in it, and is what the
 * way out counts on. */
#include "cluster/host/egress.h"
#include "cluster/host/pod_network.h"

#include <netinet/tcp.h>
#include <netinet/udp.h>

/* Reads all of what was found, for the sanitizer, and checks what both kinds have in common. */
static void check_packet(const struct egress_packet *packet, const uint8_t *data, size_t size,
                         size_t least)
{
    unsigned sum = 0;
    ml_assert(packet->len >= least);
    ml_assert(packet->segment >= data + 20 && packet->segment + packet->len <= data + size);
    for (size_t i = 0; i < packet->len; i++)
        sum += packet->segment[i];
    for (size_t i = 0; i < EGRESS_EXCERPT_LEN; i++)
        sum += packet->excerpt[i];
    ml_assert(sum > 0); /* there are ports */
    ml_assert(ml_pod_network_has(packet->flow.pod));
    ml_assert(!ml_pod_network_has(packet->flow.outside));
    ml_assert(packet->flow.pod_port && packet->flow.outside_port);
    ml_assert(egress_flow_equal(&packet->flow, &packet->flow));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct egress_packet packet;
    if (egress_read_datagram(data, size, &packet))
        check_packet(&packet, data, size, sizeof(struct udphdr));
    if (egress_read_syn(data, size, &packet)) {
        check_packet(&packet, data, size, sizeof(struct tcphdr));
        ml_assert(packet.len <= EGRESS_SYN_MAX);
    }
    return 0;
}
