--- The arithmetic of Kubernetes' quantities, "500m", "1536Mi", "1e3": exact, of any sign, in steps of 10^-9 (nano).
--- moonloop.quantity has it for scripts, cluster.quantity for the embedded API server and CEL.
---
--- An amount is { negative =, form =, … }: its nanos as a list of limbs (moonloop/natural.lua), so that the first limb
--- is the fraction; and how it was written: "binary" (Ki, Mi), "decimal" (m, k, M) or "exponent" (e3). Amounts are
--- never changed.
--- Rules: apimachinery/pkg/api/resource/{quantity,suffix,amount,math}.go.
local natural = require "moonloop.natural"

local M = {}

local NANO_DIGITS = 9
local DIGITS_MAX, LIMBS_MAX = 45, 5 -- of nanos: amounts are below 10^36
local TEXT_MAX = 128 -- bytes

local DECIMAL = {
  n = -9, u = -6, m = -3, [""] = 0, k = 3, M = 6, G = 9, T = 12, P = 15, E = 18,
}
local BINARY = { Ki = 1, Mi = 2, Gi = 3, Ti = 4, Pi = 5, Ei = 6 }
local BINARY_SUFFIX = { [0] = "", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei" }
local DECIMAL_SUFFIX = {}
for suffix, scale in pairs(DECIMAL) do
  DECIMAL_SUFFIX[scale] = suffix
end

--- The units that M.round_up rounds to, in nanos.
M.WHOLE, M.MILLI = 1000000000, 1000000


local ONE = { 0, 1 }
local BINARY_MAX = natural.of_digits(math.maxinteger .. ("0"):rep(NANO_DIGITS))


local function new(limbs, negative, form)
  limbs.negative, limbs.form = negative and #limbs > 0, form
  return limbs
end


local function copy(amount, negative, form)
  return new(table.move(amount, 1, #amount, 1, {}), negative, form)
end


-- Returns the power of ten or of 1024 that a suffix stands for, and the form; or nil if it is no suffix.
local function read_suffix(suffix)
  if BINARY[suffix] then
    return BINARY[suffix], "binary"
  elseif DECIMAL[suffix] then
    return DECIMAL[suffix], "decimal"
  end
  local exponent = suffix:match "^[eE]([-+]?%d+)$"
  return exponent and math.tointeger(tonumber(exponent)), "exponent"
end


-- Returns digits times a power of ten, rounded away from zero; nil if it is too large.
local function shift(digits, places)
  if digits == "" then
    return {}
  elseif #digits + places > DIGITS_MAX then
    return nil
  elseif places >= 0 then
    return natural.of_digits(digits .. ("0"):rep(places))
  end
  local limbs = natural.of_digits(digits:sub(1, places - 1))
  return digits:sub(places):find "[1-9]" and natural.add(limbs, { 1 }) or limbs
end


local function read_binary(digits, power, places)
  local limbs = natural.of_digits(digits)
  for _ = 1, power do
    limbs = natural.multiply(limbs, { 1024 })
  end
  limbs = shift(natural.digits(limbs), places)
  if not limbs or natural.compare(limbs, BINARY_MAX) > 0 then
    return copy(BINARY_MAX, false, "binary")
  end
  return new(limbs, false, natural.compare(limbs, ONE) < 0 and "decimal" or "binary")
end


--- Reads an amount. Rounds it up (away from zero) to a whole number of nanos, and cuts one with a binary suffix at
--- 2^63 - 1.
---@param text string
---@return table? amount
---@return string? why
---@return string? part of the text that is wrong: "number", "suffix" or "size"
function M.parse(text)
  if #text > TEXT_MAX then
    return nil, ("a quantity has at most %d bytes"):format(TEXT_MAX), "size"
  end
  local sign, whole, fraction, suffix = text:match "^([-+]?)(%d*)%.?(%d*)([eEinumkKMGTP]*[-+]?%d*)$"
  if not sign or whole .. fraction == "" then
    return nil, ("'%s' is no quantity; expected one like 500m, 1.5Gi or 1e3"):format(text), "number"
  end
  local power, form = read_suffix(suffix)
  if not power then
    return nil, ("'%s' has no suffix of a quantity; there are n u m k M G T P E, Ki Mi Gi Ti Pi Ei, and e3"):format(
      text), "suffix"
  end
  fraction = fraction:gsub("0+$", "")
  local digits, places = (whole .. fraction):gsub("^0+", ""), NANO_DIGITS - #fraction
  if form == "binary" then
    local amount = read_binary(digits, power, places)
    return copy(amount, sign == "-", amount.form)
  end
  local limbs = shift(digits, places + power)
  if not limbs or #limbs > LIMBS_MAX then
    return nil, ("'%s' is too large: a quantity is below 10^36"):format(text), "size"
  end
  return new(limbs, sign == "-", form)
end


--- The amount of a whole number.
---@param number integer
---@param form? string "decimal" when left out
function M.of(number, form)
  local digits = tostring(number):gsub("^-", "")
  return new(natural.of_digits(digits .. ("0"):rep(NANO_DIGITS)), number < 0, form or "decimal")
end


local function write_decimal(amount)
  local digits = natural.digits(amount)
  local groups = #digits:match "0*$" // 3
  local mantissa, scale = digits:sub(1, #digits - 3 * groups), 3 * groups - NANO_DIGITS
  local suffix = amount.form ~= "exponent" and DECIMAL_SUFFIX[scale] or scale ~= 0 and ("e%d"):format(scale) or ""
  return mantissa .. suffix
end


local function write_binary(amount)
  local whole, power = natural.divide(amount, M.WHOLE), 0
  while power < 6 do
    local quotient, rest = natural.divide(whole, 1024)
    if rest > 0 then
      break
    end
    whole, power = quotient, power + 1
  end
  return natural.digits(whole) .. BINARY_SUFFIX[power]
end


--- The canonical text. An amount in binary form that is below 1024 or has a fraction is written in decimal form.
function M.write(amount)
  if #amount == 0 then
    return "0"
  end
  local is_binary = amount.form == "binary" and amount[1] == 0 and (#amount > 2 or amount[2] >= 1024)
  return (amount.negative and "-" or "") .. (is_binary and write_binary(amount) or write_decimal(amount))
end


--- Returns -1 if the amount is below 0, 0 if it is 0, else 1.
function M.sign(amount)
  return amount.negative and -1 or #amount > 0 and 1 or 0
end


--- Compares amounts: -1, 0 or 1.
function M.compare(a, b)
  if a.negative ~= b.negative then
    return a.negative and -1 or 1
  end
  return a.negative and -natural.compare(a, b) or natural.compare(a, b)
end


--- The amount with the other sign.
function M.negate(amount)
  return copy(amount, not amount.negative, amount.form)
end


--- The same amount, to be written in another form.
function M.in_form(amount, form)
  return copy(amount, amount.negative, form)
end


--- The sum, in the form of `a`, or of `b` if `a` is 0.
function M.add(a, b)
  local form = #a > 0 and a.form or b.form
  if a.negative == b.negative then
    return new(natural.add(a, b), a.negative, form)
  elseif natural.compare(a, b) >= 0 then
    return new(natural.subtract(a, b), a.negative, form)
  end
  return new(natural.subtract(b, a), b.negative, form)
end


--- The product, in the form of `a`, rounded up (away from zero) to a whole number of nanos.
function M.multiply(a, b)
  return new(natural.divide_up(natural.multiply(a, b), M.WHOLE), a.negative ~= b.negative, a.form)
end


--- Returns true if M.parse would take an amount of this size; sums and products may be larger.
function M.fits(amount)
  return #amount <= LIMBS_MAX
end


--- Returns the amount rounded up (away from zero) to a multiple of `nanos`: M.WHOLE, M.MILLI.
function M.round_up(amount, nanos)
  return new(natural.multiply(natural.divide_up(amount, nanos), { nanos }), amount.negative, amount.form)
end


--- Returns true if the amount is a whole number.
function M.is_whole(amount)
  return (amount[1] or 0) == 0
end


--- The amount as an integer; nil when it has a fraction, or does not fit.
function M.integer(amount)
  local digits = natural.digits(natural.divide(amount, M.WHOLE))
  if not M.is_whole(amount) or #digits > 19 then
    return nil
  end
  return math.tointeger(tonumber((amount.negative and "-" or "") .. (digits == "" and "0" or digits)))
end


--- The nearest float.
function M.float(amount)
  local digits = natural.digits(amount)
  return tonumber((amount.negative and "-" or "") .. (digits == "" and "0" or digits) .. "e-9")
end


return M
