-- F27: objects that no sane client would have made come through watch and list. None ends the process, none holds
-- another key up.
local bench = require "spec.faults.support.bench"
local host = require "cluster.host"
local invariants = require "spec.faults.support.invariants"
local scenarios = require "spec.faults.support.scenarios"
local stage = require "spec.faults.support.stage"
local streams_of = require "spec.faults.support.streams"

local HEAD = '"apiVersion":"cnat.programming-kubernetes.info/v1alpha1","kind":"At"'
local META = '"name":"poison","namespace":"default","uid":"7","resourceVersion":"%d"'
local SPEC = '"spec":{"schedule":"2027-07-03T10:00:00Z","command":"echo"}' -- not to be due here


-- An At of these members of its own, metadata and spec.
local function object(more, meta, spec)
  return ("{%s,%s\"metadata\":{%s},%s}"):format(HEAD, more or "", meta or META, spec or SPEC)
end


local POISON = {
  ["1.5 MB"] = object(('"x":"%s",'):format(("x"):rep(1500000))),
  ["nested 10,000 deep"] = object('"x":' .. ("["):rep(10000) .. ("]"):rep(10000) .. ","),
  ["nested 100,000 deep"] = object('"x":' .. ('{"a":'):rep(100000) .. "1" .. ("}"):rep(100000) .. ","),
  ["no UTF-8"] = object('"x":"\xff\xc0\x80\xed\xa0\x80",'),
  ["no UTF-8 in a key"] = object('"\xfe":1,'),
  ["no UTF-8 in its name"] = object(nil, '"name":"\xff","namespace":"default","uid":"7","resourceVersion":"%d"'),
  ["NaN"] = object '"x":NaN,',
  ["Infinity"] = object '"x":-Infinity,',
  ["1e999"] = object '"x":1e999,"y":-1e999,',
  ["a number of 10,000 digits"] = object(('"x":%s,'):format(("9"):rep(10000))),
  ["the ends of int64"] = object '"x":[9223372036854775807,-9223372036854775808,9223372036854775808],',
  ["keys that come twice"] = object('"spec":{"schedule":"x"},"metadata":{"name":"other"},'),
  ["a key of 1 MB"] = object(('"%s":1,'):format(("k"):rep(1000000))),
  ["no metadata"] = ("{%s,%s}"):format(HEAD, SPEC),
  ["metadata that is null"] = ("{%s,\"metadata\":null,%s}"):format(HEAD, SPEC),
  ["metadata that is a list"] = ("{%s,\"metadata\":[],%s}"):format(HEAD, SPEC),
  ["no name"] = object(nil, '"namespace":"default","uid":"7","resourceVersion":"%d"'),
  ["a name that is a number"] = object(nil, '"name":7,"namespace":"default","uid":"7","resourceVersion":"%d"'),
  ["a name that is a path"] = object(nil, '"name":"../../x","namespace":"default","uid":"7","resourceVersion":"%d"'),
  ["a name of 100 KB"] = object(nil, ('"name":"%s",'):format(("n"):rep(100000))
    .. '"namespace":"default","uid":"7","resourceVersion":"%d"'),
  ["no uid"] = object(nil, '"name":"poison","namespace":"default","resourceVersion":"%d"'),
  ["no resourceVersion"] = object(nil, '"name":"poison","namespace":"default","uid":"7"'),
  ["a resourceVersion that is none"] = object(nil, '"name":"poison","namespace":"default","uid":"7",'
    .. '"resourceVersion":"x"'),
  ["NUL, escaped"] = object('"x":"a\\u0000b",', nil, '"spec":{"schedule":"\\u0000","command":"\\u0000"}'),
  ["NUL, raw"] = object '"x":"a\0b",',
  ["half a surrogate pair"] = object '"x":"\\ud800",',
  ["a spec that is a text"] = object(nil, nil, '"spec":"x"'),
  ["a spec that is missing"] = object(nil, nil, '"other":1'),
  ["a schedule that is a number"] = object(nil, nil, '"spec":{"schedule":5,"command":"x"}'),
  ["a schedule of 1 MB"] = object(nil, nil, ('"spec":{"schedule":"%s","command":"x"}'):format(("1"):rep(1000000))),
  ["owners that are no list"] = object(nil, META .. ',"ownerReferences":"x"'),
  ["labels that are a list"] = object(nil, META .. ',"labels":["x"],"annotations":7'),
  ["another kind"] = '{"apiVersion":"v1","kind":"Node","metadata":{"name":"n","resourceVersion":"%d"}}',
  ["null"] = "null",
  ["a text"] = '"x"',
  ["a list"] = "[]",
  ["half of it"] = object():sub(1, 60),
  ["something behind it"] = object() .. "]",
}


-- With a revision that has come by.
local function at_revision(text, revision)
  return (text:gsub('"resourceVersion":"%%d"', ('"resourceVersion":"%d"'):format(revision)))
end


-- Once, behind the `index`th line of the watch of Ats.
local function through_watch(kind, text, index)
  local streams, count = streams_of.new(), 0
  function streams.on_line(relay, line, revision)
    local waiting = relay:send(line)
    if relay.path:find("/ats", 1, true) and not line:find('"BOOKMARK"', 1, true) then
      count = count + 1
      if count == index then
        relay:send(('{"type":"%s","object":%s}\n'):format(kind, at_revision(text, revision)))
      end
    end
    return waiting
  end
  local outcome = stage.play(scenarios.cnat, streams.fault)
  assert(count >= index)
  return outcome
end


-- In every list of Ats, before what there is; and the operator begins with it.
local function through_list(text)
  local function fault(request, reply, pass)
    if request.method ~= "GET" or request.is_watch or not request.path:find("/ats$") then
      return pass(reply)
    end
    pass(setmetatable({
      send = function(_, code, content_type, body, headers)
        local head, rest = body:match '^(.*"items":%[)(.*)$'
        local item = at_revision(text, 1)
        body = head and head .. item .. (rest:sub(1, 1) == "]" and "" or ",") .. rest or body
        reply:send(code, content_type, body, headers)
      end,
    }, { __index = stage.blind() }))
  end
  local outcome = stage.open(scenarios.cnat, fault)
  stage.kill()
  scenarios.cnat.play(outcome.world)
  stage.kill()
  outcome.world.advance "1m"
  outcome.fault = nil
  stage.kill()
  return stage.close(outcome)
end


-- Ignores the objects that such an At makes, if it was read at all; all others must be as without it.
local function check(outcome, reference, what)
  for index = #outcome.objects, 1, -1 do
    local entry = outcome.objects[index]
    if entry.key:find("poison", 1, true) or entry.key:find("other", 1, true) then
      table.remove(outcome.objects, index)
    end
  end
  invariants.check(outcome, reference, what, { cache_is_store = true, at_rest = true })
end


describe("A poison object", function()
  local reference = stage.play(scenarios.cnat)

  for name, text in pairs(POISON) do
    it(("with %s harms no other, through the watch"):format(name), function()
      for _, kind in ipairs { "ADDED", "MODIFIED", "DELETED" } do
        check(through_watch(kind, text, 3), reference, kind)
      end
      bench.tried("F27", 3)
    end)
  end

  -- Of what ends a list there is no other half that could be kept: those are tried again until they are whole.
  for name, text in pairs(POISON) do
    if host.json.decode(text) then
      it(("with %s harms no other, through a list"):format(name), function()
        check(through_list(text), reference, "listed")
        bench.tried("F27", 1)
      end)
    end
  end
end)
