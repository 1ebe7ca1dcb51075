-- Remains of a token in the memory of the process, when another has taken its place.
local dev = require "spec.host.support.dev"
local host = require "spec.e2e.support.host"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local ATS = "/apis/cnat.programming-kubernetes.info/v1alpha1/namespaces/default/ats"
-- libcurl keeps the buffer that a request was sent from for as long as the request lasts.
local WATCHES = 2 -- of Ats and of Pods
-- So much of a token's end is its own, the signature and more. A vector register, 64 bytes at most, may still hold a
-- part of what was copied last, and the kernel writes registers to the stack when a signal comes.
local MARK = 100
local REGION_MAX = 1 << 28 -- beyond: shadow memory of a sanitizer
local PIECE = 1 << 20

local CONFIG = [[
apiVersion: v1
kind: Config
clusters: [{name: it, cluster: {server: "https://127.0.0.1:%d", certificate-authority: %s}}]
users: [{name: it, user: {tokenFile: %s}}]
contexts: [{name: it, context: {cluster: it, user: it}}]
current-context: it
]]

local function count_in(memory, from, to, text)
  local count, tail = 0, ""
  memory:seek("set", from)
  for at = from, to - 1, PIECE do
    local piece = memory:read(math.min(PIECE, to - at))
    if not piece then
      return count
    end
    local all, start = tail .. piece, 1
    repeat
      local found, last = all:find(text, start, true)
      count, start = count + (found and 1 or 0), (last or 0) + 1
    until not found
    tail = all:sub(math.max(start, #all - #text + 2))
  end
  return count
end


-- How often a text stands in what the process can write; nil where that may not be read.
local function copies(pid, text)
  local memory, count = io.open(("/proc/%d/mem"):format(pid), "rb"), 0
  local maps = memory and io.open(("/proc/%d/maps"):format(pid))
  if not maps then
    return nil
  end
  for line in maps:lines() do
    local from, to = line:match "^(%x+)%-(%x+) rw"
    from, to = from and tonumber(from, 16), to and tonumber(to, 16)
    if from and to - from <= REGION_MAX then
      count = count + count_in(memory, from, to, text)
    end
  end
  return maps:close() and memory:close() and count
end


describe("A token", function()
  local cluster

  before_each(function()
    cluster = dev.start { "--apply", "crds", "--pods", "fake" }
    cluster:must("POST", "/api/v1/namespaces/default/serviceaccounts", { metadata = { name = "operator" } })
  end)

  after_each(function()
    dev.stop_all()
  end)

  local function new_token()
    return cluster:must("POST", "/api/v1/namespaces/default/serviceaccounts/operator/token", {
      apiVersion = "authentication.k8s.io/v1", kind = "TokenRequest", spec = { expirationSeconds = 3600 },
    }).status.token
  end

  it("is gone from memory, but for watches under way, when another has taken its place", function()
    local first, second = new_token(), new_token()
    local file, path = shell.path "token", shell.path "kubeconfig"
    shell.write(file, first)
    shell.write(path, CONFIG:format(cluster.port, cluster.ca, file))
    local moonloop = host.start { name = "secrets", scripts = "reconcilers/cnat.lua", kubeconfig = path }
    moonloop:till_ready()
    local mark = first:sub(-MARK)
    if not copies(moonloop.pid, mark) then
      pending "the memory of another process may not be read here"
    end
    wait.till("no copy but the client's own, and one for each watch", 10, function()
      local count = copies(moonloop.pid, mark)
      return count > 0 and count <= WATCHES + 1, count
    end)

    shell.write(file .. ".new", second)
    shell.must(("mv %s.new %s"):format(shell.quote(file), shell.quote(file)))
    local made = 0
    wait.till("the new token to be used", 40, function()
      made = made + 1
      cluster:must("POST", ATS, {
        apiVersion = "cnat.programming-kubernetes.info/v1alpha1", kind = "At",
        metadata = { name = "at-" .. made }, spec = { schedule = "2020-01-01T00:00:00Z", command = "true" },
      })
      return moonloop:lines({ msg = "credentials or CA changed on disk; using the new ones" })[1]
    end)
    wait.till("the old token to be gone", 10, function()
      local left = copies(moonloop.pid, mark)
      return left <= WATCHES, left
    end)
    assert.is_true(copies(moonloop.pid, second:sub(-MARK)) > 0)
  end)
end)
