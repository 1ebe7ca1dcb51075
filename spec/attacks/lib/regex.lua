-- attack: regex gets each value there is, and patterns that are nearly ones.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local regex = require "moonloop.regex"

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    hostile.throw(regex.match)
    hostile.throw(regex.find)
    hostile.throw(regex.gmatch)
    hostile.throw(regex.gsub)
    hostile.throw(regex.quote)
    hostile.throw_one(function(value) return regex.match("text", value) end)
    hostile.throw_one(function(value) return regex.find("text", "t", value) end)
    hostile.throw_one(function(value) return regex.gsub("text", "t", value) end)
    hostile.throw_one(function(value) return regex.gsub("text", "t", function() return value end) end)
    hostile.throw_one(function(value) return regex.gsub("text", "(t)", "$1", value) end)
    for _, pattern in ipairs { "(", ")", "[", "a{2,1}", "a**", "(?P<n", "(?<>a)", "\\", "\\C", "\\pX", "[[:foo:]]", "\xff", "(a{1000}){1000}", "(?=a)",
      ("("):rep(1001), ("a"):rep(100000), ("\\pL"):rep(300), ("(a)"):rep(300), "\0[", "(%d+" } do
      if pcall(regex.match, "a", pattern) then error("ESCAPED: it took " .. pattern:sub(1, 20)) end
    end
    regex.gsub("a b c", "[a-c]", function(c) return regex.gsub(c, "(.)", "$1$1") .. tostring(error) end)
    pcall(regex.gsub, "aaa", "a", function() error({}) end)
  end,
}
