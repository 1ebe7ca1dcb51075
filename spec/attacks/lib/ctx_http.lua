-- attack: ctx.http gets each value there is, as each field of a request. It declares no origin, so nothing is sent.
-- expect: ok
-- objects: 3
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    pcall(ctx.http)
    for _, value in ipairs(hostile.values) do
      pcall(ctx.http, value)
      for _, field in ipairs { "method", "url", "headers", "body", "timeout" } do
        pcall(ctx.http, { [field] = value })
        pcall(ctx.http, { url = "https://x.test/", [field] = value })
      end
      pcall(ctx.http, { url = "http://127.0.0.1:1/", headers = { [tostring(1)] = value } })
    end
    hostile.sane()
  end,
}
