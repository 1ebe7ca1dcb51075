/* Finds the kubeconfig or the pod's service account, and takes from it how to reach the API server
 * and as whom: the files, their YAML, and the values of their entries, each checked and named in
 * the error when it is wrong. credentials.c reads changed files later. */
#include "kube/kubeconfig.h"

#include "base/wipe.h"
#include "codec/base64.h"
#include "codec/json.h"
#include "codec/yaml.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define ACCOUNT_DIR  "/var/run/secrets/kubernetes.io/serviceaccount"
#define JSON_LEN_MAX (4 * ML_KUBEFILE_SIZE_MAX)
#define PIECE_LEN    ((size_t)16 * 1024)
#define ITEMS_MAX    1024 /* of one list */

/* ---- files ---- */

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

static int read_file(const char *path, struct ml_buf *out, struct ml_err *err)
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

/* ---- entries ---- */

/* An entry of "clusters", "users" or "contexts", and the file that defines it. */
struct entry {
    const struct ml_kubefile *file;
    const char *section; /* "cluster", "user", "context"; a literal */
    const char *name;    /* borrowed */
    struct ml_str raw;   /* its value under `section`, an object */
};

static int find_entry_in_file(const struct ml_kubefile *file, const char *section, const char *name,
                              struct entry *out, struct ml_err *err)
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
    *out = (struct entry){file, section, name, contents};
    return 0;
}

/* The first file that has an entry of that name defines it. ML_ENOT_FOUND: none has one;
 * ML_EINVALID: it has two, or one without contents. */
static int entry_find(const struct ml_kubefile *files, size_t file_count, const char *section,
                      const char *name, struct entry *out, struct ml_err *err)
{
    int r = ML_ENOT_FOUND;
    for (size_t i = 0; i < file_count && r == ML_ENOT_FOUND; i++)
        r = find_entry_in_file(&files[i], section, name, out, err);
    return r;
}

/* ML_EINVALID "PATH: cluster "NAME": message". */
ML_PRINTF(3, 4)
static int entry_fail(const struct entry *entry, struct ml_err *err, const char *format, ...)
{
    char message[ML_ERR_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return ml_err_set(err, ML_EINVALID, "%s: %s \"%s\": %s", entry->file->path, entry->section,
                      entry->name, message);
}

/* The value of `key`, as JSON; false when there is none or it is null. */
static bool entry_value(const struct entry *entry, const char *key, struct ml_str *out_raw)
{
    return ml_json_find(entry->raw, out_raw, key, NULL) && !ml_str_is(*out_raw, "null");
}

/* Any text; `out` stays empty when there is none. */
static int read_entry_text(const struct entry *entry, const char *key, struct ml_buf *out,
                           struct ml_err *err)
{
    struct ml_str raw;
    if (!entry_value(entry, key, &raw))
        return 0;
    if (!ml_json_to_string(raw, out))
        return entry_fail(entry, err, "%s must be a string; put it in quotes", key);
    return 0;
}

/* This and the next ones leave `out` as it is when the entry lacks the key. ML_EINVALID: of another
 * type. A string has at least one character, and no line ends or other control characters. */
static int entry_string(const struct entry *entry, const char *key, char **out, struct ml_err *err)
{
    ML_AUTO(ml_wipe_buf) struct ml_buf text = ML_BUF_INIT;
    if (read_entry_text(entry, key, &text, err) < 0)
        return err->kind;
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] < ' ' || text.ptr[i] == 0x7f)
            return entry_fail(entry, err, "%s has a line end or control character", key);
    if (text.len > 0) {
        free(*out);
        *out = ml_buf_take(&text);
    }
    return 0;
}

static int entry_bool(const struct entry *entry, const char *key, bool *out, struct ml_err *err)
{
    struct ml_str raw;
    if (!entry_value(entry, key, &raw))
        return 0;
    if (!ml_str_is(raw, "true") && !ml_str_is(raw, "false"))
        return entry_fail(entry, err, "%s must be true or false", key);
    *out = ml_str_is(raw, "true");
    return 0;
}

