local host = require "cluster.host"
local image = require "cluster.apiserver.resources.pod.image"
local instant = require "cluster.apiserver.instant"
local ip = require "cluster.apiserver.resources.ip"
local quantity = require "cluster.quantity"
local selectors = require "cluster.apiserver.resources.selectors"
local typed = require "cluster.apiserver.schema.typed"


describe("amounts", function()
  for text, canonical in pairs {
    ["0.5"] = "500m", ["500m"] = "500m", ["1000m"] = "1", ["1000"] = "1k", ["1500"] = "1500", ["100M"] = "100M",
    ["1.5Gi"] = "1536Mi", ["2048Mi"] = "2Gi", ["0.5Ki"] = "512", ["1.1Ki"] = "1126400m", ["1023Ki"] = "1023Ki",
    ["1e3"] = "1e3", ["12e-1"] = "1200e-3", ["0"] = "0", ["+1"] = "1", ["-1.5"] = "-1500m", [".5"] = "500m",
    ["1."] = "1", ["0.0001"] = "100u", ["0.1n"] = "1n",
  } do
    it("writes " .. text .. " as " .. canonical, function()
      assert.equal(canonical, quantity.canonical(text))
    end)
  end

  it("keeps requests in thousandths, rounded up", function()
    assert.equal("1m", quantity.milli("0.0001"))
    assert.equal("1Gi", quantity.milli("1Gi"))
  end)

  for _, text in ipairs { "", "x", "1x", "1.2.3", "Ki", "--1", "1e" } do
    it("does not read " .. ("%q"):format(text), function()
      assert.is_nil(quantity.parse(text))
    end)
  end

  for _, case in ipairs {
    { "1", "1000m", 0 }, { "1Gi", "1G", 1 }, { "100m", "0.2", -1 }, { "-1", "0", -1 }, { "1E", "1n", 1 },
  } do
    it(("compares %s with %s"):format(case[1], case[2]), function()
      assert.equal(case[3], quantity.compare(quantity.parse(case[1]), quantity.parse(case[2])))
    end)
  end
end)


describe("addresses", function()
  for text, family in pairs {
    ["10.0.0.1"] = "IPv4", ["::"] = "IPv6", ["::1"] = "IPv6", ["2001:db8::ffff"] = "IPv6", ["1:2:3:4:5:6:7:8"] = "IPv6",
    ["::ffff:1.2.3.4"] = "IPv6", ["256.0.0.1"] = "none", ["01.2.3.4"] = "none", ["1.2.3"] = "none", ["x"] = "none",
    [":::"] = "none", ["1::2::3"] = "none", ["1:2:3:4:5:6:7:8:9"] = "none", [""] = "none",
  } do
    it(("%q is %s"):format(text, family), function()
      assert.equal(family, ip.family(text) or "none")
    end)
  end
end)


describe("images", function()
  for name, policy in pairs {
    busybox = "Always", ["busybox:latest"] = "Always", ["busybox:1.36"] = "IfNotPresent",
    ["registry:5000/a/b"] = "Always", ["registry:5000/a/b:x"] = "IfNotPresent", ["Busybox"] = "IfNotPresent",
    ["a@sha256:" .. ("0"):rep(64)] = "IfNotPresent", [""] = "IfNotPresent",
  } do
    it(("%q is pulled %s"):format(name, policy), function()
      assert.equal(policy, image.pull_policy(name))
    end)
  end
end)


describe("instants", function()
  for given, seconds in pairs {
    ["2026-01-02T03:04:05Z"] = "2026-01-02T03:04:05Z", ["2026-01-02T03:04:05.678Z"] = "2026-01-02T03:04:05Z",
    ["2026-01-02T03:04:05+02:00"] = "2026-01-02T01:04:05Z", ["2024-03-01T00:30:00+01:00"] = "2024-02-29T23:30:00Z",
  } do
    it("writes " .. given .. " as " .. seconds, function()
      assert.equal(seconds, instant.seconds(given))
    end)
  end

  for text, seconds in pairs {
    ["1970-01-01T00:00:00Z"] = 0, ["2000-02-29T12:00:01Z"] = 951825601, ["2026-11-21T10:14:43Z"] = 1795256083,
    ["2026-03-01T00:00:00.5Z"] = 1772323200,
  } do
    it("reads and writes " .. text, function()
      assert.equal(seconds, (instant.read(text)))
      assert.equal(text:gsub("%.5", ""), instant.write(seconds))
    end)
  end

  it("reads nothing else", function()
    assert.is_nil(instant.read "yesterday")
  end)

  it("keeps microseconds where they count", function()
    assert.equal("2026-01-02T01:04:05.678000Z", instant.micro("2026-01-02T03:04:05.678000+02:00"))
  end)

  it("have years of four digits, and the first one stands for none", function()
    assert.equal("0999-12-31T23:00:00.000001Z", instant.micro("1000-01-01T00:00:00.000001+01:00"))
    assert.is_nil(instant.micro "0001-01-01T00:00:00.000000Z")
    assert.is_nil(instant.seconds "0001-01-01T00:00:00Z")
    assert.equal("0001-01-01T00:00:01Z", instant.seconds "0001-01-01T00:00:01Z")
  end)
end)


describe("the form of a type", function()
  local function formed(name, text)
    return typed.of("io.k8s.api.core.v1." .. name)(host.json.decode(text))
  end

  it("drops what is empty and keeps what a pointer says", function()
    local pod = formed("Pod", [[{"metadata": {"labels": {}}, "spec": {"hostNetwork": false, "nodeName": "",
      "terminationGracePeriodSeconds": 0, "enableServiceLinks": false, "volumes": [],
      "containers": [{"name": "a", "image": null, "securityContext": {}, "env": [{"name": "X", "value": ""}]}]}}]])
    assert.same({
      metadata = {}, status = {},
      spec = {
        terminationGracePeriodSeconds = 0, enableServiceLinks = false,
        containers = { { name = "a", resources = {}, securityContext = {}, env = { { name = "X" } } } },
      },
    }, pod)
  end)

  it("writes what is always written", function()
    local event = formed("Event", [[{"metadata": {}, "involvedObject": {}}]])
    assert.equal(host.json.null, event.eventTime)
    assert.equal("", event.reportingInstance)
    assert.same({}, event.source)
  end)

  it("sets the defaults that are published", function()
    local service = formed("Service", [[{"metadata": {}, "spec": {"ports": [{"port": 1}]}}]])
    assert.equal("TCP", service.spec.ports[1].protocol)
  end)
end)


describe("label selectors", function()
  local selector = { matchLabels = { a = "b" }, matchExpressions = {
    { key = "c", operator = "In", values = { "y", "x" } }, { key = "d", operator = "DoesNotExist" },
    { key = "e", operator = "NotIn", values = { "z" } }, { key = "f", operator = "Exists" },
  } }

  it("select by labels and expressions", function()
    assert.is_true(selectors.matches(selector, { a = "b", c = "x", f = "" }))
    assert.is_false(selectors.matches(selector, { a = "b", c = "x", f = "", d = "" }))
    assert.is_false(selectors.matches(selector, { a = "b", c = "z", f = "" }))
    assert.is_false(selectors.matches(selector, { a = "b", c = "x", f = "", e = "z" }))
    assert.is_false(selectors.matches(selector, nil))
  end)

  it("are written as a query", function()
    assert.equal("a=b,c in (x,y),!d,e notin (z),f", selectors.text(selector))
  end)
end)
