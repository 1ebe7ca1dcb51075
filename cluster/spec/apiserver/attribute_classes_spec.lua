-- Classes of volume attributes are protected while they are in use.
local testcluster = require "testcluster"

local CLASSES = "/apis/storage.k8s.io/v1/volumeattributesclasses"
local CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


describe("A VolumeAttributesClass", function()
  local cluster

  before_each(function()
    cluster = testcluster.new()
    cluster:must("POST", CLASSES, {
      metadata = { name = "fast" }, driverName = "csi.example.com", parameters = { iops = "5" },
    })
  end)

  local function is_there()
    cluster.settle()
    return (cluster:call("GET", CLASSES .. "/fast")) == 200
  end

  it("goes when nothing has it", function()
    cluster:must("DELETE", CLASSES .. "/fast")
    assert.is_false(is_there())
  end)

  it("stays while a claim has it", function()
    cluster:must("POST", CLAIMS, {
      metadata = { name = "c" },
      spec = {
        volumeAttributesClassName = "fast", accessModes = { "ReadWriteOnce" },
        resources = { requests = { storage = "1Gi" } },
      },
    })
    cluster:must("DELETE", CLASSES .. "/fast")
    assert.is_true(is_there())
    cluster:must("DELETE", CLAIMS .. "/c")
    assert.is_false(is_there())
  end)
end)
