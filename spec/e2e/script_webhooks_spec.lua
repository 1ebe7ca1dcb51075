-- The webhooks of a script, called by the API server over TLS: with what `moonloop manifests` prints, and a certificate
-- that the host keeps in a Secret. The host has the rights that `moonloop rbac` prints, and no others.
local api = require "spec.e2e.support.api"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"
local webhooks = require "spec.e2e.support.webhooks"

local SCRIPT = [[
local moonloop = require "moonloop"
local Part = moonloop.kind("GROUP/v1", "Part")

return moonloop.controller {
  name = "NAME",
  reconciles = Part,

  default = function(part)
    part.spec.size = part.spec.size or 3
    part.spec.one = "EDITION"
    part.metadata.labels = { edition = "EDITION" }
  end,

  validate = function(new, old)
    if new.spec.one ~= "EDITION" then
      error("a mixture")
    elseif new.spec.size > 10 then
      return { { field = "spec.size", message = "at most 10" } }
    elseif old and old.spec.shape ~= new.spec.shape then
      return "the shape cannot be changed"
    end
    return nil, new.spec.shape == "old" and "spec.shape old is old" or nil
  end,

  convert = {
    v1alpha1 = {
      to = function(part) part.spec.size, part.spec.width = part.spec.width, nil end,
      from = function(part) part.spec.width, part.spec.size = part.spec.size, nil end,
    },
  },

  reconcile = function(part)
    return { status = { size = part.spec.size } }
  end,
}
]]

local function version(name, stored)
  local any = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true }
  return {
    name = name, served = true, storage = stored, subresources = { status = {} },
    schema = { openAPIV3Schema = { type = "object", properties = { spec = any, status = any } } },
  }
end


describe("The webhooks of a script", function()
  local ns, name, group, folder, moonloop, restricted

  local function write_script(edition)
    shell.write(folder .. "/part.lua", (SCRIPT:gsub("GROUP", group):gsub("NAME", name):gsub("EDITION", edition)))
  end

  local function start()
    moonloop = host.start {
      name = "webhooks", scripts = folder, kubeconfig = restricted, args = webhooks.flags(ns),
    }
    moonloop:till_ready()
  end

  local function path_of(api_version, part)
    return ("/apis/%s/%s/namespaces/%s/parts%s"):format(group, api_version, ns, part and "/" .. part or "")
  end

  local function create(part, spec, api_version)
    api_version = api_version or "v1"
    return api.request("POST", path_of(api_version), {
      apiVersion = group .. "/" .. api_version, kind = "Part", metadata = { name = part }, spec = spec,
    })
  end

  local function get(part, api_version)
    return (api.request("GET", path_of(api_version or "v1", part)))
  end

  local function till_called()
    wait.till("the webhooks to be called", 20, function()
      local answer, code = create(cluster.unique "probe", { size = 99 })
      return code == 422, answer and answer.message
    end)
  end

  setup(function()
    ns, name = cluster.namespace "webhooks", cluster.unique "parts"
    group, folder = name .. ".example.com", shell.path "scripts"
    shell.must("mkdir -p " .. shell.quote(folder))
    local definition = {
      metadata = { name = "parts." .. group },
      spec = {
        group = group, scope = "Namespaced", versions = { version("v1", true), version("v1alpha1", false) },
        names = { kind = "Part", listKind = "PartList", plural = "parts", singular = "part" },
      },
    }
    api.create("CustomResourceDefinition", nil, definition)
    write_script "first"
    restricted = webhooks.restricted(definition, folder .. "/part.lua", ns)
    start()
    webhooks.register(moonloop, folder .. "/part.lua")
    webhooks.till_trusted(moonloop)
    till_called()
  end)

  teardown(function()
    host.stop_all()
    webhooks.forget(name)
    api.delete("CustomResourceDefinition", nil, "parts." .. group)
    cluster.forget(ns)
  end)

  it("fill in, and refuse with the field", function()
    local part, code = create("a", { shape = "round" })
    assert.equal(201, code)
    assert.same({ shape = "round", size = 3, one = "first" }, part.spec)
    assert.equal("first", part.metadata.labels.edition)
    local refused
    refused, code = create("b", { size = 11 })
    assert.equal(422, code)
    local hook = ("validate.%s.moonloop.dev"):format(name)
    assert.equal(('admission webhook "%s" denied the request: spec.size: at most 10'):format(hook), refused.message)
    assert.equal("spec.size", refused.details.causes[1].field)
    refused, code = api.request("PATCH", path_of("v1", "a"), { spec = { shape = "square" } },
      "application/merge-patch+json")
    assert.equal(422, code)
    assert.matches("the shape cannot be changed$", refused.message)
  end)

  it("warn the user of kubectl", function()
    local out = shell.run(shell.line {
      os.getenv "KUBECTL" or "kubectl", "patch", "--dry-run=server", "--namespace", ns, "parts." .. group, "a",
      "--type=merge", "--patch", '{"spec":{"size":4}}',
    } .. " 2>&1")
    assert.matches("patched", out)
    create("old", { shape = "old" })
    out = shell.run(shell.line {
      os.getenv "KUBECTL" or "kubectl", "label", "--namespace", ns, "parts." .. group, "old", "a=b",
    } .. " 2>&1")
    assert.matches("Warning: spec.shape old is old", out, 1, true)
  end)

  it("convert both ways", function()
    local _, code = create("c", { width = 7 }, "v1alpha1")
    assert.equal(201, code)
    assert.equal(7, get("c").spec.size)
    assert.equal(7, get("c", "v1alpha1").spec.width)
    assert.is_nil(get("c", "v1alpha1").spec.size)
    wait.till("the status", 10, function()
      return (get("c").status or {}).size == 7
    end)
  end)

  it("answer by one version of the script while it is edited", function()
    local editions, failed = 0, nil
    local seen = {}
    for i = 1, 40 do
      if i % 10 == 0 then
        editions = editions + 1
        write_script("edition" .. editions)
      end
      local part, code = create(cluster.unique "edited", {})
      -- Two calls of one write may meet two versions: then the later one says so, and nothing is stored.
      if code == 201 then
        assert.equal(part.spec.one, part.metadata.labels.edition)
        seen[part.spec.one] = true
      elseif not (part.message or ""):find "a mixture" then
        failed = part.message
      end
    end
    assert.is_nil(failed)
    wait.till("the last edition", 10, function()
      local part, code = create(cluster.unique "edited", {})
      return code == 201 and part.spec.one == "edition" .. editions
    end)
    assert.is_true(seen.first)
  end)

  it("that nobody answers refuse writes, until somebody does", function()
    moonloop:stop()
    local answer, code = create(cluster.unique "nobody", {})
    assert.equal(500, code)
    assert.matches("failed calling webhook", answer.message)
    start()
    webhooks.register(moonloop, folder .. "/part.lua")
    wait.till("the webhooks to be called again", 20, function()
      local part, status = create(cluster.unique "again", {})
      return status == 201, part and part.message
    end)
  end)
end)
