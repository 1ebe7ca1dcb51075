/* For tests of the HTTP client over TLS: certificates made by openssl in a folder that goes
 * again, and a server program spawned beside the test. */
#pragma once

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "net_peer.h"

extern char **environ;

/* Two authorities, a server and a client certificate of the first, in a folder of their own. */
static const char tls_make_certificates[] =
    "set -e; cd \"$0\"; new='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes';"
    "for ca in ca other; do"
    "  openssl req -x509 $new -keyout $ca.key -out $ca.pem -subj /CN=$ca -days 2;"
    "done;"
    "printf 'subjectAltName=IP:127.0.0.1,DNS:api.test\\n' >server.ext;"
    "printf 'extendedKeyUsage=clientAuth\\n' >client.ext;"
    "for who in server client; do"
    "  openssl req $new -keyout $who.key -out $who.csr -subj /CN=$who;"
    "  openssl x509 -req -in $who.csr -CA ca.pem -CAkey ca.key -set_serial 1 -days 2"
    "    -extfile $who.ext -out $who.pem;"
    "done";

struct tls_fixture {
    struct net net;
    char folder[32];
    pid_t server; /* 0: none */
    int port;
};

static inline pid_t tls_spawn(char *const argv[], int out)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    if (out >= 0)
        posix_spawn_file_actions_adddup2(&actions, out, 1);
    assert_int_equal(posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

static inline int tls_group_setup(void **state)
{
    struct tls_fixture *f = ml_new(struct tls_fixture);
    int status = -1;
    strcpy(f->folder, "/tmp/test_net_http_tls.XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    char *argv[] = {"sh", "-c", (char *)tls_make_certificates, f->folder, NULL};
    waitpid(tls_spawn(argv, -1), &status, 0);
    *state = f;
    return status;
}

static inline int tls_remove_entry(const char *path, const struct stat *info, int type,
                                   struct FTW *walk)
{
    (void)info, (void)type, (void)walk;
    return remove(path);
}

static inline int tls_group_teardown(void **state)
{
    struct tls_fixture *f = *state;
    nftw(f->folder, tls_remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    free(f);
    return 0;
}

static inline void tls_server_stop(struct tls_fixture *f)
{
    if (f->server <= 0)
        return;
    kill(f->server, SIGKILL);
    waitpid(f->server, NULL, 0);
    f->server = 0;
}

static inline int tls_setup(void **state)
{
    struct tls_fixture *f = *state;
    net_init(&f->net);
    return 0;
}

static inline int tls_teardown(void **state)
{
    struct tls_fixture *f = *state;
    tls_server_stop(f); /* also when the test failed */
    net_fini(&f->net);
    return 0;
}

/* A file of the folder; NULL gives an empty slice. The caller frees it. */
static inline struct ml_str tls_pem(struct tls_fixture *f, const char *name)
{
    struct ml_buf text = ML_BUF_INIT;
    char path[64], bytes[4096];
    if (!name)
        return (struct ml_str){0};
    snprintf(path, sizeof path, "%s/%s", f->folder, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    ml_buf_append(&text, bytes, fread(bytes, 1, sizeof bytes, file));
    fclose(file);
    size_t len = text.len;
    return (struct ml_str){ml_buf_take(&text), len};
}
