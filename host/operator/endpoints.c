/* The servers of probes and metrics, and the metrics of the process itself, read from /proc at each
 * scrape. moonloop.c opens them before it connects. */
#include "operator/endpoints.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

struct ml_endpoints {
    struct ml_endpoints_opts opts;
    struct ml_http_routes *health;
    struct ml_http_routes *metrics; /* may be the same as health */
    struct ml_metrics_collector collector;
    double started_s; /* of the epoch */
};

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

static void set_gauge(struct ml_metrics *metrics, const char *name, const char *help, double value)
{
    ml_metric_set(ml_metric_only(ml_metrics_gauge(metrics, name, help, NULL)), value);
}

static void set_counter(struct ml_metrics *metrics, const char *name, const char *help,
                        double value)
{
    struct ml_metric *metric = ml_metric_only(ml_metrics_counter(metrics, name, help, NULL));
    ml_metric_add(metric, value - ml_metric_value(metric));
}

static void collect_process_metrics(void *context)
{
    const struct ml_endpoints *self = context;
    const struct ml_endpoints_opts *opts = &self->opts;
    struct ml_metrics *metrics = opts->metrics;
    ML_AUTO(ml_buf_fini) struct ml_buf why = ML_BUF_INIT;
    set_gauge(metrics, "moonloop_ready", "1 while /readyz answers 200.",
              opts->ready(opts->context, &why) ? 1 : 0);
    set_gauge(metrics, "process_start_time_seconds", "When the process started, of the epoch.",
              self->started_s);
    set_gauge(metrics, "process_resident_memory_bytes", "Resident memory.", resident_bytes());
    set_gauge(metrics, "process_open_fds", "Open file descriptors.", open_descriptors());
    set_gauge(metrics, "process_max_fds", "Limit of open file descriptors.", max_descriptors());
    set_counter(metrics, "process_cpu_seconds_total", "User and system CPU time.", cpu_seconds());
    set_counter(metrics, "moonloop_log_lines_dropped_total", "Log lines that could not be written.",
                (double)opts->log->dropped);
}

static void serve_healthz(void *context, struct ml_http_page *page)
{
    (void)context;
    ml_buf_puts(&page->reply, "ok");
}

static void serve_readyz(void *context, struct ml_http_page *page)
{
    struct ml_endpoints *self = context;
    ML_AUTO(ml_buf_fini) struct ml_buf why = ML_BUF_INIT;
    bool is_ready = self->opts.ready(self->opts.context, &why);
    bool is_verbose = strstr(page->query, "verbose") != NULL;
    page->status = is_ready ? page->status : 500;
    if (is_verbose)
        self->opts.passed(self->opts.context, &why);
    if (is_ready)
        ml_buf_puts(&page->reply, why.len > 0 ? "ok\n" : "ok");
    if (is_ready || is_verbose)
        ml_buf_append_str(&page->reply, ml_buf_str(&why));
    else
        ml_buf_puts(&page->reply, "[-]scripts failed: reason withheld (see ?verbose)\n");
}

static void serve_metrics(void *context, struct ml_http_page *page)
{
    struct ml_endpoints *self = context;
    page->content_type = "text/plain; version=0.0.4; charset=utf-8";
    ml_metrics_write(self->opts.metrics, &page->reply);
}

static bool address_is_set(const char *address)
{
    return address && *address && strcmp(address, "0") != 0;
}

static int endpoints_open_servers(struct ml_endpoints *self, struct ml_err *err)
{
    const struct ml_endpoints_opts *opts = &self->opts;
    const char *health = opts->health_address, *metrics = opts->metrics_address;
    if (address_is_set(health) && ml_http_routes_new(opts->loop, health, &self->health, err) < 0)
        return ml_err_wrap(err, "--health-probe-bind-address %s", health);
    if (self->health && metrics && strcmp(health, metrics) == 0)
        self->metrics = self->health;
    else if (address_is_set(metrics) &&
             ml_http_routes_new(opts->loop, metrics, &self->metrics, err) < 0)
        return ml_err_wrap(err, "--metrics-bind-address %s", metrics);
    return 0;
}

int ml_endpoints_new(const struct ml_endpoints_opts *opts, struct ml_endpoints **out,
                     struct ml_err *err)
{
    struct ml_endpoints *self = ml_new(struct ml_endpoints);
    self->opts = *opts;
    self->collector = (struct ml_metrics_collector){.collect = collect_process_metrics,
                                                    .context = self};
    self->started_s = (double)ml_clock_wall(ml_clock_real()) / (double)ML_NS_PER_S;
    ml_metrics_on_collect(opts->metrics, &self->collector);
    int r = endpoints_open_servers(self, err);
    if (r < 0) {
        ml_endpoints_free(self);
        return r;
    }
    if (self->health) {
        ml_http_routes_add(self->health, "/healthz", serve_healthz, self);
        ml_http_routes_add(self->health, "/healthz/", serve_healthz, self);
        ml_http_routes_add(self->health, "/readyz", serve_readyz, self);
        ml_http_routes_add(self->health, "/readyz/", serve_readyz, self);
    }
    if (self->metrics)
        ml_http_routes_add(self->metrics, "/metrics", serve_metrics, self);
    *out = self;
    return 0;
}

void ml_endpoints_free(struct ml_endpoints *self)
{
    if (!self)
        return;
    ml_metrics_collector_remove(&self->collector);
    if (self->metrics != self->health)
        ml_http_routes_free(self->metrics);
    ml_http_routes_free(self->health);
    free(self);
}

int ml_endpoints_health_port(const struct ml_endpoints *self)
{
    return self->health ? ml_http_server_port(ml_http_routes_server(self->health)) : 0;
}

int ml_endpoints_health_listener(const struct ml_endpoints *self)
{
    return self->health ? ml_http_server_listener(ml_http_routes_server(self->health)) : -1;
}

int ml_endpoints_metrics_port(const struct ml_endpoints *self)
{
    return self->metrics ? ml_http_server_port(ml_http_routes_server(self->metrics)) : 0;
}
