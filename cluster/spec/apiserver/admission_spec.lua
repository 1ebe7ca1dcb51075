local admission = require "cluster.apiserver.admission"
local match = require "cluster.apiserver.admission.match"
local status = require "cluster.apiserver.status"
local testserver = require "testserver"

local MAPS = "/api/v1/namespaces/default/configmaps"
local PODS = "/api/v1/namespaces/default/pods"
local POD = { metadata = { name = "p" }, spec = { containers = { { name = "c", image = "i" } } } }


describe("admission of a write", function()
  local server, seen, refuse, before

  local function note(attributes)
    if attributes.user.name == "system:admin" and attributes.res.id ~= "namespaces" then
      seen[#seen + 1] = ("%s %s%s %s"):format(attributes.operation, attributes.kind.kind,
        attributes.subresource ~= "" and "/" .. attributes.subresource or "", attributes.name)
    end
    return refuse and status.forbidden(attributes.res, attributes.name, refuse) or nil
  end

  before_each(function()
    server, seen, refuse = testserver.new(), {}, nil
    before = { admission.plugins.mutating, admission.plugins.validating }
    admission.plugins.mutating = {}
    admission.plugins.validating = { { watches = "namespaces", check = note } }
  end)

  after_each(function()
    admission.plugins.mutating, admission.plugins.validating = before[1], before[2]
  end)

  it("is asked of every write", function()
    server:must("POST", MAPS, { metadata = { name = "a" } })
    server:must("PUT", MAPS .. "/a", { metadata = { name = "a" }, data = { k = "v" } })
    server:must("PATCH", MAPS .. "/a", { data = { k = "w" } }, { ["content-type"] = "application/merge-patch+json" })
    server:must("DELETE", MAPS .. "/a")
    server:must("POST", MAPS, { metadata = { name = "b" } })
    server:must("DELETE", MAPS)
    assert.same({ "CREATE ConfigMap a", "UPDATE ConfigMap a", "UPDATE ConfigMap a", "DELETE ConfigMap a",
      "CREATE ConfigMap b", "DELETE ConfigMap " }, { table.unpack(seen, 1, 6) })
  end)

  it("is asked of parts, with the kind of the part", function()
    server:must("POST", PODS, POD)
    server:must("POST", PODS .. "/p/binding", { metadata = { name = "p" }, target = { name = "n" } })
    server:must("POST", PODS .. "/p/eviction", { metadata = { name = "p" } })
    assert.same({ "CREATE Pod p", "CREATE Binding/binding p", "CREATE Eviction/eviction p" },
      { table.unpack(seen, 1, 3) })
  end)

  it("stores nothing that is refused", function()
    server:must("POST", MAPS, { metadata = { name = "a" } })
    refuse = "no"
    assert.equal(403, (server:call("POST", MAPS, { metadata = { name = "b" } })))
    assert.equal(403, (server:call("DELETE", MAPS .. "/a")))
    assert.equal(403, (server:call("PUT", MAPS .. "/a", { metadata = { name = "a" }, data = { k = "v" } })))
    refuse = nil
    assert.equal(404, (server:call("GET", MAPS .. "/b")))
    assert.is_nil(server:must("GET", MAPS .. "/a").data)
  end)

  it("lets a mutating one change the object", function()
    admission.plugins.mutating = { { watches = "namespaces", check = function(attributes)
      if attributes.object and attributes.res.id == "configmaps" then
        attributes.object.data = { set = "by it" }
      end
    end } }
    server:must("POST", MAPS, { metadata = { name = "a" } })
    assert.same({ set = "by it" }, server:must("GET", MAPS .. "/a").data)
  end)

  it("is not asked when nothing is stored that it acts by", function()
    admission.plugins.validating[1].watches = "nothing.of.that"
    refuse = "no"
    server:must("POST", MAPS, { metadata = { name = "a" } })
    assert.same({}, seen)
  end)
end)


describe("the rules of a policy", function()
  local server

  before_each(function()
    server = testserver.new()
  end)

  local function attributes_of(group, version, plural, fields)
    local attributes = {
      operation = "CREATE", res = server.server.registry:find(group, version, plural), subresource = "", name = "n",
      namespace = "default", object = { metadata = { name = "n" } }, server = server.server, request = {},
    }
    for key, value in pairs(fields or {}) do
      attributes[key] = value
    end
    return attributes
  end

  local function rule(fields)
    local all = { operations = { "*" }, apiGroups = { "*" }, apiVersions = { "*" }, resources = { "*" } }
    for key, value in pairs(fields or {}) do
      all[key] = value
    end
    return all
  end

  it("match groups, versions, resources and operations", function()
    local pods = attributes_of("", "v1", "pods")
    assert.is_true(match.rule(rule(), pods, pods.res))
    assert.is_false(match.rule(rule { apiGroups = { "apps" } }, pods, pods.res))
    assert.is_false(match.rule(rule { apiVersions = { "v2" } }, pods, pods.res))
    assert.is_false(match.rule(rule { operations = { "DELETE", "UPDATE" } }, pods, pods.res))
    assert.is_true(match.rule(rule { resources = { "pods" } }, pods, pods.res))
    assert.is_false(match.rule(rule { resources = { "services" } }, pods, pods.res))
  end)

  it("match subresources only by name", function()
    local scale = attributes_of("apps", "v1", "deployments", { subresource = "scale" })
    assert.is_false(match.rule(rule { resources = { "*" } }, scale, scale.res))
    assert.is_false(match.rule(rule { resources = { "deployments" } }, scale, scale.res))
    for _, text in ipairs { "*/*", "*/scale", "deployments/*", "deployments/scale" } do
      assert.is_true(match.rule(rule { resources = { text } }, scale, scale.res), text)
    end
  end)

  it("count a Namespace as of the cluster", function()
    local namespace = attributes_of("", "v1", "namespaces", { namespace = "n" })
    assert.is_true(match.rule(rule { scope = "Cluster" }, namespace, namespace.res))
    assert.is_false(match.rule(rule { scope = "Namespaced" }, namespace, namespace.res))
  end)

  it("match another version of the resource unless they are exact", function()
    local old = attributes_of("autoscaling", "v1", "horizontalpodautoscalers")
    local rules = { rule { apiGroups = { "autoscaling" }, apiVersions = { "v2" } } }
    assert.equal("v2", match.rules(rules, "Equivalent", old).version)
    assert.is_nil(match.rules(rules, "Exact", old))
  end)

  it("match names", function()
    local pods = attributes_of("", "v1", "pods")
    assert.is_truthy(match.rules({ rule { resourceNames = { "m", "n" } } }, "Exact", pods))
    assert.is_nil(match.rules({ rule { resourceNames = { "m" } } }, "Exact", pods))
  end)

  it("are without effect where others exclude the write", function()
    local pods = attributes_of("", "v1", "pods")
    assert.is_nil((match.resources({ resourceRules = { rule() }, excludeResourceRules = { rule() } }, pods)))
  end)

  it("select by the labels of the namespace and of the object", function()
    local pods = attributes_of("", "v1", "pods", { object = { metadata = { labels = { a = "b" } } } })
    local inside = { matchLabels = { ["kubernetes.io/metadata.name"] = "default" } }
    assert.is_truthy((match.resources({ namespaceSelector = inside, objectSelector = { matchLabels = { a = "b" } } },
      pods)))
    assert.is_nil((match.resources({ objectSelector = { matchLabels = { a = "c" } } }, pods)))
    assert.is_nil((match.resources({ namespaceSelector = { matchLabels = { x = "y" } } }, pods)))
  end)
end)
