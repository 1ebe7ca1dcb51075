local host = require "cluster.host"
local hostlua = require "hostlua"
local testserver = require "testserver"
local testwebhooks = require "testwebhooks"

local GROUP = "/apis/admissionregistration.k8s.io/v1/"
local MAPS = "/api/v1/namespaces/default/configmaps"


describe("a MutatingAdmissionPolicy", function()
  local server

  before_each(function() server = testserver.new() end)
  after_each(testwebhooks.remove)

  local function rule(group, version, resource)
    return { apiGroups = { group }, apiVersions = { version }, operations = { "CREATE", "UPDATE" },
      resources = { resource } }
  end

  -- A policy with one merged part for each expression, and a binding.
  local function bind(name, parts, more, binding)
    local mutations = {}
    for i, expression in ipairs(parts) do
      mutations[i] = { patchType = "ApplyConfiguration", applyConfiguration = { expression = expression } }
    end
    local spec = {
      reinvocationPolicy = "Never", mutations = mutations,
      matchConstraints = { resourceRules = { rule("", "v1", "configmaps") } },
    }
    for key, value in pairs(more or {}) do
      spec[key] = value
    end
    server:must("POST", GROUP .. "mutatingadmissionpolicies", { metadata = { name = name }, spec = spec })
    local bound = { policyName = name }
    for key, value in pairs(binding or {}) do
      bound[key] = value
    end
    server:must("POST", GROUP .. "mutatingadmissionpolicybindings", { metadata = { name = name }, spec = bound })
  end

  local function label(name, value)
    return ("Object{metadata: Object.metadata{labels: {'%s': %s}}}"):format(name, value)
  end

  local function count(name)
    return label(name, ("string(int(object.metadata.?labels['%s'].orValue('0')) + 1)"):format(name))
  end

  it("changes what is written, one mutation after the other", function()
    bind("a", { label("first", "'1'"), label("second", "object.metadata.labels.first + '2'") })
    assert.same({ own = "x", first = "1", second = "12" },
      server:configmap("m", { metadata = { labels = { own = "x" } } }).metadata.labels)
    local _, changed = server:patch("merge", MAPS .. "/m",
      { metadata = { labels = { first = "9", second = host.json.null } } })
    assert.same({ own = "x", first = "1", second = "12" }, changed.metadata.labels)
    assert.equal(200, (server:call("DELETE", MAPS .. "/m")))
  end)

  it("does nothing without a binding, for others, or where its conditions do not hold", function()
    bind("a", { label("a", "'1'") },
      { matchConditions = { { name = "c", expression = "object.metadata.name == 'm'" } } },
      { matchResources = { namespaceSelector = { matchLabels = { ["kubernetes.io/metadata.name"] = "default" } } } })
    assert.same({ a = "1" }, server:configmap("m").metadata.labels)
    assert.is_nil(server:configmap("n").metadata.labels)
    server:must("DELETE", GROUP .. "mutatingadmissionpolicybindings/a")
    assert.is_nil(server:configmap("o").metadata.labels)
  end)

  it("has parameters, and is evaluated for each", function()
    for _, name in ipairs { "p", "q" } do
      server:configmap(name, { metadata = { labels = { is = "param" } } })
    end
    bind("a", { "Object{data: {params.metadata.name: params.metadata.uid}}" },
      { paramKind = { apiVersion = "v1", kind = "ConfigMap" } },
      { paramRef = { selector = { matchLabels = { is = "param" } }, parameterNotFoundAction = "Deny" } })
    local data = server:configmap("m").data
    assert.is_string(data.p)
    assert.is_string(data.q)
    assert.is_true(data.p ~= data.q)
  end)

  it("is evaluated once more when others changed the object after it, if it wants to be", function()
    bind("a", { count "a" }, { reinvocationPolicy = "IfNeeded" })
    bind("b", { count "b" })
    assert.same({ a = "2", b = "1" }, server:configmap("m").metadata.labels)
  end)

  it("is asked before webhooks, and again after them", function()
    bind("a", { label("seen", "string(has(object.data))") }, { reinvocationPolicy = "IfNeeded",
      matchConditions = { { name = "c", expression = "!has(object.metadata.labels)|| has(object.data)" } } })
    local labels
    testwebhooks.install(function(request)
      labels = request.object.metadata.labels
      return testwebhooks.patch { { op = "add", path = "/data", value = { a = "b" } } }
    end)
    testwebhooks.configure(server, "mutating")
    assert.same({ seen = "true" }, server:configmap("m").metadata.labels)
    assert.same({ seen = "false" }, labels)
  end)

  it("refuses what it cannot change, unless it is to be ignored", function()
    bind("a", { "Object{metadata: Object.spec{}}" })
    local code, failure = server:call("POST", MAPS, { metadata = { name = "m" } })
    assert.equal(403, code)
    assert.equal("policy 'a' with binding 'a' denied request: type mismatch: unexpected type name \"Object.spec\", "
      .. "expected \"Object.metadata\", which matches field name path from root Object type", failure.message)
    server = testserver.new()
    bind("a", { "Object{metadata: Object.spec{}}", label("a", "'1'") }, { failurePolicy = "Ignore" })
    assert.same({ a = "1" }, server:configmap("m").metadata.labels)
  end)

  it("changes the scale of an object as a Scale", function()
    bind("a", { "Object{spec: Object.spec{replicas: object.spec.replicas * 10}}" },
      { matchConstraints = { resourceRules = { rule("apps", "v1", "deployments/scale") } } })
    server:must("POST", "/apis/apps/v1/namespaces/default/deployments", { metadata = { name = "d" }, spec = {
      replicas = 1, selector = { matchLabels = { a = "b" } },
      template = { metadata = { labels = { a = "b" } }, spec = { containers = { { name = "c", image = "i" } } } },
    } })
    local _, scale = server:patch("merge", "/apis/apps/v1/namespaces/default/deployments/d/scale",
      { spec = { replicas = 3 } })
    assert.equal(30, scale.spec.replicas)
  end)

  it("changes custom resources, by the lists and maps of their schema", function()
    server:must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
      metadata = { name = "boxes.e.com" },
      spec = { group = "e.com", scope = "Namespaced", names = { plural = "boxes", kind = "Box" }, versions = { {
        name = "v1", served = true, storage = true, schema = { openAPIV3Schema = {
          type = "object", properties = { spec = { type = "object", properties = {
            parts = { type = "array", ["x-kubernetes-list-type"] = "map", ["x-kubernetes-list-map-keys"] = { "name" },
              items = { type = "object", required = { "name" }, properties = {
                name = { type = "string" }, size = { type = "integer" } } } },
            whole = { type = "array", items = { type = "string" } },
          } } },
        } },
      } } },
    })
    hostlua.poll()
    bind("a", { "Object{spec: Object.spec{parts: [Object.spec.parts{name: 'b', size: 2}, "
      .. "Object.spec.parts{name: 'c'}]}}" },
      { matchConstraints = { resourceRules = { rule("e.com", "v1", "boxes") } } })
    local made = server:must("POST", "/apis/e.com/v1/namespaces/default/boxes", { apiVersion = "e.com/v1", kind = "Box",
      metadata = { name = "x" }, spec = { parts = { { name = "a" }, { name = "b", size = 1 } } } })
    assert.same({ { name = "a" }, { name = "b", size = 2 }, { name = "c" } }, made.spec.parts)
    bind("b", { "Object{spec: Object.spec{whole: ['a']}}" },
      { matchConstraints = { resourceRules = { rule("e.com", "v1", "boxes") } } })
    local code, failure = server:call("POST", "/apis/e.com/v1/namespaces/default/boxes",
      { apiVersion = "e.com/v1", kind = "Box", metadata = { name = "y" }, spec = {} })
    assert.equal(403, code)
    assert.matches("may not mutate atomic arrays, maps or structs: .spec.whole", failure.message, 1, true)
  end)
end)
