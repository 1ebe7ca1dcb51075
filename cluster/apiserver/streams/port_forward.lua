--- The streams of port-forward: a pair for each connection to a port, one for its bytes and one for what went wrong.
---
---   pair = { port =, data = stream, error = stream, pause = function(paused), finished = function(), to be called }
---
--- Over SPDY a client opens pairs as it needs them; newer clients send SPDY in a WebSocket. Other clients of WebSockets
--- name the ports in the query, and each is one connection.
---
--- Rules: kubelet/pkg/cri/streaming/portforward/{httpstream,websocket}.go, client-go/tools/portforward/tunneling_*.go.
local channels = require "cluster.apiserver.streams.channels"
local host = require "cluster.host"
local negotiate = require "cluster.apiserver.streams.negotiate"
local spdy = require "cluster.apiserver.streams.spdy"
local websocket = require "cluster.apiserver.streams.websocket"

local M = {}

local PROTOCOL = "portforward.k8s.io"
local TUNNEL = "SPDY/3.1+" .. PROTOCOL
local BY_CHANNELS = { "v4.channel.k8s.io", "v4.base64.channel.k8s.io" }
local WAIT = 30 -- seconds until the second stream of a pair is there
local PORTS_MAX = 64 -- in a query
local HALVES_MAX = 128 -- streams that wait for their other one


local function port_of(text)
  local digits = text and text:match "^%d+$"
  local port = digits and math.tointeger(tonumber(digits))
  return port and port > 0 and port < 65536 and port or nil
end


-- ---- SPDY ----

local function forget(halves, id)
  local half = halves.by_id[id]
  halves.by_id[id] = nil
  halves.count = halves.count - 1
  half.late:stop()
end


-- A half whose stream the client gives up is forgotten, when there is need: most clients never do.
local function make_room(halves)
  for id, half in pairs(halves.by_id) do
    if (half.data or half.error).is_closed then
      forget(halves, id)
    end
  end
  return halves.count < HALVES_MAX
end


-- A stream joins the other one with its request's id. @param fn function(pair)
local function join(halves, one, session, fn)
  local kind, port = one.name, port_of(one.headers.port)
  local id = one.headers.requestid or tostring(one.id - (kind == "data" and 2 or 0)) -- clients of old send none
  if not port or kind ~= "data" and kind ~= "error" then
    return one:reset()
  end
  local half = halves.by_id[id]
  if not half then
    if halves.count >= HALVES_MAX and not make_room(halves) then
      return one:reset()
    end
    half = { port = port }
    half.late = host.after(WAIT, function()
      forget(halves, id)
      one:reset()
    end)
    halves.by_id[id], halves.count = half, halves.count + 1
  elseif half[kind] or half.port ~= port then
    return one:reset()
  end
  half[kind] = one
  if half.data and half.error then
    forget(halves, id)
    fn { port = port, data = half.data, error = half.error, finished = function() end, pause = function(paused)
      session:pause(paused)
    end }
  end
end


local function run_spdy(link, fn)
  local halves = { by_id = {}, count = 0 }
  local session
  session = spdy.new(link, {
    stream = function(one)
      join(halves, one, session, fn)
    end,
    closed = function()
      for id in pairs(halves.by_id) do
        forget(halves, id)
      end
    end,
  })
  return true
end


-- ---- WebSockets ----

local function tunnel(request, reply, fn)
  local link = {}
  local socket, why
  function link.write(_, bytes) return socket:send(bytes) end
  function link.waiting() return socket:waiting() end
  function link.pause(_, paused) socket:pause(paused) end
  function link.finish() socket:finish() end
  socket, why = websocket.open(request, reply, TUNNEL, {
    message = function(bytes)
      link.on_data(bytes)
    end,
    closed = function()
      link.on_close()
    end,
  })
  if not socket then
    return negotiate.refuse(reply, 400, why)
  end
  return run_spdy(link, fn)
end


-- The ports that a query names. @return table|nil list, or nil and why not
local function ports_of(request)
  local ports = {}
  for _, value in ipairs(request.query.ports or {}) do
    for text in value:gmatch "[^,]+" do
      local port = port_of(text)
      if not port then
        return nil, ("unable to parse %q as a port"):format(text)
      elseif #ports == PORTS_MAX then
        return nil, ("there may be %d ports"):format(PORTS_MAX)
      end
      ports[#ports + 1] = port
    end
  end
  return ports[1] and ports, 'query parameter "port" is required'
end


local function by_channels(request, reply, protocol, fn)
  local ports, wrong = ports_of(request)
  if not ports then
    return negotiate.refuse(reply, 400, wrong)
  end
  local made, left = {}, #ports
  local connection, why = channels.open(request, reply, protocol, { closed = function()
    for _, pair in ipairs(made) do
      pair.data:reset_received()
    end
  end })
  if not connection then
    return negotiate.refuse(reply, 400, why)
  end
  for i, port in ipairs(ports) do
    made[i] = { port = port, data = connection:add(2 * i - 2, "data"), error = connection:add(2 * i - 1, "error"),
      pause = function(paused)
        connection:pause(paused)
      end,
      finished = function() -- the client knows it by the end of the connection alone
        left = left - 1
        if left == 0 then
          connection:finish()
        end
      end }
    made[i].data:write(string.pack("<I2", port))
    made[i].error:write(string.pack("<I2", port))
  end
  for _, pair in ipairs(made) do
    fn(pair)
  end
  return true
end


--- Upgrades the connection; a request that cannot be upgraded is answered.
--- @param fn function(pair), called for each pair of streams
--- @return boolean true
function M.open(request, reply, fn)
  if not websocket.is_asked(request) then
    local link = negotiate.spdy(request, reply, { PROTOCOL })
    return not link or run_spdy(link, fn)
  end
  for _, offered in ipairs(websocket.offered(request)) do
    if offered == TUNNEL then
      return tunnel(request, reply, fn)
    end
    for _, known in ipairs(BY_CHANNELS) do
      if offered == known then
        return by_channels(request, reply, known, fn)
      end
    end
  end
  return negotiate.refuse(reply, 403, "unable to upgrade: none of the offered protocols is known")
end


return M
