-- A script that makes Services of merged manifests, Events about them and about a namespace, and a sum over its
-- objects, under exactly the rights that `moonloop rbac` prints.
local api = require "spec.e2e.support.api"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local kubeconfig = require "spec.e2e.support.kubeconfig"
local kubectl = require "spec.e2e.support.kubectl"
local scripts = require "spec.e2e.support.scripts"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local SCRIPT = [[
local moonloop = require "moonloop"
local Settings = moonloop.kind("v1", "ConfigMap", { labels = "e2e=settings" })
local Service = moonloop.kind("v1", "Service")

local BASE = {
  apiVersion = "v1", kind = "Service",
  spec = { selector = { app = "web" }, ports = { { name = "http", port = 80 }, { name = "old", port = 81 } } },
}

return moonloop.controller {
  name = "about",
  reconciles = Settings,
  owns = { Service },
  metrics = { ports = { type = "gauge", help = "Ports of all.", sum = true } },

  reconcile = function(settings, ctx)
    local service = moonloop.merge(BASE, {
      metadata = { name = settings.metadata.name },
      spec = { ports = { { port = 80, targetPort = "web" }, { port = 81, ["$patch"] = "delete" } } },
    })
    if settings.data.extra then
      service.spec.ports[2] = { name = "extra", port = math.tointeger(settings.data.extra) }
    end
    local made = assert(ctx.apply(service))
    ctx.metric("ports", #made.spec.ports)
    ctx.event("Merged", "it has port 80", { about = made, related = settings })
    ctx.event("HasService", "one of " .. settings.metadata.name, {
      about = { apiVersion = "v1", kind = "Namespace", name = settings.metadata.namespace },
    })
  end,
}
]]


describe("A script with Events about other objects", function()
  local ns, moonloop

  setup(function()
    ns = cluster.namespace "about"
    local folder, manifest = scripts.folder { ["about.lua"] = SCRIPT }, shell.path "about-roles.yaml"
    local printed = host.command { "rbac", folder, "--service-account", ns .. "/moonloop" }
    assert.same({ 0, "" }, { printed.code, printed.err })
    shell.write(manifest, printed.out)
    kubectl.run("apply", "-f", manifest)
    local token = kubectl.run("create", "token", "moonloop", "--namespace", ns):match "%S+"
    moonloop = host.start {
      name = "about", scripts = folder, kubeconfig = kubeconfig.write { user = { token = token } },
    }
    moonloop:till_ready()
  end)

  teardown(function()
    host.stop_all()
    cluster.forget(ns)
  end)

  local function create(name, data)
    api.create("ConfigMap", ns, { metadata = { name = name, labels = { e2e = "settings" } }, data = data })
  end

  local function till_ports(count)
    wait.till(("%d ports in all"):format(count), 10, function()
      local ports = moonloop:metric("moonloop_custom_ports", { controller = "about" })
      return ports == count, tostring(ports)
    end)
  end

  it("makes them in the namespaces of these objects, and adds up", function()
    create("one", { note = "x" })
    create("two", { extra = "90" })
    local event = cluster.till_event(ns, "Service", "one", "Merged", "it has port 80")
    assert.equal(ns, event.metadata.namespace)
    assert.same({ "ConfigMap", "one" }, { event.related.kind, event.related.name })
    local of_namespace = cluster.till_event("default", "Namespace", ns, "HasService", "one of two")
    assert.is_nil(of_namespace.regarding.namespace)
    local ports = api.get("Service", ns, "one").spec.ports
    assert.same({ "http", 80, "web", 1 }, { ports[1].name, ports[1].port, ports[1].targetPort, #ports })
    till_ports(3)
  end)

  it("counts what is repeated in the series, and takes the part of an object away with it", function()
    api.patch("ConfigMap", ns, "one", { data = { extra = "91" } })
    till_ports(4)
    local event = wait.till("a series", 10, function()
      local found = cluster.till_event(ns, "Service", "one", "Merged")
      return found.series and found, "none"
    end)
    assert.is_true(event.series.count >= 2)
    assert.is_not_nil(event.series.lastObservedTime)
    api.delete("ConfigMap", ns, "two")
    till_ports(2)
    assert.same({}, moonloop:lines { level = "error" })
  end)
end)
