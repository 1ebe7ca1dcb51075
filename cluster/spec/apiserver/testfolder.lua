--- A folder of ours (cluster.process.Folder) in memory, for specs: the interpreter of specs has no processes and writes
--- no files.
local clean_path = require "cluster.apiserver.clean_path"

local M = {}
M.__index = M


--- @param step function? () called after each change
function M.new(step)
  return setmetatable({ entries = { ["/"] = { mode = 448 } }, step = step or function() end }, M)
end


local function above(path)
  return clean_path(path:match "^(.*)/")
end


local function set(self, path, entry)
  if not self.entries[above(path)] then
    return nil, "No such file or directory"
  elseif self.full then
    return nil, "No space left on device"
  end
  self.entries[path] = entry
  self.step()
  return true
end


function M:make_folder(path, mode)
  path = clean_path(path)
  local made = self.entries[path]
  if path ~= "/" and not made then
    self:make_folder(above(path))
  elseif made and not made.mode then
    return nil, "Not a directory"
  end
  return set(self, path, { mode = mode or made and made.mode or 448 })
end


function M:write(path, text, mode)
  return set(self, clean_path(path), { text = text, file_mode = mode })
end


function M:link(target, path)
  path = clean_path(path)
  return self.entries[path] ~= nil or set(self, path, { target = target })
end


function M:replace_link(target, path)
  return set(self, clean_path(path), { target = target })
end


function M:unlink(path)
  local entry = self.entries[clean_path(path)]
  if entry and entry.mode then
    return nil, "Is a directory"
  end
  self.entries[clean_path(path)] = nil
  self.step()
  return true
end


function M:remove(path)
  path = clean_path(path)
  for other in pairs(self.entries) do
    if other == path or other:sub(1, #path + 1) == path .. "/" then
      self.entries[other] = nil
    end
  end
  self.step()
  return true
end


function M:has(path)
  return self.entries[clean_path(path)] ~= nil
end


--- The entry at a path, with the links on the way followed. @return table|nil { text =, file_mode = } or { mode = }
function M:at(path)
  local here = ""
  for part in path:gmatch "[^/]+" do
    local entry = self.entries[clean_path(here .. "/" .. part)]
    if entry and entry.target then
      here = clean_path(here .. "/" .. entry.target)
      local _, is_deep = self:at(here)
      here = is_deep or here
    else
      here = clean_path(here .. "/" .. part)
    end
  end
  return self.entries[clean_path(here)], here
end


--- The text of a file, or nil.
function M:text(path)
  local entry = self:at(path)
  return entry and entry.text
end


--- The names in a folder, sorted.
function M:names(path)
  local prefix, names = clean_path(path) .. "/", {}
  for other in pairs(self.entries) do
    local name = other:sub(1, #prefix) == prefix and other:sub(#prefix + 1)
    if name and not name:find("/", 1, true) then
      names[#names + 1] = name
    end
  end
  table.sort(names)
  return names
end


return M
