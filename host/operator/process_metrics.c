#include "operator/process_metrics.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static double resident_bytes(void)
{
    long pages_total = 0, pages = 0;
    FILE *statm = fopen("/proc/self/statm", "re");
    if (!statm)
        return 0;
    if (fscanf(statm, "%ld %ld", &pages_total, &pages) != 2)
        pages = 0;
    fclose(statm);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static double cpu_seconds(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) < 0)
        return 0;
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static double max_descriptors(void)
{
    struct rlimit limit = {0};
    getrlimit(RLIMIT_NOFILE, &limit);
    return (double)limit.rlim_cur;
}

static double open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    if (!dir)
        return errno == EMFILE ? max_descriptors() : 0;
    int count = -3; /* ".", "..", and the descriptor of this very listing */
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

static void collect(void *context)
{
    const struct ml_process_metrics *self = context;
    struct ml_metrics *metrics = self->metrics;
    ml_metric_set(ml_metric_only(ml_metrics_gauge(metrics, "process_resident_memory_bytes",
                                                  "Resident memory.", NULL)),
                  resident_bytes());
    ml_metric_set(ml_metric_only(ml_metrics_gauge(metrics, "process_open_fds",
                                                  "Open file descriptors.", NULL)),
                  open_descriptors());
    ml_metric_set(ml_metric_only(ml_metrics_gauge(metrics, "process_max_fds",
                                                  "Limit of open file descriptors.", NULL)),
                  max_descriptors());
    struct ml_metric *cpu = ml_metric_only(ml_metrics_counter(metrics, "process_cpu_seconds_total",
                                                              "User and system CPU time.", NULL));
    ml_metric_add(cpu, cpu_seconds() - ml_metric_value(cpu));
    struct ml_metric *lost = ml_metric_only(ml_metrics_counter(
        metrics, "moonloop_log_lines_dropped_total", "Log lines that could not be written.", NULL));
    ml_metric_add(lost, (double)self->log->dropped - ml_metric_value(lost));
}

void ml_process_metrics_init(struct ml_process_metrics *self, struct ml_metrics *metrics,
                             const struct ml_log *log)
{
    self->metrics = metrics;
    self->log = log;
    self->collector = (struct ml_metrics_collector){.collect = collect, .context = self};
    ml_metrics_on_collect(metrics, &self->collector);
}

void ml_process_metrics_fini(struct ml_process_metrics *self)
{
    ml_metrics_collector_remove(&self->collector);
}
