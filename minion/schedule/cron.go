package schedule

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// errCron is the only error for a cron expression; Salt's log has no more detail.
var errCron = errors.New("invalid cron string")

// cron is a parsed cron expression with the fields of croniter, which Salt uses: minute, hour, day, month, weekday
// and, optionally, second and year. Names, ranges and steps are supported, "L" for the last day, and "5#2" and "L5"
// for the second and the last Friday. croniter's hashed and random fields and "W" are not supported. A field is a bit
// set.
type cron struct {
	minute, hour, day, month, weekday, second uint64
	years                                     map[int]bool // nil means every year
	lastDay                                   bool
	nth                                       []nthDay
	anyDay, anyWeekday                        bool
}

// nthDay is a weekday and its position in the month; n 0 is the last one.
type nthDay struct{ weekday, n int }

// parseCron parses an expression of five to seven fields, or one of the names such as @daily.
func parseCron(text string) (*cron, error) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "@midnight", "@daily":
		text = "0 0 * * *"
	case "@hourly":
		text = "0 * * * *"
	case "@weekly":
		text = "0 0 * * 0"
	case "@monthly":
		text = "0 0 1 * *"
	case "@yearly", "@annually":
		text = "0 0 1 1 *"
	}
	f := strings.Fields(strings.ToLower(text))
	if len(f) < 5 || len(f) > 7 {
		return nil, errCron
	}
	// Without a field for seconds the job runs at second 0.
	c := &cron{second: 1}
	var err error
	// set parses one field and collects errors.
	set := func(into *uint64, text string, low, high int, names string, first int) {
		var e error
		*into, e = parseBits(text, low, high, names, first)
		err = errors.Join(err, e)
	}
	set(&c.minute, f[0], 0, 59, "", 0)
	set(&c.hour, f[1], 0, 23, "", 0)
	set(&c.month, f[3], 1, 12, "jan feb mar apr may jun jul aug sep oct nov dec", 1)
	if len(f) > 5 {
		set(&c.second, f[5], 0, 59, "", 0)
	}
	// The days are parsed together, as they depend on each other.
	err = errors.Join(err, c.parseDays(f[2], f[4]))
	if len(f) > 6 && f[6] != "*" && f[6] != "?" {
		err = errors.Join(err, c.parseYears(f[6]))
	}
	if err != nil {
		return nil, errCron
	}
	return c, nil
}

// parseYears parses the field of the years.
func (c *cron) parseYears(text string) error {
	c.years = map[int]bool{}
	for part := range strings.SplitSeq(text, ",") {
		low, high, step, err := parseSpan(part, 1970, 2099, "", 0)
		if err != nil {
			return err
		}
		for y := low; y <= high; y += step {
			c.years[y] = true
		}
	}
	return nil
}

// parseDays parses the fields of the day in the month and in the week.
func (c *cron) parseDays(day, weekday string) (err error) {
	c.anyDay, c.anyWeekday = day == "*" || day == "?", weekday == "*" || weekday == "?"
	// The last day of the month has no fixed bit.
	var plain []string
	for part := range strings.SplitSeq(day, ",") {
		if part == "l" {
			c.lastDay = true
		} else {
			plain = append(plain, part)
		}
	}
	if plain != nil {
		if c.day, err = parseBits(strings.Join(plain, ","), 1, 31, "", 0); err != nil {
			return err
		}
	}
	plain = nil
	const names = "sun mon tue wed thu fri sat"
	for part := range strings.SplitSeq(weekday, ",") {
		// "5#2" is the second Friday, "l5" the last one.
		name, place, found := strings.Cut(part, "#")
		last := !found && len(part) == 2 && part[0] == 'l'
		if last {
			name, place = part[1:], "0"
		}
		if !found && !last {
			plain = append(plain, part)
			continue
		}
		low, high, _, err := parseSpan(name, 0, 7, names, 0)
		n, err2 := strconv.Atoi(place)
		if err != nil || err2 != nil || !last && (n < 1 || n > 5) {
			return errCron
		}
		for d := low; d <= high; d++ {
			c.nth = append(c.nth, nthDay{d % 7, n})
		}
	}
	if plain != nil {
		if c.weekday, err = parseBits(strings.Join(plain, ","), 0, 7, names, 0); err != nil {
			return err
		}
		// 7 is Sunday, like 0.
		c.weekday |= c.weekday >> 7 & 1
	}
	return nil
}

