package jinja

// scope is a region of a template with its own assignments, which are known when it is parsed. At run time it is a
// [frame] with a slot for each name.
type scope struct {
	parent *scope
	names  []string
	// isolated scopes (templates, blocks) do not see the names of the scopes around them.
	isolated bool
	// loop marks the body of a for loop, macro that of a macro or call block.
	loop, macro bool
	// usesLoop and so on report which of the names that loops and macros provide the code inside uses.
	usesLoop, usesCaller, usesVarargs, usesKwargs bool
	// captured is set if a macro or call block inside refers to the scope's frames, which then cannot be reused.
	captured bool
	// soft is the number of conditions around the code that is being parsed; see [parser.lookupFilter].
	soft int
}

// slotOf returns the slot of a name, -1 if the scope does not assign it. Scopes have few names, for which a slice
// is faster than a map.
//
//go:noinline
func (s *scope) slotOf(name string) int {
	for i, n := range s.names {
		if n == name {
			return i
		}
	}
	return -1
}

// slot returns the slot of a name in the scope's frames, adding the name if it is new.
//
//go:noinline
func (s *scope) slot(name string) int {
	if i := s.slotOf(name); i >= 0 {
		return i
	}
	s.names = append(s.names, name)
	return len(s.names) - 1
}

// ref is a place of a name: the number of frames to go up, and the slot there.
type ref struct{ up, slot int }

// refs returns the places where a name may be, the innermost first. Only at run time is it known which of them holds
// it.
func (s *scope) refs(name string) []ref {
	var list []ref
	for up := 0; s != nil; up++ {
		if i := s.slotOf(name); i >= 0 {
			list = append(list, ref{up, i})
		}
		if s.isolated {
			break
		}
		s = s.parent
	}
	return list
}

// useSpecial notes the use of a name that loops and macros provide, in every enclosing scope that may provide it.
func (s *scope) useSpecial(name string) {
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
