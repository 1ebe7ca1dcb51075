--- Checks and reads a resourceVersion from a client.
local field = require "cluster.apiserver.field"
local status = require "cluster.apiserver.status"

local M = {}


--- Checks a resourceVersion. Returns a message in the words of the parser, or nil.
function M.complaint(text)
  if text == "" or text:find("^%d+$") and math.tointeger(tonumber(text)) then
    return nil
  end
  local why = text:find("^%d+$") and "value out of range" or "invalid syntax"
  return "resourceVersion: " .. field.body(field.invalid("", text,
    ("strconv.ParseUint: parsing %s: %s"):format(field.quote(text), why)))
end


--- Reads a resourceVersion of a get or list.
--- @param text string as it came, "" when it did not
--- @param current integer the store's revision
--- @return integer|nil revision 0 for ""; nil and a status when it is no number or has not come yet
function M.read(text, current)
  if text == "" then
    return 0
  end
  local complaint = M.complaint(text)
  if complaint then
    return nil, status.bad_request("invalid resource version: " .. complaint)
  end
  local revision = math.tointeger(tonumber(text))
  if revision > current then
    return nil, status.too_large_revision(revision, current)
  end
  return revision
end


return M
