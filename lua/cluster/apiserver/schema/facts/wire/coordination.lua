--- Written by tools/builtin-wire.lua; read by schema/protobuf.lua.
return {
  Lease = [[
    metadata=1 spec=2]],
  LeaseSpec = [[
    acquireTime=3 holderIdentity=1 leaseDurationSeconds=2 leaseTransitions=5 preferredHolder=7
    renewTime=4 strategy=6]],
}
