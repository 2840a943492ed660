// Package filterby is what grains.filter_by and pillar.filter_by have in common: their parameters lookup_dict, merge, default
// and base, and Salt's errors.
package filterby

import (
	"errors"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/pyobj"
	"github.com/brine-salt/brine/modules"
)

// Call, for functions that are Ordered, picks from lookup_dict by the value that data has under key.
func Call(c *modules.Call, key string, data any) (any, error) {
	table, ok := c.Value("lookup_dict").(*pyobj.Dict)
	if !ok {
		return nil, &modules.PythonError{Type: "AttributeError",
			Msg: "'" + modules.TypeName(c.Value("lookup_dict")) + "' object has no attribute 'get'"}
	}
	v, err := nested.FilterObject(table, key, data, c.Value("merge"), c.Value("default"), c.Value("base"))
	switch {
	case errors.Is(err, nested.ErrUpdate):
		return nil, &modules.TypeError{Msg: err.Error()}
	case err != nil:
		return nil, &modules.PythonError{Type: "SaltException", Msg: err.Error()}
	}
	return v, nil
}
