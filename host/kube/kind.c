/* Names of kinds and objects, checked, and the URLs made of them. Called by all above. */
#include "kube/kind.h"

#define GROUP_LEN_MAX 253 /* DNS-1123 subdomain */
#define LABEL_LEN_MAX 63  /* DNS-1123 label: versions, and kinds in either case */
#define NAME_LEN_MAX  253

const struct ml_kind ml_kind_configmap = {"v1", "", "v1", "ConfigMap", "configmaps", true, false};
const struct ml_kind ml_kind_namespace = {"v1", "", "v1", "Namespace", "namespaces", false, true};
const struct ml_kind ml_kind_event = {
    "events.k8s.io/v1", "events.k8s.io", "v1", "Event", "events", true, false};
const struct ml_kind ml_kind_lease = {
    "coordination.k8s.io/v1", "coordination.k8s.io", "v1", "Lease", "leases", true, false};

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_alphanumeric(char c)
{
    return is_lower(c) || is_upper(c) || is_digit(c);
}

/* Letters, digits and '-', starting with a letter, not ending with '-'. */
static bool is_dns_label(struct ml_str text, bool upper_too)
{
    if (text.len == 0 || text.len > LABEL_LEN_MAX || text.ptr[text.len - 1] == '-')
        return false;
    if (!is_lower(text.ptr[0]) && !(upper_too && is_upper(text.ptr[0])))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c != '-' && !is_lower(c) && !is_digit(c) && !(upper_too && is_upper(c)))
            return false;
    }
    return true;
}

static bool is_dns_subdomain(struct ml_str text)
{
    if (text.len == 0 || text.len > GROUP_LEN_MAX)
        return false;
    char before =
        '.'; /* as if a label had just ended: each starts and ends with a letter or digit */
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool edge = c == '-' || c == '.';
        if (!edge && !is_lower(c) && !is_digit(c))
            return false;
        if ((edge && before == '.') || (c == '.' && before == '-'))
            return false;
        before = c;
    }
    return is_alphanumeric(before);
}

bool ml_gvk_parse(struct ml_str api_version, struct ml_str kind, struct ml_gvk *out)
{
    struct ml_str rest = api_version;
    struct ml_str group = ml_str_cut(&rest, '/');
    struct ml_str version = rest;
    bool core = rest.ptr == NULL;
    if (core) {
        version = group;
        group = ML_STR("");
    }
    if (!core && !is_dns_subdomain(group))
        return false;
    if (!is_dns_label(version, false) || !is_dns_label(kind, true))
        return false;
    *out = (struct ml_gvk){group, version, kind};
    return true;
}

static bool is_unreserved(char c) /* RFC 3986, 2.3 */
{
    return is_alphanumeric(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

/* A path may have a plain ':', which RBAC names use. */
static void append_percent_encoded(struct ml_buf *out, struct ml_str text, bool in_path)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (is_unreserved(c) || (in_path && c == ':'))
            ml_buf_putc(out, c);
        else
            ml_buf_printf(out, "%%%02X", (unsigned char)c);
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
    const char *slash = key.len ? memchr(key.ptr, '/', key.len) : NULL;
    return slash ? (struct ml_str){key.ptr, (size_t)(slash - key.ptr)} : ML_STR("");
}

struct ml_str ml_key_name(struct ml_str key)
{
    const char *slash = key.len ? memchr(key.ptr, '/', key.len) : NULL;
    if (!slash)
        return key;
    return (struct ml_str){slash + 1, (size_t)(key.ptr + key.len - slash - 1)};
}

bool ml_name_valid(struct ml_str name)
{
    if (name.len == 0 || name.len > NAME_LEN_MAX)
        return false;
    char before = '.';
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (!is_alphanumeric(c) && c != ':' && c != '-' && c != '.')
            return false;
        if (before == '.' && (c == '.' || c == '-'))
            return false;
        before = c;
    }
    return before != '.' && before != '-';
}

bool ml_path_is_event(const char *path)
{
    return ml_str_starts(ml_str_of(path), "/apis/events.k8s.io/");
}