/* Relative to the file that names it. */
static int entry_path(const struct entry *entry, const char *key, char **out, struct ml_err *err)
{
    ML_AUTO_FREE char *path = NULL;
    if (entry_string(entry, key, &path, err) < 0)
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

/* `key`-data decoded, or the contents of the file `key`, whose path goes to `out_file`. */
static int entry_pem(const struct entry *entry, const char *key, struct ml_str *out,
                     char **out_file, struct ml_err *err)
{
    ML_AUTO(ml_wipe_buf) struct ml_buf base64 = ML_BUF_INIT;
    ML_AUTO(ml_wipe_buf) struct ml_buf pem = {.len_max = ML_KUBEFILE_SIZE_MAX};
    ML_AUTO_FREE char *data_key = ml_asprintf("%s-data", key);
    ML_AUTO_FREE char *path = NULL;
    struct ml_err cause = ML_ERR_INIT;
    if (read_entry_text(entry, data_key, &base64, err) < 0 ||
        (base64.len == 0 && entry_path(entry, key, &path, err) < 0))
        return err->kind;
    if (base64.len == 0 && !path)
        return 0;
    if (!path && !ml_base64_decode(ml_buf_str(&base64), &pem))
        return entry_fail(entry, err, "%s is not base64; base64 -w 0 FILE makes it", data_key);
    ml_buf_drop_byte_order_marks(&pem);
    int (*read_it)(const char *, struct ml_buf *,
                   struct ml_err *) = entry->file->again ? ml_file_read_again : read_file;
    if (path && read_it(path, &pem, &cause) < 0)
        return entry_fail(entry, err, "%s: %s; correct the path, or who may read it", key,
                          cause.message);
    if (pem.len == 0 || !memmem(pem.ptr, pem.len, "-----BEGIN ", 11))
        return entry_fail(entry, err, "%s is not PEM (it has no -----BEGIN line)",
                          path ? path : data_key);
    *out = ml_str_of(ml_buf_take(&pem));
    *out_file = ml_take(&path);
    return 0;
}

/* Takes ownership of the text. */
static void list_add(struct ml_kubelist *list, char *text)
{
    list->items = ml_realloc(list->items, (list->count + 2) * sizeof *list->items);
    list->items[list->count++] = text;
    list->items[list->count] = NULL;
}

static void list_fini(struct ml_kubelist *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (struct ml_kubelist){0};
}

/* Appends the list of strings in `key`, none when it is missing; any text without NUL. */
static int entry_strings(const struct entry *entry, const char *key, struct ml_kubelist *out,
                         struct ml_err *err)
{
    struct ml_str raw;
    if (!entry_value(entry, key, &raw))
        return 0;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, raw, 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return entry_fail(entry, err, "%s must be a list", key);
    while (ml_json_next(&reader) != ML_JSON_ARRAY_END) {
        if (reader.token != ML_JSON_STRING)
            return entry_fail(entry, err, "%s must be a list of strings; put them in quotes", key);
        if (reader.text.len > 0 && memchr(reader.text.ptr, '\0', reader.text.len))
            return entry_fail(entry, err, "%s has a NUL in it", key);
        if (out->count == ITEMS_MAX)
            return entry_fail(entry, err, "%s has more than %d items", key, ITEMS_MAX);
        list_add(out, ml_str_dup(reader.text));
    }
    return 0;
}

/* The value of `key` as an entry of its own, which messages call `section` ("exec of user"); false
 * when there is nothing. */
static bool entry_sub(const struct entry *entry, const char *key, const char *section,
                      struct entry *out)
{
    struct ml_str raw;
    if (!entry_value(entry, key, &raw))
        return false;
    *out = (struct entry){entry->file, section, entry->name, raw};
    return true;
}

/* ---- a kubeconfig ---- */

size_t ml_kubeconfig_files(const struct ml_kubeconfig *config,
                           const char *out[ML_KUBECONFIG_FILES_MAX])
{
    const char *const files[] = {config->token_file, config->ca_file, config->cert_file,
                                 config->key_file};
    size_t count = 0;
    for (size_t i = 0; i < ML_COUNT(files); i++)
        if (files[i])
            out[count++] = files[i];
    for (size_t i = 0; i < config->read_from.count; i++)
        out[count++] = config->read_from.items[i];
    return count;
}

static void exec_config_free(struct ml_exec_config *config)
{
    if (!config)
        return;
    list_fini(&config->argv);
    list_fini(&config->env);
    free(config->api_version);
    free(config->install_hint);
    free(config->cluster_config);
    free(config);
}

void ml_kubeconfig_free(struct ml_kubeconfig *config)
{
    if (!config)
        return;
    const char *const owned[] = {
        config->server,           config->ns,
        config->source,           config->token_file,
        config->ca_file,          config->cert_file,
        config->key_file,         config->tls.ca_pem.ptr,
        config->tls.cert_pem.ptr, config->tls.server_name,
        config->context,
    };
    const char *const secrets[] = {config->authorization, config->tls.key_pem.ptr,
                                   config->tls.proxy_url};
    for (size_t i = 0; i < ML_COUNT(owned); i++)
        free((char *)owned[i]);
    for (size_t i = 0; i < ML_COUNT(secrets); i++)
        ml_wipe_free((char *)secrets[i]);
    for (size_t i = 0; i < config->impersonation_count; i++) {
        free((char *)config->impersonation[i].name);
        free((char *)config->impersonation[i].value);
    }
    free(config->impersonation);
    list_fini(&config->read_from);
    exec_config_free(config->exec);
    free(config);
}

/* ---- the user: token, password, certificate, plugin, whom to impersonate ---- */

#define EXEC_EXTENSION "client.authentication.k8s.io/exec"

int ml_kubeconfig_set_bearer(struct ml_kubeconfig *config, struct ml_str token, struct ml_err *err)
{
    token = ml_str_trim(token);
    if (token.len == 0)
        return ml_err_set(err, ML_EINVALID, "the token is empty");
    for (size_t i = 0; i < token.len; i++)
        if (token.ptr[i] <= ' ' || token.ptr[i] >= 0x7f)
            return ml_err_set(err, ML_EINVALID,
                              "the token has a space or another character that "
                              "no token has");
    ml_wipe_free(config->authorization);
    config->authorization = ml_join(ML_STR("Bearer "), token);
    return 0;
}

int ml_kubeconfig_read_token(struct ml_kubeconfig *config, struct ml_err *err)
{
    ML_AUTO(ml_wipe_buf) struct ml_buf text = {.len_max = ML_TOKEN_SIZE_MAX};
    if (read_file(config->token_file, &text, err) < 0)
        return err->kind;
    if (ml_kubeconfig_set_bearer(config, ml_buf_str(&text), err) < 0)
        return ml_err_wrap(err, "%s", config->token_file);
    return 0;
}

static int fill_client_certificate(struct ml_kubeconfig *config, const struct entry *user,
                                   struct ml_err *err)
{
    if (entry_pem(user, "client-certificate", &config->tls.cert_pem, &config->cert_file, err) < 0 ||
        entry_pem(user, "client-key", &config->tls.key_pem, &config->key_file, err) < 0)
        return err->kind;
    if (!config->tls.cert_pem.len != !config->tls.key_pem.len)
        return entry_fail(user, err,
                          "client-certificate and client-key go together; add "
                          "the one that is missing");
    return 0;
}

static void fill_basic_auth(struct ml_kubeconfig *config, const char *username,
                            const char *password)
{
    ML_AUTO(ml_buf_fini) struct ml_buf value = ML_BUF_INIT;
    ML_AUTO_WIPE char *name = ml_join(ml_str_of(username), ML_STR(":"));
    ML_AUTO_WIPE char *pair = ml_join(ml_str_of(name), ml_str_of(password));
    ml_buf_puts(&value, "Basic ");
    ml_base64_encode(ml_str_of(pair), &value);
    config->authorization = ml_buf_take(&value);
}

static int fill_token(struct ml_kubeconfig *config, const struct entry *user, const char *token,
                      struct ml_err *err)
{
    struct ml_err cause = ML_ERR_INIT;
    if (config->token_file && user->file->again)
        return 0; /* credentials.c reads it */
    if (config->token_file && ml_kubeconfig_read_token(config, &cause) < 0)
        return entry_fail(user, err, "tokenFile: %s; correct the path or log in anew",
                          cause.message);
    if (!config->token_file && ml_kubeconfig_set_bearer(config, ml_str_of(token), &cause) < 0)
        return entry_fail(user, err, "token: %s; log in anew", cause.message);
    return 0;
}

static int fill_authorization(struct ml_kubeconfig *config, const struct entry *user,
                              struct ml_err *err)
{
    ML_AUTO_WIPE char *token = NULL;
    ML_AUTO_FREE char *username = NULL;
    ML_AUTO_WIPE char *password = NULL;
    if (entry_string(user, "token", &token, err) < 0 ||
        entry_path(user, "tokenFile", &config->token_file, err) < 0 ||
        entry_string(user, "username", &username, err) < 0 ||
        entry_string(user, "password", &password, err) < 0)
        return err->kind;
    bool has_token = token || config->token_file;
    if (has_token && (username || password))
        return entry_fail(user, err,
                          "token and username/password exclude each other; "
                          "remove one");
    if (has_token && fill_token(config, user, token, err) < 0)
        return err->kind;
    if (username || password)
        fill_basic_auth(config, username, password);
    return 0;
}

/* ---- impersonation: headers as in client-go's transport/round_trippers.go ---- */

/* Adds a header for each of the values. */
static int add_impersonation(struct ml_kubeconfig *config, const struct entry *user,
                             const char *name, const struct ml_kubelist *values, struct ml_err *err)
{
    size_t count_max = config->impersonation_count + values->count + 1;
    config->impersonation = ml_realloc(config->impersonation,
                                       count_max * sizeof *config->impersonation);
    for (size_t i = 0; i < values->count; i++) {
        for (const char *c = values->items[i]; *c; c++)
            if ((unsigned char)*c < ' ' || *c == 0x7f)
                return entry_fail(user, err, "impersonation: a line end or control character");
        config->impersonation[config->impersonation_count++] = (struct ml_http_header){
            ml_strdup(name), ml_strdup(values->items[i])};
    }
    return 0;
}

/* Characters that header names cannot have are percent-encoded, and so is the percent sign. */
static char *extra_header(struct ml_str key)
{
    ML_AUTO(ml_buf_fini) struct ml_buf name = ML_BUF_INIT;
    ml_buf_puts(&name, "Impersonate-Extra-");
    for (size_t i = 0; i < key.len; i++) {
        unsigned char c = (unsigned char)key.ptr[i];
        bool plain = c < 0x80 && (isalnum(c) || (c && strchr("!#$&'*+-.^_`|~", c)));
        if (plain)
            ml_buf_putc(&name, (char)tolower(c));
        else
            ml_buf_printf(&name, "%%%02X", c);
    }
    return ml_buf_take(&name);
}

static int fill_impersonation_extra(struct ml_kubeconfig *config, const struct entry *user,
                                    struct ml_err *err)
{
    struct entry extra = {0};
    if (!entry_sub(user, "as-user-extra", "as-user-extra of user", &extra))
        return 0;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, extra.raw, 0);
    if (ml_json_next(&reader) != ML_JSON_OBJECT)
        return entry_fail(user, err, "as-user-extra must map names to lists of strings");
    while (ml_json_next(&reader) == ML_JSON_KEY) {
        ML_AUTO(list_fini) struct ml_kubelist values = {0};
        ML_AUTO_FREE char *key = ml_str_dup(reader.text);
        ML_AUTO_FREE char *name = extra_header(reader.text);
        if (entry_strings(&extra, key, &values, err) < 0 ||
            add_impersonation(config, user, name, &values, err) < 0)
            return err->kind;
        (void)ml_json_skip(&reader);
    }
    return 0;
}

