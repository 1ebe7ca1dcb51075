-- Asks the server that a Thing's mode names, and shows what came: http_test.lua.
local cjson = require "cjson"
local moonloop = require "moonloop"

local Thing = moonloop.kind("example.com/v1", "Thing")

local ORIGIN = "https://billing.example.com"

local modes = {}

function modes.get(_, ctx)
  return ctx.http { url = ORIGIN .. "/customers/7?full=1", headers = { Authorization = "Bearer t" }, timeout = "5s" }
end

function modes.post(_, ctx)
  return ctx.http { method = "POST", url = ORIGIN:upper(), body = cjson.encode { name = "a" } }
end

function modes.raise(...)
  return assert(modes.get(...))
end

-- "below HOST": asks a server below a pattern.
function modes.below(thing, ctx)
  local url = "https://" .. thing.spec.mode:match "^below (.*)$"
  local asked, answer, err = pcall(ctx.http, { url = url })
  if not asked then
    return { status = 0, body = answer }
  end
  return answer, err
end

-- "bad 3": the third wrong request.
local bad = {
  { },
  { url = "https://other.example.com/" },
  { url = ORIGIN .. ".evil.test/" },
  { url = ORIGIN .. "@evil.test/" },
  { url = ORIGIN .. ":444/" },
  { url = ORIGIN .. "\\@evil.test/" },
  { url = ORIGIN .. "/a b" },
  { url = ORIGIN .. "/a\r\nHost: evil.test" },
  { url = ORIGIN, method = "CONNECT" },
  { url = ORIGIN, headers = { Host = "evil.test" } },
  { url = ORIGIN, headers = { ["content-length"] = "5" } },
  { url = ORIGIN, headers = { ["Proxy-Authorization"] = "x" } },
  { url = ORIGIN, headers = { ["X-A"] = "a\r\nX-B: b" } },
  { url = ORIGIN, headers = { ["X A"] = "a" } },
  { url = ORIGIN, headers = { "a" } },
  { url = ORIGIN, body = {} },
  { url = ORIGIN, body = ("x"):rep(1024 * 1024) .. "x" },
  { url = ORIGIN, timeout = 11 },
  { url = ORIGIN, timeout = "soon" },
  { url = ORIGIN, tiemout = 1 },
}

return moonloop.controller {
  name = "http",
  reconciles = Thing,
  http = { ORIGIN, "https://*.Example.org:8443" },

  reconcile = function(thing, ctx)
    local mode, number = (thing.spec.mode or ""):match "^(%a+) ?(%d*)"
    if mode == "bad" then
      local _, why = pcall(ctx.http, bad[tonumber(number)])
      return { status = { message = tostring(why) } }
    elseif modes[mode] then
      local answer, err = modes[mode](thing, ctx)
      if answer then
        answer.body = answer.body:gsub("[^%g ]", function(byte) return ("<%02x>"):format(byte:byte()) end)
      end
      return { status = answer or { kind = err.kind, message = tostring(err) } }
    end
  end,
}
