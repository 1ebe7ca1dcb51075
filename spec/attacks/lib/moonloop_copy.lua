-- attack: moonloop.copy, merge and equal get each value there is, and tables inside themselves.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

local function must_fail(message, f, ...)
  local ok, err = pcall(f, ...)
  if ok or not tostring(err):find(message, 1, true) then error("ESCAPED: " .. tostring(err)) end
end

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(thing)
    for _, name in ipairs { "copy", "merge", "equal" } do
      hostile.throw(moonloop[name])
      hostile.throw_one(moonloop[name], thing)
      hostile.throw_one(moonloop[name], { containers = { { name = "a" } } })
    end
    hostile.throw_one(function(value) return moonloop.merge({ env = { { name = "a" } } }, { env = { value } }) end)
    hostile.throw_one(function(value) return moonloop.merge({ env = { { name = "a" } } }, { env = { { name = value } } }) end)
    hostile.throw_one(function(value) return moonloop.merge({ env = { value } }, { env = { { name = "a", ["$patch"] = value } } }) end)
    hostile.throw_one(function(value) return moonloop.merge({ a = {} }, { a = { ["$patch"] = value, b = value } }) end)
    hostile.throw_one(function(value) return moonloop.equal({ cpu = "1" }, { cpu = value }) end)
    local cyclic, other = {}, {}
    cyclic.self, other.self = cyclic, other
    must_fail("128 levels", moonloop.copy, cyclic)
    must_fail("128 levels", moonloop.merge, {}, cyclic)
    must_fail("128 levels", moonloop.equal, cyclic, other)
    local secret = setmetatable({ open = 1 }, { __index = function() error "ESCAPED: __index" end, __pairs = function() error "ESCAPED: __pairs" end })
    if getmetatable(moonloop.copy(secret)) ~= nil then error "ESCAPED: a metatable" end
    moonloop.copy(thing).metadata.name = "other"
    moonloop.merge(thing, { metadata = { name = "other" } })
    if thing.metadata.name == "other" then error "ESCAPED: the object was changed" end
  end,
}
