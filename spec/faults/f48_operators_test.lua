-- F48: database.lua, rediscluster.lua and tenant.lua are killed between every two of their writes, and end where the
-- run without a fault ends. Exhaustive, but for Events, which change nothing else.
local bench = require "spec.faults.support.bench"
local crypto = require "moonloop.crypto"
local host = require "cluster.host"
local invariants = require "spec.faults.support.invariants"
local operators = require "spec.faults.support.operators"
local stage = require "spec.faults.support.stage"

local UID = "%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x"
local DIGEST = ("%x"):rep(64)
local GENERATED = 5 -- letters and digits that the server adds to generateName
local PAUSE = 3 -- seconds without a write: the next one answers an edit
local ADDRESS = "%d+%.%d+%.%d+%.%d+"

-- The words that no two runs have in common: { [word] = what stands for it }.
local function words_by_chance(outcome)
  local words = {}
  for _, entry in ipairs(outcome.objects) do
    local object = host.json.decode(entry.text)
    local prefix = object.metadata.generateName
    if entry.id == "controllerrevisions.apps" then
      words[object.metadata.name:match "%-(%w+)$"] = ("(revision %d)"):format(object.revision)
    elseif prefix and #object.metadata.name == #prefix + GENERATED then
      words[object.metadata.name:sub(-GENERATED)] = "(generated)"
    end
  end
  return words
end


-- The server of a Database was started with the superuser's password that its Secret has.
local function has_its_password(outcome)
  local digest, password
  for _, entry in ipairs(outcome.objects) do
    local object = host.json.decode(entry.text)
    if entry.id == "statefulsets.apps" then
      digest = object.spec.template.metadata.annotations["stable.example.com/superuser"]
    elseif entry.key == "default/db-secrets" then
      password = host.base64.decode(object.data["superuser-password"])
    end
  end
  return digest == crypto.sha256(password)
end


-- Replaces values that differ from run to run by neutral words. A password that was drawn and not written is drawn
-- again, and is another: so the Secret's values, their digests, and the revisions of a StatefulSet differ. Names that
-- the server makes differ, too.
local function in_neutral_words(outcome)
  local words = words_by_chance(outcome)
  for _, entry in ipairs(outcome.objects) do
    if entry.id == "secrets" then
      local secret = host.json.decode(entry.text)
      for key in pairs(secret.data or {}) do
        secret.data[key] = "(a value)"
      end
      entry.text = host.json.encode(secret)
    end
    for _, field in ipairs { "text", "key" } do
      entry[field] = entry[field]:gsub(UID, "(a uid)"):gsub(ADDRESS, "(an address)")
        :gsub(DIGEST, "(a digest)"):gsub("%w+", words)
    end
  end
  return outcome
end


-- Is the object that the scenario ends with ready?
local function is_ready(outcome)
  local kind = outcome.scenario.kinds[1]
  local id = outcome.server.registry:of(kind.apiVersion, kind.kind).id
  for _, entry in ipairs(outcome.objects) do
    for _, condition in ipairs(entry.id == id and host.json.decode(entry.text).status.conditions or {}) do
      if condition.type == "Ready" then
        return condition.status == "True"
      end
    end
  end
end


-- Plays it, killed when the server has done the write of that index and the reply is not there; with `unsent`, before
-- it is sent; without an index, never. Returns when the writes came, too.
local function play(scenario, index, unsent)
  local times = {}
  local outcome = stage.play(scenario, function(request, reply, pass)
    if request.write and not request.path:find("/events", 1, true) then
      times[#times + 1] = request.at
      if #times == index then
        if not unsent then
          pass(stage.blind())
        end
        return stage.kill()
      end
    end
    pass(reply)
  end)
  assert(not index or #times >= index, "never got there")
  assert(scenario ~= operators.database or has_its_password(outcome), "another password than the Secret has")
  return in_neutral_words(outcome), times
end


-- A write that is not sent is the same as the end of the one before; not so when somebody has edited an object since.
describe("An operator of this repository that is killed", function()
  for _, scenario in ipairs { operators.database, operators.rediscluster, operators.tenant } do
    it(("ends as undisturbed: at each write of %s.lua"):format(scenario.name), function()
      local reference, times = play(scenario)
      assert.is_true(is_ready(reference))
      for index, at in ipairs(times) do
        local what = "killed after write " .. index
        invariants.check(play(scenario, index), reference, what, scenario.except)
        if at - (times[index - 1] or 0) > PAUSE then
          what = "killed before write " .. index
          invariants.check(play(scenario, index, true), reference, what, scenario.except)
        end
      end
      bench.tried("F48", #times)
    end)
  end
end)
