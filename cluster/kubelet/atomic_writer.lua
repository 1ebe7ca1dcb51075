--- Writes the files of a volume so that a reader sees all of one version of them, and never a part of two.
---
--- The files of a version are in a folder that has a time as its name, and `..data` is a link to it. Each file that
--- the volume shows, or folder of files, is a link through `..data`. The next version gets a folder of its own; then
--- `..data` leads to it, in one step, and the earlier folder is removed.
---
--- Rules: kubernetes/pkg/volume/util/atomic_writer.go.
local host = require "cluster.host"

local M = {}
M.__index = M

local DATA = "..data"
local FOLDER_MODE, VOLUME_MODE = 493, 511 -- 0755, 0777
local RANDOM = 1000000000


--- A volume that has no files yet.
--- @param base table a folder of ours: cluster.process.Folder  @param path string of the volume below it
function M.new(base, path)
  return setmetatable({
    base = base,
    path = path,
    -- version = the name of the folder that ..data leads to; nil: none
    -- files = what was written there: see write
  }, M)
end


local function sorted_names(files)
  local names = {}
  for name in pairs(files) do
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end


-- Modes count for nothing: a pod's spec says them, which stays.
local function are_equal(files, others)
  for name, file in pairs(files) do
    if not others[name] or others[name].text ~= file.text then
      return false
    end
  end
  for name in pairs(others) do
    if not files[name] then
      return false
    end
  end
  return true
end


-- The folders that a file is in, from the top.
local function make_parents(base, path, name)
  local ok, why = true, nil
  for slash in name:gmatch "()/" do
    if ok then
      ok, why = base:make_folder(path .. "/" .. name:sub(1, slash - 1), FOLDER_MODE)
    end
  end
  return ok, why
end


--- Makes a folder with these files, without links. Files that are there already stay, but for those of the same names.
--- The first step that fails ends it.
--- @param path string below `base`  @param files table path → { text =, mode = }
--- @return true, or nil and why not
function M.write_files(base, path, files)
  local ok, why = base:make_folder(path, FOLDER_MODE)
  for _, name in ipairs(sorted_names(files)) do
    if ok then
      ok, why = make_parents(base, path, name)
    end
    if ok then
      -- It may be there from a run before, and not writable.
      ok, why = base:unlink(path .. "/" .. name)
    end
    if ok then
      ok, why = base:write(path .. "/" .. name, files[name].text, files[name].mode)
    end
  end
  return ok, why
end


-- The names in the volume itself: of files, and of the folders that hold files.
local function shown_names(files)
  local shown = {}
  for name in pairs(files) do
    shown[name:match "^[^/]+"] = true
  end
  return shown
end


local function link_names(self, files)
  local ok, why = true, nil
  for name in pairs(shown_names(files)) do
    if ok then
      ok, why = self.base:link(DATA .. "/" .. name, self.path .. "/" .. name)
    end
  end
  return ok, why
end


local function unlink_names(self, before, now)
  local shown = shown_names(now)
  for name in pairs(shown_names(before)) do
    if not shown[name] then
      self.base:unlink(self.path .. "/" .. name)
    end
  end
end


local function new_version()
  return ("%s%09d"):format(os.date("!..%Y_%m_%d_%H_%M_%S.", math.floor(host.now())), host.random(RANDOM))
end


local function write_version(self, version, files)
  local base, path = self.base, self.path
  local ok, why = base:make_folder(path, VOLUME_MODE)
  if ok then
    ok, why = M.write_files(base, path .. "/" .. version, files)
  end
  if ok then
    ok, why = link_names(self, files)
  end
  if ok then
    ok, why = base:replace_link(version, path .. "/" .. DATA)
  end
  return ok, why
end


--- Gives the volume these files. Where that fails, it keeps those that it has.
--- @param files table path → { text =, mode = }; no path has ".." or begins with it, as validation makes sure; belongs
---   to the writer then
--- @return true, or nil and why not
function M:write(files)
  if self.version and are_equal(files, self.files) then
    return true
  end
  local version = new_version()
  local ok, why = write_version(self, version, files)
  if not ok then
    self.base:remove(self.path .. "/" .. version)
    return nil, why
  end
  if self.version then
    unlink_names(self, self.files, files)
    self.base:remove(self.path .. "/" .. self.version)
  end
  self.version, self.files = version, files
  return true
end


return M
