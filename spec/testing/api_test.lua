-- A test has the functions that lua/script_api.lua lists for the API of tests, and no more.
local testing = require "moonloop.testing"

local function functions_of(list)
  local names = {}
  for _, entry in ipairs(list) do
    names[entry.name] = "function"
  end
  return names
end


local function types_of(module)
  local types = {}
  for name, value in pairs(module) do
    types[name] = type(value)
  end
  return types
end


describe("the API of tests", function()
  local world, module = table.unpack(dofile "lua/script_api.lua".test_modules)

  it("has the functions that its table lists", function()
    assert.same(functions_of(module), types_of(testing))
    assert.same(functions_of(world), types_of(testing.world { scripts = "spec/testing/thing.lua" }))
  end)
end)
