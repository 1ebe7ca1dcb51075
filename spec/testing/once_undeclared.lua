-- A script that forgot to declare Secret: once_test.lua.
return require "once_modes" ("once-undeclared")
