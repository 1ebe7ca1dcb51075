--- Written by tools/printer-columns.lua; the notation is described in tables/columns.lua.
return {

  Lease = [[
Name string =name @name
Holder string
  holderIdentity contains the identity of the holder of a current lease. If Coordinated Leader Election is used,
  the holder identity must be equal to the elected LeaseCandidate.metadata.name field.
Age string @age
]],

}
