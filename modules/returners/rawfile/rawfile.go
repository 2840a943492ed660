// Package rawfile is Salt's returner "rawfile_json": one line of JSON in a file for each return. Salt's source:
// salt/returners/rawfile_json.py.
package rawfile

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/returners"
)

func init() { returners.Register(Module) }

// Module returns the returner "rawfile_json".
func Module() *modules.Module {
	return &modules.Module{Name: "rawfile_json", Doc: "Write returns to a file, one line of JSON for each.", Funcs: []modules.Def{
		returners.Def("event_return", "Write events to the file.", events, "events"),
		returners.Def("returner", "Write a return to the file.", returner, "ret"),
	}}
}

func filename(c *modules.Call, ret map[string]any) string {
	o := returners.Options(c, "rawfile_json", ret, returners.Attrs("filename"), map[string]any{"filename": "/var/log/salt/events"})
	return pytext.Str(o["filename"])
}

// write adds lines to the file in one go, so that those of other writers do not get between.
func write(c *modules.Call, path string, values ...any) error {
	text := ""
	for _, v := range values {
		line, err := returners.JSON(v)
		if err != nil {
			return err
		}
		text += line + "\n"
	}
	f, err := os.OpenFile(c.Path(path), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("Could not write to rawdata_json file %s: %w", path, modules.OSError(err))
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func returner(_ context.Context, c *modules.Call) (any, error) {
	ret, err := returners.Return(c)
	if err != nil {
		return nil, err
	}
	return nil, write(c, filename(c, ret), ret)
}

func events(_ context.Context, c *modules.Call) (any, error) {
	list, _ := c.Value("events").([]any)
	if len(list) == 0 {
		return nil, nil
	}
	return nil, write(c, filename(c, nil), list...)
}
