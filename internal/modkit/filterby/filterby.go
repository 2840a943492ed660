// Package filterby holds the common part of grains.filter_by, pillar.filter_by and match.filter_by: Salt's errors,
// and for the first two the parameters lookup_dict, merge, default and base.
package filterby

import (
	"errors"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// Call selects from lookup_dict by the value of key in data. It is for functions with Ordered set.
func Call(c *modules.Call, key string, data any) (any, error) {
	table, ok := c.Value("lookup_dict").(*pyobj.Dict)
	if !ok {
		return nil, modules.NoAttribute(c.Value("lookup_dict"), "get")
	}
	v, err := nested.FilterObject(table, key, data, c.Value("merge"), c.Value("default"), c.Value("base"))
	return v, Error(err)
}

// Error returns the exception that Salt raises for an error of package nested, or for a key that is not hashable.
func Error(err error) error {
	var unhashable pyobj.TypeError
	switch {
	case errors.Is(err, nested.ErrUpdate), errors.As(err, &unhashable):
		return &modules.TypeError{Msg: err.Error()}
	case errors.Is(err, nested.ErrMerge), errors.Is(err, nested.ErrBase):
		return &modules.PythonError{Type: "SaltException", Msg: err.Error()}
	}
	return err
}
