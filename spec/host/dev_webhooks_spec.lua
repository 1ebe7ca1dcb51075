-- A webhook whose server is a pod behind a Service, asked about what the controllers of moonloop dev make.
local Authority = require "spec.e2e.support.authority"
local dev = require "spec.host.support.dev"
local mime = require "mime"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local CORE = "/api/v1/namespaces/default"
local DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
local SCRIPT = "spec/e2e/support/webhook_server.lua"
local PORT = 9443

local it_isolated = dev.it_unless(dev.no_namespaces, it, function(why) pending(why) end)


local function server_pod(pair)
  local start = "cp /hook/* /tmp && exec lua5.4 /tmp/server.lua /tmp/tls '*' " .. PORT
  return {
    { metadata = { name = "hook" }, data = {
      ["server.lua"] = shell.read(SCRIPT), ["tls.crt"] = pair.certificate, ["tls.key"] = pair.key,
    } }, {
      metadata = { name = "hook", labels = { app = "hook" } },
      spec = {
        terminationGracePeriodSeconds = 1, volumes = { { name = "hook", configMap = { name = "hook" } } },
        containers = { {
          name = "main", image = "hook", command = { "sh", "-c", start }, ports = { { containerPort = PORT } },
          volumeMounts = { { name = "hook", mountPath = "/hook" } },
          readinessProbe = { tcpSocket = { port = PORT }, periodSeconds = 1, failureThreshold = 100 },
        } },
      },
    },
  }
end


describe("a webhook in a pod of moonloop dev", function()
  after_each(dev.stop_all)

  local function try(words)
    local server, authority = dev.start(words), Authority.new "hooks"
    local map, pod = table.unpack(server_pod(authority:sign "DNS:hook.default.svc"))
    server:must("POST", CORE .. "/configmaps", map)
    server:must("POST", CORE .. "/services", { metadata = { name = "hook" },
      spec = { selector = { app = "hook" }, ports = { { port = 443, targetPort = PORT } } } })
    server:must("POST", CORE .. "/pods", pod)
    wait.till("an endpoint", 20, function()
      local endpoints = server:get(CORE .. "/endpoints/hook")
      return endpoints and endpoints.subsets and endpoints.subsets[1].addresses, server.host:stderr()
    end)
    server:must("POST", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", {
      metadata = { name = "hook" },
      webhooks = { {
        name = "hook.example.com", sideEffects = "None", admissionReviewVersions = { "v1" },
        clientConfig = { service = { name = "hook", namespace = "default", path = "/first" },
          caBundle = mime.b64(authority.certificate) },
        rules = { { apiGroups = { "" }, apiVersions = { "v1" }, operations = { "CREATE" }, resources = { "pods" } } },
        objectSelector = { matchLabels = { app = "asked" } },
      } },
    })
    server:must("POST", DEPLOYMENTS, {
      metadata = { name = "asked" },
      spec = { replicas = 3, selector = { matchLabels = { app = "asked" } }, template = {
        metadata = { labels = { app = "asked" } },
        spec = { terminationGracePeriodSeconds = 1,
          containers = { { name = "main", image = "busybox", command = { "sleep", "60" } } } },
      } },
    })
    wait.till("three pods", 20, function()
      return (server:get(DEPLOYMENTS .. "/asked").status or {}).readyReplicas == 3, server.host:stderr()
    end)
    local pods = server:must("GET", CORE .. "/pods?labelSelector=app%3Dasked").items
    assert.equal(3, #pods)
    for _, made in ipairs(pods) do
      assert.equal("1", made.metadata.labels.first)
    end
    server:must("DELETE", CORE .. "/pods/hook?gracePeriodSeconds=0")
    local code, failure
    wait.till("the webhook to have gone", 20, function()
      code, failure = server:ask("POST", CORE .. "/pods", { metadata = { name = "late", labels = { app = "asked" } },
        spec = { containers = { { name = "main", image = "busybox" } } } })
      return code == 500, failure
    end)
    assert.matches('failed calling webhook "hook.example.com"', failure.message)
    assert.equal(0, server:stop())
  end

  it_isolated("is reached in the machine's network", function()
    try {}
  end)

  it_isolated("is reached in the network of pods", function()
    try { "--pod-network", "own" }
  end)
end)
