-- Rules of CRDs as operators write them: forms that popular projects use, each with values that keep and break it.
local host = require "cluster.host"
local testrules = require "testrules"

local array = host.json.array

local INTEGER, TEXT = { type = "integer" }, { type = "string", maxLength = 64 }


local function object(properties, required)
  return { type = "object", properties = properties, required = required }
end


local function list(items, most)
  return { type = "array", maxItems = most or 16, items = items }
end


local function keyed(items, key)
  local made = list(items)
  made["x-kubernetes-list-type"], made["x-kubernetes-list-map-keys"] = "map", array { key }
  return made
end


local function map(values)
  return { type = "object", maxProperties = 16, additionalProperties = values }
end


local LISTENERS = keyed(object({
  name = TEXT, port = INTEGER, protocol = TEXT, hostname = TEXT, tls = object { mode = TEXT },
}, array { "name" }), "name")

local REQUIREMENTS = list(object({ key = TEXT, operator = TEXT, values = list(TEXT) }, array { "key", "operator" }))


-- The rule in words; the schema of `spec.x`; the rule; values that keep it (good), and values that break it (bad).
-- A value with an old one is { new, old }, in `updates`.
local CASES = {
  {
    "one of several solvers has to be given", object { http = object {}, dns = object {}, tls = object {} },
    { rule = "[has(self.http), has(self.dns), has(self.tls)].filter(x, x).size() == 1", message = "one, and only one" },
    good = { { http = {} }, { tls = {} } }, bad = { {}, { http = {}, dns = {} } },
  },
  {
    "at most one of several fields, by counting", object { a = TEXT, b = TEXT, c = TEXT },
    { rule = "(has(self.a) ? 1 : 0) + (has(self.b) ? 1 : 0) + (has(self.c) ? 1 : 0) <= 1" },
    good = { {}, { c = "x" } }, bad = { { a = "x", c = "y" } },
  },
  {
    "a certificate is renewed before it ends", object { duration = TEXT, renewBefore = TEXT },
    { rule = "!has(self.renewBefore) || duration(self.renewBefore) < duration(self.duration)" },
    good = { { duration = "24h" }, { duration = "24h", renewBefore = "90m" } },
    bad = { { duration = "1h", renewBefore = "3600s" }, { duration = "1h", renewBefore = "soon" } },
  },
  {
    "listeners have a certificate where their protocol needs it", LISTENERS,
    { rule = "self.all(l, l.protocol in ['HTTPS', 'TLS'] ? has(l.tls) : !has(l.tls))" },
    good = { array { { name = "a", protocol = "TLS", tls = {} }, { name = "b", protocol = "TCP" } } },
    bad = { array { { name = "a", protocol = "HTTPS" } }, array { { name = "a", protocol = "HTTP", tls = {} } } },
  },
  {
    "no two listeners have the same port, protocol and name", LISTENERS,
    { rule = "self.all(l1, self.exists_one(l2, l1.port == l2.port && l1.protocol == l2.protocol && "
      .. "(has(l1.hostname) && has(l2.hostname) ? l1.hostname == l2.hostname : !has(l1.hostname) && "
      .. "!has(l2.hostname))))" },
    good = { array { { name = "a", port = 80, protocol = "HTTP" }, { name = "b", port = 80, protocol = "HTTP",
      hostname = "h" } } },
    bad = { array { { name = "a", port = 80, protocol = "HTTP" }, { name = "b", port = 80, protocol = "HTTP" } } },
  },
  {
    "a union is told by its type", object({ type = TEXT, headers = object {}, mirror = object {} }, array { "type" }),
    { rule = "!(has(self.mirror) && self.type != 'Mirror') && !(!has(self.mirror) && self.type == 'Mirror')",
      fieldPath = ".mirror" },
    good = { { type = "Mirror", mirror = {} }, { type = "Headers", headers = {} } },
    bad = { { type = "Mirror" }, { type = "Headers", mirror = {} } }, at = "spec.x.mirror",
  },
  {
    "an address is one of its kind", object({ type = TEXT, value = TEXT }, array { "type", "value" }),
    { rule = [[self.type == 'IP' ? isIP(self.value) : self.value.matches('^(\\*\\.)?([a-z0-9-]+\\.)*[a-z0-9-]+$')]] },
    good = { { type = "IP", value = "10.0.0.1" }, { type = "IP", value = "fd00::1" }, { type = "N", value = "*.a.b" } },
    bad = { { type = "IP", value = "10.0.0" }, { type = "N", value = "a..b" } },
  },
  {
    "a path has no empty parts", { type = "string", maxLength = 100 },
    { rule = "self.startsWith('/') && !self.contains('//') && !self.endsWith('/..')" },
    good = { "/", "/a/b" }, bad = { "a", "/a//b", "/a/.." },
  },
  {
    "requirements fit their operators", REQUIREMENTS,
    { rule = "self.all(r, r.operator in ['Gt', 'Lt'] ? (r.values.size() == 1 && int(r.values[0]) >= 0) : "
      .. "r.operator == 'In' ? r.values.size() != 0 : true)" },
    good = { array { { key = "a", operator = "Gt", values = array { "5" } }, { key = "b", operator = "Exists" } } },
    bad = {
      array { { key = "a", operator = "Gt", values = array { "-5" } } },
      array { { key = "a", operator = "Gt", values = array { "x" } } },
      array { { key = "a", operator = "In", values = array {} } },
    },
  },
  {
    "labels of others' domains may not be set", { type = "string", maxLength = 200 },
    { rule = [[self in ['topology.kubernetes.io/zone'] || !self.find("^([^/]+)").endsWith("kubernetes.io")]] },
    good = { "topology.kubernetes.io/zone", "a.b/kubernetes.io" }, bad = { "x.kubernetes.io/y" },
  },
  {
    "a schedule has a duration, and no other way round", list(object { schedule = TEXT, duration = TEXT }),
    { rule = "self.all(x, has(x.schedule) == has(x.duration))" },
    good = { array { {}, { schedule = "@daily", duration = "1h" } } }, bad = { array { { schedule = "@daily" } } },
  },
  {
    "a reference does not change", object { kind = TEXT, name = TEXT },
    { rule = "self == oldSelf", message = "is immutable" },
    updates = { { { kind = "a", name = "b" }, { kind = "a", name = "b" }, true },
      { { kind = "a", name = "c" }, { kind = "a", name = "b" }, false } },
  },
  {
    "what was set stays set", object { endpoint = object { host = TEXT }, other = TEXT },
    { rule = "!has(oldSelf.endpoint) || has(self.endpoint)" },
    updates = { { { endpoint = {} }, {}, true }, { { other = "a" }, { endpoint = {} }, false } },
  },
  {
    "a disk only grows", object({ storage = TEXT }, array { "storage" }),
    { rule = "quantity(self.storage).compareTo(quantity(oldSelf.storage)) >= 0" },
    updates = { { { storage = "1Gi" }, { storage = "1023Mi" }, true }, { { storage = "1000M" }, { storage = "1Gi" },
      false } },
  },
  {
    "limits are above requests", object { requests = map(TEXT), limits = map(TEXT) },
    { rule = "!has(self.requests) || self.requests.all(k, !(k in self.limits) || "
      .. "quantity(self.requests[k]).compareTo(quantity(self.limits[k])) <= 0)" },
    good = { { requests = { cpu = "500m" }, limits = { cpu = "1" } }, { limits = {} },
      { requests = { a = "1" }, limits = {} } },
    bad = { { requests = { cpu = "2" }, limits = { cpu = "1500m" } } },
  },
  {
    "a number, or a share of all", { ["x-kubernetes-int-or-string"] = true, maxLength = 10 },
    { rule = "type(self) == string ? self.matches('^[0-9]{1,3}%$') && int(self.replace('%', '')) <= 100 : self >= 0" },
    good = { 0, 5, "100%" }, bad = { -1, "101%", "5" },
  },
  {
    "there is one object, and its name says so", { type = "string", maxLength = 5 },
    { rule = "self.metadata.name == 'one'", message = "the only name is one" }, root = true,
    good = { "x" }, name = "one",
  },
  {
    "a window ends behind its start",
    object { start = { type = "string", format = "date-time" }, stop = { type = "string", format = "date-time" } },
    { rule = "!has(self.stop) || (self.stop - self.start) >= duration('5m')" },
    good = { { start = "2026-01-01T10:00:00+02:00", stop = "2026-01-01T08:05:00Z" },
      { start = "2026-01-01T10:00:00Z" } },
    bad = { { start = "2026-01-01T10:00:00Z", stop = "2026-01-01T10:04:59.9Z" } },
  },
  {
    "a selector is among the labels of its template", object { selector = map(TEXT), labels = map(TEXT) },
    { rule = "self.selector.all(k, k in self.labels && self.labels[k] == self.selector[k])" },
    good = { { selector = { a = "b" }, labels = { a = "b", c = "d" } } },
    bad = { { selector = { a = "b" }, labels = { a = "c" } }, { selector = { a = "b" }, labels = {} } },
  },
  {
    "names that stand twice are told", list(TEXT),
    { rule = "self.all(n, self.exists_one(m, m == n))", messageExpression = "'not each once: ' + self.join(', ')" },
    good = { array { "a", "b" } }, bad = { array { "a", "b", "b" } }, says = "not each once: a, b, b",
  },
  {
    "a network is large enough, and private", { type = "string", maxLength = 50 },
    { rule = "isCIDR(self) && cidr(self).prefixLength() <= 24 && cidr('10.0.0.0/8').containsCIDR(cidr(self))" },
    good = { "10.1.0.0/16" }, bad = { "10.1.1.0/28", "192.168.0.0/16", "10.0.0.0" },
  },
  {
    "a web page is asked in private", { type = "string", maxLength = 100 },
    { rule = "isURL(self) && url(self).getScheme() == 'https' && url(self).getPort() in ['', '443']" },
    good = { "https://a.b/c?d=e", "https://a.b:443" }, bad = { "http://a.b", "https://a.b:8443", "a b" },
  },
  {
    "keys are names of DNS", map(TEXT),
    { rule = "self.all(k, !format.dns1123Label().validate(k).hasValue())" },
    good = { { ["a-b"] = "x" } }, bad = { { A = "x" }, { ["-"] = "x" } },
  },
  {
    "steps follow each other", list(object { at = INTEGER }),
    { rule = "self.all(i, x, i == 0 || self[i - 1].at < x.at)" },
    good = { array { { at = 1 }, { at = 3 } } }, bad = { array { { at = 3 }, { at = 3 } } },
  },
  {
    "members of a set only come", { type = "array", maxItems = 9, ["x-kubernetes-list-type"] = "set", items = TEXT },
    { rule = "oldSelf.all(x, x in self)" },
    updates = { { array { "b", "a" }, array { "a" }, true }, { array { "b" }, array { "a" }, false } },
  },
  {
    "what begins a cluster is only said at the start", object { initdb = object { owner = TEXT }, replicas = INTEGER },
    { rule = "oldSelf.hasValue() ? has(self.initdb) == has(oldSelf.value().initdb) : has(self.initdb)",
      optionalOldSelf = true },
    good = { { initdb = {} } }, bad = { { replicas = 1 } },
    updates = { { { initdb = {}, replicas = 2 }, { initdb = {} }, true },
      { { replicas = 2 }, { initdb = {} }, false } },
  },
  {
    "a release is one of those that are known", { type = "string", maxLength = 20 },
    { rule = "isSemver(self) && semver(self).isLessThan(semver('2.0.0')) && semver(self).minor() >= 3" },
    good = { "1.3.0", "1.10.2-rc.1" }, bad = { "1.2.9", "2.0.0", "x" },
  },
  {
    "a field is needed where its policy asks for it",
    object { policies = list(TEXT), provider = object { region = TEXT } },
    { rule = "!('*' in self.policies || 'Create' in self.policies) || "
      .. "(has(self.provider) && has(self.provider.region))" },
    good = { { policies = array { "Observe" } }, { policies = array { "*" }, provider = { region = "x" } } },
    bad = { { policies = array { "Create" } }, { policies = array { "*" }, provider = {} } },
  },
}


describe("a rule of an operator:", function()
  for _, case in ipairs(CASES) do
    it(case[1], function()
      local world = testrules.new(case[2], case[3], case.root)
      for _, value in ipairs(case.good or {}) do
        assert.equal("", world:create(value, case.name))
      end
      for _, value in ipairs(case.bad or {}) do
        local message = world:create(value, case.name)
        assert.matches((case.at or "spec.x") .. ": Invalid value: ", message, 1, true)
        assert.matches(case.says or case[3].message or case[3].rule, message, 1, true)
      end
      for _, update in ipairs(case.updates or {}) do
        assert.equal(update[3], world:update(update[1], update[2]) == "")
      end
    end)
  end
end)
