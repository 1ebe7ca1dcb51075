local host = require "cluster.host"
local jsonpath = require "cluster.apiserver.crd.jsonpath"

local OBJECT = {
  metadata = { labels = { ["a.b/c"] = "d", plain = "e" } },
  spec = {
    size = 5, flag = false, nothing = host.json.null, texts = { "p", "q", "r" },
    list = { { name = "a", value = 1 }, { name = "b", value = 2, on = true } },
    deep = { x = { deeper = 1 } },
  },
}


describe("a JSONPath", function()
  for _, case in ipairs {
    { ".spec.size", 5 }, { ".spec.flag", false }, { ".spec.missing", nil }, { ".spec.size.more", nil },
    { ".spec.nothing.more", nil }, { ".spec.texts[0]", "p" }, { ".spec.texts[-1]", "r" }, { ".spec.texts[9]", nil },
    { ".spec.texts[1:3]", "q" }, { ".spec.texts[-2:]", "q" }, { ".spec.texts[2:1]", nil }, { ".spec.texts[*]", "p" },
    { ".spec.size[0]", nil }, { ".spec.list[1].name", "b" }, { '.spec.list[?(@.name=="b")].value', 2 },
    { ".spec.list[?(@.value>1)].name", "b" }, { ".spec.list[?(@.value<=1)].name", "a" },
    { ".spec.list[?(@.name!='a')].name", "b" }, { ".spec.list[?(@.on)].name", "b" },
    { ".spec.list[?(@.on==true)].name", "b" }, { ".spec.list[?(@.name=='z')].name", nil },
    { ".metadata.labels.a\\.b/c", "d" }, { ".metadata.labels['plain']", "e" }, { ".metadata.labels['a\\.b/c']", "d" },
    { ".metadata.labels['a.b/c']", nil }, { ".spec..deeper", 1 }, { ".spec.deep.*.deeper", 1 },
  } do
    it("leads from " .. case[1] .. " to " .. tostring(case[2]), function()
      assert.equal(case[2], jsonpath.compile(case[1])(OBJECT))
    end)
  end

  for _, text in ipairs { "spec", ".spec[x", ".spec[x]", ".spec[?(x)]", ".spec[?(@.a==)]", ".spec. a" } do
    it("cannot be " .. text, function()
      assert.is_nil(jsonpath.compile(text))
    end)
  end
end)
