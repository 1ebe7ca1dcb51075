--- Written by tools/builtin-schemas.lua; the notation is described in schema/notation.lua.
return {

  Scale = [[
@kind
metadata meta.ObjectMeta
spec ScaleSpec
status ScaleStatus
]],

  ScaleSpec = "replicas int32 =0",

  ScaleStatus = [[
replicas! int32
selector string
]],

}
