/* Reading a kubeconfig file: the file itself, its YAML, and the values of its entries, each checked
 * and named in the error when it is wrong. */
#include "kube/kubeconfig_internal.h"

#include "base/wipe.h"
#include "codec/base64.h"
#include "codec/json.h"
#include "codec/yaml.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define JSON_LEN_MAX (4 * ML_KUBEFILE_SIZE_MAX)
#define PIECE_LEN    ((size_t)16 * 1024)
#define ITEMS_MAX    1024 /* of one list */

static int fail_file_errno(struct ml_err *err, const char *path)
{
    int kind = errno == ENOENT || errno == ENOTDIR ? ML_ENOT_FOUND : ML_EIO;
    return ml_err_set(err, kind, "%s: %s", path, strerror(errno));
}

static int read_to_end(int fd, char piece[PIECE_LEN], const char *path, struct ml_buf *out,
                       struct ml_err *err)
{
    for (;;) {
        ssize_t got = read(fd, piece, PIECE_LEN);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_file_errno(err, path);
        if (got == 0)
            return 0;
        if (!ml_buf_append(out, piece, (size_t)got))
            return ml_err_set(err, ML_ELIMIT, "%s: larger than %zu bytes", path, out->len_max);
    }
}

/* `flags`: further ones for open(). */
static int read_config_file(const char *path, int flags, bool pipe_too, struct ml_buf *out,
                            struct ml_err *err)
{
    ML_AUTO(ml_close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | flags);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0)
        return fail_file_errno(err, path);
    if (!S_ISREG(info.st_mode) && !(pipe_too && S_ISFIFO(info.st_mode)))
        return ml_err_set(err, ML_EIO, "%s: not a file", path);
    char piece[PIECE_LEN];
    int r = read_to_end(fd, piece, path, out, err);
    explicit_bzero(piece, sizeof piece); /* it may have been a private key */
    ml_buf_drop_byte_order_marks(out);
    return r;
}

int ml_file_read(const char *path, struct ml_buf *out, struct ml_err *err)
{
    /* A shell makes a pipe of --kubeconfig <(command). */
    return read_config_file(path, 0, true, out, err);
}

int ml_file_read_again(const char *path, struct ml_buf *out, struct ml_err *err)
{
    return read_config_file(path, O_NONBLOCK, false, out, err);
}

int ml_kubefile_parse(const char *path, struct ml_str yaml, struct ml_kubefile *out,
                      struct ml_err *err)
{
    ML_AUTO(ml_wipe_buf) struct ml_buf json = {.len_max = JSON_LEN_MAX};
    if (ml_yaml_to_json(yaml, JSON_LEN_MAX, &json, err) < 0)
        return ml_err_wrap(err, "%s", path);
    struct ml_str rest = ml_buf_str(&json);
    struct ml_str document = ml_str_cut(&rest, '\n');
    if (rest.len > 0)
        return ml_err_set(err, ML_EINVALID, "%s: more than one YAML document; keep one", path);
    if (document.len > 0 && document.ptr[0] != '{')
        return ml_err_set(err, ML_EINVALID, "%s: not a kubeconfig: its top level is not a mapping",
                          path);
    out->path = ml_strdup(path);
    out->json = json;
    json = ML_BUF_INIT;
    return 0;
}

void ml_kubefile_fini(struct ml_kubefile *file)
{
    free(file->path);
    file->path = NULL;
    ml_wipe_buf(&file->json);
}

static int find_entry_in_file(const struct ml_kubefile *file, const char *section, const char *name,
                              struct ml_kubeentry *out, struct ml_err *err)
{
    ML_AUTO_FREE char *list = ml_asprintf("%ss", section);
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    struct ml_str raw = {NULL, 0}, contents = {NULL, 0};
    bool found = false;
    (void)ml_json_find(ml_buf_str(&file->json), &raw, list, NULL);
    ml_json_reader_init(&reader, raw, 0);
    if (ml_json_next(&reader) == ML_JSON_ARRAY) {
        for (struct ml_str element; (element = ml_json_skip(&reader)).len > 0;) {
            ML_AUTO_FREE char *own = ml_json_find_string(element, "name", NULL);
            if (!own || strcmp(own, name) != 0)
                continue;
            if (found)
                return ml_err_set(err, ML_EINVALID, "%s: two %s named \"%s\"; rename one",
                                  file->path, list, name);
            found = true;
            (void)ml_json_find(element, &contents, section, NULL);
        }
    }
    if (!found)
        return ml_err_set(err, ML_ENOT_FOUND, "no %s \"%s\"", section, name);
    if (contents.len == 0 || contents.ptr[0] != '{')
        return ml_err_set(err, ML_EINVALID,
                          "%s: %s \"%s\" has no contents; write them or remove it", file->path,
                          section, name);
    *out = (struct ml_kubeentry){file, section, name, contents};
    return 0;
}

int ml_kubeentry_find(const struct ml_kubefile *files, size_t file_count, const char *section,
                      const char *name, struct ml_kubeentry *out, struct ml_err *err)
{
    int r = ML_ENOT_FOUND;
    for (size_t i = 0; i < file_count && r == ML_ENOT_FOUND; i++)
        r = find_entry_in_file(&files[i], section, name, out, err);
    return r;
}

