--- Written by tools/kinds; the notation is described in schema/notation.lua.
return {

  Overhead = [[podFixed {}Quantity go:v1.ResourceList #1]],

  RuntimeClass = [[
@kind
handler! string #2
metadata meta.ObjectMeta #1
overhead *Overhead #3
scheduling *Scheduling #4
]],

  Scheduling = [[
nodeSelector {}string atomic #1
tolerations []core.Toleration atomic #2
]],

}
