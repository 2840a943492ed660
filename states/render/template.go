package render

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states/render/jinja"
)

// maxTemplate limits the size of a template file in bytes.
const maxTemplate = 16 << 20

// caches holds compiled templates. There is one cache for each set of lexer options, because these decide the meaning
// of a text.
var caches sync.Map // jinja.Syntax → *jinja.Cache

// cacheOf returns the cache for lexer options.
func cacheOf(s jinja.Syntax) *jinja.Cache {
	c, ok := caches.Load(s)
	if !ok {
		c, _ = caches.LoadOrStore(s, &jinja.Cache{})
	}
	return c.(*jinja.Cache)
}

// renderJinja expands a template (salt/utils/templates.py: render_jinja_tmpl).
func renderJinja(ctx context.Context, c *modules.Call, t *modules.Template, in any, arg string) (any, error) {
	if arg != "" && arg != "-s" {
		return nil, &modules.RenderError{Msg: "Unknown renderer option: " + arg, Text: "Unknown renderer option: " + arg}
	}
	text, err := textOf(in, "jinja")
	if err != nil {
		return nil, err
	}
	// Jinja removes one line break at the end, and stock adds it again.
	newline := ""
	if strings.HasSuffix(text, "\n") {
		newline = "\n"
	}
	s := &session{ctx: ctx, c: c, t: t}
	names := s.templateVars()
	// Each render has its own environment, because its names and options differ. Only the compiled code is shared.
	env := jinja.NewEnv()
	s.applyOptions(env, "jinja_env", t.IsSLS && t.SLS != "")
	text = s.takeHeader(env, text)
	env.Undefined = jinja.Strict
	if pytext.Truth(c.Opt("allow_undefined")) {
		env.Undefined = jinja.Default
	}
	env.Serializers = true
	env.Filters, env.Tests, env.Data = saltFilter, saltTest, s
	env.Finalize = printable
	env.Globals = names
	env.Load = s.load
	env.UseCache(cacheOf(env.Syntax))
	tmpl, err := env.Compile("", "", text)
	var out string
	if err == nil {
		out, err = tmpl.Render(ctx, names)
	}
	if err != nil {
		return nil, s.renderFailure(err, text)
	}
	return out + newline, nil
}

// session is one render of a template: the call on whose behalf functions run, and the template's place.
type session struct {
	ctx context.Context
	c   *modules.Call
	t   *modules.Template
	// loaded holds the local paths of templates that have been fetched, by name. The path is "" for a template that
	// does not exist.
	loaded map[string]string
}

// templateVars returns the variables of a template. Those that the caller passes override Salt's own.
func (s *session) templateVars() map[string]any {
	c, t := s.c, s.t
	names := map[string]any{
		"salt": &saltObject{s},
		// These are lazy, because most templates use none of them.
		"grains":            jinja.NewLazy(func() (any, error) { return c.OrderedGrains(), nil }),
		"pillar":            jinja.NewLazy(func() (any, error) { return c.OrderedPillar(), nil }),
		"opts":              jinja.NewLazy(func() (any, error) { return s.opts(), nil }),
		"proxy":             &pyobj.Dict{},
		"odict":             jinja.DictClass(),
		"raise":             &jinja.Func{Name: "jinja_raise", Fn: raiseError},
		"show_full_context": &jinja.Func{Name: "show_full_context", Fn: showFullContext},
		"ifelse":            &jinja.Func{Name: "ifelse", Fn: s.ifelse},
		"saltenv":           nil,
	}
	if t.SaltEnv != "" {
		names["saltenv"] = t.SaltEnv
	}
	for k, v := range t.Vars {
		names[k] = pyobj.From(v)
	}
	if t.IsSLS {
		file := t.Path
		if file == "" {
			file = ":string:" // stock's name for a template that is not a file
		}
		// A variable of the caller is kept.
		for k, v := range slsContext(file, t.SLS) {
			if _, ok := names[k]; !ok {
				names[k] = v
			}
		}
		names["sls"] = t.SLS
	}
	return names
}

// opts returns the variable opts: the configuration with the current grains and pillar.
func (s *session) opts() any {
	d := s.c.ConfigInOrder()
	_ = d.Set("grains", s.c.OrderedGrains())
	_ = d.Set("pillar", s.c.OrderedPillar())
	return d
}

// slsContext returns the names for the place of a state file (generate_sls_context): tplpath, tpldir, slspath and
// so on.
func slsContext(file, sls string) map[string]any {
	names := map[string]any{}
	dir := strings.ReplaceAll(sls, ".", "/")
	if file != "" {
		template := filepath.ToSlash(file)
		switch {
		// The template's path is shortened to the part that the SLS name stands for.
		case sls == "":
			template = path.Base(template)
		case strings.HasSuffix(template, dir+".sls"):
			template = template[len(template)-4-len(dir):]
		case strings.HasSuffix(template, dir+"/init.sls"):
			template = template[len(template)-9-len(dir):]
		}
		dir = ""
		if i := strings.LastIndexByte(template, '/'); i >= 0 {
			dir = template[:i]
		}
		names["tplpath"], names["tplfile"], names["tpldir"] = file, template, dir
		if dir == "" {
			names["tpldir"] = "."
		}
		names["tpldot"] = strings.ReplaceAll(dir, "/", ".")
	}
	names["slspath"] = dir
	names["slsdotpath"] = strings.ReplaceAll(dir, "/", ".")
	names["slscolonpath"] = strings.ReplaceAll(dir, "/", ":")
	names["sls_path"] = strings.ReplaceAll(dir, "/", "_")
	return names
}

