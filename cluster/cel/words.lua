--- Durations in words, as texts of a schema with `format: duration` may have them: "2 days 3 hours".
---
--- Rules: kube-openapi/pkg/validation/strfmt/duration.go.

-- Nanoseconds, how a unit may be written, and how a longer word for it begins.
local UNITS = {
  { 1, { "ns", "nano" } }, { 1000, { "us", "µs", "micro" } }, { 1000000, { "ms", "milli" } },
  { 1000000000, { "s", "sec" } }, { 60000000000, { "m", "min" } }, { 3600000000000, { "h", "hr", "hour" } },
  { 86400000000000, { "d", "day" } }, { 604800000000000, { "w", "wk", "week" } },
}


local function nanos_of(word)
  word = word:lower()
  for _, unit in ipairs(UNITS) do
    local names = unit[2]
    for i, name in ipairs(names) do
      if word == name or i == #names and word:sub(1, #name) == name then
        return unit[1]
      end
    end
  end
  return nil
end


--- @param text string
--- @return integer|nil nanoseconds nil when no word of it is a unit
return function(text)
  local sum
  for digits, word in text:gmatch "(%d+)%s*([%aµ]+)" do
    local nanos, count = nanos_of(word), math.tointeger(tonumber(digits))
    if not count then
      return nil
    end
    sum = nanos and (sum or 0) + count * nanos or sum
  end
  return sum
end
