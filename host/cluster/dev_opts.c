/* What is wrong with the options of `moonloop dev`. Called by dev.c before anything is made. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "cluster/dev.h"

#define MAX_PODS     110 /* as a kubelet has it */
#define MAX_PODS_MAX 10000

static bool is_one_of(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

/* A word that is given must be one of those. */
static int check_word(const char *option, const char *word, const char *const *words,
                      const char *expected, struct ml_err *err)
{
    if (!word || is_one_of(word, words))
        return 0;
    return ml_err_set(err, ML_EINVALID, "%s %s: expected %s", option, word, expected);
}

static int check_words(const struct ml_dev_opts *opts, struct ml_err *err)
{
    static const char *const pods[] = {"process", "fake", "none", NULL};
    static const char *const modes[] = {"AlwaysAllow", "RBAC", NULL};
    static const char *const networks[] = {"own", "host", NULL};
    enum ml_log_level level;
    if (opts->log_level && !ml_log_level_parse(opts->log_level, &level))
        return ml_err_set(err, ML_EINVALID, "--log-level %s: expected debug, info, warn or error",
                          opts->log_level);
    if (check_word("--pods", opts->pods, pods, "process, fake or none", err) < 0 ||
        check_word("--authorization-mode", opts->authorization, modes, "AlwaysAllow or RBAC", err) <
            0)
        return ML_EINVALID;
    return check_word("--pod-network", opts->pod_network, networks, "own or host", err);
}

/* Where the pods' network reaches it. */
static bool is_at_home(const struct ml_dev_opts *opts)
{
    return !opts->bind_address || ml_str_starts(ml_str_of(opts->bind_address), "127.");
}

static int check_address(const struct ml_dev_opts *opts, struct ml_err *err)
{
    if (is_at_home(opts))
        return 0;
    struct ml_str address = ml_str_of(opts->bind_address);
    if (ml_dev_opts_want_network(opts))
        return ml_err_set(err, ML_EINVALID,
                          "--bind-address %s: with --pod-network own, expected 127.0.0.1:PORT",
                          opts->bind_address);
    if (ml_str_starts(address, "localhost:") || ml_str_starts(address, "[::1]:"))
        return 0;
    return ml_err_set(err, ML_EINVALID,
                      "--bind-address %s: only loopback is served: 127.0.0.1:PORT",
                      opts->bind_address);
}

char *ml_dev_image_program(struct ml_str *words)
{
    ML_AUTO_FREE char *path = ml_str_dup(ml_str_cut(words, ' '));
    struct stat file;
    if (stat(path, &file) < 0 || !S_ISREG(file.st_mode) || access(path, X_OK) < 0)
        return NULL;
    return realpath(path, NULL);
}

static int check_image(const char *image, struct ml_err *err)
{
    struct ml_str words = ml_str_of(image), name = ml_str_cut(&words, '=');
    if (!name.len || !words.len || memchr(name.ptr, '/', name.len))
        return ml_err_set(err, ML_EINVALID,
                          "--image %s: expected NAME=PROGRAM; NAME is the last part of an image's "
                          "name, without its tag",
                          image);
    ML_AUTO_FREE char *path = ml_dev_image_program(&words);
    return path ? 0 : ml_err_set(err, ML_EINVALID, "--image %s: there is no such program", image);
}

static bool has_processes(const struct ml_dev_opts *opts)
{
    return !opts->pods || strcmp(opts->pods, "process") == 0;
}

bool ml_dev_opts_lack_network(const struct ml_dev_opts *opts)
{
    return !opts->pod_network && has_processes(opts) && !is_at_home(opts);
}

bool ml_dev_opts_want_network(const struct ml_dev_opts *opts)
{
    bool is_own = opts->pod_network ? strcmp(opts->pod_network, "own") == 0 : is_at_home(opts);
    return is_own && has_processes(opts);
}

int ml_dev_opts_max_pods(const struct ml_dev_opts *opts)
{
    if (!opts->max_pods)
        return MAX_PODS;
    size_t digits = strspn(opts->max_pods, "0123456789");
    long count = strtol(opts->max_pods, NULL, 10);
    return digits > 0 && !opts->max_pods[digits] && count >= 1 && count <= MAX_PODS_MAX ? (int)count
                                                                                        : -1;
}

int ml_dev_opts_check(const struct ml_dev_opts *opts, struct ml_err *err)
{
    if (check_words(opts, err) < 0 || check_address(opts, err) < 0)
        return ML_EINVALID;
    if (ml_dev_opts_max_pods(opts) < 0)
        return ml_err_set(err, ML_EINVALID, "--max-pods %s: expected a number from 1 to 10000",
                          opts->max_pods);
    for (size_t i = 0; opts->images[i]; i++)
        if (check_image(opts->images[i], err) < 0)
            return ML_EINVALID;
    return 0;
}
