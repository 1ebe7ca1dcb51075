-- Made by tools/script-api.lua out of lua/script_api.lua: the names that there are,
-- for "did you mean". A list is one string, as scripts can get hold of this table.
return {
  moonloop = "kind controller watch array null is_null",
  ctx = "get list ensure create apply patch delete event log now invalid terminal",
  ["moonloop.time"] = "utc parse format duration",
  cjson = "encode decode null array",
  kind = "apiVersion kind labels fields metadata_only",
  selection = "labels fields metadata_only",
  error = "kind code message",
  list = "namespace labels owned",
  result = "status requeue_after requeue_at",
  part = "generation labels annotations status",
  controller = "name reconciles reconcile when owns watches uses max_concurrent wakes",
}
