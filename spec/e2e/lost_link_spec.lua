-- A link that loses every packet, and a proxy that hangs: who is behind it notices within 30 s, and works again 30 s
-- after it is back. The times are the kernel's and the host's own: these specs take as long.
local api = require "spec.e2e.support.api"
local audit = require "spec.e2e.support.audit"
local cluster = require "spec.e2e.support.cluster"
local dev = require "spec.host.support.dev"
local host = require "spec.e2e.support.host"
local judge = require "spec.e2e.support.judge"
local link = require "spec.e2e.support.link"
local proxy = require "spec.e2e.support.proxy"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local faulty = proxy.available and dev.it_unless(link.lacks, it, function(why) pending(why) end) or pending

local NOTICED, BACK = 30, 30
local LEADS = { logger = "election", msg = "leading" }

describe("Behind a link that is lost", function()
  local ns, mark, lost, faults

  before_each(function()
    if link.lacks then
      return
    end
    ns = cluster.namespace "lost"
    mark = audit.mark()
    faults = proxy.open "lost"
    lost = link.open(faults.kubeconfig)
  end)

  after_each(function()
    if link.lacks then
      return
    end
    host.stop_all()
    lost:close()
    faults:clear()
    cluster.forget(ns)
  end)

  -- Of these, those that are behind the link go through it.
  local function start(name, opts)
    opts.name, opts.scripts, opts.namespaces = name, "reconcilers/cnat.lua", ns
    if not opts.is_here then
      opts.kubeconfig, opts.under = lost.kubeconfig, lost.under
    end
    local moonloop = host.start(opts)
    return opts.is_here and moonloop or lost:attach(moonloop)
  end

  -- A spec that has waited for longer than the limit has failed, but for what a busy machine needs to say so.
  local function assert_within(limit, since)
    local took = wait.now() - since
    assert.is_true(took < limit + wait.patient(2), ("%.1f s"):format(took))
    return took
  end

  local function till_noticed(moonloop, since)
    for _, kind in ipairs { "ats", "pods" } do
      moonloop:till_log({ msg = "cannot list or watch", resource = kind }, NOTICED)
    end
    print(("noticed after %.1f s"):format(assert_within(NOTICED, since)))
  end

  local function till_works(moonloop, since, ats)
    cluster.till_done(ns, ats, BACK)
    print(("works after %.1f s"):format(assert_within(BACK, since)))
    for _, kind in ipairs { "ats", "pods" } do
      moonloop:till_log({ msg = "list and watch work again", resource = kind }, BACK)
    end
    judge.one_pod_each(mark, ns, ats)
    assert.equal(0, #moonloop:lines { level = "error" })
  end

  -- Watches that are idle, and the creation of a pod that has been done and was never answered.
  local function till_a_pod_is_on_its_way()
    cluster.at(ns, "at-1", cluster.PAST)
    cluster.till_phase(ns, "at-1", "DONE")
    faults:add { { name = "slow", method = "POST", path = "/pods", times = 1, action = "delay", ms = 2000 } }
    cluster.at(ns, "at-2", cluster.PAST)
    wait.till("a pod on its way", 10, function() return faults:hits "slow" == 1 end)
  end

  faulty("each connection is left, and no pod is made twice", function()
    local moonloop = start("host", {}):till_ready()
    till_a_pod_is_on_its_way()
    lost:cut()
    local begun = wait.now()
    cluster.at(ns, "at-3", cluster.PAST)
    till_noticed(moonloop, begun)
    wait.pass(5) -- in which it tries to connect, and its packets are lost as well
    assert.is_nil(api.get("Pod", ns, "at-3-pod"))
    lost:mend()
    till_works(moonloop, wait.now(), 3)
  end)

  faulty("by a proxy that hangs, the same holds", function()
    local moonloop = start("host", {}):till_ready()
    till_a_pod_is_on_its_way()
    lost:hang()
    local begun = wait.now()
    cluster.at(ns, "at-3", cluster.PAST)
    till_noticed(moonloop, begun)
    wait.pass(5) -- in which it connects, and waits for TLS
    assert.is_nil(api.get("Pod", ns, "at-3-pod"))
    lost:go_on()
    till_works(moonloop, wait.now(), 3)
  end)

  faulty("a leader gives up, and one that stood by leads when it is back", function()
    local flags = { "--leader-elect", "--leader-election-namespace", ns }
    local leader = start("leader", { args = flags })
    leader:till_log(LEADS)
    local here = start("here", { args = flags, is_here = true })
    here:till_log { msg = "standing by" }
    cluster.at(ns, "at-1", cluster.PAST)
    cluster.till_phase(ns, "at-1", "DONE")
    lost:cut()
    local begun = wait.now()
    assert.equal(4, leader:till_exit(NOTICED))
    local standby = start("standby", { args = flags })
    here:till_log(LEADS, NOTICED)
    print(("led elsewhere after %.1f s"):format(assert_within(NOTICED, begun)))
    cluster.at(ns, "at-2", cluster.PAST)
    cluster.till_phase(ns, "at-2", "DONE")
    assert.equal(0, #standby:lines(LEADS))
    lost:mend()
    local back = wait.now()
    standby:till_log({ msg = "standing by" }, BACK)
    assert_within(BACK, back)
    lost:cut() -- under one that stands by
    wait.pass(10)
    here:kill()
    lost:mend()
    begun = wait.now()
    standby:till_log(LEADS, BACK)
    print(("led behind the link after %.1f s"):format(assert_within(BACK, begun)))
    cluster.at(ns, "at-3", cluster.PAST)
    cluster.till_phase(ns, "at-3", "DONE")
    judge.one_pod_each(mark, ns, 3)
  end)

  faulty("clients of webhooks leave nothing behind", function()
    local moonloop = start("webhooks", { args = {
      "--webhook-bind-address", link.NEAR .. ":0", "--webhook-url", "https://" .. link.NEAR, "--webhook-namespace", ns,
    } })
    local port = math.tointeger(moonloop:till_log({ msg = "serving webhooks" }).webhook_port)
    moonloop:till_ready()
    local function open_connections()
      return #shell.must(("%s ss -Htn state established sport = :%d"):format(lost.under, port)):gsub("[^\n]", "")
    end
    -- One has had its answer, one has said nothing, one is in the middle of its request.
    for _, text in ipairs { "GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n", "", "POST / HTTP/1.1\\r\\n" } do
      lost:start_at_far(("(printf '%s'; sleep 100) | openssl s_client -quiet -bind %s:0 -connect %s:%d"):format(
        text, link.FAR, link.NEAR, port))
    end
    wait.till("three clients", 10, function() return open_connections() == 3, open_connections() end)
    lost:cut()
    local begun = wait.now()
    wait.till("no client", NOTICED, function() return open_connections() == 0, open_connections() end)
    print(("clients gone after %.1f s"):format(assert_within(NOTICED, begun)))
  end)
end)
