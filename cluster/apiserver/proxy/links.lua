--- Links of an answer that lead to the pod itself are made to lead through the proxy.
---
--- Rules: apimachinery/pkg/util/proxy/transport.go (rewriteURL).
local urls = require "cluster.apiserver.proxy.urls"

local M = {}


--- @param link string as the pod wrote it
--- @param via table { prefix = path of the proxy, place = "ADDRESS:PORT" of the pod, host = that the client asked }
--- @return string|nil link for the client, or nil and why it cannot be read
function M.rewrite(link, via)
  local url, why = urls.parse(link)
  if not url then
    return nil, why
  end
  local is_elsewhere = url.host ~= "" and url.host ~= via.place and url.host ~= via.host
  if is_elsewhere or url.path:sub(1, 1) ~= "/" then
    return link
  end
  if url.host ~= via.host then
    url.scheme, url.host = "", ""
  end
  if url.path:sub(1, #via.prefix) ~= via.prefix then
    url.path = urls.clean_to_slash(via.prefix .. url.path)
  end
  return urls.text(url)
end


return M
