-- moonloop types: the kinds of scripts and CRDs for an editor.
local host = require "spec.e2e.support.host"

local function types(...)
  return host.command { "types", ... }
end


describe("moonloop types", function()
  it("prints the classes of the given CRDs, and of the built-in kinds that scripts name", function()
    local result = types("reconcilers", "--crds", "crds")
    assert.same({ 0, "" }, { result.code, result.err })
    assert(load(result.out))
    for _, text in ipairs {
      "---@class stable.example.com.v1.Database: moonloop.Object\n---@field spec stable.example.com.v1.Database.spec\n",
      "---@class cache.example.com.v1alpha1.RedisCluster: ", "---@class apps.v1.StatefulSet: moonloop.Object\n",
      "\n---@field readyReplicas? integer\n",
    } do
      assert.truthy(result.out:find(text, 1, true), text)
    end
  end)

  it("says which kinds it does not know", function()
    local result = types "reconcilers/cnat.lua"
    assert.equal(0, result.code)
    assert.equal("cnat.programming-kubernetes.info/v1alpha1/At is left out: give its CustomResourceDefinition with "
      .. "--crds\n", result.err)
    assert.truthy(result.out:find("@class v1.Pod: ", 1, true))
  end)

  it("refuses a path that is not there", function()
    for _, words in ipairs { { "/nonexistent" }, { "--crds", "/nonexistent" } } do
      local result = types(table.unpack(words))
      assert.same({ code = 1, out = "", err = "/nonexistent: No such file or directory\n" }, result)
    end
  end)
end)
