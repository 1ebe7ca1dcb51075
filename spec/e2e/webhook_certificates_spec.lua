-- Certificates of webhooks are replaced while the API server calls these: the server's, and then the authority with
-- all its steps. An edit of the Secret brings about the changes that otherwise come after months.
local api = require "spec.e2e.support.api"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local http = require "spec.e2e.support.http"
local mime = require "mime"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"
local webhooks = require "spec.e2e.support.webhooks"

local SECRET = "moonloop-webhook-cert"
local CERT_SECONDS = 30 -- so an authority is replaced when it has 40 left, and each of its steps takes three
local WRITES_MAX = 150 -- of each test

local SCRIPT = [[
local moonloop = require "moonloop"

return moonloop.controller {
  name = "NAME",
  reconciles = moonloop.kind("GROUP/v1", "Part"),
  default = function(part) part.spec.filled = true end,
  validate = function(part) return not part.spec.filled and "it was not filled" or nil end,
  convert = {
    v1alpha1 = {
      to = function(part) part.spec.size, part.spec.width = part.spec.width, nil end,
      from = function(part) part.spec.width, part.spec.size = part.spec.size, nil end,
    },
  },
  reconcile = function() end,
}
]]

-- openssl ca is what takes an end in seconds.
local AUTHORITY = [[
[ca]
default_ca = own
[own]
database = FOLDER/index
new_certs_dir = FOLDER
rand_serial = yes
default_md = sha256
policy = any
unique_subject = no
x509_extensions = authority
[any]
commonName = supplied
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
]]

local function version(name, stored)
  local any = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true }
  return {
    name = name, served = true, storage = stored, subresources = { status = {} },
    schema = { openAPIV3Schema = { type = "object", properties = { spec = any, status = any } } },
  }
end


-- How many certificates a text has.
local function count(pem)
  return select(2, pem:gsub("END CERTIFICATE", ""))
end


