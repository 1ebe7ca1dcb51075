/* Finds the tests of a version and the definitions of its kinds, and gives both to the tester. */
#include "operator/own_tests.h"

#include "codec/json.h"

#include <sys/stat.h>

#define TESTS_MAX 64 /* files of one version */

#define MIB ((size_t)1024 * 1024)

static const struct ml_files_kind run_files = {
    .what = "scripts and tests", .size_max = ML_SCRIPT_SOURCE_MAX, .total_max = 16 * MIB};
static const struct ml_files_kind definition_files = {
    .what = "CustomResourceDefinitions", .size_max = 4 * MIB, .total_max = 32 * MIB};

struct ml_own_tests {
    struct ml_services *services;
    struct ml_tester *tester;
    struct ml_files files;            /* of the run */
    const char *names[TESTS_MAX + 1]; /* of files to run, in `files` */
    char *folder, *crds;              /* or NULL */
    struct ml_files definitions;      /* from the API server */
    char **wanted;                    /* names of definitions; ends with NULL */
    size_t next_wanted;
    struct ml_client_call *asked; /* for wanted[next_wanted]; or NULL */
    struct ml_tests_run *run;     /* or NULL */
    struct ml_task fail;          /* ends it with `problem`, before anything ran */
    enum ml_tests_outcome outcome;
    struct ml_err problem;
    ml_tests_done *done;
    void *context;
};

static void own_tests_free(struct ml_own_tests *self)
{
    if (self->asked)
        ml_client_cancel(self->asked);
    if (self->run)
        self->tester->cancel(self->run);
    ml_task_cancel(&self->fail);
    for (size_t i = 0; self->wanted && self->wanted[i]; i++)
        free(self->wanted[i]);
    free(self->wanted);
    ml_files_fini(&self->files);
    ml_files_fini(&self->definitions);
    free(self->folder);
    free(self->crds);
    free(self);
}

static void own_tests_end(struct ml_own_tests *self, enum ml_tests_outcome outcome,
                          const struct ml_err *err)
{
    ml_tests_done *done = self->done;
    void *context = self->context;
    const struct ml_err why = *err;
    own_tests_free(self);
    done(context, outcome, &why);
}

/* ---- which tests ---- */

/* "parts_test.lua" of "parts.lua". */
static char *test_of(struct ml_str script)
{
    size_t len = ml_str_ends(script, ".lua") ? script.len - strlen(".lua") : script.len;
    return ml_asprintf("%.*s_test.lua", (int)len, script.ptr);
}

static const struct ml_script_file *find_file(const struct ml_files *files, const char *name)
{
    for (size_t i = 0; i < files->count; i++)
        if (ml_str_is(files->files[i].name, name))
            return &files->files[i];
    return NULL;
}

static const struct ml_err *find_refused(const struct ml_files *files, const char *name)
{
    for (size_t i = 0; i < files->refused_count; i++)
        if (strcmp(files->refused[i].name, name) == 0)
            return &files->refused[i].err;
    return NULL;
}

/* False: there is no room. Scripts and tests together may be more than one source has of each. */
static bool add_file(struct ml_own_tests *self, const struct ml_script_file *file,
                     struct ml_err *err)
{
    ML_AUTO_FREE char *name = ml_str_dup(file->name);
    return ml_files_have(&self->files, name) ||
           ml_files_add(&self->files, &run_files, file->name, file->text, err) == 0;
}

/* The first problem counts. */
static void set_problem(struct ml_own_tests *self, enum ml_tests_outcome outcome,
                        const struct ml_err *err)
{
    if (self->problem.kind)
        return;
    self->outcome = outcome;
    self->problem = *err;
}

/* False: the version has none. One that cannot be read fails. */
static bool collect_tests(struct ml_own_tests *self, const struct ml_own_tests_opts *opts)
{
    size_t count = 0;
    bool found = false;
    struct ml_err err;
    for (size_t i = 0; i < opts->version->count; i++) {
        ML_AUTO_FREE char *name = test_of(opts->version->files[i].name);
        const struct ml_script_file *test = find_file(opts->tests, name);
        const struct ml_err *refused = find_refused(opts->tests, name);
        found = found || test || refused;
        if (refused)
            set_problem(self, ML_TESTS_FAIL, refused);
        if (!test)
            continue;
        if (count == TESTS_MAX)
            ml_err_set(&err, ML_ELIMIT, "it has more than %d files of tests", TESTS_MAX);
        if (count == TESTS_MAX || !add_file(self, test, &err))
            set_problem(self, ML_TESTS_LOST, &err);
        else
            count++;
    }
    for (size_t i = 0, named = 0; i < self->files.count; i++)
        self->names[named++] = self->files.files[i].name.ptr;
    return found;
}

/* A test may use more than the script was loaded from. */
static void collect_scripts(struct ml_own_tests *self, const struct ml_own_tests_opts *opts)
{
    struct ml_err err;
    for (size_t i = 0; i < opts->version->count; i++)
        if (!add_file(self, &opts->version->files[i], &err))
            set_problem(self, ML_TESTS_LOST, &err);
    for (size_t i = 0; i < opts->scripts->count; i++)
        if (!add_file(self, &opts->scripts->files[i], &err))
            return;
}