static int fill_impersonation(struct ml_kubeconfig *config, const struct entry *user,
                              struct ml_err *err)
{
    ML_AUTO_FREE char *name = NULL;
    ML_AUTO_FREE char *uid = NULL;
    ML_AUTO(list_fini) struct ml_kubelist groups = {0};
    if (entry_string(user, "as", &name, err) < 0 || entry_string(user, "as-uid", &uid, err) < 0 ||
        entry_strings(user, "as-groups", &groups, err) < 0)
        return err->kind;
    const struct ml_kubelist names = {&name, name != NULL}, uids = {&uid, uid != NULL};
    if (add_impersonation(config, user, "Impersonate-User", &names, err) < 0 ||
        add_impersonation(config, user, "Impersonate-Uid", &uids, err) < 0 ||
        add_impersonation(config, user, "Impersonate-Group", &groups, err) < 0 ||
        fill_impersonation_extra(config, user, err) < 0)
        return err->kind;
    if (!name && config->impersonation_count > 0)
        return entry_fail(user, err, "as-uid, as-groups and as-user-extra need a user: add \"as\"");
    return 0;
}

/* ---- the exec plugin: which program is asked, and how ---- */

/* A path is relative to the kubeconfig; a bare name is looked up in PATH. */
static int fill_exec_command(struct ml_exec_config *config, const struct entry *exec,
                             struct ml_err *err)
{
    ML_AUTO_FREE char *command = NULL;
    if (entry_string(exec, "command", &command, err) < 0)
        return err->kind;
    if (!command)
        return entry_fail(exec, err, "no command; add the plugin's name or path");
    if (strchr(command, '/') && entry_path(exec, "command", &command, err) < 0)
        return err->kind;
    list_add(&config->argv, ml_take(&command));
    return 0;
}

