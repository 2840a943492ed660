package jinja

import (
	"github.com/brine-salt/brine/modules/pyobj"
)

// Add implements Python's a + b, for filters outside of this package.
func Add(a, b any) (any, error) { return (&Run{}).binaryOp(tAdd, a, b) }

// Divide implements Python's a / b.
func Divide(a, b any) (any, error) { return (&Run{}).binaryOp(tDiv, a, b) }

// Float implements Python's float(v).
func Float(v any) (float64, error) { return parseFloat(v) }

// ParseInt implements Python's int(s, base) of a text.
func ParseInt(s string, base int) (any, error) { return parseInt(s, base) }

// Capitalize implements str.capitalize.
func Capitalize(s string) string { return capitalize(s) }

// SortItems implements sorted(items, key=by).
func SortItems(items []any, by func(v any) (any, error)) ([]any, error) {
	return sortItems(items, by, false)
}

// Update implements d.update(from).
func Update(d *pyobj.Dict, from any) error { return updateDict(d, Args{Pos: []any{from}}) }

// Length implements len(v).
func Length(v any) (int, error) { return lengthOf(v) }

// LacksAttribute returns the error that v.name raises if there is no such attribute.
func LacksAttribute(v any, name string) error {
	if u, ok := v.(*Undefined); ok {
		return u.fail()
	}
	return attributeError(v, name)
}

// Subscript implements Python's v[key], which raises where [Run.GetItem] returns undefined.
func (r *Run) Subscript(v, key any) (any, error) { return r.lookupItem(v, key) }

// Contains implements Python's "v in box".
func (r *Run) Contains(box, v any) (bool, error) { return r.containsItem(box, v) }
