--- OpenAPI documents: compared with those of a real server, without their descriptions.
local definitions = require "cluster.apiserver.openapi.definitions"
local host = require "cluster.host"
local openapi = require "cluster.apiserver.openapi"
local openapi_versions = require "cluster.apiserver.openapi.openapi_versions"
local recorded = require "recorded"
local testserver = require "testserver"

local PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
local WIDGETS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

local expected = recorded.json "openapi.json"


-- A schema as the recorded ones are: no descriptions, references that stand alone not wrapped, required names sorted.
local function plain(schema, is_map)
  if type(schema) ~= "table" then
    return schema
  end
  local out = {}
  for key, value in pairs(schema) do
    if is_map or key ~= "description" then
      out[key] = plain(value, key == "properties" and not is_map)
    end
  end
  if type(out.required) == "table" and not is_map then
    table.sort(out.required)
  end
  if out.allOf and next(out, next(out)) == nil then
    return out.allOf[1]
  end
  return out
end


local function with_widgets()
  local server = testserver.new()
  server:must("POST", WIDGETS, recorded.yaml "widgets.yaml")
  server.settle()
  return server
end


describe("definitions of built-in kinds", function()
  for _, form in ipairs { "v2", "v3" } do
    for name, schema in pairs(expected[form]) do
      it(("are those of the real server: %s in %s"):format(name, form), function()
        assert.same(schema, plain(definitions.schema(name, openapi_versions[form])))
      end)
    end
  end

  it("are not there for other names", function()
    assert.is_nil(definitions.schema("io.k8s.api.core.v1.Nothing", openapi_versions.v3))
    assert.is_nil(definitions.schema("com.example.v1.Nothing", openapi_versions.v3))
  end)
end)