static int fill_exec_version(struct ml_exec_config *config, const struct entry *exec,
                             struct ml_err *err)
{
    if (entry_string(exec, "apiVersion", &config->api_version, err) < 0)
        return err->kind;
    const char *version = config->api_version ? config->api_version : "";
    if (strcmp(version, ML_EXEC_V1) != 0 && strcmp(version, ML_EXEC_V1BETA1) != 0)
        return entry_fail(exec, err,
                          "apiVersion \"%s\" is not supported; the plugin's tool writes a "
                          "new kubeconfig with " ML_EXEC_V1 " or " ML_EXEC_V1BETA1,
                          version);
    return 0;
}

/* An operator has no terminal: a plugin that needs one cannot work. */
static int check_exec_mode(const struct ml_exec_config *config, const struct entry *exec,
                           struct ml_err *err)
{
    ML_AUTO_FREE char *mode = NULL;
    if (entry_string(exec, "interactiveMode", &mode, err) < 0)
        return err->kind;
    if (!mode && strcmp(config->api_version, ML_EXEC_V1BETA1) == 0)
        return 0;
    if (!mode)
        return entry_fail(exec, err, "no interactiveMode; add Never or IfAvailable");
    if (strcmp(mode, "Always") == 0)
        return entry_fail(exec, err,
                          "interactiveMode Always: the plugin wants to ask a person, and "
                          "none is there; use a token, a tokenFile or a client certificate");
    if (strcmp(mode, "Never") != 0 && strcmp(mode, "IfAvailable") != 0)
        return entry_fail(exec, err, "interactiveMode \"%s\"; use Never or IfAvailable", mode);
    return 0;
}

