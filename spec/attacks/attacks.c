/* Runs the hostile programs: each in a process of its own, forked off one that has the API server
 * ready. A process that is killed costs that program only. */
#include "arena.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define JOBS_MAX     64
#define PROGRAMS_MAX 2000
#define HANG_SECONDS 60 /* a process that does not end by itself */
#ifdef MOONLOOP_CPU_STRETCH
#define CPU_SECONDS 40
#else
#define CPU_SECONDS 15
#endif
#define FOLDER SOURCE_DIR "/spec/attacks"

struct job {
    pid_t pid; /* 0: free */
    struct program program;
    struct report *report;
    int log_fd, out_fd;
    int64_t started_ns;
    bool hangs;
};

static struct job jobs[JOBS_MAX];
static size_t job_count;
static bool verbose, show;
static size_t passed, failed;

static char *paths[PROGRAMS_MAX];
static size_t path_count;
static const char *const *wanted;

/* The sanitizer keeps freed memory back for a while, to find its users; only so much that it does
 * not count as the host's growth. Two frames of an allocation cost no walk up the stack. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0:quarantine_size_mb=16:allocator_release_to_os_interval_ms=500:"
           "malloc_context_size=2";
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * ML_NS_PER_S + now.tv_nsec;
}

/* ---- which programs ---- */

/* "gas/sort.lua" of CLASS/NAME.lua */
static const char *short_name(const char *path)
{
    return path + sizeof FOLDER;
}

static bool is_wanted(const char *path)
{
    for (const char *const *word = wanted; *word; word++)
        if (strstr(short_name(path), *word))
            return true;
    return !*wanted;
}

