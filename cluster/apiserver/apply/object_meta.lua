--- The schema of the fields that every object has, as far as field management needs it.
--- Rules: apimachinery/pkg/apis/meta/v1/types.go, the markers of ObjectMeta.
local TEXT = { type = "string" }
local NUMBER = { type = "integer" }
local TIME = { type = "string", format = "date-time" }
local TEXTS = { type = "object", additionalProperties = TEXT }

local OWNER = {
  type = "object",
  ["x-kubernetes-map-type"] = "atomic",
  properties = {
    apiVersion = TEXT,
    blockOwnerDeletion = { type = "boolean" },
    controller = { type = "boolean" },
    kind = TEXT,
    name = TEXT,
    uid = TEXT,
  },
}

local MANAGED_FIELDS_ENTRY = {
  type = "object",
  properties = {
    apiVersion = TEXT,
    fieldsType = TEXT,
    fieldsV1 = { type = "object" },
    manager = TEXT,
    operation = TEXT,
    subresource = TEXT,
    time = TIME,
  },
}

local META = {
  type = "object",
  properties = {
    annotations = TEXTS,
    creationTimestamp = TIME,
    deletionGracePeriodSeconds = NUMBER,
    deletionTimestamp = TIME,
    finalizers = {
      type = "array",
      items = TEXT,
      ["x-kubernetes-list-type"] = "set",
      ["x-kubernetes-patch-strategy"] = "merge",
    },
    generateName = TEXT,
    generation = NUMBER,
    labels = TEXTS,
    managedFields = { type = "array", items = MANAGED_FIELDS_ENTRY, ["x-kubernetes-list-type"] = "atomic" },
    name = TEXT,
    namespace = TEXT,
    ownerReferences = {
      type = "array",
      items = OWNER,
      ["x-kubernetes-list-type"] = "map",
      ["x-kubernetes-list-map-keys"] = { "uid" },
      ["x-kubernetes-patch-strategy"] = "merge",
      ["x-kubernetes-patch-merge-key"] = "uid",
    },
    resourceVersion = TEXT,
    selfLink = TEXT,
    uid = TEXT,
  },
}

return {
  schema = META,
  --- The fields that every object has beside its own; embedded resources have them too.
  embedded = { apiVersion = TEXT, kind = TEXT, metadata = META },
}
