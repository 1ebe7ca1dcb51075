-- Strategic merge patch: lists by key, sets, and the directives.
local builtin = require "cluster.apiserver.schema.builtin"
local host = require "cluster.host"
local patch = require "cluster.apiserver.patch"

local json = host.json

local POD = builtin.of("", "v1", "Pod")

local OBJECT = [[{"kind":"Pod",
  "metadata":{"finalizers":["e.com/a","e.com/b"],"labels":{"x":"1","y":"2"}},
  "spec":{
    "containers":[
      {"name":"a","image":"one","env":[{"name":"X","value":"1"}],"args":["p","q"]},
      {"name":"b","image":"two","ports":[{"containerPort":80}]}],
    "tolerations":[{"key":"t"}],
    "volumes":[{"name":"v","emptyDir":{}}],
    "nodeSelector":{"n":"1"}}}]]


-- Patches OBJECT. Returns the new object, or nil and the failure.
local function run(change)
  return patch.strategic(json.decode(OBJECT), json.decode(change), POD)
end


-- Returns the value at a path like "metadata.labels" of `object`, as JSON; "nothing" if there is none.
local function at(object, path)
  for key in path:gmatch("[^.]+") do
    object = object[math.tointeger(tonumber(key)) or key]
  end
  return object == nil and "nothing" or json.encode(object)
end


describe("a strategic merge patch", function()
  for _, case in ipairs {
    { "merges maps", '{"metadata":{"labels":{"x":null,"z":"3"}}}', "metadata.labels", '{"y":"2","z":"3"}' },
    { "merges items by their key", '{"spec":{"containers":[{"name":"b","image":"new"}]}}', "spec.containers.2",
      '{"image":"new","name":"b","ports":[{"containerPort":80}]}' },
    { "puts new items in front of those it does not name", '{"spec":{"containers":[{"name":"c","image":"three"}]}}',
      "spec.containers.1.name", '"c"' },
    { "adds items of inner lists", '{"spec":{"containers":[{"name":"a","env":[{"name":"Y","value":"2"}]}]}}',
      "spec.containers.1.env", '[{"name":"Y","value":"2"},{"name":"X","value":"1"}]' },
    { "replaces lists without a key", '{"spec":{"tolerations":[{"key":"u"}]}}', "spec.tolerations", '[{"key":"u"}]' },
    { "replaces lists of values", '{"spec":{"containers":[{"name":"a","args":["r"]}]}}', "spec.containers.1.args",
      '["r"]' },
    { "adds to sets", '{"metadata":{"finalizers":["e.com/c","e.com/a"]}}', "metadata.finalizers",
      '["e.com/c","e.com/a","e.com/b"]' },
    { "deletes items", '{"spec":{"containers":[{"name":"a","$patch":"delete"}]}}', "spec.containers",
      '[{"image":"two","name":"b","ports":[{"containerPort":80}]}]' },
    { "replaces lists when told so", '{"spec":{"containers":[{"$patch":"replace"},{"name":"c","image":"three"}]}}',
      "spec.containers", '[{"image":"three","name":"c"}]' },
    { "replaces maps when told so", '{"metadata":{"labels":{"$patch":"replace","z":"3"}}}', "metadata.labels",
      '{"z":"3"}' },
    { "empties maps when told so", '{"metadata":{"labels":{"$patch":"delete"}}}', "metadata.labels", "{}" },
    { "deletes values from sets", '{"metadata":{"$deleteFromPrimitiveList/finalizers":["e.com/a"]}}',
      "metadata.finalizers", '["e.com/b"]' },
    { "brings sets into an order", '{"metadata":{"$setElementOrder/finalizers":["e.com/b","e.com/a"]}}',
      "metadata.finalizers", '["e.com/b","e.com/a"]' },
    { "brings lists into an order", '{"spec":{"$setElementOrder/containers":[{"name":"b"},{"name":"a"}]}}',
      "spec.containers.1.name", '"b"' },
    { "puts new items in the places of deleted ones", '{"spec":{"$setElementOrder/containers":[{"name":"c"},'
      .. '{"name":"b"}],"containers":[{"$patch":"delete","name":"b"},{"name":"c","image":"three"}]}}',
      "spec.containers.1.name", '"a"' },
    { "keeps only the keys it is told", '{"spec":{"volumes":[{"name":"v","$retainKeys":["name","hostPath"],'
      .. '"hostPath":{"path":"/x"}}]}}', "spec.volumes.1", '{"hostPath":{"path":"/x"},"name":"v"}' },
    { "removes with null", '{"spec":{"nodeSelector":null}}', "spec.nodeSelector", "nothing" },
    { "stores no nulls and no directives where nothing was", '{"metadata":{"annotations":{"a":"1","b":null}}}',
      "metadata.annotations", '{"a":"1"}' },
  } do
    it(case[1], function()
      assert.are.equal(case[4], at(assert(run(case[2])), case[3]))
    end)
  end

  it("leaves the object as it is", function()
    local object = json.decode(OBJECT)
    assert(patch.strategic(object, json.decode '{"spec":{"containers":[{"name":"a","image":"new"}]}}', POD))
    assert.is_true(json.equal(object, json.decode(OBJECT)))
  end)

  for _, case in ipairs {
    { '{"spec":{"containers":[{"image":"x"}]}}', 500, "map: map[image:x] does not contain declared merge key: name" },
    { '{"spec":{"containers":[{"$patch":"delete"}]}}', 500,
      "map: map[$patch:delete] does not contain declared merge key: name" },
    { '{"spec":{"containers":[{"$patch":"bogus","name":"a"}]}}', 500,
      "unknown patch type: bogus in map: map[$patch:bogus name:a]" },
    { '{"metadata":{"labels":{"$patch":"bogus"}}}', 500, "unknown patch type: bogus in map: map[$patch:bogus]" },
    { '{"spec":{"containers":[{"$patch":"merge"}]}}', 500, "merging lists cannot yet be specified in the patch" },
    { '{"spec":{"$setElementOrder/containers":[{"name":"b"}],"containers":[{"name":"a"}]}}', 500,
      "The order in patch list:\n[map[name:a]]\n doesn't match $setElementOrder list:\n[map[name:b]]\n" },
    { '{"spec":{"$setElementOrder/containers":[{"name":"b"}],"containers":[{"image":"x"}]}}', 500,
      "map: map[image:x] does not contain declared merge key: name" },
    { '{"spec":{"volumes":[{"name":"v","$retainKeys":["name"],"hostPath":{"path":"/"}}]}}', 400,
      "invalid patch format of retainKeys" },
    { "[1]", 400, "json: cannot unmarshal array into Go value of type map[string]interface {}" },
  } do
    it("refuses " .. case[1], function()
      local object, failure = run(case[1])
      assert.is_nil(object)
      assert.are.same({ case[2], case[3] }, { failure.code, failure.message })
    end)
  end
end)
