--- Sets of completion indexes, and the text that a Job's status has for them: "0-2,5".
---
--- Rules: kubernetes/pkg/controller/job/indexed_job_utils.go (orderedIntervals).
local M = {}


--- The set in a text; indexes that the Job does not have any more are left out.
function M.read(text, completions)
  local set = {}
  for part in (text or ""):gmatch "[^,]+" do
    local first, last = part:match "^(%d+)%-(%d+)$"
    first, last = math.tointeger(first or part), math.tointeger(last or part)
    for index = first or 0, math.min(last or -1, completions - 1) do
      set[index] = true
    end
  end
  return set
end


--- The text for a set; two neighbours are listed, three are a range.
function M.write(set, completions)
  local parts, first = {}, nil
  for index = 0, completions do
    local is_in = index < completions and set[index]
    if is_in and not first then
      first = index
    elseif not is_in and first then
      local last = index - 1
      parts[#parts + 1] = first == last and tostring(first)
        or ("%d%s%d"):format(first, last == first + 1 and "," or "-", last)
      first = nil
    end
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