static int on_file(const char *path, const struct stat *info, int type, struct FTW *place)
{
    (void)info;
    if (type != FTW_F || place->level != 2 || !ml_str_ends(ml_str_of(path), ".lua"))
        return 0;
    if (is_wanted(path) && path_count < PROGRAMS_MAX)
        paths[path_count++] = ml_strdup(path);
    return 0;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void find_programs(void)
{
    if (nftw(FOLDER, on_file, 16, FTW_PHYS) < 0) {
        perror(FOLDER);
        exit(2);
    }
    qsort(paths, path_count, sizeof *paths, compare_paths);
}

/* ---- the process of one program ---- */

static _Noreturn void run(struct job *job)
{
    const struct rlimit none = {0, 0}, cpu = {CPU_SECONDS, CPU_SECONDS + 1};
    setrlimit(RLIMIT_CORE, &none);
    setrlimit(RLIMIT_CPU, &cpu);
    dup2(job->out_fd, STDOUT_FILENO);
    dup2(job->out_fd, STDERR_FILENO);
    int in = open("/dev/null", O_RDONLY);
    dup2(in, STDIN_FILENO);
    arena_run(&job->program, job->log_fd, job->report);
    _exit(0);
}

static void start(struct job *job, const char *path)
{
    ML_AUTO_FREE char *name = ml_strndup(short_name(path), strlen(short_name(path)) - 4);
    program_read(&job->program, path, name);
    job->report = mmap(NULL, sizeof *job->report, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    job->log_fd = memfd_create("log", MFD_CLOEXEC);
    job->out_fd = memfd_create("out", MFD_CLOEXEC);
    job->started_ns = now_ns();
    job->hangs = false;
    job->pid = fork();
    if (job->pid < 0) {
        perror("fork");
        exit(2);
    }
    if (job->pid == 0)
        run(job);
}

/* ---- what came of it ---- */

/* Prints the file, or of what a sanitizer wrote only the lines that say most. */
static size_t print_file(int fd, bool all)
{
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    char piece[4096];
    ssize_t got;
    for (off_t at = 0; (got = pread(fd, piece, sizeof piece, at)) > 0; at += got)
        ml_buf_append_str(&text, (struct ml_str){piece, (size_t)got});
    struct ml_str rest = ml_buf_str(&text);
    for (int shown = 0; rest.len > 0 && (all || shown < 12);) {
        struct ml_str line = ml_str_cut(&rest, '\n');
        ML_AUTO_FREE char *copy = ml_str_dup(line);
        if (!all && !strstr(copy, "ERROR:") && !strstr(copy, "error:") &&
            !strstr(copy, "SUMMARY") && !strstr(copy, "assert") && !strstr(copy, "    #"))
            continue;
        printf("       | %.300s\n", copy);
        shown++;
    }
    return text.len;
}

static const char *ending(const struct job *job, int status)
{
    static char text[64];
    if (job->hangs)
        snprintf(text, sizeof text, "did not end within %d s", HANG_SECONDS);
    else if (WIFSIGNALED(status))
        snprintf(text, sizeof text, "ended by SIG%s", sigabbrev_np(WTERMSIG(status)));
    else if (WEXITSTATUS(status) != 0 || !job->report->over)
        snprintf(text, sizeof text, "ended with exit code %d", WEXITSTATUS(status));
    else
        return NULL;
    return text;
}

static void print_figures(const struct job *job)
{
    const struct report *report = job->report;
    printf(
        "       %lld ms, late %lld ms, in Lua %lld of %lld ms, turn %lld ms, %lld KiB, %lld ticks, "
        "%zu requests\n",
        (long long)((now_ns() - job->started_ns) / ML_NS_PER_MS),
        (long long)(report->late_ns / ML_NS_PER_MS), (long long)(report->entry_ns / ML_NS_PER_MS),
        (long long)(report->entry_budget_ns / ML_NS_PER_MS),
        (long long)(report->turn_ns / ML_NS_PER_MS), (long long)(report->grown / 1024),
        (long long)report->ticks, report->requests);
}

static void tell(struct job *job, int status)
{
    struct stat out = {0};
    const char *end = ending(job, status);
    fstat(job->out_fd, &out);
    bool good = !end && !job->report->why[0] && out.st_size == 0;
    *(good ? &passed : &failed) += 1;
    printf("%s %s", good ? "ok  " : "FAIL", job->program.name);
    if (end)
        printf(": %s", end);
    else if (!job->report->why[0] && out.st_size > 0)
        printf(": it wrote to the terminal");
    struct ml_str why = ml_str_of(job->report->why);
    for (const char *before = end ? "\n       " : ": "; why.len > 0; before = "\n       ") {
        struct ml_str line = ml_str_cut(&why, '\n');
        printf("%s" ML_STR_FMT, before, ML_STR_ARG(line));
    }
    printf("\n");
    if (verbose)
        print_figures(job);
    if (!good)
        print_file(job->out_fd, show);
    if (show)
        print_file(job->log_fd, true);
    fflush(stdout);
}

static void finish(struct job *job, int status)
{
    tell(job, status);
    munmap(job->report, sizeof *job->report);
    close(job->log_fd);
    close(job->out_fd);
    program_free(&job->program);
    job->pid = 0;
}

static void end_what_hangs(void)
{
    for (size_t i = 0; i < job_count; i++) {
        struct job *job = &jobs[i];
        if (!job->pid || job->hangs || now_ns() - job->started_ns < HANG_SECONDS * ML_NS_PER_S)
            continue;
        job->hangs = true;
        kill(job->pid, SIGKILL);
    }
}

/* Waits until a job is free, or with `all` until each is. */
static struct job *wait_for_job(bool all)
{
    for (;;) {
        struct job *free_job = NULL;
        size_t busy = 0;
        for (size_t i = 0; i < job_count; i++) {
            int status;
            struct job *job = &jobs[i];
            if (job->pid && waitpid(job->pid, &status, WNOHANG) == job->pid)
                finish(job, status);
            if (job->pid)
                busy++;
            else
                free_job = job;
        }
        if (all ? busy == 0 : free_job != NULL)
            return free_job;
        end_what_hangs();
        usleep(2000);
    }
}

static _Noreturn void print_usage(int code)
{
    printf("Usage: attacks [-j JOBS] [-v] [-s] [WORD…]\n\n"
           "Runs the programs of spec/attacks whose CLASS/NAME has one of the words; all without.\n"
           "  -j JOBS  so many at once; default: as many as there are processors\n"
           "  -v       with figures of each\n"
           "  -s       with the log of each, and all that it wrote\n");
    exit(code);
}

int main(int argc, char **argv)
{
    job_count = (size_t)ML_MAX(sysconf(_SC_NPROCESSORS_ONLN), 1);
    for (int option; (option = getopt(argc, argv, "j:vsh")) != -1;) {
        if (option == 'j')
            job_count = (size_t)atoi(optarg);
        else if (option == 'v')
            verbose = true;
        else if (option == 's')
            show = verbose = true;
        else
            print_usage(option == 'h' ? 0 : 2);
    }
    job_count = ML_MIN(ML_MAX(job_count, (size_t)1), (size_t)JOBS_MAX);
    wanted = (const char *const *)argv + optind;
    find_programs();
    arena_build(SOURCE_DIR);
    for (size_t i = 0; i < path_count; i++)
        start(wait_for_job(false), paths[i]);
    wait_for_job(true);
    printf("%zu passed, %zu failed, 0 skipped\n", passed, failed);
    return failed > 0 || path_count == 0;
}
