--- The three patch types that describe a change; server-side apply is in apply/.
return {
  --- (object, operations) -> new object | nil, status
  json = require "cluster.apiserver.patch.json",
  --- (object, patch) -> new object | nil, status
  merge = require "cluster.apiserver.patch.merge",
  --- (object, patch, schema) -> new object | nil, status; the patch is used up
  strategic = require "cluster.apiserver.patch.strategic",
}
