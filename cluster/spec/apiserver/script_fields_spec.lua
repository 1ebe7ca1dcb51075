-- Reads of fields that a kind does not have, found in the texts of scripts (cluster/analysis/fields).
local fields = require "cluster.analysis.fields"
local host = require "cluster.host"
local stubs = require "cluster.analysis.fields.stubs"

local CRD = host.yaml.decode([[
kind: CustomResourceDefinition
spec:
  group: example.com
  names: {kind: Thing, plural: things}
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              version: {type: string}
              users:
                type: array
                items: {type: object, properties: {username: {type: string}}}
              options: {type: object, additionalProperties: {type: object, properties: {level: {type: integer}}}}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {known: {type: string}}}
              empty: {type: object}
          status: {type: object, properties: {phase: {type: string}}}
  - name: v2
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
]])[1]

local HEAD = [[
local moonloop = require "moonloop"
local Thing = moonloop.kind("example.com/v1", "Thing")
local Pod = moonloop.kind("v1", "Pod")
]]

-- The problems of a script that says `text`, without the name of the file.
local function problems(text, head)
  assert(load((head or HEAD) .. text))
  local list = fields.check { files = { { name = "x.lua", text = (head or HEAD) .. text } }, manifests = { CRD } }
  local lines = {}
  for index, problem in ipairs(list) do
    assert.equal("x.lua", problem.file)
    lines[index] = problem.text:gsub("^x%.lua:", "")
  end
  return lines
end


-- A controller whose reconcile has this body, which begins in line 5.
local function controller(body, before)
  local begin = "return moonloop.controller { name = 'x', reconciles = Thing,"
    .. " reconcile = function(db, ctx)\n"
  return (before or "") .. begin .. body .. "\nend }"
end


local VERISON = "5: Thing of example.com/v1 has no field 'spec.verison'; did you mean 'version'?"
local USERNMAE = "5: Thing of example.com/v1 has no field 'spec.users[].usernmae'; did you mean 'username'?"

describe("A field that is read and does not exist", function()
  local TOLD = {
    { "of the reconciled object", "return { status = { v = db.spec.verison } }", VERISON },
    { "by a literal index", "return db.spec['verison']", VERISON },
    { "of a local variable for a part", "local spec = db.spec return spec.verison", VERISON },
    { "of a part with a default", "local spec = db.spec or {} return spec.verison", VERISON },
    { "of a part in parentheses", "return (db.spec or {}).verison", VERISON },
    { "in a function within", "return (function() return db.spec.verison end)()", VERISON },
    { "in a condition", "if db.spec.version and not db.spec.verison then return end", VERISON },
    { "in an argument", "ctx.log('x' .. db.spec.verison)", VERISON },
    { "after operators of two symbols", "local x = 1 // 2 << 3 ~= 4 return db.spec.verison", VERISON },
    { "of an item", "return db.spec.users[1].usernmae", USERNMAE },
    { "of an item of a loop", "for _, user in ipairs(db.spec.users) do ctx.log(user.usernmae) end", USERNMAE },
    { "of an item of a loop over a map", "for _, option in pairs(db.spec.options) do ctx.log(option.lvel) end",
      "5: Thing of example.com/v1 has no field 'spec.options[].lvel'; did you mean 'level'?" },
    { "of a value of a map", "return db.spec.options.a.lvel",
      "5: Thing of example.com/v1 has no field 'spec.options.a.lvel'; did you mean 'level'?" },
    { "without one like it", "return db.spec.something",
      "5: Thing of example.com/v1 has no field 'spec.something'" },
    { "of the object itself", "return db.spce.version",
      "5: Thing of example.com/v1 has no field 'spce'; did you mean 'spec'?" },
    { "of the status", "return db.status.phsae",
      "5: Thing of example.com/v1 has no field 'status.phsae'; did you mean 'phase'?" },
    { "of the metadata", "return db.metadata.nmae",
      "5: Thing of example.com/v1 has no field 'metadata.nmae'; did you mean 'name'?" },
    { "of a built-in kind", "local pod = ctx.get(Pod, 'a') return pod.status.phsae",
      "5: Pod of v1 has no field 'status.phsae'; did you mean 'phase'?" },
    { "of a call's result", "return assert(ctx.get(Pod, 'a')).spec.containers[1].iamge",
      "5: Pod of v1 has no field 'spec.containers[].iamge'; did you mean 'image'?" },
    { "of a list's item", "for _, pod in ipairs(ctx.list(Pod)) do ctx.log(pod.spec.nodename) end",
      "5: Pod of v1 has no field 'spec.nodename'; did you mean 'nodeName'?" },
    { "told once for each line", "return db.spec.verison or db.spec.verison", VERISON },
  }
  for _, case in ipairs(TOLD) do
    it("is told: " .. case[1], function()
      assert.same({ case[3] }, problems(controller(case[2])))
    end)
  end

  it("is told in the line where it stands", function()
    assert.same({ (VERISON:gsub("5", "7")) }, problems(controller "--[[ two\nlines ]]\nreturn db.spec.verison"))
  end)

  local OTHERS = {
    { "a helper that is only called with such objects", [[
local function version(thing) return thing.spec.verison end
return moonloop.controller { reconciles = Thing, reconcile = function(a) return version(a) end,
  finalize = function(b) return version(b) end }]], 4 },
    { "a function that is given by its name", [[
local function reconcile(thing) return thing.spec.verison end
return moonloop.controller { reconciles = Thing, reconcile = reconcile }]], 4 },
    { "an index", "local by = moonloop.index(Thing, function(thing) return { thing.spec.verison } end)", 4 },
    { "a watch function", "local by = moonloop.watch(Thing, function(thing) return { thing.spec.verison } end)", 4 },
    { "a webhook", [[
return moonloop.controller { reconciles = Thing, reconcile = function() end,
  validate = function(new, old) return new.spec.version == old.spec.verison end }]], 5 },
    { "a helper with a parameter ctx in another file's way", [[
local M = {}
function M.read(ctx) return ctx.get(Thing, "a").spec.verison end
return M]], 5 },
  }
  for _, case in ipairs(OTHERS) do
    it("is told in " .. case[1], function()
      assert.same({ (VERISON:gsub("5", case[3])) }, problems(case[2]))
    end)
  end
end)

