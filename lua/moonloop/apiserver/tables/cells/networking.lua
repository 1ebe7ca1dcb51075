--- Cells of the kinds of networking.k8s.io. Rules: kubernetes/pkg/printers/internalversion/printers.go.
local age = require "moonloop.apiserver.tables.age"
local text = require "moonloop.apiserver.tables.text"

local M = {}

local SHOWN = 3


-- Upstream counts rules, not hosts, when it says how many more there are.
local function hosts(rules)
  local list, more = {}, false
  for _, rule in ipairs(rules or {}) do
    more = more or #list == SHOWN
    if not more and rule.host and rule.host ~= "" then
      list[#list + 1] = rule.host
    end
  end
  local joined = text.join(list, "*")
  return more and ("%s + %d more..."):format(joined, #rules - SHOWN) or joined
end


--- @return table cells in the order of columns/networking.lua
function M.Ingress(obj, now)
  local spec = obj.spec or {}
  return {
    obj.metadata.name, spec.ingressClassName or "<none>", hosts(spec.rules), text.addresses(obj.status),
    spec.tls and spec.tls[1] and "80, 443" or "80", age.of(obj, now),
  }
end


--- @return table cells in the order of columns/networking.lua
function M.NetworkPolicy(obj, now)
  return { obj.metadata.name, text.selector(obj.spec and obj.spec.podSelector), age.of(obj, now) }
end


return M