int ml_kubeentry_fail(const struct ml_kubeentry *entry, struct ml_err *err, const char *format, ...)
{
    char message[ML_ERR_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return ml_err_set(err, ML_EINVALID, "%s: %s \"%s\": %s", entry->file->path, entry->section,
                      entry->name, message);
}

bool ml_kubeentry_value(const struct ml_kubeentry *entry, const char *key, struct ml_str *out_raw)
{
    return ml_json_find(entry->raw, out_raw, key, NULL) && !ml_str_is(*out_raw, "null");
}

/* Any text; `out` stays empty when there is none. */
static int read_entry_text(const struct ml_kubeentry *entry, const char *key, struct ml_buf *out,
                           struct ml_err *err)
{
    struct ml_str raw;
    if (!ml_kubeentry_value(entry, key, &raw))
        return 0;
    if (!ml_json_to_string(raw, out))
        return ml_kubeentry_fail(entry, err, "%s must be a string; put it in quotes", key);
    return 0;
}

int ml_kubeentry_string(const struct ml_kubeentry *entry, const char *key, char **out,
                        struct ml_err *err)
{
    ML_AUTO(ml_wipe_buf) struct ml_buf text = ML_BUF_INIT;
    if (read_entry_text(entry, key, &text, err) < 0)
        return err->kind;
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] < ' ' || text.ptr[i] == 0x7f)
            return ml_kubeentry_fail(entry, err, "%s has a line end or control character", key);
    if (text.len > 0) {
        free(*out);
        *out = ml_buf_take(&text);
    }
    return 0;
}

int ml_kubeentry_bool(const struct ml_kubeentry *entry, const char *key, bool *out,
                      struct ml_err *err)
{
    struct ml_str raw;
    if (!ml_kubeentry_value(entry, key, &raw))
        return 0;
    if (!ml_str_is(raw, "true") && !ml_str_is(raw, "false"))
        return ml_kubeentry_fail(entry, err, "%s must be true or false", key);
    *out = ml_str_is(raw, "true");
    return 0;
}

int ml_kubeentry_path(const struct ml_kubeentry *entry, const char *key, char **out,
                      struct ml_err *err)
{
    ML_AUTO_FREE char *path = NULL;
    if (ml_kubeentry_string(entry, key, &path, err) < 0)
        return err->kind;
    if (!path)
        return 0;
    const char *slash = strrchr(entry->file->path, '/');
    free(*out);
    if (*path == '/' || !slash)
        *out = ml_take(&path);
    else
        *out = ml_asprintf("%.*s/%s", (int)(slash - entry->file->path), entry->file->path, path);
    return 0;
}

int ml_kubeentry_pem(const struct ml_kubeentry *entry, const char *key, struct ml_str *out,
                     char **out_file, struct ml_err *err)
{
    ML_AUTO(ml_wipe_buf) struct ml_buf base64 = ML_BUF_INIT;
    ML_AUTO(ml_wipe_buf) struct ml_buf pem = {.len_max = ML_KUBEFILE_SIZE_MAX};
    ML_AUTO_FREE char *data_key = ml_asprintf("%s-data", key);
    ML_AUTO_FREE char *path = NULL;
    struct ml_err cause = ML_ERR_INIT;
    if (read_entry_text(entry, data_key, &base64, err) < 0 ||
        (base64.len == 0 && ml_kubeentry_path(entry, key, &path, err) < 0))
        return err->kind;
    if (base64.len == 0 && !path)
        return 0;
    if (!path && !ml_base64_decode(ml_buf_str(&base64), &pem))
        return ml_kubeentry_fail(entry, err, "%s is not base64; base64 -w 0 FILE makes it",
                                 data_key);
    ml_buf_drop_byte_order_marks(&pem);
    int (*read_file)(const char *, struct ml_buf *,
                     struct ml_err *) = entry->file->again ? ml_file_read_again : ml_file_read;
    if (path && read_file(path, &pem, &cause) < 0)
        return ml_kubeentry_fail(entry, err, "%s: %s; correct the path, or who may read it", key,
                                 cause.message);
    if (pem.len == 0 || !memmem(pem.ptr, pem.len, "-----BEGIN ", 11))
        return ml_kubeentry_fail(entry, err, "%s is not PEM (it has no -----BEGIN line)",
                                 path ? path : data_key);
    *out = ml_str_of(ml_buf_take(&pem));
    *out_file = ml_take(&path);
    return 0;
}

void ml_kubelist_add(struct ml_kubelist *list, char *text)
{
    list->items = ml_realloc(list->items, (list->count + 2) * sizeof *list->items);
    list->items[list->count++] = text;
    list->items[list->count] = NULL;
}

void ml_kubelist_fini(struct ml_kubelist *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (struct ml_kubelist){0};
}

int ml_kubeentry_strings(const struct ml_kubeentry *entry, const char *key, struct ml_kubelist *out,
                         struct ml_err *err)
{
    struct ml_str raw;
    if (!ml_kubeentry_value(entry, key, &raw))
        return 0;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, raw, 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return ml_kubeentry_fail(entry, err, "%s must be a list", key);
    while (ml_json_next(&reader) != ML_JSON_ARRAY_END) {
        if (reader.token != ML_JSON_STRING)
            return ml_kubeentry_fail(entry, err, "%s must be a list of strings; put them in quotes",
                                     key);
        if (reader.text.len > 0 && memchr(reader.text.ptr, '\0', reader.text.len))
            return ml_kubeentry_fail(entry, err, "%s has a NUL in it", key);
        if (out->count == ITEMS_MAX)
            return ml_kubeentry_fail(entry, err, "%s has more than %d items", key, ITEMS_MAX);
        ml_kubelist_add(out, ml_str_dup(reader.text));
    }
    return 0;
}

bool ml_kubeentry_sub(const struct ml_kubeentry *entry, const char *key, const char *section,
                      struct ml_kubeentry *out)
{
    struct ml_str raw;
    if (!ml_kubeentry_value(entry, key, &raw))
        return false;
    *out = (struct ml_kubeentry){entry->file, section, entry->name, raw};
    return true;
}
