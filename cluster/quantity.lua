--- Quantities in the objects of the embedded API server and in CEL, as JSON has them: texts or numbers. The arithmetic
--- is that of moonloop/amount.lua, which scripts have as moonloop.quantity.
local amount = require "moonloop.amount"

local M = {}

M.add, M.compare, M.is_whole, M.negate, M.of = amount.add, amount.compare, amount.is_whole, amount.negate, amount.of
M.sign, M.integer, M.float, M.write = amount.sign, amount.integer, amount.float, amount.write
M.multiply = amount.multiply


--- Reads an amount. @return table|nil amount; nil when it is none
---@return string? why
---@return string? part what of it is wrong: "number", "suffix" or "size"
function M.parse(value)
  return amount.parse(tostring(value))
end


--- The amount, rounded up (away from zero) to a whole.
function M.whole(a)
  return amount.round_up(a, amount.WHOLE)
end


--- The canonical text of an amount as JSON has it (a string or a number). A value that cannot be read stays as it is.
function M.canonical(value)
  local read = M.parse(value)
  return read and amount.write(read) or value
end


--- As canonical, rounded up to thousandths: the form in which requests and limits are kept.
function M.milli(value)
  local read = M.parse(value)
  return read and amount.write(amount.round_up(read, amount.MILLI)) or value
end


return M