// applyOptions applies the minion's options for the lexer: jinja_sls_env for state files, else jinja_env.
func (s *session) applyOptions(env *jinja.Env, _ string, sls bool) {
	name := "jinja_env"
	if sls {
		name = "jinja_sls_env"
	}
	// The general options apply to state files as well. The table for state files is applied after them.
	if pytext.Truth(s.c.Opt("jinja_trim_blocks")) {
		env.Syntax.TrimBlocks = true
	}
	if pytext.Truth(s.c.Opt("jinja_lstrip_blocks")) {
		env.Syntax.LstripBlocks = true
	}
	if m, ok := s.c.Opt(name).(map[string]any); ok {
		s.applySyntax(env, m)
	}
}

// applySyntax sets lexer options by Jinja's names.
func (s *session) applySyntax(env *jinja.Env, m map[string]any) {
	for k, v := range m {
		text, _ := v.(string)
		x := &env.Syntax
		switch strings.ToLower(k) {
		case "block_start_string":
			x.BlockStart = text
		case "block_end_string":
			x.BlockEnd = text
		case "variable_start_string":
			x.VariableStart = text
		case "variable_end_string":
			x.VariableEnd = text
		case "comment_start_string":
			x.CommentStart = text
		case "comment_end_string":
			x.CommentEnd = text
		case "line_statement_prefix":
			x.LineStatementPrefix = text
		case "line_comment_prefix":
			x.LineCommentPrefix = text
		case "trim_blocks":
			x.TrimBlocks = pytext.Truth(v)
		case "lstrip_blocks":
			x.LstripBlocks = pytext.Truth(v)
		case "keep_trailing_newline":
			x.KeepTrailingNewline = pytext.Truth(v)
		case "newline_sequence":
			x.Newline = text
		default:
			s.c.Logger().Warn("Jinja2 environment " + k + " is not recognized")
		}
	}
}

// takeHeader removes a line "#jinja2: {…}" from a template and applies it. A malformed line is logged and stays in
// the text.
func (s *session) takeHeader(env *jinja.Env, text string) string {
	const mark = "#jinja2:"
	if !strings.Contains(text, mark) {
		return text
	}
	lines := pytext.SplitLines(text, true)
	i := 0
	// The header may follow a shebang.
	if strings.HasPrefix(lines[0], "#!") && !strings.HasPrefix(lines[0], "#!/") {
		i = 1
	}
	if i >= len(lines) || !strings.HasPrefix(lines[i], mark) || strings.TrimSpace(lines[i][len(mark):]) == "" {
		return text
	}
	var m map[string]any
	if err := json.Unmarshal([]byte(lines[i][len(mark):]), &m); err != nil {
		s.c.Logger().Warn("Ignoring malformed '#jinja2:' header in template: " + strings.TrimRight(lines[i], "\r\n"))
		return text
	}
	s.applySyntax(env, m)
	return strings.Join(append(lines[:i:i], lines[i+1:]...), "")
}

// load returns a template that another template names (salt/utils/jinja.py: SaltCacheLoader.get_source).
func (s *session) load(r *jinja.Run, name string) (jinja.Source, bool, error) {
	// Without an environment there is no file client.
	if s.t.SaltEnv == "" {
		return s.loadBeside(name)
	}
	full, relative := name, false
	// Relative names are resolved against the template that contains the tag.
	if first, _, _ := strings.Cut(name, "/"); first == ".." || first == "." {
		relative = true
		dir, ok := r.Global("tpldir")
		if !ok {
			s.c.Logger().Warn(fmt.Sprintf("Relative path \"%s\" cannot be resolved without an environment", name))
			return jinja.Source{}, false, nil
		}
		full = path.Clean(pyobj.Str(dir) + "/" + name)
		if first, _, _ := strings.Cut(full, "/"); first == ".." {
			s.c.Logger().Warn(fmt.Sprintf("Discarded template path \"%s\": attempts to ascend outside of salt://", name))
			return jinja.Source{}, false, nil
		}
	}
	file, err := s.fetchTemplate(full)
	if err != nil {
		return jinja.Source{}, false, err
	}
	// A template imported without context sees the place of the template that was loaded last, as in stock.
	dir, tplfile := path.Dir(full), full
	if dir == "." {
		dir = ""
	}
	if relative {
		if v, ok := r.Global("tpldir"); ok {
			dir = pyobj.Str(v)
		}
		tplfile = name
	}
	r.SetGlobal("tplfile", tplfile)
	r.SetGlobal("tpldot", strings.ReplaceAll(dir, "/", "."))
	if dir == "" {
		dir = "."
	}
	r.SetGlobal("tpldir", dir)
	if file == "" {
		return jinja.Source{}, false, nil
	}
	return readTemplate(file)
}