/* One {name, value} of the list; the reader stands at it. */
static int add_exec_variable(struct ml_kubelist *out, const struct entry *exec,
                             struct ml_str element, struct ml_err *err)
{
    ML_AUTO_FREE char *name = ml_json_find_string(element, "name", NULL);
    ML_AUTO_FREE char *value = ml_json_find_string(element, "value", NULL);
    if (!name || !*name || strchr(name, '='))
        return entry_fail(exec, err, "env: each variable needs a name");
    if (!value && ml_json_find(element, &element, "value", NULL))
        return entry_fail(exec, err,
                          "env: the value of %s must be a string; put it in "
                          "quotes",
                          name);
    list_add(out, ml_asprintf("%s=%s", name, value ? value : ""));
    return 0;
}

static int fill_exec_env(struct ml_kubelist *out, const struct entry *exec, struct ml_err *err)
{
    struct ml_str raw;
    if (!entry_value(exec, "env", &raw))
        return 0;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, raw, 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return entry_fail(exec, err, "env must be a list of names and values");
    for (;;) {
        struct ml_str element = ml_json_skip(&reader);
        if (element.len == 0)
            return 0;
        if (add_exec_variable(out, exec, element, err) < 0)
            return err->kind;
    }
}

/* The cluster's extension for exec plugins. */
static void fill_exec_cluster_config(struct ml_exec_config *config, const struct entry *cluster)
{
    struct ml_str raw;
    if (!ml_json_find(cluster->raw, &raw, "extensions", NULL))
        return;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, raw, 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return;
    for (struct ml_str element; (element = ml_json_skip(&reader)).len > 0;) {
        ML_AUTO_FREE char *name = ml_json_find_string(element, "name", NULL);
        if (name && strcmp(name, EXEC_EXTENSION) == 0 &&
            ml_json_find(element, &raw, "extension", NULL) && !config->cluster_config)
            config->cluster_config = ml_str_dup(raw);
    }
}

static int fill_exec(struct ml_kubeconfig *config, const struct entry *user,
                     const struct entry *cluster, struct ml_err *err)
{
    struct entry entry = {0};
    if (!entry_sub(user, "exec", "exec of user", &entry))
        return 0;
    struct ml_exec_config *exec = config->exec = ml_new(struct ml_exec_config);
    if (fill_exec_command(exec, &entry, err) < 0 || fill_exec_version(exec, &entry, err) < 0 ||
        check_exec_mode(exec, &entry, err) < 0 ||
        entry_strings(&entry, "args", &exec->argv, err) < 0 ||
        fill_exec_env(&exec->env, &entry, err) < 0 ||
        entry_bool(&entry, "provideClusterInfo", &exec->provide_cluster_info, err) < 0)
        return err->kind;
    exec->install_hint = ml_json_find_string(entry.raw, "installHint", NULL);
    fill_exec_cluster_config(exec, cluster);
    return 0;
}

/* Fills in the user's entry: certificate, authorization, impersonation, exec plugin. `cluster`: the
 * plugin gets its extension. */
static int fill_user(struct ml_kubeconfig *config, const struct entry *user,
                     const struct entry *cluster, struct ml_err *err)
{
    if (fill_client_certificate(config, user, err) < 0 ||
        fill_authorization(config, user, err) < 0 || fill_impersonation(config, user, err) < 0)
        return err->kind;
    if (config->authorization || config->tls.cert_pem.len > 0)
        return 0; /* client-go does not run the plugin then either */
    /* It would change the identity: ignoring it is not safe. */
    struct ml_str ignored;
    if (entry_value(user, "auth-provider", &ignored))
        return entry_fail(user, err,
                          "auth-provider was removed from Kubernetes in 1.26 and is not "
                          "supported; use exec with the provider's plugin, a tokenFile or a "
                          "client certificate");
    return fill_exec(config, user, cluster, err);
}

/* ---- cluster and context ---- */

