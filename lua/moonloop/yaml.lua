-- YAML for scripts. The host reads it as kubectl does (docs/decisions/0011), and both read what it writes as the same
-- value.
local _, host = ...

local M = {}

--- The YAML of a value, one document. Keys of plain tables are sorted, those of an object keep its order.
---@param value any as for cjson.encode, which raises the same errors
---@return string text
function M.encode(value)
  local text, why = host.yaml_encode(value)
  return text or error("yaml.encode(value): " .. why, 0)
end


--- The value of a text with one document; moonloop.null when it has none.
---@param text string at most 1 MiB
---@return any value nil when it is no YAML
---@return string? why, with its line
function M.decode(text)
  if type(text) ~= "string" then
    error("yaml.decode(text): expected a string, got a " .. type(text), 2)
  end
  return host.yaml_decode(text)
end


return M
