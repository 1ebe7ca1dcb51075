--- `kubectl exec` and `attach`: passes bytes between a client and a process, and tells the client how that ended.
---
--- Rules and wordings: kubelet/pkg/cri/streaming/remotecommand (exec.go, attach.go, httpstream.go).
local host = require "cluster.host"
local status = require "cluster.apiserver.status"
local stream = require "cluster.apiserver.streams.stream"
local streams = require "cluster.apiserver.streams"

local M = {}

local GRACE = 2 -- seconds that a command has to end when its client has gone
local SIDE_MAX = 0xffff -- rows and columns of a terminal

local TEXT = "text/plain; charset=utf-8"
local NOTHING_ASKED = "you must specify at least 1 of stdin, stdout, stderr"


-- The client's Status at the end: the exit code, or why the command did not run. @param how table see Handle:exec
local function outcome(how)
  if not how.started then
    return status.internal("error executing command in container: " .. how.message)
  elseif how.code == 0 then
    return { metadata = {}, status = "Success" }
  end
  return {
    metadata = {},
    status = "Failure",
    message = "command terminated with non-zero exit code: exit status " .. how.code,
    reason = "NonZeroExitCode",
    details = { causes = host.json.array { { reason = "ExitCode", message = tostring(how.code) } } },
  }
end


-- A function that passes output on to a stream, and holds the sender while its client does not read.
-- @param pause function(paused)
local function passes_on(to, pause)
  local is_held = false
  return function(bytes)
    if to:write(bytes) > stream.WAITING_MAX and not is_held then
      is_held = true
      pause(true)
      to:when_drained(function()
        is_held = false
        pause(false)
      end)
    end
  end
end


local function side(value)
  return math.type(value) == "integer" and value > 0 and value <= SIDE_MAX and value or nil
end


-- Passes input and sizes of the terminal on. @param process table of Handle:exec or Handle:attach
local function pass_input(session, process)
  local stdin, resize = session.stdin, session.resize
  if stdin then
    stdin:listen {
      data = function(bytes)
        local waiting = process:write(bytes)
        if not waiting then -- a client that sends on in one piece, however much that is
          session:finish(status.internal "more input was sent than could be kept")
        elseif waiting > stream.WAITING_MAX then
          session:pause(true)
        end
      end,
      ended = function()
        process:end_input()
      end,
    }
  end
  if resize then
    resize:listen { data = function(bytes)
      local size = host.json.decode(bytes)
      local columns, rows = side(size and size.Width), side(size and size.Height)
      if columns and rows then
        process:resize(columns, rows)
      end
    end }
  end
end


-- Opens the streams that the options ask for.
local function open(request, reply, options, fn)
  if not (options.stdin or options.stdout or options.stderr) then
    reply:send(400, TEXT, NOTHING_ASKED)
    return true
  end
  return streams.remote_command(request, reply, {
    stdin = options.stdin, stdout = options.stdout, stderr = options.stderr and not options.tty, tty = options.tty,
  }, fn)
end


-- Connects the client with a process, for exec and attach. @param begin function(ways) -> process | nil, why
local function run(session, begin, leave)
  local process, why, is_over
  local holds = 0 -- streams whose client does not read
  local function pause(paused)
    local before = holds
    holds = holds + (paused and 1 or -1)
    if process and not is_over and (before == 0 or holds == 0) then
      process:pause(holds > 0)
    end
  end
  process, why = begin {
    output = session.stdout and passes_on(session.stdout, pause) or function() end,
    errors = session.stderr and passes_on(session.stderr, pause) or function() end,
    drained = function()
      session:pause(false)
    end,
    ended = function(status_of_end)
      is_over = true
      session:finish(status_of_end)
    end,
  }
  if not process then
    session:finish(status.internal(why))
    return
  end
  pass_input(session, process)
  function session.on_close()
    if not is_over then
      is_over = true
      leave(process)
    end
  end
end


--- Runs a command in a running container. @param handle table of the runtime, see process_runtime.lua
function M.exec(request, reply, handle, options)
  return open(request, reply, options, function(session)
    run(session, function(ways)
      local process, why = handle:exec {
        command = options.command or {},
        stdin = options.stdin,
        tty = options.tty,
        output = ways.output,
        errors = ways.errors,
        drained = ways.drained,
        ended = function(how)
          ways.ended(outcome(how))
        end,
      }
      return process, why and "error executing command in container: " .. why
    end, function(process)
      process:stop(GRACE)
    end)
  end)
end


--- Shows what a running container says from now on, and lets the client write to it if it reads.
function M.attach(request, reply, handle, options)
  return open(request, reply, options, function(session)
    run(session, function(ways)
      local attachment, why = handle:attach {
        stdin = options.stdin,
        output = ways.output,
        errors = ways.errors,
        drained = ways.drained,
        ended = function(how)
          ways.ended(how.is_cut and status.internal("error attaching to container: " .. how.message)
            or { metadata = {}, status = "Success" })
        end,
      }
      return attachment, why and "error attaching to container: " .. why
    end, function(attachment)
      attachment:close()
    end)
  end)
end


--- Says why there is no container, as the client expects it: in the upgraded connection, if that is a WebSocket.
function M.refuse(request, reply, options, message)
  if not streams.is_websocket(request) then
    reply:send(500, TEXT, message)
    return true
  end
  return open(request, reply, options, function(session)
    session:finish(status.internal("unable to upgrade connection: " .. message))
  end)
end


return M
