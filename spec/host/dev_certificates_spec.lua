-- moonloop dev: who has a certificate that the cluster has signed is its subject, over TLS.
local dev = require "spec.host.support.dev"
local mime = require "mime"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
local PODS = "/api/v1/namespaces/default/pods"
local REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


local function openssl(...)
  shell.must(shell.line { "openssl", ... })
end


-- A key, and a request for it. @return table { key =, certificate = a path, still to be written }, string request
local function new_client(subject)
  local folder = shell.folder "client"
  local client = { key = folder .. "/key.pem", certificate = folder .. "/cert.pem" }
  openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", client.key)
  openssl("req", "-new", "-key", client.key, "-subj", subject, "-out", folder .. "/csr.pem")
  return client, shell.read(folder .. "/csr.pem")
end


-- Sends a request by curl with the client's certificate; returns the code and the body.
local function ask(server, client, path, body)
  local words = { "curl", "-s", "-A", "spec", "-w", "\n%{http_code}", "--cacert", server.ca,
    "--cert", client.certificate, "--key", client.key, "-H", "Content-Type: application/json" }
  if body then
    table.move({ "-d", body }, 1, 2, #words + 1, words)
  end
  words[#words + 1] = ("https://127.0.0.1:%d%s"):format(server.port, path)
  local text, code = shell.must(shell.line(words)):match "^(.*)\n(%d+)%s*$"
  return math.tointeger(tonumber(code)), text
end


-- A client with a certificate of the cluster.
local function sign(server, name, subject)
  local client, request = new_client(subject)
  server:must("POST", CSRS, { metadata = { name = name }, spec = {
    request = (mime.b64(request)), signerName = "kubernetes.io/kube-apiserver-client", usages = { "client auth" },
    expirationSeconds = 3600,
  } })
  local object = server:get(CSRS .. "/" .. name)
  object.status = { conditions = { { type = "Approved", status = "True", reason = "Spec", message = "by a spec" } } }
  server:must("PUT", ("%s/%s/approval"):format(CSRS, name), object)
  local certificate = wait.till("a certificate", 5, function()
    return server:get(CSRS .. "/" .. name).status.certificate
  end)
  shell.write(client.certificate, (mime.unb64(certificate)))
  return client
end


describe("moonloop dev, to a client with a certificate", function()
  after_each(dev.stop_all)

  it("is open as far as roles let its subject, and again when it starts with the same data", function()
    local data = shell.path "data"
    local words = { "--data", data, "--pods", "none", "--authorization-mode", "RBAC" }
    local server = dev.start(words)
    local client = sign(server, "jane", "/O=developers/CN=jane")
    local code, body = ask(server, client, REVIEWS, "{}")
    assert.equal(201, code)
    assert.truthy(body:find('"username":"jane"', 1, true) and body:find('"developers"', 1, true), body)
    code, body = ask(server, client, PODS)
    assert.equal(403, code)
    assert.truthy(body:find('User \\"jane\\" cannot list resource', 1, true), body)
    server:must("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", {
      metadata = { name = "developers" },
      roleRef = { apiGroup = "rbac.authorization.k8s.io", kind = "ClusterRole", name = "view" },
      subjects = { { apiGroup = "rbac.authorization.k8s.io", kind = "Group", name = "developers" } },
    })
    assert.equal(200, (ask(server, client, PODS)))
    assert.equal("600", (shell.must("stat -c %a " .. shell.quote(data .. "/ca.key")):gsub("%s", "")))
    local ca = shell.read(server.ca)
    assert.equal(ca, server:get("/api/v1/namespaces/default/configmaps/kube-root-ca.crt").data["ca.crt"])
    assert.equal(0, server:stop())
    server = dev.start(words)
    assert.equal(ca, shell.read(server.ca))
    assert.equal(200, (ask(server, client, PODS)))
  end)

  it("is closed when another authority has signed it, and says why in its log", function()
    local server = dev.start { "--pods", "none" }
    local client = new_client "/O=system:masters/CN=root"
    openssl("req", "-x509", "-key", client.key, "-subj", "/O=system:masters/CN=root", "-out", client.certificate)
    local code, body = ask(server, client, "/api/v1/namespaces")
    assert.equal(401, code)
    assert.truthy(body:find('"message":"Unauthorized"', 1, true), body)
    assert.truthy(server.host:stderr():find("x509: certificate signed by unknown authority", 1, true))
  end)
end)
