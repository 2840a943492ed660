package pydate

import (
	"slices"
	"time"
)

// resolve determines which numbers are the year, month and day; -1 means that one is missing.
func (p *parser) resolve() (year, month, day int) {
	v := p.ymd
	year, month, day = -1, -1, -1
	if y, m, d, ok := p.labelled(); ok {
		return y, m, d
	}
	switch {
	case len(v) == 1 || p.month >= 0 && len(v) == 2:
		other := v[0]
		if p.month >= 0 {
			month = v[p.month]
			other = v[(p.month+1)%len(v)]
		}
		if len(v) > 1 || p.month < 0 {
			if other > 31 {
				return other, month, -1
			}
			return -1, month, other
		}
		return -1, month, -1
	case len(v) == 2:
		switch {
		case v[0] > 31:
			return v[0], v[1], -1
		case v[1] > 31:
			return v[1], v[0], -1
		}
		return -1, v[0], v[1]
	case len(v) != 3:
		return -1, -1, -1
	}
	switch p.month {
	case 0:
		if v[1] > 31 {
			return v[1], v[0], v[2]
		}
		return v[2], v[0], v[1]
	case 1:
		if v[0] > 31 {
			return v[0], v[1], v[2]
		}
		return v[2], v[1], v[0]
	case 2:
		if v[1] > 31 {
			return v[1], v[2], v[0]
		}
		return v[0], v[2], v[1]
	}
	switch {
	case v[0] > 31 || p.labels[0] == 'Y':
		return v[0], v[1], v[2]
	case v[0] > 12:
		return v[2], v[1], v[0]
	}
	return v[2], v[0], v[1]
}

// labelled is like resolve for dates in which most numbers are labelled as year, month or day.
func (p *parser) labelled() (year, month, day int, ok bool) {
	labels := slices.Clone(p.labels)
	known := 0
	for _, l := range labels {
		if l != 0 {
			known++
		}
	}
	if known == 0 || known != len(labels) && (len(labels) != 3 || known != 2) {
		return 0, 0, 0, false
	}
	if known != len(labels) {
		for _, l := range []byte("YMD") {
			if !slices.Contains(labels, l) {
				labels[slices.Index(labels, 0)] = l
			}
		}
	}
	year, month, day = -1, -1, -1
	for i, l := range labels {
		switch l {
		case 'Y':
			year = p.ymd[i]
		case 'M':
			month = p.ymd[i]
		case 'D':
			day = p.ymd[i]
		}
	}
	return year, month, day, true
}

// build fills missing fields from now.
func (p *parser) build(now time.Time) (time.Time, bool) {
	if len(p.ymd) == 0 && p.weekday < 0 && p.hour < 0 && p.minute < 0 && p.second < 0 {
		return time.Time{}, false
	}
	year, month, day := p.resolve()
	if year >= 0 && year < 100 && !p.century {
		year = century(year, now.Year())
	}
	named := day >= 0
	if year < 0 {
		if slices.Contains(p.labels, 'Y') {
			return time.Time{}, false
		}
		year = now.Year()
	}
	if month < 0 {
		month = int(now.Month())
	}
	if month < 1 || month > 12 || year < 1 || year > 9999 {
		return time.Time{}, false
	}
	if !named {
		day = min(now.Day(), days(year, month))
	}
	hour, minute, second := max(p.hour, 0), max(p.minute, 0), max(p.second, 0)
	if p.hour < -1 || p.minute < -1 || p.second < -1 || day < 1 || day > days(year, month) || hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, false
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, p.micro*1000, time.UTC)
	if p.weekday >= 0 && !named {
		t = t.AddDate(0, 0, (p.weekday-int(t.Weekday()+6)%7+7)%7)
	}
	return t, true
}

// century converts a two-digit year to the year within fifty years of now.
func century(year, now int) int {
	year += now / 100 * 100
	switch {
	case year >= now+50:
		year -= 100
	case year < now-50:
		year += 100
	}
	return year
}

func days(year, month int) int {
	return time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}
