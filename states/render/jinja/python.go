package jinja

import (
	"github.com/brine-salt/brine/internal/pyobj"
)

// Add is a + b.
func Add(a, b any) (any, error) { return (&Run{}).binary(tAdd, a, b) }

// Divide is a / b.
func Divide(a, b any) (any, error) { return (&Run{}).binary(tDiv, a, b) }

// Float is float(v).
func Float(v any) (float64, error) { return parseFloat(v) }

// ParseInt is int(s, base) of a text.
func ParseInt(s string, base int) (any, error) { return parseInt(s, base) }

// Capitalize is str.capitalize.
func Capitalize(s string) string { return capitalize(s) }

// SortItems is sorted(items, key=by).
func SortItems(items []any, by func(v any) (any, error)) ([]any, error) {
	return sortItems(items, by, false)
}

// Update is d.update(from).
func Update(d *pyobj.Dict, from any) error { return update(d, Args{Pos: []any{from}}) }

// Length is len(v).
func Length(v any) (int, error) { return length(v) }

// LacksAttribute is the error of v.name, if there is no such attribute.
func LacksAttribute(v any, name string) error {
	if u, ok := v.(*Undefined); ok {
		return u.fail()
	}
	return attributeError(v, name)
}

// Subscript is v[key] in Python.
func (r *Run) Subscript(v, key any) (any, error) { return r.subscript(v, key) }

// Contains is "v in box".
func (r *Run) Contains(box, v any) (bool, error) { return r.contains(box, v) }
