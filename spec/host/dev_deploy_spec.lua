-- `make deploy` and `make deploy-scripts` by the distribution's kubectl, on a server without pods: which image is asked
-- for, and whose scripts there are afterwards.
local dev = require "spec.host.support.dev"
local shell = require "spec.e2e.support.shell"

local DEPLOYMENT = "/apis/apps/v1/namespaces/moonloop-system/deployments/moonloop"
local SCRIPTS = "/api/v1/namespaces/moonloop-system/configmaps/moonloop-scripts"


describe("make deploy", function()
  local server

  before_each(function() server = dev.start { "--pods", "none" } end)
  after_each(dev.stop_all)

  local function make(...)
    return shell.run(("KUBECONFIG=%s make %s 2>&1"):format(server.kubeconfig, shell.line { ... }))
  end

  local function image()
    return server:must("GET", DEPLOYMENT).spec.template.spec.containers[1].image
  end

  it("takes no image that a cluster would have from a stranger", function()
    for _, words in ipairs { { "deploy" }, { "deploy", "IMAGE=" }, { "deploy", "IMAGE=moonloop:0.1" },
      { "deploy", "IMAGE=a/b: c" } } do
      local said, code = make(table.unpack(words))
      assert.not_equal(0, code)
      assert.matches("deploy which image?.*make deploy IMAGE=registry.example/moonloop:0.1", said)
      assert.is_nil(server:get(DEPLOYMENT))
    end
  end)

  it("asks for the very image that it is given", function()
    for _, name in ipairs {
      "registry.example/moonloop:0.1", "localhost:5000/moonloop", "registry.example:5000/team/operator:1e3",
      "registry.example/moonloop@sha256:" .. ("0123456789abcdef"):rep(4),
    } do
      local said, code = make("deploy", "IMAGE=" .. name)
      assert.equal(0, code, said)
      assert.equal(name == "localhost:5000/moonloop" and name .. ":latest" or name, image())
    end
  end)

  it("leaves the scripts to make deploy-scripts", function()
    make("deploy", "IMAGE=registry.example/moonloop:0.1")
    assert.is_nil(server:get(SCRIPTS))
    assert.equal(0, select(2, make "deploy-scripts"))
    local shipped = server:must("GET", SCRIPTS).data
    assert.same({ ["cnat.lua"] = shell.read "reconcilers/cnat.lua" }, shipped)

    server:must("PATCH", SCRIPTS, { data = { ["cnat.lua"] = "-- edited in the cluster\n" } },
      { type = "application/merge-patch+json" })
    assert.equal(0, select(2, make("deploy", "IMAGE=registry.example/moonloop:0.2")))
    assert.equal("registry.example/moonloop:0.2", image())
    assert.same({ ["cnat.lua"] = "-- edited in the cluster\n" }, server:must("GET", SCRIPTS).data)
    assert.equal(0, select(2, make "deploy-scripts"))
    assert.same(shipped, server:must("GET", SCRIPTS).data)
  end)

  it("names an image that nobody can pull where deploy/ is applied without one", function()
    local said, code = shell.run(("kubectl --kubeconfig=%s apply -k deploy 2>&1"):format(server.kubeconfig))
    assert.equal(0, code, said)
    assert.equal("registry.invalid/moonloop", image())
  end)
end)
