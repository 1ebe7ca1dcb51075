/* The faults of a transport and the requests that they fit. Called by transport_embedded.c. */
#include "cluster/transport_faults.h"

#include "codec/json.h"

struct rule {
    struct ml_list node;
    int number;
    struct ml_fault fault; /* strings owned */
    size_t left;           /* 0: without end */
};

static struct rule *rule_of(struct ml_list *node)
{
    return ml_container_of(node, struct rule, node);
}

static void rule_free(struct rule *rule)
{
    ml_list_remove(&rule->node);
    free((char *)rule->fault.method);
    free((char *)rule->fault.path);
    free((char *)rule->fault.reason);
    free(rule);
}

void ml_faults_init(struct ml_faults *faults)
{
    ml_list_init(&faults->rules);
    faults->last_number = 0;
}

void ml_faults_fini(struct ml_faults *faults)
{
    ml_list_each (node, &faults->rules)
        rule_free(rule_of(node));
}

int ml_faults_add(struct ml_faults *faults, const struct ml_fault *fault)
{
    struct rule *rule = ml_new(struct rule);
    rule->number = ++faults->last_number;
    rule->fault = *fault;
    rule->fault.method = ml_strdup(fault->method);
    rule->fault.path = ml_strdup(fault->path);
    rule->fault.reason = ml_strdup(fault->reason);
    rule->left = fault->times;
    ml_list_push(&faults->rules, &rule->node);
    return rule->number;
}

void ml_faults_remove(struct ml_faults *faults, int number)
{
    ml_list_each (node, &faults->rules)
        if (rule_of(node)->number == number)
            rule_free(rule_of(node));
}

/* The oldest fault that fits the request, of those that hold or of the others. */
static struct rule *find_rule(const struct ml_faults *faults, bool holds, const char *method,
                              const char *path)
{
    ml_list_each (node, &faults->rules) {
        const struct ml_fault *fault = &rule_of(node)->fault;
        if ((fault->kind == ML_FAULT_HOLD) == holds &&
            (!fault->method || strcmp(fault->method, method) == 0) &&
            (!fault->path || strstr(path, fault->path)))
            return rule_of(node);
    }
    return NULL;
}

bool ml_faults_hold(const struct ml_faults *faults, const char *method, const char *path)
{
    return find_rule(faults, true, method, path) != NULL;
}

static void write_refusal_status(const struct ml_fault *fault, struct ml_buf *out)
{
    struct ml_json_writer writer;
    const char *reason = fault->reason ? fault->reason : "";
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "kind", ML_STR("Status"));
    ml_json_put_string(&writer, "apiVersion", ML_STR("v1"));
    ml_json_put_string(&writer, "status", ML_STR("Failure"));
    ml_json_put_string(&writer, "message", ML_STR("injected fault"));
    ml_json_put_string(&writer, "reason", ml_str_of(reason));
    ml_json_put_int(&writer, "code", fault->status);
    ml_json_end_object(&writer);
}

bool ml_faults_strike(struct ml_faults *faults, const char *method, const char *path,
                      struct ml_fault *out, struct ml_buf *refusal)
{
    struct rule *rule = find_rule(faults, false, method, path);
    if (!rule)
        return false;
    if (rule->fault.kind == ML_FAULT_REFUSE)
        write_refusal_status(&rule->fault, refusal);
    *out = rule->fault;
    out->method = out->path = out->reason = NULL;
    if (rule->left && --rule->left == 0)
        rule_free(rule);
    return true;
}
