std = "lua54"
max_line_length = 120
exclude_files = { "build", "spec/attacks/*/*.lua" } -- hostile programs lint as they like
files["**/*_spec.lua"] = { std = "+busted" }
files["**/*_test.lua"] = { std = "+busted" }
files["lua/*/meta"] = { ignore = { "111", "112", "113", "121", "122", "131", "211", "212", "431" } }
files["cluster/meta"] = { ignore = { "111", "112", "113", "121", "122", "131", "211", "212", "431" } }
files["spec/attacks/world.lua"] = { globals = { "Build", "Fill", "Touch", "Check" } }
