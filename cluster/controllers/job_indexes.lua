--- Sets of completion indexes, and the text that a Job's status has for them: "0-2,5".
---
--- Rules: kubernetes/pkg/controller/job/indexed_job_utils.go (orderedIntervals).
local M = {}

-- Of a text that says more, which anybody may write, the rest is not read.
local INDEXES_MAX = 1000000


--- The set in a text; indexes that the Job does not have any more are left out.
function M.read(text, completions)
  local set, room = {}, INDEXES_MAX
  for part in (text or ""):gmatch "[^,]+" do
    local first, last = part:match "^(%d+)%-(%d+)$"
    first, last = math.tointeger(first or part), math.tointeger(last or part)
    last = math.min(last or -1, completions - 1, (first or 0) + room - 1)
    for index = first or 0, last do
      set[index] = true
    end
    room = room - math.max(0, last - (first or 0) + 1)
  end
  return set
end


--- The text for a set; two neighbours are listed, three are a range.
function M.write(set, completions)
  local sorted, parts, at = {}, {}, 1
  for index in pairs(set) do
    sorted[#sorted + 1] = index < completions and index or nil
  end
  table.sort(sorted)
  while sorted[at] do
    local first, last = sorted[at], sorted[at]
    while sorted[at + 1] == last + 1 do
      at, last = at + 1, last + 1
    end
    parts[#parts + 1] = first == last and tostring(first)
      or ("%d%s%d"):format(first, last == first + 1 and "," or "-", last)
    at = at + 1
  end
  return table.concat(parts, ",")
end


function M.count(set)
  local count = 0
  for _ in pairs(set) do
    count = count + 1
  end
  return count
end


return M
