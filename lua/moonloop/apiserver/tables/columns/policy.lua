--- Written by tools/printer-columns.lua; the notation is described in tables/columns.lua.
return {

  PodDisruptionBudget = [[
Name string =name @name
Min_Available string
  The minimum number of pods that must be available.
Max_Unavailable string
  The maximum number of pods that may be unavailable.
Allowed_Disruptions integer
  Calculated number of pods that may be disrupted at this time.
Age string @age
]],

}