/* ---- the definitions of its kinds ---- */

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* As cluster/testing/crds.lua finds it; or NULL. */
static char *find_crds(const char *folder)
{
    static const char *const places[] = {"crds", "../crds"};
    for (size_t i = 0; folder && i < ML_COUNT(places); i++) {
        char *path = ml_asprintf("%s/%s", folder, places[i]);
        if (is_folder(path))
            return path;
        free(path);
    }
    return NULL;
}

/* Built-in kinds have no definition, and the world has them. */
static void want_definitions(struct ml_own_tests *self, const struct ml_declaration *declaration)
{
    size_t count = 0;
    self->wanted = ml_zalloc((declaration->kind_count + 1) * sizeof *self->wanted);
    for (size_t i = 0; i < declaration->kind_count; i++) {
        const struct ml_gvk *gvk = &declaration->kinds[i].gvk;
        const struct ml_kind *kind = ml_discovery_known(self->services->discovery, gvk);
        if (kind && !ml_group_is_built_in(gvk->group))
            self->wanted[count++] = ml_asprintf("%s.%s", kind->plural, kind->group);
    }
}

/* A server does not create what has a resourceVersion or a status. */
static void add_definition(struct ml_own_tests *self, struct ml_str name, struct ml_str answer)
{
    struct ml_str spec;
    struct ml_json_writer writer;
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    ML_AUTO_FREE char *file = ml_asprintf(ML_STR_FMT ".json", ML_STR_ARG(name));
    if (!ml_json_find(answer, &spec, "spec", NULL) || ml_files_have(&self->definitions, file))
        return;
    ml_json_writer_init(&writer, &text);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "apiVersion", ml_str_of(ml_kind_crd.api_version));
    ml_json_put_string(&writer, "kind", ml_str_of(ml_kind_crd.kind));
    ml_json_key(&writer, ML_STR("metadata"));
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "name", name);
    ml_json_end_object(&writer);
    ml_json_put_raw(&writer, "spec", spec);
    ml_json_end_object(&writer);
    struct ml_err err;
    if (ml_files_add(&self->definitions, &definition_files, ml_str_of(file), ml_buf_str(&text),
                     &err) < 0)
        set_problem(self, ML_TESTS_LOST, &err);
}

static void on_run_done(void *context, enum ml_tests_outcome outcome, const struct ml_err *err)
{
    struct ml_own_tests *self = context;
    self->run = NULL;
    own_tests_end(self, outcome, err);
}

static void run_tests(struct ml_own_tests *self)
{
    const struct ml_tests_job job = {
        .files = &self->files,
        .tests = self->names,
        .crds = self->crds,
        .definitions = &self->definitions,
        .folder = self->folder,
    };
    self->run = self->tester->begin(self->tester, self->services->loop, &job, on_run_done, self);
}

static void ask_for_definitions(struct ml_own_tests *self);

static void on_definition(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_own_tests *self = context;
    const char *name = self->wanted[self->next_wanted++];
    struct ml_err why;
    self->asked = NULL;
    if (err && err->kind != ML_ENOT_FOUND) { /* that is a kind of another server behind this one */
        ml_err_set(&why, err->kind, "CustomResourceDefinition %s cannot be read: %s", name,
                   err->message);
        own_tests_end(self, ML_TESTS_LOST, &why);
        return;
    }
    if (!err)
        add_definition(self, ml_str_of(name), body);
    if (self->problem.kind)
        own_tests_end(self, self->outcome, &self->problem);
    else
        ask_for_definitions(self);
}

/* One after the other, then the tests run. */
static void ask_for_definitions(struct ml_own_tests *self)
{
    const char *name = self->wanted ? self->wanted[self->next_wanted] : NULL;
    const struct ml_client_request request = {
        .verb = ML_VERB_GET, .kind = &ml_kind_crd, .name = ml_str_of(name)};
    if (name)
        self->asked = ml_client_send(self->services->client, &request, on_definition, self);
    else
        run_tests(self);
}

static void on_fail(void *context)
{
    struct ml_own_tests *self = context;
    own_tests_end(self, self->outcome, &self->problem);
}

struct ml_own_tests *ml_own_tests_new(const struct ml_own_tests_opts *opts)
{
    struct ml_own_tests *self = ml_new(struct ml_own_tests);
    self->services = opts->services;
    self->tester = opts->tester;
    self->done = opts->done;
    self->context = opts->context;
    self->problem = ML_ERR_INIT;
    ml_task_init(&self->fail, on_fail, self);
    if (!collect_tests(self, opts)) {
        own_tests_free(self);
        return NULL;
    }
    collect_scripts(self, opts);
    self->folder = ml_strdup(opts->folder);
    self->crds = find_crds(opts->folder);
    if (!self->crds)
        want_definitions(self, opts->declaration);
    if (self->problem.kind)
        ml_task_defer(&self->fail, self->services->loop);
    else
        ask_for_definitions(self);
    return self;
}

void ml_own_tests_cancel(struct ml_own_tests *self)
{
    if (self)
        own_tests_free(self);
}
