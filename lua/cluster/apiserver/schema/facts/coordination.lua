--- Written by tools/builtin-schemas.lua; the notation is described in schema/notation.lua.
return {

  Lease = [[
@kind
metadata meta.ObjectMeta
spec LeaseSpec
]],

  LeaseSpec = [[
acquireTime meta.MicroTime
holderIdentity string
leaseDurationSeconds int32
leaseTransitions int32
preferredHolder string
renewTime meta.MicroTime
strategy string
]],

}
