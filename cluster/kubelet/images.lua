--- Images that stand for a program of this machine. No image is pulled: a container's command runs with the machine's
--- tools. Only for these images is it known what they run without a command.
local clean_path = require "cluster.apiserver.clean_path"
local regex = require "cluster.regex"

local M = {}
M.__index = M

-- The image of this very program, so that deploy/ runs here as it is.
local OWN <const> = "moonloop"

local IN_PATH <const> = "/usr/local/bin/"

-- The parts of an image's name; an upper-case letter in the repository has words of its own.
local LABEL <const>, PART <const> = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?", "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
local DOMAIN = assert(regex.compile(("^(?:%s(?:\\.%s)*|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?$"):format(LABEL, LABEL)))
local REST = assert(regex.compile(("^%s(?:/%s)*(?::[0-9A-Za-z_][0-9A-Za-z_.-]{0,127})?"
  .. "(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?$"):format(PART, PART)))


-- A name in its parts, with what Docker puts in front of a short one. @return string|nil domain, string the rest
local function split(image)
  local domain, rest = image:match "^([^/]*)/(.*)$"
  if domain and (domain == "localhost" or domain:find "[.:%u]") then
    return domain, rest
  end
  return nil, domain and image or "library/" .. image
end


--- Why a text is no name of an image, in the words of the kubelet; nil when it is one.
--- Rules: kubernetes/pkg/util/parsers; github.com/distribution/reference.
function M.problem_of_name(image)
  local domain, rest = split(image)
  local repository = rest:match "^[^:]*"
  local why
  if #image == 64 and not image:find "[^%da-f]" then
    why = ("invalid repository name (%s), cannot specify 64-byte hexadecimal strings"):format(image)
  elseif repository:find "%u" then
    why = ("invalid reference format: repository name (%s) must be lowercase"):format(repository)
  elseif domain and not DOMAIN:match(domain) or not REST:match(rest) then
    why = "invalid reference format"
  end
  return why and ("Failed to apply default image tag %q: couldn't parse image name %q: %s"):format(image, image, why)
end


--- An image's name without its digest and tag.
function M.repository(image)
  return (image:gsub("@.*$", ""):gsub(":[^:/]*$", ""))
end


--- @param programs table { [NAME] = { source = absolute path, target = where containers see it, or nil, arguments } }:
---   an image is called NAME from whatever registry
function M.new(programs)
  return setmetatable({ programs = programs or {} }, M)
end


local function is_at_or_below(path, folder)
  return path == folder or path:sub(1, #folder + 1) == folder .. "/"
end


-- Tells which part of a container is at a path, or below it, so that no program can be there. nil: none.
local function use_of(container, path)
  for _, mount in ipairs(container.volumeMounts or {}) do
    if is_at_or_below(clean_path(mount.mountPath), path) then
      return ("volume %q"):format(mount.name)
    end
  end
  if is_at_or_below(clean_path(container.workingDir or ""), path) then
    return "its workingDir"
  end
end


-- Where a container finds a program if nobody said where: where its command looks, or else in "/", if that is free.
local function place_of(container, name)
  local word = (container.command or {})[1] or ""
  if word:sub(1, 1) == "/" and word:match "[^/]*$" == name then
    return clean_path(word)
  end
  return (word == name or use_of(container, "/" .. name)) and IN_PATH .. name or "/" .. name
end


-- The program that an image stands for, as M.new takes it; or nil.
local function program_of(self, name)
  if self.programs[name] then
    return self.programs[name]
  elseif name == OWN then
    local source, why = require("cluster.process").executable()
    return { source = source, why = why, name = OWN, arguments = {} }
  end
end


--- Returns the program that the image of a container stands for.
--- @return table|nil program { source = its path on this machine, or nil and why = it has none, target = where
---   the container sees it, arguments = if the container has no args }; nil where the image stands for none
function M:find(container)
  local image = M.repository(container.image):match "[^/]*$"
  local program = program_of(self, image)
  if not program then
    return nil
  end
  local target = program.target and clean_path(program.target)
    or place_of(container, program.name or program.source:match "[^/]*$")
  local use = use_of(container, target)
  return {
    source = not use and program.source or nil,
    why = use and ("the program of image %s cannot be at %s: %s is there. --image %s=PROGRAM:PATH says another path")
      :format(image, target, use, image) or program.why,
    target = target,
    arguments = program.arguments,
  }
end


return M
