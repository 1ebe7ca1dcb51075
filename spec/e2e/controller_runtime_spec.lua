-- An operator that we did not write, on controller-runtime, deployed to moonloop dev as to any cluster: its own
-- image, its service account, and webhooks behind a Service. It annotates each pod, lets no pod lose the annotation,
-- and labels ReplicaSets.
local Authority = require "spec.e2e.support.authority"
local cjson = require "cjson"
local cluster = require "spec.e2e.support.cluster"
local dev = require "spec.host.support.dev"
local mime = require "mime"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local KUBECTL = os.getenv "KUBECTL" or "kubectl"
local PORT = 9443
local ANNOTATION = "example-mutating-admission-webhook"
local CERTIFICATES = "/tmp/k8s-webhook-server/serving-certs" -- where controller-runtime looks for them

local lacks = cluster.controlplane and "tried with the embedded server" or dev.no_namespaces


local function operator(pair)
  return { apiVersion = "v1", kind = "List", items = {
    { apiVersion = "v1", kind = "Namespace", metadata = { name = "system" } },
    { apiVersion = "v1", kind = "Namespace", metadata = { name = "apps", labels = { annotated = "yes" } } },
    { apiVersion = "v1", kind = "Secret", type = "kubernetes.io/tls",
      metadata = { name = "certificates", namespace = "system" },
      stringData = { ["tls.crt"] = pair.certificate, ["tls.key"] = pair.key } },
    { apiVersion = "v1", kind = "Service", metadata = { name = "webhooks", namespace = "system" },
      spec = { selector = { app = "operator" }, ports = { { port = 443, targetPort = PORT } } } },
    {
      apiVersion = "apps/v1", kind = "Deployment", metadata = { name = "operator", namespace = "system" },
      spec = { selector = { matchLabels = { app = "operator" } }, template = {
        metadata = { labels = { app = "operator" } },
        spec = {
          volumes = { { name = "certificates", secret = { secretName = "certificates" } } },
          containers = { {
            name = "manager", image = "example.com/team/operator:v1", ports = { { containerPort = PORT } },
            volumeMounts = { { name = "certificates", mountPath = CERTIFICATES, readOnly = true } },
            readinessProbe = { tcpSocket = { port = PORT }, periodSeconds = 1 },
          } },
        },
      } },
    },
  } }
end


local function configuration(kind, authority, path, operations)
  return {
    apiVersion = "admissionregistration.k8s.io/v1", kind = kind, metadata = { name = "operator" },
    webhooks = { {
      name = "pods.example.com", sideEffects = "None", admissionReviewVersions = { "v1" },
      clientConfig = { service = { name = "webhooks", namespace = "system", path = path },
        caBundle = mime.b64(authority.certificate) },
      rules = { { apiGroups = { "" }, apiVersions = { "v1" }, operations = operations, resources = { "pods" } } },
      namespaceSelector = { matchLabels = { annotated = "yes" } },
    } },
  }
end


describe("An operator on controller-runtime with webhooks", function()
  after_each(dev.stop_all)

  it("works in moonloop dev as it is deployed anywhere", function()
    if lacks then
      pending(lacks)
      return
    end
    local program = shell.must("spec/e2e/clients/run.sh builtins"):match "(%S+)%s*$" -- behind what the build said
    local server = dev.start { "--image", "operator=" .. program }
    local function kubectl(...)
      return shell.run(("KUBECONFIG=%s %s 2>&1"):format(server.kubeconfig, shell.line { KUBECTL, ... }))
    end
    local function apply(object)
      local file = shell.path "manifest"
      shell.write(file, cjson.encode(object))
      kubectl("apply", "-f", file)
    end
    local function till(what, wanted, ...)
      local words = { ... }
      wait.till(what, 30, function()
        local said = kubectl(table.unpack(words))
        return said == wanted, said .. server:story()
      end)
    end

    local authority = Authority.new "operator"
    apply(operator(authority:sign "DNS:webhooks.system.svc"))
    till("the operator", "1", "get", "deployment", "operator", "-n", "system", "-o", "jsonpath={.status.readyReplicas}")
    apply(configuration("MutatingWebhookConfiguration", authority, "/mutate--v1-pod", { "CREATE" }))
    apply(configuration("ValidatingWebhookConfiguration", authority, "/validate--v1-pod", { "CREATE", "UPDATE" }))

    kubectl("create", "deployment", "web", "-n", "apps", "--image=busybox", "--replicas=2", "--", "sleep", "600")
    till("two pods", "2", "get", "deployment", "web", "-n", "apps", "-o", "jsonpath={.status.readyReplicas}")
    till("their annotations", "foo foo", "get", "pods", "-n", "apps", "-o",
      "jsonpath={.items[*].metadata.annotations." .. ANNOTATION .. "}")
    till("the ReplicaSet's label", "world", "get", "replicasets", "-n", "apps", "-o",
      "jsonpath={.items[*].metadata.labels.hello}")

    local refused = kubectl("annotate", "pods", "--all", "-n", "apps", "--overwrite", ANNOTATION .. "=bar")
    assert.matches('admission webhook "pods.example.com" denied the request', refused, 1, true)

    kubectl("scale", "deployment", "operator", "-n", "system", "--replicas=0")
    till("the operator to be gone", "", "get", "pods", "-n", "system", "-o", "name")
    refused = kubectl("run", "late", "-n", "apps", "--image=busybox")
    assert.matches('failed calling webhook "pods.example.com": failed to call webhook: Post '
      .. '"https://webhooks.system.svc:443/mutate--v1-pod?timeout=10s": no endpoints available for service "webhooks"',
      refused, 1, true)
    assert.equal(0, server:stop())
  end)
end)
