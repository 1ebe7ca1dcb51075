--- Written by tools/kinds; the notation is described in schema/notation.lua.
return {

  Lease = [[
@kind
metadata meta.ObjectMeta #1
spec LeaseSpec #2
]],

  LeaseSpec = [[
acquireTime *meta.MicroTime #3
holderIdentity *string #1
leaseDurationSeconds *int32 #2
leaseTransitions *int32 #5
preferredHolder *string #7
renewTime *meta.MicroTime #4
strategy *string go:v1.CoordinatedLeaseStrategy #6
]],

}
