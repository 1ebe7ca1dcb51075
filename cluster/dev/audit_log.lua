--- A line of JSON for each request, as kube-apiserver writes its audit log at level Metadata.
---
--- Rules: apiserver/pkg/apis/audit/v1/types.go.
local host = require "cluster.host"

local M = {}


local function timestamp(seconds)
  local whole = math.floor(seconds)
  return os.date("!%Y-%m-%dT%H:%M:%S", whole) .. (".%06dZ"):format(math.floor((seconds - whole) * 1e6))
end


-- The name of what a create makes is in its answer, and of one that failed in what was sent.
local function name_of(record)
  if record.name or record.verb ~= "create" then
    return record.name
  end
  for _, text in ipairs { record.answer or "", record.body or "" } do
    local object = text:sub(1, 1) == "{" and host.json.decode(text)
    local name = object and object.kind ~= "Status" and object.metadata and object.metadata.name
    if name then
      return name
    end
  end
end


local function event_of(record)
  local object = record.resource and {
    resource = record.resource,
    namespace = record.namespace,
    name = name_of(record),
    apiGroup = record.group ~= "" and record.group or nil,
    apiVersion = record.version,
    subresource = record.subresource,
  }
  return {
    kind = "Event",
    apiVersion = "audit.k8s.io/v1",
    level = "Metadata",
    auditID = host.uuid(),
    stage = "ResponseComplete",
    requestURI = record.path,
    verb = record.verb or (record.method or ""):lower(),
    user = { username = record.user },
    sourceIPs = host.json.array { "127.0.0.1" },
    userAgent = record.user_agent,
    objectRef = object or nil,
    responseStatus = { metadata = {}, code = record.code },
    annotations = record.annotations,
    requestReceivedTimestamp = timestamp(record.time),
    stageTimestamp = timestamp(host.now()),
  }
end


--- Begins to write. Raises when the file cannot be opened; a full disk loses lines.
function M.start(server, path)
  assert(host.file.make(path)) -- what it has of requests is for nobody else
  local file = assert(io.open(path, "a"))
  file:setvbuf "line"
  server:audit(function(record)
    file:write(host.json.encode(event_of(record)), "\n")
  end)
end


return M
