package check

import (
	"regexp"
	"strings"

	"github.com/brine-salt/brine/internal/yaml"
)

// ref is a name in a state file.
type ref struct {
	kind, name string
	line       int
}

var (
	fullName = regexp.MustCompile(`^[a-z_][a-z0-9_]*\.[A-Za-z_][A-Za-z0-9_]*$`)
	bareName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)
	reaction = regexp.MustCompile(`^(local|cmd|caller|runner|wheel)\.([a-z_][a-z0-9_]*\.[A-Za-z_][A-Za-z0-9_]*)$`)
	slotCall = regexp.MustCompile(`__slot__:salt:([a-z_][a-z0-9_]*\.[A-Za-z_][A-Za-z0-9_]*)`)
)

// scan finds the names in the YAML of a state file. What is no YAML as a whole is read by its top blocks, and those that are no YAML
// are left out.
func scan(text, name string) []ref {
	s := &scanner{}
	if n, err := yaml.Tree([]byte(text), name); err == nil {
		s.file(n, 0)
		return s.refs
	}
	var block strings.Builder
	first, line := 1, 0
	flush := func() {
		if n, err := yaml.Tree([]byte(block.String()), name); err == nil {
			s.file(n, first-1)
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

func (s *scanner) note(kind, name string, line int) {
	s.refs = append(s.refs, ref{kind, name, line + s.offset})
}

func (s *scanner) file(n *yaml.Node, offset int) {
	s.offset = offset
	if n == nil {
		return
	}
	for _, p := range n.Pairs {
		switch p.Key.Text {
		case "include":
			for _, item := range p.Value.Items {
				if item.Scalar {
					s.note("include", item.Text, item.Line)
				}
			}
		case "exclude":
		case "extend":
			for _, e := range p.Value.Pairs {
				s.body(e.Key, e.Value)
			}
		default:
			s.body(p.Key, p.Value)
		}
	}
}

// named reports whether the arguments of a state have a name.
func named(n *yaml.Node) bool {
	for _, item := range n.Items {
		if item.Get("name") != nil {
			return true
		}
	}
	return false
}

// body is what stands below an id.
func (s *scanner) body(id, n *yaml.Node) {
	if n == nil {
		return
	}
	if n.Scalar {
		if fullName.MatchString(n.Text) {
			s.note("state", n.Text, n.Line)
		}
		return
	}
	for _, p := range n.Pairs {
		key := p.Key.Text
		if strings.HasPrefix(key, "__") || strings.Contains(key, placeholder) || p.Value.Scalar && p.Value.Text != "" && !bareName.MatchString(p.Value.Text) {
			continue
		}
		fun := ""
		if m := reaction.FindStringSubmatch(key); m != nil { // of a reactor's file
			kind := m[1]
			if kind != "runner" && kind != "wheel" {
				kind = "function"
			}
			s.note(kind, m[2], p.Key.Line)
			continue
		}
		switch {
		case fullName.MatchString(key):
			if p.Value.Scalar && p.Value.Text != "" {
				continue // a value that has a dot in its name
			}
			fun = key
			s.note("state", key, p.Key.Line)
		case bareName.MatchString(key):
			for _, item := range p.Value.Items {
				if item.Scalar && bareName.MatchString(item.Text) {
					fun = key + "." + item.Text
					s.note("state", fun, item.Line)
				}
			}
		}
		if fun != "" {
			s.arguments(fun, p.Value)
			if kind := strings.TrimPrefix(fun, "salt."); (kind == "runner" || kind == "wheel" || kind == "function") && kind != fun && !named(p.Value) && fullName.MatchString(id.Text) {
				s.note(kind, id.Text, id.Line)
			}
		}
	}
}

// arguments finds the functions that arguments of states name.
func (s *scanner) arguments(state string, n *yaml.Node) {
	function := func(n *yaml.Node) {
		if n != nil && n.Scalar && fullName.MatchString(n.Text) && !strings.Contains(n.Text, placeholder) {
			s.note("function", n.Text, n.Line)
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
			case key == "name" && (state == "salt.runner" || state == "salt.wheel" || state == "salt.function"): // of an orchestration
				if kind := strings.TrimPrefix(state, "salt."); p.Value.Scalar && fullName.MatchString(p.Value.Text) && !strings.Contains(p.Value.Text, placeholder) {
					s.note(kind, p.Value.Text, p.Value.Line)
				}
			case strings.HasPrefix(state, "module.") && fullName.MatchString(key):
				function(p.Key)
			case strings.HasPrefix(state, "module.") && key == "name", strings.HasPrefix(state, "schedule.") && key == "function",
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
			case key == "template" && strings.HasPrefix(state, "file.") && p.Value.Scalar && bareName.MatchString(p.Value.Text):
				s.note("template", p.Value.Text, p.Value.Line)
			case key == "source" && rendered && p.Value.Scalar && strings.HasPrefix(p.Value.Text, "salt://") && !strings.Contains(p.Value.Text, placeholder):
				s.note("source", strings.TrimPrefix(p.Value.Text, "salt://"), p.Value.Line)
			}
			if p.Value.Scalar {
				if m := slotCall.FindStringSubmatch(p.Value.Text); m != nil {
					s.note("function", m[1], p.Value.Line)
				}
			}
		}
	}
	if strings.HasPrefix(state, "module.") && n.Scalar {
		function(n)
	}
}
