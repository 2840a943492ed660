package cfn

import (
	"strings"

	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules/pyobj"
)

// SLS returns the states as the text of an SLS file with the same effect. Its first line turns template engines off,
// so that braces in files and commands are not interpreted.
func (c *Compiled) SLS() (string, error) {
	shown := pyobj.NewDict()
	for id, body := range c.High.All() {
		states := pyobj.NewDict()
		for state, run := range body.(*pyobj.Dict).All() {
			if name := state.(string); !strings.HasPrefix(name, "__") {
				list := run.(*pyobj.List)
				if err := states.Set(name+"."+list.Items[0].(string), pyobj.NewList(list.Items[1:]...)); err != nil {
					return "", err
				}
			}
		}
		if err := shown.Set(id, states); err != nil {
			return "", err
		}
	}
	if shown.Len() == 0 {
		return "#!yaml\n{}\n", nil
	}
	text, err := yaml.MarshalStyle(shown, yaml.Style{Unsorted: true, Width: -1})
	return "#!yaml\n" + text, err
}
