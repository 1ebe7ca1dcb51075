--- Bodies in YAML: of several documents the first, with kube-apiserver's errors and warnings.
---
--- Rules: sigs.k8s.io/yaml, apimachinery/pkg/runtime/serializer/json (unmarshal),
--- apiserver/pkg/endpoints/handlers/rest.go (parseYAMLWarnings).
local host = require "cluster.host"

local M = {}

-- The beginning of an error that consists of lines.
local UNMARSHAL = "yaml: unmarshal errors:\n"


--- @param strict boolean? whether keys that come twice are of interest
--- @return any value null when there is no document; nil when it is no YAML
--- @return string json text of the value, with sorted keys; or why it is no YAML
--- @return string|nil complaint about keys that come twice, as kube-apiserver words it
function M.decode(text, strict)
  local json, rest = host.yaml.to_json(text, strict)
  if not json then
    return nil, rest
  end
  return host.json.decode(json), json, rest ~= "" and UNMARSHAL .. rest:gsub("[^\n]+", "  %0"):sub(1, -2) or nil
end


--- A complaint as warnings, one for each line of it.
function M.warnings(complaint)
  local start, stop = complaint:find(UNMARSHAL, 1, true)
  if not start then
    return { complaint }
  end
  local list = {}
  for line in complaint:sub(stop + 1):gmatch "[^\n]+" do
    list[#list + 1] = line:match "^%s*(.-)%s*$"
  end
  return list
end


return M
