--- Texts of doubles, as Go's strconv.FormatFloat writes them with the fewest digits that read back the same.
local M = {}

local GENERAL_MAX <const> = 6 -- the exponent from which on 'g' writes it


-- Digits and the power of ten behind the first of them: 1250.0 is "125", 3.
local function shortest(value)
  for precision = 0, 17 do
    local text = ("%." .. precision .. "e"):format(value)
    if tonumber(text) == value then
      local first, rest, exponent = text:match "^(%d)%.?(%d*)e([-+]%d+)$"
      local digits = (first .. rest):gsub("0+$", "")
      return digits == "" and "0" or digits, math.tointeger(tonumber(exponent))
    end
  end
  error "a double is not written"
end


local function special(value)
  if value ~= value then
    return "NaN"
  elseif value == math.huge then
    return "+Inf"
  elseif value == -math.huge then
    return "-Inf"
  end
  return nil
end


local function is_negative(value)
  return value < 0 or value == 0 and 1 / value < 0
end


local function plain(digits, exponent)
  if exponent < 0 then
    return "0." .. ("0"):rep(-exponent - 1) .. digits
  elseif #digits <= exponent + 1 then
    return digits .. ("0"):rep(exponent + 1 - #digits)
  end
  return digits:sub(1, exponent + 1) .. "." .. digits:sub(exponent + 2)
end


--- Without an exponent: 'f'.
function M.plain(value)
  local text = special(value)
  if text then
    return text
  end
  return (is_negative(value) and "-" or "") .. plain(shortest(math.abs(value)))
end


--- With an exponent below -4 and from 6 on: 'g'.
function M.general(value)
  local text = special(value)
  if text then
    return text
  end
  local digits, exponent = shortest(math.abs(value))
  local sign = is_negative(value) and "-" or ""
  if exponent >= -4 and exponent < GENERAL_MAX then
    return sign .. plain(digits, exponent)
  end
  local rest = #digits > 1 and "." .. digits:sub(2) or ""
  return ("%s%s%se%s%02d"):format(sign, digits:sub(1, 1), rest, exponent < 0 and "-" or "+", math.abs(exponent))
end


return M
