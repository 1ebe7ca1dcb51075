--- Addresses of pods: each is given to one pod at a time, and comes round again as late as it can.
local M = {}
M.__index = M

local FIRST, LAST = 2, 65533 -- of 10.244.0.0/16; 10.244.0.1 is the node


function M.new()
  return setmetatable({ in_use = {}, last = FIRST - 1 }, M)
end


local function number_of(address)
  local high, low = address:match "^10%.244%.(%d+)%.(%d+)$"
  local number = high and tonumber(high) * 256 + tonumber(low)
  return number and number >= FIRST and number <= LAST and math.tointeger(number)
end


-- Some programs take an address that ends like a network's own for one.
local function is_usual(number)
  return number % 256 ~= 0 and number % 256 ~= 255
end


--- An address that is free from now on no more.
--- @param wanted string? this one, if it is free
--- @return string|nil address nil when all are taken
function M:allocate(wanted)
  local number = wanted and number_of(wanted)
  for _ = FIRST, LAST + 1 do
    if number and not self.in_use[number] and is_usual(number) then
      self.in_use[number] = true
      return ("10.244.%d.%d"):format(number // 256, number % 256)
    end
    self.last = self.last < LAST and self.last + 1 or FIRST
    number = self.last
  end
end


--- Nobody has it any more.
function M:release(address)
  self.in_use[number_of(address)] = nil
end


return M
