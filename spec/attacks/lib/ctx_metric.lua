-- attack: ctx.metric gets each value there is as name, value, labels and value of a label, and as many series as fit.
-- expect: held
-- objects: 60
-- for: 500ms
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local step = 0

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  metrics = {
    g = { type = "gauge", help = "a gauge", labels = { "a", "b" } },
    s = { type = "gauge", help = "a sum", sum = true, labels = { "a" } },
    c = { type = "counter", help = "a counter", labels = { "a" } },
    h = { type = "histogram", help = "a histogram", labels = { "a" }, buckets = { 1, 2, 3 } },
  },
  reconcile = function(_, ctx)
    step = step + 1
    pcall(ctx.metric)
    for _, value in ipairs(hostile.values) do
      pcall(ctx.metric, value)
      pcall(ctx.metric, value, value, value)
      for _, name in ipairs { "g", "s", "c", "h" } do
        pcall(ctx.metric, name, value, { a = "x", b = "y" })
        pcall(ctx.metric, name, 1, value)
        pcall(ctx.metric, name, 1, { a = value, b = "y" })
        pcall(ctx.metric, name, 1, { a = value })
        pcall(ctx.metric, name, value, { a = value })
      end
    end
    for index = 1, 500 do
      pcall(ctx.metric, "g", index, { a = ("x"):rep(200) .. index, b = ("y"):rep(200) .. step })
      pcall(ctx.metric, "s", 1e300, { a = ("x"):rep(200) .. index .. step })
      pcall(ctx.metric, "h", index, { a = ("z"):rep(200) .. index .. step })
    end
    hostile.sane()
  end,
}
