--- Helpers of every spec of a fault, in virtual time and through the binary alike: the tally, and seeds.
local M = {}


local function number_of(variable)
  local text = os.getenv(variable)
  if not text or text == "" then
    return nil
  end
  local number = math.tointeger(tonumber(text))
  return number and number >= 0 and number or error(("%s=%s: expected a whole number"):format(variable, text), 0)
end


--- Adds tries of a row to the tally of tools/faults.sh: a line in the file that $FAULTS_TALLY names, if that is set.
--- @param row string "F11"  @param count integer how often its fault was tried
function M.tried(row, count)
  local path = os.getenv "FAULTS_TALLY"
  if path and path ~= "" then
    local tally = assert(io.open(path, "a"))
    tally:write(("%s %d\n"):format(row, count))
    tally:close()
  end
end


--- The seeds to try: $FAULT_SEED alone when it is set, else as many as $FAULT_SEEDS says.
--- @return table list of integers
--- @param count integer|nil how many when neither is set; default 5
function M.seeds(count)
  local only = number_of "FAULT_SEED"
  if only then
    return { only }
  end
  local seeds = {}
  for seed = 1, number_of "FAULT_SEEDS" or count or 5 do
    seeds[seed] = seed
  end
  return seeds
end


--- Calls fn(seed) for each of the seeds; a failure says how to have it again. @return integer how many there were
--- @param row string "F14": what to replay  @param count integer|nil as in seeds
function M.each_seed(row, count, fn)
  local seeds = M.seeds(count)
  for _, seed in ipairs(seeds) do
    local ok, why = xpcall(fn, function(raised)
      return type(raised) == "table" and raised or debug.traceback(tostring(raised), 2)
    end, seed)
    if not ok then
      print(("%s: seed %d failed; again: make faults ARGS=%s FAULT_SEED=%d"):format(row, seed, row, seed))
      error(why, 0)
    end
  end
  return #seeds
end


return M
