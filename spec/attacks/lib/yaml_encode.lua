-- attack: yaml.encode gets each value there is, inside of lists and objects, and as a key; what it writes is read back.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local yaml = require "moonloop.yaml"

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    hostile.throw(yaml.encode)
    hostile.throw_one(function(value) return yaml.encode { value, value } end)
    hostile.throw_one(function(value) return yaml.encode { a = value, b = { value } } end)
    hostile.throw_one(function(value) return yaml.encode { [value] = value } end)
    for _, text in ipairs { "a: b", "- a", "? a", "*a", "&a", "!a", "%a", "@a", "`a", "#a", "a #b", "|", ">", "---", "...", "yes", "0644", "1e3", "~", "", " ", "\n",
      "\n\n", "a\n", "a\n\n", " a\nb", "a\n b\n", "\ta\nb", "a\r\nb", "\xc2\x85", "\xe2\x80\xa8", "\xef\xbb\xbf", "\x7f", "a\n---\nb", "a\n...\n" } do
      for _, value in ipairs { text, { text }, { [text] = text }, { { { [text] = { text } } } } } do
        local back = yaml.decode(yaml.encode(value))
        while type(back) == "table" do back = back[1] or back[text] end
        if back ~= text then error("ESCAPED: another text is read than was written: " .. text) end
      end
    end
  end,
}
