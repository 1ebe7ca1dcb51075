-- JSON patch (RFC 6902) and merge patch (RFC 7386), with what the server's library makes of their edges.
local host = require "cluster.host"
local patch = require "cluster.apiserver.patch"

local json = host.json

local REJECTED = "the server rejected our request due to an error in our request"


-- Runs one patch of texts. Returns the object as text, or nil and the code and message of the failure.
local function run(kind, object, change)
  local before = json.decode(object)
  local result, failure = patch[kind](before, json.decode(change))
  assert.are.equal(json.encode(json.decode(object)), json.encode(before), "the input was changed")
  if not result then
    return nil, failure.code, failure.message
  end
  return json.encode(result)
end


local function accepts(kind, cases)
  for _, case in ipairs(cases) do
    it("makes of " .. case[1] .. " by " .. case[2] .. ": " .. case[3], function()
      assert.are.equal(case[3], (run(kind, case[1], case[2])))
    end)
  end
end


local function refuses(kind, cases)
  for _, case in ipairs(cases) do
    it("refuses " .. case[2] .. " for " .. case[1], function()
      local result, code, message = run(kind, case[1], case[2])
      assert.is_nil(result)
      assert.are.same({ case[3], case[4] }, { code, message })
    end)
  end
end


describe("a JSON patch", function()
  accepts("json", {
    { '{"a":1}', '[{"op":"add","path":"/b","value":2}]', '{"a":1,"b":2}' },
    { '{"a":1}', '[{"op":"add","path":"/a","value":2}]', '{"a":2}' },
    { '{"a":1}', '[{"op":"add","path":"/b"}]', '{"a":1,"b":null}' },
    { '{"a":[1,3]}', '[{"op":"add","path":"/a/1","value":2}]', '{"a":[1,2,3]}' },
    { '{"a":[1]}', '[{"op":"add","path":"/a/-","value":2}]', '{"a":[1,2]}' },
    { '{"a":[1,2]}', '[{"op":"add","path":"/a/-1","value":3}]', '{"a":[1,2,3]}' },
    { '{"a/b":1,"c~d":2}', '[{"op":"remove","path":"/a~1b"},{"op":"remove","path":"/c~0d"}]', "{}" },
    { '{"a":[1,2]}', '[{"op":"remove","path":"/a/0"}]', '{"a":[2]}' },
    { '{"a":[1,2]}', '[{"op":"remove","path":"/a/-1"}]', '{"a":[1]}' },
    { '{"a":1}', '[{"op":"replace","path":"/b","value":2}]', '{"a":1,"b":2}' },
    { '{"a":[1,2]}', '[{"op":"replace","path":"/a/1","value":3}]', '{"a":[1,3]}' },
    { '{"a":1}', '[{"op":"replace","path":"","value":{"b":1}}]', '{"b":1}' },
    { '{"a":{"b":1},"c":{}}', '[{"op":"move","from":"/a/b","path":"/c/d"}]', '{"a":{},"c":{"d":1}}' },
    { '{"a":{"b":1}}', '[{"op":"copy","from":"/a","path":"/c"},{"op":"add","path":"/c/b","value":2}]',
      '{"a":{"b":1},"c":{"b":2}}' },
    { '{"a":1}', '[{"op":"test","path":"/a","value":1.0}]', '{"a":1}' },
    { '{"a":1}', '[{"op":"test","path":"/b","value":null}]', '{"a":1}' },
    { '{"a":{"x":[1,{"y":2}]}}', '[{"op":"test","path":"/a","value":{"x":[1,{"y":2}]}}]', '{"a":{"x":[1,{"y":2}]}}' },
    { '{"a":1}', "[]", '{"a":1}' },
    { '{"a":1}', "null", '{"a":1}' },
  })

  refuses("json", {
    { '{"a":1}', '[{"op":"test","path":"/a","value":2}]', 422, REJECTED },
    { '{"a":1}', '[{"op":"remove","path":"/b"}]', 422, REJECTED },
    { '{"a":1}', '[{"op":"add","path":"/b/c","value":1}]', 422, REJECTED },
    { '{"a":1}', '[{"op":"add","path":"b","value":1}]', 422, REJECTED },
    { '{"a":[1]}', '[{"op":"add","path":"/a/5","value":1}]', 422, REJECTED },
    { '{"a":[1]}', '[{"op":"replace","path":"/a/1","value":1}]', 422, REJECTED },
    { '{"a":[1]}', '[{"op":"add","path":"/a/x","value":1}]', 422, REJECTED },
    { '{"a":1}', '[{"op":"frobnicate","path":"/a"}]', 422, REJECTED },
    { '{"a":1}', '[{"op":"remove"}]', 422, REJECTED },
    { '{"a":1}', '{"op":"remove","path":"/a"}', 400,
      "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp" },
  })

  it("has at most 10,000 operations", function()
    local operations = {}
    for i = 1, 10001 do
      operations[i] = { op = "test", path = "/a", value = 1 }
    end
    local result, failure = patch.json({ a = 1 }, json.array(operations))
    assert.is_nil(result)
    assert.are.equal(413, failure.code)
    assert.are.equal("Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001",
      failure.message)
  end)
end)


