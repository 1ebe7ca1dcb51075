--- Answers in gzip's format, for clients that take it.
---
--- Rules: apiserver/pkg/endpoints/handlers/responsewriters/writers.go (negotiateContentEncoding,
--- deferredResponseWriter).
local host = require "cluster.host"

local M = {}

-- Bytes of an answer from which on it is worth the work.
local SIZE_MIN = 128 * 1024

-- Bytes that are compressed in one step.
local PIECE = 256 * 1024


--- Returns true if a request takes answers in gzip's format.
function M.is_wanted(request)
  for word in (request.headers["accept-encoding"] or ""):gmatch "[^,]+" do
    if word:match "^%s*(.-)%s*$" == "gzip" then
      return true
    end
  end
  return false
end


--- A text, which is not empty, in gzip's format. @param after_piece function called after each step
function M.gzip(text, after_piece)
  local gzipper, parts = host.stream.gzipper(), {}
  for at = 1, #text, PIECE do
    parts[#parts + 1] = gzipper:add(text, at, math.min(at + PIECE - 1, #text))
    after_piece()
  end
  return table.concat(parts)
end


--- Sends an answer, compressed if it is large and the client takes that.
--- @param headers table stays as it is  @param after_piece function called with the request after each step of the work
function M.send(request, reply, code, media, text, headers, after_piece)
  if #text <= SIZE_MIN or not M.is_wanted(request) then
    return reply:send(code, media, text, headers)
  end
  local all = { ["Content-Encoding"] = "gzip" }
  for name, value in pairs(headers) do
    all[name] = value
  end
  all.Vary = all.Vary and all.Vary .. ", Accept-Encoding" or "Accept-Encoding"
  reply:send(code, media, M.gzip(text, function() after_piece(request) end), all, text)
end


return M
