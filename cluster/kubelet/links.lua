--- A container on a machine that lets its user have none: a process in a folder of its own, where its volumes are
--- links: what is to be mounted at etc/x is at etc/x in this folder. For the real thing see mounts.lua.
---
--- The process may put links into its folder and its volumes. None is followed here: what this writes and removes is
--- in them.
local volumes = require "cluster.kubelet.volumes"

local M = {}


-- The last part of a path that objects give, and what is above it.
local function parts_of(path)
  return path:match "^/*(.-)/*([^/]+)/*$"
end


-- Puts a volume where the container expects it, below its own folder. @param folder table see volumes.lua
local function link(folder, base, root, entry)
  local target, ok, why = folder.folder, true, nil
  if entry.subPath and entry.subPath ~= "" then
    target = target .. "/" .. entry.subPath
    local path = folder.path .. "/" .. entry.subPath
    if not folder.base:has(path) then
      ok, why = folder.base:make_folder(path)
    end
  end
  local above, name = parts_of(entry.mountPath)
  if ok then
    ok, why = base:make_folder(root .. "/" .. above)
  end
  if ok then
    ok, why = base:link(target, ("%s/%s/%s"):format(root, above, name))
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
    ok, why = volumes.each(place, run, function(entry, _, volume)
      return link(volume, base, root, entry)
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
