package check

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/states/render/pillar"
)

// ofConfig returns findings about the options of any configuration: unknown, of the wrong type, or without effect.
// For options in named, missing effects are not reported, because other findings cover them. own are the program's
// additional options.
func ofConfig(c *conf.Config, own []string, named ...string) []Finding {
	var list []Finding
	for _, d := range c.Unknown(own...) {
		f := Finding{Level: Note, Kind: "option", Name: d.Option, File: d.File, Line: d.Line,
			Text: "the option " + d.Option + " is unknown"}
		if d.Near != "" {
			f.Level = Warning
			f.Text += didYouMean(d.Near)
		}
		list = append(list, f)
	}
	for _, d := range c.Idle() {
		if slices.Contains(named, d.Option) {
			continue
		}
		list = append(list, Finding{Level: Warning, Kind: "option", Name: d.Option, File: d.File,
			Line: d.Line, Text: "the option " + d.Option + " has no effect"})
	}
	for _, n := range c.Notes {
		if n.Option != "" {
			f := Finding{Level: Warning, Kind: "option", Name: n.Option, Text: n.Text}
			f.File, f.Line = c.Place(n.Option)
			list = append(list, f)
		}
	}
	return list
}

// configuredModule returns a finding with the line of an option, or of the text name below it.
func configuredModule(c *conf.Config, level Level, kind, option, name, text, cure string) Finding {
	f := Finding{Level: level, Kind: kind, Name: name, Text: text, Cure: cure}
	f.File, f.Line = c.Place(option)
	if b, err := os.ReadFile(f.File); err == nil && f.File != "" {
		if n, err := yaml.Tree(b, f.File); err == nil {
			if line := lineOfText(n.Get(option), name); line > 0 {
				f.Line = line
			}
		}
	}
	return f
}

// lineOfText returns the line of a key or value in part of a document, or 0.
func lineOfText(n *yaml.Node, text string) int {
	if n == nil {
		return 0
	}
	if n.Scalar && n.Text == text {
		return n.Line
	}
	for _, item := range n.Items {
		if line := lineOfText(item, text); line > 0 {
			return line
		}
	}
	for _, p := range n.Pairs {
		for _, x := range []*yaml.Node{p.Key, p.Value} {
			if line := lineOfText(x, text); line > 0 {
				return line
			}
		}
	}
	return 0
}

