package check

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/brine-salt/brine/internal/modkit/owncode"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states/render"
	"github.com/brine-salt/brine/states/render/jinja"
)

// tree is one set of file roots.
type tree struct {
	*run
	roots map[string][]string
	files modules.Files
	// all means that every state file is rendered; otherwise only those of the highstate are.
	all bool

	sources  []*source
	byName   map[string]*source // the state files by environment and name: "base:web.nginx"
	custom   map[string]string  // "function x.y" in _modules or _states, with the file
	asked    map[string]bool    // functions that renderings called
	complete bool               // every state file in use was rendered
}

// source is one file of a tree.
type source struct {
	env, path, rel, sls string
	text                string
	inside              []bool
	uses                []jinja.Use
	refs                []ref
	template            bool
	wanted, rendered    bool
	// A file of a reactor is not rendered, because its data comes from an event.
	reaction bool
	broken   bool         // a syntax error was reported
	reached  map[ref]bool // names found by rendering, without lines
}

func (r *run) fileRoots() map[string][]string {
	roots := map[string][]string{}
	for env, v := range r.Config.Map("file_roots") {
		list, _ := v.([]any)
		for _, dir := range list {
			roots[env] = append(roots[env], pytext.Str(dir))
		}
	}
	return roots
}

func (t *tree) checkWhole(ctx context.Context) error {
	t.byName, t.custom, t.asked, t.complete = map[string]*source{}, map[string]string{},
		map[string]bool{}, true
	for _, env := range slices.Sorted(maps.Keys(t.roots)) {
		for _, root := range t.roots[env] {
			if err := t.walkTree(ctx, env, root); err != nil {
				return err
			}
		}
	}
	t.checkReactions()
	t.readText()
	if err := t.render(ctx); err != nil {
		return err
	}
	for _, s := range t.sources {
		t.judgeSource(s)
	}
	return nil
}

// walkTree reads the files of a directory. A missing directory of the configuration is not an error, because stock
// continues too.
func (t *tree) walkTree(ctx context.Context, env, root string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			if file == root && (!t.all || t.Roots != nil) && errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		rel, _ := filepath.Rel(root, file)
		rel = filepath.ToSlash(rel)
		top, _, below := strings.Cut(rel, "/")
		switch {
		case d.IsDir() && (d.Name() == ".git" || t.all && rel == "pillar"):
			return fs.SkipDir
		case d.IsDir():
			return nil
		case below && strings.HasPrefix(top, "_"):
			t.customFile(top, file)
			return nil
		}
		ext := filepath.Ext(file)
		s := &source{env: env, path: file, rel: rel,
			template: slices.Contains([]string{".jinja", ".j2", ".jinja2"}, ext),
			reached:  map[ref]bool{}}
		if ext == ".sls" && rel != "top.sls" {
			s.sls = strings.ReplaceAll(strings.TrimSuffix(strings.TrimSuffix(rel, ".sls"), "/init"),
				"/", ".")
			if t.byName[env+":"+s.sls] == nil {
				t.byName[env+":"+s.sls] = s
			}
		} else if !s.template && ext != ".sls" {
			t.sources = append(t.sources, s) // loaded only if a state uses it as a template
			return nil
		}
		return t.loadSource(s)
	})
	return err
}

// checkReactions reads the files of the option reactor.
func (t *tree) checkReactions() {
	for _, file := range t.Reactors {
		rel, inTree := strings.CutPrefix(file, "salt://")
		if i := slices.IndexFunc(t.sources,
			func(s *source) bool { return s.path == file || inTree && s.rel == rel }); i >= 0 {
			t.sources[i].reaction, t.sources[i].wanted = true, true
			continue
		}
		if _, err := os.Stat(file); err != nil {
			t.add(configuredModule(t.Master, Failure, "reactor", "reactor", file,
				"the file of a reactor is missing: "+file, ""))
			continue
		}
		_ = t.loadSource(&source{env: "base", path: file, rel: filepath.Base(file), sls: file,
			reaction: true, wanted: true, reached: map[ref]bool{}})
	}
}

