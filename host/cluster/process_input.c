/* Called by process.c. */
#include "cluster/process_internal.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <unistd.h>

void process_input_init(struct process_input *input, struct ml_loop *loop,
                        void (*drained)(void *context), void *context)
{
    *input = (struct process_input){
        .loop = loop, .fd = -1, .bytes = evbuffer_new(), .drained = drained, .context = context};
    ml_assert(input->bytes != NULL);
}

void process_input_fini(struct process_input *input)
{
    if (input->writable)
        event_free(ml_take(&input->writable));
    if (input->bytes)
        evbuffer_free(ml_take(&input->bytes));
    if (input->fd >= 0)
        close(input->fd);
    input->fd = -1;
}

static size_t count_waiting(const struct process_input *input)
{
    return input->bytes ? evbuffer_get_length(input->bytes) : 0;
}

/* Writes as much as is taken. False when nobody takes any more. */
static bool write_waiting(struct process_input *input)
{
    int written = 1;
    while (count_waiting(input) > 0 && written > 0)
        written = evbuffer_write(input->bytes, input->fd);
    return written > 0 || errno == EAGAIN || errno == EINTR;
}

static void flush_input(struct process_input *input)
{
    if (input->fd < 0)
        return;
    bool is_taken = write_waiting(input);
    if (!is_taken || (input->is_ending && count_waiting(input) == 0))
        process_input_fini(input);
    else if (count_waiting(input) > 0)
        event_add(input->writable, NULL);
}

static void tell_drained(struct process_input *input)
{
    if (!input->is_told || count_waiting(input) >= ML_PROCESS_INPUT_LOW)
        return;
    input->is_told = false;
    if (input->drained)
        input->drained(input->context);
}

static void on_input_writable(evutil_socket_t fd, short what, void *context)
{
    struct process_input *input = context;
    (void)fd, (void)what;
    flush_input(input);
    tell_drained(input);
}

void process_input_connect(struct process_input *input, int fd)
{
    if (!input->bytes) {
        close(fd);
        return;
    }
    input->fd = fd;
    input->writable = event_new(ml_loop_base(input->loop), fd, EV_WRITE, on_input_writable, input);
    ml_assert(input->writable != NULL);
    if (count_waiting(input) > 0 || input->is_ending)
        event_active(input->writable, EV_WRITE, 0); /* from the loop, as drained() has to be */
}

size_t process_input_write(struct process_input *input, struct ml_str bytes)
{
    size_t before = count_waiting(input);
    if (!input->bytes || input->is_ending)
        return 0;
    if (bytes.len > ML_PROCESS_INPUT_MAX - before)
        return ML_PROCESS_INPUT_FULL;
    evbuffer_add(input->bytes, bytes.ptr, bytes.len);
    if (before == 0)
        flush_input(input);
    size_t waiting = count_waiting(input);
    input->is_told |= waiting >= ML_PROCESS_INPUT_LOW;
    return waiting;
}

void process_input_end(struct process_input *input)
{
    input->is_ending = true;
    if (count_waiting(input) == 0)
        flush_input(input);
}

void process_input_break(struct process_input *input)
{
    process_input_fini(input);
    tell_drained(input);
}