static int fill_server(struct ml_kubeconfig *config, const struct entry *cluster,
                       struct ml_err *err)
{
    if (entry_string(cluster, "server", &config->server, err) < 0)
        return err->kind;
    const char *server = config->server;
    if (!server)
        return entry_fail(cluster, err, "no server; add its URL, https://HOST:PORT");
    bool https = strncasecmp(server, "https://", 8) == 0;
    if (!https && strncasecmp(server, "http://", 7) != 0)
        return entry_fail(cluster, err, "server \"%s\" must start with https://", server);
    const char *host = server + (https ? 8 : 7);
    if (*host == '\0' || *host == '/' || strpbrk(host, "?#@ \\"))
        return entry_fail(cluster, err, "server \"%s\" is not a URL of a server", server);
    size_t len = strlen(server);
    while (config->server[len - 1] == '/')
        config->server[--len] = '\0';
    return 0;
}

/* The schemes of proxies that client-go supports. */
static int check_cluster_proxy(const struct ml_kubeconfig *config, const struct entry *cluster,
                               struct ml_err *err)
{
    static const char *const schemes[] = {"http://", "https://", "socks5://", "socks5h://"};
    if (!config->tls.proxy_url)
        return 0;
    for (size_t i = 0; i < ML_COUNT(schemes); i++)
        if (strncasecmp(config->tls.proxy_url, schemes[i], strlen(schemes[i])) == 0)
            return 0;
    return entry_fail(cluster, err, "proxy-url must start with http://, https:// or socks5://");
}

static int fill_cluster_tls(struct ml_kubeconfig *config, const struct entry *cluster,
                            struct ml_err *err)
{
    ML_AUTO_FREE char *server_name = NULL;
    ML_AUTO_WIPE char *proxy_url = NULL;
    bool insecure = false, uncompressed = false; /* we never ask for compressed answers */
    if (entry_pem(cluster, "certificate-authority", &config->tls.ca_pem, &config->ca_file, err) <
            0 ||
        entry_bool(cluster, "insecure-skip-tls-verify", &insecure, err) < 0 ||
        entry_bool(cluster, "disable-compression", &uncompressed, err) < 0 ||
        entry_string(cluster, "tls-server-name", &server_name, err) < 0 ||
        entry_string(cluster, "proxy-url", &proxy_url, err) < 0)
        return err->kind;
    if (insecure && config->tls.ca_pem.len > 0)
        return entry_fail(cluster, err,
                          "insecure-skip-tls-verify and certificate-authority exclude each "
                          "other; remove one");
    config->tls.insecure = insecure;
    config->tls.server_name = ml_take(&server_name);
    config->tls.proxy_url = ml_take(&proxy_url);
    return check_cluster_proxy(config, cluster, err);
}

/* The entry that the context names under `section`. Where it does not exist, the error names the
 * context. */
static int find_entry_of_context(const struct entry *context, const struct ml_kubefile *files,
                                 size_t file_count, const char *section, const char *name,
                                 struct entry *out, struct ml_err *err)
{
    int r = entry_find(files, file_count, section, name, out, err);
    if (r == ML_ENOT_FOUND)
        return entry_fail(context, err,
                          "names %s \"%s\", which is not defined; correct the name or add it",
                          section, name);
    return r;
}

static int fill_from_context(struct ml_kubeconfig *config, const struct entry *context,
                             const struct ml_kubefile *files, size_t file_count, struct ml_err *err)
{
    ML_AUTO_FREE char *cluster_name = NULL;
    ML_AUTO_FREE char *user_name = NULL;
    if (entry_string(context, "cluster", &cluster_name, err) < 0 ||
        entry_string(context, "user", &user_name, err) < 0 ||
        entry_string(context, "namespace", &config->ns, err) < 0)
        return err->kind;
    if (!cluster_name)
        return entry_fail(context, err, "names no cluster; add one of clusters");
    struct entry cluster = {0};
    if (find_entry_of_context(context, files, file_count, "cluster", cluster_name, &cluster, err) <
            0 ||
        fill_server(config, &cluster, err) < 0 || fill_cluster_tls(config, &cluster, err) < 0)
        return err->kind;
    if (!user_name)
        return 0;
    struct entry user = {0};
    if (find_entry_of_context(context, files, file_count, "user", user_name, &user, err) < 0)
        return err->kind;
    return fill_user(config, &user, &cluster, err);
}

/* The first file that sets current-context decides. */
static char *current_context(const struct ml_kubefile *files, size_t file_count)
{
    for (size_t i = 0; i < file_count; i++) {
        ML_AUTO_FREE char *name = ml_json_find_string(ml_buf_str(&files[i].json), "current-context",
                                                      NULL);
        if (name && *name)
            return ml_take(&name);
    }
    return NULL;
}

