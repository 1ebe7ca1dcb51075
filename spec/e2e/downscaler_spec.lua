-- examples/downscaler: a Deployment that runs in the office hours of a time zone, under the roles that `moonloop rbac`
-- prints.
local api = require "spec.e2e.support.api"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local kubeconfig = require "spec.e2e.support.kubeconfig"
local kubectl = require "spec.e2e.support.kubectl"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local SCRIPTS = "examples/downscaler"

describe("The downscaler", function()
  local ns, manifest

  setup(function()
    ns, manifest = cluster.namespace "offices", shell.path "roles.yaml"
    local printed = host.command { "rbac", SCRIPTS, "--service-account", ns .. "/offices" }
    assert.same({ 0, "" }, { printed.code, printed.err })
    shell.write(manifest, printed.out)
    kubectl.run("apply", "-f", manifest)
    local token = kubectl.run("create", "token", "-n", ns, "offices"):match "%S+"
    api.create("Deployment", ns, {
      metadata = { name = "shop" },
      spec = {
        replicas = 2, selector = { matchLabels = { app = "shop" } },
        template = {
          metadata = { labels = { app = "shop" } }, spec = { containers = { { name = "c", image = "shop" } } },
        },
      },
    })
    host.start({ name = "offices", scripts = SCRIPTS, kubeconfig = kubeconfig.write { user = { token = token } } })
      :till_ready()
  end)

  teardown(function()
    host.stop_all()
    kubectl.run("delete", "--ignore-not-found", "-f", manifest)
    cluster.forget(ns)
  end)

  -- Hours of each day that begin and end so many hours from now, in Tokyo, where clocks are never changed.
  local function ask(first, last)
    local hour = tonumber(os.date "!%H") + 9
    kubectl.run("annotate", "deployment", "shop", "-n", ns, "--overwrite",
      ("downscaler.moonloop.dev/hours=* %d-%d Asia/Tokyo"):format((hour + first) % 24, (hour + last) % 24))
  end

  local function till_replicas(count)
    wait.till(count .. " replicas", 10, function()
      local replicas = api.get("Deployment", ns, "shop").spec.replicas
      return replicas == count, replicas
    end)
  end

  it("scales down outside of the hours, and up in them", function()
    ask(6, 8)
    till_replicas(0)
    ask(-2, 6)
    till_replicas(2)
  end)

  it("tells of hours that are none", function()
    kubectl.run("annotate", "deployment", "shop", "-n", ns, "--overwrite",
      "downscaler.moonloop.dev/hours=mon-fri 8-18 Mars/Base")
    cluster.till_event(ns, "Deployment", "shop", "BadHours", "unknown time zone Mars/Base")
  end)
end)
