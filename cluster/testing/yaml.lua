--- The module that `require "moonloop.yaml"` returns to a test: what a script wrote is read by the host's reader.
local host = require "cluster.host"

local M = {}


--- The value of a text with one document, or nil and why; moonloop.null when it has none.
function M.decode(text)
  local documents, why = host.yaml.decode(text)
  if not documents or #documents > 1 then
    return nil, why or "a second document; expected one"
  end
  return documents[1] == nil and host.json.null or documents[1]
end


return M
