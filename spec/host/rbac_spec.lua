-- moonloop rbac: the roles that scripts need, by what they declare and call.
local host = require "spec.e2e.support.host"
local shell = require "spec.e2e.support.shell"

local HEAD = [[
local moonloop = require "moonloop"
local Thing = moonloop.kind("example.com/v1", "Thing")
local ConfigMap = moonloop.kind("v1", "ConfigMap")
local Secret = moonloop.kind("v1", "Secret")
local Node = moonloop.kind("v1", "Node")
local Deployment = moonloop.kind("apps/v1", "Deployment")
]]

local CRD = [[
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: thingies.example.com}
spec:
  group: example.com
  scope: %s
  names: {kind: Thing, plural: thingies}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {%s}
    schema: {openAPIV3Schema: {type: object}}
]]

-- A folder with the files; `declared` are the fields of the controller, `body` what reconcile does.
local function folder(declared, body, more)
  local path = shell.folder "rbac"
  shell.write(path .. "/thing.lua", ("%s%s\nreturn moonloop.controller {\n  name = \"thing\", reconciles = Thing, %s\n"
    .. "  reconcile = function(thing, ctx)\n%s\n  end,\n}\n"):format(HEAD, more or "", declared, body))
  shell.write(path .. "/crd.yaml", CRD:format("Namespaced", "status: {}"))
  return path
end


local function rbac(...)
  return host.command { "rbac", ... }
end


-- The rules of the role of this name and kind: "resources" or "resources name" → verbs.
local function rules_of(text, kind, name, namespace)
  local rules = {}
  for document in (text .. "---\n"):gmatch "(.-)%-%-%-\n" do
    local function has(part)
      return document:find(part, 1, true)
    end
    local is_it = has("kind: " .. kind .. "\n") and has("\n  name: " .. name .. "\n")
      and (not namespace or has("\n  namespace: " .. namespace .. "\n"))
    if is_it and document:find("\nrules:\n", 1, true) then
      for resource, rest in document:gmatch "resources: %[([^\n]*)%]\n(.-)verbs: " do
        local names = rest:match "resourceNames: %[(.-)%]"
        local verbs = document:match("resources: %[" .. resource:gsub("%p", "%%%0") .. "%]\n"
          .. rest:gsub("%p", "%%%0") .. "verbs: %[(.-)%]")
        rules[names and resource .. " " .. names or resource] = verbs
      end
    end
  end
  return rules
end


-- Returns the rules that a controller of these declarations and this body needs.
local function needs(declared, body, more)
  local path = folder(declared, body, more)
  local result = rbac(path .. "/thing.lua", "--crds", path .. "/crd.yaml")
  assert.same({ 0, "" }, { result.code, result.err })
  return rules_of(result.out, "ClusterRole", "moonloop-thing")
end


