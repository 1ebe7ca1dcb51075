--- Written by tools/printer-columns.lua; the notation is described in tables/columns.lua.
return {

  CronJob = [[
Name string =name @name
Schedule string
  The schedule in Cron format, see https://en.wikipedia.org/wiki/Cron.
Timezone string
  The time zone name for the given schedule, see https://en.wikipedia.org/wiki/List_of_tz_database_time_zones.
  If not specified, this will default to the time zone of the kube-controller-manager process. The set of valid
  time zone names and the time zone offset is loaded from the system-wide time zone database by the API server
  during CronJob validation and the controller manager during execution. If no system-wide time zone database
  can be found a bundled version of the database is used instead. If the time zone name becomes invalid during
  the lifetime of a CronJob or due to a change in host configuration, the controller will stop creating new new
  Jobs and will create a system event with the reason UnknownTimeZone. More information can be found in
  https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#time-zones
Suspend boolean
  This flag tells the controller to suspend subsequent executions, it does not apply to already started
  executions. \s Defaults to false.
Active integer
  A list of pointers to currently running jobs.
Last_Schedule string
  Information when was the last time the job was successfully scheduled.
Age string @age
Containers string wide
  Names of each container in the template.
Images string wide
  Images referenced by each container in the template.
Selector string wide
  A label query over pods that should match the pod count. Normally, the system sets this field for you. More
  info: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
]],

  Job = [[
Name string =name @name
Status string
  Status of the job.
Completions string
  The number of pods which reached phase Succeeded. The value increases monotonically for a given spec. However,
  it may decrease in reaction to scale down of elastic indexed jobs.
Duration string
  Time required to complete the job.
Age string @age
Containers string wide
  Names of each container in the template.
Images string wide
  Images referenced by each container in the template.
Selector string wide
  A label query over pods that should match the pod count. Normally, the system sets this field for you. More
  info: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
]],

}
