-- A webhook's server, as a process: lua5.4 webhook_server.lua FILES [ADDRESS PORT]. FILES.crt and FILES.key are its
-- certificate; FILES.port gets its port, and FILES.PATH.json the last review that was sent to /PATH. Its answer depends
-- on the path.
local cjson = require "cjson"
local mime = require "mime"
local socket = require "socket"
local ssl = require "ssl"

local files = assert(arg[1])
local TLS = { mode = "server", protocol = "any", certificate = files .. ".crt", key = files .. ".key" }
local HEAD = "HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
local hanging = {}


local function write(path, text)
  local file = assert(io.open(path .. ".new", "w"))
  file:write(text)
  file:close()
  assert(os.rename(path .. ".new", path))
end


local function review(request, response)
  response.uid = response.uid or request.uid
  return 200, cjson.encode { apiVersion = "admission.k8s.io/v1", kind = "AdmissionReview", response = response }
end


local function patch(request, operations)
  return review(request, { allowed = true, patchType = "JSONPatch", patch = (mime.b64(cjson.encode(operations))) })
end


-- Boxes of v1 have their place in one text, those of v2 in two.
local function converted(object, api_version)
  local spec = object.spec
  if object.apiVersion:find "/v1$" then
    local row, shelf = spec.place:match "^(.-)/(.*)$"
    object.spec = { row = row, shelf = shelf, unknown = "x" }
  else
    object.spec = { place = spec.row .. "/" .. spec.shelf }
  end
  object.apiVersion = api_version
end


-- Converts objects, and has `change` alter the response.
local function convert(change)
  return function(request, api_version)
    for _, object in ipairs(request.objects) do
      converted(object, request.desiredAPIVersion)
    end
    local response = { uid = request.uid, result = { status = "Success" }, convertedObjects = request.objects }
    if change then
      change(response, request.objects[1])
    end
    return 200, cjson.encode { apiVersion = api_version, kind = "ConversionReview", response = response }
  end
end


local function label(name)
  return function(request)
    local labels = request.object.metadata.labels
    if not labels then
      return patch(request, { { op = "add", path = "/metadata/labels", value = { [name] = "1" } } })
    end
    local value = tostring((tonumber(labels[name]) or 0) + 1)
    return patch(request, { { op = "add", path = "/metadata/labels/" .. name, value = value } })
  end
end


local ANSWERS = {
  allow = function(request) return review(request, { allowed = true }) end,
  deny = function(request)
    return review(request, { allowed = false, status = { code = 403, message = "not today", reason = "Forbidden" } })
  end,
  bare = function(request) return review(request, { allowed = false }) end,
  reason = function(request)
    return review(request, { allowed = false, status = { code = 200, reason = "Because" } })
  end,
  warn = function(request) return review(request, { allowed = true, warnings = { "first \"one\"", "second" } }) end,
  first = label "first",
  second = label "second",
  rename = function(request)
    return patch(request, { { op = "replace", path = "/metadata/name", value = "other" } })
  end,
  move = function(request)
    return patch(request, { { op = "add", path = "/metadata/namespace", value = "default" } })
  end,
  breaks = function(request) return patch(request, { { op = "add", path = "/data", value = 5 } }) end,
  invalid = function(request) return patch(request, { { op = "add", path = "/data", value = { ["a b"] = "c" } } }) end,
  missing = function(request) return patch(request, { { op = "remove", path = "/none/such" } }) end,
  untyped = function(request) return review(request, { allowed = true, patch = "W10=" }) end,
  merge = function(request) return review(request, { allowed = true, patch = "e30=", patchType = "MergePatch" }) end,
  uid = function(request) return review(request, { allowed = true, uid = "another" }) end,
  kind = function(request)
    return 200, cjson.encode { apiVersion = "v1", kind = "Other", response = { allowed = true, uid = request.uid } }
  end,
  absent = function() return 200, cjson.encode { apiVersion = "admission.k8s.io/v1", kind = "AdmissionReview" } end,
  garbage = function() return 200, "garbage" end,
  error = function() return 500, "it broke\n" end,
  notfound = function() return 404, "no" end,
  close = function() end,
  convert = convert(),
  convertlabels = convert(function(_, object)
    object.metadata.labels, object.metadata.annotations = { l = "1" }, cjson.null
    object.metadata.creationTimestamp = "2001-01-01T00:00:00Z"
  end),
  convertuid = convert(function(response) response.uid = "another" end),
  convertfailure = convert(function(response) response.result = { status = "Failure", message = "no boxes today" } end),
  convertsilent = convert(function(response) response.result = { status = "Failure" } end),
  convertnothing = convert(function(response) response.convertedObjects = nil end),
  convertversion = convert(function(_, object) object.apiVersion = "other.io/v7" end),
  convertkind = convert(function(_, object) object.kind = "Bag" end),
  convertname = convert(function(_, object) object.metadata.name = "b" end),
  convertmeta = convert(function(_, object) object.metadata.labels = { ["a b"] = "c" } end),
  convertnumber = convert(function(_, object) object.metadata.labels = { a = 1 } end),
}


local function read_request(client)
  local path = (client:receive() or ""):match "^POST /([^?%s]*)"
  local length = 0
  repeat
    local line = client:receive() or ""
    length = tonumber(line:lower():match "^content%-length:%s*(%d+)") or length
  until line == ""
  return path, client:receive(length)
end


local function answer(client)
  local path, body = read_request(client)
  if not body then
    return
  end
  write(("%s.%s.json"):format(files, path), body)
  if path == "hang" then
    hanging[#hanging + 1] = client
    return true
  end
  local sent = cjson.decode(body)
  local code, text = ANSWERS[path](sent.request, sent.apiVersion)
  if code then
    client:send(HEAD:format(code, #text) .. text)
  end
end


local server = assert(socket.bind(arg[2] or "127.0.0.1", arg[3] or 0))
write(files .. ".port", select(2, server:getsockname()) .. "\n")
while true do
  local client = assert(server:accept())
  client:settimeout(5)
  local secure = ssl.wrap(client, TLS)
  if secure and secure:dohandshake() and not answer(secure) then
    secure:close()
  end
end
