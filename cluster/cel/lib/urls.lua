--- Kubernetes' library of URLs.
---
--- Rules: apiserver/pkg/cel/library/urls.go.
local types = require "cluster.cel.types"
local urls = require "cluster.cel.urls"
local values = require "cluster.cel.values"

local M = {}

local TYPE = types.object "kubernetes.URL"
M.short = { url = TYPE }

local URL = values.class "kubernetes.URL"
URL.type = TYPE


function URL:equal(other)
  return self.text == other.text
end


URL.__tostring = function(url)
  return url.text
end


local function to_url(text)
  local url, message = urls.read(text)
  if not url then
    return nil, "URL parse error during conversion from string: " .. message
  end
  url.text = text
  return setmetatable(url, URL)
end


local function query(url)
  local keys, lists = urls.parameters(url)
  local items = {}
  for key, list in pairs(lists) do
    items[key] = values.list(list)
  end
  return values.map(keys, items)
end


--- Adds them.
function M.add(functions)
  functions:add("url", "string_to_url", "(string) -> url", to_url)
  functions:add("isURL", "is_url_string", "(string) -> bool", function(text)
    return urls.read(text) ~= nil
  end)
  functions:add("getScheme", "url_get_scheme", "url.() -> string", function(url)
    return url.scheme
  end)
  functions:add("getHost", "url_get_host", "url.() -> string", function(url)
    return url.host
  end)
  functions:add("getHostname", "url_get_hostname", "url.() -> string", urls.hostname)
  functions:add("getPort", "url_get_port", "url.() -> string", urls.port)
  functions:add("getEscapedPath", "url_get_escaped_path", "url.() -> string", urls.escaped_path)
  functions:add("getQuery", "url_get_query", "url.() -> map(string, list(string))", query)
end


return M
