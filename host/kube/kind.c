/* Names of kinds and objects, checked, and the URLs made of them. */
#include "kube/kind.h"

#include <ctype.h>

#define GROUP_LEN_MAX 253 /* DNS-1123 subdomain */
#define LABEL_LEN_MAX 63  /* DNS-1123 label: versions, and kinds in either case */
#define NAME_LEN_MAX  253

const struct ml_kind ml_kind_configmap = {"v1", "", "v1", "ConfigMap", "configmaps", true, false};
const struct ml_kind ml_kind_namespace = {"v1", "", "v1", "Namespace", "namespaces", false, true};
const struct ml_kind ml_kind_event = {
    "events.k8s.io/v1", "events.k8s.io", "v1", "Event", "events", true, false};
const struct ml_kind ml_kind_lease = {
    "coordination.k8s.io/v1", "coordination.k8s.io", "v1", "Lease", "leases", true, false};
const struct ml_kind ml_kind_secret = {"v1", "", "v1", "Secret", "secrets", true, false};
const struct ml_kind ml_kind_crd = {"apiextensions.k8s.io/v1",
                                    "apiextensions.k8s.io",
                                    "v1",
                                    "CustomResourceDefinition",
                                    "customresourcedefinitions",
                                    false,
                                    true};
const struct ml_kind ml_kind_mutating = {"admissionregistration.k8s.io/v1",
                                         "admissionregistration.k8s.io",
                                         "v1",
                                         "MutatingWebhookConfiguration",
                                         "mutatingwebhookconfigurations",
                                         false,
                                         false};
const struct ml_kind ml_kind_validating = {"admissionregistration.k8s.io/v1",
                                           "admissionregistration.k8s.io",
                                           "v1",
                                           "ValidatingWebhookConfiguration",
                                           "validatingwebhookconfigurations",
                                           false,
                                           false};

/* Letters, digits and '-', starting with a letter, not ending with '-'. */
static bool is_dns_label(struct ml_str text, bool upper_too)
{
    if (text.len == 0 || text.len > LABEL_LEN_MAX || text.ptr[text.len - 1] == '-' ||
        !isalpha((unsigned char)text.ptr[0]))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if ((c != '-' && !isalnum(c)) || (isupper(c) && !upper_too))
            return false;
    }
    return true;
}

static bool is_dns_subdomain(struct ml_str text)
{
    if (text.len == 0 || text.len > GROUP_LEN_MAX)
        return false;
    /* As if a label had just ended: each starts and ends with a letter or digit. */
    unsigned char before = '.';
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        bool edge = c == '-' || c == '.';
        if (!edge && !islower(c) && !isdigit(c))
            return false;
        if ((edge && before == '.') || (c == '.' && before == '-'))
            return false;
        before = c;
    }
    return isalnum(before);
}

bool ml_group_is_built_in(struct ml_str group)
{
    static const char *const groups[] = {
        "admissionregistration",
        "apiextensions",
        "apiregistration",
        "authentication",
        "authorization",
        "certificates",
        "coordination",
        "discovery",
        "events",
        "flowcontrol.apiserver",
        "internal.apiserver",
        "networking",
        "node",
        "rbac.authorization",
        "resource",
        "scheduling",
        "storage",
        "storagemigration",
    };
    if (!group.len || !memchr(group.ptr, '.', group.len))
        return true;
    if (!ml_str_ends(group, ".k8s.io"))
        return false;
    group.len -= strlen(".k8s.io");
    for (size_t i = 0; i < ML_COUNT(groups); i++)
        if (ml_str_is(group, groups[i]))
            return true;
    return false;
}

bool ml_gvk_parse(struct ml_str api_version, struct ml_str kind, struct ml_gvk *out)
{
    struct ml_str version = api_version;
    struct ml_str group = ml_str_cut(&version, '/');
    bool core = version.ptr == NULL;
    if (core) {
        version = api_version;
        group = ML_STR("");
    }
    if (!core && !is_dns_subdomain(group))
        return false;
    if (!is_dns_label(version, false) || !is_dns_label(kind, true))
        return false;
    *out = (struct ml_gvk){group, version, kind};
    return true;
}

/* Leaves what is unreserved (RFC 3986, 2.3). A path may have a plain ':', which RBAC names use. */
static void append_percent_encoded(struct ml_buf *out, struct ml_str text, bool in_path)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (isalnum(c) || (c && strchr("-._~", c)) || (in_path && c == ':'))
            ml_buf_putc(out, (char)c);
        else
            ml_buf_printf(out, "%%%02X", c);
    }
}

static void append_path_segment(struct ml_buf *out, struct ml_str text)
{
    ml_buf_putc(out, '/');
    append_percent_encoded(out, text, true);
}

void ml_kind_path(const struct ml_kind *kind, struct ml_str ns, struct ml_str name,
                  struct ml_str subresource, struct ml_buf *out)
{
    ml_buf_puts(out, *kind->group ? "/apis/" : "/api/");
    ml_buf_puts(out, kind->api_version);
    if (kind->namespaced && ns.len > 0) {
        ml_buf_puts(out, "/namespaces");
        append_path_segment(out, ns);
    }
    append_path_segment(out, ml_str_of(kind->plural));
    if (name.len > 0)
        append_path_segment(out, name);
    if (subresource.len > 0)
        append_path_segment(out, subresource);
}

void ml_url_query(struct ml_buf *url, const char *key, struct ml_str value)
{
    bool first = url->len == 0 || memchr(url->ptr, '?', url->len) == NULL;
    ml_buf_putc(url, first ? '?' : '&');
    append_percent_encoded(url, ml_str_of(key), false);
    ml_buf_putc(url, '=');
    append_percent_encoded(url, value, false);
}

struct ml_str ml_key_namespace(struct ml_str key)
{
    struct ml_str name = key;
    struct ml_str ns = ml_str_cut(&name, '/');
    return name.ptr ? ns : ML_STR("");
}

struct ml_str ml_key_name(struct ml_str key)
{
    struct ml_str name = key;
    (void)ml_str_cut(&name, '/');
    return name.ptr ? name : key;
}

bool ml_name_valid(struct ml_str name)
{
    if (name.len == 0 || name.len > NAME_LEN_MAX)
        return false;
    unsigned char before = '.';
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.ptr[i];
        if (!isalnum(c) && c != ':' && c != '-' && c != '.')
            return false;
        if (before == '.' && (c == '.' || c == '-'))
            return false;
        before = c;
    }
    return before != '.' && before != '-';
}

bool ml_key_valid(struct ml_str key)
{
    struct ml_str name = key, ns = ml_str_cut(&name, '/');
    return name.ptr ? ml_name_valid(ns) && ml_name_valid(name) : ml_name_valid(key);
}

int ml_name_check(struct ml_str name, struct ml_err *err)
{
    if (ml_name_valid(name))
        return 0;
    if (name.len == 0)
        return ml_err_set(err, ML_EINVALID, "is missing");
    if (name.len > NAME_LEN_MAX)
        return ml_err_set(err, ML_EINVALID, "has %zu bytes; a name has at most %d", name.len,
                          NAME_LEN_MAX);
    return ml_err_set(err, ML_EINVALID,
                      "'" ML_STR_FMT "' is no name: it has letters, digits, '-', '.' and ':', and "
                      "begins and ends with a letter or digit",
                      ML_STR_ARG(name));
}

bool ml_path_is_event(const char *path)
{
    return ml_str_starts(ml_str_of(path), "/apis/events.k8s.io/");
}