int ml_kubeconfig_resolve(struct ml_kubeconfig *config, const struct ml_kubefile *files,
                          size_t file_count, const char *context_name, struct ml_err *err)
{
    ml_assert(file_count > 0);
    ML_AUTO_FREE char *name = context_name && *context_name ? ml_strdup(context_name)
                                                            : current_context(files, file_count);
    if (!name)
        return ml_err_set(err, ML_EINVALID, "%s: no current-context; choose one with --context",
                          files[0].path);
    struct entry context = {0};
    int r = entry_find(files, file_count, "context", name, &context, err);
    if (r == ML_ENOT_FOUND)
        return ml_err_set(err, ML_EINVALID,
                          "%s: no context \"%s\"; kubectl config get-contexts lists them",
                          files[0].path, name);
    if (r < 0 || fill_from_context(config, &context, files, file_count, err) < 0)
        return err->kind;
    config->source = ml_asprintf("%s, context \"%s\"", context.file->path, name);
    config->context = ml_take(&name);
    return 0;
}

/* ---- where it comes from ---- */

static void free_config(struct ml_kubeconfig **config)
{
    ml_kubeconfig_free(*config);
}

struct files {
    struct ml_kubefile list[ML_KUBEFILES_MAX];
    size_t count;
};

static void files_fini(struct files *files)
{
    for (size_t i = 0; i < files->count; i++)
        ml_kubefile_fini(&files->list[i]);
}

static bool files_have(const struct files *files, const char *path)
{
    for (size_t i = 0; i < files->count; i++)
        if (strcmp(files->list[i].path, path) == 0)
            return true;
    return false;
}

/* Any mistake in a file makes the configuration invalid; `optional`: it may be missing. */
static int files_add(struct files *files, const char *path, bool optional, struct ml_err *err)
{
    if (files_have(files, path))
        return 0;
    if (files->count == ML_COUNT(files->list))
        return ml_err_set(err, ML_EINVALID, "KUBECONFIG names more than %d files",
                          ML_KUBEFILES_MAX);
    ML_AUTO(ml_wipe_buf) struct ml_buf text = {.len_max = ML_KUBEFILE_SIZE_MAX};
    int r = read_file(path, &text, err);
    if (r == ML_ENOT_FOUND && optional) {
        *err = ML_ERR_INIT;
        return 0;
    }
    if (r == 0)
        r = ml_kubefile_parse(path, ml_buf_str(&text), &files->list[files->count], err);
    if (r < 0)
        return err->kind = ML_EINVALID;
    files->count++;
    return 0;
}

static int files_add_list(struct files *files, const char *list, struct ml_err *err)
{
    for (struct ml_str rest = ml_str_of(list); rest.ptr;) {
        ML_AUTO_FREE char *path = ml_str_dup(ml_str_cut(&rest, ':'));
        if (*path && files_add(files, path, true, err) < 0)
            return err->kind;
    }
    if (files->count == 0)
        return ml_err_set(err, ML_EINVALID,
                          "KUBECONFIG names no file that exists: %s; correct or unset it", list);
    return 0;
}

static int files_add_home(struct files *files, const struct ml_kubeconfig_env *env,
                          struct ml_err *err)
{
    ML_AUTO_FREE char *path = ml_asprintf("%s/.kube/config", env->home ? env->home : "");
    if (files_add(files, path, true, err) < 0)
        return err->kind;
    if (files->count == 0)
        return ml_err_set(err, ML_ENOT_FOUND,
                          "no API server is configured: name a kubeconfig with --kubeconfig or "
                          "KUBECONFIG; there is no %s/token and no %s",
                          env->account_dir, path);
    return 0;
}

/* rest.InClusterConfig. False: not in a pod, or in one without a token. */
static bool load_from_pod(struct ml_kubeconfig *config, const struct ml_kubeconfig_env *env)
{
    if (!env->service_host || !*env->service_host || !env->service_port || !*env->service_port)
        return false;
    struct ml_err err = ML_ERR_INIT;
    config->token_file = ml_asprintf("%s/token", env->account_dir);
    if (ml_kubeconfig_read_token(config, &err) < 0) {
        free(ml_take(&config->token_file));
        return false;
    }
    bool ipv6 = strchr(env->service_host, ':') != NULL;
    config->server = ml_asprintf(ipv6 ? "https://[%s]:%s" : "https://%s:%s", env->service_host,
                                 env->service_port);
    config->ca_file = ml_asprintf("%s/ca.crt", env->account_dir);
    ML_AUTO(ml_buf_fini) struct ml_buf ca = {.len_max = ML_KUBEFILE_SIZE_MAX};
    /* Otherwise the system's roots, until it can be read. */
    if (read_file(config->ca_file, &ca, &err) == 0)
        config->tls.ca_pem = ml_str_of(ml_buf_take(&ca));
    ML_AUTO_FREE char *ns_path = ml_asprintf("%s/namespace", env->account_dir);
    ML_AUTO(ml_buf_fini) struct ml_buf ns = {.len_max = ML_TOKEN_SIZE_MAX};
    if (read_file(ns_path, &ns, &err) == 0 && ml_str_trim(ml_buf_str(&ns)).len > 0)
        config->ns = ml_str_dup(ml_str_trim(ml_buf_str(&ns)));
    config->source = ml_strdup("the pod's service account");
    config->in_cluster = true;
    return true;
}

