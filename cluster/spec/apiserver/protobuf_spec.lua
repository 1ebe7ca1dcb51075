--- Bodies in Kubernetes' protobuf: compared with what a real server wrote.
local builtin = require "cluster.apiserver.schema.builtin"
local host = require "cluster.host"
local notation = require "cluster.apiserver.schema.notation"
local protobuf = require "cluster.apiserver.schema.protobuf"
local recorded = require "recorded"
local testserver = require "testserver"
local typed = require "cluster.apiserver.schema.typed"

local MEDIA = "application/vnd.kubernetes.protobuf"
local NULL = host.json.null
local CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
local expected = recorded.json "protobuf.json"
local crds = recorded.json "protobuf_crds.json"
local bytes = host.base64.decode(expected.bytes)


local function varint(value)
  local bytes_of = ""
  while math.ult(0x7f, value) do
    bytes_of = bytes_of .. string.char(value & 0x7f | 0x80)
    value = value >> 7
  end
  return bytes_of .. string.char(value)
end


local function head(number, size)
  return varint(number << 3 | 2) .. varint(size)
end


local function field(number, text)
  return head(number, #text) .. text
end


-- An object of a kind with the bytes of its message.
local function envelope(version, kind, message)
  return "k8s\0" .. field(1, field(1, version) .. field(2, kind)) .. field(2, message)
end


describe("a body in protobuf", function()
  it("is read as the JSON that the real server gives for it", function()
    local object = assert(protobuf.decode(bytes))
    typed.of(builtin.name_of("apps", "v1", "Deployment"))(object)
    assert.same(expected.object, object)
  end)

  it("keeps zeros, negative numbers, and numbers apart from texts", function()
    local object = protobuf.decode(bytes)
    assert.equal(0, object.spec.replicas)
    assert.equal(-5, object.spec.template.spec.tolerations[1].tolerationSeconds)
    assert.equal("10%", object.spec.strategy.rollingUpdate.maxUnavailable)
    assert.equal(1, object.spec.strategy.rollingUpdate.maxSurge)
  end)

  it("passes over fields it does not know", function()
    local object = protobuf.decode(envelope("v1", "ConfigMap", field(15, "x") .. field(1, field(1, "a"))))
    assert.same({ apiVersion = "v1", kind = "ConfigMap", metadata = { name = "a" } }, object)
  end)

  it("reads maps whose values are lists", function()
    local extra = field(5, field(1, "scopes") .. field(2, field(1, "a") .. field(1, "b")))
    local object = protobuf.decode(envelope("authorization.k8s.io/v1", "SubjectAccessReview", field(2, extra)))
    assert.same({ scopes = { "a", "b" } }, object.spec.extra)
  end)

  local instants = {
    { 1782900000, "2026-07-01T10:00:00Z" }, { 0, "1970-01-01T00:00:00Z" }, { -30610224001, "0999-12-31T23:59:59Z" },
    { -62135596799, "0001-01-01T00:00:01Z" }, { -62135596800, NULL },
  }
  for _, case in ipairs(instants) do
    it(("reads the instant %d, which an old one is, too"):format(case[1]), function()
      local message = "\8" .. varint(case[1])
      local object = protobuf.decode(envelope("v1", "ConfigMap", field(1, field(8, message .. "\16\7"))))
      assert.equal(case[2], object.metadata.creationTimestamp)
      object = protobuf.decode(envelope("coordination.k8s.io/v1", "Lease", field(2, field(4, message))))
      assert.equal(case[2] == NULL and NULL or case[2]:gsub("Z", ".000000Z"), object.spec.renewTime)
    end)
  end

  it("reads fractions of a second, whatever their sign and size", function()
    for nanos, text in pairs { [5999] = "01:40.000005", [-5999] = "01:39.999995", [2000000000] = "01:42.000000" } do
      local object = protobuf.decode(envelope("coordination.k8s.io/v1", "Lease",
        field(2, field(4, "\8\100\16" .. varint(nanos)))))
      assert.equal("1970-01-01T00:" .. text .. "Z", object.spec.renewTime)
    end
  end)

  it("refuses an instant beyond the years that can be written", function()
    for _, seconds in ipairs { -62135596801, 253402300800, math.mininteger, math.maxinteger } do
      local message = field(1, field(8, "\8" .. varint(seconds)))
      assert.same({ nil, "an instant outside of the years 1 to 9999" },
        { protobuf.decode(envelope("v1", "ConfigMap", message)) })
    end
  end)

  it("reads an instant without a number as 1970, and an empty one as none", function()
    local object = protobuf.decode(envelope("coordination.k8s.io/v1", "Lease",
      field(2, field(3, "") .. field(4, "\16" .. varint(5000)))))
    assert.same({ acquireTime = NULL, renewTime = "1970-01-01T00:00:00.000005Z" }, object.spec)
  end)

  local failures = {
    { "", "empty data" },
    { "garbage", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]" },
    { "k8s\0garbage", "proto: illegal wireType 7" },
    { envelope("v1", "ConfigMap", "\10\80zzz"), "unexpected EOF" },
    { envelope("v1", "ConfigMap", "\8\1"), "proto: wrong wireType = 0" },
    { envelope("v1", "ConfigMap", field(1, field(8, "\8" .. ("\255"):rep(9)))), "unexpected EOF" },
    { envelope("v1", "ConfigMap", field(1, "\10\5a")), "unexpected EOF" },
    { envelope("apps/v1", "ControllerRevision", field(2, field(1, "{"))), "unexpected end of JSON input" },
    { envelope("v1", "Nothing", ""), 'no kind "Nothing" is registered for version "v1" in scheme '
      .. '"pkg/runtime/scheme.go:111"' },
  }
  for i, case in ipairs(failures) do
    it(("is refused with the real server's words, case %d"):format(i), function()
      local object, why = protobuf.decode(case[1])
      assert.is_nil(object)
      assert.equal(case[2], why)
    end)
  end

  it("never raises, whatever bytes come", function()
    local state = 7
    for _ = 1, 300 do
      state = (state * 1103515245 + 12345) & 0x7fffffff
      local at = state % #bytes + 1
      local damaged = bytes:sub(1, at - 1) .. string.char(state >> 8 & 0xff) .. bytes:sub(at + 1)
      assert.has_no_error(function()
        protobuf.decode(damaged)
      end)
    end
  end)
end)


describe("a CRD in protobuf", function()
  it("is stored as the same CRD in JSON is", function()
    local spec = {}
    for i, body in ipairs { host.base64.decode(crds.bytes), crds.object } do
      local server = testserver.new()
      server:must("POST", CRDS, body, i == 1 and { ["content-type"] = MEDIA } or nil)
      server:settle()
      server:must("GET", "/apis/e.com/v1/riches")
      spec[i] = server:must("GET", CRDS .. "/riches.e.com").spec
    end
    assert.same(spec[2], spec[1])
    local properties = spec[1].versions[1].schema.openAPIV3Schema.properties.spec.properties
    assert.equal(false, properties.flag.default)
    assert.equal(true, properties.any.additionalProperties)
    assert.same({ type = "string" }, properties.list.items)
    assert.equal(1500, properties.size.maximum)
  end)

  it("says all that its types can hold", function()
    local object = assert(protobuf.decode(host.base64.decode(crds.odd_bytes)))
    typed.of(builtin.name_of("apiextensions.k8s.io", "v1", "CustomResourceDefinition"))(object)
    local schema, expected_schema = object.spec.versions[1].schema.openAPIV3Schema,
      crds.odd_object.spec.versions[1].schema.openAPIV3Schema
    local form = typed.of(builtin.name_of("apiextensions.k8s.io", "v1", "JSONSchemaProps"))
    form(schema.items[1])
    form(schema.items[2])
    form(schema.dependencies.c)
    assert.same(expected_schema, schema)
    assert.same(crds.odd_object.spec.conversion, object.spec.conversion)
  end)

  it("is refused when it is nested without end", function()
    local heads, size = {}, 0
    for i = 1, 20000 do
      heads[i] = head(28, size) -- not: another schema
      size = size + #heads[i]
    end
    local turned = {}
    for i = #heads, 1, -1 do
      turned[#turned + 1] = heads[i]
    end
    local schema = field(7, field(4, field(1, table.concat(turned))))
    local body = envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", field(2, schema))
    local object, why = protobuf.decode(body)
    assert.is_nil(object)
    assert.equal("exceeded max depth", why)
  end)
end)


describe("the numbers of fields", function()
  for alias, package in pairs(notation.packages) do
    it("are known of all fields of " .. package.name .. ", each once", function()
      for name in pairs(require("cluster.kinds.types." .. alias)) do
        local record, seen = builtin.record(package.name .. "." .. name), {}
        for _, known in ipairs(record.fields) do
          local of_kind = record.kind and (known.name == "apiVersion" or known.name == "kind")
          assert.truthy(known.number or of_kind, name .. "." .. known.name)
          assert.is_nil(known.number and seen[known.number], name .. "." .. known.name)
          seen[known.number or known.name] = true
        end
      end
    end)
  end
end)


describe("the server", function()
  it("creates what comes in protobuf", function()
    local server = testserver.new()
    local body = envelope("v1", "ConfigMap", field(1, field(1, "a")) .. field(2, field(1, "k") .. field(2, "v")))
    local code, object = server:call("POST", testserver.CONFIGMAPS, body, { ["content-type"] = MEDIA })
    assert.equal(201, code)
    assert.same({ k = "v" }, object.data)
  end)

  it("reads options of a deletion", function()
    local server = testserver.new()
    server:configmap("a")
    local options = field(2, field(1, "another uid"))
    local code, answer = server:call("DELETE", testserver.CONFIGMAPS .. "/a", envelope("v1", "DeleteOptions", options),
      { ["content-type"] = MEDIA })
    assert.equal(409, code)
    assert.truthy(answer.message:find("another uid", 1, true))
  end)

  it("makes no protobuf: not of built-in kinds yet, and of custom ones never", function()
    local server = testserver.new()
    server:must("POST", CRDS, crds.object)
    server:settle()
    local code, answer = server:call("GET", "/apis/e.com/v1/riches", nil, { accept = MEDIA })
    assert.same({ 406, "only the following media types are accepted: application/json, application/yaml, "
      .. MEDIA }, { code, answer.message })
    assert.equal(501, (server:call("GET", CRDS, nil, { accept = MEDIA })))
    local both = { accept = MEDIA .. ",application/json" }
    assert.equal("RichList", server:must("GET", "/apis/e.com/v1/riches", nil, both).kind)
  end)

  it("tells what is wrong with it as the real server", function()
    local _, answer = testserver.new():call("POST", testserver.CONFIGMAPS, "garbage", { ["content-type"] = MEDIA })
    assert.equal("the object provided is unrecognized (must be of type ConfigMap): provided data does not appear to be "
      .. "a protobuf message, expected prefix [107 56 115 0] (67617262616765)", answer.message)
  end)
end)
