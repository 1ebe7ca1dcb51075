--- Which protocol of streams a client and this server have in common, over SPDY.
---
--- Rules and wordings: apimachinery/pkg/util/httpstream/httpstream.go (Handshake), spdy/upgrade.go.
local M = {}

local TEXT = "text/plain; charset=utf-8"


local function list_of(text)
  local list = {}
  for word in (text or ""):gmatch "[^,%s]+" do
    list[#list + 1] = word
  end
  return list
end


--- Answers a request that cannot be upgraded. @return boolean true: it is answered
function M.refuse(reply, code, message, headers)
  reply:send(code, TEXT, message .. "\n", headers)
  return true
end


--- Answers the handshake of SPDY.
--- @param accepted table of protocols, the best first
--- @return table|nil link for spdy.new, or nil: the request has been answered
--- @return string? protocol
function M.spdy(request, reply, accepted)
  local headers = request.headers
  local connection, upgrade = headers.connection or "", headers.upgrade or ""
  if not connection:lower():find("upgrade", 1, true) or not upgrade:lower():find("spdy/3.1", 1, true) then
    return nil, M.refuse(reply, 400, ("unable to upgrade: missing upgrade headers in request: %s: %s"):format(
      connection, upgrade))
  end
  local offered, protocol = list_of(headers["x-stream-protocol-version"]), nil
  for _, wanted in ipairs(offered) do
    for _, known in ipairs(accepted) do
      protocol = protocol or wanted == known and known or nil
    end
  end
  if not protocol and #offered > 0 then
    return nil, M.refuse(reply, 403, ("unable to upgrade: unable to negotiate protocol: client supports [%s], server "
      .. "accepts [%s]"):format(table.concat(offered, " "), table.concat(accepted, " ")),
      { ["X-Accepted-Stream-Protocol-Versions"] = table.concat(accepted, ", ") })
  end
  local ok, why = reply:upgrade {
    Connection = "Upgrade", Upgrade = "SPDY/3.1", ["X-Stream-Protocol-Version"] = protocol,
  }
  if not ok then
    return nil, M.refuse(reply, 400, "unable to upgrade: " .. why)
  end
  local link = {}
  function link.write(_, bytes) return reply:write(bytes) end
  function link.waiting() return reply:write "" end
  function link.pause(_, paused) reply:pause(paused) end
  function link.finish()
    reply.on_close, reply.on_data = nil, nil
    reply:finish()
  end
  reply.on_data = function(bytes)
    link.on_data(bytes)
  end
  reply.on_close = function()
    link.on_close()
  end
  return link, protocol or ""
end


return M
