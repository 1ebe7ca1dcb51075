-- A new version that has taken over and does harm, which no plan knew: docs/changing.md, "On trial".
local api = require "spec.e2e.support.api"
local cjson = require "cjson.safe"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local kubectl = require "spec.e2e.support.kubectl"
local scripts = require "spec.e2e.support.scripts"
local wait = require "spec.e2e.support.wait"

local PARTS = scripts.parts
local WIDGETS = 12

-- The server refuses one child of that Widget.
local function refused_for(name)
  return scripts.edited(PARTS, "    return {", ([[
    children[4] = {
      apiVersion = "v1", kind = "ConfigMap",
      metadata = { name = widget.metadata.name .. "-4" },
      data = { [widget.metadata.name == "%s" and "no key" or "key"] = "value" },
    }
    return {]]):format(name))
end

local FOUR = scripts.edited(PARTS, "i = 1, 3", "i = 1, 4")

local STOPPED = "script stopped; the version before it runs again"
local STEP = "new version on trial; the one before works on"
local HELD = "script held; the last good version keeps running"
local FILE = { file = "parts.lua" }

describe("A version on trial", function()
  local ns, moonloop

  setup(scripts.install_widgets)

  local function start(name, args)
    moonloop = host.start { name = name, configmaps = ns .. "/scripts", namespaces = ns, args = args }
    return moonloop
  end

  before_each(function()
    ns = cluster.namespace "trial"
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = PARTS })
    for i = 1, WIDGETS do
      api.create("Widget", ns, { metadata = { name = ("w%02d"):format(i) }, spec = { say = "one" } })
    end
  end)

  after_each(function()
    host.stop_all()
    cluster.forget(ns)
  end)

  -- The ConfigMaps of Widgets, and how many of them somebody has deleted and made again.
  local function parts(uids)
    local count, others = 0, 0
    for _, map in ipairs(api.list("ConfigMap", ns)) do
      if map.metadata.name:find "^w%d%d%-%d$" then
        count = count + 1
        others = others + (uids and uids[map.metadata.name] ~= map.metadata.uid and 1 or 0)
      end
    end
    return count, others
  end

  local function till_parts(count)
    wait.till(count .. " ConfigMaps", 60, function()
      local is = parts()
      return is == count, is
    end)
  end

  local function uids()
    local of = {}
    for _, map in ipairs(api.list("ConfigMap", ns)) do
      of[map.metadata.name] = map.metadata.uid
    end
    return of
  end

  local function kept(revision)
    local map = api.get("ConfigMap", ns, "scripts-revisions")
    local text = map and map.data["parts." .. revision]
    return text and cjson.decode(text)
  end

  local function till_kept(revision, way)
    return wait.till("revision " .. revision .. " to be kept", 60, function()
      local entry = kept(revision)
      return entry and entry.way == way and entry, entry and entry.way
    end)
  end

  -- Waits until the first version is live and kept; returns its revision.
  local function till_first(of)
    local revision = of:till_log({ msg = "script is live" }).revision
    till_kept(revision, "start")
    till_parts(3 * WIDGETS)
    return revision
  end

  local function edit(text)
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = text })
  end

  -- Begins a canary, waits for its first step, and returns a Widget that is not of that step.
  local function begin_steps(of)
    edit(FOUR)
    local step = of:till_log { msg = STEP }
    assert.same({ 1, WIDGETS }, { step.tried, step.objects })
    till_parts(3 * WIDGETS + 1)
    for _, map in ipairs(api.list("ConfigMap", ns)) do
      if map.metadata.name:find "%-4$" then
        return map.metadata.name == "w07-4" and "w08" or "w07"
      end
    end
  end

  it("is stopped before it deletes too much, and stays so after a kill, until it is approved", function()
    local args = { "--rollout-settle-seconds", "120" }
    start("guarded", args)
    local good, before = till_first(moonloop), uids()
    local late = os.time() + 12
    local harmful = scripts.edited(PARTS, "function(widget)", "function(widget, ctx)")
    harmful = scripts.edited(harmful, "for i = 1, 3", ("for i = 1, ctx.now() < %d and 3 or 0"):format(late))
    local comes_back = ("requeue_at = ctx.now() < %d and %d or nil"):format(late, late)
    edit(scripts.edited(harmful, "return {", "return { " .. comes_back .. ","))
    local bad = moonloop:till_log({ msg = "new version is live" }).revision
    assert.equal(WIDGETS, moonloop:metric("moonloop_controller_trial_objects", { controller = "parts" }))
    local why = moonloop:till_log({ msg = STOPPED }).error
    assert.matches("revision " .. bad .. " was stopped, when it worked for 12 of 12 objects: it was about to delete "
      .. "object number 11 of 36 that its own had", why, 1, true)
    wait.till("ten ConfigMaps to be made again", 60, function()
      local count, others = parts(before)
      return count == 3 * WIDGETS and others == 10, count .. ", " .. others
    end)
    cluster.till_event(ns, "ConfigMap", "scripts", "ScriptStopped", "revision " .. bad .. " was stopped")
    assert.equal(1, moonloop:metric("moonloop_script_held", FILE))
    assert.equal(why, till_kept(bad, "stopped").why)
    moonloop:kill()
    start("guarded-again", args)
    assert.equal(why, moonloop:till_log({ msg = HELD }).error)
    assert.equal(good, moonloop:till_log({ msg = "script is live" }).revision)
    before = uids()
    moonloop:till_ready()
    assert.same({ 3 * WIDGETS, 0 }, { parts(before) })
    api.patch("ConfigMap", ns, "scripts", { metadata = { annotations = { ["moonloop.dev/approve"] = bad } } })
    till_parts(0)
    assert.is_table(till_kept(bad, "edit").files)
  end)

  it("works for one object, then for more, and is taken back when one of them fails", function()
    start("canary", { "--rollout", "canary", "--rollout-settle-seconds", "3" })
    local good = till_first(moonloop)
    local victim = begin_steps(moonloop)
    edit(refused_for(victim))
    local bad = moonloop:till_log({ msg = STEP }, 10, 2).revision
    moonloop:kill() -- in the middle of a step
    start("canary-again", { "--rollout", "canary", "--rollout-settle-seconds", "3" })
    assert.equal(good, moonloop:till_log({ msg = "script is live" }).revision)
    local step = moonloop:till_log { msg = STEP }
    assert.same({ 1, bad }, { step.tried, step.revision })
    till_parts(3 * WIDGETS + 1)
    local why = moonloop:till_log({ msg = STOPPED }, 60).error
    assert.matches("it fails for 1 of them, for which the version before did not; the last: " .. ns .. "/" .. victim
      .. ": ", why, 1, true)
    assert.matches("no key", why, 1, true)
    till_parts(3 * WIDGETS)
    assert.equal(0, moonloop:metric("moonloop_controller_trial_objects", { controller = "parts" }))
    assert.equal(1, moonloop:metric("moonloop_script_drifted", FILE))
    local status = host.command { "status", "--pid", tostring(moonloop.pid) }
    assert.matches("parts.lua ok: controller parts runs revision " .. good .. "; the newest version is held",
      status.out, 1, true)
    edit(FOUR)
    till_parts(4 * WIDGETS)
    local live = wait.till("the corrected version to be live", 60, function()
      local lines = moonloop:lines { msg = "new version is live" }
      local last = lines[#lines] and lines[#lines].revision
      return last ~= bad and last, #lines
    end)
    till_kept(live, "edit")
    assert.equal(0, moonloop:metric("moonloop_script_held", FILE))
  end)

  it("is begun anew by the replica that takes over, and stopped for both", function()
    local args = {
      "--leader-elect", "--leader-election-namespace", ns, "--rollout", "canary", "--rollout-settle-seconds", "3",
    }
    local leader = start("leader", args)
    leader:till_log { logger = "election", msg = "leading" }
    local standby = start("standby", args)
    local good = till_first(leader)
    local victim = begin_steps(leader)
    edit(refused_for(victim))
    leader:till_log({ msg = STEP }, 10, 2)
    leader:kill()
    standby:till_log({ msg = STEP }, 60)
    local third = start("third", args)
    assert.matches("the last: " .. ns .. "/" .. victim .. ": ", standby:till_log({ msg = STOPPED }, 60).error, 1, true)
    till_parts(3 * WIDGETS)
    third:till_ready()
    wait.till("the stop to be known everywhere", 30, function()
      return third:metric("moonloop_script_held", FILE) == 1
    end)
    standby:kill()
    third:till_log({ logger = "election", msg = "leading" }, 60)
    api.patch("Widget", ns, "w01", { spec = { say = "two" } })
    wait.till("status.said two", 40, function() return api.get("Widget", ns, "w01").status.said == "two" end)
    assert.equal(3 * WIDGETS, (parts()))
    assert.equal(1, third:metric("moonloop_script_held", FILE))
    assert.equal(1, third:metric("moonloop_script_info", { controller = "parts", revision = good,
      source = "configmap " .. ns .. "/scripts" }))
  end)
end)
