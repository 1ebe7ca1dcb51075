-- attack: one table is in another many times, so that a kilobyte becomes gigabytes of JSON.
-- expect: error /3 MiB|time|memory/
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local t = { ("x"):rep(1000) }
    for _ = 1, 40 do t = { t, t } end
    return { status = { t = t } }
  end,
}
