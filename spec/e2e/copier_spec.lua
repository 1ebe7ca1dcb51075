-- examples/configmap-copier: a ConfigMap copied into every namespace that asks for it.
local api = require "spec.e2e.support.api"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local kubectl = require "spec.e2e.support.kubectl"
local wait = require "spec.e2e.support.wait"

describe("The ConfigMap copier", function()
  local source, asking, silent

  setup(function()
    source, asking, silent = cluster.namespace "source", cluster.namespace "asking", cluster.namespace "silent"
    api.create("ConfigMap", source, { metadata = { name = "settings" }, data = { colour = "red", size = "3" } })
    host.start({ name = "copier", scripts = "examples/configmap-copier" }):till_ready()
  end)

  teardown(function()
    host.stop_all()
    for _, ns in ipairs { source, asking, silent } do
      cluster.forget(ns)
    end
  end)

  local function till_copy(colour, ns, name)
    return wait.till(("a copy that is %s"):format(colour), 10, function()
      local copy = api.get("ConfigMap", ns or asking, name or "settings")
      local is = copy and copy.data and copy.data.colour
      return is == colour and copy, is or "no copy"
    end)
  end

  local function ask(ns, from)
    kubectl.run("annotate", "namespace", ns, "--overwrite", "copier.moonloop.dev/from=" .. from)
  end

  it("copies to a namespace that asks, owned by that", function()
    ask(asking, source .. "/settings")
    local copy = till_copy "red"
    assert.same({ colour = "red", size = "3" }, copy.data)
    local owner = copy.metadata.ownerReferences[1]
    assert.equal("Namespace", owner.kind)
    assert.equal(asking, owner.name)
  end)

  it("leaves the others alone", function()
    assert.is_nil(api.get("ConfigMap", silent, "settings"))
  end)

  it("carries a change of the source over, and what is taken out of it", function()
    api.patch("ConfigMap", source, "settings", { data = { colour = "green" } })
    till_copy "green"
    kubectl.run("patch", "configmap", "settings", "--namespace", source, "--type=json",
      '--patch=[{"op":"remove","path":"/data/size"}]')
    wait.till("the size to go from the copy", 10, function()
      return not api.get("ConfigMap", asking, "settings").data.size, "still there"
    end)
  end)

  it("puts a copy right that somebody changes or deletes", function()
    api.patch("ConfigMap", asking, "settings", { data = { colour = "mine" } })
    till_copy "green"
    local uid = api.get("ConfigMap", asking, "settings").metadata.uid
    api.delete("ConfigMap", asking, "settings")
    local copy = till_copy "green"
    assert.not_equal(uid, copy.metadata.uid)
  end)

  it("waits for a source that is not there yet", function()
    ask(silent, source .. "/later")
    wait.holds("no copy", 0.5, function()
      return not api.get("ConfigMap", silent, "later"), "a copy"
    end)
    api.create("ConfigMap", source, { metadata = { name = "later" }, data = { colour = "blue" } })
    till_copy("blue", silent, "later")
  end)
end)