describe("Nothing is told", function()
  local SILENT = {
    { "of fields that exist", "return db.spec.version, db.spec.users[1].username, db.status.phase, db.kind" },
    { "below a schema that keeps unknown fields", "return db.spec.free.other, db.spec.free.other.more" },
    { "of a map's keys", "return db.spec.options.anything, db.metadata.labels.app, db.metadata.annotations['a/b']" },
    { "below a schema without properties", "return db.spec.empty.other" },
    { "of a number's or a text's fields", "return db.spec.version.len" },
    { "of a list's fields", "return db.spec.users.n" },
    { "of methods", "return db.spec.version:verison()" },
    { "of a variable that is assigned again", "local spec = db.spec spec = ctx.other return spec.verison" },
    { "of one that a function within assigns", "local spec = db.spec local function f() spec = {} end f() "
      .. "return spec.verison" },
    { "of a variable that hides another", "local db = ctx.other() return db.verison" },
    { "of a parameter that hides another", "return (function(db) return db.spec.verison end)(1)" },
    { "of a loop's variable that hides another", "for db = 1, 2 do ctx.log(db.verison) end" },
    { "of a variable that is declared by what it hides", "local spec = db.spec local spec = spec.free return spec.x" },
    { "after the block of a variable", "do local users = db.spec end local users = ctx.x return users.verison" },
    { "in the condition of repeat", "local spec = db.spec repeat local spec = {} until spec.verison" },
    { "of a name that the script assigns", "db.spec.verison = 1 return db.spec.verison" },
    { "of a name that may be assigned", "local names = { 'verison' } for _, n in ipairs(names) do db.spec[n] = 1 end "
      .. "return db.spec.verison" },
    { "of a name that may come by a metatable", "return setmetatable(db.spec, { __index = { verison = 1 } }).verison "
      .. "or db.spec.verison" },
    { "of one of two values", "local part = ctx.now() > 1 and db.spec or db.status return part.verison" },
    { "of what another function than ctx.get gives", "local cache = require 'cache' "
      .. "return cache.get(Pod, 'a').verison" },
    { "of a kind that is chosen", "local K = ctx.now() > 1 and Pod or Thing return ctx.get(K, 'a').verison" },
    { "of a key with escapes", [[return db.spec['ver\115ion'] ]] },
    { "in comments and texts", "--[[ db.spec.verison ]] return 'db.spec.verison', [==[ db.spec.verison ]==]" },
  }
  for _, case in ipairs(SILENT) do
    it(case[1], function()
      assert.same({}, problems(controller(case[2])))
    end)
  end

  it("of a kind whose schema is not known, or says nothing", function()
    for _, kind in ipairs { '"example.com/v2", "Thing"', '"example.com/v3", "Thing"', '"other.com/v1", "Thing"' } do
      local head = 'local moonloop = require "moonloop"\nlocal Thing = moonloop.kind(' .. kind .. ")\n\n"
      assert.same({}, problems(controller "return db.spec.verison", head))
    end
  end)

  it("in a helper that may be called with anything", function()
    for _, more in ipairs {
      "helper({})", "pcall(helper, {})", "local again = helper again({})", "return helper", "helper(...)",
      "local t = { helper }", "helper = nil", "helper()",
    } do
      assert.same({}, problems("local function helper(thing) return thing.spec.verison end\n"
        .. controller("return helper(db)", "local function other(...) " .. more .. " end\n")), more)
    end
  end)

  it("of a text that does not compile, or is too deep", function()
    local texts = { "local = 1", "x.", "(", "", "return " .. ("("):rep(1e5), "return ctx" .. (".a"):rep(3e5) }
    for _, text in ipairs(texts) do
      local files = { { name = "x.lua", text = text } }
      assert.equal(0, #fields.check { files = files, manifests = { CRD } })
    end
  end)
end)

describe("A definition that makes no sense", function()
  it("is passed over", function()
    local null = host.json.null
    local version = { name = "v1", schema = { openAPIV3Schema = { properties = { spec = { properties = 7 } } } } }
    local spec = { group = "example.com", names = { kind = "Thing" }, versions = { version } }
    for _, broken in ipairs {
      7, null, "x", {}, { spec = null }, { spec = { versions = 7 } }, { spec = { versions = { 7, null, "x", {} } } },
      { spec = { group = null, names = null, versions = { { name = 7, schema = null } } } }, { items = { 7, null } },
      { spec = { versions = { { schema = { openAPIV3Schema = 7 } } } } }, { spec = spec },
      { spec = { names = 7, versions = { version } } },
    } do
      if type(broken) == "table" then
        broken.kind = "CustomResourceDefinition"
      end
      local files = { { name = "x.lua", text = HEAD .. controller "return db.spec.verison" } }
      assert.equal(0, #fields.check { files = files, manifests = { broken } })
      assert.is_string(stubs.render { files = files, manifests = { broken } }.text)
    end
  end)
end)

describe("The classes for editors", function()
  local function classes(text, manifests)
    local answer = stubs.render { files = { { name = "x.lua", text = text } }, manifests = manifests }
    assert(load(answer.text))
    return answer.text, answer.unknown
  end

  it("have the fields of the given kinds, with types", function()
    local text = classes("", { CRD })
    for _, class in ipairs {
      "---@class example.com.v1.Thing: moonloop.Object\n---@field spec example.com.v1.Thing.spec\n"
        .. "---@field status example.com.v1.Thing.status\n",
      "---@class example.com.v1.Thing.spec.users\n---@field username? string\n",
      "---@field options? table<string, example.com.v1.Thing.spec.options>\n",
      "---@field users? (example.com.v1.Thing.spec.users)[]\n---@field version? string\n",
      "---@field free? any\n",
    } do
      assert.truthy(text:find(class, 1, true), class .. text)
    end
    assert.falsy(text:find("core.PodSpec", 1, true))
  end)

  it("have those of the kinds that scripts name, each class once", function()
    local text, unknown = classes(HEAD, {})
    assert.truthy(text:find("---@class v1.Pod: moonloop.Object\n---@field spec core.PodSpec\n", 1, true))
    assert.truthy(text:find("---@field containers (core.Container)[]\n", 1, true))
    local _, count = text:gsub("@class core.Container\n", "")
    assert.equal(1, count)
    assert.same({ "example.com/v1/Thing" }, unknown)
  end)

  it("of kinds with cycles end", function()
    local text = classes('local m = require "moonloop" '
      .. 'local C = m.kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")', {})
    assert.truthy(text:find("not? apiextensions.JSONSchemaProps", 1, true))
  end)

  it("stay what they are with names and descriptions of any kind", function()
    local properties = { ["x'] any\nerror()"] = { type = "string" } }
    local spec = { type = "object", description = "a\nerror()", properties = properties }
    local version = { name = "v1", schema = { openAPIV3Schema = { properties = { spec = spec } } } }
    local definition = { group = "a.b", names = { kind = "Thi\nng" }, versions = { version } }
    local text = classes("", { { kind = "CustomResourceDefinition", spec = definition } })
    for line in text:gmatch "[^\n]+" do
      assert.equal("--", line:sub(1, 2))
    end
  end)
end)

-- Files of Lua, by a pattern for `ls`.
local function files(pattern)
  local list, listed = {}, assert(io.popen("ls " .. pattern))
  for path in listed:lines() do
    local file <close> = assert(io.open(path))
    list[#list + 1] = { name = path, text = file:read "a" }
  end
  listed:close()
  return list
end


local function definitions()
  local manifests = {}
  for _, file in ipairs(files "crds/*.yaml") do
    for _, manifest in ipairs(host.yaml.documents(file.text)) do
      manifests[#manifests + 1] = manifest.value
    end
  end
  return manifests
end


describe("The scripts of this repository", function()
  it("read no field that does not exist", function()
    local manifests = definitions()
    local scripts = files "reconcilers/*.lua examples/*/*.lua"
    assert.is_true(#scripts > 8 and #manifests > 3)
    assert.same({}, { table.unpack(fields.check { files = scripts, manifests = manifests }) })
  end)

  it("nor do the examples of its documentation", function()
    local examples, checked = {}, 0
    for _, page in ipairs(files "README.md docs/*.md") do
      for text in page.text:gmatch "```lua\n(.-)```" do
        examples[#examples + 1] = { name = page.name, text = HEAD .. text }
        checked = checked + (load(HEAD .. text) and 1 or 0)
      end
    end
    assert.is_true(checked > 5)
    assert.same({}, { table.unpack(fields.check { files = examples, manifests = definitions() }) })
  end)

  it("and all of its Lua can be parsed", function()
    local parser = require "cluster.analysis.fields.parser"
    for _, file in ipairs(files "lua/*/*.lua cluster/*/*.lua cluster/apiserver/*/*.lua spec/*/*.lua") do
      local is_parsed, why = pcall(parser.parse, file.text)
      assert(is_parsed, file.name .. ": " .. tostring(why))
    end
  end)
end)
