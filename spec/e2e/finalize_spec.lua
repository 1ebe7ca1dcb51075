-- Scripts that clean up: an object goes when `finalize` is done, and never hangs, whatever becomes of the script, of
-- the operator and of the namespace.
local api = require "spec.e2e.support.api"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local kubectl = require "spec.e2e.support.kubectl"
local scripts = require "spec.e2e.support.scripts"
local wait = require "spec.e2e.support.wait"

local OURS = "moonloop.dev/pages"

-- Keeps a page for each Widget in the namespace `home`. `last`: the end of finalize; nil: there is no finalize.
local function pages(home, last)
  local finalize = last and ([[
  finalize = function(widget, ctx)
    local page = ctx.get(ConfigMap, widget.metadata.name, "%s")
    if page then
      ctx.delete(page)
    end
    %s
  end,
]]):format(home, last) or ""
  return ([[
local moonloop = require "moonloop"
local Widget = moonloop.kind("e2e.moonloop.dev/v1", "Widget")
local ConfigMap = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "pages",
  reconciles = Widget,
  uses = { ConfigMap },
  reconcile = function(widget, ctx)
    if widget.spec.say ~= "nothing" then
      assert(ctx.ensure {
        apiVersion = "v1", kind = "ConfigMap", metadata = { name = widget.metadata.name, namespace = "%s" },
      })
      return { status = { said = widget.spec.say } }
    end
  end,
%s}
]]):format(home, finalize)
end


