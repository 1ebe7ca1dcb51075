--- Written by tools/kinds; the notation is described in schema/notation.lua.
return {

  IngressClass = [[
@kind
metadata meta.ObjectMeta #1
spec IngressClassSpec #2
]],

  IngressClassParametersReference = [[
apiGroup *string #1
kind! string #2
name! string #3
namespace *string #5
scope+ *string #4
]],

  IngressClassSpec = [[
controller string #1
parameters *IngressClassParametersReference #2
]],

}
