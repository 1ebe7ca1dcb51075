--- Answers the requests that scripts send by ctx.http with a function of the test. cluster/host/world.c calls it.
local host = require "cluster.host"

local M = {}

local answer -- of the world that is; nil: the test has given none


local function check(response)
  if type(response) ~= "table" or math.type(response.status) ~= "integer" or response.status < 200
      or response.status > 599 then
    error "world.http: expected the function to return { status = 200, headers = {…}, body = \"…\" }"
  end
  local headers = setmetatable({}, getmetatable(response.headers or {}))
  for name, value in pairs(response.headers or {}) do
    headers[tostring(name):lower()] = tostring(value)
  end
  return { head = { status = response.status, headers = headers }, body = host.base64.encode(response.body or "") }
end


--- The answer to a request { method =, url =, headers =, body = (base64) }: { head =, body = (base64) }, or
--- { kind =, message = } when it fails.
function M.answer(request)
  if not answer then
    return { kind = "Network", message = "this test has no server: give one with world.http(function(request) … end)" }
  end
  request.body = host.base64.decode(request.body)
  local response, why = answer(request)
  if response == nil and why == nil then
    return { kind = "Timeout", message = "no answer: the function of world.http returned nothing" }
  elseif response == nil then
    return { kind = "Network", message = tostring(why) }
  end
  return check(response)
end


function M.add(world, guard)
  answer = nil
  --- From now on this function answers what scripts ask by ctx.http.
  --- @param fn function request { method =, url =, headers =, body = } -> { status =, headers =, body = }; nothing: no
  ---   answer in time; nil and a text: no connection
  function world.http(fn)
    guard()
    answer = fn
  end
end


return M
