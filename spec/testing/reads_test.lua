-- The reads of a reconcile decide which changes call it (docs/decisions/0009). Random scripts and random histories:
-- after each step, the world of a script that is called for its reads equals the world of the same script with
-- `wakes = "all"`. The seed alone decides the draws; READS_SEED=17 tries this one only, READS_SEEDS=1000 that many.
local moonloop = require "moonloop"
local testing = require "moonloop.testing"
local cjson = require "cjson"

local Thing = moonloop.kind("example.com/v1", "Thing")
local Secret = moonloop.kind("v1", "Secret")
local ConfigMap = moonloop.kind("v1", "ConfigMap")

local SEEDS = tonumber(os.getenv "READS_SEEDS") or 40
local STEPS = 14

-- A generator of its own: the numbers of a seed are the same with every Lua.
local function generator(seed)
  local state = seed * 2654435761 % 4294967296 + 1
  local function draw(most)
    state = (state * 1103515245 + 12345) % 2147483648
    return state // 65536 % most + 1
  end
  return draw, function(list) return list[draw(#list)] end
end


-- ---- scripts ----

local HEAD = [[
local moonloop = require "moonloop"
local Thing = moonloop.kind("example.com/v1", "Thing")
local Secret = moonloop.kind("v1", "Secret")
local ConfigMap = moonloop.kind("v1", "ConfigMap")
local Service = moonloop.kind("v1", "Service")
local cjson = require "cjson"
local yaml = require "moonloop.yaml"
local base64 = require "moonloop.base64"
local crypto = require "moonloop.crypto"
local count, memory, text, by_text = 0, {}, ("x"):rep(100), {}
local kept, read_text, metatable = {}, function() return "" end, { __index = { x = ("m"):rep(90) } }
local with_metatable = setmetatable({}, metatable)
local holes, scratch = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, nil, 12, 13, nil, nil, nil }, {}
local letters = ("abcdefghijklmnopqrstuvwxyz"):rep(9):gmatch "."

local function child(thing, name, data)
  return { apiVersion = "v1", kind = "ConfigMap", metadata = { name = thing.metadata.name .. name }, data = data }
end

local function reconcile(thing, ctx)
  local sum, instant = 7, nil
  local function see(value)
    for byte in tostring(value):gmatch "." do
      sum = (sum * 31 + byte:byte()) % 9973
    end
  end
]]

-- Statements that read objects, and statements that do something.
local STATEMENTS = {
  'see(thing.spec.mode)',
  'see(thing.status.odd)',
  'see(thing.status.sum)',
  'see(thing.metadata.labels.color)',
  'see(thing.metadata.annotations.note)',
  'local s = ctx.get(Secret, "s1") see(s and s.data and s.data.x)',
  'see(moonloop.copy(thing.spec).mode)',
  'local s = moonloop.copy(ctx.get(Secret, "s1")) see(s and s.data and s.data.x)',
  'local s = ctx.get(Secret, "s2") see(s and (moonloop.merge(s, { a = 1 }).data or {}).y)',
  'see(moonloop.equal(ctx.get(Secret, "s1"), ctx.get(Secret, "s2")))',
  'local s = ctx.get(Secret, "s3") see(s and moonloop.equal(s.metadata.labels, { color = "red" }))',
  'local s = ctx.get(Secret, "s2") if s then ctx.event("Seen", "it is there", { about = s, related = thing }) end',
  'local s = ctx.get(Secret, "s2") see(s ~= nil)',
  'local s = ctx.get(Secret, "s2") for k, v in pairs(s and s.data or {}) do see(k) see(v) end',
  'local s = ctx.get(Secret, "s3") see(s and s.metadata.labels.color)',
  'local c = ctx.get(ConfigMap, thing.metadata.name .. "-a") see(c and c.data and c.data.note)',
  'local t = ctx.get(Thing, "b") see(t and t.spec.mode)',
  'for _, s in ipairs(ctx.list(Secret)) do see(s.metadata.name) end',
  'for _, s in ipairs(ctx.list(Secret, { labels = { color = "red" } })) do see(s.data and s.data.y) end',
  'see(#ctx.list(Secret, { namespace = "*" }))',
  'for _, c in ipairs(ctx.list(ConfigMap, { owned = true })) do see(c.data and c.data.note) end',
  'see(#ctx.list(ConfigMap, { owned = true, labels = { color = "red" } }))',
  'for _, c in ipairs(ctx.list(ConfigMap)) do see(c.metadata.name) see(c.metadata.labels.color) end',
  'local c = ctx.ensure(child(thing, "-a", { x = "1" })) see(c and c.data.note)',
  'local c = ctx.ensure(child(thing, "-b", {})) see(c and c.data)',
  'local c = ctx.apply(child(thing, "-a", { x = tostring(sum % 5) })) see(c and c.data.note)',
  'local c = ctx.apply(child(thing, "-c", { x = "1" })) see(c == nil)',
  [[local c = ctx.ensure(child(thing, "-a", { x = "1" }))
     if c and c.data.x ~= "1" then ctx.patch(c, { data = { x = "1" } }) end]],
  [[local c = ctx.get(ConfigMap, thing.metadata.name .. "-a")
     if c and c.data and c.data.note == "n1" then ctx.delete(c) end]],
  [[local c, err = ctx.create { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "shared" } }
     see(c and "made" or err)]],
  -- The version of the object itself.
  'see(thing.metadata.resourceVersion)',
  'for key, value in pairs(thing.metadata) do if key == "resourceVersion" then see(value) end end',
  'see(rawget(thing.metadata, "resourceVersion"))',
  'see(cjson.encode(thing.metadata):match \'"resourceVersion":"%d+"\')',
  'see(cjson.encode(thing):match \'"resourceVersion":"%d+"\')',
  [[local key, value
     repeat key, value = next(thing.metadata, key) until key == nil or key == "resourceVersion"
     see(value)]],
  'see(yaml.encode(thing.metadata):match "resourceVersion: [^\\n]*")',
  'see(crypto.sha256(yaml.encode(thing):match "resourceVersion: [^\\n]*"))',
  'see(base64.encode(cjson.encode { copy = thing.metadata }:match \'"resourceVersion":"%d+"\'))',
  'see(tostring(thing.metadata.resourceVersion))',
  'see(tostring(thing.metadata))',
  'see(tonumber(thing.metadata.resourceVersion) % 7)',
  'see(thing.metadata.resourceVersion == "1041")',
  'see(thing.metadata.resourceVersion < "1050")',
  'see(table.concat { "v", thing.metadata.resourceVersion })',
  'see(table.concat({ thing.metadata.name, thing.metadata.resourceVersion }, "-"))',
  'see(("%s/%q"):format(thing.metadata.name, thing.metadata.resourceVersion))',
  'see(select("#", thing.metadata) .. #thing.metadata.resourceVersion)',
  'see(("x" .. thing.metadata.resourceVersion):byte(-1))',
  'local copy = {} for key, value in pairs(thing.metadata) do copy[key] = value end see(copy.resourceVersion)',
  'local kept = setmetatable({}, { __index = thing.metadata }) see(kept.resourceVersion)',
  'ctx.log("info", thing.metadata.resourceVersion)',
  'local _, err = pcall(error, thing.metadata) see(err.resourceVersion)',
  'local s = ctx.get(Secret, "s1") see(s and s.metadata.resourceVersion)',
  'local c = ctx.get(ConfigMap, thing.metadata.name .. "-a") see(c and c.metadata.resourceVersion)',
  'for _, s in ipairs(ctx.list(Secret)) do see(s.metadata.resourceVersion) end',
  'for version in cjson.encode(ctx.list(Secret)):gmatch \'"resourceVersion":"%d+"\' do see(version) end',
  -- Looked for, whoever owns it, and whatever the run comes to.
  'local c = ctx.get(ConfigMap, "free") see(c and c.data and c.data.note)',
  'see(ctx.get(ConfigMap, "free") == nil)',
  'see(ctx.get(Thing, "b") == nil)',
  'if not ctx.get(Secret, "s2") then return ctx.invalid("spec.mode", "no s2") end',
  'if not ctx.get(ConfigMap, "free") then return ctx.terminal "no free" end',
  'for i = 1, 70 do ctx.get(ConfigMap, "none-" .. i) end see(ctx.get(ConfigMap, "free") == nil)',
  'local c = ctx.get(ConfigMap, "later") if not c then ctx.create(child(thing, "-l", {})) end see(c and c.data.note)',
  'local s = ctx.get(Secret, "later") see(s and s.data and s.data.x)',
  'local t = ctx.get(Thing, "later") see(t and t.spec.mode)',
  'if not ctx.get(Secret, "later") then error "no secret" end',
  'see(#ctx.list(Secret, { labels = { color = "red", ["for"] = "a" } }))',
  'see(#ctx.list(Secret, { labels = { color = "green" } }))',
  'see(#ctx.list(Thing, { fields = { ["spec.mode"] = "m1" } }))',
  'see(#ctx.list(Secret, { fields = { ["metadata.name"] = "s2" } }))',
  -- Raw access to what the host gives.
  'see(rawequal(thing.metadata, thing.metadata)) see(rawequal(ctx, ctx))',
  'see(pcall(rawlen, ctx)) see(rawlen(ctx.list(Secret)))',
  'see(pcall(setmetatable, ctx, { __index = { x = sum } })) see(pcall(function() return ctx[text:sub(1, 1)] end))',
  'see(pcall(rawset, thing, "extra", sum)) see(rawget(thing, "extra"))',
  'see(pcall(rawset, thing.metadata, "resourceVersion", "1")) see(thing.metadata.resourceVersion)',
  'see(pcall(setmetatable, thing, { __index = { x = 1 } })) see(thing.x)',
  'local list = ctx.list(Secret) see(pcall(table.insert, list, sum)) see(rawlen(list))',
  'local list = ctx.list(Secret) see(pcall(rawset, list, 1, false)) see(list[1] == false)',
  [[local list = ctx.list(Secret)
     table.sort(list, function(x, y) return x.metadata.name > y.metadata.name end)
     see(list[1] and list[1].metadata.name)]],
  [[local opts = { namespace = "*" } see(#ctx.list(Secret, opts))
     rawset(opts, "namespace", "none") see(#ctx.list(Secret, opts))]],
  'local c = ctx.ensure(child(thing, "-a", { x = "1" })) if c then see(pcall(rawset, c, "data", sum)) see(c.data) end',
  -- Each exception: the result depends on more than what is in the cache.
  'kept[1] = ("k"):rep(60 + sum % 3) see(#kept[1])',
  'see(#(kept[1] or "")) kept[1] = ("k"):rep(60 + sum % 3)',
  'see(read_text()) local now = ("c"):rep(50 + sum % 3) read_text = function() return now end',
  'see(with_metatable.x) metatable.__index = { x = ("m"):rep(90 + sum % 3) }',
  'see(with_metatable.x) setmetatable(with_metatable, sum % 2 == 0 and metatable or { __index = { x = "n" } })',
  'see(letters())',
  'see(kept.thing and kept.thing.spec.mode) kept.thing = thing',
  'see(kept.list and #kept.list) kept.list = ctx.list(Secret)',
  'see(kept.get and pcall(kept.get, Secret, "s1")) kept.get = ctx.get',
  -- The length of a table with holes: Lua remembers where it found one.
  'see(#holes) local _ = sum % 2 == 0 and holes[15] _ = #holes',
  'for i = 1, sum % 8 do scratch["k" .. i] = i end for key in pairs(scratch) do scratch[key] = nil end',
  [[for _, i in ipairs { 1, 2, 3, 7, 8 } do scratch[i] = i end
     see(#scratch)
     for _, i in ipairs { 1, 2, 3, 7, 8 } do scratch[i] = nil end]],
  'pcall(rawset, ctx, "x", sum) see(pcall(rawget, ctx, "x"))',
  'pcall(table.insert, ctx, sum) see(pcall(next, ctx))',
  'rawset(string, "x", (rawget(string, "x") or 0) + 1) see(rawget(string, "x"))',
  'table.insert(moonloop, sum % 3) see(#moonloop)',
  'rawset(_ENV, "x", sum % 3) see(rawget(_ENV, "x"))',
  'text = ("x"):rep(100 + sum % 3) see(#text)',
  'see(#text) text = (text .. sum):sub(-100)',
  'local key = ("k"):rep(50 + sum % 3) see(by_text[key]) by_text = { [key] = true }',
  'local s = ctx.get(Service, "v") see(s and s.metadata.labels.color)',
  'count = count + 1 see(count)',
  'if sum % 2 == 0 then memory[1] = sum end see(memory[1])',
  'see(math.random(3))',
  'see(ctx.now() // 60)',
  'see(ctx.now() // 60) instant = (ctx.now() // 60 + 1) * 60',
  'if sum % 5 == 0 then return ctx.invalid("spec.mode", "odd") end',
  'if sum % 5 == 1 then return ctx.terminal "odd" end',
  'if sum % 7 == 0 then error "odd" end',
}

local RETURNS = {
  'return { status = { sum = sum }, requeue_at = instant }',
  'return { status = { sum = sum }, requeue_at = instant }',
  'return { status = { phase = "P" .. sum % 3 }, requeue_at = instant }',
  'ctx.apply(child(thing, "-z", { sum = tostring(sum) })) return { requeue_at = instant }',
}

-- A script that reads objects by name, its own and those that it owns: a change of each calls it, whatever its watch
-- function names.
local NAMED = {}
for _, statement in ipairs(STATEMENTS) do
  local by_name = statement:find "ctx.get" or statement:find "ctx.ensure" or statement:find "thing%.spec"
    or statement:find "owned = true"
  local is_other = statement:find "Service" or statement:find "resourceVersion" or statement:find "kept"
  NAMED[#NAMED + 1] = by_name and not is_other and statement or nil
end

local MAPS = {
  'return { "default/a", "default/b" }',
  'return { "default/" .. (secret.metadata.labels["for"] or "a") }',
  'if secret.metadata.labels["for"] then return { "default/" .. secret.metadata.labels["for"] } end',
  'count = count + 1 return { "default/a" }',
}

local WHENS = { 'nil', 'nil', 'nil', '{ "generation" }', '{ "status", "labels" }' }

local function script_of(seed, statements, whens)
  local draw, pick = generator(seed)
  local text = { HEAD }
  for _ = 1, 1 + draw(4) do
    text[#text + 1] = "  do " .. pick(statements) .. " end"
  end
  text[#text + 1] = "  do " .. pick(RETURNS) .. " end\nend\n"
  text[#text + 1] = ([[
return moonloop.controller {
  name = "reads", reconciles = Thing, owns = { ConfigMap }, uses = { Service },
  watches = { moonloop.watch(Secret, function(secret) %s end) }, when = %s, wakes = WAKES,
  reconcile = reconcile,
}]]):format(pick(MAPS), pick(whens))
  return table.concat(text, "\n")
end


-- ---- histories ----

local COLORS = { "red", "blue" }

local function secret(name, draw, pick)
  return { apiVersion = "v1", kind = "Secret", metadata = { name = name, labels = {
    color = pick(COLORS), ["for"] = pick { "a", "b" } } }, stringData = { x = "x" .. draw(3), y = "y" .. draw(3) } }
end


-- Changes an object, if it is there at this point of the history.
local function patch(world, kind, name, changes, subresource)
  pcall(world.patch, kind, name, changes, subresource)
end


local function drop(world, kind, name)
  pcall(world.delete, kind, name)
end


local function thing(name, mode)
  return { apiVersion = Thing.apiVersion, kind = Thing.kind, metadata = { name = name }, spec = { mode = mode } }
end


local function service(color)
  return {
    apiVersion = "v1", kind = "Service", metadata = { name = "v", labels = { color = color } },
    spec = { ports = { { port = 80 } } },
  }
end


local A_B = { "a", "b" }
local CHANGES = {
  function(w, draw, pick) w.apply(secret("s" .. draw(3), draw, pick)) end,
  function(w, draw) patch(w, Secret, "s" .. draw(3), { stringData = { x = "x" .. draw(3) } }) end,
  function(w, draw, pick) patch(w, Secret, "s" .. draw(3), { metadata = { labels = { color = pick(COLORS) } } }) end,
  function(w, draw) patch(w, Secret, "s" .. draw(3), { metadata = { annotations = { n = "n" .. draw(3) } } }) end,
  function(w, draw) drop(w, Secret, "s" .. draw(3)) end,
  function(w, draw, pick)
    patch(w, ConfigMap, pick { "a-a", "a-b", "a-z", "b-a" }, { data = { note = "n" .. draw(3) } })
  end,
  function(w, draw, pick) patch(w, ConfigMap, pick { "a-a", "a-c", "b-a" }, { data = { x = "y" .. draw(3) } }) end,
  function(w, _, pick)
    patch(w, ConfigMap, pick { "a-a", "a-b", "b-a" }, { metadata = { labels = { color = pick(COLORS) } } })
  end,
  function(w) patch(w, ConfigMap, "a-a", { metadata = { ownerReferences = moonloop.array {} } }) end,
  function(w, _, pick) drop(w, ConfigMap, pick { "a-a", "a-b", "a-c", "a-z", "shared" }) end,
  function(w) drop(w, ConfigMap, "free") end,
  function(w, draw, pick)
    w.apply(secret("later", draw, pick))
    w.apply { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "later" }, data = { note = "l" .. draw(3) } }
  end,
  function(w) w.apply(thing("later", "m1")) end,
  function(w, _, pick) drop(w, pick { Secret, ConfigMap, Thing }, "later") end,
  function(w, _, pick)
    local name = pick { "free", "a-a", "shared" }
    w.apply { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name }, data = { note = "f" } }
  end,
  function(w, draw, pick) patch(w, Thing, pick(A_B), { spec = { mode = "m" .. draw(3) } }) end,
  function(w, draw, pick) patch(w, Thing, pick(A_B), { status = { odd = "o" .. draw(3) } }, "status") end,
  function(w, draw, pick) patch(w, Thing, pick(A_B), { status = { sum = draw(3), phase = "Q" } }, "status") end,
  function(w, _, pick) patch(w, Thing, pick(A_B), { metadata = { labels = { color = pick(COLORS) } } }) end,
  function(w, draw, pick) patch(w, Thing, pick(A_B), { metadata = { annotations = { note = "n" .. draw(2) } } }) end,
  function(w) drop(w, Thing, "b") end,
  function(w) w.apply(thing("b", "n")) end,
  function(w, _, pick) w.apply(service(pick(COLORS))) end,
  function(w) w.advance "1m" end,
}

local function plain(value)
  if type(value) ~= "table" then
    return tostring(value)
  end
  local keys, parts = {}, {}
  for key in pairs(value) do
    keys[#keys + 1] = key
  end
  table.sort(keys, function(x, y) return tostring(x) < tostring(y) end)
  for index, key in ipairs(keys) do
    parts[index] = ("%s=%s"):format(tostring(key), plain(value[key]))
  end
  return "{" .. table.concat(parts, ",") .. "}"
end


-- Returns the objects of the world as text, but for versions, uids and instants.
local function picture(world)
  local lines = {}
  for _, kind in ipairs { Thing, Secret, ConfigMap } do
    for _, object in ipairs(world.list(kind)) do
      local seen = cjson.decode(cjson.encode {
        labels = object.metadata.labels, annotations = object.metadata.annotations,
        spec = object.spec, status = object.status, data = object.data,
      })
      for _, condition in ipairs(seen.status and seen.status.conditions or {}) do
        condition.lastTransitionTime = nil
        condition.message = condition.message:gsub("lua_%w+%.lua", "it.lua") -- the two have files of their own
      end
      lines[#lines + 1] = ("%s %s %s"):format(kind.kind, object.metadata.name, plain(seen))
    end
  end
  return table.concat(lines, "\n")
end


-- The pictures after each step. `restarts`: each is held against that after a restart, which calls every reconcile.
local function history(seed, path, restarts)
  local world = testing.world { scripts = path, crds = "spec/testing/crds" }
  local draw, pick = generator(seed + 7919)
  local pictures = {}
  world.apply(thing("a", "m1"))
  for step = 1, STEPS do
    pick(CHANGES)(world, draw, pick)
    world.settle()
    pictures[step] = picture(world)
    if restarts and step % 5 == 0 then
      world.restart()
      world.settle()
      local after = picture(world)
      if after ~= pictures[step] then
        error(("after step %d\n%s\nand after a restart:\n%s"):format(step, pictures[step], after), 0)
      end
    end
  end
  return pictures
end


local function with_script(text, run)
  local folder = os.tmpname()
  local path = folder .. ".lua"
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
  local ok, result = pcall(run, path)
  os.remove(path)
  os.remove(folder)
  return ok, result
end


local function compare(seed)
  local text = script_of(seed, STATEMENTS, WHENS)
  local function run(wakes)
    return with_script((text:gsub("WAKES", wakes)), function(path) return history(seed, path) end)
  end
  local ok, everything = run '"all"'
  local fine, read = run "nil"
  local endless = not ok and not fine and everything:find "no end after" and read:find "no end after"
  if endless then -- each run makes something new; both say so
    return
  elseif not ok or not fine then
    error(("READS_SEED=%d: %s\n%s"):format(seed, tostring(ok and read or everything), text), 0)
  end
  for step = 1, STEPS do
    if everything[step] ~= read[step] then
      error(("READS_SEED=%d: after step %d\nwakes all:\n%s\nwakes for what was read:\n%s\n%s"):format(seed, step,
        everything[step], read[step], text), 0)
    end
  end
end


describe("A reconcile that is called for what it read", function()
  local only = tonumber(os.getenv "READS_SEED")
  for seed = only or 1, only or SEEDS do
    it(("makes the same world as one that every change calls (seed %d)"):format(seed), function()
      compare(seed)
    end)
  end
end)


describe("The length of a table with holes", function()
  for _, wakes in ipairs { "nil", '"all"' } do
    it("does not depend on what another call asked for, with wakes = " .. wakes, function()
      local text = HEAD .. 'see(#holes) local _ = holes[15] _ = #holes\nreturn { status = { sum = sum } }\nend\n' .. ([[
        return moonloop.controller { name = "reads", reconciles = Thing, wakes = WAKES, reconcile = reconcile }
      ]]):gsub("WAKES", wakes)
      local ok, why = with_script(text, function(path)
        local world = testing.world { scripts = path, crds = "spec/testing/crds" }
        for _, name in ipairs { "a", "b", "c" } do
          world.apply(thing(name, "m"))
          world.settle()
        end
        local sum = world.get(Thing, "a").status.sum
        world.expect(Thing, "b", { status = { sum = sum } })
        world.expect(Thing, "c", { status = { sum = sum } })
      end)
      assert.is_true(ok, why)
    end)
  end
end)


describe("A reconcile that looked for objects by name", function()
  local only = tonumber(os.getenv "READS_SEED")
  for seed = only or 1, only or SEEDS do
    it(("was called for all of them: a restart changes nothing (seed %d)"):format(seed), function()
      local text = script_of(seed, NAMED, { "nil" })
      local ok, why = with_script((text:gsub("WAKES", "nil")), function(path) return history(seed, path, true) end)
      if not ok then
        error(("READS_SEED=%d: %s\n%s"):format(seed, tostring(why), text), 0)
      end
    end)
  end
end)
