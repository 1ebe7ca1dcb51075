local testserver = require "testserver"

local POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
local BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
local MAPS = "/api/v1/namespaces/default/configmaps"


local function rules(fields)
  local rule = { apiGroups = { "" }, apiVersions = { "v1" }, operations = { "*" }, resources = { "configmaps" } }
  for key, value in pairs(fields or {}) do
    rule[key] = value
  end
  return { resourceRules = { rule } }
end


describe("a ValidatingAdmissionPolicy", function()
  local server

  before_each(function()
    server = testserver.new()
  end)

  local function policy(spec, binding)
    spec.matchConstraints = spec.matchConstraints or rules()
    server:must("POST", POLICIES, { metadata = { name = "p" }, spec = spec })
    local all = { policyName = "p", validationActions = { "Deny" } }
    for key, value in pairs(binding or {}) do
      all[key] = value
    end
    server:must("POST", BINDINGS, { metadata = { name = "b" }, spec = all })
  end

  local function create(data, fields)
    local object = { metadata = { name = "m" }, data = data }
    for key, value in pairs(fields or {}) do
      object[key] = value
    end
    return server:call("POST", MAPS, object)
  end

  local SMALL = { expression = "object.data.size == 'small'" }

  it("refuses what does not keep its rule", function()
    policy { validations = { SMALL } }
    local code, answer = create { size = "large" }
    assert.equal(422, code)
    assert.equal("Invalid", answer.reason)
    assert.equal("configmaps \"m\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "
      .. "failed expression: object.data.size == 'small'", answer.message)
    assert.equal(201, (create { size = "small" }))
  end)

  it("is asked of updates and deletions, with the object before", function()
    policy { matchConstraints = rules { operations = { "UPDATE", "DELETE" } }, validations = { {
      expression = "request.operation == 'DELETE' ? oldObject.data.free == 'yes' : object.data == oldObject.data",
      message = "kept", reason = "Forbidden",
    } } }
    create { free = "no" }
    local code, answer = server:patch("merge", MAPS .. "/m", { data = { free = "yes" } })
    assert.equal(403, code)
    assert.equal("Forbidden", answer.reason)
    assert.matches("denied request: kept$", answer.message)
    assert.equal(403, (server:call("DELETE", MAPS .. "/m")))
    assert.equal(403, (server:call("DELETE", MAPS .. "?fieldSelector=metadata.name=m")))
    assert.equal("no", server:must("GET", MAPS .. "/m").data.free)
  end)

  it("composes its message", function()
    policy { variables = { { name = "size", expression = "object.data.size" } }, validations = { {
      expression = "variables.size == 'small'", messageExpression = "'it is ' + variables.size",
    } } }
    assert.matches("denied request: it is large$", select(2, create { size = "large" }).message)
  end)

  it("evaluates variables only when they are read", function()
    policy { matchConstraints = rules { operations = { "CREATE" } }, variables = { { name = "bad",
      expression = "object.data.missing" } }, validations = { {
      expression = "has(object.data.other) || variables.bad == 'x'",
    } } }
    assert.equal(201, (create { other = "x" }))
    server:must("DELETE", MAPS .. "/m")
    local _, answer = create { size = "x" }
    assert.matches('composited variable "bad" fails to evaluate: no such key: missing', answer.message, 1, true)
  end)

  it("fails or not when it cannot be evaluated, as failurePolicy says", function()
    policy { validations = { { expression = "object.data.missing == 'x'" } } }
    local code, answer = create { a = "b" }
    assert.equal(422, code)
    assert.matches("expression 'object.data.missing == 'x'' resulted in error: no such key: missing", answer.message, 1,
      true)
    server:patch("merge", POLICIES .. "/p", { spec = { failurePolicy = "Ignore" } })
    assert.equal(201, (create { a = "b" }))
  end)

  it("is not asked where its matchConditions do not hold", function()
    policy { matchConditions = { { name = "big", expression = "object.data.size == 'large'" } },
      validations = { { expression = "false" } } }
    assert.equal(422, (create { size = "large" }))
    assert.equal(201, (create { size = "small" }))
  end)

  it("warns when its binding says so", function()
    policy({ validations = { SMALL } }, { validationActions = { "Warn", "Audit" } })
    local annotations
    server.server:audit(function(record)
      annotations = record.annotations or annotations
    end)
    local code, _, reply = create { size = "large" }
    assert.equal(201, code)
    assert.matches("Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': failed expression",
      reply.headers["warning"] or reply.headers["Warning"] or "", 1, true)
    assert.matches('"expressionIndex":0', annotations["validation.policy.admission.k8s.io/validation_failure"], 1, true)
  end)

  it("has parameters", function()
    server:must("POST", MAPS, { metadata = { name = "limits" }, data = { size = "tiny" } })
    policy({ paramKind = { apiVersion = "v1", kind = "ConfigMap" },
      validations = { { expression = "object.data.size == params.data.size" } } },
      { paramRef = { name = "limits", parameterNotFoundAction = "Deny" } })
    assert.equal(422, (create { size = "large" }))
    assert.equal(201, (create { size = "tiny" }))
    server:must("DELETE", BINDINGS .. "/b")
    server:must("DELETE", MAPS .. "/limits")
    server:must("POST", BINDINGS, { metadata = { name = "b" }, spec = { policyName = "p",
      validationActions = { "Deny" }, paramRef = { name = "limits", parameterNotFoundAction = "Deny" } } })
    local _, answer = server:call("POST", MAPS, { metadata = { name = "n" } })
    assert.matches("configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
      answer.message, 1, true)
  end)

  it("is evaluated for each parameter that is selected", function()
    for _, name in ipairs { "x", "y" } do
      server:must("POST", MAPS, { metadata = { name = name, labels = { param = "yes" } } })
    end
    policy({ paramKind = { apiVersion = "v1", kind = "ConfigMap" },
      validations = { { expression = "object.metadata.name != params.metadata.name + '1'" } } },
      { paramRef = { selector = { matchLabels = { param = "yes" } }, parameterNotFoundAction = "Allow" } })
    assert.equal(422, (server:call("POST", MAPS, { metadata = { name = "y1" } })))
    assert.equal(201, (server:call("POST", MAPS, { metadata = { name = "z1" } })))
  end)

  it("asks what somebody may do", function()
    policy { validations = { { expression = "authorizer.group('').resource('pods').namespace('default')"
      .. ".check('create').allowed() && authorizer.requestResource.check('create').allowed()" } } }
    assert.equal(201, (create {}))
  end)

  it("knows the request and the namespace", function()
    policy { validations = { { expression = "request.resource.resource == 'configmaps' && request.name == 'm' && "
      .. "request.userInfo.username == 'system:admin' && request.dryRun == false && "
      .. "namespaceObject.metadata.name == 'default' && request.kind.kind == 'ConfigMap' && "
      .. "!has(request.subResource) && oldObject == null" } } }
    assert.equal(201, (create {}))
  end)

  it("ends expressions that cost too much", function()
    policy { validations = { { expression = "[1,2,3,4,5,6,7,8,9,0].all(a, [1,2,3,4,5,6,7,8,9,0].all(b, "
      .. "[1,2,3,4,5,6,7,8,9,0].all(c, [1,2,3,4,5,6,7,8,9,0].all(d, [1,2,3,4,5,6,7,8,9,0].all(e, "
      .. "[1,2,3,4,5,6,7,8,9,0].all(f, a+b+c+d+e+f >= 0))))))" } } }
    local code, answer = create {}
    assert.equal(422, code)
    assert.matches("operation cancelled: actual cost limit exceeded", answer.message, 1, true)
  end)

  it("counts what its variables cost", function()
    local all = "[1,2,3,4,5,6,7,8,9,0].all(%s, %s)"
    local costly = "a+b+c+d+e >= 0"
    for name in ("abcde"):gmatch "." do
      costly = all:format(name, costly)
    end
    local variables, validations = {}, {}
    for i = 1, 20 do
      variables[i] = { name = "v" .. i, expression = costly }
      validations[i] = { expression = "variables.v" .. i }
    end
    policy { variables = variables, validations = validations }
    local code, answer = create {}
    assert.equal(422, code)
    assert.matches("running out of cost budget", answer.message, 1, true)
  end)

  it("is in force again with another binding", function()
    policy({ validations = { { expression = "false" } } }, { validationActions = { "Audit" } })
    assert.equal(201, (create {}))
    server:must("PATCH", BINDINGS .. "/b", { spec = { validationActions = { "Deny" } } },
      { ["content-type"] = "application/merge-patch+json" })
    assert.equal(422, (create({}, { metadata = { name = "n" } })))
  end)

  it("does not hold policies and bindings themselves", function()
    policy { matchConstraints = rules { apiGroups = { "*" }, resources = { "*" }, apiVersions = { "*" } },
      validations = { { expression = "false" } } }
    server:must("DELETE", BINDINGS .. "/b")
    assert.equal(201, (create {}))
  end)

  it("is without effect without a binding that matches", function()
    policy({ validations = { { expression = "false" } } },
      { matchResources = { namespaceSelector = { matchLabels = { other = "yes" } } } })
    assert.equal(201, (create {}))
  end)

  it("is compiled when it is written", function()
    local _, answer = server:call("POST", POLICIES, { metadata = { name = "p" }, spec = {
      matchConstraints = rules(), validations = { { expression = "object.x +" }, { expression = "'a'" } },
      variables = { { name = "in", expression = "1 + 'a'" } },
      matchConditions = { { name = "a", expression = "variables.x" } },
    } })
    local fields = {}
    for i, cause in ipairs(answer.details.causes) do
      fields[i] = cause.field
    end
    assert.same({ "spec.matchConditions[0].expression", "spec.variables[0].name", "spec.variables[0].expression",
      "spec.validations[0].expression", "spec.validations[1].expression" }, fields)
    assert.matches("must evaluate to bool but got string", answer.message, 1, true)
  end)
end)
