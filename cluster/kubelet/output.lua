--- Slows down a container's output: it is held back while a reader cannot follow, and the container waits.
--- For process_runtime.lua and attach.lua. `handle` is that of process_runtime.lua.
local host = require "cluster.host"

local M = {}

-- A container that prints without end is slowed down: for each second that we spend on its lines it waits WAIT_SHARE
-- seconds. Waits are added up until they exceed WAIT_LEAST seconds, so that other containers are not slowed down.
local WAIT_SHARE, WAIT_LEAST = 3, 0.01


--- Sets the fields of a handle that this module uses.
function M.begin(handle)
  handle.holds = {} -- who holds its output back
  handle.pause_seconds = 0 -- seconds to wait, as of pause_set_at
  handle.pause_set_at = host.monotonic()
end


--- The output stays where it is until each who holds it has released it. @param who any
function M.hold(handle, who)
  if not handle.is_let_go then
    handle.holds[who] = true
    handle.process:pause(true)
  end
end


function M.release(handle, who)
  handle.holds[who] = nil
  if next(handle.holds) == nil then
    handle.process:pause(false)
  end
end


--- Nobody holds it back any more: it is killed, and its end comes behind its last output.
function M.let_go(handle)
  handle.is_let_go = true
  handle.holds = {}
  handle.process:pause(false)
end


--- Keeps in the log what it printed. @param stream string "output" or "errors"
function M.keep(handle, stream, bytes)
  local start = host.monotonic()
  handle.log:write(bytes, stream)
  local now = host.monotonic()
  handle.pause_seconds = math.max(handle.pause_seconds - (start - handle.pause_set_at), 0) + (now - start) * WAIT_SHARE
  handle.pause_set_at = now
  if handle.pause_seconds > WAIT_LEAST then
    M.hold(handle, handle.log)
    host.after(handle.pause_seconds, function()
      M.release(handle, handle.log)
    end)
  end
end


return M
