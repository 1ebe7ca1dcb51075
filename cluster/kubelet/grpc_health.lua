--- Asks a server for its health by gRPC: grpc.health.v1.Health/Check, over HTTP/2 without TLS.
---
--- Rules and wordings: kubernetes/pkg/probe/grpc; google.golang.org/grpc (internal/transport/http2_client.go, codes).
local host = require "cluster.host"

local M = {}

local PATH <const> = "/grpc.health.v1.Health/Check"
local ANSWER_MAX <const> = 64 * 1024
local PREFIX <const> = 5 -- bytes in front of a message: whether it is compressed, and its length
local USER_AGENT <const> = "kube-probe/1.36"
local AGAIN <const> = 1 -- seconds until a server that could not be reached is tried again
local UNIMPLEMENTED <const>, DEADLINE_EXCEEDED <const> = 12, 4
local NO_TYPE <const> = "malformed header: missing HTTP content-type"

local CODES = {
  [0] = "OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists",
  "PermissionDenied", "ResourceExhausted", "FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented", "Internal",
  "Unavailable", "DataLoss", "Unauthenticated",
}
local UNKNOWN <const>, INTERNAL <const>, UNAVAILABLE <const> = 2, 13, 14
-- The statuses of HTTP that answers have which are none of gRPC: their texts, and the codes that they stand for.
local OF_HTTP = {
  [200] = { "OK", UNKNOWN }, [400] = { "Bad Request", INTERNAL }, [401] = { "Unauthorized", 16 },
  [403] = { "Forbidden", 7 }, [404] = { "Not Found", UNIMPLEMENTED }, [405] = { "Method Not Allowed", UNKNOWN },
  [415] = { "Unsupported Media Type", UNKNOWN }, [429] = { "Too Many Requests", UNAVAILABLE },
  [500] = { "Internal Server Error", UNKNOWN }, [502] = { "Bad Gateway", UNAVAILABLE },
  [503] = { "Service Unavailable", UNAVAILABLE }, [504] = { "Gateway Timeout", UNAVAILABLE },
}

local SERVING <const> = 1
local STATUSES = { [0] = "UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN" }


