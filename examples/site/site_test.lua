local moonloop = require "moonloop"
local testing = require "moonloop.testing"

local Deployment = moonloop.kind("apps/v1", "Deployment")

describe("site", function()
  it("has as many replicas as it asks for", function()
    local world = testing.world()
    world.apply {
      apiVersion = "example.com/v1", kind = "Site", metadata = { name = "blog" },
      spec = { image = "web:1", replicas = 3, title = "Blog" },
    }
    world.expect(Deployment, "blog", { spec = { replicas = 3 } })
  end)
end)
