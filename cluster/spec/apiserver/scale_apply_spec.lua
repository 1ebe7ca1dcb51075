--- Server-side apply of a Scale: who owns the replicas of the object scaled, and who may change them.
local testserver = require "testserver"

local DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
local DEPLOYMENT = { apiVersion = "apps/v1", kind = "Deployment", metadata = { name = "web" }, spec = {
  replicas = 3, selector = { matchLabels = { app = "web" } },
  template = { metadata = { labels = { app = "web" } }, spec = { containers = { { name = "c", image = "i" } } } },
} }


describe("an applied Scale", function()
  local world

  before_each(function()
    world = testserver.new()
    assert.equal(201, (world:patch("apply", DEPLOYMENTS .. "/web?fieldManager=owner", DEPLOYMENT)))
  end)

  local function scale(replicas, query, path)
    local code, answer = world:patch("apply", (path or DEPLOYMENTS .. "/web") .. "/scale?" .. query, {
      apiVersion = "autoscaling/v1", kind = "Scale", metadata = { name = "web" }, spec = { replicas = replicas },
    })
    return code, answer
  end

  -- Manager → whether it owns a path.
  local function owners(path, ...)
    local found = {}
    for _, entry in ipairs(world:must("GET", path).metadata.managedFields) do
      local at = entry.fieldsV1
      for _, key in ipairs { ... } do
        at = at and at[key]
      end
      found[entry.manager] = at ~= nil and (entry.subresource or true)
    end
    return found
  end

  local function owners_of_replicas()
    return owners(DEPLOYMENTS .. "/web", "f:spec", "f:replicas")
  end

  it("shares a number that others want as well", function()
    local code, answer = scale(3, "fieldManager=scaler")
    assert.equal(200, code)
    assert.equal("Scale", answer.kind)
    assert.is_nil(answer.metadata.managedFields)
    assert.same({ owner = true, scaler = "scale" }, owners_of_replicas())
  end)

  it("conflicts with who owns the replicas, and takes them by force", function()
    local code, answer = scale(5, "fieldManager=scaler")
    assert.same({ 409, ".spec.replicas" }, { code, answer.details.causes[1].field })
    assert.equal(200, (scale(5, "fieldManager=scaler&force=true")))
    assert.same({ owner = false, scaler = "scale" }, owners_of_replicas())
    assert.equal(5, world:must("GET", DEPLOYMENTS .. "/web").spec.replicas)
    assert.equal(409, (world:patch("apply", DEPLOYMENTS .. "/web?fieldManager=owner", DEPLOYMENT)))
  end)

  it("that names no number any more asks for none, as its only owner", function()
    scale(5, "fieldManager=scaler&force=true")
    assert.equal(200, (world:patch("apply", DEPLOYMENTS .. "/web/scale?fieldManager=scaler", {
      apiVersion = "autoscaling/v1", kind = "Scale", metadata = { name = "web" },
    })))
    assert.same({ owner = false }, owners_of_replicas())
    assert.equal(0, world:must("GET", DEPLOYMENTS .. "/web").spec.replicas)
  end)

  it("is only tried in a dry run", function()
    local code, answer = scale(7, "fieldManager=scaler&force=true&dryRun=All")
    assert.same({ 200, 7 }, { code, answer.spec.replicas })
    assert.equal(3, world:must("GET", DEPLOYMENTS .. "/web").spec.replicas)
  end)

  it("is refused when it is none, for an object that is not there, and with bad numbers", function()
    local other = { apiVersion = "autoscaling/v1", kind = "Scale", metadata = { name = "web", uid = "another" } }
    assert.equal(409, (world:patch("apply", DEPLOYMENTS .. "/web/scale?fieldManager=scaler", other)))
    assert.equal(404, (scale(1, "fieldManager=scaler", DEPLOYMENTS .. "/none")))
    assert.equal(422, (scale(-1, "fieldManager=scaler&force=true")))
    assert.equal(500, (scale("many", "fieldManager=scaler")))
    assert.equal(422, (scale(1, "force=true")))
    assert.equal(400, (world:patch("apply", DEPLOYMENTS .. "/web/scale?fieldManager=scaler", DEPLOYMENT)))
    assert.same({ owner = true }, owners_of_replicas())
  end)

  it("of a custom object changes nothing, as on a real server, and is shared", function()
    world:must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
      metadata = { name = "herds.spec.test" }, spec = {
        group = "spec.test", scope = "Namespaced", names = { plural = "herds", kind = "Herd" },
        versions = { { name = "v1", served = true, storage = true,
          schema = { openAPIV3Schema = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true } },
          subresources = { scale = { specReplicasPath = ".spec.cows.count", statusReplicasPath = ".status.cows" } },
        } },
      },
    })
    world.settle()
    local path = "/apis/spec.test/v1/namespaces/default/herds/web"
    assert.equal(201, (world:patch("apply", path .. "?fieldManager=owner", {
      apiVersion = "spec.test/v1", kind = "Herd", metadata = { name = "web" },
      spec = { cows = { count = 2 }, bulls = 1 },
    })))
    local code, answer = scale(4, "fieldManager=scaler&force=true", path)
    assert.equal(500, code)
    assert.matches("request to convert CR to an invalid group/version: autoscaling/v1$", answer.message)
    assert.equal(2, world:must("GET", path).spec.cows.count)
    assert.equal(200, (scale(2, "fieldManager=scaler", path)))
    assert.same({ owner = true, scaler = "scale" }, owners(path, "f:spec", "f:cows", "f:count"))
    assert.same({ owner = true, scaler = false }, owners(path, "f:spec", "f:bulls"))
  end)
end)
