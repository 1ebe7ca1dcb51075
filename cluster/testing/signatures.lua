-- Made by tools/script-api.lua out of lua/script_api.lua: the arguments of
-- the functions that tests have, and the fields of their options (calls.lua).
return {
  functions = {
    ["world.apply"] = {
      call = "world.apply(object)",
      { "what", 'moonloop.Manifest|moonloop.Manifest[]|string' },
    },
    ["world.patch"] = {
      call = "world.patch(Kind, name, changes [, subresource [, namespace]])",
      { "kind", 'moonloop.Kind' },
      { "name", 'string' },
      { "changes", 'table' },
      { "subresource?", 'string' },
      { "namespace?", 'string' },
    },
    ["world.delete"] = {
      call = "world.delete(Kind, name [, namespace])",
      { "kind", 'moonloop.Kind' },
      { "name", 'string' },
      { "namespace?", 'string' },
    },
    ["world.get"] = {
      call = "world.get(Kind, name [, namespace])",
      { "kind", 'moonloop.Kind' },
      { "name", 'string' },
      { "namespace?", 'string' },
    },
    ["world.list"] = {
      call = "world.list(Kind [, selector])",
      { "kind", 'moonloop.Kind' },
      { "selector?", 'string' },
    },
    ["world.expect"] = {
      call = "world.expect(Kind, name, fields [, namespace])",
      { "kind", 'moonloop.Kind' },
      { "name", 'string' },
      { "fields", 'table|false' },
      { "namespace?", 'string' },
    },
    ["world.advance"] = {
      call = "world.advance(\"5m\")",
      { "duration", 'string|number' },
    },
    ["world.settle"] = {
      call = "world.settle()",
    },
    ["world.now"] = {
      call = "world.now()",
    },
    ["world.pods"] = {
      call = "world.pods(rule)",
      { "rule", 'moonloop.testing.PodRule' },
    },
    ["world.finish_pod"] = {
      call = "world.finish_pod(name [, how [, namespace]])",
      { "name", 'string' },
      { "how?", '"Succeeded"|"Failed"|integer' },
      { "namespace?", 'string' },
    },
    ["world.events"] = {
      call = "world.events([Kind [, name [, by]]])",
      { "kind?", 'moonloop.Kind' },
      { "name?", 'string' },
      { "by?", 'string' },
    },
    ["world.requests"] = {
      call = "world.requests([verb [, path]])",
      { "verb?", 'string' },
      { "path?", 'string' },
    },
    ["world.fault"] = {
      call = "world.fault(name [, where])",
      { "name", '"conflict"|"forbidden"|"internal_error"|"unavailable"|"too_many_requests"|"lost_request"|"lost_r'
        .. 'eply"|"timeout"|"stale_cache"' },
      { "where?", 'moonloop.testing.Where' },
    },
    ["world.round_trip"] = {
      call = "world.round_trip(object)",
      { "object", 'moonloop.Manifest' },
    },
    ["world.metric"] = {
      call = "world.metric(name [, labels])",
      { "name", 'string' },
      { "labels?", 'table<string, string>' },
    },
    ["world.http"] = {
      call = "world.http(function(request) … end)",
      { "answer", 'fun(request: table): table?, string?' },
    },
    ["world.restart"] = {
      call = "world.restart()",
    },
    ["testing.world"] = {
      call = "testing.world(options)",
      { "options?", 'moonloop.testing.Options' },
    },
  },
  options = {
    ["moonloop.testing.Options"] = {
      { "now?", 'string|number' },
      { "scripts?", 'string|string[]' },
      { "crds?", 'string|string[]' },
      { "pods?", '"run"|"succeed"|"fail"|fun(pod: moonloop.Object, container: table): { after: number, code: inte'
        .. 'ger }?' },
      { "seed?", 'integer' },
    },
    ["moonloop.testing.PodRule"] = {
      { "matching?", 'string' },
      { "name?", 'string' },
      { "ready_after?", 'number|false' },
      { "exit_code?", 'integer' },
      { "exit_after?", 'number' },
      { "times?", 'integer' },
    },
    ["moonloop.testing.Where"] = {
      { "verb?", '"create"|"update"|"patch"|"delete"|"get"|"list"' },
      { "kind?", 'moonloop.Kind' },
      { "times?", 'integer' },
    },
  },
}
