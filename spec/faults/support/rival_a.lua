-- One of two controllers that want different values in the same fields: f47_fight_test.lua. The mode of a Thing says
-- which; rival_b.lua is the other one.
return require("rival").controller("a")
