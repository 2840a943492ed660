package output

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/sorting"
)

// stateRow is the result of one state on a minion.
type stateRow struct {
	run       float64
	fun, name string
	result    any
	changed   bool
	seconds   float64
	info      map[string]any
}

// stateRows returns the states of a result in the order in which they ran. ok is false for other values, such as a
// text or a list of errors.
func stateRows(v any) (rows []stateRow, ok bool) {
	all, ok := entries(v)
	if !ok {
		return nil, false
	}
	for _, e := range all {
		info, _ := e.value.(map[string]any)
		result, has := info["result"]
		comps := strings.Split(pytext.Str(e.key), "_|-")
		if !has || len(comps) < 4 {
			return nil, false
		}
		row := stateRow{fun: comps[0] + "." + comps[len(comps)-1], name: comps[2], result: result, changed: truth(info["changes"]), info: info}
		row.run, _ = float(info["__run_num__"])
		ms, ok := float(info["duration"])
		if s, text := info["duration"].(string); text && !ok {
			s, _, _ = strings.Cut(s, " ms")
			ms, _ = strconv.ParseFloat(s, 64)
		}
		row.seconds = ms / 1000
		rows = append(rows, row)
	}
	sorting.Stable(rows, func(a, b stateRow) int { return cmp.Compare(a.run, b.run) })
	return rows, true
}

// FailedOnly returns o changed so that the outputter highstate shows only failed states, and the summary of all
// states.
func (o Options) FailedOnly() Options {
	o.StateOutput, o.StateExclude, o.StateTerse = "filter", []string{"True", "None"}, nil
	return o
}

// Recap collects one line per minion for the end of a run of states.
type Recap struct {
	Options
	lines   []recapLine
	slowest []slowState
}

type recapLine struct {
	host, why                    string
	ok, changed, failed, differs int
	seconds                      float64
}

type slowState struct {
	host, fun, name string
	seconds         float64
}

// slowStates is the number of slowest states that a recap names.
const slowStates = 5

// Add adds a minion's result. It reports whether a state failed or the value is not a result of states.
func (c *Recap) Add(host string, v any) (failed bool) {
	l := recapLine{host: host}
	rows, ok := stateRows(v)
	if !ok {
		if _, list := items(v); list {
			l.why = "its states did not compile"
		} else {
			l.why = "it did not run states"
		}
		c.lines = append(c.lines, l)
		return true
	}
	for _, row := range rows {
		switch row.result {
		case false:
			l.failed++
		case nil:
			l.differs++
		default:
			l.ok++
			if row.changed {
				l.changed++
			}
		}
		l.seconds += row.seconds
		c.slowest = append(c.slowest, slowState{host, row.fun, row.name, row.seconds})
	}
	sorting.Stable(c.slowest, func(a, b slowState) int { return cmp.Compare(b.seconds, a.seconds) })
	c.slowest = slices.Clone(c.slowest[:min(len(c.slowest), slowStates)])
	c.lines = append(c.lines, l)
	return l.failed > 0
}

// Lost adds a minion that returned no result, with the reason.
func (c *Recap) Lost(host, why string) { c.lines = append(c.lines, recapLine{host: host, why: why}) }

// Text returns the recap: the lines, the totals and the slowest states.
func (c *Recap) Text() string {
	r := renderer{Options: c.Options, colors: palette(c.Options)}
	sorting.Stable(c.lines, func(a, b recapLine) int { return cmp.Compare(a.host, b.host) })
	width, total, lost := len("total"), recapLine{host: "total"}, 0
	for _, l := range c.lines {
		width = max(width, len(r.stripEscapes(l.host)))
		total.ok, total.changed, total.failed, total.differs = total.ok+l.ok, total.changed+l.changed, total.failed+l.failed, total.differs+l.differs
		total.seconds += l.seconds
		if l.why != "" {
			lost++
		}
	}
	var b strings.Builder
	line := func(l recapLine) {
		color, text := r.colors.green, fmt.Sprintf("ok=%-4d changed=%-4d failed=%-4d", l.ok, l.changed, l.failed)
		if l.differs > 0 {
			text += fmt.Sprintf(" would-change=%-4d", l.differs)
		}
		text += fmt.Sprintf(" %.1f s", l.seconds)
		switch {
		case l.why != "":
			color, text = r.colors.red, l.why
		case l.failed > 0:
			color = r.colors.red
		case l.changed+l.differs > 0:
			color = r.colors.cyan
		}
		fmt.Fprintf(&b, "%s%-*s : %s%s\n", color, width, r.stripEscapes(l.host), text, r.colors.end)
	}
	for _, l := range c.lines {
		line(l)
	}
	line(total)
	fmt.Fprintf(&b, "%d of %d minions ran states\n", len(c.lines)-lost, len(c.lines))
	if len(c.slowest) > 0 {
		b.WriteString("The slowest states:\n")
	}
	for _, s := range c.slowest {
		fmt.Fprintf(&b, "%8.1f s  %s  %s %s\n", s.seconds, r.stripEscapes(s.host), s.fun, r.stripEscapes(s.name))
	}
	return b.String()
}

