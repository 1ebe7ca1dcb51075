--- Answers `GET …/pods/NAME/log` from a log: tail, since, timestamps, limit, follow.
---
--- Existing lines are sent as fast as the client reads; later lines are sent as they come, and a client that does not
--- read them is cut. Rules: kubernetes/pkg/kubelet/kuberuntime/logs/logs.go.
local host = require "cluster.host"

local M = {}

local Answer = {}
Answer.__index = Answer

local PIECE = 64 * 1024 -- bytes of lines that are written at once
local ENOUGH = 1024 * 1024 -- bytes that wait for the client before it is left to read
local LOOK_FIRST, LOOK_MOST = 0.01, 1 -- seconds until it is seen whether it has, then twice that, and so on

-- Bytes of new lines that may wait for a client before it is cut.
local WAITING_MAX = 4 * 1024 * 1024


-- The parts of a kept line: time, whether it ends here, text.
local function parts(line)
  return line:match "^(%S+) (%u) (.*)\n$"
end


-- A line as the client gets it, or nil when it is too old. Times are all in the same form, so they compare as texts.
local function line_text(line, options)
  local time, mark, text = parts(line)
  if not time or (options.since and time < options.since) then
    return nil
  end
  return (options.timestamps and time .. " " or "") .. text .. (mark == "F" and "\n" or "")
end


-- The lines that are there, as an iterator.
local function present(log, options)
  local next_line = log:lines()
  return function()
    for line in next_line do
      local text = line_text(line, options)
      if text then
        return text
      end
    end
  end
end


-- The last `count` of what an iterator gives, as an iterator.
local function last(count, next_text)
  local ring, seen = {}, 0
  if count > 0 then
    for text in next_text do
      ring[seen % count] = text
      seen = seen + 1
    end
  end
  local at = math.max(seen - count, 0)
  return function()
    at = at + 1
    return at <= seen and ring[(at - 1) % count] or nil
  end
end


-- Writes, up to the limit of all. @return integer bytes that wait for the client
function Answer:write(text)
  if self.bytes_left then
    text = text:sub(1, self.bytes_left)
    self.bytes_left = self.bytes_left - #text
  end
  return self.reply:write(text)
end


function Answer:is_full()
  return self.bytes_left == 0
end


-- Nothing is heard, and nothing done any more.
function Answer:leave()
  self.is_over = true
  self.reply.on_close = nil
  self.next_text = nil
  if self.timer then
    self.timer:stop()
  end
  if self.unfollow then
    self.unfollow()
  end
end


function Answer:finish()
  self:leave()
  self.reply:finish()
end


function Answer:on_line(line)
  if self.is_over then
    return -- the log tells many lines at once
  end
  local text = line and line_text(line, self.options)
  local waiting = text and self:write(text) or 0
  if waiting > WAITING_MAX then
    host.log("warn", "a log was cut: its client does not read", { waiting = waiting })
    self:leave()
    self.reply:abort()
  elseif not line or self:is_full() then
    self:finish()
  end
end


-- All that is there has been written.
function Answer:follow()
  if not self.options.follow or self.log.is_closed or self:is_full() then
    self:finish()
    return
  end
  self.unfollow = self.log:follow(function(line)
    self:on_line(line)
  end)
end


-- One piece of what is there. @return string|nil lines, or nil when there are no more
local function take(next_text)
  local lines, size = {}, 0
  while size < PIECE do
    local text = next_text()
    if not text then
      break
    end
    lines[#lines + 1] = text
    size = size + #text
  end
  return lines[1] and table.concat(lines)
end


-- Has the client read? Then it gets more.
local function look_after(self, seconds)
  self.timer = host.after(seconds, function()
    if self:write "" < ENOUGH then
      self:pump()
    else
      look_after(self, math.min(seconds * 2, LOOK_MOST))
    end
  end)
end


-- Writes what is there, as much as the client has room for.
function Answer:pump()
  local waiting = 0
  while waiting < ENOUGH and not self:is_full() do
    local piece = take(self.next_text)
    if not piece then
      break
    end
    waiting = self:write(piece)
  end
  if waiting < ENOUGH then
    self:follow()
  else
    look_after(self, LOOK_FIRST)
  end
end


--- @param log table as from logs.find
--- @param options table { tail = lines, since = "2026-07-03T10:00:00.000000Z", timestamps = bool, limit = bytes,
---   follow = bool }
--- @param reply table as of the server; everything is sent through it
function M.send(log, options, reply)
  local next_text = present(log, options)
  local self = setmetatable({
    log = log,
    options = options,
    reply = reply,
    bytes_left = options.limit,
    next_text = options.tail and last(options.tail, next_text) or next_text,
  }, Answer)
  reply.on_close = function()
    self:leave()
  end
  reply:start(200, "text/plain")
  self:pump()
end


return M