func (t *tree) loadSource(s *source) error {
	b, err := readSmall(s.path)
	if err != nil {
		t.add(Finding{Level: Warning, Kind: "render", Name: s.rel, File: s.path, Text: err.Error()})
		return nil
	}
	s.text = string(b)
	t.report.Files++
	if !slices.Contains(t.sources, s) {
		t.sources = append(t.sources, s)
	}
	return nil
}

// customFile records code of the site that a master would distribute.
func (t *tree) customFile(dir, file string) {
	name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	if filepath.Ext(file) != ".py" && filepath.Ext(file) != ".pyx" &&
		filepath.Ext(file) != ".zip" || name == "__init__" {
		return
	}
	t.report.Files++
	var d definition
	if b, err := readSmall(file); err == nil {
		d = definitionsIn(b)
	}
	called := name
	if d.virtual != "" {
		called = d.virtual
	}
	kind := map[string]string{"_modules": "function", "_states": "state"}[dir]
	for _, f := range d.functions {
		if kind != "" {
			t.custom[kind+" "+called+"."+f] = file
			t.custom[kind+" "+name+"."+f] = file
		}
	}
	f := Finding{Level: Warning, Kind: "custom", Name: dir + "/" + filepath.Base(file), File: file,
		Text: "code that a master distributes is not run: it defines " + called + "." +
			strings.Join(d.functions, ", "+called+".")}
	if dir == "_modules" && t.known.custom[name] || t.known.own[dir+"/"+name] {
		return
	}
	f.Cure = owncode.File{Kind: strings.TrimPrefix(dir, "_")}.Cure()
	if dir == "_grains" {
		f.Level = Failure
		f.Text = "grains that a master distributes are not gathered; states and targets that use " +
			"them will miss them"
		f.Cure += ", or set the grains in /etc/salt/grains"
	}
	if len(d.functions) == 0 && dir != "_grains" {
		f.Text = "code that a master distributes is not run"
	}
	t.add(f)
}

// readText collects the names in the text of every file.
func (t *tree) readText() {
	wanted := map[string]bool{}
	for _, s := range t.sources {
		if s.sls != "" {
			t.readSLS(s)
			for _, r := range s.refs {
				if r.kind == "source" {
					wanted[r.name] = true
				}
			}
		}
	}
	for _, s := range t.sources {
		if s.sls != "" || s.rel == "top.sls" {
			continue
		}
		if !s.template {
			if !wanted[s.rel] {
				continue
			}
			if err := t.loadSource(s); err != nil || !strings.Contains(s.text, "{%") &&
				!strings.Contains(s.text, "{{") {
				continue
			}
		}
		t.readJinja(s, s.template)
	}
}

func (t *tree) readSLS(s *source) {
	pipe := pipeOf(s.text)
	for _, name := range pipe {
		if !t.known.renderers[name] {
			text := "the renderer " + name + " is missing"
			if slices.Contains([]string{"py", "pyobjects", "pydsl"}, name) {
				text = "the renderer " + name + " runs code of the tree, which is refused"
			}
			t.add(Finding{Level: Failure, Kind: "renderer", Name: name, File: s.path, Line: 1,
				Text: text, Cure: "write the file with jinja|yaml"})
			return
		}
	}
	body := s.text
	if slices.Contains(pipe, "jinja") || slices.Contains(pipe, "stateconf") {
		t.readJinja(s, true)
		body, s.inside = maskTemplates(s.text)
	}
	if !slices.Contains(pipe, "json") {
		body = dropShebang(body)
	}
	s.refs = scanStates(body, s.path)
}

// dropShebang empties the first line if it names renderers.
func dropShebang(text string) string {
	if strings.HasPrefix(text, "#!") {
		_, rest, _ := strings.Cut(text, "\n")
		return "\n" + rest
	}
	return text
}

// pipeOf returns the names of the renderers of a file.
func pipeOf(text string) []string {
	first, _, _ := strings.Cut(text, "\n")
	if !strings.HasPrefix(first, "#!") || strings.HasPrefix(first, "#!/") {
		return []string{"jinja", "yaml"}
	}
	spec := strings.TrimSpace(first[2:])
	switch spec {
	case "yaml_jinja", "json_jinja", "yamlex_jinja":
		return []string{"jinja", strings.TrimSuffix(spec, "_jinja")}
	}
	var names []string
	for part := range strings.SplitSeq(spec, "|") {
		name, _, _ := strings.Cut(strings.TrimSpace(part), " ")
		names = append(names, name)
	}
	return names
}

