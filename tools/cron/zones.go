package main

import (
	"bytes"
	"fmt"
	"log"
	"math/rand"
	"slices"
	"sort"
	"time"

	"github.com/robfig/cron/v3"
)

// Zones of all kinds of rules. The rules of `lasting` have been the same for long, so years to come are in the table as
// well: after 2037 a zone's file has only its rule.
var (
	lasting = []string{
		"Europe/Berlin", "Europe/London", "Europe/Dublin", "Europe/Athens", "America/New_York", "America/Chicago",
		"America/Los_Angeles", "America/St_Johns", "America/Anchorage", "Asia/Jerusalem", "Australia/Sydney",
		"Australia/Lord_Howe", "Pacific/Auckland", "Pacific/Chatham", "Asia/Tokyo", "Asia/Kolkata", "Africa/Johannesburg",
		"Asia/Singapore", "America/Phoenix", "America/Havana",
	}
	others = []string{
		"Europe/Moscow", "Europe/Istanbul", "Europe/Lisbon", "America/Sao_Paulo", "America/Santiago", "America/Bogota",
		"America/Caracas", "America/Mexico_City", "America/Asuncion", "Asia/Shanghai", "Asia/Kathmandu", "Asia/Tehran",
		"Asia/Amman", "Asia/Pyongyang", "Africa/Cairo", "Africa/Casablanca", "Africa/Monrovia", "Antarctica/Troll",
		"Pacific/Apia", "Pacific/Kiritimati",
	}
	expressions = []string{
		"30 2 * * *", "0 * * * *", "*/20 1-3 * * *", "0 0 * * *", "15 0 1 * *", "0 8 * * mon-fri", "0 18 * * mon-fri",
		"30 1 * * sun", "0 0 29 2 *", "*/7 * * * *", "@daily", "@monthly", "0 3 13 * fri", "59 23 31 12 *", "0 2 * 3,10 sun",
	}
)

const (
	casesEach = 50 // of a zone
	secondsOf = 24 * 60 * 60
)

type zoneTable struct {
	out      *bytes.Buffer
	location *time.Location
	random   *rand.Rand
	changes  []int64
	from, to int64
}

func (t *zoneTable) offset(at int64) int64 {
	_, offset := time.Unix(at, 0).In(t.location).Zone()
	return int64(offset)
}

func newZoneTable(out *bytes.Buffer, name string, last int, seed int64) (*zoneTable, error) {
	location, err := time.LoadLocation(name)
	if err != nil {
		return nil, err
	}
	t := &zoneTable{out: out, location: location, random: rand.New(rand.NewSource(seed))}
	t.to = time.Date(last, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	for at := t.from; at < t.to; at += secondsOf / 2 { // Time.ZoneBounds does not tell in December of leap years
		if low := t.offset(at); low != t.offset(at+secondsOf/2) {
			steps := sort.Search(secondsOf/2, func(i int) bool { return t.offset(at+int64(i)) != low })
			t.changes = append(t.changes, at+int64(steps))
		}
	}
	return t, nil
}

// An instant, most often one around a change of the clocks.
func (t *zoneTable) instant() int64 {
	if len(t.changes) == 0 || t.random.Intn(4) == 0 {
		return t.from + t.random.Int63n(t.to-t.from)
	}
	change := t.changes[t.random.Intn(len(t.changes))]
	near := []int64{-1, 0, 1, t.random.Int63n(7200) - 3600, t.random.Int63n(4*secondsOf) - 2*secondsOf}
	return change + near[t.random.Intn(len(near))]
}

func (t *zoneTable) writeInstant() {
	at := t.instant()
	shown := time.Unix(at, 0).In(t.location)
	name, offset := shown.Zone()
	fmt.Fprintf(t.out, "at %d %s %s %d %d\n", at, shown.Format(time.RFC3339), name, offset, shown.Weekday())
}

// The instants at which the clocks show a time, which is seconds since 1970 as if it were in UTC.
func (t *zoneTable) instantsOf(shown int64) (found []int64) {
	for near := shown - 2*secondsOf; near <= shown+2*secondsOf; near += 900 {
		at := shown - t.offset(near)
		if t.offset(at) == shown-at && !slices.Contains(found, at) {
			found = append(found, at)
		}
	}
	slices.Sort(found)
	return found
}

// A time that the clocks skip, read with the offset before their change.
func (t *zoneTable) skipped(shown int64) int64 {
	for _, change := range t.changes {
		before, after := t.offset(change-1), t.offset(change)
		if shown >= change+before && shown < change+after {
			return shown - before
		}
	}
	log.Fatalf("%s: no clock shows or skips %d", t.location, shown)
	return 0
}

func (t *zoneTable) writeWall() {
	at := t.instant()
	shown := at + t.offset(at-secondsOf*int64(t.random.Intn(2)))
	wall := time.Unix(shown, 0).UTC()
	found := t.instantsOf(shown)
	fmt.Fprintf(t.out, "wall %s", wall.Format("2006-01-02T15:04:05"))
	switch len(found) {
	case 0:
		fmt.Fprintf(t.out, " skipped %d\n", t.skipped(shown))
	case 1:
		fmt.Fprintf(t.out, " once %d\n", found[0])
	case 2:
		fmt.Fprintf(t.out, " twice %d %d\n", found[0], found[1])
	default:
		log.Fatalf("%s: clocks show %s three times", t.location, wall)
	}
	date := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, t.location)
	if len(found) > 0 && !slices.Contains(found, date.Unix()) {
		log.Fatalf("%s: time.Date has another %s: %s", t.location, wall, date)
	}
}

