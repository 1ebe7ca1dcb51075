--- Arithmetic that says when a result does not fit. Each function returns the result, or nil and a message.
---
--- Rules: cel-go common/types/overflow.go.
local values = require "cluster.cel.values"

local M = {}

local INT = "integer overflow"
local UINT = "unsigned integer overflow"
local MIN <const> = math.mininteger
local TWO_63 <const> = 2.0 ^ 63
local TWO_64 <const> = 2.0 ^ 64

M.INT, M.UINT = INT, UINT


function M.add(a, b)
  local sum = a + b
  if (a ~ sum) & (b ~ sum) < 0 then
    return nil, INT
  end
  return sum
end


function M.subtract(a, b)
  local difference = a - b
  if (a ~ b) & (a ~ difference) < 0 then
    return nil, INT
  end
  return difference
end


function M.multiply(a, b)
  if a == 0 or b == 0 then
    return 0
  elseif a == -1 and b == MIN or b == -1 and a == MIN then
    return nil, INT
  end
  local product = a * b
  if product // b ~= a or product % b ~= 0 then
    return nil, INT
  end
  return product
end


function M.divide(a, b)
  if b == 0 then
    return nil, "division by zero"
  elseif a == MIN and b == -1 then
    return nil, INT
  end
  local quotient = a // b
  if quotient < 0 and quotient * b ~= a then
    return quotient + 1 -- towards zero
  end
  return quotient
end


function M.modulo(a, b)
  if b == 0 then
    return nil, "modulus by zero"
  elseif a == MIN and b == -1 then
    return nil, INT
  end
  return math.fmod(a, b)
end


function M.negate(a)
  if a == MIN then
    return nil, INT
  end
  return -a
end


-- Bits of unsigned integers.

--- a / b of unsigned integers, rounded down, and the rest.
local function divide_bits(a, b)
  if b < 0 then
    return math.ult(a, b) and 0 or 1, math.ult(a, b) and a or a - b
  elseif a >= 0 then
    return a // b, a % b
  end
  local quotient = ((a >> 1) // b) << 1
  local rest = a - quotient * b
  if not math.ult(rest, b) then
    quotient, rest = quotient + 1, rest - b
  end
  return quotient, rest
end


function M.add_uint(a, b)
  local sum = a.bits + b.bits
  if math.ult(sum, a.bits) then
    return nil, UINT
  end
  return values.uint(sum)
end


function M.subtract_uint(a, b)
  if math.ult(a.bits, b.bits) then
    return nil, UINT
  end
  return values.uint(a.bits - b.bits)
end


function M.multiply_uint(a, b)
  local product = a.bits * b.bits
  if b.bits ~= 0 and divide_bits(product, b.bits) ~= a.bits then
    return nil, UINT
  end
  return values.uint(product)
end


function M.divide_uint(a, b)
  if b.bits == 0 then
    return nil, "division by zero"
  end
  return values.uint((divide_bits(a.bits, b.bits)))
end


function M.modulo_uint(a, b)
  if b.bits == 0 then
    return nil, "modulus by zero"
  end
  local _, rest = divide_bits(a.bits, b.bits)
  return values.uint(rest)
end


-- Conversions.

function M.uint_to_int(a)
  if a.bits < 0 then
    return nil, INT
  end
  return a.bits
end


function M.int_to_uint(a)
  if a < 0 then
    return nil, UINT
  end
  return values.uint(a)
end


-- Towards zero.
local function truncate(a)
  return a < 0 and math.ceil(a) or math.floor(a)
end


function M.double_to_int(a)
  if a ~= a or a <= -TWO_63 or a >= TWO_63 then
    return nil, INT
  end
  return truncate(a)
end


function M.double_to_uint(a)
  if a ~= a or a < 0 or a >= TWO_64 then
    return nil, UINT
  elseif a < TWO_63 then
    return values.uint(truncate(a))
  end
  return values.uint(math.tointeger(a - TWO_63) + MIN)
end


function M.uint_to_double(a)
  return a.bits >= 0 and a.bits + 0.0 or (a.bits - MIN) + TWO_63
end


function M.uint_to_text(a)
  return ("%s"):format(a.bits >= 0 and a.bits or M.digits(a.bits))
end


--- The decimal digits of the bits of an unsigned integer.
function M.digits(bits)
  local tens, last = divide_bits(bits, 10)
  return tens == 0 and tostring(last) or tens .. tostring(last)
end


return M