// readJinja collects the names in the tags of a file. A syntax error is a failure if the file is certainly a
// template.
func (t *tree) readJinja(s *source, certain bool) {
	uses, err := render.Uses(&modules.Call{Env: t.Env}, s.text, s.sls != "")
	if s.inside == nil {
		_, s.inside = maskTemplates(s.text)
	}
	var wrong *jinja.Error
	if errors.As(err, &wrong) {
		if certain {
			s.broken = true
			t.add(Finding{Level: Failure, Kind: "render", Name: s.rel, File: s.path,
				Line: wrong.Line, Text: "no template that Jinja can parse: " + wrong.Msg})
		}
		return
	}
	s.uses = uses
}

// render renders the state files in use.
func (t *tree) render(ctx context.Context) error {
	todo := []string{}
	if t.all {
		todo = slices.Sorted(maps.Keys(t.byName))
	}
	p := &readOnly{asked: map[string]bool{}, refused: map[string]bool{}}
	env := *t.Env
	env.Policy, env.Runner, env.Files = p, noPrograms{}, t.files
	var failed error
	work := &modules.Module{Name: "brine_check",
		Funcs: []modules.Def{{Name: "render",
			Run: func(ctx context.Context, c *modules.Call) (any, error) {
				if !t.all {
					todo = t.highstate(ctx, c)
				}
				for len(todo) > 0 && failed == nil {
					s := t.byName[todo[0]]
					todo = todo[1:]
					if s == nil || s.wanted {
						continue
					}
					s.wanted = true
					todo = append(todo, t.renderOne(ctx, c, p, s)...)
					failed = ctx.Err()
				}
				return nil, failed
			}}}}
	native := t.Registry.Native()
	reg := modules.NewRegistry(append(native.All(), work)...)
	res := reg.Run(ctx, &env, modules.Request{Fun: "brine_check.render"})
	maps.Copy(t.asked, p.asked)
	return res.Err
}

// highstate returns the state files that the top file assigns to this host.
func (t *tree) highstate(ctx context.Context, c *modules.Call) []string {
	v, err := c.Exec(ctx, "state.show_top")
	if err != nil {
		t.complete = false
		t.add(Finding{Level: Warning, Kind: "render", Name: "top.sls",
			Text: "the top file cannot be read, so that no state file counts as reached: " +
				err.Error()})
		return nil
	}
	var todo []string
	top, _ := pyobj.Plain(v).(map[string]any)
	for _, env := range slices.Sorted(maps.Keys(top)) {
		list, _ := top[env].([]any)
		for _, sls := range list {
			todo = append(todo, t.matching(env, pytext.Str(sls))...)
		}
	}
	return todo
}

// matching returns the keys of the state files that match a pattern.
func (t *tree) matching(env, pattern string) []string {
	if !strings.ContainsAny(pattern, "*?[") {
		return []string{env + ":" + pattern}
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(t.byName)) {
		if ok, _ := path.Match(env+":"+pattern, key); ok {
			out = append(out, key)
		}
	}
	return out
}

// renderOne renders a state file up to its YAML. It returns the keys of its includes.
func (t *tree) renderOne(ctx context.Context, c *modules.Call, p *readOnly,
	s *source) (includes []string) {
	pipe := pipeOf(s.text)
	for _, name := range pipe {
		if !t.known.renderers[name] {
			return nil // reported before
		}
	}
	if s.broken {
		t.complete = false
		return nil
	}
	text := dropShebang(s.text)
	if slices.Contains(pipe, "jinja") || slices.Contains(pipe, "stateconf") {
		p.start()
		v, err := c.Template(ctx,
			modules.Template{Text: text, Pipe: "jinja", Path: s.path, SaltEnv: s.env, SLS: s.sls,
				IsSLS: true,
				Vars:  map[string]any{"env": s.env}})
		if err != nil {
			t.complete = false
			t.notRendered(s, p, err)
			return nil
		}
		text, _ = v.(string)
	}
	s.rendered = true
	t.report.Rendered++
	for _, r := range scanStates(text, s.path) {
		switch r.kind {
		case "include":
			for _, key := range t.included(s, r.name) {
				if t.byName[key] == nil {
					t.add(Finding{Level: Warning, Kind: "include", Name: r.name, File: s.path,
						Line: lineOf(s, r),
						Text: "includes " + r.name + ", which is no file of the tree"})
				}
				includes = append(includes, key)
			}
		default:
			r.line = 0
			s.reached[r] = true
		}
	}
	return includes
}

