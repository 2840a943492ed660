package jinja

// UseKind is the kind of a name in a template.
type UseKind string

// The kinds of uses.
const (
	UseFilter UseKind = "filter"
	UseTest   UseKind = "test"
	// UseFunction is a function below the name salt: salt['x.y'], salt.x.y, salt['x'].y.
	UseFunction UseKind = "function"
)

// Use is a name in the text of a template.
type Use struct {
	Kind UseKind
	Name string
	Line int
	// Known reports whether the environment has the filter or test. It is false for functions, which an environment
	// does not know.
	Known bool
	// Guarded is set for a filter or test in an if tag or between one and its end. If it is unknown, the template
	// fails only when it reaches the place.
	Guarded bool
}

// Uses returns the names that a template uses in any of its branches, in the order of the text. It does not run the
// template or load others. It returns an error only for wrong syntax; unknown filters and tests are not errors.
func (e *Env) Uses(text string) ([]Use, error) {
	var uses []Use
	_, err := e.parseText(normalize(text, e.Syntax.KeepTrailingNewline), &uses)
	if err != nil {
		return uses, err
	}
	return uses, nil
}

// noteUse adds a use, if uses are collected.
func (p *parser) noteUse(u Use) {
	if p.uses != nil {
		*p.uses = append(*p.uses, u)
	}
}

// saltName returns the part of a function's name that an expression below salt has: "" for salt itself. ok is false
// for any other expression.
func saltName(x expr) (name string, ok bool) {
	switch x := x.(type) {
	case *nameExpr:
		return "", x.name == "salt"
	case *attrExpr:
		if n, below := x.x.(*nameExpr); below && n.name == "salt" {
			return x.name, true
		}
	case *itemExpr:
		n, below := x.x.(*nameExpr)
		key, text := x.key.(*constExpr)
		if below && n.name == "salt" && text {
			name, ok = key.value.(string)
			return name, ok
		}
	}
	return "", false
}

// noteAttr notes salt.x.y and salt['x'].y. The y of salt['x.y'].y belongs to a result, and that of salt.get to salt
// itself.
func (p *parser) noteAttr(x expr, name string, line int) {
	if p.uses == nil {
		return
	}
	if module, ok := saltName(x); ok && module != "" && !hasDot(module) {
		p.noteUse(Use{Kind: UseFunction, Name: module + "." + name, Line: line})
	}
}

// noteItem notes salt['x.y'] and salt.x['y'].
func (p *parser) noteItem(x, key expr, line int) {
	if p.uses == nil {
		return
	}
	c, ok := key.(*constExpr)
	if !ok {
		return
	}
	name, ok := c.value.(string)
	if !ok {
		return
	}
	module, ok := saltName(x)
	switch {
	case !ok:
	case module == "" && hasDot(name):
		p.noteUse(Use{Kind: UseFunction, Name: name, Line: line})
	case module != "" && !hasDot(module) && !hasDot(name):
		p.noteUse(Use{Kind: UseFunction, Name: module + "." + name, Line: line})
	}
}

// hasDot reports whether a name has a dot.
func hasDot(s string) bool {
	for i := range len(s) {
		if s[i] == '.' {
			return true
		}
	}
	return false
}
