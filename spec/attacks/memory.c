#include "memory.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#define MIB   (INT64_C(1) << 20)
#define LARGE (64 << 10) /* bytes */

/* One script at its 16 MiB, its successor while both are there, and what the host itself needs. */
#define ALLOWED_MIB 56

#ifdef MOONLOOP_CPU_STRETCH
#define SANITIZER_FACTOR 3  /* redzones around each of Lua's small objects */
#define SANITIZER_MIB    64 /* what was freed and is kept back, to see who uses it */
#else
#define SANITIZER_FACTOR 1
#define SANITIZER_MIB    0
#endif

static int64_t read_pages(void)
{
    char text[128];
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    long long size = 0, resident = 0;
    text[got > 0 ? got : 0] = '\0';
    sscanf(text, "%lld %lld", &size, &resident);
    return (int64_t)resident * sysconf(_SC_PAGESIZE);
}

/* The most since it was last forgotten. */
static int64_t read_peak(void)
{
    char text[4096];
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    text[got > 0 ? got : 0] = '\0';
    const char *line = strstr(text, "VmHWM:");
    return line ? strtoll(line + 6, NULL, 10) * 1024 : 0;
}

static void forget_peak(void)
{
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    ssize_t put = write(fd, "5", 1);
    (void)put;
    close(fd);
}

/* glibc keeps freed blocks unless they are large, and what is large grows with what is freed. Then
 * the server would keep blocks that the operator freed, and they would still count as the
 * operator's. A threshold that is set does not grow. */
void memory_start(struct memory *memory)
{
    mallopt(M_MMAP_THRESHOLD, LARGE);
    memory->start = read_pages();
    forget_peak();
}

void memory_end(struct memory *memory)
{
    int64_t grown = read_peak() - memory->start - memory->server;
    memory->grown = ML_MAX(memory->grown, grown);
}

void memory_server_begins(struct memory *memory)
{
    memory->before = read_pages();
}

/* The peak is only the server's if it has grown. */
void memory_server_ends(struct memory *memory)
{
    int64_t now = read_pages();
    memory->server += now - memory->before;
    if (now != memory->before)
        forget_peak();
}

int64_t memory_allowed(int64_t mib)
{
    return (mib > 0 ? mib : ALLOWED_MIB) * MIB * SANITIZER_FACTOR + SANITIZER_MIB * MIB;
}
