-- Names that a script uses and that do not exist, and which one was probably meant. Those that there are come as in
-- moonloop.fields: one string, with spaces between them.
local M = {}

local SHOWN_MAX = 200 -- bytes of a key
local LENGTH_MAX = 64 -- bytes of a name that can be meant to be another one

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


--- Is the name one of those that there are?
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
---@return string? nearest nil when none is near
function M.nearest(name, known)
  local nearest, least = nil, 3
  if #name > LENGTH_MAX then
    return nil
  end
  for candidate in known:gmatch "%S+" do
    local d = math.abs(#name - #candidate) < least and distance(name, candidate, least) or least
    if d < least and 2 * d <= math.max(#name, #candidate) then -- two edits make 'get' of 'put'
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


--- What to write instead of a name: "did you mean 'owns'?", or all that there are.
---@param name string as M.text gives it
---@param known string
---@param all string "the fields are": what stands before the list
---@return string
function M.hint(name, known, all)
  local nearest = M.nearest(name, known)
  return nearest and ("did you mean '%s'?"):format(nearest) or ("%s %s"):format(all, known:gsub(" ", ", "))
end


--- What is wrong with reading `key` of something that has other names only.
---@param what string "ctx"
---@param key any
---@param known string
---@return string problem "ctx has no 'gett'; did you mean 'get'?"
function M.missing(what, key, known)
  local text = M.text(key)
  return ("%s has no '%s'; %s"):format(what, text, M.hint(text, known, "it has"))
end


--- What is wrong with a field that an option table has.
---@param call string how it is called, "ctx.now()"
---@param key any
---@param known string
---@return string problem "CALL: unknown field 'label'; did you mean 'labels'?"
function M.unknown_field(call, key, known)
  local text = M.text(key)
  return ("%s: unknown field '%s'; %s"):format(call, text, M.hint(text, known, "the fields are"))
end


--- Says what is wrong with the keys of `options`, if anything is.
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
