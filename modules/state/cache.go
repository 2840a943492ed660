package state

import (
	"errors"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

// loadHigh returns the high data of an earlier run, or nil if it is missing.
func loadHigh(path string) *pyobj.Dict {
	v, err := states.Load(path)
	if err != nil {
		return nil
	}
	d, _ := pyobj.From(v).(*pyobj.Dict)
	return d
}

// saveHigh keeps the high data for a run with cache=True.
func saveHigh(c *modules.Call, path string, high *pyobj.Dict) {
	if err := states.Save(c.Path(path), high); err != nil {
		c.Logger().Error("Unable to write to highstate cache file "+path+". Do you have permissions?", "err", err)
	}
}

// renderText returns the error text of a state or top file that cannot be rendered.
func renderText(err error) (string, bool) {
	var render *modules.RenderError
	if errors.As(err, &render) {
		return render.Msg, true
	}
	return "", false
}