describe("The certificates of webhooks", function()
  local ns, name, group, port
  local writes, bundle_path = 0, shell.path "bundle.crt"

  setup(function()
    ns, name = cluster.namespace "certificates", cluster.unique "parts"
    group = name .. ".example.com"
    local folder = shell.folder "scripts"
    shell.write(folder .. "/part.lua", (SCRIPT:gsub("GROUP", group):gsub("NAME", name)))
    local definition = {
      metadata = { name = "parts." .. group },
      spec = {
        group = group, scope = "Namespaced", versions = { version("v1", true), version("v1alpha1", false) },
        names = { kind = "Part", listKind = "PartList", plural = "parts", singular = "part" },
      },
    }
    api.create("CustomResourceDefinition", nil, definition)
    local moonloop = host.start {
      name = "certificates", scripts = folder,
      kubeconfig = webhooks.restricted(definition, folder .. "/part.lua", ns),
      args = webhooks.flags(ns, "--webhook-cert-seconds", tostring(CERT_SECONDS)),
    }
    moonloop:till_ready()
    port = webhooks.register(moonloop, folder .. "/part.lua")
    webhooks.till_trusted(moonloop)
  end)

  teardown(function()
    host.stop_all()
    webhooks.forget(name)
    api.delete("CustomResourceDefinition", nil, "parts." .. group)
    cluster.forget(ns)
  end)

  -- In v1alpha1 every second time: that one is converted as well. The real server is not ready for a kind for a moment
  -- when its definition has changed (429), and says so before it calls anybody. @return boolean?, string why
  local function write()
    writes = writes + 1
    local old = writes % 2 == 0
    local served = old and "v1alpha1" or "v1"
    local answer, code
    wait.till("the kind to be served", 10, function()
      answer, code = api.request("POST", ("/apis/%s/%s/namespaces/%s/parts"):format(group, served, ns), {
        apiVersion = group .. "/" .. served, kind = "Part", metadata = { name = "part-" .. writes },
        spec = { [old and "width" or "size"] = writes },
      })
      return code ~= 429, answer and answer.message
    end)
    local spec = answer and answer.spec or {}
    return code == 201 and spec.filled and spec[old and "width" or "size"] == writes, answer and answer.message
  end

  -- Whom the objects that call us trust: one text for all of them, or nil while they differ.
  local function trusted()
    local configuration = "/apis/admissionregistration.k8s.io/v1/%swebhookconfigurations/moonloop-" .. name
    local bundles = {}
    for _, kind in ipairs { "mutating", "validating" } do
      bundles[#bundles + 1] = api.request("GET", configuration:format(kind)).webhooks[1].clientConfig.caBundle
    end
    local definition = api.get("CustomResourceDefinition", nil, "parts." .. group)
    bundles[#bundles + 1] = definition.spec.conversion.webhook.clientConfig.caBundle
    return bundles[1] == bundles[2] and bundles[2] == bundles[3] and mime.unb64(bundles[1]) or nil, bundles
  end

  -- Connects as a new client that trusts these; returns the server's certificate as text. Raises if it is not trusted.
  local function shown(bundle)
    shell.write(bundle_path, bundle)
    local stream = http.connect_tls("127.0.0.1", port, bundle_path)
    local pem = stream:getpeercertificate():pem()
    stream:close()
    return pem
  end

  -- Writes, and connects as somebody new with each of the bundles, until `is_over`; none of it may fail.
  local function load_till(what, seconds, is_over)
    local failures, begun = {}, writes
    wait.till(what, seconds, function()
      local _, bundles = trusted()
      for _, bundle in ipairs(bundles) do
        local ok, why = pcall(shown, (mime.unb64(bundle)))
        failures[#failures + 1] = not ok and tostring(why) or nil
      end
      local over = is_over()
      if writes - begun < WRITES_MAX then
        local ok, why = write()
        failures[#failures + 1] = not ok and tostring(why) or nil
      end
      return failures[1] or over and writes - begun >= 3
    end)
    assert.same({}, failures)
  end

  local function kept()
    local texts = {}
    for key, value in pairs(api.get("Secret", ns, SECRET).data) do
      texts[key] = (mime.unb64(value))
    end
    return texts
  end

  local function edit(texts)
    local data = {}
    for key, text in pairs(texts) do
      data[key] = (mime.b64(text))
    end
    api.patch("Secret", ns, SECRET, { data = data })
  end

  -- A folder with what the Secret has.
  local function unpacked()
    local folder = shell.folder "certificates"
    for key, text in pairs(kept()) do
      shell.write(folder .. "/" .. key, text)
    end
    return folder
  end

  it("are replaced under load: the server's", function()
    local folder = unpacked()
    -- One without the names of the Service: they are what the host misses.
    shell.must(("cd %s && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=it "
      .. "-addext subjectAltName=IP:127.0.0.1 -CA ca.crt -CAkey ca.key -keyout new.key -out new.crt"):format(folder))
    local foreign = shell.read(folder .. "/new.crt")
    edit { ["tls.crt"] = foreign, ["tls.key"] = shell.read(folder .. "/new.key") }
    load_till("another certificate", 20, function()
      local is = kept()["tls.crt"]
      return is ~= foreign and is == shown(assert(trusted()))
    end)
    assert.equal(shell.read(folder .. "/ca.crt"), kept()["ca.crt"])
  end)

  it("are replaced under load: the authority, with what it has signed", function()
    local folder = unpacked()
    -- The same authority, as it will be shortly before its end.
    shell.write(folder .. "/ca.conf", (AUTHORITY:gsub("FOLDER", folder)))
    shell.must(([[cd %s && touch index && openssl x509 -x509toreq -in ca.crt -signkey ca.key -out old.csr &&
      openssl ca -batch -config ca.conf -selfsign -keyfile ca.key -in old.csr -out old.crt -notext -preserveDN \
        -startdate "$(date -u -d '-300 seconds' +%%Y%%m%%d%%H%%M%%SZ)" \
        -enddate "$(date -u -d '38 seconds' +%%Y%%m%%d%%H%%M%%SZ)"]]):format(folder))
    local old, both = shell.read(folder .. "/old.crt"), false
    edit { ["ca.crt"] = old }
    load_till("another authority", 60, function()
      local bundle = trusted()
      both = both or bundle ~= nil and count(bundle) == 2
      return both and count(bundle or "") == 1 and not bundle:find(old, 1, true) and bundle == kept()["ca.crt"]
        and shown(bundle) == kept()["tls.crt"]
    end)
    load_till("a few more writes", 20, function() return true end)
  end)

  -- Somebody applies a manifest that has none. Before, all writes of the kind failed until the round of a minute.
  it("are trusted again within seconds when somebody takes caBundle away", function()
    for _, kind in ipairs { "mutating", "validating" } do
      local path = ("/apis/admissionregistration.k8s.io/v1/%swebhookconfigurations/moonloop-%s"):format(kind, name)
      local function bundle()
        return api.request("GET", path).webhooks[1].clientConfig.caBundle
      end
      wait.holds("the bundle until the rounds that its own writes bring are over", 3, bundle)
      local begun = wait.now()
      local _, code = api.request("PATCH", path, { { op = "remove", path = "/webhooks/0/clientConfig/caBundle" } },
        "application/json-patch+json")
      assert.equal(200, code)
      wait.till("the bundle to be back", 20, bundle)
      assert.is_true(wait.now() - begun < wait.patient(4), wait.now() - begun)
      wait.till("writes to succeed", 10, write)
    end
  end)

  it("are put right when somebody damages the Secret, and writes succeed all the while", function()
    for _, key in ipairs { "tls.crt", "tls.key", "ca.key" } do
      edit { [key] = "foo" }
      load_till("the Secret to be sound", 20, function()
        local is = kept()
        return is[key] ~= "foo" and is["tls.crt"] == shown(assert(trusted()))
      end)
    end
  end)
end)