// checkOptions checks a minion's configuration.
func (r *run) checkOptions() {
	c := r.Config
	r.report.Files += len(c.Files)
	for _, f := range ofConfig(c, r.Registry.Options(), "engines", "id_function") {
		r.add(f)
	}
	add := func(level Level, kind, option, name, text, cure string) {
		r.add(configuredModule(c, level, kind, option, name, text, cure))
	}
	function := func(option, fun string) {
		if strings.Contains(fun, ".") && !hasFunction(r.known.functions, fun) {
			add(Failure, "function", option, fun, "the function "+fun+" of "+option+" is missing"+
				didYouMean(nearestName(r.known.functions, fun)), "")
		}
	}
	jobs := c.Map("schedule")
	for _, name := range slices.Sorted(maps.Keys(jobs)) {
		job, _ := jobs[name].(map[string]any)
		if strings.HasPrefix(name, "__") {
			add(Note, "left-over", "schedule", name, "the job "+name+
				" is stock's own; it is not run", "")
			continue
		}
		function("schedule", pytext.Str(job["function"]))
		if ret, ok := job["returner"].(string); ok {
			r.checkReturner("schedule", ret)
		}
	}
	mine := c.Map("mine_functions")
	for _, name := range slices.Sorted(maps.Keys(mine)) {
		fun := name
		list, _ := mine[name].([]any)
		for _, item := range list {
			if m, ok := item.(map[string]any); ok {
				if f, ok := m["mine_function"].(string); ok {
					fun = f
				}
			}
		}
		function("mine_functions", fun)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Map("beacons"))) {
		kind := name
		list, _ := c.Map("beacons")[name].([]any)
		for _, item := range list {
			if m, ok := item.(map[string]any); ok {
				if k, ok := m["beacon_module"].(string); ok {
					kind = k
				}
			}
		}
		if !slices.Contains(r.Beacons, kind) {
			add(Failure, "beacon", "beacons", name, "the beacon "+kind+" is missing"+
				didYouMean(conf.Near(kind, r.Beacons)), "")
		}
	}
	for _, option := range []string{"return", "ext_job_cache"} {
		for name := range strings.SplitSeq(c.String(option), ",") {
			r.checkReturner(option, strings.TrimSpace(name))
		}
	}
	for _, e := range c.List("engines") {
		for _, name := range names(e) {
			add(Failure, "engine", "engines", name, "engines are not run: "+name,
				"run it as a service of the host")
		}
	}
	if c.String("file_client") == "local" {
		for _, name := range c.Strings("fileserver_backend") {
			if name != "roots" && name != "file" {
				add(Failure, "option", "fileserver_backend", name,
					"a minion without a master has files from file_roots only, not from "+name, "")
			}
		}
		for _, e := range c.List("ext_pillar") {
			for _, name := range names(e) {
				if !slices.Contains(pillar.BuiltIn, name) {
					add(Failure, "pillar", "ext_pillar", name, "the external pillar "+name+
						" is missing", "")
				}
			}
		}
	}
	for name := range strings.SplitSeq(c.String("renderer"), "|") {
		name, _, _ = strings.Cut(strings.TrimSpace(name), " ")
		if name != "" && !r.known.renderers[name] && !strings.HasSuffix(name, "_jinja") {
			add(Failure, "renderer", "renderer", name, "the renderer "+name+" is missing", "")
		}
	}
	for _, option := range []string{"grains_dirs", "states_dirs", "returner_dirs", "render_dirs",
		"utils_dirs"} {
		for _, dir := range c.Strings(option) {
			if files, _ := filepath.Glob(filepath.Join(dir, "*.py")); len(files) > 0 &&
				c.Given[option] {
				add(Failure, "custom", option, dir, "the Python files of "+option+" are not run",
					"")
			}
		}
	}
	if c.Given["id_function"] && pytext.Truth(c.Opts["id_function"]) {
		add(Failure, "option", "id_function", "id_function",
			"id_function would run code, and the minion refuses to start with it", "set id")
	}
}

func (r *run) checkReturner(option, name string) {
	name, _, _ = strings.Cut(name, ".")
	if name != "" && !r.known.returners[name] {
		r.add(configuredModule(r.Config, Failure, "returner", option, name, "the returner "+name+
			" is missing", ""))
	}
}

// names returns the names in an entry that is a string or a mapping.
func names(v any) []string {
	if m, ok := v.(map[string]any); ok {
		return slices.Sorted(maps.Keys(m))
	}
	return []string{pytext.Str(v)}
}

// Master checks a master's configuration. unsupported are options that the master cannot honour; "ext_pillar:
// NAME" is an entry of a list. roster is the roster file of salt-ssh, or "".
func Master(c *conf.Config, unsupported []string, roster string) *Report {
	r := &run{report: &Report{Files: len(c.Files)}, seen: map[Finding]bool{}}
	for _, name := range unsupported {
		option, entry, below := strings.Cut(name, ": ")
		kind := map[string]string{"engines": "engine", "ext_pillar": "pillar"}[option]
		if kind == "" {
			kind = "option"
		}
		text := "the option " + option + " cannot be used"
		if below {
			text = option + ": " + entry + " is missing"
		} else {
			entry = option
		}
		r.add(configuredModule(c, Failure, kind, option, entry, text, ""))
	}
	for _, f := range ofConfig(c, nil) {
		if !slices.ContainsFunc(r.report.Findings,
			func(have Finding) bool { return have.Name == f.Name }) {
			r.add(f)
		}
	}
	if roster != "" {
		r.add(Finding{Level: Warning, Kind: "roster", Name: "roster", File: roster,
			Text: "there is no salt-ssh, which reads the roster",
			Cure: "install a minion on these hosts"})
	}
	r.finish()
	return r.report
}
