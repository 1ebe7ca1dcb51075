--- Quantities in the notation of Kubernetes: "500m", "1536Mi", "1e3".
---
--- An amount is { value, scale, form }: `value` (integer) times ten to the power of `scale` (below 0 after a fraction),
--- and how it was written: "binary" (Ki, Mi), "decimal" (m, k, M) or "exponent" (e3).
--- Rules: apimachinery/pkg/api/resource/{quantity,suffix,amount}.go.
local M = {}

local DECIMAL = {
  n = -9, u = -6, m = -3, [""] = 0, k = 3, M = 6, G = 9, T = 12, P = 15, E = 18,
}
local BINARY = { Ki = 1, Mi = 2, Gi = 3, Ti = 4, Pi = 5, Ei = 6 }
local BINARY_SUFFIX = { [0] = "", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei" }
local DECIMAL_SUFFIX = {}
for suffix, scale in pairs(DECIMAL) do
  DECIMAL_SUFFIX[scale] = suffix
end

-- No amount is finer than this power of ten; what is finer is rounded up.
local FINEST = -9
local MILLI = -3
-- Digits that surely fit an integer.
local DIGITS_MAX = 18


-- The power of ten or of 1024 that a suffix stands for, and the form. nil when it is none.
local function read_suffix(suffix)
  if BINARY[suffix] then
    return BINARY[suffix], "binary"
  elseif DECIMAL[suffix] then
    return DECIMAL[suffix], "decimal"
  end
  local exponent = suffix:match("^[eE]([-+]?%d+)$")
  return exponent and math.tointeger(tonumber(exponent)), "exponent"
end


-- Divides by a power of ten, away from zero.
local function round_up(value, digits)
  for _ = 1, digits do
    local rest = value % 10
    value = value // 10 + (rest > 0 and 1 or 0)
  end
  return value
end


--- Reads an amount. @return table|nil amount; nil when the text is none (or has more digits than are kept)
function M.parse(text)
  text = tostring(text)
  local sign, whole, fraction, suffix = text:match("^([-+]?)(%d*)%.?(%d*)(%a?[-+%w]*)$")
  if not whole or whole .. fraction == "" then
    return nil
  end
  local power, form = read_suffix(suffix)
  if not power then
    return nil
  end
  fraction = fraction:gsub("0+$", "")
  local digits = (whole .. fraction):gsub("^0+", "")
  if #digits > DIGITS_MAX then
    return nil
  end
  local value, scale = math.tointeger(tonumber(digits ~= "" and digits or "0")), -#fraction
  if form == "binary" then
    value = value << (10 * power)
  else
    scale = scale + power
  end
  if scale < FINEST then
    value, scale = round_up(value, FINEST - scale), FINEST
  end
  return { value = sign == "-" and -value or value, scale = scale, form = form }
end


-- Without trailing zeros of the value.
local function reduced(value, scale)
  while value ~= 0 and value % 10 == 0 do
    value, scale = value // 10, scale + 1
  end
  return value, value == 0 and 0 or scale
end


local function write_decimal(amount)
  local value, scale = reduced(amount.value, amount.scale)
  local rest = scale % 3
  value, scale = value * math.tointeger(10 ^ rest), scale - rest
  if amount.form == "exponent" then
    return scale == 0 and tostring(value) or ("%de%d"):format(value, scale)
  end
  local suffix = DECIMAL_SUFFIX[scale]
  return suffix and value .. suffix or ("%de%d"):format(value, scale)
end


local function write_binary(amount)
  local value = amount.value
  value = amount.scale < 0 and round_up(value, -amount.scale) or value * math.tointeger(10 ^ amount.scale)
  local power = 0
  while value ~= 0 and value % 1024 == 0 and power < 6 do
    value, power = value // 1024, power + 1
  end
  return value .. BINARY_SUFFIX[power]
end


-- How an amount compares with a small whole number: below, equal, above as -1, 0, 1.
local function compare_whole(amount, whole)
  return M.compare(amount, { value = whole, scale = 0 })
end


--- The canonical text of an amount as JSON has it (a string or a number). What cannot be read is left as it is.
function M.canonical(value)
  local amount = M.parse(value)
  if not amount then
    return value
  end
  return M.write(amount)
end


--- As canonical, rounded up to thousandths: what requests and limits are kept as.
function M.milli(value)
  local text = tostring(value)
  if not text:find("[.nue-]") then
    return M.canonical(text)
  end
  local amount = M.parse(text)
  if not amount then
    return value
  elseif amount.scale < MILLI then
    amount.value, amount.scale = round_up(amount.value, MILLI - amount.scale), MILLI
  end
  return M.write(amount)
end


--- The canonical text of an amount.
function M.write(amount)
  if amount.form == "binary" and (compare_whole(amount, -1024) <= 0 or compare_whole(amount, 1024) >= 0) then
    return write_binary(amount)
  elseif amount.form == "binary" then
    return write_decimal { value = amount.value, scale = amount.scale, form = "decimal" }
  end
  return write_decimal(amount)
end


-- Both values at the finer of the two scales; nil when that does not fit.
local function aligned(a, b)
  local scale = math.min(a.scale, b.scale)
  local up, other = a.scale - scale, b.scale - scale
  if #tostring(a.value) + up > DIGITS_MAX or #tostring(b.value) + other > DIGITS_MAX then
    return nil
  end
  return a.value * math.tointeger(10 ^ up), b.value * math.tointeger(10 ^ other), scale
end


--- Compares amounts: -1, 0 or 1.
function M.compare(a, b)
  local left, right = aligned(a, b)
  if not left then
    left, right = a.value * 10.0 ^ a.scale, b.value * 10.0 ^ b.scale
  end
  return left < right and -1 or left > right and 1 or 0
end


--- Whether there is no fraction.
function M.is_whole(amount)
  return amount.scale >= 0 or amount.value % math.tointeger(10 ^ -amount.scale) == 0
end


--- The sum of two amounts, in the form of the first.
function M.add(a, b)
  local left, right, scale = aligned(a, b)
  if not left then
    return { value = math.tointeger((a.value * 10.0 ^ a.scale + b.value * 10.0 ^ b.scale) // 1) or a.value, scale = 0,
      form = a.form }
  end
  return { value = left + right, scale = scale, form = a.form }
end


return M
