-- ctx.once with Secrets by request: once_test.lua.
return require "once_modes" ("once-uses", "uses")
