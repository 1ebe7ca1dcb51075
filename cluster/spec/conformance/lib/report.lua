--- The runner's output: the differences of each scenario, and the count at the end.
local host = require "cluster.host"

local M = {}
M.__index = M

local WIDTH = 400


function M.new(left, right)
  return setmetatable({
    left = left, right = right, compared = 0, agree = 0, listed = 0, unlisted = 0, passed = 0, failed = 0,
  }, M)
end


local function shown(value)
  local text = value == nil and "(nothing)" or host.json.encode(value)
  return #text > WIDTH and text:sub(1, WIDTH) .. "…" or text
end


function M:print_difference(difference)
  print("    " .. difference.field)
  print("      " .. self.left .. ": " .. shown(difference.left))
  print("      " .. self.right .. ": " .. shown(difference.right))
end


-- "FAIL" begins a line of each failure: .ci/run repeats these, and what follows them, at its end.
local function print_source(printed, name, entry)
  if not printed[entry] then
    printed[entry] = true
    print(("FAIL %s:%s %s"):format(name, entry.line or "", entry.source))
  end
end


--- Counts the answers of a scenario and prints what is not listed.
---@param name string
---@param transcript table the left one
---@param differences table[] of compare.transcripts
---@param is_listed fun(difference): boolean
function M:scenario(name, transcript, differences, is_listed)
  local state, printed = {}, {}
  for _, difference in ipairs(differences) do
    local listed = is_listed(difference)
    state[difference.number] = listed and state[difference.number] ~= "unlisted" and "listed" or "unlisted"
    if not listed then
      print_source(printed, name, difference.entry)
      self:print_difference(difference)
    end
  end
  self.compared = self.compared + #transcript
  local unlisted = self.unlisted
  for i = 1, #transcript do
    local outcome = state[i] or "agree"
    self[outcome] = self[outcome] + 1
  end
  local verdict = self.unlisted == unlisted and "passed" or "failed"
  self[verdict] = self[verdict] + 1
end


--- A scenario that could not be played as it is written.
function M:problems(problems)
  for _, problem in ipairs(problems) do
    print("FAIL " .. problem)
    self.failed = self.failed + 1
  end
end


--- Prints the sum: requests, then scenarios.
---@param needed string[] rows of the page that differences were found in
---@param unneeded string[] rows that nothing needed
---@return boolean good
function M:finish(needed, unneeded)
  for _, line in ipairs(needed) do
    print("  listed: " .. line)
  end
  for _, line in ipairs(unneeded) do
    print("FAIL listed as a difference, and there is none: " .. line)
  end
  print(("%d requests compared, %d agree, %d listed differences, %d unlisted"):format(
    self.compared, self.agree, self.listed, self.unlisted))
  local failed = self.failed + #unneeded
  print(("%d passed, %d failed, 0 skipped"):format(self.passed, failed))
  return failed == 0
end


return M
