--- Files and folders, for the tests of scripts.
local lfs = require "lfs" -- busted needs it, so it is there

local M = {}


function M.is_folder(path)
  return lfs.attributes(path, "mode") == "directory"
end


--- The folder of a file.
function M.folder_of(file)
  return file:match "^(.*)/[^/]*$" or "."
end


--- The paths of what is in a folder, hidden files left out, by name.
function M.list(folder)
  local paths = {}
  for name in lfs.dir(folder) do
    if name:sub(1, 1) ~= "." then
      paths[#paths + 1] = folder .. "/" .. name
    end
  end
  table.sort(paths)
  return paths
end


return M
