-- attack: a file that begins with the mark of a shell, which another program of Lua would pass over.
-- expect: refused /one.lua:1/
return require "one"
-- also: one.lua
#!/usr/bin/env lua
return {}
