-- FlowSchemas and PriorityLevelConfigurations, and the objects that a server starts with.
local testcluster = require "testcluster"
local testserver = require "testserver"

local BASE = "/apis/flowcontrol.apiserver.k8s.io/v1/"
local SCHEMAS, LEVELS = BASE .. "flowschemas", BASE .. "prioritylevelconfigurations"


describe("A server", function()
  it("starts with the levels and schemas of a real one, and with its classes of priority", function()
    local server = testserver.new()
    assert.equal(8, #server:must("GET", LEVELS).items)
    assert.equal(11, #server:must("GET", SCHEMAS).items)
    assert.same({ "system-cluster-critical", "system-node-critical" },
      testserver.names(server:must("GET", "/apis/scheduling.k8s.io/v1/priorityclasses")))
  end)
end)


describe("A FlowSchema", function()
  local cluster

  before_each(function()
    cluster = testcluster.new()
  end)

  local function schema(name, spec)
    return { metadata = { name = name }, spec = spec }
  end

  it("says whether its level is there", function()
    cluster:must("POST", SCHEMAS, schema("a", { priorityLevelConfiguration = { name = "mine" } }))
    cluster.settle()
    local function dangling()
      return testcluster.condition(cluster:must("GET", SCHEMAS .. "/a"), "Dangling")
    end
    assert.equal("NotFound", dangling().reason)
    cluster:must("POST", LEVELS, { metadata = { name = "mine" }, spec = {
      type = "Limited", limited = { limitResponse = { type = "Queue", queuing = {} } },
    } })
    cluster.settle()
    assert.equal("Found", dangling().reason)
    cluster:must("DELETE", LEVELS .. "/mine")
    cluster.settle()
    assert.equal("True", dangling().status)
  end)

  it("is refused when nothing could meet it", function()
    local code, answer = cluster:call("POST", SCHEMAS, schema("a", {
      priorityLevelConfiguration = { name = "" }, matchingPrecedence = 1, distinguisherMethod = { type = "ByMood" },
      rules = { {
        subjects = { { kind = "User" }, { kind = "Group", group = { name = "g" }, user = { name = "u" } } },
        nonResourceRules = { { verbs = { "fly" }, nonResourceURLs = { "a", "/a*", "/b/*" } } },
      }, { subjects = { { kind = "Nobody" } }, resourceRules = { {
        verbs = { "*", "get" }, apiGroups = { "*" }, resources = { "*" },
      } } } },
    }))
    assert.equal(422, code)
    for _, words in ipairs {
      "spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1",
      'spec.distinguisherMethod.type: Unsupported value: {"Type":"ByMood"}: supported values: "ByNamespace", "ByUser"',
      "spec.priorityLevelConfiguration.name: Required value: must reference a priority level",
      "spec.rules[0].subjects[0].user: Required value: user is required when subject kind is 'User'",
      "spec.rules[0].subjects[1].user: Forbidden: user is forbidden when subject kind is not 'User'",
      'spec.rules[0].nonResourceRules[0].nonResourceURLs[0]: Invalid value: "a": must start with slash',
      'nonResourceURLs[1]: Invalid value: "/a*": wildcard can only do suffix matching',
      "spec.rules[1].resourceRules[0].verbs: Invalid value: [\"*\",\"get\"]: if '*' is present, must not specify other",
      "spec.rules[1].resourceRules[0].namespaces: Required value: resource rules that are not cluster scoped must",
      'spec.rules[1].subjects[0].kind: Unsupported value: "Nobody"',
    } do
      assert.matches(words, answer.message, 1, true)
    end
  end)

  it("that every server needs stays as it is", function()
    local code, answer = cluster:patch("merge", SCHEMAS .. "/exempt", { spec = { matchingPrecedence = 2 } })
    assert.equal(422, code)
    assert.matches("spec of 'exempt' must equal the fixed value", answer.message, 1, true)
    cluster:change(LEVELS .. "/exempt", { spec = { exempt = { lendablePercent = 10 } } })
  end)
end)