// parseBits parses a list of numbers, ranges and steps. A range may wrap around, like 22-2 for hours.
func parseBits(text string, low, high int, names string, first int) (uint64, error) {
	var set uint64
	top := high
	if names != "" && first == 0 {
		top = 6 // 7 is Sunday again, so a star or a range that wraps around ends at 6
	}
	for part := range strings.SplitSeq(text, ",") {
		a, b, step, err := parseSpan(part, low, high, names, first)
		if err != nil {
			return 0, err
		}
		if a > b { // 22-2
			n := (top - a) + 1 + (b - low) + 1
			for i := 0; i < n; i += step {
				v := a + i
				if v > top {
					v = low + v - top - 1
				}
				set |= 1 << v
			}
			continue
		}
		// A star ends at top, which for weekdays is 6.
		if strings.HasPrefix(part, "*") || strings.HasPrefix(part, "?") {
			b = top
		}
		for v := a; v <= b; v += step {
			set |= 1 << v
		}
	}
	return set, nil
}

// parseSpan parses "*", "5", "1-5", "*/2", "1-5/2" and "5/2".
func parseSpan(part string, low, high int, names string, first int) (a, b, step int, err error) {
	body, stepText, stepped := strings.Cut(part, "/")
	step = 1
	if stepped {
		if step, err = strconv.Atoi(stepText); err != nil || step < 1 || step > maxStep {
			return 0, 0, 0, errCron
		}
	}
	if body == "*" || body == "?" {
		return low, high, step, nil
	}
	// "5/2" means from 5 to the end in steps of 2.
	from, to, ranged := strings.Cut(body, "-")
	if a, err = parseValue(from, low, high, names, first); err != nil {
		return 0, 0, 0, err
	}
	b = a
	if ranged {
		if b, err = parseValue(to, low, high, names, first); err != nil {
			return 0, 0, 0, err
		}
	} else if stepped {
		b = high
		if names != "" && first == 0 {
			b = 6
		}
	}
	return a, b, step, nil
}

// maxStep prevents overflow in the loops over steps.
const maxStep = 1 << 20

// parseValue parses a number or a name.
func parseValue(text string, low, high int, names string, first int) (int, error) {
	// The value of a name is its position.
	for i, n := range strings.Fields(names) {
		if text == n {
			return i + first, nil
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high || text[0] == '+' {
		return 0, errCron
	}
	return n, nil
}

// has reports whether a set contains n.
func has(set uint64, n int) bool { return set>>n&1 == 1 }

// dayFits reports whether a day matches. If both day fields are restricted, one match is enough, as in cron.
func (c *cron) dayFits(t time.Time) bool {
	if c.years != nil && !c.years[t.Year()] || !has(c.month, int(t.Month())) {
		return false
	}
	// The day before the first of a month is a last day.
	inMonth := has(c.day, t.Day()) || c.lastDay && t.AddDate(0, 0, 1).Day() == 1
	inWeek := has(c.weekday, int(t.Weekday()))
	for _, x := range c.nth {
		if int(t.Weekday()) != x.weekday {
			continue
		}
		if x.n == 0 && t.AddDate(0, 0, 7).Month() != t.Month() || x.n > 0 && (t.Day()-1)/7+1 == x.n {
			inWeek = true
		}
	}
	// If one field is a star, the other decides.
	switch {
	case c.anyDay:
		return inWeek
	case c.anyWeekday:
		return inMonth
	}
	return inMonth || inWeek
}

// maxYears is how many years ahead a match is searched, as in croniter. "30 feb" never matches.
const maxYears = 50

// nextTime returns the first matching time after t. It skips whole days, hours and minutes that do not match.
func (c *cron) nextTime(t time.Time) (time.Time, error) {
	limit := t.AddDate(maxYears, 0, 0)
	// The search begins at the next whole second.
	t = t.Truncate(time.Second).Add(time.Second)
	for t.Before(limit) {
		// Skip the largest unit that does not match.
		switch {
		case !c.dayFits(t):
			t = time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, time.UTC)
		case !has(c.hour, t.Hour()):
			t = t.Truncate(time.Hour).Add(time.Hour)
		case !has(c.minute, t.Minute()):
			t = t.Truncate(time.Minute).Add(time.Minute)
		case !has(c.second, t.Second()):
			t = t.Add(time.Second)
		default:
			return t, nil
		}
	}
	return time.Time{}, errCron
}
