--- The streams of exec and attach: standard input, output and errors, the size of the terminal, and how it ended.
---
---   session.stdin, stdout, stderr, resize   streams, where they were asked for
---   session:pause(paused)                   what the client sends, all of it
---   session:finish(status)                  says how it ended (a Status), and closes all
---   session.on_close                        to set: the client has gone
---
--- Rules: kubelet/pkg/cri/streaming/remotecommand/{httpstream,websocket}.go.
local channels = require "cluster.apiserver.streams.channels"
local host = require "cluster.host"
local negotiate = require "cluster.apiserver.streams.negotiate"
local spdy = require "cluster.apiserver.streams.spdy"
local websocket = require "cluster.apiserver.streams.websocket"

local M = {}

local Session = {}
Session.__index = Session

local WAIT = 30 -- seconds until a client has opened its streams
local BY_SPDY = { "v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io", "" }
local CHANNELS = { stdin = 0, stdout = 1, stderr = 2, error = 3, resize = 4 }
-- Protocols that tell the end by a Status; older ones have a text, or nothing when all went well.
local WITH_STATUS = { ["v4.channel.k8s.io"] = true, ["v5.channel.k8s.io"] = true, ["v4.base64.channel.k8s.io"] = true }
local WITH_RESIZE = { ["v3.channel.k8s.io"] = true, ["v4.channel.k8s.io"] = true }


function Session:pause(paused)
  self.connection:pause(paused)
end


function Session:finish(status)
  if WITH_STATUS[self.protocol] then
    self.error:write(host.json.encode(status))
  elseif status.status ~= "Success" then
    self.error:write(status.message)
  end
  for name in pairs(CHANNELS) do
    if self[name] then
      self[name]:close()
    end
  end
  self.connection:finish()
end


local function new_session(protocol)
  local self = setmetatable({ protocol = protocol }, Session)
  return self, function()
    if self.on_close then
      self.on_close()
    end
  end
end


-- ---- WebSockets ----

local function pick_protocol(request)
  local offered = websocket.offered(request)
  for _, name in ipairs(offered) do
    if channels.PROTOCOLS[name] then
      return name
    end
  end
  return #offered == 0 and "" or nil
end


local function open_channels(request, reply, wanted, fn)
  local protocol = pick_protocol(request)
  if not protocol then
    return negotiate.refuse(reply, 403, "unable to upgrade: none of the offered protocols is known")
  end
  local session, closed = new_session(protocol)
  local connection, why = channels.open(request, reply, protocol, { closed = closed })
  if not connection then
    return negotiate.refuse(reply, 400, why)
  end
  session.connection = connection
  for name, channel in pairs(CHANNELS) do
    if name == "error" or name == "resize" and wanted.tty or wanted[name] then
      session[name] = connection:add(channel, name)
    end
  end
  connection:greet(wanted.stdout and CHANNELS.stdout or wanted.stderr and CHANNELS.stderr or CHANNELS.error)
  fn(session)
  return true
end


-- ---- SPDY ----

-- How many streams the client is going to open.
local function count_wanted(wanted, protocol)
  local count = 1
  for _, name in ipairs { "stdin", "stdout", "stderr" } do
    count = count + (wanted[name] and 1 or 0)
  end
  return count + (wanted.tty and WITH_RESIZE[protocol] and 1 or 0)
end


local function open_spdy(request, reply, wanted, fn)
  local link, protocol = negotiate.spdy(request, reply, BY_SPDY)
  if not link then
    return true
  end
  local session, closed = new_session(protocol)
  local missing_count = count_wanted(wanted, protocol)
  local late = host.after(WAIT, function()
    session.connection:finish()
  end)
  session.connection = spdy.new(link, {
    stream = function(one)
      if missing_count == 0 or not CHANNELS[one.name or ""] or session[one.name] then
        return one:reset()
      end
      session[one.name] = one
      missing_count = missing_count - 1
      if missing_count == 0 then
        late:stop()
        fn(session)
      end
    end,
    closed = function()
      late:stop()
      closed()
    end,
  })
  return true
end


--- Upgrades the connection; a request that cannot be upgraded is answered.
--- @param wanted table { stdin =, stdout =, stderr =, tty = } booleans
--- @param fn function(session), called once all streams are there: now or later, or never
--- @return boolean true
function M.open(request, reply, wanted, fn)
  if websocket.is_asked(request) then
    return open_channels(request, reply, wanted, fn)
  end
  return open_spdy(request, reply, wanted, fn)
end


return M
