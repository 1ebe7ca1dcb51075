-- moonloop check: what a running host would say of these scripts, without one.
local host = require "spec.e2e.support.host"
local shell = require "spec.e2e.support.shell"

local GOOD = [[
local moonloop = require "moonloop"
return moonloop.controller {
  name = "%s",
  reconciles = moonloop.kind("example.com/v1", "Thing"),
  owns = { moonloop.kind("v1", "Pod"), moonloop.kind("apps/v1", "Deployment") },
  reconcile = function() end,
}
]]

local CRD = [[
apiVersion: v1
kind: Namespace
metadata: {name: other}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions:
  - {name: v1, served: %s, storage: true, schema: {openAPIV3Schema: {type: object}}}
]]

local function folder(files)
  local path = shell.folder "check"
  for name, text in pairs(files) do
    shell.write(path .. "/" .. name, text)
  end
  return path
end


local function check(...)
  return host.command { "check", ... }
end


describe("moonloop check", function()
  it("says of a good script that it is fine", function()
    local result = check(folder { ["thing.lua"] = GOOD:format "thing" })
    assert.same({ code = 0, out = "thing.lua: controller thing is fine\n", err = "" }, result)
  end)

  it("passes over byte order marks, of scripts, modules and manifests", function()
    local mark = "\xef\xbb\xbf"
    local scripts = folder { ["thing.lua"] = mark .. 'local m = require "m"\n' .. GOOD:format "thing",
      ["m.lua"] = mark .. "return {}" }
    local crds = folder { ["crd.yaml"] = mark .. CRD:format "true" }
    local result = check(scripts, "--crds", crds)
    assert.same({ code = 0, out = "thing.lua: controller thing is fine\n", err = "" }, result)
    crds = folder { ["crd.yaml"] = mark .. CRD:format "false" }
    assert.equal(1, check(scripts, "--crds", crds).code) -- it has been read
  end)

  it("refuses UTF-16, and says what to do", function()
    local result = check(folder { ["thing.lua"] = "\xff\xfer\0" })
    assert.equal(1, result.code)
    assert.matches("thing%.lua: is UTF%-16; save it as UTF%-8", result.out .. result.err)
  end)

  it("takes a single file", function()
    local result = check(folder { ["thing.lua"] = GOOD:format "thing" } .. "/thing.lua")
    assert.equal(0, result.code, result.err)
  end)

  it("finds the scripts of this repository fine", function()
    local result = check("reconcilers", "--crds", "crds")
    local out = ""
    for _, name in ipairs { "cnat", "database", "rediscluster", "tenant" } do
      out = out .. ("%s.lua: controller %s is fine\n"):format(name, name)
    end
    assert.same({ code = 0, out = out, err = "" }, result)
    result = check("examples/configmap-copier", "--crds", "crds")
    assert.equal(0, result.code, result.err)
  end)

  it("passes over tests, hidden files, and what is not Lua", function()
    local result = check(folder {
      ["thing.lua"] = GOOD:format "thing", ["thing_test.lua"] = "(", [".hidden.lua"] = "(", ["notes.txt"] = "(",
    })
    assert.equal(0, result.code, result.err)
  end)

  it("lets a script require another of its folder", function()
    local user = GOOD:format("user"):gsub("\n", '\nlocal helper = require "helper"\nassert(helper.answer == 42)\n', 1)
    local result = check(folder { ["user.lua"] = user, ["helper.lua"] = "return { answer = 42 }" })
    assert.same({ code = 0, out = "user.lua: controller user is fine\n", err = "" }, result)
  end)

  it("lets a single file require another of its folder, and loads no other", function()
    local user = GOOD:format("user"):gsub("\n", '\nlocal helper = require "helper"\nassert(helper.answer == 42)\n', 1)
    local path = folder {
      ["user.lua"] = user, ["helper.lua"] = "return { answer = 42 }", ["bad.lua"] = "(",
      ["twin.lua"] = GOOD:format "user",
    }
    local result = check(path .. "/user.lua")
    assert.same({ code = 0, out = "user.lua: controller user is fine\n", err = "" }, result)
    result = check(path .. "/helper.lua")
    assert.equal(1, result.code)
    assert.matches("^helper%.lua: returns a table that is not a moonloop%.controller", result.err)
  end)

  local BYTECODE = string.dump(assert(load "return {}"))

  local BAD = {
    { "a syntax error", "local x =\n\nend", "^bad%.lua:3: .*near 'end'" },
    { "an error while it loads", "local x\nreturn x.y", "^bad%.lua:2: .*nil value" },
    { "a raised table", "error { code = 1 }", "^bad%.lua.*error%(%) was called with a table" },
    { "bytecode", BYTECODE, "^bad%.lua:1: .*bytecode" },
    { "nothing in it", "", "^bad%.lua" },
    { "a number for a controller", "return 42", "^bad%.lua.*number" },
    { "a plain table for a controller", "return { name = 'x' }", "^bad%.lua: returns a table that is not a moonloop" },
    { "an endless loop", "local n = 0\nwhile true do n = n + 1 end", "^bad%.lua:2: used more than %d+ ms of CPU time" },
    { "an endless loop in pcall", "while true do pcall(function() while true do end end) end", "^bad%.lua:1: .*CPU" },
    { "a loop inside a pattern", "return (('a'):rep(60)):find(('a*'):rep(30) .. 'b')", "^bad%.lua:1: .*CPU" },
    { "a memory bomb", "local t = {}\nwhile true do t[#t + 1] = ('x'):rep(9999) .. #t end", "^bad%.lua:%d+: .*memory" },
    { "one huge string", "return ('x'):rep(1 << 40)", "^bad%.lua:1: " },
    { "a stack that never ends", "local function f() return 1 + f() end\nreturn f()",
      "^bad%.lua:1: .*o[uv][te][ r]" }, -- out of memory; a later Lua: stack overflow
    { "an unknown field", GOOD:format("x"):gsub("owns", "own"), "^bad%.lua:2: .*'own'; did you mean 'owns'" },
    { "a name that is none", GOOD:format "Not A Label", "^bad%.lua:%d+: .*no DNS label" },
    { "no reconcile", GOOD:format("x"):gsub("reconcile = [^\n]*", ""), "^bad%.lua:%d+: .*reconcile: expected" },
    { "a string for a kind", GOOD:format("x"):gsub("moonloop.kind%(.v1., .Pod.%)", "1"), "^bad%.lua:2: .*owns%[1%]" },
    { "a module that is not there", "return require 'nowhere'", "^bad%.lua:1: .*nowhere" },
    { "a module outside of its folder", "return require '../secret'", "^bad%.lua:1: " },
    { "a global it would set", "answer = 42\nreturn {}", "^bad%.lua:1: .*answer" },
    { "os.execute", "os.execute 'true'", "^bad%.lua:1: " },
    { "io", "return io.open '/etc/passwd'", "^bad%.lua:1: " },
    { "load of bytecode", ("return load(%q, 'x', 'b')()"):format(BYTECODE), "^bad%.lua:%d+: " },
  }

  for _, case in ipairs(BAD) do
    local what, text, message = table.unpack(case)
    it(("refuses %s"):format(what), function()
      local result = check(folder { ["bad.lua"] = text })
      assert.equal(1, result.code, result.out)
      assert.equal("", result.out)
      assert.matches(message, result.err)
      assert.matches("^[^\n]+\n$", result.err)
    end)
  end

  it("refuses the second of two scripts with one name", function()
    local result = check(folder { ["a.lua"] = GOOD:format "twin", ["b.lua"] = GOOD:format "twin" })
    assert.equal(1, result.code)
    assert.equal("a.lua: controller twin is fine\n", result.out)
    assert.matches('^b%.lua: the name "twin" is taken by a%.lua', result.err)
  end)

  it("goes on to the other scripts after a bad one", function()
    local result = check(folder { ["a.lua"] = "(", ["b.lua"] = GOOD:format "b", ["c.lua"] = "return 1" })
    assert.equal(1, result.code)
    assert.equal("b.lua: controller b is fine\n", result.out)
    assert.matches("^a%.lua:1: [^\n]+\nc%.lua[^\n]+\n$", result.err)
  end)

  it("refuses a path that is not there, and a folder without scripts", function()
    local result = check "/nonexistent/reconcilers"
    assert.equal(1, result.code)
    assert.equal("/nonexistent/reconcilers: No such file or directory\n", result.err)
    local empty = folder {}
    result = check(empty)
    assert.equal(1, result.code)
    assert.equal(empty .. ": no script in it\n", result.err)
  end)

  it("keeps the memory limit that it is given", function()
    local hungry = "local kept = ('x'):rep(1000000)\n" .. GOOD:format "hungry"
    local path = folder { ["hungry.lua"] = hungry }
    assert.equal(0, check(path, "--script-memory", "4Mi").code)
    local result = check(path, "--script-memory", "512Ki")
    assert.equal(1, result.code)
    assert.matches("^hungry%.lua:1: .*memory", result.err)
  end)

  describe("--crds", function()
    local path

    setup(function()
      path = folder { ["thing.lua"] = GOOD:format "thing" }
    end)

    it("finds a declared kind in a manifest of several documents", function()
      local result = check(path, "--crds", folder { ["crd.yaml"] = CRD:format "true" })
      assert.same({ code = 0, out = "thing.lua: controller thing is fine\n", err = "" }, result)
    end)

    it("names the line of a kind that is in none", function()
      local result = check(path, "--crds", "crds")
      assert.equal(1, result.code)
      assert.equal("", result.out)
      assert.matches("^thing%.lua:4: kind Thing of example%.com/v1 is not built in", result.err)
    end)

    it("does not count a version that is not served", function()
      local result = check(path, "--crds", folder { ["crd.yaml"] = CRD:format "false" })
      assert.equal(1, result.code)
    end)

    it("refuses a path that is not there, and YAML that is none", function()
      local result = check(path, "--crds", "/nonexistent")
      assert.equal(1, result.code)
      assert.matches("^/nonexistent: No such file", result.err)
      result = check(path, "--crds", folder { ["crd.yaml"] = "a: [b\nc: d" })
      assert.equal(1, result.code)
      assert.matches("crd%.yaml", result.err)
    end)
  end)

  describe("of the fields that a script reads", function()
    local READS = GOOD:gsub("reconcile = function%(%) end", [[
reconcile = function(thing, ctx)
    local pod = ctx.get(moonloop.kind("v1", "Pod"), "a")
    return { status = { phase = pod and pod.status.phsae, version = thing.spec.verison } }
  end]]):format "reads"
    local SCHEMA = CRD:format("true"):gsub("type: object}",
      "type: object, properties: {spec: {type: object, properties: {version: {type: string}}}}}")
    local POD = "reads.lua:8: Pod of v1 has no field 'status.phsae'; did you mean 'phase'?\n"
    local THING = "reads.lua:8: Thing of example.com/v1 has no field 'spec.verison'; did you mean 'version'?\n"

    it("names those that a built-in kind does not have", function()
      local result = check(folder { ["reads.lua"] = READS })
      assert.same({ code = 1, out = "", err = POD }, result)
    end)

    it("names those that are in no schema of the given CRDs", function()
      local path = folder { ["reads.lua"] = READS, ["fine.lua"] = GOOD:format "fine", ["crd.yaml"] = SCHEMA }
      local result = check(path, "--crds", path .. "/crd.yaml")
      assert.same({ code = 1, out = "fine.lua: controller fine is fine\n", err = POD .. THING }, result)
    end)

    it("looks into the modules of a script, and not into other files", function()
      local module = 'local moonloop = require "moonloop"\nlocal Pod = moonloop.kind("v1", "Pod")\n'
        .. 'return { nodes = moonloop.index(Pod, function(pod) return { pod.spec.nodename } end) }\n'
      local user = GOOD:format("user"):gsub("\n", '\nlocal pods = require "pods"\nassert(pods.nodes)\n', 1)
      local path = folder { ["user.lua"] = user, ["pods.lua"] = module, ["reads.lua"] = READS }
      local result = check(path .. "/user.lua")
      local problem = "pods.lua:3: Pod of v1 has no field 'spec.nodename'; did you mean 'nodeName'?\n"
      assert.same({ code = 1, out = "", err = problem }, result)
    end)
  end)

  it("knows which versions a script can convert", function()
    local path = folder {
      ["thing.lua"] = GOOD:format("thing"):gsub("reconcile =", [[
  convert = { v1alpha1 = { to = function() end, from = function() end } },
  reconcile =]]),
      ["thing.yaml"] = CRD:format "true",
    }
    local result = check(path .. "/thing.lua", "--crds", path .. "/thing.yaml")
    assert.equal(1, result.code)
    assert.equal("thing.lua:4: convert.v1alpha1: the given CRD of Thing serves no such version\n", result.err)
  end)
end)