describe("a JSON patch that means harm", function()
  -- The result, or nil and the code of the refusal; and the seconds of CPU it took.
  local function run_timed(object, operations)
    local begun = os.clock()
    local result, failure = patch.json(object, json.array(operations))
    return result, failure and failure.code, os.clock() - begun
  end

  it("copies at most 3 MiB", function()
    local text = ("x"):rep(1024 * 1024 - 2)
    local operations = {}
    for i = 1, 3 do
      operations[i] = { op = "copy", from = "/a", path = "/b" .. i }
    end
    assert.are.equal(text, patch.json({ a = text }, json.array(operations)).b3)
    operations[4] = { op = "copy", from = "/c", path = "/d" }
    local result, code = run_timed({ a = text, c = 1 }, operations)
    assert.are.same({ nil, 422 }, { result, code }, "one byte more")
  end)

  it("doubles a document no 24 times", function()
    local operations = {}
    for i = 1, 24 do
      operations[i] = { op = "copy", from = "/spec", path = "/spec/x" .. i }
    end
    local result, code, seconds = run_timed({ spec = { text = ("x"):rep(1000) } }, operations)
    assert.are.same({ nil, 422 }, { result, code })
    assert.is_true(seconds < 2, seconds)
  end)

  it("nests no deeper than JSON that is read", function()
    local operations = {}
    for i = 1, 17 do
      operations[i] = { op = "copy", from = "/a", path = "/a" .. ("/a"):rep(2 ^ (i - 1)) }
    end
    local result, code = run_timed({ a = {} }, operations)
    assert.are.same({ nil, 422 }, { result, code })
  end)

  it("does not move the elements of a long list without end", function()
    local list, operations = json.array {}, {}
    for i = 1, 300000 do
      list[i] = 0
    end
    for i = 1, 10000 do
      operations[i] = { op = i % 2 == 0 and "remove" or "add", path = "/list/0", value = 1 }
    end
    local result, code, seconds = run_timed({ list = list }, operations)
    assert.are.same({ nil, 422 }, { result, code })
    assert.is_true(seconds < 10, seconds)
  end)
end)


describe("a merge patch", function()
  accepts("merge", {
    { '{"a":1}', '{"b":2}', '{"a":1,"b":2}' },
    { '{"a":1,"b":2}', '{"b":null}', '{"a":1}' },
    { '{"a":{"b":1,"c":2}}', '{"a":{"b":null,"d":3}}', '{"a":{"c":2,"d":3}}' },
    { '{"a":[1,2]}', '{"a":[3]}', '{"a":[3]}' },
    { '{"a":[1]}', '{"a":{"b":1}}', '{"a":{"b":1}}' },
    { '{"a":{"b":1}}', '{"a":[1]}', '{"a":[1]}' },
    { "{}", '{"a":{"b":null,"c":{"d":null}}}', '{"a":{"c":{}}}' },
    { "{}", '{"a":[null,{"b":null}]}', '{"a":[null,{}]}' },
    { '{"a":1}', "{}", '{"a":1}' },
  })

  refuses("merge", {
    { '{"a":1}', "null", 400, "Invalid JSON Patch" },
    { '{"a":1}', "[1]", 400,
      "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}" },
    { '{"a":1}', '"x"', 400,
      "error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface {}" },
  })
end)