/* A pipe cannot be read again. */
static void note_files(struct ml_kubeconfig *config, const struct files *files)
{
    struct stat info;
    for (size_t i = 0; i < files->count; i++)
        if (stat(files->list[i].path, &info) < 0 || !S_ISREG(info.st_mode))
            return;
    for (size_t i = 0; i < files->count; i++)
        list_add(&config->read_from, ml_strdup(files->list[i].path));
}

static int load_first_found(struct ml_kubeconfig *config, const struct ml_kubeconfig_opts *opts,
                            const struct ml_kubeconfig_env *env, struct ml_err *err)
{
    ML_AUTO(files_fini) struct files files = {.count = 0};
    int r;
    if (opts->path && *opts->path)
        r = files_add(&files, opts->path, false, err);
    else if (env->kubeconfig && *env->kubeconfig)
        r = files_add_list(&files, env->kubeconfig, err);
    else if (!opts->context && load_from_pod(config, env)) /* --context means a kubeconfig */
        return 0;
    else
        r = files_add_home(&files, env, err);
    if (r < 0)
        return r;
    note_files(config, &files);
    return ml_kubeconfig_resolve(config, files.list, files.count, opts->context, err);
}

int ml_kubeconfig_read_again(const struct ml_kubeconfig *config, struct ml_kubeconfig **out,
                             struct ml_err *err)
{
    ML_AUTO(files_fini) struct files files = {.count = 0};
    ML_AUTO(free_config) struct ml_kubeconfig *fresh = ml_new(struct ml_kubeconfig);
    *err = ML_ERR_INIT;
    for (size_t i = 0; i < config->read_from.count; i++) {
        const char *path = config->read_from.items[i];
        struct ml_kubefile *file = &files.list[files.count];
        ML_AUTO(ml_wipe_buf) struct ml_buf text = {.len_max = ML_KUBEFILE_SIZE_MAX};
        if (ml_file_read_again(path, &text, err) < 0 ||
            ml_kubefile_parse(path, ml_buf_str(&text), file, err) < 0)
            return err->kind = ML_EINVALID;
        file->again = true;
        files.count++;
    }
    if (ml_kubeconfig_resolve(fresh, files.list, files.count, config->context, err) < 0)
        return err->kind;
    *out = ml_take(&fresh);
    return 0;
}

uint64_t ml_kubeconfig_stamp(const struct ml_kubeconfig *config)
{
    uint64_t stamp = 1;
    for (size_t i = 0; i < config->read_from.count; i++) {
        struct stat info;
        if (stat(config->read_from.items[i], &info) < 0)
            return 0;
        const int64_t parts[] = {(int64_t)info.st_dev, (int64_t)info.st_ino, info.st_size,
                                 info.st_mtim.tv_sec,  info.st_mtim.tv_nsec, info.st_ctim.tv_sec,
                                 info.st_ctim.tv_nsec};
        stamp = stamp * 31 + ml_str_hash((struct ml_str){(const char *)parts, sizeof parts});
    }
    return stamp;
}

int ml_kubeconfig_load_env(const struct ml_kubeconfig_opts *opts,
                           const struct ml_kubeconfig_env *env, struct ml_kubeconfig **out,
                           struct ml_err *err)
{
    ML_AUTO(free_config) struct ml_kubeconfig *config = ml_new(struct ml_kubeconfig);
    *err = ML_ERR_INIT;
    if (load_first_found(config, opts, env, err) < 0)
        return err->kind;
    if (!config->ns)
        config->ns = ml_strdup("default");
    *out = ml_take(&config);
    return 0;
}

int ml_kubeconfig_load(const struct ml_kubeconfig_opts *opts, struct ml_kubeconfig **out,
                       struct ml_err *err)
{
    const struct ml_kubeconfig_env env = {
        .kubeconfig = getenv("KUBECONFIG"),
        .home = getenv("HOME"),
        .service_host = getenv("KUBERNETES_SERVICE_HOST"),
        .service_port = getenv("KUBERNETES_SERVICE_PORT"),
        .account_dir = ACCOUNT_DIR,
    };
    return ml_kubeconfig_load_env(opts, &env, out, err);
}
