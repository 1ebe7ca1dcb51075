-- Names that do not exist, found in the texts of scripts (lua/analysis), by the built-in kinds and those of CRDs.
local names = require "testnames"
local host = require "cluster.host"
local stubs = require "cluster.analysis.stubs"

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
  local list = names.check { files = { { name = "x.lua", text = (head or HEAD) .. text } }, manifests = { CRD } }
  local lines = {}
  for index, problem in ipairs(list) do
    assert.equal("x.lua", problem.file)
    lines[index] = problem.text:gsub("^x%.lua:", "")
  end
  return lines
end


-- A controller whose reconcile has this body, which begins in line 5.
local function controller(body, before)
  local begin = "return moonloop.controller { name = 'x', reconciles = Thing, owns = { Pod },"
    .. " reconcile = function(db, ctx)\n"
  return (before or "") .. begin .. body .. "\nend }"
end


local VERISON = "5: Thing of example.com/v1 has no field 'spec.verison'; did you mean 'version'?"
local USERNMAE = "5: Thing of example.com/v1 has no field 'spec.users[].usernmae'; did you mean 'username'?"

describe("A field that is read and does not exist", function()
  local TOLD = {
    { "of the reconciled object", "return { status = { phase = db.spec.verison } }", VERISON },
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

-- A text that stands at the top of a file, from line 4 on; the declaration follows in the last line.
local function script(text, declaration)
  return text .. "\nreturn moonloop.controller { name = 'x', reconciles = Thing, reconcile = function(thing, ctx) "
    .. "local use = f end, " .. (declaration or "owns = { Pod }") .. " }"
end


describe("A name that does not exist", function()
  local IN_RECONCILE = {
    { "of ctx", "ctx.evnt('A', 'b')", "ctx has no 'evnt'; did you mean 'event'?" },
    { "of ctx as a literal index", "ctx['evnt']('A', 'b')", "ctx has no 'evnt'; did you mean 'event'?" },
    { "of a function of ctx with a colon", "ctx:get(Pod, 'a')",
      "call ctx.get with a dot, as in ctx.get(Kind, name [, namespace])" },
    { "of the library", "return moonloop.arry {}", "moonloop has no 'arry'; did you mean 'array'?" },
    { "of a library of Lua", "return string.fromat('%d', 1)", "Lua's string has no 'fromat'; did you mean 'format'?" },
    { "of a method of a text", "return ('%d'):fromat(1)", "Lua's string has no 'fromat'; did you mean 'format'?" },
    { "of a method of a field", "return db.spec.version:sbu(1)", "Lua's string has no 'sbu'; did you mean 'sub'?" },
    { "of an option", "ctx.list(Pod, { lables = { a = 'b' } })",
      "ctx.list(Kind [, { … }]) has no field 'lables'; did you mean 'labels'?" },
    { "of an option in a variable", "local options = {} options.lables = { a = 'b' } ctx.list(Pod, options)",
      "ctx.list(Kind [, { … }]) has no field 'lables'; did you mean 'labels'?" },
    { "of a result", "return { requeue_affter = '5s' }",
      "the result of reconcile has no field 'requeue_affter'; did you mean 'requeue_after'?" },
    { "of a result in a variable", "local r = { status = {} } r.requeue_affter = '5s' return r",
      "the result of reconcile has no field 'requeue_affter'; did you mean 'requeue_after'?" },
    { "of a result of a helper", "local function done() return { staus = {} } end return done()",
      "the result of reconcile has no field 'staus'; did you mean 'status'?" },
    { "of a result that is one of two", "return db.spec.version and { staus = {} } or nil",
      "the result of reconcile has no field 'staus'; did you mean 'status'?" },
    { "of a status", "return { status = { phsae = 'A' } }",
      "Thing of example.com/v1 has no field 'status.phsae'; did you mean 'phase'?" },
    { "of a status in a variable", "local status = {} status.phsae = 'A' return { status = status }",
      "Thing of example.com/v1 has no field 'status.phsae'; did you mean 'phase'?" },
    { "of a condition", "return { conditions = { Ready = { status = true, raeson = 'A' } } }",
      "the result of reconcile has no field 'conditions.Ready.raeson'; did you mean 'reason'?" },
    { "of a manifest", "ctx.apply { apiVersion = 'v1', kind = 'Pod', metadata = { name = 'a' }, spce = {} }",
      "Pod of v1 has no field 'spce'; did you mean 'spec'?" },
    { "of metadata", "ctx.apply { apiVersion = 'v1', kind = 'Pod', metadata = { nmae = 'a' } }",
      "Pod of v1 has no field 'metadata.nmae'; did you mean 'name'?" },
    { "of a manifest by its kind",
      "ctx.apply { apiVersion = Pod.apiVersion, kind = Pod.kind, metadata = {}, spce = {} }",
      "Pod of v1 has no field 'spce'; did you mean 'spec'?" },
    { "of a part of a manifest that a helper makes", "local function box() return { iamge = 'a' } end "
      .. "ctx.apply { apiVersion = 'v1', kind = 'Pod', metadata = {}, spec = { containers = { box() } } }",
      "Pod of v1 has no field 'spec.containers[].iamge'; did you mean 'image'?" },
    { "that a helper sets", "local function set(c) c.iamge = 'a' return c end "
      .. "ctx.apply { apiVersion = 'v1', kind = 'Pod', metadata = {}, spec = { containers = { set { name = 'a' } } } }",
      "Pod of v1 has no field 'spec.containers[].iamge'; did you mean 'image'?" },
    { "of a patch", "ctx.patch(db, { spec = { verison = '2' } })",
      "Thing of example.com/v1 has no field 'spec.verison'; did you mean 'version'?" },
    { "of what ctx.apply returned",
      "return ctx.apply({ apiVersion = 'v1', kind = 'Pod', metadata = { name = 'a' } }).status.phsae",
      "Pod of v1 has no field 'status.phsae'; did you mean 'phase'?" },
    { "of an error", "local _, err = ctx.get(Pod, 'a') return err.mesage",
      "an error has no 'mesage'; did you mean 'message'?" },
    { "of an answer", "local answer = ctx.http { url = 'https://a.b/c' } return answer.statuss",
      "an answer of ctx.http has no 'statuss'; did you mean 'status'?" },
    { "of an answer that is assigned later", "local answer if db then answer = ctx.http { url = 'https://a.b/c' } end "
      .. "return answer.statuss", "an answer of ctx.http has no 'statuss'; did you mean 'status'?" },
    { "of a key of ctx.once", "local v = ctx.once('a', { password = tostring }) return v.pasword",
      "the result of ctx.once has no 'pasword'; did you mean 'password'?" },
    { "of a kind", "return Pod.kidn", "a kind has no 'kidn'; did you mean 'kind'?" },
  }
  for _, case in ipairs(IN_RECONCILE) do
    it("is told: " .. case[1], function()
      local all = "owns = { Pod, moonloop.kind('v1', 'Secret') }, http = { 'https://a.b' },"
      local text = controller(case[2]):gsub("owns = { Pod },", all)
      assert.same({ "5: " .. case[3] }, problems(text))
    end)
  end

  it("is told of a declaration, and of what is in it", function()
    assert.same({ "5: moonloop.controller has no field 'onws'; did you mean 'owns'?" },
      problems(script("local f", "onws = { Pod }")))
    assert.same({ "5: moonloop.controller has no field 'metrics.things.hlep'; did you mean 'help'?" },
      problems(script("local f", "metrics = { things = { type = 'gauge', hlep = 'a' } }")))
    assert.same({ "5: moonloop.controller has no field 'owns[1].adpot'; did you mean 'adopt'?" },
      problems(script("local f", "owns = { { kind = Pod, adpot = true } }")))
  end)

  it("is told of another file of the source", function()
    local helper = "local M = {}\nfunction M.name_of(thing) return thing.spec.verison end\nreturn M"
    local main = HEAD .. 'local names = require "names"\n' .. controller "ctx.log(names.name_of(db)) names.nmae_of(db)"
    local list = names.check {
      files = { { name = "main.lua", text = main }, { name = "names.lua", text = helper } }, manifests = { CRD },
    }
    assert.same({
      "main.lua:6: names.lua has no 'nmae_of'; did you mean 'name_of'?",
      "names.lua:2: Thing of example.com/v1 has no field 'spec.verison'; did you mean 'version'?",
    }, { list[1].text, list[2].text })
    assert.equal(2, #list)
  end)
end)

describe("A value that cannot be", function()
  local CASES = {
    { "a literal of another type", "ctx.get(Pod, 5)",
      "name of ctx.get(Kind, name [, namespace]): expected a string, got 5" },
    { "a name in place of a kind", "ctx.get('Pod', 'a')",
      "kind of ctx.get(Kind, name [, namespace]): expected a kind of moonloop.kind, got 'Pod'" },
    { "an argument that is missing", "ctx.get(Pod)", "ctx.get(Kind, name [, namespace]): name is missing" },
    { "an argument too many", "ctx.now(5)", "ctx.now(): there are more arguments than it takes" },
    { "none of any number of arguments", "moonloop.exact({})",
      "moonloop.exact(object, path, …): argument 2 is missing" },
    { "a literal of another type among these", "moonloop.exact({}, 'data', 5)",
      "argument 3 of moonloop.exact(object, path, …): expected a string, got 5" },
    { "a path that the kind does not have",
      "moonloop.exact({ apiVersion = 'v1', kind = 'Pod', metadata = {} }, 'metadata.labels', 'spec.nodeSelectr')",
      "Pod of v1 has no field 'spec.nodeSelectr'; did you mean 'nodeSelector'?" },
    { "a path that leads to no map",
      "moonloop.exact({ apiVersion = 'v1', kind = 'Pod', metadata = {} }, 'spec.nodeSelector', 'spec.containers')",
      "spec.containers of Pod of v1 is an array; moonloop.exact takes maps" },
    { "none of the known words", "ctx.event('A', 'b', 'Warnng')",
      "options of ctx.event(reason, note [, { … }]): expected a table or one of 'Normal', 'Warning', got 'Warnng'" },
    { "a misspelt word in options", "ctx.event('A', 'b', { type = 'Warnng' })",
      "options.type of ctx.event(reason, note [, { … }]): expected one of 'Normal', 'Warning', got 'Warnng'; "
      .. "did you mean 'Warning'?" },
    { "a misspelt option", "ctx.event('A', 'b', { abuot = object })",
      "ctx.event(reason, note [, { … }]) has no field 'options.abuot'; did you mean 'about'?" },
    { "a text as the object of an Event", "ctx.event('A', 'b', { about = 'pod' })",
      "options.about of ctx.event(reason, note [, { … }]): expected a table, got 'pod'" },
    { "a text where the kind has a number",
      "ctx.apply { apiVersion = 'v1', kind = 'Pod', metadata = { name = 'a' }, spec = { priority = '5' } }",
      "spec.priority of Pod of v1: expected a whole number, got '5'" },
    { "a table where the kind has a text",
      "ctx.apply { apiVersion = 'v1', kind = 'Pod', metadata = { name = {} } }",
      "metadata.name of Pod of v1: expected a string, got a table" },
    { "a list where the kind has fields",
      "ctx.apply { apiVersion = 'v1', kind = 'Pod', metadata = { labels = { 'a' } } }",
      "metadata.labels of Pod of v1: expected a table with fields, got a list" },
    { "fields where the kind has a list",
      "ctx.apply { apiVersion = 'v1', kind = 'Pod', metadata = {}, spec = { containers = { name = 'a' } } }",
      "spec.containers of Pod of v1: expected a list, found the key 'name'" },
    { "a value that the kind does not list",
      "ctx.apply { apiVersion = 'v1', kind = 'Pod', metadata = {}, spec = { restartPolicy = 'Alway' } }",
      "spec.restartPolicy of Pod of v1: expected one of 'Always', 'Never', 'OnFailure', got 'Alway'; "
      .. "did you mean 'Always'?" },
    { "a comparison that never holds", "local pod = ctx.get(Pod, 'a') return pod.status.phase == 'Done'",
      "status.phase of Pod of v1 is never 'Done', it is one of 'Failed', 'Pending', 'Running', 'Succeeded', "
      .. "'Unknown'" },
    { "the kind of an error that there is not", "local _, err = ctx.get(Pod, 'a') return err.kind == 'Missing'",
      "kind is never 'Missing', it is one of 'NotFound', 'AlreadyExists', 'Invalid', 'Forbidden', 'Unsupported', "
      .. "'LimitExceeded', 'Timeout', 'Network', 'TLS'" },
    { "a text as a result", "return 'done'", "the result of reconcile: expected a table, got 'done'" },
  }
  for _, case in ipairs(CASES) do
    it("is told: " .. case[1], function()
      assert.same({ "5: " .. case[3] }, problems(controller(case[2])))
    end)
  end
end)

describe("What is used and not declared", function()
  local NODE = "local Node = moonloop.kind('v1', 'Node')"
  local CASES = {
    { "a kind that is read", NODE .. " local function f(ctx) return ctx.get(Node, 'a') end", nil,
      "4: Node of v1 is not declared: add it to owns, watches or uses" },
    { "a kind that is written",
      "local function f(ctx) ctx.apply { apiVersion = 'v1', kind = 'Node', metadata = {} } end",
      nil, "4: Node of v1 is not declared: add it to owns, watches or uses" },
    { "a kind that does not exist", "local f = moonloop.kind('v1', 'Podd')", nil,
      "4: there is no kind Podd in v1; did you mean 'Pod'?" },
    { "a version that does not exist", "local f = moonloop.kind('apps/v1beta1', 'Deployment')", nil,
      "4: there is no version v1beta1 of apps; it has v1" },
    { "a metric", "local function f(ctx) ctx.metric('things', 1) end",
      "metrics = { thing = { type = 'gauge', help = 'a' } }",
      "4: the metric 'things' is not declared: add it to metrics; or did you mean 'thing'?" },
    { "a label of a metric", "local function f(ctx) ctx.metric('thing', 1, { nmae = 'a' }) end",
      "metrics = { thing = { type = 'gauge', help = 'a', labels = { 'name' } } }",
      "4: the metric 'thing' has no label 'nmae'; did you mean 'name'?" },
    { "an origin", "local function f(ctx) ctx.http { url = 'https://a.bb/c' } end", "http = { 'https://a.b' }",
      "4: the origin https://a.bb is not declared: add it to http; or did you mean 'https://a.b'?" },
    { "an origin of no pattern", "local function f(ctx) ctx.http { url = 'https://b/c' } end",
      "http = { 'https://*.b.cc' }", "4: the origin https://b is not declared: add it to http" },
    { "the Secret of ctx.once", "local function f(ctx) ctx.once('a', { b = tostring }) end", nil,
      "4: ctx.once: Secret is not declared: add moonloop.kind(\"v1\", \"Secret\") to owns, or to uses" },
  }
  for _, case in ipairs(CASES) do
    it("is told: " .. case[1], function()
      assert.same({ case[4] }, problems(script(case[2], case[3])))
    end)
  end

  it("is told of children", function()
    local child = "return { children = { { apiVersion = 'v1', kind = 'Node', metadata = { name = 'a' } } } }"
    assert.same({ "5: Node of v1 is not in owns; children are of the kinds in owns" }, problems(controller(child)))
    local thing = "return { children = { { apiVersion = 'example.com/v1', kind = 'Thing', "
      .. "metadata = { name = 'a' } } } }"
    assert.same({ "5: Thing of example.com/v1 is not in owns; children are of the kinds in owns" },
      problems(controller(thing)))
  end)

  it("is not told of a file when one of its controllers declares it", function()
    local helper = 'local moonloop = require "moonloop"\nlocal Node = moonloop.kind("v1", "Node")\n'
      .. "return function(ctx) return ctx.get(Node, 'a') end"
    local use = 'local node = require "node"\n' .. "local function f(ctx) return node(ctx) end"
    local without, with = HEAD .. script(use), HEAD .. script(use, "owns = { moonloop.kind('v1', 'Node') }")
    local function found(...)
      local files = { { name = "node.lua", text = helper } }
      for index, text in ipairs { ... } do
        files[index + 1] = { name = index .. ".lua", text = text }
      end
      local list = {}
      for _, problem in ipairs(names.check { files = files, manifests = { CRD } }) do
        list[#list + 1] = problem.text
      end
      return list
    end
    assert.same({ "node.lua:3: Node of v1 is not declared: add it to owns, watches or uses" }, found(without))
    assert.same({}, found(with))
    assert.same({}, found(without, with))
  end)

  for _, later in ipairs {
    "declared.owns = { Pod }", "declared[db] = { Pod }", "local other = declared other.owns = { Pod }",
    "complete(declared)",
  } do
    it("is not told where the declaration is completed: " .. later, function()
      local text = "local declared = { name = 'x', reconciles = Thing, reconcile = function(thing, ctx)\n"
        .. "return ctx.get(Pod, 'a') end } " .. later .. " return moonloop.controller(declared)"
      assert.same({}, problems("local function complete(t) t.uses = { Pod } end local db = 'uses' " .. text))
    end)
  end
end)

describe("Nothing is told", function()
  local SILENT = {
    { "of options and results that are put together", "local o = {} o[ctx.now()] = 1 return o" },
    { "of a table that becomes something else later", "local t = { status = {} } ctx.log('a', t) "
      .. "ctx.invalid('a', 'b', t) t.children = {} return t" },
    { "of fields that the script gives to its own copy",
      "db.spec.mine = 1 return { status = { phase = db.spec.mine } }" },
    { "of a value that is put together", "ctx.event('A', 'b', db.spec.version and 'Warning' or 'Normal')" },
    { "of a number for a quantity, and a name for a port",
      "ctx.apply { apiVersion = 'v1', kind = 'Pod', metadata = {}, "
      .. "spec = { containers = { { resources = { limits = { cpu = 1, memory = '1Gi' } }, "
      .. "livenessProbe = { httpGet = { port = 'http' } } } } } }" },
    { "of null", "ctx.patch(db, { spec = { version = moonloop.null } })" },
    { "of a function whose arguments are spread", "local function f(...) return ctx.get(...) end return f(Pod, 'a')" },
    { "of a call of an unknown function", "local known = { f = tostring } return known.g and known.g(1)" },
    { "of a reference that looks like a manifest",
      "local ref = { apiVersion = 'v1', kind = 'Pod', name = 'a', other = 1 } return ref.other" },
    { "of a kind that the script chooses", "ctx.apply { apiVersion = 'v1', kind = db.spec.version, metadata = {} }" },
    { "of an object that is passed to itself", "local function f(x) return f and f(x.spec) or x end return f(db)" },
    { "of tables that contain themselves", "local t = {} t.status = t t.conditions = t local x = t.status" },
    { "of fields that exist", "return db.spec.version, db.spec.users[1].username, db.status.phase, db.kind" },
    { "below a schema that keeps unknown fields", "return db.spec.free.other, db.spec.free.other.more" },
    { "of a map's keys", "return db.spec.options.anything, db.metadata.labels.app, db.metadata.annotations['a/b']" },
    { "below a schema without properties", "return db.spec.empty.other" },
    { "of a number's or a text's fields", "return db.spec.version.len" },
    { "of a list's fields", "return db.spec.users.n" },
    { "of methods of a list", "return db.spec.users:verison()" },
    { "of a variable that is assigned again", "local spec = db.spec spec = ctx.get return spec.verison" },
    { "of one that a function within assigns", "local spec = db.spec local function f() spec = {} end f() "
      .. "return spec.verison" },
    { "of a variable that hides another", "local db = ctx.now() return db.verison" },
    { "of a parameter that hides another", "return (function(db) return db.spec.verison end)(1)" },
    { "of a loop's variable that hides another", "for db = 1, 2 do ctx.log(db.verison) end" },
    { "of a variable that is declared by what it hides", "local spec = db.spec local spec = spec.free return spec.x" },
    { "after the block of a variable", "do local users = db.spec end local users = ctx.now() return users.verison" },
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
    { "in comments and texts", "--[[ db.spec.verison ]] local x = 'db.spec.verison', [==[ db.spec.verison ]==]" },
  }
  for _, case in ipairs(SILENT) do
    it(case[1], function()
      assert.same({}, problems(controller(case[2])))
    end)
  end

  it("of a kind whose schema is not known, or says nothing", function()
    for _, kind in ipairs { '"example.com/v2", "Thing"', '"other.com/v1", "Thing"' } do
      local head = 'local moonloop = require "moonloop"\nlocal Thing = moonloop.kind(' .. kind .. ")\nlocal Pod\n"
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

  it("of a text that nests deep", function()
    for _, text in ipairs { "return " .. ("("):rep(150) .. "1" .. (")"):rep(150), "return ctx" .. (".a"):rep(1e4) } do
      assert.same({}, problems("local ctx\n" .. text))
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
      assert.equal(0, #names.check { files = files, manifests = { broken } })
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
    assert.same({}, names.check { files = scripts, manifests = manifests })
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
    assert.same({}, names.check { files = examples, manifests = definitions() })
  end)

  it("and all of its Lua can be parsed", function()
    local parser = require "analysis.parser"
    for _, file in ipairs(files "lua/*/*.lua cluster/*/*.lua cluster/apiserver/*/*.lua spec/*/*.lua") do
      local is_parsed, why = pcall(parser.parse, file.text)
      assert(is_parsed, file.name .. ": " .. tostring(why))
    end
  end)
end)


describe("patterns of moonloop.regex", function()
  local REGEX = 'local regex = require "moonloop.regex" '
  local MATCH = "5: regex.match(text, pattern): pattern: "
  local GSUB = "5: regex.gsub(text, pattern, replacement [, max]): pattern: "

  it("are found when they are none, and nothing is told of others", function()
    for statement, expected in pairs {
      ["regex.match(x, [[^(a]])"] = MATCH .. "missing closing ) at '^(a'",
      ["regex.gsub(x, [[%d+]], '')"] = GSUB .. "'%d' is of Lua's patterns; here it is '\\d'; "
        .. "for a percent sign itself write '[%]'",
      ["local P = '[b-a]' regex.match(x, P)"] = MATCH .. "invalid character class range at 'b-a'",
      ["regex.match(x, ('a'):rep(9) .. '(')"] = false, ["regex.match('(', x)"] = false,
      ["regex.match(x, [[^(?P<n>\\d+)%2F[%]d$]])"] = false,
    } do
      local found = problems(controller("local x = db.metadata.name " .. statement, REGEX))
      assert.same({ expected or nil }, found, statement)
    end
  end)

  it("are all looked at", function()
    local calls = ("regex.match('', '((?:a{0,1000}){1}(?:b{0,1000}){1}')\n"):rep(300)
    assert.equal(300, #problems(controller(calls, REGEX)))
  end)
end)
