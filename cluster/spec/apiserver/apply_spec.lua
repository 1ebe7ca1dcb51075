-- Server-side apply: what becomes of the object, and who owns what afterwards.
local apply = require "cluster.apiserver.apply"
local builtin = require "cluster.apiserver.schema.builtin"
local host = require "cluster.host"

local json = host.json

local TIME, LATER = "2026-07-01T10:00:00Z", "2026-07-01T11:00:00Z"
local ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"

local CONFIGMAP = {
  id = "configmaps", group = "", version = "v1", api_version = "v1", kind = "ConfigMap", plural = "configmaps",
  builtin = true, schema = builtin.of("", "v1", "ConfigMap"),
}
local POD = {
  id = "pods", group = "", version = "v1", api_version = "v1", kind = "Pod", plural = "pods", builtin = true,
  subresources = { status = true }, schema = builtin.of("", "v1", "Pod"),
}
local WIDGET = {
  id = "widgets.e.com", group = "e.com", api_version = "e.com/v1", kind = "Widget", plural = "widgets", builtin = false,
  subresources = { status = true, scale = { spec = "spec.size", status = "status.size" } },
  schema = json.decode [[{"type":"object","properties":{
    "spec":{"type":"object","properties":{
      "size":{"type":"integer"},
      "tags":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"},
      "parts":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
        "items":{"type":"object","properties":{"name":{"type":"string"},"count":{"type":"integer"}}}},
      "ports":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["port","protocol"],
        "items":{"type":"object","properties":{"port":{"type":"integer"},
          "protocol":{"type":"string","default":"TCP"}}}},
      "whole":{"type":"object","x-kubernetes-map-type":"atomic","additionalProperties":{"type":"string"}},
      "free":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}},
    "status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]],
}


-- `text` as an object of `res` with a name.
local function object_of(res, text)
  local object = json.decode(text)
  object.apiVersion, object.kind = object.apiVersion or res.api_version, object.kind or res.kind
  object.metadata = object.metadata or {}
  object.metadata.name = object.metadata.name or "a"
  return object
end


-- Applies each of `steps` in turn: { manager, text, force =, subresource =, time = }, or { update = manager, text } for
-- another write. Returns the object, or nil and the failure.
local function play(res, steps)
  local object, failure
  for _, step in ipairs(steps) do
    local settings = {
      manager = step.update or step[1], force = step.force, subresource = step.subresource, time = step.time or TIME,
    }
    if step.update then
      local new = object_of(res, step[1])
      new.metadata.uid = object and object.metadata.uid
      apply.update_managers(object, new, res, settings)
      object = new
    else
      object, failure = apply.apply(object, object_of(res, step[2]), res, settings)
    end
    if not object then
      return nil, failure
    end
    object.metadata.uid = "u"
  end
  return object
end


-- Returns the owners of the fields, as "manager operation fields", in the order of managedFields.
local function owners(object)
  local lines = {}
  for i, entry in ipairs(object.metadata.managedFields or {}) do
    local who = entry.manager .. (entry.subresource and "/" .. entry.subresource or "")
    lines[i] = ("%s %s %s"):format(who, entry.operation, json.encode(entry.fieldsV1))
  end
  return lines
end


describe("applying", function()
  it("makes an object, and its applier own what it said", function()
    local object = play(CONFIGMAP, { { "one", '{"data":{"k":"v"},"metadata":{"labels":{"x":"1"}}}' } })
    assert.are.same({ 'one Apply {"f:data":{"f:k":{}},"f:metadata":{"f:labels":{"f:x":{}}}}' }, owners(object))
    assert.are.equal(TIME, object.metadata.managedFields[1].time)
  end)

  it("takes out what its applier does not say any more", function()
    local object = play(CONFIGMAP, { { "one", '{"data":{"k":"v","l":"w"}}' }, { "one", '{"data":{"k":"v"}}' } })
    assert.are.same({ k = "v" }, object.data)
  end)

  it("leaves what another owns as well", function()
    local object = play(CONFIGMAP, {
      { "one", '{"data":{"k":"v"}}' }, { "two", '{"data":{"k":"v","l":"w"}}' }, { "one", "{}" },
    })
    assert.are.same({ k = "v", l = "w" }, object.data)
    assert.are.same({ 'two Apply {"f:data":{"f:k":{},"f:l":{}}}' }, owners(object))
  end)

  it("changes no time when the object stays the same", function()
    local object = play(CONFIGMAP, { { "one", '{"data":{"k":"v"}}' }, { "one", '{"data":{"k":"v"}}', time = LATER } })
    assert.are.equal(TIME, object.metadata.managedFields[1].time)
  end)

  it("names no time for who comes to share what is there", function()
    local object = play(CONFIGMAP, { { "one", '{"data":{"k":"v"}}' }, { "two", '{"data":{"k":"v"}}' } })
    assert.are.equal("two", object.metadata.managedFields[1].manager)
    assert.is_nil(object.metadata.managedFields[1].time)
  end)

  it("takes fields by force", function()
    local object = play(CONFIGMAP, {
      { "one", '{"data":{"k":"v","l":"w"}}' }, { "two", '{"data":{"k":"other"}}', force = true, time = LATER },
    })
    assert.are.same({ k = "other", l = "w" }, object.data)
    assert.are.same({ 'one Apply {"f:data":{"f:l":{}}}', 'two Apply {"f:data":{"f:k":{}}}' }, owners(object))
  end)

  it("merges lists by key, with defaults of keys, and keeps the order of the applier", function()
    local object = play(WIDGET, {
      { "one", '{"spec":{"parts":[{"name":"x","count":1},{"name":"y"}],"ports":[{"port":80}],"tags":["b","a"]}}' },
      { "two", '{"spec":{"parts":[{"name":"z"},{"name":"x"}],"ports":[{"port":80,"protocol":"UDP"}],"tags":["c"]}}' },
    })
    assert.are.equal('[{"name":"z"},{"count":1,"name":"x"},{"name":"y"}]', json.encode(object.spec.parts))
    assert.are.equal('[{"port":80},{"port":80,"protocol":"UDP"}]', json.encode(object.spec.ports))
    assert.are.equal('["b","a","c"]', json.encode(object.spec.tags))
    assert.are.equal('{"f:spec":{"f:parts":{"k:{\\"name\\":\\"x\\"}":{".":{},"f:count":{},"f:name":{}},'
      .. '"k:{\\"name\\":\\"y\\"}":{".":{},"f:name":{}}},"f:ports":{"k:{\\"port\\":80,\\"protocol\\":\\"TCP\\"}":'
      .. '{".":{},"f:port":{}}},"f:tags":{"v:\\"a\\"":{},"v:\\"b\\"":{}}}}',
      json.encode(object.metadata.managedFields[1].fieldsV1))
  end)

  it("sees whole maps and maps of unknown fields as their schema tells", function()
    local object = play(WIDGET, { { "one", '{"spec":{"whole":{"a":"1"},"free":{"a":{"b":[1]}}}}' } })
    assert.are.same({ 'one Apply {"f:spec":{"f:free":{"f:a":{".":{},"f:b":{}}},"f:whole":{}}}' }, owners(object))
  end)

  it("gives what was there before to before-first-apply", function()
    local live = object_of(CONFIGMAP, '{"data":{"k":"v"},"metadata":{"uid":"u"}}')
    local object = assert(apply.apply(live, object_of(CONFIGMAP, '{"data":{"l":"w"}}'), CONFIGMAP,
      { manager = "one", time = LATER }))
    assert.are.same({ 'one Apply {"f:data":{"f:l":{}}}', 'before-first-apply Update {"f:data":{".":{},"f:k":{}}}' },
      owners(object))
  end)

  it("owns no status through the object, and nothing but status through that", function()
    local object = play(WIDGET, {
      { "one", '{"spec":{"size":1},"status":{"a":1}}' },
      { "two", '{"spec":{"size":2},"status":{"b":1}}', subresource = "status", force = true },
    })
    assert.are.same({ 'one Apply {"f:spec":{"f:size":{}}}', 'two/status Apply {"f:status":{"f:b":{}}}' },
      owners(object))
  end)

  it("takes over from client-side apply without a conflict when kubectl applies", function()
    local meta = { annotations = { [ANNOTATION] = '{"apiVersion":"v1","kind":"ConfigMap","data":{"k":"v"}}' } }
    local first = json.encode { metadata = meta, data = { k = "v" } }
    local object = play(CONFIGMAP, {
      { update = "kubectl-client-side-apply", first }, { "kubectl", '{"data":{"k":"new"}}' },
    })
    assert.are.same({ k = "new" }, object.data)
    assert.are.equal('{"apiVersion":"v1","data":{"k":"new"},"kind":"ConfigMap","metadata":{"name":"a"}}\n',
      object.metadata.annotations[ANNOTATION])
    assert.is_nil(play(CONFIGMAP, {
      { update = "kubectl-client-side-apply", first }, { "someone", '{"data":{"k":"new"}}' },
    }))
  end)

  it("keeps to one leaf what the schema now takes as a whole", function()
    local object = play(WIDGET, { { "one", '{"spec":{"parts":[{"name":"x"}],"size":1}}' } })
    local changed = {}
    for key, value in pairs(WIDGET) do
      changed[key] = value
    end
    changed.schema = json.copy(WIDGET.schema)
    changed.schema.properties.spec.properties.parts["x-kubernetes-list-type"] = "atomic"
    object = assert(apply.apply(object, object_of(WIDGET, '{"spec":{"tags":["a"]}}'), changed,
      { manager = "two", time = TIME }))
    assert.are.same({
      'one Apply {"f:spec":{"f:parts":{},"f:size":{}}}', 'two Apply {"f:spec":{"f:tags":{"v:\\"a\\"":{}}}}',
    }, owners(object))
  end)

  it("forgets owners in versions that are not served any more", function()
    local object = play(CONFIGMAP, { { "one", '{"data":{"k":"v"}}' } })
    object.metadata.managedFields[1].apiVersion = "v1beta9"
    object = assert(apply.apply(object, object_of(CONFIGMAP, '{"data":{"k":"w"}}'), CONFIGMAP,
      { manager = "two", time = TIME }))
    assert.are.same({ 'two Apply {"f:data":{"f:k":{}}}' }, owners(object))
  end)

  it("tells of each field of another", function()
    local object, failure = play(WIDGET, {
      { "one", '{"spec":{"size":1,"parts":[{"name":"x","count":1}]}}' },
      { "two", '{"spec":{"size":2,"parts":[{"name":"x","count":2}]}}' },
    })
    assert.is_nil(object)
    assert.are.equal(409, failure.code)
    assert.are.equal('Apply failed with 2 conflicts: conflicts with "one":\n- .spec.size\n'
      .. '- .spec.parts[name="x"].count', failure.message)
    assert.are.same({ reason = "FieldManagerConflict", message = 'conflict with "one"', field = ".spec.size" },
      failure.details.causes[1])
  end)

  it("tells how another came to own a field", function()
    local _, failure = play(CONFIGMAP, { { update = "editor", '{"data":{"k":"v"}}' }, { "one", '{"data":{"k":"w"}}' } })
    assert.are.equal('Apply failed with 1 conflict: conflict with "editor" using v1: .data.k', failure.message)
  end)

  for _, case in ipairs {
    { CONFIGMAP, '{"kind":"Secret"}', 400, "invalid object type: /v1, Kind=Secret" },
    { CONFIGMAP, '{"metadata":{"managedFields":[{}]}}', 400, "metadata.managedFields must be nil" },
    { CONFIGMAP, '{"extra":1}', 500,
      "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .extra: field not declared in schema" },
    { CONFIGMAP, '{"data":{"k":5}}', 500, "failed to create typed patch object (/a; /v1, Kind=ConfigMap): "
      .. ".data.k: expected string, got &value.valueUnstructured{Value:5}" },
    { WIDGET, '{"spec":{"size":"x"}}', 500, "failed to create typed patch object (/a; e.com/v1, Kind=Widget): "
      .. ".spec.size: expected numeric (int or float), got string" },
    { WIDGET, '{"spec":{"tags":["a","a"]}}', 500, "failed to create typed patch object (/a; e.com/v1, Kind=Widget): "
      .. '.spec.tags: duplicate entries for key [="a"]' },
    { WIDGET, '{"spec":{"parts":[{"count":1}]}}', 500,
      "failed to create typed patch object (/a; e.com/v1, Kind=Widget): "
      .. '.spec.parts: element 0: associative list with keys has an element that omits all key fields ["name"] '
      .. "(and doesn't have default values for any key fields)" },
  } do
    it("refuses " .. case[2], function()
      local object, failure = play(case[1], { { "one", case[2] } })
      assert.is_nil(object)
      assert.are.same({ case[3], case[4] }, { failure.code, failure.message })
    end)
  end
end)


describe("another write", function()
  it("makes its manager own what it set", function()
    local object = play(POD, {
      { update = "m", '{"spec":{"containers":[{"name":"c","ports":[{"containerPort":80}]}]}}' },
    })
    assert.are.same({ 'm Update {"f:spec":{"f:containers":{"k:{\\"name\\":\\"c\\"}":{".":{},"f:name":{},"f:ports":{'
      .. '".":{},"k:{\\"containerPort\\":80,\\"protocol\\":\\"TCP\\"}":{".":{},"f:containerPort":{}}}}}}}' },
      owners(object))
  end)

  it("takes from others what it changes and what it removes", function()
    local object = play(CONFIGMAP, {
      { "one", '{"data":{"k":"v","l":"w","m":"x"}}' }, { update = "two", '{"data":{"k":"new","l":"w"}}' },
    })
    -- The update brought no managedFields: those of the old object stand.
    assert.are.same({ 'one Apply {"f:data":{"f:l":{}}}', 'two Update {"f:data":{"f:k":{}}}' }, owners(object))
  end)

  it("changes nothing when nothing changes", function()
    local object = play(CONFIGMAP, { { "one", '{"data":{"k":"v"}}' }, { update = "two", '{"data":{"k":"v"}}',
      time = LATER } })
    assert.are.same({ 'one Apply {"f:data":{"f:k":{}}}' }, owners(object))
    assert.are.equal(TIME, object.metadata.managedFields[1].time)
  end)

  it("puts the oldest of more than ten managers together", function()
    local steps, data = {}, {}
    for i = 1, 12 do
      data["k" .. i] = "v"
      steps[i] = {
        update = ("m%02d"):format(i), json.encode { data = data }, time = ("2026-07-01T10:%02d:00Z"):format(i),
      }
    end
    local object = play(CONFIGMAP, steps)
    local lines = owners(object)
    assert.are.equal(10, #lines)
    assert.are.equal('ancient-changes Update {"f:data":{".":{},"f:k1":{},"f:k2":{},"f:k3":{}}}', lines[1])
    assert.are.equal('m04 Update {"f:data":{"f:k4":{}}}', lines[2])
  end)

  for _, reset in ipairs { "[]", "[{}]" } do
    it("makes all owners forgotten with " .. reset, function()
      local object = play(CONFIGMAP, {
        { "one", '{"data":{"k":"v"}}' },
        { update = "two", '{"metadata":{"managedFields":' .. reset .. '},"data":{"l":"w"}}' },
        { update = "two", '{"data":{"m":"x"}}' },
      })
      assert.are.same({}, owners(object))
    end)
  end

  it("may bring the list of owners itself", function()
    local entry = '{"manager":"x","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1",'
      .. '"fieldsV1":{"f:data":{"f:k":{}}}}'
    local object = play(CONFIGMAP, {
      { "one", '{"data":{"k":"v"}}' },
      { update = "two", '{"metadata":{"managedFields":[' .. entry .. ']},"data":{"k":"v"}}' },
    })
    assert.are.same({ 'x Update {"f:data":{"f:k":{}}}' }, owners(object))
  end)

  it("goes on from the old list when the one it brings is not valid", function()
    local object = play(CONFIGMAP, {
      { "one", '{"data":{"k":"v"}}' },
      { update = "two", '{"metadata":{"managedFields":[{"manager":"x","operation":"Paint"}]},"data":{"k":"v"}}' },
    })
    assert.are.same({ 'one Apply {"f:data":{"f:k":{}}}' }, owners(object))
  end)

  it("makes nobody own what the server keeps", function()
    local object = play(CONFIGMAP, { { update = "m",
      '{"metadata":{"uid":"u","resourceVersion":"5","creationTimestamp":"t","generation":1,"namespace":"n"}}' } })
    assert.are.same({}, owners(object))
  end)

  it("loses its owners when the items of a list cannot be told apart", function()
    local object = play(WIDGET, { { update = "m", '{"spec":{"parts":[{"count":1}]}}' } })
    assert.are.same({}, owners(object))
  end)

  it("takes the number of replicas through the scale", function()
    local object = play(WIDGET, {
      { "one", '{"spec":{"size":1,"tags":["a"]}}' },
      { update = "scaler", '{"spec":{"size":2,"tags":["a"]}}', subresource = "scale" },
    })
    assert.are.same({
      'one Apply {"f:spec":{"f:tags":{"v:\\"a\\"":{}}}}', 'scaler/scale Update {"f:spec":{"f:size":{}}}',
    }, owners(object))
    assert.are.equal("e.com/v1", object.metadata.managedFields[2].apiVersion)
  end)
end)
