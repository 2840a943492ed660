package output

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
)

// highstate implements salt/output/highstate.py: the results of states for each host.
func (r *renderer) highstate(v any, level int) (string, error) {
	if m, ok := v.(map[string]any); ok {
		if inner, ok := m["return"]; ok {
			v = inner
		}
	}
	if m, ok := v.(map[string]any); ok {
		if inner, ok := m["data"]; ok {
			v = inner
		}
	}
	if m, ok := v.(map[string]any); ok && len(m) == 1 {
		for _, only := range m {
			if job, ok := only.(map[string]any); ok && job["jid"] != nil && job["fun"] != nil {
				ret, ok := job["return"].(map[string]any)
				if !ok {
					return "", errShape
				}
				if data, ok := ret["data"]; ok {
					v = data
				}
			}
		}
	}
	switch v := v.(type) {
	case nil:
		return "None", nil
	case string:
		return v, nil
	}
	hosts, ok := entries(v)
	if !ok {
		return "", errShape
	}
	hosts = withoutRetcode(hosts)
	var out []string
	for _, h := range hosts {
		data := h.value
		if r.CompressIDs {
			data = compressIDs(data)
		}
		text, _, err := r.host(pytext.Str(h.key), data, level)
		if err != nil {
			return "", err
		}
		out = append(out, text)
	}
	return strings.Join(out, "\n"), nil
}

// withoutRetcode removes the return code that the orchestrate runner adds next to its only master.
func withoutRetcode(hosts []entry) []entry {
	masters, at := 0, -1
	for i, h := range hosts {
		key, ok := h.key.(string)
		if ok && strings.HasSuffix(key, "_master") {
			masters++
		}
		if key == "retcode" {
			at = i
		}
	}
	if masters == 1 && at >= 0 {
		return append(hosts[:at:at], hosts[at+1:]...)
	}
	return hosts
}

// report collects the output lines for one host.
type report struct {
	*renderer
	host      string
	color     string // of the host's name
	lines     []string
	counts    []count
	changed   int
	durations float64
	parallel  float64
	level     int
}

// count is the number of states with a result.
type count struct {
	result any
	n      int
}

func (p *report) add(result any, n int) {
	for i := range p.counts {
		if p.counts[i].result == result {
			p.counts[i].n += n
			return
		}
	}
	p.counts = append(p.counts, count{result, n})
}

func (p *report) count(result any) int {
	for _, c := range p.counts {
		if c.result == result {
			return c.n
		}
	}
	return 0
}

const warnings = "warnings"

// total returns the number of states.
func (p *report) total() int {
	n := 0
	for _, c := range p.counts {
		if c.result != warnings {
			n += c.n
		}
	}
	return n
}

func (r *renderer) host(host string, data any, level int) (text string, changed bool, err error) {
	p := &report{renderer: r, host: host, color: r.colors.green, level: level}
	end := r.colors.end
	if list, ok := items(data); ok {
		p.color = r.colors.lightRed
		p.lines = append(p.lines, "    "+p.color+"Data failed to compile:"+end)
		for _, e := range list {
			msg := pytext.Str(plain(e))
			if s, ok := asText(e); ok {
				msg = r.stripEscapes(s)
			}
			p.lines = append(p.lines, p.color+"----------\n    "+msg+end)
		}
	} else if s, ok := data.(string); ok {
		p.changed = 1
		for _, line := range pytext.SplitLines(s, false) {
			p.lines = append(p.lines, p.color+"    "+line+end)
		}
		p.color = r.colors.cyan
	} else if isInt(data) {
		p.changed = 1
		p.lines = append(p.lines, p.color+"    "+pytext.Str(data)+end)
		p.color = r.colors.cyan
	} else if states, ok := entries(data); ok {
		if err := p.states(states); err != nil {
			return "", false, err
		}
		p.summary()
	}
	name := r.stripEscapes(host)
	return strings.Join(append([]string{p.color + name + ":" + end}, p.lines...), "\n"), p.changed > 0, nil
}

type state struct {
	name string
	info map[string]any
	run  float64
}

func (p *report) states(all []entry) error {
	var list []state
	for _, e := range all {
		info, ok := e.value.(map[string]any)
		if !ok {
			continue
		}
		name := pytext.Str(e.key)
		if _, ran := info["__run_num__"]; !ran && name != "changes" && len(info) > 0 {
			p.lines = append([]string{"The State execution failed to record the order in which all states were executed. The state " +
				"return missing data is:", pytext.Pretty(plain(info), 1)}, p.lines...)
		}
		if _, ok := info["result"]; ok {
			run, _ := float(info["__run_num__"])
			list = append(list, state{name, info, run})
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].run < list[j].run })
	for _, s := range list {
		if err := p.state(s); err != nil {
			return err
		}
	}
	return nil
}

