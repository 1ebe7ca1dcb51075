/* moonloop types: the kinds of scripts and CRDs as classes for lua-language-server, so that an
 * editor completes the fields of objects. cluster/analysis/stubs.lua makes them. */
#include "base/escape.h"
#include "cli/crds.h"
#include "cluster/cli/commands.h"
#include "cluster/host/server_lua.h"
#include "codec/json.h"
#include "include/moonloop.h"
#include "operator/files.h"

#include <stdio.h>

static void put_files(struct ml_json_writer *writer, const struct ml_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        if (!ml_files_asked_for(files, i))
            continue;
        ml_json_begin_object(writer);
        ml_json_put_string(writer, "name", files->files[i].name);
        ml_json_put_string(writer, "text", files->files[i].text);
        ml_json_end_object(writer);
    }
}

static int put_scripts(struct ml_json_writer *writer, const struct ml_option_list *paths,
                       struct ml_err *err)
{
    int r = 0;
    ml_json_key(writer, ML_STR("files"));
    ml_json_begin_array(writer);
    for (size_t i = 0; r == 0 && i < paths->count; i++) {
        ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT;
        r = ml_files_read(&files, &ml_files_scripts, paths->values[i], err);
        put_files(writer, &files);
    }
    ml_json_end_array(writer);
    return r;
}

/* The question to cluster/analysis/stubs.lua. */
static int put_question(struct ml_json_writer *writer, const struct ml_option_list *paths,
                        const struct ml_option_list *crds, struct ml_err *err)
{
    ml_json_begin_object(writer);
    int r = put_scripts(writer, paths, err);
    ml_json_key(writer, ML_STR("manifests"));
    ml_json_begin_array(writer);
    for (size_t i = 0; r == 0 && i < crds->count; i++)
        r = ml_crds_put(writer, crds->values[i], err);
    ml_json_end_array(writer);
    ml_json_end_object(writer);
    return r;
}

static void print_unknown(struct ml_str answer)
{
    struct ml_str unknown = {NULL, 0};
    ml_json_find(answer, &unknown, "unknown", NULL);
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, unknown, 0);
    ml_json_next(&reader);
    for (struct ml_str kind; (kind = ml_json_skip(&reader)).len;) {
        ML_AUTO(ml_buf_fini) struct ml_buf name = ML_BUF_INIT;
        ml_json_to_string(kind, &name);
        ml_print_line(stderr, "%s is left out: give its CustomResourceDefinition with --crds",
                      ml_buf_cstr(&name));
    }
}

static int print_types(const struct ml_option_list *paths, const struct ml_option_list *crds)
{
    ML_AUTO(ml_buf_fini) struct ml_buf request = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf answer = ML_BUF_INIT;
    struct ml_json_writer writer;
    struct ml_err err = ML_ERR_INIT;
    ml_json_writer_init(&writer, &request);
    int r = put_question(&writer, paths, crds, &err);
    if (r == 0) {
        struct ml_server_lua *lua = ml_server_lua_new(
            &(struct ml_server_lua_options){.loop = NULL});
        r = ml_server_lua_call(lua, "cluster.analysis.stubs", "render", ml_buf_str(&request),
                               &answer, &err);
        ml_server_lua_free(lua);
    }
    if (r < 0) {
        ml_print_line(stderr, "%s", err.message);
        return MOONLOOP_EXIT_BAD;
    }
    ML_AUTO_FREE char *text = ml_json_find_string(ml_buf_str(&answer), "text", NULL);
    fputs(text ? text : "", stdout);
    print_unknown(ml_buf_str(&answer));
    return MOONLOOP_EXIT_OK;
}

struct types {
    struct ml_option_list paths, crds;
};

static const struct ml_option options[] = {
    {"--crds", "PATH", "CRDs (YAML file or folder) whose kinds are printed (repeat)",
     ML_OPTION_LIST, offsetof(struct types, crds)},
};

static int run(void *values, char **argv, struct ml_err *err)
{
    const struct types *types = values;
    (void)argv;
    if (types->paths.count + types->crds.count > 0)
        return print_types(&types->paths, &types->crds);
    ml_err_set(err, ML_EINVALID, "nothing to print: moonloop types PATH, or --crds PATH");
    return MOONLOOP_EXIT_USAGE;
}

const struct ml_command ml_command_types = {
    .name = "types",
    .usage = "[PATH…] [--crds PATH…]",
    .summary = "the kinds of scripts and CRDs for an editor",
    .description =
        "Prints the kinds of the CRDs, and those that the scripts name, as a file of classes for\n"
        "lua-language-server. Touches no cluster.",
    .example = "reconcilers/ --crds crds/ > .types/kinds.lua",
    .options = options,
    .option_count = ML_COUNT(options),
    .words = offsetof(struct types, paths),
    .values_size = sizeof(struct types),
    .run = run,
};
