//go:build unix

package file

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pydate"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

var retentionDef = states.Def{Name: "retention_schedule", Params: []modules.Param{nameParam, {Name: "retain"},
	{Name: "strptime_format", Optional: true}, {Name: "timezone", Optional: true}}, Run: retention}

// dated is a file with its time as a path through the calendar, by months and by weeks.
type dated struct {
	name          string
	months, weeks []float64
}

func datedFile(name string, t time.Time, epoch float64) dated {
	_, week := t.ISOWeek()
	year := float64(t.Year())
	return dated{name: name, months: []float64{year, float64(t.Month()), float64(t.Day()), float64(t.Hour()), epoch},
		weeks: []float64{year, float64(week), float64((t.Weekday() + 6) % 7), epoch}}
}

// first keeps, of the latest n groups that share the first depth steps, the earliest file of each.
func first(files []dated, path func(dated) []float64, depth int, n int64, keep map[string]bool) {
	last := map[string]dated{} // of files with the same path Salt remembers the last
	var keys []string
	for _, f := range files {
		key := pytext.Str(floats(path(f)))
		if _, ok := last[key]; !ok {
			keys = append(keys, key)
		}
		last[key] = f
	}
	list := make([]dated, len(keys))
	for i, k := range keys {
		list[i] = last[k]
	}
	sorting.Stable(list, func(a, b dated) int {
		if c := slices.Compare(path(b)[:depth], path(a)[:depth]); c != 0 {
			return c
		}
		return slices.Compare(path(a), path(b))
	})
	var group []float64
	for _, f := range list {
		if group != nil && slices.Equal(group, path(f)[:depth]) {
			continue
		}
		if n--; n < 0 {
			return
		}
		group = path(f)[:depth]
		keep[f.name] = true
	}
}

func floats(list []float64) []any {
	out := make([]any, len(list))
	for i, f := range list {
		out[i] = f
	}
	return out
}

func retention(ctx context.Context, c *states.Call) (*states.Result, error) {
	j := on(ctx, c)
	name, ret := j.begin()
	if name == "" {
		return fail(ret, "Must provide name to file.retention_schedule")
	}
	if !j.isDir(name) {
		return fail(ret, "Name provided to file.retention must be a directory")
	}
	v, err := j.exec("file.readdir", name)
	if err != nil {
		return nil, err
	}
	var files []dated
	var ignored []string
	for _, f := range each(v) {
		d, ok, err := j.date(name, f)
		if err != nil {
			return nil, err
		}
		if ok {
			files = append(files, d)
		} else {
			ignored = append(ignored, f)
		}
	}
	keep, err := retained(files, c.Value("retain"))
	if err != nil {
		return nil, err
	}
	var kept, gone []string
	for _, f := range files {
		if keep[f.name] {
			kept = append(kept, f.name)
		} else {
			gone = append(gone, f.name)
		}
	}
	deleted := latestFirst(gone)
	if len(gone) > 0 {
		ret.Changes["retained"], ret.Changes["deleted"], ret.Changes["ignored"] = latestFirst(kept), deleted, latestFirst(ignored)
	}
	count := strconv.Itoa(len(gone)) + " backups "
	if c.Test() {
		outcome := states.True
		if len(gone) > 0 {
			outcome = states.None
		}
		return ret.As(outcome, count+"would have been removed from "+name+".\n")
	}
	for _, f := range deleted {
		if _, err := j.exec("file.remove", joinPath(name, f.(string))); err != nil {
			return nil, err
		}
	}
	return ret.As(states.True, count+"were removed from "+name+".\n")
}

// date returns the time of a file in the directory. ok is false if it has none.
func (j *job) date(dir, file string) (dated, bool, error) {
	if format := j.Str("strptime_format"); format != "" {
		t, err := pydate.Strptime(file, format)
		if err != nil {
			return dated{}, false, nil
		}
		return datedFile(file, t, float64(t.Unix())+float64(t.Nanosecond())/1e9), true, nil
	}
	if file == "." || file == ".." {
		return dated{}, false, nil
	}
	v, err := j.exec("file.lstat", joinPath(dir, file))
	if err != nil {
		return dated{}, false, err
	}
	at, ok := mapOf(v)["st_mtime"].(float64)
	if !ok {
		return dated{}, false, nil // it went away meanwhile
	}
	if zone := j.Value("timezone"); zone != nil {
		return dated{}, false, &modules.TypeError{Msg: "tzinfo argument must be None or of a tzinfo subclass, not type '" + modules.TypeName(zone) + "'"}
	}
	sec, frac := math.Modf(at)
	return datedFile(file, time.Unix(int64(sec), int64(frac*1e9)).Local(), at), true, nil
}

// retained returns the names of the files to keep.
func retained(files []dated, retain any) (map[string]bool, error) {
	rules, ok := retain.(map[string]any)
	if !ok {
		return nil, raise("AttributeError", "'"+modules.TypeName(retain)+"' object has no attribute 'items'")
	}
	keep := map[string]bool{}
	for rule, count := range rules {
		n := int64(math.MaxInt64)
		if count != "all" {
			var err error
			if n, err = modules.ToInt(count); err != nil {
				return nil, err
			}
		}
		depth := slices.Index([]string{"", "first_of_year", "first_of_month", "first_of_day", "first_of_hour", "most_recent"}, rule)
		switch {
		case rule == "first_of_week":
			if n < math.MaxInt64 {
				n++ // as Salt does
			}
			first(files, func(d dated) []float64 { return d.weeks }, 2, n, keep)
		case depth < 1:
			return nil, raise("KeyError", pytext.Repr(rule))
		default:
			first(files, func(d dated) []float64 { return d.months }, depth, n, keep)
		}
	}
	return keep, nil
}

func latestFirst(names []string) []any {
	sorting.Stable(names, func(a, b string) int { return cmp.Compare(b, a) })
	return nested.Anys(names)
}

func sortedAnys(names []string) []any {
	slices.Sort(names)
	return nested.Anys(names)
}

// joinPath implements os.path.join of a directory and a name.
func joinPath(dir, name string) string {
	if dir == "" || dir[len(dir)-1] == '/' {
		return dir + name
	}
	return dir + "/" + name
}
