-- Scripts from a ConfigMap that is watched through the API: edited, they are live within a second;
-- a bad edit changes nothing but what its author is told.
local api = require "spec.e2e.support.api"
local cjson = require "cjson.safe"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local kubectl = require "spec.e2e.support.kubectl"
local probe = require "spec.e2e.support.probe"
local scripts = require "spec.e2e.support.scripts"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

describe("A ConfigMap of scripts", function()
  local ns, moonloop

  setup(scripts.install_widgets)

  before_each(function()
    ns = cluster.namespace "configmap"
    kubectl.configmap(ns, "scripts", { ["cnat.lua"] = scripts.cnat })
    moonloop = host.start { name = "configmap", configmaps = ns .. "/scripts", namespaces = ns }
    moonloop:till_ready()
  end)

  after_each(function()
    host.stop_all()
    cluster.forget(ns)
  end)

  local function refusals(file)
    return moonloop:metric("moonloop_script_refused_total", { file = file })
  end

  local function till_event(reason, note)
    return cluster.till_event(ns, "ConfigMap", "scripts", reason, note)
  end

  it("is loaded, and says so in an Event", function()
    local event = till_event("ScriptLoaded", "cnat.lua: controller cnat")
    assert.equal("Normal", event.type)
    assert.equal("busybox", probe.image(ns))
  end)

  it("with another image shows in the next pod within a second of the apply", function()
    assert.equal("busybox", probe.image(ns))
    kubectl.configmap(ns, "scripts", { ["cnat.lua"] = scripts.cnat_with_image "busybox:1.37" })
    assert.is_true(probe.till_image(ns, "busybox:1.37") < wait.patient(1))
    assert.equal(0, refusals "cnat.lua")
  end)

  -- kubectl puts a file that is no UTF-8 under binaryData.
  local function create_from_files(name, texts)
    local folder = scripts.folder(texts)
    kubectl.run("create", "configmap", name, "--namespace", ns, "--from-file", folder)
    return host.start { name = name, configmaps = ns .. "/" .. name, namespaces = ns }
  end

  it("has files as kubectl stores them: with a byte order mark, in Latin-1, and in UTF-16", function()
    moonloop:stop()
    moonloop = create_from_files("bytes", {
      ["cnat.lua"] = "\xef\xbb\xbf" .. scripts.cnat,
      ["widgets.lua"] = "-- caf\xe9\n" .. scripts.widgets,
      ["wide.lua"] = "\xff\xfel\0o\0c\0a\0l\0",
    })
    local map = api.get("ConfigMap", ns, "bytes")
    assert.is_truthy(map.binaryData["widgets.lua"])
    assert.is_truthy(map.binaryData["wide.lua"])
    moonloop:till_log { msg = "script is live", script = "cnat.lua" }
    moonloop:till_log { msg = "script is live", script = "widgets.lua" }
    moonloop:till_log { msg = "script refused", script = "wide.lua", error = "wide.lua: is UTF-16; save it as UTF-8" }
    cluster.till_event(ns, "ConfigMap", "bytes", "ScriptRefused", "wide.lua: is UTF-16; save it as UTF-8")
    assert.equal("busybox", probe.image(ns))
    assert.equal(0, #moonloop:lines { error = "is no longer in" })
    -- An edit takes the file from binaryData to data: it is the same file.
    api.patch("ConfigMap", ns, "bytes", {
      binaryData = { ["widgets.lua"] = cjson.null }, data = { ["widgets.lua"] = "-- café\n" .. scripts.widgets },
    })
    moonloop:till_log { msg = "new version is live", script = "widgets.lua" }
    assert.equal(0, #moonloop:lines { error = "is no longer in" })
  end)

  it("with a syntax error is refused with file and line, and the old script keeps working", function()
    local broken, place = scripts.cnat_broken()
    kubectl.configmap(ns, "scripts", { ["cnat.lua"] = broken })
    local event = till_event("ScriptRefused", place)
    assert.equal("Warning", event.type)
    assert.equal("busybox", probe.image(ns))
    assert.equal(1, refusals "cnat.lua")
    assert.equal(1, #moonloop:lines { level = "error", msg = "script refused", error = place })
    -- Something else about the ConfigMap changes: it has been said already.
    api.patch("ConfigMap", ns, "scripts", { metadata = { labels = { touched = "yes" } } })
    wait.holds("one refusal", 1, function()
      return refusals "cnat.lua" == 1 and #moonloop:lines { msg = "script refused" } == 1, refusals "cnat.lua"
    end)
    local _, ready = moonloop:get "/readyz"
    assert.equal(200, ready)
  end)

  -- The script with one word that is another, and the end of the message.
  local MISSPELT = {
    { "ctx.now", "ctx.nwo", "ctx has no 'nwo'; did you mean 'now'?" },
    { "requeue_at", "requeue_att", "the result of reconcile has no field 'requeue_att'; did you mean 'requeue_at'?" },
    { "at.spec.schedule", "at.spec.scedule", "has no field 'spec.scedule'; did you mean 'schedule'?" },
    { "restartPolicy", "restartPolcy", "Pod of v1 has no field 'spec.restartPolcy'; did you mean 'restartPolicy'?" },
    { '"OnFailure"', '"OnFailrue"', "'Never', 'OnFailure', got 'OnFailrue'; did you mean 'OnFailure'?" },
    { "owns = { Pod }", "owns = {}", "Pod of v1 is not declared: add it to owns, watches or uses" },
  }
  for _, case in ipairs(MISSPELT) do
    local word, typed, message = table.unpack(case)
    it(("with %s is refused with its line, and the old script keeps working"):format(typed), function()
      local first, last = scripts.cnat:find(word, 1, true)
      local text = scripts.cnat:sub(1, first - 1) .. typed .. scripts.cnat:sub(last + 1)
      kubectl.configmap(ns, "scripts", { ["cnat.lua"] = text })
      local event = till_event("ScriptRefused", message)
      assert.matches("^cnat%.lua:%d+: ", event.note)
      assert.equal("busybox", probe.image(ns))
      assert.equal(1, refusals "cnat.lua")
      kubectl.configmap(ns, "scripts", { ["cnat.lua"] = scripts.cnat_with_image "busybox:1.38" })
      assert.is_true(probe.till_image(ns, "busybox:1.38") < wait.patient(1))
    end)
  end

  it("that allows unknown fields has them told, and runs them", function()
    local text = scripts.cnat_with_image("busybox:1.38"):gsub("at%.status%.phase ==", "at.status.pahse ==")
    kubectl.configmap(ns, "scripts", { ["cnat.lua"] = text })
    till_event("ScriptRefused", "has no field 'status.pahse'; did you mean 'phase'?")
    api.patch("ConfigMap", ns, "scripts", {
      metadata = { annotations = { ["moonloop.dev/allow-unknown-fields"] = "true" } },
    })
    moonloop:till_log { msg = "the script has names that do not exist; its source allows them" }
    assert.is_true(probe.till_image(ns, "busybox:1.38") < wait.patient(1))
  end)

  it("that is corrected after a bad edit goes live", function()
    kubectl.configmap(ns, "scripts", { ["cnat.lua"] = scripts.cnat_broken() })
    till_event "ScriptRefused"
    kubectl.configmap(ns, "scripts", { ["cnat.lua"] = scripts.cnat_with_image "busybox:1.38" })
    assert.is_true(probe.till_image(ns, "busybox:1.38") < wait.patient(1))
  end)

  it("that goes back to the running version after a bad edit says no more than that", function()
    kubectl.configmap(ns, "scripts", { ["cnat.lua"] = scripts.cnat_broken() })
    till_event "ScriptRefused"
    kubectl.configmap(ns, "scripts", { ["cnat.lua"] = scripts.cnat })
    assert.equal("busybox", probe.image(ns))
    assert.equal(1, refusals "cnat.lua")
  end)

  it("that loses a key says so and keeps its controller", function()
    kubectl.configmap(ns, "scripts", { ["cnat.lua"] = scripts.cnat, ["widgets.lua"] = scripts.widgets })
    moonloop:till_log { msg = "script is live", script = "widgets.lua" }
    kubectl.configmap(ns, "scripts", { ["widgets.lua"] = scripts.widgets })
    till_event("ScriptRefused", "cnat.lua: is no longer in")
    assert.equal(1, refusals "cnat.lua")
    assert.equal(1, #moonloop:lines { level = "error", script = "cnat.lua" })
    assert.equal("busybox", probe.image(ns))
  end)

  it("that is emptied says so and keeps its controllers", function()
    kubectl.configmap(ns, "scripts", {})
    till_event("ScriptsMissing", "has no key that ends in .lua")
    assert.equal(1, moonloop:metric "moonloop_controllers_without_file")
    assert.equal(1, #moonloop:lines { level = "error", msg = "running scripts keep running" })
    assert.equal("busybox", probe.image(ns))
  end)

  it("that is deleted says so, keeps its controllers, and is taken up again when it comes back", function()
    till_event "ScriptLoaded"
    kubectl.run("delete", "configmap", "scripts", "--namespace", ns)
    till_event("ScriptsMissing", "was deleted")
    assert.equal(1, moonloop:metric "moonloop_controllers_without_file")
    assert.equal(1, #moonloop:lines { level = "error", msg = "running scripts keep running" })
    assert.equal("busybox", probe.image(ns))
    kubectl.configmap(ns, "scripts", { ["cnat.lua"] = scripts.cnat_with_image "busybox:1.39" })
    assert.is_true(probe.till_image(ns, "busybox:1.39") < wait.patient(1))
  end)

  it("whose due also accepts `in 5s` turns an At that waited with it into a pod", function()
    cluster.at(ns, "waiting", "in 5s")
    cluster.till_event(ns, "At", "waiting", "Invalid")
    kubectl.configmap(ns, "scripts", { ["cnat.lua"] = scripts.cnat_with_in() })
    cluster.till_pod(ns, "waiting-pod", 10)
    local at = cluster.till_phase(ns, "waiting", "DONE")
    assert.equal(1, at.metadata.generation)
    assert.equal("True", cluster.condition(at, "Reconciled").status)
  end)

  it("that gets a second script starts it too", function()
    kubectl.configmap(ns, "scripts", { ["cnat.lua"] = scripts.cnat, ["widgets.lua"] = scripts.widgets })
    api.create("Widget", ns, { metadata = { name = "first" }, spec = { say = "hello" } })
    wait.till("the second controller's work", 5, function()
      local status = api.get("Widget", ns, "first").status
      return status and status.said == "hello"
    end)
    assert.equal("busybox", probe.image(ns))
    -- The first one was not loaded again for it.
    assert.equal(1, moonloop:metric("moonloop_script_loaded_total", { controller = "cnat" }))
  end)

  it("loses no other script by the command of the README that replaces one", function()
    local old = scripts.cnat_with_image "busybox:1.41"
    kubectl.configmap(ns, "scripts", { ["cnat.lua"] = old, ["other.lua"] = "return {}" })
    local command = shell.read "README.md":match "\n    (kubectl patch configmap moonloop%-scripts.-)\n\n"
    command = command:gsub("moonloop%-scripts", "scripts"):gsub("moonloop%-system", ns)
    shell.must((command:gsub("kubectl", os.getenv "KUBECTL" or "kubectl")))
    assert.is_true(probe.till_image(ns, "busybox") < wait.patient(1))
    local data = api.get("ConfigMap", ns, "scripts").data
    assert.equal("return {}\n", data["other.lua"])
    assert.equal(scripts.cnat, data["cnat.lua"])
  end)

  it("with two scripts of the same name refuses the second", function()
    kubectl.configmap(ns, "scripts", { ["cnat.lua"] = scripts.cnat, ["zweite.lua"] = scripts.cnat })
    till_event("ScriptRefused", 'zweite.lua: the name "cnat" is taken by cnat.lua')
    assert.equal(1, refusals "zweite.lua")
    assert.equal(0, refusals "cnat.lua")
    assert.equal("busybox", probe.image(ns))
  end)

  it("with a script that requires another reloads it when that one changes", function()
    local image = 'return { image = "%s" }\n'
    local cnat = 'local pods = require "image"\n'
      .. scripts.edited(scripts.cnat, 'image = "busybox"', "image = pods.image")
    kubectl.configmap(ns, "scripts", { ["cnat.lua"] = cnat, ["image.lua"] = image:format "busybox:1.1" })
    assert.is_true(probe.till_image(ns, "busybox:1.1") < wait.patient(1))
    kubectl.configmap(ns, "scripts", { ["cnat.lua"] = cnat, ["image.lua"] = image:format "busybox:1.2" })
    assert.is_true(probe.till_image(ns, "busybox:1.2") < wait.patient(1))
  end)

  it("is read from any key that ends in .lua, and nothing else of it", function()
    kubectl.configmap(ns, "scripts", {
      ["cnat.lua"] = scripts.cnat_with_image "busybox:1.40",
      ["cnat.lua.orig"] = "this is no Lua",
      ["README.md"] = "nor is this",
    })
    assert.is_true(probe.till_image(ns, "busybox:1.40") < wait.patient(1))
    assert.equal(0, refusals())
  end)
end)


describe("A ConfigMap of scripts that is not there yet", function()
  it("is waited for, and its absence is said", function()
    local ns = cluster.namespace "late"
    finally(function()
      host.stop_all()
      cluster.forget(ns)
    end)
    local moonloop = host.start { name = "late", configmaps = ns .. "/scripts", namespaces = ns }
    moonloop:till_log { level = "error", error = "does not exist yet" }
    kubectl.configmap(ns, "scripts", { ["cnat.lua"] = scripts.cnat })
    moonloop:till_ready()
    assert.equal("busybox", probe.image(ns))
  end)
end)
