--- Schemas of the built-in kinds, and the notation they are written in.
local builtin = require "cluster.apiserver.schema.builtin"
local notation = require "cluster.apiserver.schema.notation"
local resources = require "cluster.apiserver.resources"

local CORE = notation.packages.core


local function field(line)
  return notation.read(line, CORE).fields[1]
end


describe("the notation", function()
  local cases = {
    { "name string", { type = { type = "string" } } },
    { "name! string", { required = true, written = true, type = { type = "string" } } },
    { "name+ string", { written = true, type = { type = "string" } } },
    { "name- string", { required = true, type = { type = "string" } } },
    { "protocol string go:v1.Protocol #4", { go_type = "v1.Protocol", number = "4", type = { type = "string" } } },
    { "exec *ExecAction in:ProbeHandler #1.1", { pointer = true, embedded = "ProbeHandler", number = "1.1",
      type = { ref = "io.k8s.api.core.v1.ExecAction" } } },
    { "x-kubernetes-map-type+ *string omitzero", { pointer = true, written = true, omitzero = true,
      type = { type = "string" } } },
    { "replicas int32 =1", { default = 1, type = { type = "integer", format = "int32" } } },
    { "readOnly bool =false", { default = false, type = { type = "boolean" } } },
    { 'kind string ="Shared" {Dedicated|Shared}',
      { default = "Shared", enum = { "Dedicated", "Shared" }, type = { type = "string" } } },
    { "spec *PodSpec", { pointer = true, type = { ref = "io.k8s.api.core.v1.PodSpec" } } },
    { "metadata meta.ObjectMeta", { type = { ref = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" } } },
    { "limits {}Quantity", { type = { map = { ref = "io.k8s.apimachinery.pkg.api.resource.Quantity" } } } },
    { "extra {}[]string", { type = { map = { list = { type = "string" } } } } },
    { "ports []Port map(port,protocol) patch:merge(port)", { list_type = "map", list_keys = { "port", "protocol" },
      patch = "merge", merge_key = "port", type = { list = { ref = "io.k8s.api.core.v1.Port" } } } },
    { "claimRef *ObjectReference granular", { pointer = true, map_type = "granular",
      type = { ref = "io.k8s.api.core.v1.ObjectReference" } } },
  }
  for _, case in ipairs(cases) do
    it("reads " .. case[1], function()
      local read, expected = field(case[1]), case[2]
      expected.name = case[1]:match "^[%w-]*%w"
      for _, flag in ipairs { "required", "written", "pointer" } do
        expected[flag] = expected[flag] or false
      end
      assert.same(expected, read)
    end)
  end

  it("gives kinds their type in their place among the fields", function()
    local read = notation.read("@kind\nmetadata meta.ObjectMeta\nbinaryData {}bytes", CORE)
    local names = {}
    for i, known in ipairs(read.fields) do
      names[i] = known.name
    end
    assert.same({ "apiVersion", "binaryData", "kind", "metadata" }, names)
  end)

  it("goes on with a line that begins with blanks", function()
    assert.same({ "A", "B", "C" }, field("phase string {A|B|\n    C}").enum)
  end)
end)


describe("schemas of built-in kinds", function()
  it("are there for all kinds that are served", function()
    for _, res in ipairs(resources.all()) do
      local schema = builtin.of(res.group, res.version, res.kind)
      assert.is_table(schema, res.id)
      assert.is_table(schema.properties.metadata or schema.properties.spec, res.id)
    end
  end)

  it("have definitions in place of references, the same ones each time", function()
    local spec = builtin.of("", "v1", "Pod").properties.spec
    assert.equal("array", spec.properties.containers.type)
    assert.same({ "name" }, spec.properties.containers["x-kubernetes-list-map-keys"])
    assert.equal("name", spec.properties.containers["x-kubernetes-patch-merge-key"])
    assert.equal(builtin.of("", "v1", "Pod"), builtin.of("", "v1", "Pod"))
  end)

  it("know lists and kinds of every group", function()
    assert.equal("PodList", builtin.of("", "v1", "PodList")["x-go-type"])
    assert.equal("Status", builtin.of("apps", "v1", "Status")["x-go-type"])
    assert.is_nil(builtin.of("apps", "v1", "Nothing"))
    assert.is_nil(builtin.of("apps", "v2", "Deployment"))
    assert.is_nil(builtin.of("example.com", "v1", "Deployment"))
  end)

  it("say what a field says of the definition it refers to", function()
    local volume = builtin.definition "io.k8s.api.core.v1.PersistentVolumeSpec"
    assert.equal("granular", volume.properties.claimRef["x-kubernetes-map-type"])
    assert.equal("atomic", builtin.definition("io.k8s.api.core.v1.ObjectReference")["x-kubernetes-map-type"])
    local deployment = builtin.of("apps", "v1", "Deployment").properties.spec
    assert.equal("retainKeys", deployment.properties.strategy["x-kubernetes-patch-strategy"])
  end)

  it("publish the defaults of Go's zero values", function()
    local port = builtin.definition "io.k8s.api.core.v1.ContainerPort"
    assert.equal("TCP", port.properties.protocol.default)
    assert.equal(0, port.properties.containerPort.default)
    assert.is_nil(port.properties.hostPort.default)
    assert.same({}, builtin.of("", "v1", "Pod").properties.spec.default)
  end)
end)
