--- Parts of cells: labels, selectors, containers, shortened lists.
---
--- Rules: kubernetes/pkg/printers/internalversion/printers.go, apimachinery/pkg/labels/{labels,selector}.go.
local gofmt = require "cluster.apiserver.gofmt"

local M = {}

local NOTHING = {}
local OPERATORS = { In = " in ", NotIn = " notin " }


--- A field that is a list or an object, or an empty one where it is missing or null.
function M.list(value)
  return type(value) == "table" and value or NOTHING
end


--- A list's strings with commas between, or `empty`.
function M.join(list, empty)
  local text = table.concat(list or {}, ",")
  return text == "" and empty or text
end


--- name → value as "a=b,c=d", or "<none>".
function M.labels(labels)
  local parts = {}
  for i, key in ipairs(gofmt.sorted_keys(labels or {})) do
    parts[i] = key .. "=" .. labels[key]
  end
  table.sort(parts)
  return M.join(parts, "<none>")
end


local function expression(term)
  if term.operator == "Exists" then
    return term.key
  elseif term.operator == "DoesNotExist" then
    return "!" .. term.key
  end
  local values = table.move(term.values or {}, 1, #(term.values or {}), 1, {})
  table.sort(values)
  return term.key .. (OPERATORS[term.operator] or " ") .. "(" .. table.concat(values, ",") .. ")"
end


--- A LabelSelector as kubectl's -l takes it; `empty` for one that selects everything. A missing selector selects
--- nothing; Go prints it as "".
function M.selector(selector, empty)
  local terms = {}
  for _, key in ipairs(gofmt.sorted_keys(selector and selector.matchLabels or {})) do
    terms[#terms + 1] = { key = key, text = key .. "=" .. selector.matchLabels[key] }
  end
  for _, term in ipairs(selector and selector.matchExpressions or {}) do
    terms[#terms + 1] = { key = term.key, text = expression(term), place = #terms }
  end
  table.sort(terms, function(a, b)
    if a.key ~= b.key then
      return a.key < b.key
    end
    return (a.place or -1) < (b.place or -1)
  end)
  local parts = {}
  for i, term in ipairs(terms) do
    parts[i] = term.text
  end
  return M.join(parts, empty or "<none>")
end


--- Names and images of a pod spec's containers. @return string names, string images
function M.containers(spec)
  local names, images = {}, {}
  for i, container in ipairs(spec and spec.containers or {}) do
    names[i], images[i] = container.name or "", container.image or ""
  end
  return table.concat(names, ","), table.concat(images, ",")
end


--- The first `max` strings of a list, and how many more there are. @param empty string for none at all
function M.cut(list, max, empty)
  if #list > max then
    return ("%s + %d more..."):format(table.concat(list, ",", 1, max), #list - max)
  end
  return M.join(list, empty)
end


--- Addresses of a load balancer, or "".
function M.addresses(status)
  local set, list = {}, {}
  for _, ingress in ipairs(status and status.loadBalancer and status.loadBalancer.ingress or {}) do
    local address = ingress.ip ~= "" and ingress.ip or ingress.hostname
    if address and address ~= "" and not set[address] then
      set[address] = true
      list[#list + 1] = address
    end
  end
  table.sort(list)
  return table.concat(list, ",")
end


--- The status of a condition, or nil when there is none of that type.
function M.condition(conditions, kind)
  for _, condition in ipairs(conditions or {}) do
    if condition.type == kind then
      return condition.status, condition
    end
  end
  return nil
end


return M