// fetchTemplate fetches a template to this host and returns its path, or "" if there is no such file.
func (s *session) fetchTemplate(name string) (string, error) {
	if file, ok := s.loaded[name]; ok {
		return file, nil
	}
	file := ""
	// If file.read is refused, this caller must not read the host's files.
	if filepath.IsAbs(filepath.FromSlash(name)) && s.c.Refused(modules.Execution, "file.read") == nil {
		// Stock joins the path with each directory that it searches, which leaves an absolute one as it is: a file
		// of this host, for minions that may read its files.
		if info, err := os.Stat(s.c.Path(name)); err == nil && info.Mode().IsRegular() {
			file = s.c.Path(name)
		}
	} else if s.t.PillarRoots {
		roots, _ := s.c.Opt("pillar_roots").(map[string]any)
		list, _ := roots[s.t.SaltEnv].([]any)
		// The pillar roots are directories of this host.
		for _, dir := range list {
			at := filepath.Join(pytext.Str(dir), filepath.FromSlash(name))
			if info, err := os.Stat(s.c.Path(at)); err == nil && info.Mode().IsRegular() && filepath.IsLocal(filepath.FromSlash(name)) {
				file = s.c.Path(at)
				break
			}
		}
	} else if s.c.Files != nil {
		var err error
		if file, err = s.c.Files.Cache(s.ctx, "salt://"+name, s.t.SaltEnv); err != nil {
			return "", err
		}
	}
	if s.loaded == nil {
		s.loaded = map[string]string{}
	}
	// A missing template is stored as well, so that each template is requested once.
	s.loaded[name] = file
	return file, nil
}

// loadBeside returns a template from the directory of the main one, for renders without an environment.
func (s *session) loadBeside(name string) (jinja.Source, bool, error) {
	if s.t.Path == "" {
		return jinja.Source{}, false, &jinja.Error{Kind: "TypeError", Msg: "no loader for this environment specified"}
	}
	// A name cannot lead out of that directory.
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return jinja.Source{}, false, nil
	}
	return readTemplate(filepath.Join(filepath.Dir(s.t.Path), filepath.FromSlash(name)))
}

// readTemplate reads a template file. ok is false if it is missing or not a regular file.
func readTemplate(file string) (jinja.Source, bool, error) {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return jinja.Source{}, false, nil
	}
	if info.Size() > maxTemplate {
		return jinja.Source{}, false, fmt.Errorf("cannot read template %q: it has more than %d bytes", file, maxTemplate)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return jinja.Source{}, false, err
	}
	if !utf8.Valid(b) {
		return jinja.Source{}, false, &jinja.Error{Kind: "UnicodeDecodeError", Msg: fmt.Sprintf("cannot read template %q: it is not UTF-8", file)}
	}
	return jinja.Source{Text: string(b), File: file}, true, nil
}

// renderFailure returns the SaltRenderError for an error in a template, with stock's excerpt of the line.
func (s *session) renderFailure(err error, text string) error {
	var e *jinja.Error
	if !errors.As(err, &e) {
		return err
	}
	// If a render is cancelled the error is that of the context, whatever the template was doing.
	if s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	msg, traced := "Jinja error: "+e.Msg, false // stock puts the traceback of other errors behind the template
	var (
		usage *modules.UsageError
		exec  *modules.ExecError
	)
	// These are stock's texts for each class of exception.
	switch e.Kind {
	case "UndefinedError":
		msg = "Jinja variable " + e.Msg
	case "TemplateRuntimeError", "TemplateSyntaxError", "TemplateAssertionError", "SecurityError", "FilterArgumentError":
		msg = "Jinja syntax error: " + e.Msg
	case "SaltInvocationError", "CommandExecutionError":
		msg = "Problem running salt function in Jinja template: " + e.Msg
	default:
		if errors.As(e.Err, &usage) || errors.As(e.Err, &exec) {
			msg = "Problem running salt function in Jinja template: " + e.Msg
		} else {
			traced = true
		}
	}
	line, source := e.Line, text
	// Stock shows the included file, unless its name ends like that of the state file. For a render without a state
	// file, as in slsutil.renderer, every name does; then the line is taken from the main template.
	if e.File != "" && !(s.t.IsSLS && strings.HasSuffix(e.File, strings.ReplaceAll(s.t.SLS, ".", "/"))) {
		msg += fmt.Sprintf("\n%s(%d):\n%s", e.File, e.Line, Excerpt(e.Source, e.Line, false))
		line, source = 0, ""
	}
	r := &modules.RenderError{Msg: msg, Line: line, Text: msg, Err: err}
	if line > 0 && source != "" {
		r.Text += fmt.Sprintf("; line %d\n\n%s", line, Excerpt(source, line, traced))
	}
	return r
}
