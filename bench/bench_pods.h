/* Pods as an API server sends them, made here so that every run measures the same text: a plain
 * one of about 1.3 KB, and one of about 6 KB with what clusters add (managed fields, volumes,
 * probes, container statuses). `number` makes names and ids differ. */
#pragma once

#include "base/buf.h"

#define CONTAINERS_LARGE 4

static inline void bench_pod_metadata(struct ml_buf *out, int number)
{
    ml_buf_printf(out,
                  "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"web-%05d\","
                  "\"generateName\":\"web-6d4cf56db6-\","
                  "\"namespace\":\"default\",\"uid\":\"7d9e7a1c-52c4-4b0e-9a0b-%012d\","
                  "\"resourceVersion\":\"%d\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\","
                  "\"labels\":{\"app\":\"web\",\"pod-template-hash\":\"6d4cf56db6\"},",
                  number, number, 100000 + number);
    ml_buf_printf(out,
                  "\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\","
                  "\"name\":\"web-6d4cf56db6\",\"uid\":\"0b8f9f7e-58a4-4f7e-8b5a-%012d\","
                  "\"controller\":true,\"blockOwnerDeletion\":true}]",
                  number / 10);
}

static inline void bench_pod_managed_fields(struct ml_buf *out)
{
    static const char *const fields[] = {"f:metadata", "f:spec", "f:status", "f:conditions"};
    ml_buf_puts(out, ",\"managedFields\":[");
    for (size_t i = 0; i < ML_COUNT(fields); i++)
        ml_buf_printf(out,
                      "%s{\"manager\":\"kube-controller-manager\",\"operation\":\"Update\","
                      "\"apiVersion\":\"v1\",\"time\":\"2026-01-01T00:00:00Z\",\"fieldsType\":"
                      "\"FieldsV1\",\"fieldsV1\":{\"%s\":{\".\":{},\"f:app\":{},\"f:image\":{},"
                      "\"k:{\\\"type\\\":\\\"Ready\\\"}\":{\".\":{},\"f:lastProbeTime\":{},"
                      "\"f:lastTransitionTime\":{},\"f:message\":{},\"f:reason\":{},"
                      "\"f:status\":{},\"f:type\":{}}}}}",
                      i ? "," : "", fields[i]);
    ml_buf_puts(out, "]");
}

static inline void bench_pod_container(struct ml_buf *out, const char *name, bool large)
{
    ml_buf_printf(out,
                  "{\"name\":\"%s\",\"image\":\"registry.example.com/web:1.25.3\",\"ports\":"
                  "[{\"containerPort\":8080,\"protocol\":\"TCP\"}],\"resources\":{}",
                  name);
    if (large)
        ml_buf_puts(out, ",\"env\":[{\"name\":\"POD_NAME\",\"valueFrom\":{\"fieldRef\":"
                         "{\"apiVersion\":\"v1\",\"fieldPath\":\"metadata.name\"}}},{\"name\":"
                         "\"GREETING\",\"value\":\"gr\u00fc\u00df dich, \\\"world\\\"\"}],"
                         "\"livenessProbe\":{\"httpGet\":{\"path\":\"/healthz\",\"port\":8080,"
                         "\"scheme\":\"HTTP\"},\"initialDelaySeconds\":5,\"timeoutSeconds\":1,"
                         "\"periodSeconds\":10,\"successThreshold\":1,\"failureThreshold\":3},"
                         "\"volumeMounts\":[{\"name\":\"kube-api-access\",\"readOnly\":true,"
                         "\"mountPath\":\"/var/run/secrets/kubernetes.io/serviceaccount\"}]");
    ml_buf_puts(out, ",\"imagePullPolicy\":\"IfNotPresent\"}");
}

static inline void bench_pod_conditions(struct ml_buf *out)
{
    static const char *const types[] = {"Initialized", "Ready", "ContainersReady", "PodScheduled"};
    for (size_t i = 0; i < ML_COUNT(types); i++)
        ml_buf_printf(out,
                      "%s{\"type\":\"%s\",\"status\":\"True\",\"lastProbeTime\":null,"
                      "\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"}",
                      i ? "," : "", types[i]);
}

static inline void bench_pod_statuses(struct ml_buf *out)
{
    ml_buf_puts(out, ",\"containerStatuses\":[");
    for (int i = 0; i < CONTAINERS_LARGE; i++)
        ml_buf_printf(out,
                      "%s{\"name\":\"container-%d\",\"state\":{\"running\":{\"startedAt\":"
                      "\"2026-01-01T00:00:00Z\"}},\"lastState\":{},\"ready\":true,"
                      "\"restartCount\":%d,\"image\":\"registry.example.com/web:1.25.3\","
                      "\"imageID\":\"registry.example.com/web@sha256:"
                      "0d17b565c37bcbd895e9d92315a05c1c3c9a29f762b011a10c54a66cd53c9b31\","
                      "\"started\":true}",
                      i ? "," : "", i, i);
    ml_buf_puts(out, "]");
}

static inline void bench_pod(struct ml_buf *out, int number, bool large)
{
    bench_pod_metadata(out, number);
    if (large)
        bench_pod_managed_fields(out);
    ml_buf_puts(out, "},\"spec\":{\"containers\":[");
    for (int i = 0; i < (large ? CONTAINERS_LARGE : 1); i++) {
        ML_AUTO_FREE char *name = ml_asprintf("container-%d", i);
        ml_buf_puts(out, i ? "," : "");
        bench_pod_container(out, name, large);
    }
    ml_buf_puts(out, "],\"restartPolicy\":\"Always\",\"terminationGracePeriodSeconds\":30,"
                     "\"dnsPolicy\":\"ClusterFirst\",\"serviceAccountName\":\"default\","
                     "\"nodeName\":\"node-1\"},\"status\":"
                     "{\"phase\":\"Running\",\"podIP\":\"10.244.1.17\",\"conditions\":[");
    bench_pod_conditions(out);
    ml_buf_puts(out, "]");
    if (large)
        bench_pod_statuses(out);
    ml_buf_puts(out, "}}");
}
