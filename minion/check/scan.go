package check

import (
	"regexp"
	"strings"

	"github.com/brine-salt/brine/internal/python/yaml"
)

// ref is a name that a state file refers to.
type ref struct {
	kind, name string
	line       int
}

var (
	fullName = regexp.MustCompile(`^[a-z_][a-z0-9_]*\.[A-Za-z_][A-Za-z0-9_]*$`)
	bareName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)
	reaction = regexp.MustCompile(`^(local|cmd|caller|runner|wheel)\.` +
		`([a-z_][a-z0-9_]*\.[A-Za-z_][A-Za-z0-9_]*)$`)
	slotCall = regexp.MustCompile(`__slot__:salt:([a-z_][a-z0-9_]*\.[A-Za-z_][A-Za-z0-9_]*)`)
)

// scanStates collects the names in the YAML of a state file. If the whole is not valid YAML, it parses each
// top-level block by itself and skips the invalid ones.
func scanStates(text, name string) []ref {
	s := &scanner{}
	if n, err := yaml.Tree([]byte(text), name); err == nil {
		s.scanFile(n, 0)
		return s.refs
	}
	var block strings.Builder
	first, line := 1, 0
	flush := func() {
		if n, err := yaml.Tree([]byte(block.String()), name); err == nil {
			s.scanFile(n, first-1)
		}
		block.Reset()
	}
	for l := range strings.Lines(text) {
		line++
		if l[0] != ' ' && l[0] != '\n' && l[0] != '\t' && l[0] != '-' && l[0] != '#' {
			flush()
			first = line
		}
		block.WriteString(l)
	}
	flush()
	return s.refs
}

type scanner struct {
	refs   []ref
	offset int
}

func (s *scanner) noteReference(kind, name string, line int) {
	s.refs = append(s.refs, ref{kind, name, line + s.offset})
}

func (s *scanner) scanFile(n *yaml.Node, offset int) {
	s.offset = offset
	if n == nil {
		return
	}
	for _, p := range n.Pairs {
		switch p.Key.Text {
		case "include":
			for _, item := range p.Value.Items {
				if item.Scalar {
					s.noteReference("include", item.Text, item.Line)
				}
			}
		case "exclude":
		case "extend":
			for _, e := range p.Value.Pairs {
				s.scanBody(e.Key, e.Value)
			}
		default:
			s.scanBody(p.Key, p.Value)
		}
	}
}

// isNamed reports whether a state's arguments include a name.
func isNamed(n *yaml.Node) bool {
	for _, item := range n.Items {
		if item.Get("name") != nil {
			return true
		}
	}
	return false
}

// scanBody collects the names below a state id.
func (s *scanner) scanBody(id, n *yaml.Node) {
	if n == nil {
		return
	}
	if n.Scalar {
		if fullName.MatchString(n.Text) {
			s.noteReference("state", n.Text, n.Line)
		}
		return
	}
	for _, p := range n.Pairs {
		key := p.Key.Text
		if strings.HasPrefix(key, "__") || strings.Contains(key, placeholder) || p.Value.Scalar &&
			p.Value.Text != "" && !bareName.MatchString(p.Value.Text) {
			continue
		}
		fun := ""
		if m := reaction.FindStringSubmatch(key); m != nil { // in a reactor's file
			kind := m[1]
			if kind != "runner" && kind != "wheel" {
				kind = "function"
			}
			s.noteReference(kind, m[2], p.Key.Line)
			continue
		}
		switch {
		case fullName.MatchString(key):
			if p.Value.Scalar && p.Value.Text != "" {
				continue // a plain value with a dot in its key
			}
			fun = key
			s.noteReference("state", key, p.Key.Line)
		case bareName.MatchString(key):
			for _, item := range p.Value.Items {
				if item.Scalar && bareName.MatchString(item.Text) {
					fun = key + "." + item.Text
					s.noteReference("state", fun, item.Line)
				}
			}
		}
		if fun != "" {
			s.scanArguments(fun, p.Value)
			if kind := strings.TrimPrefix(fun, "salt."); (kind == "runner" || kind == "wheel" ||
				kind == "function") && kind != fun && !isNamed(p.Value) &&
				fullName.MatchString(id.Text) {
				s.noteReference(kind, id.Text, id.Line)
			}
		}
	}
}

// scanArguments collects the functions that are named in arguments of states.
func (s *scanner) scanArguments(state string, n *yaml.Node) {
	function := func(n *yaml.Node) {
		if n != nil && n.Scalar && fullName.MatchString(n.Text) &&
			!strings.Contains(n.Text, placeholder) {
			s.noteReference("function", n.Text, n.Line)
		}
	}
	rendered := false
	for _, item := range n.Items {
		if e := item.Get("template"); e != nil && e.Text == "jinja" {
			rendered = true
		}
	}
	for _, item := range n.Items {
		for _, p := range item.Pairs {
			switch key := p.Key.Text; {
			// in an orchestration
			case key == "name" &&
				(state == "salt.runner" || state == "salt.wheel" || state == "salt.function"):
				if kind := strings.TrimPrefix(state, "salt."); p.Value.Scalar &&
					fullName.MatchString(p.Value.Text) &&
					!strings.Contains(p.Value.Text, placeholder) {
					s.noteReference(kind, p.Value.Text, p.Value.Line)
				}
			case strings.HasPrefix(state, "module.") && fullName.MatchString(key):
				function(p.Key)
			case strings.HasPrefix(state, "module.") && key == "name",
				strings.HasPrefix(state, "schedule.") && key == "function",
				(key == "onlyif" || key == "unless") && p.Value.Get("fun") != nil:
				if p.Value.Scalar {
					function(p.Value)
				} else {
					function(p.Value.Get("fun"))
				}
			case key == "onlyif" || key == "unless":
				for _, c := range p.Value.Items {
					function(c.Get("fun"))
				}
			case key == "template" && strings.HasPrefix(state, "file.") && p.Value.Scalar &&
				bareName.MatchString(p.Value.Text):
				s.noteReference("template", p.Value.Text, p.Value.Line)
			case key == "source" && rendered && p.Value.Scalar &&
				strings.HasPrefix(p.Value.Text, "salt://") &&
				!strings.Contains(p.Value.Text, placeholder):
				s.noteReference("source", strings.TrimPrefix(p.Value.Text, "salt://"), p.Value.Line)
			}
			if p.Value.Scalar {
				if m := slotCall.FindStringSubmatch(p.Value.Text); m != nil {
					s.noteReference("function", m[1], p.Value.Line)
				}
			}
		}
	}
	if strings.HasPrefix(state, "module.") && n.Scalar {
		function(n)
	}
}
