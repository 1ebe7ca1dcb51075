--- Written by tools/kinds; the notation is described in schema/notation.lua.
return {

  PriorityClass = [[
@kind
description string #4
globalDefault bool #3
metadata meta.ObjectMeta #1
preemptionPolicy *string {Never|PreemptLowerPriority} go:v1.PreemptionPolicy #5
value+ int32 #2
]],

}
