#include "operator/lockdown.h"

#include "operator/file_rights.h"
#include "operator/syscalls.h"

#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define OWNER_ONLY 077

/* Memory holds tokens and keys: no core dump has it, and no other process of this user. */
static void keep_memory_private(void)
{
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    umask(OWNER_ONLY);
}

/* What is in force, for the log. */
struct part {
    char says[ML_ERR_MESSAGE_MAX + 8];
};

static void tell(struct part *part, int r, const char *in_force, const struct ml_err *err)
{
    if (r < 0)
        snprintf(part->says, sizeof part->says, "off: %s", err->message);
    else
        snprintf(part->says, sizeof part->says, "%s", in_force);
}

static void restrict_files(const struct ml_lockdown_opts *opts, struct part *out)
{
    struct ml_err err = ML_ERR_INIT;
    enum ml_file_reads reads = ML_FILE_READS_LISTED;
    const struct ml_file_rights_opts rights = {opts->readable, opts->writable};
    if (opts->runs_programs) {
        ml_err_set(&err, ML_EUNSUPPORTED, "a credential plugin is in use");
        tell(out, -1, NULL, &err);
        return;
    }
    int r = ml_file_rights_restrict(&rights, &reads, &err);
    tell(out, r, reads == ML_FILE_READS_ALL ? "writes listed folders only" : "listed folders only",
         &err);
}

static void restrict_syscalls(const struct ml_lockdown_opts *opts, struct part *out)
{
    struct ml_err err = ML_ERR_INIT;
    bool writes = opts->writable && opts->writable[0];
    enum ml_syscalls which = opts->runs_programs ? ML_SYSCALLS_WITH_PROGRAMS
                             : writes            ? ML_SYSCALLS_STRICT_AND_FILES
                                                 : ML_SYSCALLS_STRICT;
    int r = ml_syscalls_restrict(which, &err);
    tell(out, r, opts->runs_programs ? "hostile calls refused" : "listed calls only", &err);
}

void ml_lockdown(const struct ml_lockdown_opts *opts)
{
    struct part landlock, seccomp;
    keep_memory_private();
    bool bound = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
    restrict_files(opts, &landlock);
    restrict_syscalls(opts, &seccomp);
    ml_info(opts->log, "host", "gave up the rights that are not needed",
            ML_S("no_new_privs", bound ? "on" : "off"), ML_S("core_dumps", "off"),
            ML_S("seccomp", seccomp.says), ML_S("landlock", landlock.says));
}
