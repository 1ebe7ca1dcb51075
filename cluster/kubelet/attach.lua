--- Attachments to a container: clients that get what its first process prints from now on, and that write its standard
--- input, where it has one (`kubectl attach`, `kubectl run -i`).
---
--- Rules: kubernetes core/v1 Container (stdin, stdinOnce, tty); containerd's CRI for what follows when a client ends
--- its input: with stdinOnce the container reads the end of its input, otherwise nothing.
local host = require "cluster.host"
local output = require "cluster.kubelet.output"

local M = {}

local Attachment = {}
Attachment.__index = Attachment

--- Seconds that a client that reads nothing can hold the container up. Then it is cut off: a container runtime waits
--- for it as long as its connection lives.
M.PAUSE_MAX = 30


-- A new list: this may be called by one who is being told.
local function remove(self)
  local others = {}
  for _, other in ipairs(self.handle.attachments) do
    if other ~= self then
      others[#others + 1] = other
    end
  end
  self.handle.attachments = others
end


local function let_go(self)
  self.is_closed = true
  remove(self)
  if self.timer then
    self.timer:stop()
    self.timer = nil
  end
  output.release(self.handle, self)
end


--- @param handle table of process_runtime.lua
--- @param options table
---   stdin    bool: the client writes input, or may; nil: it does if it ever does
---   output   fn(bytes), which is called from the loop
---   errors   fn(bytes) for standard error, where the container has one of its own: with stdin and without tty;
---            nil: all comes to output
---   drained  fn() once less than 64 KiB of input wait again; may be nil
---   ended    fn(how) once, after the last output, unless it was closed: how = { code =, signo =, started =,
---            message = } of the container, or { is_cut = true, message = } when the client was cut off
--- @return table|nil attachment, or nil and why not
function M.add(handle, options)
  if handle.is_over then
    return nil, "the container does not run"
  end
  local self = setmetatable({ handle = handle, options = options, had_input = options.stdin or false }, Attachment)
  table.insert(handle.attachments, self)
  return self
end


--- Passes on what the container printed. @param name string "output" or "errors"
function M.broadcast(handle, name, bytes)
  for _, attachment in ipairs(handle.attachments) do
    if not attachment.is_closed then
      (attachment.options[name] or attachment.options.output)(bytes)
    end
  end
end


--- Input that waited was read.
function M.drained(handle)
  for _, attachment in ipairs(handle.attachments) do
    if attachment.options.drained and not attachment.is_closed then
      attachment.options.drained()
    end
  end
end


--- The container has ended.
function M.over(handle, how)
  for _, attachment in ipairs(handle.attachments) do
    if not attachment.is_closed then
      let_go(attachment)
      attachment.options.ended { code = how.code, signo = how.signal, started = how.started, message = how.message }
    end
  end
end


--- @return integer|nil waiting bytes that wait in this process; 0 when the container reads none; nil when more than
---   4 MiB would: nothing was taken then
function Attachment:write(bytes)
  if self.is_closed or self.is_input_over then
    return 0
  end
  self.had_input = true
  return self.handle.process:write(bytes)
end


--- The client writes no more; it still gets output.
function Attachment:end_input()
  if self.is_input_over or self.is_closed then
    return
  end
  self.is_input_over = true
  if self.handle.run.container.stdinOnce then
    self.handle.process:end_input()
  end
end


--- Sets the size of the container's terminal, if it has one.
function Attachment:resize(columns, rows)
  if not self.is_closed then
    self.handle.process:resize(columns, rows)
  end
end


--- While an attachment is paused, the container's output stays where it is, and it waits: for PAUSE_MAX at most.
function Attachment:pause(paused)
  if self.is_closed or paused == (self.timer ~= nil) then
    return
  elseif not paused then
    self.timer:stop()
    self.timer = nil
    return output.release(self.handle, self)
  end
  output.hold(self.handle, self)
  self.timer = host.after(M.PAUSE_MAX, function()
    self:close()
    self.options.ended {
      is_cut = true, message = ("the client has read nothing for %g seconds"):format(M.PAUSE_MAX),
    }
  end)
end


--- Detaches; the container goes on, and nothing is called any more.
function Attachment:close()
  if self.is_closed then
    return
  elseif self.had_input then
    self:end_input()
  end
  let_go(self)
end


return M
