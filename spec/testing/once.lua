-- ctx.once with Secrets from the cache: once_test.lua.
return require "once_modes" ("once", "owns")
