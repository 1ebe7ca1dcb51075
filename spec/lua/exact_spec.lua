-- The paths that moonloop.exact takes; spec/testing/exact_test.lua has what it does.
local sandbox = require "sandbox"


local function problem(call)
  local ok, why = sandbox.run("return pcall(function() return " .. call .. " end)")
  assert.is_false(ok)
  return why:match 'moonloop.exact%(object, "data", …%): (.*)$'
end


describe("moonloop.exact", function()
  it("says what is wrong with its arguments", function()
    local expected = 'expected paths of maps, as "data" or "metadata.labels", 8 at most'
    assert.equal(expected, problem "moonloop.exact({})")
    assert.equal(expected, problem 'moonloop.exact({}, "a", "b", "c", "d", "e", "f", "g", "h", "i")')
    assert.equal("expected an object as in a manifest, got a string", problem 'moonloop.exact("x", "data")')
    assert.equal('expected the path of a map, as in "data" or "metadata.labels", got a number',
      problem "moonloop.exact({}, 1)")
    assert.equal('"data" is a string; expected a map', problem 'moonloop.exact({ data = "x" }, "data")')
    assert.equal('"data" is a list; expected a map', problem 'moonloop.exact({ data = { "x" } }, "data")')
  end)

  it("says what is wrong with a path", function()
    local function all_are(words, paths)
      for _, path in ipairs(paths) do
        assert.truthy(problem(("moonloop.exact({}, %q)"):format(path)):find(words, 1, true), path)
      end
    end
    all_are("is no path of fields with dots between them",
      { "", ".", "data.", ".data", "a..b", "a b", "data[1]", ("x"):rep(64) })
    all_are("cannot be exact",
      { "apiVersion", "kind", "metadata", "metadata.name", "metadata.ownerReferences", "status", "status.x" })
  end)

  it("marks beside moonloop.recreate, and changes nothing else of the object", function()
    local text = '{"z":1,"kind":"x","data":{"b":"1","a":"2"}}'
    assert.equal(text, sandbox.run(([[
      local cjson = require "cjson"
      local object = cjson.decode '%s'
      assert(moonloop.exact(moonloop.recreate(moonloop.exact(object, "data")), "a") == object)
      assert(moonloop.recreate(moonloop.exact(moonloop.recreate {}, "data")))
      assert(getmetatable(object) == false)
      return cjson.encode(object)
    ]]):format(text)))
    assert.equal("expected an object as in a manifest, got a table with a metatable",
      problem 'moonloop.exact(setmetatable({}, {}), "data")')
    assert.equal("expected an object as in a manifest, got a list",
      problem 'moonloop.exact(moonloop.array { 1 }, "data")')
  end)

  it("takes each map once, and adds to those that the object has", function()
    assert.is_true(sandbox.run [[
      local object = { data = { a = "b" } }
      moonloop.exact(object, "data", "data")
      return object == moonloop.exact(object, "data", "metadata.labels", "data-b", "metadata.annotations")
    ]])
    assert.equal('"data.a" is within "data"', problem 'moonloop.exact({}, "data.a", "data")')
    assert.equal('"data.a" is within "data"', problem 'moonloop.exact(moonloop.exact({}, "data"), "data.a")')
    assert.equal("9 maps; at most 8",
      problem 'moonloop.exact(moonloop.exact({}, "a", "b", "c", "d", "e", "f", "g", "h"), "i")')
  end)
end)
