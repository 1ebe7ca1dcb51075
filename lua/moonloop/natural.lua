--- Natural numbers of any size, for moonloop/amount.lua: a list of limbs, of nine decimal digits each, from the lowest
--- on, without zeros at the end; so 0 has none. No function changes what it is given.
local M = {}

local LIMB, LIMB_DIGITS = 1000000000, 9


--- The number that a text of digits says; "" is 0.
function M.of_digits(digits)
  local limbs = {}
  digits = digits:gsub("^0+", "")
  for last = #digits, 1, -LIMB_DIGITS do
    limbs[#limbs + 1] = math.tointeger(tonumber(digits:sub(math.max(last - LIMB_DIGITS + 1, 1), last)))
  end
  return limbs
end


--- Its digits, without zeros in front; of 0 "".
function M.digits(limbs)
  local parts = {}
  for i = #limbs, 1, -1 do
    parts[#parts + 1] = (i == #limbs and "%d" or "%09d"):format(limbs[i])
  end
  return table.concat(parts)
end


local function trim(limbs)
  while limbs[#limbs] == 0 do
    limbs[#limbs] = nil
  end
  return limbs
end


--- -1, 0 or 1.
function M.compare(a, b)
  if #a ~= #b then
    return #a < #b and -1 or 1
  end
  for i = #a, 1, -1 do
    if a[i] ~= b[i] then
      return a[i] < b[i] and -1 or 1
    end
  end
  return 0
end


function M.add(a, b)
  local sum, carry = {}, 0
  for i = 1, math.max(#a, #b) do
    local digit = (a[i] or 0) + (b[i] or 0) + carry
    sum[i], carry = digit % LIMB, digit // LIMB
  end
  sum[#sum + 1] = carry > 0 and carry or nil
  return sum
end


--- `a` is not below `b`.
function M.subtract(a, b)
  local rest, borrow = {}, 0
  for i = 1, #a do
    local digit = a[i] - (b[i] or 0) - borrow
    rest[i], borrow = digit % LIMB, digit < 0 and 1 or 0
  end
  return trim(rest)
end


function M.multiply(a, b)
  local product = {}
  for i = 1, #a do
    local carry = 0
    for j = 1, #b do
      local digit = (product[i + j - 1] or 0) + a[i] * b[j] + carry
      product[i + j - 1], carry = digit % LIMB, digit // LIMB
    end
    product[i + #b] = carry
  end
  return trim(product)
end


--- The quotient, and the rest; `divisor` is at most a limb, 10^9.
function M.divide(limbs, divisor)
  local quotient, rest = {}, 0
  for i = #limbs, 1, -1 do
    local digit = rest * LIMB + limbs[i]
    quotient[i], rest = digit // divisor, digit % divisor
  end
  return trim(quotient), rest
end


--- Divided, rounded up.
function M.divide_up(limbs, divisor)
  local quotient, rest = M.divide(limbs, divisor)
  return rest > 0 and M.add(quotient, { 1 }) or quotient
end


return M
