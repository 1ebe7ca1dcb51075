--- Written by tools/printer-columns.lua; the notation is described in tables/columns.lua.
return {

  PriorityClass = [[
Name string =name @name
Value integer
  value represents the integer value of this priority class. This is the actual priority that pods receive when
  they have the name of this class in their pod spec.
Global-Default boolean
  globalDefault specifies whether this PriorityClass should be considered as the default priority for pods that
  do not have any priority class. Only one PriorityClass can be marked as `globalDefault`. However, if more than
  one PriorityClasses exists with their `globalDefault` field set to true, the smallest value of such global
  default PriorityClasses will be used as the default priority.
Age string @age
PreemptionPolicy string
  preemptionPolicy is the Policy for preempting pods with lower priority. One of Never, PreemptLowerPriority.
  Defaults to PreemptLowerPriority if unset.
]],

}
