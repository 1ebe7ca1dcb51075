-- An account at a billing service for each Thing: ctx.once, ctx.http and ctx.metric in one script.
local cjson = require "cjson"
local moonloop = require "moonloop"

local Thing = moonloop.kind("example.com/v1", "Thing")
local Secret = moonloop.kind("v1", "Secret")

local BILLING = "https://billing.example.com"

local function random_token()
  return ("%016x"):format(math.random(0, math.maxinteger))
end


local function url_of(thing)
  return BILLING .. "/accounts/" .. thing.metadata.uid
end


return moonloop.controller {
  name = "account",
  reconciles = Thing,
  owns = { Secret },
  http = { BILLING },
  metrics = {
    calls_total = { type = "counter", help = "Calls of the billing service.", labels = { "method" } },
    accounts = { type = "gauge", help = "Things, by what billing said.", labels = { "state" }, sum = true },
    account_number = { type = "gauge", help = "Number of the account.", labels = { "name" } },
  },

  reconcile = function(thing, ctx)
    local secret = assert(ctx.once(thing.metadata.name .. "-token", { token = random_token }))
    local answer, err = ctx.http {
      method = "PUT", url = url_of(thing), timeout = "5s",
      headers = { ["Content-Type"] = "application/json", Authorization = "Bearer " .. secret.token },
      body = cjson.encode { name = thing.metadata.name },
    }
    ctx.metric("calls_total", 1, { method = "PUT" })
    local is_refused = not answer or answer.status >= 300
    ctx.metric("accounts", 1, { state = is_refused and "refused" or "open" })
    if is_refused then
      return { status = { message = err and err.message or "billing says " .. answer.status }, requeue_after = "1m" }
    end
    local number = cjson.decode(answer.body).number
    ctx.metric("account_number", number, { name = thing.metadata.name })
    return { status = { account = number, message = "" } }
  end,

  finalize = function(thing, ctx)
    local answer = ctx.http { method = "DELETE", url = url_of(thing) }
    if not answer or answer.status >= 300 and answer.status ~= 404 then
      return { requeue_after = "10s" }
    end
  end,
}