describe("A script that finalizes", function()
  local home, work, moonloop

  local function start()
    moonloop = host.start { name = "finalize", configmaps = home .. "/scripts", namespaces = { home, work } }
    moonloop:till_ready()
  end

  local function edit(last)
    kubectl.configmap(home, "scripts", { ["pages.lua"] = pages(home, last) })
  end

  setup(scripts.install_widgets)

  before_each(function()
    home, work = cluster.namespace "home", cluster.namespace "work"
    edit ""
    start()
  end)

  after_each(function()
    host.stop_all()
    edit() -- whatever a spec has left is freed, so that its namespace goes
    start()
    for _, widget in ipairs(api.list("Widget", work)) do
      api.delete("Widget", work, widget.metadata.name)
    end
    wait.till("the Widgets to go", 20, function()
      return #api.list("Widget", work) == 0, "Widgets are left"
    end)
    host.stop_all()
    cluster.forget(work)
    cluster.forget(home)
  end)

  local function make(name, say)
    api.create("Widget", work, { metadata = { name = name }, spec = { say = say or "hello" } })
    return wait.till("the work on " .. name, 10, function()
      local widget = api.get("Widget", work, name)
      return widget.status and widget.status.said and widget, "no status"
    end)
  end

  local function till_gone(name, seconds)
    wait.till(name .. " to be gone", seconds or 10, function()
      local widget = api.get("Widget", work, name)
      return not widget, widget and table.concat(widget.metadata.finalizers or {}, " ")
    end)
  end

  local function till_namespace_gone()
    wait.till("the namespace to be gone", 60, function()
      local namespace = api.get("Namespace", nil, work)
      return not namespace, namespace and namespace.status.phase
    end)
  end

  it("has its finalizer on the object, cleans up when that is deleted, and lets it go", function()
    assert.same({ OURS }, make("a").metadata.finalizers)
    assert.is_table(api.get("ConfigMap", home, "a"))
    api.delete("Widget", work, "a")
    till_gone "a"
    assert.is_nil(api.get("ConfigMap", home, "a"))
  end)

  it("has none on an object for which it writes nothing", function()
    api.create("Widget", work, { metadata = { name = "idle" }, spec = { say = "nothing" } })
    make "other"
    assert.is_nil(api.get("Widget", work, "idle").metadata.finalizers)
    api.delete("Widget", work, "idle")
    assert.is_nil(api.get("Widget", work, "idle"))
  end)

  it("leaves the finalizers of others", function()
    make "a"
    api.patch("Widget", work, "a", { metadata = { finalizers = { "e2e.moonloop.dev/x", OURS, "e2e.moonloop.dev/y" } } })
    api.delete("Widget", work, "a")
    wait.till("ours to go", 10, function()
      local left = table.concat(api.get("Widget", work, "a").metadata.finalizers, " ")
      return left == "e2e.moonloop.dev/x e2e.moonloop.dev/y", left
    end)
    kubectl.run("patch", "widget", "a", "--namespace", work, "--type=merge", '--patch={"metadata":{"finalizers":null}}')
    till_gone "a"
  end)

  it("that raises keeps the object and says why, and an edit of it frees the object", function()
    make "a"
    edit 'error "no way to clean up"'
    moonloop:till_log { msg = "new version is live" }
    api.delete("Widget", work, "a")
    cluster.till_event(work, "Widget", "a", "FinalizeFailed", "no way to clean up")
    cluster.till_condition("Widget", work, "a", "Reconciled", "False", "no way to clean up")
    assert.same({ OURS }, api.get("Widget", work, "a").metadata.finalizers)
    edit ""
    till_gone "a"
  end)

  it("that never ends is asked again and says so, and an edit of it frees the object", function()
    make "a"
    edit "return { status = { said = 'not yet' }, requeue_after = 0.2 }"
    moonloop:till_log { msg = "new version is live" }
    api.delete("Widget", work, "a")
    cluster.till_event(work, "Widget", "a", "Finalizing", OURS .. " stays until it returns nothing")
    local _, widget = cluster.till_condition("Widget", work, "a", "Reconciled", "False", "Finalizing: ")
    assert.equal("not yet", widget.status.said)
    edit ""
    till_gone "a"
  end)

  it("and does not any more frees all objects, those that are going and those that stay", function()
    make "a"
    make "b"
    edit "return { requeue_after = 3600 }"
    moonloop:till_log { msg = "new version is live" }
    api.delete("Widget", work, "a")
    cluster.till_event(work, "Widget", "a", "Finalizing")
    edit()
    till_gone "a"
    wait.till("b to be free", 10, function()
      local widget = api.get("Widget", work, "b")
      return not widget.metadata.finalizers, table.concat(widget.metadata.finalizers or {}, " ")
    end)
  end)

  it("cleans up what was deleted while the operator was down", function()
    make "a"
    host.stop_all()
    api.delete("Widget", work, "a")
    assert.same({ OURS }, api.get("Widget", work, "a").metadata.finalizers)
    start()
    till_gone "a"
    assert.is_nil(api.get("ConfigMap", home, "a"))
  end)

  it("does not keep a namespace that is deleted", function()
    for i = 1, 5 do
      make("w" .. i)
    end
    api.delete("Namespace", nil, work)
    till_namespace_gone()
    assert.is_nil(api.get("ConfigMap", home, "w3"))
    work = cluster.namespace "work"
  end)

  it("does not keep a namespace that was deleted while the operator was down", function()
    for i = 1, 5 do
      make("w" .. i)
    end
    moonloop:kill()
    api.delete("Namespace", nil, work)
    start()
    till_namespace_gone()
    assert.is_nil(api.get("ConfigMap", home, "w3"))
    work = cluster.namespace "work"
  end)

  it("is told why it can make nothing in a namespace that is being deleted", function()
    make "a"
    edit([[
    local _, err = ctx.create { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "late" } }
    if err then
      return { status = { said = err.message }, requeue_after = 0.2 }
    end
]])
    moonloop:till_log { msg = "new version is live" }
    api.delete("Namespace", nil, work)
    wait.till("the reason in the status", 20, function()
      local widget = api.get("Widget", work, "a")
      return widget.status.said:find("because it is being terminated", 1, true), widget.status.said
    end)
    edit ""
    till_namespace_gone()
    work = cluster.namespace "work"
  end)

  it("is removed on purpose by an annotation, which frees its objects and says what stays", function()
    make "a"
    kubectl.run("annotate", "configmap", "scripts", "--namespace", home, "moonloop.dev/remove=pages")
    cluster.till_event(home, "ConfigMap", "scripts", "ControllerRemoved", OURS .. " was taken off 1 objects")
    assert.is_nil(api.get("Widget", work, "a").metadata.finalizers)
    assert.is_table(api.get("ConfigMap", home, "a"))
    api.create("Widget", work, { metadata = { name = "b" }, spec = { say = "hello" } })
    local _, code = moonloop:get "/readyz"
    assert.equal(200, code)
    host.stop_all() -- it stays removed
    start()
    wait.holds("nothing on b", 0.5, function()
      return not api.get("Widget", work, "b").status, "a status"
    end)
    kubectl.run("annotate", "configmap", "scripts", "--namespace", home, "moonloop.dev/remove-")
    wait.till("the work on b", 10, function()
      local widget = api.get("Widget", work, "b")
      return widget.status and widget.status.said == "hello", "no status"
    end)
  end)
end)
