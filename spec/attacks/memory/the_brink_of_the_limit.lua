-- attack: memory is taken to within a few bytes of its limit, each object to others, and then the host is called.
-- expect: held
-- objects: 40
-- for: 600ms
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")
local held, step = nil, 0

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  owns = { Map },
  reconcile = function(_, ctx)
    held = nil
    step = step + 1
    local list, size = {}, 1 << 19
    while size >= 64 do
      if pcall(function() list[#list + 1] = ("x"):rep(size - step) end) then
        if #list > 26 then size = size // 2 end
      else
        size = size // 2
      end
    end
    held = list
    ctx.event("Reason", "note")
    ctx.log("message", { a = { b = { c = {} } } })
    ctx.list(Thing)
    ctx.apply { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "m" }, data = { a = "b" } }
  end,
}
