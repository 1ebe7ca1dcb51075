-- attack: yaml.decode gets each value there is, bombs of aliases, and texts that are nearly YAML.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local yaml = require "moonloop.yaml"

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    hostile.throw(yaml.decode)
    local bomb = { "a0: &a0 [x]" }
    for i = 1, 60 do bomb[i + 1] = ("a%d: &a%d [%s]"):format(i, i, ("*a%d,"):format(i - 1):rep(9)) end
    local circle = "a: &a { b: *a }"
    for _, text in ipairs { table.concat(bomb, "\n"), circle, "&a [*a]", "<<: *b", "a: &a {<<: *a}", "*a", "%YAML 9.9\n--- a", "%TAG ! !\n%TAG ! !\n--- a",
      ("[" ):rep(2000), ("{a: "):rep(2000), ("- "):rep(2000), ("? "):rep(2000), "a: b: c", "\t", "'", '"', '"\\ud800"', "!!binary ====", "!!binary " .. ("A"):rep(9999),
      "1: a\n'1': b", "[1, 2]: 3", "{}: 1", "null: 1", "~: 1", ".nan", "1e999", "--- a\n--- b", "a: |\n  x\n y", "\xff\xfe\0", "\xfe\xff\0", "\0", "a\0b",
      "__index: 1\n__gc: 2\n__metatable: 3", "!<x> y", "? a\n? b", "a: 1\na: 2", "---\n...\n---\n...\n" } do
      yaml.decode(text)
    end
    local t = yaml.decode "__index: 1\n__len: 4"
    if #t ~= 0 or t.x ~= nil then error "ESCAPED: metamethods out of YAML" end
  end,
}
