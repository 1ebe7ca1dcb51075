--- The parts of cel-spec's conformance data that Kubernetes' dialect does not have, and why.
---
--- A row leaves out a file; a section of it; the cases of some names; or the cases whose expression or container has a
--- text in it.
local MESSAGES = "messages of Protocol Buffers: Kubernetes declares none"

return {
  { file = "block_ext", reason = "cel.block is made by an optimizer that Kubernetes does not use" },
  { file = "encoders_ext", reason = "Kubernetes has no base64 library" },
  { file = "math_ext", reason = "Kubernetes has no math library" },
  { file = "bindings_ext", reason = "Kubernetes has no cel.bind" },
  { file = "proto2", reason = MESSAGES },
  { file = "proto2_ext", reason = MESSAGES },
  { file = "proto3", reason = MESSAGES },
  { file = "enums", reason = MESSAGES },
  { file = "wrappers", reason = MESSAGES },
  { file = "dynamic", reason = MESSAGES },
  { text = "TestAllTypes", reason = MESSAGES },
  { text = "google%.protobuf%.%u%a+ ?{", reason = MESSAGES },
  { text = "google%.protobuf%.%u%w*Value", reason = MESSAGES },
  { text = "google%.protobuf%.Any", reason = MESSAGES },
  { file = "type_deduction", text = "msg", reason = MESSAGES },
  { file = "type_deduction", section = "functions", reason = "declares functions of its own" },
  { file = "type_deduction", section = "type_parameters", text = "tuple", reason = "declares functions of its own" },
  { file = "type_deduction", section = "legacy_nullable_types", names = {
    "null_assignable_to_abstract_parameter_candidate",
  }, reason = "cel-go deduces null" },
  { file = "string_ext", section = "format", names = {
    "scientific notation formatting clause", "default precision for scientific notation",
    "positive infinity support for scientific notation", "negative infinity support for scientific notation",
    "NaN support for decimal", "positive infinity support for decimal", "negative infinity support for decimal",
    "positive infinity support for fixed-point", "negative infinity support for fixed-point",
    "list support for string", "map support for string", "map support (all key types)",
    "dyntype support for scientific notation", "dyntype NaN/infinity support", "dyntype support for lists",
    "dyntype support for maps", "scientific notation formatting clause in a string variable",
  }, reason = "Kubernetes has version 2 of the library, which writes numbers as people do and lists as expressions" },
  { file = "string_ext", section = "value_errors", names = {
    "indexof_out_of_range", "lastindexof_out_of_range",
  }, reason = "cel-go says -1" },
  { file = "timestamps", section = "duration_converters", names = { "get_milliseconds" },
    reason = "cel-go gives all milliseconds of a duration" },
}