// notRendered reports why a file was checked by its text alone.
func (t *tree) notRendered(s *source, p *readOnly, err error) {
	var bad *modules.RenderError
	line, text := 0, err.Error()
	if errors.As(err, &bad) {
		line, text = bad.Line, bad.Msg
	}
	text, _, _ = strings.Cut(text, "\n")
	f := Finding{Level: Note, Kind: "render", Name: s.sls, File: s.path, Line: line,
		Text: "judged by its text alone: " + text}
	if refused := p.last(); refused != "" {
		f.Text = "judged by its text alone: a check does not call " + refused
		for _, u := range s.uses {
			if u.Kind == jinja.UseFunction && u.Name == refused {
				f.Line = u.Line
				break
			}
		}
	}
	t.add(f)
}

func lineOf(s *source, want ref) int {
	for _, r := range s.refs {
		if r.kind == want.kind && r.name == want.name {
			return r.line
		}
	}
	return lineWith(s.text, want.name)
}

// lineWith returns the first line that contains a text, or 0.
func lineWith(text, what string) int {
	n := 0
	for l := range strings.Lines(text) {
		n++
		if strings.Contains(l, what) {
			return n
		}
	}
	return 0
}

// included returns the keys of the state files that an include means. The name is absolute, or relative with leading
// dots.
func (t *tree) included(s *source, name string) []string {
	if strings.HasPrefix(name, ".") {
		at := strings.Split(s.sls, ".")
		if !strings.HasSuffix(s.rel, "/init.sls") || s.sls == "" {
			at = at[:len(at)-1]
		}
		rest := strings.TrimLeft(name, ".")
		up := len(name) - len(rest) - 1
		if up > len(at) {
			return nil
		}
		name = strings.Join(append(at[:len(at)-up:len(at)-up], rest), ".")
	}
	return t.matching(s.env, name)
}

// judgeSource adds findings for the names in a file.
func (t *tree) judgeSource(s *source) {
	branch := func(line int) bool {
		return !s.reaction && line < len(s.inside) && line > 0 &&
			s.inside[line]
	}
	told := map[ref]bool{}
	for _, u := range s.uses {
		f := Finding{Level: Failure, Kind: string(u.Kind), Name: u.Name, File: s.path, Line: u.Line}
		switch {
		case u.Kind == jinja.UseFunction:
			if hasFunction(t.known.functions, u.Name) {
				continue
			}
			t.explainMissing(&f, u.Name)
			if !t.asked[u.Name] &&
				(s.rendered || s.sls != "" && !s.wanted || s.sls == "" && t.complete &&
					s.template || branch(u.Line)) {
				t.noteElsewhere(&f, s)
			}
		case u.Known:
			continue
		default:
			f.Text = "Jinja's " + f.Kind + " " + u.Name + " is missing"
			if u.Guarded && s.rendered || s.sls != "" && !s.wanted {
				t.noteElsewhere(&f, s)
			}
		}
		t.add(f)
	}
	for _, r := range s.refs {
		f, wrong := t.wrongReference(r)
		if !wrong {
			continue
		}
		f.File, f.Line = s.path, r.line
		plain := ref{r.kind, r.name, 0}
		told[plain] = true
		if s.rendered && !s.reached[plain] || !s.rendered && branch(r.line) || !s.wanted {
			t.noteElsewhere(&f, s)
		}
		t.add(f)
	}
	for r := range s.reached { // names that the template computes
		if told[r] {
			continue
		}
		if f, wrong := t.wrongReference(r); wrong {
			f.File, f.Line = s.path, lineWith(s.text, r.name)
			if f.Line == 0 {
				mod, fun, _ := strings.Cut(r.name, ".")
				if f.Line = lineWith(s.text, "."+fun); f.Line == 0 {
					f.Line = lineWith(s.text, mod)
				}
			}
			t.add(f)
		}
	}
}

