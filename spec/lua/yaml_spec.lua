local host = require "cluster.host"
local sandbox = require "sandbox"

local HEAD = "local yaml, cjson = require 'moonloop.yaml', require 'cjson' "

local function run(statements)
  return sandbox.run(HEAD .. statements)
end


describe("yaml.decode", function()
  it("reads as kubectl does", function()
    for text, json in pairs {
      ["a: 1\nb: [x, z]\n"] = '{"a":1,"b":["x","z"]}', ["mode: 0644"] = '{"mode":420}',
      ["quick: yes"] = '{"quick":true}', ["when: 2026-01-01"] = '{"when":"2026-01-01"}',
      ["a: &x {b: 1}\nc: {<<: *x, d: 2}"] = '{"a":{"b":1},"c":{"b":1,"d":2}}', ["b: 1\na: 2"] = '{"a":2,"b":1}',
      [""] = "null", ["# nothing"] = "null", ["null"] = "null", ["[]"] = "[]", ["{}"] = "{}", ["5"] = "5",
      ["a: 9223372036854775807"] = '{"a":9223372036854775807}', ["---\na: 1\n"] = '{"a":1}',
      ['{"z": 1, "a": [null]}'] = '{"z":1,"a":[null]}',
    } do
      assert.equal(json, run(("return cjson.encode(yaml.decode %q)"):format(text)), text)
    end
  end)

  it("says what is wrong, and where", function()
    for text, why in pairs {
      ["a: b: c"] = "line 1: mapping values are not allowed in this context",
      ["a: 1\n\tb: 2"] = "line 2: found a tab character that violates indentation",
      ["a: 1\n---\nb: 2\n"] = "line 3: a second document; expected one",
      ["a: *b"] = "line 1: unknown anchor 'b' referenced",
      ["a: .nan"] = "line 1: json: unsupported value: NaN",
      [("%TAG !x! y\n"):rep(101) .. "--- a"] = "line 1: more than 100 directives",
      [("["):rep(200)] = "line 1: nested too deep",
    } do
      local value, said = run(("return yaml.decode %q"):format(text))
      assert.is_nil(value)
      assert.equal(why, said)
    end
    local _, said = run "return yaml.decode(('a'):rep(1000000) .. ('a'):rep(100000))"
    assert.equal("it is larger than 1 MiB", said)
    assert.equal("t.lua:1: yaml.decode(text): expected a string, got a nil", sandbox.refusal(run, "yaml.decode()"))
  end)
end)


