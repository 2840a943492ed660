package jinja

// scope is a region of a template whose assignments are its own. At run time it is a [frame] with a slot per name.
type scope struct {
	parent *scope
	names  []string
	// isolated scopes (templates, blocks) do not see the names of those around them.
	isolated bool
	// loop is a body of a for loop, macro that of a macro or call block.
	loop, macro bool
	// What the code inside uses of the names that loops and macros provide.
	usesLoop, usesCaller, usesVarargs, usesKwargs bool
	// captured tells that a macro or call block inside refers to the scope's frames.
	captured bool
	// soft is the number of conditions around the code that is being parsed; see parser.callable.
	soft int
}

func (s *scope) find(name string) int {
	for i, n := range s.names {
		if n == name {
			return i
		}
	}
	return -1
}

// slot is the place of a name in the scope's frames.
func (s *scope) slot(name string) int {
	if i := s.find(name); i >= 0 {
		return i
	}
	s.names = append(s.names, name)
	return len(s.names) - 1
}

// ref is a place of a name: so many frames up, that slot.
type ref struct{ up, slot int }

// refs are the places where a name may be, the innermost first.
func (s *scope) refs(name string) []ref {
	var list []ref
	for up := 0; s != nil; up++ {
		if i := s.find(name); i >= 0 {
			list = append(list, ref{up, i})
		}
		if s.isolated {
			break
		}
		s = s.parent
	}
	return list
}

// special notes the use of a name that loops and macros provide.
func (s *scope) special(name string) {
	for ; s != nil && !s.isolated; s = s.parent {
		switch {
		case name == "loop" && s.loop:
			s.usesLoop = true
			s.slot("loop")
		case s.macro && name == "caller":
			s.usesCaller = true
			s.slot(name)
		case s.macro && name == "varargs":
			s.usesVarargs = true
			s.slot(name)
		case s.macro && name == "kwargs":
			s.usesKwargs = true
			s.slot(name)
		}
	}
}
