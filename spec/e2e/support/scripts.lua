-- The scripts that the specs run: cnat as it is shipped, versions of it that differ in one
-- place, and small ones for a kind of their own.
local cluster = require "spec.e2e.support.cluster"
local shell = require "spec.e2e.support.shell"

local M = {}

--- reconcilers/cnat.lua.
M.cnat = assert(shell.read "reconcilers/cnat.lua")

--- The text with one place of it replaced; fails when that is not there once.
function M.edited(text, old, new)
  local first, last = text:find(old, 1, true)
  assert(first, "not in the script: " .. old)
  assert(not text:find(old, last + 1, true), "twice in the script: " .. old)
  return text:sub(1, first - 1) .. new .. text:sub(last + 1)
end


--- cnat whose pods have another image.
function M.cnat_with_image(image)
  return M.edited(M.cnat, 'image = "busybox"', ('image = "%s"'):format(image))
end


--- cnat that also accepts `in 5s`: so many seconds after the At was made.
function M.cnat_with_in()
  local text = M.edited(M.cnat, "local function due(schedule)\n", [[
local function due(schedule, created)
  local seconds = schedule:match("^in (%d+)s$")
  if seconds then
    return time.parse(created) + tonumber(seconds)
  end
]])
  return M.edited(text, "due(at.spec.schedule)", "due(at.spec.schedule, at.metadata.creationTimestamp)")
end


--- cnat with a syntax error; and the place that the error names.
function M.cnat_broken()
  local text = M.edited(M.cnat, "local function words(line)", "local funktion words(line)")
  local _, err = load(text, "@cnat.lua")
  return text, err:match "^cnat%.lua:%d+:"
end


--- Installs the kind Widget, which has any spec and status.
function M.install_widgets()
  cluster.install("spec/e2e/fixtures/widgets.yaml", "widgets.e2e.moonloop.dev")
end


--- A controller of Widgets that copies spec.say to status.said.
M.widgets = [[
local moonloop = require "moonloop"
local Widget = moonloop.kind("e2e.moonloop.dev/v1", "Widget")

return moonloop.controller {
  name = "widgets",
  reconciles = Widget,
  reconcile = function(widget)
    return { status = { said = widget.spec.say } }
  end,
}
]]

--- A controller of Widgets: one that has spec.say owns three ConfigMaps.
M.parts = [[
local moonloop = require "moonloop"
local Widget = moonloop.kind("e2e.moonloop.dev/v1", "Widget")
local ConfigMap = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "parts",
  reconciles = Widget,
  owns = { ConfigMap },
  reconcile = function(widget)
    local children = {}
    if widget.spec.say then
      for i = 1, 3 do
        children[i] = {
          apiVersion = "v1", kind = "ConfigMap", metadata = { name = widget.metadata.name .. "-" .. i },
          data = { said = widget.spec.say },
        }
      end
    end
    return { children = children, status = { said = widget.spec.say } }
  end,
}
]]

--- A folder with these files.
---@param files table<string, string> content by name
function M.folder(files)
  local path = shell.folder "scripts"
  for name, text in pairs(files) do
    shell.write(path .. "/" .. name, text)
  end
  return path
end


return M
