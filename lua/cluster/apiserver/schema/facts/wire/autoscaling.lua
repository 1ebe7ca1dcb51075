--- Written by tools/builtin-wire.lua; read by schema/protobuf.lua.
return {
  Scale = [[
    metadata=1 spec=2 status=3]],
  ScaleSpec = [[
    replicas=1]],
  ScaleStatus = [[
    replicas=1 selector=2]],
}