describe("moonloop rbac", function()
  it("grants a kind the verbs of its use", function()
    assert.same({
      thingies = "get, list, watch", ["thingies/status"] = "patch", configmaps = "get, list, watch",
      deployments = "get, list, watch",
    }, needs("owns = { ConfigMap }, uses = { Secret }, watches = { moonloop.watch(Deployment, function() end) },", ""))
  end)

  it("grants what the script calls, on what it is called with", function()
    local declared = "owns = { ConfigMap }, uses = { Secret, Node },"
    local function child(call)
      return ('ctx.%s { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "x" } }'):format(call)
    end
    local owned = { ensure = "create, patch", create = "create", apply = "create, patch" }
    for call, verbs in pairs(owned) do
      local rules = needs(declared, child(call))
      assert.equal("get, list, watch, " .. verbs, rules.configmaps, call)
      assert.equal("update", rules["thingies/finalizers"], call)
      assert.is_nil(rules.secrets, call)
      assert.is_nil(rules.nodes, call)
    end
    assert.equal("get", needs(declared, "ctx.get(Secret, thing.spec.name)").secrets)
    assert.equal("list", needs(declared, "ctx.list(Secret, { labels = { a = 'b' } })").secrets)
    local rules = needs(declared, "for _, s in ipairs(ctx.list(Secret)) do ctx.delete(s) end ctx.patch(thing, {})")
    assert.equal("list, delete", (rules.secrets:gsub("get, ", "")))
    assert.equal("get, list, watch, patch", rules.thingies)
    assert.equal("get, list, watch", rules.configmaps)
    assert.is_nil(rules.nodes)
  end)

  it("names what is always read by the same name", function()
    local declared = "uses = { Secret },"
    local rules = needs(declared, "ctx.get(Secret, 'one', 'ns') ctx.get(Secret, \"two\")")
    assert.equal("get", rules["secrets one, two"])
    rules = needs(declared, "ctx.get(Secret, 'one') ctx.get(Secret, thing.spec.name)")
    assert.equal("get", rules.secrets)
    rules = needs(declared, "ctx.get(Secret, 'one') ctx.list(Secret)")
    assert.equal("get, list", rules.secrets)
  end)

  it("grants all that may be meant where the text does not tell", function()
    local declared = "owns = { ConfigMap }, uses = { Secret },"
    for _, body in ipairs {
      "local f = ctx.apply f(thing.spec.any)",
      "ctx[thing.spec.call](thing.spec.any)",
      "local c = ctx c['apply'](thing.spec.any)",
      "ctx.apply { apiVersion = 'v1', kind = thing.spec.kind, metadata = {} }",
      "local cjson = require 'cjson' ctx.apply(cjson.decode(thing.spec.any))",
    } do
      local rules = needs(declared, body:find "require" and "ctx.apply(decoded(thing.spec.any))" or body,
        body:find "require" and "local cjson = require 'cjson' local function decoded(t) return cjson.decode(t) end\n")
      assert.equal("get, create, patch", (rules.secrets or "nothing"):gsub(", delete", ""):gsub("list, ", ""), body)
      assert.truthy(rules.configmaps:find("create, patch", 1, true), body)
    end
    local rules = needs(declared, "local function each(o) ctx.delete(o) end each(thing.spec.any)")
    assert.equal("get, delete", rules.secrets)
    assert.equal("get, list, watch, delete", rules.configmaps)
    assert.equal("get, list, watch, delete", rules.thingies)
  end)

  it("reads neither comments nor texts as calls, and reads modules", function()
    local path = folder("owns = { ConfigMap },",
      "local s = 'ctx.delete(thing)' --[[ ctx.delete(thing) ]] -- ctx.delete(thing)\n"
        .. "parts.make(thing, ctx)", "local parts = require 'parts'\n")
    shell.write(path .. "/parts.lua", 'return { make = function(thing, c)\n'
      .. '  c.ensure { apiVersion = "v1", kind = "ConfigMap", metadata = { name = thing.metadata.name } }\nend }\n')
    shell.write(path .. "/other.lua", "return { never = function(ctx, x) ctx.delete(x) end }\n")
    local result = rbac(path .. "/thing.lua", "--crds", path .. "/crd.yaml")
    assert.same({ 0, "" }, { result.code, result.err })
    local rules = rules_of(result.out, "ClusterRole", "moonloop-thing")
    assert.equal("get, list, watch, create, patch", rules.configmaps)
    assert.equal("get, list, watch", rules.thingies)
  end)

  it("grants what finalizers, children and values made once need", function()
    local rules = needs("owns = { ConfigMap },", "return { children = {} }")
    assert.equal("get, list, watch, create, patch, delete", rules.configmaps)
    assert.equal("update", rules["thingies/finalizers"])
    assert.equal("get, list, watch", rules.thingies)
    rules = needs("owns = { ConfigMap },", "return { children = { { metadata = { namespace = 'x' } } } }")
    assert.equal("get, list, watch, patch", rules.thingies)
    rules = needs("owns = { ConfigMap },", "local result = {} result.children = {} return result")
    assert.equal("get, list, watch, create, patch, delete", rules.configmaps)
    assert.equal("get, list, watch, patch", needs("finalize = function() end,", "").thingies)
    rules = needs("uses = { Secret },", "ctx.once('x', { a = function() return 'b' end })")
    assert.equal("get, create, patch", rules.secrets)
    assert.equal("update", rules["thingies/finalizers"])
  end)

  it("grants what webhooks need, on what has their names", function()
    local path = folder("default = function() end, validate = function() end,", "")
    local served = { "--webhook-bind-address", ":9443" }
    local out = rbac(path, "--crds", path .. "/crd.yaml", table.unpack(served)).out
    assert.same({ ["secrets moonloop-webhook-cert"] = "get, list, watch, patch", secrets = "create" },
      rules_of(out, "Role", "moonloop-webhooks", "moonloop-system"))
    assert.same({
      ["mutatingwebhookconfigurations moonloop-thing"] = "get, list, watch, patch",
      ["validatingwebhookconfigurations moonloop-thing"] = "get, list, watch, patch",
    }, rules_of(out, "ClusterRole", "moonloop-webhooks"))
    path = folder("convert = { v1beta1 = { to = function(o) return o end, from = function(o) return o end } },", "")
    out = rbac(path, "--crds", path .. "/crd.yaml", "--webhook-cert-secret", "mine", table.unpack(served)).out
    assert.same({ ["customresourcedefinitions thingies.example.com"] = "get, list, watch, patch" },
      rules_of(out, "ClusterRole", "moonloop-webhooks"))
    assert.equal("get, list, watch, patch", rules_of(out, "Role", "moonloop-webhooks")["secrets mine"])
    local others = { {}, { "--webhook-bind-address", "0" }, { served[1], served[2], "--webhook-cert-dir", "/c" } }
    for _, words in ipairs(others) do
      out = rbac(path, "--crds", path .. "/crd.yaml", table.unpack(words)).out
      assert.same({}, rules_of(out, "ClusterRole", "moonloop-webhooks"))
    end
  end)

  it("follows variables as Lua does", function()
    local declared = "owns = { ConfigMap }, uses = { Secret },"
    local rules = needs(declared, "local a, b = ctx.get(Secret, 'a'), ctx.get(ConfigMap, 'b')\nctx.delete(b)\n"
      .. "do local b = ctx.get(Secret, 'b') ctx.patch(b, {}) end", "local function other(b) return b end")
    assert.equal("get, patch", rules.secrets)
    assert.equal("get, list, watch, delete", rules.configmaps)
    for _, body in ipairs {
      "local a = ctx.get(Secret, 'a') or ctx.get(ConfigMap, 'b') ctx.delete(a)",
      "local a = ctx.get(Secret, 'a') if a then a = thing.spec.any end ctx.delete(a)",
      "local a = ctx.get(Secret, 'a') local function f(a) ctx.delete(a) end f(a)",
      "local a, b = thing.spec.any() ctx.delete(b)",
      "for _, a in pairs(thing.spec.any) do ctx.delete(a) end",
    } do
      rules = needs(declared, body)
      assert.truthy(rules.configmaps:find("delete", 1, true), body)
      assert.truthy(rules.secrets:find("delete", 1, true), body)
    end
  end)

  it("lets bindings give away what they name, or what it is told", function()
    local head = 'local RoleBinding = moonloop.kind("rbac.authorization.k8s.io/v1", "RoleBinding")\n'
    local body = 'ctx.apply { apiVersion = "rbac.authorization.k8s.io/v1", kind = RoleBinding.kind, metadata = {},\n'
      .. '  roleRef = { apiGroup = "rbac.authorization.k8s.io", kind = "ClusterRole", name = %s } }'
    local declared = "owns = { RoleBinding },"
    local rules = needs(declared, body:format '"view"', head)
    assert.equal("bind", rules["clusterroles view"])
    local path = folder(declared, body:format "thing.spec.role", head)
    local result = rbac(path, "--crds", path .. "/crd.yaml")
    assert.same({ 0, "thing.lua: it binds roles that its text does not name; without --bind ROLE the API server "
      .. "refuses these bindings\n" }, { result.code, result.err })
    assert.is_nil(result.out:find("bind]", 1, true))
    result = rbac(path, "--crds", path .. "/crd.yaml", "--bind", "edit", "--bind", "view")
    assert.same({ 0, "" }, { result.code, result.err })
    assert.equal("bind", rules_of(result.out, "ClusterRole", "moonloop-thing")["clusterroles edit, view"])
  end)

  it("grants no status where the kind has none", function()
    local path = folder("", "")
    shell.write(path .. "/crd.yaml", CRD:format("Namespaced", ""))
    local rules = rules_of(rbac(path, "--crds", path .. "/crd.yaml").out, "ClusterRole", "moonloop-thing")
    assert.same({ thingies = "get, list, watch" }, rules)
  end)

  it("makes roles in the given namespaces, and cluster roles for what has none", function()
    local path = folder("uses = { Node },", "ctx.list(Node)")
    local out = rbac(path, "--crds", path .. "/crd.yaml", "--namespace", "a", "--namespace", "b").out
    for _, namespace in ipairs { "a", "b" } do
      local rules = rules_of(out, "Role", "moonloop-thing", namespace)
      assert.same({ thingies = "get, list, watch", ["thingies/status"] = "patch" }, rules)
      assert.same({ events = "create, patch" }, rules_of(out, "Role", "moonloop", namespace))
    end
    assert.same({ nodes = "list" }, rules_of(out, "ClusterRole", "moonloop-thing"))
    assert.same({}, rules_of(out, "ClusterRole", "moonloop"))
  end)

  it("lets a script with Events about others make them where objects without a namespace have them", function()
    for statement, rules in pairs {
      ["ctx.event('A', 'b', { about = thing })"] = { events = "create, patch" }, ["ctx.event('A', 'b')"] = {},
    } do
      local path = folder("uses = { ConfigMap },", statement)
      local out = rbac(path, "--crds", path .. "/crd.yaml", "--namespace", "a").out
      assert.same(rules, rules_of(out, "Role", "moonloop", "default"))
    end
  end)

  it("grants the host what its flags need", function()
    local out = rbac("--leader-elect", "--leader-election-id", "mine", "--service-account", "sys/me",
      "--scripts-configmap", "sys/one", "--scripts-configmap", "sys/two", "--scripts-configmap", "other/three").out
    local rules = rules_of(out, "Role", "me-election", "sys")
    assert.same({ ["leases mine"] = "get, watch, update", leases = "create" }, rules)
    assert.same({
      ["configmaps one, one-revisions, two, two-revisions"] = "get, list, watch",
      ["configmaps one-revisions, two-revisions"] = "patch", configmaps = "create",
    }, rules_of(out, "Role", "me-scripts", "sys"))
    assert.same({
      ["configmaps three, three-revisions"] = "get, list, watch", ["configmaps three-revisions"] = "patch",
      configmaps = "create",
    }, rules_of(out, "Role", "me-scripts", "other"))
    assert.is_nil(out:find("ServiceAccount\nmetadata", 1, true))
    assert.same({ leases = "list, watch, create, update, delete" },
      rules_of(rbac("--shard").out, "Role", "moonloop-shard", "moonloop-system"))
    assert.same({ tokenreviews = "create", subjectaccessreviews = "create" },
      rules_of(rbac("--inspect-bind-address", "127.0.0.1:8082", "--namespace", "a").out, "ClusterRole",
        "moonloop-inspect"))
  end)

  it("says of a kind that it does not know where, and what to do", function()
    local path = folder("owns = { ConfigMap },", "")
    local result = rbac(path)
    assert.equal(1, result.code)
    assert.equal("", result.out)
    assert.equal("thing.lua:2: example.com/v1/Thing is neither a built-in kind nor in the given CRDs, so its resource "
      .. "is not known: give its CustomResourceDefinition with --crds\n", result.err)
  end)

  it("refuses a CRD that no server would take", function()
    local path = folder("", "")
    local crd = shell.read(path .. "/crd.yaml")
    for what, change in pairs {
      ["spec.names.plural: \"*\": a DNS-1035 label"] = { "plural: thingies", 'plural: "*"' },
      ["metadata.name: \"things.example.com\": must be spec.names.plural"] =
        { "name: thingies%.example", "name: things.example" },
      ["spec.names.plural: a text is needed"] = { "plural: thingies", "plural: [thingies]" },
      ["spec.group: \"*\": a lowercase RFC 1123 subdomain"] = { "group: example%.com", 'group: "*"' },
      ["spec.versions[0].name: \"V 1\": a DNS-1035 label"] = { "name: v1", 'name: "V 1"' },
    } do
      local changed, count = crd:gsub(change[1], change[2])
      assert.is_true(count > 0, what)
      shell.write(path .. "/crd.yaml", changed)
      local result = rbac(path, "--crds", path .. "/crd.yaml")
      assert.same({ 1, "" }, { result.code, result.out }, what)
      assert.truthy(result.err:find("CustomResourceDefinition ", 1, true), result.err)
      assert.truthy(result.err:find(what, 1, true), result.err)
    end
  end)

  it("takes a list of CRDs as kubectl prints it", function()
    local path = folder("", "")
    local crd = CRD:format("Namespaced", "status: {}"):gsub("\n(.)", "\n  %1")
    shell.write(path .. "/crd.yaml", "apiVersion: v1\nkind: List\nitems:\n- " .. crd)
    assert.equal(0, rbac(path, "--crds", path .. "/crd.yaml").code)
  end)

  it("refuses what it cannot make sense of", function()
    for words, message in pairs {
      [""] = "nothing to print roles for: moonloop rbac PATH",
      ["--inspect-bind-address 0"] = "nothing to print roles for: moonloop rbac PATH",
      ["--leader-elect --shard"] = "--leader-elect and --shard: one of them",
      ["--shard --service-account x"] = "--service-account x: expected NAMESPACE/NAME",
      ["--scripts-configmap x"] = "--scripts-configmap x: expected NAMESPACE/NAME",
      ["--shard --namespace ../x"] = "--namespace ../x: no namespace has such a name",
      ["--shard --leader-election-id ../x"] = "--leader-election-id, --leader-election-namespace: expected a name",
    } do
      local list = {}
      for word in words:gmatch "%S+" do
        list[#list + 1] = word
      end
      local result = rbac(table.unpack(list))
      assert.same({ code = 2, out = "", err = ("moonloop rbac: %s\n"):format(message) }, result)
    end
    local path = folder("", "")
    shell.write(path .. "/thing.lua", "return 3\n")
    local result = rbac(path, "--crds", path .. "/crd.yaml")
    assert.equal(1, result.code)
    assert.truthy(result.err:find("thing.lua:1: the file returns a number", 1, true), result.err)
    assert.equal(1, rbac(path .. "/none.lua").code)
  end)

  it("is what deploy/ was made by", function()
    local result = rbac("reconcilers/cnat.lua", "--crds", "crds/", "--scripts-configmap",
      "moonloop-system/moonloop-scripts", "--leader-elect", "--inspect-bind-address", "127.0.0.1:8082")
    assert.same({ code = 0, out = shell.read "deploy/rbac.yaml", err = "" }, result)
  end)
end)
