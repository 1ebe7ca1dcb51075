-- attack: durations as texts that no clock can hold.
-- expect: held
-- objects: 20
local time = require "moonloop.time"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local number = 0
local texts = { "9999999999999999999h", "1e308s", "-5s", "", "s", "5", "0x10s", "5m5m", "1h-1m", " 5s", "5s ", "nans", "infs",
  "99999999999999999999999999999999999999999ms", ("9"):rep(100000) .. "s", "5\0s", "٥s", "1.5s", ".s", "1..5s", "9e9s" }

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    number = number + 1
    for _, text in ipairs(texts) do pcall(time.duration, text) end
    return { requeue_after = texts[number % #texts + 1] }
  end,
}
