-- moonloop plan: what it prints, and that nothing changes on the server. spec/e2e/changing_spec.lua compares what it
-- says with what an edit then does; test_operator_plan has the rest.
local dev = require "spec.host.support.dev"
local host = require "spec.e2e.support.host"
local shell = require "spec.e2e.support.shell"

local MAPS = "/api/v1/namespaces/default/configmaps"

-- Copies each ConfigMap that has the label into a Secret.
local COPY = [[
local moonloop = require "moonloop"
local Secret = moonloop.kind("v1", "Secret")

return moonloop.controller {
  name = "copy",
  reconciles = moonloop.kind("v1", "ConfigMap", { labels = "copy=yes" }),
  owns = { Secret },
  reconcile = function(map, ctx)
    if map.data.word == "none" then
      error "no word"
    elseif map.data.word == "ask" then
      ctx.get(Secret, "secrets-are-cached")
    end
    return { children = { {
      apiVersion = "v1", kind = "Secret", metadata = { name = map.metadata.name },
      stringData = { word = map.data.word },
    } } }
  end,
}
]]

describe("moonloop plan", function()
  local server, script

  setup(function()
    server = dev.start { "--pods", "none" }
    script = shell.folder "scripts" .. "/copy.lua"
    shell.write(script, COPY)
    for i = 1, 7 do
      server:must("POST", MAPS, {
        apiVersion = "v1", kind = "ConfigMap", data = { word = "secret-" .. i },
        metadata = { name = "map-" .. i, labels = { copy = "yes" } },
      })
    end
  end)

  teardown(dev.stop_all)

  local function plan(...)
    return host.command { "plan", "--kubeconfig", server.kubeconfig, ... }
  end

  it("prints what would be made, five of each, with the values of no Secret", function()
    local result = plan("--scripts", script)
    assert.same({ 2, "" }, { result.code, result.err })
    local lines = { "  create 7 Secret" }
    for i = 1, 5 do
      lines[#lines + 1] = ("    default/map-%d, for default/map-%d"):format(i, i)
    end
    lines[#lines + 1] = "    and 2 more\n"
    assert.matches("^copy%.lua: controller copy, revision %x+: 7 of 7 objects of ConfigMap were tried\n", result.out)
    assert.equal(table.concat(lines, "\n"), result.out:match "\n(.*)")
    result = plan(script, "-o", "json")
    assert.equal(2, result.code)
    assert.truthy(result.out:find([["kind":"Secret"]], 1, true), result.out)
    assert.truthy(result.out:find("(hidden)", 1, true), result.out)
    assert.falsy(result.out:find("secret-", 1, true), result.out)
    assert.same({}, server:get "/api/v1/namespaces/default/secrets".items)
  end)

  it("ends with 1 and the line when the script fails for an object", function()
    server:must("PATCH", MAPS .. "/map-7", { data = { word = "none" } }, { type = "application/merge-patch+json" })
    local result = plan("--scripts", script)
    assert.equal(1, result.code)
    assert.truthy(result.out:find("\n  fails\n    default/map-7: copy.lua:10: no word\n", 1, true), result.out)
    assert.truthy(result.out:find("\n  create 6 Secret\n", 1, true), result.out)
    local event = "\n  Event Warning ReconcileFailed, 1 times, as of ConfigMap default/map-7: "
    assert.truthy(result.out:find(event, 1, true), result.out)
  end)

  it("says what is wrong when there is no plan", function()
    local missing = shell.path "missing.lua"
    shell.write(missing, (COPY:gsub('"v1", "ConfigMap"', '"none.example.com/v1", "None"')))
    for words, want in pairs {
      [""] = { 2, "no scripts given: moonloop plan --scripts PATH" },
      ["/none.lua"] = { 1, "/none.lua" },
      [script .. " -o yaml"] = { 2, "-o yaml: choose json, or leave it out" },
      [script .. " --kubeconfig /none"] = { 3, "/none" },
      [missing] = { 1, "None" },
    } do
      local list = {}
      for word in words:gmatch "%S+" do
        list[#list + 1] = word
      end
      local result = plan(table.unpack(list))
      assert.equal(want[1], result.code, words .. ": " .. result.err)
      assert.truthy(result.err:find(want[2], 1, true), words .. ": " .. result.err)
    end
  end)
end)
