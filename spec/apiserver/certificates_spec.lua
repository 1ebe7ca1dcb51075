-- CertificateSigningRequests and claims of devices: what is stored, and who says that nothing acts on it.
local host = require "cluster.host"
local testcluster = require "testcluster"

local CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
local MERGE = { ["content-type"] = "application/merge-patch+json" }

-- A request for a key on P-256, O=developers, CN=jane; from `openssl req`.
local REQUEST = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIZk1JR0dBZ0VBTUNReEV6QVJCZ05WQkFvTUNtUmxkbVZzYjNC"
  .. "bGNuTXhEVEFMQmdOVkJBTU1CR3BoYm1VdwpXVEFUQmdjcWhrak9QUUlCQmdncWhrak9QUU1CQndOQ0FBUVY4eEFTcTYzdkx2dFUr"
  .. "aWIrMnBXdGV0NVhRSE1sCmUwVGNHbjJZdVF4WHRvTDY1QVV3cThqQ2Nra2RaQkpzb2tHamRkcktXcVVTTzM1VTFDdzJ1MEZtb0FB"
  .. "d0NnWUkKS29aSXpqMEVBd0lEU0FBd1JRSWdacWloZHN2OFBueDdPZ2M3Q2JPWDI2SWtpb3VyYmcrbFM4aXRlWkdNRUpFQwpJUUND"
  .. "Q0dLMnpyMUJzaUpEaUpQU2pKNHQ3clNicGdDRWg2b0QxQ1ZRTGhQamFRPT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0t"
  .. "LS0tCg=="


describe("A CertificateSigningRequest", function()
  local cluster

  before_each(function()
    cluster = testcluster.new()
  end)

  local function ask(name, signer)
    cluster:must("POST", CSRS, {
      metadata = { name = name },
      spec = { request = REQUEST, signerName = signer, usages = host.json.array { "client auth" } },
    })
  end

  local function approve(name)
    cluster:must("PATCH", ("%s/%s/approval"):format(CSRS, name), { status = { conditions = host.json.array {
      { type = "Approved", status = "True", reason = "Known", message = "by hand" },
    } } }, MERGE)
    cluster.settle()
  end

  local function events(name)
    local found = {}
    for _, event in ipairs(cluster:must("GET", "/api/v1/namespaces/default/events").items) do
      found[#found + 1] = event.involvedObject.name == name and event.message or nil
    end
    return found
  end

  it("that is approved says once that nothing signs it", function()
    ask("jane", "kubernetes.io/kube-apiserver-client")
    cluster.settle()
    assert.same({}, events "jane")
    approve "jane"
    cluster:must("PATCH", CSRS .. "/jane", { metadata = { labels = { of = "jane" } } }, MERGE)
    cluster.settle()
    assert.same({
      "nothing here acts for signer kubernetes.io/kube-apiserver-client: the approved request is stored, and gets no "
        .. "certificate",
    }, events "jane")
  end)

  it("is left to its own signer", function()
    ask("ours", "example.com/ours")
    approve "ours"
    assert.same({}, events "ours")
  end)

  it("is no text that begins many blocks and ends none", function()
    for _, text in ipairs {
      ("-----BEGIN A-----\n"):rep(50000), ("x-----BEGIN A-----\n"):rep(50000) .. "-----END A-----",
      ("-----BEGIN "):rep(90000), ("-----BEGIN A-----\n-----END B-----\n"):rep(25000),
      ("-----BEGIN A-----\n"):rep(50000) .. "-----END A-----",
    } do
      local code, answer = cluster:call("POST", CSRS, {
        metadata = { name = "long" },
        spec = { request = host.base64.encode(text), signerName = "example.com/ours",
          usages = host.json.array { "client auth" } },
      })
      assert.equal(422, code)
      assert.truthy(answer.message:find("spec.request: Invalid value", 1, true), answer.message:sub(1, 200))
    end
  end)

  it("is not approved and denied at once", function()
    ask("both", "example.com/ours")
    approve "both"
    local code, answer = cluster:call("PATCH", CSRS .. "/both/approval", { status = { conditions = host.json.array {
      { type = "Approved", status = "True" }, { type = "Denied", status = "True" },
    } } }, MERGE)
    assert.equal(422, code)
    assert.truthy(answer.message:find("Approved and Denied conditions are mutually exclusive", 1, true), answer.message)
  end)
end)


describe("A pod with a claim of devices", function()
  it("waits, and says why", function()
    local cluster = testcluster.new()
    cluster:must("POST", "/api/v1/namespaces/default/pods", { metadata = { name = "gpu" }, spec = {
      containers = host.json.array { { name = "a", image = "x", command = { "true" } } },
      resourceClaims = host.json.array { { name = "card", resourceClaimName = "card" } },
    } })
    cluster.settle()
    local pod = cluster:must("GET", "/api/v1/namespaces/default/pods/gpu")
    assert.equal("Pending", pod.status.phase)
    local why = testcluster.condition(pod, "PodScheduled").message
    assert.truthy(why:find('resource claim "card" is only stored', 1, true), why)
  end)
end)