local function varint(number)
  local bytes = {}
  while number > 127 do
    bytes[#bytes + 1] = string.char(number & 127 | 128)
    number = number >> 7
  end
  return table.concat(bytes) .. string.char(number)
end


-- The message HealthCheckRequest, with its length in front.
local function request_of(service)
  local message = service ~= "" and "\x0a" .. varint(#service) .. service or ""
  return string.pack(">Bs4", 0, message)
end


-- @return integer|nil, integer the next position
local function read_varint(text, at)
  local number, shift = 0, 0
  while true do
    local byte = text:byte(at)
    if not byte or shift > 63 then
      return nil, at
    end
    number, shift, at = number | (byte & 127) << shift, shift + 7, at + 1
    if byte < 128 then
      return number, at
    end
  end
end


-- Passes over a field of a message that is no varint. @param wire integer its type
-- @return integer|nil the position behind it
local function skip(text, at, wire)
  if wire == 1 or wire == 5 then
    return at + (wire == 1 and 8 or 4)
  elseif wire == 2 then
    local size
    size, at = read_varint(text, at)
    return size and size >= 0 and size <= #text and at + size or nil
  end
end


-- The status in a message HealthCheckResponse, or nil where it is none.
local function status_in(message)
  local status, at = 0, 1
  while at <= #message do
    local tag, value
    tag, at = read_varint(message, at)
    if tag and tag & 7 == 0 then
      value, at = read_varint(message, at)
      status = tag >> 3 == 1 and value or status
      at = value and at
    else
      at = tag and skip(message, at, tag & 7)
    end
    if not at or at > #message + 1 then
      return nil
    end
  end
  return status
end


local function field(fields, name)
  for _, entry in ipairs(fields) do
    if entry[1]:lower() == name then
      return entry[2]
    end
  end
end


local function decoded(text)
  return (text:gsub("%%(%x%x)", function(digits)
    return string.char(tonumber(digits, 16))
  end))
end


-- Of an answer that does not come from a server of gRPC: code and text of its error.
local function problem_of_http(code, type)
  local known = OF_HTTP[code] or { "", UNKNOWN }
  return known[2], ("unexpected HTTP status code received from server: %d (%s); %s"):format(code, known[1],
    type and ("transport: received unexpected content-type %q"):format(type) or NO_TYPE)
end


-- The error of a call that has ended: code and text; nil where it has a message.
local function problem_of(answer, why)
  local type, code = field(answer.fields, "content-type"), field(answer.fields, "grpc-status")
  if not (type and (type .. ";"):find "^application/grpc[;+]") then
    return problem_of_http(answer.code, type)
  elseif not code then
    return why and UNAVAILABLE or INTERNAL, why or "server closed the stream without sending trailers"
  end
  local number = math.tointeger(tonumber(code)) or UNKNOWN
  if number ~= 0 then
    return number, decoded(field(answer.fields, "grpc-message") or "")
  elseif #answer.body < PREFIX then
    return INTERNAL, "cardinality violation: received no response message from non-server-streaming RPC"
  end
end


-- A time in whole seconds as Go writes it.
local function duration(seconds)
  local hours, minutes = seconds // 3600, seconds // 60 % 60
  return (hours > 0 and hours .. "h" or "") .. (seconds >= 60 and minutes .. "m" or "") .. seconds % 60 .. "s"
end


-- @return boolean, string  as `fn` of M.check gets them
local function verdict(answer, why, seconds)
  local code, text = problem_of(answer, why)
  if code == UNIMPLEMENTED then
    return false, "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): " .. text
  elseif code == DEADLINE_EXCEEDED then
    return false, ("timeout: health rpc did not complete within %s"):format(duration(seconds))
  elseif code then
    return false, ("error: health rpc probe failed: rpc error: code = %s desc = %s"):format(
      CODES[code] or ("Code(%d)"):format(code), text)
  end
  local status = status_in(answer.body:sub(PREFIX + 1))
  if not status then
    return false, "error: health rpc probe failed: rpc error: code = Internal desc = grpc: failed to unmarshal the "
      .. "received message"
  end
  return status == SERVING, ('service unhealthy (responded with "%s")'):format(STATUSES[status] or status)
end


-- Sends the request once. `over` gets the answer, nil where there was no connection, and why it did not end regularly.
-- @return table|nil the call; nil where too many are under way
local function send(target, service, over)
  local answer
  return (require("cluster.http").client({}):request {
    method = "POST", url = "http://" .. target .. PATH, body = request_of(service), http2 = true,
    headers = { ["Content-Type"] = "application/grpc", ["TE"] = "trailers", ["User-Agent"] = USER_AGENT },
    connect_seconds = 0,
    head = function(code, fields)
      answer = { code = code, fields = fields, body = "" }
    end,
    data = function(bytes)
      answer.body = (answer.body .. bytes):sub(1, ANSWER_MAX)
    end,
    done = function(problem)
      over(answer, problem)
    end,
  })
end


--- Asks once, and tries again to connect as long as nothing listens: the server may be about to start.
--- @param address string  @param port integer  @param service string? which of the server's; "": all of it
--- @param seconds integer that all may take
--- @param fn function(ok, message), called once from the loop; message: why the server is not healthy
function M.check(address, port, service, seconds, fn)
  local target = ("%s:%d"):format(address, port)
  local call, again, deadline, attempt

  local function answered(ok, message)
    deadline:stop()
    fn(ok, message)
  end

  function attempt()
    call = send(target, service or "", function(answer, problem)
      call = nil
      if answer then
        answered(verdict(answer, problem, seconds))
      else
        again = host.after(AGAIN, attempt)
      end
    end)
    again = not call and host.after(AGAIN, attempt) or nil
  end

  deadline = host.after(seconds, function()
    if call then
      call:cancel()
      return fn(false, ("timeout: health rpc did not complete within %s"):format(duration(seconds)))
    end
    again:stop()
    fn(false, ("timeout: failed to connect service %q within %s: context deadline exceeded"):format(target,
      duration(seconds)))
  end)
  attempt()
end


return M