// The last minute before an instant that the library has next a second before it. Its own steps pass over times where
// clocks skip the beginning of a month, or change by a part of an hour.
func last(schedule cron.Schedule, before time.Time) time.Time {
	spec := schedule.(*cron.SpecSchedule)
	for at := before.Add(-time.Second); ; at = at.Add(-time.Second) {
		at = at.Add(-time.Duration(at.Second()) * time.Second)
		isTime := spec.Month&(1<<uint(at.Month())) != 0 && spec.Hour&(1<<uint(at.Hour())) != 0 &&
			spec.Minute&(1<<uint(at.Minute())) != 0
		if isTime && schedule.Next(at.Add(-time.Second)).Equal(at) {
			return at
		}
	}
}

func (t *zoneTable) writeCron(expression string) {
	schedule, err := cron.ParseStandard(expression)
	if err != nil {
		log.Fatal(err)
	}
	at := time.Unix(t.instant(), 0).In(t.location)
	for schedule.Next(at).IsZero() { // it gives up after five years
		at = time.Unix(t.instant(), 0).In(t.location)
	}
	fmt.Fprintf(t.out, "cron %d %d %d %s\n", at.Unix(), schedule.Next(at).Unix(), last(schedule, at).Unix(), expression)
}

// Do the clocks leave out a day? There the library does not return.
func (t *zoneTable) leavesOutDay() bool {
	return slices.ContainsFunc(t.changes, func(change int64) bool {
		return t.offset(change)-t.offset(change-1) >= secondsOf
	})
}

func (t *zoneTable) write() {
	fmt.Fprintf(t.out, "zone %s\n", t.location)
	for i := 0; i < 20; i++ {
		t.writeInstant()
	}
	schedules := expressions
	if t.leavesOutDay() {
		schedules = nil
	}
	for i := 20; i < casesEach-len(schedules); i++ {
		t.writeWall()
	}
	for _, expression := range schedules {
		t.writeCron(expression)
	}
}

// zones returns a table of times in zones, by the package time and the machine's database, and of schedules in them.
func zones() ([]byte, error) {
	var out bytes.Buffer
	out.WriteString("# Times in 40 zones by Go's package time, and schedules in them by github.com/robfig/cron/v3: make cron-instants.\n" +
		"# \"at SECONDS SHOWN NAME OFFSET WEEKDAY\"; \"wall SHOWN once|twice|skipped SECONDS…\", where a time that clocks skip\n" +
		"# is read with the offset before; \"cron SECONDS NEXT LAST EXPRESSION\".\n")
	for i, name := range append(slices.Clone(lasting), others...) {
		end := 2025
		if i < len(lasting) {
			end = 2090
		}
		table, err := newZoneTable(&out, name, end, int64(i))
		if err != nil {
			return nil, err
		}
		table.write()
	}
	return out.Bytes(), nil
}