// state adds the lines of one state.
func (p *report) state(s state) error {
	result := s.info["result"]
	switch result.(type) {
	case nil, bool, string, int64, float64:
	default:
		return errShape
	}
	comps := strings.Split(s.name, "_|-")
	compressed := 1
	if p.CompressIDs && strings.Contains(s.name, "_|-state_compressed_") && len(comps) > 1 {
		compressed = compressedCount(comps[1])
	}
	p.add(result, compressed)
	p.duration(s.info)
	changes, has := s.info["changes"]
	if !has {
		return errShape
	}
	schanged, ctext, err := p.stateChanges(s.info, changes, compressed)
	if err != nil {
		return err
	}
	if (p.StateDiff || p.StateQuiet) && truth(result) && !schanged {
		return nil
	}
	color := p.colors.green
	if schanged {
		color = p.colors.cyan
	}
	if result == false {
		p.color, color = p.colors.red, p.colors.red
	}
	if result == nil {
		p.color, color = p.colors.lightYellow, p.colors.lightYellow
	}
	mode := strings.ToLower(p.StateOutput)
	if mode == "" {
		mode = "full"
	}
	if strings.HasSuffix(mode, "_id") && len(comps) > 2 {
		comps[2] = comps[1]
	}
	terse := false
	if strings.HasPrefix(mode, "filter") {
		switch shown := pytext.Str(result); {
		case oneOf(p.StateTerse, shown):
			terse = true
		case oneOf(p.StateExclude, shown):
			return nil
		}
	} else {
		terse = strings.HasPrefix(mode, "terse") || strings.HasPrefix(mode, "mixed") && result != false ||
			strings.HasPrefix(mode, "changes") && truth(result) && !schanged
	}
	if len(comps) < 3 || !terse && len(comps) < 4 {
		return errShape
	}
	if terse {
		p.lines = append(p.lines, p.terse(color, comps, s.info))
		return nil
	}
	return p.full(color, comps, s.info, ctext)
}

func oneOf(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}

func (p *report) duration(info map[string]any) {
	v, ok := info["duration"]
	if !ok {
		v = int64(0)
	}
	d, ok := float(v)
	if s, text := v.(string); text && !ok {
		s, _, _ = strings.Cut(s, " ms")
		d, _ = float(s)
	}
	if _, parallel := info["__parallel__"]; parallel {
		p.parallel = max(p.parallel, d)
	} else {
		p.durations += d
	}
}

// stateChanges formats the changes of a state. The changes of an orchestration's state are the results of other
// hosts.
func (p *report) stateChanges(info map[string]any, changes any, compressed int) (changed bool, text string, err error) {
	switch info["name"] {
	case "state.orch", "state.orchestrate", "state.sls":
		nested, err := p.highstate(changes, p.level+1)
		if err != nil {
			return false, "", err
		}
		pad := strings.Repeat(" ", 14*p.level)
		p.changed++
		return true, pad + strings.ReplaceAll("\n"+nested, "\n", "\n"+pad), nil
	}
	changed, text, err = p.changes(changes)
	if err != nil || !changed {
		return changed, text, err
	}
	n := 1
	if compressed > 1 {
		m, _ := changes.(map[string]any)
		if inner, ok := entries(m["compressed changes"]); ok && len(inner) > 0 {
			n = len(inner)
		}
	}
	p.changed += n
	return true, text, nil
}

func (r *renderer) changes(changes any) (bool, string, error) {
	if !truth(changes) {
		return false, "", nil
	}
	if _, ok := entries(changes); !ok {
		return true, "Invalid Changes data: " + pytext.Str(plain(changes)), nil
	}
	if t, ok := changes.(map[string]any); ok && t["ret"] != nil && t["out"] == "highstate" {
		hosts, ok := entries(t["ret"])
		if !ok {
			return false, "", errShape
		}
		text, changed := "", false
		for _, h := range hosts {
			s, c, err := r.host(pytext.Str(h.key), h.value, 1)
			if err != nil {
				return false, "", err
			}
			lines := pytext.SplitLines(s, false)
			for i := range lines {
				lines[i] = strings.Repeat(" ", 14) + lines[i]
			}
			text += "\n" + strings.Join(lines, "\n")
			changed = changed || c
		}
		return changed, text, nil
	}
	return true, "\n" + pytext.StripRight(r.nested(changes, 14)), nil
}

// full adds a state with all details.
func (p *report) full(color string, comps []string, info map[string]any, ctext string) error {
	end := p.colors.end
	add := func(label, value string) {
		p.lines = append(p.lines, "    "+color+label+value+end)
	}
	comment, ok := info["comment"]
	if !ok {
		return errShape
	}
	p.lines = append(p.lines, color+"----------"+end)
	add("      ID: ", comps[1])
	add("Function: ", comps[0]+"."+comps[3])
	if comps[1] != comps[2] {
		add("    Name: ", comps[2])
	}
	add("  Result: ", pytext.Str(info["result"]))
	add(" Comment: ", commentText(comment, info))
	if start, ok := info["start_time"]; ok && !p.NoStateProfile {
		add(" Started: ", pytext.Str(start))
		duration, ok := info["duration"]
		shown := ""
		if ok && duration != "" {
			shown = pytext.Str(duration) + " ms"
		}
		add("Duration: ", shown)
	}
	p.lines = append(p.lines, color+"     Changes:   "+ctext+end)
	if w, ok := info[warnings]; ok {
		p.add(warnings, 1)
		p.lines = append(p.lines, "   "+p.colors.lightRed+" Warnings: "+
			strings.TrimLeft(fill(joinLines(w), 80, strings.Repeat(" ", 14)), " \t\n")+end)
	}
	return nil
}

