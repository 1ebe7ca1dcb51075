--- A container on a machine that lets its user have none: a process in a folder of its own, where its volumes are
--- links: what is to be mounted at etc/x is at etc/x in this folder. For the real thing see mounts.lua.
---
--- The process may put links into its folder and its volumes. None is followed here: what this writes and removes is
--- in them.
local atomic_writer = require "cluster.kubelet.atomic_writer"
local clean_path = require "cluster.apiserver.clean_path"
local volumes = require "cluster.kubelet.volumes"

local M = {}


-- The last part of a path that objects give, and what is above it.
local function parts_of(path)
  return path:match "^/*(.-)/*([^/]+)/*$"
end


-- The files at a path of a volume, for a copy with that name.
local function files_at(files, path, name)
  local found = {}
  for of_volume, file in pairs(files) do
    if of_volume == path then
      found[name] = file
    elseif of_volume:sub(1, #path + 1) == path .. "/" then
      found[name .. of_volume:sub(#path + 1)] = file
    end
  end
  return found
end


-- A part of a volume whose files change stays as it is now: the container gets a copy. @return string|nil the whole
-- path of the copy, or nil and why there is none
local function copy_part(folder, place, container, part, number)
  local path, name = "/volumes/.parts/" .. container.name, tostring(number)
  local files = files_at(folder.files, clean_path(part):sub(2), name)
  local ok, why = place.base:remove(place.path .. path .. "/" .. name)
  if ok then
    ok, why = atomic_writer.write_files(place.base, place.path .. path, files)
  end
  if ok and not next(files) then
    ok, why = place.base:make_folder(place.path .. path .. "/" .. name)
  end
  return ok and place.folder .. path .. "/" .. name or nil, why
end


-- The whole path of a part of a volume; what is missing of it is made. @return string|nil, or nil and why not
local function part_of(folder, place, container, part, number)
  if folder.files then
    return copy_part(folder, place, container, part, number)
  end
  local path, ok, why = folder.path .. "/" .. part, true, nil
  if not folder.base:has(path) then
    ok, why = folder.base:make_folder(path)
  end
  return ok and folder.folder .. "/" .. part or nil, why
end


-- Puts a volume where the container expects it, below its own folder.
-- @param mount table, number integer  see volumes.lua
local function link(mount, number, place, container, root)
  local target, ok, why = mount.folder.folder, true, nil
  if mount.part then
    target, why = part_of(mount.folder, place, container, mount.part, number)
    ok = target ~= nil
  end
  local above, name = parts_of(mount.entry.mountPath)
  if ok then
    ok, why = place.base:make_folder(root .. "/" .. above)
  end
  if ok then
    ok, why = place.base:link(target, ("%s/%s/%s"):format(root, above, name))
  end
  return ok, why
end


-- Where it starts: its folder, or workingDir below that, which is made when it is not there.
local function working_folder(container, place, root)
  local folder = ("%s/%s"):format(place.folder, container.name)
  if not container.workingDir or container.workingDir == "" then
    return folder
  end
  local ok, why = place.base:make_folder(root .. "/" .. container.workingDir)
  return ok and folder .. "/" .. container.workingDir or nil, why and "workingDir: " .. why
end


-- The place of its termination message; an earlier one is removed. @return string|nil path below place.base
local function message_path(container, base, root)
  local above, name = parts_of(container.terminationMessagePath or "")
  if not name or not base:make_folder(root .. "/" .. above) then
    return nil
  end
  local path = ("%s/%s/%s"):format(root, above, name)
  return base:unlink(path) and path or nil
end


--- Makes a container's folder with its volumes in it.
--- @param place table the pod's own: see process_runtime.lua  @param run table see pod_worker.lua
--- @return table|nil plan { directory = where it starts, root =, home =, message = the file of its termination message,
---   below place.base }, or nil and why not
function M.plan(place, run)
  local base, container = place.base, run.container
  local root, folder = ("%s/%s"):format(place.path, container.name), ("%s/%s"):format(place.folder, container.name)
  local ok, why = base:make_folder(root)
  if ok then
    ok, why = volumes.each(place, run, function(mount, number)
      return link(mount, number, place, container, root)
    end)
  end
  local directory
  if ok then
    directory, why = working_folder(container, place, root)
  end
  if not directory then
    return nil, why
  end
  return { directory = directory, root = folder, home = folder, message = message_path(container, base, root) }
end


return M
