-- moonloop dev: the webhooks of its scripts take effect by themselves, and go with the version of the script.
local dev = require "spec.host.support.dev"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local V1 = "/apis/example.com/v1/namespaces/default/widgets"
local ALPHA = "/apis/example.com/v1alpha1/namespaces/default/widgets"
local VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/moonloop-widget"

local SAMPLE = [[
apiVersion: example.com/v1alpha1
kind: Widget
metadata: {name: sample, namespace: default}
spec: {width: 4, color: red}
]]

local PLAIN = [[
local moonloop = require "moonloop"
return moonloop.controller {
  name = "widget",
  reconciles = moonloop.kind("example.com/v1", "Widget"),
  reconcile = function() end,
}
]]

local function widget(name, spec)
  return { apiVersion = "example.com/v1", kind = "Widget", metadata = { name = name }, spec = spec }
end


describe("moonloop dev, of scripts with webhooks,", function()
  local server, scripts, manifests

  before_each(function()
    scripts, manifests = shell.folder "scripts", shell.folder "manifests"
    shell.must(("cp spec/testing/webhooks/widget.lua %s"):format(scripts))
    shell.must(("cp spec/testing/webhooks/crds/widget.yaml %s"):format(manifests))
    shell.write(manifests .. "/sample.yaml", SAMPLE)
    server = dev.start { "--pods", "none", "--scripts", scripts, "--apply", manifests }
    server:till_told "widget/sample +created"
  end)

  after_each(dev.stop_all)

  it("stores what was applied at the start as they convert it", function()
    assert.same({ size = 4, color = "red" }, server:get(V1 .. "/sample").spec)
    assert.same({ width = 4 }, server:get(ALPHA .. "/sample").spec)
  end)

  it("stores it so as well when the script is live seconds later", function()
    local slow = shell.folder "slow"
    local text = shell.read(scripts .. "/widget.lua")
    shell.write(slow .. "/widget.lua", (text:gsub("reconciles = Widget,",
      'reconciles = Widget,\n  owns = { moonloop.kind("example.com/v1", "Part") },')))
    local late = dev.start { "--pods", "none", "--scripts", slow, "--apply", manifests }
    late:till_told "widgets.example.com +created"
    wait.holds("nothing is stored", 2, function()
      local object = late:get(V1 .. "/sample")
      return not object, object
    end)
    late:must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
      apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
      metadata = { name = "parts.example.com" },
      spec = {
        group = "example.com", scope = "Namespaced", names = { kind = "Part", plural = "parts" },
        versions = {
          { name = "v1", served = true, storage = true, schema = { openAPIV3Schema = { type = "object" } } },
        },
      },
    })
    late:till_told("widget/sample +created", 20)
    assert.same({ size = 4, color = "red" }, late:get(V1 .. "/sample").spec)
  end)

  it("fills in and refuses", function()
    local code, object = server:ask("POST", V1, widget("a", { shape = "round" }))
    assert.equal(201, code)
    assert.same({ shape = "round", size = 3 }, object.spec)
    code, object = server:ask("POST", V1, widget("b", { size = 99 }))
    assert.equal(422, code)
    assert.matches("spec.size: 99 is more than 10$", object.message)
  end)

  it("applies a manifest that was edited, and says what is refused", function()
    shell.write(manifests .. "/sample.yaml", (SAMPLE:gsub("width: 4", "width: 5")))
    server:till_told "widget/sample +configured"
    assert.equal(5, server:get(V1 .. "/sample").spec.size)
    shell.write(manifests .. "/sample.yaml", (SAMPLE:gsub("width: 4", "width: 50")))
    wait.till("the refusal", 10, function()
      local told = server:story() .. server.host:stderr()
      return told:find("spec.size: 50 is more than 10", 1, true), told
    end)
    assert.equal(5, server:get(V1 .. "/sample").spec.size)
  end)

  it("converts as the script does that is live", function()
    assert.same({ width = 4 }, server:get(ALPHA .. "/sample").spec)
    local text = shell.read(scripts .. "/widget.lua")
    shell.write(scripts .. "/widget.lua", (text:gsub("widget.spec.width, widget.spec.size = widget.spec.size, nil",
      "widget.spec.width, widget.spec.size = widget.spec.size + 100, nil")))
    wait.till("the new version", 10, function()
      local spec = server:get(ALPHA .. "/sample").spec
      return spec.width == 104, spec.width
    end)
  end)

  it("takes them away when the script has them no more", function()
    assert.is_table(server:get(VALIDATING))
    shell.write(scripts .. "/widget.lua", PLAIN)
    wait.till("the configuration to go", 10, function()
      return not server:get(VALIDATING)
    end)
    assert.equal(201, (server:ask("POST", V1, widget("a", { size = 99 }))))
    assert.is_nil(server:get(V1 .. "/a").metadata.labels)
  end)
end)
