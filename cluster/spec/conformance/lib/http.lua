--- Requests to a server over HTTPS, one after the other over one connection, and watches, each by a curl of its own.
--- Nothing here knows of HTTP more than a header's form.
local hostlua = require "hostlua"

local files = require "cluster.spec.conformance.lib.files"
local kubeconfig = require "cluster.spec.conformance.lib.kubeconfig"

local M = {}
M.__index = M

local POLL = 0.02
local HEADERS_WITHIN = 15


--- A transport to the server of a kubeconfig file.
---@param path string
function M.new(path)
  local self = setmetatable(kubeconfig.read(path), M)
  self.kubeconfig = path
  self.folder = files.folder()
  files.write(self.folder .. "/ca.pem", self.ca)
  return self
end


--- Removes its files.
function M:close()
  files.remove(self.folder)
end


--- Lets the server work for so many seconds.
function M.pass(_, seconds)
  files.sleep(seconds)
end


-- One option a line, as curl reads them from a file.
local function option(name, value)
  return ('%s = "%s"'):format(name, (value:gsub('[\\"]', "\\%0"):gsub("\n", "\\n")))
end


-- The lines of a request's head, as curl takes them: "Name:" leaves out what it would send.
local function header_lines(self, request)
  local headers = { ["user-agent"] = "conformance", authorization = self.token and "Bearer " .. self.token }
  for name, value in pairs(request.headers) do
    headers[name] = value ~= "none" and value or false
  end
  local lines = { "Expect:" }
  for name, value in pairs(headers) do
    lines[#lines + 1] = value and name .. ": " .. value or name .. ":"
  end
  return lines
end


-- Status code and headers; headers that come twice are joined by a line end.
local function read_head(text)
  local code = math.tointeger(tonumber(text:match("^HTTP/[%d.]+ (%d+)")))
  local headers = {}
  for name, value in text:gmatch("\n([^:\r\n]+): *([^\r\n]*)") do
    name = name:lower()
    headers[name] = headers[name] and headers[name] .. "\n" .. value or value
  end
  return code, headers
end


--- Sends a request and waits for all of the answer.
---@param request table method, path, headers and body
---@return table { code =, headers =, body = }
function M:request(request)
  local place = self.folder .. "/request"
  if request.body then
    files.write(place .. ".sent", request.body)
  end
  local answered, why = hostlua.http {
    url = self.server .. request.path, method = request.method, ca = self.folder .. "/ca.pem",
    headers = header_lines(self, request), sent = request.body and place .. ".sent",
    head = place .. ".head", body = place .. ".body",
  }
  if not answered then
    return { code = 0, headers = {}, body = "no answer: " .. why }
  end
  -- An interim answer stands before the one that counts.
  local code, headers = read_head(files.read(place .. ".head"):gsub("^HTTP/[%d.]+ 1%d%d.-\r\n\r\n", ""))
  return { code = code, headers = headers, body = files.read(place .. ".body") }
end


-- The options of a watch, in a file.
function M:options(request, place)
  local lines = {
    option("url", self.server .. request.path), option("request", request.method),
    option("cacert", self.folder .. "/ca.pem"), option("dump-header", place .. ".head"),
    option("output", place .. ".body"),
    "silent", "no-buffer", "globoff", "path-as-is", "http1.1", option("header", "Connection: close"),
  }
  for _, line in ipairs(header_lines(self, request)) do
    lines[#lines + 1] = option("header", line)
  end
  files.write(place .. ".options", table.concat(lines, "\n") .. "\n")
  return files.quote(place .. ".options")
end


local watches = 0

--- Starts a request whose answer is read as it comes. Returns when its head is here.
---@return table stream read() -> text so far, closed() -> bool, stop(), code, headers
function M:stream(request)
  watches = watches + 1
  local place = ("%s/watch-%d"):format(self.folder, watches)
  local pid = files.run(("curl --config %s >/dev/null 2>&1 & echo $!")
    :format(self:options(request, place))):match("%d+")
  local alive = ("kill -0 %s 2>/dev/null"):format(pid)
  local deadline = files.now() + HEADERS_WITHIN
  while not (files.read(place .. ".head") or ""):find("\r\n\r\n", 1, true) and files.now() < deadline do
    files.sleep(POLL)
  end
  local code, headers = read_head(files.read(place .. ".head") or "")
  return {
    code = code or 0,
    headers = headers,
    read = function() return files.read(place .. ".body") or "" end,
    closed = function() return not os.execute(alive) end,
    stop = function() os.execute(("kill %s 2>/dev/null"):format(pid)) end,
  }
end


return M
