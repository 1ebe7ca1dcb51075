local moonloop = require "moonloop"

local Site = moonloop.kind("example.com/v1", "Site")
local Page = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "site",
  reconciles = Site,
  owns = { Page },

  reconcile = function(site, ctx)
    local page = ctx.get(Page, site.metadata.name .. "-page")
    return {
      status = { observedGeneration = site.metadata.generation },
      conditions = {
        Ready = { status = page ~= nil, reason = page and "PageThere" or "NoPage" },
        Large = page and { status = #page.data.html > 1000 } or moonloop.null,
      },
    }
  end,
}
