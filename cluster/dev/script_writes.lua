--- Counts what scripts make, change and delete, by the requests of the operator, and tells it at the end.
local M = {}

local KINDS_MAX = 7
local OUTCOMES = { "made", "changed", "deleted", "failed" }
local WRITES = { create = true, update = true, patch = true, delete = true, deletecollection = true }

-- The host writes these of its own accord.
local OWN = { ["events"] = true, ["events.events.k8s.io"] = true, ["leases.coordination.k8s.io"] = true }

-- Answers that the host settles by itself: it reads the object again, or waits.
local SETTLED = { [404] = true, [409] = true, [429] = true }

local kinds = {} -- resource.group → { name = resource, total =, made =, changed =, deleted =, failed = }
local total = { total = 0 }


-- @return string|nil one of OUTCOMES
local function outcome_of(record)
  local code = record.code
  if not code or not WRITES[record.verb] or SETTLED[code] then
    return nil
  elseif code >= 400 then
    return "failed"
  elseif record.verb:find "^delete" then
    return "deleted"
  end
  return code == 201 and not record.subresource and "made" or "changed"
end


local function add(counts, outcome)
  counts[outcome], counts.total = (counts[outcome] or 0) + 1, counts.total + 1
end


local function count(record)
  if not record.resource or not (record.user_agent or ""):find "^moonloop/" then
    return
  end
  local id = record.group == "" and record.resource or record.resource .. "." .. record.group
  local outcome = not OWN[id] and outcome_of(record)
  if outcome then
    kinds[id] = kinds[id] or { name = record.resource, total = 0 }
    add(kinds[id], outcome)
    add(total, outcome)
  end
end


-- "3 made, 1 deleted"
local function words(counts)
  local list = {}
  for _, outcome in ipairs(OUTCOMES) do
    if counts[outcome] then
      list[#list + 1] = counts[outcome] .. " " .. outcome
    end
  end
  return table.concat(list, ", ")
end


--- Begins to count.
function M.start(server)
  server:audit(count)
end


--- Tells what was counted: nothing, or a line for all and one for each of the kinds with most writes.
--- @param print_line function(what, text)
function M.tell(print_line)
  local list = {}
  for _, counts in pairs(kinds) do
    list[#list + 1] = counts
  end
  if #list == 0 then
    return
  end
  table.sort(list, function(a, b)
    return a.total > b.total or a.total == b.total and a.name < b.name
  end)
  print_line("writes of scripts", words(total))
  for i = 1, math.min(#list, KINDS_MAX) do
    print_line("  " .. list[i].name, words(list[i]))
  end
  if #list > KINDS_MAX then
    print_line(("  %d more kinds"):format(#list - KINDS_MAX), "")
  end
end


return M
