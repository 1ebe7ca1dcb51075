-- Watches the Secrets with the label app=picked, and their metadata alone; makes one, and one that it would not see.
local moonloop = require "moonloop"

local Thing = moonloop.kind("example.com/v1", "Thing")
local Secret = moonloop.kind("v1", "Secret", { labels = "app in (picked, chosen)", metadata_only = true })

local function secret(name, app)
  return {
    apiVersion = "v1", kind = "Secret",
    metadata = { name = name, labels = { app = app } },
    stringData = { k = "v" },
  }
end


local function concerned(found)
  return found.metadata.labels["for"] and { { namespace = "default", name = found.metadata.labels["for"] } }
end


return moonloop.controller {
  name = "picked",
  reconciles = Thing,
  owns = { Secret },
  watches = { moonloop.watch(Secret, concerned) },

  reconcile = function(thing, ctx)
    if thing.spec.mode == "stray" then
      ctx.ensure(secret("stray", "other"))
    end
    local made = assert(ctx.ensure(secret("made", "picked")))
    local seen = {}
    for index, found in ipairs(ctx.list(Secret)) do
      seen[index] = found.metadata.name .. (found.data and " with data" or "")
    end
    return { status = { seen = table.concat(seen, ", "), made = made.data.k } }
  end,
}
