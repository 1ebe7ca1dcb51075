-- Kubernetes' quantities for scripts: amounts of memory, CPU and storage as manifests have them. Functions take a text
-- or a number of Lua, and return the canonical text, as an API server would store it. The arithmetic is that of
-- moonloop/amount.lua.
local amount = require "moonloop.amount"

local M = {}

local FORMS = { binary = true, decimal = true, exponent = true }
local TOO_LARGE = "the result is too large: a quantity is below 10^36"


-- A number in the fewest digits that stand for it: 0.1 is a tenth.
local function digits_of(number)
  for digits = 15, 17 do
    local text = ("%%.%dg"):format(digits):format(number)
    if tonumber(text) == number then
      return text
    end
  end
end


-- Returns the amount of an argument, or nil and why. Raises, at `level`, if it is neither a string nor a number.
local function read(value, call, level)
  if math.type(value) == "integer" then
    return amount.of(value)
  elseif type(value) == "number" then
    local text = value - value == 0 and digits_of(value)
    if not text then
      error(("%s: %s is no quantity"):format(call, tostring(value)), level)
    end
    local read_amount, why = amount.parse(text)
    return read_amount and amount.in_form(read_amount, "decimal"), why
  elseif type(value) ~= "string" then
    error(("%s: expected a quantity like \"500m\", \"1.5Gi\" or 3, got %s"):format(call,
      value == nil and "nil" or "a " .. type(value)), level)
  end
  return amount.parse(value)
end


local function read_both(a, b, call)
  local left, why = read(a, call, 4)
  local right, why_right = read(b, call, 4)
  return left and right and left, left and why_right or why, right
end


local function written(result)
  if not amount.fits(result) then
    return nil, TOO_LARGE
  end
  return amount.write(result)
end


--- Reads a quantity.
---@param value string|number
---@return string? text in canonical form
---@return string? why it is none
function M.parse(value)
  local read_amount, why = read(value, "quantity.parse(value)", 3)
  return read_amount and amount.write(read_amount), why
end


--- Writes a quantity in one of the forms.
---@param value string|number
---@param form? string "binary" (1536Mi), "decimal" (1500M), "exponent" (1500e6); as it is when left out
---@return string? text
---@return string? why it is no quantity
function M.format(value, form)
  local call = "quantity.format(value [, form])"
  if form ~= nil and not (type(form) == "string" and FORMS[form]) then
    error(call .. ": form: expected \"binary\", \"decimal\" or \"exponent\"", 2)
  end
  local read_amount, why = read(value, call, 3)
  if not read_amount then
    return nil, why
  end
  return amount.write(form and amount.in_form(read_amount, form) or read_amount)
end


--- A quantity as a number, for arithmetic of one's own.
---@param value string|number
---@return number? number an integer when it is a whole number that fits one, else the nearest float
---@return string? why it is no quantity
function M.number(value)
  local read_amount, why = read(value, "quantity.number(value)", 3)
  if not read_amount then
    return nil, why
  end
  return amount.integer(read_amount) or amount.float(read_amount)
end


--- Compares two quantities.
---@return integer? order -1, 0 or 1
---@return string? why one of them is none
function M.compare(a, b)
  local left, why, right = read_both(a, b, "quantity.compare(a, b)")
  if not left then
    return nil, why
  end
  return amount.compare(left, right)
end


--- The sum, in the form of `a`, or of `b` if `a` is 0.
---@return string? sum
---@return string? why there is none
function M.add(a, b)
  local left, why, right = read_both(a, b, "quantity.add(a, b)")
  if not left then
    return nil, why
  end
  return written(amount.add(left, right))
end


--- The difference, in the form of `a`, or of `b` if `a` is 0.
---@return string? difference
---@return string? why there is none
function M.subtract(a, b)
  local left, why, right = read_both(a, b, "quantity.subtract(a, b)")
  if not left then
    return nil, why
  end
  return written(amount.add(left, amount.negate(right)))
end


--- The product, in the form of `a`, rounded up to a whole number of nanos.
---@return string? product
---@return string? why there is none
function M.multiply(a, b)
  local left, why, right = read_both(a, b, "quantity.multiply(a, b)")
  if not left then
    return nil, why
  end
  return written(amount.multiply(left, right))
end


return M
