--- A container on a machine that lets its user have none: a process in a folder of its own, where its volumes are
--- links: what is to be mounted at etc/x is at etc/x in this folder. For the real thing see mounts.lua.
local process = require "cluster.process"
local volumes = require "cluster.apiserver.kubelet.volumes"

local M = {}


-- Puts a volume, the folder `target`, where the container expects it, below its own folder.
local function link(target, root, entry)
  if entry.subPath and entry.subPath ~= "" then
    target = target .. "/" .. entry.subPath
    if not process.exists(target) then
      local ok, why = process.make_folder(target)
      if not ok then
        return nil, why
      end
    end
  end
  local path = root .. "/" .. entry.mountPath:gsub("^/+", ""):gsub("/+$", "")
  local ok, why = process.make_folder(path:match "^(.*)/[^/]*$")
  if ok then
    ok, why = process.link(target, path)
  end
  return ok, why
end


-- Where it starts: its folder, or workingDir below that, which is made when it is not there.
local function working_folder(container, root)
  if not container.workingDir or container.workingDir == "" then
    return root
  end
  local path = root .. "/" .. container.workingDir
  local ok, why = process.make_folder(path)
  return ok and path or nil, why
end


--- Makes a container's folder with its volumes in it.
--- @param place string the pod's own folder  @param run table see worker.lua
--- @return table|nil plan { directory = where it starts, root =, home =, message = the file of its last words }, or nil
---   and why not
function M.plan(place, run)
  local root = ("%s/%s"):format(place, run.container.name)
  local ok, why = process.make_folder(root)
  if ok then
    ok, why = volumes.each(place, run, function(entry, _, folder)
      return link(folder, root, entry)
    end)
  end
  local directory
  if ok then
    directory, why = working_folder(run.container, root)
  end
  if not directory then
    return nil, why
  end
  local message = run.container.terminationMessagePath
  if message then
    message = root .. "/" .. message
    process.make_folder(message:match "^(.*)/[^/]*$")
    process.remove(message)
  end
  return { directory = directory, root = root, home = root, message = message }
end


return M
