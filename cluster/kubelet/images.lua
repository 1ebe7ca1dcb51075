--- Images that stand for a program of this machine. No image is pulled: a container's command runs with the machine's
--- tools. Only for these images is it known what they run without a command.
local process = require "cluster.process"

local M = {}
M.__index = M

-- The image of this very program, so that deploy/ runs here as it is.
local OWN <const> = "moonloop"


--- An image's name without its digest and tag.
function M.repository(image)
  return (image:gsub("@.*$", ""):gsub(":[^:/]*$", ""))
end


--- @param programs table { [NAME] = { absolute path, arguments… } }: an image is called NAME from whatever registry
function M.new(programs)
  return setmetatable({ programs = programs or {} }, M)
end


--- Returns the program that an image stands for.
--- @return table|nil program { source = its path on this machine, or nil and why = it has none, target = where
---   containers see it, arguments = of containers that have no args }; nil where the image stands for none
function M:find(image)
  local name = M.repository(image):match "[^/]*$"
  local words = self.programs[name]
  if words then
    return { source = words[1], target = "/" .. words[1]:match "[^/]*$", arguments = { table.unpack(words, 2) } }
  elseif name == OWN then
    local source, why = process.executable()
    return { source = source, why = why, target = "/" .. OWN, arguments = {} }
  end
end


return M
