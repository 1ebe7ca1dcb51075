-- status.typeChecking of ValidatingAdmissionPolicies.
local testcluster = require "testcluster"

local POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
local CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


local function rule(groups, resources, versions)
  return { apiGroups = groups, apiVersions = versions or { "v1" }, operations = { "*" }, resources = resources }
end


describe("the check of a ValidatingAdmissionPolicy against types", function()
  local server

  before_each(function()
    server = testcluster.new()
  end)

  local function read()
    server:pass(1)
    return server:must("GET", POLICIES .. "/p").status
  end

  local function status(spec)
    spec.matchConstraints = spec.matchConstraints or { resourceRules = { rule({ "" }, { "pods" }) } }
    if type(spec.validations) == "string" then
      spec.validations = { { expression = spec.validations } }
    end
    server:must("POST", POLICIES, { metadata = { name = "p" }, spec = spec })
    return read()
  end

  local function warnings(spec)
    return status(spec).typeChecking.expressionWarnings or {}
  end

  it("names a field that the type does not have", function()
    assert.same({
      observedGeneration = 1, typeChecking = { expressionWarnings = { {
        fieldRef = "spec.validations[0].expression",
        warning = "/v1, Kind=Pod: ERROR: <input>:1:12: undefined field 'nodName'\n | object.spec.nodName == 'x'\n"
          .. " | ...........^\n",
      } } },
    }, status { validations = "object.spec.nodName == 'x'" })
  end)

  it("has nothing to say about what fits", function()
    assert.same({ observedGeneration = 1, typeChecking = {} },
      status { validations = "object.spec.nodeName == 'x' && object.spec.containers.all(c, c.name != '')" })
  end)

  it("says it again, or not any more, of the next generation", function()
    status { validations = "object.nothing == 1" }
    server:patch("merge", POLICIES .. "/p", { spec = { validations = { { expression = "true" } } } })
    assert.same({ observedGeneration = 2 }, read())
    server:patch("merge", POLICIES .. "/p", { spec = { validations = { { expression = "object.other == 1" } } } })
    local last = read()
    assert.equal(3, last.observedGeneration)
    assert.matches("undefined field 'other'", last.typeChecking.expressionWarnings[1].warning)
  end)

  it("looks at each kind, in the order of groups, versions and kinds", function()
    local found = warnings {
      matchConstraints = { resourceRules = {
        rule({ "batch", "apps" }, { "jobs", "deployments", "deployments/scale", "nothings" }),
        rule({ "autoscaling" }, { "horizontalpodautoscalers" }, { "v2", "v1" }),
      } },
      validations = "object.spec.replicas == 1",
    }
    local kinds = {}
    for kind in found[1].warning:gmatch "([^\n]+): ERROR" do
      kinds[#kinds + 1] = kind
    end
    assert.same({
      "autoscaling/v1, Kind=HorizontalPodAutoscaler", "autoscaling/v2, Kind=HorizontalPodAutoscaler",
      "batch/v1, Kind=Job",
    }, kinds)
  end)

  it("leaves rules with wildcards alone", function()
    assert.same({}, warnings {
      matchConstraints = { resourceRules = {
        rule({ "*" }, { "pods" }), rule({ "" }, { "*" }), rule({ "" }, { "pods" }, { "*" }), rule({ "" }, { "pods/*" }),
      } },
      validations = "object.nothing == 1",
    })
  end)

  it("takes ten kinds of one rule, and no more rules after it", function()
    local found = warnings {
      matchConstraints = { resourceRules = {
        rule({ "" }, { "bindings", "configmaps", "endpoints", "limitranges", "namespaces", "nodes", "secrets",
          "persistentvolumeclaims", "persistentvolumes", "pods", "services" }),
        rule({ "apps" }, { "deployments" }),
      } },
      validations = "object.nothing == 1",
    }
    assert.equal(10, select(2, found[1].warning:gsub("undefined field", "")))
    assert.is_nil(found[1].warning:find("Deployment", 1, true))
  end)

  it("knows the types of variables, but not of the objects among them", function()
    local found = warnings {
      variables = {
        { name = "spec", expression = "object.spec" }, { name = "node", expression = "object.spec.nodeName" },
        { name = "all", expression = "object.spec.containers" }, { name = "wrong", expression = "object.nothing" },
      },
      validations = {
        { expression = "variables.spec.nothing == variables.wrong" },
        { expression = "variables.all.all(c, c.nothing == 1)" },
        { expression = "variables.node == 'x'", messageExpression = "variables.node + string(variables.node + 1)" },
      },
    }
    assert.equal(1, #found)
    assert.equal("spec.validations[2].messageExpression", found[1].fieldRef)
    assert.matches("no matching overload for '_+_' applied to '(string, int)'", found[1].warning, 1, true)
  end)

  it("lets variables that are objects have any field, also when the policy is written", function()
    assert.same({}, warnings {
      variables = { { name = "asked", expression = "request" } }, validations = "variables.asked.nothing == 1",
    })
  end)

  it("knows parameters, of custom kinds too, and takes those of unknown kinds for anything", function()
    server:must("POST", CRDS, {
      metadata = { name = "gears.x.dev" },
      spec = {
        group = "x.dev", scope = "Namespaced", names = { kind = "Gear", plural = "gears" },
        versions = { { name = "v1", served = true, storage = true, schema = { openAPIV3Schema = {
          type = "object", properties = { teeth = { type = "integer" }, ["a-b"] = { type = "string" } },
        } } } },
      },
    })
    server:pass(1)
    local found = warnings {
      paramKind = { apiVersion = "x.dev/v1", kind = "Gear" },
      matchConstraints = { resourceRules = { rule({ "x.dev" }, { "gears" }) } },
      validations = "object.a__dash__b == params.teeth && params.tooth == 1",
    }
    assert.matches("x.dev/v1, Kind=Gear: ERROR: <input>:1:19: found no matching overload for '_==_' applied to "
      .. "'(string, int)'", found[1].warning, 1, true)
    assert.matches("ERROR: <input>:1:44: undefined field 'tooth'", found[1].warning, 1, true)
    server:must("DELETE", POLICIES .. "/p")
    assert.same({}, warnings {
      paramKind = { apiVersion = "x.dev/v1", kind = "Nothing" }, validations = "params.anything == 1",
    })
  end)

  it("ends in types that hold themselves", function()
    local found = warnings {
      matchConstraints = { resourceRules = { rule({ "apiextensions.k8s.io" }, { "customresourcedefinitions" }) } },
      validations = { { expression = "object.spec.versions[0].schema.openAPIV3Schema.type == 'object'" },
        { expression = "object.spec.versions[0].schema.openAPIV3Schema.properties['a'].type == 'object'" } },
    }
    assert.equal(1, #found)
    assert.equal("spec.validations[1].expression", found[1].fieldRef)
  end)

  it("writes no more warnings than there is room for in the policy", function()
    local validations, size = {}, 0
    for i = 1, 40 do
      validations[i] = { expression = "'" .. ("x"):rep(15000) .. "' == object.nothing" }
    end
    local found = warnings { validations = validations }
    for _, warning in ipairs(found) do
      size = size + #warning.warning
    end
    assert.is_true(#found > 20 and #found < 40, #found)
    assert.is_true(size + 40 * 15000 <= 1536 * 1024, size)
  end)

  it("checks one mebibyte of expressions at most", function()
    local validations = {}
    for i = 1, 13 do
      validations[i] = { expression = "'" .. ("x"):rep(90 * 1024) .. "' == object.nothing" }
    end
    assert.equal(11, #warnings { validations = validations })
  end)
end)