// Plan collects what a run of states in test mode would change. It shows a change that is the same on several minions
// once.
type Plan struct {
	Options
	changes  []*planned
	index    map[string]*planned
	affected map[string]bool
	problems []string
	hosts    int
}

// planned is a change and the minions that it would be made on.
type planned struct {
	title, body string
	failed      bool
	hosts       []string
}

// planNames is how many minions a plan names per change.
const planNames = 5

// Add adds a minion's result.
func (p *Plan) Add(host string, v any) {
	p.hosts++
	r := renderer{Options: p.Options, colors: palette(Options{})}
	rows, ok := stateRows(v)
	if !ok {
		p.problems = append(p.problems, r.stripEscapes(host)+":\n"+r.nested(v, 4))
		return
	}
	if p.index == nil {
		p.index, p.affected = map[string]*planned{}, map[string]bool{}
	}
	for _, row := range rows {
		failed := row.result == false
		if row.result == true && !row.changed {
			continue
		}
		p.affected[host] = p.affected[host] || !failed
		title := row.fun + " " + r.stripEscapes(row.name)
		comment, _ := asText(row.info["comment"])
		body := indent(r.stripEscapes(pytext.Strip(comment)), "    ")
		if row.changed {
			body += r.nested(row.info["changes"], 4) + "\n"
		}
		key := title + "\x00" + body + strconv.FormatBool(failed)
		c := p.index[key]
		if c == nil {
			c = &planned{title: title, body: body, failed: failed}
			p.index[key] = c
			p.changes = append(p.changes, c)
		}
		c.hosts = append(c.hosts, host)
	}
}

// Lost adds a minion that returned no result, with the reason.
func (p *Plan) Lost(host, why string) {
	p.hosts++
	p.problems = append(p.problems, (&renderer{Options: p.Options}).stripEscapes(host)+": "+why)
}

// Code returns the exit code: 0 if nothing would change, 2 if something would, and 1 if a state failed or a minion
// has no result of states.
func (p *Plan) Code() int {
	code := 0
	for _, c := range p.changes {
		if c.failed {
			return 1
		}
		code = 2
	}
	if len(p.problems) > 0 {
		return 1
	}
	return code
}

// Text returns the plan: the changes, the failures, and one line that sums them up.
func (p *Plan) Text() string {
	r := renderer{Options: p.Options, colors: palette(p.Options)}
	var b strings.Builder
	count := 0
	for _, c := range p.changes {
		color, what := r.colors.cyan, ""
		if c.failed {
			color, what = r.colors.red, " fails"
		} else {
			count++
		}
		slices.Sort(c.hosts)
		named := strings.Join(c.hosts[:min(len(c.hosts), planNames)], ", ")
		if len(c.hosts) > planNames {
			named += ", …"
		}
		fmt.Fprintf(&b, "%s%s%s%s\n    on %s: %s\n%s", color, c.title, what, r.colors.end, minions(len(c.hosts)), r.stripEscapes(named), c.body)
	}
	for _, text := range p.problems {
		b.WriteString(r.colors.red + text + r.colors.end + "\n")
	}
	affected := 0
	for _, yes := range p.affected {
		if yes {
			affected++
		}
	}
	if count == 0 {
		fmt.Fprintf(&b, "Nothing would change on %s.\n", minions(p.hosts-len(p.problems)))
	} else {
		fmt.Fprintf(&b, "%s would change, on %d of %s.\n", plural(count, "state"), affected, minions(p.hosts))
	}
	return b.String()
}

func minions(n int) string { return plural(n, "minion") }

func plural(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return strconv.Itoa(n) + " " + word
}

// indent adds a prefix to each line.
func indent(s, prefix string) string {
	if s == "" {
		return ""
	}
	return prefix + strings.ReplaceAll(s, "\n", "\n"+prefix) + "\n"
}