describe("yaml.encode", function()
  it("writes lines as kubectl does", function()
    for value, text in pairs {
      ["{ b = 1, a = { 'x', 'y' } }"] = "a:\n- x\n- \"y\"\nb: 1\n",
      ["{ a = { b = { c = true } } }"] = "a:\n  b:\n    c: true\n",
      ["{ { a = 1, b = 2 }, { c = { 3 } } }"] = "- a: 1\n  b: 2\n- c:\n  - 3\n",
      ["{ { 1, 2 }, { { 3 } } }"] = "- - 1\n  - 2\n- - - 3\n",
      ["{}"] = "{}\n", ["moonloop.array()"] = "[]\n", ["{ a = {}, b = moonloop.array() }"] = "a: {}\nb: []\n",
      ["moonloop.null"] = "null\n", ["5"] = "5\n", ["'x'"] = "x\n", ["0.1"] = "0.1\n",
      ["2.0 ^ 60"] = "1152921504606846976\n",
      ["{ a = 'one\\ntwo\\n' }"] = "a: |\n  one\n  two\n", ["{ 'one\\n\\n two' }"] = "- |-\n  one\n\n   two\n",
      ["{ a = { b = 'x\\ny' } }"] = "a:\n  b: |-\n    x\n    y\n",
      ["{ image = 'nginx:1.25', url = 'https://x/y?z', cmd = '/bin/sh -c' }"] =
        'cmd: /bin/sh -c\nimage: nginx:1.25\nurl: "https://x/y?z"\n',
      ["{ a = 'yes', b = '0644', c = '', d = 'a: b', e = ' x', f = 'null', g = '1e3' }"] =
        'a: "yes"\nb: "0644"\nc: ""\nd: "a: b"\ne: " x"\nf: "null"\ng: "1e3"\n',
      ["{ y = 'n', ['a: b'] = 1 }"] = '"a: b": 1\n"y": "n"\n',
      ["cjson.decode '{\"z\":1,\"a\":{\"y\":2,\"b\":3}}'"] = 'z: 1\na:\n  "y": 2\n  b: 3\n',
    } do
      assert.equal(text, run("return yaml.encode(" .. value .. ")"), value)
    end
  end)

  it("refuses what JSON cannot hold", function()
    for value, why in pairs {
      ["{ a = function() end }"] = "a: a function cannot be stored",
      ["{ 1, x = 2 }"] = "a table is a list or an object; this one has both indexes and string keys",
      ["{ a = 0 / 0 }"] = "a: a number that is infinite or not a number cannot be stored",
      ["{ a = cjson.decode '1e999' }"] = "yaml.encode(value): readers of YAML do not hold the number 1e999",
    } do
      assert.truthy(sandbox.refusal(run, "yaml.encode(" .. value .. ")"):find(why, 1, true), value)
    end
    assert.equal("t.lua:4: yaml.encode(value): as YAML it becomes too large", sandbox.refusal(run, [[
      local deep = moonloop.array()
      for i = 1, 60000 do deep[i] = 1 end
      for _ = 1, 60 do deep = { deep } end
      yaml.encode(deep)
    ]]))
  end)

  -- Each text in each place: alone, in a list, as a key, deep inside. The host's reader is the one whose answers are
  -- compared with kubectl's (spec/unit/codec/yaml.txt).
  for _, piece in ipairs {
    "", " ", "\n", "\r", "\t", "a", "-", ":", "#", "?", "*", "&", "!", "%", "@", "`", "|", ">", "'", '"', "\\", "{",
    "}", "[", "]", ",", "~", "=", "<<", "0", "1", ".", "+", "_", "e", "x", "y", "---", "...",
    "\0", "\7", "\27", "\127",
    "\xc2\x85", "\xc2\x9f", "\xc2\xa0", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xef\xbb\xbf", "\xef\xbf\xbe",
    "\xf0\x9f\x98\x80",
    "yes", "No", "NULL", "true", "off", "null", "0x1f", "0o17", "1_000", "1:30", "2026-01-01", ".inf", "-.INF", ".nan",
    ("k"):rep(2000),
  } do
    it(("is read back as the same text: %q"):format(piece:sub(1, 20)), function()
      local texts = host.json.array()
      for _, frame in ipairs { "%s", " %s", "%s ", "a%s", "%sa", "a %s", "%s a", "a\n%s", "%s\na", "a\n%s\n", "a%s: b",
        "a %s#b", "a\n\n%s\n\nb", "a\n  %s\n b\n" } do
        texts[#texts + 1] = (frame:gsub("%%s", (piece:gsub("%%", "%%%%"))))
      end
      local count = run([[
        local count = 0
        local function same(value)
          local text = yaml.encode(value)
          local back, why = yaml.decode(text)
          assert(back ~= nil and cjson.encode(back) == cjson.encode(value), (why or "") .. cjson.encode(text))
          count = count + 1
        end
        for _, text in ipairs(cjson.decode(]] .. ("%q"):format(host.json.encode(texts)) .. [[)) do
          same(text)
          same { text, { text } }
          same { [text] = text, b = { [text] = { c = text } } }
          same { { [text] = moonloop.array() }, { a = { { text } } } }
        end
        return count
      ]])
      assert.equal(4 * #texts, count)
    end)
  end

  it("is read back as the same value, of any shape", function()
    assert.equal(100, run [[
      local function any(depth)
        local kind = math.random(depth > 4 and 5 or 8)
        if kind == 1 then return math.random(-1000, 1000)
        elseif kind == 2 then return math.random(2) == 1
        elseif kind == 3 then return moonloop.null
        elseif kind == 4 then return ("%c%c "):format(math.random(32, 126), math.random(32, 126)):rep(math.random(3))
        elseif kind == 5 then return (math.random() - 0.5) * 10 ^ math.random(-20, 18)
        end
        local result = kind == 6 and {} or moonloop.array()
        for i = 1, math.random(0, 4) do
          result[kind == 6 and ("k%c"):format(math.random(32, 126)) or i] = any(depth + 1)
        end
        return result
      end
      local function equal(a, b)
        if type(a) ~= "table" or type(b) ~= "table" then return a == b end
        for key, value in pairs(a) do if not equal(value, b[key]) then return false end end
        for key in pairs(b) do if a[key] == nil then return false end end
        return true
      end
      local count = 0
      for _ = 1, 100 do
        local given = any(0)
        local text = yaml.encode(given)
        assert(equal(given, (yaml.decode(text))), text)
        count = count + 1
      end
      return count
    ]])
  end)
end)