describe("documents of the third version", function()
  local server, registry
  setup(function()
    server = with_widgets()
    registry = server.server.registry
  end)

  local function document(name)
    return host.json.decode(openapi.v3(registry, name))
  end

  it("define custom resources as the real server", function()
    local schemas = document("apis/stable.example.com/v1").components.schemas
    assert.same(plain(expected.widget.v3), plain(schemas["com.example.stable.v1.Widget"]))
    assert.same(plain(expected.widget.v3_list), plain(schemas["com.example.stable.v1.WidgetList"]))
  end)

  it("keep the descriptions of custom resources", function()
    local schema = document("apis/stable.example.com/v1").components.schemas["com.example.stable.v1.Widget"]
    assert.equal("A widget.", schema.description)
    assert.equal("How large.", schema.properties.spec.properties.size.description)
  end)

  it("define all that they refer to", function()
    for name in pairs(host.json.decode(openapi.v3_index(registry)).paths) do
      local text = openapi.v3(registry, name)
      local schemas = host.json.decode(text).components.schemas
      for reference in text:gmatch('"#/components/schemas/([^"]+)"') do
        assert.is_table(schemas[reference], name .. " refers to " .. reference)
      end
    end
  end)

  it("tell how a kind is patched", function()
    local path = document("apis/apps/v1").paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]
    assert.equal("patchAppsV1NamespacedDeployment", path.patch.operationId)
    assert.same({ group = "apps", version = "v1", kind = "Deployment" }, path.patch["x-kubernetes-group-version-kind"])
    assert.equal("patch", path.patch["x-kubernetes-action"])
    local names = {}
    for i, parameter in ipairs(path.patch.parameters) do
      names[i] = parameter.name
    end
    assert.same({ "dryRun", "fieldManager", "fieldValidation", "force" }, names)
    assert.is_table(path.patch.requestBody.content["application/strategic-merge-patch+json"])
  end)

  it("offer no strategic merge patch for custom resources", function()
    local paths = document("apis/stable.example.com/v1").paths
    local content = paths["/apis/stable.example.com/v1/namespaces/{namespace}/widgets/{name}"].patch.requestBody.content
    assert.is_nil(content["application/strategic-merge-patch+json"])
    assert.is_table(content["application/merge-patch+json"])
  end)

  it("have paths for the parts that a resource has", function()
    local paths = document("apis/stable.example.com/v1").paths
    assert.is_table(paths["/apis/stable.example.com/v1/namespaces/{namespace}/widgets/{name}/scale"].put)
    local old = document("apis/stable.example.com/v1beta1").paths
    assert.is_nil(old["/apis/stable.example.com/v1beta1/namespaces/{namespace}/widgets/{name}/scale"])
  end)

  it("are listed with hashes that change with what they tell of", function()
    local own = with_widgets()
    local before = host.json.decode(openapi.v3_index(own.server.registry)).paths
    local widgets = own:must("GET", WIDGETS .. "/widgets.stable.example.com")
    widgets.spec.versions[2].schema.openAPIV3Schema.description = "Another widget."
    own:must("PUT", WIDGETS .. "/widgets.stable.example.com", widgets)
    own.settle()
    local after = host.json.decode(openapi.v3_index(own.server.registry)).paths
    assert.same(before["apis/apps/v1"], after["apis/apps/v1"])
    assert.not_same(before["apis/stable.example.com/v1"], after["apis/stable.example.com/v1"])
  end)

  it("are served by hash, to be kept for good", function()
    local url = host.json.decode(openapi.v3_index(registry)).paths["apis/apps/v1"].serverRelativeURL
    local reply = server:send("GET", url)
    assert.equal(200, reply.code)
    assert.equal("public, immutable", reply.headers["Cache-Control"])
    assert.equal(304, server:send("GET", url, nil, { ["if-none-match"] = reply.headers.ETag }).code)
  end)

  it("send those with an old hash to the new one", function()
    local reply = server:send("GET", "/openapi/v3/apis/apps/v1?hash=0123")
    assert.equal(301, reply.code)
    assert.equal(200, server:send("GET", reply.headers.Location).code)
  end)

  it("are there as JSON only", function()
    local reply = server:send("GET", "/openapi/v3/apis/apps/v1", nil,
      { accept = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf" })
    assert.equal(406, reply.code)
  end)

  it("are empty for what is not there", function()
    local reply = server:send("GET", "/openapi/v3/apis/nope/v1")
    assert.equal(200, reply.code)
    assert.equal("", reply.body)
  end)
end)


-- The fields of a protobuf message: number → list of values.
local function fields_of(bytes)
  local fields, at = {}, 1
  local function varint()
    local value, shift = 0, 0
    repeat
      local byte = bytes:byte(at)
      value, shift, at = value | (byte & 0x7f) << shift, shift + 7, at + 1
    until byte < 0x80
    return value
  end
  while at <= #bytes do
    local key = varint()
    local value
    if key & 7 == 1 then
      value, at = string.unpack("<d", bytes, at)
    else
      value = varint()
    end
    if key & 7 == 2 then
      value, at = bytes:sub(at, at + value - 1), at + value
    end
    fields[key >> 3] = fields[key >> 3] or {}
    table.insert(fields[key >> 3], value)
  end
  return fields
end


-- A named thing of a list in protobuf, by its name.
local function named(list, name)
  for _, bytes in ipairs(list) do
    local entry = fields_of(bytes)
    if entry[1][1] == name then
      return fields_of(entry[2][1])
    end
  end
end


describe("the document of the second version", function()
  local server, registry
  setup(function()
    server = with_widgets()
    registry = server.server.registry
  end)

  it("defines custom resources as the real server", function()
    local document = host.json.decode(openapi.v2(registry))
    assert.same(plain(expected.widget.v2), plain(document.definitions["com.example.stable.v1.Widget"]))
  end)

  it("defines all that it refers to", function()
    local text = openapi.v2(registry)
    local known = host.json.decode(text).definitions
    for reference in text:gmatch('"#/definitions/([^"]+)"') do
      assert.is_table(known[reference], reference)
    end
  end)

  it("is given as JSON to those who do not say what they want", function()
    assert.equal("2.0", server:must("GET", "/openapi/v2").swagger)
  end)

  it("has the same definitions and paths in protobuf", function()
    local reply = server:send("GET", "/openapi/v2", nil, { accept = PROTOBUF })
    local document, json = fields_of(reply.body), host.json.decode(openapi.v2(registry))
    assert.equal("2.0", document[1][1])
    local all, count = fields_of(document[9][1])[1], 0
    for name in pairs(json.definitions) do
      assert.is_table(named(all, name), name)
      count = count + 1
    end
    assert.equal(count, #all)
    assert.is_table(named(fields_of(document[8][1])[2], "/api/v1/namespaces/{namespace}/pods/{name}"))
  end)

  it("says in protobuf what fields are", function()
    local all = fields_of(fields_of(openapi.v2_protobuf(registry))[9][1])[1]
    local schema = named(all, "com.example.stable.v1.Widget")
    assert.equal("A widget.", schema[4][1])
    local spec = named(fields_of(schema[25][1])[1], "spec")
    assert.same({ "size" }, spec[19])
    local size = named(fields_of(spec[25][1])[1], "size")
    assert.equal("integer", fields_of(size[22][1])[1][1])
    assert.same({ 10.0 }, size[7])
  end)

  it("has an ETag", function()
    local reply = server:send("GET", "/openapi/v2", nil, { accept = PROTOBUF })
    local again = server:send("GET", "/openapi/v2", nil, { accept = PROTOBUF, ["if-none-match"] = reply.headers.ETag })
    assert.equal(304, again.code)
  end)

  it("is refused in other forms", function()
    assert.equal(406, server:send("GET", "/openapi/v2", nil, { accept = "text/html" }).code)
    assert.equal(404, server:send("GET", "/openapi/v1").code)
  end)
end)
