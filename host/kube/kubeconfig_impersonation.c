/* Acting as somebody else, as client-go's transport/round_trippers.go asks for it. */
#include "kube/kubeconfig_internal.h"

#include "codec/json.h"

#include <ctype.h>
#include <stdio.h>

static int add(struct ml_kubeconfig *config, const struct ml_kubeentry *user, char *name,
               const char *value, struct ml_err *err)
{
    for (const char *c = value; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7f) {
            free(name);
            return ml_kubeentry_fail(user, err, "impersonation: a line end or control character");
        }
    }
    config->impersonation = ml_realloc(config->impersonation, (config->impersonation_count + 1) *
                                                                  sizeof *config->impersonation);
    config->impersonation[config->impersonation_count++] = (struct ml_http_header){
        name, ml_strdup(value)};
    return 0;
}

static int add_all(struct ml_kubeconfig *config, const struct ml_kubeentry *user, const char *name,
                   const struct ml_kubelist *values, struct ml_err *err)
{
    for (size_t i = 0; i < values->count; i++)
        if (add(config, user, ml_strdup(name), values->items[i], err) < 0)
            return err->kind;
    return 0;
}

/* What may not stand in the name of a header is percent-encoded, and the percent sign too. */
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

static int fill_extra(struct ml_kubeconfig *config, const struct ml_kubeentry *user,
                      struct ml_err *err)
{
    ML_AUTO(ml_kubeentry_fini) struct ml_kubeentry extra = {0};
    if (!ml_kubeentry_sub(user, "as-user-extra", "as-user-extra of user", &extra))
        return 0;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, extra.raw, 0);
    if (ml_json_next(&reader) != ML_JSON_OBJECT)
        return ml_kubeentry_fail(user, err, "as-user-extra must map names to lists of strings");
    while (ml_json_next(&reader) == ML_JSON_KEY) {
        ML_AUTO(ml_kubelist_fini) struct ml_kubelist values = {0};
        ML_AUTO_FREE char *key = ml_str_dup(reader.text);
        ML_AUTO_FREE char *name = extra_header(reader.text);
        if (ml_kubeentry_strings(&extra, key, &values, err) < 0 ||
            add_all(config, user, name, &values, err) < 0)
            return err->kind;
        (void)ml_json_skip(&reader);
    }
    return 0;
}

int ml_kubeconfig_fill_impersonation(struct ml_kubeconfig *config, const struct ml_kubeentry *user,
                                     struct ml_err *err)
{
    ML_AUTO_FREE char *name = NULL;
    ML_AUTO_FREE char *uid = NULL;
    ML_AUTO(ml_kubelist_fini) struct ml_kubelist groups = {0};
    if (ml_kubeentry_string(user, "as", &name, err) < 0 ||
        ml_kubeentry_string(user, "as-uid", &uid, err) < 0 ||
        ml_kubeentry_strings(user, "as-groups", &groups, err) < 0)
        return err->kind;
    if (name && add(config, user, ml_strdup("Impersonate-User"), name, err) < 0)
        return err->kind;
    if (uid && add(config, user, ml_strdup("Impersonate-Uid"), uid, err) < 0)
        return err->kind;
    if (add_all(config, user, "Impersonate-Group", &groups, err) < 0 ||
        fill_extra(config, user, err) < 0)
        return err->kind;
    if (!name && config->impersonation_count > 0)
        return ml_kubeentry_fail(user, err,
                                 "as-uid, as-groups and as-user-extra need a user: add \"as\"");
    return 0;
}
