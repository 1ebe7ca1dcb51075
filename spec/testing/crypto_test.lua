-- Randomness in a test is that of the world's seed, and a reconcile that draws any is called for every change.
local moonloop = require "moonloop"
local testing = require "moonloop.testing"

local Thing = moonloop.kind("example.com/v1", "Thing")
local ConfigMap = moonloop.kind("v1", "ConfigMap")


local function started(seed)
  local world = testing.world { seed = seed, scripts = "spec/testing/library/drawn.lua" }
  world.apply { apiVersion = Thing.apiVersion, kind = Thing.kind, metadata = { name = "a" }, spec = { mode = "x" } }
  world.settle()
  return world, world.get(Thing, "a").status
end


describe("crypto in a test", function()
  it("leaves what a test reads to the test's own library", function()
    local base64, quantity = require "moonloop.base64", require "moonloop.quantity"
    assert.equal("ann", base64.decode(base64.encode "ann"))
    assert.same({ nil, "it is no base64" }, { base64.decode "YW5u\n" })
    assert.equal("1536Mi", quantity.add("1Gi", "512Mi"))
    local crypto, yaml = require "moonloop.crypto", require "moonloop.yaml"
    assert.equal("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", crypto.sha256 "abc")
    assert.equal("ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=", crypto.sha256("abc", "base64"))
    assert.equal("b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad", crypto.hmac_sha256("", ""))
    assert.same({ a = 420 }, yaml.decode "a: 0644")
    assert.same({ a = 1 }, yaml.decode "\xef\xbb\xbfa: 1")
    assert.same({ a = 1 }, yaml.decode '\xef\xbb\xbf{"a": 1}')
    assert.equal(moonloop.null, yaml.decode "")
    assert.same({ nil, "a second document; expected one" }, { yaml.decode "a: 1\n---\nb: 2" })
  end)

  it("draws the same with the same seed, and something else with another", function()
    local _, first = started(7)
    local _, second = started(7)
    local _, other = started(8)
    assert.equal(24, #first.password)
    assert.same(first, second)
    for _, field in ipairs { "password", "random", "uuid" } do
      assert.not_equal(first[field], other[field])
    end
  end)

  it("makes a reconcile one that every change calls", function()
    local world, before = started(7)
    world.patch(ConfigMap, "a", { metadata = { annotations = { unread = "x" } } })
    world.settle()
    local after = world.get(Thing, "a").status
    assert.is_true(after.runs > before.runs)
    assert.not_equal(before.password, after.password)
  end)
end)
