--- Bodies in Kubernetes' protobuf: compared with what a real server wrote.
local builtin = require "cluster.apiserver.schema.builtin"
local host = require "cluster.host"
local notation = require "cluster.apiserver.schema.notation"
local protobuf = require "cluster.apiserver.schema.protobuf"
local recorded = require "recorded"
local testserver = require "testserver"
local typed = require "cluster.apiserver.schema.typed"

local MEDIA = "application/vnd.kubernetes.protobuf"
local expected = recorded.json "protobuf.json"
local bytes = host.base64.decode(expected.bytes)


local function field(number, text)
  return string.char(number << 3 | 2, #text) .. text
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

  local failures = {
    { "", "empty data" },
    { "garbage", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]" },
    { "k8s\0garbage", "proto: illegal wireType 7" },
    { envelope("v1", "ConfigMap", "\10\80zzz"), "unexpected EOF" },
    { envelope("v1", "ConfigMap", "\8\1"), "proto: wrong wireType = 0" },
    { envelope("v1", "ConfigMap", field(1, field(8, "\8" .. ("\255"):rep(9)))), "unexpected EOF" },
    { envelope("v1", "ConfigMap", field(1, field(8, "\8" .. ("\255"):rep(8) .. "\127"))),
      "Time.UnmarshalProto: year outside of range [0,9999]" },
    { envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", ""),
      "objects of kind CustomResourceDefinition are read as JSON only" },
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


describe("the numbers of fields", function()
  for alias, package in pairs(notation.packages) do
    if alias ~= "apiextensions" then
      it("are known of all fields of " .. package.name .. ", each once", function()
        for name in pairs(require("cluster.apiserver.facts.types." .. alias)) do
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

  it("tells what is wrong with it as the real server", function()
    local _, answer = testserver.new():call("POST", testserver.CONFIGMAPS, "garbage", { ["content-type"] = MEDIA })
    assert.equal("the object provided is unrecognized (must be of type ConfigMap): provided data does not appear to be "
      .. "a protobuf message, expected prefix [107 56 115 0] (67617262616765)", answer.message)
  end)
end)
