--- Passes the answer of a pod on to the client, piece by piece, as fast as the client reads: the pod has to wait
--- while 1 MiB waits here. A client that reads nothing for a minute meanwhile is cut.
---
--- Rules and wordings: apimachinery/pkg/util/proxy/transport.go, Go's net/http/httputil (ReverseProxy).
local fields = require "cluster.apiserver.proxy.fields"
local host = require "cluster.host"
local html = require "cluster.apiserver.proxy.html"
local links = require "cluster.apiserver.proxy.links"
local respond = require "cluster.apiserver.respond"
local status = require "cluster.apiserver.status"
local urls = require "cluster.apiserver.proxy.urls"

local M = {}
M.__index = M

local WAITING_MAX = 1024 * 1024 -- bytes that wait for the client before the pod has to
local LOOK_FIRST, LOOK_MOST = 0.01, 1 -- seconds until it is seen whether it has read, then twice that, and so on
local PATIENCE = 60 -- seconds in which it has to read something

-- How Go says what may happen. Others are in the HTTP client's own words.
local CONNECT_ERRORS = {
  ["connection refused"] = "connect: connection refused", ["no route to host"] = "connect: no route to host",
  ["network is unreachable"] = "connect: network is unreachable",
}


local function in_words(why, kind, place)
  for cause, words in pairs(CONNECT_ERRORS) do
    if why:find("^connect to ") and why:find(cause, 1, true) then
      return ("dial tcp %s: %s"):format(place, words)
    end
  end
  if kind == "timeout" then
    return ("dial tcp %s: i/o timeout"):format(place)
  elseif why:find("closed without an answer", 1, true) then
    return "EOF"
  end
  return why
end


--- @param request table  @param reply table that of the request
--- @param via table { prefix =, place =, host =, dialed = the place with its port }
function M.new(request, reply, via)
  return setmetatable({ request = request, reply = reply, via = via }, M)
end


--- Nothing has been begun: the client gets why.
function M:fail(why, kind)
  respond.failure(self.request, self.reply, status.unavailable(
    "error trying to reach service: " .. in_words(why, kind, self.via.dialed)))
end


-- Nothing comes any more.
function M:leave()
  self.is_over = true
  if self.timer then
    self.timer:stop()
  end
  self.call:cancel()
end


-- The client has gone, or is given up.
function M:cut()
  self:leave()
  self.reply:abort()
end


-- Location leads through the proxy. @return boolean whether it could be read
local function rewrite_location(self, headers)
  local location = headers.Location and headers.Location[1]
  if not location or location == "" then
    return true
  end
  local link, why = links.rewrite(location, self.via)
  if not link then
    self:leave()
    respond.failure(self.request, self.reply, status.internal(
      ('error trying to parse Location header: parse %q: %s'):format(location, why)))
    return false
  end
  headers.Location = link
  return true
end


-- True if the answer is a page whose links are rewritten. A compressed page stays as it is.
local function is_page(self, headers, content_type)
  local kind = (content_type or ""):match "^%s*([^;%s]*)"
  return kind == "text/html" and not headers.Location and not headers["Content-Encoding"]
    and self.request.method ~= "HEAD"
end


function M:head(code, list)
  local headers, content_type = fields.incoming(list)
  if not rewrite_location(self, headers) then
    return
  end
  if is_page(self, headers, content_type) then
    headers["Content-Length"] = nil
    self.page = html.new(function(link)
      return links.rewrite(link, self.via)
    end)
  elseif code == 204 then
    headers["Content-Length"] = nil
  end
  self.has_begun = true
  self.reply:start(code, content_type, headers)
end


-- Has the client read? Then the pod may go on.
-- @param waiting integer bytes that waited when it last had  @param since number when that was
local function look_after(self, seconds, waiting, since)
  self.timer = host.after(seconds, function()
    local now = self.reply:write ""
    if now < WAITING_MAX then
      self.is_waiting = false
      self.call:pause(false)
    elseif now < waiting then
      look_after(self, math.min(seconds * 2, LOOK_MOST), now, host.monotonic())
    elseif host.monotonic() - since >= PATIENCE then
      host.log("warn", "an answer through the proxy was cut: its client does not read", { path = self.request.path })
      self:cut()
    else
      look_after(self, math.min(seconds * 2, LOOK_MOST), waiting, since)
    end
  end)
end


function M:data(bytes)
  local waiting = self.reply:write(self.page and self.page:feed(bytes) or bytes)
  if waiting >= WAITING_MAX and not self.is_waiting then
    self.is_waiting = true
    self.call:pause(true)
    look_after(self, LOOK_FIRST, waiting, host.monotonic())
  end
end


function M:done(why, kind)
  self.is_over = true
  if self.timer then
    self.timer:stop()
  end
  if not self.has_begun then
    self.reply.on_close = nil
    return self:fail(why or "EOF", kind)
  elseif why then
    return self.reply:abort() -- a regular end would make it look complete
  end
  if self.page then
    self.reply:write(self.page:finish())
  end
  self.reply:finish()
end


--- Sends the request.
--- @param client userdata of cluster.http  @param url table { scheme =, path =, query = }
function M:send(client, url)
  local request = self.request
  local call, why = client:request {
    method = request.method,
    url = ("%s://%s%s%s"):format(url.scheme, self.via.place, urls.escape(url.path),
      url.query ~= "" and "?" .. url.query or ""),
    headers = fields.outgoing(request, self.via),
    body = request.body,
    connect_seconds = 30,
    head = function(code, list) self:head(code, list) end,
    data = function(bytes) self:data(bytes) end,
    done = function(...) self:done(...) end,
  }
  if not call then
    return self:fail(why)
  end
  self.call = call
  self.reply.on_close = function()
    self:leave()
  end
end


return M
