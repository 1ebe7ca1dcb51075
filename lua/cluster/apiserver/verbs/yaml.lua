--- Bodies in YAML: returns their first document, or kube-apiserver's error.
---
--- Rules: sigs.k8s.io/yaml/goyaml.v2/decode.go (how errors name lines).
local host = require "cluster.host"

local M = {}


-- The first line has no number, and the parser's own errors name the line before the one they are found in.
local function message(why)
  local line, text = why:match("^line (%d+): (.*)$")
  line = math.tointeger(tonumber(line or "0"))
  if text and text:find("^did not find expected") then
    line = line - 1
  elseif line == 1 then
    line = 0
  end
  return line > 0 and ("yaml: line %d: %s"):format(line, text) or "yaml: " .. (text or why)
end


--- @return any value null when there is no document; nil and why when it is no YAML
function M.decode(text)
  local documents, why = host.yaml.decode(text)
  if not documents then
    return nil, message(why)
  end
  return documents[1] == nil and host.json.null or documents[1]
end


return M
