--- Names of properties as identifiers in CEL: "my-field" is my__dash__field, "namespace" is __namespace__.
---
--- Rules: apiserver/pkg/cel/escaping.go.
local RESERVED = {}
for word in ("true false null in as break const continue else for function if import let loop package namespace return "
  .. "var void while"):gmatch "%a+" do
  RESERVED[word] = true
end

local WRITTEN = { ["-"] = "__dash__", ["."] = "__dot__", ["/"] = "__slash__", ["\0"] = "__underscores__" }


--- The identifier for a property, nil when there is none: rules cannot name such a property.
--- @param name string
--- @return string|nil
return function(name)
  if RESERVED[name] then
    return "__" .. name .. "__"
  elseif not name:find "^[%a_./-][%w_./-]*$" then
    return nil
  end
  return (name:gsub("__", "\0"):gsub("[-./%z]", WRITTEN))
end
