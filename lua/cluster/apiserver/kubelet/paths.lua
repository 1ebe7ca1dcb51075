--- Paths as a container sees them.
local M = {}


--- @param path string of a mount or of a working directory  @return string absolute, without "." and ".."
function M.clean(path)
  local parts = {}
  for part in path:gmatch "[^/]+" do
    if part == ".." then
      parts[#parts] = nil
    elseif part ~= "." then
      parts[#parts + 1] = part
    end
  end
  return "/" .. table.concat(parts, "/")
end


return M
