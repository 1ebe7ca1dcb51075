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


--- The date of a day.
---@return integer year
---@return integer month from 1
---@return integer date from 1
function M.date_of(day)
  local year = 1970 + day // 366
  while M.day_of(year + 1, 1, 1) <= day do
    year = year + 1
  end
  while M.day_of(year, 1, 1) > day do
    year = year - 1
  end
  local date, month = day - M.day_of(year, 1, 1) + 1, 1
  while date > M.days_in_month(year, month) do
    date, month = date - M.days_in_month(year, month), month + 1
  end
  return year, month, date
end


--- 0 is Sunday.
---@return integer weekday
function M.weekday_of(day)
  return (day + 4) % 7
end


return M
