-- A script does what its plan has said: random scripts over random worlds are planned, then run, and the objects are
-- compared. PLAN_SEEDS=FROM-TO chooses other cases.
local cjson = require "cjson.safe"
local dev = require "spec.host.support.dev"
local host = require "spec.e2e.support.host"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local FROM, TO = (os.getenv "PLAN_SEEDS" or "1-24"):match "^(%d+)%-(%d+)$"
local LEASES = "/apis/coordination.k8s.io/v1/namespaces/%s/leases"
local MAPS = "/api/v1/namespaces/%s/configmaps"

local HEAD = [[
local moonloop = require "moonloop"
local Lease = moonloop.kind("coordination.k8s.io/v1", "Lease")

local function lease(map, part, spec)
  return {
    apiVersion = "coordination.k8s.io/v1", kind = "Lease", metadata = { name = map.metadata.name .. "-" .. part },
    spec = spec,
  }
end

return moonloop.controller {
  name = "random",
  reconciles = moonloop.kind("v1", "ConfigMap", { labels = "random=yes" }),
  owns = { Lease },
  reconcile = function(map, ctx)
    local name, word = map.metadata.name, map.data.word
]]
local TAIL = "\n  end,\n}\n"

-- Each makes a piece of the script; `random(n)` is 1 to n.
local function spec_text(random)
  local fields = {
    "{ holderIdentity = word }", "{ holderIdentity = 'me', leaseDurationSeconds = #word }", "{ leaseTransitions = 3 }",
    "{ leaseDurationSeconds = 7 }",
  }
  return fields[random(#fields)]
end


local function condition(random)
  local texts = { "true", "word == 'a'", "word ~= 'b'", "#name > 4", "map.data.more ~= nil" }
  return texts[random(#texts)]
end


local PIECES = {
  function(random)
    return ("if %s then ctx.ensure(lease(map, 'p%d', %s)) end"):format(condition(random), random(3), spec_text(random))
  end,
  function(random)
    return ("if %s then ctx.apply(lease(map, 'p%d', %s)) end"):format(condition(random), random(3), spec_text(random))
  end,
  function(random)
    return ([[do
      local it = ctx.get(Lease, name .. "-p%d")
      if it and %s then ctx.patch(it, { spec = %s }) end
    end]]):format(random(3), condition(random), spec_text(random))
  end,
  function(random)
    return ([[do
      local it = ctx.get(Lease, name .. "-p%d")
      if it and %s then ctx.delete(it) end
    end]]):format(random(3), condition(random))
  end,
  function(random)
    return ([[do
      local count = 0
      for _, it in ipairs(ctx.list(Lease)) do
        if it.metadata.name:find(name, 1, true) then count = count + 1 end
      end
      if count > %d then word = word .. count end
    end]]):format(random(2))
  end,
}


local function children(random)
  local items = {}
  for part = 1, 3 do
    if random(3) > 1 then
      items[#items + 1] = ("if %s then children[#children + 1] = lease(map, 'p%d', %s) end"):format(
        condition(random), part, spec_text(random))
    end
  end
  return "local children = {}\n" .. table.concat(items, "\n") .. "\nreturn { children = children }"
end


-- One that makes and deletes the same object, or applies two versions of it, would never end.
local function script(random)
  if random(2) == 1 then
    return HEAD .. children(random) .. TAIL
  end
  local pieces, deletes, applies = {}, random(3) == 1, false
  for _ = 1, random(3) do
    local piece = deletes and 2 + random(2) or random(3)
    if piece == 2 and applies then
      piece = 3
    end
    applies = applies or piece == 2
    pieces[#pieces + 1] = PIECES[random(4) == 1 and 5 or piece](random)
  end
  return HEAD .. table.concat(pieces, "\n") .. TAIL
end


-- "spec.holderIdentity" -> value, without what the server sets.
local function flatten(value, path, out)
  if type(value) ~= "table" then
    out[path] = value
    return out
  end
  for key, inner in pairs(value) do
    flatten(inner, path == "" and tostring(key) or path .. "." .. key, out)
  end
  return out
end


local IGNORED = { "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields" }

local function facts_of(object)
  for _, field in ipairs(IGNORED) do
    object.metadata[field] = nil
  end
  return flatten(object, "", {})
end


describe("A plan", function()
  local server

  setup(function()
    server = dev.start { "--pods", "none" }
  end)

  teardown(dev.stop_all)

  local function leases(ns)
    local found = {}
    for _, object in ipairs(server:get(LEASES:format(ns)).items) do
      object.apiVersion, object.kind = nil, nil
      found[object.metadata.name] = facts_of(object)
    end
    return found
  end

  local function make_world(ns, random)
    server:must("POST", "/api/v1/namespaces", { apiVersion = "v1", kind = "Namespace", metadata = { name = ns } })
    local words = { "a", "b", "c" }
    for i = 1, random(4) do
      local map = server:must("POST", MAPS:format(ns), {
        apiVersion = "v1", kind = "ConfigMap",
        metadata = { name = ("m%d"):format(10 ^ random(4) + i), labels = { random = "yes" } },
        data = { word = words[random(3)], more = random(2) == 1 and "yes" or nil },
      })
      for part = 1, 3 do
        if random(2) == 1 then
          server:must("POST", LEASES:format(ns), {
            apiVersion = "coordination.k8s.io/v1", kind = "Lease",
            metadata = {
              name = map.metadata.name .. "-p" .. part,
              ownerReferences = { {
                apiVersion = "v1", kind = "ConfigMap", name = map.metadata.name, uid = map.metadata.uid,
                controller = true, blockOwnerDeletion = true,
              } },
            },
            spec = { holderIdentity = "before", leaseDurationSeconds = random(2) == 1 and 5 or nil },
          })
        end
      end
    end
  end

  -- Runs the script until it has nothing to do.
  local function run(ns, file)
    local moonloop = host.start { name = "random", scripts = file, namespaces = ns, kubeconfig = server.kubeconfig }
    moonloop:till_ready()
    local before
    wait.till("the controller to have nothing to do", 20, function()
      local done = moonloop:metric("controller_runtime_reconcile_total")
      local busy = moonloop:metric("workqueue_depth") + moonloop:metric("controller_runtime_active_workers")
      local settled = done == before and done > 0 and busy == 0
      before = done
      return settled, done
    end)
    moonloop:stop()
  end

  -- The leases as the plan says that they will be.
  local function foretell(world, plan)
    for _, change in ipairs(plan.changes) do
      if change.kind == "Lease" then
        local facts = world[change.name] or {}
        for _, field in ipairs(change.fields or {}) do
          if field.to == nil then
            facts[field.field] = nil
          else
            flatten(field.to, field.field, facts)
          end
        end
        facts.apiVersion, facts.kind = nil, nil -- the items of a list have none
        world[change.name] = change.verb ~= "delete" and facts or nil
      end
    end
    return world
  end

  -- Names of lists' items are numbers here.
  local function by_number(facts)
    local same = {}
    for name, value in pairs(facts) do
      same[name:gsub("%[[^%]]*%]", ".1")] = value
    end
    return same
  end

  for seed = tonumber(FROM), tonumber(TO) do
    it("says what the script then does, of random case " .. seed, function()
      math.randomseed(seed)
      local ns, text = "random-" .. seed, script(math.random)
      local file = shell.folder "random" .. "/random.lua"
      shell.write(file, text)
      make_world(ns, math.random)
      local result = host.command {
        "plan", file, "--namespace", ns, "-o", "json", "--kubeconfig", server.kubeconfig,
      }
      local plan = assert(cjson.decode(result.out), result.err).controllers[1]
      assert.same({ fails = {}, unknown = {}, endless = {} },
        { fails = plan.fails, unknown = plan.unknown, endless = plan.endless }, text)
      local foretold = foretell(leases(ns), plan)
      assert.equal(#plan.changes > 0 and 2 or 0, result.code)
      run(ns, file)
      local is = leases(ns)
      for name, facts in pairs(foretold) do
        assert.same(is[name] and by_number(is[name]), by_number(facts), name .. "\n" .. text)
      end
      for name in pairs(is) do
        assert.truthy(foretold[name], name .. " is there\n" .. text)
      end
    end)
  end
end)
