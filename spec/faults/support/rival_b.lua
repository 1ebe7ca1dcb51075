-- The other one of rival_a.lua.
return require("rival").controller("b")
