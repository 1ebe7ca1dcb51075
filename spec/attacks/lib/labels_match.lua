-- attack: labels.match gets each value there is, and selectors that would select more than they say.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local labels = require "moonloop.labels"

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    hostile.throw(labels.match)
    hostile.throw_one(labels.match, "app")
    hostile.throw_one(function(value) return labels.match({ matchLabels = value }, {}) end)
    hostile.throw_one(function(value) return labels.match({ matchLabels = { app = value } }, {}) end)
    hostile.throw_one(function(value) return labels.match({ matchLabels = { [value] = "x" } }, {}) end)
    hostile.throw_one(function(value) return labels.match({ matchExpressions = value }, {}) end)
    hostile.throw_one(function(value) return labels.match({ matchExpressions = { value } }, {}) end)
    for _, field in ipairs { "key", "operator", "values", "nonsense" } do
      hostile.throw_one(function(value)
        return labels.match({ matchExpressions = { { key = "a", operator = "In", values = { "x" }, [field] = value } } }, {})
      end)
    end
    for _, selector in ipairs { { matchLabels = { a = "b,!c" } }, { matchLabels = { ["a,b"] = "x" } }, { matchLabels = { ["!a"] = "" } },
      { matchExpressions = { key = "a", operator = "Exists" } }, { matchExpression = {} }, { matchExpressions = { { key = "a", operator = "In", values = { "x) , (y" } } } },
      { matchExpressions = { { key = "a in (b),c", operator = "Exists" } } }, ("a,"):rep(99999), "(", "a in", "a in (", "=", "a==b==c", ",", "a\0b" } do
      if labels.match(selector, { c = "x" }) then error "ESCAPED: a bad selector selects" end
    end
  end,
}
