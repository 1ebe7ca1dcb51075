--- Written by tools/kinds; the notation is described in schema/notation.lua.
return {

  Scale = [[
@kind
metadata meta.ObjectMeta #1
spec ScaleSpec #2
status ScaleStatus #3
]],

  ScaleSpec = [[replicas int32 =0 #1]],

  ScaleStatus = [[
replicas! int32 #1
selector string #2
]],

}