func joinLines(v any) string {
	list, _ := items(v)
	parts := make([]string, len(list))
	for i, e := range list {
		parts[i] = pytext.Str(e)
	}
	return strings.Join(parts, "\n")
}

func commentText(comment any, info map[string]any) string {
	s := pytext.Str(plain(comment))
	if t, ok := asText(comment); ok {
		s = t
	}
	s = strings.ReplaceAll(pytext.Strip(s), "\n", "\n"+strings.Repeat(" ", 14))
	data, ok := info["data"]
	if !ok {
		return s
	}
	if list, ok := items(data); ok {
		for _, e := range list {
			s += " " + pytext.Str(plain(e))
		}
		return s
	}
	if m, ok := entries(data); ok {
		for _, e := range m {
			s += "\n\t\t" + pytext.Str(e.key) + ": " + pytext.Str(plain(e.value))
		}
		return s
	}
	return s + " " + pytext.Str(data)
}

// terse returns the one-line form of a state.
func (p *report) terse(color string, comps []string, info map[string]any) string {
	result := "Clean"
	if truth(info["changes"]) {
		result = "Changed"
	}
	switch info["result"] {
	case false:
		result = "Failed"
	case nil:
		result = "Differs"
	}
	var b strings.Builder
	start, profiled := info["start_time"]
	profiled = profiled && !p.NoStateProfile
	duration := pytext.Str(info["duration"])
	if w, ok := info[warnings]; ok {
		b.WriteString(p.colors.lightRed + "Warnings:\n" + joinLines(w) + p.colors.end)
		if p.StateTabular {
			b.WriteByte('\n')
		}
	}
	module, fun := comps[0], comps[len(comps)-1]
	if p.StateTabular {
		b.WriteString(color)
		if profiled {
			fmt.Fprintf(&b, "%s [%7s ms] ", pytext.Str(start), duration)
		}
		fmt.Fprintf(&b, "%10s.%-10s %-7s   Name: %s%s", module, fun, result, comps[2], p.colors.end)
		return b.String()
	}
	fmt.Fprintf(&b, " %s Name: %s - Function: %s.%s - Result: %s", color, comps[2], module, fun, result)
	if profiled {
		fmt.Fprintf(&b, " - Started: %s - Duration: %s ms", pytext.Str(start), duration)
	}
	b.WriteString(p.colors.end)
	return b.String()
}

// summary adds the counts at the end of the report.
func (p *report) summary() {
	digits := 0
	for _, c := range p.counts {
		digits = max(digits, len(strconv.Itoa(c.n)))
	}
	width := len("Succeeded") + digits + 2
	c := p.colors
	line := func(color, text string) { p.lines = append(p.lines, color+text+c.end) }
	counted := func(label, n string) string {
		return label + ": " + padLeft(n, width-len(label)-2)
	}
	line(c.cyan, "\nSummary for "+p.host+"\n"+strings.Repeat("-", width))
	var stats []string
	if n := p.count(nil); n > 0 {
		stats = append(stats, c.lightYellow+"unchanged="+strconv.Itoa(n)+c.end)
	}
	if p.changed > 0 {
		stats = append(stats, c.green+"changed="+strconv.Itoa(p.changed)+c.end)
	}
	good, failed, total := p.count(true)+p.count(nil), p.count(false), p.total()
	line(c.green, counted("Succeeded", strconv.Itoa(good)))
	if len(stats) > 0 {
		p.lines[len(p.lines)-1] += " (" + strings.Join(stats, ", ") + ")"
	}
	failColor := c.cyan
	if failed > 0 {
		failColor = c.red
	}
	line(failColor, counted("Failed", strconv.Itoa(failed)))
	if p.StatePercent && total > 0 {
		percent := func(n int) string { return pytext.Float(pytext.Round(float64(n)/float64(total)*100, 2)) }
		line(c.green, counted("Success %", percent(good)))
		line(failColor, counted("Failure %", percent(failed)))
	}
	if n := p.count(warnings); n > 0 {
		line(c.lightRed, counted("Warnings", strconv.Itoa(n)))
	}
	line(c.cyan, strings.Repeat("-", width)+"\nTotal states run: "+padLeft(strconv.Itoa(total), width-7))
	if !p.NoStateProfile {
		sum, unit := p.durations+p.parallel, "ms"
		if sum > 999 {
			sum, unit = sum/1000, "s"
		}
		line(c.cyan, "Total run time: "+padLeft(strconv.FormatFloat(sum, 'f', 3, 64), width-5)+" "+unit)
	}
}

func padLeft(s string, width int) string {
	return strings.Repeat(" ", max(width-len(s), 0)) + s
}
