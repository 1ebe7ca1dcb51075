--- Posts to webhooks, those of admission and those that convert: their URL, their Service, and what went wrong in the
--- words of Go's client.
---
--- A webhook is { config = its clientConfig, seconds = how long to wait for it }; its client is kept in it, with its
--- connections. A request that posts waits on its Lua thread, and others are served meanwhile.
--- Rules and wordings: apiserver/pkg/util/webhook/client.go, client-go/rest/request.go, apimachinery/pkg/api/errors.
local clean_path = require "cluster.apiserver.clean_path"
local endpoints = require "cluster.apiserver.network.endpoints"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local store = require "cluster.apiserver.store"

local M = {}

local SERVICE = { api_version = "v1", kind = "Service" }
local NO_MODULE = "nothing is called in moonloop test but webhooks of the script; leave out what asks for it"

-- Where webhooks are that are called in this process, by M.inside: cluster/host/local_webhooks.c.
local INSIDE = "https://scripts.moonloop.dev/"

--- nil, or function(path, review) → code, content type, body; see cluster/register.lua.
M.inside = nil

-- client-go's words for an answer with such a code.
local ANSWERS = {
  [400] = "the server rejected our request for an unknown reason",
  [401] = "the server has asked for the client to provide credentials",
  [404] = "the server could not find the requested resource",
  [405] = "the server does not allow this method on the requested resource",
  [409] = "the server reported a conflict",
  [422] = "the server rejected our request due to an error in our request",
  [429] = "the server has received too many requests and has asked us to try again later",
  [503] = "the server is currently unable to handle the request",
  [504] = "the server was unable to return a response in the time allotted, but may still be processing the request",
}


local function answer_error(code, content_type, body)
  local is_text = content_type == "" or content_type:find "^text/"
  if ANSWERS[code] then
    return ANSWERS[code]
  elseif code >= 500 then
    return ("an error on the server (%s) has prevented the request from succeeding"):format(
      field.quote(is_text and body:match "^%s*(.-)%s*$" or "unknown"))
  end
  return ("the server responded with the status code %d but did not return more information"):format(code)
end


-- In Go's words, where they are the same thing.
local function network_error(why, timed_out, place)
  if timed_out then
    return "context deadline exceeded"
  elseif why:find("refused", 1, true) then
    return ("dial tcp %s: connect: connection refused"):format(place)
  elseif why:find("unable to get local issuer", 1, true) or why:find("self-signed", 1, true)
    or why:find("unknown authority", 1, true) then
    return "tls: failed to verify certificate: x509: certificate signed by unknown authority"
  end
  return why
end


-- A place behind the Service's port. @return string|nil address:port, or nil and why there is none
local function place_of(server, service)
  local entry = server.store:get("services", service.namespace, service.name)
  if not entry then
    return nil, ("service %s not found"):format(field.quote(service.name))
  end
  for _, port in ipairs(store.object(SERVICE, entry).spec.ports or {}) do
    if port.port == service.port then
      local found = endpoints.of_port(endpoints.slices(server, service.namespace, service.name), port)
      if #found == 0 then
        return nil, ("no endpoints available for service %s"):format(field.quote(service.name))
      end
      local one = found[host.random(#found) + 1]
      return ("%s:%d"):format(one.address, one.port)
    end
  end
  return nil, ("no service port %d found for service %s"):format(service.port, field.quote(service.name))
end


-- The client of a webhook: it keeps its connections as long as the configuration is the same.
local function client_of(hook, library)
  if not hook.client then
    local config, name = hook.config, nil
    if config.service then
      name = ("%s.%s.svc"):format(config.service.name, config.service.namespace)
    end
    local bundle = config.caBundle and host.base64.decode(config.caBundle)
    hook.client = library.client { ca = bundle ~= "" and bundle or nil, server_name = name }
  end
  return hook.client
end


-- Where a webhook is: the URL to show, the URL to dial, its address and the name of its host, if that is another one.
local function target(hook, server)
  local config, query = hook.config, ("?timeout=%ds"):format(hook.seconds)
  if config.url then
    local name = config.url:match "^%w+://([^/]*)" -- validation leaves neither a user nor a query
    local place = name:find ":%d+$" and name or name .. ":443"
    local start, path = config.url:match "^(%w+://[^/]*)(.*)$"
    local url = start .. clean_path("/" .. path) .. query
    return { printed_url = url, url = url, place = place }
  end
  local service = config.service
  local path = clean_path("/" .. (service.path or "")) .. query
  local name = ("%s.%s.svc:%d"):format(service.name, service.namespace, service.port)
  local place, why = place_of(server, service)
  return {
    printed_url = "https://" .. name .. path, url = place and "https://" .. place .. path,
    place = place, host = name, why = why,
  }
end


--- Sends a review; the request waits for the answer.
--- @param hook table a webhook  @param review table what is sent, as JSON
--- @return string|nil body of the answer; nil and why the webhook could not be called
function M.post(hook, server, review)
  local library, url = package.loaded["cluster.http"], hook.config.url
  local is_inside = M.inside and url and url:sub(1, #INSIDE) == INSIDE
  if not library and not is_inside then
    return nil, NO_MODULE
  end
  local to = target(hook, server)
  local code, content_type, body
  if is_inside then
    code, content_type, body = M.inside(url:sub(#INSIDE), review)
  elseif to.url then
    code, content_type, body = client_of(hook, library):post(to.url, host.json.encode(review), hook.seconds, to.host)
  end
  if not code then
    local why = to.why or network_error(content_type, body, to.place)
    return nil, ('Post "%s": %s'):format(to.printed_url, why)
  elseif code < 200 or code > 299 then
    return nil, answer_error(code, content_type, body)
  end
  return body
end


return M