func (t *tree) noteElsewhere(f *Finding, s *source) {
	f.Level = Warning
	switch {
	case s.sls == "":
		f.Text += " (in a place that no rendering reached)"
	case !s.wanted:
		f.Text += " (in a file that this host's highstate does not use)"
	default:
		f.Text += " (in a branch that this host does not take)"
	}
}

// wrongReference returns the finding about a name in a state file, and whether the name is wrong.
func (t *tree) wrongReference(r ref) (Finding, bool) {
	f := Finding{Level: Failure, Kind: r.kind, Name: r.name}
	switch r.kind {
	case "state":
		if hasFunction(t.known.states, r.name) {
			return f, false
		}
		f.Text = "the state " + r.name + " is missing" +
			didYouMean(nearestName(t.known.states, r.name))
		if file := t.custom["state "+r.name]; file != "" {
			f.Text = "the state " + r.name + " is code that a master distributes (" + file +
				"), which is not run"
			f.Cure = "put that file into a directory of the host and name the directory in " +
				"states_dirs"
		}
	case "function":
		if hasFunction(t.known.functions, r.name) {
			return f, false
		}
		t.explainMissing(&f, r.name)
	case "runner", "wheel":
		if t.OnMaster == nil || t.OnMaster(r.kind, r.name) {
			return f, false
		}
		f.Text = "the " + r.kind + " function " + r.name + " is missing"
	case "template":
		if r.name == "jinja" {
			return f, false
		}
		f.Text = "the template engine " + r.name + " is missing"
	default:
		return f, false
	}
	return f, true
}

func (t *tree) explainMissing(f *Finding, name string) {
	f.Text = "the function " + name + " is missing" +
		didYouMean(nearestName(t.known.functions, name))
	if file := t.custom["function "+name]; file != "" {
		f.Text = "the function " + name + " is code that a master distributes (" + file +
			"), which is not run"
		f.Cure = "put that file into a directory of the host and name the directory in module_dirs"
	}
}

// readOnly is the policy for renderings. It permits only functions that read.
type readOnly struct {
	mu      sync.Mutex
	asked   map[string]bool // guarded by mu
	refused map[string]bool // guarded by mu
	lastOne string          // guarded by mu; the last refused function of the current file
}

var _ modules.Policy = (*readOnly)(nil)

func (p *readOnly) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastOne = ""
}

func (p *readOnly) last() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lastOne
}

// RefuseArguments implements [modules.Policy].
func (p *readOnly) RefuseArguments(modules.Kind, string, func() map[string]any) error { return nil }

// Disabled implements [modules.Policy].
func (p *readOnly) Disabled(modules.Kind) []string { return nil }

// Refuse implements [modules.Policy].
func (p *readOnly) Refuse(kind modules.Kind, fun string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if kind != modules.Execution {
		return &modules.RefusedError{Fun: fun, Why: "a check runs no states"}
	}
	p.asked[fun] = true
	if isQuiet(fun) || fun == "brine_check.render" || fun == "state.show_top" {
		return nil
	}
	p.refused[fun] = true
	p.lastOne = fun
	return &modules.RefusedError{Fun: fun, Why: "a check calls only functions that read"}
}

// noPrograms is a runner that starts no programs.
type noPrograms struct{}

func (noPrograms) Run(context.Context, modules.Command) (modules.CommandResult, error) {
	return modules.CommandResult{}, &os.PathError{Op: "run", Path: "program", Err: fs.ErrPermission}
}

// Quiet returns an environment in which functions may only read, and cannot start programs.
func Quiet(e modules.Env) modules.Env {
	e.Policy, e.Runner = &readOnly{asked: map[string]bool{}, refused: map[string]bool{}},
		noPrograms{}
	return e
}
