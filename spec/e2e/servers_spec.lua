-- Servers that nobody here wrote, as pods of moonloop dev with a network of their own: PostgreSQL and three Redis,
-- asked by their usual clients from another pod, for root and for an ordinary user.
local cluster = require "spec.e2e.support.cluster"
local dev = require "spec.host.support.dev"
local machine = require "spec.e2e.support.machine"
local operators = require "spec.e2e.support.operators"
local shell = require "spec.e2e.support.shell"

local MANIFEST = "spec/e2e/fixtures/servers.yaml"

local lacks = cluster.controlplane and "tried with the embedded server"
  or not operators.runs "initdb postgres psql redis-server redis-cli"
  and "PostgreSQL or Redis is not installed, or there are no user namespaces"


describe("PostgreSQL and Redis in pods", function()
  local folder
  after_each(function()
    dev.stop_all()
    shell.must("rm -rf " .. folder)
  end)

  -- Runs all of the manifest; returns what its client printed.
  local function run(opts)
    local server = dev.start({}, opts)
    local said = machine.client(server, MANIFEST)
    assert.equal("3", machine.kubectl(server,
      "get", "statefulset", "cache", "-o", "jsonpath={.status.readyReplicas}"))
    assert.equal(0, server:stop())
    return said
  end

  local function asserts_answers(said)
    assert.equal("kept\nOK\nOK\nOK\ncache-2\ncache-1\ncache-0\ncache-0\ncache-0\n", said)
  end

  it("answer at their names, and write nothing outside of the data folder", function()
    folder = machine.open_folder()
    if lacks then
      pending(lacks)
      return
    end
    local before = machine.files()
    asserts_answers(run { env = { TMPDIR = folder } })
    assert.equal(before, machine.files())
  end)

  it("do so for an ordinary user", function()
    folder = machine.open_folder()
    if lacks or not machine.is_root then
      pending(lacks or "all specs are run by an ordinary user")
      return
    end
    local before = machine.files_of_nobody()
    asserts_answers(run {
      binary = folder .. "/moonloop", env = { TMPDIR = folder .. "/data" }, under = machine.AS_NOBODY,
    })
    assert.equal(before, machine.files_of_nobody())
  end)
end)
