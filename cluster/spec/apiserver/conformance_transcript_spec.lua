--- cluster/spec/conformance/lib/transcript.lua refuses answers that were recorded for another version of a scenario.
local files = require "cluster.spec.conformance.lib.files"
local scenario = require "cluster.spec.conformance.lib.scenario"
local transcript = require "cluster.spec.conformance.lib.transcript"

local TEXT = [[
# A ConfigMap.
POST /api/v1/namespaces/$NS/configmaps
  {metadata: {name: a}}

GET /api/v1/namespaces/$NS/configmaps/a
]]

describe("A recorded transcript", function()
  local path

  before_each(function()
    path = os.tmpname()
    transcript.write(path, scenario.parse("basics/one", TEXT), { { source = "GET /", code = 200 } })
  end)

  after_each(function()
    os.remove(path)
  end)

  local function read(pattern, replacement)
    local text, count = TEXT:gsub(pattern, replacement)
    assert.equal(1, count)
    return transcript.read(path, scenario.parse("basics/one", text))
  end

  it("is good while only comments and blank lines change", function()
    assert.same({ { source = "GET /", code = 200 } }, (read("# A ConfigMap%.", "# Another comment.\n\n# And one.")))
    assert.truthy(read("# A ConfigMap%.\n", ""))
    assert.truthy(read("\n\nGET", "\nGET"))
  end)

  it("is of another version once a request changes", function()
    for pattern, replacement in pairs {
      ["configmaps/a"] = "configmaps/b", ["name: a"] = "name: b", ["GET"] = "DELETE",
      ["\n\nGET"] = "\n  # content\n\nGET",
    } do
      local answers, why = read(pattern, replacement)
      assert.is_nil(answers)
      assert.equal("was recorded from another version of its file", why)
    end
  end)

  it("is of another version once a file that a request sends changes", function()
    local with_file = TEXT .. "\nPOST /api/v1/namespaces/$NS/widgets\n< fixtures/widget.yaml\n"
    local content = "kind: Widget\n"
    stub(files, "read", function()
      return content
    end)
    finally(function()
      files.read:revert()
    end)
    local before = transcript.fingerprint(scenario.parse("basics/one", with_file))
    assert.equal(before, transcript.fingerprint(scenario.parse("basics/one", with_file)))
    content = "kind: Gadget\n"
    assert.not_equal(before, transcript.fingerprint(scenario.parse("basics/one", with_file)))
  end)
end)
