-- As parts.lua; which changes count is the script's own to say, and an annotation makes it go wrong.
local moonloop = require "moonloop"

local Thing = moonloop.kind("example.com/v1", "Thing")
local ConfigMap = moonloop.kind("v1", "ConfigMap")

local function counts(old, new)
  local how = new.metadata.annotations.how
  if how == "raise" then
    error "cannot judge this"
  elseif how == "nothing" then
    return nil
  elseif how == "for ever" then
    while true do end
  end
  return old.status.phase ~= new.status.phase
end

return moonloop.controller {
  name = "judged",
  reconciles = Thing,
  when = counts,
  uses = { ConfigMap },

  reconcile = function(thing, ctx)
    assert(ctx.create {
      apiVersion = "v1", kind = "ConfigMap",
      metadata = { name = ("called-%s-%s"):format(thing.metadata.name, thing.metadata.resourceVersion) },
    })
  end,
}
