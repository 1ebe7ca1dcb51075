-- Messages about unknown names in a script, which suggest the name that was probably meant. A list of known names has
-- the form of moonloop.fields: one string, with spaces between the names.
local M = {}

local SHOWN_MAX = 200 -- bytes of a key
local LENGTH_MAX = 64 -- bytes of a name for which another one is suggested

--- Edit distance between two names, at most `most` + 1. Two neighbours that change places are one edit.
local function distance(a, b, most)
  local before, last, row = {}, {}, {}
  for j = 0, #b do
    row[j] = j
  end
  for i = 1, #a do
    local best = i
    before, last, row = last, row, before
    row[0] = i
    for j = 1, #b do
      local cost = a:byte(i) == b:byte(j) and 0 or 1
      row[j] = math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + cost)
      if i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
        row[j] = math.min(row[j], before[j - 2] + 1)
      end
      best = math.min(best, row[j])
    end
    if best > most then
      return most + 1
    end
  end
  return row[#b]
end


--- Is the name a known one?
---@param name any
---@param known string
---@return boolean
function M.is_known(name, known)
  for candidate in known:gmatch "%S+" do
    if name == candidate then
      return true
    end
  end
  return false
end


--- The known name that `name` was probably meant to be.
---@param name string
---@param known string
---@return string? nearest nil when none is similar
function M.nearest(name, known)
  local nearest, least = nil, 3
  if #name > LENGTH_MAX then
    return nil
  end
  for candidate in known:gmatch "%S+" do
    local d = math.abs(#name - #candidate) < least and distance(name, candidate, least) or least
    if d < least and 2 * d <= math.max(#name, #candidate) then -- two edits turn 'put' into 'get'
      nearest, least = candidate, d
    end
  end
  return nearest
end


--- A key as a message shows it. Calls no metamethod: the key may be a table of the script.
---@param key any
---@return string
function M.text(key)
  local kind = type(key)
  if kind == "string" and #key > SHOWN_MAX then
    return key:sub(1, SHOWN_MAX) .. "…"
  end
  return (kind == "string" or kind == "number" or kind == "boolean") and tostring(key) or "a " .. kind
end


--- Says what to write instead of a name: "did you mean 'owns'?", or all known names.
---@param name string as M.text gives it
---@param known string
---@param all string "the fields are": the words before the list
---@return string
function M.hint(name, known, all)
  local nearest = M.nearest(name, known)
  return nearest and ("did you mean '%s'?"):format(nearest) or ("%s %s"):format(all, known:gsub(" ", ", "))
end


--- The problem of reading the unknown `key` of `what`.
---@param what string "ctx"
---@param key any
---@param known string
---@return string problem "ctx has no 'gett'; did you mean 'get'?"
function M.missing(what, key, known)
  local text = M.text(key)
  return ("%s has no '%s'; %s"):format(what, text, M.hint(text, known, "it has"))
end


--- The problem of an unknown field in an option table.
---@param call string how it is called, "ctx.now()"
---@param key any
---@param known string
---@return string problem "CALL: unknown field 'label'; did you mean 'labels'?"
function M.unknown_field(call, key, known)
  local text = M.text(key)
  return ("%s: unknown field '%s'; %s"):format(call, text, M.hint(text, known, "the fields are"))
end


--- Looks for an unknown key in `options`, and returns the problem if there is one.
---@param options table
---@param known string
---@return string? problem "unknown field 'own'; did you mean 'owns'?"
function M.unknown(options, known)
  local wrong
  for key in pairs(options) do
    local text = M.text(key)
    if not M.is_known(key, known) and (not wrong or text < wrong) then
      wrong = text
    end
  end
  return wrong and ("unknown field '%s'; %s"):format(wrong, M.hint(wrong, known, "the fields are"))
end


return M
