-- Field names of option tables: which are known, and which one was probably meant.
local M = {}

local SHOWN_MAX = 200 -- bytes of a key

--- Edit distance between two names, at most `most` + 1.
local function distance(a, b, most)
  local row = {}
  for j = 0, #b do
    row[j] = j
  end
  for i = 1, #a do
    local diagonal, best = row[0], i
    row[0] = i
    for j = 1, #b do
      local above = row[j]
      local cost = a:byte(i) == b:byte(j) and 0 or 1
      row[j] = math.min(above + 1, row[j - 1] + 1, diagonal + cost)
      diagonal, best = above, math.min(best, row[j])
    end
    if best > most then
      return most + 1
    end
  end
  return row[#b]
end


--- The known name that `name` was probably meant to be.
---@param name string
---@param known string[]
---@return string? nearest nil when none is near
function M.nearest(name, known)
  local nearest, least = nil, 3
  for _, candidate in ipairs(known) do
    local d = distance(name, candidate, least)
    if d < least then
      nearest, least = candidate, d
    end
  end
  return nearest
end


--- A key as a message shows it. No metamethod is asked: the key may be a table of a script's.
---@param key any
---@return string
function M.text(key)
  local kind = type(key)
  if kind == "string" and #key > SHOWN_MAX then
    return key:sub(1, SHOWN_MAX) .. "…"
  end
  return (kind == "string" or kind == "number" or kind == "boolean") and tostring(key) or "a " .. kind
end


--- Says what is wrong with the keys of `options`, if anything is.
---@param options table
---@param known string[]
---@return string? problem "unknown field 'own'; did you mean 'owns'?"
function M.unknown(options, known)
  local set = {}
  for _, name in ipairs(known) do
    set[name] = true
  end
  local wrong
  for key in pairs(options) do
    local text = M.text(key)
    if not set[key] and (not wrong or text < wrong) then
      wrong = text
    end
  end
  if not wrong then
    return nil
  end
  local nearest = M.nearest(wrong, known)
  local hint = nearest and ("did you mean '%s'?"):format(nearest)
    or "the fields are " .. table.concat(known, ", ")
  return ("unknown field '%s'; %s"):format(wrong, hint)
end


return M
