--- The Gregorian calendar in UTC, for moonloop/time.lua and moonloop/cron.lua. Days are counted from 1970-01-01, which
--- is day 0; years may be any.
local M = {}

local MONTH_DAYS = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }

--- Seconds of a day.
M.DAY = 86400


---@return integer days from 28 to 31
function M.days_in_month(year, month)
  local leap = year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)
  return month == 2 and leap and 29 or MONTH_DAYS[month]
end


--- The day of a date. Years begin in March here, so that the leap day is the last day of a year.
---@return integer day
function M.day_of(year, month, date)
  if month <= 2 then
    year, month = year - 1, month + 12
  end
  local leaps = year // 4 - year // 100 + year // 400
  return 365 * year + leaps + (153 * (month - 3) + 2) // 5 + date - 719469
end


--- The date of a day. Counts eras of 400 years, whose years begin in March.
---@return integer year
---@return integer month from 1
---@return integer date from 1
function M.date_of(day)
  local since = day + 719468
  local era = since // 146097
  local day_of_era = since % 146097
  local year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
  local day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
  local march_month = (5 * day_of_year + 2) // 153
  local month = march_month < 10 and march_month + 3 or march_month - 9
  local year = year_of_era + era * 400 + (month <= 2 and 1 or 0)
  return year, month, day_of_year - (153 * march_month + 2) // 5 + 1
end


--- 0 is Sunday.
---@return integer weekday
function M.weekday_of(day)
  return (day + 4) % 7
end


return M
