-- Failures that usually pass, and last: after five seconds the object says so, in the server's words, and says
-- as well that they are over. Webhooks of others that are down, and an object that etcd does not take.
local api = require "spec.e2e.support.api"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local mime = require "mime"
local scripts = require "spec.e2e.support.scripts"
local wait = require "spec.e2e.support.wait"
local webhooks = require "spec.e2e.support.webhooks"

local WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"

-- A ConfigMap per Widget; or a Deployment of twice spec.bytes: the server takes requests of 3 MiB, and etcd 1.5.
local SCRIPT = [[
local moonloop = require "moonloop"
local Widget = moonloop.kind("e2e.moonloop.dev/v1", "Widget")
local ConfigMap = moonloop.kind("v1", "ConfigMap")
local Deployment = moonloop.kind("apps/v1", "Deployment")

local function large(name, bytes)
  local labels = { app = name }
  return { apiVersion = "apps/v1", kind = "Deployment", metadata = { name = name }, spec = {
    replicas = 0, selector = { matchLabels = labels },
    template = { metadata = { labels = labels }, spec = { containers = { {
      name = "main", image = "busybox",
      env = { { name = "ONE", value = ("x"):rep(bytes) }, { name = "TWO", value = ("x"):rep(bytes) } },
    } } } },
  } }
end

return moonloop.controller {
  name = "lasting",
  reconciles = Widget,
  owns = { ConfigMap, Deployment },
  reconcile = function(widget)
    local name, bytes = widget.metadata.name, widget.spec.bytes
    local small = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name }, data = { a = "b" } }
    return { status = { said = "made" }, children = { bytes and large(name, bytes) or small } }
  end,
}
]]

describe("A failure that lasts", function()
  local server, ns, moonloop

  setup(function()
    scripts.install_widgets()
    server = webhooks.serve "lasting"
  end)

  teardown(function()
    server.stop()
  end)

  before_each(function()
    ns = cluster.namespace "lasting"
    moonloop = host.start { name = "lasting", namespaces = ns, scripts = scripts.folder { ["lasting.lua"] = SCRIPT } }
    moonloop:till_ready()
  end)

  after_each(function()
    host.stop_all()
    api.request("DELETE", WEBHOOKS .. "/" .. ns)
    cluster.forget(ns)
  end)

  -- Somebody else's webhook about ConfigMaps of the spec's namespace; returns when the server calls it.
  local function register(url)
    local answer, code = api.request("POST", WEBHOOKS, { metadata = { name = ns }, webhooks = { {
      name = "policy.example.com", failurePolicy = "Fail", sideEffects = "None", admissionReviewVersions = { "v1" },
      clientConfig = { url = url, caBundle = mime.b64(server.authority.certificate) },
      rules = { { apiGroups = { "" }, apiVersions = { "v1" }, operations = { "*" }, resources = { "configmaps" } } },
      namespaceSelector = { matchLabels = { ["kubernetes.io/metadata.name"] = ns } },
    } } })
    assert.equal(201, code, answer and answer.message)
    wait.till("ConfigMaps to be refused", 20, function()
      local path = ("/api/v1/namespaces/%s/configmaps?dryRun=All"):format(ns)
      return select(2, api.request("POST", path, { metadata = { name = "probe" } })) == 500
    end)
  end

  local function till_condition(name, status, part)
    return cluster.till_condition("Widget", ns, name, "Reconciled", status, part, 40)
  end

  local function assert_told(name, part)
    local since = wait.now()
    local condition = till_condition(name, "False", part)
    assert.is_true(wait.now() - since >= 3, "told at once: an outage would leave it on each object")
    assert.equal("ReconcileFailed", condition.reason)
    assert.matches("^lasting: apply %w+ " .. ns:gsub("%-", "%%-") .. "/" .. name .. ": ", condition.message)
    cluster.till_event(ns, "Widget", name, "ReconcileFailed", part)
    assert.is_true(#moonloop:lines { level = "error", name = name, error = part } > 0)
    assert.is_nil(api.get("Widget", ns, name).status.said)
  end

  local function assert_over(name)
    till_condition(name, "True", "")
    cluster.till_event(ns, "Widget", name, "Reconciled", "the reconcile that failed before has succeeded")
    moonloop:till_log { level = "info", msg = "reconciled again after a failure", name = name }
    assert.equal("made", api.get("Widget", ns, name).status.said)
  end

  local CASES = {
    ["a webhook whose server is down"] = { function() return "https://127.0.0.1:1/policy" end, "connection refused" },
    ["a webhook that answers 500"] = { function() return ("https://127.0.0.1:%d/error"):format(server.port) end,
      "an error on the server" },
  }

  for what, case in pairs(CASES) do
    it(("(%s) is on the object, and its end as well"):format(what), function()
      local url, part = case[1](), case[2]
      register(url)
      api.create("Widget", ns, { metadata = { name = "w" }, spec = {} })
      assert_told("w", part)
      till_condition("w", "False", 'failed calling webhook "policy.example.com"')
      assert.is_nil(api.get("ConfigMap", ns, "w"))
      api.request("DELETE", WEBHOOKS .. "/" .. ns)
      assert_over "w"
      assert.is_table(api.get("ConfigMap", ns, "w"))
    end)
  end

  it("(an object that etcd does not take) is on the object, and its end as well", function()
    api.create("Widget", ns, { metadata = { name = "big" }, spec = { bytes = 900000 } })
    assert_told("big", "request is too large")
    assert.is_nil(api.get("Deployment", ns, "big"))
    api.patch("Widget", ns, "big", { spec = { bytes = 1000 } })
    assert_over "big"
    assert.is_table(api.get("Deployment", ns, "big"))
  end)
end)
