local later = require "cluster.later"

describe("a table that is filled later", function()
  it("asks for its values once, when one is first read", function()
    local calls = 0
    local filled = later.table(function()
      calls = calls + 1
      return { a = 1, b = false }
    end)
    assert.equal(0, calls)
    assert.is_nil(next(filled))
    assert.equal(1, filled.a)
    assert.is_false(filled.b)
    assert.is_nil(filled.c)
    assert.equal(1, calls)
    assert.same({ a = 1, b = false }, filled)
  end)

  it("asks again when that failed", function()
    local ready = false
    local filled = later.table(function()
      return ready and { a = 1 } or error("not yet", 0)
    end)
    assert.has_error(function() return filled.a end, "not yet")
    ready = true
    assert.equal(1, filled.a)
  end)
end)


describe("a module that is loaded later", function()
  after_each(function()
    package.preload["later.example"], package.loaded["later.example"] = nil, nil
  end)

  it("is loaded when something of it is first used", function()
    local loads = 0
    package.preload["later.example"] = function()
      loads = loads + 1
      return { double = function(n) return 2 * n end }
    end
    local module, same = later.module "later.example", later.module "later.example"
    assert.equal(0, loads)
    assert.equal(6, module.double(3))
    assert.equal(module.double, same.double)
    assert.equal(1, loads)
  end)
end)
