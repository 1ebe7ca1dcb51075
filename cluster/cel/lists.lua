--- Functions on lists, for operators and libraries.
local compare = require "cluster.cel.compare"
local values = require "cluster.cel.values"

local M = {}


--- a + b. A list that a schema calls a set or a map says how.
function M.concat(a, b)
  if a.join then
    return a.join(a, b)
  elseif #b.items == 0 then
    return a
  elseif #a.items == 0 then
    return b
  end
  local items = table.move(values.elements(a), 1, #a.items, 1, {})
  table.move(values.elements(b), 1, #b.items, #items + 1, items)
  return values.list(items)
end


--- Where the element stands in the list, counted from 1; nil when it does not.
function M.find(list, element)
  for i = 1, #list.items do
    if compare.equal(values.element(list, i), element) then
      return i
    end
  end
  return nil
end


function M.contains(element, list)
  return M.find(list, element) ~= nil
end


return M
