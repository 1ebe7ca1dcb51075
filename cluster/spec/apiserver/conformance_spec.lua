--- The embedded server against what a real one answered: cluster/spec/conformance, without a cluster.
local cases = require "cluster.spec.conformance.lib.cases"
local compare = require "cluster.spec.conformance.lib.compare"
local differences = require "cluster.spec.conformance.lib.differences"
local host = require "cluster.host"
local sides = require "cluster.spec.conformance.lib.sides"

-- So many requests have to be compared, lest a scenario is left out and nobody sees it.
local COMPARED_MIN = 450


local function shown(difference)
  local function text(value)
    return value == nil and "(nothing)" or host.json.encode(value):sub(1, 300)
  end
  return ("%s: %s: recorded %s, embedded %s"):format(difference.entry.source, difference.field,
    text(difference.left), text(difference.right))
end


describe("the embedded server answers as the real one:", function()
  local recorded, embedded, page = sides.of "recorded", sides.of "embedded", differences.read()
  local compared, played = 0, {}

  for _, case in ipairs(cases.load {}) do
    if not case.options then
      it(case.name, function()
        local one, why = recorded.play(case)
        assert(one, case.name .. " " .. tostring(why))
        local other, problems = embedded.play(case)
        local unlisted = {}
        for _, difference in ipairs(compare.transcripts(one, other)) do
          unlisted[#unlisted + 1] = not page:lists(case.name, difference) and shown(difference) or nil
        end
        compared, played[#played + 1] = compared + #one, case.name
        assert.same({}, problems)
        assert.same({}, unlisted)
      end)
    end
  end

  it("in hundreds of requests, with no difference listed that is none", function()
    assert.same({}, page:unneeded(played))
    assert.is_true(compared >= COMPARED_MIN, compared .. " requests were compared")
    embedded.close()
  end)
end)
