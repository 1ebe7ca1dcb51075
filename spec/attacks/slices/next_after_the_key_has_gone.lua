-- attack: next is asked to go on from a key that was taken out, one that never was, one of another type.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local t = {}
    for i = 1, 1000 do t["k" .. i] = i end
    local key = next(t)
    while key do
      t[key] = nil
      for i = 1, 10 do t["new" .. i] = ("x"):rep(i) end
      local ok, following = pcall(next, t, key)
      key = ok and following or nil
      if not next(t) then break end
    end
    pcall(next, t, {})
    pcall(next, t, 0 / 0)
    pcall(next, {}, "nowhere")
  end,
}
